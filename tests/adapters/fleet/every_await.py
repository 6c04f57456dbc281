"""Cancelling somebody after the n-th await of anybody, for each n there is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Final

MOST: Final = 2_000
"""More awaits than any story of these tests has."""


class Awaits:
    """Counts each suspension of each task that is made while it is installed; at the n-th it calls somebody."""

    def __init__(self) -> None:
        self.count = 0
        self.at = -1
        self.call: Callable[[], object] = lambda: None

    def install(self) -> None:
        """On the running loop."""
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro, **more: asyncio.Task(Counted(self, coro), loop=loop, **more))

    def arm(self, at: int, call: Callable[[], object]) -> None:
        """Begin to count."""
        self.count, self.at, self.call = 0, at, call

    def disarm(self) -> None:
        """Count no more."""
        self.at = -1

    def suspended(self) -> None:
        """Some task has got to an await that waits."""
        if self.at < 0:
            return
        self.count += 1
        if self.count == self.at:
            asyncio.get_running_loop().call_soon(self.call)


class Counted(Coroutine[Any, Any, Any]):
    """A coroutine whose suspensions are counted."""

    def __init__(self, awaits: Awaits, coro: Any) -> None:
        self._awaits = awaits
        self._coro = coro

    def send(self, value: Any) -> Any:
        found = self._coro.send(value)
        self._awaits.suspended()
        return found

    def throw(self, kind: Any, value: BaseException | object = None, trace: TracebackType | None = None) -> Any:
        found = self._coro.throw(kind if value is None else value)
        self._awaits.suspended()
        return found

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield from self._coro.__await__())
