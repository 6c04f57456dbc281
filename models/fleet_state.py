"""What the twin of Fleet is made of: its state, its bounds, and what must hold of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from tenure.models.succession_state import Call, Entry, Node
from tenure.models.world import FrozenMap, LeadsTo


@attrs.frozen(cache_hash=True)
class Link:
    """The follower's half of a registration; `gone`: a request that was given up and has not returned."""

    phase: str
    gen: int
    lead: str
    gone: int


@attrs.frozen(cache_hash=True)
class Ask:
    """A register request on its way: `said` none, heard, ok, no."""

    to: str
    gen: int
    said: str


@attrs.frozen(cache_hash=True)
class Route:
    """A route, or a change that will write one."""

    who: str
    gen: int


@attrs.frozen(cache_hash=True)
class Table:
    """The leader's half; `epoch` 0: closed."""

    epoch: int
    routes: frozenset[Route]
    changes: frozenset[Route]


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    node: FrozenMap[str, Node]
    call: FrozenMap[str, Call]
    timer: FrozenMap[str, str]
    record: FrozenMap[str, str]
    proc: FrozenMap[str, str]
    entry: Entry
    serving: bool
    budget: int
    link: FrozenMap[str, Link]
    ask: FrozenMap[str, Ask]
    table: FrozenMap[str, Table]
    epoch: int


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off."""

    followers: tuple[str, ...]
    causes: frozenset[str]
    budget: int


IDLE: Final = Link("idle", 0, "none", 0)
NOTHING: Final = Ask("none", 0, "none")
CLOSED: Final = Table(0, frozenset(), frozenset())


def up(state: State, x: str) -> bool:
    """It runs."""
    return state.proc[x] == "up"


def owns(state: State, p: str) -> bool:
    """Its lease is live."""
    return state.entry.owner == p and not state.entry.passed


def is_over(state: State) -> bool:
    """The lease of the owner has passed, or its process is dead."""
    return state.entry.owner != "none" and (state.entry.passed or state.proc[state.entry.owner] == "dead")


def _able(state: State, p: str) -> bool:
    return up(state, p) and state.node[p].phase != "ended"


def _some(state: State) -> bool:
    return any(_able(state, p) for p in state.node)


def _led(state: State, x: str) -> bool:
    leads = x == "L" or (x != "none" and state.node[x].phase == "leading")
    return leads and state.entry.owner == x and not is_over(state) and up(state, x)


def _with(state: State, p: str, x: str) -> bool:
    link = state.link[p]
    registered = state.node[p].phase == "following" and (link.phase, link.lead) == ("registered", x)
    return registered and Route(p, link.gen) in state.table[x].routes and state.record[p] == "follower"


def settled(state: State) -> bool:
    """One leads, and everybody else is registered with it."""
    x = state.entry.owner
    return _led(state, x) and all(_with(state, p, x) for p in state.node if p != x and _able(state, p))


def one_leader(before: State, after: State) -> bool:
    """A route is written by the leader of that moment."""
    return all(
        after.table[x].routes <= table.routes or (before.entry.owner == x and before.epoch == table.epoch)
        for x, table in before.table.items()
    )


def eventually(config: Config) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
    """The promises of EventuallySettled."""
    everybody = (*config.followers, "L")
    return {
        "EventuallySettled_V2": LeadsTo(_some, lambda s: settled(s) or not _some(s)),
        "EventuallySettled_V7": tuple(_joins(p, x) for p in config.followers for x in everybody if p != x),
        "EventuallySettled_V14": tuple(map(_stands, config.followers)),
    }


def _joins(p: str, x: str) -> LeadsTo[State]:
    def should(state: State) -> bool:
        return _able(state, p) and _led(state, x)

    return LeadsTo(should, lambda s: _with(s, p, x) or not should(s))


def _stands(p: str) -> LeadsTo[State]:
    return LeadsTo(
        lambda s: _able(s, p) and s.node[p].phase in ("electing", "starting"),
        lambda s: _led(s, s.entry.owner) or not _able(s, p),
    )
