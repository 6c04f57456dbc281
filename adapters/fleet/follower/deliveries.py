"""What a leader sends to a follower: admitted by its machine, or refused (bus.md a, FOLLOWER SERVER ORDER)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tenure.adapters.bus.client import Client
from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import (
    Ack,
    Addressed,
    Forward,
    ReplaceFollowerTarget,
    Request,
)
from tenure.adapters.bus.messages.envelopes_handoff import LeaderOfferQueueHandoff, Staged
from tenure.adapters.bus.peer import Peer
from tenure.adapters.bus.serving.ledger import Done, RequestKey
from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.follower.receiver import Receiver
from tenure.adapters.fleet.follower.steps import FollowerSteps
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.fleet.places import spelled
from tenure.adapters.ports import Ports
from tenure.machines import follower_messages as own
from tenure.machines.chart import Refused, Step, step
from tenure.machines.follower import FOLLOWER
from tenure.machines.follower_messages import Binding

Deliver = Callable[[Forward], Awaitable[None]]
"""Takes a delivery that the machine admitted; once it returns, the receipt is sent. Raises TenureError to refuse it,
with that text."""
Accept = Callable[[LeaderOfferQueueHandoff], Awaitable[Staged]]
"""Takes an offer of a queued item that the machine admitted, and answers who owns the item once it is accepted. Raises
TenureError to refuse it, with that text: then nobody here has the item."""


class Deliveries(FollowerSteps):
    """The receiving half of a follower."""

    def __init__(
        self,
        ports: Ports,
        identity: InstanceIdentity,
        timings: Timings,
        receiver: Receiver,
        *,
        profile: str | None,
        on_lost: Callable[[Binding, str], None],
        on_change: Callable[[], None],
        client: Client | None,
        deliver: Deliver | None,
        accept: Accept | None,
    ) -> None:
        super().__init__(
            ports, identity, timings, receiver, profile=profile, on_lost=on_lost, on_change=on_change, client=client
        )
        self._deliver = deliver
        self._accept = accept

    def _active_secret(self) -> str | None:
        return None if self._link is None else self._link.secret

    def _stands(self, key: RequestKey) -> bool:
        """Whether what the request of `key` is addressed to is what we are now."""
        named = key.ground
        return named is not None and isinstance(self._judged(named.instance, named.generation, self._number), Step)

    def _judged(self, instance: str, generation: str | None, number: int) -> Step[own.Memory, own.Output] | Refused:
        """What the machine says to work for that registration; nothing is changed."""
        return step(FOLLOWER, self.phase, self.data, own.Deliver(instance, generation, number))

    async def _take(self, request: Request, peer: Peer) -> Done[Ack]:
        if not isinstance(request, Addressed):
            return _refused(acks.not_handled(request))
        instance, generation = request.recipient_instance_id, request.recipient_registration_generation
        if isinstance(request, ReplaceFollowerTarget):
            target = spelled(request.target)
            assert target is not None
            if isinstance(moved := self._offer(own.ReplaceTarget(instance, generation, target)), Refused):
                return _refused(_no(request, moved))
            return Done(acks.done(request), "done")
        self._number += 1
        number = self._number
        admitted = self._judged(instance, generation, number)
        if isinstance(admitted, Refused):
            return _refused(_no(request, admitted))
        if not isinstance(request, Forward):
            return await self._accepted(request, own.Deliver(instance, generation, number))
        if self._link is None or request.delivery.recipient_binding_key != self._link.key:
            return _refused(acks.refused(request, "addressed to another profile"))
        if self._deliver is None:
            return _refused(acks.refused(request, "nothing here takes deliveries"))
        self._offer(own.Deliver(instance, generation, number))
        try:
            await self._deliver(request)
        except TenureError as error:
            return _refused(acks.refused(request, str(error)))
        self._counts.deliveries += 1
        return Done(acks.received(request, request.delivery), "done")

    async def _accepted(self, offer: LeaderOfferQueueHandoff, admitted: own.Deliver) -> Done[Ack]:
        if self._accept is None:
            return _refused(acks.refused(offer, "offers of queued items are not taken here"))
        self._offer(admitted)
        try:
            staged = await self._accept(offer)
        except TenureError as error:
            return _refused(acks.refused(offer, str(error)))
        self._counts.deliveries += 1
        return Done(acks.staged(offer, staged), "done")


def _refused(ack: Ack) -> Done[Ack]:
    return Done(ack, "failed")


def _no(request: Request, why: Refused) -> Ack:
    """A delivery is not for this registration, or there is nobody to do it."""
    if "addressed_to_me" in why.guards:
        return acks.not_for_me(request)
    if "host_serves" in why.guards:
        return acks.refused(request, "no session is served here now: try again later")
    return acks.stale_generation(request)
