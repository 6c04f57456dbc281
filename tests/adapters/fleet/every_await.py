"""Cancelling somebody after the n-th await of anybody, for each n there is."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Generator
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from tests.adapters.fleet.fleet_room import House, run

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


Story = Callable[[House, Awaits, int], Awaitable[bool]]


def at_every_await(story: Story) -> int:
    """Tell `story` with each n until it answers that it ended before its n-th await; how often that was."""
    for n in range(1, MOST):
        over: list[bool] = []

        async def one(n: int = n, over: list[bool] = over) -> None:
            awaits = Awaits()
            awaits.install()
            with tempfile.TemporaryDirectory(prefix="tenure-") as room:
                async with House(Path(room)) as house:
                    over.append(await story(house, awaits, n))

        run(one())
        if over[0]:
            return n
    raise AssertionError("it has no end")
