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

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final

import attrs

from tenure.adapters.bus import acks
from tenure.adapters.bus.client import Client
from tenure.adapters.bus.counting import Statistics
from tenure.adapters.bus.endpoint import Endpoint
from tenure.adapters.bus.endpoint_paths import endpoint_path, follower_path, leader_path
from tenure.adapters.bus.envelopes import Ack
from tenure.adapters.bus.fleet_view import FleetView
from tenure.adapters.bus.ledger import LedgerStatistics, RequestKey
from tenure.adapters.bus.limits import Limits
from tenure.adapters.bus.protocol import ProtocolIdentity
from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory, registry_key
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.book import Book, Commit, Deposed
from tenure.adapters.fleet.desk import Desk
from tenure.adapters.fleet.fleet_views import fleet_view
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.fleet.leader_events import LeaderEvents
from tenure.adapters.fleet.places import board_target, spelled
from tenure.adapters.fleet.projection import Projection, Snapshot
from tenure.adapters.fleet.provisioning import Provisioning, ProvisionRequest
from tenure.adapters.fleet.requests import Authorise, Requests, Serve, Work, nobody_is_barred
from tenure.adapters.fleet.routing import Boarded, Routing
from tenure.adapters.fleet.wording import our_protocol
from tenure.adapters.ports import Ports, tell
from tenure.machines.follower_messages import Binding
from tenure.machines.routes_messages import Intent

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
        reclaim_dead: bool = False,
        protocol: ProtocolIdentity | None = None,
        client: Client | None = None,
        limits: Limits | None = None,
    ) -> None:
        """`commit` is the ownership transaction, `epoch` what is known of it without a file, `secret` what requests
        have to bring. `serve` does what followers ask for, `authorise` says who may not; without `serve` it is refused.
        `reclaim_dead`: the threads of followers that are silent and proven dead are deleted; else they are kept for
        their profile. `on_change` is told of routes that come and go."""
        self.ports = ports
        self.identity = identity
        self.binding: Binding | None = None
        """The leader's own thread, slot and name; None while it is closed."""
        self._directory = directory
        self._key = registry_key(profile)
        self._own_key = identity.leader_key(profile)
        self._timings = timings
        self._provisioning = provisioning
        self._commit = commit
        self._epoch = epoch
        self._secret = secret
        self._on_change = on_change
        self._serve = serve
        self._authorise = authorise
        self._reclaim_dead = reclaim_dead
        self._protocol = our_protocol() if protocol is None else protocol
        self._client = Client() if client is None else client
        self._limits = limits
        self._events = LeaderEvents(ports, identity)
        self._open: _Open | None = None

    # -- what anybody may ask -----------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int | None:
        """Under which it is open."""
        return None if self._open is None else self._open.epoch

    def fleet_view(self) -> FleetView:
        """The fleet as this leader knows it now. Raises TenureError while it is closed."""
        return self._opened().view()

    def statistics(self) -> LeaderStatistics:
        """This moment."""
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
        opened = self._open = _Open(self, epoch)
        try:
            await opened.begin(binding)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Lead the fleet no more, whatever is under way and hangs, in bounded time. Who waits for an answer is refused
        or cut off; nothing is acknowledged any more."""
        opened, self._open = self._open, None
        self.binding = None
        if opened is not None:
            ending = asyncio.ensure_future(opened.end())
            await asyncio.wait([ending], timeout=STOP_S)

    async def forward(self, instance: str, generation: str, work: Work) -> Ack:
        """Send work to the registration `generation` of `instance`, if it stands; the answer is the follower's, or a
        refusal. Where work has to be done by this leader, nothing is sent."""
        opened = self._open
        named = attrs.evolve(
            work, recipient_instance_id=instance, recipient_registration_generation=generation, auth=self._secret
        )
        if opened is None:
            return acks.refused(named, "this process does not lead the fleet")
        return await opened.requests.send(named)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _opened(self) -> _Open:
        if self._open is None:
            raise TenureError("this process does not lead the fleet")
        return self._open


class _Open:
    """One leading of the fleet."""

    def __init__(self, leader: Leader, epoch: int) -> None:
        self.leader = leader
        self.epoch = epoch
        ports, timings = leader.ports, leader._timings
        self.routing = Routing(
            ports,
            timings,
            leader._provisioning,
            leader._events,
            epoch=leader._epoch,
            own_key=leader._own_key,
            on_change=leader._on_change,
        )
        self.routing.book = Book(ports, leader._commit, epoch, self._page)
        self.requests = Requests(
            ports,
            self.routing,
            leader._protocol,
            view=self.view,
            socket_of=lambda instance: endpoint_path(follower_path(leader._directory, leader._key, instance)),
            leg_ms=timings.register_timeout_ms,
            serve=leader._serve,
            authorise=leader._authorise,
            client=leader._client,
        )
        self.desk = Desk(
            ports,
            secret=lambda: leader._secret,
            handle=self.requests.handle,
            stands=self._stands,
            limits=leader._limits,
        )
        path = leader_path(leader._directory, leader._key)
        self.endpoint = Endpoint(path, self.desk.server, publish=self._publish)
        self._jobs: set[asyncio.Task[None]] = set()
        self._healing = False

    async def begin(self, binding: Binding | None) -> None:
        leader = self.leader
        snapshot = await self._load()
        provisioning = leader._provisioning
        if isinstance(provisioning, Boarded):
            provisioning.begin_leading(snapshot.board, leader._own_key, self.epoch)
        leader.binding = await self._own_place(binding)
        self.routing.open(self.epoch, snapshot)
        for intent in self.routing.data.intents:
            await self._reclaim(intent, dead=False)
        book = self.routing.book
        assert book is not None
        await book.published()
        await self.endpoint.start()
        self._job(self._ticks())

    async def end(self) -> None:
        self.routing.close()
        self.desk.close()
        for job in tuple(self._jobs):
            job.cancel()
        try:
            await self.endpoint.stop()
        finally:
            if self.routing.book is not None:
                await self.routing.book.close()

    def view(self) -> FleetView:
        """The answer to ``tenure.status``."""
        leader = self.leader
        return fleet_view(leader.identity, self.epoch, leader.binding or Binding(), self.routing, leader.ports.clock)

    # -- beginning ----------------------------------------------------------------------------------------------------

    async def _load(self) -> Snapshot:
        def load(epoch: int) -> Snapshot:
            self._same(epoch)
            return self._projection(epoch).load()

        return await self.leader._commit(load)

    async def _own_place(self, binding: Binding | None) -> Binding:
        carried = Binding() if binding is None else binding
        me = self.leader.identity
        got = await self.routing.limited(
            self.leader._provisioning.provision(
                ProvisionRequest(
                    instance=me.instance_id,
                    profile_key=self.leader._own_key,
                    kind="leader",
                    slot=carried.slot,
                    name=carried.name or me.name,
                    target=board_target(carried.target),
                    pid=me.pid,
                    process_birth=me.birth_id,
                ),
                self.epoch,
            )
        )
        return Binding(spelled(got.target), got.slot, got.name)

    # -- transactions -------------------------------------------------------------------------------------------------

    async def _publish(self, rename: Callable[[], None]) -> None:
        def inside(epoch: int) -> None:
            self._same(epoch)
            rename()

        await self.leader._commit(inside)

    def _page(self) -> Callable[[int], object]:
        snapshot = self.routing.snapshot()
        return lambda epoch: self._projection(epoch).publish(snapshot)

    def _projection(self, epoch: int) -> Projection:
        """Its transaction is the one that is under way."""
        leader = self.leader
        return Projection(
            leader.ports,
            leader._directory,
            leader._key,
            lambda effect: effect(epoch),
            instance=leader.identity.instance_id,
            timings=leader._timings,
        )

    def _same(self, epoch: int) -> None:
        if epoch != self.epoch:
            raise Deposed(f"this process leads under epoch {epoch} now, not {self.epoch}; nothing was done")

    def _stands(self, key: RequestKey) -> bool:
        return self.routing.stands(key.identity, key.request_id)

    # -- on time ------------------------------------------------------------------------------------------------------

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(self.leader._timings.heartbeat_ms / 1000)
            self._job(self._bury())
            if not self._healing:
                self._job(self._heal())

    async def _bury(self) -> None:
        """Silent ones leave the routes; for silence nothing is deleted."""
        processes = {
            (e.instance, str(e.generation)): self.routing.witness.process(e.instance, str(e.generation))
            for e in self.routing.data.entries
        }
        for entry in self.routing.prune():
            tell(self.leader.ports, "fleet", "pruned", instance=entry.instance)
            process = processes[entry.instance, str(entry.generation)]
            if self._reclaim_allowed(entry.binding) and await self.routing.witness.is_dead(process):
                intent = Intent(entry.instance, entry.generation, entry.key, entry.binding.target)
                await self._reclaim(intent, dead=True)

    def _reclaim_allowed(self, binding: Binding) -> bool:
        return self.leader._reclaim_dead and binding.target is not None

    async def _reclaim(self, intent: Intent, *, dead: bool) -> None:
        try:
            await self.routing.reclaim(intent, dead=dead)
        except TenureError as error:
            tell(self.leader.ports, "fleet", "clean-up", instance=intent.instance, error=str(error))

    async def _heal(self) -> None:
        self._healing = True
        try:
            if await self.endpoint.heal():
                tell(self.leader.ports, "fleet", "healed", path=self.endpoint.path)
        except TenureError as error:
            tell(self.leader.ports, "fleet", "heal", error=str(error))
        finally:
            self._healing = False

    def _job(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._jobs.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._jobs.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            tell(self.leader.ports, "fleet", "fault", error=f"{type(error).__name__}: {error}")
