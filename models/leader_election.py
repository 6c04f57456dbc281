"""The twin of `spec/LeaderElection.tla`: runtimes, their leases in one registry, a resource that compares epochs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ClassVar, Final

import attrs

from tenure.machines.chart import Step
from tenure.machines.entry import Entry
from tenure.machines.identity import GONE, RUNNING, Birth, Owner, Process, Sighting
from tenure.machines.laws import Law
from tenure.machines.leader_election import LEADER_ELECTION
from tenure.machines.leader_messages import (
    Abandon,
    Acquire,
    Commit,
    DeleteEntry,
    Die,
    Elect,
    Force,
    Happening,
    Landed,
    Look,
    Me,
    Mint,
    Outcome,
    Output,
    Raised,
    RaiseHighWater,
    Refresh,
    Release,
    Resolve,
    Resume,
    RunEffect,
    Runtime,
    Send,
    SendEffect,
    Settle,
    Start,
    Supersede,
    Switch,
    Tenure,
    WriteEntry,
)
from tenure.machines.lease import Sight, admits
from tenure.models.world import Action, Fair, FrozenMap, LeadsTo, Strength, World, fair, prohibition

# The numbers that realise each abstract case: a lease lasts 8 ms, now is 100 on the monotonic and 1000 on the wall
# clock, and a stamp is either of now or half a century of leases old.
STALE_MS: Final = 8
MONOTONIC: Final = {"fresh": 100, "passed": 50}
WALL: Final = {"right": 1000, "passed": 900, "future": 1100}
NOW_MS: Final = MONOTONIC["fresh"]
WALL_MS: Final = WALL["right"]
BOOT: Final = "boot"
FOREIGN_PID: Final = 99
HOLDING: Final = ("owner", "renewing", "deleting", "committing")
FREE: Final = ("nobody", "abandoned")
SETTLED: Final = ("idle", "owner", "doubtful")
WRITING: Final = ("placing", "renewing", "deleting")


@attrs.frozen(cache_hash=True)
class Id:
    """The identity of an owner: whose entry, and which of its tenures."""

    owner: str
    epoch: int


@attrs.frozen(cache_hash=True)
class Lease:
    """``entry[k]``: what the registry says of k, and what time and death have done to it."""

    owner: str
    epoch: int
    age: str
    clock: str
    life: str


@attrs.frozen(cache_hash=True)
class Held:
    """A tenure in memory or on its way: its key and its epoch."""

    key: str
    epoch: int


@attrs.frozen(cache_hash=True)
class Node:
    """``node[r]``: the machine's phase and memory, and the adapter's draft."""

    phase: str
    generation: int
    key: str
    tenure: Held
    own: str
    mode: str
    shown: Id
    draft: FrozenMap[str, Id]


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    entry: FrozenMap[str, Lease]
    readable: bool
    highwater: int
    guard: str
    node: FrozenMap[str, Node]
    flight: FrozenMap[str, Held]
    fence: FrozenMap[str, int]
    evicted: frozenset[str]
    budget: int


Answer = tuple[Node, tuple[Output, ...]]
Deciding = Callable[[Sight], Happening]


@attrs.define(eq=False)
class _Asked:
    """One situation of a runtime, and what its machine answered in it."""

    node: Node
    memory: Runtime
    sight: Sight
    answers: dict[Happening, Answer | None] = attrs.field(factory=dict)
    decisions: dict[Deciding, Answer | None] = attrs.field(factory=dict)


NOBODY: Final = Lease("none", 0, "fresh", "right", "alive")
NO_ID: Final = Id("none", 0)
NO_TENURE: Final = Held("none", 0)


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off. `runtimes` maps each to its process and its key."""

    runtimes: Mapping[str, tuple[str, str]]
    keys: tuple[str, ...]
    causes: frozenset[str]
    budget: int
    max_epoch: int


def _apart(*names: str) -> dict[str, tuple[str, str]]:
    return {name: (name, "main") for name in names}


def _config(runtimes: Mapping[str, tuple[str, str]], causes: str, budget: int, max_epoch: int) -> Config:
    keys = tuple(sorted({key for _, key in runtimes.values()}))
    return Config(runtimes, keys, frozenset(causes.split()), budget, max_epoch)


_PAIR: Final = {"a": ("x", "main"), "b": ("x", "main")}
_KEYS: Final = {"a": ("a", "main"), "b": ("b", "work")}

