"""A mover with everything around it in memory, and a clock that a test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import attrs

from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.asking import NoAck
from tenure.adapters.handoff.destinations import Destination
from tenure.adapters.handoff.moving import Mover
from tenure.adapters.handoff.outcomes import Moved, Outcome
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
        self.told = 0
        """How often a person was to be told something."""
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
        self.told += 1
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
