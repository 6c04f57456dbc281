"""The twin of `spec/RuntimeRecovery.tla`: recoverers with their machine, one owner that comes and goes, three files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ClassVar, Final

import attrs

from tenure.machines.runtime_recovery import (
    GUARD,
    NOTHING,
    REGISTRY,
    RUNTIME_RECOVERY,
    STATE,
    Confirm,
    Connect,
    Enter,
    Failed,
    Finish,
    Happening,
    Inspect,
    Look,
    Memory,
    MoveGuard,
    MoveRegistry,
    MoveState,
    ReleaseEnded,
    Secure,
    SecureFailed,
    Standing,
    Started,
    StartFailed,
    StartRefused,
    SuspendEnded,
)
from tenure.models.world import Action, Fair, FrozenMap, LeadsTo, Strength, World, taken

OWNER: Final = "o"
ANSWERED: Final = frozenset({"idle", "connected", "blocked"})
"""Phases in which the operator has an answer."""


@attrs.frozen(cache_hash=True)
class Registry:
    """The owner registry; `owner` is a runtime, none, a dead one (ghost), or one whose pid is reused (stranger)."""

    kind: str
    owner: str = "none"
    fresh: bool = False


MISSING: Final = Registry("missing")
TORN: Final = Registry("damaged")
EMPTY: Final = Registry("valid")


def entry(owner: str) -> Registry:
    """The registry with `owner`'s fresh entry."""
    return Registry("valid", owner, True)


@attrs.frozen(cache_hash=True)
class Node:
    """A recoverer: the machine's phase and its `Memory`."""

    phase: str
    polling: bool = False
    again: bool = False
    seen: frozenset[str] = NOTHING


