"""What a member does while it leads, as `Leadership` drives it: open the fleet, run the work, close (locks.md 9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, Literal

from tenure.adapters.errors import in_words
from tenure.adapters.runtime.work import Ended, NoWork

Run = Callable[[int], Coroutine[Any, Any, None]]
"""What runs while this process leads: ``run(epoch)``, cancelled when the tenure ends."""

State = Literal["closed", "opening", "open"]

_PATIENCE_S: Final = 0.05
"""How often the thread that waits for the loop looks whether the loop is still there."""
_GONE: Final = "the event loop is closed"


class FleetWork(NoWork):
    """`opens(epoch)` prepares everything that has to be there before the work, `closes()` takes it away, whatever
    `opens` came to; both are coroutines of the member's loop, and so is the work. What Leadership calls comes from its
    threads. A work that ignores its cancellation is waited for: until it has ended nobody else may lead."""

    def __init__(self, opens: Run, closes: Callable[[], Coroutine[Any, Any, None]], run: Run | None):
        super().__init__()
        self._opens = opens
        self._closes = closes
        self._run = run
        self._wake: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._error = ""
        self._prepares = 0
        self._stops = 0
        self.state: State = "closed"

    def attach(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop that everything runs on."""
        self._loop = loop

    # -- called by the leadership, in its threads ---------------------------------------------------------------------

    def prepare(self, epoch: int) -> None:
        """Raises what `opens` raised, and when the tenure ends meanwhile."""
        loop = self._bound()
        self._prepares += 1
        opening = self._open(epoch, self._prepares)
        try:
            opened = asyncio.run_coroutine_threadsafe(opening, loop)
        except RuntimeError:
            opening.close()
            raise
        while True:
            try:
                return opened.result(_PATIENCE_S)
            except TimeoutError:
                if opened.done():
                    return opened.result()  # the time out was its own, or it has just come
                if loop.is_closed():
                    raise RuntimeError(_GONE) from None

    def start(self, epoch: int) -> None:
        self._bound().call_soon_threadsafe(self._begin, epoch, self._prepares)

    def stop(self) -> None:
        self._stops += 1
        try:
            self._bound().call_soon_threadsafe(self._end)
        except RuntimeError:
            self.state = "closed"  # the loop is closed, and what ran on it is over

    def ended(self) -> Ended | None:
        if self.state != "closed" and self._bound().is_closed():
            return Ended(_GONE)
        return Ended(self._error) if self.state == "closed" else None

    # -- on the loop --------------------------------------------------------------------------------------------------

    def _wanted(self, number: int) -> bool:
        """Whether the tenure that was prepared for goes on. Each preparation is stopped once, and its stop may be there
        before it is."""
        return self._stops < number

    async def _open(self, epoch: int, number: int) -> None:
        while self._closing is not None:  # of the tenure before
            await asyncio.wait([self._closing])
        if not self._wanted(number):
            raise RuntimeError("the tenure ended before it was prepared")
        self._error = ""
        self.state = "opening"
        self._opening = opening = asyncio.ensure_future(self._opens(epoch))
        await asyncio.wait([opening])
        self._opening = None
        if opening.cancelled():
            raise RuntimeError("the tenure ended while it was prepared")
        opening.result()
        self.state = "open"

    def _begin(self, epoch: int, number: int) -> None:
        if self._run is None or self.state != "open" or not self._wanted(number):
            return
        self._task = asyncio.ensure_future(self._running(self._run, epoch))
        self._task.add_done_callback(self._done)

    async def _running(self, run: Run, epoch: int) -> None:
        await run(epoch)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = in_words(error)
        self._end()  # where it has ended by itself

    def _end(self) -> None:
        if self._closing is not None or self.state == "closed":
            return
        self._closing = asyncio.ensure_future(self._close())
        self._closing.add_done_callback(self._closed)

    async def _close(self) -> None:
        running = [task for task in (self._opening, self._task) if task is not None]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        await self._closes()

    def _closed(self, task: asyncio.Task[None]) -> None:
        self._closing = None
        if not task.cancelled() and (error := task.exception()) is not None and not self._error:
            self._error = in_words(error)
        self.state = "closed"
        self._wake()

    def _bound(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "enter the member first"
        return self._loop
