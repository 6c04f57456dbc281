"""The `Database` port on SQLite of the standard library."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar
from urllib.parse import quote

from tenure.adapters.journal.database import BUSY_MS, GONE, NAMELESS, Database, DatabaseFault, Row, Value

_NAMES: Final = (
    "OK ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL"
    " EMPTY SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB"
)
_CODES: Final = {number: f"SQLITE_{name}" for number, name in enumerate(_NAMES.split(" "))}
"""Primary result codes by their number; fixed for ever by SQLite's interface."""

_MOVED: Final = 8 | 4 << 8
"""SQLITE_READONLY_DBMOVED: SQLite has noticed it itself, before it wrote anything."""

_LOOK_S: Final = (0.0003, 0.0012)
"""Between two looks whether the others are out: short beside a commit, and not in step with them."""
_LEAST: Final = 512
"""Bytes of the smallest database that is not empty: one page."""

R = TypeVar("R")


def _call(act: Callable[[], R]) -> R:
    try:
        return act()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _fault(error) from error


def _patiently(act: Callable[[], R]) -> R:
    """`act`, again and again while somebody else is inside, for `BUSY_MS`."""
    deadline = time.monotonic() + BUSY_MS / 1_000
    while True:
        try:
            return _call(act)
        except DatabaseFault as fault:
            if fault.code != "SQLITE_BUSY" or time.monotonic() >= deadline:
                raise
        time.sleep(random.uniform(*_LOOK_S))


def _fault(error: sqlite3.Error | UnicodeDecodeError) -> DatabaseFault:
    # Only in a damaged file is a text, or a name of the schema, no UTF-8.
    if isinstance(error, UnicodeDecodeError) or str(error).startswith("Could not decode to UTF-8"):
        return DatabaseFault("SQLITE_CORRUPT", "a text in it is no UTF-8")
    number = getattr(error, "sqlite_errorcode", None)
    if number == _MOVED:
        return DatabaseFault(GONE, "was removed, or replaced by another file")
    code = _CODES.get(number & 0xFF, "SQLITE_ERROR") if isinstance(number, int) else "SQLITE_MISUSE"
    return DatabaseFault(code, str(error))


class SqliteDatabase:
    """One connection. `mode`: rw, or ro for who only looks."""

    def __init__(self, path: str, mode: str = "rw") -> None:
        self._path = path
        self._pid = os.getpid()
        self._filled = False
        """Something was in it once."""
        before = _file_at(path)
        # Without SQLite's own patience: it looks so seldom that a busy neighbour keeps it out for all of its time.
        self._connection = _call(lambda: sqlite3.connect(_uri(path, mode), 0, isolation_level=None, uri=True))
        self._file = _file_at(path)
        """Which file it is that is open: the one that stood there before and after that was done."""
        if self._file != before:
            self._connection.close()
            raise DatabaseFault(GONE, "was replaced by another file")

    def begin(self) -> None:
        self._require_mine()
        self.rollback()
        _patiently(lambda: self._connection.execute("BEGIN IMMEDIATE"))
        self._require_there()

    def snapshot(self) -> None:
        self._require_mine()
        self.rollback()
        _call(lambda: self._connection.execute("BEGIN"))
        # It is held from here on. Else who knows the file as it was before another process had filled it looks for what
        # is in it by now, and where somebody is inside at that moment SQLite says that there is no such table.
        _patiently(lambda: self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall())
        self._require_there()

    def execute(self, sql: str, values: Sequence[Value] = ()) -> Sequence[Row]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                raise _fault(error) from error
            return _patiently(lambda: self._connection.execute(sql, values).fetchall())
        except UnicodeEncodeError:
            halves = tuple(map(_with_halves, values))
            return _patiently(lambda: self._connection.execute(sql, halves).fetchall())
        except OverflowError as error:
            raise DatabaseFault("SQLITE_MISUSE", "an integer is longer than 64 bits") from error

    def commit(self) -> None:
        _patiently(lambda: self._connection.execute("COMMIT"))

    def rollback(self) -> None:
        # SQLite rolls back by itself where it cannot go on, as on a full disk.
        if self._connection.in_transaction:
            _call(lambda: self._connection.execute("ROLLBACK"))

    def backup(self, path: str) -> None:
        def copy() -> None:
            target = sqlite3.connect(_uri(path, "rw"), isolation_level=None, uri=True)
            try:
                # Nobody knows of the file yet: it is forced to the disk as a whole, below.
                target.execute("PRAGMA synchronous=OFF")
                self._connection.backup(target, progress=_only_once)
            finally:
                target.close()

        _call(copy)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise DatabaseFault("SQLITE_IOERR", error.strerror or str(error)) from error

    def close(self) -> None:
        _call(self._connection.close)

    def _require_mine(self) -> None:
        # A child of a fork shares neither the locks nor the right to drop them.
        if os.getpid() != self._pid:
            raise DatabaseFault("SQLITE_MISUSE", "this connection belongs to the process that forked")

    def _require_there(self) -> None:
        # Its number cannot be another file's meanwhile: as long as it is open it is not free.
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            what = "was removed"
        except OSError as error:
            self.rollback()
            raise DatabaseFault("SQLITE_CANTOPEN", error.strerror or str(error)) from error
        else:
            same = (found.st_dev, found.st_ino) == self._file
            if same and (found.st_size or not self._filled):
                self._filled = found.st_size > 0
                return
            what = "was cut to nothing" if same else "was replaced by another file"
        self.rollback()
        raise DatabaseFault(GONE, what)


class SqliteDatabases:
    """Files of this machine."""

    def application(self, path: str) -> int | None:
        # Not by open and read: closing a descriptor of the file drops the locks that this process has on it.
        size = _size(path)
        if _size(f"{path}-journal"):
            raise DatabaseFault("SQLITE_BUSY", "somebody writes, or died while he did")
        if 0 < size < _LEAST:
            return None  # SQLite would take it for empty
        try:
            connection = sqlite3.connect(_uri(path, "ro", "immutable=1"), isolation_level=None, uri=True)
            try:
                # In this order: whoever makes a journal meanwhile writes both at once.
                tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
                found: list[tuple[int]] = connection.execute("PRAGMA application_id").fetchall()
                return NAMELESS if tables and found[0][0] == 0 else found[0][0]
            finally:
                connection.close()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            fault = _fault(error)
            if fault.code == "SQLITE_NOTADB":
                return None
            raise fault from error

    def open(self, path: str) -> Database:
        return SqliteDatabase(path)


def _with_halves(value: Value) -> Value:
    """A text that holds half a character, as the name of a directory may, is kept as bytes: no SQLite text can be it.
    `tenure.adapters.journal.rows` reads it back."""
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def _file_at(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DatabaseFault("SQLITE_CANTOPEN", error.strerror or str(error)) from error
    return found.st_dev, found.st_ino


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise DatabaseFault("SQLITE_CANTOPEN", error.strerror or str(error)) from error


def _uri(path: str, mode: str, *more: str) -> str:
    return f"file:{quote(path)}?{'&'.join((f'mode={mode}', *more))}"


def _only_once(status: int, remaining: int, total: int) -> None:
    # The library would wait for ever for who is inside; the snapshot that is open here has waited long enough.
    if status not in (sqlite3.SQLITE_OK, sqlite3.SQLITE_DONE):
        raise DatabaseFault(_CODES.get(status & 0xFF, "SQLITE_ERROR"), "the copy was broken off")
