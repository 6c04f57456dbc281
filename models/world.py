"""What a twin is (DESIGN 6): a closed world of machines and their environment, with the same names as its module.

A twin declares four things, each under the name it has in ``spec/X.tla``:

* a frozen attrs state whose fields are the module's VARIABLES;
* `Action`s, whose bodies answer the states that may follow (none: the action is disabled);
* properties: invariants, step properties ``[][...]_vars``, and leads-to properties ``P ~> Q``;
* fairness, action by action.

What a participant does goes through `World.step`, so that the machine itself decides; a body offers its event in every
phase and lets the machine refuse. What the environment does (crash, litter, a clock step) is plain code. `off` is the
specification's constant ``Off``: guards of the machines are taken away in their tables, guards of the environment
through `World.guard` and `World.permit`.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

import attrs

from tenure.machines.chart import D, M, O, Refused, Step, Table, step
from tenure.machines.laws import Kind, Law, Mark

S = TypeVar("S", bound=Hashable)
A = TypeVar("A", bound=Hashable)
K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)


@attrs.frozen
class Action(Generic[S]):
    """One action of the module: its name, the parameters it ranges over, and its body.

    `mutant` names the guard without which alone the action exists (in the module it carries ``Guard(mutant, FALSE)``);
    it is empty for an action of the protocol or its environment.
    """

    name: str
    body: Callable[..., Iterable[S]] = attrs.field(repr=False)
    args: tuple[tuple[Hashable, ...], ...] = ((),)
    mutant: str = ""


class Strength(enum.Enum):
    """WF: fair if continuously enabled. SF: fair if enabled again and again."""

    WEAK = "WF"
    STRONG = "SF"


@attrs.frozen
class Fair:
    """``WF_vars`` or ``SF_vars`` of the union of `instances`, each an action name with its parameters."""

    strength: Strength
    instances: frozenset[tuple[str, tuple[Hashable, ...]]]


@attrs.frozen
class LeadsTo(Generic[S]):
    """``premise ~> goal``: from every reachable state with `premise`, every fair behaviour reaches `goal`."""

    premise: Callable[[S], bool]
    goal: Callable[[S], bool]


@attrs.frozen
class Offers(Generic[S]):
    """What actions do by telling a machine, and by that alone: the explorer passes over them where they are refused.

    `events` maps an action's name to every event that it may offer to the machine of its first parameter (where that is
    a set, to each of its members), which is in `phase(state, parameter)`. Where `table` has no row for any of them the
    action is disabled, whatever else holds. It saves time and decides nothing: the graph is the same without, and where
    refusals are counted it is not used.
    """

    table: Table  # type: ignore[type-arg]
    phase: Callable[[S, Any], str]
    events: Mapping[str, tuple[str, ...]]


@attrs.frozen
class Refinement(Generic[S]):
    """This world's safety refines another's, as two tests: of an initial state, and of a step (see `refine`)."""

    starts: Callable[[S], bool]
    follows: Callable[[S, S], bool]


def refine(abstract: World[A], image: Callable[[S], A]) -> Refinement[S]:
    """Refinement of `abstract` under the state function `image` (``INSTANCE ... WITH`` in the module).

    The image of an initial state is initial, and the image of each step is a step of `abstract` or stutters.
    """
    actions = abstract.actions()
    initial = frozenset(abstract.initial())
    successors: dict[A, frozenset[A]] = {}

    def starts(state: S) -> bool:
        return image(state) in initial

    def follows(before: S, after: S) -> bool:
        source, target = image(before), image(after)
        if source == target:
            return True
        if source not in successors:
            successors[source] = frozenset(s for a in actions for args in a.args for s in a.body(source, *args))
        return target in successors[source]

    return Refinement(starts, follows)


@attrs.frozen
class Environment:
    """A guard or permit that lives in the environment of the model and not in a machine's table."""

    name: str
    mark: Mark


def prohibition(name: str, law: Law) -> Environment:
    """Declare an environment guard; `World.guard` reads it."""
    return Environment(name, Mark(Kind.GUARD, law))


def permission(name: str, law: Law) -> Environment:
    """Declare an environment permit; `World.permit` reads it."""
    return Environment(name, Mark(Kind.PERMIT, law))


