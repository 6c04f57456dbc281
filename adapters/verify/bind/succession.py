"""`Course` against the twin of `Succession` (locks.md 12; S31, S32, V4-V8, V14, K3, K4).

Each follower is a member's course on a loop that is stepped by hand, with moves that do nothing by themselves: a look,
a registration and an election wait until the binding answers them, in every order, with everything that may befall the
leader, the registry and the other follower in between. A look is answered by what the registry shows at that moment.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import attrs

from tenure.adapters.fleet.succession.course import Course, NotTaken, Outcome, Taken
from tenure.adapters.verify.bind.binding import Binding, Move, Participant, World
from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.calls import Answer, Call, Got
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.disk import Contents, Disks
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.replay import Replay
from tenure.adapters.verify.bind.stepped_loop import stepped_loop
from tenure.adapters.verify.bind.succession_world import Around
from tenure.machines.follower_messages import Binding as Bond
from tenure.machines.succession_messages import Look
from tenure.models.succession import CONFIGS, Succession
from tenure.models.succession_state import ASTRAY, NAMES, NUMBERS, SLOTS, Config, State
from tenure.models.succession_state import BOUND as BONDS

PIDS: Final = {"a": 100, "b": 101, "z": 102}


@attrs.frozen(cache_hash=True)
class Seen:
    """What a member's course is, in the twin's words. `looks`: why it waits for looks."""

    phase: str
    leader: str
    endpoint: int
    roster: frozenset[str]
    session: int
    deferred: bool
    bound: str
    call: tuple[str, str]
    timer: str
    record: str
    looks: tuple[str, ...] = ()

    def __str__(self) -> str:
        waits = f", waits for {' '.join(self.looks)}" if self.looks else ""
        return f"{self.phase}, call {' '.join(self.call)}, timer {self.timer}, record {self.record}{waits}"


class Clock:
    """The timer of one grace."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.then = then
        self.state = "armed"

    def cancel(self) -> None:
        self.state = "off"


class Desk:
    """One member, and what it waits for. It is its own `Moves`."""

    def __init__(self, config: Config, name: str) -> None:
        self.name = name
        self.loop = stepped_loop()
        self.looks: list[tuple[str, asyncio.Future[Look]]] = []
        self.why = ""
        self.calling = ("none", "none")
        self.answer: asyncio.Future[Any] | None = None
        self.timer: Clock | None = None
        self.faults: list[BaseException] = []
        self.course = Course(self, 1, after_grace=self._grace, on_step=lambda: None, on_fault=self.faults.append)
        follows = name not in config.joining
        self.course.phase = "following" if follows else "idle"
        self.course.data = attrs.evolve(
            self.course.data,
            binding=BONDS[name]["own"],
            roster=tuple(sorted(SLOTS[p] for p in config.slotted)) if follows else (),
            leader=NUMBERS["L"] if follows else 0,
            endpoint=int(follows),
        )
        self.slots = tuple(sorted(SLOTS[p] for p in config.slotted))

    # -- moves --------------------------------------------------------------------------------------------------------

    async def look(self) -> Look:
        waits = self.why, self.loop.create_future()
        self.looks.append(waits)
        try:
            found: Look = await waits[1]
            return found
        finally:
            self.looks.remove(waits)

    async def register(self, leader: int, binding: Bond) -> Taken | NotTaken:
        answer: Taken | NotTaken = await self._called("register", leader)
        return answer

    async def elect(self, observed: int) -> tuple[Outcome, str]:
        outcome: Outcome = await self._called("elect", observed)
        return outcome, "it failed" if outcome == "failed" else ""

    def leave(self) -> None:
        return

    async def resign(self) -> None:
        return

    async def _called(self, kind: str, to: int) -> Any:
        assert self.answer is None, "one call at a time"
        self.calling, self.answer = (kind, NAMES[to]), self.loop.create_future()
        try:
            return await self.answer
        finally:
            self.calling, self.answer = ("none", "none"), None

    def _grace(self, then: Callable[[], None]) -> Clock:
        self.timer = Clock(then)
        return self.timer

    # -- what happens -------------------------------------------------------------------------------------------------

    def do(self, what: str, *args: Any) -> None:
        """One thing happens, and all that follows."""
        self.why = what
        getattr(self, f"_{what}")(*args)
        self.loop.settle()
        assert not self.loop.errors, self.loop.errors
        assert not self.faults, self.faults

    def _join(self) -> None:
        self.loop.create_task(self.course.join())

    def _looked(self, number: int, look: Look) -> None:
        self.looks[number][1].set_result(look)

    def _see(self, look: Look) -> None:
        self._in_loop(lambda: self.course.saw(look))

    def _lose(self) -> None:
        self._in_loop(lambda: self.course.lost("no answer"))

    def _hear(self) -> None:
        bound = next(name for name, bond in BONDS[self.name].items() if bond == self.course.data.binding)
        self._in_loop(lambda: self.course.heard(self.slots, BONDS[self.name][bound]))

    def _ring(self) -> None:
        assert self.timer is not None
        self.timer.state = "due"
        self._in_loop(self.timer.then)

    def _reply(self, answer: object) -> None:
        assert self.answer is not None
        self.answer.set_result(answer)

    def _win(self) -> None:
        self.calling = ("won", "none")

    def _prepare(self, owned: bool) -> None:
        if self._in_loop(lambda: self.course.won(owned=owned)):
            self.calling = ("none", "none")

    def _lead(self) -> None:
        self._reply("elected")

    def _work_fails(self) -> None:
        self._in_loop(lambda: self.course.deposed("it failed"))

    def _wake(self, leads: bool) -> None:
        if self.course.phase == "leading" and not leads:
            self._work_fails()
        elif self.answer is not None and not leads and self.calling[0] != "register":
            self._reply("failed")

    def _serve(self, session: int) -> None:
        self._in_loop(lambda: self.course.serve_session(session))

    def _stop(self) -> None:
        self._in_loop(self.course.stop)

    def _nothing(self) -> None:
        return

    def _in_loop(self, call: Callable[[], Any]) -> Any:
        """Call as the loop would."""
        found: list[Any] = []
        self.loop.call_soon(lambda: found.append(call()))
        self.loop.settle()
        return found[0]

    def seen(self) -> Seen:
        """What is to be compared, and everything that the next step depends on."""
        course, data = self.course, self.course.data
        timer = "off" if self.timer is None else self.timer.state
        if timer == "due" and not any(why == "ring" for why, _ in self.looks):
            timer = "off"
        return Seen(
            course.phase,
            NAMES[data.leader],
            data.endpoint,
            frozenset(p for p, slot in SLOTS.items() if slot in data.roster),
            data.session,
            data.deferred,
            next(name for name, bond in BONDS[self.name].items() if bond == data.binding),
            self.calling,
            timer,
            "follower" if course.moving is None else "leader",
            tuple(why for why, _ in self.looks),
        )


