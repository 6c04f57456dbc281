"""What the twin of Succession is made of: its state, its bounds, and what must hold of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from tenure.machines.chart import Step
from tenure.machines.follower_messages import NOTHING_BOUND, Binding
from tenure.machines.succession_messages import Memory, Output
from tenure.models.world import FrozenMap, LeadsTo

Taken = Step[Memory, Output]


@attrs.frozen(cache_hash=True)
class Node:
    """One process: its machine's phase, and its memory with the names of the module. `bound`: whose thread it has."""

    phase: str
    leader: str
    endpoint: int
    roster: frozenset[str]
    session: int
    deferred: bool
    bound: str


@attrs.frozen(cache_hash=True)
class Call:
    """The call that a process waits for: register, elect, won; `to` whom; `live`: for a session that was there."""

    kind: str = "none"
    to: str = "none"
    live: bool = True


@attrs.frozen(cache_hash=True)
class Entry:
    """The registry's entry."""

    owner: str = "none"
    passed: bool = False


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    node: FrozenMap[str, Node]
    call: FrozenMap[str, Call]
    late: FrozenMap[str, str]
    timer: FrozenMap[str, str]
    record: FrozenMap[str, str]
    route: FrozenMap[str, bool]
    proc: FrozenMap[str, str]
    entry: Entry
    serving: bool
    readable: bool
    budget: int


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off."""

    followers: tuple[str, ...]
    joining: frozenset[str]
    causes: frozenset[str]
    budget: int

    @property
    def slotted(self) -> frozenset[str]:
        """The followers that have a slot."""
        return frozenset(p for p in self.followers if p in SLOTS)


SLOTS: Final = {"a": "A", "b": "B"}
NUMBERS: Final = {"none": 0, "L": 1, "a": 2, "b": 3, "z": 4}
"""What stands for an exact entry in messages."""
NAMES: Final = {number: name for name, number in NUMBERS.items()}
BOUND: Final = {
    p: {"own": Binding(number, SLOTS.get(p), p), "new": Binding(9, SLOTS.get(p), p), "none": NOTHING_BOUND}
    for p, number in NUMBERS.items()
}
ASTRAY: Final = 2
"""The number of an endpoint that is not the owner's."""
NO_CALL: Final = Call()
NO_ENTRY: Final = Entry()
GONE: Final = Node("ended", "none", 0, frozenset(), 0, False, "none")


def memory_of(p: str, node: Node) -> Memory:
    """What the machine of `p` remembers."""
    return Memory(
        binding=BOUND[p][node.bound],
        roster=tuple(sorted(SLOTS[q] for q in node.roster)),
        session=node.session,
        leader=NUMBERS[node.leader],
        endpoint=node.endpoint,
        deferred=node.deferred,
    )


def node_of(p: str, done: Taken) -> Node:
    """Phase and memory of `p` after a step."""
    data = done.data
    bound = next(name for name, binding in BOUND[p].items() if binding == data.binding)
    roster = frozenset(q for q, slot in SLOTS.items() if slot in data.roster)
    return Node(done.phase, NAMES[data.leader], data.endpoint, roster, data.session, data.deferred, bound)


def up(state: State, x: str) -> bool:
    """It runs."""
    return state.proc[x] == "up"


def owns(state: State, p: str) -> bool:
    """Its lease is live."""
    return state.entry.owner == p and not state.entry.passed


def is_over(state: State) -> bool:
    """The lease of the owner has passed, or its process is dead."""
    return state.entry.owner != "none" and (state.entry.passed or state.proc[state.entry.owner] == "dead")


def is_leading(state: State) -> bool:
    """The owner has begun to lead."""
    owner = state.entry.owner
    return owner == "L" or (owner != "none" and state.node[owner].phase == "leading")


def healthy(state: State, p: str) -> bool:
    """A heartbeat of `p` would be answered with ok."""
    owner = state.entry.owner
    return owner == state.node[p].leader and reachable(state, owner) and state.route[p]


def reachable(state: State, x: str) -> bool:
    """`x` leads, and answers at its endpoint."""
    return x == state.entry.owner and is_leading(state) and up(state, x) and state.serving


def stalls(owner: str, proc: Mapping[str, str]) -> bool:
    """One that does not own the entry hangs: until the owner has published its endpoint, that of this one is found."""
    return any(is_ == "hung" and x != owner for x, is_ in proc.items())


def published(serving: bool, owner: str, proc: Mapping[str, str]) -> int:
    """What stands at the leader's endpoint: 0 nothing, 1 the owner, `ASTRAY` one before it that hangs."""
    return 1 if serving else ASTRAY if stalls(owner, proc) else 0


def able(state: State, p: str) -> bool:
    """It may lead."""
    return up(state, p) and state.node[p].phase != "ended" and state.node[p].session != 0


