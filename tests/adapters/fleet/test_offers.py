"""Offers of queued items on their way: admitted by the recipient's machine, passed on by a leader in what is left of
the donor's time (bus.md e; L11)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs
import pytest

from tenure.adapters.bus.messages import acks, answers
from tenure.adapters.bus.messages.envelopes import Ack, CallApi
from tenure.adapters.bus.messages.envelopes_handoff import (
    FollowerOfferQueueHandoff,
    LeaderOfferQueueHandoff,
    QueueOwner,
    Staged,
)
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.follower.outcomes import AskFailed
from tenure.adapters.fleet.leader.requests import Route
from tests.adapters.fleet.envelopes_of import offer
from tests.adapters.fleet.fleet_room import TIMES, Chief, Hand, House, joined, run, until

OWNER = QueueOwner(
    instance_id="101:1", process_id=101, process_birth_id="101:start:1010", session_generation=1, acquisition_id="b",
    acquired_at_ms=5, handoff_id="handoff-1",
)  # fmt: skip
STAGED = Staged(receipt_id="r", source_update_ids=(1,), queue_owner=OWNER)
WAITING = attrs.evolve(TIMES, handoff_timeout_ms=4000)
HURRIED = attrs.evolve(TIMES, handoff_timeout_ms=600, relay_margin_ms=400.0)


class Taker:
    """What a recipient does with offers."""

    def __init__(self) -> None:
        self.offers: list[LeaderOfferQueueHandoff] = []
        self.refusal: str | None = None
        self.gate: asyncio.Event | None = None

    async def accept(self, request: LeaderOfferQueueHandoff) -> Staged:
        self.offers.append(request)
        if self.gate is not None:
            await self.gate.wait()
        if self.refusal is not None:
            raise TenureError(self.refusal)
        return STAGED


class Passing:
    """What a leader does with offers: it passes them on, unchecked."""

    def __init__(self, house: House) -> None:
        self.chief: Chief | None = None
        self.house = house
        self.left: list[float] = []
        self.routes: list[Route] = []

    async def on(self, request: FollowerOfferQueueHandoff, route: Route, left_ms: float) -> Ack:
        assert self.chief is not None
        self.left.append(left_ms)
        limit = left_ms - self.house.times.relay_margin_ms
        self.routes.append(route)
        fields = {
            field.name: getattr(request, field.name)
            for field in attrs.fields(FollowerOfferQueueHandoff)
            if field.name not in ("instance_id", "registration_generation")
        }
        work = LeaderOfferQueueHandoff(donor_instance_id=request.instance_id, **fields)
        to, generation = request.recipient_instance_id, request.recipient_registration_generation
        return await self.chief.leader.forward(to, generation, work, timeout_ms=limit)


def test_an_offer_is_accepted_by_who_takes_it(tmp_path: Path) -> None:
    """Under its registration; the answer says who owns the item."""

    async def story() -> None:
        async with House(tmp_path) as house:
            chief, taker = await house.led(), Taker()
            hand = await joined(house, chief, accept=taker.accept)
            generation = str(hand.follower.generation)
            ack = await chief.leader.forward("101:1", generation, offer(LeaderOfferQueueHandoff, generation))
            assert STAGED == answers.staged(ack)
            assert [generation] == [got.recipient_registration_generation for got in taker.offers]
            assert 1 == hand.follower.statistics().deliveries
            assert hand.taken == []

    run(story())


def test_a_refusal_says_what_the_taker_said(tmp_path: Path) -> None:
    """And the same request may be sent again: nothing of it is remembered."""

    async def story() -> None:
        async with House(tmp_path) as house:
            chief, taker = await house.led(), Taker()
            taker.refusal = "another journal"
            hand = await joined(house, chief, accept=taker.accept)
            generation = str(hand.follower.generation)
            work = offer(LeaderOfferQueueHandoff, generation)
            first = await chief.leader.forward("101:1", generation, work)
            assert (False, "another journal") == (first.ok, first.message)
            taker.refusal = None
            assert (await chief.leader.forward("101:1", generation, work)).ok
            assert 2 == len(taker.offers)

    run(story())


@pytest.mark.parametrize("generation", ["101:1:0", None])
def test_F12_an_offer_to_another_registration_never_reaches_the_taker(tmp_path: Path, generation: str | None) -> None:
    """Neither one of another generation, nor one for a follower whose host serves no session."""

    async def story() -> None:
        async with House(tmp_path) as house:
            chief, taker = await house.led(), Taker()
            hand = await joined(house, chief, accept=taker.accept)
            if generation is None:
                hand.follower.set_session(0)
            work = offer(LeaderOfferQueueHandoff, generation or str(hand.follower.generation))
            ack = await chief.send(work)
            assert not ack.ok  # a leader takes none
            path = hand.follower._receiver.path
            ack = await house.raw(attrs.evolve(work, auth=chief.secret), path)
            assert not ack.ok
            assert taker.offers == []

    run(story())


def test_F13_the_same_request_again_is_answered_once(tmp_path: Path) -> None:
    """By the request ledger of the recipient: with what came of the first."""

    async def story() -> None:
        async with House(tmp_path) as house:
            chief, taker = await house.led(), Taker()
            hand = await joined(house, chief, accept=taker.accept)
            generation = str(hand.follower.generation)
            work = offer(LeaderOfferQueueHandoff, generation)
            first = await chief.leader.forward("101:1", generation, work)
            assert first == await chief.leader.forward("101:1", generation, work)
            assert 1 == len(taker.offers)

    run(story())


async def _pair(house: House, **more: object) -> tuple[Chief, Passing, Hand, Hand, Taker]:
    passing, taker = Passing(house), Taker()
    chief = passing.chief = await house.led(pass_on=passing.on, **more)  # type: ignore[arg-type]
    recipient = await joined(house, chief, accept=taker.accept)
    donor = await joined(house, chief, 102)
    return chief, passing, donor, recipient, taker


def _offered(recipient: Hand) -> FollowerOfferQueueHandoff:
    made = offer(FollowerOfferQueueHandoff, "")
    return attrs.evolve(  # type: ignore[no-any-return]
        made, instance_id="102:1", recipient_registration_generation=str(recipient.follower.generation)
    )


def test_a_leader_passes_an_offer_on_under_the_same_request(tmp_path: Path) -> None:
    """From one follower to another; the donor gets the recipient's answer."""

    async def story() -> None:
        async with House(tmp_path, WAITING) as house:
            _, passing, donor, recipient, taker = await _pair(house)
            made = _offered(recipient)
            ack = await donor.follower.ask(lambda g: attrs.evolve(made, registration_generation=str(g)))
            assert isinstance(ack, Ack)
            assert STAGED == answers.staged(ack)
            assert ack.request_id == taker.offers[0].request_id
            assert "102:1" == taker.offers[0].donor_instance_id
            assert ["102:1"] == [route.entry.instance for route in passing.routes]
            assert [4000] == passing.left  # all of it, by a clock that stood still

    run(story())


