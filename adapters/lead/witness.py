"""Who sees a committer die: a process that then kills what is left of the committer's command.

It has one end of a pipe, and the committer alone has the other. At the end of file it kills the process group that it
was told last, until nothing of it is left. It is nobody's child, and has nothing open but the pipe and the lock, which
it keeps for those of the group that have closed theirs.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import Final, NoReturn

from tenure.adapters.lead import group

_LOOK_S: Final = 0.002
_TRIES: Final = 2_000
"""How often a group is killed again: what cannot be killed (it waits for a disk) is left to its fate."""
_MOST_DESCRIPTORS: Final = 65_536


class Witness:
    """The committer's end. To be made before this process adopts orphans."""

    def __init__(self, lock: int) -> None:
        """Fork it. Raises OSError where there can be no process."""
        hear, self._tell = os.pipe()
        try:
            pid = os.fork()
            if pid == 0:
                try:
                    os.close(self._tell)
                    if os.fork() == 0:
                        _serve(hear, lock)
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)
        except OSError:
            os.close(self._tell)
            raise
        finally:
            os.close(hear)

    def watch(self, number: int) -> None:
        """From now on the group of that number is to be killed at this process's death."""
        with suppress(BrokenPipeError):
            os.write(self._tell, b"%d\n" % number)

    def dismiss(self) -> None:
        """Nothing is left to be killed."""
        self.watch(0)
        os.close(self._tell)


def _serve(hear: int, lock: int) -> NoReturn:
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        most, first = os.sysconf("SC_OPEN_MAX"), 0
        for kept in (*sorted((hear, lock)), most if 0 < most < _MOST_DESCRIPTORS else _MOST_DESCRIPTORS):
            os.closerange(first, kept)
            first = kept + 1
        said = b""
        while more := os.read(hear, 64):
            said += more
        numbers = [int(word) for word in said.split()]
        if numbers and numbers[-1] != 0:
            _kill(numbers[-1])
    finally:
        os._exit(0)


def _kill(number: int) -> None:
    for _ in range(_TRIES):
        if group.gone(number):
            return
        group.send(number, signal.SIGKILL)
        time.sleep(_LOOK_S)
