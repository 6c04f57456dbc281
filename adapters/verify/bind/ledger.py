"""`Ledger` against the twin of `RequestLedger` (bus.md a, LEDGER; L13, L14, L20).

One server, whose ledger runs on a loop that is stepped by hand: the program is told what happens next (a request of a
client, the end of an execution, a client that leaves, the end of the server), tells it the ledger, and lets the loop
run until nothing more happens. Every order in which these may come is tried. What the ledger remembers, whom it has
told what, and what it executes is compared with the twin after each.

An execution that raises is to the twin one whose outcome is unknown.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import attrs

from tenure.adapters.bus.serving.ledger import Done, Ledger, body_of
from tenure.adapters.verify.bind.binding import Binding, Move, Participant, World
from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.calls import Answer, Call, Got
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.disk import Contents, Disks
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.replay import Replay
from tenure.adapters.verify.bind.stepped_loop import stepped_loop
from tenure.machines.request_ledger import Kind, Outcome
from tenure.models.request_ledger import BODIES, OUTCOMES, Config, RequestLedger, State

PID: Final = 100
SERVER: Final = "server"


@attrs.frozen(cache_hash=True)
class Seen:
    """What the server is, and what its clients have been told, in the twin's words. `waits`: who waits for whom, and
    whether alone."""

    ledger: tuple[tuple[str, str, int, str], ...]
    settled: tuple[str, ...]
    evicted: frozenset[str]
    running: tuple[str, ...]
    waits: tuple[tuple[str, str, str], ...]
    answers: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        entries = [f"{k} {phase} {outcome}" for k, phase, _, outcome in self.ledger if phase != "absent"]
        waits = [f"{c} {how} {k}" for c, how, k in self.waits]
        told = [f"{c} told {answer}" for c, answer in self.answers if answer != "none"]
        return "; ".join((*entries, *(f"runs {k}" for k in self.running), *waits, *told)) or "empty"


class Desk:
    """The server of one run, and those who ask it."""

    def __init__(self, config: Config, kinds: Mapping[str, Kind]) -> None:
        self.config = config
        self.kinds = kinds
        self.loop = stepped_loop()
        self.stands = False
        self.stopped = False
        self.ledger: Ledger[str, str] = Ledger(
            lambda key, why: "unknown" if why == "broken" else why, lambda key: self.stands, limit=config.limit
        )
        self.recorded: list[tuple[str, asyncio.Future[Done[str]]]] = []
        self.alone: dict[str, asyncio.Future[Done[str]]] = {}
        self.clients: dict[str, tuple[str, asyncio.Task[str]]] = {}
        self.answers: dict[str, str] = dict.fromkeys(config.clients, "none")
        self.evicted: frozenset[str] = frozenset()

    def do(self, what: str, *args: Any) -> None:
        """One thing happens, and all that follows."""
        before = set(self.ledger._entries.settled)
        getattr(self, f"_{what}")(*args)
        self.loop.settle()
        if what == "ask":
            self.evicted |= before - set(self.ledger._entries.settled)
        for client, (_, task) in list(self.clients.items()):
            if task.done():
                del self.clients[client]
                self.alone.pop(client, None)
                self.answers[client] = "none" if task.cancelled() else task.result()
        assert not self.loop.errors, self.loop.errors

    def _ask(self, client: str, key: str, body: int, stands: bool) -> None:
        begun = len(self.recorded), self.ledger.statistics().executed_alone

        async def execute() -> Done[str]:
            future = self.loop.create_future()
            if self.ledger.statistics().executed_alone > begun[1]:
                self.alone[client] = future
            else:
                self.recorded.append((key, future))
            try:
                done: Done[str] = await future
                return done
            finally:
                self.recorded = [(k, f) for k, f in self.recorded if f is not future]

        self.stands = stands
        self.answers[client] = "none"
        coroutine = self.ledger.run(key, str(body), self.kinds[key], execute)
        self.clients[client] = key, self.loop.create_task(coroutine)

    def _settle(self, key: str, outcome: Outcome | None) -> None:
        self._end(next(future for k, future in self.recorded if k == key), outcome)

    def _settle_alone(self, client: str, outcome: Outcome | None) -> None:
        self._end(self.alone[client], outcome)

    @staticmethod
    def _end(future: asyncio.Future[Done[str]], outcome: Outcome | None) -> None:
        if outcome is None:
            future.set_exception(ValueError("it has broken"))
        else:
            future.set_result(Done(outcome, outcome))

    def _leave(self, client: str) -> None:
        self.clients[client][1].cancel()

    def _stop(self) -> None:
        self.stopped = True
        self.ledger.stop()

    def seen(self) -> Seen:
        """What is to be compared, and everything that the next step depends on."""
        entries = self.ledger._entries
        rest = entries._absent.phase
        assert list(self.ledger._waiting) == [k for k, slot in entries.slots.items() if slot.phase == "executing"]
        lines = []
        for key in self.config.keys:
            slot = entries.slots.get(key)
            body = next((b for b in BODIES if slot is not None and slot.data.body == body_of(str(b))), 0)
            outcome = "none" if slot is None or slot.data.outcome is None else slot.data.outcome
            lines.append((key, rest if slot is None else slot.phase, body, outcome))
        waits = ((c, "alone" if c in self.alone else "joined", key) for c, (key, _) in self.clients.items())
        return Seen(
            tuple(lines),
            tuple(entries.settled),
            self.evicted,
            tuple(sorted(key for key, _ in self.recorded)),
            tuple(sorted(waits)),
            tuple(sorted(self.answers.items())),
        )


@attrs.frozen
class Setting:
    """One configuration: the twin's, and whether executions raise."""

    config: Config
    raises: bool = True


