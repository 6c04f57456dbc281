"""A file system that fails on demand: any call of any `Files` may raise, do half its work, or be the process's last."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeVar

import attrs

from tenure.adapters.ports import Files, Killed, NodeKind

ERRORS: Final = tuple(getattr(errno, name) for name in ("EPERM", "EBUSY", "ENOSPC", "EIO", "ENOENT"))
"""What a call may fail with at any time (issue 3)."""

R = TypeVar("R")
When = Literal["before", "after"]


@attrs.frozen
class Call:
    """One call, before it is made: its name in `Files`, its paths, and its place in the order of all calls (from 0)."""

    name: str
    paths: tuple[str, ...]
    number: int


@attrs.frozen
class Fails:
    """The call raises OSError(`number`); `when` "after": it has been done all the same, and nobody can know."""

    number: int
    when: When = "before"


@attrs.frozen
class Kills:
    """The process dies: `Killed` is raised, and every call afterwards raises it as well. `when` as in `Fails`; `torn`:
    of a file that is being created, only so many bytes were written."""

    when: When = "before"
    torn: int | None = None


Fault = Fails | Kills
Plan = Callable[[Call], Fault | None]


class FaultyFiles:
    """`inner`, with a `plan` that is asked before each call. `calls` are those that were made."""

    def __init__(self, inner: Files, plan: Plan | None = None) -> None:
        self.inner = inner
        self.plan = plan
        self.calls: list[Call] = []
        self.dead = False

    def make_directory(self, path: str) -> None:
        self._do("make_directory", (path,), lambda: self.inner.make_directory(path))

    def create(self, path: str, data: bytes) -> None:
        self._do("create", (path,), lambda: self.inner.create(path, data), data)

    def read(self, path: str, *, follow: bool = False) -> bytes:
        return self._do("read", (path,), lambda: self.inner.read(path, follow=follow))

    def entries(self, path: str) -> tuple[str, ...]:
        return self._do("entries", (path,), lambda: self.inner.entries(path))

    def kind(self, path: str) -> NodeKind:
        return self._do("kind", (path,), lambda: self.inner.kind(path))

    def rename(self, source: str, target: str) -> None:
        self._do("rename", (source, target), lambda: self.inner.rename(source, target))

    def unlink(self, path: str) -> None:
        self._do("unlink", (path,), lambda: self.inner.unlink(path))

    def remove_directory(self, path: str) -> None:
        self._do("remove_directory", (path,), lambda: self.inner.remove_directory(path))

    def sync(self, path: str) -> None:
        self._do("sync", (path,), lambda: self.inner.sync(path))

    def _do(self, name: str, paths: tuple[str, ...], act: Callable[[], R], data: bytes = b"") -> R:
        if self.dead:
            raise Killed
        call = Call(name, paths, len(self.calls))
        fault = None if self.plan is None else self.plan(call)
        self.calls.append(call)
        match fault:
            case Fails(number, when):
                if when == "after":
                    act()
                raise OSError(number, os.strerror(number), *paths[:1])
            case Kills(when, torn):
                self.dead = True
                if torn is not None and name == "create":
                    self.inner.create(paths[0], data[:torn])
                elif when == "after":
                    act()
                raise Killed
        return act()


def at(number: int, fault: Fault) -> Plan:
    """The call with that number has that fault."""
    return lambda call: fault if call.number == number else None


def nth(name: str, number: int, fault: Fault) -> Plan:
    """The `number`th (from 1) call of that name has that fault."""
    seen = 0

    def plan(call: Call) -> Fault | None:
        nonlocal seen
        seen += call.name == name
        return fault if call.name == name and seen == number else None

    return plan


def script(faults: Iterable[Fault | None]) -> Plan:
    """The faults of the first calls, in their order."""
    left = iter(faults)
    return lambda call: next(left, None)
