"""`Doctor` against the twin of `RuntimeRecovery` (locks.md 8; S36, V13).

Doctors over a controlled port, with an owner that comes and goes as the twin lets it. Both guards are abstract ones, as
the bind of `FileTransaction` shows them to be: one inside at a time, taken and left in one step. The ownership guard
stands on the disk all the same, because doctors look at it.

A doctor that cannot look any more gives up, and leaves what it holds: to the twin it has died there. So a guard that is
free and one that is abandoned are the same here.
"""

from __future__ import annotations

import errno
import json
import types
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, TypeVar

import attrs

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardBusy, GuardDamaged, Guarded
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.standing import Standing
from tenure.adapters.files.timings import Timings
from tenure.adapters.looking.doctor import Doctor, Guards
from tenure.adapters.verify.bind.binding import (
    BROKEN,
    CONTENTION,
    FULL,
    STUTTER,
    VANISHED,
    Binding,
    Move,
    Participant,
    World,
)
from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.calls import Answer, Call, Got, Raised
from tenure.adapters.verify.bind.controlled import WALL_MS, ControlledPorts
from tenure.adapters.verify.bind.disk import Contents, Disks
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.replay import Replay
from tenure.machines.runtime_recovery import NOTHING, Memory, Order
from tenure.models.runtime_recovery import Config, RuntimeRecovery, State

T = TypeVar("T")

DIRECTORY: Final = AgentDirectory("/agent")
THREADS: Final = f"{DIRECTORY.state}/state.json"
TIMINGS: Final = Timings(attempts=1, rename_attempts=1, delay_ms=0, rename_delay_ms=0)
PIDS: Final = {100: "p", 200: "q"}
OWNER: Final = 300
GHOST: Final = 999
LITTER: Final = f"{DIRECTORY.guard}/lock"
TORN: Final = b'{"default": {"pid": 3'
OCCUPIED: Final = Raised(errno.EEXIST)


def _generation(pid: int) -> str:
    return f"11111111-1111-4111-8111-{pid:012d}"


def _entry(pid: int) -> bytes:
    value = {"pid": pid, "instanceId": "o", "heartbeatMs": WALL_MS, "leaderEpoch": 1}
    return json.dumps({"default": value}).encode()


def _held(pid: int) -> dict[str, bytes | None]:
    """The ownership guard, with that process inside."""
    payload = {"pid": pid, "acquiredAtMs": WALL_MS, "generation": _generation(pid)}
    return {DIRECTORY.guard: None, f"{DIRECTORY.guard}/owner.{_generation(pid)}.json": json.dumps(payload).encode()}


REGISTRY: Final[Mapping[str, Contents]] = {
    "missing": {},
    "damaged": {DIRECTORY.registry: TORN},
    "ghost": {DIRECTORY.registry: _entry(GHOST)},
}
STATE: Final[Mapping[str, Contents]] = {"good": {THREADS: b"{}"}, "damaged": {THREADS: b"{torn"}}
GUARD: Final[Mapping[str, Contents]] = {
    "nobody": {},
    "abandoned": _held(GHOST),
    "damaged": {DIRECTORY.guard: None, LITTER: b"?"},
    "empty": {DIRECTORY.guard: None},
}


class AbstractGuard:
    """One inside at a time. `left` is called when it is left."""

    def __init__(self, replay: Replay, which: str, left: Callable[[], None]) -> None:
        self.replay, self.which, self.left = replay, which, left

    def run(self, operation: Callable[[Guarded], T]) -> T:
        try:
            generation: str = self.replay.ask("begin", self.which)
        except OSError as error:
            standing = Standing("damaged" if error.errno == errno.EEXIST else "held")
            kind = GuardDamaged if error.errno == errno.EEXIST else GuardBusy
            raise kind("it is busy", standing) from error
        try:
            result = operation(Guarded(generation, 0))
        except Exception:
            self._leave()
            raise
        self._leave()
        return result

    def _leave(self) -> None:
        self.replay.ask("leave", self.which)
        self.left()


