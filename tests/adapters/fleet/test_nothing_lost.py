"""What tasks of the fleet raise is noted, and what nobody waits for any more is lost without a word of the loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenure.adapters.bus.endpoints.paths import endpoint_path
from tenure.adapters.fleet.ending import ended_within
from tenure.adapters.fleet.follower.receiver import Receiver
from tenure.adapters.fleet.roles import Left
from tests.adapters.fleet.fleet_room import House, joined, run, until
from tests.adapters.fleet.member_room import Village


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def faulty(*arguments: object) -> None:
    raise ValueError("a fault of this program")


def noted(house: House | Village) -> list[object]:
    found = [fields["error"] for fields in house.notes.said("fleet", "fault")]
    house.notes.kept.clear()
    return found


FAULT = ["ValueError: a fault of this program"]


def test_healing_that_raises(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noted, and healing goes on with the next heartbeat."""

    async def story() -> None:
        receiver = Receiver(
            house.ports(1),
            endpoint_path(f"{house.path}.x"),
            secret=lambda: None,
            handle=faulty,
            stands=lambda key: True,
        )  # type: ignore[arg-type]
        await receiver.start()
        endpoint = receiver._endpoint
        with monkeypatch.context() as patch:
            patch.setattr(endpoint, "heal", faulty)
            patch.setattr(endpoint, "missing", lambda: True)
            for _ in range(2):
                receiver.heal_soon()
                await until(lambda: receiver._healing is None)
        await receiver.stop()
        assert FAULT * 2 == noted(house)

    run(story())


def test_a_start_that_is_stopped(house: House) -> None:
    """Who waits for it is told; nobody need wait."""

    async def story() -> None:
        for waits in (False, True):
            receiver = Receiver(
                house.ports(1),
                endpoint_path(f"{house.path}.x"),
                secret=lambda: None,
                handle=faulty,
                stands=lambda key: True,
            )  # type: ignore[arg-type]
            starting = asyncio.ensure_future(receiver.start())
            await until(lambda: receiver._starting is not None)  # noqa: B023
            if not waits:
                starting.cancel()
            await receiver.stop()
            found = await asyncio.gather(starting, return_exceptions=True)
            assert isinstance(found[0], BaseException)

    run(story())


def test_heartbeats_that_raise(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it was: they go on."""

    async def story() -> None:
        async with house:
            hand = await joined(house, await house.led())
            with monkeypatch.context() as patch:
                patch.setattr(hand.follower._receiver, "heal_soon", lambda: 1 // 0)
                await until(lambda: house.notes.said("fleet", "fault"))
            assert "ZeroDivisionError" in str(noted(house)[0])
            beats = hand.follower.statistics().heartbeats
            await until(lambda: hand.follower.statistics().heartbeats > beats + 2)
            assert not hand.lost

    run(story())


@pytest.mark.parametrize("waits", [True, False])
def test_a_goodbye_that_raises(tmp_path: Path, waits: bool) -> None:
    """The member leaves all the same, whoever waits for it."""

    async def story() -> None:
        village = Village(tmp_path)
        async with village:
            await village.joins(101)
            life = await village.joins(102)
            life.member.follower.disconnect = faulty  # type: ignore[method-assign, assignment]
            leaving = asyncio.ensure_future(life.member.leave(goodbye=True))
            await asyncio.sleep(0)
            if waits:
                assert "ValueError: a fault of this program" == await leaving
            else:
                leaving.cancel()
            await life.member.until_left()
            assert isinstance(life.role, Left)
            assert FAULT == noted(village)

    run(story())


def test_an_end_that_outlasts_its_time(house: House) -> None:
    """It is left to itself, and what it raises then is noted."""

    async def story() -> None:
        let = asyncio.Event()

        async def ends() -> None:
            await let.wait()
            await faulty()

        await ended_within(house.ports(1), 0.0, ends())
        let.set()
        await until(lambda: house.notes.said("fleet", "end"))

    run(story())
