"""Who gives way to whom, and who does not, whatever is claimed (L16, L24)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.messages.envelopes import Register
from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.wire import encode
from tenure.adapters.bus.peer import Peer
from tenure.adapters.fleet.agreement import HELD
from tenure.adapters.fleet.follower.outcomes import Accepted
from tenure.adapters.fleet.identities import linux_birth_id
from tenure.adapters.trace.api import MemoryRecorder, explained
from tenure.machines.identity import UNKNOWN
from tests.adapters.fleet.envelopes_of import register
from tests.adapters.fleet.fleet_room import Chief, House, joined, run, until
from tests.adapters.trace.recorded import write


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


# -- who gives way -----------------------------------------------------------------------------------------------------


def test_naming_somebody_elses_instance_takes_nothing(house: House) -> None:
    """Its instance, profile, thread and slot, as one's own or as the previous one: route and thread stay (L16)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            now = str(hand.follower.generation)
            key = "manual:1101:start:70"
            thefts: tuple[dict[str, Any], ...] = (
                {"instance_id": "101:1"}, {"instance_id": "101:1", "profile_key": key}, {"profile_key": key},
            )  # fmt: skip
            for pid, birth in ((102, linux_birth_id(102, 1020)), (103, None), (104, linux_birth_id(101, 1010))):
                for n, fields in enumerate(thefts):
                    ack = await chief.send(register(f"{pid}:1:{n}", pid, process_birth_id=birth, **fields))
                    assert not ack.ok
                    assert HELD in (ack.message or "")
                wish: dict[str, Any] = {"previous_instance_id": "101:1", "target": Target(0, 2), "slot": "B"}
                ack = await chief.send(register(f"{pid}:1:9", pid, process_birth_id=birth, **wish))
                assert ack.ok
                assert ack.result is not None
                assert isinstance(ack.result.value, dict)
                assert ack.result.value["threadId"] != 2
                assert ack.result.value["slot"] != "B"
                assert chief.routes()["101:1"] == now
            assert hand.lost == []

    run(story())


