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
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn

import attrs

from tenure.adapters.lead.channel import Why
from tenure.adapters.lead.lock import processes
from tenure.adapters.ports import Clock

NOT_STARTED: Final = 125
"""The exit status of a child that was never told to become COMMAND."""
NOT_EXECUTABLE: Final = 126
NOT_FOUND: Final = 127
"""Exit statuses of a COMMAND that cannot be executed, as shells have them."""

_READY: Final = b"r"
_GO: Final = b"g"
_SET_CHILD_SUBREAPER: Final = 36
_INHERITED_FROM: Final = 100
"""The lowest number that the inherited descriptor may have: scripts and shells use the low ones as they like."""
# What Python ignores, and what a guardian does; a COMMAND starts with the defaults.
_TO_RESET: Final = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGCHLD", "SIGPIPE", "SIGXFSZ")
    if hasattr(signal, name)
)


@attrs.frozen
class Started:
    """A child in a session of its own that becomes COMMAND when told so: its pid is known before COMMAND exists."""

    pid: int
    told: int
    """Write end: one byte lets it go; when it is closed instead, the child ends."""
    answer: int
    """Read end: end of file when COMMAND runs, an error number when it cannot be executed."""

    def go(self) -> None:
        """Let it become COMMAND."""
        os.write(self.told, _GO)
        os.close(self.told)


def prepare(command: Sequence[str], environment: Mapping[str, str], inherited: int, ignored: frozenset[int]) -> Started:
    """Fork the child of a COMMAND that inherits a copy of the descriptor `inherited`, and all that are inheritable.

    `ignored` are the signals that were ignored when this program started (by nohup, say), and stay so. The calling
    process has one thread. Everything is done when this returns, but for the exec.
    """
    told, tell = os.pipe()
    answer, say = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(tell)
            os.close(answer)
            os.setsid()
            fcntl.fcntl(inherited, fcntl.F_DUPFD, _INHERITED_FROM)
            _default_signals(ignored)
            os.write(say, _READY)
            if os.read(told, 1) == _GO:
                _become(command, environment, say)
        finally:
            os._exit(NOT_STARTED)
    os.close(told)
    os.close(say)
    os.read(answer, 1)  # ready, or gone already, which waitpid will say
    os.set_blocking(answer, False)
    return Started(pid, tell, answer)


def executed(answer: int) -> int | None:
    """What `Started.answer` says: 0 when COMMAND runs, an error number when it cannot, None for nothing yet."""
    try:
        found = os.read(answer, 16)
    except BlockingIOError:
        return None
    return int(found) if found else 0


def _become(command: Sequence[str], environment: Mapping[str, str], say: int) -> NoReturn:
    try:
        os.execvpe(command[0], list(command), dict(environment))
    except OSError as error:
        number = error.errno or errno.EIO
    except ValueError:  # a NUL byte
        number = errno.EINVAL
    with suppress(OSError):  # the guardian is gone; the status says it as well
        os.write(say, str(number).encode())
    os._exit(exec_status(number))


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
    state, _, its_group = line[line.rindex(b")") + 2 :].split(maxsplit=3)[:3]
    return state not in (b"Z", b"X", b"x") and int(its_group) == group


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


def has_children() -> bool:
    """Whether any child is left, ended or not; False where the platform cannot tell."""
    if not hasattr(os, "waitid"):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
