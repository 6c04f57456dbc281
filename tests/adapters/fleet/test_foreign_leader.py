"""A follower and a leader of the other system, which does not say everything that one of ours says."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.endpoints.paths import endpoint_path
from tenure.adapters.fleet.follower.outcomes import Accepted
from tenure.adapters.fleet.succession.watch import RegistryWatch
from tenure.machines.entry import Entry
from tenure.machines.follower_messages import Binding
from tests.adapters.fleet.fleet_room import SECRET, Hand, House, run, until
from tests.adapters.fleet.member_room import Village

IDENTITY = {"protocolVersion": 1, "runtimeBuild": "another", "capabilities": ["durable-follower-admission-v1"]}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return Village(tmp_path)


class Evicting:
    """Keeps one registration for a profile key: the newest."""

    def __init__(self, house: House, capabilities: tuple[str, ...] = ()) -> None:
        self._path = house.path
        self._identity = IDENTITY | {"capabilities": [*IDENTITY["capabilities"], *capabilities]}  # type: ignore[misc]
        self.keys: dict[str, tuple[str, str]] = {}
        """By profile key: instance and generation."""
        self.asked: list[str] = []
        """The keys of all registrations."""
        self.says: dict[str, Any] = {}
        """What its places say besides, or instead."""
        self.forget = False
        """Once: the next heartbeat finds no registration."""

    async def __aenter__(self) -> Evicting:
        self._server = await asyncio.start_unix_server(self._serve, self._path)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()

    def entry(self, pid: int = 50) -> Entry:
        return Entry(pid, instance_id=f"{pid}:1", leader_epoch="u", bus_secret=SECRET)

    def registered(self, hand: Hand) -> bool:
        mine = (hand.follower.identity.instance_id, hand.follower.generation)
        return mine in self.keys.values()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            asked = json.loads(await reader.readline())
            writer.write(
                json.dumps({"kind": "bus.ack", "requestId": asked["requestId"], **self._answer(asked)}).encode()
            )
            writer.write(b"\n")
            await writer.drain()

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["kind"] == "follower.register":
            said = asked["registration"]
            self.asked.append(said["profileKey"])
            self.keys[said["profileKey"]] = said["instanceId"], said["registrationGeneration"]
            place = {"chatId": 7, "threadId": len(self.keys), "slot": "BCD"[len(self.keys) - 1]}
            place |= self.says
            return {"ok": True, "result": place, "protocol": self._identity}
        known = (asked["instanceId"], asked["registrationGeneration"]) in self.keys.values()
        if self.forget or not known:
            self.forget = False
            return {"ok": False, "message": "unknown"}
        return {"ok": True, "result": {"eligibleElectionSlots": []}}


async def again(hand: Hand, entry: Entry, losses: int) -> None:
    """Lost so often, and registered again."""
    await until(lambda: len(hand.lost) >= losses)
    assert isinstance(await hand.follower.register(entry, None), Accepted)


def test_two_of_one_shell_do_not_evict_each_other_for_ever(house: House) -> None:
    """The second loss in a row is read as what a leader of ours says: held by another live process (L24)."""

    async def story() -> None:
        async with house, Evicting(house) as leader:
            one, two = house.follower(101, parent=7), house.follower(102, parent=7)
            assert isinstance(await one.follower.register(leader.entry(), None), Accepted)
            assert isinstance(await two.follower.register(leader.entry(), None), Accepted)
            await again(one, leader.entry(), 1)
            await again(two, leader.entry(), 1)
            await again(one, leader.entry(), 2)
            assert leader.registered(one)
            assert leader.registered(two)
            assert leader.asked[-1] == one.follower.profile_key != two.follower.profile_key
            assert one.follower.binding.slot != two.follower.binding.slot
            beats = [hand.follower.statistics().heartbeats for hand in (one, two)]
            await until(lambda: one.follower.statistics().heartbeats > beats[0] + 2)
            await until(lambda: two.follower.statistics().heartbeats > beats[1] + 2)
            assert (len(one.lost), len(two.lost)) == (2, 1)

    run(story())


@pytest.mark.parametrize("how", ["once", "silent", "ours", "another leader"])
def test_the_shared_key_is_kept(house: House, how: str) -> None:
    """After one loss, or where it was silent, or at a leader that would say so, or at another leader."""

    async def story() -> None:
        capabilities = ("tenure-status-v1",) if how == "ours" else ()
        async with house, Evicting(house, capabilities) as leader:
            hand = house.follower(101)
            assert isinstance(await hand.follower.register(leader.entry(), None), Accepted)
            for losses in range(1, 2 if how == "once" else 3):
                if how == "silent":
                    house.clock.advance(house.times.prune_ms)
                leader.forget = True
                await again(hand, leader.entry(60 if how == "another leader" and losses == 2 else 50), losses)
            assert len(set(leader.asked)) == 1

    run(story())


def test_an_empty_path_in_the_entry_is_none(house: House) -> None:
    """The leader listens where its profile's leaders do."""

    async def story() -> None:
        async with house, Evicting(house) as leader:
            hand = house.follower(101)
            entry = attrs.evolve(leader.entry(), bus_socket_path="")
            assert isinstance(await hand.follower.register(entry, None), Accepted)

    run(story())


def test_a_long_path_in_the_entry(village: Village) -> None:
    """It is where a path of more than 80 bytes is mapped to, and is seen there."""

    async def story() -> None:
        eye = RegistryWatch(village.lease(101))
        long = f"{village.directory.state}/{'x' * 80}.sock"
        mapped = Path(endpoint_path(long))
        assert str(mapped) != long
        village.lease(50, bus_socket_path=long).acquire("plain")
        assert (await eye.look()).look.endpoint == 0
        mapped.parent.mkdir(mode=0o700, exist_ok=True)
        mapped.touch()
        try:
            assert (await eye.look()).look.endpoint > 0
        finally:
            mapped.unlink()
        await eye.close()

    run(story())


@pytest.mark.parametrize("says", [{"threadName": ""}, {"threadName": " "}, {}, {"threadName": None}])
def test_a_leader_that_names_nothing_takes_no_name_away(house: House, says: dict[str, Any]) -> None:
    """bus.md b, row 7: what is carried stays, by the call or by memory."""

    async def story() -> None:
        async with house, Evicting(house) as leader:
            leader.says = {"threadName": "Cobalt"}
            hand = house.follower(101)
            assert isinstance(await hand.follower.register(leader.entry(), None), Accepted)
            leader.says = says
            hand.follower.leave()
            assert isinstance(await hand.follower.register(leader.entry(), None), Accepted)
            assert hand.follower.binding == Binding("7/1", "B", "Cobalt")
            hand.follower.leave()
            assert isinstance(await hand.follower.register(leader.entry(), Binding("7/9", "D", "Dove")), Accepted)
            assert hand.follower.binding == Binding("7/1", "B", "Dove")

    run(story())


def test_what_a_leader_does_not_say_is_kept(house: House) -> None:
    """Slot and name fall back, each by itself, to what was carried; the thread is the leader's to say (bus.md b, row
    7)."""

    async def story() -> None:
        async with house, Evicting(house) as leader:
            leader.says = {"slot": None}
            hand = house.follower(101)
            found = await hand.follower.register(leader.entry(), Binding("7/9", "Q", "Otter"))
            assert isinstance(found, Accepted)
            assert found.binding == hand.follower.binding == Binding("7/1", "Q", "Otter")

    run(story())
