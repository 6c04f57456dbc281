"""Serves the bindings of one process: takes what is pending, executes it in order, and settles it (bus.md d; V4-V7).

    worker = Worker(receipts, items, handler, timings)
    await worker.run()                   # until it is cancelled

An item is *started* in the journal before its handler is called, and *done* there when the handler has returned. One
that raises is tried again after a delay, and those behind it go on meanwhile (V5, B74). One that is cancelled, with
the whole worker, is interrupted: nobody knows what has come of it. What was taken and never begun is given back.

Whether a receipt may be taken, started, settled or recovered is decided by the row's machine inside the journal's
transaction; here an answer of None is its refusal, and then the item is somebody else's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

import attrs

from tenure.adapters.awaiting import to_its_end
from tenure.adapters.errors import TenureError, in_words
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Ports, tell
from tenure.adapters.work.items import Handler, Held, Item, Items

T = TypeVar("T")

AHEAD: Final = 64
"""So many items are taken before they are begun: they can be handed to others meanwhile."""


class Receipts(Protocol):
    """What a worker needs of the journal. All of these raise TenureError where the journal could not do it, or nobody
    knows whether it did; each may be repeated."""

    async def take(self, limit: int) -> tuple[Held, ...]:
        """Take pending receipts that this process may take now, in order, so many at most; and what is queued for it
        already (an answer was lost)."""

    async def start(self, held: Held) -> Item | None:
        """Write down that it begins. None: it is not to be begun here."""

    async def complete(self, held: Held) -> None:
        """It is done."""

    async def fail(self, held: Held, delay_ms: int, why: str) -> None:
        """Certainly nothing has come of it; it is not tried again before `delay_ms` are over. `why`: for a person."""

    async def doubt(self, held: Held, why: str) -> None:
        """It was begun, and nobody knows what has come of it. `why`: for a person."""

    async def release(self, held: Held) -> None:
        """It was not begun, whatever the journal says of that, and is anybody's."""

    async def recover(self) -> int:
        """What the dead have left, and earlier activations of this process, is pending or interrupted; how much."""

    async def due_in(self) -> int | None:
        """In how many ms the next receipt may be taken that may not be yet; None: there is none."""


@attrs.define
class WorkCounts:
    """What a worker has done so far."""

    taken: int = 0
    executed: int = 0
    failures: int = 0
    """Executions that raised."""
    interrupted: int = 0
    """Executions that were cancelled."""
    released: int = 0
    recovered: int = 0
    """Receipts of dead owners and of earlier activations that were found."""
    troubles: int = 0
    """Calls of the journal that failed; each is made again."""


