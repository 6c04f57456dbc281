"""`GuardedFile` and its `Passage` against the twin of `FileTransaction` (locks.md 3; S1-S10)."""

from __future__ import annotations

import errno
import json
import types
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Final

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard import Guarded, GuardedFile, Passage
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import Timings
from tenure.adapters.testing.memory import BOOT
from tenure.adapters.verify.bind.binding import Binding, Move, Participant, World
from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.calls import Call, Raised
from tenure.adapters.verify.bind.controlled import WALL_MS, ControlledPorts, uuid_of
from tenure.adapters.verify.bind.disk import Contents, Disks, identity
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.replay import Replay
from tenure.machines.guard_name import (
    MarkerName,
    OwnerName,
    Payload,
    agree,
    birth_hash,
    marker,
    parse_name,
    parse_payload,
    render_name,
    render_payload,
)
from tenure.machines.identity import Birth
from tenure.models.file_transaction import NOTHING, Config, FileTransaction, Path, Process, State
from tenure.models.world import FrozenMap

RESOURCE: Final = "/agent/owners.json"
GUARD: Final = f"{RESOURCE}.transaction"
RECOVERY: Final = f"{GUARD}.recovery"
PIDS: Final = {100: "P", 200: "Q", 300: "R"}
"""The last one is dead from the beginning."""
DEAD_PID: Final = 300
LIVE_PID: Final = 400
"""Somebody who lives, and whom the twin does not know."""
ASIDE: Final = tuple(f"{guard}.{kind}." for guard in (GUARD, RECOVERY) for kind in ("staged", "released", "stale"))
"""What no other participant looks at, unless it sweeps."""
AT_REST: Final = ("idle", 0, False, 0, 0, 0, False)
BIRTHS: Final = (1, 2, 3)
FAULTS: Final = frozenset({"crash", "reuse", "rename", "stage", "tidy", "abort"})


UNKNOWN: Final = Raised(errno.EIO, done=True)


class Twin(FileTransaction):
    """The twin, which draws the identities that the system has drawn, as long as they are fresh to it."""

    staged: int | None = None
    claimed: int | None = None

    def __init__(self, config: Config, start: Path, off: Collection[str]) -> None:
        super().__init__(config, off)
        self.start = start

    def initial(self) -> Iterable[State]:
        """A third process has died already, perhaps inside, perhaps when it had claimed the guard of another."""
        for state in super().initial():
            yield attrs.evolve(state, guard=self.start, proc=state.proc.set("R", Process(False, 1)))

    def _stage(self, state: State, thread: str) -> Iterable[State]:
        self.drawn = self.staged
        return super()._stage(state, thread) if self._is_fresh(state, self.staged) else ()

    def _claim(self, state: State, thread: str) -> Iterable[State]:
        self.drawn = self.claimed
        return super()._claim(state, thread) if self._is_fresh(state, self.claimed) else ()

    def _fresh(self, state: State) -> int:
        assert self.drawn is not None
        return self.drawn

    def _is_fresh(self, state: State, number: int | None) -> bool:
        if not number:
            return False
        nodes = state.node.values()
        return number not in {state.guard.id, state.guard.claim} and all(
            number not in (n.id, n.payload, n.name, n.claim) for n in nodes
        )


@attrs.frozen
class Setting:
    """One configuration. `rounds`: how often each participant goes through the guard; `start`: what is there at first,
    by name; `sweeps`: whether debris is swept."""

    budget: int
    rounds: tuple[int, int] = (1, 1)
    attempts: int = 2
    start: str = "free"
    reuse: bool = False
    sweeps: bool = False
    rename_attempts: int = 1
    unknown: bool = False
    """Whether a rename may fail and be done all the same, as over a network."""
    errors: int = 2
    """How many kinds of error a call may fail with."""


