"""The journal for asyncio: one thread that has it open, and does one call after the other (DESIGN 10).

    async with await ThreadedJournal.open(lambda: Journal.open(ports, directory, bot=bot)) as journal:
        taken = await journal.call(lambda j: j.take(receipt_id, me))

A caller that is cancelled leaves, and its transaction goes on: what has become of it the journal tells whoever asks
again. Closing waits for what is under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

from tenure.adapters.awaiting import heard, to_its_end
from tenure.adapters.errors import TenureError
from tenure.adapters.journal.errors import JournalLost
from tenure.adapters.journal.journal import Journal

T = TypeVar("T")


class ThreadedJournal:
    """A `Journal` in a thread of its own."""

    def __init__(self, journal: Journal, thread: ThreadPoolExecutor) -> None:
        self._journal = journal
        self._thread = thread
        self._closing: asyncio.Future[None] | None = None
        self.lost: JournalLost | None = None
        """Why this process cannot go on with it, once a call has found that out."""
        self.on_lost: Callable[[JournalLost], None] = lambda error: None
        """Told of that, once; whoever asked is told as well."""

    @classmethod
    async def open(cls, opened: Callable[[], Journal]) -> ThreadedJournal:
        """`opened` opens it, in its thread. Raises what that raises; cancelled, nothing stays open."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="tenure-journal")
        opening = asyncio.get_running_loop().run_in_executor(thread, opened)
        try:
            return cls(await to_its_end(opening), thread)
        except BaseException:
            if not opening.cancelled() and opening.exception() is None:
                await asyncio.get_running_loop().run_in_executor(thread, opening.result().close)
            thread.shutdown(wait=False)
            raise

    @property
    def path(self) -> str:
        """The file."""
        return self._journal.path

    async def call(self, work: Callable[[Journal], T]) -> T:
        """What `work` answers, or raises. Cancelled, this leaves at once, and `work` is done all the same.

        Raises `TenureError` once it is being closed.
        """
        if self._closing is not None:
            raise TenureError(f"{self.path}: the journal is closed")
        running = asyncio.get_running_loop().run_in_executor(self._thread, work, self._journal)
        heard(running)
        running.add_done_callback(self._look)
        return await asyncio.shield(running)

    def _look(self, ended: asyncio.Future[T]) -> None:
        error = None if ended.cancelled() else ended.exception()
        if isinstance(error, JournalLost) and self.lost is None:
            self.lost = error
            self.on_lost(error)

    async def close(self) -> None:
        """Close it, after all that was asked for before. Again: waits for the same end."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().run_in_executor(self._thread, self._journal.close)
            self._thread.shutdown(wait=False)
        await to_its_end(self._closing)

    async def __aenter__(self) -> ThreadedJournal:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
