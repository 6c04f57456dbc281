"""A follower's machine with what it asked for: the part of `Follower` that no caller waits for.

`_offer` tells the machine something and does what it asks for; heartbeats and calls run as tasks under the registration
that they belong to, and end with it. Everything is on one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

import attrs

from tenure.adapters.bus.client import Client
from tenure.adapters.bus.messages import answers
from tenure.adapters.bus.messages.envelopes import (
    Ack,
    Heartbeat,
    Request,
)
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.asking import NoAck, acknowledged, said
from tenure.adapters.fleet.ending import note_error
from tenure.adapters.fleet.follower.events import FollowerEvents
from tenure.adapters.fleet.follower.evictions import Evictions
from tenure.adapters.fleet.follower.receiver import Receiver
from tenure.adapters.fleet.identities import RequestIds
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.ports import Ports, tell
from tenure.machines import follower_messages as own
from tenure.machines.chart import Refused, Step, step
from tenure.machines.follower import FOLLOWER
from tenure.machines.follower_messages import Binding, Generation

T = TypeVar("T")
Taken = Step[own.Memory, own.Output] | Refused


@attrs.frozen
class Link:
    """The leader that one registration was asked of, as its entry said at that moment."""

    generation: Generation
    path: str
    secret: str | None = attrs.field(repr=False)
    key: str
    """The profile key that is asked for."""
    lead: str
    """The leader's instance, or its pid where it names none."""


@attrs.frozen
class FollowerStatistics:
    """What a follower is, and has done so far."""

    phase: str
    generation: Generation | None
    registrations: int
    """Acknowledged ones."""
    refused: int
    losses: int
    heartbeats: int
    """Heard by the leader."""
    asks: int
    deliveries: int
    """Taken in."""


@attrs.define
class Counts:
    registrations: int = 0
    refused: int = 0
    losses: int = 0
    heartbeats: int = 0
    asks: int = 0
    deliveries: int = 0


