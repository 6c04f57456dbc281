"""Which items move, where to, and how often it is tried (bus.md e, reconcile tick)."""

from __future__ import annotations

import asyncio

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.handoff.outcomes import Kept, Moved
from tenure.adapters.journal.moves import Move
from tests.adapters.handoff.moving_room import A, House, run


def test_what_was_written_in_anothers_thread_goes_there() -> None:
    """And nothing else: own thread, no thread, a thread that nobody has."""

    async def story() -> None:
        house = House()
        for number, (receipt, thread) in enumerate([("a", 41), ("b", 42), ("mine", 40), ("none", None), ("x", 43)]):
            house.holds(receipt, thread, number)
        await house.mover.reconcile()
        assert [("a", "101:1", "101:start:1010@b/1"), ("b", "102:1", "102:start:1020@b/1")] == sorted(house.offered)
        assert ["mine", "none", "x"] == [one.receipt_id for one in house.items]
        assert 2 == house.mover.counts.moved

    run(story())


def test_nobody_is_asked_who_is_there_without_need() -> None:
    """While everything is where it belongs."""

    async def story() -> None:
        house = House()
        house.holds("mine", 40)
        await house.mover.reconcile()
        assert 0 == house.there.asked

    run(story())


def test_F18_who_is_not_in_this_journal_is_offered_nothing() -> None:
    """One that never wrote itself down, and one that has left: the item stays, and it is said why."""

    async def story() -> None:
        house = House()
        house.book.served = [house.book.server("102:1", left=5)]
        house.holds("a", 41)
        house.holds("b", 42)
        await house.mover.reconcile()
        assert [] == house.offered
        why = {note["why"] for note in house.notes.said("handoff", "kept")}
        assert {"101:1 does not work out of this journal", "102:1 does not work out of this journal"} == why
        assert not house.items.is_aside("a")

    run(story())


def test_what_was_refused_is_offered_again_later_and_later() -> None:
    """After 1, 2, 4... seconds, a minute at most; another registration of the recipient is asked at once."""

    async def story() -> None:
        house = House()
        house.holds("a", 41)
        house.answers["a"] = Kept("busy")
        for wait in (1, 2, 4, 8, 16, 32, 60, 60):
            await house.mover.reconcile()
            house.clock.advance(wait * 1000 - 1)
            before = len(house.offered)
            await house.mover.reconcile()
            assert before == len(house.offered)
            house.clock.advance(1)
        house.there.all = [attrs.evolve(A, generation="101:1:8")]
        await house.mover.reconcile()
        house.answers["a"] = Moved()
        assert 9 == len(house.offered)
        assert (0, 9) == (house.mover.counts.moved, house.mover.counts.kept)
        house.clock.advance(1000)
        await house.mover.reconcile()
        assert 1 == house.mover.counts.moved

    run(story())


def test_what_was_refused_is_forgotten_with_the_item() -> None:
    """One that comes back later is offered as if it had never been here."""

    async def story() -> None:
        house = House()
        house.answers["a"] = Kept("busy")
        for _ in range(3):
            house.holds("a", 41)
            await house.mover.reconcile()
            house.items.drop("a")
            house.clock.advance(1000)
            await house.mover.reconcile()
        house.holds("a", 41)
        await house.mover.reconcile()
        house.clock.advance(1000)
        await house.mover.reconcile()
        assert 5 == len(house.offered)

    run(story())


def test_recipients_do_not_wait_for_each_other() -> None:
    """A slow one holds up its own items only, and no second pass begins meanwhile (B76)."""

    async def story() -> None:
        house = House()
        house.holds("a1", 41, 1)
        house.holds("a2", 41, 2)
        house.holds("b", 42, 3)
        gate = house.gates["a1"] = asyncio.Event()
        passes = [asyncio.ensure_future(house.mover.reconcile()) for _ in range(3)]
        while "b" in house.items:
            await asyncio.sleep(0)
        assert ["a1", "b"] == [receipt for receipt, _, _ in house.offered]
        gate.set()
        await asyncio.gather(*passes)
        assert ["a1", "b", "a2"] == [receipt for receipt, _, _ in house.offered]

    run(story())


def test_what_has_begun_meanwhile_is_not_offered() -> None:
    """Nor what is aside for another reason."""

    async def story() -> None:
        house = House()
        house.holds("a1", 41, 1)
        house.holds("a2", 41, 2)
        gate = house.gates["a1"] = asyncio.Event()
        passing = asyncio.ensure_future(house.mover.reconcile())
        while not house.offered:
            await asyncio.sleep(0)
        assert house.items.begin() is not None  # a2: the first that may
        gate.set()
        await passing
        assert ["a1"] == [receipt for receipt, _, _ in house.offered]

    run(story())


def test_a_journal_that_cannot_be_read_ends_a_pass_and_no_more() -> None:
    """The next one begins anew."""

    async def story() -> None:
        house = House()
        house.holds("a", 41)
        house.book.fails = TenureError("journal.db: the disk is on fire")
        await house.mover.reconcile()
        assert (1, "journal.db: the disk is on fire") == (house.mover.counts.troubles, house.mover.trouble)
        house.book.fails = None
        await house.mover.reconcile()
        assert (1, "") == (house.mover.counts.moved, house.mover.trouble)

    run(story())


def test_a_recipient_whose_item_makes_trouble_ends_nothing_else() -> None:
    """A pass ends when all of it has ended, and says what failed."""

    async def story() -> None:
        house = House()
        house.holds("a", 41, 1)
        house.holds("b", 42, 2)
        house.wish("a", "101:1")
        gate = house.gates["b"] = asyncio.Event()

        async def fails(move: Move, outcome: str) -> None:
            raise TenureError("journal.db: busy")

        house.book.answer_move = fails  # type: ignore[method-assign]
        passing = asyncio.ensure_future(house.mover.reconcile())
        while "a" in house.items:
            await asyncio.sleep(0)
        for _ in range(20):  # as long as it takes a pass to end
            await asyncio.sleep(0)
        assert not passing.done()
        gate.set()
        await passing
        assert ("journal.db: busy", []) == (house.mover.trouble, list(house.items))

    run(story())


def test_who_waits_for_a_pass_is_not_cancelled_with_it() -> None:
    """It is over then, and the next one may begin."""

    async def story() -> None:
        house = House()
        house.holds("a", 41)
        gate = house.gates["a"] = asyncio.Event()
        first, second = (asyncio.ensure_future(house.mover.reconcile()) for _ in range(2))
        while not house.offered:
            await asyncio.sleep(0)
        first.cancel()
        await second
        assert first.cancelled()
        gate.set()
        house.items.resume("a")
        await house.mover.reconcile()
        assert ([], 1) == (list(house.items), house.mover.counts.moved)

    run(story())


def test_it_looks_when_it_is_told_to() -> None:
    """At once, and not after the time between two looks."""

    async def story() -> None:
        house = House()
        running = asyncio.ensure_future(house.mover.run())
        await asyncio.sleep(0)
        house.holds("a", 41)
        house.mover.signal()
        while "a" in house.items:
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()

    run(story())