class NoOld:
    """No version before 0.22.1 has been here."""

    def clear(self, move: Callable[[str], None]) -> None:
        return


class ShownDoctor(Doctor):
    """A doctor, and what its machine has become: both guards have to be left for that, if it orders that. If it is in
    the recovery guard only, it has left it as soon as it wants to."""

    shown: tuple[str, bool, frozenset[str]] = ("idle", False, NOTHING)

    def _reached(self, phase: str, data: Memory, outputs: tuple[Order, ...]) -> None:
        super()._reached(phase, data, outputs)
        if "leave_recovery_guard" in outputs and isinstance(self._guards.recovery, AbstractGuard):
            self._guards.recovery.replay.ask("leaving")
        if "leave_guards" not in outputs:
            self.left()

    def left(self) -> None:
        """What was ordered is done."""
        self.shown = (self.phase, self.data.again, self.data.seen)


@attrs.frozen(cache_hash=True)
class Extra:
    """What the world has beside files and processes: what the owner does, and who is in the recovery guard. `leaving`:
    that one has decided to leave it, or has left the ownership guard, which is one step with leaving it to the twin."""

    owner: str = "out"
    recovery: str = "nobody"
    leaving: bool = False


@attrs.frozen
class Setting:
    """One configuration: how many doctors, what stands there at first, and whether an owner comes."""

    budget: int
    doctors: int = 1
    registry: str = "damaged"
    state: str = "damaged"
    guard: str = "nobody"
    owner: bool = False
    litter: bool = False


