"""What a person wants moved, and what he is told of it (`tenure handoff`)."""

from __future__ import annotations

import attrs
import pytest

from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.handoff.outcomes import Kept
from tenure.adapters.journal.moves import Move
from tests.adapters.handoff.moving_room import ME, House, run


def test_a_person_puts_an_item_where_he_wants_it() -> None:
    """Whatever its thread is; and it does not come back by itself."""

    async def story() -> None:
        house = House()
        house.holds("mine", 40)
        house.wish("mine", "102:1")
        await house.mover.reconcile()
        assert [("mine", "102:1", "102:start:1020@b/1")] == house.offered
        assert {"mine": "moved to 102:1"} == house.book.outcomes
        house.holds("a", 41)
        house.wish("a", "50:1")
        await house.mover.reconcile()
        await house.mover.reconcile()
        assert 1 == len(house.offered)

    run(story())


def test_a_wish_that_is_replaced_while_it_is_read_is_the_one_or_the_other() -> None:
    """What a person has put here stays, or goes where he wants it next; in no case where its thread is."""

    async def story() -> None:
        house = House()
        house.holds("r", 41)
        house.wish("r", "50:1")
        await house.mover.reconcile()
        read = house.book.moves

        async def moves() -> tuple[Move, ...]:
            found = await read()
            house.wish("r", "102:1")
            return found

        house.book.moves = moves  # type: ignore[method-assign]
        await house.mover.reconcile()
        assert [] == house.offered
        house.book.moves = read  # type: ignore[method-assign]
        await house.mover.reconcile()
        assert [("r", "102:1")] == [offer[:2] for offer in house.offered]
        assert 1 == house.mover.counts.moved

    run(story())


def test_an_item_that_comes_by_a_wish_while_the_wishes_are_read_stays() -> None:
    """They are older than it, and say nothing of it."""

    async def story() -> None:
        house = House()
        house.holds("a", 41)
        read = house.book.moves

        async def moves() -> tuple[Move, ...]:
            found = await read()
            house.wish("r", "50:1")
            house.holds("r", 42)
            return found

        house.book.moves = moves  # type: ignore[method-assign]
        await house.mover.reconcile()
        assert ["a"] == [receipt for receipt, _, _ in house.offered]
        house.book.moves = read  # type: ignore[method-assign]
        await house.mover.reconcile()
        assert ["r"] == [one.receipt_id for one in house.items]
        assert {"r": "it is at 50:1"} == house.book.outcomes

    run(story())


def test_a_wish_does_not_wait_for_what_was_refused_before_it() -> None:
    """To its thread, or to a wish that another has replaced."""

    async def story() -> None:
        house = House()
        house.holds("a", 41)
        house.answers["a"] = Kept("busy")
        for _ in range(3):
            house.clock.advance(10_000)
            await house.mover.reconcile()
        for number in (4, 5):
            house.clock.advance(1)
            house.wish("a", "101:1")
            await house.mover.reconcile()
            await house.mover.reconcile()
            assert number == len(house.offered)

    run(story())


@pytest.mark.parametrize(
    ("phase", "answer"),
    [("started", "it has begun at 50:1: it is not moved any more"), ("queued", None), (None, None)],
)
def test_a_person_is_told_what_cannot_be_moved(phase: str | None, answer: str | None) -> None:
    """What has begun; what was taken a moment ago is moved when it is held."""

    async def story() -> None:
        house = House()
        house.wish("r", "102:1")
        if phase is not None:
            house.book.row("r", phase)
        await house.mover.reconcile()
        assert answer == house.book.outcomes.get("r")
        assert [] == house.offered

    run(story())


def test_a_person_is_told_by_who_has_it() -> None:
    """What has begun at somebody else's is not this one's to tell, and nothing is told twice."""

    async def story() -> None:
        house = House()
        house.wish("r", "102:1")
        house.book.row("r", "started", attrs.evolve(ME, instance="101:1"))
        await house.mover.reconcile()
        assert {} == house.book.outcomes
        house.book.row("r", "started")
        await house.mover.reconcile()
        await house.mover.reconcile()
        assert (["r"], 1) == (list(house.book.outcomes), house.book.told)

    run(story())


def test_a_person_is_told_that_it_is_there_already() -> None:
    """Where it was to go."""

    async def story() -> None:
        house = House()
        house.holds("r", 40)
        house.book.row("r", "queued")
        house.wish("r", "50:1")
        await house.mover.reconcile()
        assert {"r": "it is at 50:1"} == house.book.outcomes

    run(story())


def test_a_person_is_told_in_the_end_that_it_stays() -> None:
    """Nobody of that name, or a refusal: as long as an offer may take, it is tried."""

    async def story() -> None:
        house = House()
        house.holds("r", 40)
        house.holds("s", 40)
        house.wish("r", "103:1")
        house.wish("s", "102:1")
        house.answers["s"] = Kept("no worker")
        house.holds("t", 40)
        house.wish("t", "102:1")
        house.answers["t"] = Kept("too long", definite=True)
        await house.mover.reconcile()
        assert {"t": "stays at 50:1: too long"} == house.book.outcomes
        house.book.outcomes.clear()
        house.clock.advance(DEFAULT.handoff_timeout_ms)
        await house.mover.reconcile()
        assert {"r": "103:1 is not here", "s": "stays at 50:1: no worker"} == house.book.outcomes

    run(story())
