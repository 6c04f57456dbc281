"""What a follower writes, byte by byte: a leader of the other system reads it as well (bus.md a)."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from tenure.adapters.bus.endpoints.paths import endpoint_path, follower_path
from tenure.adapters.fleet.agreement import our_protocol
from tenure.adapters.fleet.follower.outcomes import Accepted
from tenure.machines.follower_messages import Binding
from tests.adapters.fleet.fleet_room import House, run
from tests.adapters.fleet.noting import Noted


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_the_lines_of_a_registration(house: House) -> None:
    """Register, the first heartbeat, goodbye: all members, in their order, numbers as numbers, and nothing for what is
    absent. The generation is the request's own id, and a new one each time."""
    now = house.clock.wall_ms()
    path = endpoint_path(follower_path(house.directory, "default", "101:1"))

    async def story() -> None:
        async with house:
            chief = await house.led()
            client = Noted()
            hand = house.follower(101, client=client)
            assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
            hand.follower.leave()
            carried = Binding("0/7", "Q", "Otter")
            assert isinstance(await hand.follower.register(chief.entry(), carried, previous="101:0"), Accepted)
            hand.follower.set_session(3)
            assert await hand.follower.disconnect() is True

            first, beat, second = (json.loads(line) for line in client.lines[:3])
            protocol = attrs.asdict(our_protocol())
            registration = {
                "instanceId": "101:1",
                "connectedAtMs": now,
                "profileKey": "manual:1101:start:70",
                "threadName": "bot",
                "cwd": "/bot",
                "pid": 101,
                "busSocketPath": path,
                "registrationGeneration": "101:1:1",
                "protocol": {
                    "protocolVersion": 1,
                    "runtimeBuild": protocol["runtime_build"],
                    "capabilities": [
                        "durable-follower-admission-v1",
                        "queue-handoff-v1",
                        "queue-handoff-v2",
                        "tenure-status-v1",
                    ],
                },
                "sessionGeneration": 1,
                "processBirthId": "101:start:1010",
            }
            whole = {
                "kind": "follower.register",
                "requestId": "101:1:1",
                "auth": chief.secret,
                "registration": registration,
            }
            assert client.lines[0] == json.dumps(whole, separators=(",", ":")).encode() + b"\n"
            assert list(beat.items()) == [
                ("kind", "follower.heartbeat"),
                ("requestId", "101:1:2"),
                ("auth", chief.secret),
                ("instanceId", "101:1"),
                ("registrationGeneration", "101:1:1"),
                ("sentAtMs", now),
            ]
            more = second["registration"]
            generation = second["requestId"]
            assert generation not in (first["requestId"], beat["requestId"])
            assert list(more) == [
                "instanceId", "connectedAtMs", "previousInstanceId", "profileKey", "threadName", "slot", "cwd", "pid",
                "target", "busSocketPath", "registrationGeneration", "protocol", "sessionGeneration", "processBirthId",
            ]  # fmt: skip
            assert (more["previousInstanceId"], more["threadName"], more["slot"]) == ("101:0", "Otter", "Q")
            assert (more["target"], more["registrationGeneration"]) == ({"chatId": 0, "threadId": 7}, generation)
            bye = json.loads(client.lines[-1])
            assert list(bye) == ["kind", "requestId", "auth", "instanceId", "registrationGeneration", "sentAtMs"]
            assert (bye["kind"], bye["registrationGeneration"]) == ("follower.disconnect", generation)

    run(story())


def test_a_registration_serves_the_session_of_its_moment(house: House) -> None:
    """The number of the host's session goes along, a positive one."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            client = Noted()
            hand = house.follower(101, client=client)
            hand.follower.set_session(4)
            assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
            assert json.loads(client.lines[0])["registration"]["sessionGeneration"] == 4

    run(story())
