"""The explorer and the liveness checker, against tiny worlds with known answers and against brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.models.explore import FairGraph, LimitReached, Violation, check, explore
from tenure.models.world import Action, Fair, LeadsTo, Refinement, Strength, World, refine

WEAK, STRONG = Strength.WEAK, Strength.STRONG


@attrs.frozen
class Net:
    """A transition system by hand: edges (source, action, target), and what is asked of it."""

    edges: tuple[tuple[int, str, int], ...]
    starts: tuple[int, ...] = (0,)
    fair: tuple[tuple[Strength, tuple[str, ...]], ...] = ()
    invariants: Mapping[str, Callable[[int], bool]] = attrs.field(factory=dict)
    steps: Mapping[str, Callable[[int, int], bool]] = attrs.field(factory=dict)
    eventually: Mapping[str, LeadsTo[int] | tuple[LeadsTo[int], ...]] = attrs.field(factory=dict)
    refines: Mapping[str, Refinement[int]] = attrs.field(factory=dict)


class NetWorld(World[int]):
    """The world of a net; states are numbers."""

    module: ClassVar[str] = "Net"

    def __init__(self, net: Net) -> None:
        super().__init__()
        self.net = net

    def initial(self) -> Iterable[int]:
        return self.net.starts

    def actions(self) -> tuple[Action[int], ...]:
        names = dict.fromkeys(action for _, action, _ in self.net.edges)
        return tuple(Action(name, self._body(name)) for name in names)

    def _body(self, name: str) -> Callable[[int], Iterable[int]]:
        return lambda state: [t for s, action, t in self.net.edges if (s, action) == (state, name)]

    def invariants(self) -> Mapping[str, Callable[[int], bool]]:
        return self.net.invariants

    def steps(self) -> Mapping[str, Callable[[int, int], bool]]:
        return self.net.steps

    def eventually(self) -> Mapping[str, LeadsTo[int] | tuple[LeadsTo[int], ...]]:
        return self.net.eventually

    def refines(self) -> Mapping[str, Refinement[int]]:
        return self.net.refines

    def fairness(self) -> tuple[Fair, ...]:
        return tuple(Fair(strength, frozenset((name, ()) for name in names)) for strength, names in self.net.fair)


def _to(goal: int) -> dict[str, LeadsTo[int]]:
    return {"Live": LeadsTo(lambda s: s == 0, lambda s: s == goal)}


def _verdict(net: Net) -> Violation[int] | None:
    return check(NetWorld(net)).violations.get("Live")


def _states(violation: Violation[int] | None) -> list[int]:
    assert violation is not None
    return [state for _, state in violation.story]


# -- the graph ----------------------------------------------------------------

DIAMOND = Net(((0, "A", 1), (0, "B", 2), (1, "B", 3), (2, "A", 3), (3, "A", 3), (9, "A", 0)))


def test_graph() -> None:
    """States in breadth-first order, every edge once with its label, and only what is reachable."""
    graph = explore(NetWorld(DIAMOND))

    assert graph.states == [0, 1, 2, 3]
    assert graph.initial == [0]
    assert graph.transitions() == {(0, "A", 1), (0, "B", 2), (1, "B", 3), (2, "A", 3), (3, "A", 3)}
    assert len(graph.edges) == 5


def test_path_is_shortest() -> None:
    """The story of a state is a shortest one, with the labels that were taken."""
    graph = explore(NetWorld(DIAMOND))

    assert graph.path(graph.index[3]) == [(None, 0), (("A", ()), 1), (("B", ()), 3)]


def test_parameters_are_no_part_of_a_transition() -> None:
    """TLC labels an edge with the action's name only, so two parameters with one effect are one transition."""
    world = NetWorld(Net(()))
    both = Action[int]("A", lambda state, p: [1] if state == 0 else [], (("x",), ("y",)))
    world.actions = lambda: (both,)  # type: ignore[method-assign]
    graph = explore(world)

    assert (len(graph.edges), graph.transitions()) == (2, {(0, "A", 1)})
    assert graph.labels == [("A", ("x",)), ("A", ("y",))]


def test_several_initial_states() -> None:
    """Each initial state is explored, once."""
    graph = explore(NetWorld(attrs.evolve(DIAMOND, starts=(2, 1, 2))))

    assert (graph.states, graph.initial) == ([2, 1, 3], [0, 1])


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_limit_is_no_verdict(limit: int) -> None:
    """A graph beyond the limit raises; it is never cut off in silence."""
    with pytest.raises(LimitReached, match=f"Net: more than {limit} states"):
        explore(NetWorld(DIAMOND), limit)


def test_limit_that_suffices() -> None:
    """A graph of exactly the limit is explored."""
    assert len(explore(NetWorld(DIAMOND), 4).states) == 4