class SuccessionBinding(Binding[State]):
    """The followers of one configuration."""

    module: ClassVar[str] = "Succession"
    at_rest: ClassVar[Hashable] = None
    at_end: ClassVar[Hashable] = None
    constants: ClassVar[tuple[type, ...]] = (Desk, Succession, Config)
    commands: ClassVar[frozenset[str]] = frozenset(
        {"Die", "Hang", "Wake", "Stop", "ChangeSession", "ElectFails", "StartFails", "WorkFails", "Refused", "Hiccup"}
    )

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        self.config = config
        self.budget = config.budget
        self.twin = Succession(config, off)
        self.participants = tuple(Participant(p, PIDS[p], self._program(p)) for p in config.followers)
        self.names = {PIDS[p]: p for p in config.followers}

    def _program(self, name: str) -> Program:
        config = self.config

        def program(controlled: ControlledPorts, replay: Replay) -> object:
            desk = Desk(config, name)
            while True:
                seen = desk.seen()
                what, *args = replay.ask("choose", seen)
                desk.do(what, *args)
                del what, args

        return program

    # -- the world ----------------------------------------------------------------------------------------------------

    def contents(self) -> Contents:
        return {}

    def initial(self, disks: Disks) -> World:
        around = Around.at_first(self.config.followers, self.config.joining)
        return attrs.evolve(super().initial(disks), extra=around)

    def outcomes(
        self, disks: Disks, world: World, participant: Participant, call: Call
    ) -> Iterable[tuple[Answer, World, int]]:
        (seen,) = call.args
        around = world.extra
        assert isinstance(seen, Seen)
        assert isinstance(around, Around)
        for (what, *args), after, cost in self._choices(participant.name, seen, around):
            yield Got((what, *args)), attrs.evolve(world, extra=after), cost

    def _choices(self, p: str, seen: Seen, around: Around) -> Iterable[tuple[tuple[Any, ...], Around, int]]:
        """What may happen to `p`, what is around it then, and what it costs."""
        phase, (call, to), causes = seen.phase, seen.call, self.config.causes
        if phase == "ended":
            return
        owns = around.owns(p)
        keeps = call == "won" or phase in ("starting", "leading")
        if around.owner == p and not around.passed and (around.proc(p) == "hung" or not keeps):
            yield ("nothing",), attrs.evolve(around, passed=True), 0
        if around.proc(p) == "hung":
            lets_go = keeps and not owns
            awake = around.becomes(p, "up")
            yield ("wake", not lets_go), awake.let_go(p, left=True) if lets_go else awake, 0
            return
        look = around.look(p)
        for number in range(len(seen.looks)):
            yield ("looked", number, look), around, 0
        if phase == "idle" and not seen.looks:
            yield ("join",), around, 0
        yield ("see", look), around, 0
        well = around.healthy(p, seen.leader)
        if phase == "following" and "lose" not in seen.looks and (not well or "hiccup" in causes):
            yield ("lose",), around, int(well)
        if phase == "following" and well:
            yield ("hear",), around, 0
        if seen.timer == "armed":
            yield ("ring",), around, 0
        if call == "register":
            if seen.endpoint == ASTRAY:
                if not around.stalls:
                    yield ("reply", NotTaken("no answer")), around, 0
            elif around.reachable(to):
                bound = "own" if seen.bound == "own" else "new"
                yield ("reply", Taken(BONDS[p][bound], self._roster(seen))), around.routed(p), 0
                if "refuse" in causes:
                    yield ("reply", NotTaken("no")), around, 1
            elif to == "none" or around.proc(to) != "hung":
                yield ("reply", NotTaken("no answer")), around, 0
        if call == "elect":
            exact = around.owner == to and (around.owner == "none" or around.over)
            if around.readable:
                yield (("win",), around.won_by(p), 0) if exact else (("reply", "denied"), around, 0)
            if "fail" in causes:
                yield ("reply", "failed"), around, 1
        if call == "won":
            yield ("prepare", owns), around, 0
        if phase == "starting":
            if owns:
                yield ("lead",), attrs.evolve(around, serving=True), 0
            for left in (False, True) if "left" in causes else (False,):
                if "fail" in causes:
                    yield ("reply", "failed"), around.let_go(p, left), 1
        if phase == "leading":
            if "fail" in causes:
                yield ("work_fails",), around.let_go(p, left=False), 1
            if around.owner == p and not around.serving:
                yield ("nothing",), attrs.evolve(around, serving=True), 0
        if "session" in causes:
            if seen.session == 0:
                yield ("serve", 1), around, 0
            else:
                yield ("serve", 0), around, 1
                if seen.session == 1 and phase == "registering":
                    yield ("serve", 2), around, 1
        if "stop" in causes:
            yield ("stop",), around.gone(p).let_go(p, left=False), 1

    @staticmethod
    def _roster(seen: Seen) -> tuple[str, ...]:
        """The answer to a registration brings no news of slots here; heartbeats do."""
        return tuple(sorted(SLOTS[q] for q in seen.roster))

    def moves(self, world: World, left: int) -> Iterable[Move]:
        around, causes = world.extra, self.config.causes
        assert isinstance(around, Around)
        for label, name, after, cost in around.moves(causes):
            ends = frozenset({PIDS[name]}) if label == "Die" and name in PIDS else frozenset()
            changed = attrs.evolve(world, extra=after)
            for pid in ends:
                changed = changed.with_process(pid, False, 1)
            arguments = (name,) if name else ()
            yield Move(f"{label} {name}".strip(), changed, cost, ends=ends, twin=((label, arguments),))

    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        return (("Die", (self.names[pid],)),)

    def settled(self, call: Call) -> bool:
        (seen,) = call.args
        assert isinstance(seen, Seen)
        return not seen.looks

    # -- comparing ----------------------------------------------------------------------------------------------------

    def actions(self, participant: str) -> tuple[tuple[str, Callable[..., Iterable[State]], tuple[Any, ...]], ...]:
        """Its own, and what time and its leading do to the registry."""
        around = [a for a in self.twin.actions() if a.name in ("Expire", "Heal")]
        return (*super().actions(participant), *((a.name, a.body, args) for a in around for args in a.args))

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        seen = next(f.f_locals["seen"] for f in frames if isinstance(f.f_locals.get("seen"), Seen))
        return (seen.phase, attrs.evolve(seen, looks=()))

    def phase_in(self, state: State, participant: str) -> str:
        return state.node[participant].phase

    def agrees(self, state: State, participant: str, observed: Hashable) -> bool:
        if isinstance(observed, tuple) and observed[0] == "ended":
            return state.node[participant].phase == "ended"
        return observed == (state.node[participant].phase, _seen(state, participant))

    def shared_in(self, state: State) -> Hashable:
        return Around(
            tuple(sorted(state.proc.items())),
            state.entry.owner,
            state.entry.passed,
            state.serving,
            state.readable,
            tuple(sorted(state.route.items())),
        )

    def shared(self, disks: Disks, world: World) -> Hashable:
        return world.extra


def _seen(state: State, p: str) -> Seen:
    """A state of the twin as `Desk.seen` says it."""
    node, call = state.node[p], state.call[p]
    return Seen(
        node.phase,
        node.leader,
        node.endpoint,
        node.roster,
        node.session,
        node.deferred,
        node.bound,
        (call.kind, call.to if call.kind != "won" else "none"),
        state.timer[p],
        state.record[p],
    )


def _bound(least: int, name: str) -> Bound:
    return Bound(lambda: SuccessionBinding(CONFIGS[name]), least)


# A loss is told after a look, and a session may change between: to the twin that is one step.
ALL: Final = attrs.evolve(CONFIGS["all"], causes=CONFIGS["all"].causes - {"session"})


BOUND: Final[Mapping[str, Bound]] = {
    "alone": _bound(150, "alone"),
    "reload": _bound(130, "reload"),
    "session": _bound(75, "session"),
    "joining": _bound(400, "joining"),
    "pair": _bound(7_000, "pair"),
    "slotless": _bound(1_600, "slotless"),
    "all": Bound(lambda: SuccessionBinding(ALL), 5_000, thorough=True),
}
"""What the manifest names for the stage `bind`."""