def _some(state: State) -> bool:
    return any(able(state, p) for p in state.node)


def _led(state: State, x: str) -> bool:
    return state.entry.owner == x and not is_over(state) and up(state, x) and is_leading(state)


def _is_led(state: State) -> bool:
    return state.entry.owner != "none" and _led(state, state.entry.owner)


def _with(state: State, p: str, x: str) -> bool:
    node = state.node[p]
    member = node.phase == "following" and node.leader == x and state.route[p]
    return member and node.bound == "own" and state.record[p] == "follower"


def _leads(state: State, x: str) -> bool:
    return up(state, x) and (x == "L" or state.node[x].phase in ("starting", "leading"))


def _one_winner(state: State) -> bool:
    return sum(_leads(state, x) for x in state.proc) <= 1


def _no_storm(state: State) -> bool:
    return sum(n.phase == "electing" and not n.deferred and bool(n.roster) for n in state.node.values()) <= 1


INVARIANTS: Final[Mapping[str, Callable[[State], bool]]] = {"OneWinner": _one_winner, "OneWinner_A56": _no_storm}


def _each(holds: Callable[[State, State, str], bool]) -> Callable[[State, State], bool]:
    return lambda before, after: all(holds(before, after, p) for p in before.node)


def _wins(before: State, after: State, p: str) -> bool:
    return before.call[p].kind != "won" and after.call[p].kind == "won"


def _over_live(before: State, after: State, p: str) -> bool:
    return not _wins(before, after, p) or before.entry.owner == "none" or is_over(before)


def _observed(before: State, after: State, p: str) -> bool:
    return not _wins(before, after, p) or before.entry.owner == before.call[p].to


def _moves(before: State, after: State, p: str) -> bool:
    return not (before.record[p] == "follower" and after.record[p] == "leader") or owns(before, p)


def _registered(before: State, after: State, p: str) -> bool:
    begins = before.node[p].phase != "following" and after.node[p].phase == "following"
    return not begins or after.route[p]


def _stays(before: State, after: State, p: str) -> bool:
    well = up(before, p) and before.node[p].phase == "following" and healthy(before, p)
    return not well or after.node[p].phase == "following" or after.budget < before.budget


def _pauses(before: State, after: State, p: str) -> bool:
    was, now = before.node[p], after.node[p]
    again = was.phase in ("grace", "waiting") and now.phase == "registering"
    same = now.leader == was.leader and now.endpoint == was.endpoint
    return not (again and same) or before.timer[p] == "due"


STEPS: Final[Mapping[str, Callable[[State, State], bool]]] = {
    "NoPromotionOverLive_S31": _each(_over_live),
    "NoPromotionOverLive_I8": _each(_observed),
    "BindingMovesAfterWinning_S32": _each(_moves),
    "LateIsInert_I5": _each(_registered),
    "LateIsInert_Healthy": _each(_stays),
    "LateIsInert_Pause": _each(_pauses),
}


def eventually(config: Config) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
    """The promises of EventuallyOneLeader."""
    followers, everybody = config.followers, (*config.followers, "L")
    return {
        "EventuallyOneLeader_V4": LeadsTo(
            lambda s: _some(s) and not _is_led(s), lambda s: _is_led(s) or not _some(s)
        ),
        "EventuallyOneLeader_V5": tuple(map(_hangs, everybody)),
        "EventuallyOneLeader_V6": tuple(map(_defers, followers)),
        "EventuallyOneLeader_V7": tuple(_joins(p, x) for p in followers for x in followers if p != x),
        "EventuallyOneLeader_V8": tuple(_joins(p, "L") for p in followers),
        "EventuallyOneLeader_V14": tuple(map(_stands, followers)),
    }  # fmt: skip


def _hangs(x: str) -> LeadsTo[State]:
    def hangs(state: State) -> bool:
        return state.entry.owner == x and state.proc[x] == "hung"

    return LeadsTo(lambda s: _some(s) and hangs(s), lambda s: not hangs(s) or not _some(s))


def _defers(p: str) -> LeadsTo[State]:
    def defers(state: State) -> bool:
        return able(state, p) and state.node[p].phase == "deferring"

    return LeadsTo(defers, lambda s: not defers(s))


def _joins(p: str, x: str) -> LeadsTo[State]:
    def should(state: State) -> bool:
        return able(state, p) and _led(state, x)

    return LeadsTo(should, lambda s: _with(s, p, x) or not should(s))


def _stands(p: str) -> LeadsTo[State]:
    return LeadsTo(
        lambda s: able(s, p) and s.node[p].phase in ("electing", "starting"),
        lambda s: _is_led(s) or not able(s, p),
    )
