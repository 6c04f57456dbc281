"""The end of leading in the middle of everything; what is left to the next leader; a port or a disk that fails."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import (
    Ack,
    Disconnect,
    TenureStatus,
)
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.agreement import our_protocol
from tenure.adapters.fleet.follower.outcomes import Accepted, RefusedBy
from tenure.adapters.fleet.leader.requests import Asked, Route
from tenure.adapters.fleet.threads.projection import look, projection_path
from tenure.machines.follower_messages import Binding
from tests.adapters.fleet.envelopes_of import asks, register, works
from tests.adapters.fleet.fleet_room import House, joined, run, until


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_deposed_while_provisioning(house: House) -> None:
    """Nothing is acknowledged, nothing written, nothing published (I3); what comes later is refused."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            published = look(house.ports(1).files, house.directory, "default").written
            chief.hold = asyncio.Event()
            late = asyncio.ensure_future(chief.send(register("102:1:1", 102)))
            await until(lambda: chief.provisioning)
            chief.own.epoch = None
            chief.hold.set()
            assert not (await late).ok
            await until(lambda: hand.lost)
            for request in [
                *asks("101:1:1"),
                *works("101:1:1"),
                TenureStatus(request_id="x:1"),
                register("103:1:1", 103),
            ]:
                assert not (await chief.send(request)).ok, request
            assert set(chief.routes()) <= {"101:1"}
            assert look(house.ports(1).files, house.directory, "default").written == published

    run(story())


def test_an_epoch_of_its_own_is_another_leading(house: House) -> None:
    """The same process under a later epoch: what was begun under the first comes to nothing."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            chief.hold = asyncio.Event()
            late = asyncio.ensure_future(chief.send(register("102:1:1", 102)))
            await until(lambda: chief.provisioning)
            chief.own.epoch = 2
            chief.hold.set()
            assert not (await late).ok
            await chief.leader.close()
            await chief.leader.open(2, None)
            assert chief.routes() == {}
            assert (await chief.send(register("102:1:2", 102))).ok

    run(story())


def test_closing_ends_whatever_hangs(house: House) -> None:
    """A provisioning that hangs, somebody who waits in line, an open connection: closed in bounded time."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            chief.hold = asyncio.Event()
            waiting = [asyncio.ensure_future(chief.send(register(f"101:1:{n}"))) for n in range(3)]
            await until(lambda: chief.provisioning)
            _, writer = await asyncio.open_unix_connection(house.path)
            await chief.leader.close()
            assert chief.leader.epoch is None
            await asyncio.wait(waiting)
            assert not [one for one in waiting if one.exception() is None and one.result().ok]
            await until(lambda: chief.provisioning == 0)
            writer.close()

    run(story())


def test_a_goodbye_is_on_disk_before_the_thread_is_deleted(house: House) -> None:
    """The next leader finishes what the one before could not, before anybody finds its endpoint."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            deleted: list[object] = []
            stuck = asyncio.Event()

            async def unmake(target: object) -> None:
                written = look(house.ports(1).files, house.directory, "default").written
                assert written is not None
                deleted.extend(written.snapshot.clean_ups)
                await stuck.wait()

            chief.local._unmake = unmake
            goodbye = asyncio.ensure_future(hand.follower.disconnect())
            await until(lambda: deleted)
            await chief.leader.close()
            goodbye.cancel()
            second = await house.led(60, epoch=2)
            assert [record.kind for record in second.local.board.records][:1] != []
            assert "101:1" not in {record.instance for record in second.local.board.records}
            assert second.leader.fleet_view().clean_ups == ()

    run(story())


def test_an_old_intent_is_void_when_the_instance_is_back(house: House) -> None:
    """The thread has another registration by then: it is not deleted, and the intent is dropped (L0)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)

            async def fails(target: object) -> None:
                raise TenureError("the API says no")

            chief.local._unmake = fails
            answer = await hand.follower.disconnect()
            assert isinstance(answer, str)
            assert "the API says no" in answer
            assert hand.follower.phase == "registered"
            assert len(chief.leader.fleet_view().clean_ups) == 1
            hand.follower.leave()
            assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
            await chief.leader.close()
            second = await house.led(60, epoch=2)
            assert second.leader.fleet_view().clean_ups == ()
            assert "101:1" in {record.instance for record in second.local.board.records}

    run(story())


def test_a_leader_cannot_open_what_is_not_its_own(house: House) -> None:
    """No lease: nothing is published, and nothing left."""

    async def story() -> None:
        async with house:
            chief = house.chief()
            chief.own.epoch = None
            with pytest.raises(TenureError):
                await chief.leader.open(1, Binding())
            chief.own.epoch = 2
            with pytest.raises(TenureError):
                await chief.leader.open(1, None)
            assert chief.leader.epoch is None
            assert not os.path.lexists(house.path)

    run(story())


