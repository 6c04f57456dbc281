"""A poll loop over a queue and a journal in memory: what it asks, in which order it writes, how it ends."""

from __future__ import annotations

import asyncio

import pytest

from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.ports import Killed
from tenure.adapters.work.polling import OffsetUnknown, Poller
from tenure.adapters.work.source import Conflict, SourceFailed, update_id
from tenure.machines.poll_loop import NONE
from tests.adapters.work.work_room import MemoryInbox, MemorySource, message, run


class Room:
    """One loop that runs."""

    def __init__(self, source: MemorySource, inbox: MemoryInbox) -> None:
        self.source = source
        self.inbox = inbox
        self.leads = True
        self.told = 0
        self.poller = Poller(source, inbox, leads=lambda: self.leads, on_journaled=self._journaled)
        self.task: asyncio.Task[None] | None = None

    def _journaled(self) -> None:
        self.told += 1

    def start(self) -> asyncio.Task[None]:
        self.task = asyncio.ensure_future(self.poller.run())
        return self.task

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task
        assert self.source.in_flight == 0
        assert self.inbox.writing == 0
        assert self.poller.phase == "stopped"


def test_history_is_skipped_and_everything_after_it_is_work() -> None:
    async def story() -> None:
        source, inbox = MemorySource(*range(1, 26)), MemoryInbox()
        room = Room(source, inbox)
        room.start()
        await asyncio.sleep(1)
        assert inbox.opened
        assert set(inbox.journal.values()) == {"skipped"}
        source.push(26, 27)
        await asyncio.sleep(1)
        assert {n for n, kind in inbox.journal.items() if kind == "work"} == {26, 27}
        assert inbox.offset == 27
        assert [cursor for cursor, _ in source.asked] == [NONE, 10, 20, 25, 25, 27]
        assert [timeout for _, timeout in source.asked] == [0, 0, 0, 0, 30, 30]
        assert room.poller.counts.skipped == 25
        assert room.poller.counts.updates == 2
        assert room.told == 1
        await room.stop()

    run(story())


def test_nothing_is_forgotten_that_is_not_journaled_and_passed_on_disk() -> None:
    async def story() -> None:
        source, inbox = MemorySource(5, 6), MemoryInbox(4, opened=True)
        inbox.fails = [SourceFailed("no space is left"), None, SourceFailed("no space is left")]
        room = Room(source, inbox)
        room.start()
        await asyncio.sleep(0.5)
        assert inbox.journal == {}  # the append has failed
        await asyncio.sleep(3)
        assert inbox.journal == {5: "work", 6: "work"}  # and now the offset has
        assert inbox.offset == 4
        assert source.forgotten == set()
        await asyncio.sleep(3)
        assert inbox.offset == 6
        assert source.forgotten == {5, 6}  # by the request above them
        assert room.poller.counts.failures == 2
        await room.stop()

    run(story())


def test_a_stop_that_comes_while_something_is_written_waits_for_it_and_for_the_offset() -> None:
    async def story() -> None:
        source, inbox = MemorySource(5), MemoryInbox(4, opened=True)
        inbox.stalls = asyncio.Event()
        room = Room(source, inbox)
        task = room.start()
        await asyncio.sleep(1)
        assert room.poller.phase == "persisting_journal"
        task.cancel()
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(1)
        assert not task.done()
        inbox.stalls.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert inbox.journal == {5: "work"}
        assert inbox.offset == 5
        assert room.poller.phase == "stopped"
        assert len(source.asked) == 1  # it did not ask again

    run(story())


@pytest.mark.parametrize("seconds", [0.0, 0.5, 31.0, 100.0])
def test_a_loop_that_is_cancelled_leaves_no_request(seconds: float) -> None:
    async def story() -> None:
        source = MemorySource()
        room = Room(source, MemoryInbox(4, opened=True))
        room.start()
        await asyncio.sleep(seconds)
        await room.stop()
        assert source.most_in_flight <= 1

    run(story())


def test_who_leads_no_more_asks_no_more() -> None:
    async def story() -> None:
        source, inbox = MemorySource(), MemoryInbox(4, opened=True)
        room = Room(source, inbox)
        task = room.start()
        await asyncio.sleep(1)
        room.leads = False
        source.push(5)
        await task
        assert inbox.journal == {5: "work"}  # it was asked for while it led; the journal has its own fence
        assert len(source.asked) == 1
        assert room.poller.phase == "stopped"

    run(story())


