"""Graph equality (DESIGN 6): the twin's graph and TLC's, compared as values, both ways.

Both sides number their states. A state's key is one small integer per variable, given out per variable in the order in
which values are met, so that two states are equal exactly when their keys are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import attrs

from tenure.adapters import dot
from tenure.adapters.errors import TenureError
from tenure.adapters.story import changes
from tenure.adapters.tlavalue import Renderer, Value, fields, parse, text
from tenure.models.explore import Graph

Key = tuple[int, ...]


class GraphError(TenureError):
    """The two graphs cannot be compared at all: their variables differ, or two twin states are one value."""


@attrs.frozen
class Difference:
    """The first difference, in breadth-first order, and the number of transitions that differ."""

    message: str
    count: int


class Values:
    """The numbers of the values of each variable."""

    def __init__(self, variables: tuple[str, ...]) -> None:
        self.variables = variables
        self.numbers: tuple[dict[Value, int], ...] = tuple({} for _ in variables)
        self.values: tuple[list[Value], ...] = tuple([] for _ in variables)

    def number(self, place: int, value: Value) -> int:
        """The number of `value` as a value of the variable at `place`."""
        numbers = self.numbers[place]
        found = numbers.get(value)
        if found is None:
            found = numbers[value] = len(numbers)
            self.values[place].append(value)
        return found

    def state(self, key: Key) -> dict[str, Value]:
        """The state with this key."""
        return {name: self.values[i][n] for i, (name, n) in enumerate(zip(self.variables, key, strict=True))}


Parts = dict[str, tuple[str, Value]]
"""Variables as printed in a label, with their names and values: dumps of one module have most of them in common."""


def compare(graph: Graph[Any], dump: dot.Dump, parts: Parts | None = None) -> Difference | None:
    """The first difference between the twin's graph and TLC's dump, or None if they are equal.

    `parts` is what was parsed before, of any dump, and is added to.
    Raises `GraphError` where the states are not even of the same shape.
    """
    if not graph.states:
        raise GraphError("the twin has no initial state")
    values = Values(fields(type(graph.states[0])))
    ours = _keys_of_twin(graph, values)
    theirs = _keys_of_dump(dump, values, {} if parts is None else parts)
    number_of = {key: number for number, key in enumerate(ours)}
    if len(number_of) != len(ours):
        raise GraphError(_merged(ours, values))
    unknown = -1
    node_of: dict[int, int] = {}
    foreign: dict[int, Key] = {}
    for node, key in theirs.items():
        number = number_of.get(key, unknown)
        if number == unknown:
            number = -2 - len(foreign)
            foreign[number] = key
        node_of[node] = number
    starts = {node_of[node] for node in dump.initial}
    edges = {(node_of[source], action, node_of[target]) for source, action, target in dump.edges}
    transitions = graph.transitions()
    if starts == set(graph.initial) and edges == transitions:
        return None
    state_of = lambda number: values.state(ours[number] if number >= 0 else foreign[number])  # noqa: E731
    if starts != set(graph.initial):
        return Difference(_initial(starts, set(graph.initial), state_of), len(edges ^ transitions))
    return Difference(_first(graph, edges, transitions, state_of), len(edges ^ transitions))


def _keys_of_twin(graph: Graph[Any], values: Values) -> list[Key]:
    render = Renderer()
    columns: list[list[int]] = []
    for place, name in enumerate(values.variables):
        # The parts stay alive in the list, so that their identities stay their own.
        parts = list(map(attrgetter(name), graph.states))
        distinct = dict(zip(map(id, parts), parts, strict=True))
        found = {key: values.number(place, render(part)) for key, part in distinct.items()}
        columns.append([found[key] for key in map(id, parts)])
    return list(zip(*columns, strict=True))


def _keys_of_dump(dump: dot.Dump, values: Values, parts: Parts) -> dict[int, Key]:
    place_of = {name: place for place, name in enumerate(values.variables)}
    width = len(place_of)
    known: dict[str, tuple[int, int]] = {}
    keys: dict[int, Key] = {}
    for node, label in dump.labels.items():
        key = [-1] * width
        for part in dot.split(label):
            found = known.get(part)
            if found is None:
                parsed = parts.get(part)
                if parsed is None:
                    name, body = dot.variable(part)
                    parsed = parts[part] = (name, parse(body))
                name, value = parsed
                if name not in place_of:
                    raise GraphError(f"the module has a variable {name} that the twin's state has not")
                found = known[part] = (place_of[name], values.number(place_of[name], value))
            key[found[0]] = found[1]
        if -1 in key:
            raise GraphError(f"the twin's state has a field {values.variables[key.index(-1)]} that is no variable")
        keys[node] = tuple(key)
    return keys


def _merged(keys: list[Key], values: Values) -> str:
    seen: set[Key] = set()
    for key in keys:
        if key in seen:
            return "two states of the twin stand for the same value:\n" + "\n".join(shown(values.state(key)))
        seen.add(key)
    raise AssertionError("no two keys are equal")


def shown(state: Mapping[str, Value]) -> list[str]:
    """A state, one line a variable."""
    return [f"    {name} = {text(value)}" for name, value in state.items()]


def _initial(theirs: set[int], ours: set[int], state_of: Any) -> str:
    found = ["the initial states differ"]
    for side, only in (("TLC", theirs - ours), ("the twin", ours - theirs)):
        for number in sorted(only)[:1]:
            found += [f"  only {side} starts in", *shown(state_of(number))]
    return "\n".join(found)


def _first(
    graph: Graph[Any], edges: set[tuple[int, str, int]], transitions: set[tuple[int, str, int]], state_of: Any
) -> str:
    """Both graphs start alike, so the first difference is always a step from a state that both have."""
    odd = edges ^ transitions
    # A breadth-first number is the twin's own; every state below it is reached alike by both.
    source = min(s for s, _, _ in odd if s >= 0)
    action = min(a for s, a, _ in odd if s == source)
    leads: dict[str, list[int]] = defaultdict(list)
    for side, those in (("TLC", edges), ("the twin", transitions)):
        leads[side] = sorted(t for s, a, t in those if s == source and a == action)
    before = state_of(source)
    depth = len(graph.path(source)) - 1
    found = [f"{action} differs, {depth} step{'s' if depth != 1 else ''} from the start, in the state", *shown(before)]
    common = set(leads["TLC"]) & set(leads["the twin"])
    for side in ("TLC", "the twin"):
        only = [number for number in leads[side] if number not in common]
        if not leads[side]:
            found.append(f"  in {side} it cannot be taken")
        elif not only:
            found.append(f"  in {side} it leads nowhere else")
        for number in only[:2]:
            where = "to a state that only it has" if number < -1 else "to"
            differs = changes(before, state_of(number)) or ["(the same state)"]
            found += [f"  in {side} it leads {where}", *(f"    {line}" for line in differs)]
    return "\n".join(found)
