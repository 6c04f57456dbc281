"""What a member that has won does first, and who is told of routes: what a workplace rests on."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.roles import Leading, Role, Seeking
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.fleet.member_room import Village


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return Village(tmp_path)


def test_it_prepares_before_anybody_can_ask_it_and_before_its_work(village: Village) -> None:
    async def story() -> None:
        said: list[str] = []

        async def prepare(epoch: int) -> None:
            assert life.member.owns(epoch)
            assert not life.member.owns(epoch + 1)
            assert not os.path.lexists(village.path)
            assert not isinstance(life.role, Leading)
            said.append(f"prepare {epoch}")

        async def works(epoch: int) -> None:
            assert os.path.lexists(village.path)
            said.append(f"run {epoch}")
            await asyncio.Event().wait()

        async with village:
            life = await village.enters(101, prepare=prepare, run=works)
            await life.member.join()
            await until(lambda: len(said) == 2)
            assert said == ["prepare 1", "run 1"]
        assert not life.member.owns(1)

    run(story())


def test_what_it_raises_fails_the_start_and_that_is_tried_again(village: Village) -> None:
    async def story() -> None:
        failures = [TenureError("the fence is higher"), TenureError("the fence is higher")]

        async def prepare(epoch: int) -> None:
            if failures:
                raise failures.pop()

        async with village:
            life = await village.joins(101, prepare=prepare)
            assert life.role == Leading(3, "A", life.role.name)  # type: ignore[union-attr]
            told: list[Role] = [role for role in life.roles if isinstance(role, Seeking) and role.error]
            assert all("the fence is higher" in str(role) for role in told)
            assert told

    run(story())


def test_who_leads_is_told_of_registrations_that_come_and_go(village: Village) -> None:
    async def story() -> None:
        told: list[int] = []

        async with village:
            first = village.life(101, on_routes=lambda: told.append(len(first.member.leader.routes())))
            await first.member.__aenter__()
            await first.member.join()
            second = await village.joins(102)
            await second.follows(first)
            await until(lambda: told and told[-1] == 1)
            await second.member.leave(goodbye=True)
            await until(lambda: told[-1] == 0)

    run(story())
