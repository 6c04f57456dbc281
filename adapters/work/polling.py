"""One poll loop, driven: the machine of `tenure.machines.poll_loop` over a source and a journal (locks.md 10).

    poller = Poller(source, inbox, leads=lambda: member.epoch == epoch)
    await poller.run()          # until it is cancelled, or this process does not lead any more

The machine says what comes next, one order at a time; here each order is one call, and its answer one message. Before
each request `leads` is asked; what the journal writes it compares with the fence inside its own transaction. When
`run` has ended, however it did, no request is on its way and nothing is being written.

What has no id (`tenure.adapters.work.source.update_id`) is refused, which is told, and the others of its answer go on.
It is not confirmed: where it comes again and again, it is asked for no more often than after any error.

Telegram may number from a lower id on: "If there are no new updates for at least a week, then identifier of the next
update will be chosen randomly instead of sequentially." It answers such updates though it was asked above them, and
forgets nothing. When it has done so `ASKED` times in a row, the offset goes down to where they begin, which is told,
and they are journaled as new ones. Two limits: where the new numbering begins less than ten ids below the offset,
Telegram takes them for confirmed and nobody sees them; and an id that an earlier update has had, of which the journal
has a row or a tombstone, is taken for that one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol

import attrs

from tenure.adapters.awaiting import to_its_end
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.errors import TenureError, in_words
from tenure.adapters.ports import Ports, tell
from tenure.adapters.work.source import Conflict, Source, update_id
from tenure.machines import poll_loop as own
from tenure.machines.chart import Step, step
from tenure.machines.poll_loop import LIMIT, POLL_LOOP

_Call = own.Load | own.Poll | own.Record | own.Persist | own.Sleep
_WRITES: Final = (own.Record, own.Persist)
"""What is never broken off: it may be done, and nobody could tell."""


class OffsetUnknown(TenureError):
    """The journal is in use, and nobody knows how far the queue was polled."""


class Inbox(Protocol):
    """What a poll loop needs of the journal. What these raise was not done, or nobody knows whether it was."""

    async def loaded(self) -> own.Loaded:
        """The offset, and whether the first start is over."""

    async def record(self, updates: tuple[Json, ...], *, skipped: bool) -> own.RecordEnded:
        """Append, in one transaction: as history that is never executed if `skipped`, which is refused once the mark
        is set. No updates and `skipped`: set the mark."""

    async def persist(self, offset: int) -> own.PersistEnded:
        """Write the offset, unless a greater one is there."""

    async def refuse(self, updates: tuple[Json, ...]) -> None:
        """Tell that these have no id."""

    async def renumber(self, first: int, asked: int) -> None:
        """The offset goes down to just below `first`, which was answered so often in a row though it is no greater."""


@attrs.define
class PollCounts:
    """What a poll loop has done so far."""

    polls: int = 0
    updates: int = 0
    """Journaled to be executed."""
    skipped: int = 0
    """Journaled as what was there before the first start."""
    refused: int = 0
    """Answered without an id."""
    renumbered: int = 0
    """Times that the offset went down, since Telegram has begun anew."""
    conflicts: int = 0
    failures: int = 0
    """Requests and transactions that failed; each is made again."""


class Poller:
    """One loop, once. `phase` and `data` are the machine's."""

    def __init__(
        self,
        source: Source,
        inbox: Inbox,
        *,
        leads: Callable[[], bool],
        on_journaled: Callable[[], None] = lambda: None,
        counts: PollCounts | None = None,
        ports: Ports | None = None,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`on_journaled` is told when the offset has passed updates that are to be executed; it may not raise. `pause`
        waits so many seconds. With `ports` what fails is noted."""
        self.phase = POLL_LOOP.initial
        self.data = own.Memory()
        self.counts = PollCounts() if counts is None else counts
        self.trouble = ""
        """What failed last; "" when nothing has since the last answer."""
        self._source = source
        self._inbox = inbox
        self._leads = leads
        self._on_journaled = on_journaled
        self._ports = ports
        self._pause = pause
        self._updates: tuple[Json, ...] = ()
        """The last answer: what the machine's batch stands for."""
        self._orders: list[own.Order] = []
        self._below = 0, 0
        """The first update of the last answers, where all of it was below the cursor, and in how many of them."""
        self._anew = False
        """The loop ends, and another begins from there."""

    async def run(self) -> None:
        """Poll, until this process leads no more or this is cancelled. Raises `OffsetUnknown`."""
        cancelled: asyncio.CancelledError | None = None
        self._offer(own.Start())
        while self._orders:
            order = self._orders.pop(0)
            match order:
                case own.Ended() if self._anew and cancelled is None:
                    cancelled = await self._begin_anew()
                    continue
                case own.Ended():
                    break
                case own.Fail():
                    raise OffsetUnknown(
                        "journal: updates were polled before, but the offset is missing: restore a backup of it"
                    )
            writes = isinstance(order, _WRITES)
            if not writes and (cancelled is not None or not self._leads()):
                self._offer(own.Stop())
                continue
            try:
                await self._call(order)
            except asyncio.CancelledError as error:
                cancelled = error
                if not writes:
                    self._offer(own.Stop())
        if cancelled is not None:
            raise cancelled

    # -- calls --------------------------------------------------------------------------------------------------------

    async def _call(self, order: _Call) -> None:
        """Make a call and tell the machine what came of it. Cancelled, what writes is waited for all the same, since it
        may be done; everything else is cancelled and has ended."""
        call = asyncio.ensure_future(self._answer(order))
        if isinstance(order, _WRITES):
            try:
                self._told(await to_its_end(call))
            except asyncio.CancelledError:
                if not call.cancelled() and call.exception() is None:
                    self._told(call.result())
                raise
            return
        try:
            self._told(await asyncio.shield(call))
        except asyncio.CancelledError:
            call.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await to_its_end(call)
            raise

    async def _answer(self, order: _Call) -> own.Happening:
        """Do what the machine asks for, and say what came of it."""
        match order:
            case own.Load():
                return await self._load()
            case own.Poll():
                return await self._poll(order)
            case own.Record():
                return await self._record(order)
            case own.Persist():
                return await self._persist(order)
            case own.Sleep():
                await self._pause(order.ms / 1000)
                return own.Woke()

    async def _load(self) -> own.Happening:
        while self._leads():
            try:
                return await self._inbox.loaded()
            except (TenureError, OSError) as error:
                self._failed("load", error)
            await self._pause(own.RETRY_MS / 1000)
        return own.Stop()

    async def _poll(self, order: own.Poll) -> own.Happening:
        self.counts.polls += 1
        try:
            async with asyncio.timeout(order.budget_ms / 1000):
                updates = await self._source.get_updates(order.cursor, LIMIT, order.timeout_s)
        except Conflict as error:
            self.counts.conflicts += 1
            self._noted("conflict", error)
            return own.Conflicted()
        except Exception as error:  # whatever a source raises, its request came to nothing and is made again
            self._failed("poll", error)
            return own.TimedOut()
        self.trouble = ""
        if not updates:
            self._below = 0, 0
            return own.AnsweredEmpty()
        numbers = [(update_id(update), update) for update in updates]
        self._updates = tuple(update for number, update in numbers if number is not None)
        if len(self._updates) < len(updates):
            await self._refuse(tuple(update for number, update in numbers if number is None))
        ids = tuple(number for number, _ in numbers if number is not None)
        self._below = self._seen_below(ids, order.cursor)
        return own.Answered(ids)

    async def _refuse(self, updates: tuple[Json, ...]) -> None:
        self.counts.refused += len(updates)
        self._failed("poll", TenureError(f"{len(updates)} of the updates that came have no id: they are not journaled"))
        try:
            await self._inbox.refuse(updates)
        except (TenureError, OSError) as error:
            self._failed("refuse", error)

    def _seen_below(self, ids: tuple[int, ...], cursor: int) -> tuple[int, int]:
        if not ids or ids[-1] > cursor:
            return 0, 0
        first, times = self._below
        return ids[0], times + 1 if first == ids[0] else 1

    async def _begin_anew(self) -> asyncio.CancelledError | None:
        """The offset goes down, and the loop begins as one that knows nothing. What has cancelled this meanwhile."""
        cancelled: asyncio.CancelledError | None = None
        self._anew = False
        try:
            await to_its_end(asyncio.ensure_future(self._renumber(*self._below)))
        except asyncio.CancelledError as error:
            cancelled = error
        self._below = 0, 0
        self._offer(own.Start())
        return cancelled

    async def _renumber(self, first: int, asked: int) -> None:
        try:
            await self._inbox.renumber(first, asked)
        except (TenureError, OSError) as error:
            self._failed("renumber", error)
        else:
            self.counts.renumbered += 1

    async def _record(self, order: own.Record) -> own.Happening:
        updates = self._updates if order.ids else ()
        try:
            answer = await self._inbox.record(updates, skipped=order.skipped)
        except (TenureError, OSError) as error:
            self._failed("record", error)
            return own.RecordEnded(committed=False, opened=False)
        if not answer.committed:
            self.counts.failures += 1
        elif order.skipped:
            self.counts.skipped += len(updates)
        else:
            self.counts.updates += len(updates)
        return answer

    async def _persist(self, order: own.Persist) -> own.Happening:
        try:
            answer = await self._inbox.persist(order.offset)
        except (TenureError, OSError) as error:
            self._failed("persist", error)
            return own.PersistEnded(written=False)
        if answer.written and not self.data.skipping:
            self._on_journaled()
        return answer

    # -- inside -------------------------------------------------------------------------------------------------------

    def _offer(self, message: own.Happening) -> None:
        answer = step(POLL_LOOP, self.phase, self.data, message)
        if isinstance(answer, Step):
            self.phase, self.data = answer.phase, answer.data
            self._orders.extend(answer.outputs)

    def _told(self, message: own.Happening) -> None:
        self._offer(message)
        if isinstance(message, own.Answered) and self.phase == "retrying":
            self._failed("poll", TenureError("the answer is refused: ids that are not new, not in order, or none"))
            if own.numbered_anew(self._below[1]):
                self._anew = True
                self._offer(own.Stop())

    def _failed(self, phase: str, error: BaseException) -> None:
        self.counts.failures += 1
        self._noted(phase, error)

    def _noted(self, phase: str, error: BaseException) -> None:
        self.trouble = in_words(error)
        if self._ports is not None:
            tell(self._ports, "work", phase, error=self.trouble)
