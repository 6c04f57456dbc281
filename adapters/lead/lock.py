"""The lock that COMMAND of ``tenure lead`` and its descendants hold, and who holds one.

A lease says who may start a COMMAND; this lock says that none runs. A guardian takes it before it starts its COMMAND,
and every process that descends from it inherits the descriptor. So the lock is free when all of them are gone, whoever
else was killed or stopped meanwhile, and no clock is asked. (flock(2): it belongs to the open file, not to a process.)

What the file says is for people; only the lock counts. The file is never removed: who locks a removed file excludes
nobody who opens its successor.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import attrs

from tenure.adapters.errors import TenureError

_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MODE: Final = 0o600
_RECORD_LIMIT: Final = 64 * 1024
"""Bytes of a record that are read."""
_NUMBERS: Final = ("guardian", "supervisor", "pid", "epoch")
_BUSY: Final = (errno.EWOULDBLOCK, errno.EACCES)


@attrs.frozen
class Record:
    """Who took the lock last, for people: it is as old as the last start of a COMMAND, and says nothing about now."""

    guardian: int
    supervisor: int
    pid: int
    """COMMAND itself."""
    epoch: int
    command: tuple[str, ...]


@attrs.frozen
class Holder:
    """A process that holds the lock now. `state`: running, stopped or zombie; `command`: its command line."""

    pid: int
    state: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        said = " ".join(" ".join(self.command).split()) or "?"
        return f"pid {self.pid} ({said if len(said) <= 60 else said[:57] + '...'}{_STATES[self.state]})"


_STATES: Final = {"running": "", "stopped": ", stopped", "zombie": ", a zombie"}


class WorkLock:
    """One open file of the lock. Close it to give up this process's part of it; others may hold theirs."""

    def __init__(self, path: str) -> None:
        """Open the file, make it where there is none. Raises `TenureError` for what is no regular file, and where it
        cannot be opened."""
        self.path = path
        self._descriptor = _open(path)

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def take(self) -> bool:
        """Take the lock if it is free. The path still has to name what was locked: a file that somebody removed
        protects from nobody. Raises `TenureError` where the file system has no locks."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            raise TenureError(f"{self.path}: {error.strerror}; its file system has to have flock") from error
        mine = os.fstat(self._descriptor)
        with suppress(FileNotFoundError):
            there = os.stat(self.path, follow_symlinks=False)
            if (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino):
                return True
        self.close()
        self._descriptor = _open(self.path)
        return False

    def write(self, record: Record) -> None:
        """Say who took it. The lock is held all the same where this fails, on a full disk for example."""
        text = json.dumps(attrs.asdict(record)) + "\n"
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text.encode(), 0)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open(path: str) -> int:
    try:
        descriptor = os.open(path, _OPEN, _MODE)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise TenureError(f"{path}: not a regular file; move it away, tenure lead locks it") from error
        raise TenureError(f"{path}: {error.strerror}; the agent directory has to be writable") from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise TenureError(f"{path}: not a regular file; move it away, tenure lead locks it")


def read_record(path: str) -> Record | None:
    """What the file says; None where it says nothing that can be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = json.loads(os.read(descriptor, _RECORD_LIMIT))
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(descriptor)
    if not isinstance(found, dict):
        return None
    numbers = [value for name in _NUMBERS if isinstance(value := found.get(name), int)]
    command = found.get("command")
    if len(numbers) != len(_NUMBERS) or not isinstance(command, list):
        return None
    guardian, supervisor, pid, epoch = numbers
    return Record(guardian, supervisor, pid, epoch, tuple(str(word) for word in command))


def holders(path: str) -> tuple[Holder, ...]:
    """Who holds the lock of `path` now, by pid; nothing where nobody does, and where the platform does not tell
    (it takes Linux, and processes of other users show their descriptors to root alone).

    Takes no lock and opens nothing but /proc, so it disturbs nobody who waits for the lock.
    """
    try:
        wanted = os.stat(path, follow_symlinks=False)
    except OSError:
        return ()
    return tuple(
        Holder(pid, state_of(pid), command_of(pid))
        for pid in processes()
        if any(_locks(pid, descriptor) for descriptor in _open_in(pid, (wanted.st_dev, wanted.st_ino)))
    )


def processes() -> Iterator[int]:
    """All pids, ascending; none where there is no /proc."""
    if sys.platform == "linux":
        yield from sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())


def _open_in(pid: int, file: tuple[int, int]) -> Iterator[str]:
    """The descriptors of a process that have the file of this device and inode open."""
    with suppress(OSError):
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found = os.stat(f"/proc/{pid}/fd/{descriptor}")
                if (found.st_dev, found.st_ino) == file:
                    yield descriptor


def _locks(pid: int, descriptor: str) -> bool:
    """Whether the open file behind a descriptor has a flock: the kernel says so in its fdinfo."""
    return b"FLOCK" in _bytes(f"/proc/{pid}/fdinfo/{descriptor}")


def state_of(pid: int) -> str:
    """`running`, `stopped` (SIGSTOP, or a debugger) or `zombie`."""
    found = _bytes(f"/proc/{pid}/stat")
    letter = found[found.rfind(b")") + 2 :][:1]
    return "stopped" if letter in (b"T", b"t") else "zombie" if letter in (b"Z", b"X") else "running"


def command_of(pid: int) -> tuple[str, ...]:
    """The command line of a process, nothing where it cannot be read."""
    found = _bytes(f"/proc/{pid}/cmdline").rstrip(b"\0")
    return tuple(word.decode(errors="replace") for word in found.split(b"\0")) if found else ()


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(_RECORD_LIMIT)
    except OSError:
        return b""
