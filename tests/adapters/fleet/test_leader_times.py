"""Silence, endpoints that vanish, and replacements."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tenure.adapters.bus.endpoints.paths import endpoint_path, follower_path
from tenure.adapters.bus.messages.envelopes import (
    Heartbeat,
)
from tenure.adapters.fleet.follower.outcomes import Accepted
from tests.adapters.fleet.envelopes_of import register, works
from tests.adapters.fleet.fleet_room import House, joined, run, until


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_silence_ends_a_route_and_deletes_nothing(house: House) -> None:
    """The record stays; a heartbeat after that is refused."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            assert (await chief.send(register("102:1:1", 102))).ok
            await house.silence(hand)
            await until(lambda: "102:1" not in chief.routes())
            assert set(chief.routes()) == {"101:1"}
            assert len(chief.local.board.records) == 3
            late = Heartbeat(request_id="102:1:2", instance_id="102:1", registration_generation="102:1:1", sent_at_ms=1)
            ack = await chief.send(late)
            assert ack.message is not None
            assert "unknown" in ack.message
            assert hand.lost == []

    run(story())


def test_the_thread_of_one_proven_dead_may_be_deleted(house: House) -> None:
    """If the leader is told to; one that is only silent keeps it."""

    async def story() -> None:
        async with house:
            chief = await house.led(reclaim_dead=True)
            house.processes.start(102, 1020)
            house.processes.start(103, 1030)
            assert (await chief.send(register("102:1:1", 102))).ok
            assert (await chief.send(register("103:1:1", 103))).ok
            house.processes.kill(102)
            await house.silence()
            await until(lambda: not chief.routes())
            await until(lambda: len(chief.local.board.records) == 2)
            assert {record.instance for record in chief.local.board.records} == {"50:1", "103:1"}

    run(story())


def test_an_endpoint_that_vanished_is_published_again(house: House) -> None:
    """On the next tick, without touching epoch or routes (A61)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            os.unlink(house.path)
            await until(lambda: Path(house.path).exists())
            await joined(house, chief)

    run(story())


def test_what_is_published_and_vanished_is_published_again(house: House) -> None:
    """On the next tick: without it nobody of the other system registers."""

    async def story() -> None:
        async with house:
            await house.led()
            (published,) = Path(house.directory.state).glob("state*.json")
            published.unlink()
            await until(published.exists)

    run(story())


def test_a_followers_endpoint_that_vanished_is_published_again(house: House) -> None:
    """With its next heartbeat."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            path = follower_path(house.directory, "default", "101:1")
            os.unlink(endpoint_path(path))
            await until(lambda: Path(endpoint_path(path)).exists())
            (request, *_) = works(str(hand.follower.generation))
            assert (await chief.send(request)).ok

    run(story())


def test_replaced_while_its_request_is_in_flight(house: House) -> None:
    """The work reached the instance that held the route then; its receipt comes too late, and is not passed on."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            hand.gate = asyncio.Event()
            (request, *_) = works(str(hand.follower.generation))
            sent = asyncio.ensure_future(chief.send(request))
            await until(lambda: hand.waiting)
            new = house.follower(101, activation=2)
            assert isinstance(await new.follower.register(chief.entry(), hand.follower.binding), Accepted)
            hand.gate.set()
            ack = await sent
            assert not ack.ok
            assert new.taken == []

    run(story())