class FollowerSteps:
    """One instance as a follower. `phase` and `data` are the machine's."""

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
    ) -> None:
        self.ports = ports
        self.identity = identity
        self.phase = FOLLOWER.initial
        self.data = own.Memory(identity.instance_id, identity.session)
        self._profile = profile
        self._timings = timings
        self._receiver = receiver
        self._on_lost = on_lost
        self._on_change = on_change
        self._client = Client() if client is None else client
        self._ids = RequestIds(identity.instance_id)
        self._events = FollowerEvents(ports, identity)
        self._evictions = Evictions(timings.prune_ms)
        self._link: Link | None = None
        self._calls: dict[Generation, set[asyncio.Task[object]]] = {}
        self._beat_call: asyncio.Task[object] | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._answered_for: Generation | None = None
        """The registration that `register` has answered: from then on its loss is told by `on_lost`."""
        self._number = 0
        self._why = ""
        self._counts = Counts()

    # -- what anybody may ask -----------------------------------------------------------------------------------------

    @property
    def generation(self) -> Generation | None:
        """The registration that is held; None where none is acknowledged."""
        return self.data.generation if self.data.acknowledged else None

    @property
    def binding(self) -> Binding:
        """Thread, slot and name, remembered through everything (A55)."""
        return self.data.binding

    @property
    def roster(self) -> tuple[str, ...]:
        """Slots that may stand for election, as a leader said last; kept when it falls silent."""
        return self.data.roster

    @property
    def profile_key(self) -> str:
        """The key that a registration asks for now."""
        mine = self.identity
        return mine.own_profile_key(self._profile) if self.data.own_key else mine.profile_key(self._profile)

    def statistics(self) -> FollowerStatistics:
        """Counts as they are now."""
        return FollowerStatistics(self.phase, self.generation, **attrs.asdict(self._counts))

    # -- the machine --------------------------------------------------------------------------------------------------

    def _offer(self, message: own.Happening, link: Link | None = None) -> Taken:
        """Tell the machine, and do what it asks for; a refusal changes nothing. `link`: of the registration that begins
        with this."""
        phase, data = self.phase, self.data
        taken = step(FOLLOWER, phase, data, message)
        if isinstance(taken, Refused):
            return taken
        self.phase, self.data = taken.phase, taken.data
        if link is not None:
            self._link, self._why = link, ""
        self._events.taken(message, None if self._link is None else self._link.lead, data, taken)
        for output in taken.outputs:
            self._perform(output)
        if self.data.generation is None:
            self._quiet()
        if _shown(phase, data) != _shown(taken.phase, taken.data):
            self._call_back("change", self._on_change)
        return taken

    def _perform(self, output: own.Output) -> None:
        """What is not the affair of the verb that told the machine."""
        match output:
            case own.SendHeartbeat(generation):
                self._beat_call = self._call(generation, self._beat(generation))
            case own.Abandon(generation):
                # Their connections close at once: nothing of them comes back, and the machine need not wait for it.
                self._end_calls(generation)
                self._offer(own.RegisterFailed(generation, "given up"))
            case own.Recover(generation, binding, error):
                self._end_calls(generation)
                self._why = error
                if self._answered_for == generation:
                    self._counts.losses += 1
                    self._call_back("lost", lambda: self._on_lost(binding, error))
            case _:
                return

    def _quiet(self) -> None:
        """No registration is under way or held: no ticks, and no secret that anybody could have."""
        self._link = None
        ticker, self._ticker = self._ticker, None
        if ticker is not None and ticker is not asyncio.current_task():
            ticker.cancel()

    # -- heartbeats ---------------------------------------------------------------------------------------------------

    async def _tick(self, generation: Generation) -> None:
        while self.data.generation == generation:
            await asyncio.sleep(self._timings.heartbeat_ms / 1000)
            if self.data.generation == generation:
                try:
                    self._offer(own.Tick())
                    self._receiver.heal_soon()
                except Exception as error:  # a fault of this program: without heartbeats the registration would go
                    tell(self.ports, "fleet", "fault", error=f"{type(error).__name__}: {error}")

    async def _beat(self, generation: Generation) -> None:
        link = self._link
        if link is None:
            return
        request = Heartbeat(
            request_id=self._ids.next(),
            auth=link.secret,
            instance_id=self.identity.instance_id,
            registration_generation=str(generation),
            sent_at_ms=self.ports.clock.wall_ms(),
        )
        ack = await self._send(link, request, self._timings.response_ms)
        if isinstance(ack, NoAck):
            self._offer(own.BeatFailed(generation, ack.text))
        elif ack.ok:
            self._counts.heartbeats += 1
            self._offer(own.BeatAnswered(generation, True, answers.eligible_slots(ack)))
        else:
            self._evictions.refused(link.lead, self.ports.clock.monotonic_ms())
            self._offer(own.BeatAnswered(generation, False, error=said(ack)))

    # -- calls --------------------------------------------------------------------------------------------------------

    async def _send(self, link: Link, request: Request, timeout_ms: float) -> Ack | NoAck:
        return await acknowledged(self._client, link.path, request, timeout_ms=timeout_ms)

    async def _called(self, generation: Generation, call: Coroutine[None, None, T]) -> T | None:
        """What `call` answers; None when the machine gave its registration up meanwhile. Cancelled, so is the call."""
        task = self._call(generation, call)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            raise
        return None if task.cancelled() else task.result()

    def _call(self, generation: Generation, call: Coroutine[None, None, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(call)
        self._calls.setdefault(generation, set()).add(task)
        task.add_done_callback(lambda task: self._over(generation, task))
        return task

    def _over(self, generation: Generation, task: asyncio.Task[T]) -> None:
        calls = self._calls.get(generation, set())
        calls.discard(task)
        if not calls:
            self._calls.pop(generation, None)
        note_error(self.ports, task)

    def _end_calls(self, generation: Generation) -> None:
        for task in self._calls.get(generation, set()) - {asyncio.current_task()}:
            task.cancel()

    def _call_back(self, what: str, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception as error:
            tell(self.ports, "fleet", "callback", what=what, error=f"{type(error).__name__}: {error}")


def _shown(phase: str, data: own.Memory) -> object:
    return phase, data.generation, data.acknowledged, data.binding, data.roster