# -- safety -------------------------------------------------------------------


def test_invariant() -> None:
    """The story is a shortest one and ends in the state that breaks the invariant."""
    net = attrs.evolve(DIAMOND, invariants={"Low": lambda s: s < 3, "Small": lambda s: s < 99})
    outcome = check(NetWorld(net))

    assert outcome.violations["Low"].story == [(None, 0), (("A", ()), 1), (("B", ()), 3)]
    assert outcome.violations["Low"].length == 3
    assert outcome.violations.keys() == {"Low"}
    assert not outcome.complete


@pytest.mark.parametrize(
    "broken", [{"invariants": {"Low": lambda s: s not in (1, 3)}}, {"steps": {"Low": lambda s, t: t not in (1, 3)}}]
)
def test_going_on_tells_the_same_story_and_finishes_the_graph(broken: dict[str, Any]) -> None:
    """The first violation only, and every state and transition behind it."""
    world = NetWorld(attrs.evolve(DIAMOND, **broken))
    short, whole = check(world, ["Low"]), check(world, ["Low"], go_on=True)
    assert short.violations["Low"].story == whole.violations["Low"].story
    assert whole.violations.keys() == {"Low"}
    assert (short.complete, whole.complete) == (False, True)
    graph = explore(NetWorld(DIAMOND))
    assert (graph.states, graph.transitions()) == (whole.graph.states, whole.graph.transitions())
    assert len(short.graph.states) < len(graph.states)


def test_invariant_of_the_initial_state() -> None:
    """It may be broken before anything happens."""
    outcome = check(NetWorld(attrs.evolve(DIAMOND, invariants={"Never": lambda s: s > 0})))

    assert outcome.violations["Never"].story == [(None, 0)]


def test_step_property() -> None:
    """The story ends in the step that breaks it, also when the state was known before."""
    net = attrs.evolve(DIAMOND, steps={"Up": lambda s, t: (s, t) != (2, 3)})
    outcome = check(NetWorld(net))

    assert outcome.violations["Up"].story == [(None, 0), (("B", ()), 2), (("A", ()), 3)]


def test_step_property_allows_stuttering() -> None:
    """``[][P]_vars`` says nothing of a step that changes nothing."""
    assert check(NetWorld(attrs.evolve(DIAMOND, steps={"Up": lambda s, t: s < t}))).violations == {}


def test_only_the_properties_asked_for() -> None:
    """A named property is checked alone."""
    net = attrs.evolve(DIAMOND, invariants={"Low": lambda s: s < 3, "One": lambda s: s != 1}, eventually=_to(1))
    world = NetWorld(net)

    assert check(world, ["Low"]).violations.keys() == {"Low"}
    assert check(world, ["Live"]).violations.keys() == {"Live"}
    assert check(world, []).violations == {}


def test_unknown_property() -> None:
    """A property that is not there is no property that holds."""
    with pytest.raises(KeyError, match="Net: no property is called Lo"):
        check(NetWorld(DIAMOND), ["Lo"])


def _abstract(starts: tuple[int, ...] = (0,)) -> NetWorld:
    """What `DIAMOND` refines: nothing, one thing done, both done."""
    return NetWorld(Net(((0, "Do", 1), (1, "Do", 2)), starts))


@pytest.mark.parametrize(
    ("image", "starts", "story"),
    [
        ({0: 0, 1: 1, 2: 1, 3: 2}, (0,), None),
        ({0: 0, 1: 0, 2: 1, 3: 1}, (0,), None),
        ({0: 0, 1: 1, 2: 1, 3: 2}, (1,), [0]),
        ({0: 0, 1: 2, 2: 1, 3: 2}, (0,), [0, 1]),
        ({0: 0, 1: 1, 2: 1, 3: 0}, (0,), [0, 1, 3]),
    ],
    ids=["holds", "stutters", "at init", "at a step", "at a later step"],
)
def test_refinement(image: dict[int, int], starts: tuple[int, ...], story: list[int] | None) -> None:
    """The image of each initial state is initial, and of each step a step or a stutter."""
    net = attrs.evolve(DIAMOND, refines={"Refines": refine(_abstract(starts), image.__getitem__)})
    violation = check(NetWorld(net)).violations.get("Refines")

    assert (None if violation is None else [s for _, s in violation.story]) == story


# -- liveness -----------------------------------------------------------------


def test_without_fairness_everything_may_stop() -> None:
    """Nothing forces a step: the behaviour that stutters at once breaks every promise."""
    violation = _verdict(Net(((0, "A", 1),), eventually=_to(1)))

    assert (_states(violation), violation and violation.loop) == ([0], 0)


def test_weak_fairness_forces_what_stays_enabled() -> None:
    """The one enabled action is taken."""
    assert _verdict(Net(((0, "A", 1),), fair=((WEAK, ("A",)),), eventually=_to(1))) is None


