"""What a world is made of: frozen functions, guards that can be taken away, fairness, refinement (DESIGN 6)."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.verify.manifest import ModuleEntry, load, spec_directory
from tenure.machines.chart import Refused, Step, step
from tenure.machines.laws import Kind, Law
from tenure.machines.transaction import TRANSACTION, Enter, Member
from tenure.models.explore import check, explore
from tenure.models.transaction import CONFIGS, Transaction
from tenure.models.world import Action, FrozenMap, Strength, World, fair, permission, prohibition, taken

ITEMS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3))


@given(ITEMS)
def test_frozen_map_is_its_mapping(items: dict[str, int]) -> None:
    """A function is its arguments and values."""
    frozen = FrozenMap(items)

    assert dict(frozen) == items
    assert len(frozen) == len(items)
    assert frozen == FrozenMap(items)
    assert repr(frozen) == f"FrozenMap({items!r})"
    assert frozen == copy.deepcopy(frozen) == pickle.loads(pickle.dumps(frozen))
    assert {FrozenMap} == {type(copied) for copied in (copy.copy(frozen), pickle.loads(pickle.dumps(frozen)))}


@given(ITEMS, st.permutations("abc"))
def test_equal_frozen_maps_have_one_hash(items: dict[str, int], order: list[str]) -> None:
    """In whatever order a function was written down, it is one state."""
    other = FrozenMap({key: items[key] for key in order if key in items})

    assert FrozenMap(items) == other
    assert hash(FrozenMap(items)) == hash(other)


@given(ITEMS.filter(bool), st.integers(0, 3), st.data())
def test_set_is_except(items: dict[str, int], value: int, data: st.DataObject) -> None:
    """``[f EXCEPT ![key] = value]`` changes one value of a new function, and no other."""
    key = data.draw(st.sampled_from(sorted(items)))
    frozen = FrozenMap(items)

    assert dict(frozen.set(key, value)) == {**items, key: value}
    assert dict(frozen) == items


@pytest.mark.parametrize(
    "change",
    [
        lambda frozen: frozen.__setitem__("a", 2),
        lambda frozen: frozen.__delitem__("a"),
        lambda frozen: frozen.update({"a": 2}),
        lambda frozen: frozen.setdefault("b", 2),
        lambda frozen: frozen.pop("a"),
        lambda frozen: frozen.popitem(),
        lambda frozen: frozen.clear(),
        lambda frozen: frozen.__ior__({"a": 2}),
    ],
)
def test_frozen_map_does_not_change(change: Callable[[FrozenMap[str, int]], object]) -> None:
    """A state that changed would be lost in the explorer's index."""
    frozen = FrozenMap({"a": 1})

    with pytest.raises(TypeError, match="does not change"):
        change(frozen)
    assert dict(frozen) == {"a": 1}


def test_set_outside_the_domain() -> None:
    """TLA+ would leave the function as it is; here it is a fault, because it always is one."""
    with pytest.raises(KeyError):
        FrozenMap({"a": 1}).set("b", 2)


class _Light(World[int]):
    """A lamp that a guard keeps off and a permit lets on."""

    module: ClassVar[str] = "Light"
    environment = (prohibition("it_is_dark", Law.PROOF), permission("may_switch", Law.UNKNOWN))

    def initial(self) -> Iterable[int]:
        yield 0

    def actions(self) -> tuple[Action[int], ...]:
        return (Action("Switch", self._switch, (("on",), ("off",))),)

    def _switch(self, state: int, to: str) -> Iterable[int]:
        dark = self.guard("it_is_dark", state > 0)
        return (int(to == "on"),) if dark and self.permit("may_switch", True) else ()


def test_guard_that_is_off_is_true() -> None:
    """``Guard(name, holds) == name \\in Off \\/ holds``."""
    assert [_Light().guard("it_is_dark", holds) for holds in (False, True)] == [False, True]
    assert [_Light(["it_is_dark"]).guard("it_is_dark", holds) for holds in (False, True)] == [True, True]


def test_permit_that_is_off_is_false() -> None:
    """``Permit(name, holds) == name \\notin Off /\\ holds``."""
    assert [_Light().permit("may_switch", holds) for holds in (False, True)] == [False, True]
    assert [_Light(["may_switch"]).permit("may_switch", holds) for holds in (False, True)] == [False, False]


def test_unknown_name_in_off() -> None:
    """A red twin cannot be idle by a typing error."""
    with pytest.raises(ValueError, match="Light: no guard or permit is called it_is_drak"):
        _Light(["it_is_drak"])


