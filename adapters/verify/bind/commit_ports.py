"""What `Committer` stands on, as calls: guard, lock and command; and what the registry says."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardBusy, Guarded, GuardLost
from tenure.adapters.files.standing import Standing
from tenure.adapters.files.timings import Timings
from tenure.adapters.lead.commit import Bounds, Event
from tenure.adapters.testing.memory import BOOT
from tenure.adapters.verify.bind.controlled import MONOTONIC_MS, WALL_MS
from tenure.adapters.verify.bind.replay import Replay
from tenure.machines.identity import Epoch
from tenure.models.fenced_commit import Lease

T = TypeVar("T")

DIRECTORY: Final = AgentDirectory("/agent")
KEY: Final = "work"
OWNER: Final = 300
"""The pid of the owner of epoch 0; of the others, so many more."""
TIMINGS: Final = Timings(attempts=2, delay_ms=0)
BOUNDS: Final = Bounds(100, 10)
FIRST: Final = Lease(1, "fresh")


@attrs.frozen(cache_hash=True)
class Extra:
    """What the world has beside the registry's text. `commands`: none, running, deaf; `asked`: SIGTERM was sent;
    `lock`: whose it is; `times`: how much has gone by for each."""

    entry: Lease = FIRST
    readable: bool = True
    guard: str = "nobody"
    lock: str = ""
    stray: bool = False
    commands: tuple[str, ...] = ("none", "none")
    times: tuple[int, ...] = (0, 0)


class Desk:
    """Guard, lock and command of one committer, as calls. `at`: where it is, for who looks at it."""

    def __init__(self, replay: Replay) -> None:
        self._ask = replay.ask
        self.at = ""
        self.started = False
        self.answer = ""
        """What the caller was told."""

    def _do(self, name: str, *args: Hashable) -> Any:
        self.at = name
        try:
            return self._ask(name, *args)
        except OSError as error:
            raise TenureError(f"{name} failed") from error
        finally:
            self.at = ""

    # -- the guard --
    def run(self, operation: Callable[[Guarded], T], *, attempts: int | None = None) -> T:
        if not self._do("begin"):
            raise GuardBusy("the guard is busy", Standing("held"))
        try:
            result = operation(Guarded("", 0))
        except Exception:
            self._do("leave")
            raise
        if not self._do("leave"):
            raise GuardLost("the guard was not there any more")
        return result

    # -- the lock --
    def open_lock(self) -> Desk:
        self._do("lock.open")
        return self

    def take(self) -> bool:
        return bool(self._do("take"))

    def close(self) -> None:
        self._do("unlock")

    def holders(self) -> str:
        return "somebody"

    # -- the command --
    def start(self, epoch: Epoch) -> None:
        self._do("start", epoch)
        self.started = True

    def wait(self, timeout_ms: float) -> Event:
        found: Event = self._do("wait", timeout_ms)
        return found

    def pause(self, timeout_ms: float) -> None:
        self._do("pause")

    def terminate(self) -> None:
        self._do("terminate")

    def destroy(self) -> None:
        self._do("destroy")

    def gone(self) -> bool:
        return bool(self._do("gone"))


def registry_of(extra: Extra) -> bytes:
    """What stands in the registry."""
    if not extra.readable:
        return b'{"work": {"pid": 3'
    if extra.entry.state == "none":
        return b"{}"
    stamp = MONOTONIC_MS - (TIMINGS.stale_ms + 1 if extra.entry.state == "passed" else 0)
    epoch = extra.entry.epoch
    entry = {
        "pid": OWNER + epoch,
        "instanceId": str(epoch),
        "heartbeatMs": WALL_MS,
        "leaderEpoch": epoch,
        "processBirth": {"ticks": 1, "bootId": BOOT, "pidNamespace": 1},
        "monotonicMs": stamp,
    }
    return json.dumps({KEY: entry}).encode()
