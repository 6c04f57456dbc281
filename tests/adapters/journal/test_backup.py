"""A copy is there as a whole, or not at all; and a disk that is full leaves everything as it was."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.journal.errors import JournalBusy, JournalError, JournalFull
from tenure.adapters.journal.sqlite import SqliteDatabase, SqliteDatabases
from tenure.adapters.journal.updates import Appended
from tenure.adapters.ports import Killed
from tenure.adapters.testing import Fails, FaultyFiles, Kills, at
from tenure.adapters.testing.databases import CallFails, CallKills, nth_call
from tests.adapters.journal.journal_room import (
    EPOCH,
    ME,
    Room,
    everything,
    incoming,
    kept,
    miscounted,
    taken,
)


def test_a_backup_opens_as_a_journal(room: Room, tmp_path: Path) -> None:
    """With everything in it, for its user alone; the original goes on."""
    journal = room.started(5, 6)
    receipt = kept(journal, 5)
    holder = taken(journal, receipt)
    there = tmp_path / "there" / "tmp" / "telegram"
    there.mkdir(parents=True)
    journal.backup(str(there / "journal.db"))
    assert ["journal.db"] == os.listdir(there)
    assert 0o600 == stat.S_IMODE(os.stat(there / "journal.db").st_mode)
    other = Room(tmp_path / "there")
    assert everything(room) == everything(other)
    copy = other.open()
    copy.start(receipt, holder)
    journal.append([incoming(7)], EPOCH, "i1")
    assert [6] == [row.data.update for row in copy.listing().updates]
    assert [] == miscounted(other)


def test_a_backup_is_on_the_disk_before_it_has_its_name(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written without waiting for the disk, and forced there as a whole: all of it, before it can be found."""
    forced: list[tuple[int, int]] = []
    fsync = os.fsync

    def spy(descriptor: int) -> None:
        fsync(descriptor)
        seen = os.fstat(descriptor)
        if stat.S_ISREG(seen.st_mode):
            assert not (tmp_path / "copy.db").exists()
            forced.append((seen.st_ino, seen.st_size))

    room.databases = SqliteDatabases()
    journal = room.started(5)
    monkeypatch.setattr(os, "fsync", spy)
    journal.backup(str(tmp_path / "copy.db"))
    seen = (tmp_path / "copy.db").stat()
    assert [(seen.st_ino, seen.st_size)] == forced


def test_nothing_is_replaced(room: Room, tmp_path: Path) -> None:
    """Whatever stands there, also the journal itself."""
    journal = room.started(5)
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to("/nowhere")
    for name in ("file", "directory", "link"):
        with pytest.raises(TenureError, match="something is there"):
            journal.backup(str(tmp_path / name))
    with pytest.raises(TenureError, match="something is there"):
        journal.backup(str(room.path))
    assert b"mine" == (tmp_path / "file").read_bytes()


def test_no_directory_for_it(room: Room, tmp_path: Path) -> None:
    """One line that names the target."""
    journal = room.started(5)
    with pytest.raises(TenureError) as caught:
        journal.backup(str(tmp_path / "no" / "where"))
    assert str(caught.value).startswith(str(tmp_path / "no" / "where"))


@pytest.mark.parametrize("fault", [Fails(errno.ENOSPC), Fails(errno.EIO), Kills("before"), Kills("after")])
def test_files_that_fail_at_any_call(room: Room, tmp_path: Path, fault: Fails | Kills) -> None:
    """There is no half of a copy under the name that was asked for."""
    room.started(5).close()
    for number in range(20):
        files = FaultyFiles(PosixFiles())
        room.files = files  # type: ignore[assignment]
        journal = room.open()
        files.plan = at(len(files.calls) + number, fault)
        calls = len(files.calls)
        target = tmp_path / f"copy-{number}"
        try:
            journal.backup(str(target))
        except (TenureError, Killed):
            # Where only the directory could not be forced to the disk, or who made it died, it may be there: whole.
            if target.exists():
                database = SqliteDatabase(str(target))
                assert [("ok",)] == list(database.execute("PRAGMA integrity_check"))
                database.close()
        else:
            if len(files.calls) - calls <= number:
                assert number > 3
                return
        journal.close()
    raise AssertionError("it never ends")


