"""One process that gives queued items away, takes them, and executes them, on a loop that is stepped by hand.

Its drivers are the real ones (`Donors`, `Recipient`, `FleetWay`, `Worker`) over the journal's real operations; the bus
and the handler of the user wait until they are told what comes of them, and so does each transaction (`StillJournal`).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from typing import Any, Final

import attrs

from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.messages.envelopes_handoff import FollowerOfferQueueHandoff, LeaderOfferQueueHandoff
from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.agreement import our_protocol
from tenure.adapters.fleet.follower.outcomes import AskFailed
from tenure.adapters.handoff.destinations import Destination
from tenure.adapters.handoff.donor import Donors
from tenure.adapters.handoff.journal import JournalHandoffs
from tenure.adapters.handoff.payload import Parcel
from tenure.adapters.handoff.recipient import Recipient
from tenure.adapters.handoff.way import FleetWay
from tenure.adapters.verify.bind.controlled import WALL_MS
from tenure.adapters.verify.bind.disk import identity
from tenure.adapters.verify.bind.handoff_seen import (
    BINDINGS,
    EPOCHS,
    UNREAD,
    Known,
    Letter,
    Names,
    Seen,
    Told,
    party,
    process_of,
    update,
)
from tenure.adapters.verify.bind.journal_ports import KEY, Answered, Failed, Op
from tenure.adapters.verify.bind.still_journal import StillJournal, timed_loop
from tenure.adapters.work.items import Held, Item, Items
from tenure.adapters.work.journaling import JournalReceipts
from tenure.adapters.work.serving import BEATS
from tenure.adapters.work.worker import Worker
from tenure.machines.identity import Process
from tenure.machines.receipt_messages import Handoff, Holder, Started
from tenure.models.queue_handoff_state import NONE, NOTHING, Copy, Msg

KIND: Final = "prompt"


TIMES: Final = attrs.evolve(DEFAULT, retry_first_ms=0)
"""What has failed is tried again at once: time stands still."""


class _Donors(Donors):
    """As they are; the desk sees the copy that is given."""

    copy: Any = None

    async def _through(self, copy: Any) -> Any:
        self.copy = copy
        try:
            return await super()._through(copy)
        finally:
            self.copy = None


class _Recipient(Recipient):
    """As it is; the desk sees the place that is taken."""

    place: Any = None

    def _offer(self, place: Any, message: Any) -> Any:
        self.place = place
        return super()._offer(place, message)


class _Items(Items):
    """As they are, of a worker that is busy with something else until it is told that it is free."""

    free = False

    def begin(self) -> Held | None:
        first = super().begin() if self.free else None
        self.free = self.free and first is None
        return first


class _Receipts(JournalReceipts):
    """As they are; the desk is told what has ended."""

    desk: Desk

    async def complete(self, held: Held) -> None:
        await super().complete(held)
        self.desk.executing = None

    async def fail(self, held: Held, delay_ms: int, why: str) -> None:
        await super().fail(held, delay_ms, why)
        self.desk.executing = None


class Ports:
    """As much of the ports as a handoff needs. `token`: what is drawn next."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.token = 0
        self.processes = self.identities = self.diagnostics = self.clock = self
        self.recorder = None

    def me(self) -> Process:
        """Of the processes."""
        return process_of(self.name)

    def bits(self, count: int) -> int:
        """Of the identities."""
        return self.token

    def note(self, category: str, phase: str, fields: object) -> None:
        """Of the diagnostics."""

    def wall_ms(self) -> int:
        """Of the clock."""
        return WALL_MS


class _Leads:
    """Who leads is another process."""

    epoch = None


