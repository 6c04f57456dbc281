"""Opening the journal: what stands at its path, the settings, the schema, and whose it is (DESIGN 10; bus.md d).

Nothing is changed on a file that is not ours, that a newer program wrote, or that another bot uses or has left work in.
Where a journal was made, and is gone or empty, none is made in its place (B73): a mark beside it says so, and its
rollback file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tenure.adapters.errors import to_read, to_write
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.database import Database, DatabaseFault, Databases
from tenure.adapters.journal.errors import (
    ForeignIdentity,
    JournalDamaged,
    JournalError,
    JournalUnreachable,
    damaged,
    lost,
    newer,
    told,
)
from tenure.adapters.journal.identity import BotIdentity, learned, same_bot
from tenure.adapters.journal.liveness import Liveness
from tenure.adapters.journal.schema import APPLICATION, VERSION, migrate, version_of
from tenure.adapters.journal.servers import servers
from tenure.adapters.journal.transaction import Store, Transaction, commit
from tenure.adapters.ports import Clock, Files, Killed

ROLLBACK: Final = "-journal"
"""What SQLite calls the file beside the database, with which the next opener undoes what a dead process began."""


_MARK: Final = (
    b"A journal was made here. Where it is lost, it is not taken for an empty one: put a backup in its place, or remove"
    b" this file to begin with none.\n"
)


def mark_of(path: str) -> str:
    """The path of the mark that a journal was made at `path`: a file that nothing else reads, and only a person
    removes."""
    return f"{path.removesuffix('.db')}.made"


def open_store(
    files: Files,
    databases: Databases,
    clock: Clock,
    liveness: Liveness,
    path: str,
    *,
    limits: Limits,
    bot: BotIdentity | None = None,
    create: bool = True,
) -> Store:
    """The journal at `path`, an absolute one, ready for transactions.

    `bot` None: whoever's it is, for looking at it. `create`: it is made, with its directory, where nothing stands.
    Raises `JournalError`; then nothing has been changed, but for what a dead process had left half done.
    """
    # First of all: as long as it is not there, an empty file may be one that somebody is about to fill.
    made = _made(files, path)
    _place(files, path, create, made)
    _ours(databases, path)
    try:
        database = databases.open(path)
    except DatabaseFault as fault:
        raise told(path, fault) from fault
    try:
        _settings(database, path)
        _schema(database, path, made)
        if create and not made:
            _mark(files, path)
        store = Store(path, database, clock, liveness, limits)
        known = store.read(lambda transaction: transaction.meta)
        if bot is None or (known.bot is not None and same_bot(known.bot, bot) and learned(known.bot, bot) == known.bot):
            # Who has nothing to write there needs not wait for who writes.
            store.serial = None if known.bot is None else known.serial
        else:
            store.serial = store.write(lambda transaction: _claim(transaction, path, bot))
    except DatabaseFault as fault:
        _close(database)
        raise told(path, fault) from fault
    except Killed:
        raise
    except BaseException:
        _close(database)
        raise
    return store


def _made(files: Files, path: str) -> bool:
    try:
        return files.kind(mark_of(path)) != "absent"
    except OSError as error:
        raise JournalUnreachable(mark_of(path), f"{error.strerror or error}; {to_read(error)}") from error


def _mark(files: Files, path: str) -> None:
    mark = mark_of(path)
    try:
        with suppress(FileExistsError):
            files.create(mark, _MARK)
        files.sync(os.path.dirname(mark))
    except OSError as error:
        raise JournalUnreachable(mark, f"{error.strerror or error}; {to_write(error)}") from error


def _place(files: Files, path: str, create: bool, made: bool) -> None:
    """A file stands at `path` afterwards."""
    try:
        kind = files.kind(path)
        if kind == "absent":
            orphaned = files.kind(path + ROLLBACK) != "absent" and files.kind(path) == "absent"
            rest = [name for name, stays in ((path + ROLLBACK, orphaned), (mark_of(path), made)) if stays]
            if rest:
                raise lost(path, *rest)
            if not create:
                raise JournalUnreachable(path, "there is no journal yet; it is made where somebody leads with one")
            _directory(files, os.path.dirname(path))
            with suppress(FileExistsError):  # somebody else was faster
                files.create(path, b"")
        elif kind != "file":
            what = "a directory" if kind == "directory" else "no regular file"
            raise JournalUnreachable(path, f"{what} stands where the journal belongs; move it away")
    except OSError as error:
        what = to_write(error) if create else to_read(error)
        raise JournalUnreachable(path, f"{error.strerror or error}; {what}") from error


def _directory(files: Files, path: str) -> None:
    if files.kind(path) == "directory" or path in ("", os.sep):
        return
    _directory(files, os.path.dirname(path))
    with suppress(FileExistsError):
        files.make_directory(path)


def _ours(databases: Databases, path: str) -> None:
    """Refuses a file that is somebody else's before SQLite does anything to it. An empty one is nobody's; what cannot
    be told, as while somebody writes, is told by `_schema`, under the lock."""
    try:
        found = databases.application(path)
    except DatabaseFault:
        return
    if found is None:
        raise damaged(path, "this is no database")
    if found not in (0, APPLICATION):
        raise _stranger(path)


def _settings(database: Database, path: str) -> None:
    """Durable against a power cut: the rollback file is forced to the disk, and its end as well."""
    found = database.execute("PRAGMA journal_mode = TRUNCATE")
    if [("truncate",)] != list(found):
        raise JournalUnreachable(path, f"its rollback file cannot be had ({found}); another program uses it")
    database.execute("PRAGMA synchronous = EXTRA")
    database.execute("PRAGMA temp_store = MEMORY")


def _schema(database: Database, path: str, made: bool) -> None:
    """The tables are those of this version afterwards."""
    version = version_of(database)
    if version == 0 or version < VERSION:
        database.begin()
        try:
            version = version_of(database)
            application = database.execute("PRAGMA application_id")[0][0]
            if version == 0:
                _require_empty(application, database.execute("SELECT name FROM sqlite_master LIMIT 1"), path)
                if made:
                    raise lost(path, mark_of(path), what="is empty")
            if version < VERSION:
                _require_ours(application if version else APPLICATION, path)
                migrate(database, version)
        except JournalError:
            database.rollback()
            raise
        commit(database, path)
        version = max(version, VERSION)
    _require_ours(database.execute("PRAGMA application_id")[0][0], path)
    if version > VERSION:
        raise newer(path, version, VERSION)


def _require_empty(application: object, tables: Sequence[object], path: str) -> None:
    if application != 0 or tables:
        raise _stranger(path)


def _require_ours(application: object, path: str) -> None:
    if application != APPLICATION:
        raise _stranger(path)


def _stranger(path: str) -> JournalDamaged:
    return damaged(path, "this database belongs to another program")


def _claim(transaction: Transaction, path: str, bot: BotIdentity) -> int:
    """The serial of `bot` in the file: as it is, or anew where the file holds nobody's work."""
    meta = transaction.meta
    if meta.bot is not None and same_bot(meta.bot, bot):
        meta.bot = learned(meta.bot, bot)
        return meta.serial
    entries = meta.updates + meta.deliveries
    if meta.bot is not None and entries:
        raise ForeignIdentity(
            path,
            f"the journal belongs to {meta.bot} and holds {entries} entries of its work, so {bot} cannot use it; "
            "finish or discard them, or use another profile",
        )
    if meta.bot is not None:
        _require_left(transaction, path, bot)
        # An update id of one bot says nothing to another: its tombstones would swallow the new one's updates.
        for table in ("updates", "deliveries", "receipts", "servers", "moves", "owners", "decisions"):
            transaction.write(f"DELETE FROM {table}")
        meta.passed, meta.opened, meta.tombstones, meta.decisions = -1, False, 0, 0
    meta.bot = bot
    meta.serial += 1
    return meta.serial


def _require_left(transaction: Transaction, path: str, bot: BotIdentity) -> None:
    """Nobody works with it for the bot whose it is, as far as that is proven: else both would stand still, one without
    its journal and the other without the lease."""
    for row in servers(transaction):
        evidence = transaction.liveness.evidence(row.party.process)
        if row.left_at is None and evidence != "dead":
            who = f"{row.party.instance} (pid {row.party.process.partition(':')[0]})"
            works = "works" if evidence == "alive" else "may work"
            raise ForeignIdentity(
                path,
                f"the journal belongs to {transaction.meta.bot}, for which {who} {works} with it, so {bot} cannot use "
                "it; end that process, or use another profile",
            )


def _close(database: Database) -> None:
    with suppress(DatabaseFault):
        database.close()
