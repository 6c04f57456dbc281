"""The journal as the drivers of this room use it: an inbox for the poll loop, an outbox for the forwarder, receipts for
the worker. Each call is one operation of `tenure.adapters.journal`, in its own thread; a refusal of a machine becomes
the answer that its driver goes on with.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from tenure.adapters.bus.messages.json_values import BadJson, Json, dump, dump_bytes, load, within
from tenure.adapters.errors import TenureError
from tenure.adapters.journal.due import due_update
from tenure.adapters.journal.errors import JournalBusy
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.ownership import About
from tenure.adapters.journal.rows import DeliveryRow, ReceiptRow, UpdateRow
from tenure.adapters.journal.threaded import ThreadedJournal
from tenure.adapters.journal.updates import Appended, Conflict, Incoming, NoRoom
from tenure.adapters.work.items import Held, Item
from tenure.adapters.work.outbox import OTHER, Outcome, Outgoing
from tenure.adapters.work.routing import Address, address, thread_of
from tenure.adapters.work.serving import Serving
from tenure.adapters.work.source import update_id
from tenure.machines import poll_loop
from tenure.machines.chart import Refused
from tenure.machines.delivery import Admit
from tenure.machines.forwarding import aside
from tenure.machines.forwarding_messages import Failure, RetryIn, Send
from tenure.machines.poll_loop import NONE
from tenure.machines.receipt_messages import Party

T = TypeVar("T")

BUSY_TRIES: Final = 10
"""How often a process that begins, or begins to lead, asks for the journal while others are inside: about 10 s."""
_WHY: Final = {
    "epoch_current": "another process has led since: this one's epoch is over",
    "genuine_id": "the delivery's id is not made of what it says",
    "own_binding": "addressed to another profile",
    "wanted_here": "the update is bound elsewhere, or over",
    "has_room": "the journal is full: settle or discard something",
    "same_body": "the same delivery was journaled with another body",
}


def in_words(refused: Refused) -> str:
    """A refusal of the journal, for a person."""
    found = [_WHY.get(guard, guard) for guard in refused.guards]
    return "; ".join(found) or f"it is {refused.phase}: {refused.event} is refused"


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """A call of the journal, made again while others are inside. Raises `JournalBusy` when it is so for long."""
    for _ in range(BUSY_TRIES - 1):
        with suppress(JournalBusy):
            return await call()
    return await call()


class JournalInbox:
    """What a poll loop needs of it, under one epoch."""

    def __init__(self, journal: ThreadedJournal, me: Party, epoch: int) -> None:
        self._journal = journal
        self._me = me.instance
        self._epoch = epoch
        self._passed = NONE

    async def loaded(self) -> poll_loop.Loaded:
        state = await self._journal.call(lambda j: j.state())
        self._passed = state.passed
        # The offset is that of the rows: where the first start is over it is known, and be it that nothing was there.
        return poll_loop.Loaded(max(state.passed, 0) if state.opened else state.passed, state.opened)

    async def record(self, updates: tuple[Json, ...], *, skipped: bool) -> poll_loop.RecordEnded:
        if not updates:
            ended = await self._journal.call(lambda j: j.end_first_start(self._epoch, self._me))
            return self._recorded(ended is None, skipped)
        batch = [_incoming(update) for update in updates]
        answer = await self._journal.call(lambda j: j.append(batch, self._epoch, self._me, skipped=skipped))
        match answer:
            case Appended():
                self._passed = answer.passed
            case Conflict():
                raise TenureError(f"update {answer.update} is in the journal with another body; nothing was appended")
            case NoRoom():
                raise TenureError(f"the journal is full: {answer.updates} updates are unsettled; nothing was appended")
            case Refused() if "epoch_current" in answer.guards:
                raise TenureError(in_words(answer))
        return self._recorded(isinstance(answer, Appended), skipped)

    def _recorded(self, committed: bool, skipped: bool) -> poll_loop.RecordEnded:
        # Where the mark was set, nothing is skipped: that is refused in the transaction.
        return poll_loop.RecordEnded(committed, opened=not (committed and skipped))

    async def persist(self, offset: int) -> poll_loop.PersistEnded:
        """It was moved by the transaction that appended."""
        return poll_loop.PersistEnded(max(self._passed, 0) >= offset)

    async def refuse(self, updates: tuple[Json, ...]) -> None:
        for name in dict.fromkeys(map(_said_id, updates)):
            why = f"its update id is {name}: one is positive, and less than 2^53"
            await self._journal.call(partial(_refuse, name, self._epoch, self._me, why))

    async def renumber(self, first: int, asked: int) -> None:
        answer = await self._journal.call(lambda j: j.renumber(first, asked, self._epoch, self._me))
        if isinstance(answer, Refused):
            raise TenureError(in_words(answer))
        self._passed = answer


def _said_id(update: Json) -> str:
    """What stands where an update has its id, in a few characters."""
    said = update.value.get("update_id") if isinstance(update.value, dict) else None
    return dump(said)[:40] if said is None or isinstance(said, bool | int | float | str) else "none"


def _refuse(name: str, epoch: int, by: str, why: str, journal: Journal) -> None:
    journal.refuse_update(name, epoch, by, why)


def _incoming(update: Json) -> Incoming:
    number, place = update_id(update), address(update)
    assert number is not None, "the machine takes no answer without ids"
    kind = OTHER if place is None else place.kind
    try:
        text = within(dump_bytes(update.value), long=True)
    except BadJson as bad:  # what cannot be read again is not kept
        return Incoming(update=number, kind=kind, beyond=f"it {bad}")
    return Incoming(update=number, kind=kind, raw=text.decode())


class JournalOutbox:
    """What a forwarder needs of it, under one epoch. `now_ms`: the wall clock."""

    def __init__(self, journal: ThreadedJournal, me: Party, epoch: int, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._journal = journal
        self._me = me.instance
        self._epoch = epoch

    async def resume(self, besides: frozenset[int]) -> None:
        while True:
            found = await self._journal.call(lambda j: j.resume(self._epoch, self._me, besides))
            if isinstance(found, Refused) or not found:
                return

    async def outgoing(self, after: int, limit: int, *, unserved: bool) -> tuple[Outgoing, ...]:
        rows = await self._journal.call(lambda j: j.unbrought(after, limit, unserved=unserved))
        now = self._now_ms()
        return tuple(_outgoing(row, now) for row in rows)

    async def due_in(self) -> int | None:
        return await self._journal.call(lambda j: j.retry_in())

    async def remembered(self, address: Address) -> str | None:
        return await self._journal.call(lambda j: j.remembered(_about(address)))

    async def forward(self, update: Outgoing, kind: str, binding: str) -> Send | None:
        about, number = _about(address(update.body)), update.update_id
        answer = await self._journal.call(
            lambda j: j.forward(number, self._epoch, binding, self._me, kind=kind, about=about)
        )
        return None if isinstance(answer, Refused) else answer

    async def keep(self, update: Outgoing, kind: str, binding: str) -> Outcome:
        about, number = _about(address(update.body)), update.update_id
        answer = await self._journal.call(
            lambda j: j.keep(number, self._epoch, binding, self._me, kind=kind, about=about)
        )
        if not isinstance(answer, Refused):
            return Outcome(delivered=True)
        # What the update's row refuses is over, or another leader's; what the delivery's does is still to be done.
        return Outcome(delivered=False, why=in_words(answer) if answer.event == Admit.event else "")

    async def unserved(self, update: Outgoing) -> None:
        await self._journal.call(lambda j: j.unserved(update.update_id, self._epoch, self._me))

    async def acknowledged(self, update: Outgoing, ok: bool, delivery: str | None, source: int | None) -> Outcome:
        number = update.update_id
        return _outcome(
            await self._journal.call(lambda j: j.acknowledged(number, self._epoch, ok, delivery, source, self._me))
        )

    async def failed(self, update: Outgoing, why: Failure) -> Outcome:
        return _outcome(await self._journal.call(lambda j: j.failed(update.update_id, self._epoch, why, self._me)))


def _outgoing(row: UpdateRow, now: int) -> Outgoing:
    data = row.data
    due = due_update(row, now)
    return Outgoing(data.update, _json(row.raw), data.binding, data.attempts, data.failure, due, aside(data))


def _about(place: Address | None) -> About:
    return About() if place is None else About(thread_of(place.target), place.message)


def _json(raw: str) -> Json:
    """What was journaled. What is out of bounds was not (`_incoming`); where it stands there all the same, it is a
    value that says nothing, and no reason to stop."""
    try:
        return Json(load(raw.encode("utf-8", "backslashreplace"), long=True))
    except BadJson:
        return Json(None)


def _outcome(answer: RetryIn | Refused | None) -> Outcome:
    match answer:
        case None:
            return Outcome(delivered=True)
        case RetryIn():
            return Outcome(delivered=False, retry_ms=answer.delay_ms, aside=answer.aside)
    return Outcome(delivered=False)


class JournalReceipts:
    """What a worker needs of it."""

    def __init__(
        self,
        journal: ThreadedJournal,
        me: Party,
        epoch: Callable[[], int | None],
        on_refused: Callable[[str, str], None] = lambda receipt, why: None,
    ) -> None:
        """`epoch`: under which this process leads now. `on_refused` is told of a receipt that is not this process's any
        more, and why."""
        self.serving = Serving(journal, me)
        """Told before anything is taken."""
        self._journal = journal
        self._me = me
        self._epoch = epoch
        self._on_refused = on_refused

    async def take(self, limit: int) -> tuple[Held, ...]:
        await self.serving.tell()
        epoch = self._epoch()
        rows = await self._journal.call(lambda j: j.take_some(self._me, limit, epoch=epoch))
        return tuple(held(row) for row in rows if row.data.offer is None)

    async def start(self, held: Held) -> Item | None:
        def begin(journal: Journal) -> tuple[int, tuple[DeliveryRow, ...]] | Refused:
            answer = journal.start(held.receipt_id, held.holder)
            row = journal.receipt(held.receipt_id)
            if row is not None and row.phase == "started" and row.data.owner == held.holder:
                # Begun now, or by a call whose answer was lost.
                return row.data.attempts, journal.deliveries_of(held.receipt_id)
            return answer if isinstance(answer, Refused) else Refused("start", "absent", ())

        found = await self._journal.call(begin)
        if isinstance(found, Refused):
            self._on_refused(held.receipt_id, in_words(found))
            return None
        attempt, deliveries = found
        updates = tuple(_json(delivery.raw) for delivery in deliveries)
        return Item(held.receipt_id, held.kind, updates, held.binding, str(held.holder.acquisition), attempt)

    async def complete(self, held: Held) -> None:
        self._told(held, await self._journal.call(lambda j: j.complete(held.receipt_id, held.holder)))

    async def fail(self, held: Held, delay_ms: int, why: str) -> None:
        self._told(held, await self._journal.call(lambda j: j.fail(held.receipt_id, held.holder, delay_ms, why)))

    async def doubt(self, held: Held, why: str) -> None:
        self._told(held, await self._journal.call(lambda j: j.doubt(held.receipt_id, held.holder, why)))

    async def release(self, held: Held) -> None:
        self._told(held, await self._journal.call(lambda j: j.release(held.receipt_id, held.holder)))

    async def recover(self) -> int:
        found = await self._journal.call(lambda j: j.recover_all(self._me))
        # Again and again: a thread of an activation that is over may still take, or accept, something.
        found += await self._journal.call(lambda j: j.reclaim(self._me))
        return len(found)

    async def due_in(self) -> int | None:
        return await self._journal.call(lambda j: j.due_in(self._me))

    async def leave(self) -> None:
        await self.serving.leave()

    def _told(self, held: Held, answer: object) -> None:
        if isinstance(answer, Refused):
            self._on_refused(held.receipt_id, in_words(answer))


def held(row: ReceiptRow) -> Held:
    """A row that this process owns."""
    assert row.data.owner is not None
    return Held(row.receipt_id, row.kind, row.binding, row.first_update, row.data.owner)
