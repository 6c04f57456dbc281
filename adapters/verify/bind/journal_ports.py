"""The journal for the bindings of `DurableAdmission` and `QueueHandoff`: real operations on a real SQLite in memory.

An operation is the journal's own code over a controlled `Database`. What is interleaved are its transactions: one
begins when nobody else is inside (BEGIN IMMEDIATE), so that the calls in the middle are nobody's business, and
an operation of several transactions (a refusal that is told in one of its own) waits between them. Each transaction is
run once as it should go, and once for each of its calls and each fault that the call may have: all that can come of
it is collected, and what several faults come to in the same way is one outcome. The content of a database is a number;
decisions, which only tell, are left out of it. `still_journal` is the journal as a participant's drivers have it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.database import DatabaseFault, Row, Value
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.schema import migrate
from tenure.adapters.journal.transaction import Meta, Store
from tenure.adapters.verify.bind.controlled import WALL_MS, uuid_of
from tenure.adapters.verify.bind.disk import identities
from tenure.machines.receipt_messages import Evidence

PATH: Final = "/agent/tmp/telegram/journal.db"


KEY: Final = "default"


CODES: Final = ("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_IOERR")


TABLES: Final = ("meta", "updates", "deliveries", "receipts", "servers", "moves", "owners")
"""What a content is; `decisions` and `evidence` decide nothing."""


READS: Final = frozenset(
    {
        "state",
        "unbrought",
        "retry_in",
        "remembered",
        "receipt",
        "deliveries_of",
        "due_in",
        "servers",
        "owned_by",
        "moves_for",
        "moves_to_take",
        "move_of",
    }
)
"""Operations that write nothing. What is only read is read at once; others come in before or after."""


LOOKS: Final = frozenset({"recover_all", "reclaim", "take_some", "serve", "resume"})
"""Operations that are made again and again. One that finds nothing now is made now: later it is made again."""


@attrs.frozen(cache_hash=True)
class Replied:
    """A call of the database, as it was answered: rows, or the code of a fault."""

    rows: tuple[Row, ...] = ()
    code: str = ""


@attrs.frozen(cache_hash=True)
class Op:
    """An operation that is under way: a method of `Journal`, with the calls that its earlier transactions have made."""

    method: str
    args: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    log: tuple[Replied, ...] = ()

    def __str__(self) -> str:
        return f"{self.method}{'...' if self.log else ''}"


@attrs.frozen(cache_hash=True)
class Answered:
    """What an operation has answered."""

    value: Hashable

    def __str__(self) -> str:
        text = str(self.value)
        return text if len(text) <= 90 else f"{text[:87]}..."


@attrs.frozen(cache_hash=True)
class Failed:
    """What it has raised, by the name of its class."""

    kind: str

    def __str__(self) -> str:
        return self.kind


@attrs.frozen(cache_hash=True)
class Outcome:
    """What a transaction has come to: an answer, or the operation that goes on (`Op`); the content then. `fault`: one
    of its calls has failed."""

    answer: Answered | Failed | Op
    content: int
    fault: bool


class Beyond(BaseException):
    """The next transaction of the same operation: a step of its own. No Exception, as `Killed`."""


@attrs.frozen(cache_hash=True)
class Facts:
    """What an operation finds around the file: who is dead, by the journal's name of a process; the next identity."""

    dead: frozenset[str] = frozenset()
    fresh: int = 1


@attrs.frozen
class _Fault:
    """At the call with that number (from 0, of the transaction), before or after it is done."""

    at: int
    code: str
    done: bool = False


class _Database:
    """The port, for one transaction of one operation."""

    def __init__(self, connection: sqlite3.Connection, log: Sequence[Replied], fault: _Fault | None) -> None:
        self.made: list[Replied] = []
        self.before: tuple[Replied, ...] = ()
        """All that was made before the next transaction."""
        self.names: list[str] = []
        self.committed = False
        self._connection = connection
        self._log = log
        self._fault = fault
        self._begun = False

    def begin(self) -> None:
        self._enter("BEGIN IMMEDIATE")

    def snapshot(self) -> None:
        self._enter("BEGIN")

    def execute(self, sql: str, values: Sequence[Value] = ()) -> Sequence[Row]:
        return self._call("execute", lambda: tuple(self._connection.execute(sql, values).fetchall()))

    def commit(self) -> None:
        def act() -> tuple[Row, ...]:
            self._connection.execute("COMMIT")
            self.committed = True
            return ()

        self._call("commit", act)

    def rollback(self) -> None:
        def act() -> tuple[Row, ...]:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            return ()

        self._call("rollback", act)

    def backup(self, path: str) -> None:
        raise DatabaseFault("SQLITE_MISUSE", "no backups here")

    def close(self) -> None:
        self._call("close", lambda: ())

    def _enter(self, sql: str) -> None:
        if len(self.made) >= len(self._log):
            if self._begun:
                self.before = self.before or tuple(self.made)
                raise Beyond
            self._begun = True

        def act() -> tuple[Row, ...]:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._connection.execute(sql)
            return ()

        self._call("begin", act)

    def _call(self, name: str, act: Callable[[], tuple[Row, ...]]) -> tuple[Row, ...]:
        number = len(self.made)
        if number < len(self._log):
            reply = self._log[number]
        else:
            fault = self._fault
            struck = fault is not None and fault.at == number - len(self._log)
            self.names.append(name)
            rows: tuple[Row, ...] = ()
            if not struck or (fault is not None and fault.done):
                try:
                    rows = act()
                except sqlite3.Error as error:
                    rows, struck = (), True
                    fault = _Fault(number, "SQLITE_ERROR" if "BUSY" not in str(error) else "SQLITE_BUSY")
            reply = Replied((), fault.code) if struck and fault is not None else Replied(rows)
        self.made.append(reply)
        if reply.code:
            raise DatabaseFault(reply.code, "as planned")
        return reply.rows