CONFIGS: Mapping[str, Config] = {
    "two": _config(_apart("a", "b"), "crash pause force", 2, 4),
    "reload": _config(_PAIR | {"c": ("y", "main")}, "pause", 1, 4),
    "restart": _config(_PAIR, "crash pause", 1, 5),
    "keys": _config(_KEYS, "switch tear release", 2, 5),
    "writes": _config(_apart("a", "b"), "write pause release", 2, 4),
    "alone": _config(_apart("a"), "crash write release", 3, 5),
    "twice": _config(_apart("a"), "crash write release", 2, 4),
    "pair": _config(_PAIR, "pause", 1, 3),
    "clock": _config(_apart("a", "b"), "clock pause", 1, 3),
    "foreign": _config(_apart("a"), "foreign clock pause force", 3, 3),
    "sibling": _config(_KEYS, "switch tear", 1, 3),
    "calm": _config(_KEYS, "", 0, 3),
    "torn": _config(_apart("a"), "tear", 1, 3),
    "resume": _config(_PAIR, "foreign resume", 3, 4),
}
"""The configurations of the manifest by name; each equals `spec/LeaderElection_<name>.cfg`."""


class LeaderElection(World[State]):
    """Runtimes acquire, keep, lose and release leases; processes die, clocks step, writes fail."""

    module: ClassVar[str] = "LeaderElection"
    tables = (LEADER_ELECTION,)
    environment = (
        prohibition("not_below_fence", Law.FENCE),
        prohibition("replaced_by_rename", Law.DURABLE_FIRST),
    )

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.table = self.weakened(LEADER_ELECTION)
        self.runtimes = tuple(config.runtimes)
        self.process = {r: process for r, (process, _) in config.runtimes.items()}
        processes = sorted(set(self.process.values()))
        self.mates = {c: tuple(r for r in self.runtimes if self.process[r] == c) for c in processes}
        self.no_draft = FrozenMap({k: NO_ID for k in config.keys})
        self.asleep = {
            r: Node("off", 0, key, NO_TENURE, "fresh", "none", NO_ID, self.no_draft)
            for r, (_, key) in config.runtimes.items()
        }
        pid = {c: n for n, c in enumerate(processes, 1)}
        self.me = {
            r: Me(Process(pid[self.process[r]], Birth(1, BOOT, 0)), None, r, STALE_MS, max_epoch=config.max_epoch)
            for r in self.runtimes
        }
        self.now: State | None = None
        self.situations: dict[tuple[str, Node, int, Sight], _Asked] = {}
        self.nodes: dict[Node, Node] = {}
        self.sights: dict[tuple[str, Lease, bool, bool, int], Sight] = {}
        generations = range(len(self.runtimes) + 1)
        self.starts = {(new, old): Start(new, old) for new in generations for old in generations}
        self.mints: dict[tuple[int, int, int], Mint] = {}
        self.sends, self.lands, self.dies, self.abandons = Send(NOW_MS), Landed(), Die(), Abandon()
        self.settles = {outcome: Settle(outcome) for outcome in Outcome}
        self.switches = {k: Switch(k) for k in config.keys}
        self.raised = {durable: Raised(durable, WALL_MS, NOW_MS) for durable in (True, False)}

    def initial(self) -> Iterable[State]:
        yield State(
            FrozenMap({k: NOBODY for k in self.config.keys}),
            True,
            0,
            "nobody",
            FrozenMap(self.asleep),
            FrozenMap({r: NO_TENURE for r in self.runtimes}),
            FrozenMap({k: 0 for k in self.config.keys}),
            frozenset(),
            self.config.budget,
        )

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((r,) for r in self.runtimes)
        keys = tuple((k,) for k in self.config.keys)
        self.age = Action("Age", self._age, keys)
        self.mend = Action("Mend", self._mend)
        return (
            Action("Start", self._start, each),
            Action("Crash", self._crash, tuple((c,) for c in self.mates)),
            Action("Pass", self._pass, keys),
            self.age,
            Action("SetClock", self._set_clock, (("passed",), ("future",))),
            Action("ForeignTakes", self._foreign_takes, keys),
            Action("ForeignDies", self._foreign_dies, tuple((k, x) for (k,) in keys for x in ("dead", "reborn"))),
            Action("Tear", self._tear),
            self.mend,
            Action("Begin", self._begin, each),
            Action("Leave", self._leave, each),
            Action("Acquire", self._acquire, each),
            Action("Elect", self._elect, each),
            Action("Force", self._force, each),
            Action("Supersede", self._supersede, each),
            Action("Resume", self._resume, each),
            Action("Mint", self._mint, each),
            Action("Abandon", self._abandon, each),
            Action("Raise", self._raise, each),
            Action("FailRaise", self._fail_raise, tuple((r, x) for r in self.runtimes for x in (False, True))),
            Action("Write", self._write, each),
            Action("FailWrite", self._fail_write, each),
            Action("LoseWrite", self._lose_write, tuple((r, x) for r in self.runtimes for x in (False, True))),
            Action("Truncate", self._truncate, each, "replaced_by_rename"),
            Action("Resolve", self._resolve, each),
            Action("Refresh", self._refresh, each),
            Action("Displaced", self._displaced, each),
            Action("Release", self._release, each),
            Action("Commit", self._commit, each),
            Action("Land", self._land, each),
            Action("Send", self._send, each),
            Action("Arrive", self._arrive, each),
            Action("Look", self._look, each),
            Action("Switch", self._switch, tuple((r, k) for r in self.runtimes for (k,) in keys)),
        )

    # -- the machine, between the module's values and its own ----------------------------------------------------------

    def _asked(self, state: State, runtime: str) -> _Asked:
        """What the machine of `runtime` has been asked in this situation: each distinct question is put to it once."""
        if state is not self.now:
            self.now = state
            self.here: dict[str, _Asked] = {}
        found = self.here.get(runtime)
        if found is None:
            node = state.node[runtime]
            known = (runtime, node, self._generation(state, node.shown.owner), self._sight(state, runtime))
            found = self.situations.get(known)
            if found is None:
                found = self.situations[known] = _Asked(node, self._memory(*known[:3]), known[3])
            self.here[runtime] = found
        return found

    def _ask(self, state: State, runtime: str, message: Happening) -> Answer | None:
        """The node after the machine has taken `message`, and its outputs; None for a refusal."""
        asked = self._asked(state, runtime)
        if message not in asked.answers:
            asked.answers[message] = self._answer(asked, message)
        return asked.answers[message]

    def _show(self, state: State, runtime: str, kind: Deciding) -> Answer | None:
        """`_ask`, with a message that carries what the runtime sees."""
        asked = self._asked(state, runtime)
        if kind not in asked.decisions:
            asked.decisions[kind] = self._answer(asked, kind(asked.sight))
        return asked.decisions[kind]

    def _answer(self, asked: _Asked, message: Happening) -> Answer | None:
        step = self.step(self.table, asked.node.phase, asked.memory, message)
        if not isinstance(step, Step):
            return None
        after = self._after(asked.node, step)
        return self.nodes.setdefault(after, after), step.outputs

    def _generation(self, state: State, name: str) -> int:
        return state.node[name].generation if name in self.me else 0

    def _owner(self, name: str, epoch: int, generation: int) -> Owner:
        if name == "foreign":
            return Owner(FOREIGN_PID, None, name, epoch)
        return Owner(self.me[name].process.pid, None, name, epoch, generation)

    def _memory(self, runtime: str, node: Node, generation_shown: int) -> Runtime:
        held, shown, renewing = node.tenure, node.shown, node.phase == "renewing"
        return Runtime(
            self.me[runtime],
            node.key,
            node.generation,
            None
            if held == NO_TENURE
            else Tenure(held.key, self._owner(runtime, held.epoch, node.generation), MONOTONIC[node.own]),
            node.mode,
            None if shown == NO_ID else self._owner(shown.owner, shown.epoch, generation_shown),
            NOW_MS if renewing else 0,
        )

    def _after(self, node: Node, step: Step[Runtime, Output]) -> Node:
        """What the machine remembers, in the module's values. The draft is the adapter's and follows the outputs."""
        data, draft = step.data, node.draft
        tenure, shown = data.tenure, data.shown
        for output in step.outputs:
            if isinstance(output, WriteEntry):
                draft = draft.set(output.key, self._written(data.me, output.entry))
            elif isinstance(output, DeleteEntry):
                draft = draft.set(output.key, NO_ID)
        placed = tenure is not None and step.phase != "raising"
        return Node(
            step.phase,
            data.generation,
            data.key,
            NO_TENURE if tenure is None else Held(tenure.key, tenure.epoch),
            "fresh" if tenure is None or not placed or tenure.stamp_ms == MONOTONIC["fresh"] else "passed",
            data.mode,
            NO_ID if shown is None else Id(shown.instance_id or "?", _number(shown)),
            self.no_draft if step.phase in ("off", *SETTLED) else draft,
        )

    def _written(self, me: Me, entry: Entry) -> Id:
        """Whose entry the machine writes; one that is not exactly a fresh lease of its own belongs to nobody here."""
        exact = (
            entry.stamp_ms == NOW_MS
            and entry.heartbeat_ms == WALL_MS
            and entry.birth == me.process.birth
            and entry.pid == me.process.pid
        )
        return Id(entry.instance_id or "?" if exact else "?", _number(entry.owner))

    def _sight(self, state: State, runtime: str) -> Sight:
        """What the runtime sees of its key: numbers that realise the abstract state of the entry."""
        key = state.node[runtime].key
        lease = state.entry[key] if state.readable else NOBODY
        inside = state.guard == runtime
        known = (key, lease, state.readable, inside, self._generation(state, lease.owner))
        if known not in self.sights:
            alive = lease.life == "alive"
            ours = lease.owner != "foreign"
            entry = None
            if lease.owner != "none":
                owner = self._owner(lease.owner, lease.epoch, known[4])
                entry = Entry(
                    owner.pid,
                    owner.cwd,
                    owner.instance_id,
                    WALL[lease.clock],
                    owner.leader_epoch,
                    owner.runtime_generation,
                    birth=Birth(1 if alive else 0, BOOT, 0) if ours else None,
                    stamp_ms=MONOTONIC[lease.age] if ours else None,
                )
            self.sights[known] = Sight(
                inside,
                state.readable,
                key,
                entry,
                Sighting(GONE) if lease.life == "dead" else Sighting(RUNNING, 1),
                WALL_MS,
                NOW_MS,
                STALE_MS + 1 if lease.age == "passed" else 0,
            )
        return self.sights[known]

    # -- the environment -----------------------------------------------------------------------------------------------

    def _spend(self, state: State, cause: str) -> bool:
        return state.budget > 0 and cause in self.config.causes

    def _kept(self, state: State, lease: Lease) -> bool:
        if lease.life != "alive":
            return False
        if lease.owner == "foreign":
            return True
        return (
            lease.owner in self.me
            and state.node[lease.owner].phase in HOLDING
            and self._names(state, lease, lease.owner)
        )

    def _names(self, state: State, lease: Lease, runtime: str) -> bool:
        return lease.owner == runtime and lease.epoch == state.node[runtime].tenure.epoch

    def _start(self, state: State, runtime: str) -> Iterable[State]:
        mates = self.mates[self.process[runtime]]
        previous = max(state.node[m].generation for m in mates)
        for generation in range(1, len(self.runtimes) + 1):
            answer = self._ask(state, runtime, self.starts[generation, previous])
            if answer is None:
                continue
            entry = state.entry
            if all(state.node[m].phase == "off" for m in mates):
                for k, lease in state.entry.items():
                    if lease.owner in mates and lease.life == "dead":
                        entry = entry.set(k, attrs.evolve(lease, life="reborn"))
            yield _next(state, entry=entry, node=state.node.set(runtime, answer[0]))
            return

    def _crash(self, state: State, process: str) -> Iterable[State]:
        if not self._spend(state, "crash"):
            return
        gone = self.mates[process]
        node, entry = state.node, state.entry
        for runtime in gone:
            answer = self._ask(state, runtime, self.dies)
            if answer is not None:
                # The memory is gone; which key the next process starts with is its configuration, not the machine's.
                node = node.set(runtime, attrs.evolve(answer[0], key=self.asleep[runtime].key))
        if node is state.node:
            return
        for k, lease in state.entry.items():
            if lease.owner in gone:
                entry = entry.set(k, attrs.evolve(lease, life="dead"))
        yield _next(
            state,
            entry=entry,
            guard="abandoned" if state.guard in gone else state.guard,
            node=node,
            evicted=state.evicted - set(gone),
            budget=state.budget - 1,
        )

    def _aged(self, state: State, key: str, budget: int) -> Iterable[State]:
        lease, node = state.entry[key], state.node
        for runtime in self.runtimes:
            if self._names(state, lease, runtime):
                node = node.set(runtime, attrs.evolve(node[runtime], own="passed"))
        aged = attrs.evolve(lease, age="passed", clock="future" if lease.clock == "future" else "passed")
        yield _next(state, entry=state.entry.set(key, aged), node=node, budget=budget)

    def _pass(self, state: State, key: str) -> Iterable[State]:
        lease = state.entry[key]
        if lease.age == "fresh" and self._kept(state, lease) and self._spend(state, "pause"):
            yield from self._aged(state, key, state.budget - 1)

    def _age(self, state: State, key: str) -> Iterable[State]:
        lease = state.entry[key]
        if lease.owner != "none" and lease.age == "fresh" and not self._kept(state, lease):
            yield from self._aged(state, key, state.budget)

    def _set_clock(self, state: State, looks: str) -> Iterable[State]:
        if state.guard not in FREE or not self._spend(state, "clock"):
            return
        entry = state.entry
        for k, lease in entry.items():
            if lease.owner != "none" and lease.clock != looks:
                entry = entry.set(k, attrs.evolve(lease, clock=looks))
        if entry is not state.entry:
            yield _next(state, entry=entry, budget=state.budget - 1)

    def _foreign_takes(self, state: State, key: str) -> Iterable[State]:
        free = state.guard in FREE and state.readable and state.entry[key].owner == "none"
        if free and self._spend(state, "foreign"):
            lease = attrs.evolve(NOBODY, owner="foreign", epoch=state.highwater + 1)
            yield _next(state, entry=state.entry.set(key, lease), budget=state.budget - 1)

    def _foreign_dies(self, state: State, key: str, life: str) -> Iterable[State]:
        lease = state.entry[key]
        if lease.owner == "foreign" and lease.life == "alive" and self._spend(state, "foreign"):
            yield _next(state, entry=state.entry.set(key, attrs.evolve(lease, life=life)), budget=state.budget - 1)

    def _tear(self, state: State) -> Iterable[State]:
        if state.readable and state.guard in FREE and self._spend(state, "tear"):
            yield _next(state, readable=False, budget=state.budget - 1)

    def _mend(self, state: State) -> Iterable[State]:
        if not state.readable:
            yield _next(state, readable=True)

    # -- the transaction -----------------------------------------------------------------------------------------------

    def _begin(self, state: State, runtime: str) -> Iterable[State]:
        if state.node[runtime].phase != "off" and state.guard in FREE:
            yield _next(state, guard=runtime)

    def _leave(self, state: State, runtime: str) -> Iterable[State]:
        if state.guard == runtime and state.node[runtime].phase in SETTLED:
            yield _next(state, guard="nobody")

    def _decide(self, state: State, runtime: str, kind: Deciding, phase: str, cause: str = "") -> Iterable[State]:
        """The machine decides on what its adapter has read; what it goes on to write starts as a copy of that."""
        node = state.node[runtime]
        answer = self._show(state, runtime, kind)
        if answer is None or answer[0].phase != phase or (cause and not self._spend(state, cause)):
            return
        after = answer[0]
        if phase in ("minting", *WRITING):
            draft = after.draft
            for k in self.config.keys:
                if k != node.key and state.readable:
                    draft = draft.set(k, Id(state.entry[k].owner, state.entry[k].epoch))
            if phase == "minting" and state.readable:
                draft = draft.set(node.key, Id(state.entry[node.key].owner, state.entry[node.key].epoch))
            after = attrs.evolve(after, draft=draft)
        for output in answer[1]:
            if isinstance(output, RunEffect) and (output.key, output.epoch) != (node.tenure.key, node.tenure.epoch):
                return
        yield _next(state, node=state.node.set(runtime, after), budget=state.budget - 1 if cause else state.budget)

    def _acquire(self, state: State, runtime: str) -> Iterable[State]:
        return self._decide(state, runtime, Acquire, "minting")

    def _elect(self, state: State, runtime: str) -> Iterable[State]:
        return self._decide(state, runtime, Elect, "minting")

    def _force(self, state: State, runtime: str) -> Iterable[State]:
        return self._decide(state, runtime, Force, "minting", "force")

    def _supersede(self, state: State, runtime: str) -> Iterable[State]:
        return self._decide(state, runtime, Supersede, "minting")

    def _resume(self, state: State, runtime: str) -> Iterable[State]:
        return self._decide(state, runtime, Resume, "minting", "resume")

    def _mint(self, state: State, runtime: str) -> Iterable[State]:
        if state.guard != runtime:
            return
        node = state.node[runtime]
        lease = state.entry[node.key] if state.readable else NOBODY
        for epoch in range(1, state.highwater + lease.epoch + 2):
            said = (epoch, state.highwater, lease.epoch)
            if said not in self.mints:
                self.mints[said] = Mint(epoch, state.highwater, lease.epoch or None)
            answer = self._ask(state, runtime, self.mints[said])
            if answer is not None:
                if answer[1] == (RaiseHighWater(answer[0].tenure.epoch),):
                    yield _next(state, node=state.node.set(runtime, answer[0]))
                return

    def _told(self, state: State, runtime: str, message: Happening, cause: str = "") -> Iterable[State]:
        """What follows when the machine takes `message` inside the transaction, at the expense of `cause`."""
        answer = self._ask(state, runtime, message)
        if answer is not None and state.guard == runtime and (not cause or self._spend(state, cause)):
            budget = state.budget - 1 if cause else state.budget
            yield _next(state, node=state.node.set(runtime, answer[0]), budget=budget)

    def _abandon(self, state: State, runtime: str) -> Iterable[State]:
        return self._told(state, runtime, self.abandons, "write")

    def _raise(self, state: State, runtime: str) -> Iterable[State]:
        for after in self._told(state, runtime, self.raised[True]):
            yield _next(after, highwater=state.node[runtime].tenure.epoch)

    def _fail_raise(self, state: State, runtime: str, landed: bool) -> Iterable[State]:
        for after in self._told(state, runtime, self.raised[False], "write"):
            yield _next(after, highwater=state.node[runtime].tenure.epoch) if landed else after

    def _landed(self, state: State, runtime: str) -> State:
        """The file as it is once the write of `runtime` is in place, and who is displaced by it in its time."""
        node = state.node[runtime]
        entry = state.entry
        for k, drafted in node.draft.items():
            lease = entry[k]
            if k == node.key or drafted != Id(lease.owner, lease.epoch):
                entry = entry.set(k, attrs.evolve(NOBODY, owner=drafted.owner, epoch=drafted.epoch))
        before = state.entry[node.key]
        evicted = state.evicted
        if before.owner in self.me and self._kept(state, before) and before.age == "fresh":
            evicted |= {before.owner}
        return _next(state, entry=entry, readable=True, evicted=evicted - {runtime})

    def _settle(self, state: State, runtime: str, outcome: Outcome, landed: bool, budget: int) -> Iterable[State]:
        if state.guard != runtime:
            return
        answer = self._ask(state, runtime, self.settles[outcome])
        if answer is not None:
            after = self._landed(state, runtime) if landed else state
            yield _next(after, node=state.node.set(runtime, answer[0]), budget=budget)

    def _write(self, state: State, runtime: str) -> Iterable[State]:
        return self._settle(state, runtime, Outcome.SUCCEEDED, True, state.budget)

    def _fail_write(self, state: State, runtime: str) -> Iterable[State]:
        if not self._spend(state, "write"):
            return ()
        return self._settle(state, runtime, Outcome.FAILED, False, state.budget - 1)

    def _lose_write(self, state: State, runtime: str, landed: bool) -> Iterable[State]:
        if not self._spend(state, "write"):
            return ()
        return self._settle(state, runtime, Outcome.UNKNOWN, landed, state.budget - 1)

    def _truncate(self, state: State, runtime: str) -> Iterable[State]:
        writes = state.guard == runtime and state.node[runtime].phase in WRITING
        if self.guard("replaced_by_rename", False) and writes and state.readable:
            yield _next(state, readable=False)

    # -- owning --------------------------------------------------------------------------------------------------------

    def _resolve(self, state: State, runtime: str) -> Iterable[State]:
        answer = self._show(state, runtime, Resolve)
        if answer is not None:
            yield _next(state, node=state.node.set(runtime, answer[0]))

    def _refresh(self, state: State, runtime: str) -> Iterable[State]:
        return self._decide(state, runtime, Refresh, "renewing")

    def _displaced(self, state: State, runtime: str) -> Iterable[State]:
        for after in self._decide(state, runtime, Refresh, "idle"):
            yield _next(after, evicted=state.evicted - {runtime})

    def _release(self, state: State, runtime: str) -> Iterable[State]:
        return self._decide(state, runtime, Release, "deleting", "release")

    def _commit(self, state: State, runtime: str) -> Iterable[State]:
        return self._decide(state, runtime, Commit, "committing")

    def _land(self, state: State, runtime: str) -> Iterable[State]:
        answer = self._ask(state, runtime, self.lands)
        if answer is not None:
            tenure = state.node[runtime].tenure
            yield _next(state, node=state.node.set(runtime, answer[0]), fence=state.fence.set(tenure.key, tenure.epoch))

    def _send(self, state: State, runtime: str) -> Iterable[State]:
        if state.flight[runtime] != NO_TENURE:
            return
        answer = self._ask(state, runtime, self.sends)
        if answer is None:
            return
        for output in answer[1]:
            if isinstance(output, SendEffect):
                yield _next(state, flight=state.flight.set(runtime, Held(output.key, output.epoch)))

    def _arrive(self, state: State, runtime: str) -> Iterable[State]:
        sent = state.flight[runtime]
        if sent == NO_TENURE:
            return
        fence = state.fence
        if self.guard("not_below_fence", admits(fence[sent.key], sent.epoch)):
            fence = fence.set(sent.key, sent.epoch)
        yield _next(state, flight=state.flight.set(runtime, NO_TENURE), fence=fence)

    def _look(self, state: State, runtime: str) -> Iterable[State]:
        answer = self._show(state, runtime, Look)
        if answer is not None and answer[0] != state.node[runtime]:
            yield _next(state, node=state.node.set(runtime, answer[0]), evicted=state.evicted - {runtime})

    def _switch(self, state: State, runtime: str, key: str) -> Iterable[State]:
        answer = self._ask(state, runtime, self.switches[key])
        if answer is None or state.guard == runtime or state.node[runtime].key == key:
            return
        if self._spend(state, "switch"):
            yield _next(state, node=state.node.set(runtime, answer[0]), budget=state.budget - 1)

    # -- properties ----------------------------------------------------------------------------------------------------

    def _here(self, runtime: str, lease: Lease) -> bool:
        return lease.owner in self.me and self.process[lease.owner] == self.process[runtime]

    def _dead(self, lease: Lease) -> bool:
        return lease.life == "dead" or (lease.owner in self.me and lease.life == "reborn")

    def _stale(self, runtime: str, lease: Lease) -> bool:
        if lease.owner == "none":
            return False
        if self._dead(lease):
            return True
        if self._here(runtime, lease):
            return False
        if lease.owner in self.me:
            return lease.age == "passed"
        return lease.clock == "passed" or (lease.clock == "future" and lease.age == "passed")

    def _newer(self, state: State, runtime: str, lease: Lease) -> bool:
        return (
            self._here(runtime, lease)
            and lease.life == "alive"
            and state.node[runtime].generation > state.node[lease.owner].generation
        )

    def _won(self, before: State, after: State) -> tuple[str, Lease] | None:
        """Who has become the owner of its key in this step, and whom it replaced."""
        if before.entry is after.entry:
            return None
        for runtime, node in before.node.items():
            if node.phase == "placing":
                now, was = after.entry[node.key], before.entry[node.key]
                mine = (runtime, node.tenure.epoch)
                if (now.owner, now.epoch) == mine and (was.owner, was.epoch) != mine:
                    return runtime, was
        return None

    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        return {"OneOwner_S14": self._one_owner, "FreshEpoch_S19": self._fresh_generation}

    def steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        return {
            "OneOwner_S11": self._no_key_lost,
            "OneOwner_S13": self._never_torn,
            "OneOwner_S18": self._newer_owns,
            "OneOwner_S21": self._refresh_keeps_owner,
            "OneOwner_S22": self._not_forgotten,
            "OneOwner_S23": self._vanishes_by_owner,
            "FreshEpoch_S20": self._fresh_epoch,
            "NoStaleEffect_A14": self._never_older,
            "NoStaleEffect_S24": self._lands_while_owned,
            "NoStaleEffect_K11": self._silent_past_lease,
            "ReplaceOnlyObserved_S12": self._unreadable_kept,
            "ReplaceOnlyObserved_S15": self._live_kept,
            "ReplaceOnlyObserved_S16": self._elected_over_seen,
            "ReplaceOnlyObserved_S17": self._newcomer_kept,
            "ReplaceOnlyObserved_S33": self._resumed_over_seen,
        }

    def eventually(self) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
        return {
            "EventuallyOwned_V4": tuple(self._ends(self._deserted, k) for k in self.config.keys),
            "EventuallyOwned_V9": tuple(self._ends(self._outlived, k) for k in self.config.keys),
        }

    def fairness(self) -> tuple[Fair, ...]:
        self.actions()
        conditions = [fair(Strength.WEAK, self.age, k) for k in self.config.keys]
        conditions.append(fair(Strength.WEAK, self.mend))
        for r in self.runtimes:
            conditions.append(
                Fair(Strength.WEAK, frozenset((name, (r,)) for name in ("Mint", "Raise", "Write", "Land")))
            )
            conditions.append(Fair(Strength.WEAK, frozenset({("Look", (r,))})))
            for name in ("Leave", "Begin", "Acquire", "Supersede", "Resolve"):
                conditions.append(Fair(Strength.STRONG, frozenset({(name, (r,))})))
        return tuple(conditions)

    def _ends(self, holds: Callable[[State, str], bool], key: str) -> LeadsTo[State]:
        return LeadsTo(lambda s: holds(s, key), lambda s: not holds(s, key))

    def _one_owner(self, state: State) -> bool:
        off = "mine_to_own" in self.off
        for k in self.config.keys:
            owning = 0
            for r, node in state.node.items():
                if node.tenure.key == k and node.phase in HOLDING:
                    owning += off or self._names(state, state.entry[k], r)
            if owning > 1:
                return False
        return True

    def _fresh_generation(self, state: State) -> bool:
        for mates in self.mates.values():
            alive = [n.generation for m in mates if (n := state.node[m]).phase != "off"]
            if len(set(alive)) < len(alive):
                return False
        return True

    def _no_key_lost(self, before: State, after: State) -> bool:
        if before.entry is after.entry:
            return True
        for k, lease in before.entry.items():
            now = after.entry[k]
            if (now.owner, now.epoch) != (lease.owner, lease.epoch):
                for r, node in before.node.items():
                    if node.phase != after.node[r].phase and node.key != k:
                        return False
        return True

    def _never_torn(self, before: State, after: State) -> bool:
        return after.readable or not before.readable or after.budget < before.budget

    def _newer_owns(self, before: State, after: State) -> bool:
        won = self._won(before, after)
        if won is None:
            return True
        runtime, was = won
        if not self._here(runtime, was) or self._dead(was):
            return True
        return before.node[runtime].generation > before.node[was.owner].generation

    def _refresh_keeps_owner(self, before: State, after: State) -> bool:
        for r, node in before.node.items():
            if node.phase == "renewing" and after.node[r].phase == "owner":
                was, now = before.entry[node.key], after.entry[node.key]
                if (was.owner, was.epoch) != (now.owner, now.epoch):
                    return False
        return True

    def _not_forgotten(self, before: State, after: State) -> bool:
        for r, node in before.node.items():
            if node.phase in HOLDING and after.node[r].phase == "idle":
                lease = after.entry[node.tenure.key]
                if lease.owner == r and lease.epoch == node.tenure.epoch:
                    return False
        return True

    def _vanishes_by_owner(self, before: State, after: State) -> bool:
        if before.entry is after.entry:
            return True
        return all(
            lease.owner == "none"
            or after.entry[k].owner != "none"
            or any(n.phase == "deleting" and self._names(before, lease, r) for r, n in before.node.items())
            for k, lease in before.entry.items()
        )

    def _fresh_epoch(self, before: State, after: State) -> bool:
        won = self._won(before, after)
        if won is None:
            return True
        runtime = won[0]
        epoch = before.node[runtime].tenure.epoch
        return (
            all(epoch > taken for taken in before.fence.values())
            and all(epoch != lease.epoch for lease in before.entry.values())
            and all(epoch != sent.epoch for sent in before.flight.values())
            and all(r == runtime or epoch != n.tenure.epoch for r, n in before.node.items())
        )

    def _never_older(self, before: State, after: State) -> bool:
        return all(after.fence[k] >= taken for k, taken in before.fence.items())

    def _lands_while_owned(self, before: State, after: State) -> bool:
        return all(
            node.phase != "committing"
            or after.node[r].phase != "owner"
            or self._names(before, before.entry[node.tenure.key], r)
            for r, node in before.node.items()
        )

    def _silent_past_lease(self, before: State, after: State) -> bool:
        if before.flight is after.flight:
            return True
        return all(
            sent == NO_TENURE
            or before.flight[r] != NO_TENURE
            or r in before.evicted
            or self._names(before, before.entry[sent.key], r)
            for r, sent in after.flight.items()
        )

    def _unreadable_kept(self, before: State, after: State) -> bool:
        if before.readable or before.entry is after.entry:
            return True
        return all(
            (lease.owner, lease.epoch) == (after.entry[k].owner, after.entry[k].epoch)
            for k, lease in before.entry.items()
        )

    def _live_kept(self, before: State, after: State) -> bool:
        won = self._won(before, after)
        if won is None:
            return True
        runtime, was = won
        node = before.node[runtime]
        if was.owner == "none" or self._here(runtime, was) or self._stale(runtime, was):
            return True
        return node.mode == "forced" and node.shown == Id(was.owner, was.epoch)

    def _elected_over_seen(self, before: State, after: State) -> bool:
        won = self._won(before, after)
        if won is None:
            return True
        runtime, was = won
        node = before.node[runtime]
        if node.mode != "election" or was.owner == "none" or node.shown.owner == "none":
            return True
        return node.shown == Id(was.owner, was.epoch) and self._stale(runtime, was)

    def _newcomer_kept(self, before: State, after: State) -> bool:
        won = self._won(before, after)
        if won is None:
            return True
        node = before.node[won[0]]
        return node.mode != "election" or node.shown.owner != "none" or won[1].owner == "none"

    def _resumed_over_seen(self, before: State, after: State) -> bool:
        won = self._won(before, after)
        if won is None:
            return True
        runtime, was = won
        node = before.node[runtime]
        return node.mode != "resume" or (was.owner != "none" and node.shown == Id(was.owner, was.epoch))

    def _deserted(self, state: State, key: str) -> bool:
        lease = state.entry[key]
        if lease.age == "fresh" and self._kept(state, lease):
            return False
        return any(
            node.phase != "off"
            and node.key == key
            and node.tenure.key in (key, "none")
            and (
                lease.owner == "none"
                or self._dead(lease)
                or (lease.owner == r and node.phase not in HOLDING)
                or not self._here(r, lease)
            )
            for r, node in state.node.items()
        )

    def _outlived(self, state: State, key: str) -> bool:
        lease = state.entry[key]
        return any(
            node.key == key and node.phase == "idle" and self._newer(state, r, lease) for r, node in state.node.items()
        )


def _next(
    state: State,
    entry: FrozenMap[str, Lease] | None = None,
    readable: bool | None = None,
    highwater: int | None = None,
    guard: str | None = None,
    node: FrozenMap[str, Node] | None = None,
    flight: FrozenMap[str, Held] | None = None,
    fence: FrozenMap[str, int] | None = None,
    evicted: frozenset[str] | None = None,
    budget: int | None = None,
) -> State:
    """`state` with what is given changed; four times as fast as attrs.evolve."""
    return State(
        state.entry if entry is None else entry,
        state.readable if readable is None else readable,
        state.highwater if highwater is None else highwater,
        state.guard if guard is None else guard,
        state.node if node is None else node,
        state.flight if flight is None else flight,
        state.fence if fence is None else fence,
        state.evicted if evicted is None else evicted,
        state.budget if budget is None else budget,
    )


def _number(owner: Owner) -> int:
    return owner.leader_epoch if isinstance(owner.leader_epoch, int) else 0
