"""The way from one instance to another: who is there now, and sending an offer (bus.md e, LEADER RELAY; annex G).

A leader sends directly, a follower through its leader. What is known here of the others is no authority: the leader
compares the generations, and the recipient's machine its own, when the offer comes.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from tenure.adapters.bus.messages import answers
from tenure.adapters.bus.messages.envelopes import Ack, TenureStatus
from tenure.adapters.bus.messages.envelopes_handoff import (
    FollowerOfferQueueHandoff,
    HandoffPayload,
    LeaderOfferQueueHandoff,
)
from tenure.adapters.bus.messages.fields import Malformed
from tenure.adapters.bus.messages.fleet_view import FleetView
from tenure.adapters.bus.messages.protocol import ProtocolIdentity
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.asking import NoAck
from tenure.adapters.fleet.follower.follower import Follower
from tenure.adapters.fleet.follower.outcomes import AskFailed
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.fleet.leader.leader import Leader
from tenure.adapters.fleet.places import spelled
from tenure.adapters.handoff.destinations import Destination, as_leader, destination, in_words, judged
from tenure.adapters.handoff.envelopes import from_follower
from tenure.adapters.ports import Clock
from tenure.machines.chart import Refused
from tenure.machines.receipt_messages import Holder
from tenure.machines.relay import Bounds


@attrs.frozen
class Outgoing:
    """One offer, on its way to one registration. `request`: its request id."""

    request: str
    to: Destination
    donor: Holder
    donor_pid: int
    donor_birth: str
    acquired_at_ms: int
    token: str = attrs.field(repr=False)
    payload: HandoffPayload = attrs.field(repr=False)


class Way(Protocol):
    """What a donor needs of the fleet."""

    async def destinations(self) -> tuple[Destination, ...]:
        """Who is there now besides this process; nobody while this process has no place in a fleet, or its leader does
        not say who is there (one of the other system)."""

    def barred(self, to: Destination, *, came_by_handoff: bool) -> str | None:
        """Why nothing is offered to `to`, as far as that is known here; None if nothing is in the way."""

    async def send(self, offer: Outgoing) -> Ack | NoAck:
        """Send it, and wait for the answer, in bounded time. The offer may have been accepted whatever is answered."""


class FleetWay:
    """The way of one member: as the leader that it is, or through the leader that it has."""

    def __init__(
        self, leader: Leader, follower: Follower, identity: InstanceIdentity, clock: Clock, timings: Timings
    ) -> None:
        self._leader = leader
        self._follower = follower
        self._identity = identity
        self._clock = clock
        self._timings = timings

    async def destinations(self) -> tuple[Destination, ...]:
        """As `Way` says."""
        if self._leader.epoch is not None:
            mine = frozenset(self._leader.protocol.capabilities)
            return tuple(attrs.evolve(destination(route), leaders=mine) for route in self._leader.routes())
        me, protocol = self._identity.instance_id, self._follower.leader_protocol
        if self._follower.generation is None or protocol is None:
            return ()
        ack = await self._follower.ask(
            lambda generation: TenureStatus(request_id="", instance_id=me), timeout_ms=self._timings.response_ms
        )
        if isinstance(ack, AskFailed) or not ack.ok:
            return ()
        view = answers.fleet(ack)
        return () if isinstance(view, Malformed) else _seen(view, me, protocol)

    def barred(self, to: Destination, *, came_by_handoff: bool) -> str | None:
        """As `Way` says: a leader that is the donor asks what it would ask of another."""
        epoch = self._leader.epoch
        if epoch is None:
            return None
        me = as_leader(self._identity.instance_id, epoch, None, self._leader.protocol)
        passed = judged(
            Bounds(0),
            me,
            self._leader.protocol,
            to,
            donor_current=True,
            came_by_handoff=came_by_handoff,
            left_ms=self._timings.handoff_timeout_ms,
        )
        return in_words(passed) if isinstance(passed, Refused) else None

    async def send(self, offer: Outgoing) -> Ack | NoAck:
        """As `Way` says."""
        limit = self._timings.handoff_timeout_ms
        if self._leader.epoch is not None:
            to = offer.to
            return await self._leader.forward(to.instance, to.generation, self._direct(offer), timeout_ms=limit)
        ack = await self._follower.ask(lambda generation: self._through(offer, str(generation)), timeout_ms=limit)
        if isinstance(ack, AskFailed):
            return NoAck(ack.text, sent=ack.unknown)
        return ack

    def _direct(self, offer: Outgoing) -> LeaderOfferQueueHandoff:
        return LeaderOfferQueueHandoff(
            request_id=offer.request,
            donor_instance_id=self._identity.instance_id,
            recipient_instance_id=offer.to.instance,
            recipient_registration_generation=offer.to.generation,
            donor_process_id=offer.donor_pid,
            donor_process_birth_id=offer.donor_birth,
            donor_session_generation=offer.donor.session,
            donor_acquisition_id=str(offer.donor.acquisition),
            donor_acquired_at_ms=offer.acquired_at_ms,
            donor_handoff_id=_text(offer.donor.handoff),
            handoff_token=offer.token,
            payload=offer.payload,
            sent_at_ms=self._clock.wall_ms(),
        )

    def _through(self, offer: Outgoing, generation: str) -> FollowerOfferQueueHandoff:
        return from_follower(self._direct(offer), generation)


def _seen(view: FleetView, me: str, protocol: ProtocolIdentity) -> tuple[Destination, ...]:
    lead, leaders = view.leader, frozenset(protocol.capabilities)
    found = [attrs.evolve(as_leader(lead.instance_id, lead.epoch, spelled(lead.target), protocol), leaders=leaders)]
    found += [
        Destination(other.instance_id, other.generation, spelled(other.target), None, leaders)
        for other in view.followers
    ]
    return tuple(one for one in found if one.instance != me)


def _text(value: int | str | None) -> str | None:
    return None if value is None else str(value)