class GuardBinding(Binding[State]):
    """Two processes, each with one thread that goes through the guard of one file."""

    module: ClassVar[str] = "FileTransaction"
    at_rest: ClassVar[Hashable] = AT_REST
    at_end: ClassVar[Hashable] = AT_REST
    through: ClassVar[frozenset[str]] = frozenset({"judging_owner", "pausing"})

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        self.setting = setting
        self.budget = setting.budget
        config = Config({"a": "P", "b": "Q", "dead": "R"}, FAULTS, setting.budget, (self._neighbour(),))
        self.bound = Twin(config, standing(self.contents(), GUARD), off)
        self.twin = self.bound
        self.participants = tuple(
            Participant(name, pid, self._program(rounds))
            for name, pid, rounds in zip("ab", PIDS, setting.rounds, strict=False)
        )

    def _program(self, rounds: int) -> Program:
        setting = self.setting
        timings = Timings(
            attempts=setting.attempts, delay_ms=0, rename_attempts=setting.rename_attempts, rename_delay_ms=0
        )

        def program(controlled: ControlledPorts, replay: Replay) -> object:
            process = ProcessState()
            if not setting.sweeps:
                process.swept[GUARD] = controlled.monotonic_ms()
            guarded = GuardedFile(controlled.ports(), RESOURCE, timings, process=process)
            left = rounds
            while left > 0:
                left -= 1
                with suppress(TenureError):
                    guarded.run(lambda inside: operation(replay, inside))
            return None

        return program

    # -- the world ----------------------------------------------------------------------------------------------------

    def initial(self, disks: Disks) -> World:
        return World(
            disks.add(self.contents()), ((100, True, 1), (200, True, 1), (DEAD_PID, False, 1), (LIVE_PID, True, 1))
        )

    def contents(self) -> Contents:
        return {"/agent": None, **START[self.setting.start]}

    def _neighbour(self) -> str:
        return {"neighbour": "dead", "live neighbour": "live"}.get(self.setting.start, "none")

    def moves(self, world: World, left: int) -> Iterable[Move]:
        yield from super().moves(world, left)
        for pid, up, birth in world.processes:
            if not up and self.setting.reuse and pid != DEAD_PID:
                after = world.with_process(pid, True, birth + 1)
                label = f"another process gets pid {pid}, and begins"
                yield Move(label, after, starts=frozenset({pid}), twin=(("Reuse", (PIDS[pid],)),))

    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        return (("Crash", (PIDS[pid],)),)

    def faults(self, call: Call) -> tuple[Raised, ...]:
        found = super().faults(call)[: self.setting.errors]
        return (*found, UNKNOWN) if call.name == "rename" and self.setting.unknown else found

    def private(self, call: Call, observed: Hashable, world: World, left: int) -> bool:
        if call.name == "sleep_ms" or observed == AT_REST:
            return call.name == "sleep_ms" or not self.setting.sweeps
        paths = [arg for arg in call.args if isinstance(arg, str)]
        return not self.setting.sweeps and bool(paths) and all(path.startswith(ASIDE) for path in paths)

    def settled(self, call: Call) -> bool:
        return call.name == "inside"

    # -- comparing ----------------------------------------------------------------------------------------------------

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        for frame in frames:
            passage = frame.f_locals.get("self")
            if isinstance(passage, Passage):
                data = passage.data
                numbers = (
                    identity(passage.names[n]) if n else 0 for n in (data.id, data.payload, data.name, data.claim)
                )
                mine, payload, name, claim = numbers
                if any(f.f_code is Passage._remove_neighbour.__code__ for f in frames):
                    # The twin looks at the neighbour and removes it in one step; here the machine is a call ahead.
                    return ("tidying", mine, data.saw, payload, name, claim, data.recovered)
                if any(f.f_code is Passage._release_late.__code__ for f in frames):
                    # At rest, and all the same it moves what it could not move away before: others can tell.
                    return (passage.phase, mine, data.saw, payload, name, claim, data.recovered, "late")
                return (passage.phase, mine, data.saw, payload, name, claim, data.recovered)
        return AT_REST

    def agrees(self, state: State, participant: str, observed: Hashable) -> bool:
        n = state.node[participant]
        seen = observed[: len(AT_REST)] if isinstance(observed, tuple) else None
        return (n.phase, n.id, n.saw, n.payload, n.name, n.claim, n.recovered) == seen

    def phase_in(self, state: State, participant: str) -> str:
        return state.node[participant].phase

    def shared_in(self, state: State) -> Hashable:
        return state.guard, state.proc, state.neighbour

    def shared(self, disks: Disks, world: World) -> Hashable:
        contents = disks.contents[world.disk]
        return standing(contents, GUARD), processes(world), neighbour(contents, world)

    def hint(self, shared: Hashable, observed: Hashable) -> Hashable:
        self.bound.staged = observed[1] if isinstance(observed, tuple) else None
        self.bound.claimed = shared[0].claim if isinstance(shared, tuple) else None
        return self.bound.staged, self.bound.claimed


def operation(replay: Replay, inside: Guarded) -> None:
    """What runs inside: one call, so that others have their turn."""
    replay.ask("inside")


