"""What a leader asks, replaced: threads, ownership, evidence, and where it says what its machine did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

import attrs

from tenure.adapters.bus.messages.envelopes import Registration
from tenure.adapters.bus.peer import Peer
from tenure.adapters.files.lease import NotOwner
from tenure.adapters.fleet.leader.book import Book
from tenure.adapters.fleet.leader.routing import Routing
from tenure.adapters.fleet.leader.witness import Claim
from tenure.adapters.fleet.threads.projection import Snapshot
from tenure.adapters.fleet.threads.provisioning import CleanUpRefused, Provisioned, ProvisionRefused, ProvisionRequest
from tenure.adapters.verify.bind.follower_wire import CHAT, number
from tenure.machines import routes_messages as own
from tenure.machines.chart import Refused, Step
from tenure.machines.follower_messages import Generation
from tenure.machines.identity import Epoch, Process
from tenure.machines.slot_board import Board, Record, Target
from tenure.models.follower_registration_state import BOUND_MS, Change, Entry, Intent, Msg, Route

T = TypeVar("T")


@attrs.frozen
class Noted:
    """What the machine was told, and what it has become."""

    event: str
    who: str
    gen: int
    taken: bool
    guards: tuple[str, ...]
    routes: Route
    intents: frozenset[Intent]
    acknowledged: bool = False
    heard: Msg | None = None
    again: bool = False
    said: tuple[Msg, ...] = ()


class Office:
    """What is true around one leader for the length of one step. It is its clock."""

    def __init__(self) -> None:
        self.owns = True
        self.dead: frozenset[str] = frozenset()
        self.threads: tuple[tuple[int, str, int, str], ...] = ()
        self.now = BOUND_MS
        self.noted: list[Noted] = []
        self.harm: set[str] = set()

    def remember(self, target: int, who: str, gen: int, key: str) -> None:
        """That thread is that registration's."""
        self.threads = (*(t for t in self.threads if t[0] != target), (target, who, gen, key))

    def wall_ms(self) -> int:
        return 1

    def monotonic_ms(self) -> int:
        return self.now

    def fence_ms(self) -> int:
        return self.now

    def sleep_ms(self, duration_ms: float) -> None:
        raise AssertionError("nobody here sleeps")


class Notes:
    """Where routes say what their machine did."""

    def __init__(self, office: Office) -> None:
        self.office = office

    def told(
        self, message: own.Happening, answer: Step[own.Routes, own.Output] | Refused, before: own.Routes, phase: str
    ) -> None:
        if isinstance(message, own.Provisioned) and isinstance(answer, Step):
            for e in answer.data.entries:
                if (e.instance, e.generation) == (message.instance, message.generation):
                    self.office.remember(number(e.binding.target), e.instance, number(e.generation), e.key)
        about = message.intent if isinstance(message, own.Reclaim) else message
        taken = isinstance(answer, Step)
        after, now = (answer.data, answer.phase) if isinstance(answer, Step) else (before, phase)
        outputs = answer.outputs if isinstance(answer, Step) else ()
        self.office.noted.append(
            Noted(
                type(message).__name__,
                getattr(about, "instance", ""),
                number(getattr(about, "generation", None)),
                taken,
                answer.guards if isinstance(answer, Refused) else (),
                routes_of(now, after),
                intents_of(after.intents),
                any(isinstance(o, own.Acknowledge) for o in outputs),
            )
        )

    def deleted(self, instance: str, generation: Generation, epoch: Epoch | None) -> None:
        self.office.noted.append(attrs.evolve(self._last(), event="Deleted", who=instance, gen=number(generation)))

    def say(self, said: Msg, heard: Msg, again: bool) -> None:
        """The last thing that was told is a repeated registration."""
        found = attrs.evolve(self._last(), event="Replay", who=said.who, gen=said.gen, heard=heard, again=again)
        self.office.noted = [attrs.evolve(found, said=(said,))]

    def _last(self) -> Noted:
        if self.office.noted:
            return attrs.evolve(self.office.noted[-1], taken=True, guards=(), acknowledged=False)
        routing = self.routing
        return Noted("", "", 0, True, (), routes_of(routing.phase, routing.data), intents_of(routing.data.intents))

    routing: Routing


