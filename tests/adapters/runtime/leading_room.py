"""A room for tests of leading: several processes in memory, one directory, one clock, faults on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import attrs

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardedFile
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.registry import parse_registry
from tenure.adapters.ports import Ports
from tenure.adapters.runtime.leadership import Leadership
from tenure.adapters.runtime.outcomes import Elected, Lost, Outcome
from tenure.adapters.runtime.work import Ended, NoWork, Registration
from tenure.adapters.testing.faulty import FaultyFiles, Plan
from tenure.adapters.testing.memory import CountedIdentities, FakeClock, FakeProcesses, MemoryFiles, Notes
from tenure.adapters.trace.api import MemoryRecorder
from tenure.machines.entry import Entry

T = TypeVar("T")

DIRECTORY = AgentDirectory("/agent")


class Recorded(NoWork):
    """A work that says what it was told, fails on demand, and drains for as long as the test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []
        self.fails: set[str] = set()
        self.is_ready = True
        self.drains = False
        self.ends = ""
        self.live = False

    def prepare(self, epoch: int) -> None:
        self._hear("prepare")

    def ready(self) -> bool:
        return self.is_ready

    def start(self, epoch: int) -> None:
        self._hear("start")
        self.running = self.live = True

    def stop(self) -> None:
        self.running, self.live = False, self.live and self.drains
        self._hear("stop")

    def ended(self) -> Ended | None:
        if self.ends:
            self.live = False
            return Ended("" if self.ends == "done" else self.ends)
        return None if self.live else Ended()

    def clean_up(self) -> None:
        self._hear("clean_up")

    def _hear(self, what: str) -> None:
        self.heard.append(what)
        if what in self.fails:
            raise RuntimeError(f"{what} failed")


@attrs.define
class Member:
    """One runtime, with what a test wants to see of it."""

    lead: Leadership
    work: Recorded
    told: list[Outcome]
    notes: Notes
    files: FaultyFiles

    @property
    def kinds(self) -> list[str]:
        """What it was told, by name."""
        return [type(outcome).__name__ for outcome in self.told]


class Room:
    """Processes that share a directory. Time goes by when a test says so."""

    def __init__(self) -> None:
        self.files = MemoryFiles(DIRECTORY.root)
        self.clock = FakeClock()
        self.processes = FakeProcesses(1)
        self.identities = CountedIdentities()
        self.states: dict[int, ProcessState] = {}
        self.recorder = MemoryRecorder()
        self.members: list[Member] = []

    def ports(self, pid: int, ticks: int = 1, plan: Plan | None = None) -> Ports:
        """The ports of process `pid`."""
        files = FaultyFiles(self.files, plan)
        processes = self.processes.as_pid(pid, ticks)
        processes.start(pid, ticks)
        return Ports(files, processes, self.clock, self.identities, Notes(), self.recorder)

    def member(
        self,
        pid: int,
        *,
        cwd: str | None = "/bot",
        ticks: int = 1,
        interactive: bool = True,
        registration: Registration | None = None,
        ports: Ports | None = None,
        on_elected: Callable[[Elected], None] | None = None,
        on_lost: Callable[[Lost], None] | None = None,
    ) -> Member:
        """A runtime of process `pid`; a second one of the same process is a reload."""
        ports = ports or self.ports(pid, ticks)
        state = self.states.setdefault(pid * 1000 + ticks, ProcessState())
        work, told = Recorded(), list[Outcome]()
        lease = LeaseRuntime(ports, DIRECTORY, "default", cwd=cwd, process=state)
        lead = Leadership(
            lease,
            work=work,
            registration=registration,
            interactive=interactive,
            on_elected=on_elected,
            on_lost=on_lost,
            on_outcome=told.append,
            process=state,
        )
        assert isinstance(ports.files, FaultyFiles)
        assert isinstance(ports.diagnostics, Notes)
        member = Member(lead, work, told, ports.diagnostics, ports.files)
        self.members.append(member)
        return member

    def kill(self, member: Member) -> None:
        """Its process dies: what it left stays, and it does nothing any more."""
        self.processes.kill(member.lead.lease.data.me.process.pid)
        member.files.dead = True
        self.members.remove(member)

    def while_busy(self, pid: int, then: Callable[[], T]) -> T:
        """`then`, while process `pid` is inside the registry's guard."""
        return GuardedFile(self.ports(pid), DIRECTORY.registry, process=ProcessState()).run(lambda inside: then())

    @property
    def entry(self) -> Entry | None:
        """The entry that stands in the registry."""
        return parse_registry(self.files.data.get(DIRECTORY.registry)).entry("default")

    def run(self, duration_ms: int, *members: Member, step_ms: int = 50) -> None:
        """Time goes by, and the members (all of them if none is named) look after their leases."""
        until = self.clock.monotonic_ms() + duration_ms
        while self.clock.monotonic_ms() < until:
            self.clock.advance(step_ms)
            for member in members or self.members:
                member.lead.pump()
