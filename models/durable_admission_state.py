"""What the twin of DurableAdmission is made of: its state, its bounds, and what is true of a state.

The values of the machines and those of the module are turned into each other here as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

import attrs

from tenure.machines.admission_identity import delivery_id
from tenure.machines.chart import Step
from tenure.machines.delivery import Row as RowSeen
from tenure.machines.forwarding import PATIENCE, aside
from tenure.machines.forwarding_messages import Output, Update
from tenure.machines.receipt_messages import Holder, Receipt
from tenure.models.world import FrozenMap

KIND: Final = "leader.forwardMessage"
NO: Final = "none"
NOTHING: Final = -1
"""No poll is under way."""
NEWEST: Final = -2
"""A negative offset."""
LIMIT: Final = 2
"""Attempts that may fail."""
MUTE: Final = 1
"""Of it no answer comes, whoever is asked, where the causes say so."""
HOME: Final = {"a": "A", "b": "B", "c": "B"}
"""Which binding a process serves."""
LIVE: Final = frozenset({"journaled", "forwarding", "waiting"})
SHOWN: Final = frozenset({"interrupted", "failed"})


@attrs.frozen(cache_hash=True)
class Node:
    """A process. `epoch`: of which it believes to lead, 0 is none; `reg`: it is registered with the leader; `poll`: the
    offset of its poll that is under way; `got`: an update that was answered and is not journaled; `anew`: though
    the request was for more than Telegram has numbered; `skips`: as history;
    `sending`: whose answer it waits for."""

    up: str = "yes"
    epoch: int = 0
    reg: bool = False
    poll: int = NOTHING
    got: int = 0
    skips: bool = False
    sending: frozenset[int] = frozenset()
    anew: bool = False


IDLE: Final = Node()


@attrs.frozen(cache_hash=True)
class Msg:
    """A forward to an instance, or its answer. `g`: 0 in the id that a delivery has, 1 in another one."""

    kind: str
    to: str
    epoch: int
    i: int
    b: str
    g: int
    body: int = 1
    pos: int = 0
    ok: bool = False


@attrs.frozen(cache_hash=True)
class Row:
    """The leader's row of an update: its machine's phase, and whom it is bound to. `tries`: of one that is mute."""

    phase: str
    binding: str
    tries: int = 0


@attrs.frozen(cache_hash=True)
class Work:
    """A delivery, the phase of its machine, and that of its receipt's. `at`: under which binding it was journaled;
    `did`: its owner remembers that it has had its effect; `tries`: of those that fail."""

    i: int
    b: str
    g: int
    at: str
    body: int
    phase: str = "journaled"
    receipt: str = "pending"
    owner: str = NO
    did: bool = False
    tries: int = 0


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    sent: int
    confirmed: int
    node: FrozenMap[str, Node]
    net: frozenset[Msg]
    target: FrozenMap[int, str]
    fence: int
    opened: bool
    offset: int
    update: FrozenMap[int, Row]
    work: frozenset[Work]
    effects: FrozenMap[int, int]
    unwanted: frozenset[int]
    harm: frozenset[str]
    budget: int


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off."""

    processes: tuple[str, ...]
    leaders: frozenset[str]
    last: int
    first: bool
    target: str
    poison: frozenset[int]
    room: int
    causes: frozenset[str]
    budget: int

    @property
    def updates(self) -> tuple[int, ...]:
        """Their numbers."""
        return tuple(range(1, self.last + 1))

    @property
    def mute(self) -> frozenset[int]:
        """Those of whom no answer comes."""
        return frozenset({MUTE} if "mute" in self.causes else ())


# -- to the machines and back -----------------------------------------------------------------------------------------


@cache
def id_of(b: str, i: int, g: int) -> str:
    """The delivery id that a message says."""
    genuine = delivery_id(KIND, b, i)
    return genuine if g == 0 else f"{genuine} under a generation"


@cache
def update_of(i: int, row: Row) -> Update:
    """The machine's memory of an update."""
    return Update(i, KIND, None if row.binding == NO else row.binding, row.tries)


@cache
def holder(p: str) -> Holder:
    """A process as the owner of a receipt; it acquires each of them once."""
    return Holder(p, p, 0, p)


@cache
def receipt_of(d: Work) -> Receipt:
    """The machine's memory of a receipt."""
    return Receipt(LIMIT, None if d.owner == NO else holder(d.owner), attempts=d.tries)


def seen(row: Row) -> RowSeen:
    """What an instance sees of the leader's row."""
    return "none" if row.phase == "absent" else "live" if row.phase in LIVE else "over"


# -- what is true -----------------------------------------------------------------------------------------------------


def leads(node: Node) -> bool:
    """As it believes."""
    return node.up == "yes" and node.epoch > 0


