"""What a program does with a `LeaseRuntime`, and the guard around it: one inside at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.lease_values import Inside
from tenure.adapters.verify.bind.replay import Replay
from tenure.machines.identity import Owner

T = TypeVar("T")


class AbstractGuard:
    """One inside at a time, and one that has died lets the next one in."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay

    def run(self, operation: Callable[[Inside], T], *, attempts: int | None = None) -> T:
        try:
            self.replay.ask("begin")
        except OSError as error:
            raise TenureError("the guard is busy") from error
        try:
            result = operation(Number())
        except Exception:
            self.replay.ask("leave")
            raise
        self.replay.ask("leave")
        return result


@attrs.frozen
class Number:
    """What the guard tells the operation."""

    number: int = 0


def _elect(lease: LeaseRuntime, replay: Replay) -> None:
    lease.acquire("elect", _shown(lease))


def _force(lease: LeaseRuntime, replay: Replay) -> None:
    lease.acquire("force", _shown(lease))


def _resume(lease: LeaseRuntime, replay: Replay) -> None:
    lease.acquire("resume", _shown(lease))


def _send(lease: LeaseRuntime, replay: Replay) -> None:
    epoch = lease.may_send()
    if epoch is not None:
        replay.ask("send", epoch)


def _shown(lease: LeaseRuntime) -> Owner | None:
    entry = lease.look().entry
    return None if entry is None else entry.owner


OPERATIONS: Final[Mapping[str, Callable[[LeaseRuntime, Replay], object]]] = {
    "acquire": lambda lease, replay: lease.acquire("plain"),
    "elect": _elect,
    "force": _force,
    "resume": _resume,
    "refresh": lambda lease, replay: lease.refresh(),
    "release": lambda lease, replay: lease.release(),
    "commit": lambda lease, replay: lease.commit(lambda epoch: replay.ask("effect", epoch)),
    "check": lambda lease, replay: lease.check(),
    "send": _send,
}
