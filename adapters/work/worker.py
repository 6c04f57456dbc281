"""Serves the bindings of one process: takes what is pending, executes it in order, and settles it (bus.md d; V4-V7).

    worker = Worker(receipts, items, handler, timings)
    await worker.run()                   # until it is cancelled

An item is *started* in the journal before its handler is called, and *done* there when the handler has returned. One
that raises is tried again after a delay, and those behind it go on meanwhile (V5, B74). One that is cancelled, with
the whole worker, is interrupted: nobody knows what has come of it. So is one that raises what is no Exception, which
ends the worker. What was taken and never begun is given back.

Whether a receipt may be taken, started, settled or recovered is decided by the row's machine inside the journal's
transaction; here an answer of None is its refusal, and then the item is somebody else's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

import attrs

from tenure.adapters.awaiting import ended, to_its_end
from tenure.adapters.errors import TenureError, in_words
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Killed, Ports, tell
from tenure.adapters.work.items import Handler, Held, Item, Items
from tenure.adapters.work.receipts import Receipts

T = TypeVar("T")

AHEAD: Final = 64
"""So many items are taken before they are begun: they can be handed to others meanwhile."""


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
        self._finishing = False
        self._left = False
        self._fatal: BaseException | None = None
        """What a handler has raised that ends more than its item."""

    @property
    def serves(self) -> bool:
        """It takes what comes."""
        return not self._finishing

    def finish(self) -> None:
        """Take and begin nothing from now on: give back what is not begun, and leave all bindings to others. What runs
        goes on until the worker is cancelled."""
        self._finishing = True
        self._pending.set()
        self._ready.set()

    def signal(self) -> None:
        """Something is pending that was not."""
        self._pending.set()

    def ready(self) -> None:
        """Something may be begun that might not before."""
        self._ready.set()
        if self._finishing:
            self._pending.set()  # or given back

    async def run(self) -> None:
        """Serve until this is cancelled. When it has ended, nothing is executed here any more, what was not begun is
        given back, and all bindings are left, as far as the journal can be written. Raises what a handler has raised
        that is no Exception; `Killed` at once, without a word to the journal."""
        collecting = asyncio.ensure_future(self._collect())
        executing = asyncio.ensure_future(self._execute())
        try:
            await asyncio.wait([collecting, executing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._ending.set()
            for error in await to_its_end(asyncio.ensure_future(self._end(collecting, executing))):
                raise error

    async def _end(self, *tasks: asyncio.Task[None]) -> list[BaseException]:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        faults = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
        if not any(isinstance(error, Killed) for error in faults):  # the dead give nothing back
            await self._hand_in()
        if self._fatal is not None:
            faults.insert(0, self._fatal)
        return faults

    async def _hand_in(self) -> bool:
        """Give back what is not begun, and leave all bindings. Whether nothing of that failed."""
        done = await self._give_back()
        if not self._left:
            try:
                await self._receipts.leave()
                self._left = True
            except TenureError as error:
                self._troubled("leave", error)
        return done and self._left

    async def _give_back(self) -> bool:
        failed = False
        for held in list(self.items):
            if self.items.is_aside(held.receipt_id):
                continue  # an offer is open: it is the recipient's, or falls with this process
            try:
                await self._receipts.release(held)
            except TenureError as error:
                self._troubled("release", error)
                failed = True
            else:
                self.counts.released += 1
                self.items.drop(held.receipt_id)
        return not failed

    # -- taking -------------------------------------------------------------------------------------------------------

    async def _collect(self) -> None:
        """Take whenever it is said that there is something, and again and again; now and then see who is dead."""
        recover_at = 0.0
        while not self._finishing:
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
            await self._news(wait_ms)
        while True:
            self._pending.clear()
            done = await self._hand_in()  # again when an offer was withdrawn
            await self._news(None if done else self._timings.reconcile_ms)

    async def _news(self, wait_ms: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
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
        while self._fatal is None:
            self._ready.clear()
            held = None if self._finishing else self.items.begin()
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
        if self._finishing:
            await self._settle("release", lambda: self._receipts.release(held))
            return False
        running = asyncio.ensure_future(_called(self._handler, item))
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            running.cancel()
            await ended(running)
            if not running.cancelled() and running.result() is None:
                await self._settle("complete", lambda: self._receipts.complete(held))
                self.counts.executed += 1
            else:
                await self._doubt(held, "cancelled while it was executed")
                self._fatal = None if running.cancelled() else _fatal(running.result())
            raise
        if running.cancelled():  # by itself
            await self._doubt(held, "the handler was cancelled")
            return True
        error = running.result()
        if error is None:
            await self._settle("complete", lambda: self._receipts.complete(held))
            self.counts.executed += 1
            return True
        self._note("handler", error)
        why = in_words(error)
        if (fatal := _fatal(error)) is not None:
            self._fatal = fatal
            self._ending.set()  # whoever ends the program is not kept waiting for the journal
            await self._doubt(held, f"the handler ended the program: {why}")
        else:
            self.counts.failures += 1
            delay = self._delay(item.attempt)
            await self._settle("fail", lambda: self._receipts.fail(held, delay, why))
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


async def _called(handler: Handler, item: Item) -> BaseException | None:
    """What the handler raises, as a value: a task that raises SystemExit would end the loop, and nobody could settle
    what it has begun. Killed is raised: who is dead settles nothing."""
    try:
        await handler(item)
    except (asyncio.CancelledError, Killed):
        raise
    except BaseException as error:
        return error
    return None


def _fatal(error: BaseException | None) -> BaseException | None:
    """What ends more than its item."""
    return None if isinstance(error, Exception) else error
