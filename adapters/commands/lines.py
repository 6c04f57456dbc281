"""Lines on standard output that nothing waits for: a reader that is stuck, or gone, must not hold up who writes."""

from __future__ import annotations

import asyncio
import os
import select
from collections import deque
from collections.abc import Callable
from typing import Final

from tenure.adapters.errors import printable

STDOUT: Final = 1
LONGEST: Final = 4_000
"""Bytes of a line: fewer than a pipe that is ready takes at once."""
KEPT: Final = 1_000
"""So many lines wait for a reader that is stuck; then the oldest are forgotten."""


class Lines:
    """Writes whole lines from the event loop, as soon as they can be written."""

    def __init__(self, on_error: Callable[[OSError], None]) -> None:
        """`on_error`: it can be written no more. Told once."""
        self._on_error = on_error
        self._lines: deque[bytes] = deque(maxlen=KEPT)
        self._waiting = False
        self._broken = False

    def write(self, text: str) -> None:
        """One line."""
        if not self._broken:
            line = printable(text).encode(errors="replace")[:LONGEST]
            self._lines.append(line.decode(errors="ignore").encode() + b"\n")
            self.flush()

    def flush(self) -> None:
        """Write what can be written now; the rest follows when somebody reads."""
        try:
            while self._lines and _ready():
                line = self._lines.popleft()
                if rest := line[os.write(STDOUT, line) :]:
                    self._lines.appendleft(rest)
        except BlockingIOError:  # somebody else made it so, and was quicker to fill it
            self._lines.appendleft(line)
        except OSError as error:
            self._broken = True
            self._lines.clear()
            self._on_error(error)
        self._wait(bool(self._lines))

    def _wait(self, wanted: bool) -> None:
        if wanted == self._waiting:
            return
        self._waiting = wanted
        loop = asyncio.get_running_loop()
        if wanted:
            loop.add_writer(STDOUT, self.flush)  # what is not ready is a pipe, a terminal or a socket
        else:
            loop.remove_writer(STDOUT)


def _ready() -> bool:
    poll = select.poll()
    poll.register(STDOUT, select.POLLOUT)
    return bool(poll.poll(0))
