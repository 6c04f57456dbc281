"""A small recording by the real drivers, in memory: two processes, one registry, a death and a takeover."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Killed
from tenure.adapters.testing.memory import CountedIdentities, FakeClock, FakeProcesses, MemoryFiles, memory_ports
from tenure.adapters.trace.api import MemoryRecorder
from tenure.adapters.trace.lines import Event

QUICK = Timings(attempts=3, delay_ms=1, rename_attempts=3, rename_delay_ms=1)


class Town:
    """Processes of one directory and one recording."""

    def __init__(self) -> None:
        self.recorder = MemoryRecorder()
        self.files = MemoryFiles("/agent")
        self.processes = FakeProcesses()
        self.clock = FakeClock()
        self.identities = CountedIdentities()

    def lease(self, pid: int, *, state: ProcessState | None = None, instance: str = "") -> LeaseRuntime:
        """A runtime of process `pid`."""
        self.processes.start(pid)
        ports = memory_ports(
            self.files,
            processes=self.processes.as_pid(pid),
            clock=self.clock,
            identities=self.identities,
            recorder=self.recorder,
        )
        return LeaseRuntime(
            ports,
            AgentDirectory("/agent"),
            "default",
            cwd="/here",
            instance_id=instance or f"{pid}:1",
            timings=QUICK,
            process=state or ProcessState(),
        )

    def kill(self, pid: int) -> None:
        """The process is gone."""
        self.processes.kill(pid)


def takeover() -> list[Event]:
    """201 acquires, refreshes, commits and dies inside; 202 takes the guard and the lease over, refreshes, releases."""
    town = Town()
    first, second = town.lease(201), town.lease(202)
    first.acquire("plain")
    for _ in range(3):
        first.refresh()
    first.commit(lambda epoch: None)
    second.look()

    def die(epoch: int) -> None:
        raise Killed

    try:
        first.commit(die)
    except Killed:
        town.kill(201)
    second.acquire("plain")
    second.refresh()
    second.commit(lambda epoch: None)
    second.release()
    return town.recorder.events


def write(events: Sequence[Event], directory: Path, *, renumber: bool = True) -> list[Path]:
    """The events as files, one for each process, with their numbers in the file unless told otherwise."""
    files: dict[str, list[Event]] = {}
    for event in events:
        files.setdefault(event.process, []).append(event)
    paths = []
    for process, mine in files.items():
        path = directory / f"{process}.trace"
        if renumber:
            for seq, event in enumerate(mine, 1):
                event.seq = seq
        path.write_text("".join(f"{event.text()}\n" for event in mine), encoding="utf-8")
        paths.append(path)
    return paths


def find(events: Sequence[Event], action: str, process: str, which: int = 0) -> int:
    """The index of the event number `which` of its kind."""
    return [i for i, e in enumerate(events) if e.action == action and e.process.startswith(process)][which]


Doctor = Callable[[list[Event]], None]
