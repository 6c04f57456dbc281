"""What a leader of the fleet answers over real sockets: to whom, under which generation, in which order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.endpoints.paths import follower_path, leader_path
from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import (
    Ack,
    TenureStatus,
)
from tenure.adapters.bus.messages.protocol import protocol_identity
from tenure.adapters.fleet.agreement import our_protocol
from tenure.adapters.fleet.follower.outcomes import Accepted
from tenure.adapters.fleet.leader.requests import Asked, Route
from tests.adapters.fleet.envelopes_of import asks, register, to_follower_only, works
from tests.adapters.fleet.fleet_room import Chief, Hand, House, joined, run, until


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def replaced(house: House, chief: Chief) -> tuple[Hand, str, str]:
    """A follower that has registered twice: the old generation and the one that stands."""
    hand = await joined(house, chief)
    old = str(hand.follower.generation)
    hand.follower.leave()
    assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
    return hand, old, str(hand.follower.generation)


# -- old generations, none, and other people's secrets -----------------------------------------------------------------


def test_an_old_generation_and_none_are_refused_whatever_the_kind(house: House) -> None:
    """At the leader, and at the follower; nothing is done, and the registration that stands is not disturbed (I1)."""

    async def story() -> None:
        done: list[object] = []

        async def serve(request: Asked, route: Route) -> Ack:
            done.append(request)
            return acks.done(request)

        async with house:
            chief = await house.led(serve=serve)
            hand, old, now = await replaced(house, chief)
            for generation in (old, None, "", "101:1:99"):
                for request in asks(generation):
                    ack = await chief.send(attrs.evolve(request, request_id=f"{request.request_id}:{generation}"))
                    assert not ack.ok, request
            path = follower_path(house.directory, "default", "101:1")
            for generation in (old, "", "101:1:99"):
                for request in works(generation):
                    named = attrs.evolve(request, request_id=f"{request.request_id}:{generation}", auth=chief.secret)
                    assert not (await chief.send(named)).ok, request
                    assert not (await house.raw(named, path)).ok, request
            for generation in (old, None, "", "101:1:99"):
                for request in to_follower_only(generation):
                    named = attrs.evolve(request, request_id=f"{request.request_id}:{generation}", auth=chief.secret)
                    assert not (await house.raw(named, path)).ok, request
            assert (done, hand.taken, hand.lost) == ([], [], [])
            assert hand.follower.binding.target == "0/2"
            assert chief.routes() == {"101:1": now}
            for request in asks(now)[2:]:
                assert (await chief.send(request)).ok, request
            for request in works(now):
                assert (await chief.send(request)).ok, request
            assert len(hand.taken) == 4

    run(story())


def test_who_is_not_authenticated_learns_nothing(house: House) -> None:
    """Whatever the kind: the same words, no generation, no protocol; and the ledger has not grown."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            now = str(hand.follower.generation)
            before, beats = chief.leader.statistics(), hand.follower.statistics().heartbeats
            everything = [
                *asks(now),
                *works(now),
                *to_follower_only(now),
                register("x:1"),
                TenureStatus(request_id="x:2"),
            ]
            texts = set()
            for auth in (None, "", "x" * 43, chief.secret[:-1], chief.secret + "s"):
                for request in everything:
                    ack = await house.raw(attrs.evolve(request, auth=auth))
                    texts.add(ack.message)
                    assert (ack.ok, ack.result, ack.protocol, ack.error) == (False, None, None, None)
            assert len(texts) == 1
            after = chief.leader.statistics()
            assert before.ledger is not None
            assert after.ledger is not None
            beats = hand.follower.statistics().heartbeats - beats
            assert after.ledger.held <= before.ledger.held + beats + 1  # the follower's own, and one on its way
            assert chief.routes() == {"101:1": now}

    run(story())


def test_what_is_no_request_is_answered_as_that(house: House) -> None:
    """An acknowledgement, a kind for followers, no JSON, a malformed registration: refused, and all goes on."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            now = str(hand.follower.generation)
            reader, writer = await asyncio.open_unix_connection(house.path)
            for line in (
                b"nonsense",
                b"{}",
                b'{"kind":"bus.ack","requestId":"a","ok":true}',
                b'{"kind":"follower.register"}',
                b'{"kind":"follower.register","requestId":"r","registration":{"instanceId":7}}',
                b"\xff\xfe",
                b"[" * 5000,
            ):
                writer.write(line + b"\n")
                assert b'"ok":false' in await reader.readline()
            writer.close()
            await writer.wait_closed()
            for request in to_follower_only(now):
                ack = await chief.send(request)
                assert ack.message is not None
                assert "not handled" in ack.message
            assert chief.routes() == {"101:1": now}

    run(story())


# -- registering -------------------------------------------------------------------------------------------------------


def test_nothing_is_provisioned_for_who_does_not_fit(house: House) -> None:
    """Another version, no identity, a missing capability, no generation: refused before the port is asked (I9)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            chief.hold = asyncio.Event()
            other = attrs.evolve(our_protocol(), protocol_version=2)
            for n, protocol in enumerate((None, other, protocol_identity("old"))):
                ack = await chief.send(register(f"101:1:{n}", protocol=protocol))
                assert not ack.ok
                assert ack.error is not None
                assert (ack.error.code, ack.protocol) == ("incompatible-protocol", our_protocol())
            ack = await chief.send(register("101:1:9", generation=None))
            assert (ack.ok, ack.error, ack.protocol) == (False, None, our_protocol())
            assert chief.provisioning == 0
            assert len(chief.local.board.records) == 1
            assert chief.local.board.pendings == ()

    run(story())


