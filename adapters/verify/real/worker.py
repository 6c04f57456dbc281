"""One process of a run: it stands by, leads, commits effects, releases, and does so until it is killed."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.host import HostClock, RandomIdentities, Silent
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.files.processes import processes
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Clock, Files, Ports, Processes
from tenure.adapters.runtime.leadership import Leadership
from tenure.adapters.runtime.outcomes import Elected
from tenure.adapters.testing.faulty import FaultyFiles
from tenure.adapters.trace.recorder import TraceRecorder
from tenure.adapters.verify.real.ports import ReusedPids, SteppingClock, failing

EFFECTS = "effects"


@attrs.frozen
class Faults:
    """What a run does to its processes."""

    kill: bool = True
    stop: bool = False
    """SIGSTOP and SIGCONT, also past the lease."""
    fail: float = 0.0
    """How often a rename or a write fails."""
    reuse: bool = False
    """Pids are used again."""
    clock: bool = False
    """Wall clocks step."""
    endpoint: bool = False
    """The leader's endpoint is taken away, and answers that go through it are lost."""


@attrs.frozen
class Room:
    """Where a run happens."""

    root: Path

    @property
    def agent(self) -> Path:
        """The agent directory."""
        return self.root / "agent"

    @property
    def trace(self) -> Path:
        """The recording."""
        return self.root / "trace"

    @property
    def pids(self) -> Path:
        """Who has which of the pids that are used again."""
        return self.root / "pids"

    @property
    def updates(self) -> Path:
        """Where the queue of updates listens, if there is one."""
        return self.root / "updates"

    @property
    def effects(self) -> Path:
        """What was committed: a line with the epoch when an effect begins, one when it ends."""
        return self.root / EFFECTS


def ports_of(room: Room, faults: Faults, slot: int, seed: int, timings: Timings) -> Ports:
    """The real ports, changed as the run wants."""
    files: Files = PosixFiles()
    clock: Clock = HostClock()
    who: Processes = processes()
    if faults.fail:
        files = FaultyFiles(files, failing(random.Random(seed), faults.fail))
    if faults.clock:
        clock = SteppingClock(random.Random(seed + 1), 3 * timings.stale_ms)
    if faults.reuse:
        who = ReusedPids(who, room.pids, 1 + slot)
    return Ports(files, who, clock, RandomIdentities(), Silent(), TraceRecorder(room.trace))


def work(room: Room, faults: Faults, slot: int, seed: int, timings: Timings) -> None:
    """Live until killed."""
    ports = ports_of(room, faults, slot, seed, timings)
    chance = random.Random(seed + 2)
    directory = AgentDirectory(str(room.agent))
    lead = Leadership(LeaseRuntime(ports, directory, "default", cwd=str(room.agent), timings=timings))
    while True:
        try:
            if isinstance(lead.acquire_in_turn(timeout_ms=60_000), Elected):
                tenure(lead, room, chance, timings)
        except TenureError:
            time.sleep(timings.check_ms / 1000)  # a failing disk; it goes on, as a supervisor would


def tenure(lead: Leadership, room: Room, chance: random.Random, timings: Timings) -> None:
    """Lead for a while: keep the lease, commit now and then, leave by a release or by losing it."""
    until = time.monotonic() + chance.uniform(0.5, 4) * timings.stale_ms / 1000
    while lead.phase == "active" and time.monotonic() < until:
        due = lead.pump()
        if lead.phase == "active" and chance.random() < 0.5:
            try:
                lead.commit_if_owned(lambda epoch: effect(room, epoch))
            except TenureError:
                continue
        time.sleep(min(due, chance.uniform(0, timings.check_ms)) / 1000)
    if lead.phase == "active":
        lead.release(timeout_ms=timings.stale_ms)


def effect(room: Room, epoch: int) -> None:
    """Something that must not be interleaved with another's: two lines of one epoch behind each other."""
    descriptor = os.open(room.effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"+{epoch} {os.getpid()}\n".encode())
        os.write(descriptor, f"-{epoch} {os.getpid()}\n".encode())
    finally:
        os.close(descriptor)


def interleaved(lines: list[str]) -> str:
    """What is wrong with the effects; empty if nothing is. One that was begun and not ended belongs to a process that
    was killed in it. Epochs never go back; 0, or a text, stands for an owner of another system, whose epochs have no
    order. A line that begins with ! is a command's: the registry had another epoch while it ran."""
    highest, open_ = 0, ""
    for line in lines:
        sign, said = line[:1], line[1:]
        word = said.split()[0]
        epoch = int(word) if word.isdigit() else 0
        if sign == "!":
            return f"a command ran under epoch {word}, which the registry did not have"
        if 0 < epoch < highest:
            return f"an effect of epoch {epoch} came after one of {highest}"
        highest = max(highest, epoch)
        if sign == "-" and said != open_:
            return f"the effect {said!r} was interleaved with {open_!r}"
        open_ = said if sign == "+" else ""
    return ""
