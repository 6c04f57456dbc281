"""The twin of `QueueHandoff` as its binding has it: a configuration, and what is added.

What the journal and its drivers do in one step may be several of the twin: `paths`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import attrs

from tenure.adapters.verify.bind.handoff_seen import UNREAD
from tenure.machines.receipt_messages import Taken
from tenure.models.queue_handoff import QueueHandoff
from tenure.models.queue_handoff_state import (
    NOTHING,
    Copy,
    State,
    answer,
    here,
)
from tenure.models.world import Action

_CAUSES: Final = "move crash check lose repeat late unknown unreadable reregister person poison"
CAUSES: Final = frozenset(_CAUSES.split())
"""Every fault that may happen here may happen in the twin; how many there are is bounded here."""


@attrs.frozen
class Setting:
    """One configuration. `causes`: what may befall the nodes; `moves`: how often an item may be offered; `budget`: how
    often something befalls them, and how many calls of a database fail, together."""

    nodes: tuple[str, ...] = ("a", "b")
    causes: frozenset[str] = frozenset()
    moves: int = 1
    budget: int = 1
    limit: int = 1
    looks: bool = False
    """A worker may look at any moment of an acceptance, and not only where it finds something."""


class Twin(QueueHandoff):
    """The twin, whose faults cost nothing: how many there are is bounded where they happen."""

    def _spend(self, state: State, cause: str) -> State | None:
        return state if cause in self.config.causes else None

    def actions(self) -> tuple[Action[State], ...]:
        nodes = tuple((p,) for p in self.config.nodes)
        more = Action("RefuseUnread", self._refuse_unread, nodes), Action("TakeBeside", self._take_beside, nodes)
        return (*super().actions(), *more)

    def _take_beside(self, state: State, p: str) -> Iterable[State]:
        """Its recipient has given it back, and a worker takes it while its donor still waits for what comes of that."""
        copy = state.node[p]
        done = self._taken(state, p) if copy.phase in ("awaiting", "cancelling", "looking", "staged") else None
        if done is not None and here(state, p) and isinstance(done.outputs[0], Taken):
            yield self._put(state, p, copy, done)

    def _refuse_unread(self, state: State, r: str) -> Iterable[State]:
        """Whose journal cannot be read takes nothing."""
        for m in state.net if here(state, r) else ():
            if m.kind == "offer" and m.to == r:
                said = {attrs.evolve(k, acq=UNREAD) for k in answer(state, m.sender, r, m.h, 0)}
                yield attrs.evolve(state, net=(state.net - {m}) | said)


def paths(model: Twin) -> tuple[Callable[..., Iterable[State]], ...]:
    """Steps that are several in the twin."""
    by_name = {a.name: a.body for a in model.actions()}

    def looks_at_once(state: State, p: str) -> Iterable[State]:
        """What may not begin is looked up at once."""
        for s in by_name["StartRefused"](state, p):
            yield from by_name["Look"](s, p)

    def finds_it_again(state: State, p: str) -> Iterable[State]:
        """It drops its copy of what was taken beside it, and finds that."""
        for name in ("Look", "AcceptRefused", "Acked"):
            for s in by_name[name](state, p):
                if s.node[p] == NOTHING and s.row.owner.node == p and s.row.state == "queued":
                    found = attrs.evolve(s, node=s.node.set(p, Copy("rebuilding")))
                    yield found
                    yield from by_name["Rebuild"](found, p)

    def published_at_once(state: State, p: str) -> Iterable[State]:
        """Its worker has found what it asks for again."""
        for s in by_name["Accept"](state, p):
            yield from by_name["Publish"](s, p)

    def found_and_given_back(state: State, p: str) -> Iterable[State]:
        """Its worker has found what is given back at this moment, and may not begin it."""
        copy = state.node[p]
        for s in by_name["CheckFails"](state, p):
            yield attrs.evolve(s, node=s.node.set(p, Copy("holding", copy.acq, copy.by)))

    return looks_at_once, finds_it_again, published_at_once, found_and_given_back
