"""Many processes on one directory, forked from a server that has imported everything, killed and stopped at random."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerProcess
from typing import Any

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["tests.real.crowd", "tenure.adapters.files.guard", "tenure.adapters.files.host"])

Target = Callable[..., Any]


class Crowd:
    """Slots, each with a process that runs its target; one that was killed is started anew."""

    def __init__(self, targets: list[tuple[Target, tuple[Any, ...]]], seed: int) -> None:
        self.targets = targets
        self.random = random.Random(seed)
        self.members: list[ForkServerProcess] = [self._start(n) for n in range(len(targets))]
        self.stopped: dict[int, float] = {}
        self.kills = 0
        self.stops = 0

    def _start(self, slot: int) -> ForkServerProcess:
        target, arguments = self.targets[slot]
        process = context.Process(target=target, args=arguments, daemon=True)
        process.start()
        return process

    def disturb(self, seconds: float, *, pause: float = 0.05, stop_for: float = 0.0) -> None:
        """For so long: kill somebody every `pause` seconds on average, or stop and continue it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.random.expovariate(1 / pause))
            for slot, until in list(self.stopped.items()):
                if time.monotonic() >= until:
                    self._signal(slot, signal.SIGCONT)
                    del self.stopped[slot]
            slot = self.random.randrange(len(self.members))
            if slot in self.stopped:
                continue
            if stop_for and self.random.random() < 0.3:
                self._signal(slot, signal.SIGSTOP)
                self.stopped[slot] = time.monotonic() + self.random.uniform(0, stop_for)
                self.stops += 1
            else:
                self._signal(slot, signal.SIGKILL)
                self.members[slot].join(10)
                self.members[slot] = self._start(slot)
                self.kills += 1

    def _signal(self, slot: int, number: int) -> None:
        pid = self.members[slot].pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def end(self) -> None:
        """Nobody is left."""
        for slot, member in enumerate(self.members):
            self._signal(slot, signal.SIGKILL)
            member.join(10)
        self.stopped.clear()


@contextlib.contextmanager
def crowd(targets: list[tuple[Target, tuple[Any, ...]]], seed: int) -> Iterator[Crowd]:
    """A crowd that is gone afterwards, whatever happens."""
    found = Crowd(targets, seed)
    try:
        yield found
    finally:
        found.end()
