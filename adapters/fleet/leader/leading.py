"""One leading of the fleet: what `Leader` opens and closes, under one epoch (bus.md b, start, stop, prune tick)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import attrs

from tenure.adapters.bus.client import Client
from tenure.adapters.bus.endpoints.endpoint import Endpoint
from tenure.adapters.bus.endpoints.paths import endpoint_path, follower_path, leader_path
from tenure.adapters.bus.messages.fleet_view import FleetView
from tenure.adapters.bus.messages.protocol import ProtocolIdentity
from tenure.adapters.bus.serving.ledger import RequestKey
from tenure.adapters.bus.serving.limits import Limits
from tenure.adapters.errors import TenureError, in_words
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.desk import Desk
from tenure.adapters.fleet.ending import note_error
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.fleet.leader.book import Book, Commit, Deposed
from tenure.adapters.fleet.leader.events import LeaderEvents
from tenure.adapters.fleet.leader.requests import Authorise, PassOn, Requests, Serve
from tenure.adapters.fleet.leader.routing import Routing
from tenure.adapters.fleet.leader.routing_steps import Boarded
from tenure.adapters.fleet.leader.views import fleet_view
from tenure.adapters.fleet.places import board_target, spelled
from tenure.adapters.fleet.threads.projection import Projection, Snapshot
from tenure.adapters.fleet.threads.provisioning import Provisioning, ProvisionRequest
from tenure.adapters.ports import Ports, tell
from tenure.machines.follower_messages import Binding
from tenure.machines.routes_messages import Intent


@attrs.frozen
class Means:
    """What a leading needs: see `Leader`."""

    ports: Ports
    directory: AgentDirectory
    key: str
    identity: InstanceIdentity
    own_key: str
    """The leader's own profile."""
    timings: Timings
    provisioning: Provisioning
    commit: Commit
    epoch: Callable[[], int | None]
    secret: str = attrs.field(repr=False)
    on_change: Callable[[], None]
    serve: Serve | None
    authorise: Authorise
    pass_on: PassOn | None
    reclaim_dead: bool
    protocol: ProtocolIdentity
    client: Client
    limits: Limits | None
    events: LeaderEvents


