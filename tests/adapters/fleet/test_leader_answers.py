"""What a leader answers for what it was asked, where whoever does it hangs, or answers what is none."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Ack, Request
from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.bus.messages.protocol import protocol_identity
from tenure.adapters.bus.peer import Peer
from tenure.adapters.fleet.leader.requests import Asked, Route
from tenure.machines.follower_messages import Binding
from tests.adapters.fleet.envelopes_of import asks, register
from tests.adapters.fleet.fleet_room import Chief, House, joined, run, until


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_what_hangs_is_cancelled_with_its_leading(house: House) -> None:
    """A leader that is closed does nothing any more, also not what it has begun."""

    async def story() -> None:
        asked, ended = asyncio.Event(), asyncio.Event()

        async def serve(request: Asked, route: Route) -> Ack:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError("nobody ends it")

        async with house:
            chief = await house.led(serve=serve)
            hand = await joined(house, chief)
            sent = asyncio.ensure_future(chief.send(asks(str(hand.follower.generation))[2]))
            await asked.wait()
            await chief.leader.close()
            await ended.wait()
            await asyncio.gather(sent, return_exceptions=True)

    run(story())


def test_an_answer_that_cannot_be_sent(house: House) -> None:
    """Whoever asked is told that it failed, under the id of its request, and not what went wrong."""

    async def story() -> None:
        async def serve(request: Asked, route: Route) -> Ack:
            return attrs.evolve(acks.done(request), result=Json(cast(Any, object())))

        async with house:
            chief = await house.led(serve=serve)
            hand = await joined(house, chief)
            call = asks(str(hand.follower.generation))[2]
            ack = await chief.send(call)
            assert (ack.ok, ack.request_id, ack.message) == (False, call.request_id, acks.failed(call).message)

    run(story())


ITSELF, RELAY = Peer(101, 0), Peer(900, 0)


@pytest.mark.parametrize("kind", [0, 2], ids=["heartbeat", "ask"])
def test_who_brings_its_requests_may_bring_it_back(house: House, kind: int) -> None:
    """A proxy that came between a follower and its leader is known by the requests that it brings: then the follower's
    next activation comes through it as well."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            assert (await told(chief, register("101:1:1"), ITSELF)).ok
            back = register("101:2:1", instance_id="101:2")
            assert not (await told(chief, back, RELAY)).ok
            await told(chief, asks("101:1:1")[kind], RELAY)
            assert (await told(chief, back, RELAY)).ok
            assert chief.routes() == {"101:2": "101:2:1"}

    run(story())


def test_who_may_stand_for_election(house: House) -> None:
    """Whoever can do what its leader can: durable admission counts where the leader has it, and nowhere else."""

    async def story() -> None:
        plain = protocol_identity("plain")
        async with house:
            chief = await house.led(protocol=plain)
            assert (await chief.send(register("101:1:1", protocol=plain))).ok
            assert (await chief.send(register("102:1:1", 102))).ok
            ack = await chief.send(asks("101:1:1")[0])
            assert ack.result == Json({"eligibleElectionSlots": ["B", "C"]})

    run(story())


def test_a_leader_carries_its_place_as_a_follower_does(house: House) -> None:
    """Also where nothing is remembered of it: slot, thread and name that are free are its own, and its process is on
    the board, so that its death can be proven."""

    async def story() -> None:
        async with house:
            chief = await house.led(binding=Binding("0/7", "Q", "Otter"))
            assert chief.leader.binding == Binding("0/7", "Q", "Otter")
            (record,) = chief.local.board.records
            assert (record.kind, record.instance, record.process) == ("leader", "50:1", house.identity(50).process)

    run(story())