def test_two_loops_end_each_other_and_lose_nothing() -> None:
    """A displaced poller and its successor: a conflict is all that it costs."""

    async def story() -> None:
        source, inbox = MemorySource(), MemoryInbox(4, opened=True)
        old, new = Room(source, inbox), Room(source, inbox)
        old.start()
        await asyncio.sleep(1)
        new.start()
        for number in range(5, 105):
            source.push(number)
            await asyncio.sleep(0.3)
        old.leads = False
        await asyncio.sleep(60)
        assert old.task is not None
        assert old.task.done()
        assert set(inbox.journal) == set(range(5, 105))
        assert source.forgotten <= set(inbox.journal)
        assert old.poller.counts.conflicts + new.poller.counts.conflicts > 2
        await new.stop()

    run(story())


def test_conflicts_in_a_row_are_waited_out_longer() -> None:
    async def story() -> None:
        source = MemorySource()
        source.answers = [Conflict("409")] * 4
        room = Room(source, MemoryInbox(4, opened=True))
        room.start()
        begun = asyncio.get_running_loop().time()
        while len(source.asked) < 5:
            await asyncio.sleep(0.01)
        assert asyncio.get_running_loop().time() - begun == pytest.approx(1 + 1 + 3 + 3, abs=0.1)
        await room.stop()

    run(story())


def test_a_request_that_is_never_answered_is_given_up_and_made_again() -> None:
    class Deaf(MemorySource):
        async def get_updates(self, cursor: int, limit: int, timeout_s: int) -> tuple[Json, ...]:
            if not self.asked:
                self.asked.append((cursor, timeout_s))
                await asyncio.Event().wait()
            return await super().get_updates(cursor, limit, timeout_s)

    async def story() -> None:
        source, inbox = Deaf(5), MemoryInbox(4, opened=True)
        room = Room(source, inbox)
        room.start()
        await asyncio.sleep(39.9)
        assert inbox.journal == {}
        await asyncio.sleep(3.2)
        assert inbox.journal == {5: "work"}
        await room.stop()

    run(story())


@pytest.mark.parametrize(
    "answer",
    [
        (message(4), message(5)),  # of the past
        (message(6), message(5)),
        (message(5), message(5)),
        (message(2**53),),
        (message(0),),
        (message(2**63), message(10**30)),
        (Json({"message": {}}),),
        (Json({"update_id": True}),),
        (Json({"update_id": -5}),),
        (Json("an update"),),
        ValueError("a fault of the source"),
        SourceFailed("502"),
    ],
)
def test_an_answer_that_is_none_changes_nothing(answer: tuple[Json, ...] | Exception) -> None:
    async def story() -> None:
        source, inbox = MemorySource(5), MemoryInbox(4, opened=True)
        source.answers = [answer]
        room = Room(source, inbox)
        room.start()
        await asyncio.sleep(1)
        assert inbox.journal == {}
        assert room.poller.trouble
        assert source.forgotten == set()
        await asyncio.sleep(3)
        assert inbox.journal == {5: "work"}
        await room.stop()

    run(story())


@pytest.mark.parametrize("bad", [message(0), message(2**53), message(10**30), Json({"message": {}}), Json(7)])
def test_what_has_no_id_holds_up_nobody_and_is_not_asked_for_without_a_pause(bad: Json) -> None:
    """It may come again in every answer."""

    class Odd(MemorySource):
        async def get_updates(self, cursor: int, limit: int, timeout_s: int) -> tuple[Json, ...]:
            if not self.waiting:
                self.asked.append((cursor, timeout_s))
                return (bad,)
            return (bad, *await super().get_updates(cursor, limit, timeout_s))

    async def story() -> None:
        source, inbox = Odd(5, 6), MemoryInbox(4, opened=True)
        room = Room(source, inbox)
        room.start()
        await asyncio.sleep(1)
        assert inbox.journal == {5: "work", 6: "work"}
        source.push(7)
        await asyncio.sleep(300)
        assert inbox.journal == {5: "work", 6: "work", 7: "work"}
        assert len(source.asked) < 120
        assert inbox.refused == room.poller.counts.refused == len(source.asked)
        await room.stop()

    run(story())


@pytest.mark.parametrize("opened", [True, False])
def test_what_telegram_numbers_anew_is_journaled(opened: bool) -> None:
    """After a week without updates the next id is any, also one far below the offset. It is a first start until an
    answer is empty."""

    async def story() -> None:
        source, inbox = MemorySource(), MemoryInbox(700, opened=opened)
        room = Room(source, inbox)
        source.newest = 102
        source.push(101, 102)
        room.start()
        await asyncio.sleep(5)
        assert inbox.journal == {}  # it may be an old answer
        await asyncio.sleep(10)
        assert inbox.journal == dict.fromkeys((101, 102), "work" if opened else "skipped")
        assert (inbox.offset, room.poller.data.cursor) == (102, 102)
        source.newest = 103
        source.push(103)
        await asyncio.sleep(1)
        assert inbox.journal[103] == "work"
        assert source.forgotten == {101, 102, 103} - set(source.waiting)
        assert room.poller.counts.renumbered == 1
        await room.stop()

    run(story())


