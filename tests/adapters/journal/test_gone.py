"""A journal that is lost is never taken for an empty one, and nobody works on a file that is not the journal any more
(B73)."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.journal.database import GONE, DatabaseFault
from tenure.adapters.journal.errors import JournalDamaged, JournalGone, JournalLost, JournalUnreachable
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.opening import mark_of
from tenure.adapters.journal.sqlite import SqliteDatabase, SqliteDatabases
from tenure.adapters.journal.threaded import ThreadedJournal
from tests.adapters.journal.journal_room import BOT, EPOCH, OTHER_BOT, Room, incoming, kept
from tests.adapters.journal.test_opening import contents, put, refused

ROLLBACK = "-journal"


def mark(room: Room) -> Path:
    """That a journal was made."""
    return Path(mark_of(str(room.path)))


# -- under who uses it ------------------------------------------------------------------------------------------------


def removed(room: Room) -> None:
    """By somebody who wanted to begin anew."""
    room.path.unlink()


def removed_whole(room: Room) -> None:
    """With what is beside it."""
    for path in room.path.parent.glob("journal.db*"):
        path.unlink()


def replaced(room: Room) -> None:
    """By a copy of itself, which is another file."""
    copy = room.path.with_name("copy")
    shutil.copy(room.path, copy)
    copy.rename(room.path)


def emptied(room: Room) -> None:
    """In place."""
    os.truncate(room.path, 0)


HARM: dict[str, tuple[Callable[[Room], None], str]] = {
    "removed": (removed, "was removed"),
    "removed_whole": (removed_whole, "was removed"),
    "replaced": (replaced, "was replaced"),
    "emptied": (emptied, "was cut to nothing"),
}


@pytest.mark.parametrize("harm", HARM)
def test_who_uses_it_neither_reads_nor_writes_any_more(room: Room, harm: str) -> None:
    """Each call says so in one line, and nothing is written to what stands there now."""
    room.databases = SqliteDatabases()
    journal = room.started(1, 2)
    act, said = HARM[harm]
    act(room)
    before = contents(room)
    calls: tuple[Callable[[Journal], object], ...] = (
        lambda j: j.append([incoming(3)], EPOCH, "i1"),
        lambda j: kept(j, 1),
        lambda j: j.state(),
        lambda j: j.backup(str(room.path.parent / "copy.db")),
        lambda j: j.raise_fence(EPOCH + 1, "i1"),
    )
    for call in calls:
        with pytest.raises(JournalGone, match=f"the journal {said}.*start again") as caught:
            call(journal)
        assert "\n" not in str(caught.value)
    assert before == contents(room)
    journal.close()


def test_a_copy_that_was_put_over_it_is_noticed(room: Room) -> None:
    """In place, where only its content tells: what never falls has fallen."""
    room.databases = SqliteDatabases()
    journal = room.started(1)
    older = room.bytes()
    journal.append([incoming(2)], EPOCH, "i1")
    assert journal.state().passed == 2
    journal.close()
    for fallen in ("decisions", "fence"):
        journal = room.open()
        if fallen == "fence":
            older = room.bytes()
            journal.raise_fence(EPOCH + 1, "i1")
        journal.state()
        with room.path.open("r+b") as file:
            file.write(older)
        # Another connection, as SQLite trusts what it knows of a file as long as nobody has counted a change.
        journal._store._database.close()
        journal._store._database = SqliteDatabases().open(str(room.path))
        with pytest.raises(JournalGone, match="older copy"):
            journal.state()
        with pytest.raises(JournalGone, match="older copy"):
            journal.append([incoming(3)], EPOCH, "i1")


def test_what_sqlite_notices_itself_is_told_the_same(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was moved in the middle of a transaction."""
    room.databases = SqliteDatabases()
    journal = room.started(1)
    monkeypatch.setattr(SqliteDatabase, "_require_there", lambda self: None)
    room.path.rename(room.path.with_name("elsewhere"))
    with pytest.raises(JournalGone, match="was removed, or replaced"):
        journal.append([incoming(2)], EPOCH, "i1")


