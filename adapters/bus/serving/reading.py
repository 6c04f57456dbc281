"""Lines become envelopes: short ones at once, long ones in a thread, where processes take turns (`Limits`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import thread_time
from typing import Final, Generic, TypeVar

from tenure.adapters.bus.serving.structure import outside_strings

E = TypeVar("E")

_LONG_S: Final = 0.02
"""Seconds of parsing beyond which others notice."""


class Reader(Generic[E]):
    """The parser of one server."""

    def __init__(self, parse: Callable[[bytes], E | None], structure_bytes: int) -> None:
        self._parse = parse
        self._structure_bytes = structure_bytes
        self._thread: ThreadPoolExecutor | None = None

    def read(self, line: bytes) -> E | None:
        """The envelope; None for what is none, whatever it is: a hostile line takes nobody down."""
        bound = self._structure_bytes
        if len(line) > bound and outside_strings(line, bound) > bound:
            return None
        try:
            return self._parse(line)
        except Exception:
            return None

    async def read_apart(self, line: bytes, turn: asyncio.Lock) -> E | None:
        """The same, in the thread. `turn` is its process's: one line of each at a time, so that they take turns."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="tenure-bus-parse")
        loop = asyncio.get_running_loop()
        await turn.acquire()
        rest = 0.0
        try:
            envelope, took = await loop.run_in_executor(self._thread, self._timed, line)
            # A thread that parses does not let go of the interpreter: whoever needs it for long leaves it for longer.
            rest = 3 * took if took > _LONG_S else 0.0
        finally:
            if rest:
                loop.call_later(rest, turn.release)
            else:
                turn.release()
        return envelope

    def close(self) -> None:
        """End the thread; what waits for it is cancelled."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None

    def _timed(self, line: bytes) -> tuple[E | None, float]:
        started = thread_time()
        return self.read(line), thread_time() - started
