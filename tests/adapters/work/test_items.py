"""What a process has taken and not begun, in memory."""

from __future__ import annotations

from tenure.adapters.work.items import Held, Items
from tenure.machines.receipt_messages import Holder


def held(number: int) -> Held:
    return Held(f"r{number}", "prompt", "b", number, Holder("i1", "p1", 1, f"a{number}"))


def test_one_runs_at_a_time_in_the_order_of_the_updates() -> None:
    items = Items()
    for number in (2, 3, 1):
        items.put(held(number))
    assert items.begin() == held(1)
    assert items.running == held(1)
    assert items.begin() is None
    assert list(items) == [held(2), held(3)]
    items.ended()
    assert items.begin() == held(2)


def test_what_is_aside_is_no_more_so_when_it_comes_again() -> None:
    """It was handed over, and has come back under another acquisition."""
    items = Items()
    items.put(held(1))
    assert items.set_aside("r1") == held(1)
    assert items.set_aside("r1") is None
    assert items.begin() is None
    items.drop("r1")
    assert "r1" not in items
    items.put(held(1))
    assert items.begin() == held(1)
    assert items.set_aside("r1") is None  # it has begun


def test_it_is_told_that_something_may_be_begun() -> None:
    told = []
    items = Items(lambda: told.append(len(items)))
    items.put(held(1))
    items.set_aside("r1")
    items.resume("r1")
    assert told == [1, 1]