def test_the_leaders_own_profile_and_thread_are_nobody_elses(house: House) -> None:
    """They are in no route: whoever names them gets others, or is refused."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            own = chief.leader.binding
            ack = await chief.send(register("101:1:1", profile_key="cwd:/bot"))
            assert not ack.ok
            ack = await chief.send(register("101:1:2", target=Target(0, 1), slot="A"))
            assert ack.ok
            assert ack.result is not None
            assert isinstance(ack.result.value, dict)
            assert ack.result.value["threadId"] != 1
            assert chief.leader.binding == own

    run(story())


def test_a_copied_birth_takes_nothing_from_who_speaks_for_itself(house: House) -> None:
    """A process that connects itself is who it says; another one that copies its pid and birth is not (SO_PEERCRED)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            own_pid = os.getpid()
            birth = linux_birth_id(own_pid, 7)
            mine = register("101:1:1", own_pid, process_birth_id=birth, instance_id="101:1")
            assert (await chief.send(mine)).ok
            child = await asyncio.create_subprocess_exec(
                "python3", "-c", _RELAY, house.path, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            key = mine.registration.profile_key
            forged = register("102:1:1", own_pid, process_birth_id=birth, instance_id="102:1", profile_key=key)
            answer, _ = await child.communicate(encode(attrs.evolve(forged, auth=chief.secret)))
            assert b'"ok":false' in answer
            assert HELD.encode() in answer
            assert chief.routes() == {"101:1": "101:1:1"}

    run(story())


_RELAY = """
import socket, sys
end = socket.socket(socket.AF_UNIX); end.connect(sys.argv[1])
end.sendall(sys.stdin.buffer.read()); sys.stdout.buffer.write(end.makefile("rb").readline())
"""


def test_a_reload_takes_its_own_place(house: House) -> None:
    """Another activation of the same process: the old route goes, slot and thread stay."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            old = await joined(house, chief)
            new = house.follower(101, activation=2)
            found = await new.follower.register(chief.entry(), old.follower.binding, previous="101:1")
            assert isinstance(found, Accepted)
            assert found.binding == old.follower.binding
            assert chief.routes() == {"101:2": str(found.generation)}

    run(story())


def test_a_successor_of_the_dead_takes_its_place(house: House) -> None:
    """Its death is proven, so the new process of that shell gets slot and thread at once, before any silence."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            for pid in (101, 102):
                house.processes.start(pid, pid * 10)
            old = await joined(house, chief, 101, parent=7)
            held = house.follower(102, parent=7)
            first = await held.follower.register(chief.entry(), None)
            assert isinstance(first, Accepted)
            assert held.follower.data.own_key
            house.processes.kill(101)
            new = await joined(house, chief, 103, parent=7)
            assert not new.follower.data.own_key
            assert new.follower.binding == old.follower.binding
            assert set(chief.routes()) == {"102:1", "103:1"}
            await until(lambda: old.lost)

    run(story())


@pytest.mark.parametrize("lives", [True, False], ids=["a borrower that lives", "a borrower that nobody saw"])
def test_a_name_that_was_borrowed_and_pruned_keeps_nobody_out(house: House, lives: bool) -> None:
    """Somebody registered as the instance of another, was silent, and left the routes; its thread is remembered. The
    death of who really bore the name is proven all the same, and its successor gets slot and thread (L16, L24)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            for pid in (101, 102, *([103] if lives else [])):
                house.processes.start(pid, pid * 10)
            borrowed = register("103:1:1", 103, instance_id="101:1", profile_key="manual:103:start:1030")
            assert (await chief.send(borrowed)).ok
            await house.silence()
            await until(lambda: not chief.routes())
            old = await joined(house, chief, 101, parent=7)
            house.processes.kill(101)
            new = await joined(house, chief, 102, parent=7)
            assert not new.follower.data.own_key
            assert new.follower.binding == old.follower.binding
            assert set(chief.routes()) == {"102:1"}

    run(story())


# -- through a relay ---------------------------------------------------------------------------------------------------

ITSELF, RELAY, OTHER = Peer(101, 0), Peer(900, 0), Peer(901, 0)


async def told(chief: Chief, asked: Register, peer: Peer) -> bool:
    """Whether it is registered, where the kernel says that `peer` has connected."""
    opened = chief.leader._open
    assert opened is not None
    return (await opened.requests.handle(asked, peer)).ack.ok


@pytest.mark.parametrize("activation", [1, 2])
def test_a_process_takes_back_what_a_relay_registered_for_it(house: House, activation: int, tmp_path: Path) -> None:
    """Its relay has died, so it comes itself: the kernel says that it is who the relay said (L24). From then on no
    relay speaks for it, the old one neither, unless it brings its requests."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            house.processes.start(101, 1010)
            assert await told(chief, register("101:1:1"), RELAY)
            mine = register("q:1", instance_id=f"101:{activation}")
            assert not await told(chief, mine, OTHER)
            assert await told(chief, mine, ITSELF)
            assert chief.routes() == {f"101:{activation}": "q:1"}
            for peer in (RELAY, OTHER):
                assert not await told(chief, register(f"{peer.pid}:2", instance_id=f"101:{activation}"), peer)
                assert not await told(chief, register(f"{peer.pid}:3", instance_id="101:3"), peer)
            assert await told(chief, register("q:4", instance_id="101:4"), ITSELF)
            assert chief.routes() == {"101:4": "q:4"}

    house.recorder = MemoryRecorder()
    run(story())
    (tmp_path / "trace").mkdir()
    verdict = explained(*write(house.recorder.events, tmp_path / "trace"))
    assert verdict, str(verdict)


def test_a_relay_that_was_a_real_process(house: House) -> None:
    """As above, with who connects as the kernel says it (SO_PEERCRED): the relay has ended."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            pid = os.getpid()
            house.processes.start(pid, 7)
            birth = linux_birth_id(pid, 7)
            relayed = attrs.evolve(register("101:1:1", pid, process_birth_id=birth), auth=chief.secret)
            relay = await asyncio.create_subprocess_exec(
                "python3", "-c", _RELAY, house.path, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            answer, _ = await relay.communicate(encode(relayed))
            assert b'"ok":true' in answer
            assert (await chief.send(register("101:1:2", pid, process_birth_id=birth))).ok
            assert list(chief.routes().values()) == ["101:1:2"]

    run(story())


def test_nobody_takes_what_a_relay_registered_by_claiming_it(house: House) -> None:
    """Another process that names that pid and birth; one that has the pid, and another birth; one that nobody sees."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            house.processes.start(101, 1010)
            house.processes.start(102, 1020)
            assert await told(chief, register("101:1:1"), RELAY)
            key = "manual:1101:start:70"
            assert not await told(chief, register("q:1"), Peer(102, 0))
            assert not await told(chief, register("q:2", 102, profile_key=key), Peer(102, 0))
            assert not await told(chief, register("q:3", process_birth_id=linux_birth_id(101, 999)), ITSELF)
            assert not await told(chief, register("q:4", process_birth_id=None), ITSELF)
            house.processes.turn(101, UNKNOWN)
            assert not await told(chief, register("q:5"), ITSELF)
            assert chief.routes() == {"101:1": "101:1:1"}

    run(story())


def test_who_lies_about_its_process_keeps_nothing_from_it(house: House) -> None:
    """The key of another, and its pid and birth as well, first: it is had back by who really is that process, whatever
    else the liar has registered."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            house.processes.start(101, 1010)
            assert await told(chief, register("l:1", instance_id="900:1"), RELAY)
            assert await told(chief, register("l:2", instance_id="900:2", profile_key="manual:900:start:1"), RELAY)
            assert await told(chief, register("101:1:1"), ITSELF)
            assert not await told(chief, register("l:3", instance_id="900:3"), RELAY)
            assert not await told(chief, register("l:4"), RELAY)
            assert chief.routes() == {"101:1": "101:1:1", "900:2": "l:2"}

    run(story())
