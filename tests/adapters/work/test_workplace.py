"""Workplaces together: each update is executed once, by whose it is, whoever leads."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.errors import TenureError
from tenure.adapters.journal.identity import identity_of_token
from tenure.adapters.work.items import Item
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.work.place_room import Place, Town, answered, settled
from tests.adapters.work.work_room import MemorySource, message


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def test_each_executes_what_is_in_its_thread(town: Town) -> None:
    async def story() -> None:
        async with town:
            first, second, third = [await town.works(pid) for pid in (101, 102, 103)]
            await town.opens()
            for number in range(1, 13):
                (first, second, third)[number % 3].push(number)
            town.source.push(13)  # in no thread: the leader's
            await town.has_executed(*range(1, 14))
            assert town.updates == list(range(1, 14))
            assert town.updates_of(101) == [3, 6, 9, 12, 13]
            assert town.updates_of(102) == [1, 4, 7, 10]
            assert town.updates_of(103) == [2, 5, 8, 11]
            await until(lambda: settled(town) == {})
            await until(lambda: first.work.statistics().forwarded.forwarded == 8)

    run(story())


def test_what_was_there_before_the_first_start_is_executed_by_nobody(town: Town) -> None:
    async def story() -> None:
        async with town:
            town.source.push(*range(1, 26))
            await town.works(101)
            await town.opens()
            town.source.push(26)
            await town.has_executed(26)
            assert town.updates == [26]

    run(story())


def test_an_update_for_who_is_not_there_yet_waits(town: Town) -> None:
    async def story() -> None:
        async with town:
            first = await town.works(101)
            await town.opens()
            thread = first.thread + 1
            town.source.put(message(1, thread=thread, chat=0))
            town.source.push(2)
            await town.has_executed(2)
            await until(lambda: first.work.statistics().forwarded.unserved)
            second = await town.works(102)
            assert second.thread == thread
            await town.has_executed(1)
            assert town.updates_of(102) == [1]

    run(story())


def test_what_is_about_a_message_goes_to_whose_that_is(town: Town) -> None:
    """Reactions name no thread, and a button may not (B44)."""

    async def story() -> None:
        async with town:
            first, second = await town.works(101), await town.works(102)
            await town.opens()
            second.push(1)
            first.push(2)
            await town.has_executed(1, 2)
            place = {"chat": {"id": 0}}
            town.source.put(
                Json({"update_id": 3, "message_reaction": {**place, "message_id": 1, "new_reaction": []}}),
                Json({"update_id": 4, "message_reaction": {**place, "message_id": 2, "new_reaction": []}}),
                Json({"update_id": 5, "callback_query": {"id": "1", "message": {**place, "message_id": 1}}}),
                Json({"update_id": 6, "edited_message": {**place, "message_id": 1, "text": "new"}}),
                Json({"update_id": 7, "message_reaction": {**place, "message_id": 99, "new_reaction": []}}),
                Json({"update_id": 8, "poll": {"id": "1"}}),
            )
            await town.has_executed(*range(3, 9))
            assert town.updates_of(102) == [1, 3, 5, 6]
            assert town.updates_of(101) == [2, 4, 7, 8]

    run(story())


def test_who_takes_over_goes_on_where_the_dead_leader_was(town: Town) -> None:
    async def story() -> None:
        async def hangs(item: Item) -> None:
            await asyncio.Event().wait()

        async with town:
            first, second, third = await town.works(101, hangs), await town.works(102), await town.works(103)
            await town.opens()
            before = first.thread
            first.push(1, 2)
            second.push(3)
            third.push(4)
            await town.has_executed(1, 3, 4)
            await until(lambda: settled(town) == {1: "started", 2: "queued"})
            first.dies()
            await second.leads()
            await third.follows(second)
            await town.has_executed(2)
            assert town.updates_of(102) == [3, 2]
            await until(lambda: settled(town) == {1: "interrupted"})
            town.source.put(message(5, thread=before, chat=0))  # of a thread that was the leader's, whoever that is
            second.push(6)
            third.push(7)
            await town.has_executed(5, 6, 7)
            assert town.updates == [1, 2, 3, 4, 5, 6, 7]
            assert 5 in town.updates_of(102)

    run(story())


def test_who_leaves_gives_back_what_it_has_not_begun(town: Town) -> None:
    async def story() -> None:
        gate = asyncio.Event()

        async def waits(item: Item) -> None:
            await gate.wait()

        async with town:
            first, second = await town.works(101), await town.works(102, waits)
            await town.opens()
            second.push(1, 2)
            await town.has_executed(1)
            await until(lambda: settled(town) == {1: "started", 2: "queued"})
            await second.leaves()
            assert settled(town) == {1: "interrupted", 2: "pending"}
            second.dies()
            await until(lambda: settled(town) == {1: "interrupted"})  # the leader has taken what nobody serves any more
            assert town.executed == [(102, 1), (101, 2)]
            assert first.work.statistics().worked.taken == 1

    run(story())


def test_an_update_that_no_line_can_carry_stops_nobody(town: Town) -> None:
    """Too long for the bus it waits for a person; where it needs no bus it is executed. Those behind it go on (V5)."""

    async def story() -> None:
        async with town:
            first, second = await town.works(101), await town.works(102)
            await town.opens()
            long = "x" * (17 * 2**20)
            town.source.put(message(1, text=long, thread=second.thread, chat=0))
            town.source.put(message(2, text=long, thread=first.thread, chat=0))
            second.push(3)
            first.push(4)
            await town.has_executed(2, 3, 4)
            assert town.updates == [2, 3, 4]
            with town.journal() as journal:
                assert [row.data.update for row in journal.listing().updates] == [1]

    run(story())


def test_a_person_has_an_item_moved(town: Town) -> None:
    """From a follower to another, and on to the leader; the busy one begins nothing of it."""

    async def story() -> None:
        gate = asyncio.Event()

        async def waits(item: Item) -> None:
            await gate.wait()

        async with town:
            first = await town.works(101)
            second, third = await town.works(102, waits), await town.works(103, waits)
            await town.opens()
            third.push(1)
            second.push(2, 3, 4)
            await town.has_executed(1, 2)
            await until(lambda: settled(town) == {1: "started", 2: "started", 3: "queued", 4: "queued"})
            await until(lambda: len(second.work.items) == 2)
            receipts = {held.first_update: held.receipt_id for held in second.work.items}
            with town.journal() as journal:
                journal.ask_move(receipts[3], third.work.me.instance)
                journal.ask_move(receipts[4], first.work.me.instance)
            await town.has_executed(4)
            assert town.updates_of(101) == [4]
            await until(lambda: [held.first_update for held in third.work.items] == [3])
            await until(lambda: answered(town, receipts[3]))
            with town.journal() as journal:
                journal.ask_move(receipts[3], first.work.me.instance)
            await town.has_executed(3)
            assert town.updates_of(101) == [4, 3]
            assert second.work.statistics().moved.moved == 2
            gate.set()
            await until(lambda: settled(town) == {})
            assert sorted(town.updates) == [1, 2, 3, 4]

    run(story())


def test_a_handler_that_raises_is_tried_again_and_the_next_goes_on(town: Town) -> None:
    async def story() -> None:
        failures = [ValueError("once")]

        async def handler(item: Item) -> None:
            if failures:
                raise failures.pop()

        async with town:
            first = await town.works(101, handler)
            await town.opens()
            first.push(1, 2)
            await until(lambda: settled(town) == {} and len(town.executed) == 3)
            assert town.executed == [(101, 1), (101, 2), (101, 1)]

    run(story())


def test_another_bots_work_is_not_touched(town: Town) -> None:
    async def story() -> None:
        async with town:
            first = await town.works(101)
            await town.opens()
            town.source.put(message(1, thread=99, chat=0))
            await until(lambda: first.work.statistics().forwarded.unserved)
            other = MemorySource()
            other.bot = identity_of_token("8:other")
            stranger = Place(town, 102, None, source=other)
            with pytest.raises(TenureError, match="bot 7"):
                await stranger.work.__aenter__()
            stranger._left = True

    run(story())


def test_a_workplace_is_entered_first_and_once(town: Town) -> None:
    async def story() -> None:
        async with town:
            place = Place(town, 101, None)
            for call in (place.work.join, place.work.until_left):
                with pytest.raises(TenureError, match="enter the workplace"):
                    await call()
            with pytest.raises(TenureError, match="enter the workplace"):
                _ = place.work.journal
            town.places.append(place)
            await place.work.__aenter__()
            with pytest.raises(TenureError, match="once"):
                await place.work.__aenter__()

    run(story())
