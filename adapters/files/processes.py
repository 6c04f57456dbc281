"""`Processes` of this machine: births from /proc, deaths by pidfd (locks.md 3.4; DESIGN 10, proof of death).

A process is dead when its pidfd says so, when its state is Z or X and it has no other thread, when there is no such
pid, or when the pid has other start ticks. A zombie is dead: nothing of it runs any more. (The other system's probe
calls it alive until it is reaped, and waits that long.) But the state is the first thread's: while others go on, as for
a moment in every killed process that has several, a rename of theirs may be under way. Where there is no /proc the
births come from ps, and deaths are asked for.
"""

from __future__ import annotations

import errno
import os
import select
import subprocess
import sys
from contextlib import suppress
from functools import cache

from tenure.adapters.ports import Processes, Watch
from tenure.machines.guard_name import GREATEST_PID
from tenure.machines.identity import GONE, RUNNING, UNKNOWN, ZOMBIE, Birth, Process, Sighting

_ZOMBIE_STATES = ("Z", "X", "x")


class PidWatch:
    """A pidfd."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def wait(self, timeout_ms: int) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(timeout_ms))

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class LinuxProcesses:
    """Births and states from /proc; deaths by pidfd where the kernel has it."""

    def __init__(self) -> None:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            self._boot_id = file.read().strip()
        self._me: Process | None = None

    def me(self) -> Process:
        pid = os.getpid()
        if self._me is None or self._me.pid != pid:
            ticks = _stat(pid)[1]
            assert ticks is not None, "a process can always read its own birth"
            self._me = Process(pid, Birth(ticks, self._boot_id, os.stat("/proc/self/ns/pid").st_ino))
        return self._me

    def sighting(self, pid: int) -> Sighting:
        if pid <= 0:
            return Sighting(UNKNOWN)
        if pid > GREATEST_PID:
            return Sighting(GONE)
        try:
            state, ticks, threads = _stat(pid)
        except (FileNotFoundError, ProcessLookupError):
            return _signal_zero(pid)
        except (OSError, ValueError):
            return Sighting(UNKNOWN)
        return Sighting(ZOMBIE if state in _ZOMBIE_STATES and threads <= 1 else RUNNING, ticks)

    def watch(self, pid: int, birth: Birth | None) -> Watch | None:
        if not hasattr(os, "pidfd_open") or not 0 < pid <= GREATEST_PID:
            return None
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return None
        # The pid may have changed hands before the descriptor was opened; from here on it cannot.
        seen = self.sighting(pid)
        if birth is not None and (seen.state != RUNNING or seen.ticks != birth.ticks):
            os.close(descriptor)
            return None
        return PidWatch(descriptor)


class PsProcesses:
    """Births from ps, for platforms without /proc; deaths have to be asked for."""

    def __init__(self) -> None:
        self._boot_id = _run("sysctl", "-n", "kern.boottime") or "unknown"
        self._me: Process | None = None

    def me(self) -> Process:
        pid = os.getpid()
        if self._me is None or self._me.pid != pid:
            self._me = Process(pid, Birth(self.sighting(pid).ticks or 0, self._boot_id, 0))
        return self._me

    def sighting(self, pid: int) -> Sighting:
        if pid <= 0:
            return Sighting(UNKNOWN)
        if pid > GREATEST_PID:
            return Sighting(GONE)
        found = _run("ps", "-o", "state=,lstart=", "-p", str(pid)).split()
        if not found:
            return _signal_zero(pid)
        # Start times in seconds stand for ticks: what counts is that another process has another one.
        ticks = int.from_bytes(" ".join(found[1:]).encode(), "big") % 2**62
        return Sighting(ZOMBIE if found[0].startswith("Z") else RUNNING, ticks)

    def watch(self, pid: int, birth: Birth | None) -> Watch | None:
        return None


@cache
def processes() -> Processes:
    """Those of this platform."""
    return LinuxProcesses() if sys.platform == "linux" else PsProcesses()


def _stat(pid: int) -> tuple[str, int | None, int]:
    """State, start ticks and threads of a process; field 2, its name, may hold blanks and brackets."""
    descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        line = os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
    fields = line[line.rindex(b")") + 2 :].split()
    return fields[0].decode("ascii"), int(fields[19]), int(fields[17])


def _signal_zero(pid: int) -> Sighting:
    """Signal 0: the probe where /proc hides the process, or is not there (locks.md 3.4)."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return Sighting(GONE if error.errno == errno.ESRCH else RUNNING)
    return Sighting(RUNNING)


def _run(*command: str) -> str:
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, timeout=5, env={"LC_ALL": "C"}).stdout.strip()
    return ""
