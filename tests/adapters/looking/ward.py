"""An agent directory in memory, in the states that ``status`` and ``doctor`` look at: what their tests share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Ports
from tenure.adapters.testing.faulty import FaultyFiles, Plan
from tenure.adapters.testing.memory import BOOT, CountedIdentities, FakeClock, FakeProcesses, MemoryFiles, Notes

DIRECTORY: Final = AgentDirectory("/agent")
STATE: Final = DIRECTORY.state
REGISTRY: Final = DIRECTORY.registry
GUARD: Final = DIRECTORY.guard
RECOVERY: Final = f"{DIRECTORY.recovery_guard}.transaction"
FAST: Final = Timings(attempts=4, delay_ms=1, rename_attempts=2, rename_delay_ms=1)
GENERATION: Final = "11111111-1111-4111-8111-111111111111"
CLAIM: Final = "22222222-2222-4222-8222-222222222222"
HOLDER: Final = 77
"""The pid that files here name if they name one."""

Tree = dict[str, bytes | str]


class Ward:
    """The directory, its clock and its processes. The observer is pid 100; 77 is not there unless it is started."""

    def __init__(self) -> None:
        self.files = MemoryFiles(STATE)
        self.clock = FakeClock()
        self.processes = FakeProcesses(100)
        self.identities = CountedIdentities()

    def ports(self, pid: int = 100, plan: Plan | None = None) -> Ports:
        """The ports of a process that looks."""
        processes = self.processes.as_pid(pid)
        return Ports(FaultyFiles(self.files, plan), processes, self.clock, self.identities, Notes())

    def tree(self) -> Tree:
        """Everything that is there."""
        found: Tree = dict.fromkeys(self.files.directories, "directory")
        return {**found, **self.files.data, **dict.fromkeys(self.files.others, "other")}

    def put(self, path: str, content: object) -> None:
        """A file, in place of any that is there; what is neither text nor bytes is written as JSON."""
        if isinstance(content, str):
            content = content.encode()
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.files.make_directories(path.rpartition("/")[0])
        if self.files.kind(path) != "absent":
            self.files.unlink(path)
        self.files.create(path, data)

    def entry(self, key: str = "default", pid: int = HOLDER, age_ms: int = 500, **fields: object) -> dict[str, object]:
        """An entry of ours; a field that is None is left out."""
        made: dict[str, object] = {
            "pid": pid,
            "cwd": "/home",
            "instanceId": f"{pid}:1",
            "heartbeatMs": self.clock.wall - age_ms,
            "leaderEpoch": 4,
            "runtimeGeneration": 9,
            "processBirth": birth(),
            "monotonicMs": self.clock.monotonic - age_ms,
        }
        return {name: value for name, value in {**made, **fields}.items() if value is not None}

    def own(self, key: str = "default", **fields: object) -> None:
        """The registry with that one entry."""
        self.put(REGISTRY, {key: self.entry(**fields)})

    def guard(self, path: str = GUARD, name: str = f"owner.{GENERATION}.json", **fields: object) -> None:
        """A guard of `HOLDER`, taken 3 s ago, in which `fields` of the payload are others."""
        self.put(f"{path}/{name}", self.payload(**fields))

    def payload(self, **fields: object) -> dict[str, object]:
        made = {"pid": HOLDER, "acquiredAtMs": self.clock.wall - 3_000, "generation": GENERATION, **fields}
        return {name: value for name, value in made.items() if value is not None}

    def stop(self, pid: int = HOLDER, letter: str = "T") -> None:
        """A process that runs, or is stopped, as /proc says."""
        self.processes.start(pid)
        self.put(f"/proc/{pid}/stat", f"{pid} (a (b) c) {letter} 1 1 1")


def birth(ticks: int = 1, boot: str = BOOT, namespace: int = 1) -> Mapping[str, object]:
    """What the registry and a guard record of a process's birth."""
    return {"ticks": ticks, "bootId": boot, "pidNamespace": namespace}


def _empty(ward: Ward) -> None:
    ward.files.make_directories(GUARD)


def _two_files(ward: Ward) -> None:
    ward.guard()
    ward.guard(name="owner.x.json", generation="x")


BAD_GUARDS: Final[Mapping[str, tuple[Callable[[Ward], None], str]]] = {
    "empty": (_empty, "it is empty"),
    "two files": (_two_files, "it has 2 files instead of one"),
    "foreign name": (lambda ward: ward.guard(name="lock"), "foreign name in it: 'lock'"),
    "torn": (lambda ward: ward.put(f"{GUARD}/owner.x.json", '{"pid": 7'), "owner.x.json: bad JSON"),
    "nothing in the file": (lambda ward: ward.put(f"{GUARD}/owner.x.json", ""), "owner.x.json: empty"),
    "no object": (lambda ward: ward.put(f"{GUARD}/owner.x.json", "[1]"), "owner.x.json: not a JSON object"),
    "another generation": (lambda ward: ward.guard(generation="y"), "says generation 'y', its name another"),
    "pid zero": (lambda ward: ward.guard(pid=0), "implausible pid 0"),
    "negative pid": (lambda ward: ward.guard(pid=-1), "implausible pid -1"),
    "fractional pid": (lambda ward: ward.guard(pid=1.5), "implausible pid 1.5"),
    "pid true": (lambda ward: ward.guard(pid=True), "implausible pid True"),
    "pid as text": (lambda ward: ward.guard(pid="7"), "implausible pid '7'"),
    "no pid": (lambda ward: ward.guard(pid=None), "is missing or has a wrong type"),
    "symlink": (lambda ward: ward.files.put_other(GUARD), "a symbolic link"),
    "symlink inside": (lambda ward: _link_inside(ward), "not a regular file"),
    "a file that is no guard": (lambda ward: ward.put(GUARD, "hello"), "a regular file (guard of 0.22.0): bad JSON"),
}
"""Guards that are unverifiable: how each is made, and what is said of it (issue 3, "Bad input")."""


def _link_inside(ward: Ward) -> None:
    ward.files.make_directories(GUARD)
    ward.files.put_other(f"{GUARD}/owner.x.json")


BAD_REGISTRIES: Final[Mapping[str, tuple[bytes, str]]] = {
    "torn": (b'{"default": {"pid": 7', "bad JSON"),
    "empty": (b"", "empty"),
    "array": (b"[]", "instead of a JSON object"),
    "number": (b"12", "instead of a JSON object"),
    "null": (b"null", "instead of a JSON object"),
    "text": (b"hello", "bad JSON"),
    "NaN": (b'{"default": NaN}', "NaN"),
    "not UTF-8": (b'{"default": "\xff"}', "UTF-8"),
    "two values": (b"{} {}", "bad JSON"),
}
"""Registries that nobody can use, and what is said of each."""