class LedgerBinding(Binding[State]):
    """One server."""

    module: ClassVar[str] = "RequestLedger"
    at_end: ClassVar[Hashable] = None
    constants: ClassVar[tuple[type, ...]] = (Desk, RequestLedger, Config)

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        self.setting = setting
        self.config = setting.config
        self.budget = setting.config.budget
        self.bound = RequestLedger(setting.config, off)
        self.twin = self.bound
        self.at_rest = ("serving", Desk(self.config, self.bound.kinds).seen())  # type: ignore[misc]
        self.participants = (Participant(SERVER, PID, self._program()),)

    def _program(self) -> Program:
        config, kinds = self.config, self.bound.kinds

        def program(controlled: ControlledPorts, replay: Replay) -> object:
            desk = Desk(config, kinds)
            while True:
                seen = desk.seen()
                what, *args = replay.ask("choose", seen, desk.stopped)
                desk.do(what, *args)
                del what, args

        return program

    def actions(self, participant: str) -> tuple[tuple[str, Callable[..., Iterable[State]], tuple[Any, ...]], ...]:
        """All of them are the server's, or are told it, but that a registration ends."""
        return tuple((a.name, a.body, args) for a in self.twin.actions() if a.name != "Prune" for args in a.args)

    # -- the world ----------------------------------------------------------------------------------------------------

    def contents(self) -> Contents:
        return {}

    def initial(self, disks: Disks) -> World:
        return attrs.evolve(super().initial(disks), extra=frozenset())

    def outcomes(
        self, disks: Disks, world: World, participant: Participant, call: Call
    ) -> Iterable[tuple[Answer, World, int]]:
        seen, stopped = call.args
        assert isinstance(seen, Seen)
        stands = world.extra
        assert isinstance(stands, frozenset)
        waiting = {c: (how, key) for c, how, key in seen.waits}
        for client in self.config.clients:
            if client in waiting:
                yield Got(("leave", client)), world, 1
                if waiting[client][0] == "alone":
                    yield from self._ends(world, "settle_alone", client, waiting[client][1])
                continue
            for key in self.config.keys:
                for body in () if key in seen.evicted else BODIES:
                    yield Got(("ask", client, key, body, key in stands)), world, body - 1
        for key in dict.fromkeys(seen.running):
            yield from self._ends(world, "settle", key, key)
        if not stopped:
            yield Got(("stop",)), world, 1

    def _ends(self, world: World, what: str, who: str, key: str) -> Iterable[tuple[Answer, World, int]]:
        """The ends of an execution of `key`."""
        stands = world.extra
        assert isinstance(stands, frozenset)
        had = attrs.evolve(world, extra=self.bound.after(stands, key))
        for outcome in OUTCOMES:
            cost = 0 if outcome in ("done", "refused") else 1
            for after in {"done": (had,), "unknown": (world, had)}.get(outcome, (world,)):
                yield Got((what, who, outcome)), after, cost
        if self.setting.raises:
            yield Got((what, who, None)), world, 1

    def moves(self, world: World, left: int) -> Iterable[Move]:
        if world.extra:
            after = attrs.evolve(world, extra=frozenset())
            yield Move("the registration ends", after, 1, twin=(("Prune", ()),))

    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        return ()

    def settled(self, call: Call) -> bool:
        return True

    # -- comparing ----------------------------------------------------------------------------------------------------

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        seen = next(f.f_locals["seen"] for f in frames if isinstance(f.f_locals.get("seen"), Seen))
        return ("serving", seen)

    def phase_in(self, state: State, participant: str) -> str:
        return "serving"

    def agrees(self, state: State, participant: str, observed: Hashable) -> bool:
        return observed == ("serving", _seen(state))

    def shared_in(self, state: State) -> Hashable:
        return state.stands

    def shared(self, disks: Disks, world: World) -> Hashable:
        return world.extra


def _seen(state: State) -> Seen | None:
    """A state of the twin as `Desk.seen` says it; None where a request was not looked at yet."""
    if any(client.phase == "asked" for client in state.client.values()):
        return None
    return Seen(
        tuple((k, line.phase, line.body, line.outcome) for k, line in state.ledger.items()),
        state.settled,
        state.evicted,
        tuple(sorted(state.running)),
        tuple(sorted((c, i.phase, i.key) for c, i in state.client.items() if i.phase != "idle")),
        tuple(sorted((c, i.answer) for c, i in state.client.items())),
    )


def _bound(least: int, config: Config, thorough: bool = False) -> Bound:
    return Bound(lambda: LedgerBinding(Setting(config)), least, thorough)


BOUND: Final[Mapping[str, Bound]] = {
    "register": _bound(300, Config(("a", "b"), ("register",), (), (), limit=1, budget=2)),
    "full": _bound(900, Config(("a", "b"), (), ("beat",), ("call",), limit=1, budget=1)),
    "order": _bound(150, Config(("a",), ("register",), (), ("x", "y"), limit=2, budget=0)),
    "all": _bound(5_000, Config(("a", "b"), ("register",), ("beat",), ("call",), limit=1, budget=1), thorough=True),
    "many": _bound(5_000, Config(("a", "b"), ("register",), (), ("x", "y"), limit=2, budget=1), thorough=True),
}
"""What the manifest names for the stage `bind`."""
