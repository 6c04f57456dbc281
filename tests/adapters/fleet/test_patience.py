"""How long each request waits for its answer, and how often it is sent (bus.md 0)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.client import ONCE, Retry
from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.fleet.leader.requests import Asked, Route
from tenure.adapters.fleet.leader.routing import PORT_SHARE
from tests.adapters.fleet.envelopes_of import asks, register, works
from tests.adapters.fleet.fleet_room import TIMES, House, joined, run, until
from tests.adapters.fleet.noting import Noted


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_follower_waits_by_the_kind(house: House) -> None:
    """A heartbeat a second, everything else half a minute, for provisioning, an API or a busy follower may be in
    between; only a registration is repeated by the transport."""
    times = house.times

    async def story() -> None:
        async def serve(request: Asked, route: Route) -> Ack:
            return acks.done(request)

        async with house:
            chief = await house.led(serve=serve)
            client = Noted()
            hand = await joined(house, chief, client=client)

            def build(generation: Any) -> Any:
                return asks(str(generation))[2]

            assert isinstance(await hand.follower.ask(build), Ack)
            assert isinstance(await hand.follower.ask(build, timeout_ms=1234), Ack)
            assert await hand.follower.disconnect() is True
            retried = Retry(times.register_retries, times.register_delay_ms)
            assert client.of("follower.register") == {(times.register_timeout_ms, retried)}
            assert client.of("follower.heartbeat") == {(times.response_ms, ONCE)}
            assert client.of("follower.callApi") == {(times.register_timeout_ms, ONCE), (1234, ONCE)}
            assert client.of("follower.disconnect") == {(times.register_timeout_ms, ONCE)}

    run(story())


def test_a_goodbye_without_an_answer_is_said_again(house: House) -> None:
    """The same request, so that it is executed once, and not for ever: the third silence is an answer."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            client = Noted(lost=["follower.disconnect"] * 5)
            hand = await joined(house, chief, client=client)
            assert isinstance(await hand.follower.disconnect(), str)
            assert len(client.lost) == 2
            assert hand.follower.phase == "registered"
            client.lost.pop()
            assert await hand.follower.disconnect() is True
            said = [line for line in client.lines if json.loads(line)["kind"] == "follower.disconnect"]
            assert [len(set(said[:3])), len(set(said[3:])), len(said)] == [1, 1, 5]

    run(story())


def test_a_leader_waits_for_a_follower_as_long_as_its_asker_does(house: House) -> None:
    """And not one second, after which a busy follower seems to refuse (L11)."""

    async def story() -> None:
        async with house:
            client = Noted()
            chief = await house.led(client=client)
            await joined(house, chief)
            assert (await chief.send(works("101:1:1")[0])).ok
            assert client.of("leader.forwardMessage") == {(house.times.register_timeout_ms, ONCE)}

    run(story())


def test_a_leader_looks_who_is_silent_as_often_as_followers_beat(tmp_path: Path) -> None:
    """And not as seldom as silence lasts: a follower is out of the routes one beat after its bound."""

    async def story() -> None:
        async with House(tmp_path, attrs.evolve(TIMES, prune_ms=60_000)) as house:
            chief = await house.led()
            assert (await chief.send(register("102:1:1", 102))).ok
            house.clock.advance(house.times.prune_ms + 1)
            await until(lambda: not chief.routes())

    run(story())


def test_a_leader_gives_a_port_up_before_its_asker_gives_it_up() -> None:
    """Else nobody is ever told that provisioning takes too long."""
    assert 0.5 < PORT_SHARE < 1
