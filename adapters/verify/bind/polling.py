"""`Polling` against the twin of `PollingOwnership` (locks.md 9-11; S25-S30, S33-S37, V10-V13).

One runtime and what befalls its key. The lease is the port: each of its operations answers what `LeaderElection` lets
it answer, or fails as a busy guard makes it fail; the work and the registration are ports too. Time is abstract: what
is due later becomes due when the program says so, and whether the lease has passed is asked of the world.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar, cast

import attrs

from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.runtime.polling import Polling
from tenure.adapters.runtime.polling_steps import Counters
from tenure.adapters.verify.bind.binding import BROKEN, CONTENTION, Binding, Move, Participant, World
from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.calls import Answer, Call, Got, Raised
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.disk import Contents, Disks
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.polling_ports import NAME, PID, BoundLease, BoundRegistration, BoundWork
from tenure.adapters.verify.bind.replay import Replay
from tenure.machines import polling_messages as own
from tenure.machines.chart import Step, step
from tenure.machines.polling_ownership import POLLING_OWNERSHIP
from tenure.models.polling_ownership import NONE, Config, Entry, PollingOwnership, State

T = TypeVar("T")

COMMANDS: Final[Mapping[str, own.Happening]] = {
    "start": own.Start(True, True),
    "stop": own.Stop(),
    "confirm": own.Force(),
}
MINE: Final = Entry(NAME, "here", True, 0)


@attrs.frozen(cache_hash=True)
class Extra:
    """The twin's environment, as it is here. `inside`: a commit of ours runs, and nobody else writes; `last`: the
    number of the last foreign entry; `loop`: what the work's loop does: none, runs, stops."""

    entry: Entry = NONE
    passed: bool = False
    busy: bool = False
    paused: bool = False
    inside: bool = False
    loop: str = "none"
    last: int = 0


@attrs.frozen
class Setting:
    """One configuration: the causes of the twin's that may happen."""

    budget: int
    causes: str
    thread_mode: bool = False


class Twin(PollingOwnership):
    """The twin, whose foreign entries have the numbers of the system's, as long as they are fresh to it."""

    number: int = 0

    def _fresh_id(self, state: State) -> int:
        return self.number


