"""CMD of ``tenure commit`` as processes: started with the lock, bound to the committer's life, ended to the last one.

On Linux three things together keep CMD from outliving its committer. The kernel kills CMD when the committer dies
(PR_SET_PDEATHSIG), before anybody can see that death. A witness, who waits for the end of file of a pipe that the
committer alone has open, then kills the rest of CMD's group. And while the committer lives, every descendant of CMD
whose parent dies becomes its child (PR_SET_CHILD_SUBREAPER), so that it knows when nothing is left, whatever left the
group. Where the platform has less, the group is all that is ended, and the witness all that ends it.

What leaves the group and outlives a killed committer is not ended: it has the lock, and keeps later commands out. What
leaves the group and closes the descriptors that it inherited is nobody's any more; no lock can help there.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn

from tenure.adapters.errors import TenureError
from tenure.adapters.lead import group
from tenure.adapters.lead.channel import Bell
from tenure.adapters.lead.commit import Event
from tenure.adapters.lead.lock import WorkLock, holders, processes
from tenure.adapters.lead.witness import Witness
from tenure.machines.identity import Epoch

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that ask a committer to end."""

_LINUX: Final = sys.platform == "linux"
_SET_PDEATHSIG: Final = 1
_GO: Final = b"g"
_IGNORABLE: Final = frozenset({signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
"""What nohup, or a shell for its background jobs, ignores on purpose: stays ignored, here and in CMD."""
# What Python ignores or this program handles; CMD starts with the defaults.
_TO_RESET: Final = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGCHLD", "SIGPIPE", "SIGXFSZ")
    if hasattr(signal, name)
)


class SharedLock(WorkLock):
    """The lock of a key's commits."""

    def holders(self) -> str:
        """Who has it, in words."""
        found = ", ".join(map(str, holders(self.path)))
        return f"an earlier command has not ended: {found}" if found else "an earlier commit has not ended"


class ProcessErrand:
    """One command, run once. To be made in the main thread of a process that does nothing else; `close` gives the
    signals back."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], lock: str) -> None:
        self.status: int | None = None
        """The command's exit status once it has ended, 128 + n for a signal."""
        self.asked: int | None = None
        """The signal that asked this process to end."""
        self._command = tuple(command)
        self._environment = dict(environment)
        self._path = lock
        self._lock: SharedLock | None = None
        self._ignored = frozenset(n for n in _IGNORABLE if signal.getsignal(n) == signal.SIG_IGN)
        # Ctrl-Z does nothing: who stops inside the guard holds everybody up, and a commit is short.
        self._bell = Bell([signal.SIGCHLD, signal.SIGTSTP, *(n for n in ENDING if n not in self._ignored)])
        self._heard = False
        self._witness: Witness | None = None
        self._adopts = False
        self._before: frozenset[int] = frozenset()
        self._pid = 0
        self._reaped = False

    def open_lock(self) -> SharedLock:
        """The lock that the command will inherit. Raises TenureError where there can be none."""
        self._lock = SharedLock(self._path)
        return self._lock

    def close(self) -> None:
        """Signals are handled as before."""
        self._bell.close()

    # -- its life -----------------------------------------------------------------------------------------------------

    def start(self, epoch: Epoch) -> None:
        """Fork the witness, then the command, which begins when the witness knows of it."""
        assert self._lock is not None, "the lock comes first"
        environment = self._environment | {"TENURE_EPOCH": str(epoch)}
        try:
            self._witness = Witness(self._lock.fileno())
            self._adopts = group.adopt_orphans()
            self._before = frozenset(_children())
            self._pid, go = _spawn(self._command, environment, self._lock.fileno(), self._ignored)
        except OSError as error:
            if self._witness is not None:
                self._witness.dismiss()
            raise TenureError(f"no process for {self._command[0]}: {error.strerror}; nothing was run") from error
        self._witness.watch(self._pid)
        with suppress(BrokenPipeError):
            os.write(go, _GO)
        os.close(go)

    def wait(self, timeout_ms: float) -> Event:
        """Wait for the command's end, for a signal, or for the time."""
        event = self._event()
        if event == "nothing":
            self.pause(timeout_ms)
            event = self._event()
        return event

    def pause(self, timeout_ms: float) -> None:
        """Until something has happened to a child, or the time is over."""
        signals = self._bell.wait((), timeout_ms)
        self.asked = next((n for n in ENDING if n in signals and self.asked is None), self.asked)

    def _event(self) -> Event:
        self._reap()
        if self.status is not None:
            return "ended"
        if self.asked is not None and not self._heard:
            self._heard = True
            return "interrupted"
        return "nothing"

    # -- its end ------------------------------------------------------------------------------------------------------

    def terminate(self) -> None:
        """SIGTERM to the group, and to what has left it."""
        self._signal(signal.SIGTERM)

    def destroy(self) -> None:
        """SIGKILL to the group, and to what has left it. Their children are the next ones to be found."""
        self._signal(signal.SIGKILL)

    def gone(self) -> bool:
        """Whether nothing of the command is left; then the witness is dismissed."""
        if self._pid == 0:
            return True
        self._reap()
        if self.status is None or (self._descendants() if self._adopts else not group.gone(self._pid)):
            return False
        if not self._reaped:
            os.waitpid(self._pid, 0)
            self._reaped = True
        if self._adopts and not self._before and group.has_children():
            return False  # a list of children that end while it is read may lack one; this does not
        if self._witness is not None:
            self._witness.dismiss()
            self._witness = None
        return True

    def _descendants(self) -> frozenset[int]:
        """The children that descend from the command: its own, those of the dead. Without the command itself, which
        is reaped last: until then nobody else gets its pid, which names the group."""
        return frozenset(_children()) - self._before - {self._pid}

    def _signal(self, number: int) -> None:
        # Where orphans are not adopted the command is reaped at its end; its number stays the group's while that lives.
        if not self._reaped or not (self._adopts or group.gone(self._pid)):
            group.send(self._pid, number)
        # Once: to a process that ends in an orderly way a second SIGTERM often means something else.
        for pid in {self._pid} | self._descendants() if self._adopts else {self._pid}:
            with suppress(ProcessLookupError, PermissionError):
                if (pid != self._pid or not self._reaped) and os.getpgid(pid) != self._pid:
                    os.kill(pid, number)
                    os.kill(pid, signal.SIGCONT)

    def _reap(self) -> None:
        """Read the command's status; it stays a zombie where that harms nobody. Its orphans are reaped."""
        if self._pid == 0:
            return
        for pid in self._descendants() if self._adopts else ():
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if self._reaped:
            return
        if self._adopts:
            found = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                exited = found.si_code == os.CLD_EXITED
                self.status = found.si_status if exited else 128 + found.si_status
            return
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid != 0:
            code = os.waitstatus_to_exitcode(status)
            self.status, self._reaped = code if code >= 0 else 128 - code, True


def _spawn(
    command: Sequence[str], environment: Mapping[str, str], lock: int, ignored: frozenset[int]
) -> tuple[int, int]:
    """Fork the child that becomes the command when a byte comes through the descriptor that is answered with its pid;
    at its end of file the child ends."""
    prctl = ctypes.CDLL(None).prctl if _LINUX else None
    parent = os.getpid()
    hear, go = os.pipe()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            try:
                os.close(go)
                os.setsid()
                if prctl is not None:
                    prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                os.set_inheritable(lock, True)
                _default_signals(ignored)
                # A parent that died before the kernel was told is another one now, and has closed the pipe.
                if os.read(hear, 1) == _GO and os.getppid() == parent:
                    _become(command, environment)
            finally:
                os._exit(group.NOT_STARTED)
    except OSError:
        os.close(go)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(hear)
    return pid, go


def _default_signals(ignored: frozenset[int]) -> None:
    for number in _TO_RESET:
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _become(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    try:
        os.execvpe(command[0], list(command), dict(environment))
    except OSError as error:
        said, status = error.strerror, group.exec_status(error.errno or 0)
    except ValueError as error:  # a NUL byte
        said, status = str(error), group.NOT_EXECUTABLE
    os.write(2, f"tenure: {command[0]}: {said}\n".encode(errors="replace"))
    os._exit(status)


def _children() -> list[int]:
    """The children of this process, where one can tell."""
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children", "rb", buffering=0) as file:
            return [int(word) for word in file.read(1 << 20).split()]
    except OSError:
        return [pid for pid in processes() if _parent(pid) == me]


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            line = file.read(1024)
    except OSError:
        return 0
    return int(line[line.rindex(b")") + 2 :].split()[1])
