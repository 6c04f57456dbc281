"""Which bindings are whose, as processes of one terminal come and go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.errors import TenureError
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.journal.ownership import About
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.work.place_room import TIMES, Place, Town


@pytest.fixture
def town(tmp_path: Path) -> Town:
    """Everybody in it is a child of one shell."""
    town = Town(tmp_path)
    town.processes.start(os.getppid(), ticks=1)
    return town


def reaction(number: int, message: int) -> Json:
    """An update about a message: it names no thread."""
    return Json({"update_id": number, "message_reaction": {"chat": {"id": 0}, "message_id": message}})


def test_what_was_a_followers_of_this_terminal_is_the_leaders(town: Town) -> None:
    """What it served itself under a key of its own, and what another one of its terminal has left."""

    async def story() -> None:
        async with town:
            first, second, third = await town.works(101), await town.works(102), await town.works(103)
            await town.opens()
            shared = second.work.member.follower.profile_key
            assert shared == third.work.member.identity.profile_key()
            assert shared != third.work.member.follower.profile_key
            second.push(1)
            third.push(2)
            await town.has_executed(1, 2)
            await second.leaves()
            await first.leaves()
            await third.leads()
            town.source.put(reaction(3, message=1), reaction(4, message=2))
            await town.has_executed(3, 4)
            assert sorted(town.updates_of(103)) == [2, 3, 4]

    run(story())


def test_what_somebody_has_left_for_a_binding_that_nobody_served_is_the_leaders_of_that_terminal(town: Town) -> None:
    async def story() -> None:
        async with town:
            first = await town.works(101)
            await town.opens()
            key = first.work.member.identity.profile_key()
            await first.work.journal.call(lambda j: j.remember(About(message=(0, 50)), key))
            town.source.put(reaction(1, message=50))
            await town.has_executed(1)
            assert town.executed == [(101, 1)]

    run(story())


def test_who_is_registered_for_what_the_leader_served_serves_it(town: Town) -> None:
    """It was the leader's as long as it was a follower itself, and nobody else of its terminal was there."""

    async def story() -> None:
        async with town:
            first, second = await town.works(101), await town.works(102)
            await town.opens()
            key = second.work.member.follower.profile_key
            await first.leaves()
            await second.leads()
            third = await town.works(103)
            assert third.work.member.follower.profile_key == key
            third.push(1)
            await town.has_executed(1)
            assert town.executed == [(103, 1)]
            with town.journal() as journal:
                assert {row.binding: row.party for row in journal.servers()}[key] == third.work.me

    run(story())


def test_who_is_registered_under_a_key_of_its_own_leaves_the_shared_one(town: Town) -> None:
    """After a change of leaders another process of the terminal may have the shared one."""

    async def story() -> None:
        async with town:
            first, second = await town.works(101), await town.works(102)
            await town.opens()
            assert second.work._parts is not None
            serving, shared = second.work._parts.receipts.serving, second.work.member.follower.profile_key
            await until(lambda: not serving.untold)
            serving.follows("manual:of its own", None)
            await serving.tell()
            with town.journal() as journal:
                left = {row.binding: row.left_at for row in journal.servers()}
            assert left[shared] is not None
            assert left["manual:of its own"] is None
            assert first

    run(story())


def test_the_journal_waits_for_as_long_as_the_fleet_does(town: Town) -> None:
    async def story() -> None:
        async with town:
            first = await town.works(101)
            found = await first.work.journal.call(lambda j: j._store.limits.grace_ms)
            assert found == TIMES.grace_ms

    run(story())


def test_where_a_process_cannot_enter_nothing_stays_open(town: Town) -> None:
    async def story() -> None:
        async with town:
            state = ProcessState()
            await town.works(101, process=state)
            second = Place(town, 101, None, process=state)
            with pytest.raises(TenureError):
                await second.work.__aenter__()
            with pytest.raises(TenureError, match="closed"):
                await second.work.journal.call(lambda j: j.state())
            second._left = True

    run(story())