class PollingBinding(Binding[State]):
    """One process with one runtime."""

    module: ClassVar[str] = "PollingOwnership"
    at_rest: ClassVar[tuple[Hashable, ...]] = ("idle", False, 0, "off", 0, False)
    at_end: ClassVar[Hashable] = None
    constants: ClassVar[tuple[type, ...]] = (Counters,)
    commands: ClassVar[frozenset[str]] = frozenset({"Start", "Stop", "Force", "Elect", "Suspend", "SessionStart"})

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        self.setting = setting
        self.budget = setting.budget
        causes = frozenset(setting.causes.split())
        self.bound = Twin(Config((NAME,), causes, setting.budget, thread_mode=setting.thread_mode), off)
        self.twin = self.bound
        self.causes = causes
        self.participants = (Participant(NAME, PID, self._program()),)

    def _program(self) -> Program:
        def program(controlled: ControlledPorts, replay: Replay) -> object:
            lease = cast(LeaseRuntime, BoundLease(controlled, replay))
            polling = Polling(lease, BoundWork(replay), BoundRegistration(replay), lambda: True, lambda outcome: None)
            while True:
                chosen: str = replay.ask("choose")
                command = COMMANDS.get(chosen)
                if command is not None:
                    if isinstance(step(POLLING_OWNERSHIP, polling.phase, polling.data, command), Step):
                        replay.ask("spend")
                    polling.offer(command)
                elif chosen == "due":
                    _all_is_due(polling)
                else:
                    polling.turn()

        return program

    # -- the world ----------------------------------------------------------------------------------------------------

    def contents(self) -> Contents:
        return {}

    def initial(self, disks: Disks) -> World:
        return attrs.evolve(super().initial(disks), extra=Extra())

    def outcomes(
        self, disks: Disks, world: World, participant: Participant, call: Call
    ) -> Iterable[tuple[Answer, World, int]]:
        extra = _extra(world)
        if extra.paused:
            return
        mine = extra.entry.owner == NAME
        match call.name:
            case "choose":
                yield Got("turn"), world, 0
                yield Got("due"), world, 0
                for command in COMMANDS:
                    if command in self.causes:
                        yield Got(command), world, 0
            case "spend":
                yield Got(), world, 1
            case "acquire":
                won = self._won(extra, *call.args)
                after = attrs.evolve(extra, entry=MINE, passed=extra.passed and mine) if won else extra
                if extra.busy:
                    yield CONTENTION, world, 0
                    if won:
                        yield CONTENTION, attrs.evolve(world, extra=after), 0
                else:
                    yield Got(None if won else extra.entry.id), attrs.evolve(world, extra=after), 0
            case "check":
                yield Got("mine" if mine else "other"), world, 0
                if extra.busy:
                    yield Got("unknown"), world, 0
            case "refresh":
                saw = "unknown" if extra.busy else "mine" if mine else "other"
                yield Got(saw), attrs.evolve(world, extra=attrs.evolve(extra, passed=extra.passed and saw != "mine")), 0
            case "passed":
                yield Got(extra.passed), world, 0
            case "release":
                if extra.busy:
                    yield CONTENTION, world, 0
                else:
                    after = attrs.evolve(extra, entry=NONE, passed=False) if mine else extra
                    yield Got(), attrs.evolve(world, extra=after), 0
            case "enter":
                if extra.busy:
                    yield CONTENTION, world, 0
                else:
                    yield Got(mine), attrs.evolve(world, extra=attrs.evolve(extra, inside=mine)), 0
            case "leave":
                yield Got(), attrs.evolve(world, extra=attrs.evolve(extra, inside=False)), 0
            case "ended":
                over = attrs.evolve(world, extra=attrs.evolve(extra, loop="none"))
                yield Got(None), world, 0
                if extra.loop == "stops":
                    yield Got(""), over, 0
                elif "stop" in self.causes:
                    yield Got(""), world, 1  # it is done: as if a person had disconnected
                if extra.loop == "runs" and "fail" in self.causes:
                    yield Got("it broke"), over, 1
            case "work.start":
                yield Got(), attrs.evolve(world, extra=attrs.evolve(extra, loop="runs")), 0
            case "work.stop":
                loop = "stops" if extra.loop == "runs" else extra.loop
                yield Got(), attrs.evolve(world, extra=attrs.evolve(extra, loop=loop)), 0
            case "register":
                if self.setting.thread_mode and extra.entry.owner == "other" and extra.entry.live:
                    yield Got("registered"), world, 0
                yield Got("failed" if self.setting.thread_mode else "no-thread-mode"), world, 0
            case _:
                yield Got(), world, 0

    def _won(self, extra: Extra, mode: object, expected: object) -> bool:
        """What locks.md 7.1 answers, as `PollingOwnership._won` does."""
        entry = extra.entry
        stale = extra.passed if entry.owner == NAME else entry.owner != "none" and not entry.live
        exact = entry.owner != "none" and entry.id == expected
        if mode == "elect":
            return entry.owner == "none" or (stale and exact)
        return entry.owner in ("none", NAME) or stale or (mode == "force" and exact)

    def faults(self, call: Call) -> tuple[Raised, ...]:
        return (BROKEN,) if call.name in ("prepare", "work.start", "clean_up") and "fail" in self.causes else ()

    def moves(self, world: World, left: int) -> Iterable[Move]:
        extra = _extra(world)
        entry = extra.entry

        def to(label: str, name: str, args: tuple[Hashable, ...] = (), cost: int = 0, **changes: Any) -> Move:
            after = attrs.evolve(world, extra=attrs.evolve(extra, **changes))
            return Move(label, after, cost, twin=((name, args),), assumed=True)

        if not world.processes[0][1]:
            return
        if not extra.passed and entry.owner == NAME:
            yield to("the lease passes", "Expire", passed=True)
        if not extra.busy and "busy" in self.causes and not extra.inside:
            yield to("somebody is in the guard", "Busy", cost=1, busy=True)
        if extra.busy:
            yield to("the guard is free", "Calm", busy=False)
        if not extra.paused and "pause" in self.causes:
            yield to("the process is stopped", "Pause", cost=1, paused=True)
        if extra.paused:
            yield to("the process goes on", "Continue", paused=False)
        if extra.inside:
            return
        number = extra.last % 3 + 1
        foreign = Entry("other", "there", True, number)
        yield to("another takes the key", "ForeignTakes", ("there",), entry=foreign, last=number)
        if "force" in self.causes:
            yield to("another takes it by force", "ForeignForces", cost=1, entry=foreign, last=number)
        if entry.owner == "other":
            yield to("the other dies", "ForeignDies", entry=attrs.evolve(entry, live=False))
            yield to("the other leaves", "ForeignLeaves", entry=NONE)

    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        return ()

    def private(self, call: Call, observed: Hashable, world: World, left: int) -> bool:
        # Two reads are taken for one moment, since the twin has no step between them: that the lease has not passed and
        # the refresh that follows; that the release failed and whether the lease has passed.
        if call.name == "passed" and observed == ("releasing", *self.at_rest[1:]):
            return True
        return call.name in ("choose", "spend", "refresh", "work.stop", "unregister") and not _extra(world).paused

    def settled(self, call: Call) -> bool:
        return call.name == "choose"

    # -- comparing ----------------------------------------------------------------------------------------------------

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        for frame in frames:
            if frame.f_code.co_name == "begin" and "begun" in frame.f_locals:
                # The loop's machine runs already, and the other one is told when the work has begun: one step there.
                polling = frame.f_locals["self"]
                return ("launching", polling.data.waiting, _shown(polling), "pending", 0, polling.watched)
        for frame in frames:
            for found in (frame.f_locals.get("self"), frame.f_locals.get("polling")):
                if isinstance(found, Polling):
                    data, loops = found.data, found.loops
                    return (found.phase, data.waiting, _shown(found), found.loop_phase, loops.live, found.watched)
        return self.at_rest

    def agrees(self, state: State, participant: str, observed: Hashable) -> bool:
        node, poll = state.node[participant], state.poller[participant]
        watched = state.outside[participant].watched
        return (node.phase, node.waiting, node.shown, poll.phase, poll.live, watched) == observed

    def phase_in(self, state: State, participant: str) -> str:
        return state.node[participant].phase

    def shared_in(self, state: State) -> Hashable:
        return state.entry, state.passed, state.busy, state.paused

    def shared(self, disks: Disks, world: World) -> Hashable:
        extra = _extra(world)
        return extra.entry, extra.passed, extra.busy, extra.paused

    def hint(self, shared: Hashable, observed: Hashable) -> Hashable:
        self.bound.number = shared[0].id if isinstance(shared, tuple) else 0
        return self.bound.number


