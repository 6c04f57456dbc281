"""What a fleet leaves in its directory: whose it is, and how it is found (bus.md a, ENDPOINT PUBLICATION)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest

from tenure.adapters.bus.endpoints.paths import endpoint_path, follower_path
from tenure.adapters.errors import TenureError
from tests.adapters.fleet.envelopes_of import register
from tests.adapters.fleet.fleet_room import House, joined, run, until


@pytest.fixture
def generous() -> Iterator[None]:
    """A process that lets everybody read and write what it makes."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_all_of_it_is_its_users_alone(tmp_path: Path, generous: None) -> None:
    """Directories 0700, sockets and the state 0600; the paths of endpoints are links beside them, relative ones."""
    house = House(tmp_path)

    async def story() -> None:
        async with house:
            chief = await house.led()
            await joined(house, chief)
            state = Path(house.directory.state)
            follower = Path(endpoint_path(follower_path(house.directory, "default", "101:1")))
            assert S_IMODE((state / "state.json").stat().st_mode) == 0o600
            for path in (Path(house.path), follower):
                assert re.fullmatch(r"\.pt-[0-9a-f]{16}\.sock", os.readlink(path))
                assert S_IMODE(path.stat().st_mode) == 0o600
                assert S_IMODE(path.parent.stat().st_mode) == 0o700
            assert not [path for path in state.rglob("*") if ".link." in path.name]

    run(story())


def test_an_intent_is_as_old_as_it_is(tmp_path: Path) -> None:
    """Whoever leads next: a clean-up that nobody gets done is seen to be an old one (annex L)."""
    house = House(tmp_path)

    async def fails(target: object) -> None:
        raise TenureError("not now")

    def intents() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(Path(house.directory.state, "state.json").read_text())[
            "pendingCleanups"
        ]
        return found

    async def story() -> None:
        async with house:
            first = await house.led()
            hand = await joined(house, first)
            first.local._unmake = fails
            assert isinstance(await hand.follower.disconnect(), str)
            (intent,) = intents()
            assert intent["requestedAtMs"] == house.clock.wall_ms()
            await hand.follower.stop()
            await first.leader.close()
            house.clock.advance(1000)
            second = house.chief(51, epoch=2)
            second.local._unmake = fails
            await second.leader.open(2, None)
            assert intents() == [intent]
            assert [view.age_ms for view in second.leader.fleet_view().clean_ups] == [1000]

    run(story())


def test_who_is_out_of_the_routes_is_out_of_what_is_published(tmp_path: Path) -> None:
    """Also where nobody registers after it; and no more is known of its process."""
    house = House(tmp_path)

    async def story() -> None:
        async with house:
            chief = await house.led()
            assert (await chief.send(register("101:1:1"))).ok
            state = Path(house.directory.state, "state.json")
            assert json.loads(state.read_text())["liveRoster"]["busFollowers"]
            house.clock.advance(house.times.prune_ms + 1)
            await until(lambda: not json.loads(state.read_text())["liveRoster"]["busFollowers"])
            opened = chief.leader._open
            assert opened is not None
            assert opened.routing.witness._known == {}

    run(story())
