"""Processes with leases on one registry, in virtual time: what the tests of the lease share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import attrs

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardLost
from tenure.adapters.files.lease import Guard, Held, LeaseRuntime, Won
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Files, Ports, Recorder
from tenure.adapters.testing.faulty import Call, Fault, FaultyFiles, Plan
from tenure.adapters.testing.memory import CountedIdentities, FakeClock, FakeProcesses, MemoryFiles, Notes
from tenure.machines.entry import parse_entry
from tenure.machines.identity import Owner

ROOT = "/agent"
LEASE_MS = 8_000
FOREIGN = {"pid": 50, "cwd": "/there", "instanceId": "50:1", "leaderEpoch": "e0", "runtimeGeneration": 5}
QUICK = Timings(stale_ms=8_000, attempts=3, delay_ms=1, rename_attempts=3, rename_delay_ms=1)


@attrs.define
class Dweller:
    """One process: its ports, and what its runtimes share."""

    ports: Ports
    files: FaultyFiles
    processes: FakeProcesses
    state: ProcessState
    notes: Notes
    directory: AgentDirectory

    def lease(
        self,
        key: str = "default",
        *,
        cwd: str | None = "/here",
        instance_id: str | None = None,
        guard: Guard | None = None,
        timings: Timings = QUICK,
        bus_secret: str | None = None,
    ) -> LeaseRuntime:
        """A runtime of this process."""
        return LeaseRuntime(
            self.ports,
            self.directory,
            key,
            cwd=cwd,
            instance_id=instance_id,
            timings=timings,
            process=self.state,
            guard=guard,
            bus_secret=bus_secret,
        )


class House:
    """The directory, the clocks and the table of processes that all share."""

    def __init__(self, inner: Files | None = None, root: str = ROOT) -> None:
        self.inner: Files = MemoryFiles(root) if inner is None else inner
        self.directory = AgentDirectory(root)
        self.clock = FakeClock()
        self.first = FakeProcesses(1)
        self.identities = CountedIdentities()

    def process(
        self, pid: int, plan: Plan | None = None, *, ticks: int = 1, recorder: Recorder | None = None
    ) -> Dweller:
        """A process that has just started."""
        files, notes = FaultyFiles(self.inner, plan), Notes()
        processes = self.first.as_pid(pid, ticks)
        processes.start(pid, ticks)
        ports = Ports(files, processes, self.clock, self.identities, notes, recorder)
        return Dweller(ports, files, processes, ProcessState(), notes, self.directory)

    def die(self, pid: int) -> None:
        """The process is gone; what it left stays."""
        self.first.kill(pid)

    def pause(self, duration_ms: int) -> None:
        """Time goes by."""
        self.clock.advance(duration_ms)

    def text(self) -> bytes | None:
        """The registry's bytes, None where there is none."""
        try:
            return self.inner.read(self.directory.registry)
        except FileNotFoundError:
            return None

    def registry(self) -> dict[str, dict[str, object]]:
        """What the registry says."""
        text = self.text()
        found: dict[str, dict[str, object]] = {} if text is None else json.loads(text)
        return found

    def mark(self) -> int:
        """The high-water mark."""
        try:
            found = json.loads(self.inner.read(self.directory.high_water))
        except FileNotFoundError:
            return 0
        assert list(found) == ["highWater"]
        mark: int = found["highWater"]
        return mark

    def write(self, content: bytes | Mapping[str, object]) -> None:
        """Somebody else writes the registry."""
        self.make_state()
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        if self.inner.kind(self.directory.registry) == "file":
            self.inner.unlink(self.directory.registry)
        self.inner.create(self.directory.registry, data)

    def make_state(self) -> None:
        """DIR/tmp/telegram is there."""
        for path in (f"{self.directory.root}/tmp", self.directory.state):
            if self.inner.kind(path) == "absent":
                self.inner.make_directory(path)

    def left(self) -> list[str]:
        """Whatever lies in the state directory besides registry and mark."""
        return [n for n in self.inner.entries(self.directory.state) if n not in ("owners.json", "epochs.json")]


def won(lease: LeaseRuntime) -> Won:
    answer = lease.acquire("plain")
    assert isinstance(answer, Won)
    return answer


def held(lease: LeaseRuntime) -> Held:
    answer = lease.acquire("plain")
    assert isinstance(answer, Held)
    return answer


def owner(house: House, key: str = "default") -> Owner:
    entry = parse_entry(house.registry()[key])
    assert entry is not None
    return entry.owner


def foreign(house: House, **fields: object) -> None:
    """A process of the other system owns the key: no birth, no stamp; pid 50 runs."""
    house.first.start(50, 9)
    house.write({"default": {**FOREIGN, "heartbeatMs": house.clock.wall, **fields}})


def renames_registry(house: House, fault: Fault, times: int = 1) -> Callable[[Call], Fault | None]:
    """The next `times` renames over the registry have that fault, once switched on by `armed`."""
    left = times

    def plan(call: Call) -> Fault | None:
        nonlocal left
        if call.name == "rename" and call.paths[1] == house.directory.registry and left:
            left -= 1
            return fault
        return None

    return plan


class LosesGuard:
    """An abstract transaction that is lost while the operation runs."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile = meanwhile
        self.number = 0

    def run(self, operation: Callable[[LosesGuard], object], *, attempts: int | None = None) -> object:
        operation(self)
        self.meanwhile()
        raise GuardLost("owners.json.transaction: another guard stands where mine was")
