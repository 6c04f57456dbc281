"""What a member does for its fleet when it leads, or is about to."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tenure.adapters.fleet.roles import Leading
from tenure.machines.follower_messages import Binding
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.fleet.member_room import Village


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return Village(tmp_path)


def test_the_registry_says_where_and_how_to_reach_it(village: Village) -> None:
    """The path of its endpoint, and a secret of its own for each process (bus.md a, AUTH)."""

    async def story() -> None:
        async with village:
            first = await village.joins(101)
            entry = village.registry["default"]
            assert entry["busSocketPath"] == village.path
            assert re.fullmatch("[A-Za-z0-9_-]{43}", entry["busSecret"])
            await first.member.leave()
            await village.joins(102)
            assert village.registry["default"]["busSecret"] != entry["busSecret"]

    run(story())


def test_nothing_is_opened_for_a_lease_that_is_not_ours(village: Village, monkeypatch: pytest.MonkeyPatch) -> None:
    """Won, and somebody was there before the start: no binding moves, and the fleet is not opened (S32)."""
    opened: list[tuple[int, Binding | None]] = []

    async def story() -> None:
        async with village:
            life = await village.enters(101)
            member = life.member
            saw = "lost"
            moved: list[Binding | None] = []
            check, opens = member.lease.check, member.leader.open

            async def opening(epoch: int, binding: Binding | None) -> None:
                opened.append((epoch, binding))
                await opens(epoch, binding)

            def checking() -> object:
                if saw != "mine":
                    moved.append(member.course.moving)
                    return saw
                return check()

            monkeypatch.setattr(member.lease, "check", checking)
            monkeypatch.setattr(member.leader, "open", opening)
            joining = asyncio.ensure_future(member.join())
            await until(lambda: member.statistics().failed_promotions)
            assert (opened, member.course.moving, moved[0]) == ([], None, None)
            saw = "mine"
            assert isinstance(await joining, Leading)
            assert len(opened) == 1

    run(story())


def test_it_opens_with_the_place_that_it_had(village: Village, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slot, thread and name move with the election, whatever is published of them (A55)."""
    opened: list[Binding | None] = []

    async def story() -> None:
        async with village:
            first, second = await village.fleet(101, 102)
            await second.follows(first)
            opens, had = second.member.leader.open, second.member.follower.binding

            async def opening(epoch: int, binding: Binding | None) -> None:
                opened.append(binding)
                await opens(epoch, binding)

            monkeypatch.setattr(second.member.leader, "open", opening)
            await first.member.leave()
            await second.leads()
            assert (opened, had.slot is not None, had.target is not None) == ([had], True, True)

    run(story())


def test_who_stands_for_election_is_registered_with_nobody(village: Village, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the leader that it replaces still answers heartbeats: one that has lost its lease, and not heard of
    it (locks.md 12.1, promote)."""
    phases: list[str] = []

    async def story() -> None:
        async with village:
            first, second = await village.fleet(101, 102)
            await second.follows(first)
            elect = second.member._leadership.elect

            async def electing(observed: Any) -> Any:
                phases.append(second.member.follower.phase)
                return await elect(observed)

            monkeypatch.setattr(second.member._leadership, "elect", electing)
            village.processes.kill(101)
            await second.leads()
            assert phases[0] == "idle"
            assert second.member.follower.generation is None

    run(story())


def test_a_grace_is_a_grace(village: Village) -> None:
    """What is waited for between two attempts is the grace of the timings, and nothing shorter."""

    async def story() -> None:
        async with village:
            life = await village.enters(101)
            loop = asyncio.get_running_loop()
            began = loop.time()
            timer = life.member._after_grace(lambda: None)
            timer.cancel()
            assert timer.when() - began >= village.times.grace_ms / 1000

    run(story())
