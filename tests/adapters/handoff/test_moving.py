"""Which items move, where to, and how often it is tried (bus.md e, reconcile tick)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.asking import NoAck
from tenure.adapters.handoff.destinations import Destination
from tenure.adapters.handoff.moving import Mover
from tenure.adapters.handoff.outcomes import Kept, Moved, Outcome
from tenure.adapters.handoff.payload import Parcel
from tenure.adapters.handoff.way import Outgoing
from tenure.adapters.journal.moves import Move
from tenure.adapters.journal.rows import ReceiptRow, ServerRow
from tenure.adapters.testing.memory import FakeClock, Notes, memory_ports
from tenure.adapters.work.items import Held, Items
from tenure.machines.receipt_messages import Holder, Party, Receipt

ME = Holder("50:1", "50:start:500@b/1", 1, "acq")
A = Destination("101:1", "101:1:7", "7/41")
B = Destination("102:1", "102:1:3", "7/42")


def held(receipt: str, first: int = 1) -> Held:
    return Held(receipt, "prompt", "cwd:/bot", first, ME)


def parcel(receipt: str, thread: int | None, number: int = 1) -> Parcel:
    message: dict[str, Any] = {"message_id": number, "chat": {"id": 7}}
    if thread is not None:
        message["message_thread_id"] = thread
    return Parcel(receipt, "prompt", (Json({"update_id": number, "message": message}),))


class Book:
    """A journal as the mover sees it."""

    key = "j"

    def __init__(self) -> None:
        self.parcels: dict[str, Parcel] = {}
        self.wished: dict[str, Move] = {}
        self.outcomes: dict[str, str] = {}
        self.rows: dict[str, ReceiptRow] = {}
        self.served = [self.server("101:1"), self.server("102:1")]
        self.fails: TenureError | None = None

    def server(self, instance: str, left: int | None = None) -> ServerRow:
        pid = instance.partition(":")[0]
        return ServerRow(f"manual:{pid}", Party(instance, f"{pid}:start:{pid}0@b/1", 1), 0, left)

    def row(self, receipt: str, phase: str, owner: Holder | None = ME) -> None:
        self.rows[receipt] = ReceiptRow(receipt, phase, "prompt", "b", 1, "", 0, 0, 0, None, Receipt(5, owner))

    async def parcel(self, receipt_id: str) -> Parcel | None:
        if self.fails is not None:
            raise self.fails
        return self.parcels.get(receipt_id)

    async def look(self, receipt_id: str) -> ReceiptRow | None:
        return self.rows.get(receipt_id)

    async def offers(self) -> tuple[ReceiptRow, ...]:
        return ()

    async def servers(self) -> tuple[ServerRow, ...]:
        return tuple(self.served)

    async def moves(self) -> tuple[Move, ...]:
        return tuple(self.wished.values())

    async def moves_to_take(self) -> tuple[Move, ...]:
        return ()

    async def answer_move(self, move: Move, outcome: str) -> None:
        if self.wished.get(move.receipt_id) == move:
            self.outcomes[move.receipt_id] = outcome
            self.wished[move.receipt_id] = attrs.evolve(move, outcome=outcome)


class There:
    """Who is there."""

    def __init__(self) -> None:
        self.all = [A, B]
        self.asked = 0

    async def destinations(self) -> tuple[Destination, ...]:
        self.asked += 1
        return tuple(self.all)

    def barred(self, to: Destination, *, came_by_handoff: bool) -> str | None:
        raise AssertionError("nobody sends here")

    async def send(self, offer: Outgoing) -> Ack | NoAck:
        raise AssertionError("nobody sends here")


class House:
    """A mover with everything around it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.notes = Notes()
        self.book, self.there, self.items = Book(), There(), Items()
        self.offered: list[tuple[str, str, str]] = []
        self.answers: dict[str, Outcome] = {}
        self.gates: dict[str, asyncio.Event] = {}
        ports = attrs.evolve(memory_ports(), clock=self.clock, diagnostics=self.notes)
        self.mover = Mover(
            ports, DEFAULT, self.book, self.items, self.there, self,  # type: ignore[arg-type]
            instance="50:1", thread=lambda: "7/40",
        )  # fmt: skip

    def holds(self, receipt: str, thread: int | None, number: int = 1) -> None:
        self.book.parcels[receipt] = parcel(receipt, thread, number)
        self.items.put(held(receipt, number))

    def wish(self, receipt: str, instance: str) -> None:
        self.book.wished[receipt] = Move(receipt, instance, self.clock.wall_ms(), None)

    async def withdraw(self, row: ReceiptRow) -> Outcome:
        raise AssertionError("nothing is offered here")

    async def give(self, one: Held, load: Parcel, to: Destination, party: Party) -> Outcome:
        assert self.items.is_aside(one.receipt_id)
        assert one.receipt_id == load.receipt_id
        self.offered.append((one.receipt_id, to.instance, party.process))
        if (gate := self.gates.get(one.receipt_id)) is not None:
            await gate.wait()
        answer = self.answers.get(one.receipt_id, Moved())
        if isinstance(answer, Moved):
            self.items.drop(one.receipt_id)
        else:
            self.items.resume(one.receipt_id)
        return answer


def run(story: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await story

    asyncio.run(limited())


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
