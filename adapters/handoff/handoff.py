"""The handoffs of one process: what it gives away, what it is given, and what it passes on where it leads.

    handoff = Handoff(ports, timings, journal, items, identity, party=..., serves=...)
    member = Member(directory, accept=handoff.accept, pass_on=handoff.pass_on)
    handoff.bind(member.leader, member.follower)
    ...
    moving = asyncio.create_task(handoff.run())

It is ended before the worker whose items it moves: what was aside is then resumed or gone.
"""

from __future__ import annotations

from collections.abc import Callable

from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.messages.envelopes_handoff import FollowerOfferQueueHandoff, LeaderOfferQueueHandoff, Staged
from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.follower.follower import Follower
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.fleet.leader.leader import Leader
from tenure.adapters.fleet.leader.requests import Route
from tenure.adapters.handoff.donor import Donors
from tenure.adapters.handoff.moving import MoveCounts, Mover
from tenure.adapters.handoff.ports import HandoffJournal
from tenure.adapters.handoff.recipient import Recipient
from tenure.adapters.handoff.relay import Relay
from tenure.adapters.handoff.way import FleetWay, Way
from tenure.adapters.ports import Ports
from tenure.adapters.work.items import Items
from tenure.machines.follower_messages import Target
from tenure.machines.receipt_messages import Party


class Handoff:
    """All three roles of one process."""

    def __init__(
        self,
        ports: Ports,
        timings: Timings,
        journal: HandoffJournal,
        items: Items,
        identity: InstanceIdentity,
        *,
        party: Callable[[], Party],
        serves: Callable[[], bool],
    ) -> None:
        """`party`: who this process is now, as it has written itself down in the journal. `serves`: a worker is here
        that begins what is put into `items`."""
        self.counts = MoveCounts()
        self.recipient = Recipient(
            ports,
            timings,
            journal,
            items,
            party=party,
            serves=serves,
            current=lambda generation: self._holds(generation),
        )
        self._ports = ports
        self._timings = timings
        self._journal = journal
        self._items = items
        self._identity = identity
        self._leader: Leader | None = None
        self._follower: Follower | None = None
        self._mover: Mover | None = None
        self._relay: Relay | None = None

    def bind(self, leader: Leader, follower: Follower, *, way: Way | None = None) -> None:
        """Both halves of the member that this process is."""
        ports, timings, me = self._ports, self._timings, self._identity
        self._leader, self._follower = leader, follower
        through = FleetWay(leader, follower, me, ports.clock, timings) if way is None else way

        def thread() -> Target | None:
            binding = leader.binding or follower.binding
            return binding.target

        donors = Donors(ports, timings, self._journal, self._items, through)
        self._relay = Relay(leader, me, timings, self.accept)
        self._mover = Mover(
            ports,
            timings,
            self._journal,
            self._items,
            through,
            donors,
            instance=me.instance_id,
            thread=thread,
            counts=self.counts,
        )

    async def accept(self, offer: LeaderOfferQueueHandoff) -> Staged:
        """What is offered to this process. Raises TenureError to refuse it."""
        return await self.recipient.accept(offer)

    async def pass_on(self, offer: FollowerOfferQueueHandoff, donor: Route, left_ms: float) -> Ack:
        """What one follower of this leader offers to another, or to this process. Raises TenureError to refuse it."""
        if self._relay is None:
            raise TenureError("this process begins; try again")
        return await self._relay.pass_on(offer, donor, left_ms)

    def signal(self) -> None:
        """There may be something to move: a registration, an item, a person's wish."""
        if self._mover is not None:
            self._mover.signal()

    async def run(self) -> None:
        """Move what belongs elsewhere, until this is cancelled; then what is under way is ended in order."""
        if self._mover is None:
            raise TenureError("bind the handoff to its member first")
        await self._mover.run()

    async def reconcile(self) -> None:
        """Look once, now."""
        if self._mover is not None:
            await self._mover.reconcile()

    async def close(self) -> None:
        """What was offered and is not in the queue yet ends as soon as it can. Nothing is moved any more: `run` has
        ended."""
        await self.recipient.close()

    def _holds(self, generation: str) -> bool:
        """Whether it is that of this process's registration, or, where it leads, its epoch."""
        leader, follower = self._leader, self._follower
        if leader is not None and leader.epoch is not None:
            return generation == str(leader.epoch)
        return follower is not None and follower.generation is not None and generation == str(follower.generation)
