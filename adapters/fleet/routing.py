"""The leader's registry of routes, driven: the machine of `tenure.machines.routes` (bus.md b, LEADER HANDLING).

`Routing` tells the machine what happens, makes the calls that it asks for (provisioning, clean-up, ownership
transactions) and tells it what came of them. It knows no envelope and no socket: `tenure.adapters.fleet.requests` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, Protocol, TypeVar, runtime_checkable

import attrs

from tenure.adapters.bus.envelopes import Registration
from tenure.adapters.bus.peer import Peer
from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.book import Book
from tenure.adapters.fleet.leader_events import LeaderEvents
from tenure.adapters.fleet.places import board_target, spelled
from tenure.adapters.fleet.projection import CleanUp, LiveRoute, Snapshot
from tenure.adapters.fleet.provisioning import Provisioning, ProvisionRequest
from tenure.adapters.fleet.turns import Answer, Turns
from tenure.adapters.fleet.witness import Claim, Witness
from tenure.adapters.fleet.wording import HELD
from tenure.adapters.ports import Ports, tell
from tenure.machines import routes_messages as own
from tenure.machines.chart import Refused, Step, step
from tenure.machines.follower_messages import Binding
from tenure.machines.identity import Epoch
from tenure.machines.routes import ROUTES
from tenure.machines.routes_messages import Entry, Intent
from tenure.machines.slot_board import Board, holder_of

T = TypeVar("T")

LOOKS: Final = 5
"""How often the evidence is gathered anew because the routes changed while it was."""


@runtime_checkable
class Boarded(Protocol):
    """Provisioning that remembers threads on a board which a leader publishes: `LocalProvisioning`."""

    board: Board

    def begin_leading(self, board: Board, key: str, epoch: int) -> None:
        """Go on from what the leader before remembered."""


@attrs.frozen
class Live:
    """What the machine does not need of a live registration."""

    registration: Registration
    request_id: str
    connected_ms: int


@attrs.frozen
class Registered:
    """The route is written, and published."""

    binding: Binding


@attrs.frozen
class No:
    """Not done. `guards`: of a refusal before anything was begun; `held`: another live process has it."""

    text: str
    guards: tuple[str, ...] = ()
    held: bool = False


class Routing:
    """The routes of one leader. `phase` and `data` are the machine's."""

    def __init__(
        self,
        ports: Ports,
        timings: Timings,
        provisioning: Provisioning,
        events: LeaderEvents,
        *,
        epoch: Callable[[], int | None],
        own_key: str,
        on_change: Callable[[], None],
    ) -> None:
        """`epoch`: under which we lead as far as is known without a file. `own_key`: the leader's own profile, which no
        follower gets."""
        self.phase = ROUTES.initial
        self.data = own.Routes(silent_ms=timings.prune_ms)
        self.live: dict[str, Live] = {}
        """By instance, beside the machine's entries."""
        self.gone: Callable[[str, str], None] = lambda instance, generation: None
        """Told of each registration that is over."""
        self.book: Book | None = None
        self.witness = Witness(ports)
        self.provisioning = provisioning
        self._ports = ports
        self._timings = timings
        self._events = events
        self._epoch = epoch
        self._own_key = own_key
        self._on_change = on_change
        self._turns = Turns()
        self._requested: dict[Intent, int] = {}
        """When each intent was made, ms of the wall clock."""
        self._calls: set[asyncio.Task[object]] = set()
        self._number = 0

    # -- beginning and end --------------------------------------------------------------------------------------------

    def open(self, epoch: int, snapshot: Snapshot) -> None:
        """Serve under `epoch`, with the intents of the leader before."""
        intents = []
        for clean_up in snapshot.clean_ups:
            key = clean_up.key or f"manual:{clean_up.instance}"
            intent = Intent(clean_up.instance, clean_up.generation or "", key, spelled(clean_up.target))
            self._requested[intent] = clean_up.requested_ms
            intents.append(intent)
        self.offer(own.Open(epoch, tuple(intents)))

    def close(self) -> None:
        """Serve no more: nothing that is under way comes to anything."""
        self.offer(own.Close())
        self._turns.ended()
        for call in tuple(self._calls):
            call.cancel()

    def snapshot(self) -> Snapshot:
        """All that is to be published, now."""
        board = self.provisioning.board if isinstance(self.provisioning, Boarded) else Board()
        clean_ups = []
        for intent in self.data.intents:
            target = board_target(intent.target)
            if target is not None:
                requested = self._requested.get(intent, 0)
                generation = str(intent.generation) or None
                clean_ups.append(CleanUp(intent.instance, generation, target, requested, key=intent.key))
        live = []
        for entry in self.data.entries:
            known = self.live.get(entry.instance)
            connected = 0 if known is None else known.connected_ms
            pid = None if known is None else known.registration.pid
            place = entry.binding
            live.append(
                LiveRoute(
                    entry.instance, entry.key, str(entry.generation), connected, pid, place.slot, place.name,
                    board_target(place.target),
                )
            )  # fmt: skip
        return Snapshot(board, tuple(clean_ups), tuple(live))

    def requested_ms(self, intent: Intent) -> int:
        """When it was made, ms of the wall clock."""
        return self._requested.get(intent, 0)

    # -- the machine --------------------------------------------------------------------------------------------------

    def offer(self, message: own.Happening) -> Answer:
        """Tell the machine; what is over is told on at once. A refusal changes nothing."""
        phase, data = self.phase, self.data
        answer = step(ROUTES, phase, data, message)
        self._events.told(message, answer, data, phase)
        if isinstance(answer, Refused):
            return answer
        self.phase, self.data = answer.phase, answer.data
        for output in answer.outputs:
            match output:
                case own.Gone(instance, generation):
                    self._over(instance, str(generation))
                case own.PersistIntent(intent):
                    self._requested[intent] = self._ports.clock.wall_ms()
                case own.DropIntent(intent):
                    self._requested.pop(intent, None)
                    self._publish_soon()
        if answer.data.mutations != data.mutations:
            self._turns.ended()
        return answer

    def now(self) -> int:
        """The clock of the routes: monotonic, ms."""
        return self._ports.clock.monotonic_ms()

    def epoch_now(self) -> int | None:
        """The epoch as the leadership knows it, without a file."""
        return self._epoch()

    # -- requests that are answered at once ---------------------------------------------------------------------------

    def heartbeat(self, instance: str, generation: str | None) -> tuple[str, ...] | Refused:
        """The roster, where that registration stands."""
        answer = self.offer(own.Heartbeat(instance, generation, self._epoch(), self.now()))
        if isinstance(answer, Refused):
            return answer
        return next((o.roster for o in answer.outputs if isinstance(o, own.Acknowledge)), ())

    def ask(self, instance: str, generation: str | None) -> Entry | Refused:
        """The route of a registration that stands, for a request of its own."""
        self._number += 1
        answer = self.offer(own.Ask(instance, generation, self._epoch(), self.now(), self._number))
        return answer if isinstance(answer, Refused) else self._entry(instance)

    def forward(self, instance: str, generation: str | None) -> Entry | Refused:
        """The route of a registration that stands, for work that is sent to it."""
        self._number += 1
        answer = self.offer(own.Forward(instance, generation, self._epoch(), self.now(), self._number))
        return answer if isinstance(answer, Refused) else self._entry(instance)

    def stands(self, instance: str, request_id: str) -> bool:
        """Whether the registration that this request brought about is current (L14)."""
        live = self.live.get(instance)
        if live is None or live.request_id != request_id:
            return False
        generation = live.registration.registration_generation
        return isinstance(self.offer(own.Replay(instance, generation)), Step)

    def prune(self) -> tuple[Entry, ...]:
        """Whoever is silent for too long is out of the routes: these."""
        now, out = self.now(), []
        for entry in self.data.entries:
            if isinstance(self.offer(own.Prune(entry.instance, now)), Step):
                out.append(entry)
        return tuple(out)

    # -- registering --------------------------------------------------------------------------------------------------

    async def register(
        self,
        registration: Registration,
        request_id: str,
        peer: Peer,
        *,
        compatible: bool,
        capable: bool,
    ) -> Registered | No:
        """Decide, provision, write, publish. May take as long as provisioning does."""
        key = registration.profile_key or f"manual:{registration.instance_id}"
        if key == self._own_key:
            return No(f"{key}: {HELD}: the leader", held=True)
        claim = await self.witness.claim(registration, peer)
        begun: list[tuple[own.Provision, str]] = []

        async def offer() -> Answer:
            epoch = await self._owned()
            word = self.witness.word(claim)
            carried = Binding(spelled(registration.target), registration.slot, registration.thread_name)
            dead = await self._dead(registration.instance_id, key, carried)
            answer = self.offer(
                own.Register(
                    registration.instance_id, registration.registration_generation, key, word, carried, epoch,
                    authenticated=True, compatible=compatible, capable=capable, dead=dead,
                )
            )  # fmt: skip
            if isinstance(answer, Step):
                begun.extend((o, word) for o in answer.outputs if isinstance(o, own.Provision))
            return answer

        answer = await self._turns.take(key, offer)
        if isinstance(answer, Refused):
            return _no(answer)
        provision, word = begun[0]
        live = Live(registration, request_id, self._ports.clock.wall_ms())
        try:
            return await self._provision(provision, live, claim, word, peer)
        except BaseException:
            # Given up, or a fault: either way this change is over, and others of its profile may begin.
            self.offer(own.ProvisionFailed(provision.instance, provision.generation, "given up"))
            raise

    async def _provision(
        self, asked: own.Provision, live: Live, claim: Claim, word: str, peer: Peer
    ) -> Registered | No:
        instance, generation = asked.instance, asked.generation
        try:
            got = await self.limited(
                self.provisioning.provision(_request(asked, live.registration), _number(asked.epoch))
            )
            place = Binding(spelled(got.target), got.slot, got.name)
            epoch = await self._owned()
        except (TenureError, TimeoutError) as error:
            why = str(error) or "provisioning takes too long: register again"
            return self._ended(self.offer(own.ProvisionFailed(instance, generation, why)))
        dead = await self._dead(instance, asked.key, place)
        answer = self.offer(own.Provisioned(instance, generation, place, epoch, self.now(), dead))
        entry = self.data.entry(instance)
        if entry is None or entry.generation != generation or not _acknowledged(answer):
            return self._ended(answer)
        self.live[instance] = attrs.evolve(live, connected_ms=self._ports.clock.wall_ms())
        self.witness.wrote(instance, str(generation), claim, word, peer)
        self._changed()
        try:
            await self._published()
        except TenureError as error:
            # Written in memory by who may not lead any more: it is not acknowledged, and ends with this leading.
            return No(str(error))
        return Registered(entry.binding)

    def _ended(self, answer: Answer) -> No:
        if isinstance(answer, Refused):
            return _no(answer)
        for output in answer.outputs:
            if isinstance(output, own.Reject):
                return No(output.error or HELD, held=output.held)
        return No("the leader ends: read the owner registry again")

    # -- goodbyes and clean-ups ---------------------------------------------------------------------------------------

    async def disconnect(self, instance: str, generation: str | None) -> No | None:
        """A goodbye: the thread first, then the route. None when all of it is done."""
        entry = self.data.entry(instance)
        found: list[own.CleanUp] = []

        async def offer() -> Answer:
            epoch = await self._owned()
            return _collect(self.offer(own.Disconnect(instance, generation, epoch)), found)

        answer = await self._turns.take(f"instance:{instance}" if entry is None else entry.key, offer)
        if isinstance(answer, Refused):
            return _no(answer)
        return await self._clean_up(found[0])

    async def reclaim(self, intent: Intent, *, dead: bool) -> None:
        """Delete the thread of a registration that is over, if nobody has it now. What stands in the way is noted; an
        intent on disk is tried again by the next leader."""
        found: list[own.CleanUp] = []

        async def offer() -> Answer:
            epoch = await self._owned()
            holder = self._holder(intent)
            by, under = (None, None) if holder is None else holder
            return _collect(self.offer(own.Reclaim(intent, epoch, dead, by, under)), found)

        answer = await self._turns.take(intent.key, offer)
        if isinstance(answer, Step) and found and (why := await self._clean_up(found[0])) is not None:
            tell(self._ports, "fleet", "clean-up", instance=intent.instance, error=why.text)

    async def _clean_up(self, asked: own.CleanUp) -> No | None:
        intent = asked.intent
        instance, generation = intent.instance, intent.generation
        try:
            await self._published()  # the intent is on disk before anything is deleted
            target = board_target(intent.target)
            if target is not None:
                await self.limited(self.provisioning.clean_up(target, instance, str(generation) or None))
            epoch = await self._owned()
        except (TenureError, TimeoutError) as error:
            why = str(error) or "the clean-up takes too long"
            return self._not_cleaned(self.offer(own.CleanUpFailed(instance, generation, why)), why)
        except BaseException:
            self.offer(own.CleanUpFailed(instance, generation, "given up"))
            raise
        answer = self.offer(own.Cleaned(instance, generation, epoch))
        if isinstance(answer, Refused) or any(isinstance(o, own.Reject) for o in answer.outputs):
            return self._not_cleaned(answer, "superseded while it was cleaned up")
        self._changed()
        try:
            await self._published()
        except TenureError as error:
            return No(str(error))
        return None

    def _not_cleaned(self, answer: Answer, why: str) -> No:
        if isinstance(answer, Step):
            why = next((o.error for o in answer.outputs if isinstance(o, own.Reject)), why)
        return No(why)

    def _holder(self, intent: Intent) -> tuple[str, str | None] | None:
        """Instance and generation of the current record of the intent's thread."""
        target = board_target(intent.target)
        if target is None or not isinstance(self.provisioning, Boarded):
            return None
        record = holder_of(self.provisioning.board, target)
        return None if record is None else (record.instance, record.generation)

    # -- evidence and transactions ------------------------------------------------------------------------------------

    async def _owned(self) -> int | None:
        return None if self.book is None else await self.book.owned()

    async def _published(self) -> None:
        if self.book is not None:
            await self.book.published()

    def _publish_soon(self) -> None:
        if self.book is not None and self.phase == "serving":
            self.book.publish_soon()

    async def _dead(self, instance: str, key: str, place: Binding) -> frozenset[str]:
        """Whose processes are proven dead, of all that stand in the way now; gathered again where the routes changed
        meanwhile."""
        seen: set[tuple[str, str]] = set()
        dead: frozenset[str] = frozenset()
        for _ in range(LOOKS):
            rivals = {
                (e.instance, str(e.generation))
                for e in self.data.entries
                if e.instance == instance or e.key == key or (place.target and e.binding.target == place.target)
            }
            if rivals <= seen:
                break
            seen |= rivals
            dead = await self.witness.dead(rivals)
        return dead

    async def limited(self, call: Coroutine[object, object, T]) -> T:
        """A call of the port, in bounded time: whatever it does with its cancellation, it is not waited for then."""
        task = asyncio.ensure_future(call)
        self._calls.add(task)
        task.add_done_callback(self._returned)
        try:
            await asyncio.wait([task], timeout=self._timings.register_timeout_ms / 1000)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.done():
            task.cancel()
            raise TimeoutError
        if task.cancelled():
            raise TenureError("the leader ends: read the owner registry again")
        return task.result()

    def _returned(self, task: asyncio.Task[T]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # told by who waited, if anybody did

    # -- inside -------------------------------------------------------------------------------------------------------

    def _entry(self, instance: str) -> Entry:
        entry = self.data.entry(instance)
        assert entry is not None, "the machine has just found it"
        return entry

    def _over(self, instance: str, generation: str) -> None:
        live = self.live.get(instance)
        if live is not None and live.registration.registration_generation == generation:
            del self.live[instance]
        self.witness.forget(instance, generation)
        self.gone(instance, generation)
        self._publish_soon()
        self._changed()

    def _changed(self) -> None:
        try:
            self._on_change()
        except Exception as error:
            tell(self._ports, "fleet", "callback", what="change", error=f"{type(error).__name__}: {error}")


def _request(asked: own.Provision, registration: Registration) -> ProvisionRequest:
    place = asked.binding
    return ProvisionRequest(
        instance=asked.instance,
        generation=str(asked.generation),
        profile_key=asked.key,
        slot=place.slot,
        name=place.name,
        target=board_target(place.target),
        previous_instance=registration.previous_instance_id,
        pid=registration.pid,
        process_birth=registration.process_birth_id,
    )


def _number(epoch: Epoch) -> int:
    assert isinstance(epoch, int), "epochs of ours are integers"
    return epoch


def _acknowledged(answer: Answer) -> bool:
    return isinstance(answer, Step) and any(isinstance(o, own.Acknowledge) for o in answer.outputs)


def _collect(answer: Answer, found: list[own.CleanUp]) -> Answer:
    if isinstance(answer, Step):
        found.extend(o for o in answer.outputs if isinstance(o, own.CleanUp))
    return answer


def _no(refused: Refused) -> No:
    held = "profile_not_held" in refused.guards
    return No(HELD if held else "refused", refused.guards, held)