def test_L11_a_busy_recipient_is_waited_for(tmp_path: Path) -> None:
    """S24 of annex J, as long as the donor waits: here longer than any other request may take."""

    async def story() -> None:
        async with House(tmp_path, attrs.evolve(TIMES, response_ms=1000)) as house:
            _, _, donor, recipient, taker = await _pair(house)
            gate = taker.gate = asyncio.Event()
            made = _offered(recipient)
            asked = asyncio.ensure_future(
                donor.follower.ask(lambda g: attrs.evolve(made, registration_generation=str(g)))
            )
            await until(lambda: taker.offers)
            done, _ = await asyncio.wait([asked], timeout=1.2)  # longer than any other request waits
            assert not done
            gate.set()
            ack = await asked
            assert isinstance(ack, Ack)
            assert ack.ok

    run(story())


def test_L11_the_leader_stops_waiting_before_the_donor_does(tmp_path: Path) -> None:
    """What is left is less than the donor's time by a margin: it is refused in words, and not by a connection that
    falls silent."""

    async def story() -> None:
        async with House(tmp_path, HURRIED) as house:
            _, passing, donor, recipient, taker = await _pair(house)
            taker.gate = asyncio.Event()
            made = _offered(recipient)
            ack = await donor.follower.ask(
                lambda g: attrs.evolve(made, registration_generation=str(g)), timeout_ms=20_000
            )
            assert not isinstance(ack, AskFailed)
            assert not ack.ok
            assert "did not answer" in (ack.message or "")
            assert [600] == passing.left

    run(story())


def test_who_passes_nothing_on_says_so(tmp_path: Path) -> None:
    """Without `pass_on` and `serve`; other asks are as before."""

    async def story() -> None:
        async with House(tmp_path) as house:
            chief = await house.led()
            donor = await joined(house, chief)
            made = offer(FollowerOfferQueueHandoff, str(donor.follower.generation))
            ack = await chief.send(made)
            assert (False, "this leader passes on no queued items") == (ack.ok, ack.message)

    run(story())


def test_other_asks_are_served_beside_it(tmp_path: Path) -> None:
    """`serve` gets what is no offer, `pass_on` the offers."""

    async def story() -> None:
        served: list[object] = []

        async def serve(request: object, route: Route) -> Ack:
            served.append(request)
            return acks.done(request)  # type: ignore[arg-type]

        async with House(tmp_path) as house:
            chief, passing, donor, recipient, _ = await _pair(house, serve=serve)
            made = _offered(recipient)
            await donor.follower.ask(lambda g: attrs.evolve(made, registration_generation=str(g)))
            call = CallApi(
                request_id="q", instance_id="102:1", registration_generation=str(donor.follower.generation),
                method="call", args=(), sent_at_ms=1,
            )  # fmt: skip
            assert (await chief.send(call)).ok
            assert (["102:1"], [call]) == (
                [route.entry.instance for route in passing.routes],
                [attrs.evolve(request, auth=None) for request in served],  # type: ignore[type-var]
            )
            assert {"101:1", "102:1"} == {route.entry.instance for route in chief.leader.routes()}
        assert chief.leader.routes() == ()

    run(story())
