"""`LeaseRuntime` against the twin of `LeaderElection` (locks.md 5-8; S11-S24).

The guard is the abstract one, one inside at a time, as the bind of `FileTransaction` shows it to be; the registry, the
mark of epochs and everything else are calls. Which operation comes next is a call as well, with every answer.
"""

from __future__ import annotations

import errno
import json
import types
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, TypeVar

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.high_water import parse_mark
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.lease_steps import LeaseSteps
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.registry import parse_registry
from tenure.adapters.files.timings import Timings
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
from tenure.adapters.verify.bind.controlled import MONOTONIC_MS, WALL_MS, ControlledPorts
from tenure.adapters.verify.bind.disk import Contents, Disks
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.lease_operations import OPERATIONS, AbstractGuard
from tenure.adapters.verify.bind.replay import Replay
from tenure.machines.entry import parse_entry
from tenure.machines.identity import Owner
from tenure.machines.lease import admits, ordered, passed
from tenure.models.leader_election import NOBODY, Config, LeaderElection, Lease, State

T = TypeVar("T")

DIRECTORY: Final = AgentDirectory("/agent")
KEY: Final = "work"
NAMES: Final = ("a", "b")
PIDS: Final = {100: "a", 200: "b"}
PROCESSES: Final = {100: "x", 200: "y"}
TIMINGS: Final = Timings(rename_attempts=1, delay_ms=0, rename_delay_ms=0)
FOREIGN_PID: Final = 300
FOREIGN_EPOCH: Final = 5
START: Final[Mapping[str, Contents]] = {
    "empty": {},
    "torn": {DIRECTORY.registry: b'{"work": {"pid": 3'},
    "foreign": {
        DIRECTORY.registry: json.dumps(
            {
                KEY: {
                    "pid": FOREIGN_PID,
                    "instanceId": "foreign",
                    "heartbeatMs": WALL_MS,
                    "leaderEpoch": FOREIGN_EPOCH,
                }
            }
        ).encode()
    },
}
TICK_MS: Final = TIMINGS.stale_ms + 1
COMMANDS: Final = frozenset({"force", "release", "resume"})
"""Operations that cost the twin of its budget."""


@attrs.frozen(cache_hash=True)
class Extra:
    """What the world has beside files and processes. `guard`: who is inside; `fence`: the epoch that the resource has
    seen; `flights`: effects on their way; `ticks`: how often a whole lease has gone by."""

    guard: str = "nobody"
    fence: int = 0
    flights: tuple[int, ...] = (0, 0)
    ticks: int = 0


@attrs.frozen
class Setting:
    """One configuration: the operations of each participant, how many of them it does, the faults."""

    budget: int
    menu: tuple[tuple[str, ...], tuple[str, ...]]
    count: tuple[int, int] = (2, 2)
    pauses: bool = False
    reuse: bool = False
    start: str = "empty"
    """What the registry is at first: empty, torn, or with the entry of a process of the other system (foreign)."""


class Twin(LeaderElection):
    """The twin, which begins with what the registry is at first."""

    def __init__(self, config: Config, start: str, off: Collection[str]) -> None:
        super().__init__(config, off)
        self.start = start

    def initial(self) -> Iterable[State]:
        for state in super().initial():
            if self.start == "foreign":
                foreign = Lease("foreign", FOREIGN_EPOCH, "fresh", "right", "alive")
                state = attrs.evolve(state, entry=state.entry.set(KEY, foreign))
            yield attrs.evolve(state, readable=self.start != "torn")


