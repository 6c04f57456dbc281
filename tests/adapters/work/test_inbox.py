"""What is polled, over a real journal: what is numbered anew, what has no id, and what is nested too deep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import attrs
import pytest

from tenure.adapters.bus.messages.json_values import Json, JsonValue
from tenure.adapters.errors import TenureError
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.threaded import ThreadedJournal
from tenure.adapters.trace.api import explained
from tenure.adapters.work.journaling import JournalInbox, JournalOutbox
from tenure.adapters.work.outbox import Outcome
from tenure.adapters.work.polling import Poller
from tenure.adapters.work.routing import address
from tenure.machines.poll_loop import ASKED, Loaded, RecordEnded
from tests.adapters.journal.journal_room import EPOCH, KIND, ME, Room
from tests.adapters.work.work_room import MemorySource, message, run

T = TypeVar("T")


class Desk:
    """A journal without a thread, after its first start."""

    def __init__(self, root: Path, *updates: int) -> None:
        self.room = Room(root)
        self.journal = self.room.started(*updates)
        self.inbox = JournalInbox(cast(ThreadedJournal, self), ME, EPOCH)
        self.outbox = JournalOutbox(cast(ThreadedJournal, self), ME, EPOCH, lambda: 0)

    async def call(self, work: Callable[[Journal], T]) -> T:
        return work(self.journal)

    def told(self, subject: str) -> list[tuple[str, str | None]]:
        """What is told of an update, the oldest first."""
        return [(decision.action, decision.detail) for decision in self.journal.life(subject)]


def nested(depth: int, number: int = 6) -> Json:
    """A message in which something is nested so deep."""
    inner: JsonValue = []
    for _ in range(depth):
        inner = [inner]
    return Json({"update_id": number, "message": {"chat": {"id": -100}, "message_id": 1, "x": inner}})


@pytest.mark.parametrize("depth", [127, 300, 900, 100_000])
def test_what_is_nested_too_deep_is_told_and_passed(tmp_path: Path, depth: int) -> None:
    """Nobody could read it again; whoever leads next does not meet it."""

    async def story() -> None:
        desk = Desk(tmp_path)
        assert await desk.inbox.record((message(5), nested(depth), message(7)), skipped=False) == RecordEnded(
            True, True
        )
        assert [row.update_id for row in await desk.outbox.outgoing(0, 10, unserved=True)] == [5, 7]
        assert (await desk.inbox.loaded()).offset == 7
        assert [action for action, _ in desk.told("6")] == ["admit", "discard"]
        assert "nested deeper" in str(desk.told("6")[-1][1])
        assert await desk.inbox.record((message(5), nested(depth), message(7)), skipped=False) == RecordEnded(
            True, True
        )
        assert len(desk.told("6")) == 2

    asyncio.run(story())


def test_what_is_nested_as_deep_as_a_line_may_be_is_kept(tmp_path: Path) -> None:
    async def story() -> None:
        desk = Desk(tmp_path)
        await desk.inbox.record((nested(125),), skipped=False)
        (found,) = await desk.outbox.outgoing(0, 10, unserved=True)
        assert found.body == nested(125)

    asyncio.run(story())


def test_what_was_journaled_out_of_bounds_is_a_value_that_says_nothing(tmp_path: Path) -> None:
    """By whomever: it is no reason to give the leadership up."""

    async def story() -> None:
        desk = Desk(tmp_path, 5)
        desk.room.reader().execute("UPDATE updates SET raw = ?", ("[" * 100_000,))
        (found,) = await desk.outbox.outgoing(0, 10, unserved=True)
        assert (found.update_id, found.body, address(found.body)) == (5, Json(None), None)

    asyncio.run(story())


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**300])
@pytest.mark.parametrize("member", ["chat", "message_thread_id", "message_id"])
def test_an_id_of_more_than_64_bits_is_asked_after_as_none(tmp_path: Path, member: str, number: int) -> None:
    async def story() -> None:
        desk = Desk(tmp_path)
        body: dict[str, JsonValue] = {"chat": {"id": -100}, "message_id": 1, "message_thread_id": 7}
        body[member] = {"id": number} if member == "chat" else number
        await desk.inbox.record((Json({"update_id": 5, "message": body}),), skipped=False)
        (found,) = await desk.outbox.outgoing(0, 10, unserved=True)
        place = address(found.body)
        assert place is not None
        assert await desk.outbox.remembered(place) is None
        assert Outcome(delivered=True) == await desk.outbox.keep(found, place.kind, "B")

    asyncio.run(story())


def test_what_has_no_id_is_told_once_however_often_it_comes(tmp_path: Path) -> None:
    async def story() -> None:
        desk = Desk(tmp_path)
        odd = (Json({"update_id": 0}), Json({"update_id": 2**53}), Json({"update_id": [1] * 1_000}), Json([[]]))
        for _ in range(3):
            await desk.inbox.refuse(odd)
        for name in ("0", "9007199254740992", "none", "null"):
            ((action, detail),) = desk.told(name)
            assert action == "admit"
            assert f"its update id is {name}" in str(detail)
        assert await desk.inbox.loaded() == Loaded(0, True)

    asyncio.run(story())


def test_the_offset_goes_down_only_for_what_came_again_and_again(tmp_path: Path) -> None:
    async def story() -> None:
        desk = Desk(tmp_path, 700)
        with pytest.raises(TenureError):
            await desk.inbox.renumber(101, ASKED - 1)
        assert (await desk.inbox.loaded()).offset == 700
        await desk.inbox.renumber(101, ASKED)
        assert (await desk.inbox.loaded()).offset == 100
        assert await desk.inbox.record((message(101),), skipped=False) == RecordEnded(True, True)
        assert [action for action, _ in desk.told("101")] == ["renumber", "renumber", "admit"]
        desk.journal.raise_fence(EPOCH + 1, "i2")
        with pytest.raises(TenureError, match="epoch"):
            await desk.inbox.renumber(50, ASKED)
        assert (await desk.inbox.loaded()).offset == 101

    asyncio.run(story())


def test_what_is_known_is_passed_in_a_new_numbering_too(tmp_path: Path) -> None:
    async def story() -> None:
        desk = Desk(tmp_path, 101, 102, 700)
        for number in (101, 102):
            assert desk.journal.discard_update(number, "ann") is None
        await desk.inbox.renumber(101, ASKED)
        await desk.inbox.record((message(101), message(102)), skipped=False)
        assert (await desk.inbox.loaded()).offset == 102
        assert [found.update_id for found in await desk.outbox.outgoing(0, 10, unserved=True)] == [700]

    asyncio.run(story())


def test_the_journal_explains_itself_after_that(tmp_path: Path) -> None:
    """`tenure trace check` of the file alone."""

    async def story() -> None:
        desk = Desk(tmp_path, 700)
        await desk.inbox.refuse((Json({"update_id": 0}), Json(3)))
        await desk.inbox.renumber(101, ASKED)
        await desk.inbox.record((message(101), nested(300, 102)), skipped=False)
        (found,) = await desk.outbox.outgoing(0, 1, unserved=True)
        assert Outcome(delivered=True) == await desk.outbox.keep(found, KIND, "B")
        assert explained(str(desk.room.path))

    asyncio.run(story())


def test_who_is_told_to_go_up_stays_where_he_is(tmp_path: Path) -> None:
    async def story() -> None:
        desk = Desk(tmp_path, 700)
        await desk.inbox.renumber(800, ASKED)
        assert (await desk.inbox.loaded()).offset == 700

    asyncio.run(story())


def test_what_has_a_row_is_known_in_a_new_numbering_too(tmp_path: Path) -> None:
    """Telegram answers what it holds from before, as after a backup of its own: nothing is executed twice, and it is
    passed."""

    async def story() -> None:
        desk = Desk(tmp_path, 101, 102, 700)
        assert desk.journal.discard_update(101, "ann") is None
        source = MemorySource(101, 102, 103)
        source.newest = 103
        polling = asyncio.ensure_future(Poller(source, desk.inbox, leads=lambda: True).run())
        await asyncio.sleep(30)
        polling.cancel()
        live = await desk.outbox.outgoing(0, 10, unserved=True)
        assert [found.update_id for found in live] == [102, 103, 700]
        assert (await desk.inbox.loaded()).offset == 103
        assert source.waiting == {}

    source_bodies = pytest.MonkeyPatch()
    with source_bodies.context() as patch:
        patch.setattr("tests.adapters.journal.journal_room.body", lambda number: message(number).text)
        run(story())


def test_what_finds_no_room_here_is_told_why(tmp_path: Path) -> None:
    """Nothing is written down of it, so that a full journal does not grow: whoever asks has to say it."""

    async def story() -> None:
        desk = Desk(tmp_path, 5)
        desk.room.limits = attrs.evolve(desk.room.limits, entry_bytes=1)
        desk.journal = desk.room.open()
        (found,) = await desk.outbox.outgoing(0, 10, unserved=True)
        outcome = await desk.outbox.keep(found, KIND, "B")
        assert not outcome.delivered
        assert "full" in outcome.why
        assert desk.journal.discard_update(5, "someone") is None
        assert Outcome(delivered=False) == await desk.outbox.keep(found, KIND, "B")  # nobody waits for it

    asyncio.run(story())
