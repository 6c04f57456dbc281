"""The twin of `spec/FencedCommit.tla`: committers with their machine and their commands, owners, one entry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ClassVar, Final

import attrs

from tenure.machines.entry import Entry as Written
from tenure.machines.fenced_commit import (
    FENCED_COMMIT,
    Ask,
    Commit,
    Ended,
    Forget,
    GiveUp,
    GraceOver,
    Happening,
    Interrupt,
    Lock,
    Look,
    RunCommand,
    Swept,
    TimeUp,
)
from tenure.machines.identity import GONE, RUNNING, Birth, Process, Sighting
from tenure.machines.laws import Law
from tenure.machines.lease import DEFAULT_KEY, Sight
from tenure.models.world import Action, Fair, FrozenMap, LeadsTo, Strength, World, prohibition, taken


@attrs.frozen(cache_hash=True)
class Lease:
    """What the registry says of the key; `state`: fresh, passed, dead, none."""

    epoch: int
    state: str


@attrs.frozen(cache_hash=True)
class Node:
    """A committer: the machine's phase and its `Commit`, as far as it changes."""

    phase: str
    token: int = 0
    outcome: str = "none"


@attrs.frozen(cache_hash=True)
class Command:
    """What a committer has started; `state`: none, running, deaf (it ignores SIGTERM)."""

    state: str = "none"
    epoch: int = 0


