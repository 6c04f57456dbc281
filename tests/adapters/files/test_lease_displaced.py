"""What an owner may do, and a displaced one may not: commit and send (locks.md 7.2; A14, K11, K13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard import GuardBusy
from tenure.adapters.files.lease import NotOwner
from tenure.adapters.testing.faulty import Call, Fault

from .lease_house import LEASE_MS, House, won


def test_a14_a_displaced_owner_commits_nothing(house: House) -> None:
    """A14, S24: the effect runs inside the transaction of the exact owner, or not at all; the loss is known then."""
    old, new = house.process(1).lease(), house.process(2).lease()
    won(old)
    house.pause(LEASE_MS + 1)
    won(new)
    with pytest.raises(NotOwner, match="default is not owned"):
        old.commit(lambda epoch: pytest.fail("a stale snapshot was published"))
    assert "idle" == old.phase
    assert "ok 2" == new.commit(lambda epoch: f"ok {epoch}")


def test_nobody_else_is_inside_while_an_effect_runs(house: House) -> None:
    """S24."""
    lease, other = house.process(1).lease(), house.process(2).lease()
    won(lease)

    def effect(epoch: int) -> int:
        with pytest.raises(GuardBusy):
            other.acquire("plain")
        return epoch

    assert 1 == lease.commit(effect)


def test_an_effect_that_raises_leaves_the_owner_and_no_guard(house: House) -> None:
    """The exception is the caller's."""
    lease = house.process(1).lease()
    won(lease)

    def effect(epoch: int) -> None:
        raise KeyError("theirs")

    with pytest.raises(KeyError, match="theirs"):
        lease.commit(effect)
    assert ("owner", [], "mine") == (lease.phase, house.left(), lease.refresh())


@pytest.mark.parametrize("name", ["acquire", "refresh", "release", "commit"])
def test_k13_an_operation_inside_an_effect_is_refused_at_once(house: House, name: str) -> None:
    """K13: no two seconds of waiting for oneself."""
    lease = house.process(1).lease()
    won(lease)
    operations: Mapping[str, Callable[[], object]] = {
        "acquire": lambda: lease.acquire("plain"),
        "refresh": lease.refresh,
        "release": lease.release,
        "commit": lambda: lease.commit(lambda epoch: None),
    }
    before = house.clock.monotonic

    def effect(epoch: int) -> None:
        assert lease.may_send() is None
        assert "mine" == lease.check()
        operations[name]()

    with pytest.raises(TenureError, match="end it first"):
        lease.commit(effect)
    assert before == house.clock.monotonic
    assert ("owner", "mine") == (lease.phase, lease.refresh())


def test_k11_past_the_own_lease_nothing_is_sent(house: House) -> None:
    """K11: by the own clock, which counts suspends, from when the last refresh was asked for."""
    lease = house.process(1).lease()
    assert (None, True) == (lease.may_send(), lease.lease_passed())
    won(lease)
    house.pause(LEASE_MS - 10)
    assert (1, False) == (lease.may_send(), lease.lease_passed())
    lease.refresh()
    house.clock.suspend(LEASE_MS)
    assert (1, False) == (lease.may_send(), lease.lease_passed())
    house.clock.suspend(1)
    assert (None, True) == (lease.may_send(), lease.lease_passed())
    assert "mine" == lease.refresh(), "a lease that has passed can be renewed while nobody has replaced it"
    assert (1, False) == (lease.may_send(), lease.lease_passed())
    lease.release()
    assert (None, True) == (lease.may_send(), lease.lease_passed())


def test_a_refresh_that_waits_counts_from_when_it_was_asked_for(house: House) -> None:
    """The wait for the guard is no part of the lease."""
    waits = 0

    def plan(call: Call) -> Fault | None:
        nonlocal waits
        if waits and ".staged." in call.paths[0] and call.name == "make_directory":
            waits -= 1
            house.pause(3_000)
        return None

    lease = house.process(1, plan).lease()
    won(lease)
    waits = 1
    lease.refresh()
    house.pause(LEASE_MS - 3_000)
    assert not lease.lease_passed()
    house.pause(1)
    assert (True, None) == (lease.lease_passed(), lease.may_send())
