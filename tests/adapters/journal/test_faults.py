"""Every call of the database fails, or is the last one: what was asked for is done or not, and may be asked again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from tenure.adapters.journal.errors import JournalBusy, JournalError, JournalFull, OutcomeUnknown
from tenure.adapters.journal.journal import Journal
from tenure.adapters.ports import Killed
from tenure.adapters.testing.databases import CallFails, CallKills, DatabaseCall, FaultyDatabases, at_call
from tenure.machines.chart import Refused
from tenure.machines.receipt_messages import Holder, Party
from tests.adapters.journal.journal_room import (
    BOT,
    EPOCH,
    KIND,
    ME,
    OTHER_BOT,
    YOU,
    Room,
    arrival,
    everything,
    incoming,
    miscounted,
)

Operation = Callable[[Journal], object]


def receipt_of(journal: Journal, update: int) -> str:
    """The receipt of an update."""
    return journal.item(str(update)).receipts[0].receipt_id


def holder_of(journal: Journal, update: int) -> Holder:
    """Who owns it."""
    row = journal.item(str(update)).receipts[0]
    assert row.data.owner is not None
    return row.data.owner


def on(update: int, act: Callable[[Journal, str, Holder], object]) -> Operation:
    """An operation of the owner of an update's receipt. Looking for it is none of the calls that fail."""

    def operation(journal: Journal) -> object:
        return act(journal, *SEEN[update])

    return operation


SEEN: dict[int, tuple[str, Holder]] = {}
"""By update: the receipt and its owner, as they are before an operation."""

SCRIPT: tuple[tuple[str, Operation], ...] = (
    ("append", lambda j: j.append([incoming(u) for u in (5, 6, 7, 8)], EPOCH, "i1")),
    ("append a duplicate", lambda j: j.append([incoming(5)], EPOCH, "i1")),
    ("serve", lambda j: j.serve("C", YOU)),
    ("keep", lambda j: j.keep(5, EPOCH, "B", "i1", payload="{}")),
    ("keep another", lambda j: j.keep(7, EPOCH, "B", "i1")),
    ("forward", lambda j: j.forward(6, EPOCH, "C", "i1")),
    ("admit", lambda j: j.admit(arrival(6, "C"), "C", "i2")),
    ("admit again", lambda j: j.admit(arrival(6, "C"), "C", "i2")),
    ("failed", lambda j: j.failed(6, EPOCH, "transport-failed", "i1")),
    ("retry", lambda j: j.retry_update(6, "i1")),
    ("forward again", lambda j: j.forward(6, EPOCH, "C", "i1")),
    ("acknowledged", lambda j: j.acknowledged(6, EPOCH, True, arrival(6, "C").delivery, 6, "i1")),
    ("unserved", lambda j: j.unserved(8, EPOCH, "i1")),
    ("take", lambda j: j.take_some(ME, 9)),
    ("refused", on(5, lambda j, receipt, by: j.take(receipt, YOU))),
    ("offer", on(5, lambda j, receipt, by: j.offer(receipt, by, "handoff-1", YOU))),
    ("accept", on(5, lambda j, receipt, by: j.accept(receipt, YOU, "handoff-1", by))),
    ("start", on(5, lambda j, receipt, by: j.start(receipt, by))),
    ("complete", on(5, lambda j, receipt, by: j.complete(receipt, by))),
    ("start the other", on(7, lambda j, receipt, by: j.start(receipt, by))),
    ("reclaim", lambda j: j.reclaim(Party("i1b", "p1"))),
    ("retry what was interrupted", on(7, lambda j, receipt, by: j.retry(receipt, "ann"))),
    ("ask for a move", on(7, lambda j, receipt, by: j.ask_move(receipt, "i2"))),
    ("discard", on(7, lambda j, receipt, by: j.discard(receipt, "ann"))),
    ("release", lambda j: j.release_update(8, "i1", gone=True)),
    ("raise the fence", lambda j: j.raise_fence(EPOCH + 1, "i2")),
    ("vacancies", lambda j: j.vacancies()),
    ("evidence", lambda j: j.add_evidence("thread", "a", "{}")),
)


