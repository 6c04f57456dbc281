"""Ports without a world: files in memory, clocks that are set, processes that are told to die, counted identities.

They behave as the real ones do (`tests/adapters` compares `MemoryFiles` with a real directory, call by call), so a
protocol runs on them unchanged, in virtual time.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Callable
from typing import Final

import attrs

from tenure.adapters.ports import READ_LIMIT, Diagnostics, Fields, NodeKind, Ports, Recorder, Watch
from tenure.machines.guard_name import GREATEST_PID
from tenure.machines.identity import GONE, RUNNING, UNKNOWN, Birth, Process, Sighting

BOOT: Final = "00000000-0000-4000-8000-000000000000"
"""The boot of a `FakeProcesses`."""


class MemoryFiles:
    """A tree of files in memory. Directories are sets of names by their paths, files are bytes; `other` marks what is
    neither, as a symbolic link would be."""

    def __init__(self, *directories: str) -> None:
        self.directories: dict[str, set[str]] = {"/": set()}
        self.data: dict[str, bytes] = {}
        self.others: set[str] = set()
        for directory in directories:
            self.make_directories(directory)

    def make_directories(self, path: str) -> None:
        """mkdir -p, for a test's own use."""
        if path not in self.directories:
            self.make_directories(posixpath.dirname(path))
            self.make_directory(path)

    def make_directory(self, path: str) -> None:
        self._new(path)
        self.directories[path] = set()

    def create(self, path: str, data: bytes) -> None:
        self._new(path)
        self.data[path] = data

    def put_other(self, path: str) -> None:
        """Something that is neither a file nor a directory, for a test's own use."""
        self._new(path)
        self.others.add(path)

    def read(self, path: str, *, follow: bool = False) -> bytes:
        kind = self._present(path)
        if kind == "directory":
            raise _error(errno.EISDIR, path)
        if kind == "other":
            raise _error(errno.ELOOP, path)
        if len(self.data[path]) > READ_LIMIT:
            raise _error(errno.EFBIG, path)
        return self.data[path]

    def entries(self, path: str) -> tuple[str, ...]:
        if self._present(path) != "directory":
            raise _error(errno.ENOTDIR, path)
        return tuple(sorted(self.directories[path]))

    def kind(self, path: str) -> NodeKind:
        if path in self.directories:
            return "directory"
        if path in self.data:
            return "file"
        return "other" if path in self.others else "absent"

    def rename(self, source: str, target: str) -> None:
        for parent in (posixpath.dirname(source), posixpath.dirname(target)):  # both ways are walked before the ends
            if self.kind(parent) != "directory":
                missing = self.kind(parent) == "absent"
                raise _error(self._missing(parent) if missing else errno.ENOTDIR, source, target)
        kind = self._present(source)
        there = self.kind(target)
        if kind == "directory" and target.startswith(source + "/"):
            raise _error(errno.EINVAL, source, target)
        if source.startswith(target + "/"):
            raise _error(errno.ENOTEMPTY, source, target)
        if source == target:
            return
        if kind == "directory" and there not in ("absent", "directory"):
            raise _error(errno.ENOTDIR, source, target)
        if kind != "directory" and there == "directory":
            raise _error(errno.EISDIR, source, target)
        if there == "directory" and self.directories[target]:
            raise _error(errno.ENOTEMPTY, source, target)
        if there != "absent":
            self._remove(target)
        self._move(source, target)

    def unlink(self, path: str) -> None:
        if self._present(path) == "directory":
            raise _error(errno.EISDIR, path)
        self._remove(path)

    def remove_directory(self, path: str) -> None:
        if self._present(path) != "directory":
            raise _error(errno.ENOTDIR, path)
        if self.directories[path]:
            raise _error(errno.ENOTEMPTY, path)
        self._remove(path)

    def sync(self, path: str) -> None:
        self._present(path)

    def _present(self, path: str) -> NodeKind:
        kind = self.kind(path)
        if kind == "absent":
            raise _error(self._missing(path), path)
        return kind

    def _missing(self, path: str) -> int:
        """ENOTDIR where something on the way is no directory."""
        while (path := posixpath.dirname(path)) != "/":
            if self.kind(path) in ("file", "other"):
                return errno.ENOTDIR
        return errno.ENOENT

    def _new(self, path: str) -> None:
        if self.kind(path) != "absent":
            raise _error(errno.EEXIST, path)
        parent = posixpath.dirname(path)
        if parent not in self.directories:
            raise _error(self._missing(path) if self.kind(parent) == "absent" else errno.ENOTDIR, path)
        self.directories[parent].add(posixpath.basename(path))

    def _remove(self, path: str) -> None:
        self.directories[posixpath.dirname(path)].discard(posixpath.basename(path))
        self.directories.pop(path, None)
        self.data.pop(path, None)
        self.others.discard(path)

    def _move(self, source: str, target: str) -> None:
        """The node and whatever is below it."""
        for name in self.directories.get(source, ()):
            inner, moved = posixpath.join(source, name), posixpath.join(target, name)
            self._shift(inner, moved)
        parent = posixpath.dirname(source)
        self.directories[parent].discard(posixpath.basename(source))
        self._relabel(source, target)
        self.directories[posixpath.dirname(target)].add(posixpath.basename(target))

    def _shift(self, source: str, target: str) -> None:
        for name in self.directories.get(source, ()):
            self._shift(posixpath.join(source, name), posixpath.join(target, name))
        self._relabel(source, target)

    def _relabel(self, source: str, target: str) -> None:
        if source in self.directories:
            self.directories[target] = self.directories.pop(source)
        elif source in self.data:
            self.data[target] = self.data.pop(source)
        else:
            self.others.discard(source)
            self.others.add(target)