class Port:
    """Provisioning: its calls wait until somebody ends them."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.pages: Pages
        self.waiting: list[tuple[tuple[str, str, int, str, int], asyncio.Future[int | None]]] = []

    @property
    def board(self) -> Board:
        """Who has which thread."""
        return Board(
            tuple(
                Record(key, "manual-follower", who, str(gen), Target(CHAT, target), None, None, 0, 0)
                for target, who, gen, key in self.office.threads
            )
        )

    def begin_leading(self, board: Board, key: str, epoch: int) -> None:
        return

    async def provision(self, request: ProvisionRequest, epoch: int) -> Provisioned:
        target = 0 if request.target is None else request.target.thread_id
        what = "register", request.instance, number(request.generation), request.key, target
        found = await self._ended(what)
        if found is None:
            raise ProvisionRefused("no")
        return Provisioned(Target(CHAT, found), None, None)

    async def clean_up(self, target: Target, instance: str, generation: str | None) -> None:
        gen = number(generation)
        if not any((i.who, i.gen, i.target) == (instance, gen, target.thread_id) for i in self.pages.disk):
            self.office.harm.add("not durable first")
        if await self._ended(("clean_up", instance, gen, "", target.thread_id)) is None:
            raise CleanUpRefused("no")

    async def _ended(self, what: tuple[str, str, int, str, int]) -> int | None:
        entry = what, asyncio.get_running_loop().create_future()
        self.waiting.append(entry)
        try:
            found: int | None = await entry[1]
            return found
        finally:
            self.waiting.remove(entry)

    def end(self, kind: str, who: str, gen: int, found: int | None) -> None:
        """What came of the call of that name."""
        next(f for what, f in self.waiting if what[:3] == (kind, who, gen)).set_result(found)

    def calls(self) -> tuple[tuple[str, str, int, str, int], ...]:
        """Those that wait."""
        return tuple(sorted(what for what, _ in self.waiting))


class Pages:
    """The owner registry's transactions, with what is published in them: over at once, but for one that is held."""

    def __init__(self, office: Office, routing: Routing, epoch: int) -> None:
        self.office = office
        self.routing = routing
        self.epoch = epoch
        self.disk: frozenset[Intent] = frozenset()
        self.live: frozenset[tuple[str, int]] = frozenset()
        self.holds: tuple[str, int] | None = None
        """The next one is held: it is for that clean-up."""
        self.held: tuple[tuple[str, int], asyncio.Future[None]] | None = None

    async def __call__(self, effect: Callable[[int], T], /) -> T:
        holds, self.holds = self.holds, None
        if holds is not None:
            self.held = holds, asyncio.get_running_loop().create_future()
            await self.held[1]
            self.held = None
        if not self.office.owns:
            raise NotOwner("another process leads")
        return effect(self.epoch)

    def page(self) -> Callable[[int], object]:
        """What is published as it is now."""
        snapshot = self.routing.snapshot()
        return lambda epoch: self._publish(snapshot)

    def _publish(self, snapshot: Snapshot) -> None:
        self.disk = frozenset(
            Intent(c.instance, number(c.generation), c.key or "", c.target.thread_id) for c in snapshot.clean_ups
        )
        self.live = frozenset((r.instance, number(r.generation)) for r in snapshot.live)

    def let_go(self) -> None:
        """The one that was held goes on."""
        if self.held is not None and not self.held[1].done():
            self.held[1].set_result(None)


class StillBook(Book):
    """The book. A run that is given up half-way publishes nothing."""

    def publish_soon(self) -> None:
        if asyncio._get_running_loop() is not None:
            super().publish_soon()


class Testimony:
    """The witness: processes are what they say, and dead when they are."""

    def __init__(self, office: Office, process: Callable[[str], str]) -> None:
        self.office = office
        self._process = process

    async def claim(self, registration: Registration, peer: Peer) -> Claim:
        return Claim(self._process(registration.instance_id))

    def word(self, claim: Claim) -> str:
        return claim.word

    def same(self, claim: Claim) -> frozenset[str]:
        return frozenset()  # all of them come themselves: their words say it

    def wrote(self, instance: str, generation: str, claim: Claim, word: str, peer: Peer) -> None:
        return

    def heard(self, instance: str, generation: str, peer: Peer) -> None:
        return

    def forget(self, instance: str, generation: str) -> None:
        return

    def process(self, instance: str, generation: str) -> Process | None:
        return None

    async def dead(self, routes: Iterable[tuple[str, str]]) -> frozenset[str]:
        return frozenset(instance for instance, _ in routes if instance in self.office.dead)


def routes_of(phase: str, data: own.Routes) -> Route:
    """A leader's routes in the twin's words, but for what only the world knows."""
    return Route(
        phase,
        frozenset(
            Entry(e.instance, number(e.generation), e.key, number(e.binding.target), e.heard, False)
            for e in data.entries
        ),
        frozenset(
            Change(m.kind, m.instance, number(m.generation), m.key, number(m.binding.target), 0, m.asked, False)
            for m in data.mutations
        ),
    )


def intents_of(intents: Iterable[own.Intent]) -> frozenset[Intent]:
    """Intents in the twin's words."""
    return frozenset(Intent(i.instance, number(i.generation), i.key, number(i.target)) for i in intents)
