"""One look at a journal that changes nothing: for ``tenure journal list``, ``show``, ``why`` and ``tenure status``.

The file is opened for reading alone, as of one moment, while others write. Only where a process died in the middle of a
transaction, in a directory that was copied like this as well, is it opened for writing: what that process had begun is
undone first, as by everybody who opens it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, TypeVar

import attrs

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.database import Database, Databases, Row
from tenure.adapters.journal.errors import JournalBusy, JournalError, JournalUnreachable, damaged, lost
from tenure.adapters.journal.journal import journal_path
from tenure.adapters.journal.liveness import Liveness, ProcessLiveness, process_named
from tenure.adapters.journal.moves import Move, move_of
from tenure.adapters.journal.opening import ROLLBACK, mark_of, open_store
from tenure.adapters.journal.rows import (
    RECEIPT_COLUMNS,
    UPDATE_COLUMNS,
    ReceiptRow,
    ServerRow,
    UpdateRow,
    integer,
    receipt_row,
    text,
    update_row,
)
from tenure.adapters.journal.servers import servers
from tenure.adapters.journal.sqlite import SqliteDatabase, SqliteDatabases
from tenure.adapters.journal.transaction import Meta, Transaction
from tenure.adapters.looking.looks import PROFILE, Seen, look_at_process
from tenure.adapters.ports import Ports
from tenure.machines.lease import DEFAULT_KEY

T = TypeVar("T")

TRIES: Final = 5
"""How often a command asks for the journal while others are inside; each time it waits for most of a second."""
_MENDED_BY_OTHERS: Final = 3
"""How often it is looked where others may have undone by now what was to be."""
_MENDING_MS: Final = 5
LIVE_UPDATES: Final = ("journaled", "forwarding", "waiting")
LIVE_RECEIPTS: Final = ("pending", "queued", "started", "interrupted", "failed")
STUCK: Final = ("interrupted", "failed")
"""Phases of receipts that wait for a person."""

# A list says nothing of bodies, and a journal may hold a quarter of a gigabyte of them.
_UPDATES: Final = "SELECT " + UPDATE_COLUMNS.replace(" raw,", " '',") + " FROM updates"
_RECEIPTS: Final = "SELECT " + RECEIPT_COLUMNS.replace(" payload,", " '',") + " FROM receipts"


class Unfinished(JournalError):
    """A process died in the middle of a transaction, which whoever opens the journal for writing undoes."""


class ReadingDatabases(SqliteDatabases):
    """Files of this machine, opened for reading alone."""

    def open(self, path: str) -> Database:
        return SqliteDatabase(path, "ro")


# -- looking ----------------------------------------------------------------------------------------------------------


def there(ports: Ports, path: str) -> bool:
    """Whether a journal stands at `path`, or something that is none and has to be told. An empty file is none yet.

    Raises `JournalDamaged` for no file, or an empty one, where what is beside it says that there was a journal: a mark,
    or a rollback file that has work to undo.
    """
    made = ports.files.kind(mark_of(path)) != "absent"  # before all: it comes after what it is about
    if ports.files.kind(path) == "absent":
        if made:
            raise lost(path, mark_of(path))
        return ports.files.kind(path + ROLLBACK) != "absent"
    if ports.files.kind(path) != "file" or _size(path) > 0:
        return True
    if made:
        raise lost(path, mark_of(path), what="is empty")
    if _size(path + ROLLBACK) > 0:
        raise damaged(path, f"the journal is empty, though {os.path.basename(path)}{ROLLBACK} beside it is not")
    return False


def patiently(call: Callable[[], T], tries: int | None = None) -> T:
    """A call of the journal, made again while others are inside (None: `TRIES` times in all). Raises as `call`."""
    for _ in range((TRIES if tries is None else tries) - 1):
        with suppress(JournalBusy):
            return call()
    return call()


def look(
    ports: Ports,
    path: str,
    work: Callable[[Transaction], T],
    *,
    mending: bool = True,
    tries: int | None = None,
    liveness: Liveness | None = None,
) -> T:
    """What `work` reads of the journal at `path`, an absolute one, as of one moment. `mending`: what a dead process has
    begun may be undone. `tries`: how often it is tried while others are inside.

    Raises `JournalError`: then nothing was changed.
    """
    judge = ProcessLiveness(ports.processes) if liveness is None else liveness
    for left in reversed(range(_MENDED_BY_OTHERS)):
        try:
            return patiently(lambda: _look(ports, path, work, ReadingDatabases(), judge), tries)
        except JournalUnreachable as error:
            unfinished = _size(path + ROLLBACK) > 0
            if unfinished and mending:
                break
            if not left and unfinished:
                raise Unfinished(
                    path, "a process died in the middle of a transaction; tenure journal list undoes that"
                ) from error
            if not left:
                raise
            # Somebody else may have undone it by now.
            ports.clock.sleep_ms(_MENDING_MS)
    try:
        return patiently(lambda: _look(ports, path, work, SqliteDatabases(), judge), tries)
    except JournalUnreachable as error:
        raise JournalUnreachable(
            path,
            "a process died in the middle of a transaction, and that cannot be undone, since file or directory is "
            "read-only; copy the directory and look at the copy",
        ) from error


def _look(ports: Ports, path: str, work: Callable[[Transaction], T], databases: Databases, liveness: Liveness) -> T:
    store = open_store(ports.files, databases, ports.clock, liveness, path, limits=Limits(), create=False)
    try:
        return store.read(work)
    finally:
        store.close()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def journals_in(ports: Ports, directory: AgentDirectory) -> tuple[str, ...]:
    """The keys of which a journal is in the directory, or was made there, the default first."""
    try:
        names = ports.files.entries(directory.state)
    except OSError:
        return ()
    found = set()
    for name in names:
        match name.split("."):
            case ["journal", "db" | "made"]:
                found.add(DEFAULT_KEY)
            case ["journal", key, "db" | "made"] if PROFILE.fullmatch(key):
                found.add(key)
    return tuple(sorted(found, key=lambda key: (key != DEFAULT_KEY, key)))


# -- counting, for ``tenure status`` ----------------------------------------------------------------------------------


@attrs.frozen
class Counts:
    """How many are unsettled, by phase; every phase is there."""

    updates: Mapping[str, int]
    receipts: Mapping[str, int]


@attrs.frozen
class JournalCounts:
    """The journal of one key at a glance. `problem`: why it cannot be read, beginning with the file. `unfinished`: it
    cannot before somebody has undone what a dead process had begun in it."""

    key: str
    path: str
    counts: Counts | None = None
    problem: str = ""
    unfinished: bool = False


def counts(transaction: Transaction) -> Counts:
    """What is unsettled."""

    def by_phase(table: str, phases: Iterable[str]) -> Mapping[str, int]:
        rows = transaction.read(f"SELECT phase, count(*) FROM {table} WHERE settled_at IS NULL GROUP BY phase")
        return {**dict.fromkeys(phases, 0), **{text(row[0]): integer(row[1]) for row in rows}}

    return Counts(by_phase("updates", LIVE_UPDATES), by_phase("receipts", LIVE_RECEIPTS))


def at_a_glance(ports: Ports, directory: AgentDirectory, key: str | None) -> tuple[JournalCounts, ...]:
    """The journals of a directory, or that of `key`. One that cannot be read is said to; nothing is raised."""
    found = []
    for name in journals_in(ports, directory):
        if key not in (None, name):
            continue
        path = journal_path(directory, name)
        try:
            if there(ports, path):
                found.append(JournalCounts(name, path, look(ports, path, counts, mending=False, tries=1)))
        except Unfinished:
            found.append(JournalCounts(name, path, unfinished=True))
        except JournalError as error:
            found.append(JournalCounts(name, path, problem=str(error)))
    return tuple(found)


# -- listing ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class JournalLook:
    """A journal as of one moment, without bodies. `updates_of`: the update ids of each receipt. `moves`: by receipt,
    where a person wants it. `more`: there are more rows than were asked for. `now_ms`: that moment, wall clock."""

    path: str
    now_ms: int
    meta: Meta
    counts: Counts
    servers: tuple[ServerRow, ...]
    updates: tuple[UpdateRow, ...]
    receipts: tuple[ReceiptRow, ...]
    updates_of: Mapping[str, tuple[int, ...]]
    moves: Mapping[str, Move]
    more: bool

    @property
    def stuck(self) -> tuple[ReceiptRow, ...]:
        """What waits for a person."""
        return tuple(row for row in self.receipts if row.phase in STUCK)

    @property
    def processes(self) -> frozenset[str]:
        """Every process that a row names."""
        holders = [row.data.owner for row in self.receipts if row.data.owner is not None]
        offers = [offer for row in self.receipts for offer in (row.data.offer, row.data.fallen) if offer is not None]
        return frozenset(
            [*(h.process for h in holders), *(o.process for o in offers), *(s.party.process for s in self.servers)]
        )


def listing(path: str, limit: int, settled: bool) -> Callable[[Transaction], JournalLook]:
    """What is unsettled, so many updates and receipts at most, the oldest first; with `settled` also as many of what is
    settled and still remembered, the latest of it."""

    def work(transaction: Transaction) -> JournalLook:
        updates = [update_row(row) for row in _some(transaction, _UPDATES, "update_id", limit, settled)]
        receipts = [
            receipt_row(row) for row in _some(transaction, _RECEIPTS, "first_update, receipt_id", limit, settled)
        ]
        known = counts(transaction)
        more = sum(known.updates.values()) > limit or sum(known.receipts.values()) > limit
        if settled:
            more |= sum(known.updates.values()) + sum(known.receipts.values()) + _settled(transaction) > (
                len(updates) + len(receipts)
            )
        found = {row.receipt_id: move_of(transaction, row.receipt_id) for row in receipts if row.settled_at is None}
        return JournalLook(
            path=path,
            now_ms=transaction.now_ms,
            meta=transaction.meta,
            counts=known,
            servers=servers(transaction),
            updates=tuple(sorted(updates, key=lambda row: row.data.update)),
            receipts=tuple(sorted(receipts, key=lambda row: (row.first_update, row.receipt_id))),
            updates_of={row.receipt_id: updates_of(transaction, row.receipt_id) for row in receipts},
            moves={receipt: move for receipt, move in found.items() if move is not None},
            more=more,
        )

    return work


def updates_of(transaction: Transaction, receipt_id: str) -> tuple[int, ...]:
    """The updates that a receipt stands for."""
    rows = transaction.read("SELECT update_id FROM deliveries WHERE receipt_id = ? ORDER BY update_id", (receipt_id,))
    return tuple(integer(row[0]) for row in rows)


def _some(transaction: Transaction, select: str, order: str, limit: int, settled: bool) -> list[Row]:
    rows = list(transaction.read(f"{select} WHERE settled_at IS NULL ORDER BY {order} LIMIT ?", (limit,)))
    if settled:
        rows += transaction.read(
            f"{select} WHERE settled_at IS NOT NULL ORDER BY settled_at DESC, {order} LIMIT ?", (limit,)
        )
    return rows


def _settled(transaction: Transaction) -> int:
    found = (
        transaction.one(f"SELECT count(*) FROM {table} WHERE settled_at IS NOT NULL")
        for table in ("updates", "receipts")
    )
    return sum(0 if row is None else integer(row[0]) for row in found)


# -- processes --------------------------------------------------------------------------------------------------------

Lives = Mapping[str, Seen | None]
"""What has become of the processes that rows name; None for a name that is no process of ours."""


def lives(ports: Ports, processes: Iterable[str]) -> Lives:
    """Look at each of them."""
    found: dict[str, Seen | None] = {}
    for name in processes:
        process = process_named(name)
        found[name] = None if process is None else look_at_process(ports, process.pid, process.birth)
    return found
