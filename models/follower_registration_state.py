"""What the twin of FollowerRegistration is made of: its state, its bounds, and what is true of a state.

The values of the machines and those of the module are turned into each other here as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

import attrs

from tenure.machines import follower_messages as own
from tenure.machines import routes_messages as lead
from tenure.machines.chart import Step
from tenure.machines.follower_messages import Memory
from tenure.models.world import FrozenMap


@attrs.frozen(cache_hash=True)
class Node:
    """One follower: its machine's phase and memory; 0 is none."""

    phase: str
    session: int
    generation: int
    acknowledged: bool
    beating: bool
    abandoned: int
    own_key: bool
    target: int


@attrs.frozen(cache_hash=True)
class Call:
    """A call of a follower that has not returned."""

    kind: str
    gen: int


@attrs.frozen(cache_hash=True)
class Outside:
    """What is true around one follower, whatever it remembers."""

    up: str
    lead: str
    session: int
    calls: frozenset[Call]


@attrs.frozen(cache_hash=True)
class Msg:
    """A request, an answer, or work on its way."""

    kind: str
    who: str
    gen: int
    lead: str
    session: int = 0
    own: bool = False
    target: int = 0
    ok: bool = False
    held: bool = False


@attrs.frozen(cache_hash=True)
class Entry:
    """A route; `heard` is the leader's stamp, `silent` what is true."""

    who: str
    gen: int
    key: str
    target: int
    heard: int
    silent: bool


@attrs.frozen(cache_hash=True)
class Change:
    """A change of a profile that is under way."""

    kind: str
    who: str
    gen: int
    key: str
    target: int
    session: int
    asked: bool
    done: bool


@attrs.frozen(cache_hash=True)
class Intent:
    """On disk: a thread to be deleted."""

    who: str
    gen: int
    key: str
    target: int


@attrs.frozen(cache_hash=True)
class Thread:
    """A thread that exists, and who registered with it last."""

    target: int
    who: str
    gen: int
    key: str


