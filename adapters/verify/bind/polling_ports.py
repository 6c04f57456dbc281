"""What `Polling` stands on, as calls: a lease, a work, a registration."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

from tenure.adapters.errors import TenureError
from tenure.adapters.files.lease import Held, NotOwner, Won
from tenure.adapters.files.timings import Timings
from tenure.adapters.runtime.work import Ended, Registered
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.replay import Replay
from tenure.machines import polling_messages as own
from tenure.machines.entry import Entry as RegistryEntry
from tenure.machines.identity import Owner
from tenure.machines.leader_messages import Me, Runtime

T = TypeVar("T")

NAME: Final = "new"
PID: Final = 100
TIMINGS: Final = Timings(delay_ms=1_000, check_ms=1_000, refresh_ms=2_000)


class BoundLease:
    """A lease whose operations are calls."""

    def __init__(self, controlled: ControlledPorts, replay: Replay) -> None:
        self._ask = replay.ask
        self.ports = controlled.ports()
        self.timings = TIMINGS
        self.node = NAME
        self.data = Runtime(Me(controlled.me(), None, NAME, TIMINGS.stale_ms), "work")
        self.epoch = 1

    def acquire(self, mode: str, expected: Owner | None = None) -> Won | Held:
        answer = self._do("acquire", mode, 0 if expected is None else expected.pid)
        if answer is None:
            return Won(1, "plain")
        owner = Owner(answer, None, None, None) if answer else None
        entry = None if owner is None else RegistryEntry(owner.pid, None, None, None, None, None)
        return Held(entry, "active-elsewhere" if answer else "inactive")

    def check(self) -> own.Saw:
        found: own.Saw = self._ask("check")
        return found

    def refresh(self, *, attempts: int | None = None) -> own.Saw:
        found: own.Saw = self._ask("refresh")
        return found

    def lease_passed(self) -> bool:
        found: bool = self._ask("passed")
        return found

    def release(self, *, attempts: int | None = None) -> None:
        self._do("release")

    def commit(self, effect: Callable[[int], T], *, attempts: int | None = None) -> T:
        if not self._do("enter"):
            raise NotOwner("it is another's")
        result = effect(1)
        self._do("leave")
        return result

    def _do(self, name: str, *args: Hashable) -> Any:
        try:
            return self._ask(name, *args)
        except OSError as error:
            raise TenureError("the guard is busy") from error


class BoundWork:
    """A work whose calls are calls."""

    def __init__(self, replay: Replay) -> None:
        self._ask = replay.ask

    def attach(self, wake: Callable[[], None]) -> None:
        return

    def prepare(self, epoch: int) -> None:
        self._ask("prepare")

    def ready(self) -> bool:
        return True

    def start(self, epoch: int) -> None:
        self._ask("work.start")

    def stop(self) -> None:
        self._ask("work.stop")

    def ended(self) -> Ended | None:
        found: str | None = self._ask("ended")
        return None if found is None else Ended(found)

    def clean_up(self) -> None:
        self._ask("clean_up")

    def fileno(self) -> int:
        return -1


class BoundRegistration:
    """A registration whose calls are calls."""

    def __init__(self, replay: Replay) -> None:
        self._ask = replay.ask

    def register(self, owner: Owner | None) -> Registered:
        found: Registered = self._ask("register")
        return found

    def unregister(self) -> None:
        self._ask("unregister")
