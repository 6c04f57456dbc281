"""The leader between, driven: the machine of `tenure.machines.relay` over the routes (bus.md e, LEADER RELAY).

What one follower offers to another is sent on under the same request; what it offers to the leader itself is taken
here, without a socket between. The leader remembers nothing of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.messages.envelopes_handoff import FollowerOfferQueueHandoff, LeaderOfferQueueHandoff, Staged
from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.fleet.leader.leader import Leader
from tenure.adapters.fleet.leader.requests import Route
from tenure.adapters.handoff.destinations import Destination, as_leader, destination, in_words, judged
from tenure.adapters.handoff.envelopes import from_leader
from tenure.machines.chart import Refused
from tenure.machines.relay import Bounds


class Relay:
    """What a leader does with the offers of its followers."""

    def __init__(
        self,
        leader: Leader,
        identity: InstanceIdentity,
        timings: Timings,
        accept: Callable[[LeaderOfferQueueHandoff], Awaitable[Staged]],
    ) -> None:
        """`accept` takes what is offered to this process itself."""
        self._bounds = Bounds(round(timings.relay_margin_ms))
        self._leader = leader
        self._me = identity.instance_id
        self._accept = accept

    async def pass_on(self, offer: FollowerOfferQueueHandoff, donor: Route, left_ms: float) -> Ack:
        """What the recipient answers. Raises TenureError where nothing is passed on, or this process does not take it.

        `donor` is the registration that stands under the donor's name."""
        to, generation = offer.recipient_instance_id, offer.recipient_registration_generation
        passed = judged(
            self._bounds,
            destination(donor),
            self._leader.protocol,
            self._found(to, generation),
            donor_current=str(donor.entry.generation) == offer.registration_generation,
            came_by_handoff=offer.donor_handoff_id is not None,
            left_ms=left_ms,
        )
        if isinstance(passed, Refused):
            raise TenureError(in_words(passed))
        work = from_leader(offer)
        if to == self._me:
            return acks.staged(offer, await self._accept(work))
        return await self._leader.forward(to, generation, work, timeout_ms=passed.budget_ms)

    def _found(self, instance: str, generation: str) -> Destination | None:
        """The registration, as this leader has it now; this leader itself under its epoch."""
        here = [destination(route) for route in self._leader.routes()]
        if (epoch := self._leader.epoch) is not None:
            here.append(as_leader(self._me, epoch, None, self._leader.protocol))
        return next((one for one in here if (one.instance, one.generation) == (instance, generation)), None)
