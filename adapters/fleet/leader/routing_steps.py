"""The leader's registry of routes: the part of `Routing` that waits for nothing.

`offer` tells the machine of `tenure.machines.routes` what happens; what a route needs beside the machine's entry is
kept here, from the moment it is written to the moment it is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import attrs

from tenure.adapters.bus.messages.envelopes import Ground, Registration
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.leader.book import Book
from tenure.adapters.fleet.leader.events import LeaderEvents
from tenure.adapters.fleet.leader.turns import Answer, Turns
from tenure.adapters.fleet.leader.witness import Witness
from tenure.adapters.fleet.places import board_target, spelled
from tenure.adapters.fleet.threads.projection import CleanUp, LiveRoute, Snapshot
from tenure.adapters.fleet.threads.provisioning import Provisioning
from tenure.adapters.ports import Ports, tell
from tenure.machines import routes_messages as own
from tenure.machines.chart import Refused, Step, step
from tenure.machines.routes import ROUTES
from tenure.machines.routes_messages import Entry, Intent
from tenure.machines.slot_board import Board


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
    connected_ms: int


class RoutingSteps:
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

    # -- the machine --------------------------------------------------------------------------------------------------

    def offer(self, message: own.Happening, *, recorded: bool = True) -> Answer:
        """Tell the machine; what is over is told on at once. A refusal changes nothing. `recorded`: it is a step of the
        twin."""
        phase, data = self.phase, self.data
        answer = step(ROUTES, phase, data, message)
        if recorded:
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

    def leads(self) -> bool:
        """Whether we lead under the epoch that is served, as the leadership knows without a file."""
        return self.phase == "serving" and self._epoch() == self.data.epoch

    # -- requests that are answered at once ---------------------------------------------------------------------------

    def heartbeat(self, instance: str, generation: str | None) -> tuple[str, ...] | Refused:
        """The roster, where that registration stands."""
        answer = self.offer(own.Heartbeat(instance, generation, self._epoch(), self.now()))
        if isinstance(answer, Refused):
            return answer
        return next((o.roster for o in answer.outputs if isinstance(o, own.Acknowledge)), ())

    def heard(self, instance: str, generation: str | None) -> Refused | None:
        """That registration has answered; None where it stands. It was heard when work was sent to it, so this is no
        step of its own."""
        answer = self.offer(own.Heartbeat(instance, generation, self._epoch(), self.now()), recorded=False)
        return answer if isinstance(answer, Refused) else None

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

    def stands(self, ground: Ground) -> bool:
        """Whether that registration is current (L14); of one that has ended, whether no other has followed."""
        if ground.ended:
            return self.data.entry(ground.instance) is None
        return isinstance(self.offer(own.Replay(ground.instance, ground.generation)), Step)

    def prune(self) -> tuple[Entry, ...]:
        """Whoever is silent for too long is out of the routes: these."""
        now, out = self.now(), []
        for entry in self.data.entries:
            if isinstance(self.offer(own.Prune(entry.instance, now)), Step):
                out.append(entry)
        return tuple(out)

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

    def _publish_soon(self) -> None:
        if self.book is not None and self.phase == "serving":
            self.book.publish_soon()
