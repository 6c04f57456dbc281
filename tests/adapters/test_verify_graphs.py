"""Graph equality: both ways, as values, and the first difference in words."""

from __future__ import annotations

import attrs
import pytest

from tenure.adapters.dot import Dump
from tenure.adapters.verify.graphs import Difference, GraphError, compare
from tenure.models.explore import Graph


@attrs.frozen(cache_hash=True)
class State:
    x: object
    y: object = 0


def graph(states: list[State], edges: list[tuple[int, str, int]], initial: tuple[int, ...] = (0,)) -> Graph[State]:
    names = sorted({name for _, name, _ in edges})
    parents = [(-1, -1)] * len(states)
    for source, name, target in reversed(edges):
        if target not in initial and target > source:
            parents[target] = (source, names.index(name))
    return Graph(
        states,
        {state: number for number, state in enumerate(states)},
        list(initial),
        [(name, ()) for name in names],
        [(source, names.index(name), target) for source, name, target in edges],
        parents,
    )


def dump(labels: dict[int, str], edges: set[tuple[int, str, int]], initial: set[int]) -> Dump:
    return Dump({n: r"/\\ x = " + x + r"\n/\\ y = 0" for n, x in labels.items()}, initial, edges)


OURS = graph([State(0), State(1)], [(0, "Inc", 1), (1, "Dec", 0)])
THEIRS = dump({70: "0", 71: "1"}, {(70, "Inc", 71), (71, "Dec", 70)}, {70})


def message(found: Difference | None) -> str:
    assert found is not None
    return found.message


def test_equal_graphs() -> None:
    assert compare(OURS, THEIRS) is None


def test_the_order_of_variables_does_not_matter() -> None:
    theirs = attrs.evolve(THEIRS, labels={70: r"/\\ y = 0\n/\\ x = 0", 71: r"/\\ y = 0\n/\\ x = 1"})
    assert compare(OURS, theirs) is None


def test_a_transition_that_only_tlc_has() -> None:
    theirs = dump({70: "0", 71: "1"}, {(70, "Inc", 71), (71, "Dec", 70), (71, "Stay", 71)}, {70})
    found = compare(OURS, theirs)
    assert "Stay differs, 1 step from the start" in message(found)
    assert "in the twin it cannot be taken" in message(found)
    assert found is not None
    assert 1 == found.count


def test_a_transition_that_only_the_twin_has() -> None:
    theirs = dump({70: "0", 71: "1"}, {(70, "Inc", 71)}, {70})
    assert "in TLC it cannot be taken" in message(compare(OURS, theirs))


def test_a_state_that_only_tlc_has() -> None:
    """The action and the state before it lead there; both values are shown."""
    theirs = dump({70: "0", 71: "1", 72: "2"}, {(70, "Inc", 72), (71, "Dec", 70), (72, "Dec", 70)}, {70})
    text = message(compare(OURS, theirs))
    assert "Inc differs, 0 steps from the start" in text
    assert "in TLC it leads to a state that only it has\n    x: 0 -> 2" in text
    assert "in the twin it leads to a state that only it has\n    x: 0 -> 1" not in text, "TLC has it, elsewhere"
    assert "x: 0 -> 1" in text


def test_another_name_for_an_action() -> None:
    theirs = dump({70: "0", 71: "1"}, {(70, "Add", 71), (71, "Dec", 70)}, {70})
    assert compare(OURS, theirs) is not None


def test_other_initial_states() -> None:
    theirs = dump({70: "0", 71: "1"}, {(70, "Inc", 71), (71, "Dec", 70)}, {71})
    text = message(compare(OURS, theirs))
    assert "the initial states differ" in text
    assert "only TLC starts in\n    x = 1" in text
    assert "only the twin starts in\n    x = 0" in text


def test_true_is_not_one() -> None:
    theirs = dump({70: "0", 71: "1"}, {(70, "Inc", 71)}, {70})
    assert compare(graph([State(0), State(True)], [(0, "Inc", 1)]), theirs) is not None
    assert compare(graph([State(0), State(1)], [(0, "Inc", 1)]), theirs) is None


def test_variables_that_only_one_side_has() -> None:
    with pytest.raises(GraphError, match="variable z that"):
        compare(OURS, attrs.evolve(THEIRS, labels={70: r"/\\ x = 0\n/\\ z = 0", 71: r"/\\ x = 0\n/\\ z = 0"}))
    with pytest.raises(GraphError, match="field y that is no variable"):
        compare(OURS, attrs.evolve(THEIRS, labels={70: "x = 0", 71: "x = 1"}))


def test_a_twin_without_a_state() -> None:
    with pytest.raises(GraphError, match="no initial state"):
        compare(graph([], [], ()), THEIRS)