IDLE: Final = Node("idle")


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    registry: Registry
    state: str
    guard: str
    recovery: str
    owner: str
    node: FrozenMap[str, Node]
    budget: int


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off."""

    recoverers: tuple[str, ...]
    housemates: frozenset[str] = frozenset()
    broken: bool = False
    budget: int = 0


CONFIGS: Mapping[str, Config] = {
    "apart": Config(("p", "q")),
    "together": Config(("p",), housemates=frozenset({"p"}), budget=2),
    "broken": Config(("p",), broken=True),
}
"""The configurations of the manifest by name; each equals `spec/RuntimeRecovery_<name>.cfg`."""

Body = Callable[[State, str], Iterable[State]]


class RuntimeRecovery(World[State]):
    """Damage after an unclean shutdown, who heals it, and an owner that may come at any moment."""

    module: ClassVar[str] = "RuntimeRecovery"
    tables = (RUNTIME_RECOVERY,)

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.table = self.weakened(RUNTIME_RECOVERY)

    def initial(self) -> Iterable[State]:
        node = FrozenMap({p: IDLE for p in self.config.recoverers})
        for registry in (MISSING, TORN, entry("ghost")):
            for state in ("good", "damaged"):
                for guard in ("nobody", "abandoned", "damaged"):
                    yield State(registry, state, guard, "nobody", "out", node, self.config.budget)

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((p,) for p in self.config.recoverers)
        bodies: dict[str, Body] = {
            "Connect": self._connect,
            "Start": self._start,
            "StartRefused": self._start_refused,
            "StartFails": lambda s, p: self._throw(s, p, "looking"),
            "GiveUp": lambda s, p: self._throw(s, p, "blocked"),
            "Look": lambda s, p: self._look(s, p, "suspending"),
            "LookBlocked": lambda s, p: self._look(s, p, "blocked"),
            "Suspend": lambda s, p: self._suspend(s, p, "releasing"),
            "SuspendFails": lambda s, p: self._suspend(s, p, "blocked"),
            "Release": self._release,
            "ReleaseFails": self._release_fails,
            "Enter": self._enter,
            "Inspect": lambda s, p: self._inspect(s, p, "clearing"),
            "InspectBlocked": lambda s, p: self._inspect(s, p, "blocked"),
            "MoveGuard": self._move_guard,
            "Secure": self._secure,
            "SecureFails": self._secure_fails,
            "Confirm": lambda s, p: self._confirm(s, p, "moving"),
            "ConfirmBlocked": lambda s, p: self._confirm(s, p, "blocked"),
            "MoveRegistry": self._move_registry,
            "MoveState": self._move_state,
            "Fail": self._fail,
            "Finish": self._finish,
            "Crash": self._crash,
        }
        return (
            *(Action(name, body, each) for name, body in bodies.items()),
            Action("Begin", self._begin),
            Action("Commit", self._commit),
            Action("Withdraw", self._withdraw),
            Action("ReusePid", self._reuse_pid),
            Action("Expire", self._expire),
            Action("DamageRegistry", self._damage_registry),
            Action("DamageState", self._damage_state),
            Action("DamageGuard", self._damage_guard),
        )

    # -- what is there --------------------------------------------------------

    def _alive(self, state: State) -> bool:
        return state.registry.owner not in ("none", "ghost")

    def _mine(self, state: State, p: str) -> bool:
        return state.registry.owner == p or (state.registry.owner == OWNER and p in self.config.housemates)

    def _owned(self, state: State) -> bool:
        return state.registry.owner == OWNER or state.registry.owner in self.config.recoverers

    def _seen(self, state: State) -> frozenset[str]:
        damage = ((GUARD, state.guard), (REGISTRY, state.registry.kind), (STATE, state.state))
        return frozenset(name for name, standing in damage if standing == "damaged")

    def _passable(self, state: State) -> bool:
        return state.guard in ("nobody", "abandoned")

    def _elsewhere(self, state: State, p: str) -> bool:
        return self._alive(state) and state.registry.fresh and not self._mine(state, p)

    def _moved(self, state: State, p: str, message: Happening, phase: str = "") -> State | None:
        """The state after `p`'s machine took the message, or None if it refused or went elsewhere than to `phase`."""
        node = state.node[p]
        done = taken(self.step(self.table, node.phase, Memory(node.polling, node.again, node.seen), message))
        if done is None or phase not in ("", done.phase):
            return None
        data = done.data
        return attrs.evolve(state, node=state.node.set(p, Node(done.phase, data.polling, data.again, data.seen)))

    # -- a recoverer ----------------------------------------------------------

    def _connect(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, Connect())
        return () if after is None else (after,)

    def _start(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, Started())
        fit = self._passable(state) and not self._seen(state) and not self._elsewhere(state, p)
        if after is None or not fit or self.config.broken:
            return ()
        owner = "out" if state.registry.owner == OWNER else state.owner
        return (attrs.evolve(after, registry=entry(p), state="good", guard="nobody", owner=owner),)

    def _start_refused(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, StartRefused())
        return (after,) if after is not None and self._passable(state) and self._elsewhere(state, p) else ()

    def _throw(self, state: State, p: str, phase: str) -> Iterable[State]:
        after = self._moved(state, p, StartFailed(), phase)
        stopped = self._seen(state) & {GUARD, REGISTRY}
        free = self._passable(state) and not self._elsewhere(state, p)
        throws = stopped or (free and (state.state == "damaged" or self.config.broken))
        return (after,) if after is not None and throws else ()

    def _look(self, state: State, p: str, phase: str) -> Iterable[State]:
        after = self._moved(state, p, Look(self._alive(state), not state.registry.fresh), phase)
        return () if after is None else (after,)

    def _suspend(self, state: State, p: str, phase: str) -> Iterable[State]:
        if (after := self._moved(state, p, SuspendEnded(True), phase)) is not None:
            yield after
        after = self._moved(state, p, SuspendEnded(False), phase)
        if after is not None and state.node[p].polling and state.budget > 0:
            yield attrs.evolve(after, budget=state.budget - 1)

    def _release(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, ReleaseEnded(True))
        if after is None or not self._passable(state) or state.registry.kind == "damaged":
            return ()
        return (attrs.evolve(after, registry=EMPTY) if state.registry.owner == p else after,)

    def _release_fails(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, ReleaseEnded(False))
        return (after,) if after is not None and self._seen(state) & {GUARD, REGISTRY} else ()

    def _enter(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, Enter(_standing(state.recovery)))
        return () if after is None else (attrs.evolve(after, recovery=p),)

    def _inspect(self, state: State, p: str, phase: str) -> Iterable[State]:
        message = Inspect(self._alive(state), not state.registry.fresh, self._seen(state))
        if (after := self._moved(state, p, message, phase)) is None:
            return ()
        return (self._left(after, p) if phase == "blocked" else after,)

    def _move_guard(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, MoveGuard())
        return () if after is None or state.guard == "nobody" else (attrs.evolve(after, guard="nobody"),)

    def _secure(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, Secure(_standing(state.guard)))
        return () if after is None else (attrs.evolve(after, guard=p),)

    def _secure_fails(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, SecureFailed())
        return () if after is None or state.guard != "damaged" else (self._left(after, p),)

    def _confirm(self, state: State, p: str, phase: str) -> Iterable[State]:
        message = Confirm(
            alive=self._alive(state),
            expired=not state.registry.fresh,
            mine=self._mine(state, p),
            own_guard=state.guard == p,
            damage=self._seen(state),
        )
        if (after := self._moved(state, p, message, phase)) is None:
            return ()
        return (self._left(after, p) if phase == "blocked" else after,)

    def _move_registry(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, MoveRegistry())
        return () if after is None or state.registry.kind == "missing" else (attrs.evolve(after, registry=MISSING),)

    def _move_state(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, MoveState())
        return () if after is None or state.state == "missing" else (attrs.evolve(after, state="missing"),)

    def _fail(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, Failed())
        if after is None or state.budget == 0:
            return ()
        return (attrs.evolve(self._left(after, p), budget=state.budget - 1),)

    def _finish(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, Finish())
        return () if after is None else (self._left(after, p),)

    def _left(self, state: State, p: str) -> State:
        """`p` holds neither guard any more."""
        return attrs.evolve(
            state,
            guard="nobody" if state.guard == p else state.guard,
            recovery="nobody" if state.recovery == p else state.recovery,
        )

    # -- the owner ------------------------------------------------------------

    def _begin(self, state: State) -> Iterable[State]:
        if not self._passable(state):
            return ()
        if state.owner == "owning":
            return (attrs.evolve(state, guard=OWNER, owner="refreshing"),)
        if state.owner == "out" and not (self._alive(state) and state.registry.fresh):
            return (attrs.evolve(state, guard=OWNER, owner="acquiring"),)
        return ()

    def _commit(self, state: State) -> Iterable[State]:
        if state.owner not in ("acquiring", "refreshing"):
            return ()
        mine = state.owner == "acquiring" or state.registry.owner == OWNER
        left = self._left(state, OWNER)
        if mine and state.registry.kind != "damaged":
            return (attrs.evolve(left, registry=entry(OWNER), owner="owning"),)
        return (attrs.evolve(left, owner="out"),)

    def _withdraw(self, state: State) -> Iterable[State]:
        if state.owner != "owning" or not self._passable(state):
            return ()
        registry = EMPTY if state.registry.owner == OWNER else state.registry
        return (attrs.evolve(state, registry=registry, guard="nobody", owner="out"),)

    # -- faults and time ------------------------------------------------------

    def _crash(self, state: State, p: str) -> Iterable[State]:
        if state.budget == 0 or state.node[p] == IDLE:
            return ()
        dead = {p, OWNER} if p in self.config.housemates else {p}
        return (
            attrs.evolve(
                state,
                node=state.node.set(p, IDLE),
                registry=entry("ghost") if state.registry.owner in dead else state.registry,
                guard="abandoned" if state.guard in dead else state.guard,
                recovery="abandoned" if state.recovery == p else state.recovery,
                owner="out" if OWNER in dead else state.owner,
                budget=state.budget - 1,
            ),
        )

    def _reuse_pid(self, state: State) -> Iterable[State]:
        if state.budget == 0 or state.registry.owner != "ghost":
            return ()
        return (attrs.evolve(state, registry=entry("stranger"), budget=state.budget - 1),)

    def _expire(self, state: State) -> Iterable[State]:
        if state.registry.owner != "stranger" or not state.registry.fresh:
            return ()
        return (attrs.evolve(state, registry=attrs.evolve(state.registry, fresh=False)),)

    def _damage_registry(self, state: State) -> Iterable[State]:
        if state.budget == 0 or state.registry.kind == "damaged" or state.owner in ("acquiring", "refreshing"):
            return ()
        return (attrs.evolve(state, registry=TORN, budget=state.budget - 1),)

    def _damage_state(self, state: State) -> Iterable[State]:
        if state.budget == 0 or state.state == "damaged":
            return ()
        return (attrs.evolve(state, state="damaged", budget=state.budget - 1),)

    def _damage_guard(self, state: State) -> Iterable[State]:
        refreshes = state.owner == "refreshing" and state.guard == OWNER and state.registry.owner == OWNER
        if state.budget == 0 or not (state.guard == "nobody" or refreshes):
            return ()
        return (attrs.evolve(state, guard="damaged", budget=state.budget - 1),)

    # -- properties -----------------------------------------------------------

    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        return {"OneMutator_S36": self._one_mutator, "MoverIsQuiet_S36": self._mover_is_quiet}

    def steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        return {
            "QuarantineOnlyUnowned_S36": self._quarantine_only_unowned,
            "QuarantineOnce_S36": self._quarantine_once,
        }

    def eventually(self) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
        return {
            "EventuallyHealed_V13": LeadsTo(
                lambda s: bool(self._seen(s)), lambda s: not self._seen(s) or self._owned(s)
            ),
            "ConnectAnswers_V13": tuple(self._answers(p) for p in self.config.recoverers),
        }

    def fairness(self) -> tuple[Fair, ...]:
        together = (
            (Strength.WEAK, ("Connect",)),
            (Strength.STRONG, ("Start", "StartRefused", "StartFails", "GiveUp")),
            (Strength.WEAK, ("Look", "LookBlocked")),
            (Strength.WEAK, ("Suspend", "SuspendFails")),
            (Strength.STRONG, ("Release", "ReleaseFails")),
            (Strength.STRONG, ("Enter",)),
            (Strength.WEAK, ("Inspect", "InspectBlocked")),
            (Strength.STRONG, ("MoveGuard", "Secure", "SecureFails")),
            (Strength.WEAK, ("Confirm", "ConfirmBlocked")),
            (Strength.WEAK, ("MoveRegistry", "MoveState", "Finish")),
        )
        return (
            *(
                Fair(strength, frozenset((name, (p,)) for name in names))
                for p in self.config.recoverers
                for strength, names in together
            ),
            Fair(Strength.WEAK, frozenset({("Commit", ())})),
            Fair(Strength.WEAK, frozenset({("Expire", ())})),
        )

    def _one_mutator(self, state: State) -> bool:
        robbed = (p for p, n in state.node.items() if n.phase in ("confirming", "moving") and state.guard != p)
        if state.owner == "acquiring" and state.guard != OWNER:
            return False
        return not any(robbed) and (state.owner != "refreshing" or state.guard in (OWNER, "damaged"))

    def _mover_is_quiet(self, state: State) -> bool:
        return not any(n.polling for n in state.node.values() if n.phase in ("clearing", "confirming", "moving"))

    def _quarantine_only_unowned(self, before: State, after: State) -> bool:
        moved = (
            before.registry.kind != "missing" == after.registry.kind
            or before.state != "missing" == after.state
            or before.guard == "damaged" != after.guard
        )
        return not (moved and self._owned(before))

    def _quarantine_once(self, before: State, after: State) -> bool:
        registry = after.registry.kind == "missing" and before.registry.kind not in ("missing", "damaged")
        state = after.state == "missing" and before.state not in ("missing", "damaged")
        return not (registry or state)

    def _answers(self, p: str) -> LeadsTo[State]:
        return LeadsTo(lambda s: s.node[p].phase not in ANSWERED, lambda s: s.node[p].phase in ANSWERED)


def _standing(holder: str) -> Standing:
    if holder == "nobody":
        return "nobody"
    if holder == "abandoned":
        return "abandoned"
    return "damaged" if holder == "damaged" else "held"
