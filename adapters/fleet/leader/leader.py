"""One leader of the fleet, driven: routes, ledger, endpoint, provisioning and projection (bus.md b, LEADER HANDLING).

    leader = Leader(ports, directory, None, identity, timings, provisioning=..., commit=..., epoch=..., secret=...)
    await leader.open(epoch, binding)
    ...
    await leader.close()

Everything runs on one event loop, file work in threads. It decides nothing: see `tenure.machines.routes`. What it does
under an epoch that is over comes to nothing: it acknowledges nothing, writes nothing and publishes nothing, since each
of these is an ownership transaction or follows one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from tenure.adapters.bus.client import Client
from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.messages.fleet_view import FleetView
from tenure.adapters.bus.messages.protocol import ProtocolIdentity
from tenure.adapters.bus.serving.counting import Statistics
from tenure.adapters.bus.serving.ledger import LedgerStatistics
from tenure.adapters.bus.serving.limits import Limits
from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory, registry_key
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.agreement import our_protocol
from tenure.adapters.fleet.asking import NoAck
from tenure.adapters.fleet.ending import ended_within
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.fleet.leader.book import Commit
from tenure.adapters.fleet.leader.events import LeaderEvents
from tenure.adapters.fleet.leader.leading import Leading, Means
from tenure.adapters.fleet.leader.requests import (
    Authorise,
    PassOn,
    Route,
    Serve,
    Work,
    nobody_is_barred,
)
from tenure.adapters.fleet.threads.provisioning import Provisioning
from tenure.adapters.ports import Ports
from tenure.machines.follower_messages import Binding

_CLOSED: Final = "this process does not lead the fleet"
STOP_S: Final = 3.0
"""Longer than the server's and a guard's own bounds: whatever hangs then is left to itself."""


@attrs.frozen
class LeaderStatistics:
    """What a leader has now. None where it is closed."""

    phase: str
    routes: int
    changes: int
    """Registrations and clean-ups under way."""
    intents: int
    server: Statistics | None
    ledger: LedgerStatistics | None


class Leader:
    """One instance as the leader, again and again: `open`, `close`."""

    def __init__(
        self,
        ports: Ports,
        directory: AgentDirectory,
        profile: str | None,
        identity: InstanceIdentity,
        timings: Timings,
        *,
        provisioning: Provisioning,
        commit: Commit,
        epoch: Callable[[], int | None],
        secret: str,
        on_change: Callable[[], None] = lambda: None,
        serve: Serve | None = None,
        authorise: Authorise = nobody_is_barred,
        pass_on: PassOn | None = None,
        reclaim_dead: bool = False,
        protocol: ProtocolIdentity | None = None,
        client: Client | None = None,
        limits: Limits | None = None,
    ) -> None:
        """`commit` is the ownership transaction, `epoch` what is known of it without a file, `secret` what requests
        have to bring. `serve` does what followers ask for, `authorise` says who may not; without `serve` it is refused.
        `pass_on` relays the queued items that they offer to each other, in place of `serve`.
        `reclaim_dead`: the threads of followers that are silent and proven dead are deleted; else they are kept for
        their profile. `on_change` is told of routes that come and go."""
        self._means = Means(
            ports=ports,
            directory=directory,
            key=registry_key(profile),
            identity=identity,
            own_key=identity.leader_key(profile),
            timings=timings,
            provisioning=provisioning,
            commit=commit,
            epoch=epoch,
            secret=secret,
            on_change=on_change,
            serve=serve,
            authorise=authorise,
            pass_on=pass_on,
            reclaim_dead=reclaim_dead,
            protocol=our_protocol() if protocol is None else protocol,
            client=Client() if client is None else client,
            limits=limits,
            events=LeaderEvents(ports, identity),
        )
        self._open: Leading | None = None

    # -- what anybody may ask -----------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int | None:
        """Under which it is open."""
        return None if self._open is None else self._open.epoch

    @property
    def protocol(self) -> ProtocolIdentity:
        """What it says of itself."""
        return self._means.protocol

    @property
    def binding(self) -> Binding | None:
        """The leader's own thread, slot and name; None while it is closed."""
        return None if self._open is None else self._open.binding

    def fleet_view(self) -> FleetView:
        """The fleet as this leader knows it now. Raises TenureError while it is closed."""
        return self._opened().view()

    def statistics(self) -> LeaderStatistics:
        """Counts as they are now."""
        opened = self._open
        if opened is None:
            return LeaderStatistics("closed", 0, 0, 0, None, None)
        data = opened.routing.data
        server, ledger = opened.desk.statistics()
        return LeaderStatistics(
            opened.routing.phase, len(data.entries), len(data.mutations), len(data.intents), server, ledger
        )

    # -- verbs --------------------------------------------------------------------------------------------------------

    async def open(self, epoch: int, binding: Binding | None) -> None:
        """Begin to lead the fleet under `epoch`, with `binding` as the own thread, slot and name if they are free.

        What was published is read, the own thread provisioned, what was left to be deleted is deleted; then, inside
        the ownership transaction, the endpoint is published. Raises TenureError (NotOwner, StateForeign...) and then
        nothing of it is left; likewise when it is cancelled.
        """
        if self._open is not None:
            raise TenureError("the fleet is open already; close it first")
        opened = self._open = Leading(self._means, epoch)
        try:
            await opened.begin(binding)
        except BaseException:
            if self._open is opened:
                self._open = None
            await ended_within(self._means.ports, STOP_S, opened.end())
            raise

    async def close(self) -> None:
        """Lead the fleet no more, whatever is under way and hangs, in bounded time. Who waits for an answer is refused
        or cut off; nothing is acknowledged any more."""
        opened, self._open = self._open, None
        if opened is not None:
            await ended_within(self._means.ports, STOP_S, opened.end())

    def routes(self) -> tuple[Route, ...]:
        """The registrations that stand now; none while it is closed. They are no authority: what is sent by `forward`
        is compared again."""
        opened = self._open
        if opened is None:
            return ()
        return tuple(Route(entry, opened.routing.live.get(entry.instance)) for entry in opened.routing.data.entries)

    async def forward(self, instance: str, generation: str, work: Work, *, timeout_ms: float | None = None) -> Ack:
        """Send work to the registration `generation` of `instance`, if it stands; the answer is the follower's, or a
        refusal. Where work has to be done by this leader, nothing is sent. `timeout_ms`: how long the follower may take
        to answer (None: as long as a registration may take)."""
        named = self._named(instance, generation, work)
        if self._open is None:
            return acks.refused(named, _CLOSED)
        return await self._open.requests.send(named, timeout_ms=timeout_ms)

    async def attempt(
        self, instance: str, generation: str, work: Work, *, timeout_ms: float | None = None
    ) -> Ack | NoAck:
        """`forward`, where no answer is told apart from a refusal."""
        named = self._named(instance, generation, work)
        if self._open is None:
            return acks.refused(named, _CLOSED)
        return await self._open.requests.attempt(named, timeout_ms=timeout_ms)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _named(self, instance: str, generation: str, work: Work) -> Work:
        return attrs.evolve(
            work, recipient_instance_id=instance, recipient_registration_generation=generation, auth=self._means.secret
        )

    def _opened(self) -> Leading:
        if self._open is None:
            raise TenureError(_CLOSED)
        return self._open