class LeaseBinding(Binding[State]):
    """Two processes, each with one runtime, and one key."""

    module: ClassVar[str] = "LeaderElection"
    at_rest: ClassVar[Hashable] = ("off",)
    at_end: ClassVar[Hashable] = None
    ticking: ClassVar[bool] = True
    late: ClassVar[tuple[tuple[str, tuple[Hashable, ...]], ...]] = (("Pass", (KEY,)), ("Age", (KEY,)))

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        self.setting = setting
        self.budget = setting.budget
        runtimes = {name: (process, KEY) for name, process in zip(NAMES, PROCESSES.values(), strict=True)}
        causes = frozenset({"crash", "pause", "force", "write", "release", "resume"})
        self.twin = Twin(Config(runtimes, (KEY,), causes, setting.budget, 99), setting.start, off)
        self.participants = tuple(
            Participant(name, pid, self._program(name, count))
            for (pid, name), count in zip(PIDS.items(), setting.count, strict=True)
        )

    def runtime(self, controlled: ControlledPorts, replay: Replay, name: str) -> LeaseRuntime:
        """The adapter that is run."""
        return LeaseRuntime(
            controlled.ports(),
            DIRECTORY,
            KEY,
            cwd=None,
            instance_id=name,
            timings=TIMINGS,
            process=ProcessState(),
            guard=AbstractGuard(replay),
        )

    def _program(self, name: str, count: int) -> Program:
        def program(controlled: ControlledPorts, replay: Replay) -> object:
            lease = self.runtime(controlled, replay, name)
            left = count
            while left > 0:
                left -= 1
                operation: str = replay.ask("choose", left)
                try:
                    OPERATIONS[operation](lease, replay)
                except TenureError:
                    continue
            return None

        return program

    # -- the world ----------------------------------------------------------------------------------------------------

    def contents(self) -> Contents:
        found: dict[str, bytes | None] = dict.fromkeys(("/agent", "/agent/tmp", DIRECTORY.state))
        return {**found, **START[self.setting.start]}

    def initial(self, disks: Disks) -> World:
        world = super().initial(disks)
        return attrs.evolve(world, processes=(*world.processes, (FOREIGN_PID, True, 1)), extra=Extra())

    def outcomes(
        self, disks: Disks, world: World, participant: Participant, call: Call
    ) -> Iterable[tuple[Answer, World, int]]:
        extra = world.extra
        assert isinstance(extra, Extra)
        place = NAMES.index(participant.name)
        match call.name:
            case "choose":
                for operation in self.setting.menu[place]:
                    yield Got(operation), world, 1 if operation in COMMANDS else 0
                return
            case "clock":
                yield Got(extra.ticks * TICK_MS), world, 0
                return
            case "begin":
                if extra.guard not in ("nobody", "abandoned"):
                    return
                extra = attrs.evolve(extra, guard=participant.name)
            case "leave":
                extra = attrs.evolve(extra, guard="nobody")
            case "effect":
                extra = attrs.evolve(extra, fence=_epoch(call))
            case "send" if extra.flights[place] == 0:
                flights = tuple(_epoch(call) if n == place else sent for n, sent in enumerate(extra.flights))
                extra = attrs.evolve(extra, flights=flights)
            case "send":
                pass
            case _:
                yield from super().outcomes(disks, world, participant, call)
                return
        yield Got(), attrs.evolve(world, extra=extra), 0

    def faults(self, call: Call) -> tuple[Raised, ...]:
        match call.name:
            case "rename":
                return CONTENTION, BROKEN, attrs.evolve(BROKEN, done=True)
            case "create":
                return (FULL,)
            case "read":
                return BROKEN, VANISHED
            case "sync" | "kind":
                return (BROKEN,)
            case "begin":
                return (Raised(errno.EBUSY),)
        return ()

    def moves(self, world: World, left: int) -> Iterable[Move]:
        extra = world.extra
        assert isinstance(extra, Extra)
        for move in super().moves(world, left):
            (pid,) = move.ends
            guard = "abandoned" if extra.guard == PIDS[pid] else extra.guard
            yield attrs.evolve(move, after=attrs.evolve(move.after, extra=attrs.evolve(extra, guard=guard)))
        for pid, up, birth in world.processes:
            if not up and self.setting.reuse and pid in PIDS:
                after = world.with_process(pid, True, birth + 1)
                yield Move(
                    f"another process gets pid {pid}, and begins", after, 0,
                    starts=frozenset({pid}), twin=(("Start", (PIDS[pid],)),),
                )  # fmt: skip
        for place, sent in enumerate(extra.flights):
            if sent:
                fence = sent if admits(extra.fence, sent) else extra.fence
                flights = tuple(0 if n == place else other for n, other in enumerate(extra.flights))
                after = attrs.evolve(world, extra=attrs.evolve(extra, fence=fence, flights=flights))
                yield Move(f"the effect of {NAMES[place]} arrives", after, 0, twin=(("Arrive", (NAMES[place],)),))
        if self.setting.pauses:
            after = attrs.evolve(world, extra=attrs.evolve(extra, ticks=extra.ticks + 1))
            yield Move("a whole lease goes by", after, twin=(("Pass", (KEY,)), ("Age", (KEY,)), STUTTER))

    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        return (("Crash", (PROCESSES[pid],)),)

    def private(self, call: Call, observed: Hashable, world: World, left: int) -> bool:
        if call.name == "clock":
            return not self.setting.pauses or left == 0
        if call.name in ("choose", "sleep_ms", "sync", "send", "create", "unlink"):
            return True  # what is created and removed has a name of its own
        return call.name == "kind" and DIRECTORY.state.startswith(str(call.args[0]))

    def settled(self, call: Call) -> bool:
        return call.name in ("choose", "begin")

    # -- comparing ----------------------------------------------------------------------------------------------------

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        for frame in frames:
            seen = frame.f_locals
            for found in (seen.get("self"), seen.get("lease")):
                if isinstance(found, LeaseSteps) and hasattr(found, "_now"):
                    data = found.data
                    held = None if data.tenure is None else (data.tenure.key, data.tenure.epoch)
                    shown = None if data.shown is None else (_name(data.shown), ordered(data.shown.leader_epoch))
                    return (found.phase, data.key, held, data.mode, shown)
        return self.at_rest

    def agrees(self, state: State, participant: str, observed: Hashable) -> bool:
        node = state.node[participant]
        held = None if node.tenure.key == "none" else (node.tenure.key, node.tenure.epoch)
        shown = None if node.shown.owner == "none" else (node.shown.owner, node.shown.epoch)
        return (node.phase, node.key, held, node.mode, shown) == observed

    def phase_in(self, state: State, participant: str) -> str:
        return state.node[participant].phase

    def shared_in(self, state: State) -> Hashable:
        flights = tuple(state.flight[name].epoch for name in NAMES)
        return state.entry[KEY], state.readable, state.highwater, state.guard, state.fence[KEY], flights

    def shared(self, disks: Disks, world: World) -> Hashable:
        contents, extra = disks.contents[world.disk], world.extra
        assert isinstance(extra, Extra)
        registry = parse_registry(contents.get(DIRECTORY.registry))
        mark, _ = parse_mark(contents.get(DIRECTORY.high_water) or b'{"highWater": 0}')
        lease = lease_of(registry.value(KEY), world, extra.ticks)
        return lease, not registry.problem, mark, extra.guard, extra.fence, extra.flights