class DoctorBinding(Binding[State]):
    """One doctor or two, in processes of their own."""

    module: ClassVar[str] = "RuntimeRecovery"
    through: ClassVar[frozenset[str]] = frozenset({"suspending", "releasing"})
    at_rest: ClassVar[Hashable] = ("idle", False, NOTHING)
    at_end: ClassVar[Hashable] = None
    commands: ClassVar[frozenset[str]] = frozenset({"Connect", "Crash", "Start"})

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        self.setting = setting
        self.budget = setting.budget
        pids = dict(list(PIDS.items())[: setting.doctors])
        self.twin = RuntimeRecovery(Config(tuple(pids.values()), budget=setting.budget), off)
        self.participants = tuple(Participant(name, pid, self._program()) for pid, name in pids.items())

    def doctor(self, controlled: ControlledPorts, guards: Guards) -> ShownDoctor:
        """The adapter that is run."""
        return ShownDoctor(controlled.ports(), DIRECTORY, TIMINGS, process=ProcessState(), guards=guards)

    def _program(self) -> Program:
        def program(controlled: ControlledPorts, replay: Replay) -> object:
            def left() -> None:
                doctor.left()

            guards = Guards(AbstractGuard(replay, "recovery", left), AbstractGuard(replay, "guard", left), NoOld())
            doctor = self.doctor(controlled, guards)
            return doctor.heal().kind

        return program

    # -- the world ----------------------------------------------------------------------------------------------------

    def contents(self) -> Contents:
        found: dict[str, bytes | None] = dict.fromkeys(("/agent", "/agent/tmp", DIRECTORY.state))
        setting = self.setting
        return {**found, **REGISTRY[setting.registry], **STATE[setting.state], **GUARD[setting.guard]}

    def initial(self, disks: Disks) -> World:
        world = super().initial(disks)
        return attrs.evolve(world, processes=(*world.processes, (OWNER, True, 1)), extra=Extra())

    def outcomes(
        self, disks: Disks, world: World, participant: Participant, call: Call
    ) -> Iterable[tuple[Answer, World, int]]:
        extra, name, pid = _extra(world), participant.name, participant.pid
        match (call.name, *call.args):
            case ("begin", "recovery"):
                if extra.recovery in ("nobody", "abandoned"):
                    yield Got(""), _with(world, recovery=name), 0
                else:
                    yield CONTENTION, world, 1
            case ("leaving",):
                yield Got(), _with(world, leaving=True), 0
            case ("leave", "recovery"):
                yield Got(), _with(world, recovery="nobody", leaving=False), 0
            case ("begin", "guard"):
                match _guard(disks, world):
                    case "free":
                        yield Got(_generation(pid)), _entered(disks, world, pid), 0
                    case "damaged":
                        yield OCCUPIED, world, 0
                    case _:
                        yield CONTENTION, world, 1
            case ("leave", "guard"):
                mine = _guard(disks, world) == name
                after = _left(disks, world) if mine else world
                yield Got() if mine else VANISHED, _with(after, leaving=True), 0
            case _:
                yield from super().outcomes(disks, world, participant, call)

    def faults(self, call: Call) -> tuple[Raised, ...]:
        match call.name:
            case "rename":
                return CONTENTION, attrs.evolve(BROKEN, done=True)
            case "make_directory":
                return (FULL,)
            case "read" | "entries" | "kind" | "remove_directory" if not str(call.args[0]).startswith("/proc"):
                return (BROKEN,)
        return ()

    def moves(self, world: World, left: int) -> Iterable[Move]:
        extra = _extra(world)
        for move in super().moves(world, left):
            (pid,) = move.ends
            if extra.recovery == PIDS[pid]:
                move = attrs.evolve(move, after=_with(move.after, recovery="abandoned", leaving=False))
            yield move
        if self.setting.owner or self.setting.litter:
            yield from self._befalls(world)

    disks: Disks

    def _befalls(self, world: World) -> Iterable[Move]:
        """The owner, who does what the twin's does; and litter in place of a guard."""
        disks, owner = self.disks, _extra(world).owner
        kind, entry = _registry(disks, world)
        free = _guard(disks, world) == "free"
        if self.setting.litter and DIRECTORY.guard not in disks.contents[world.disk]:
            after = _put(disks, world, {DIRECTORY.guard: None, LITTER: b"?"})
            yield Move("somebody leaves litter", after, twin=(("DamageGuard", ()),))
        if not self.setting.owner:
            return
        if free and (owner == "owning" or (owner == "out" and entry in ("none", "ghost"))):
            after = _with(_entered(disks, world, OWNER), owner="refreshing" if owner == "owning" else "acquiring")
            yield Move("the owner enters", after, 0, twin=(("Begin", ()),))
        if owner in ("acquiring", "refreshing"):
            writes = kind != "damaged" and (owner == "acquiring" or entry == "o")
            after = _left(disks, world) if _guard(disks, world) == "o" else world
            after = _put(disks, after, {DIRECTORY.registry: _entry(OWNER)}) if writes else after
            yield Move(
                "the owner leaves", _with(after, owner="owning" if writes else "out"), 0, twin=(("Commit", ()),)
            )  # fmt: skip
        if owner == "owning" and free:
            after = _put(disks, _left(disks, world), {DIRECTORY.registry: b"{}"}) if entry == "o" else world
            yield Move("the owner withdraws", _with(after, owner="out"), 0, twin=(("Withdraw", ()),))

    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        return (("Crash", (PIDS[pid],)), STUTTER)

    def private(self, call: Call, observed: Hashable, world: World, left: int) -> bool:
        if call.name in ("sleep_ms", "make_directory", "leaving"):
            return True  # what is made has a name of its own
        where = call.args[0] if call.args else None
        if call.name == "sighting":
            return where not in PIDS
        return call.name in ("read", "kind") and str(where).startswith(("/proc", DIRECTORY.quarantine))

    def settled(self, call: Call) -> bool:
        return call.name == "begin"

    # -- comparing ----------------------------------------------------------------------------------------------------

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        for frame in frames:
            for found in (frame.f_locals.get("self"), frame.f_locals.get("doctor")):
                if isinstance(found, ShownDoctor):
                    return found.shown
        return self.at_rest

    def agrees(self, state: State, participant: str, observed: Hashable) -> bool:
        node = state.node[participant]
        return (node.phase, node.again, node.seen) == observed

    def phase_in(self, state: State, participant: str) -> str:
        return state.node[participant].phase

    def shared_in(self, state: State) -> Hashable:
        registry = state.registry
        return registry.kind, registry.owner, state.state, _free(state.guard), _free(state.recovery), state.owner

    def shared(self, disks: Disks, world: World) -> Hashable:
        self.disks = disks
        contents, extra = disks.contents[world.disk], _extra(world)
        threads = contents.get(THREADS)
        kind, owner = _registry(disks, world)
        state = "missing" if threads is None else "good" if threads == b"{}" else "damaged"
        recovery = "free" if extra.leaving else _free(extra.recovery)
        return kind, owner, state, _guard(disks, world), recovery, extra.owner