def _all_is_due(polling: Polling) -> None:
    """Time goes by: what waits is due, and the watchers are."""
    polling.calls = [attrs.evolve(call, not_before_ms=0) for call in polling.calls]
    polling.check_at = polling.refresh_at = 0


def _shown(polling: Polling) -> int:
    """The number of the entry that was shown, which is the pid of its owner here."""
    owner = polling.owners.get(polling.data.shown)
    return 0 if owner is None else owner.pid


def _extra(world: World) -> Extra:
    assert isinstance(world.extra, Extra)
    return world.extra


def _bound(least: int, thorough: bool = False, **setting: Any) -> Bound:
    return Bound(lambda: PollingBinding(Setting(**setting)), least, thorough)


BOUND: Final[Mapping[str, Bound]] = {
    "start": _bound(500, budget=2, causes="start stop busy fail"),
    "loss": _bound(500, budget=2, causes="start pause force busy"),
    "takeover": _bound(500, budget=3, causes="start confirm"),
    "followers": _bound(500, True, budget=3, causes="start stop busy", thread_mode=True),
    "start and stop": _bound(5_000, True, budget=3, causes="start stop busy fail"),
    "all": _bound(5_000, True, budget=3, causes="start stop busy pause force fail confirm"),
}
"""What the manifest names for the stage `bind`."""