def test_weak_fairness_is_not_enough_for_what_comes_and_goes() -> None:
    """An action that is disabled again and again need not be taken under weak fairness, but must be under strong."""
    edges = ((0, "Tick", 1), (1, "Tock", 0), (1, "A", 2))
    ticks = ((WEAK, ("Tick",)), (WEAK, ("Tock",)))
    weak = _verdict(Net(edges, fair=(*ticks, (WEAK, ("A",))), eventually=_to(2)))

    assert (_states(weak), weak and weak.loop) == ([0, 1, 0], 0)
    assert _verdict(Net(edges, fair=(*ticks, (STRONG, ("A",))), eventually=_to(2))) is None


def test_strong_fairness_can_be_evaded_by_staying_away() -> None:
    """What is enabled only finitely often need not be taken."""
    edges = ((0, "Tick", 1), (1, "Tock", 0), (1, "A", 2), (0, "Away", 3))
    fair = ((WEAK, ("Tick",)), (WEAK, ("Tock",)), (STRONG, ("A",)))

    assert _states(_verdict(Net(edges, fair=fair, eventually=_to(2)))) == [0, 3]


def test_fairness_of_a_union() -> None:
    """``WF(A \\/ B)`` is satisfied by either."""
    edges = ((0, "A", 1), (1, "A", 0), (0, "B", 2), (1, "B", 2))

    assert _states(_verdict(Net(edges, fair=((WEAK, ("A", "B")),), eventually=_to(2)))) == [0, 1, 0]
    assert _verdict(Net(edges, fair=((WEAK, ("A",)), (WEAK, ("B",))), eventually=_to(2))) is None


def test_self_loop_is_no_step() -> None:
    """``WF_vars`` is of ``<A>_vars``: an action that changes nothing does not count as taken, nor as enabled."""
    edges = ((0, "A", 0), (0, "B", 1))

    assert _verdict(Net(edges, fair=((WEAK, ("A",)),), eventually=_to(1))) is not None
    assert _verdict(Net(edges, fair=((WEAK, ("A", "B")),), eventually=_to(1))) is None


def test_premise_is_needed() -> None:
    """Nothing is promised where the premise never held."""
    edges = ((0, "A", 1),)
    promise = {"Live": LeadsTo[int](lambda s: s == 7, lambda s: False)}

    assert _verdict(Net(edges, eventually=promise)) is None


def test_premise_in_the_middle() -> None:
    """The promise is made when the premise holds; that the goal held before does not matter."""
    edges = ((0, "A", 1), (1, "A", 2), (2, "A", 3))
    promise = {"Live": LeadsTo[int](lambda s: s == 1, lambda s: s == 0)}

    assert _states(_verdict(Net(edges, fair=((WEAK, ("A",)),), eventually=promise))) == [0, 1, 2, 3]


def test_goal_with_the_premise() -> None:
    """A promise that is kept as it is made is kept."""
    assert _verdict(Net((), eventually={"Live": LeadsTo(lambda s: True, lambda s: True)})) is None


def test_promises_for_each() -> None:
    """``\\A p : P(p) ~> Q(p)`` is several promises under one name; the first broken one is told."""
    kept = LeadsTo[int](lambda s: s == 0, lambda s: s == 1)
    broken = LeadsTo[int](lambda s: s == 1, lambda s: s == 0)
    net = Net(((0, "A", 1),), fair=((WEAK, ("A",)),))

    assert _verdict(attrs.evolve(net, eventually={"Live": (kept, kept)})) is None
    assert _states(_verdict(attrs.evolve(net, eventually={"Live": (kept, broken)}))) == [0, 1]


def test_story_is_the_shortest_stop() -> None:
    """Of two places to stop, the nearer is told."""
    edges = ((0, "A", 1), (1, "A", 2), (0, "B", 3))

    assert _states(_verdict(Net(edges, fair=((WEAK, ("A",)),), eventually=_to(9)))) == [0, 3]


def test_round_passes_where_an_action_is_disabled() -> None:
    """A loop that is told is fair: it visits the state in which the weakly fair action is disabled."""
    edges = ((0, "T", 1), (1, "T", 0), (0, "U", 2), (2, "U", 0), (0, "A", 9), (1, "A", 9))
    violation = _verdict(Net(edges, fair=((WEAK, ("T", "U")), (WEAK, ("A",))), eventually=_to(9)))

    assert 2 in _states(violation)


def test_fairness_of_an_action_that_is_not_there() -> None:
    """Fairness that names no action would promise nothing: it is refused."""
    world = NetWorld(Net(((0, "A", 1),), fair=((WEAK, ("Aa",)),), eventually=_to(1)))

    with pytest.raises(KeyError, match="which is no action"):
        check(world)


