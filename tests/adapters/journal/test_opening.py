"""What stands at the path is looked at before anything is done to it, and what is not ours is left as it is."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.journal import sqlite
from tenure.adapters.journal.database import DatabaseFault
from tenure.adapters.journal.errors import (
    ForeignIdentity,
    JournalDamaged,
    JournalError,
    JournalNewer,
    JournalUnreachable,
)
from tenure.adapters.journal.identity import BotIdentity, identity_of_token
from tenure.adapters.journal.journal import Journal, journal_path
from tenure.adapters.journal.ownership import About
from tenure.adapters.journal.schema import APPLICATION, MIGRATIONS, VERSION
from tenure.adapters.journal.sqlite import SqliteDatabases
from tests.adapters.journal.journal_room import (
    BOT,
    EPOCH,
    ME,
    OTHER_BOT,
    Room,
    incoming,
    kept,
    miscounted,
    table,
    taken,
)
from tests.real.privileges import bound_by_modes


def refused(room: Room, kind: type[JournalError], *, bot: BotIdentity | None = BOT, create: bool = True) -> str:
    """The one line with which it is not opened; nothing in the directory has changed."""
    before = contents(room)
    with pytest.raises(kind) as caught:
        room.open(bot, create=create)
    assert before == contents(room)
    text = str(caught.value)
    assert text.startswith(str(room.path)), text
    assert "\n" not in text
    return text


def contents(room: Room) -> dict[str, bytes | None]:
    """Every name in the directory, and what is in it."""
    root = Path(room.directory.root)
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None for path in root.rglob("*")
    }


def put(room: Room, data: bytes) -> None:
    """Something stands where the journal belongs."""
    room.path.parent.mkdir(parents=True)
    room.path.write_bytes(data)


def foreign(room: Room, *statements: str) -> None:
    """Another program's database stands there."""
    room.path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(room.path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_new_journal_is_for_its_user_alone(room: Room) -> None:
    """Directories 0700, the file 0600; opened again it is the same one."""
    room.open().close()
    mode = {path: stat.S_IMODE(os.stat(path).st_mode) for path in (room.path, room.path.parent)}
    assert {room.path: 0o600, room.path.parent: 0o700} == mode
    rollback = Path(f"{room.path}-journal")
    assert 0o600 == stat.S_IMODE(os.stat(rollback).st_mode)
    assert 0 == rollback.stat().st_size
    assert 1 == room.open().state().serial


def test_each_profile_has_its_own(room: Room) -> None:
    """The name says the profile (DESIGN 10)."""
    assert f"{room.directory.state}/journal.db" == journal_path(room.directory, "default")
    assert f"{room.directory.state}/journal.work.db" == journal_path(room.directory, "work")
    with pytest.raises(TenureError):
        Journal.open(room.ports(), room.directory, "No/Key")


def test_the_settings_are_the_durable_ones(room: Room) -> None:
    """A rollback file that is truncated, and everything forced to the disk."""
    journal = room.open(databases=SqliteDatabases())
    database = journal._store._database
    assert [("truncate",)] == list(database.execute("PRAGMA journal_mode"))
    assert [(3,)] == list(database.execute("PRAGMA synchronous"))
    journal.close()


def test_where_nothing_is_a_looker_makes_nothing(room: Room) -> None:
    """`create=False` for those who only look."""
    assert "no journal yet" in refused(room, JournalUnreachable, bot=None, create=False)
    assert not room.path.parent.exists()


@pytest.mark.parametrize("data", [b"hello, world\n" * 100, b"x", b"\0" * 4096, b"SQLite format 3"])
def test_no_database(room: Room, data: bytes) -> None:
    """Text, a byte, zeros, half a header: none of it is a journal, and none is overwritten."""
    put(room, data)
    assert "no database" in refused(room, JournalDamaged)


def test_a_directory(room: Room) -> None:
    """Somebody made one."""
    room.path.mkdir(parents=True)
    assert "directory" in refused(room, JournalUnreachable)


@pytest.mark.parametrize("kind", ["fifo", "dangling"])
def test_neither_file_nor_directory(room: Room, kind: str) -> None:
    """A pipe would be waited for; a link leads who knows where."""
    room.path.parent.mkdir(parents=True)
    if kind == "fifo":
        os.mkfifo(room.path)
    else:
        room.path.symlink_to("/nowhere/at/all")
    with pytest.raises(JournalUnreachable, match="no regular file"):
        room.open()


@pytest.mark.parametrize(
    "statements",
    [
        ("PRAGMA application_id = 77", "CREATE TABLE a (b)"),
        ("CREATE TABLE meta (b)",),
        ("PRAGMA user_version = 1", "CREATE TABLE a (b)"),
        ("PRAGMA journal_mode = WAL", "PRAGMA application_id = 77", "CREATE TABLE a (b)"),
        ("PRAGMA journal_mode = WAL", "CREATE TABLE a (b)"),
    ],
)
def test_the_database_of_another_program(room: Room, statements: tuple[str, ...]) -> None:
    """It is not touched, in WAL mode neither, where opening and closing would write."""
    foreign(room, *statements)
    assert "another program" in refused(room, JournalDamaged)


def test_a_newer_version(room: Room) -> None:
    """What a newer program wrote is left to it."""
    foreign(
        room, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION + 1}", "CREATE TABLE a (b)"
    )
    found = refused(room, JournalNewer)
    assert f"schema {VERSION + 1}" in found
    assert f"knows {VERSION}" in found


