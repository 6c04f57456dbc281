"""A twin instantiated from a trace: what every module's instance has in common.

An instance is a twin with as many nodes, keys and faults as the trace shows, and what the checker must know beside it:
which model value an identity in the trace stands for, which actions may have happened unrecorded, and which of those
can help to reach a recorded event.

Identities are bound when they are first seen and compared from then on (`Binding`, real to model). The model draws an
identity that it does not refer to any more a second time; drawing it ends its binding.

The twin's budget of faults is put back after each step. That loses nothing: an action is enabled at any budget above
0 alike, so a behaviour with n faults is one of the twin whose configuration has budget n.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar, cast

import attrs

from tenure.adapters.trace.lines import BadTrace, Event
from tenure.machines.chart import Refused
from tenure.models.world import World

S = TypeVar("S", bound=Hashable)

Binding = Mapping[str | int, int]
"""Identities of the trace and the model values that they stand for. Never changed in place."""
Args = tuple[Hashable, ...]
BUDGET: Final = 1
FAR: Final = 44
"""How far-fetched the hidden steps before one event may be together: no explanation needs more."""
REACH: Final = 4000
"""States that are looked at in search of hidden steps before one event; more is a limit hit."""


class Label(NamedTuple):
    """A recorded event in the model's terms. `tenure` and `seen` are model values, UNBOUND or NOT_SAID."""

    node: str
    action: str
    args: tuple[tuple[str, Hashable], ...]
    tenure: int
    seen: int
    phase: str
    more: tuple[tuple[str, Hashable], ...] = ()


SEVERAL: Final = ""
UNBOUND: Final = -1
"""An identity that has not been seen before: it becomes bound to whatever the model has there."""
NOT_SAID: Final = -2


class Hidden(NamedTuple):
    """A step that may have happened unrecorded, and how far-fetched it is.

    With the action `SEVERAL` it is what somebody did who does not record: `args` are (action, arguments), one after
    the other.
    """

    cost: int
    action: str
    args: Args


class Taken(NamedTuple):
    """One step of an explanation. `event` says whether it is the recorded one."""

    action: str
    args: Args
    event: bool


class Outcome(NamedTuple):
    """One way in which a recorded event may have come about."""

    cost: int
    path: tuple[Taken, ...]
    state: Any
    drawn: tuple[int, ...]
    """Model identities that were drawn anew on the way."""
    binds: tuple[tuple[str, int], ...]
    """What the event binds: "tenure" or "seen", and the model value."""
    further: int = 0
    """How many steps follow the event by themselves."""
    late: int = 0
    """How many events earlier the step was taken, if it saw what is not there any more."""


