"""What the journal needs of a database: the `Database` port, one method per call, and what a call may fail with.

Every method may fail, and may be the last thing that the process does. The real one is
`tenure.adapters.journal.sqlite`; a test or the stage `bind` brings another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

Value = None | int | float | str | bytes
"""What a cell holds."""
Row = tuple[Value, ...]

BUSY_MS: Final = 900
"""How long a call waits for another process that is inside: below the time that a heartbeat may take (1 s)."""


GONE: Final = "GONE"
"""No code of SQLite's: what stands at the path is not the file that is open, which nobody else will ever read."""
NAMELESS: Final = -1
"""In place of an application id: there is none, and yet there are tables."""


class DatabaseFault(Exception):
    """A call failed. `code` is the name of SQLite's primary result code, as ``SQLITE_FULL``, or `GONE`; `text` is in
    words."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


class Database(Protocol):
    """One connection, used by one thread. Every method raises `DatabaseFault`."""

    def begin(self) -> None:
        """BEGIN IMMEDIATE: from here on nobody else writes. What an interrupted caller left open is rolled back first.
        ``SQLITE_BUSY`` after `BUSY_MS`; `GONE`, which is looked at each time."""

    def snapshot(self) -> None:
        """BEGIN: all reads until `rollback` see one state of the database, and nobody can commit meanwhile. `GONE` as
        above."""

    def execute(self, sql: str, values: Sequence[Value] = ()) -> Sequence[Row]:
        """One statement, and all of its rows."""

    def commit(self) -> None:
        """COMMIT. After ``SQLITE_BUSY`` and ``SQLITE_FULL`` nothing was done, if `rollback` follows; after another
        failure nobody knows."""

    def rollback(self) -> None:
        """ROLLBACK; nothing where no transaction is open."""

    def backup(self, path: str) -> None:
        """Copy everything, as of one moment, into the file at `path`, which is empty, and fsync it."""

    def close(self) -> None:
        """Give the connection up, and what is open in it."""


class Databases(Protocol):
    """Where connections come from, and what stands in their place."""

    def application(self, path: str) -> int | None:
        """The application id in the file at `path`, which is looked at without locks or recovery and not touched;
        `NAMELESS` where it has none and is not empty, None for what is no database. Raises `DatabaseFault` where it
        cannot be told so."""

    def open(self, path: str) -> Database:
        """A connection to the file at `path`, which exists. Nothing is read or written yet."""
