"""How a supervisor and its guardian talk: a socket for words, a shared integer for the lease, and one place to wait.

Words are rare: run, stop, and what became of it. How long the lease holds changes with each renewal and only the last
value counts, also for a guardian that was stopped meanwhile; so it is shared memory, and no renewal can ever block.
End of file on the socket says that the other side is gone, however it went.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import signal
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from types import FrameType
from typing import Final, Literal

import attrs

Why = Literal["ended", "passed", "stopped", "failed"]
"""COMMAND ended by itself; the lease passed; the supervisor said stop, or is gone; it could not be started."""


@attrs.frozen
class Run:
    """Take the lock and start COMMAND."""

    epoch: int


@attrs.frozen
class Stop:
    """End COMMAND, or wait for the lock no more."""


@attrs.frozen
class Forward:
    """Send a signal to COMMAND's group."""

    signal: int


@attrs.frozen
class Waiting:
    """The lock is held by others, for longer than an ordinary end takes."""


@attrs.frozen
class Prepared:
    """There is a child `pid` that will be COMMAND in a moment."""

    pid: int


@attrs.frozen
class Running:
    """COMMAND runs."""

    pid: int


@attrs.frozen
class Ended:
    """COMMAND has ended by itself, with this exit status; what it left in its group is being ended."""

    status: int


@attrs.frozen
class Over:
    """Nothing of COMMAND's group runs. `status`: COMMAND's exit status (128 + n for a signal), None if it never ran.
    `left`: descendants that left the group still run; the lock stays with them. `error`: why it failed."""

    why: Why
    status: int | None
    left: bool = False
    error: str = ""


Word = Run | Stop | Forward | Waiting | Prepared | Running | Ended | Over
_KINDS: Final = {kind.__name__: kind for kind in (Run, Stop, Forward, Waiting, Prepared, Running, Ended, Over)}
_CHUNK: Final = 64 * 1024


class Channel:
    """One end of the socket."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._rest = b""
        self.closed = False
        """Whether the other side is gone. What it said before can still be read once."""

    def fileno(self) -> int:
        """For `wait`."""
        return self._socket.fileno()

    def say(self, word: Word) -> None:
        """Say something; to nobody where nobody is there any more."""
        line = json.dumps([type(word).__name__, *attrs.astuple(word)]) + "\n"
        with suppress(BrokenPipeError, ConnectionResetError, BlockingIOError):
            self._socket.sendall(line.encode())

    def hear(self) -> list[Word]:
        """What has arrived since the last call."""
        while not self.closed:
            try:
                found = self._socket.recv(_CHUNK)
            except BlockingIOError:
                break
            except ConnectionResetError:
                found = b""
            self.closed = not found
            self._rest += found
        *lines, self._rest = self._rest.split(b"\n")
        return [_KINDS[name](*fields) for name, *fields in map(json.loads, lines)]

    def close(self) -> None:
        """The other side reads end of file."""
        self._socket.close()


def channels() -> tuple[Channel, Channel]:
    """Two ends."""
    left, right = socket.socketpair()
    return Channel(left), Channel(right)


class Shared:
    """An integer that a process shares with those it forks."""

    _FORMAT: Final = struct.Struct("@q")  # native: one aligned store, never half of one

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)

    def get(self) -> int:
        """Its value, 0 at first."""
        return int(self._FORMAT.unpack_from(self._memory)[0])

    def set(self, value: int) -> None:
        """Change it, for all."""
        self._FORMAT.pack_into(self._memory, 0, value)


class Bell:
    """Signals as something to wait for, beside descriptors and time. One for a process, in its main thread."""

    def __init__(self, heard: Iterable[int]) -> None:
        """From now on the signals `heard` do nothing but ring."""
        self._read, self._write = os.pipe()
        for descriptor in (self._read, self._write):
            os.set_blocking(descriptor, False)
        self._before = {number: signal.signal(number, _ring) for number in heard}
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def wait(self, descriptors: Iterable[int], timeout_ms: float) -> set[int]:
        """Wait for a signal, for one of the descriptors, or for the time; say which signals have come."""
        poll = select.poll()
        for descriptor in (self._read, *descriptors):
            poll.register(descriptor, select.POLLIN)
        poll.poll(max(0.0, timeout_ms))
        try:
            return set(os.read(self._read, 4096))
        except BlockingIOError:
            return set()

    def close(self) -> None:
        """Give the signals back to whoever had them."""
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)


def _ring(number: int, frame: FrameType | None) -> None:
    """The byte in the wake-up descriptor is all there is to a signal."""