class Desk:
    """One node. It is the follower and the identity of its drivers, as far as they need those."""

    def __init__(self, name: str, names: Names) -> None:
        self.name = name
        self.names = names
        self.party = party(name)
        self.ports = Ports(name)
        self.loop = timed_loop()
        self.journal = StillJournal(self.loop)
        self.generation = ""
        self.calling: asyncio.Future[Ack | AskFailed] | None = None
        self.hears: Msg | None = None
        self.current: Msg | None = None
        self.letter: Letter | None = None
        self.owed = False
        self.owing: Msg | None = None
        self.failed = False
        self.handling: asyncio.Future[None] | None = None
        self.executing: Holder | None = None
        """By which acquisition it has begun, as far as it knows."""
        self.faults: list[BaseException] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self._forget()
        journal: Any = self.journal
        here: Any = self
        self.items = _Items(lambda: self.worker.ready())
        self.receipts = _Receipts(journal, self.party, lambda: EPOCHS[name])
        self.receipts.desk = self
        self.receipts.serving.follows(BINDINGS[name], None, itertools.count(BEATS, BEATS).__next__)  # always heard
        self.worker = Worker(self.receipts, self.items, self._handle, TIMES)
        handoffs = JournalHandoffs(journal, KEY, self.party)
        leads: Any = _Leads()
        ports: Any = self.ports
        way = FleetWay(leads, here, here, ports, TIMES)
        self.donors = _Donors(ports, TIMES, handoffs, self.items, way)
        self.recipient = _Recipient(
            ports,
            TIMES,
            handoffs,
            self.items,
            party=lambda: self.party,
            serves=lambda: True,
            current=lambda generation: generation == self.generation,
        )
        self.do("", "begin")

    # -- what its drivers need ----------------------------------------------------------------------------------------

    @property
    def instance_id(self) -> str:
        """Of the identity."""
        return self.name

    async def ask(self, request: Any, *, timeout_ms: float) -> Ack | AskFailed:
        """Of the follower: send it to the leader, and wait for the answer."""
        letter = request(self.generation)
        assert isinstance(letter, FollowerOfferQueueHandoff)
        assert self.calling is None, "one offer at a time"
        h = self._handoff(self.donors.copy.data.handoff)
        acq, by = identity(letter.donor_acquisition_id), self._handoff(letter.donor_handoff_id)
        self.sends.append((Msg("ask", letter.instance_id, letter.recipient_instance_id, h, acq, by), letter))
        self.calling = self.loop.create_future()
        try:
            return await self.calling
        finally:
            self.calling = None

    # -- what happens -------------------------------------------------------------------------------------------------

    def do(self, generation: str, what: str, *args: Any) -> None:
        """One thing happens, and all that follows. `generation`: of its registration."""
        self.generation = generation
        self._forget()
        self.loop.call_soon(lambda: getattr(self, f"_{what}")(*args))
        self.loop.settle()
        assert not self.loop.errors, self.loop.errors
        for fault in self.faults:
            raise fault
        self._decided()

    def _forget(self) -> None:
        self.sends: list[tuple[Msg, Letter]] = []
        self.took: Msg | None = None
        self.owes: Msg | None = None
        self.reply: tuple[Msg, Letter] | None = None
        self.runs = False
        self.failed = False

    def _begin(self) -> None:
        self._task(self.worker.run())

    def _op(self, answer: Answered | Failed | Op) -> None:
        op = self.journal.pending
        self.failed = isinstance(answer, Failed)
        if op is not None and isinstance(answer, Answered):
            if op.method == "start" and isinstance(answer.value, Started):
                self.executing = op.args[1]
            running: Any = self.items.running
            row: Any = answer.value
            looks = op.method == "receipt" and running is not None and self.donors.copy is None
            if looks and row is not None and row.phase == "started" and row.data.owner == running.holder:
                self.executing = running.holder
        self.journal.answered(answer)

    def _time(self) -> None:
        self.loop.pass_time()

    def _free(self) -> None:
        """What it was busy with is over."""
        self.items.free = True
        self.worker.ready()

    def _move(self, to: str, generation: str, token: int) -> None:
        (held,) = self.items
        assert self.items.set_aside(held.receipt_id) is not None
        self.ports.token = token
        parcel = Parcel(held.receipt_id, held.kind, (update(),))
        able = frozenset(our_protocol().capabilities)
        there = Destination(to, generation, None, able, able)
        self._task(self.donors.give(held, parcel, there, party(to)))

    def _acked(self, ack: Ack) -> None:
        assert self.calling is not None
        self.calling.set_result(ack)

    def _unanswered(self) -> None:
        assert self.calling is not None
        self.calling.set_result(AskFailed("nothing was heard", "unanswered"))

    def _hear(self, m: Msg, letter: LeaderOfferQueueHandoff) -> None:
        self.hears, self.current, self.owed = m, None, False
        self.letter = letter
        self.recipient.place = None
        self._task(self._answers(m, letter))

    async def _answers(self, m: Msg, letter: LeaderOfferQueueHandoff) -> None:
        by = 0
        try:
            staged = await self.recipient.accept(letter)
        except TenureError as error:
            ack = acks.refused(letter, str(error))
        else:
            ack = acks.staged(letter, staged)
            owner = staged.queue_owner
            by = self._handoff(owner.handoff_id) if owner.instance_id == self.name else 99
        unread = self.hears is not None and self.failed
        self.took = self.hears
        self.hears = self.owing = None
        self.reply = Msg("ack", self.name, m.sender, m.h, UNREAD if unread else 0, by), ack

    def _decided(self) -> None:
        """What has come is decided, as the machine of its place says."""
        place = self.recipient.place
        if not self.recipient._taking or place is None or place.phase not in ("staged", "accepted", "live"):
            return
        if self.hears is not None:
            self.took, self.current, self.hears = self.hears, self.hears, None
        if self._published(place) and not self.owed and self.current is not None:
            m, by = self.current, self._handoff(place.data.holder.handoff)
            self.owes = self.owing = Msg("ack", self.name, m.sender, m.h, 0, by)
            self.owed = True

    def _published(self, place: Any) -> bool:
        """It is in the queue here: it was put there, or the worker has found by itself that it is this process's."""
        if place.phase != "accepted":
            return bool(place.phase == "live")
        return any(h.holder == place.data.holder for h in (*self.items, *filter(None, [self.items.running])))

    # -- the handler --------------------------------------------------------------------------------------------------

    async def _handle(self, item: Item) -> None:
        assert self.handling is None, "one at a time"
        self.runs = True
        self.handling = self.loop.create_future()
        try:
            await self.handling
        finally:
            self.handling = None

    def _end(self) -> None:
        assert self.handling is not None
        self.handling.set_result(None)

    def _raise(self) -> None:
        assert self.handling is not None
        self.handling.set_exception(ValueError("poison"))

    # -- what is seen -------------------------------------------------------------------------------------------------

    def _task(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self.loop.create_task(work)
        self.tasks.append(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.remove(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.faults.append(error)

    def _handoff(self, handoff: Handoff | None) -> int:
        return 0 if handoff is None else self.names[str(handoff)]

    def _copy(self) -> Copy:
        """Its copy of the item, in the twin's words."""
        given = self.donors.copy
        if given is not None and given.phase not in ("holding", "gone"):
            data = given.data
            if data.handoff is not None and str(data.handoff) not in self.names:
                self.names[str(data.handoff)] = self.ports.token
            to = NONE if data.recipient is None else data.recipient.instance
            return Copy(given.phase, *self._holder(data.holder), self._handoff(data.handoff), to)
        place = self.recipient.place if self.recipient._taking else None
        if place is not None and place.phase == "staged":
            donor = place.data.donor
            return Copy("staged", *self._holder(donor), self._handoff(place.data.handoff), donor.instance)
        if place is not None and place.phase in ("accepted", "releasing") and not self._published(place):
            return Copy("accepted", *self._holder(place.data.holder), 0, place.data.donor.instance)
        if self.executing is not None:
            return Copy("executing", *self._holder(self.executing))
        held = self.items.running or next(iter(self.items), None)
        return NOTHING if held is None else Copy("holding", *self._holder(held.holder))

    def _holder(self, holder: Holder) -> tuple[int, int]:
        return identity(str(holder.acquisition)), self._handoff(holder.handoff)

    def _known(self) -> Known:
        waits = self.calling is not None and not self.calling.done()
        gives_up = any(op.method in ("fail", "release") for op in self.journal.asked)
        return Known(
            self._copy(), self.hears, waits, bool(self.recipient._taking), gives_up, self._denies(), self.owing
        )

    def _denies(self) -> Msg | None:
        place, m = self.recipient.place, self.current
        if m is None or place is None or not self.recipient._taking or place.phase != "releasing":
            return None
        return Msg("ack", self.name, m.sender, m.h, 0, 0)

    def told(self) -> Told:
        """What has come of the last step."""
        return Told(self._known(), next(iter(self.sends), None), self.took, self.owes, self.reply, self.runs)

    def seen(self) -> Seen:
        """What is to be compared, and everything that the next step depends on."""
        place = self.recipient.place if self.recipient._taking else None
        given = self.donors.copy
        rest = (
            self.journal.queue,
            self.loop.positions(),
            tuple(self.items),
            tuple(sorted(self.items._aside)),
            (self.items.running, self.items.free),
            self.executing,
            None if place is None else (place.phase, place.data),
            None if given is None else (given.phase, given.data, self.ports.token, given._wanted and given._wanted.to),
            tuple((news.binding, news.over) for news in self.receipts.serving.untold),
            (self.worker._pending.is_set(), self.worker._ready.is_set()),
            self.loop.local("_collect", "recover_at") <= self.loop.now,
            (self.current, self.letter, self.owed) if self.recipient._taking else None,
        )
        held = any(not self.items.is_aside(h.receipt_id) for h in self.items)
        return Seen(
            self.name, self._known(), self.journal.pending, self.loop.waits, held, self.handling is not None, rest
        )
