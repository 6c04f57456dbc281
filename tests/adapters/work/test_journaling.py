"""The journal as the drivers of this room use it, over a real one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.journal.errors import JournalBusy
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.threaded import ThreadedJournal
from tenure.adapters.journal.updates import Incoming
from tenure.adapters.work.journaling import BUSY_TRIES, JournalInbox, JournalOutbox, JournalReceipts, patiently
from tenure.machines.chart import Refused
from tenure.machines.poll_loop import NONE, Loaded, PersistEnded
from tests.adapters.journal.journal_room import EPOCH, KIND, ME, YOU, Room, kept
from tests.adapters.work.work_room import message

T = TypeVar("T")


class Desk:
    """A journal without a thread, after its first start, in which `ME` serves B."""

    def __init__(self, root: Path) -> None:
        self.room = Room(root)
        self.journal = self.room.started()
        self.refused: list[tuple[str, str]] = []
        self.receipts = JournalReceipts(self.threaded, ME, lambda: None, lambda *said: self.refused.append(said))

    @property
    def threaded(self) -> ThreadedJournal:
        return cast(ThreadedJournal, self)

    async def call(self, work: Callable[[Journal], T]) -> T:
        return work(self.journal)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# -- the inbox --------------------------------------------------------------------------------------------------------


def test_where_polling_begins(tmp_path: Path) -> None:
    """Nothing is known before the first start is over; then the offset is, and be it that nothing was there."""

    async def story() -> None:
        desk = Desk(tmp_path / "started")
        inbox = JournalInbox(desk.threaded, ME, EPOCH)
        assert await inbox.loaded() == Loaded(0, True)
        await inbox.record((message(7),), skipped=False)
        assert await inbox.loaded() == Loaded(7, True)
        desk.journal = Room(tmp_path / "new").open()
        assert await inbox.loaded() == Loaded(NONE, False)

    for name in ("started", "new"):
        (tmp_path / name).mkdir()
    asyncio.run(story())


def test_only_what_is_journaled_is_confirmed(desk: Desk) -> None:
    async def story() -> None:
        inbox = JournalInbox(desk.threaded, ME, EPOCH)
        await inbox.record((message(6), message(7)), skipped=False)
        assert await inbox.persist(7) == PersistEnded(True)
        assert await inbox.persist(8) == PersistEnded(False)
        again = JournalInbox(desk.threaded, ME, EPOCH)
        assert await again.persist(7) == PersistEnded(False)  # it has not looked
        await again.loaded()
        assert await again.persist(7) == PersistEnded(True)

    asyncio.run(story())


def test_who_does_not_lead_any_more_journals_nothing(desk: Desk) -> None:
    async def story() -> None:
        with pytest.raises(TenureError, match="has led since"):
            await JournalInbox(desk.threaded, ME, EPOCH - 1).record((message(7),), skipped=False)
        assert desk.journal.state().passed == NONE

    asyncio.run(story())


# -- the outbox -------------------------------------------------------------------------------------------------------


def test_all_that_was_being_sent_is_sent_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also more than one transaction takes up."""
    found: list[tuple[int, ...] | Refused] = [(1, 2), (3,), ()]
    monkeypatch.setattr(desk.journal, "resume", lambda *said: found.pop(0))
    outbox = JournalOutbox(desk.threaded, ME, EPOCH, lambda: 0)
    asyncio.run(outbox.resume(frozenset()))
    assert found == []
    found[:] = [Refused("resume", "absent", ("epoch_current",)), (1,)]
    asyncio.run(outbox.resume(frozenset()))
    assert found == [(1,)]


# -- receipts ---------------------------------------------------------------------------------------------------------


def test_what_is_offered_is_not_answered_as_taken(desk: Desk) -> None:
    """This process has it in memory already, aside; after a restart of its driver it falls with the offer."""

    async def story() -> None:
        desk.journal.append([_incoming(1), _incoming(2)], EPOCH, "i1")
        for number in (1, 2):
            kept(desk.journal, number)
        first, second = await desk.receipts.take(9)
        desk.journal.offer(first.receipt_id, first.holder, "h1", YOU)
        assert await desk.receipts.take(9) == (second,)

    asyncio.run(story())


def test_only_the_acquisition_that_has_begun_begins_again(desk: Desk) -> None:
    """Its answer was lost. Another acquisition of the same process has begun nothing."""

    async def story() -> None:
        desk.journal.append([_incoming(1)], EPOCH, "i1")
        kept(desk.journal, 1)
        (held,) = await desk.receipts.take(9)
        item = await desk.receipts.start(held)
        assert item is not None
        assert await desk.receipts.start(held) == item
        assert desk.refused == []
        stale = attrs.evolve(held, holder=attrs.evolve(held.holder, acquisition="another"))
        assert await desk.receipts.start(stale) is None
        assert [receipt for receipt, _ in desk.refused] == [held.receipt_id]

    asyncio.run(story())


def test_what_is_not_this_processs_any_more_is_told(desk: Desk) -> None:
    async def story() -> None:
        desk.journal.append([_incoming(1)], EPOCH, "i1")
        kept(desk.journal, 1)
        (held,) = await desk.receipts.take(9)
        await desk.receipts.release(held)
        assert desk.refused == []
        await desk.receipts.complete(held)
        assert len(desk.refused) == 1

    asyncio.run(story())


# -- who waits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("busy", "made"), [(0, 1), (BUSY_TRIES - 1, BUSY_TRIES), (BUSY_TRIES, BUSY_TRIES)])
def test_who_begins_asks_for_as_long_as_others_may_be_inside(busy: int, made: int) -> None:
    async def story() -> None:
        calls = []

        async def call() -> str:
            calls.append(1)
            if len(calls) <= busy:
                raise JournalBusy("journal.db", "another process is inside")
            return "answer"

        if busy < BUSY_TRIES:
            assert await patiently(call) == "answer"
        else:
            with pytest.raises(JournalBusy):
                await patiently(call)
        assert len(calls) == made

    asyncio.run(story())


def _incoming(number: int) -> Incoming:
    return Incoming(number, message(number).text, KIND)