def test_replaced_while_it_is_opened(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can tell which of both is open: then none is."""
    room.started(1).close()
    files = iter([(1, 1), (1, 2)])
    monkeypatch.setattr("tenure.adapters.journal.sqlite._file_at", lambda path: next(files))
    with pytest.raises(DatabaseFault) as caught:
        SqliteDatabases().open(str(room.path))
    assert GONE == caught.value.code


def test_a_process_is_told_once_that_it_cannot_go_on(room: Room) -> None:
    """And so is whoever asks; another bot's journal is as lost to it as one that is gone."""

    async def story() -> None:
        heard: list[JournalLost] = []
        async with await ThreadedJournal.open(room.started) as journal:
            journal.on_lost = heard.append
            assert -1 == (await journal.call(lambda j: j.state())).passed
            assert None is journal.lost
            room.lives.dead.add("p1")
            room.open(OTHER_BOT).close()
            for _ in range(2):
                with pytest.raises(JournalLost, match="bot 8"):
                    await journal.call(lambda j: j.state())
            assert [journal.lost] == heard

    asyncio.run(story())


# -- for who opens it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("harm", ["removed", "removed_whole", "emptied"])
def test_none_is_made_in_place_of_one_that_is_lost(room: Room, harm: str, create: bool) -> None:
    """It says what tells of it, and what to do."""
    room.started(1).close()
    HARM[harm][0](room)
    found = refused(room, JournalDamaged, create=create)
    assert ("is empty" if harm == "emptied" else "has gone") in found
    assert mark(room).name in found


def test_a_backup_in_its_place_is_the_journal(room: Room) -> None:
    """As it is told."""
    journal = room.started(1)
    journal.backup(str(room.path.parent / "b.db"))
    journal.close()
    removed_whole(room)
    (room.path.parent / "b.db").rename(room.path)
    assert 1 == room.open().state().passed


def test_without_the_mark_an_empty_one_is_begun(room: Room) -> None:
    """A person has removed what told of the last one."""
    room.started(1).close()
    removed_whole(room)
    mark(room).unlink()
    assert -1 == room.open().state().passed
    assert mark(room).exists()


def test_a_journal_without_a_mark_gets_one(room: Room) -> None:
    """Who made it did not live to set it; who only looks sets none."""
    room.started(1).close()
    mark(room).unlink()
    room.open(None, create=False).close()
    assert not mark(room).exists()
    assert 1 == room.open().state().passed
    assert b"put a backup in its place" in mark(room).read_bytes()


def test_each_profile_has_a_mark_of_its_own(room: Room) -> None:
    """One is lost, and the other is begun."""
    room.started(1).close()
    Journal.open(room.ports(), room.directory, "work", bot=BOT).close()
    assert {"journal.made", "journal.work.made"} == {path.name for path in room.path.parent.glob("*.made")}


def test_a_mark_that_cannot_be_set_is_told(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the journal is opened when it can be."""

    def create(self: PosixFiles, path: str, data: bytes) -> None:
        if path == str(mark(room)):
            raise PermissionError(13, "Permission denied", path)
        original(self, path, data)

    original = PosixFiles.create
    monkeypatch.setattr(PosixFiles, "create", create)
    with pytest.raises(JournalUnreachable, match=r"journal\.made: Permission denied"):
        room.open()
    monkeypatch.undo()
    room.open().close()
    assert mark(room).exists()


def test_an_empty_file_that_somebody_is_about_to_fill_is_not_lost(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is filled, and marked, between two looks of who opens it as well: the mark is looked for first."""
    put(room, b"")
    kinds = PosixFiles.kind

    def kind(self: PosixFiles, path: str) -> object:
        found = kinds(self, path)
        if path == str(mark(room)):
            monkeypatch.undo()
            room.started(1).close()
        return found

    monkeypatch.setattr(PosixFiles, "kind", kind)
    assert 1 == room.open().state().passed