class FakeClock:
    """Clocks that move when told, or when somebody sleeps."""

    def __init__(self, wall_ms: int = 1_700_000_000_000, monotonic_ms: int = 1_000_000) -> None:
        self.wall = wall_ms
        self.monotonic = monotonic_ms
        self.suspended = 0
        """Milliseconds that the machine has been suspended for."""
        self.on_sleep: Callable[[float], None] | None = None
        """Called instead of moving the clocks, for a test that interleaves."""
        self._part = 0.0

    def wall_ms(self) -> int:
        return self.wall

    def monotonic_ms(self) -> int:
        return self.monotonic

    def fence_ms(self) -> int:
        return self.monotonic + self.suspended

    def sleep_ms(self, duration_ms: float) -> None:
        if self.on_sleep is not None:
            self.on_sleep(duration_ms)
        else:
            self.advance(duration_ms)

    def advance(self, duration_ms: float) -> None:
        """Time goes by."""
        whole, self._part = divmod(self._part + duration_ms, 1)
        self.wall += int(whole)
        self.monotonic += int(whole)

    def step(self, by_ms: int) -> None:
        """The wall clock is set; no time goes by."""
        self.wall += by_ms

    def suspend(self, duration_ms: int) -> None:
        """The machine sleeps: the wall clock and the fence go on, the monotonic clock stands."""
        self.wall += duration_ms
        self.suspended += duration_ms


class FakeProcesses:
    """Processes by pid, as one of them (`pid`) sees them; `table` may be shared by several."""

    def __init__(self, pid: int = 100, ticks: int = 1, table: dict[int, Sighting] | None = None) -> None:
        self.table: dict[int, Sighting] = {} if table is None else table
        self.boot_id = BOOT
        self.namespace = 1
        self._me = Process(pid, Birth(ticks, self.boot_id, self.namespace))
        self.table.setdefault(pid, Sighting(RUNNING, ticks))

    def me(self) -> Process:
        return self._me

    def as_pid(self, pid: int, ticks: int = 1) -> FakeProcesses:
        """Another process of the same table."""
        return FakeProcesses(pid, ticks, self.table)

    def sighting(self, pid: int) -> Sighting:
        if pid <= 0:
            return Sighting(UNKNOWN)
        return Sighting(GONE) if pid > GREATEST_PID else self.table.get(pid, Sighting(GONE))

    def watch(self, pid: int, birth: Birth | None) -> Watch | None:
        return None

    def start(self, pid: int, ticks: int = 1) -> None:
        """A process with that pid and birth is there from now on."""
        self.table[pid] = Sighting(RUNNING, ticks)

    def kill(self, pid: int) -> None:
        """It is gone."""
        self.table[pid] = Sighting(GONE)

    def turn(self, pid: int, state: str) -> None:
        """It is in `state` now (ZOMBIE, UNKNOWN...)."""
        self.table[pid] = Sighting(state, self.table.get(pid, Sighting(GONE)).ticks)


class CountedIdentities:
    """1, 2, 3... in the shape of uuids, bits and words: the same in every run."""

    def __init__(self, first: int = 1) -> None:
        self.next = first

    def _count(self) -> int:
        self.next += 1
        return self.next - 1

    def uuid(self) -> str:
        return f"00000000-0000-4000-8000-{self._count():012x}"

    def bits(self, count: int) -> int:
        return self._count() % (1 << count)

    def word(self, length: int) -> str:
        return f"{self._count():0{length}d}"[-length:]


@attrs.define
class Notes:
    """Diagnostics that are kept."""

    kept: list[tuple[str, str, Fields]] = attrs.field(factory=list)

    def note(self, category: str, phase: str, fields: Fields) -> None:
        self.kept.append((category, phase, dict(fields)))

    def said(self, category: str, phase: str = "") -> list[Fields]:
        """What was noted there."""
        return [fields for c, p, fields in self.kept if c == category and phase in ("", p)]


def memory_ports(
    files: MemoryFiles | None = None,
    *,
    processes: FakeProcesses | None = None,
    clock: FakeClock | None = None,
    identities: CountedIdentities | None = None,
    diagnostics: Diagnostics | None = None,
    recorder: Recorder | None = None,
) -> Ports:
    """All ports in memory; what is given is shared."""
    return Ports(
        files or MemoryFiles(),
        processes or FakeProcesses(),
        clock or FakeClock(),
        identities or CountedIdentities(),
        diagnostics or Notes(),
        recorder,
    )


def _error(number: int, *paths: str) -> OSError:
    if len(paths) == 2:
        return OSError(number, os.strerror(number), paths[0], None, paths[1])
    return OSError(number, os.strerror(number), paths[0])