def lease_of(value: object, world: World, ticks: int) -> Lease:
    """The twin's value of an entry."""
    entry = parse_entry(value)
    if entry is None:
        return NOBODY
    process = world.process(entry.pid)
    same = process is not None and (entry.birth is None or entry.birth.ticks == process[1])
    life = "dead" if process is None or not process[0] else "alive" if same else "reborn"
    if entry.stamp_ms is None:
        gone_by = passed(int(entry.heartbeat_ms or 0), WALL_MS + ticks * TICK_MS, TIMINGS.stale_ms)
    else:
        gone_by = passed(entry.stamp_ms, MONOTONIC_MS + ticks * TICK_MS, TIMINGS.stale_ms)
    # The heartbeat counts for entries without a stamp only. It is read off another clock a moment before the stamp, so
    # that it may be older; here both are one.
    age, clock = ("passed", "passed") if gone_by else ("fresh", "right")
    return Lease(_name(entry.owner), ordered(entry.leader_epoch), age, clock, life)


def _epoch(call: Call) -> int:
    (epoch,) = call.args
    assert isinstance(epoch, int)
    return epoch


def _name(owner: Owner) -> str:
    return owner.instance_id or "?"


def _bound(least: int, thorough: bool = False, **setting: object) -> Bound:
    return Bound(lambda: LeaseBinding(Setting(**setting)), least, thorough)  # type: ignore[arg-type]


_ALL: Final = ("acquire", "elect", "force", "refresh", "release", "commit", "check", "send")
BOUND: Final[Mapping[str, Bound]] = {
    "plain": _bound(2_000, budget=1, menu=(("acquire", "refresh", "release", "commit"),) * 2),
    "elect": _bound(2_000, budget=1, menu=(("acquire", "refresh", "commit"), ("elect", "force")), count=(3, 1)),
    "pause": _bound(
        10_000, budget=1, menu=(("acquire", "refresh", "commit", "send"), _ALL[:3]), count=(2, 1), pauses=True
    ),
    "restart": _bound(
        5_000, budget=1, menu=(("acquire", "commit"), ("acquire", "elect")), count=(2, 1), reuse=True
    ),
    "resume": _bound(2_000, budget=2, menu=(("acquire", "resume"), ("resume",)), count=(1, 1), reuse=True),
    "torn": _bound(100, budget=1, menu=(("acquire", "force"), ("elect",)), count=(1, 1), start="torn"),
    "foreign": _bound(
        2_000, budget=1, menu=(("acquire", "elect"), ("acquire", "force")), count=(1, 1), pauses=True, start="foreign"
    ),
    "all": _bound(50_000, True, budget=1, menu=(_ALL, _ALL), count=(2, 2), pauses=True),
    "foreigner": _bound(
        10_000, True, budget=2, menu=(("acquire", "elect", "refresh"), ("acquire", "force")), count=(2, 1), pauses=True,
        start="foreign",
    ),
    "restarts": _bound(
        100_000, True, budget=2, menu=(("acquire", "refresh", "release", "commit", "send"), ("acquire", "elect")),
        count=(2, 1), reuse=True,
    ),
    "pauses": _bound(
        50_000, True, budget=2, menu=(("acquire", "refresh"), ("elect", "acquire")), count=(2, 1), pauses=True
    ),
}  # fmt: skip
"""What the manifest names for the stage `bind`."""