class _Around:
    """Clock, processes and identities, as an operation finds them."""

    def __init__(self, facts: Facts) -> None:
        self._dead = facts.dead
        self._next = facts.fresh

    def evidence(self, process: str) -> Evidence:
        return "dead" if process in self._dead else "alive"

    def wall_ms(self) -> int:
        return WALL_MS

    def uuid(self) -> str:
        self._next += 1
        return uuid_of(self._next - 1)


class Journals:
    """Every content that was met, and what each transaction makes of each."""

    def __init__(self, limits: Limits, codes: Sequence[str] = CODES) -> None:
        self.limits = limits
        self.codes = codes
        self.runs = 0
        self._connection = _memory()
        self._files: list[bytes] = []
        self._rows: list[dict[str, tuple[Row, ...]]] = []
        self._index: dict[Hashable, int] = {}
        self._loaded = -1
        self._known: dict[Hashable, tuple[Outcome, ...]] = {}
        self._names: dict[int, frozenset[int]] = {}

    def first(self, prepare: Callable[[Journal], object]) -> int:
        """A new journal, after what `prepare` does with it."""
        self._connection = _memory()
        migrate(_Database(self._connection, (), None), 0)
        self._loaded = -1
        store = Store(PATH, _Whole(self._connection), *self._ports(Facts()), self.limits)
        prepare(Journal(store, _NONE, _Around(Facts(fresh=1)), KEY))  # type: ignore[arg-type]
        return self._save()

    def rows(self, content: int, table: str) -> list[dict[str, Any]]:
        """The rows of a table, by column."""
        return [dict(cells) for cells in self._rows[content][table]]  # type: ignore[arg-type]

    def identities(self, content: int) -> frozenset[int]:
        """Those that the content names."""
        found = self._names.get(content)
        if found is None:
            found = self._names[content] = identities((repr(self._rows[content]),))
        return found

    def outcomes(self, content: int, op: Op, facts: Facts, faults: bool) -> tuple[Outcome, ...]:
        """All that the next transaction of the operation may come to; the first is how it should go."""
        key = (content, op, facts, faults)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(dict.fromkeys(self._all(content, op, facts, faults)))
        return found

    def idle(self, content: int, op: Op, facts: Facts) -> bool:
        """Whether the operation changes nothing, as things are, and need not be interleaved with others."""
        if op.method in READS:
            return True
        if op.method not in LOOKS or op.log:
            return False
        first = self.outcomes(content, op, facts, True)[0]
        return first.content == content and isinstance(first.answer, Answered) and first.answer.value in ((), None)

    def _all(self, content: int, op: Op, facts: Facts, faults: bool) -> Iterator[Outcome]:
        names, outcome = self._run(content, op, facts, None)
        yield outcome
        for at, name in enumerate(names if faults else ()):
            for code in self.codes:
                for done in (False, True) if name == "commit" else (False,):
                    # A commit that says that it is busy, or that the disk is full, has not happened.
                    if not done or code == "SQLITE_IOERR":
                        _, outcome = self._run(content, op, facts, _Fault(at, code, done))
                        yield outcome

    def _run(self, content: int, op: Op, facts: Facts, fault: _Fault | None) -> tuple[list[str], Outcome]:
        self.runs += 1
        if self._loaded != content:
            self._connection.deserialize(self._files[content])
        port = _Database(self._connection, op.log, fault)
        around = _Around(facts)
        store = Store(PATH, port, around, around, self.limits)  # type: ignore[arg-type]
        journal = Journal(store, _NONE, around, KEY)  # type: ignore[arg-type]
        answer: Answered | Failed | Op
        try:
            value = getattr(journal, op.method)(*op.args, **dict(op.options))
            answer = Answered(attrs.astuple(value) if isinstance(value, Meta) else value)
        except Beyond:
            answer = attrs.evolve(op, log=port.before)
        except TenureError as error:
            answer = Failed(type(error).__name__)
        if self._connection.in_transaction:  # its process rolls it back when it opens, or begins, again
            self._connection.execute("ROLLBACK")
        self._loaded = self._save() if port.committed else content
        return port.names, Outcome(answer, self._loaded, fault is not None)

    def _save(self) -> int:
        connection = self._connection
        connection.execute("DELETE FROM decisions")
        connection.execute("UPDATE meta SET decisions = 0")
        rows: dict[str, tuple[Row, ...]] = {}
        for table in TABLES:
            cursor = connection.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            kept = [i for i, name in enumerate(names) if (table, name) != ("owners", "seq")]
            found = sorted((tuple((names[i], row[i]) for i in kept) for row in cursor), key=repr)
            rows[table] = tuple(found)  # type: ignore[arg-type]
        key = tuple(rows.items())
        number = self._index.get(key)
        if number is None:
            number = self._index[key] = len(self._files)
            self._files.append(connection.serialize())
            self._rows.append(rows)
        return number

    @staticmethod
    def _ports(facts: Facts) -> tuple[Any, Any]:
        around = _Around(facts)
        return around, around


class _Whole(_Database):
    """For what is done before anything begins: as many transactions as one likes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection, (), None)

    def _enter(self, sql: str) -> None:
        self._begun = False
        super()._enter(sql)


_NONE: Final = None
"""No operation looks at a file."""


def _memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)