def test_status_is_for_who_has_the_secret(house: House) -> None:
    """The whole fleet, in the order of its slots."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            for pid in (101, 102):
                await joined(house, chief, pid)
            ack = await chief.send(TenureStatus(request_id="x:1"))
            assert ack.ok
            view = chief.leader.fleet_view()
            assert (view.leader.slot, [f.slot for f in view.followers]) == ("A", ["B", "C"])
            assert [f.heartbeat_age_ms < 1000 for f in view.followers] == [True, True]

    run(story())


def test_many_at_once(house: House) -> None:
    """Each gets a slot or ranks after Z; transactions are shared."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            before = chief.own.transactions
            hands = [house.follower(pid) for pid in range(101, 131)]
            found = await asyncio.gather(*(hand.follower.register(chief.entry(), None) for hand in hands))
            assert all(isinstance(one, Accepted) for one in found)
            slots = [one.binding.slot for one in found if isinstance(one, Accepted)]
            assert len([slot for slot in slots if slot is not None]) == 25
            assert len({slot for slot in slots if slot is not None}) == 25
            assert chief.own.transactions - before < 60
            assert isinstance(found[0], Accepted)
            assert not isinstance(found[0], RefusedBy)

    run(story())


def test_a_promoted_follower_keeps_its_place(house: House) -> None:
    """Slot, thread and name are those of its registration, not those of the leader that died (A55, S32)."""

    async def story() -> None:
        async with house:
            first = await house.led()
            hand = await joined(house, first)
            other = await joined(house, first, 102)
            await first.leader.close()
            hand.follower.leave()
            second = await house.led(101, epoch=2, binding=hand.follower.binding)
            assert second.leader.binding == hand.follower.binding
            await until(lambda: other.lost)
            found = await other.follower.register(second.entry(), None)
            assert isinstance(found, Accepted)
            assert found.binding.slot == "C"
            assert {record.key for record in second.local.board.records} == {"cwd:/bot", "manual:1102:start:70"}

    run(story())


def test_deposed_while_it_does_what_it_was_asked(house: House) -> None:
    """It was done, or not: under an epoch that is over nothing is acknowledged, and nobody is to repeat it."""

    async def story() -> None:
        asked, done = asyncio.Event(), asyncio.Event()

        async def serve(request: Asked, route: Route) -> Ack:
            asked.set()
            await done.wait()
            return acks.done(request)

        async with house:
            chief = await house.led(serve=serve)
            hand = await joined(house, chief)
            call = asks(str(hand.follower.generation))[2]
            sent = asyncio.ensure_future(chief.send(call))
            await asked.wait()
            chief.own.epoch = None
            done.set()
            ack = await sent
            assert (ack.ok, ack.error and ack.error.code) == (False, "commit-unknown")

    run(story())


def test_who_may_not_ask_is_refused_before_it_is_done(house: House) -> None:
    """The hook of annex B, after the registration is found to stand."""

    async def story() -> None:
        done: list[Asked] = []

        async def serve(request: Asked, route: Route) -> Ack:
            done.append(request)
            return acks.done(request)

        async with house:
            chief = await house.led(serve=serve, authorise=lambda request, route: "not yours" if done else None)
            hand = await joined(house, chief)
            first, second = asks(str(hand.follower.generation))[2:4]
            assert (await chief.send(first)).ok
            ack = await chief.send(second)
            assert (ack.ok, ack.message, len(done)) == (False, "not yours", 1)

    run(story())


def test_registrations_go_on_where_nothing_can_be_published(house: House) -> None:
    """What is published is no authority, and what a follower carries is enough; it is published when it can be."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            path = Path(projection_path(house.directory, "default"))
            good = path.read_bytes()
            path.write_bytes(b"{")
            hand = await joined(house, chief)
            assert chief.routes() == {"101:1": str(hand.follower.generation)}
            assert path.read_bytes() == b"{"
            answer = await hand.follower.disconnect()
            assert isinstance(answer, str)  # without its intent on disk nothing is deleted
            assert len(chief.local.board.records) == 2
            path.write_bytes(good)
            await until(lambda: b"101:1" in path.read_bytes())

    run(story())


def test_deposed_and_unaware_of_it(house: House) -> None:
    """For a check's time a leader believes that it leads. The registry decides: nothing is acknowledged that changes
    anything, and nothing is deleted."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            chief.own.epoch, chief.own.unaware = None, 1
            assert not (await chief.send(register("102:1:1", 102))).ok
            answer = await hand.follower.disconnect()
            assert isinstance(answer, str)
            assert len(chief.local.board.records) == 2
            assert set(chief.routes()) == {"101:1"}
            assert hand.follower.phase == "registered"

    run(story())


def test_a_port_that_breaks_is_no_end(house: House) -> None:
    """Registrations and goodbyes are refused in their own words, with the identity; the next ones go well."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            broken = True

            async def breaks(what: object) -> None:
                if broken:
                    raise RuntimeError("secret detail")

            chief.local._make = chief.local._unmake = breaks
            ack = await chief.send(register("101:1:1"))
            assert (ack.ok, ack.protocol, "detail" in (ack.message or "")) == (False, our_protocol(), False)
            broken = False
            assert (await chief.send(register("101:1:1"))).ok
            broken = True
            bye = Disconnect(request_id="q:1", instance_id="101:1", registration_generation="101:1:1", sent_at_ms=1)
            assert not (await chief.send(bye)).ok
            assert chief.routes() == {"101:1": "101:1:1"}
            broken = False
            assert (await chief.send(bye)).ok
            assert chief.routes() == {}

    run(story())