# -- brute force --------------------------------------------------------------

NAMES = ("A", "B", "C")


@st.composite
def nets(draw: st.DrawFn) -> Net:
    """Small nets with random edges, fairness and promise."""
    size = draw(st.integers(1, 4))
    states = st.integers(0, size - 1)
    edges = draw(st.lists(st.tuples(states, st.sampled_from(NAMES), states), max_size=7, unique=True))
    there = sorted({action for _, action, _ in edges})
    fair = (
        draw(
            st.lists(
                st.tuples(
                    st.sampled_from(Strength), st.lists(st.sampled_from(there), min_size=1, unique=True).map(tuple)
                ),
                max_size=3,
            )
        )
        if there
        else []
    )
    premise, goal = draw(st.frozensets(states)), draw(st.frozensets(states))
    starts = draw(st.lists(states, min_size=1, max_size=2, unique=True))
    promise = LeadsTo[int](premise.__contains__, goal.__contains__)
    return Net(tuple(edges), tuple(starts), tuple(fair), eventually={"Live": promise})


def _promise(net: Net) -> LeadsTo[int]:
    promise = net.eventually["Live"]
    assert isinstance(promise, LeadsTo)
    return promise


def _fair(net: Net, visited: frozenset[int], taken: Iterable[tuple[int, str, int]]) -> bool:
    """May a behaviour visit exactly these states and take exactly these edges for ever?"""
    done = {action for _, action, _ in taken}
    for strength, names in net.fair:
        if done & set(names):
            continue
        enabled = {s for s, action, t in net.edges if action in names and s != t} & visited
        if enabled if strength is STRONG else enabled == visited:
            return False
    return True


def _reach(edges: Iterable[tuple[int, str, int]], starts: Iterable[int], within: Callable[[int], bool]) -> set[int]:
    found = {s for s in starts if within(s)}
    while more := {t for s, _, t in edges if s in found and within(t)} - found:
        found |= more
    return found


def _oracle(net: Net) -> bool:
    """Does the promise hold? Tries every set of edges that a behaviour could take for ever, and every place to stop."""
    promise = _promise(net)
    moves = [e for e in net.edges if e[0] != e[2]]
    reachable = _reach(moves, net.starts, lambda s: True)

    def lacks(state: int) -> bool:
        return not promise.goal(state)

    bound = _reach(moves, (s for s in reachable if promise.premise(s)), lacks)
    if any(_fair(net, frozenset({s}), ()) for s in bound):
        return False
    inside = [e for e in moves if e[0] in bound and e[2] in bound]
    for count in range(1, len(inside) + 1):
        for taken in combinations(inside, count):
            visited = frozenset(s for e in taken for s in (e[0], e[2]))
            connected = all(_reach(taken, [s], lambda s: True) == visited for s in visited)
            if connected and _fair(net, visited, taken):
                return False
    return True


@given(nets())
def test_liveness_equals_brute_force(net: Net) -> None:
    """The verdict on a promise is that of trying every lasso."""
    assert (_verdict(net) is None) == _oracle(net)


@given(nets())
def test_story_is_a_counterexample(net: Net) -> None:
    """What is told is a behaviour of the net, fair, in which the premise holds and the goal never follows."""
    violation = _verdict(net)
    if violation is None:
        return
    promise, states = _promise(net), _states(violation)
    labels: list[Any] = [label for label, _ in violation.story]
    walked = [(s, label[0], t) for s, label, t in zip(states, labels[1:], states[1:], strict=False)]

    assert states[0] in net.starts
    assert labels[0] is None
    assert set(walked) <= set(net.edges)
    assert violation.loop is not None
    assert states[-1] == states[violation.loop]
    assert _fair(net, frozenset(states[violation.loop :]), walked[violation.loop :])
    made = [i for i, s in enumerate(states) if promise.premise(s)]
    assert any(not any(promise.goal(s) for s in states[i:]) for i in made if i <= violation.loop)


@given(nets())
def test_every_edge_is_a_transition(net: Net) -> None:
    """The graph has exactly the net's edges between reachable states."""
    graph = explore(NetWorld(net))
    reachable = _reach(net.edges, net.starts, lambda s: True)

    assert set(graph.states) == reachable
    assert {(graph.states[s], name, graph.states[t]) for s, name, t in graph.transitions()} == {
        e for e in net.edges if e[0] in reachable
    }


def test_fair_graph_of_a_finished_exploration() -> None:
    """Liveness can be asked of a graph that is there already."""
    world = NetWorld(Net(((0, "A", 1),), eventually=_to(1)))
    fair: FairGraph[Any] = FairGraph(world, explore(world))

    assert fair.refute("Live", _promise(world.net)) is not None