def test_guards_of_a_world() -> None:
    """Machines and environment together, with kind and law."""
    assert {name: (mark.kind, mark.law) for name, mark in Transaction.guards().items()} == {
        "nobody_inside": (Kind.GUARD, Law.FENCE),
        "holder_is_gone": (Kind.GUARD, Law.PROOF),
        "death_frees": (Kind.PERMIT, Law.PROOF),
    }


def test_weakened_table() -> None:
    """Only the names of a machine that are off are taken from its table; without any it is the table itself."""
    assert Transaction(CONFIGS["three"], ["death_frees"]).table is TRANSACTION
    table = Transaction(CONFIGS["three"], ["nobody_inside", "death_frees"]).table

    assert isinstance(step(table, "waiting", Member("a"), Enter("b")), Step)
    assert isinstance(step(TRANSACTION, "waiting", Member("a"), Enter("b")), Refused)


def test_taken() -> None:
    """A refusal is no step."""
    assert taken(Refused("enter", "out", ())) is None
    assert taken(Step("inside", 1, ())) == Step("inside", 1, ())


def test_fairness_of_an_action() -> None:
    """Of one instance, or of the whole action."""
    action = Action[int]("Switch", lambda state, to: (), (("on",), ("off",)))

    assert fair(Strength.WEAK, action, "on").instances == {("Switch", ("on",))}
    assert fair(Strength.STRONG, action).instances == {("Switch", ("on",)), ("Switch", ("off",))}


ENTRIES = load(spec_directory())


@pytest.mark.parametrize("entry", [e for e in ENTRIES.values() if e.twin], ids=lambda entry: entry.name)
def test_names_are_declared_once(entry: ModuleEntry) -> None:
    """A guard's name means one thing: no environment guard has the name of a machine's, no two machines share one."""
    assert entry.twin is not None
    names = [n for table in entry.twin.tables for n in table.guards] + [e.name for e in entry.twin.environment]

    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("entry", [e for e in ENTRIES.values() if e.twin], ids=lambda entry: entry.name)
def test_building_a_world_changes_nothing(entry: ModuleEntry) -> None:
    """Two worlds of one configuration have the same initial states, actions, labels and fairness."""
    for config in entry.configs:
        one, other = entry.world(config), entry.world(config)
        assert list(one.initial()) == list(other.initial())
        assert [(a.name, a.args) for a in one.actions()] == [(a.name, a.args) for a in other.actions()]
        assert one.fairness() == other.fairness()


def _small(entry: ModuleEntry) -> list[tuple[str, tuple[str, ...]]]:
    """Configurations of at most 4,000 states, whole and with each guard off that is listed there."""
    small = [c.name for c in entry.configs.values() if c.states <= 4_000]
    return [(c, ()) for c in small] + [
        (g.config, (g.name, *g.covered_by)) for g in entry.guards.values() if g.config in small
    ]


@pytest.mark.parametrize("entry", [e for e in ENTRIES.values() if e.twin], ids=lambda entry: entry.name)
def test_offers_change_nothing(entry: ModuleEntry) -> None:
    """What the explorer passes over is disabled: the graph is the same, edge by edge, when everything is tried."""
    for config, off in _small(entry):
        quick, whole = entry.world(config, off), entry.world(config, off)
        if quick.offers() is None:
            continue
        whole.step = lambda table, phase, data, message: step(table, phase, data, message)
        one, other = explore(quick, 100_000), explore(whole, 100_000)
        assert (one.states, one.edges) == (other.states, other.edges), f"{config} without {off}"


def test_known_counts() -> None:
    """The smallest module's graph: pinned in the manifest, equal in TLC."""
    outcome = check(Transaction(CONFIGS["three"]))

    assert (len(outcome.graph.states), len(outcome.graph.transitions())) == (36, 242)
    assert (outcome.violations, outcome.complete) == ({}, True)


@pytest.mark.parametrize(
    ("guard", "property_", "length"),
    [("nobody_inside", "OneInside", 5), ("holder_is_gone", "LiveHolderKept", 5), ("death_frees", "EventuallyFree", 5)],
)
def test_known_stories(guard: str, property_: str, length: int) -> None:
    """Each guard of the smallest module breaks its property, in a story of this many states."""
    outcome = check(Transaction(CONFIGS["three"], [guard]), [property_])

    assert outcome.violations[property_].length == length


def test_off_is_in_the_graph() -> None:
    """A world with a guard off has more transitions, one with a permit off fewer."""
    sizes = {off: len(explore(Transaction(CONFIGS["three"], off)).transitions()) for off in [(), *_OFF]}

    assert sizes[("nobody_inside",)] > sizes[()] > sizes[("death_frees",)]


_OFF = (("nobody_inside",), ("death_frees",))