@pytest.mark.parametrize(
    "answers",
    [
        [(message(5),), (message(5),)],
        [(message(5),), (message(6),), (message(5),), (message(6),)],
        [(message(5),), (message(5),), SourceFailed("502"), (), (message(5),)],
    ],
)
def test_an_answer_of_the_past_is_no_new_numbering(answers: list[tuple[Json, ...] | Exception]) -> None:
    async def story() -> None:
        source, inbox = MemorySource(), MemoryInbox(700, opened=True)
        source.answers = list(answers)
        room = Room(source, inbox)
        room.start()
        await asyncio.sleep(60)
        assert (inbox.journal, inbox.offset, room.poller.counts.renumbered) == ({}, 700, 0)
        assert not source.answers
        await room.stop()

    run(story())


@pytest.mark.parametrize("seconds", [7.0, 30.0])
def test_a_journal_that_cannot_follow_is_tried_again_with_pauses_and_a_stop_is_heard(seconds: float) -> None:
    async def story() -> None:
        source, inbox = MemorySource(), MemoryInbox(700, opened=True)
        inbox.fails = [SourceFailed("no space is left")] * 2
        room = Room(source, inbox)
        source.newest = 101
        source.push(101)
        room.start()
        await asyncio.sleep(seconds)
        assert len(source.asked) < 15
        assert inbox.journal == ({101: "work"} if seconds > 20 else {})
        await room.stop()

    run(story())


def test_who_is_stopped_before_the_offset_goes_down_leaves_it() -> None:
    async def story() -> None:
        source, inbox = MemorySource(), MemoryInbox(700, opened=True)
        room = Room(source, inbox)
        source.newest = 101
        source.push(101)
        room.start()
        await asyncio.sleep(7)
        assert len(source.asked) == 3
        await room.stop()
        assert (inbox.offset, room.poller.counts.renumbered) == (700, 0)

    run(story())


def test_a_stop_while_the_offset_goes_down_waits_for_that() -> None:
    async def story() -> None:
        source, inbox = MemorySource(), MemoryInbox(700, opened=True)
        inbox.stalls = asyncio.Event()
        room = Room(source, inbox)
        source.newest = 101
        source.push(101)
        task = room.start()
        await asyncio.sleep(10)
        assert inbox.writing == 1
        asked = len(source.asked)
        task.cancel()
        await asyncio.sleep(1)
        assert not task.done()
        inbox.stalls.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (inbox.offset, len(source.asked), room.poller.phase) == (100, asked, "stopped")

    run(story())


def test_the_greatest_id_is_taken() -> None:
    async def story() -> None:
        source, inbox = MemorySource(2**53 - 1), MemoryInbox(4, opened=True)
        room = Room(source, inbox)
        room.start()
        await asyncio.sleep(1)
        assert inbox.offset == 2**53 - 1
        await room.stop()

    run(story())


def test_a_journal_in_use_without_an_offset_is_not_polled_over() -> None:
    async def story() -> None:
        source = MemorySource(5)
        room = Room(source, MemoryInbox(NONE, opened=True))
        with pytest.raises(OffsetUnknown, match="restore"):
            await room.start()
        assert source.asked == []

    run(story())


def test_a_second_first_start_skips_nothing_that_is_work() -> None:
    """A loop that was slow finds that another has ended the first start meanwhile."""

    async def story() -> None:
        source, inbox = MemorySource(1), MemoryInbox()
        inbox.stalls = asyncio.Event()
        room = Room(source, inbox)
        room.start()
        await asyncio.sleep(1)
        inbox.opened, inbox.offset = True, 0
        inbox.stalls.set()
        await asyncio.sleep(10)
        assert inbox.journal == {1: "work"}
        await room.stop()

    run(story())


def test_who_is_killed_while_it_writes_does_nothing_more() -> None:
    class Dies(MemoryInbox):
        async def persist(self, offset: int) -> None:  # type: ignore[override]
            raise Killed

    async def story() -> None:
        source = MemorySource(5)
        room = Room(source, Dies(4, opened=True))
        with pytest.raises(Killed):
            await room.start()
        assert len(source.asked) == 1

    run(story())


def test_ids_of_updates() -> None:
    assert [update_id(message(number)) for number in (1, 2**53 - 1)] == [1, 2**53 - 1]
    assert [update_id(message(number)) for number in (0, -1, 2**53, 2**63)] == [None] * 4
    assert [update_id(Json(value)) for value in (None, [], {}, {"update_id": "7"}, {"update_id": 1.5})] == [None] * 5