class Outcomes(Generic[S]):
    """The ways in which `label` may come about in `state`, cheapest first, found as they are asked for."""

    __slots__ = ("_ended", "_found", "_heap", "_instance", "_known", "_label", "_seen", "cut", "ticks")

    def __init__(self, instance: Instance[S], state: S, label: Label, ended: frozenset[str]) -> None:
        self._instance, self._label, self._ended = instance, label, ended
        self._found: list[Outcome] = []
        self._heap: list[tuple[int, int, S, tuple[Taken, ...], tuple[int, ...]]] = [(0, 0, state, (), ())]
        self._seen: set[S] = set()
        self._known: set[tuple[S, tuple[tuple[str, int], ...], frozenset[int]]] = set()
        self.ticks = 0
        self.cut = False

    def get(self, index: int, cost: int) -> Outcome | None:
        """The outcome number `index`, if there is one of at most that cost."""
        found = self._found
        while index >= len(found):
            if not self._heap or self._heap[0][0] > cost or self.cut:
                return None
            self._look()
        outcome = found[index]
        return outcome if outcome.cost <= cost else None

    @property
    def more(self) -> bool:
        """Whether not all of them have been looked for."""
        return bool(self._heap)

    def _look(self) -> None:
        instance, label = self._instance, self._label
        cost, _, state, path, drawn = heappop(self._heap)
        if state in self._seen:
            return
        self._seen.add(state)
        for args in instance.candidates(label):
            for after in instance.successors(state, label.action, args):
                if instance.agrees(state, after, label, args):
                    fresh = (*drawn, *instance.drawn(state, after, label.action, args))
                    binds = instance.binds(state, after, label)
                    taken = (*path, Taken(label.action, args, True))
                    known = (after, binds, frozenset(fresh))
                    if known not in self._known:
                        self._known.add(known)
                        self._found += instance.followed(Outcome(cost, taken, after, fresh, binds), label)
        if instance.stutters(state, label):
            self._found.append(Outcome(cost, path, state, drawn, ()))
        for more, action, args in instance.hidden(state, label, self._ended):
            if cost + more > FAR:
                continue
            if action == SEVERAL:
                self._several(cost + more, state, path, drawn, args)
                continue
            for whole in instance.spelled(action, args):
                for after in instance.successors(state, action, whole):
                    if after not in self._seen:
                        self.ticks += 1
                        fresh = (*drawn, *instance.drawn(state, after, action, whole))
                        step = (*path, Taken(action, whole, False))
                        heappush(self._heap, (cost + more, self.ticks, after, step, fresh))
        if len(self._seen) >= REACH:
            self.cut = True

    def _several(self, cost: int, state: S, path: tuple[Taken, ...], drawn: tuple[int, ...], steps: Args) -> None:
        for action, args in cast("tuple[tuple[str, Args], ...]", steps):
            after = self._instance.successors(state, action, args)
            if len(after) != 1:
                return
            drawn = (*drawn, *self._instance.drawn(state, after[0], action, args))
            state, path = after[0], (*path, Taken(action, args, False))
        if state not in self._seen:
            self.ticks += 1
            heappush(self._heap, (cost, self.ticks, state, path, drawn))


