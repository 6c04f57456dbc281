"""A database that fails on demand: any call of any `Database` may raise, or be the process's last.

What is killed in the middle leaves nothing, as SQLite does when the next process rolls back what a dead one began; the
real thing, with real processes, is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeVar

import attrs

from tenure.adapters.journal.database import Database, DatabaseFault, Databases, Row, Value
from tenure.adapters.ports import Killed

R = TypeVar("R")
When = Literal["before", "after"]

FAULTS: Final = ("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_IOERR")
"""What a call may fail with at any time."""


@attrs.frozen
class DatabaseCall:
    """One call, before it is made: its name in the port, its statement, and its place in the order of all calls."""

    name: str
    sql: str
    number: int


@attrs.frozen
class CallFails:
    """The call raises `DatabaseFault`; `when` "after": it has been done all the same, and nobody can know."""

    code: str
    when: When = "before"


@attrs.frozen
class CallKills:
    """The process dies: `Killed` is raised, and every call afterwards raises it as well."""

    when: When = "before"


DatabaseFaultPlan = Callable[[DatabaseCall], CallFails | CallKills | None]


class FaultyDatabases:
    """`inner`, with a `plan` that is asked before each call. `calls` are those that were made."""

    def __init__(self, inner: Databases, plan: DatabaseFaultPlan | None = None) -> None:
        self.inner = inner
        self.plan = plan
        self.calls: list[DatabaseCall] = []
        self.dead = False
        self._open: list[Database] = []

    def application(self, path: str) -> int | None:
        return self.call("application", "", lambda: self.inner.application(path))

    def open(self, path: str) -> Database:
        def act() -> Database:
            found = self.inner.open(path)
            self._open.append(found)
            return _Faulty(found, self)

        return self.call("open", "", act)

    def call(self, name: str, sql: str, act: Callable[[], R]) -> R:
        """Make a call, or not, as the plan says."""
        if self.dead:
            raise Killed
        call = DatabaseCall(name, sql, len(self.calls))
        fault = None if self.plan is None else self.plan(call)
        self.calls.append(call)
        match fault:
            case CallFails(code, when):
                if when == "after":
                    act()
                raise DatabaseFault(code, f"{name} failed, as planned")
            case CallKills(when):
                if when == "after":
                    act()
                self.die()
                raise Killed
        return act()

    def die(self) -> None:
        """The process is gone: so are its locks, and what it had not committed."""
        self.dead = True
        for database in self._open:
            database.close()
        self._open.clear()


class _Faulty:
    def __init__(self, inner: Database, control: FaultyDatabases) -> None:
        self._inner = inner
        self._control = control

    def begin(self) -> None:
        self._control.call("begin", "", self._inner.begin)

    def snapshot(self) -> None:
        self._control.call("snapshot", "", self._inner.snapshot)

    def execute(self, sql: str, values: Sequence[Value] = ()) -> Sequence[Row]:
        return self._control.call("execute", sql, lambda: self._inner.execute(sql, values))

    def commit(self) -> None:
        self._control.call("commit", "", self._inner.commit)

    def rollback(self) -> None:
        self._control.call("rollback", "", self._inner.rollback)

    def backup(self, path: str) -> None:
        self._control.call("backup", "", lambda: self._inner.backup(path))

    def close(self) -> None:
        self._control.call("close", "", self._inner.close)


def at_call(number: int, fault: CallFails | CallKills) -> DatabaseFaultPlan:
    """The call with that number has that fault."""
    return lambda call: fault if call.number == number else None


def nth_call(name: str, number: int, fault: CallFails | CallKills) -> DatabaseFaultPlan:
    """The `number`th (from 1) call of that name has that fault."""
    seen = 0

    def plan(call: DatabaseCall) -> CallFails | CallKills | None:
        nonlocal seen
        seen += call.name == name
        return fault if call.name == name and seen == number else None

    return plan


class HastyDatabases:
    """`inner`, whose connections do not wait for the disk: for tests that kill no machine."""

    def __init__(self, inner: Databases) -> None:
        self._inner = inner

    def application(self, path: str) -> int | None:
        """As the inner one."""
        return self._inner.application(path)

    def open(self, path: str) -> Database:
        """A connection that leaves it to the system when to write."""
        return _Hasty(self._inner.open(path))


class _Hasty:
    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.begin, self.snapshot, self.commit, self.rollback = (
            inner.begin,
            inner.snapshot,
            inner.commit,
            inner.rollback,
        )
        self.backup, self.close = inner.backup, inner.close

    def execute(self, sql: str, values: Sequence[Value] = ()) -> Sequence[Row]:
        return self._inner.execute("PRAGMA synchronous = OFF" if sql.startswith("PRAGMA synchronous") else sql, values)
