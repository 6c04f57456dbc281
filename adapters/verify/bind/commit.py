"""`Committer` against the twin of `FencedCommit` (locks.md 7.2; S24).

The guard is the abstract one, as the bind of `FileTransaction` shows it to be; lock and command are ports whose calls
answer what they may. What an owner does is the world's: it comes, writes, and goes. Time is each committer's own: it
goes by where the committer waits. That a lease has passed is that its stamp is old.

Three things are one moment, since nobody else can tell: the reads of one look; the look and the start of the command;
what the look decides and that the guard is left. A command that could not be started is a commit that was cancelled.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar, cast

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard import GuardedFile
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.lead.commit import Committer
from tenure.adapters.verify.bind.binding import BROKEN, Binding, Move, Participant, World
from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.calls import Answer, Call, Got, Raised
from tenure.adapters.verify.bind.commit_ports import (
    BOUNDS,
    DIRECTORY,
    KEY,
    OWNER,
    TIMINGS,
    Desk,
    Extra,
    registry_of,
)
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.disk import Contents, Disks
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.replay import Replay
from tenure.models.fenced_commit import FREE, Config, FencedCommit, Lease, State

T = TypeVar("T")

NAMES: Final = ("a", "b")
PIDS: Final = {100: "a", 200: "b"}
PRIVATE: Final = frozenset(
    ["sighting", "choose", "told", "clock", "start", "leave", "gone", "pause", "lock.open", "unlock"]
)


@attrs.frozen
class Setting:
    """One configuration: how many commits each participant makes, the faults, what may happen."""

    budget: int
    count: tuple[int, ...] = (1,)
    owners: bool = True


class CommitBinding(Binding[State]):
    """One committer or two, one key, and its owners."""

    module: ClassVar[str] = "FencedCommit"
    at_rest: ClassVar[Hashable] = ("idle", 0, "none")
    at_end: ClassVar[Hashable] = None
    ticking: ClassVar[bool] = True

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        self.setting = setting
        self.budget = setting.budget
        self.names = NAMES[: len(setting.count)]
        self.twin = FencedCommit(Config(self.names, setting.budget), off)
        self.disks: Disks | None = None
        self.participants = tuple(
            Participant(name, pid, self._program(count))
            for (pid, name), count in zip(PIDS.items(), setting.count, strict=False)
        )

    def _program(self, count: int) -> Program:
        def program(controlled: ControlledPorts, replay: Replay) -> object:
            desk = Desk(replay)
            committer = Committer(
                controlled.ports(), DIRECTORY, KEY, TIMINGS, BOUNDS, desk.open_lock, desk, process=ProcessState()
            )
            committer.guard = cast(GuardedFile, desk)
            left = count
            while left > 0:
                left -= 1
                desk.started, desk.answer = False, ""
                token: int = replay.ask("choose", left)
                try:
                    desk.answer = committer.run(token).answer
                except TenureError:
                    continue
                replay.ask("told", token)
            return None

        return program

    def actions(self, participant: str) -> tuple[tuple[str, Callable[..., Iterable[State]], tuple[Any, ...]], ...]:
        """Without what befalls it."""
        return tuple(a for a in super().actions(participant) if a[0] not in ("Crash", "Harden"))

    # -- the world ----------------------------------------------------------------------------------------------------

    def contents(self) -> Contents:
        found: dict[str, bytes | None] = dict.fromkeys(("/agent", "/agent/tmp", DIRECTORY.state))
        return {**found, DIRECTORY.registry: registry_of(Extra())}

    def initial(self, disks: Disks) -> World:
        self.disks = disks
        world = super().initial(disks)
        owners = tuple((OWNER + epoch, True, 1) for epoch in range(1, self.budget + 2))
        return attrs.evolve(world, processes=(*world.processes, *owners), extra=Extra())

    def outcomes(
        self, disks: Disks, world: World, participant: Participant, call: Call
    ) -> Iterable[tuple[Answer, World, int]]:
        extra, name = _extra(world), participant.name
        place = self.names.index(name)
        command = extra.commands[place]

        def then(value: Hashable, cost: int = 0, **changes: Any) -> tuple[Answer, World, int]:
            return Got(value), attrs.evolve(world, extra=attrs.evolve(extra, **changes)), cost

        def passing(ms: int) -> tuple[int, ...]:
            return _set(extra.times, place, extra.times[place] + ms)

        match call.name:
            case "choose":
                for token in range(1, extra.entry.epoch + 1):
                    yield then(token, times=_set(extra.times, place, 0))
            case "clock":
                yield then(extra.times[place])
            case "begin":
                yield then(True, guard=name) if extra.guard in FREE else then(False)
            case "leave":
                yield then(True, guard="nobody")
            case "take":
                free = extra.lock in ("", name) and not extra.stray and set(extra.commands) == {"none"}
                yield then(free, lock=name if free else extra.lock)
            case "unlock":
                yield then(None, lock="" if extra.lock == name else extra.lock)
            case "start":
                yield then(None, commands=_set(extra.commands, place, "running"))
            case "wait":
                (timeout,) = call.args
                assert isinstance(timeout, (int, float))
                yield then("nothing", times=passing(int(timeout)))
                yield then("interrupted", 1)
                if command != "none":
                    yield then("ended")
                    yield then("ended", commands=_set(extra.commands, place, "none"))
            case "pause":
                yield then(None, times=passing(BOUNDS.grace_ms))
            case "terminate":
                yield then(None)
                if command == "running":
                    yield then(None, commands=_set(extra.commands, place, "none"))
            case "destroy":
                yield then(None, commands=_set(extra.commands, place, "none"))
            case "gone":
                yield then(command == "none")
            case "read" if not extra.readable:
                yield from super().outcomes(disks, world, participant, call)
                yield BROKEN, world, 0
            case _:
                yield from super().outcomes(disks, world, participant, call)

    def faults(self, call: Call) -> tuple[Raised, ...]:
        return (BROKEN,) if call.name in ("begin", "lock.open", "take", "start") else ()

    def moves(self, world: World, left: int) -> Iterable[Move]:
        extra = _extra(world)
        for move in super().moves(world, left):
            (pid,) = move.ends
            name = PIDS[pid]
            place = self.names.index(name)
            alive = extra.commands[place] != "none"
            for leaves in (False, True) if alive else (False,):
                dead = attrs.evolve(
                    extra,
                    guard="abandoned" if extra.guard == name else extra.guard,
                    lock="" if extra.lock == name else extra.lock,
                    commands=_set(extra.commands, place, "none"),
                    stray=extra.stray or leaves,
                )
                yield attrs.evolve(move, after=attrs.evolve(move.after, extra=dead))

        def to(label: str, twin: str, cost: int = 0, args: tuple[Hashable, ...] = (), **changes: Any) -> Move:
            return Move(label, self._with(world, attrs.evolve(extra, **changes)), cost, twin=((twin, args),))

        if extra.stray:
            yield to("what a command has left ends", "StrayEnds", stray=False)
        for place, command in enumerate(extra.commands):
            if command == "running":
                deaf = _set(extra.commands, place, "deaf")
                move = to("the command ignores SIGTERM", "Harden", 1, (self.names[place],), commands=deaf)
                yield attrs.evolve(move, assumed=True)  # not of what is left of it when it is ended
        if self.setting.owners:
            yield from self._owners(world, extra, to)

    def _owners(self, world: World, extra: Extra, to: Callable[..., Move]) -> Iterable[Move]:
        entry = extra.entry
        if extra.guard in FREE:
            yield to("an owner enters", "Come", guard="other")
        if extra.guard == "other":
            yield to("the owner leaves", "Go", guard="nobody")
            if extra.readable:
                yield to("a new tenure", "Take", 1, entry=Lease(entry.epoch + 1, "fresh"), guard="nobody")
                if entry.state == "passed":
                    yield to("the lease is renewed", "Renew", entry=Lease(entry.epoch, "fresh"), guard="nobody")
                if entry.state in ("fresh", "passed"):
                    yield to("the owner releases", "Release", entry=Lease(entry.epoch, "none"), guard="nobody")
        if entry.state == "fresh":
            yield to("the lease passes", "Pass", entry=Lease(entry.epoch, "passed"))
        if entry.state in ("fresh", "passed"):
            yield to("the owner dies", "Die", 1, entry=Lease(entry.epoch, "dead"))
        if extra.readable:
            yield to("the registry is torn", "Tear", 1, readable=False)
        else:
            yield to("the registry is mended", "Mend", readable=True)

    def _with(self, world: World, extra: Extra) -> World:
        """The world with what is written there, and the owner that has died."""
        assert self.disks is not None
        before = _extra(world)
        if (before.entry, before.readable) != (extra.entry, extra.readable):
            disk = self.disks.add({**self.contents(), DIRECTORY.registry: registry_of(extra)})
            world = attrs.evolve(world, disk=disk)
        if extra.entry.state == "dead":
            world = world.with_process(OWNER + extra.entry.epoch, False, 1)
        return attrs.evolve(world, extra=extra)

    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        return (("Crash", (PIDS[pid],)), ("", ()))

    def private(self, call: Call, observed: Hashable, world: World, left: int) -> bool:
        return call.name in (
            "sighting",
            "choose",
            "told",
            "clock",
            "start",
            "leave",
            "gone",
            "pause",
            "lock.open",
            "unlock",
        )

    def settled(self, call: Call) -> bool:
        return call.name == "choose"

    # -- comparing ----------------------------------------------------------------------------------------------------

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        seen = next((f.f_locals for f in frames if "committer" in f.f_locals), None)
        if seen is None:
            return self.at_rest
        committer, desk = seen["committer"], seen["desk"]
        phase, token, outcome = committer.phase, committer.data.token, committer.data.outcome
        if desk.answer:  # the caller is told: what the machine has forgotten since
            answer = desk.answer
            over = {"stale": "stale", "unreadable": "failed", "busy": "failed"}
            ran = desk.started
            return (over.get(answer, "done" if ran else "failed"), seen["token"], answer if ran else "none")
        if phase in ("running", "ending", "done") and not desk.started:
            phase, outcome = "failed" if phase == "done" and desk.at != "leave" else "entering", "none"
        elif desk.at == "leave":
            phase = "ending" if phase == "done" else "entering"
        return (phase, token, outcome)

    def agrees(self, state: State, participant: str, observed: Hashable) -> bool:
        node = state.node[participant]
        return (node.phase, node.token, node.outcome) == observed

    def phase_in(self, state: State, participant: str) -> str:
        return state.node[participant].phase

    def shared_in(self, state: State) -> Hashable:
        commands = tuple(state.command[name].state for name in self.names)
        return state.entry, state.readable, state.guard, state.stray, commands

    def shared(self, disks: Disks, world: World) -> Hashable:
        extra = _extra(world)
        commands = extra.commands[: len(self.names)]
        return extra.entry, extra.readable, extra.guard, extra.stray, commands


def _set(values: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    return tuple(value if n == place else other for n, other in enumerate(values))


def _extra(world: World) -> Extra:
    assert isinstance(world.extra, Extra)
    return world.extra


def _bound(least: int, thorough: bool = False, **setting: Any) -> Bound:
    return Bound(lambda: CommitBinding(Setting(**setting)), least, thorough)


BOUND: Final[Mapping[str, Bound]] = {
    "alone": _bound(1_000, budget=1),
    "faults": _bound(2_000, budget=2),
    "twice": _bound(2_000, budget=1, count=(2,)),
    "pair": _bound(4_000, budget=1, count=(1, 1), owners=False),
    "pair and owners": _bound(10_000, True, budget=1, count=(1, 1)),
    "pairs": _bound(10_000, True, budget=2, count=(2, 1), owners=False),
}
"""What the manifest names for the stage `bind`."""