class Instance(ABC, Generic[S]):
    """One twin, made for one trace."""

    module: ClassVar[str]
    parameters: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The names of an action's parameters beside the node, in the model's order; events name them in `args`."""
    environment: ClassVar[frozenset[str]] = frozenset()
    """Actions that no participant takes, which no event can therefore be."""
    recycles: ClassVar[bool] = True
    """Whether the model draws identities again that nothing refers to any more."""
    reorders: bool = True
    """Whether events outside of transactions may have to be explained in another order than the one that guides.
    Not where they only look (`reads`)."""
    exclusive: ClassVar[bool] = False
    """Whether events of a transaction after another one's entry are wrong by themselves."""
    counts_itself: ClassVar[bool] = False
    """Whether the numbers of its transactions are its own, and not those that the recording gives out (`order`): then
    `gathered` says where an event without one has its place, as its `at`."""

    def __init__(self, world: World[S], title: str) -> None:
        self.world = world
        self.title = title
        self.actions = {a.name: a for a in world.actions() if not a.mutant}
        self._after: dict[tuple[S, str, Args], tuple[S, ...]] = {}
        self._kept: dict[S, S] = {}
        self._outcomes: dict[tuple[S, Label, frozenset[str]], Outcomes[S]] = {}
        self._spelled: dict[tuple[str, Args], tuple[Args, ...]] = {}
        self._args: dict[tuple[str, str, tuple[tuple[str, Hashable], ...]], tuple[Args, ...]] = {}
        self._heard: list[Refused] | None = None
        self.cut = False
        """Some search for hidden steps was ended by `REACH`."""
        step = world.step

        def listening(*given: Any) -> Any:
            answer = step(*given)
            if self._heard is not None and isinstance(answer, Refused):
                self._heard.append(answer)
            return answer

        world.step = listening  # type: ignore[assignment]

    # -- what a module says ---------------------------------------------------

    @classmethod
    @abstractmethod
    def of(cls, events: Sequence[Event], title: str, pool: dict[Hashable, object]) -> Instance[Any]:
        """The instance for these events of one module and resource. `pool` is where instances that can serve several
        groups of events are kept. Raises `BadTrace`."""

    @classmethod
    def beside(cls, group: Sequence[Event], events: Sequence[Event]) -> list[Event]:
        """What other modules' events of the recording mean to the events of this group: events of its environment."""
        return []

    @classmethod
    def gathered(cls, group: Sequence[Event], events: Sequence[Event]) -> list[Event]:
        """All events that are explained together, those of each node in their order."""
        return [*group, *cls.beside(group, events)]

    @abstractmethod
    def process_of(self, event: Event) -> str:
        """The model's process of the event's node; when its last event is taken, it may have died."""

    @abstractmethod
    def label(self, event: Event, binding: Binding) -> Label:
        """The event in the model's terms."""

    @abstractmethod
    def agrees(self, before: S, after: S, label: Label, args: Args) -> bool:
        """Whether the step shows what was observed."""

    @abstractmethod
    def hidden(self, state: S, label: Label, ended: frozenset[str]) -> Iterable[Hidden]:
        """The unrecorded steps from `state` that could help to reach `label`; `ended`: processes whose events are
        over, which may have died or lost what they recorded last."""

    def initial(self) -> Iterable[S]:
        """Where the recording may have begun."""
        return (self.fresh(s) for s in self.world.initial())

    def drawn(self, before: S, after: S, action: str, args: Args) -> tuple[int, ...]:
        """The model identities that a step draws anew."""
        return ()

    def binds(self, before: S, after: S, label: Label) -> tuple[tuple[str, int], ...]:
        """What an agreed step binds, where the label has UNBOUND."""
        return ()

    def may_bind(self, binding: Binding, real: str | int, model: int) -> bool:
        """Whether an identity may stand for that model value, beside what is bound already."""
        return True

    def follows(self, state: S, label: Label) -> tuple[str, ...]:
        """The unrecorded steps that the event's node goes on with by itself, if it lives and nothing fails.

        To take them at once is only an order of trying: so the model comes back to states that it knows.
        """
        return ()

    def reads(self, label: Label) -> bool:
        """Whether the step only looks, outside of any transaction, so that only its own node sees that it was taken:
        what it saw may be what stood there at any time since its node's event before. Where that one is `local`, or a
        look that was early itself, at any time since it may have been taken: a record says when it was written, which
        may be long after what it tells of."""
        return False

    def graft(self, state: S, after: S, label: Label) -> S:
        """`state`, with the node as it is in `after`; for modules in which some step `reads`."""
        raise AssertionError(f"{self.module} has no step that only looks, and {label.action} was taken for one")

    def local(self, label: Label) -> bool:
        """Whether the action neither looks at what others change nor changes what others see: then its place among
        the others' steps does not matter."""
        return False

    def stutters(self, state: S, label: Label) -> bool:
        """Whether the event may be one that changed nothing, which in the model is no step."""
        return False

    def pinned(self, event: Event) -> bool:
        """Whether the event was taken inside its transaction for certain, so that numbers order it."""
        return event.number != 0

    def enters(self, event: Event) -> bool:
        """Whether the event is the first of its transaction."""
        return False

    def part(self, state: S, node: str) -> object:
        """The node's own part of the state."""
        return state.node[node]  # type: ignore[attr-defined]

    def company(self, state: S, node: str) -> object:
        """What a `local` step of the node still depends on; as long as it stands, the step may have been taken."""
        return None

    @abstractmethod
    def phase(self, state: S, node: str) -> str:
        """The phase of a node, for messages."""

    @abstractmethod
    def shown(self, state: S) -> str:
        """The state in a line, for messages."""

    # -- what all have --------------------------------------------------------

    def fresh(self, state: S) -> S:
        """`state` with the budget put back; equal states are one object."""
        known = self._kept.get(state)
        if known is None:
            whole = state if state.budget == BUDGET else attrs.evolve(state, budget=BUDGET)  # type: ignore[attr-defined, misc]
            known = self._kept[state] = self._kept.setdefault(whole, whole)
        return known

    def successors(self, state: S, action: str, args: Args) -> tuple[S, ...]:
        """What may follow; each question is put to the twin once."""
        key = (state, action, args)
        found = self._after.get(key)
        if found is None:
            after = [self.fresh(s) for s in self.actions[action].body(state, *args)]
            found = self._after[key] = tuple(dict.fromkeys(after))
        return found

    def outcomes(self, state: S, label: Label, ended: frozenset[str]) -> Outcomes[S]:
        """The ways in which `label` may come about; each question is answered once."""
        key = (state, label, ended)
        found = self._outcomes.get(key)
        if found is None:
            found = self._outcomes[key] = Outcomes(self, state, label, ended)
        return found

    def followed(self, outcome: Outcome, label: Label) -> list[Outcome]:
        """The outcome with what follows by itself, and without."""
        found = [outcome]
        state, path, args = outcome.state, outcome.path, (label.node,)
        for action in self.follows(state, label):
            after = self.successors(state, action, args)
            if len(after) != 1:
                break
            state, path = after[0], (*path, Taken(action, args, False))
            found.insert(0, Outcome(outcome.cost, path, state, outcome.drawn, outcome.binds, len(found)))
        return found

    def spelled(self, action: str, args: Args) -> tuple[Args, ...]:
        """The action's arguments that begin with `args`: what is left open ranges over all."""
        key = (action, args)
        found = self._spelled.get(key)
        if found is None:
            whole = self.actions[action].args
            found = self._spelled[key] = tuple(a for a in whole if a[: len(args)] == args)
        return found

    def candidates(self, label: Label) -> tuple[Args, ...]:
        """The arguments that the labelled action may have had: what the event leaves open ranges over all."""
        key = (label.node, label.action, label.args)
        found = self._args.get(key)
        if found is None:
            names = self.parameters.get(label.action, ())
            wanted = [(names.index(n) + 1, v) for n, v in label.args if n in names]
            found = self._args[key] = tuple(
                args
                for args in self.actions[label.action].args
                if args and args[0] == label.node and all(args[i] == v for i, v in wanted)
            )
        return found

    def check_event(self, event: Event) -> None:
        """Raise `BadTrace` for an event that this module's participants cannot record."""
        if event.action not in self.actions or event.action in self.environment:
            raise BadTrace(f"{event.place}: {self.module} has no action {event.action!r} that a participant takes")

    def refusals(self, state: S, label: Label) -> tuple[Refused, ...]:
        """What the machines refuse when the labelled action is tried in `state`."""
        self.forget()
        self._heard = []
        try:
            for args in self.candidates(label):
                list(self.actions[label.action].body(state, *args))
            return tuple(dict.fromkeys(self._heard))
        finally:
            self._heard = None

    def forget(self) -> None:
        """Make the twin put its questions to the machines again, where it keeps answers."""


def hidden_of(names: Mapping[str, Mapping[str, int]], phase: str, node: str, extra: int = 0) -> Iterator[Hidden]:
    """The unrecorded steps of one node: `names` maps phases to actions and their costs."""
    for action, cost in names.get(phase, {}).items():
        yield Hidden(cost + extra, action, (node,))


def said(event: Event, member: str) -> str | int | None:
    """An identity that the event observed. Raises `BadTrace` for what can be none."""
    value = event.observed.get(member)
    if value is None or isinstance(value, (str, int)):
        return value
    raise BadTrace(f"{event.place}: observed.{member} is neither a string nor an integer")


def bound(binding: Binding, value: str | int | None) -> int:
    """The model value of an identity of the trace."""
    return NOT_SAID if value is None else binding.get(value, UNBOUND)


def names_of(values: Collection[str]) -> str:
    """Names for a message."""
    return ", ".join(sorted(values)) or "none"