def test_slow_provisioning_delays_nobody_else(house: House) -> None:
    """Far beyond the bound of silence: heartbeats of others are heard meanwhile, and the new route lives (I10)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            first = await joined(house, chief)
            chief.hold = asyncio.Event()
            second = house.follower(102)
            late = asyncio.ensure_future(second.follower.register(chief.entry(), None))
            await until(lambda: chief.provisioning)
            await house.silence(first)
            assert set(chief.routes()) == {"101:1"}
            assert not late.done()
            chief.hold.set()
            assert isinstance(await late, Accepted)
            assert set(chief.routes()) == {"101:1", "102:1"}
            assert first.lost == second.lost == []

    run(story())


def test_provisioning_that_hangs_ends(tmp_path: Path) -> None:
    """After as long as a follower waits: it is refused, and the next attempt of that profile begins (V11)."""

    async def story() -> None:
        async with House(tmp_path, attrs.evolve(House(tmp_path / "x").times, register_timeout_ms=1000)) as house:
            chief = await house.led()
            chief.hold = asyncio.Event()
            hand = house.follower(101)
            found = await hand.follower.register(chief.entry(), None)
            assert not isinstance(found, Accepted)
            chief.hold = None
            assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)

    run(story())


def test_requests_of_one_profile_come_one_after_the_other(house: House) -> None:
    """The second registration begins when the first has ended; the goodbye between them is of an old generation."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            chief.hold = asyncio.Event()
            first = asyncio.ensure_future(chief.send(register("101:1:1")))
            await until(lambda: chief.provisioning)
            second = asyncio.ensure_future(chief.send(register("101:1:2")))
            third = asyncio.ensure_future(chief.send(register("101:1:3")))
            for _ in range(50):
                await asyncio.sleep(0.001)
            assert chief.provisioning == 1
            assert not second.done()
            assert not third.done()
            chief.hold.set()
            assert (await first).ok
            assert (await second).ok
            assert (await third).ok
            assert chief.routes() == {"101:1": "101:1:3"}
            assert len(chief.local.board.records) == 2

    run(story())


def test_the_same_request_again_joins_or_repeats(house: House) -> None:
    """A lost acknowledgement costs one provisioning; once the route has gone it is not said again (L14)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            chief.hold = asyncio.Event()
            both = [asyncio.ensure_future(chief.send(register("101:1:1"))) for _ in range(2)]
            await until(lambda: chief.provisioning)
            chief.hold.set()
            answers = [await one for one in both]
            assert answers[0] == answers[1]
            assert answers[0] == await chief.send(register("101:1:1"))
            await house.silence()
            await until(lambda: not chief.routes())
            assert not (await chief.send(register("101:1:1"))).ok
            other = await chief.send(register("101:1:1", thread_name="else"))
            assert other.error is not None
            assert other.error.code == "request-id-collision"

    run(story())


@pytest.mark.parametrize(
    "fields",
    [
        {"instance_id": ""},
        {"instance_id": "i" * 10_000},
        {"profile_key": "k" * 100_000},
        {"thread_name": "n" * 100_000},
        {"bus_socket_path": "relative.sock"},
        {"bus_socket_path": "/a\0b"},
        {"bus_socket_path": "/" + "p" * 10_000},
        {"bus_socket_path": "/\ud800"},
    ],
)
def test_what_would_be_kept_and_connected_to_is_bounded(house: House, fields: dict[str, Any]) -> None:
    """Refused before anything is provisioned."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            ack = await chief.send(register("101:1:1", **fields))
            assert not ack.ok
            assert "registration" in (ack.message or "")
            assert len(chief.local.board.records) == 1

    run(story())


def test_work_never_comes_back_to_its_leader(house: House) -> None:
    """A follower that names the leader's own endpoint is refused."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            for path in (house.path, house.path.replace("/bus", "//bus"), leader_path(house.directory, "default")):
                assert not (await chief.send(register("101:1:1", bus_socket_path=path))).ok

    run(story())
