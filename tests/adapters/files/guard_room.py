"""Several processes around one guarded file in memory, with virtual time: what the tests of the guard share."""

from __future__ import annotations

import errno
from collections.abc import Callable

import attrs

from tenure.adapters.files.guard import Guarded, GuardedFile
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Files, Killed, Ports
from tenure.adapters.testing.faulty import Fault, FaultyFiles, Plan
from tenure.adapters.testing.memory import CountedIdentities, FakeClock, FakeProcesses, MemoryFiles, Notes

DIRECTORY = "/agent/tmp/telegram"
RESOURCE = f"{DIRECTORY}/owners.json"
GUARD = f"{RESOURCE}.transaction"
FAST = Timings(attempts=4, delay_ms=1, rename_attempts=2, rename_delay_ms=1)
DENIED = (errno.EPERM, errno.EBUSY, errno.ENOSPC, errno.EIO, errno.ENOENT)


@attrs.define
class Member:
    """One process: its ports, its guard, what it shares among its threads."""

    ports: Ports
    file: GuardedFile
    files: FaultyFiles
    processes: FakeProcesses


class Room:
    """The directory, the clock and the table of processes that members share."""

    def __init__(self, inner: Files | None = None) -> None:
        self.inner = inner if inner is not None else MemoryFiles(DIRECTORY)
        self.clock = FakeClock()
        self.first = FakeProcesses(1)
        self.identities = CountedIdentities()

    def member(self, pid: int, plan: Plan | None = None, ticks: int = 1, timings: Timings = FAST) -> Member:
        """A process that has just started."""
        files = FaultyFiles(self.inner, plan)
        processes = self.first.as_pid(pid, ticks)
        processes.start(pid, ticks)
        ports = Ports(files, processes, self.clock, self.identities, Notes())
        return Member(ports, GuardedFile(ports, RESOURCE, timings, process=ProcessState()), files, processes)

    def die(self, pid: int) -> None:
        """The process is gone; what it left stays."""
        self.first.kill(pid)

    def left(self) -> list[str]:
        """What lies in the directory."""
        return [name for name in self.inner.entries(DIRECTORY) if name.startswith("owners.json")]


def count_calls(operation: Callable[[Guarded], object] = lambda inside: None, prepare: bool = False) -> int:
    """How many calls on files one undisturbed passage makes; `prepare`: after somebody died inside."""
    room = Room()
    if prepare:
        die_inside(room, 9)
    member = room.member(2)
    member.file.run(operation)
    return len(member.files.calls)


def die_inside(room: Room, pid: int, ticks: int = 1) -> str:
    """A process dies inside; answers the generation of the guard that it leaves."""
    seen: list[str] = []

    def operation(inside: Guarded) -> None:
        seen.append(inside.generation)
        raise Killed

    member = room.member(pid, ticks=ticks)
    try:
        member.file.run(operation)
    except Killed:
        room.die(pid)
    return seen[0]


def one_fault(number: int, fault: Fault) -> Plan:
    """The call with that number has it, once."""
    return lambda call: fault if call.number == number else None
