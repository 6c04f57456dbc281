"""Several processes of one directory with one journal on disk, real sockets between them, all in this process.

Which process one is, and who is dead, is told by a table of processes; each has the journal open for itself, in a
thread of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs

from tenure.adapters.bus.messages.json_values import Json, JsonValue, dump
from tenure.adapters.errors import TenureError
from tenure.adapters.handoff.journal import JournalHandoffs
from tenure.adapters.handoff.parties import party_of
from tenure.adapters.handoff.payload import Parcel
from tenure.adapters.journal.deliveries import Admitted, Arrival
from tenure.adapters.journal.identity import BotIdentity
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.moves import Move
from tenure.adapters.journal.rows import ReceiptRow, ServerRow
from tenure.adapters.journal.threaded import ThreadedJournal
from tenure.adapters.work.items import Held, Items
from tenure.machines.admission_identity import Queue, delivery_id
from tenure.machines.chart import Refused
from tenure.machines.receipt_messages import Handoff, Holder, Output, Party
from tests.adapters.fleet.fleet_room import House

BOT = BotIdentity(7, "a" * 64)
KIND = "leader.forwardMessage"


def message(number: int, thread: int | None, text: str = "do it") -> Json:
    """An update with a message in a thread of chat 0, where the fleet's threads are."""
    inner: dict[str, JsonValue] = {"message_id": number, "chat": {"id": 0}, "text": text}
    if thread is not None:
        inner["message_thread_id"] = thread
    return Json({"update_id": number, "message": inner})


class Lost(TenureError):
    """What a test makes of a call of the journal."""


@attrs.define
class Fault:
    """What befalls a call: it waits for `gate`; then it is done, unless `before` is raised; then `after` is raised."""

    before: BaseException | None = None
    after: BaseException | None = None
    gate: asyncio.Event | None = None


class Journaled:
    """A journal whose calls are noted, and befallen by what a test says: of the next one of a name, the one after..."""

    def __init__(self, inner: JournalHandoffs) -> None:
        self.inner = inner
        self.faults: dict[str, list[Fault]] = {}
        self.calls: list[str] = []
        self.waiting: list[str] = []

    async def key(self) -> str:
        return await self._do("key", self.inner.key)

    async def offer(self, receipt_id: str, by: Holder, handoff: Handoff, to: Party) -> Output | Refused:
        return await self._do("offer", self.inner.offer, receipt_id, by, handoff, to)

    async def accept(self, receipt_id: str, me: Party, handoff: Handoff, donor: Holder) -> Output | Refused:
        return await self._do("accept", self.inner.accept, receipt_id, me, handoff, donor)

    async def cancel(self, receipt_id: str, by: Holder, handoff: Handoff) -> Output | Refused:
        return await self._do("cancel", self.inner.cancel, receipt_id, by, handoff)

    async def release(self, receipt_id: str, by: Holder, why: str) -> Output | Refused:
        return await self._do("release", self.inner.release, receipt_id, by, why)

    async def look(self, receipt_id: str) -> ReceiptRow | None:
        return await self._do("look", self.inner.look, receipt_id)

    async def parcel(self, receipt_id: str) -> Parcel | None:
        return await self._do("parcel", self.inner.parcel, receipt_id)

    async def offers(self) -> tuple[ReceiptRow, ...]:
        return await self._do("offers", self.inner.offers)

    async def servers(self) -> tuple[ServerRow, ...]:
        return await self._do("servers", self.inner.servers)

    async def moves(self) -> tuple[Move, ...]:
        return await self._do("moves", self.inner.moves)

    async def moves_to_take(self) -> tuple[Move, ...]:
        return await self._do("moves_to_take", self.inner.moves_to_take)

    async def take(self, receipt_id: str) -> Output | Refused:
        return await self._do("take", self.inner.take, receipt_id)

    async def answer_move(self, move: Move, outcome: str) -> None:
        return await self._do("answer_move", self.inner.answer_move, move, outcome)

    async def _do(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        self.calls.append(name)
        planned = self.faults.get(name, [])
        fault = planned.pop(0) if planned else Fault()
        if fault.gate is not None:
            self.waiting.append(name)
            await fault.gate.wait()
        if fault.before is not None:
            raise fault.before
        answer = await call(*arguments)
        if fault.after is not None:
            raise fault.after
        return answer


class Station:
    """One process: its journal, and what it holds."""

    def __init__(self, house: House, pid: int, *, activation: int = 1) -> None:
        self.house = house
        self.pid = pid
        self.ports = house.ports(pid)
        self.identity = house.identity(pid, activation=activation, parent=pid + 1000)
        self.party = party_of(self.identity.process, self.identity.instance_id, 1)
        self.binding = self.identity.profile_key()
        self.items = Items()
        self.desk: ThreadedJournal = None  # type: ignore[assignment]
        self.journal: Journaled = None  # type: ignore[assignment]

    async def __aenter__(self) -> Station:
        self.desk = await ThreadedJournal.open(lambda: Journal.open(self.ports, self.house.directory, bot=BOT))
        self.journal = Journaled(JournalHandoffs(self.desk, "default", self.party))
        await self.do(lambda journal: journal.serve(self.binding, self.party))
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.desk.close()

    async def do(self, work: Callable[[Journal], Any]) -> Any:
        """Something with the journal, in its thread."""
        return await self.desk.call(work)

    async def admits(self, number: int, thread: int | None, *, queue: Queue = "prompt", text: str = "do it") -> str:
        """An update for this process's binding is in the journal: its receipt."""
        update = message(number, thread, text)
        arrival = Arrival(delivery_id(KIND, self.binding, number), KIND, self.binding, number, dump(update.value))
        admitted = await self.do(lambda j: j.admit(arrival, self.binding, self.party.instance, queue=queue))
        assert isinstance(admitted, Admitted), admitted
        return admitted.receipt

    async def takes(self) -> list[Held]:
        """What there is to take is held from now on."""
        rows = await self.do(lambda journal: journal.take_some(self.party, 64))
        found = [Held(r.receipt_id, r.kind, r.binding, r.first_update, r.data.owner) for r in rows]
        for held in found:
            if held.receipt_id not in self.items:
                self.items.put(held)
        return found

    async def holds(self, number: int, thread: int | None = None, **more: Any) -> Held:
        """A receipt that this process has taken."""
        receipt = await self.admits(number, thread, **more)
        await self.takes()
        held = self.items.get(receipt)
        assert held is not None
        return held

    async def row(self, receipt: str) -> ReceiptRow:
        """As it stands in the file."""
        found = await self.do(lambda journal: journal.receipt(receipt))
        assert isinstance(found, ReceiptRow)
        return found

    async def executes(self, receipt: str) -> bool:
        """Begin it and settle it here, if that is allowed; whether it was."""
        held = self.items.get(receipt)
        if held is None:
            return False
        answer = await self.do(lambda journal: journal.start(receipt, held.holder))
        if isinstance(answer, Refused):
            return False
        done = await self.do(lambda journal: journal.complete(receipt, held.holder))
        assert not isinstance(done, Refused), done
        self.items.drop(receipt)
        return True

    async def guards(self, receipt: str) -> list[str]:
        """What was decided about it: each with the guards that let it pass, or refused it."""
        life = await self.do(lambda journal: journal.life(receipt))
        return [f"{decision.action}: {decision.guard}" for decision in life]