def test_a_follower_carries_its_place(house: House) -> None:
    """What is free of it is kept, and its process is on the board."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            process = house.identity(101).process
            asked = register("101:1:1", slot="Q", target=Target(0, 7), thread_name="Otter")
            ack = await chief.send(asked)
            assert ack.result == Json({"chatId": 0, "threadId": 7, "slot": "Q", "threadName": "Otter"})
            record = chief.local.board.records[-1]
            assert (record.instance, record.generation) == ("101:1", "101:1:1")
            assert record.process == process

    run(story())


def test_a_route_begins_when_it_is_written(house: House) -> None:
    """By the leader's clock, after provisioning; what the follower says of it counts for nothing (I10)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            chief.hold = asyncio.Event()
            asked = asyncio.ensure_future(chief.send(register("101:1:1")))
            await until(lambda: chief.provisioning)
            house.clock.advance(house.times.prune_ms * 2)
            chief.hold.set()
            assert (await asked).ok
            assert chief.leader.fleet_view().followers[0].heartbeat_age_ms == 0
            state = json.loads((Path(house.directory.state) / "state.json").read_text())
            assert state["liveRoster"]["busFollowers"][0]["connectedAtMs"] == house.clock.wall_ms()

    run(story())


def test_who_names_no_profile_has_one_of_its_own(house: House) -> None:
    """That of its instance: nobody else's, and the same when it comes back (bus.md b, register)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            for pid in (101, 102):
                for number in (1, 2):
                    assert (await chief.send(register(f"{pid}:1:{number}", pid, profile_key=None))).ok
            found = chief.leader.fleet_view().followers
            assert [(view.profile, view.generation) for view in found] == [
                ("manual:101:1", "101:1:2"),
                ("manual:102:1", "102:1:2"),
            ]

    run(story())


def test_who_has_no_hope_does_not_wait_in_line(house: House) -> None:
    """A registration that is refused whenever it comes is refused now, whatever its profile is waiting for."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            chief.hold = asyncio.Event()
            first = asyncio.ensure_future(chief.send(register("101:1:1")))
            await until(lambda: chief.provisioning)
            incompatible = await chief.send(register("101:1:2", protocol=None))
            nameless = await chief.send(register("101:1:3", generation=None))
            assert (incompatible.ok, nameless.ok, first.done()) == (False, False, False)
            chief.hold.set()
            assert (await first).ok

    run(story())


def test_routes_that_come_and_go_are_told(house: House) -> None:
    """Whoever shows a fleet need not ask again and again; a callback that raises is noted, and changes nothing."""
    seen: list[int] = []

    async def story() -> None:
        def changed() -> None:
            seen.append(len(chief.routes()))
            raise RuntimeError("what")

        async with house:
            chief = await house.led(on_change=changed)
            assert (await chief.send(register("101:1:1"))).ok
            assert seen.pop() == 1
            assert (await chief.send(register("102:1:1", 102))).ok
            assert seen.pop() == 2
            assert (await chief.send(asks("101:1:1")[1])).ok
            assert seen.pop() == 1
            house.clock.advance(house.times.prune_ms + 1)
            await until(lambda: seen and seen[-1] == 0)
            assert house.notes.said("fleet", "callback")

    run(story())


async def told(chief: Chief, request: Request, peer: Peer) -> Ack:
    """What the leader makes of an authenticated request of that process."""
    opened = chief.leader._open
    assert opened is not None
    return (await opened.requests.handle(request, peer)).ack


@pytest.mark.parametrize(
    "more",
    [
        {"bus_socket_path": "relative"},
        {"registration_generation": ""},
        {"registration_generation": None},
        {"profile_key": "cwd:/bot"},
    ],
)
def test_compatibility_is_judged_first(house: House, more: dict[str, Any]) -> None:
    """I9: who does not fit hears that and nothing else, whatever else is wrong."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            asked = register("x:1")
            asked = attrs.evolve(asked, registration=attrs.evolve(asked.registration, protocol=None, **more))
            ack = await chief.send(asked)
            assert not ack.ok
            assert ack.error is not None
            assert ack.error.code == "incompatible-protocol"

    run(story())
