"""A lease that is lost between two transactions of its leader: whatever comes after is none of its business (I3)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.adapters.files.lease import NotOwner
from tenure.adapters.fleet.follower.outcomes import RefusedBy
from tenure.adapters.fleet.leader.book import Deposed
from tests.adapters.fleet.envelopes_of import register
from tests.adapters.fleet.fleet_room import Chief, House, Ownership, run

Losing = Callable[[Chief, int, int | None], None]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Losing:
    """Has the leader under another epoch, or none, from the transaction of that number on."""

    def lose(chief: Chief, number: int, epoch: int | None) -> None:
        inside = Ownership._inside

        def later(own: Ownership, effect: Callable[[int], Any]) -> Any:
            if own is chief.own and own.transactions >= number:
                own.epoch = epoch
            return inside(own, effect)

        monkeypatch.setattr(Ownership, "_inside", later)

    return lose


def test_what_is_published_is_there_before_the_endpoint(house: House) -> None:
    """Whoever finds the endpoint finds it: followers of the other system do not register without."""

    async def story() -> None:
        async with house:
            await house.led()
            assert Path(house.directory.state, "state.json").exists()
            assert os.path.lexists(house.path)

    run(story())


@pytest.mark.parametrize("epoch", [2, None])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_leader_that_opens(house: House, losing: Losing, number: int, epoch: int | None) -> None:
    """What was published is read, its own place is published, then the endpoint: each under its own epoch."""

    async def story() -> None:
        async with house:
            chief = house.chief()
            losing(chief, number, epoch)
            with pytest.raises((Deposed, NotOwner)) as raised:
                await chief.leader.open(1, None)
            assert epoch is None or isinstance(raised.value, Deposed)
            assert not os.path.lexists(house.path)
            assert chief.leader.epoch is None

    run(story())


@pytest.mark.parametrize("epoch", [2, None])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_registration(house: House, losing: Losing, number: int, epoch: int | None) -> None:
    """Asked for, provisioned, written and published; it is acknowledged after all of that, or not at all."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            losing(chief, chief.own.transactions + number, epoch)
            ack = await chief.send(register("101:1:1"))
            assert (ack.ok, chief.own.transactions) == (False, 3 + number)

    run(story())


def test_a_refusal_is_not_always_about_the_profile(house: House) -> None:
    """A follower that is refused for something else asks again under the key that it had."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = house.follower(101)
            key = hand.follower.profile_key
            chief.own.epoch = None
            await asyncio.sleep(0)
            found = await hand.follower.register(chief.entry(), None)
            assert isinstance(found, RefusedBy)
            assert found.code == "refused"
            assert (hand.follower.data.own_key, hand.follower.profile_key) == (False, key)

    run(story())
