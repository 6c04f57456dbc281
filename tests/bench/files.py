"""Benchmarks of the files adapter: a fenced refresh beside its bare system calls, and what every operation costs.

Measured in turns, so that what else the machine does falls on all of them alike; without fsync, on the directory given
(on the file system that matters: the bar of DESIGN 11 is for ext4).
"""

from __future__ import annotations

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from filelock import StrictSoftFileLock

from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.guard import GuardedFile
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.runtime.leadership import Leadership
from tenure.adapters.trace.recorder import TraceRecorder

Row = dict[str, Any]


def in_turns(what: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median time of one call of each, in microseconds."""
    times: dict[str, list[float]] = {name: [] for name in what}
    for call in what.values():
        for _ in range(20):
            call()
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in what.items():
                started = time.perf_counter()
                call()
                times[name].append((time.perf_counter() - started) * 1e6)
    finally:
        gc.enable()
    return {name: statistics.median(found) for name, found in times.items()}


def bare_refresh(directory: str, registry: bytes) -> Callable[[], None]:
    """The system calls that a fenced refresh needs, and nothing else: stage, look, publish, read the registry, write it
    anew, rename it, read the own guard back, move it away, delete it."""
    resource = f"{directory}/bare.json"
    guard, staged, temporary = f"{resource}.transaction", f"{resource}.transaction.staged.abcdef", f"{resource}.1.1.tmp"
    owner, released = "owner.00000000-0000-4000-8000-000000000001.json", f"{resource}.transaction.released.1"
    flags, payload = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, b"x" * 190
    Path(resource).write_bytes(registry)

    def write(path: str, data: bytes) -> None:
        descriptor = os.open(path, flags, 0o600)
        os.write(descriptor, data)
        os.close(descriptor)

    def read(path: str) -> bytes:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        found = os.read(descriptor, 65536)
        os.close(descriptor)
        return found

    def refresh() -> None:
        os.mkdir(staged, 0o700)
        write(f"{staged}/{owner}", payload)
        try:
            os.lstat(guard)
        except FileNotFoundError:
            os.rename(staged, guard)
        read(resource)
        write(temporary, registry)
        os.rename(temporary, resource)
        read(f"{guard}/{owner}")
        os.rename(guard, released)
        os.unlink(f"{released}/{owner}")
        os.rmdir(released)

    return refresh


def strict_lock(directory: str) -> Callable[[], None]:
    """filelock's StrictSoftFileLock, taken and given back."""
    lock = StrictSoftFileLock(f"{directory}/strict.lock")

    def turn() -> None:
        with lock:
            pass

    return turn


def bench_refresh(place: Path | None, rounds: int) -> list[Row]:
    """Row 4 of DESIGN 11."""
    with tempfile.TemporaryDirectory(dir=place) as room:
        lease = LeaseRuntime(real_ports(), agent_directory(room), "default", cwd=room)
        lease.acquire("plain")
        registry = Path(lease.directory.registry).read_bytes()
        found = in_turns(
            {
                "refresh": lease.refresh,
                "bare": bare_refresh(lease.directory.state, registry),
                "filelock": strict_lock(room),
            },
            rounds,
        )
    return [
        {
            "what": "a fenced lease refresh through the guard, no fsync (bars: 1.6 x bare, 0.5 x filelock)",
            "refresh_us": found["refresh"],
            "bare_us": found["bare"],
            "filelock_us": found["filelock"],
            "ratio_to_bare": found["refresh"] / found["bare"],
            "ratio_to_filelock": found["refresh"] / found["filelock"],
        }
    ]


def bench_operations(place: Path | None, rounds: int) -> list[Row]:
    """What every operation costs, with and without recording."""
    with tempfile.TemporaryDirectory(dir=place) as room:
        recorder = TraceRecorder(f"{room}/trace")
        calls: dict[str, Callable[[], object]] = {}
        for name, ports in (("", real_ports()), (" recorded", real_ports(recorder=recorder))):
            root = f"{room}/agent{name.strip()}"
            os.mkdir(root)
            guard = GuardedFile(ports, f"{root}/thing")
            lease = LeaseRuntime(ports, agent_directory(root), "default", cwd=root)
            other = LeaseRuntime(ports, agent_directory(root), "other", cwd=root)
            lead = Leadership(LeaseRuntime(ports, agent_directory(root), "leading", cwd=root))
            lease.acquire("plain")
            lead.acquire()
            calls |= {
                f"guard{name}": _bound(guard.run, _nothing),
                f"look{name}": lease.look,
                f"check{name}": lease.check,
                f"refresh{name}": lease.refresh,
                f"commit{name}": _bound(lease.commit, _nothing),
                f"may_send{name}": lead.may_send,
                f"acquire and release{name}": _acquire_and_release(other),
            }
        found = in_turns(calls, rounds)
        recorder.close()
    plain = [name for name in found if not name.endswith(" recorded")]
    return [
        {
            "what": name,
            "us": found[name],
            "recorded_us": found[f"{name} recorded"],
            "recording": f"{100 * (found[f'{name} recorded'] / found[name] - 1):+.1f} %",
        }
        for name in plain
    ]


def bench_recording(place: Path | None, rounds: int) -> list[Row]:
    """The recorder alone: the events of one refresh, without the refresh."""
    with tempfile.TemporaryDirectory(dir=place) as room:
        recorder = TraceRecorder(f"{room}/trace")
        node, number = "4711-123456/4711:1700000000000", recorder.order()
        generation = "00000000-0000-4000-8000-000000000001"

        def events() -> None:
            recorder.event("FileTransaction", "Publish", f"{node}@/agent/owners.json", number, None, None, generation)
            recorder.event("LeaderElection", "Write", node, number, None, None, 7)
            recorder.event("FileTransaction", "Verify", f"{node}@/agent/owners.json", number, None, None, generation)

        found = in_turns({"events": events}, rounds * 20)
        recorder.close()
    return [{"what": "recording the events of one refresh", "us": found["events"]}]


def bench_files(place: Path | None = None, rounds: int = 1_500) -> list[Row]:
    """All of them."""
    return [*bench_refresh(place, rounds), *bench_operations(place, rounds // 3), *bench_recording(place, rounds)]


def _acquire_and_release(lease: LeaseRuntime) -> Callable[[], None]:
    def turn() -> None:
        lease.acquire("plain")
        lease.release()

    return turn


def _bound(call: Callable[[Callable[[Any], None]], object], effect: Callable[[Any], None]) -> Callable[[], object]:
    return lambda: call(effect)


def _nothing(inside: object) -> None:
    return
