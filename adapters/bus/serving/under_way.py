"""The requests of a server that are being answered: how many count for whom, and which hang (`Limits.hung_ms`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from tenure.adapters.awaiting import heard
from tenure.adapters.bus.serving.counting import Counters
from tenure.adapters.bus.serving.limits import Limits

if TYPE_CHECKING:
    from tenure.adapters.bus.serving.connection import Connection

E = TypeVar("E")


class UnderWay(Generic[E]):
    """Those of one server; each is a task."""

    def __init__(self, limits: Limits, counters: Counters, ended: Callable[[Connection[E], int], None]) -> None:
        """`ended` is told whose request has ended, and how many bytes of room that had held."""
        self._limits = limits
        self._counters = counters
        self._ended = ended
        self._tasks: set[asyncio.Task[None]] = set()
        self._counted: dict[asyncio.Task[None], tuple[Connection[E], float]] = {}
        """Those of them that count among the requests of their process, with the time when they began, the oldest
        first."""

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def hanging(self) -> int:
        """How many count no more."""
        return len(self._tasks) - len(self._counted)

    def begin(self, connection: Connection[E], answer: Coroutine[None, None, None], held: int, now: float) -> None:
        """Run `answer` for this connection, which holds so many bytes of room for it."""
        connection.requests += 1
        connection.account.requests += 1
        task = asyncio.get_running_loop().create_task(answer)
        heard(task)  # of whatever it was, its asker heard all that is to be heard
        self._tasks.add(task)
        self._counted[task] = connection, now
        # Not in a `finally` of the coroutine: one that is cancelled before its first turn never gets there.
        task.add_done_callback(partial(self._end, connection, held))

    def cancel(self) -> tuple[asyncio.Task[None], ...]:
        """Cancel all of them, and answer them."""
        for task in self._tasks:
            task.cancel()
        return tuple(self._tasks)

    def leave_hanging(self, now: float) -> None:
        """What is answered for too long counts no more, and others may begin in its place."""
        hangs = []
        for task, (connection, began) in self._counted.items():
            if (now - began) * 1000 <= self._limits.hung_ms:
                break
            hangs.append((task, connection))
        for task, connection in hangs:
            del self._counted[task]
            self._counters.hung += 1
            connection.hung += 1
            connection.account.hung += 1
            connection.account.requests -= 1
        for account in {connection.account for _, connection in hangs}:
            for each in tuple(account.connections):
                each.advance()

    def _end(self, connection: Connection[E], held: int, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        connection.requests -= 1
        if self._counted.pop(task, None) is None:
            connection.hung -= 1
            connection.account.hung -= 1
        else:
            connection.account.requests -= 1
        self._ended(connection, held)