class Worker:
    """One of a process, once."""

    def __init__(
        self,
        receipts: Receipts,
        items: Items,
        handler: Handler,
        timings: Timings,
        *,
        ports: Ports | None = None,
        counts: WorkCounts | None = None,
    ) -> None:
        self.items = items
        self.counts = WorkCounts() if counts is None else counts
        self.trouble = ""
        """What failed last at the journal; "" when nothing has since."""
        self._receipts = receipts
        self._handler = handler
        self._timings = timings
        self._ports = ports
        self._pending = asyncio.Event()
        """There may be something to take."""
        self._ready = asyncio.Event()
        """There may be something to begin."""
        self._ending = asyncio.Event()

    def signal(self) -> None:
        """Something is pending that was not."""
        self._pending.set()

    def ready(self) -> None:
        """Something may be begun that might not before."""
        self._ready.set()

    async def run(self) -> None:
        """Serve until this is cancelled. When it has ended, nothing is executed here any more, and what was not begun
        is given back, as far as the journal can be written."""
        collecting = asyncio.ensure_future(self._collect())
        executing = asyncio.ensure_future(self._execute())
        try:
            await asyncio.wait([collecting, executing], return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._ending.set()
            await to_its_end(asyncio.ensure_future(self._end(collecting, executing)))

    async def _end(self, *tasks: asyncio.Task[None]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        faults = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
        if all(isinstance(error, Exception) for error in faults):  # the dead give nothing back
            await self._give_back()
        for error in faults:
            raise error

    async def _give_back(self) -> None:
        for held in list(self.items):
            if self.items.is_aside(held.receipt_id):
                continue  # an offer is open: it is the recipient's, or falls with this process
            try:
                await self._receipts.release(held)
            except TenureError as error:
                self._troubled("release", error)  # it is found when this activation is over
            else:
                self.counts.released += 1
            self.items.drop(held.receipt_id)

    # -- taking -------------------------------------------------------------------------------------------------------

    async def _collect(self) -> None:
        """Take whenever it is said that there is something, and again and again; now and then see who is dead."""
        recover_at = 0.0
        while True:
            self._pending.clear()
            wait_ms: float = self._timings.reconcile_ms
            try:
                if self._time() >= recover_at:
                    recover_at = self._time() + self._timings.reconcile_ms / 1000
                    self.counts.recovered += await self._receipts.recover()
                await self._take()
                due = await self._receipts.due_in()
                wait_ms = wait_ms if due is None else min(wait_ms, max(due, 1))
                self.trouble = ""
            except TenureError as error:
                self._troubled("take", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1000):
                    await self._pending.wait()

    async def _take(self) -> None:
        room = AHEAD - len(self.items)
        if room <= 0:
            return
        taking = asyncio.ensure_future(self._receipts.take(room))
        try:
            found = await to_its_end(taking)
        except asyncio.CancelledError:
            if not taking.cancelled() and taking.exception() is None:
                self._hold(taking.result())  # they are given back with the others
            raise
        self._hold(found)

    def _hold(self, found: tuple[Held, ...]) -> None:
        for held in found:
            running = self.items.running
            if held.receipt_id in self.items or (running is not None and running.receipt_id == held.receipt_id):
                continue
            self.counts.taken += 1
            self.items.put(held)
        if found:
            self._ready.set()

    # -- executing ----------------------------------------------------------------------------------------------------

    async def _execute(self) -> None:
        while True:
            self._ready.clear()
            held = self.items.begin()
            if held is None:
                await self._ready.wait()
                continue
            try:
                begun = await self._one(held)
            finally:
                self.items.ended()
            if begun:
                self.signal()  # there is room, and what failed has a time

    async def _one(self, held: Held) -> bool:
        """Execute it, if it may be. Whether it was begun."""
        starting = asyncio.ensure_future(self._insisted("start", lambda: self._receipts.start(held)))
        try:
            item = await to_its_end(starting)
        except asyncio.CancelledError:
            if not starting.cancelled() and starting.exception() is None and starting.result() is not None:
                await self._settle("release", lambda: self._receipts.release(held))
            raise
        if item is None:
            return False
        running = asyncio.ensure_future(_called(self._handler, item))
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            running.cancel()
            await _ended(running)
            if not running.cancelled() and running.exception() is None:
                await self._settle("complete", lambda: self._receipts.complete(held))
                self.counts.executed += 1
            else:
                await self._doubt(held, "cancelled while it was executed")
            raise
        if running.cancelled():  # by itself
            await self._doubt(held, "the handler was cancelled")
            return True
        error = running.exception()
        if error is None:
            await self._settle("complete", lambda: self._receipts.complete(held))
            self.counts.executed += 1
        elif isinstance(error, Exception):
            self.counts.failures += 1
            self._note("handler", error)
            delay, why = self._delay(item.attempt), in_words(error)
            await self._settle("fail", lambda: self._receipts.fail(held, delay, why))
        else:
            raise error
        return True

    def _delay(self, attempt: int) -> int:
        """How long what has failed `attempt` times waits."""
        first, last = self._timings.retry_first_ms, self._timings.retry_last_ms
        return min(last, first << min(attempt - 1, 30))

    async def _doubt(self, held: Held, why: str) -> None:
        self.counts.interrupted += 1
        await self._settle("doubt", lambda: self._receipts.doubt(held, why))

    async def _settle(self, what: str, call: Callable[[], Awaitable[None]]) -> None:
        """Tell the journal what has come of an item. Cancelled, this waits for the end of that all the same."""
        await to_its_end(asyncio.ensure_future(self._insisted(what, call)))

    async def _insisted(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call of the journal until it is known to be done. Who ends tries once more, and gives up."""
        waited = self._timings.retry_first_ms
        while True:
            ending = self._ending.is_set()
            try:
                return await call()
            except TenureError as error:
                self._troubled(what, error)
                if ending:
                    raise asyncio.CancelledError from error
            with suppress(TimeoutError):
                async with asyncio.timeout(waited / 1000):
                    await self._ending.wait()
            waited = min(2 * waited, self._timings.retry_last_ms)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _time(self) -> float:
        return asyncio.get_running_loop().time()

    def _troubled(self, what: str, error: Exception) -> None:
        self.counts.troubles += 1
        self.trouble = in_words(error)
        self._note(what, error)

    def _note(self, phase: str, error: BaseException) -> None:
        if self._ports is not None:
            tell(self._ports, "work", phase, error=in_words(error))


async def _called(handler: Handler, item: Item) -> None:
    """The handler as a coroutine of ours, whatever it answers."""
    await handler(item)


async def _ended(running: asyncio.Task[None]) -> None:
    while not running.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([running])