def test_an_empty_file_is_a_new_journal(room: Room) -> None:
    """Who made it did not live to fill it."""
    put(room, b"")
    room.open().close()
    assert [(VERSION,)] == table(room, "PRAGMA user_version")
    assert [(APPLICATION,)] == table(room, "PRAGMA application_id")


def test_who_saw_an_empty_file_reads_what_another_has_made_of_it(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several begin at once: one fills the file, and while a third is inside it is busy for the others, not damaged."""
    monkeypatch.setattr(sqlite, "BUSY_MS", 0)
    put(room, b"")
    early = sqlite.SqliteDatabase(str(room.path))
    assert [] == list(early.execute("SELECT 1 FROM sqlite_master"))
    room.open().close()
    inside = sqlite3.connect(room.path, isolation_level=None)
    inside.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DatabaseFault, match="SQLITE_BUSY"):
        early.snapshot()
    inside.close()
    early.snapshot()
    assert [(VERSION,)] == list(early.execute("SELECT schema FROM meta"))
    early.close()


@pytest.mark.parametrize("rollback", [b"", b"something"])
def test_one_that_has_gone_is_no_empty_one(room: Room, rollback: bytes) -> None:
    """B73: the rollback file beside it tells that there was one."""
    room.open().close()
    room.path.unlink()
    Path(f"{room.path}-journal").write_bytes(rollback)
    assert "has gone" in refused(room, JournalDamaged)


@pytest.mark.parametrize("where", [2, 3])
def test_a_damaged_page_is_found_where_it_is_read(room: Room, where: int) -> None:
    """One line, and never an empty journal instead."""
    journal = room.started(5)
    journal.close()
    data = bytearray(room.bytes())
    data[where * 4096 - 4096 : where * 4096] = b"\xff" * 4096
    room.path.write_bytes(bytes(data))
    before = room.bytes()
    with pytest.raises(JournalDamaged, match="damaged"):
        touch_everything(room)
    assert before == room.bytes()


def test_a_file_that_was_cut_is_damaged(room: Room) -> None:
    """As by a copy that found no room."""
    room.started(5).close()
    room.path.write_bytes(room.bytes()[: 4096 * 7])
    before = room.bytes()
    with pytest.raises(JournalDamaged, match="damaged"):
        touch_everything(room)
    assert before == room.bytes()


@pytest.mark.parametrize(
    "change", ["UPDATE updates SET phase = 'dancing'", "UPDATE updates SET admitted_at = 'noon'", "DELETE FROM meta"]
)
def test_a_row_that_nobody_writes(room: Room, change: str) -> None:
    """It is no journal as this program writes it."""
    room.started(5).close()
    foreign(room, change)
    with pytest.raises(JournalDamaged):
        touch_everything(room)


def touch_everything(room: Room) -> None:
    """Open, look at all that is there, and append."""
    journal = room.open()
    try:
        journal.item("5")
        journal.life("5")
        journal.listing()
        journal.append([incoming(9)], EPOCH, "i1")
    finally:
        journal.close()


class Forbidding(PosixFiles):
    """A file system on which nothing may be made."""

    def make_directory(self, path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def test_where_nothing_may_be_made(room: Room) -> None:
    """What to do is said."""
    room.files = Forbidding()
    assert "make the directory writable" in refused(room, JournalUnreachable)


def test_what_may_not_be_read(room: Room) -> None:
    """Rights are missing."""
    room.open().close()
    room.path.chmod(0)
    with bound_by_modes(), pytest.raises(JournalUnreachable, match="right"):
        room.open()


# -- whose it is ------------------------------------------------------------------------------------------------------


def test_another_bot_is_refused_while_there_is_work(room: Room) -> None:
    """I24; nothing changes, and the line says whose it is."""
    room.started(5).close()
    found = refused(room, ForeignIdentity, bot=OTHER_BOT)
    assert "bot 7" in found
    assert "bot 8" in found


def test_another_bot_takes_an_empty_one_over(room: Room) -> None:
    """And nothing of the first bot's answers for the second one's updates: the same id is another update."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    holder = taken(journal, receipt)
    journal.start(receipt, holder)
    journal.complete(receipt, holder)
    journal.add_evidence("thread", "a", "{}")
    journal.remember(About((5, 6)), "B")
    journal.close()
    room.lives.dead.add("p1")
    other = room.open(OTHER_BOT)
    state = other.state()
    assert (OTHER_BOT, -1, False, 0, EPOCH) == (state.bot, state.passed, state.opened, state.tombstones, state.fence)
    assert [] == miscounted(room)
    assert 1 == len(other.evidence("thread"))
    assert ((), None) == (other.servers(), other.remembered(About((5, 6))))
    assert not other.item("5").found
    assert () == other.life("5")
    assert other.end_first_start(EPOCH, "i1") is None
    answer = other.append([incoming(5)], EPOCH, "i1")
    assert (5,) == getattr(answer, "new", None)


@pytest.mark.parametrize(("evidence", "said"), [("alive", "works with it"), ("unknown", "may work with it")])
def test_another_bot_takes_nothing_from_who_may_live(room: Room, evidence: str, said: str) -> None:
    """Else both stand still for ever: one cannot use the journal, and the other does not get the lease."""
    journal = room.started()
    getattr(room.lives, evidence, set()).add("p1")
    found = refused(room, ForeignIdentity, bot=OTHER_BOT)
    for words in ("bot 7", "bot 8", "i1 (pid p1)", said, "end that process"):
        assert words in found
    assert (5,) == getattr(journal.append([incoming(5)], EPOCH, "i1"), "new", None)
    journal.discard_update(5, "ann")
    room.lives.unknown.clear()
    room.lives.dead.add("p1")
    room.open(OTHER_BOT).close()


def test_who_has_left_keeps_it_from_nobody(room: Room) -> None:
    """Though its process lives."""
    journal = room.started()
    journal.unserve("B", ME)
    assert OTHER_BOT == room.open(OTHER_BOT).state().bot


def test_who_had_it_open_before_notices(room: Room) -> None:
    """A process of the first bot does nothing in the second one's journal, and says whose it is."""
    first = room.started()
    first.unserve("B", ME)
    looking = room.open(None, create=False)
    second = room.open(OTHER_BOT)
    for before in (first, looking):
        with pytest.raises(ForeignIdentity, match=r"bot 8 has taken .*; end one of both"):
            before.append([incoming(1)], EPOCH, "i1")
    assert () == second.listing().updates


def test_a_looker_opens_whosever_it_is(room: Room) -> None:
    """No identity, no question."""
    room.started(5).close()
    assert BOT == room.open(None, create=False).state().bot


@pytest.mark.parametrize(
    ("stored", "ours", "known"),
    [
        (BotIdentity(7, "a" * 64), BotIdentity(7, "b" * 64), BotIdentity(7, "b" * 64)),
        (BotIdentity(None, "a" * 64), BotIdentity(7, "a" * 64), BotIdentity(7, "a" * 64)),
        (BotIdentity(7, "a" * 64), BotIdentity(None, "a" * 64), BotIdentity(7, "a" * 64)),
        (BotIdentity(None, "a" * 64), BotIdentity(None, "b" * 64), None),
        (BotIdentity(7, "a" * 64), BotIdentity(8, "a" * 64), None),
        (BotIdentity(7, "a" * 64), BotIdentity(None, "b" * 64), None),
    ],
)
def test_who_is_the_same_bot(room: Room, stored: BotIdentity, ours: BotIdentity, known: BotIdentity | None) -> None:
    """The ids are equal, or the tokens where an id is not known; two ids never are. What is learned is kept."""
    room.started(5, bot=stored).close()
    if known is None:
        refused(room, ForeignIdentity, bot=ours)
    else:
        journal = room.open(ours)
        assert known == journal.state().bot
        assert 1 == journal.state().serial
        journal.close()


def test_identities_are_of_tokens() -> None:
    """The token is not kept; its id is."""
    found = identity_of_token("123:secret")
    assert (123, 64) == (found.bot_id, len(found.token_sha256))
    assert identity_of_token("nonsense").bot_id is None
    for wrong in ("", "A" * 64, "a" * 63):
        with pytest.raises(TenureError):
            BotIdentity(1, wrong)
    with pytest.raises(TenureError):
        BotIdentity(0, "a" * 64)


# -- the schema -------------------------------------------------------------------------------------------------------


def test_an_older_version_becomes_this_one(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward, in one transaction, with everything that was in it; an older program that has it open notices."""
    older = room.started(5)
    for file in ("schema", "opening", "transaction"):
        monkeypatch.setattr(f"tenure.adapters.journal.{file}.VERSION", VERSION + 1)
    more = ("ALTER TABLE updates ADD COLUMN remark TEXT", "UPDATE updates SET remark = 'old'")
    monkeypatch.setattr("tenure.adapters.journal.schema.MIGRATIONS", (*MIGRATIONS, more))
    journal = room.open()
    assert [(5, "old")] == table(room, "SELECT update_id, remark FROM updates")
    assert [(VERSION + 1,)] == table(room, "PRAGMA user_version")
    journal.close()
    room.open().close()
    monkeypatch.undo()
    refused(room, JournalNewer)
    with pytest.raises(JournalNewer, match=f"schema {VERSION + 1}"):
        older.append([incoming(6)], EPOCH, "i1")
    with pytest.raises(JournalNewer):
        older.listing()


def test_a_migration_that_fails_has_done_nothing(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, or the older version."""
    room.started(5).close()
    before = room.bytes()
    for file in ("schema", "opening", "transaction"):
        monkeypatch.setattr(f"tenure.adapters.journal.{file}.VERSION", VERSION + 1)
    more = ("ALTER TABLE updates ADD COLUMN remark TEXT", "UPDATE nothing SET remark = 'old'")
    monkeypatch.setattr("tenure.adapters.journal.schema.MIGRATIONS", (*MIGRATIONS, more))
    with pytest.raises(JournalError):
        room.open()
    assert before == room.bytes()
    monkeypatch.undo()
    assert (5,) == tuple(row.data.update for row in room.open().listing().updates)