class World(ABC, Generic[S]):
    """Base of every twin. Subclasses set the class attributes and implement the abstract methods.

    Raises ValueError when `off` names a guard that neither the machines nor the environment declare.
    """

    module: ClassVar[str]
    """The TLA+ module's name."""
    tables: ClassVar[tuple[Table, ...]] = ()  # type: ignore[type-arg]
    """The machines that act in this world."""
    environment: ClassVar[tuple[Environment, ...]] = ()
    """The guards that no machine has."""

    def __init__(self, off: Collection[str] = ()) -> None:
        self.off = frozenset(off)
        unknown = self.off - self.guards().keys()
        if unknown:
            raise ValueError(f"{self.module}: no guard or permit is called {', '.join(sorted(unknown))}")
        self.step = step

    @classmethod
    def guards(cls) -> dict[str, Mark]:
        """Every guard and permit of this world, machines first."""
        found = {name: mark for table in cls.tables for name, mark in table.guards.items()}
        return found | {e.name: e.mark for e in cls.environment}

    def weakened(self, table: Table[D, M, O]) -> Table[D, M, O]:
        """`table` without those of its guards that are off in this world."""
        names = self.off & table.guards.keys()
        return table.without(*names) if names else table

    def guard(self, name: str, holds: bool) -> bool:
        """``Guard(name, holds)``: an environment prohibition that `off` takes away."""
        return name in self.off or holds

    def permit(self, name: str, holds: bool) -> bool:
        """``Permit(name, holds)``: an environment permission that `off` takes away."""
        return name not in self.off and holds

    # -- what a twin declares -------------------------------------------------

    @abstractmethod
    def initial(self) -> Iterable[S]:
        """The states of Init."""

    @abstractmethod
    def actions(self) -> tuple[Action[S], ...]:
        """The disjuncts of Next, in the module's order."""

    def invariants(self) -> Mapping[str, Callable[[S], bool]]:
        """Invariants by name."""
        return {}

    def steps(self) -> Mapping[str, Callable[[S, S], bool]]:
        """Step properties ``[][P]_vars`` by name."""
        return {}

    def eventually(self) -> Mapping[str, LeadsTo[S] | tuple[LeadsTo[S], ...]]:
        """Leads-to properties by name; a tuple is their conjunction (``\\A p : P(p) ~> Q(p)``)."""
        return {}

    def offers(self) -> Offers[S] | None:
        """Which actions are no more than events told to a machine; None if nobody says so."""
        return None

    def fairness(self) -> tuple[Fair, ...]:
        """The fairness conjuncts of Spec."""
        return ()

    def refines(self) -> Mapping[str, Refinement[S]]:
        """Refinements by property name."""
        return {}


def fair(strength: Strength, action: Action[S], *args: Hashable) -> Fair:
    """``WF_vars(A(args))``, or of the whole action when no arguments are given."""
    instances = [args] if args else action.args
    return Fair(strength, frozenset((action.name, a) for a in instances))


class FrozenMap(dict[K, V]):
    """A hashable function with a small fixed domain: what a TLA+ function is in a twin's state.

    A dict for speed, of which nothing may change: a state that changed would be lost in the explorer's index.
    """

    __slots__ = ("_hash",)

    def __hash__(self) -> int:  # type: ignore[override]
        try:
            return self._hash
        except AttributeError:
            self._hash: int = hash(frozenset(self.items()))
            return self._hash

    def __repr__(self) -> str:
        return f"FrozenMap({super().__repr__()})"

    def __reduce__(self) -> tuple[type[FrozenMap[K, V]], tuple[dict[K, V]]]:
        # dict's own way to copy and pickle sets item by item.
        return FrozenMap, (dict(self),)

    def set(self, key: K, value: V) -> FrozenMap[K, V]:
        """``[f EXCEPT ![key] = value]``; `key` must be in the domain already."""
        if key not in self:
            raise KeyError(key)
        changed = FrozenMap(self)
        dict.__setitem__(changed, key, value)
        return changed

    def _frozen(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a FrozenMap does not change; FrozenMap.set makes another")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _frozen


def taken(result: Step[D, O] | Refused) -> Step[D, O] | None:
    """The step, or None for a refusal: ``if (done := taken(...)) is None: return ()`` reads as an action's guard."""
    return result if isinstance(result, Step) else None