@pytest.mark.parametrize("fault", [CallFails("SQLITE_FULL"), CallFails("SQLITE_BUSY"), CallKills("before")])
def test_a_database_that_fails(room: Room, tmp_path: Path, fault: CallFails | CallKills) -> None:
    """No file stays behind but what a dead process left under another name."""
    room.started(5).close()
    databases = room.faulty()
    journal = room.open(databases=databases)
    for name in ("snapshot", "backup"):
        databases.plan = nth_call(name, 1, fault)
        databases.dead = False
        with pytest.raises((JournalError, Killed)) as caught:
            journal.backup(str(tmp_path / "copy"))
        assert not (tmp_path / "copy").exists()
        if isinstance(fault, CallKills):
            return
        assert [] == [path.name for path in tmp_path.iterdir() if path.name.startswith("copy")]
        assert isinstance(caught.value, JournalFull if fault.code == "SQLITE_FULL" else JournalBusy)
    databases.plan = None
    journal.backup(str(tmp_path / "copy"))


# -- a full disk ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durable", [False, True])
def test_a_full_disk(room: Room, durable: bool) -> None:
    """Each operation says so and has done nothing; with room again it goes on, on the same connection."""
    if durable:
        room.databases = SqliteDatabases()
    journal = room.started(5)
    receipt = kept(journal, 5)
    database = journal._store._database
    pages = database.execute("PRAGMA page_count")[0][0]
    assert isinstance(pages, int)
    database.execute(f"PRAGMA max_page_count = {pages}")
    batch = [incoming(number) for number in range(10, 500)]
    before, raw = everything(room), room.bytes()
    for _ in range(3):
        with pytest.raises(JournalFull, match="free some space"):
            journal.append(batch, EPOCH, "i1")
    assert before == everything(room)
    assert raw == room.bytes()
    assert [] == miscounted(room)
    holder = taken(journal, receipt)  # what needs no more room is done
    journal.start(receipt, holder)
    database.execute("PRAGMA max_page_count = 100000")
    assert isinstance(journal.append(batch, EPOCH, "i1"), Appended)
    assert [] == miscounted(room)


# -- two connections --------------------------------------------------------------------------------------------------


def test_two_at_once(room: Room) -> None:
    """Who is inside keeps others from writing, and from nothing else; each sees what the other has done."""
    one, two = room.started(5), room.open()
    inside = one._store._database
    inside.begin()
    assert [5] == [row.data.update for row in two.listing().updates]
    with pytest.raises(JournalBusy, match="inside"):
        two.append([incoming(6)], EPOCH, "i2")
    inside.rollback()
    assert isinstance(two.append([incoming(6)], EPOCH, "i2"), Appended)
    assert [5, 6] == [row.data.update for row in one.listing().updates]
    assert Appended((), (6,), 6) == one.append([incoming(6)], EPOCH, "i1")


def test_what_an_interrupt_left_open_is_rolled_back(room: Room) -> None:
    """The next operation of the same connection begins anew."""
    journal = room.started(5)

    class Interrupt(BaseException):
        """Something like a KeyboardInterrupt."""

    def work(transaction: object) -> None:
        raise Interrupt

    with pytest.raises(Interrupt):
        journal._store.write(work)
    journal._store._database.begin()
    assert isinstance(journal.append([incoming(6)], EPOCH, "i1"), Appended)
    assert () == journal.take_some(ME, 1)


def test_a_fork_does_not_write(room: Room) -> None:
    """The child has neither the locks nor the right to drop them."""
    journal = room.started(5)
    pid = os.fork()
    if not pid:
        code = 1
        try:
            journal.append([incoming(6)], EPOCH, "i1")
        except JournalError:
            with suppress(JournalError):
                journal.listing()
                os._exit(2)
            code = 0
        finally:
            os._exit(code)
    assert 0 == os.waitpid(pid, 0)[1]
    assert [5] == [row.data.update for row in journal.listing().updates]
