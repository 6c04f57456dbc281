"""What a leader delivers: in the journal before it is acknowledged, and refused with one line where it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.messages.envelopes import Forward, ForwardMessage
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.fleet.leader.requests import Route
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.identity import identity_of_token
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.liveness import process_name
from tenure.adapters.journal.threaded import ThreadedJournal
from tenure.adapters.journal.updates import Incoming
from tenure.adapters.work.intake import Intake
from tenure.adapters.work.journaling import JournalReceipts
from tenure.adapters.work.routing import Whose, address, forward
from tenure.machines.admission_identity import SOURCE_FIELD, delivery_id
from tenure.machines.follower_messages import Binding
from tenure.machines.receipt_messages import Party
from tenure.machines.routes_messages import Entry
from tests.adapters.work.work_room import message

MINE = "manual:a"
PORTS = real_ports()
ME = Party("1:1", process_name(PORTS.processes.me()), 1)


class Room:
    """An intake over a journal on disk."""

    def __init__(self, journal: ThreadedJournal) -> None:
        self.journal = journal
        self.signals = 0
        self.intake = Intake(journal, ME, binding=lambda: MINE, on_admitted=self._signal)
        self.receipts = JournalReceipts(journal, ME, lambda: None)

    def _signal(self) -> None:
        self.signals += 1

    async def refuses(self, request: Forward, words: str) -> None:
        before = await self.pending()
        with pytest.raises(TenureError, match=words):
            await self.intake.deliver(request)
        assert await self.pending() == before

    async def pending(self) -> list[int]:
        rows = await self.journal.call(lambda j: j.pending_work(MINE))
        return [row.first_update for row in rows]


def request(number: int = 5, text: str = "hello", binding: str = MINE) -> ForwardMessage:
    update = message(number, text)
    place = address(update)
    assert place is not None
    route = Route(Entry("1:1", "g", binding, "", Binding("0/1"), 0), None)
    made = forward(
        place, number, delivery_id(place.kind, binding, number), Whose(binding, route), request_id="2:1:1", sent_at_ms=1
    )
    assert isinstance(made, ForwardMessage)
    return made


def told(request: ForwardMessage, **delivery: Any) -> ForwardMessage:
    return attrs.evolve(request, delivery=attrs.evolve(request.delivery, **delivery))


def run(tmp_path: Path, story: Callable[[Room], Awaitable[None]], limits: Limits | None = None) -> None:
    async def main() -> None:
        opened = await ThreadedJournal.open(
            lambda: Journal.open(PORTS, agent_directory(tmp_path), bot=identity_of_token("7:x"), limits=limits)
        )
        async with opened as journal:
            await story(Room(journal))

    asyncio.run(main())


def test_what_is_admitted_is_there_and_is_executed_as_it_was_polled(tmp_path: Path) -> None:
    async def story(room: Room) -> None:
        await room.intake.deliver(request())
        assert await room.pending() == [5]
        assert room.signals == 1
        room.receipts.serving.follows(MINE)
        (held,) = await room.receipts.take(10)
        item = await room.receipts.start(held)
        assert item is not None
        assert item.updates == (message(5, "hello"),)
        assert (item.binding, item.attempt, item.tenure) == (MINE, 1, held.holder.acquisition)

    run(tmp_path, story)


def test_the_same_again_is_the_same_also_when_it_is_done(tmp_path: Path) -> None:
    async def story(room: Room) -> None:
        await room.intake.deliver(request())
        again = attrs.evolve(request(), request_id="3:1:1", forward_comment_batch_position="forward", sent_at_ms=9)
        await room.intake.deliver(again)
        room.receipts.serving.follows(MINE)
        (held,) = await room.receipts.take(10)
        assert await room.receipts.start(held) is not None
        await room.receipts.complete(held)
        await room.intake.deliver(again)
        assert await room.receipts.take(10) == ()
        assert (room.intake.counts.admitted, room.intake.counts.again, room.signals) == (1, 2, 1)

    run(tmp_path, story)


def test_what_is_not_what_it_says_is_refused(tmp_path: Path) -> None:
    async def story(room: Room) -> None:
        good = request()
        await room.refuses(attrs.evolve(good, message=None), "carries no update")
        await room.refuses(attrs.evolve(good, message=Json([])), "carries no update")
        await room.refuses(attrs.evolve(good, message=Json({SOURCE_FIELD: 6, "text": "x"})), "another one than it says")
        await room.refuses(told(good, delivery_id="telegram-follower-v1-" + "0" * 64), "not made of what it says")
        await room.refuses(request(binding="manual:b"), "another profile")
        await room.intake.deliver(good)
        await room.refuses(request(text="other words"), "another body")
        assert room.intake.counts.refused == 6

    run(tmp_path, story)


def test_a_full_journal_takes_nothing_and_loses_nothing(tmp_path: Path) -> None:
    async def story(room: Room) -> None:
        await room.intake.deliver(request(5))
        await room.intake.deliver(request(6))
        await room.refuses(request(7), "full")
        await room.intake.deliver(request(6))  # what it has it says again
        assert await room.pending() == [5, 6]

    run(tmp_path, story, Limits(entries=2))


def test_what_was_bound_elsewhere_meanwhile_is_not_taken(tmp_path: Path) -> None:
    """The leader of this journal has it still, for another binding."""

    async def story(room: Room) -> None:
        def lead(journal: Journal) -> None:
            journal.raise_fence(1, "9:9")
            journal.end_first_start(1, "9:9")
            journal.append([Incoming(5, message(5, "hello").text)], 1, "9:9")
            journal.forward(5, 1, "manual:other", "9:9", kind="leader.forwardMessage")

        await room.journal.call(lead)
        await room.refuses(request(), "bound elsewhere")

    run(tmp_path, story)


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    async def story(room: Room) -> None:
        await room.journal.close()
        with pytest.raises(TenureError, match="closed"):
            await room.intake.deliver(request())

    run(tmp_path, story)