@attrs.frozen
class Chapter:
    """An operation, with the file as it was before and what is in it before and after."""

    name: str
    operation: Operation
    file: Path
    before: dict[str, list[tuple[object, ...]]]
    after: dict[str, list[tuple[object, ...]]]
    answer: object
    minted: int
    calls: tuple[str, ...]
    seen: dict[int, tuple[str, Holder]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> list[Chapter]:
    """The script, played once without faults."""
    room = Room(tmp_path_factory.mktemp("story"))
    room.lives.dead.add("p2")
    room.started().close()
    chapters: list[Chapter] = []
    owners = Holder("i1", "p1", 1, "none")
    for number, (name, operation) in enumerate(SCRIPT):
        copy = tmp_path_factory.mktemp("files") / f"{number}.db"
        shutil.copy(room.path, copy)
        before, minted = everything(room), room.identities.next
        databases = room.faulty()
        journal = room.open(databases=databases)
        seen = {}
        for update in (5, 7):
            found = journal.item(str(update)).receipts
            if found:
                seen[update] = (found[0].receipt_id, found[0].data.owner or owners)
        SEEN.update(seen)
        first = len(databases.calls)
        answer = operation(journal)
        calls = tuple(call.name for call in databases.calls[first:])
        journal.close()
        chapters.append(Chapter(name, operation, copy, before, everything(room), answer, minted, calls, seen))
        assert [] == miscounted(room)
    return chapters


def test_the_script_does_everything(story: list[Chapter]) -> None:
    """No operation of it is refused by accident."""
    refused = {chapter.name for chapter in story if isinstance(chapter.answer, Refused)}
    assert {"refused"} == refused
    idle = {chapter.name for chapter in story if chapter.before == chapter.after}
    assert {"append a duplicate"} == idle


class Play:
    """One operation of the script, on a file of its own, with one call that fails."""

    def __init__(self, room: Room, chapter: Chapter, number: int, fault: CallFails | CallKills) -> None:
        self.room = room
        self.chapter = chapter
        room.lives.dead.add("p2")
        room.path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(chapter.file, room.path)
        Path(f"{room.path}-journal").unlink(missing_ok=True)
        SEEN.update(chapter.seen)
        self.databases: FaultyDatabases = room.faulty()
        self.journal = room.open(databases=self.databases)
        self.databases.plan = at_call(len(self.databases.calls) + number, fault)

    def run(self) -> object:
        """As it was played before."""
        self.room.identities.next = self.chapter.minted
        return self.chapter.operation(self.journal)

    def again(self) -> object:
        """As it is asked for again, on the same connection, when nothing fails any more."""
        self.databases.plan = None
        return self.run()


def spots(story: list[Chapter], *names: str) -> Iterator[tuple[Chapter, int, str]]:
    """Every call of every operation, those of that name only."""
    for chapter in story:
        for number, name in enumerate(chapter.calls):
            if not names or name in names:
                yield chapter, number, name


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_any_call(story: list[Chapter], tmp_path: Path, when: str) -> None:
    """Who opens it next finds it before the operation or after it, and nothing in between."""
    outcomes = set()
    for count, (chapter, number, name) in enumerate(spots(story)):
        (tmp_path / str(count)).mkdir()
        room = Room(tmp_path / str(count))
        play = Play(room, chapter, number, CallKills("before" if when == "before" else "after"))
        with pytest.raises(Killed):
            play.run()
        found = everything(room)
        done = name == "commit" and when == "after"
        if chapter.name != "refused":
            assert (chapter.after if done else chapter.before) == found, (chapter.name, number, name)
        assert [] == miscounted(room), (chapter.name, number, name)
        outcomes.add(done)
    assert {when == "after", False} == outcomes


@pytest.mark.parametrize("code", ["SQLITE_IOERR", "SQLITE_FULL", "SQLITE_BUSY"])
def test_an_error_at_any_call(story: list[Chapter], tmp_path: Path, code: str) -> None:
    """Nothing was done, and asked again it is done; where a commit is broken off nobody knows, and nobody says he
    does."""
    kinds = {"SQLITE_IOERR": JournalError, "SQLITE_FULL": JournalFull, "SQLITE_BUSY": JournalBusy}
    for count, (chapter, number, name) in enumerate(spots(story, "begin", "snapshot", "execute", "commit")):
        (tmp_path / str(count)).mkdir()
        room = Room(tmp_path / str(count))
        play = Play(room, chapter, number, CallFails(code))
        if chapter.name == "refused":
            # That it cannot be written down makes no error of a refusal.
            if play_fails(play):
                assert chapter.before == everything(room)
            continue
        with pytest.raises(JournalError) as caught:
            play.run()
        unknown = name == "commit" and code == "SQLITE_IOERR"
        assert isinstance(caught.value, OutcomeUnknown if unknown else kinds[code]), (chapter.name, number, name)
        assert "\n" not in str(caught.value)
        assert chapter.before == everything(room), (chapter.name, number, name)
        assert chapter.answer == play.again(), (chapter.name, number, name)
        assert chapter.after == everything(room), (chapter.name, number, name)
        play.journal.close()


def play_fails(play: Play) -> bool:
    """Whether it raised; if it did not, it was refused all the same."""
    try:
        answer = play.run()
    except JournalError:
        return True
    assert answer == play.chapter.answer
    return False


def test_a_commit_that_was_done_and_failed(story: list[Chapter], tmp_path: Path) -> None:
    """Nobody knows; asked again, nothing is done twice."""
    for count, (chapter, number, _) in enumerate(spots(story, "commit")):
        (tmp_path / str(count)).mkdir()
        room = Room(tmp_path / str(count))
        play = Play(room, chapter, number, CallFails("SQLITE_IOERR", "after"))
        if chapter.name == "refused":
            assert play_fails(play) is False
            continue
        with pytest.raises(OutcomeUnknown, match="nobody knows"):
            play.run()
        assert chapter.after == everything(room), chapter.name
        play.again()
        found, data = everything(room), ("updates", "deliveries", "receipts", "moves", "servers")
        changed = {name for name in data if found[name] != chapter.after[name]}
        # Of another vacancy, or of another time at which a move was asked for, nothing would be executed twice.
        assert set() == changed, (chapter.name, changed)
        play.journal.close()


@pytest.mark.parametrize("code", ["SQLITE_IOERR", "SQLITE_FULL", "SQLITE_BUSY"])
def test_a_commit_that_cannot_be_taken_back_is_unknown(room: Room, code: str) -> None:
    """Whatever the commit said: as long as it is not rolled back it may count yet, for whoever opens the file next."""
    databases = room.faulty()
    room.started().close()
    journal = room.open(databases=databases)

    def plan(call: DatabaseCall) -> CallFails | None:
        if call.name == "commit":
            return CallFails(code)
        return CallFails("SQLITE_IOERR") if call.name == "rollback" else None

    databases.plan = plan
    with pytest.raises(OutcomeUnknown, match="nobody knows"):
        journal.append([incoming(5)], EPOCH, "i1")
    databases.plan = None
    assert (5,) == getattr(journal.append([incoming(5)], EPOCH, "i1"), "new", None)


@pytest.mark.parametrize("bot", [BOT, OTHER_BOT])
@pytest.mark.parametrize("fault", [CallFails("SQLITE_IOERR"), CallKills("before"), CallKills("after")])
@pytest.mark.parametrize("new", [True, False])
def test_opening_fails_or_is_killed_at_any_call(
    tmp_path: Path, fault: CallFails | CallKills, new: bool, bot: object
) -> None:
    """Whoever opens it next finds a journal, new or as it was."""
    count = 0
    while True:
        (tmp_path / str(count)).mkdir()
        room = Room(tmp_path / str(count))
        if not new:
            room.started().close()
            room.lives.dead.add("p1")
        databases = room.faulty()
        databases.plan = at_call(count, fault)
        try:
            room.open(bot if bot is BOT else OTHER_BOT, databases=databases).close()
        except (JournalError, Killed):
            pass
        else:
            if count >= len(databases.calls):
                break
        databases.die()
        journal = room.open(OTHER_BOT if bot is OTHER_BOT else BOT)
        assert 3 == journal.raise_fence(EPOCH, "i1")
        assert journal.end_first_start(EPOCH, "i1") is None
        assert (5,) == getattr(journal.append([incoming(5)], EPOCH, "i1"), "new", None)
        journal.close()
        assert [] == miscounted(room)
        count += 1
    assert count > 5


def test_kinds_are_what_they_are_called() -> None:
    """What the script forwards is forwarded in that envelope."""
    assert KIND == arrival(5).kind
