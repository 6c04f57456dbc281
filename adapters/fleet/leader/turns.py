"""Changes of one profile, one after the other: who comes while one is under way waits, first come first served."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from tenure.adapters.errors import TenureError
from tenure.machines.chart import Refused, Step
from tenure.machines.routes_messages import Output, Routes

Answer = Step[Routes, Output] | Refused

BUSY: Final = "nobody_mutates_profile"
"""The guard that says: not now, but offer it again when a change has ended."""
LINE: Final = 64
"""So many wait for one profile."""


class LineFull(TenureError):
    """Too many wait for this profile already."""


class _Line:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class Turns:
    """The lines, one a profile. What is refused for being too early is decided by the machine alone."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        self._ended = asyncio.Event()

    async def take(self, key: str, offer: Callable[[], Awaitable[Answer]]) -> Answer:
        """Offer until the answer is another one than "not now". Raises `LineFull`."""
        line = self._lines.setdefault(key, _Line())
        if line.waiting >= LINE:
            raise LineFull("too many changes of this profile wait: try again later")
        line.waiting += 1
        try:
            async with line.lock:
                while True:
                    ended = self._ended
                    answer = await offer()
                    if not isinstance(answer, Refused) or answer.guards != (BUSY,):
                        return answer
                    await ended.wait()
        finally:
            line.waiting -= 1
            if not line.waiting:
                self._lines.pop(key, None)

    def ended(self) -> None:
        """A change has ended: whoever is first in a line tries again."""
        before, self._ended = self._ended, asyncio.Event()
        before.set()
