"""COMMAND as a process group: started with a descriptor and an epoch, signalled, ended, and known to be gone.

A group ends by SIGTERM and, after a bound, SIGKILL. Its processes may fork, ignore SIGTERM, outlive their parents; it
is gone when nothing but zombies is left in it. What leaves the group (setsid) is not ended; it keeps the lock.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn

from tenure.adapters.lead.channel import Why
from tenure.adapters.lead.lock import processes
from tenure.adapters.ports import Clock

NOT_STARTED: Final = 125
"""The exit status of a child that was never told to become COMMAND."""
NOT_EXECUTABLE: Final = 126
NOT_FOUND: Final = 127
"""Exit statuses of a COMMAND that cannot be executed, as shells have them."""

_READY: Final = b"r"
_READY_S: Final = 5.0
_SET_CHILD_SUBREAPER: Final = 36
_INHERITED_FROM: Final = 100
"""The lowest number that the inherited descriptor may have: scripts and shells use the low ones as they like."""
# What Python ignores, and what a guardian does; a COMMAND starts with the defaults.
_TO_RESET: Final = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGCHLD", "SIGPIPE", "SIGXFSZ")
    if hasattr(signal, name)
)


class Spare:
    """A child in a session of its own that becomes COMMAND when it is told the epoch and given the lock: it is forked
    long before, and its pid is known before COMMAND exists. It ends when whoever forked it is gone."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], ignored: frozenset[int]) -> None:
        """Fork it. `ignored` are the signals that were ignored when this program started (by nohup, say), and stay so.
        The calling process has one thread. Raises OSError when there can be no process."""
        self._socket, its = socket.socketpair()
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _wait_as_spare(its, command, environment, ignored)
        except OSError:
            self._socket.close()
            raise
        finally:
            its.close()

    def ready(self) -> bool:
        """Wait until it has a session of its own, which it has soon after its birth; False if it is gone."""
        self._socket.settimeout(_READY_S)
        try:
            return self._socket.recv(1) == _READY
        except OSError:
            return False
        finally:
            self._socket.setblocking(False)

    def go(self, epoch: int, lock: int) -> None:
        """Let it become COMMAND, with an epoch and a descriptor of the lock."""
        with suppress(OSError):  # it is gone; waitpid will say so
            socket.send_fds(self._socket, [str(epoch).encode()], [lock])

    def fileno(self) -> int:
        """Readable when `executed` has an answer; -1 when it has had one."""
        return self._socket.fileno()

    def executed(self) -> int | None:
        """0 when COMMAND runs (or has run), an error number when it cannot, None for nothing yet."""
        try:
            found = self._socket.recv(16)
        except BlockingIOError:
            return None
        except OSError:
            found = b""
        self.close()
        return int(found) if found else 0

    def close(self) -> None:
        """Without having been told to go it ends."""
        self._socket.close()


def _wait_as_spare(
    mine: socket.socket, command: Sequence[str], environment: Mapping[str, str], ignored: frozenset[int]
) -> NoReturn:
    try:
        os.setsid()
        _default_signals(ignored)
        # What is not for COMMAND is not for who waits to become it either: a lock above all.
        for descriptor in _descriptors():
            if descriptor != mine.fileno() and not os.get_inheritable(descriptor):
                os.close(descriptor)
        mine.send(_READY)
        epoch, (lock, *_), _, _ = socket.recv_fds(mine, 64, 1)
        fcntl.fcntl(lock, fcntl.F_DUPFD, _INHERITED_FROM)
        os.close(lock)
        _become(command, {**environment, "TENURE_EPOCH": epoch.decode()}, mine)
    finally:
        os._exit(NOT_STARTED)


def _become(command: Sequence[str], environment: Mapping[str, str], mine: socket.socket) -> NoReturn:
    try:
        os.execvpe(command[0], list(command), environment)
    except OSError as error:
        number = error.errno or errno.EIO
    except ValueError:  # a NUL byte
        number = errno.EINVAL
    with suppress(OSError):  # the guardian is gone; the status says it as well
        mine.send(str(number).encode())
    os._exit(exec_status(number))


def _descriptors() -> list[int]:
    """The open descriptors of this process."""
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        numbers = list(range(_INHERITED_FROM))
    found = []
    for number in numbers:
        with suppress(OSError):  # the listing's own is closed by now
            os.fstat(number)
            found.append(number)
    return found


def exec_status(number: int) -> int:
    """The exit status for a COMMAND that could not be executed."""
    return NOT_FOUND if number in (errno.ENOENT, errno.ENOTDIR) else NOT_EXECUTABLE


def _default_signals(ignored: frozenset[int]) -> None:
    for number in _TO_RESET:
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def send(group: int, number: int) -> None:
    """Signal a whole group. To be asked to end, a stopped process has to run."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.killpg(group, signal.SIGCONT)


def gone(group: int) -> bool:
    """Whether no process of the group is left; zombies that nobody has reaped yet do not count, where one can tell."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return sys.platform == "linux" and not any(_runs_in(pid, group) for pid in processes())


def _runs_in(pid: int, group: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            line = file.read(1024)
    except OSError:
        return False
    fields = line[line.rindex(b")") + 2 :].split()
    # The state is that of the first thread, and others may go on.
    ended = fields[0] in (b"Z", b"X", b"x") and int(fields[17]) <= 1
    return not ended and int(fields[2]) == group


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose parent dies, where the platform has that (Linux); whether it has."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


class Charge:
    """The process group of a COMMAND that somebody looks after: a guardian, or a supervisor that lost its guardian."""

    def __init__(self, pid: int, kill_after_ms: int, clock: Clock) -> None:
        self.pid = pid
        self.status: int | None = None
        """COMMAND's exit status once it has ended, 128 + n for a signal."""
        self.why: Why | None = None
        """Why it is being ended; None as long as it is not."""
        self._kill_after_ms = kill_after_ms
        self._kill_at_ms: int | None = None
        self._clock = clock

    def end(self, why: Why) -> None:
        """Ask the group to end, and kill it when the bound is over. The first reason stays."""
        if self.why is None:
            self.why = why
            self._kill_at_ms = self._clock.fence_ms() + self._kill_after_ms
            send(self.pid, signal.SIGTERM)

    def over(self) -> bool:
        """Look after an ending group; whether nothing of it is left. When COMMAND has ended, so must its group."""
        if self.status is not None:
            self.end("ended")
        if self.why is None:
            return False
        if gone(self.pid):
            return True
        if self._kill_at_ms is not None and self._clock.fence_ms() >= self._kill_at_ms:
            self._kill_at_ms = None
            send(self.pid, signal.SIGKILL)
        return False


def reaped() -> dict[int, int]:
    """The children that have ended since the last call, and their exit statuses, 128 + n for a signal."""
    found: dict[int, int] = {}
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            code = os.waitstatus_to_exitcode(status)
            found[pid] = code if code >= 0 else 128 - code
    return found


def is_child(pid: int) -> bool:
    """Whether this is a child, ended or not, that has not been waited for; False where the platform cannot tell."""
    if not hasattr(os, "waitid"):
        return False
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def has_children() -> bool:
    """Whether any child is left, ended or not; False where the platform cannot tell."""
    if not hasattr(os, "waitid"):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
