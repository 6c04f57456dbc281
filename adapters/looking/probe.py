"""What a directory and a platform give, by trying it: ``tenure doctor --probe`` (DESIGN 10).

Everything is tried in a subdirectory of its own, which is removed again. Nothing else in the directory is touched.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Final

from tenure.adapters.errors import TenureError
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.files.processes import processes
from tenure.adapters.looking import probe_platform as platform
from tenure.adapters.looking.probe_report import Probe, Row
from tenure.adapters.ports import Files
from tenure.machines.identity import GONE

_LEFT: Final = re.compile(r"\.tenure-probe-([1-9][0-9]{0,9})-[0-9a-f]{8}")
"""What a probe that was killed left."""
_TIMES: Final = 21
_ROOM: Final = 16 * 2**20
"""Bytes below which a warning is due: a registry, a journal and a quarantine are far smaller."""


def probe(directory: str, files: Files | None = None) -> Probe:
    """Measure. Raises `TenureError` where nothing can be written: then there is nothing to measure."""
    files = files or PosixFiles()
    state = os.path.join(directory, "tmp", "telegram")
    base = state if os.path.isdir(state) else directory
    before = _offset_ns()
    try:
        place = _own_place(files, base)
    except OSError as error:
        raise TenureError(
            f"{base}: nothing can be written there: {error.strerror}; make it writable for this user"
        ) from error
    try:
        rows = [
            platform.file_system(base),
            _room(base),
            *_renames(files, place),
            *_timings(files, place),
            *platform.locks(place),
            platform.socket_path(place, os.path.join(state, f".pt-{'0' * 16}.sock")),
            *platform.processes(),
            *platform.clocks(),
            wall_clock(_offset_ns() - before),
            sqlite(sqlite3.sqlite_version_info),
        ]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Probe(directory, tuple(rows))


def _own_place(files: Files, base: str) -> str:
    """A fresh directory in `base`, in which a file has been written."""
    for name in files.entries(base):
        match = _LEFT.fullmatch(name)
        if match and processes().sighting(int(match[1])).state == GONE:
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)
    place = os.path.join(base, f".tenure-probe-{os.getpid()}-{uuid.uuid4().hex[:8]}")
    files.make_directory(place)
    try:
        files.create(os.path.join(place, "first"), b"1")
    except OSError:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return place


# -- the file system ------------------------------------------------------------


def _renames(files: Files, place: str) -> Iterator[Row]:
    """The atomicity that a guard is made of (locks.md 3.1): a rename of a directory, and what it replaces."""

    def path(*names: str) -> str:
        return os.path.join(place, *names)

    refused = _refused(lambda: files.create(path("first"), b"2"))
    yield _must(
        "exclusive create",
        bool(refused) and files.read(path("first")) == b"1",
        f"refused ({refused})",
        "no file is overwritten by its making",
    )
    for name in ("one", "two", "three", "four", "empty"):
        files.make_directory(path(name))
    files.create(path("one", "a"), b"")
    files.create(path("two", "b"), b"")
    refused = _refused(lambda: files.rename(path("one"), path("two")))
    kept = files.kind(path("one", "a")) == "file" and files.kind(path("two", "b")) == "file"
    yield _must(
        "rename onto a guard", bool(refused) and kept, f"refused ({refused})", "one holder inside a guard at a time"
    )
    refused = _refused(lambda: files.rename(path("three"), path("first")))
    kept = files.kind(path("three")) == "directory" and files.kind(path("first")) == "file"
    yield _must(
        "rename onto a file", bool(refused) and kept, f"refused ({refused})", "a guard of 0.22.0 keeps everybody out"
    )
    refused = _refused(lambda: files.rename(path("four"), path("empty")))
    found = f"refused ({refused})" if refused else "replaces it"
    yield Row("rename onto an empty one", found, "an empty directory is no guard: it is looked for first", "quiet")
    files.create(path("old"), b"1")
    files.create(path("new"), b"2")
    failed = _refused(lambda: files.rename(path("new"), path("old")))
    whole = not failed and files.read(path("old")) == b"2"
    yield _must("rename over a file", whole, "replaces it", "readers see the old registry or the new one")
    failed = _refused(lambda: files.sync(place))
    if failed:
        yield Row("fsync of a directory", failed, "epochs may repeat after a power cut", "warn")
    else:
        yield Row("fsync of a directory", "works", "epochs survive a power cut")


def _must(name: str, holds: bool, found: str, means: str) -> Row:
    if holds:
        return Row(name, found, means)
    return Row(name, "not as it has to be", f"tenure cannot run here: it needs this for: {means}", "bad")


def _refused(act: Callable[[], object]) -> str:
    """With which error an act is refused; empty if it is not."""
    try:
        act()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _timings(files: Files, place: str) -> Iterator[Row]:
    one, other, durable = (os.path.join(place, name) for name in ("here", "there", "durable"))
    files.make_directory(one)
    files.create(durable, b"x")
    renames = []
    for _ in range(_TIMES // 2 + 1):
        renames.append(_took(lambda: files.rename(one, other)))
        renames.append(_took(lambda: files.rename(other, one)))
    yield _timed("time of a rename", renames, 20.0, "a guard costs two of them")
    syncs = [_took(lambda: files.sync(durable)) for _ in range(_TIMES)]
    yield _timed("time of an fsync", syncs, 250.0, "an election costs two of them, a refresh none")


def _timed(name: str, times: list[float], limit_ms: float, means: str) -> Row:
    median = statistics.median(times)
    slow = median > limit_ms
    text = f"{means}; slow: a lease of 8 s has little room" if slow else means
    return Row(
        name, f"{median:.3f} ms (median of {len(times)}, longest {max(times):.3f})", text, "warn" if slow else "good"
    )


def _took(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return (time.perf_counter() - started) * 1000


def _room(base: str) -> Row:
    found = os.statvfs(base)
    free, nodes = found.f_bavail * found.f_frsize, found.f_favail
    text = f"{free / 2**20:,.0f} MiB" + (f", {nodes:,} files" if found.f_files else "")
    if free < _ROOM or (found.f_files and nodes < 100):
        return Row("free space", text, "a heartbeat that cannot be written is a lost lease: free some space", "warn")
    return Row("free space", text)


# -- what is linked, and the wall clock -----------------------------------------


def wal_is_safe(version: tuple[int, int, int]) -> bool:
    """Whether this SQLite has the fix for the WAL-reset race (DESIGN 10): 3.51.3, 3.50.7, 3.44.6 or later of each."""
    major, minor, patch = version
    if (major, minor) == (3, 50):
        return patch >= 7
    if (major, minor) == (3, 44):
        return patch >= 6
    return version >= (3, 51, 3)


def sqlite(version: tuple[int, int, int]) -> Row:
    """The linked SQLite."""
    text = ".".join(map(str, version))
    if wal_is_safe(version):
        return Row("SQLite", text, "has the fix for the WAL-reset race: WAL may be used")
    return Row(
        "SQLite", text, "without the fix for the WAL-reset race: a journal is kept by rollback, never WAL", "quiet"
    )


def wall_clock(drift_ns: int) -> Row:
    """By how much the wall clock moved against the monotonic one while this probe ran."""
    drift = drift_ns / 1e6
    found = f"{drift:+.1f} ms against the monotonic clock while measuring"
    if abs(drift) > 100:
        return Row(
            "wall clock", found, "it steps: leases of systems without our stamps may look stale or endless", "warn"
        )
    return Row("wall clock", found, "only other systems' heartbeats rest on it")


def _offset_ns() -> int:
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
