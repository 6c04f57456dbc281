"""An event loop that runs nothing by itself: what was called soon runs when it is told to, and time stands still but
where it is told to `ring`."""

from __future__ import annotations

import asyncio
import types
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


class SteppedLoop(asyncio.AbstractEventLoop):
    """Enough of a loop for tasks, futures and timers. No input or output, no threads."""

    def __init__(self) -> None:
        self._ready: deque[asyncio.Handle] = deque()
        self._later: list[asyncio.TimerHandle] = []
        self.errors: list[str] = []
        """What nobody else has handled."""

    def settle(self) -> None:
        """Run until there is nothing to run."""
        events._set_running_loop(self)
        try:
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            events._set_running_loop(None)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(delay, callback, args, self, context)
        self._later.append(handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        if handle in self._later:
            self._later.remove(handle)

    @property
    def waits(self) -> int:
        """How many timers are armed."""
        return len(self._later)

    def ring(self) -> None:
        """All timers that are armed are due."""
        due, self._later = self._later, []
        self._ready.extend(due)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return events._get_running_loop() is self

    def is_closed(self) -> bool:
        return False


def stepped_loop() -> SteppedLoop:
    """A new one."""
    return SteppedLoop()  # type: ignore[abstract]


def where(task: asyncio.Task[Any]) -> tuple[tuple[str, int], ...]:
    """In which place of which coroutines it waits, the outermost first."""
    found: list[tuple[str, int]] = []
    waits: object = task.get_coro()
    while isinstance(waits, types.CoroutineType) and waits.cr_frame is not None:
        found.append((waits.cr_code.co_qualname, waits.cr_frame.f_lasti))
        waits = waits.cr_await
    return tuple(found)