IDLE: Final = Node("idle")
NONE: Final = Command()
FREE: Final = ("nobody", "abandoned")
OPEN: Final = ("waiting", "entering", "running", "ending")
LOCKED: Final = ("entering", "running", "ending")


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    entry: Lease
    readable: bool
    told: bool
    guard: str
    node: FrozenMap[str, Node]
    command: FrozenMap[str, Command]
    stray: bool
    budget: int


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off."""

    committers: tuple[str, ...]
    budget: int


CONFIGS: Mapping[str, Config] = {
    "calm": Config(("c",), budget=0),
    "alone": Config(("c",), budget=2),
    "pair": Config(("c", "d"), budget=1),
}
"""The configurations of the manifest by name; each equals `spec/FencedCommit_<name>.cfg`."""

Body = Callable[[State, str], Iterable[State]]

# What a state stands for in numbers: a lease of 10 ms, stamped at 0 by a process of this boot, seen at 0 or at 11.
_BOOT: Final = "boot"
_ME: Final = Process(1, Birth(1, _BOOT, 0))
_OWNER: Final = Process(2, Birth(2, _BOOT, 0))
_STALE_MS: Final = 10


class FencedCommit(World[State]):
    """Commands that run inside the ownership transaction, or not at all."""

    module: ClassVar[str] = "FencedCommit"
    tables = (FENCED_COMMIT,)
    environment = (prohibition("lock_is_inherited", Law.FENCE), prohibition("dies_with_committer", Law.FENCE))

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.table = self.weakened(FENCED_COMMIT)

    def initial(self) -> Iterable[State]:
        node = FrozenMap({p: IDLE for p in self.config.committers})
        command = FrozenMap({p: NONE for p in self.config.committers})
        yield State(Lease(1, "fresh"), True, False, "nobody", node, command, False, self.config.budget)

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((p,) for p in self.config.committers)
        bodies: dict[str, Body] = {
            "Ask": lambda s, p: self._ask(s, p, "waiting"),
            "AskStale": lambda s, p: self._ask(s, p, "stale"),
            "AskInVain": lambda s, p: self._ask(s, p, "failed"),
            "Lock": self._lock,
            "GiveUp": self._give_up,
            "Enter": self._enter,
            "Run": lambda s, p: self._look(s, p, "running"),
            "FindStale": lambda s, p: self._look(s, p, "stale"),
            "FindNothing": lambda s, p: self._look(s, p, "failed"),
            "End": self._end,
            "TimeUp": self._time_up,
            "Interrupt": lambda s, p: self._interrupt(s, p, "ending"),
            "Cancel": lambda s, p: self._interrupt(s, p, "failed"),
            "Obey": self._obey,
            "Kill": self._kill,
            "Leave": self._leave,
            "Forget": self._forget,
            "Harden": self._harden,
            "Crash": self._crash,
        }
        alone: dict[str, Callable[[State], Iterable[State]]] = {
            "StrayEnds": lambda s: _if(s.stray, attrs.evolve(s, stray=False)),
            "Come": lambda s: _if(s.guard in FREE, attrs.evolve(s, guard="other")),
            "Go": lambda s: _if(s.guard == "other", attrs.evolve(s, guard="nobody")),
            "Take": self._take,
            "Renew": lambda s: _written(s, Lease(s.entry.epoch, "fresh")) if s.entry.state == "passed" else (),
            "Release": self._release,
            "Pass": lambda s: _if(s.entry.state == "fresh", attrs.evolve(s, entry=Lease(s.entry.epoch, "passed"))),
            "Die": self._die,
            "Tell": lambda s: _if(s.entry.state != "fresh" and not s.told, attrs.evolve(s, told=True)),
            "Tear": lambda s: _if(s.readable and s.budget > 0, attrs.evolve(s, readable=False, budget=s.budget - 1)),
            "Mend": lambda s: _if(not s.readable, attrs.evolve(s, readable=True)),
        }
        return (
            *(Action(name, body, each) for name, body in bodies.items()),
            *(Action(name, body) for name, body in alone.items()),
        )

    # -- a committer ----------------------------------------------------------

    def _moved(self, state: State, p: str, message: Happening) -> State | None:
        """The world after the machine took the message and its outputs were performed, or None for a refusal. A
        machine that has told its caller has left the guard."""
        node = state.node[p]
        memory = Commit(_ME, _STALE_MS, node.token, node.outcome)  # type: ignore[arg-type]
        done = taken(self.step(self.table, node.phase, memory, message))
        if done is None:
            return None
        assert isinstance(done.data.token, int)
        after = attrs.evolve(state, node=state.node.set(p, Node(done.phase, done.data.token, done.data.outcome)))
        for output in done.outputs:
            if isinstance(output, RunCommand):
                assert isinstance(output.epoch, int)
                after = attrs.evolve(after, command=after.command.set(p, Command("running", output.epoch)))
        if done.phase not in OPEN and after.guard == p:
            after = attrs.evolve(after, guard="nobody")
        return after

    def _ask(self, state: State, p: str, phase: str) -> Iterable[State]:
        for token in range(1, state.entry.epoch + 1):
            after = self._moved(state, p, Ask(token, _sight(state, p)))
            if after is not None and after.node[p].phase == phase:
                yield after

    def _lock(self, state: State, p: str) -> Iterable[State]:
        others = any(n.phase in LOCKED for q, n in state.node.items() if q != p)
        left = state.stray or any(c.state != "none" for c in state.command.values())
        free = not others and self.guard("lock_is_inherited", not left)
        return _some(self._moved(state, p, Lock(free)))

    def _give_up(self, state: State, p: str) -> Iterable[State]:
        return () if state.guard == p else _some(self._moved(state, p, GiveUp()))

    def _enter(self, state: State, p: str) -> Iterable[State]:
        return _if(state.node[p].phase == "entering" and state.guard in FREE, attrs.evolve(state, guard=p))

    def _look(self, state: State, p: str, phase: str) -> Iterable[State]:
        after = self._moved(state, p, Look(_sight(state, p)))
        return () if after is None or after.node[p].phase != phase else (after,)

    def _end(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, Ended())
        return () if after is None else {after, _gone(after, p)}

    def _time_up(self, state: State, p: str) -> Iterable[State]:
        return _some(self._moved(state, p, TimeUp()))

    def _interrupt(self, state: State, p: str, phase: str) -> Iterable[State]:
        after = self._moved(state, p, Interrupt())
        if after is None or after.node[p].phase != phase or state.budget == 0:
            return ()
        return (attrs.evolve(after, budget=state.budget - 1),)

    def _obey(self, state: State, p: str) -> Iterable[State]:
        asked = state.node[p].phase == "ending" and state.command[p].state == "running"
        return (_gone(state, p),) if asked else ()

    def _kill(self, state: State, p: str) -> Iterable[State]:
        if state.command[p].state == "none":
            return ()
        after = self._moved(state, p, GraceOver())
        return () if after is None else (_gone(after, p),)

    def _leave(self, state: State, p: str) -> Iterable[State]:
        return _some(self._moved(state, p, Swept(gone=state.command[p].state == "none")))

    def _forget(self, state: State, p: str) -> Iterable[State]:
        return _some(self._moved(state, p, Forget()))

    # -- faults ---------------------------------------------------------------

    def _harden(self, state: State, p: str) -> Iterable[State]:
        command = state.command[p]
        if command.state != "running" or state.node[p].phase != "running" or state.budget == 0:
            return ()
        return (
            attrs.evolve(state, command=state.command.set(p, Command("deaf", command.epoch)), budget=state.budget - 1),
        )

    def _crash(self, state: State, p: str) -> Iterable[State]:
        if state.node[p].phase not in OPEN or state.budget == 0:
            return
        dead = attrs.evolve(
            state,
            node=state.node.set(p, IDLE),
            guard="abandoned" if state.guard == p else state.guard,
            budget=state.budget - 1,
        )
        yield _gone(dead, p)
        if state.command[p].state != "none":
            yield attrs.evolve(_gone(dead, p), stray=True)
            if self.guard("dies_with_committer", False):
                yield dead

    # -- owners ---------------------------------------------------------------

    def _take(self, state: State) -> Iterable[State]:
        for after in _written(state, Lease(state.entry.epoch + 1, "fresh")):
            if state.budget > 0:
                yield attrs.evolve(after, budget=state.budget - 1)

    def _release(self, state: State) -> Iterable[State]:
        owned = state.entry.state in ("fresh", "passed")
        return _written(state, Lease(state.entry.epoch, "none")) if owned else ()

    def _die(self, state: State) -> Iterable[State]:
        alive = state.entry.state in ("fresh", "passed")
        return _if(
            alive and state.budget > 0,
            attrs.evolve(state, entry=Lease(state.entry.epoch, "dead"), budget=state.budget - 1),
        )

    # -- properties -----------------------------------------------------------

    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        return {"NoStaleCommand_S24": _no_stale_command, "OneCommandAtATime": _one_command_at_a_time}

    def steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        return {"NothingAfterTheEnd_K11": self._nothing_after_the_end, "StaleIsProven": self._stale_is_proven}

    def eventually(self) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
        return {
            "OthersGetIn": tuple(_leaves(p) for p in self.config.committers),
            "CommitAnswers": tuple(_answers(p) for p in self.config.committers),
        }

    def fairness(self) -> tuple[Fair, ...]:
        together = (("Lock", "GiveUp"), ("Run", "FindStale", "FindNothing"), ("TimeUp",), ("Kill",), ("Leave",))
        return tuple(
            Fair(Strength.WEAK, frozenset((name, (p,)) for name in names))
            for p in self.config.committers
            for names in together
        )

    def _nothing_after_the_end(self, before: State, after: State) -> bool:
        begins = any(
            before.command[p].state == "none" and after.command[p].state != "none" for p in self.config.committers
        )
        return not (begins and before.told)

    def _stale_is_proven(self, before: State, after: State) -> bool:
        return not any(
            before.node[p].phase != "stale"
            and after.node[p].phase == "stale"
            and before.entry == Lease(before.node[p].token, "fresh")
            for p in self.config.committers
        )


def _sight(state: State, p: str) -> Sight:
    """What a committer reads, inside of the guard or outside."""
    lease, entry = state.entry, None
    if state.readable and lease.state != "none":
        entry = Written(_OWNER.pid, leader_epoch=lease.epoch, birth=_OWNER.birth, stamp_ms=0)
    seen = Sighting(GONE) if lease.state == "dead" else Sighting(RUNNING, _OWNER.birth.ticks)
    now = _STALE_MS + 1 if lease.state == "passed" else 0
    return Sight(state.guard == p, state.readable, DEFAULT_KEY, entry, seen, 0, now)


def _if(holds: bool, after: State) -> tuple[State, ...]:
    return (after,) if holds else ()


def _some(after: State | None) -> tuple[State, ...]:
    return () if after is None else (after,)


def _gone(state: State, p: str) -> State:
    return attrs.evolve(state, command=state.command.set(p, NONE))


def _written(state: State, after: Lease) -> tuple[State, ...]:
    """An owner writes, and leaves."""
    told = state.told and after.state == "none"
    return _if(state.guard == "other" and state.readable, attrs.evolve(state, entry=after, told=told, guard="nobody"))


def _no_stale_command(state: State) -> bool:
    return all(
        c.state == "none" or (state.entry.state != "none" and state.entry.epoch == c.epoch)
        for c in state.command.values()
    )


def _one_command_at_a_time(state: State) -> bool:
    return sum(c.state != "none" for c in state.command.values()) + state.stray <= 1


def _leaves(p: str) -> LeadsTo[State]:
    return LeadsTo(lambda s: s.guard == p, lambda s: s.guard != p)


def _answers(p: str) -> LeadsTo[State]:
    return LeadsTo(lambda s: s.node[p].phase in OPEN, lambda s: s.node[p].phase not in OPEN)
