"""The states that the twin may be in, after each step of the system (a subset construction)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, Generic

import attrs

from tenure.adapters.verify.bind.binding import Binding
from tenure.machines.chart import Refused
from tenure.models.world import S

DEPTH: Final = 5
"""Steps of one machine that one answer may cause."""

Exact = tuple[tuple[str, Hashable], ...]
"""Participants, with what they have been observed to be."""

Action = tuple[str, Callable[..., Iterable[S]], tuple[Any, ...]]


class Tracker(Generic[S]):
    """Sets of states of the twin, by number. A set is closed: whoever waits for an answer may have read already."""

    def __init__(self, binding: Binding[S]) -> None:
        self.binding = binding
        self.names = tuple(p.name for p in binding.participants)
        self.own: dict[str, tuple[Action[S], ...]] = {name: binding.actions(name) for name in self.names}
        self.by_label = {(a.name, args): a.body for a in binding.twin.actions() for args in a.args}
        self.sets: list[frozenset[S]] = []
        self.index: dict[frozenset[S], int] = {}
        self.known: dict[Hashable, int | None] = {}
        self.next: dict[tuple[S, str, Hashable, bool], tuple[S, ...]] = {}
        self.ends: dict[tuple[S, str, Hashable, Hashable], tuple[S, ...]] = {}
        self.late = [(self.by_label[label], label[1]) for label in binding.late]

    def add(self, states: Iterable[S]) -> int:
        """The number of a set."""
        found = frozenset(states)
        number = self.index.get(found)
        if number is None:
            number = self.index[found] = len(self.sets)
            self.sets.append(found)
        return number

    def start(self, shared: Hashable) -> int | None:
        """The initial states that agree with the world."""
        states = {s for s in self.binding.twin.initial() if self.binding.shared_in(s) == shared}
        return self.add(states) if states else None

    def told(
        self,
        number: int,
        participant: str,
        before: Hashable,
        shared: Hashable,
        observed: Hashable | None,
        phases: tuple[str | None, ...],
        left: int,
        exact: Exact,
    ) -> int | None:
        """After a step of `participant`: what is shared was `before`, is `shared`; `observed` is what its machine has
        become, None for no change. `phases` are those of the participants that go on. None: there is no such state."""
        key = (number, participant, before == shared, shared, observed, phases, left, exact)
        if key not in self.known:
            states: Iterable[S] = self.sets[number]
            if before != shared:
                states = self._visible(states, participant, shared, observed)
            if observed is not None:
                states = self._become(states, participant, shared, observed)
            self.known[key] = self._closed(states, shared, phases, left, exact)
        return self.known[key]

    def befallen(
        self,
        number: int,
        actions: tuple[tuple[str, tuple[Hashable, ...]], ...],
        shared: Hashable,
        phases: tuple[str | None, ...],
        left: int,
        exact: Exact,
        observed: Exact = (),
    ) -> int | None:
        """After something befell the world that is one of these actions to the twin (nothing, if there are none)."""
        key = (number, actions, shared, phases, left, exact, observed)
        if key not in self.known:
            self.binding.hint(shared, None)
            states: Iterable[S] = self.sets[number]
            if observed and not self._possible(states, actions, observed):
                states = ()
            if actions:
                states = {
                    t
                    for s in states
                    for name, args in actions
                    for t in (self.by_label[name, args](s, *args) if name else (s,))
                }
            states = {s for s in states if self.binding.shared_in(s) == shared}
            self.known[key] = self._closed(states, shared, phases, left, exact)
        return self.known[key]

    def _possible(
        self,
        states: Iterable[S],
        actions: tuple[tuple[str, tuple[Hashable, ...]], ...],
        observed: Exact,
    ) -> bool:
        """Whether one of the actions can be taken where nobody is ahead."""
        return any(
            True
            for s in states
            if all(self.binding.agrees(s, name, seen) for name, seen in observed)
            for name, args in actions
            for _ in self.by_label[name, args](s, *args)
        )

    def explain(self, number: int, participant: str) -> list[str]:
        """For a story: some states of the set, what the participant could do in them, and what its guards refuse."""
        lines: list[str] = []
        refused: set[str] = set()
        twin = self.binding.twin
        original = twin.step

        def listening(*args: Any) -> Any:
            found = original(*args)
            if isinstance(found, Refused):
                refused.update(found.guards)
            return found

        twin.step = listening  # type: ignore[assignment]
        try:
            self.binding.hint(None, None)
            for state in list(self.sets[number])[:3]:
                able = sorted({name for name, body, args in self.own[participant] if tuple(body(state, *args))})
                lines.append(f"    the twin may be in {state}")
                lines.append(f"    where {participant} can {', '.join(able) or 'do nothing'}")
        finally:
            twin.step = original
        if refused:
            lines.append(f"    guards that refuse it more: {', '.join(sorted(refused))}")
        return lines

    # -- steps --------------------------------------------------------------------------------------------------------

    def _after(self, state: S, participant: str, hint: Hashable, ahead: bool = False) -> tuple[S, ...]:
        """All that the twin's participant can do next; what it can do by itself, where it is ahead."""
        key = (state, participant, hint, ahead)
        found = self.next.get(key)
        if found is None:
            found = self.next[key] = tuple(
                t
                for name, body, args in self.own[participant]
                if not (ahead and name in self.binding.commands)
                for t in body(state, *args)
                if t != state
            )
        return found

    def _ends(self, state: S, participant: str, hint: Hashable, shared: Hashable) -> tuple[S, ...]:
        """What the participant can do next that leaves things as `shared` says, with what may come late after it."""
        key = (state, participant, hint, shared)
        found = self.ends.get(key)
        if found is None:
            same = self.binding.shared_in
            ends: dict[S, None] = {}
            for after in self._after(state, participant, hint):
                if same(after) == shared:
                    ends[after] = None
                for body, args in self.late if same(after) != shared else ():
                    # It has been paid for when it happened.
                    paid = attrs.evolve(after, budget=after.budget + 1)  # type: ignore[misc, attr-defined]
                    for late in body(paid, *args):
                        if same(late) == shared:
                            ends[attrs.evolve(late, budget=after.budget)] = None  # type: ignore[attr-defined, misc]
            found = self.ends[key] = tuple(ends)
        return found

    def _visible(self, states: Iterable[S], participant: str, shared: Hashable, observed: Hashable) -> set[S]:
        """The participant's action that makes the change, after as many of its own as it passes without a call (an
        error may take it through several phases at once)."""
        hint = self.binding.hint(shared, observed)
        same = self.binding.shared_in
        found: set[S] = set()
        seen = set(states)
        frontier = list(seen)
        for _ in range(DEPTH):
            later: list[S] = []
            for state in frontier:
                before = same(state)
                found.update(self._ends(state, participant, hint, shared))
                for after in self._after(state, participant, hint):
                    if after not in seen and same(after) == before:
                        seen.add(after)
                        later.append(after)
            frontier = later
        return found

    def _become(self, states: Iterable[S], participant: str, shared: Hashable, observed: Hashable) -> set[S]:
        """Those in which its machine is what was observed, with as many of its steps as that takes."""
        binding = self.binding
        hint = binding.hint(shared, observed)
        found: set[S] = set()
        seen = set(states)
        frontier = list(seen)
        for _ in range(DEPTH + 1):
            later: list[S] = []
            for state in frontier:
                if binding.agrees(state, participant, observed):
                    found.add(state)
                for after in self._ends(state, participant, hint, shared):
                    if after not in seen:
                        seen.add(after)
                        later.append(after)
            frontier = later
        return found

    def _closed(
        self, states: Iterable[S], shared: Hashable, phases: tuple[str | None, ...], left: int, exact: Exact
    ) -> int | None:
        binding = self.binding
        kept = {
            s
            for s in states
            if binding.spent(s, left) and all(binding.agrees(s, name, observed) for name, observed in exact)
        }
        return self.add(self._close(kept, shared, phases, left)) if kept else None

    def _close(self, states: set[S], shared: Hashable, phases: tuple[str | None, ...], left: int) -> set[S]:
        """Add what follows when those who wait for an answer have taken their step already, without changing what is
        shared. They are ahead by the steps of their present phase only."""
        binding = self.binding
        hint = binding.hint(None, None)
        allowed = {
            name: {phase} | binding.through for name, phase in zip(self.names, phases, strict=True) if phase is not None
        }
        frontier = list(states)
        while frontier:
            state = frontier.pop()
            for name, among in allowed.items():
                if binding.phase_in(state, name) not in among:
                    continue
                for after in self._after(state, name, hint, ahead=True):
                    if after not in states and binding.shared_in(after) == shared and binding.spent(after, left):
                        states.add(after)
                        frontier.append(after)
        return states