class Leading:
    """One leading of the fleet, from `begin` to `end`."""

    def __init__(self, means: Means, epoch: int) -> None:
        self.means = means
        self.epoch = epoch
        self.binding = Binding()
        """The leader's own thread, slot and name."""
        ports, timings = means.ports, means.timings
        self.routing = Routing(
            ports,
            timings,
            means.provisioning,
            means.events,
            epoch=means.epoch,
            own_key=means.own_key,
            on_change=means.on_change,
        )
        self.routing.book = Book(ports, means.commit, epoch, self._page)
        self.requests = Requests(
            ports,
            self.routing,
            means.protocol,
            view=self.view,
            endpoint=endpoint_path(leader_path(means.directory, means.key)),
            socket_of=lambda instance: endpoint_path(follower_path(means.directory, means.key, instance)),
            leg_ms=timings.register_timeout_ms,
            serve=means.serve,
            authorise=means.authorise,
            pass_on=means.pass_on,
            handoff_ms=timings.handoff_timeout_ms,
            client=means.client,
            instance=means.identity.instance_id,
        )
        self.desk = Desk(
            ports,
            secret=lambda: means.secret,
            handle=self.requests.handle,
            stands=self._stands,
            limits=means.limits,
        )
        path = leader_path(means.directory, means.key)
        self.endpoint = Endpoint(path, self.desk.server, publish=self._publish)
        self._jobs: set[asyncio.Task[None]] = set()
        self._healing = False

    async def begin(self, binding: Binding | None) -> None:
        """Read what is published, take the own place (that of `binding` if it is free), clean up what was promised,
        publish, and only then listen. Raises TenureError where one of it cannot be done; `end` undoes what was."""
        means = self.means
        snapshot = await self._load()
        provisioning = means.provisioning
        if isinstance(provisioning, Boarded):
            provisioning.begin_leading(snapshot.board, means.own_key, self.epoch)
        self.binding = await self._own_place(binding)
        self.routing.open(self.epoch, snapshot)
        for intent in self.routing.data.intents:
            await self._reclaim(intent, dead=False)
        book = self.routing.book
        assert book is not None
        await book.published()
        await self.endpoint.start()
        self._job(self._ticks())

    async def end(self) -> None:
        """Answer nobody any more, and take away what listens."""
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
        means = self.means
        return fleet_view(means.identity, self.epoch, self.binding, self.routing, means.ports.clock)

    # -- beginning ----------------------------------------------------------------------------------------------------

    async def _load(self) -> Snapshot:
        def load(epoch: int) -> Snapshot:
            self._same(epoch)
            return self._projection(epoch).load()

        return await self.means.commit(load)

    async def _own_place(self, binding: Binding | None) -> Binding:
        carried = Binding() if binding is None else binding
        me = self.means.identity
        wish = ProvisionRequest(
            instance=me.instance_id,
            profile_key=self.means.own_key,
            kind="leader",
            slot=carried.slot,
            name=carried.name or me.name,
            target=board_target(carried.target),
            pid=me.pid,
            process_birth=me.birth_id,
        )
        try:
            got = await self.routing.limited(self.means.provisioning.provision(wish, self.epoch))
        except TimeoutError as error:
            raise TenureError("the leader's own thread: provisioning takes too long; try again") from error
        return Binding(spelled(got.target), got.slot, got.name)

    # -- transactions -------------------------------------------------------------------------------------------------

    async def _publish(self, rename: Callable[[], None]) -> None:
        def inside(epoch: int) -> None:
            self._same(epoch)
            rename()

        await self.means.commit(inside)

    def _page(self) -> Callable[[int], object]:
        snapshot = self.routing.snapshot()
        return lambda epoch: self._projection(epoch).publish(snapshot)

    def _projection(self, epoch: int) -> Projection:
        """Its transaction is the one that is under way."""
        means = self.means
        return Projection(
            means.ports,
            means.directory,
            means.key,
            lambda effect: effect(epoch),
            instance=means.identity.instance_id,
            timings=means.timings,
        )

    def _same(self, epoch: int) -> None:
        if epoch != self.epoch:
            raise Deposed(f"this process leads under epoch {epoch} now, not {self.epoch}; nothing was done")

    def _stands(self, key: RequestKey) -> bool:
        return self.routing.leads() and (key.ground is None or self.routing.stands(key.ground))

    # -- on time ------------------------------------------------------------------------------------------------------

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(self.means.timings.heartbeat_ms / 1000)
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
            tell(self.means.ports, "fleet", "pruned", instance=entry.instance)
            process = processes[entry.instance, str(entry.generation)]
            if self._reclaim_allowed(entry.binding) and await self.routing.witness.is_dead(process):
                intent = Intent(entry.instance, entry.generation, entry.key, entry.binding.target)
                await self._reclaim(intent, dead=True)

    def _reclaim_allowed(self, binding: Binding) -> bool:
        return self.means.reclaim_dead and binding.target is not None

    async def _reclaim(self, intent: Intent, *, dead: bool) -> None:
        try:
            await self.routing.reclaim(intent, dead=dead)
        except TenureError as error:
            tell(self.means.ports, "fleet", "clean-up", instance=intent.instance, error=str(error))

    async def _heal(self) -> None:
        self._healing = True
        try:
            if await self.endpoint.heal():
                tell(self.means.ports, "fleet", "healed", path=self.endpoint.path)
            # Without what is published nobody of the other system registers.
            path = self._projection(self.epoch).path
            files = self.means.ports.files
            if self.routing.book is not None and await asyncio.to_thread(files.kind, path) == "absent":
                self.routing.book.publish_soon()
                tell(self.means.ports, "fleet", "healed", path=path)
        except (TenureError, OSError) as error:
            tell(self.means.ports, "fleet", "heal", error=in_words(error))
        finally:
            self._healing = False

    def _job(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._jobs.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._jobs.discard(task)
        note_error(self.means.ports, task)