def current(state: State, p: str) -> bool:
    """It leads."""
    return leads(state.node[p]) and state.node[p].epoch == state.fence


def same(d: Work, other: Work | Msg) -> bool:
    """One delivery id."""
    return (d.i, d.b, d.g) == (other.i, other.b, other.g)


def of(state: State, i: int) -> Iterable[Work]:
    """The deliveries of an update."""
    return (d for d in state.work if d.i == i)


def admitted(state: State, i: int) -> bool:
    """Whom the update is bound to has it."""
    return any(d.b == state.update[i].binding for d in of(state, i))


def gone(state: State, b: str) -> bool:
    """Nobody will serve that binding again."""
    return all(node.up == "dead" for p, node in state.node.items() if HOME[p] == b)


def routed(state: State, p: str, b: str) -> list[str]:
    """To whom this leader sends what is for `b`. One that was displaced has its routes still."""
    now = current(state, p)
    return [
        q for q, node in state.node.items() if q != p and HOME[q] == b and node.up == "yes" and (node.reg or not now)
    ]


def wanted(state: State, i: int) -> set[str]:
    """For whom an update may be."""
    return {state.target[i], state.update[i].binding} - {NO}


def owner_of(state: State, i: int) -> str:
    """For whom an update is."""
    bound = state.update[i].binding
    return state.target[i] if bound == NO else bound


def under_way(state: State) -> int:
    """How many deliveries take up room."""
    return sum(d.phase == "journaled" for d in state.work)


# -- what becomes of a state ------------------------------------------------------------------------------------------


def with_node(state: State, p: str, node: Node) -> State:
    """That process is like this now."""
    return attrs.evolve(state, node=state.node.set(p, node))


def with_update(state: State, i: int, done: Step[Update, Output], mute: frozenset[int] = frozenset()) -> State:
    """What the leader's machine has become; attempts are counted where it matters."""
    row = Row(done.phase, done.data.binding or NO, min(done.data.attempts, PATIENCE) if i in mute else 0)
    return attrs.evolve(state, update=state.update.set(i, row))


def with_work(state: State, d: Work, after: Work | None) -> tuple[State, ...]:
    """That work is like this now; no state where it is None."""
    return () if after is None else (attrs.evolve(state, work=(state.work - {d}) | {after}),)


def unheard(state: State, epoch: int) -> frozenset[Msg]:
    """Without the answers that nobody waits for any more."""
    return frozenset(m for m in state.net if m.kind == "forward" or m.epoch != epoch)


def answer(state: State, m: Msg, ok: bool, b: str, g: int) -> frozenset[Msg]:
    """An answer to `m`, if somebody waits for it."""
    listens = any(n.up == "yes" and n.epoch == m.epoch and m.i in n.sending for n in state.node.values())
    return frozenset({Msg("ack", m.to, m.epoch, m.i, b, g, ok=ok)} if listens else ())


# -- properties -------------------------------------------------------------------------------------------------------


def nothing_lost(state: State) -> bool:
    passed = 0 if state.offset > state.sent else state.offset  # that is no id of now
    upto = max(passed, state.confirmed)
    return "unsafe" not in state.harm and all(_held(state, i) for i in state.update if i <= upto)


def _held(state: State, i: int) -> bool:
    known = state.update[i].phase in LIVE or i in state.unwanted or state.effects[i] > 0
    return known or any(True for _ in of(state, i))


def stable_delivery(state: State) -> bool:
    return len({(d.i, d.b) for d in state.work}) == len(state.work)


def at_most_once(state: State) -> bool:
    return all(times <= 1 for times in state.effects.values())


def own_binding(state: State) -> bool:
    return all(HOME[d.owner] == d.b for d in state.work if d.owner != NO)


def exact_receipt(before: State, after: State) -> bool:
    return all(
        any(d.b == row.binding and d.g == 0 for d in of(before, i))
        for i, row in before.update.items()
        if row.phase == "forwarding" and after.update[i].phase == "delivered"
    )


def stale_leader_inert(before: State, after: State) -> bool:
    return not before.opened or all(
        before.update[i].phase == "skipped" for i, row in after.update.items() if row.phase == "skipped"
    )


def resolved(state: State, config: Config, i: int) -> bool:
    done = state.effects[i] > 0 or i in state.unwanted or any(d.receipt in SHOWN for d in of(state, i))
    row = state.update[i]
    in_vain = row.phase == "waiting" and aside(update_of(i, row))
    return done or in_vain or _nobody(state, config, i)


def _nobody(state: State, config: Config, i: int) -> bool:
    leaderless = all(state.node[p].up != "yes" for p in config.leaders)
    return leaderless or gone(state, state.target[i]) or any(gone(state, d.at) for d in of(state, i))