def _registry(disks: Disks, world: World) -> tuple[str, str]:
    """Its kind, and whose entry is in it."""
    registry = disks.contents[world.disk].get(DIRECTORY.registry)
    kind = "missing" if registry is None else "damaged" if registry == TORN else "valid"
    return kind, {_entry(OWNER): "o", _entry(GHOST): "ghost"}.get(registry or b"", "none")


def _guard(disks: Disks, world: World) -> str:
    """Who is in the ownership guard: free, damaged, or a name."""
    contents = disks.contents[world.disk]
    if DIRECTORY.guard not in contents:
        return "free"
    inside = next((pid for pid in (*PIDS, OWNER, GHOST) if _owner_file(pid) in contents), None)
    if inside is None:
        return "damaged"
    process = world.process(inside)
    return PIDS.get(inside, "o") if process is not None and process[0] else "free"


def _owner_file(pid: int) -> str:
    return f"{DIRECTORY.guard}/owner.{_generation(pid)}.json"


def _put(disks: Disks, world: World, more: Contents) -> World:
    return attrs.evolve(world, disk=disks.add({**disks.contents[world.disk], **more}))


def _left(disks: Disks, world: World) -> World:
    contents = disks.contents[world.disk]
    return attrs.evolve(
        world, disk=disks.add({k: v for k, v in contents.items() if not k.startswith(DIRECTORY.guard)})
    )  # fmt: skip


def _entered(disks: Disks, world: World, pid: int) -> World:
    return _put(disks, _left(disks, world), _held(pid))


def _free(holder: str) -> str:
    return "free" if holder in ("nobody", "abandoned") else holder


def _with(world: World, **changes: object) -> World:
    return attrs.evolve(world, extra=attrs.evolve(_extra(world), **changes))  # type: ignore[arg-type]


def _extra(world: World) -> Extra:
    assert isinstance(world.extra, Extra)
    return world.extra


def _bound(least: int, thorough: bool = False, **setting: object) -> Bound:
    return Bound(lambda: DoctorBinding(Setting(**setting)), least, thorough)  # type: ignore[arg-type]


BOUND: Final[Mapping[str, Bound]] = {
    "alone": _bound(100, budget=1, guard="damaged"),
    "empty guard": _bound(100, budget=1, guard="empty", registry="ghost"),
    "litter": _bound(100, budget=1, litter=True),
    "owner": _bound(500, True, budget=0, owner=True),
    "owner of a good registry": _bound(500, budget=0, owner=True, registry="missing"),
    "owner at a damaged guard": _bound(500, budget=1, owner=True, guard="damaged", registry="ghost"),
    "two": _bound(1_000, budget=0, doctors=2, guard="damaged"),
    "owner, and a fault": _bound(1_000, True, budget=1, owner=True),
    "owner of a good registry, and a fault": _bound(1_000, True, budget=1, owner=True, registry="missing"),
    "two, and a fault": _bound(5_000, True, budget=1, doctors=2, guard="damaged"),
}
"""What the manifest names for the stage `bind`."""
