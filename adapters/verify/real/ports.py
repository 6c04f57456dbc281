"""What a run changes of the world through the ports: pids that are used again, clocks that step, calls that fail.

The processes, the kills and the files are real; only what cannot be had from the operating system on demand is not.
"""

from __future__ import annotations

import errno
import json
import os
import random
from pathlib import Path
from typing import Final

import attrs

from tenure.adapters.files.host import HostClock
from tenure.adapters.ports import Clock, Processes, Watch
from tenure.adapters.testing.faulty import Call, Fails, Fault, Plan
from tenure.machines.identity import GONE, Birth, Process, Sighting

RENAMES: Final = (errno.EBUSY, errno.EPERM)
WRITES: Final = (errno.ENOSPC, errno.EIO, errno.EBUSY)


class ReusedPids:
    """Pids out of a handful, given out again and again: `directory` says who has which now.

    A process that takes a pid over has its own birth, so that the last one with that pid is dead.
    """

    def __init__(self, inner: Processes, directory: Path, pid: int) -> None:
        self.inner = inner
        self.directory = directory
        real = inner.me()
        self._me = Process(pid, real.birth)
        temporary = directory / f"{pid}.{real.pid}"
        temporary.write_text(json.dumps([real.pid, real.birth.ticks]), encoding="utf-8")
        os.replace(temporary, directory / str(pid))

    def me(self) -> Process:
        return self._me

    def sighting(self, pid: int) -> Sighting:
        found = self._behind(pid)
        if found is None:
            return Sighting(GONE)
        real, ticks = found
        seen = self.inner.sighting(real)
        # The real pid may have been used again as well: then whoever had it is gone.
        return seen if seen.ticks == ticks else Sighting(GONE)

    def watch(self, pid: int, birth: Birth | None) -> Watch | None:
        found = self._behind(pid)
        return None if found is None or (birth and birth.ticks != found[1]) else self.inner.watch(found[0], birth)

    def _behind(self, pid: int) -> tuple[int, int] | None:
        try:
            real, ticks = json.loads((self.directory / str(pid)).read_text(encoding="utf-8"))
        except OSError:
            return None
        return int(real), int(ticks)


@attrs.define
class SteppingClock:
    """The machine's clocks, with a wall clock that somebody sets now and then, further than a lease lasts."""

    random: random.Random
    far_ms: int
    inner: Clock = attrs.field(factory=HostClock)
    offset: int = 0

    def wall_ms(self) -> int:
        if self.random.random() < 0.02:
            self.offset = self.random.choice((-self.far_ms, 0, self.far_ms))
        return self.inner.wall_ms() + self.offset

    def monotonic_ms(self) -> int:
        return self.inner.monotonic_ms()

    def fence_ms(self) -> int:
        return self.inner.fence_ms()

    def sleep_ms(self, duration_ms: float) -> None:
        self.inner.sleep_ms(duration_ms)


def failing(chance: random.Random, often: float) -> Plan:
    """Renames and writes that fail now and then, before they are done or after."""

    def plan(call: Call) -> Fault | None:
        if call.name not in ("rename", "create", "make_directory", "sync") or chance.random() >= often:
            return None
        number = chance.choice(RENAMES if call.name == "rename" else WRITES)
        return Fails(number, "after" if call.name == "rename" and chance.random() < 0.3 else "before")

    return plan
