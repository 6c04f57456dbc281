"""One process of a fleet that admits and executes updates, on a loop that is stepped by hand.

Its drivers are the real ones (`Poller`, `Forwarder`, `Intake`, `Worker`) over the journal's real operations; Telegram,
the bus and the handler of the user wait until they are told what comes of them. A transaction of the journal waits as
well, until it is told (`StillJournal`).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from typing import Any, Final

import attrs

from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Ack, Delivery, Forward
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.asking import NoAck
from tenure.adapters.fleet.leader.requests import Route
from tenure.adapters.journal.identity import BotIdentity
from tenure.adapters.verify.bind.admission_seen import CHAT, DECIDED, THREADS, Known, Parts, Seen, Told, party, update
from tenure.adapters.verify.bind.controlled import WALL_MS
from tenure.adapters.verify.bind.journal_ports import Answered, Failed, Op
from tenure.adapters.verify.bind.still_journal import StillJournal, timed_loop
from tenure.adapters.work.forwarding import Forwarder
from tenure.adapters.work.intake import Intake
from tenure.adapters.work.items import Item, Items
from tenure.adapters.work.journaling import JournalInbox, JournalOutbox, JournalReceipts
from tenure.adapters.work.outbox import Outcome, Outgoing
from tenure.adapters.work.polling import Poller
from tenure.adapters.work.routing import Fleet, Whose, address, forward, received
from tenure.adapters.work.serving import BEATS
from tenure.adapters.work.source import Conflict
from tenure.adapters.work.worker import Worker
from tenure.machines.follower_messages import Binding
from tenure.machines.forwarding_messages import Failure
from tenure.machines.poll_loop import RecordEnded
from tenure.machines.routes_messages import Entry
from tenure.models.durable_admission_state import HOME, KIND, NO, NOTHING, Msg, id_of

TIMES: Final = attrs.evolve(DEFAULT, retry_first_ms=0)
"""What has failed is tried again at once: time stands still."""


class _Inbox(JournalInbox):
    """As it is; the desk is told what has ended."""

    desk: Desk

    async def record(self, updates: tuple[Json, ...], *, skipped: bool) -> RecordEnded:
        try:
            return await super().record(updates, skipped=skipped)
        finally:
            self.desk.know(got=0)


class _Outbox(JournalOutbox):
    """As it is; the desk is told what has ended."""

    desk: Desk

    async def resume(self, besides: frozenset[int]) -> None:
        await super().resume(besides)
        self.desk.resumed = True

    async def forward(self, update: Outgoing, kind: str, binding: str) -> Any:
        return await self._watched(update, super().forward(update, kind, binding))

    async def acknowledged(self, update: Outgoing, ok: bool, delivery: str | None, source: int | None) -> Outcome:
        return await self._settling(update, super().acknowledged(update, ok, delivery, source))

    async def failed(self, update: Outgoing, why: Failure) -> Outcome:
        return await self._settling(update, super().failed(update, why))

    async def _settling(self, update: Outgoing, call: Coroutine[Any, Any, Outcome]) -> Outcome:
        outcome: Outcome = await self._watched(update, call)
        self.desk.end(update.update_id)
        return outcome

    async def _watched(self, update: Outgoing, call: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await call
        except TenureError:
            self.desk.end(update.update_id)
            self.desk.given_up.append(update.update_id)
            raise


class Desk:
    """One process."""

    def __init__(self, name: str, parts: Parts, epoch: int, target: str, *, present: bool = True) -> None:
        self.name = name
        self.parts = parts
        self.target = target
        self.me = party(name)
        self.loop = timed_loop()
        self.journal = StillJournal(self.loop)
        self.routes: tuple[str, ...] = ()
        self.moved = False
        self.known = Known(alive=present)
        self.forwarder: Forwarder | None = None
        self.poller: Poller | None = None
        self.leading: list[asyncio.Task[None]] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.asking: asyncio.Future[None] | None = None
        self.poll: asyncio.Future[tuple[Json, ...]] | None = None
        self.sending: dict[int, tuple[Forward, asyncio.Future[Ack | NoAck]]] = {}
        self.heard: dict[int, Msg | None] = {}
        """What has come of what was sent, and the journal is not told yet."""
        self.handling: tuple[int, asyncio.Future[None]] | None = None
        self.faults: list[BaseException] = []
        self._forget()
        journal: Any = self.journal
        self.items = Items(lambda: self.worker.ready())
        self.receipts = JournalReceipts(journal, self.me, lambda: self.known.epoch or None)
        self.worker = Worker(self.receipts, self.items, self._handle, TIMES)
        self.intake = Intake(journal, self.me, binding=lambda: HOME[self.name], on_admitted=self.worker.signal)
        if present:
            self.do((), False, "arrive")
        if epoch:
            self.do((), False, "won", epoch)

    # -- what happens -------------------------------------------------------------------------------------------------

    def do(self, routes: tuple[str, ...], moved: bool, what: str, *args: Any) -> None:
        """One thing happens, and all that follows. `routes`: who is registered with this process, if it leads; `moved`:
        A and B have each other's threads."""
        self.routes, self.moved = routes, moved
        self._forget()
        self.loop.call_soon(lambda: getattr(self, f"_{what}")(*args))
        self.loop.settle()
        assert not self.loop.errors, self.loop.errors
        for fault in self.faults:
            raise fault

    def _forget(self) -> None:
        self.sent: list[Msg] = []
        self.effects: list[int] = []
        self.answer: tuple[Msg, Msg] | None = None
        self.settled: list[tuple[int, Msg | None]] = []
        self.given_up: list[int] = []
        self.resumed = False

    def end(self, i: int) -> None:
        """What was sent of `i` is over."""
        if i in self.sending:
            del self.sending[i]
            self.settled.append((i, self.heard.pop(i, None)))

    def know(self, **changes: Any) -> None:
        """What the twin knows of it has changed."""
        self.known = attrs.evolve(self.known, **changes)

    def _arrive(self) -> None:
        self.know(alive=True)
        if self.parts.works:
            self.receipts.serving.follows(HOME[self.name], None, itertools.count(BEATS, BEATS).__next__)  # always heard
            self._task(self.worker.run())

    def _op(self, answer: Answered | Failed | Op) -> None:
        self.journal.answered(answer)

    def _time(self) -> None:
        self.loop.pass_time()

    def _lead(self, epoch: int) -> None:
        self.know(tries=epoch)
        self._task(self._prepares(epoch))

    async def _prepares(self, epoch: int) -> None:
        while True:
            try:
                await self.journal.call(lambda j: j.raise_fence(epoch, self.name))
            except TenureError:
                continue
            self._won(epoch)
            return

    def _won(self, epoch: int) -> None:
        self.know(epoch=epoch, tries=0)
        journal: Any = self.journal
        if self.parts.forwards:
            outbox = _Outbox(journal, self.me, epoch, lambda: WALL_MS)
            outbox.desk = self
            self.forwarder = Forwarder(
                outbox,
                fleet=self._fleet,
                send=self._send,
                timings=TIMES,
                request_id=lambda: "request",
                now_ms=lambda: WALL_MS,
                on_kept=self.worker.signal,
            )
            self.leading.append(self._task(self.forwarder.run()))
        if self.parts.polls:
            inbox = _Inbox(journal, self.me, epoch)
            inbox.desk = self
            self.poller = Poller(self, inbox, leads=lambda: True, pause=_at_once)
            self.leading.append(self._task(self.poller.run()))

    def _notice(self) -> None:
        """It leads no longer, and has seen that."""
        for task in self.leading:
            task.cancel()
        self.leading, self.sending, self.heard = [], {}, {}
        self.forwarder = self.poller = None
        self.know(epoch=0, poll=NOTHING, got=0, skips=False, empty=False, loaded=False)

    # -- Telegram -----------------------------------------------------------------------------------------------------

    bot = BotIdentity(1, "0" * 64)

    async def get_updates(self, cursor: int, limit: int, timeout_s: int) -> tuple[Json, ...]:
        """A request; it waits for `_asked`, and then for `_served` or `_conflict`."""
        assert self.poller is not None
        self.know(skips=self.poller.data.skipping, empty=False, got=0, loaded=True)
        self.asking = self.loop.create_future()
        try:
            await self.asking
        finally:
            self.asking = None
        self.know(poll=max(cursor, 0))
        self.poll = self.loop.create_future()
        try:
            return await self.poll
        finally:
            self.poll = None

    def _asked(self) -> None:
        assert self.asking is not None
        self.asking.set_result(None)

    def _served(self, ids: tuple[int, ...]) -> None:
        assert self.poll is not None
        if ids:
            self.know(poll=NOTHING, got=ids[0])
        else:
            self.know(empty=self.known.skips)
        self.poll.set_result(tuple(update(i, self.target) for i in ids))

    def _conflict(self) -> None:
        assert self.poll is not None
        self.know(poll=NOTHING)
        self.poll.set_exception(Conflict("somebody else polls"))

    # -- the bus ------------------------------------------------------------------------------------------------------

    def _fleet(self) -> Fleet:
        routes = tuple(_route(name, self.moved) for name in self.routes)
        return Fleet(routes, _thread(HOME[self.name], self.moved), (HOME[self.name],))

    async def _send(self, request: Forward) -> Ack | NoAck:
        i, b = request.delivery.source_update_id, request.delivery.recipient_binding_key
        assert i not in self.sending, "it is on its way"
        to = request.recipient_instance_id
        genuine = request.delivery.delivery_id == id_of(b, i, 0) and request.KIND == KIND
        whole = received(request) == update(i, self.target)
        stands = request.recipient_registration_generation == f"{to}1"
        self.sent.append(Msg("forward", to if stands else NO, self.known.epoch, i, b, int(not genuine), 2 - whole))
        future: asyncio.Future[Ack | NoAck] = self.loop.create_future()
        self.sending[i] = request, future
        return await future

    def _acked(self, m: Msg) -> None:
        request, future = self.sending[m.i]
        self.heard[m.i] = m
        if not m.ok:
            future.set_result(acks.refused(request, "no"))
        elif m.b == NO:
            future.set_result(acks.done(request))
        else:
            delivery = Delivery(delivery_id=id_of(m.b, m.i, m.g), source_update_id=m.i, recipient_binding_key=m.b)
            future.set_result(acks.received(request, delivery))

    def _unanswered(self, i: int) -> None:
        self.heard[i] = None
        self.sending[i][1].set_result(NoAck("nothing was heard", sent=True))

    def _hear(self, m: Msg) -> None:
        self.know(hears=m)
        self._task(self._admits(m))

    async def _admits(self, m: Msg) -> None:
        place = address(update(m.i, self.target))
        assert place is not None
        whose = Whose(m.b, _route(m.to))
        if m.body != 1:
            carrier = place.carrier.value
            assert isinstance(carrier, dict)
            place = attrs.evolve(place, carrier=Json({**carrier, "text": "another one"}))
        delivery = id_of(m.b, m.i, m.g)
        request = forward(place, m.i, delivery, whose, request_id="request", sent_at_ms=WALL_MS)
        try:
            await self.intake.deliver(request)
        except TenureError:
            answer = Msg("ack", m.to, m.epoch, m.i, NO, 0)
        else:
            answer = Msg("ack", m.to, m.epoch, m.i, m.b, m.g, ok=True)
        self.answer = (m, answer)
        self.know(hears=None)

    # -- the handler --------------------------------------------------------------------------------------------------

    async def _handle(self, item: Item) -> None:
        (value,) = (u.value for u in item.updates)
        assert isinstance(value, dict)
        i = value["update_id"]
        assert isinstance(i, int)
        assert self.handling is None, "one at a time"
        self.handling = i, self.loop.create_future()
        try:
            await self.handling[1]
        finally:
            self.handling = None

    def _effect(self) -> None:
        assert self.handling is not None
        i, future = self.handling
        self.effects.append(i)
        self.know(did=self.known.did | {i})
        future.set_result(None)

    def _raise(self) -> None:
        assert self.handling is not None
        self.handling[1].set_exception(ValueError("poison"))

    # -- what is seen -------------------------------------------------------------------------------------------------

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self.loop.create_task(work)
        self.tasks.append(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.remove(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.faults.append(error)

    def told(self) -> Told:
        """What has come of the last step."""
        self.know(
            sending=frozenset(self.sending),
            heard=frozenset(m for m in self.heard.values() if m is not None),
            deciding=any(op.method in DECIDED for op in self.journal.asked),
        )
        return Told(
            self.known,
            tuple(self.sent),
            tuple(self.effects),
            self.answer,
            tuple(self.settled),
            tuple(self.given_up),
            self.resumed,
        )

    def seen(self) -> Seen:
        """What is to be compared, and everything that the next step depends on."""
        waits = tuple(i for i, (_, future) in self.sending.items() if not future.done())
        rest = (
            self.journal.queue,
            self.poll is not None,
            tuple(sorted(self.heard.items())),
            self.loop.positions(),
            self._forwarding(),
            None if self.poller is None else (self.poller.phase, self.poller.data, len(self.poller._updates)),
            tuple(self.items),
            self.items.running,
            tuple((news.binding, news.over) for news in self.receipts.serving.untold),
            (self.worker._pending.is_set(), self.worker._ready.is_set()),
            self.loop.local("_collect", "recover_at") <= self.loop.now,
        )
        running = 0 if self.handling is None else self.handling[0]
        return Seen(self.known, self.journal.pending, self.loop.waits, waits, running, self.asking is not None, rest)

    def _forwarding(self) -> tuple[Any, ...]:
        f = self.forwarder
        if f is None:
            return ()
        lanes = tuple(
            (
                binding,
                tuple((u.update_id, u.failure is None, u.binding, u.aside) for u, _ in lane.waiting),
                lane.runs,
                lane.until > self.loop.now,
            )
            for binding, lane in sorted(f._lanes._lanes.items())
        )
        news = f._news.is_set(), f._all_at <= self.loop.now, f._given_up
        return lanes, tuple(sorted(f._lanes.under_way)), news


async def _at_once(seconds: float) -> None:
    return


def _thread(binding: str, moved: bool) -> str:
    number = THREADS[binding]
    return f"{CHAT}/{3 - number if moved else number}"


def _route(name: str, moved: bool = False) -> Route:
    place = Binding(_thread(HOME[name], moved), None, None)
    return Route(Entry(name, f"{name}1", HOME[name], "", place, 0), None)
