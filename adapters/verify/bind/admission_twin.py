"""The twin of `DurableAdmission` as its binding has it: a configuration, where it begins, and what is added.

What the journal and its drivers do in one step may be several of the twin: `paths`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

import attrs

from tenure.adapters.verify.bind.admission_seen import Parts
from tenure.models.durable_admission import DurableAdmission
from tenure.models.durable_admission_state import (
    IDLE,
    NO,
    NOTHING,
    Config,
    Row,
    State,
    Work,
)
from tenure.models.world import Action

_CAUSES: Final = "depose crash lose late dup odd astray forged moved babble full old silent replace person move"
CAUSES: Final = frozenset(_CAUSES.split())
"""Every fault that may happen here may happen in the twin; how many there are is bounded here."""


@attrs.frozen
class Setting:
    """One configuration. `leaders`: who leads, first the one that does at first, the others when they win; `parts`:
    what runs in every process; `admitted`: update 1 has been, for its target's binding; else it is journaled at the
    leader, but with `polls`. `causes`: what may befall them; `budget`: how often, and how many calls of a database may
    fail, together."""

    processes: tuple[str, ...]
    parts: Parts
    causes: frozenset[str] = frozenset()
    leaders: tuple[str, ...] = ("a",)
    target: str = "B"
    last: int = 1
    first: bool = False
    admitted: bool = False
    poison: bool = False
    budget: int = 1
    away: frozenset[str] = frozenset()
    """Of them those of whom nothing is seen: they do nothing."""


class Twin(DurableAdmission):
    """The twin, whose faults cost nothing: how many there are is bounded where they happen. It begins where the
    processes here begin, and has two steps more."""

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        poison = frozenset({1} if setting.poison else ())
        super().__init__(
            Config(
                setting.processes,
                frozenset(setting.leaders),
                setting.last,
                setting.first,
                setting.target,
                poison,
                99,
                CAUSES,
                1,
            ),
            off,
        )
        self.setting = setting

    def _spend(self, state: State, cause: str) -> int | None:
        return state.budget

    def initial(self) -> Iterable[State]:
        s = self.setting
        (state,) = super().initial()
        reg = attrs.evolve(IDLE, reg=s.parts.forwards)
        node = state.node.set("b", reg) if "b" in state.node else state.node
        state = attrs.evolve(state, node=node)
        if s.parts.polls:
            return (state,)
        state = attrs.evolve(state, sent=s.last, offset=s.last)
        for i in self.config.updates:
            state = attrs.evolve(state, update=state.update.set(i, Row("journaled", NO)))
            if s.admitted:
                work = state.work | {Work(i, s.target, 0, s.target, 1)}
                state = attrs.evolve(state, work=work, update=state.update.set(i, Row("forwarding", s.target)))
        return (state,)

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((p,) for p in self.config.processes)
        more = (
            Action("Drops", self._drops, each),
            Action("PollBehind", self._poll_behind, each),
            Action("Learns", self._learns, each),
        )
        return (*super().actions(), *more)

    def _drops(self, state: State, p: str) -> Iterable[State]:
        """What was polled is not journaled, and is polled again."""
        node = state.node[p]
        if node.got:
            yield attrs.evolve(state, node=state.node.set(p, attrs.evolve(node, got=0)))

    def _poll_behind(self, state: State, p: str) -> Iterable[State]:
        """It asks for what the journal has already: that confirms nothing more. Or again, since there was nothing."""
        node = state.node[p]
        if node.up == "yes" and node.epoch > 0 and node.got == 0:
            for offset in range(state.offset + int(node.poll != NOTHING)):
                yield attrs.evolve(state, node=state.node.set(p, attrs.evolve(node, poll=offset)))

    def _learns(self, state: State, p: str) -> Iterable[State]:
        """It reads that the first start is over."""
        node = state.node[p]
        if node.skips and state.opened:
            yield attrs.evolve(state, node=state.node.set(p, attrs.evolve(node, skips=False)))


def _do(model: Twin, name: str, state: State, *args: Any) -> Iterable[State]:
    (action,) = (a for a in model.actions() if a.name == name)
    return action.body(state, *args)


def paths(model: Twin) -> tuple[Callable[..., Iterable[State]], ...]:
    """Steps that are several in the twin."""

    def retried(state: State, p: str, i: int) -> Iterable[State]:
        """What waits is retried, and moved at once."""
        for s in _do(model, "Retry", state, i):
            yield from _do(model, "Forward", s, p, i)
            yield from _do(model, "Keep", s, p, i)

    def not_sent(state: State, p: str, i: int) -> Iterable[State]:
        """It is written down that it is sent, and it is lost."""
        for before in (state, *_do(model, "Retry", state, i)):
            for s in _do(model, "Forward", before, p, i):
                yield attrs.evolve(s, net=before.net)

    def made_again(state: State, p: str, i: int) -> Iterable[State]:
        """An attempt that was given up is made again."""
        for s in _do(model, "Unanswered", state, p, i):
            yield from _do(model, "Retry", s, i)

    def admitted_and_refused(state: State, p: str, i: int) -> Iterable[State]:
        """It is admitted, its answer is lost, and it comes once more, and is refused."""
        for s in _do(model, "HearForward", state, p, i):
            for m in s.net - state.net:
                yield attrs.evolve(s, net=(s.net - {m}) | {attrs.evolve(m, ok=False, b=NO, g=0)})

    def several(state: State, p: str, i: int) -> Iterable[State]:
        """One transaction takes, or recovers, all that there is."""
        for name in ("Take", "Recover"):
            states = [state]
            for j in model.config.updates:
                states = [t for s in states for t in _do(model, name, s, p, j)]
            yield from states if len(model.config.updates) > 1 else ()

    return retried, not_sent, made_again, admitted_and_refused, several
