"""The journal, off the event loop: one thread of its own, in which it is opened, used and closed (DESIGN 10).

A call that is awaited may be cancelled: then it is not begun if it has not begun, and goes on without its caller if it
has. Whoever has to know waits for its end (`tenure.adapters.awaiting.to_its_end`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Generic, Protocol, TypeVar

from tenure.adapters.errors import TenureError

T = TypeVar("T")

_CLOSED: Final = "the journal is closed: this process has left; start another"


class Closable(Protocol):
    """What is used by one thread."""

    def close(self) -> None:
        """Give it up."""


C = TypeVar("C", bound=Closable)


class OneThread(Generic[C]):
    """Something that only one thread may use. What it raises is raised to who asked."""

    def __init__(self, opens: Callable[[], C], name: str) -> None:
        self._opens = opens
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._open: C | None = None

    async def open(self) -> None:
        """Open it. Raises what that raises; then nothing is open."""
        await self._run(self._begin)

    async def do(self, work: Callable[[C], T]) -> T:
        """Do something with it. Raises TenureError where it is not open."""

        def inside() -> T:
            if self._open is None:
                raise TenureError(_CLOSED)
            return work(self._open)

        return await self._run(inside)

    async def close(self) -> None:
        """Give it up, after whatever is under way; also what was never opened."""
        try:
            await self._run(self._end)
        finally:
            self._executor.shutdown(wait=False)

    def _begin(self) -> None:
        self._open = self._opens()

    def _end(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened.close()

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            running = asyncio.get_running_loop().run_in_executor(self._executor, work)
        except RuntimeError as error:  # it was shut down
            raise TenureError(_CLOSED) from error
        return await running