def processes(world: World) -> FrozenMap[str, Process]:
    """The twin's `proc`."""
    return FrozenMap({PIDS[pid]: Process(up, birth) for pid, up, birth in world.processes if pid in PIDS})


def standing(contents: Mapping[str, bytes | None], guard: str) -> Path:
    """What stands at a guard's path, in the twin's values."""
    if guard not in contents:
        return NOTHING
    names = [path for path in contents if path.startswith(f"{guard}/")]
    if contents[guard] is None and not names:
        return Path("empty")
    name = parse_name(names[0].rpartition("/")[2]) if len(names) == 1 else None
    text = contents[names[0]] if name is not None else None
    try:
        payload = parse_payload(json.loads(text or b""))
    except ValueError:
        payload = None
    if name is None or payload is None or not agree(name, payload.generation):
        return Path("alien")
    birth = payload.birth.ticks if payload.birth is not None else 0
    owner = Path("owner", identity(payload.generation), PIDS.get(payload.pid, "none"), birth)
    if isinstance(name, OwnerName):
        return owner
    return attrs.evolve(
        owner, kind="marker", claim=identity(name.uuid), claimant=PIDS.get(name.claimant, "none"), since=_since(name)
    )


def neighbour(contents: Mapping[str, bytes | None], world: World) -> str:
    """The twin's `neighbour`: none, dead or live."""
    found = standing(contents, RECOVERY)
    if found.kind == "absent":
        return "none"
    return "dead" if found.pid == "R" else "live"


def _since(name: MarkerName) -> int:
    return next((b for b in BIRTHS if birth_hash(Birth(b, BOOT, 1)) == name.birth_hash), 0)


def _guard_of(path: str, pid: int, number: int, claim: int = 0) -> dict[str, bytes | None]:
    """A guard that process `pid` has left, or, with a claim, that the dead process was about to move away."""
    birth = Birth(1, BOOT, 1)
    payload = Payload(pid, WALL_MS, uuid_of(number), birth)
    name = render_name(marker(DEAD_PID, birth, claim) if claim else OwnerName(payload.generation))
    return {path: None, f"{path}/{name}": json.dumps(render_payload(payload)).encode()}


START: Final[Mapping[str, Contents]] = {
    "free": {},
    "empty": {GUARD: None},
    "damaged": {GUARD: None, f"{GUARD}/owner.json": b"{}"},
    "abandoned": _guard_of(GUARD, DEAD_PID, 90),
    "claimed": _guard_of(GUARD, DEAD_PID, 90, 91),
    "neighbour": _guard_of(GUARD, DEAD_PID, 90) | _guard_of(RECOVERY, DEAD_PID, 92),
    "live neighbour": _guard_of(GUARD, DEAD_PID, 90) | _guard_of(RECOVERY, LIVE_PID, 92),
}


def _bound(least: int, thorough: bool = False, **setting: object) -> Bound:
    return Bound(lambda: GuardBinding(Setting(**setting)), least, thorough)  # type: ignore[arg-type]


BOUND: Final[Mapping[str, Bound]] = {
    "pair": _bound(5_000, budget=1),
    "reuse": _bound(20_000, budget=2, attempts=1, reuse=True),
    "claimed": _bound(5_000, budget=1, attempts=1, start="claimed", errors=1),
    "neighbour": _bound(5_000, budget=1, attempts=1, start="neighbour", errors=1),
    "empty": _bound(200, budget=1, attempts=1, start="empty"),
    "damaged": _bound(200, budget=1, attempts=1, start="damaged"),
    "again": _bound(5_000, True, budget=1, attempts=1, rounds=(2, 1)),
    "sweep": _bound(5_000, True, budget=1, attempts=1, sweeps=True),
    "unknown": _bound(1_000, budget=1, attempts=1, unknown=True),
    "unknown recovery": _bound(5_000, True, budget=1, attempts=1, start="neighbour", unknown=True, errors=1),
    "abandoned": _bound(5_000, True, budget=1, attempts=1, start="abandoned"),
    "abandoned twice": _bound(5_000, True, budget=0, start="abandoned", rounds=(2, 1)),
    "claimed again": _bound(5_000, True, budget=1, attempts=1, start="claimed"),
    "three faults": _bound(20_000, True, budget=3, attempts=1, reuse=True, errors=1),
    "live neighbour": _bound(20_000, True, budget=1, attempts=1, start="live neighbour"),
}
"""What the manifest names for the stage `bind`."""
