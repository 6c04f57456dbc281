"""Deaths of real processes, as the adapter sees them."""

from __future__ import annotations

import platform
import subprocess
import sys
import time

import pytest

from tenure.adapters.files.processes import processes
from tenure.machines.identity import RUNNING, ZOMBIE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads outlive their first one in /proc")

_FIRST_THREAD_ENDS = """
import ctypes, sys, threading
threading.Thread(target=sys.stdin.readline).start()
ctypes.CDLL(None).syscall(ctypes.c_long(int(sys.argv[1])), 0)
"""
_SYS_EXIT = {"x86_64": 60, "ppc64le": 1, "s390x": 1, "i686": 1, "armv7l": 1}
"""The number of exit(2), where it is not that of all newer machines."""


def test_a_process_whose_first_thread_has_ended_is_dead_only_with_its_last_one() -> None:
    """/proc calls it a zombie, but another thread may be in the middle of a rename: no proof of death."""
    number = _SYS_EXIT.get(platform.machine(), 93)
    child = subprocess.Popen([sys.executable, "-c", _FIRST_THREAD_ENDS, str(number)], stdin=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 20
        while _state(child.pid) != "Z":
            assert time.monotonic() < deadline
        assert processes().sighting(child.pid).state == RUNNING
        watch = processes().watch(child.pid, None)
        assert child.stdin is not None
        child.stdin.close()
        if watch is not None:
            assert watch.wait(20_000)
            watch.close()
        while processes().sighting(child.pid).state != ZOMBIE:
            assert time.monotonic() < deadline
    finally:
        child.kill()
        child.wait()


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]
