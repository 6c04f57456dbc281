"""What the threads and runtimes of one process share: who is inside which guard, which reclaims run, who was newest."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tenure.machines.identity import next_generation


class Nested(Exception):
    """The thread is inside this guard already: entering it again would wait for itself (hole K13)."""


class ProcessState:
    """One per process; tests that play several processes in one give each its own. All methods are thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._inside: dict[str, int] = {}
        self.running: set[str] = set()
        """The uuids of claim markers whose reclaim runs in this process now (locks.md 3.1 R3, hole K16)."""
        self.unreleased: dict[str, str] = {}
        """Guards that this process could not move away: path and generation. Its next passage does that first."""
        self.swept: dict[str, int] = {}
        """When debris was swept last: path and monotonic time in ms."""
        self.suspects: dict[str, int] = {}
        """Debris that names nobody: path, and the monotonic time at which this process saw it first."""
        self.generation = 0
        """The highest generation that a runtime of this process has had (S19)."""

    @contextmanager
    def alone(self, path: str, timeout_ms: float) -> Iterator[bool]:
        """Take the guard at `path` among the threads of this process; False when that took too long.

        Raises `Nested` for a thread that is inside.
        """
        me = threading.get_ident()
        with self._mutex:
            if self._inside.get(path) == me:
                raise Nested(path)
            lock = self._locks.setdefault(path, threading.Lock())
        taken = lock.acquire(timeout=max(timeout_ms / 1000, 0.0))
        if taken:
            self._inside[path] = me
        try:
            yield taken
        finally:
            if taken:
                del self._inside[path]
                lock.release()

    def begin_reclaim(self, uuid: str) -> None:
        """From now on the reclaim of this marker runs here."""
        with self._mutex:
            self.running.add(uuid)

    def end_reclaim(self, uuid: str) -> None:
        """It does not any more, however it ended."""
        with self._mutex:
            self.running.discard(uuid)

    def next_generation(self, wall_ms: int) -> tuple[int, int]:
        """The generation of a runtime that starts now, and the highest before it (locks.md 2.1, S19)."""
        with self._mutex:
            previous = self.generation
            self.generation = next_generation(wall_ms, previous)
            return self.generation, previous


_states: dict[int, ProcessState] = {}


def process_state() -> ProcessState:
    """That of this process. A fork begins with a new one: what its parent's threads hold is not its own."""
    pid = os.getpid()
    found = _states.get(pid)
    if found is None:
        _states.clear()
        found = _states.setdefault(pid, ProcessState())
    return found
