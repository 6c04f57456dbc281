"""Who is there, and how an offer gets to him: directly from a leader, through the leader from a follower (annex G)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs

from tenure.adapters.bus.messages import acks, answers
from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.messages.envelopes_handoff import (
    FollowerOfferQueueHandoff,
    LeaderOfferQueueHandoff,
    QueueOwner,
    Staged,
)
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.bus.messages.protocol import DURABLE_FOLLOWER_ADMISSION, QUEUE_HANDOFF_AGAIN, protocol_identity
from tenure.adapters.fleet.agreement import our_protocol
from tenure.adapters.fleet.asking import NoAck
from tenure.adapters.fleet.leader.requests import Route
from tenure.adapters.handoff.destinations import Destination, as_leader
from tenure.adapters.handoff.parties import queue_owner
from tenure.adapters.handoff.payload import Parcel, payload_of
from tenure.adapters.handoff.way import FleetWay, Outgoing
from tenure.adapters.journal.liveness import process_name
from tenure.machines.receipt_messages import Holder
from tests.adapters.fleet.fleet_room import TIMES, Chief, Hand, House, joined, run

OWNER = QueueOwner(
    instance_id="101:1", process_id=101, process_birth_id="101:start:1010", session_generation=1, acquisition_id="b",
    acquired_at_ms=5, handoff_id="handoff-1",
)  # fmt: skip
STAGED = Staged(receipt_id="r", source_update_ids=(1,), queue_owner=OWNER)
PAYLOAD = payload_of(Parcel("r", "prompt", (Json({"update_id": 1, "message": {"chat": {"id": 7}}}),)), "j")


def way(house: House, pid: int, chief: Chief | None, hand: Hand | None) -> FleetWay:
    """Of a process that leads, or follows, or neither."""
    leader = house.chief(pid).leader if chief is None else chief.leader
    follower = house.follower(pid).follower if hand is None else hand.follower
    return FleetWay(leader, follower, house.identity(pid), house.clock, house.times)


def outgoing(house: House, pid: int, to: Destination, handoff: str | None = None) -> Outgoing:
    holder = Holder(f"{pid}:1", process_name(house.ports(pid).processes.me()), 1, "acq", handoff)
    owner = queue_owner(holder, 3)
    return Outgoing("q:1", to, holder, owner.process_id, owner.process_birth_id, 3, "t" * 43, PAYLOAD)


def test_a_leader_sees_its_followers_and_sends_directly(tmp_path: Path) -> None:
    """With what each of them advertises; the donor's handoff goes along where there is one."""

    async def story() -> None:
        taken: list[LeaderOfferQueueHandoff] = []

        async def accept(offer: LeaderOfferQueueHandoff) -> Staged:
            taken.append(offer)
            return STAGED

        async with House(tmp_path) as house:
            chief = await house.led()
            await joined(house, chief, 101, accept=accept)
            plain = protocol_identity("x", [DURABLE_FOLLOWER_ADMISSION])
            await joined(house, chief, 102, protocol=plain)
            mine = way(house, 50, chief, None)
            one, two = await mine.destinations()
            assert ("101:1", "102:1") == (one.instance, two.instance)
            assert one.capabilities is not None
            assert QUEUE_HANDOFF_AGAIN in one.capabilities
            assert frozenset({DURABLE_FOLLOWER_ADMISSION}) == two.capabilities
            assert QUEUE_HANDOFF_AGAIN in one.leaders
            for handoff in (None, "handoff-0"):
                offer = attrs.evolve(outgoing(house, 50, one, handoff), request=f"q:{handoff}")
                ack = await mine.send(offer)
                assert isinstance(ack, Ack)
                assert STAGED == answers.staged(ack)
                assert handoff == taken[-1].donor_handoff_id
            last = taken[-1]
            assert ("50:1", 50, "50:start:500", "acq", 3) == (
                last.donor_instance_id, last.donor_process_id, last.donor_process_birth_id,
                last.donor_acquisition_id, last.donor_acquired_at_ms,
            )  # fmt: skip

    run(story())


def test_a_follower_sees_all_but_itself_and_sends_through_its_leader(tmp_path: Path) -> None:
    """The leader's generation is its epoch; what the other followers advertise only the leader knows."""

    async def story() -> None:
        passed: list[FollowerOfferQueueHandoff] = []

        async def on(request: FollowerOfferQueueHandoff, route: Route, left_ms: float) -> Ack:
            passed.append(request)
            return acks.staged(request, STAGED)

        async with House(tmp_path) as house:
            chief = await house.led(pass_on=on)
            await joined(house, chief, 101)
            donor = await joined(house, chief, 102)
            mine = way(house, 102, None, donor)
            lead, other = await mine.destinations()
            expected = as_leader("50:1", 1, lead.target, our_protocol())
            assert attrs.evolve(expected, leaders=lead.leaders) == lead
            assert lead.target is not None
            assert ("101:1", chief.routes()["101:1"], None) == (other.instance, other.generation, other.capabilities)
            ack = await mine.send(outgoing(house, 102, other))
            assert isinstance(ack, Ack)
            assert STAGED == answers.staged(ack)
            assert ("102:1", str(donor.follower.generation)) == (
                passed[0].instance_id, passed[0].registration_generation,
            )  # fmt: skip

    run(story())


def test_without_a_place_in_a_fleet_there_is_nobody(tmp_path: Path) -> None:
    """And nothing is sent."""

    async def story() -> None:
        async with House(tmp_path) as house:
            mine = way(house, 103, None, None)
            assert () == await mine.destinations()
            answer = await mine.send(outgoing(house, 103, Destination("101:1", "g")))
            assert isinstance(answer, NoAck)
            assert not answer.sent

    run(story())


def test_what_a_leader_does_not_answer_may_have_moved(tmp_path: Path) -> None:
    """Nobody knows what it has done with it: only the row does."""

    async def story() -> None:
        gate = asyncio.Event()

        async def on(request: FollowerOfferQueueHandoff, route: Route, left_ms: float) -> Ack:
            await gate.wait()
            return acks.staged(request, STAGED)

        async with House(tmp_path, attrs.evolve(TIMES, handoff_timeout_ms=100)) as house:
            chief = await house.led(pass_on=on)
            donor = await joined(house, chief, 102)
            answer = await way(house, 102, None, donor).send(outgoing(house, 102, Destination("101:1", "g")))
            assert isinstance(answer, NoAck)
            assert answer.sent
            gate.set()

    run(story())


def test_a_leader_that_does_not_say_who_is_there_is_offered_nothing(tmp_path: Path) -> None:
    """As one of the other system: nobody is known behind it (F18)."""

    async def story() -> None:
        async with House(tmp_path) as house:
            chief = await house.led()
            donor = await joined(house, chief, 102)
            chief.leader._open.requests._view = lambda: (_ for _ in ()).throw(ValueError("no such kind"))  # type: ignore
            assert () == await way(house, 102, None, donor).destinations()

    run(story())
