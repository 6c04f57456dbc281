"""An agent directory in memory, and the processes around it: what most tests of a program that leads begin with."""

from __future__ import annotations

from itertools import count

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardedFile
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.ports import Ports
from tenure.adapters.runtime.leadership import Leadership
from tenure.adapters.runtime.work import Work
from tenure.adapters.testing.faulty import FaultyFiles, Plan
from tenure.adapters.testing.memory import CountedIdentities, FakeClock, FakeProcesses, MemoryFiles, Notes
from tenure.adapters.testing.registry import MemoryRegistry
from tenure.adapters.trace.api import MemoryRecorder, Verdict, explained
from tenure.machines.lease import DEFAULT_KEY


class FakeProcess:
    """One process: its own pid, files that may fail, and what its threads and runtimes share.

    `files.plan` decides which of its calls fail (`tenure.adapters.testing.faulty`); `notes` is what its adapters said.
    """

    def __init__(self, agent: FakeAgent, pid: int, ticks: int, plan: Plan | None) -> None:
        self.agent = agent
        self.pid = pid
        self.files = FaultyFiles(agent.files, plan)
        self.notes = Notes()
        self.processes = agent.processes.as_pid(pid, ticks)
        self.processes.start(pid, ticks)
        self.state = ProcessState()
        self.ports = Ports(self.files, self.processes, agent.clock, agent.identities, self.notes, agent.recorder)

    def guard(self, path: str | None = None) -> GuardedFile:
        """A guard of this process: that of the registry, or of the file at `path`."""
        resource = self.agent.directory.registry if path is None else path
        return GuardedFile(self.ports, resource, self.agent.timings, process=self.state)

    def lease(self, key: str = DEFAULT_KEY, *, cwd: str | None = "/here") -> LeaseRuntime:
        """A new runtime of this process, with a lease on `key`."""
        return LeaseRuntime(
            self.ports, self.agent.directory, key, cwd=cwd, timings=self.agent.timings, process=self.state
        )

    def leadership(self, key: str = DEFAULT_KEY, *, work: Work | None = None, cwd: str | None = "/here") -> Leadership:
        """A new runtime of this process that may lead."""
        return Leadership(self.lease(key, cwd=cwd), work=work, process=self.state)


class FakeAgent:
    """The directory, the clocks and the table of processes that all share, and a recording of what they do."""

    def __init__(self, timings: Timings = DEFAULT, *, root: str = "/agent") -> None:
        self.timings = timings
        self.directory = AgentDirectory(root)
        self.files = MemoryFiles(root)
        self.clock = FakeClock()
        self.processes = FakeProcesses(1)
        self.identities = CountedIdentities()
        self.recorder = MemoryRecorder()
        self.registry = MemoryRegistry(self.files, self.directory.registry)
        self._pids = count(101)

    def process(self, plan: Plan | None = None, *, pid: int | None = None, ticks: int = 1) -> FakeProcess:
        """A process that starts now; with a `pid` that was used before and other `ticks`, one that has got it again."""
        return FakeProcess(self, next(self._pids) if pid is None else pid, ticks, plan)

    def kill(self, process: FakeProcess) -> None:
        """The process is gone, as by SIGKILL: what it left stays, and whatever it still tries raises `Killed`."""
        process.files.dead = True
        self.processes.kill(process.pid)

    def explained(self) -> Verdict:
        """Whether all that was recorded is a behaviour of the specification."""
        return explained(self.recorder)

    def assert_explained(self) -> None:
        """Fails with the first event that no behaviour explains, and what refused it."""
        verdict = self.explained()
        assert verdict, str(verdict)
