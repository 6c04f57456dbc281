"""What hangs in a leader takes nobody's heartbeats: registrations whose provisioning never returns, calls that nobody
answers, connections on which nothing is said."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.serving.limits import Limits
from tenure.adapters.fleet.leader.requests import Asked, Route
from tests.adapters.fleet.envelopes_of import asks, register
from tests.adapters.fleet.fleet_room import Hand, House, joined, run, until

FEW = attrs.evolve(Limits(), connections=8, connections_of_one=8, requests_of_connection=2, requests_of_one=8)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def beats_on(hand: Hand) -> None:
    before = hand.follower.statistics().heartbeats
    await until(lambda: hand.follower.statistics().heartbeats > before + 5)
    assert not hand.lost


async def ended(tasks: list[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_registrations_that_hang(house: House) -> None:
    """As many as there are places, and more."""

    async def story() -> None:
        async with house:
            chief = await house.led(limits=FEW)
            hand = await joined(house, chief)
            chief.hold = asyncio.Event()
            sent = [asyncio.ensure_future(chief.send(register(f"{pid}:1:1", pid))) for pid in range(200, 212)]
            await until(lambda: chief.provisioning == FEW.requests_of_one)
            await beats_on(hand)
            await ended(sent)
            await beats_on(hand)

    run(story())


def test_calls_that_hang(house: House) -> None:
    """Of the very follower that beats."""

    async def story() -> None:
        hanging = 0

        async def serve(request: Asked, route: Route) -> Ack:
            nonlocal hanging
            hanging += 1
            await asyncio.Event().wait()
            raise AssertionError("nobody ends it")

        async with house:
            chief = await house.led(limits=FEW, serve=serve)
            hand = await joined(house, chief)
            call = asks(str(hand.follower.generation))[2]
            sent = [
                asyncio.ensure_future(chief.send(attrs.evolve(call, request_id=f"q:{number}"))) for number in range(12)
            ]
            await until(lambda: hanging == FEW.requests_of_one)
            await beats_on(hand)
            await ended(sent)
            await beats_on(hand)

    run(story())


@pytest.mark.parametrize("half", [b"", b'{"kind":"follower.hea'])
def test_connections_on_which_nothing_is_said(house: House, half: bytes) -> None:
    async def story() -> None:
        async with house:
            chief = await house.led(limits=FEW)
            hand = await joined(house, chief)
            ends = [socket.socket(socket.AF_UNIX) for _ in range(30)]
            try:
                for end in ends:
                    end.setblocking(False)
                    end.connect(house.path)
                    if half:
                        end.send(half)
                await beats_on(hand)
            finally:
                for end in ends:
                    end.close()

    run(story())