@attrs.frozen(cache_hash=True)
class Route:
    """One leader's routes."""

    phase: str
    entries: frozenset[Entry]
    mutations: frozenset[Change]


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    node: FrozenMap[str, Node]
    outside: FrozenMap[str, Outside]
    net: frozenset[Msg]
    route: FrozenMap[str, Route]
    intents: frozenset[Intent]
    threads: frozenset[Thread]
    epoch: str
    harm: frozenset[str]
    budget: int


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off."""

    instances: tuple[str, ...]
    relation: str
    causes: frozenset[str]
    budget: int
    beating: frozenset[str] = frozenset()
    odd: frozenset[str] = frozenset()
    outsiders: frozenset[str] = frozenset()
    claims: frozenset[str] = frozenset()


LEADERS: Final = ("L1", "L2")
NONE: Final = "none"
BOUND_MS: Final = 1
"""The bound of silence in this world: a stamp is 0 (older than the bound) or 1, and prune looks at 2."""

ASKED: Final = {"registered": "register", "beaten": "beat", "gone": "goodbye"}
ANSWER: Final = {call: answer for answer, call in ASKED.items()}
REQUESTS: Final = frozenset({"register", "beat", "goodbye", "ask"})
CLOSED: Final = Route("closed", frozenset(), frozenset())
REQUEST_OF: Final = {"register": "registered", "heartbeat": "beaten", "disconnect": "gone"}


class Draft:
    """A successor in the making."""

    __slots__ = ("budget", "epoch", "harm", "intents", "net", "node", "outside", "route", "threads")

    def __init__(self, state: State, budget: int | None = None) -> None:
        self.node, self.outside, self.net, self.route = state.node, state.outside, state.net, state.route
        self.intents, self.threads, self.epoch, self.harm = state.intents, state.threads, state.epoch, state.harm
        self.budget = state.budget if budget is None else budget

    def state(self) -> State:
        """The state, frozen."""
        return State(
            self.node, self.outside, self.net, self.route, self.intents, self.threads, self.epoch, self.harm,
            self.budget,
        )  # fmt: skip

    def harmed(self, name: str, happened: bool) -> None:
        """Note what must not happen."""
        if happened:
            self.harm = self.harm | {name}

    def calls(self, p: str, calls: frozenset[Call]) -> None:
        """``[outside EXCEPT ![p].calls = calls]``."""
        around = self.outside[p]
        self.outside = self.outside.set(p, Outside(around.up, around.lead, around.session, calls))

    def told(self, answer: Msg) -> None:
        """An answer goes where somebody still waits for it."""
        kind = ASKED[answer.kind]
        if any(c.kind == kind and c.gen == answer.gen for c in self.outside[answer.who].calls):
            self.net = self.net | {answer}


# -- values of the machines and of the module -------------------------------------------------------------------------

FAILED: Final[Mapping[str, Callable[[int], own.Happening]]] = {
    "register": own.RegisterFailed,
    "beat": own.BeatFailed,
    "goodbye": own.DisconnectFailed,
}


def number_of(value: int | str | None) -> int:
    """A number of this world; 0 for None."""
    return value if isinstance(value, int) else 0


def node_of(done: Step[Memory, own.Output]) -> Node:
    data = done.data
    return Node(
        done.phase, data.session, number_of(data.generation), data.acknowledged, data.beating,
        number_of(data.abandoned), data.own_key, number_of(data.binding.target),
    )  # fmt: skip


def intent_for(i: Intent) -> lead.Intent:
    return lead.Intent(i.who, i.gen, i.key, i.target)


def intent_of(i: lead.Intent) -> Intent:
    return Intent(i.instance, number_of(i.generation), i.key, number_of(i.target))


def session_of(kind: str, p: str, gen: int, sessions: Mapping[tuple[str, int], int]) -> int:
    return sessions.get((p, gen), 0) if kind == "registered" else 0


def change_of(u: lead.Mutation, was: Mapping[tuple[str, str, int, bool], Change], new: int) -> Change:
    gen = number_of(u.generation)
    before = was.get((u.kind, u.instance, gen, u.asked))
    session, done = (new if u.kind == "register" else 0, False) if before is None else (before.session, before.done)
    return Change(u.kind, u.instance, gen, u.key, number_of(u.binding.target), session, u.asked, done)


def entry_of(e: lead.Entry, was: Entry | None) -> Entry:
    silent = was is not None and was.heard == e.heard and was.silent
    return Entry(e.instance, number_of(e.generation), e.key, number_of(e.binding.target), e.heard, silent)


# -- what is true -----------------------------------------------------------------------------------------------------


def least(used: Collection[int]) -> int:
    number = 1
    while number in used:
        number += 1
    return number


def fresh(state: State) -> int:
    used = {m.gen for m in state.net} | {t.gen for t in state.threads} | {i.gen for i in state.intents}
    for route in state.route.values():
        used |= {e.gen for e in route.entries} | {u.gen for u in route.mutations}
    for p, node in state.node.items():
        used |= {node.generation, node.abandoned} | {c.gen for c in state.outside[p].calls}
    return least(used)


def post(draft: Draft, request: Msg) -> None:
    """To whom nobody listens, nothing is sent: the call has no answer."""
    if draft.route[request.lead].phase == "serving":
        draft.net = draft.net | {request}


def epoch(state: State) -> str | None:
    return None if state.epoch == NONE else state.epoch


def current(state: State, x: str, p: str, gen: int) -> bool:
    return any(e.who == p and e.gen == gen for e in state.route[x].entries)


def routed(state: State, p: str) -> bool:
    return state.epoch != NONE and current(state, state.epoch, p, state.node[p].generation)


def hopeless(state: State, p: str, call: Call) -> bool:
    """No answer can come any more."""
    kinds = (call.kind, ANSWER[call.kind])
    if any(m.who == p and m.gen == call.gen and m.kind in kinds for m in state.net):
        return False
    return not any(
        u.who == p and u.gen == call.gen and u.asked for route in state.route.values() for u in route.mutations
    )


def unheard(net: frozenset[Msg], x: str) -> frozenset[Msg]:
    return frozenset(m for m in net if m.lead != x or m.kind not in REQUESTS)


def one_route(s: State) -> bool:
    for route in s.route.values():
        for field in ("who", "key", "target"):
            if len({getattr(e, field) for e in route.entries}) < len(route.entries):
                return False
    return True


def begun_under_its_epoch(before: State, after: State) -> bool:
    for x, route in after.route.items():
        was = before.route[x]
        if before.epoch != x and any(not current(before, x, e.who, e.gen) for e in route.entries):
            return False
        if before.epoch != x and not route.mutations <= was.mutations:
            return False
    return True
