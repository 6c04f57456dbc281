"""Charts compiled to tables, and the one function that runs them (DESIGN 4).

A role machine is *declared* as a python-statemachine chart and *run* as a table. `compile_chart` turns the one into
the other once; `step` answers a `Step` or a `Refused`. Two rules hold everywhere:

* Everything that decides a transition is in the table: the first row of (phase, event) whose guards all hold is taken.
* `step` is a function of values. It reads nothing, writes nothing, and a refusal leaves no mark.

The compiler refuses what it could not honour exactly as the library's own engine would: expression strings,
callables in place of names, unknown names, `unless`, several effects, callbacks by naming convention, listeners, engine
settings, methods, delayed or internal events, nested states, and two rows of one phase and event that cannot be told
apart.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import FunctionType
from typing import ClassVar, Generic, Protocol, TypeVar, cast

import attrs
from statemachine import State, StateMachine
from statemachine.callbacks import CallbackGroup, CallbackSpec
from statemachine.transition import Transition

from tenure.machines.laws import Kind, Mark, mark_of

D = TypeVar("D")
M = TypeVar("M", bound="Message")
O = TypeVar("O")


class Message(Protocol):
    """What a machine is told: a frozen value whose class names the event it is."""

    event: ClassVar[str]


Test = Callable[[D, M], bool]
Effect = Callable[[D, M], tuple[D, tuple[O, ...]]]


class ChartError(TypeError):
    """A chart says something that a table cannot honour. The message names the chart and the place."""


@attrs.frozen
class Guard(Generic[D, M]):
    """A named condition of a row, with the mark that its function carries."""

    name: str
    mark: Mark
    holds: Test[D, M] = attrs.field(repr=False, eq=False)


@attrs.frozen
class Row(Generic[D, M, O]):
    """One way in which `event` may be taken in `phase`; rows of one phase and event are tried in order."""

    phase: str
    event: str
    guards: tuple[Guard[D, M], ...]
    effect_name: str
    effect: Effect[D, M, O] | None = attrs.field(repr=False, eq=False)
    target: str

    def __str__(self) -> str:
        conditions = ", ".join(g.name for g in self.guards)
        return f"{self.phase} --{self.event}[{conditions}]--> {self.target}"


@attrs.frozen
class Step(Generic[D, O]):
    """The event was taken: the phase and data after it, and what the adapter has to do."""

    phase: str
    data: D
    outputs: tuple[O, ...]


@attrs.frozen
class Refused:
    """The event was not taken and nothing changed.

    `guards` names, in the order of the rows, the first guard that failed in each row; it is empty where the phase
    has no row for the event at all.
    """

    event: str
    phase: str
    guards: tuple[str, ...]


@attrs.frozen
class Table(Generic[D, M, O]):
    """A compiled chart. `rows[phase][event]` is present for every phase and event; empty means always refused."""

    name: str
    initial: str
    phases: tuple[str, ...]
    events: tuple[str, ...]
    rows: Mapping[str, Mapping[str, tuple[Row[D, M, O], ...]]] = attrs.field(repr=False)

    def __iter__(self) -> Iterator[Row[D, M, O]]:
        for phase in self.phases:
            for event in self.events:
                yield from self.rows[phase][event]

    @property
    def guards(self) -> dict[str, Mark]:
        """Every guard and permit of the chart by name, in the order of first use."""
        return {g.name: g.mark for row in self for g in row.guards}

    def without(self, *names: str) -> Table[D, M, O]:
        """The table with each named guard always true, or each named permit always false: the red twin.

        Raises `ChartError` for a name that no row uses, so that a red twin cannot be idle by a typing error.
        """
        unknown = set(names) - self.guards.keys()
        if unknown:
            raise ChartError(f"{self.name}: no row uses {', '.join(sorted(unknown))}")

        def weaken(guard: Guard[D, M]) -> Guard[D, M]:
            if guard.name not in names:
                return guard
            return attrs.evolve(guard, holds=_always if guard.mark.kind is Kind.GUARD else _never)

        def weaken_rows(rows: tuple[Row[D, M, O], ...]) -> tuple[Row[D, M, O], ...]:
            return tuple(attrs.evolve(row, guards=tuple(map(weaken, row.guards))) for row in rows)

        return attrs.evolve(
            self,
            rows={
                phase: {event: weaken_rows(rows) for event, rows in by_event.items()}
                for phase, by_event in self.rows.items()
            },
        )

    def text(self) -> str:
        """The golden text: one line a row, an explicit line for every phase and event that is always refused."""
        lines = [f"{self.name}: starts in {self.initial}", ""]
        for phase in self.phases:
            for event in self.events:
                rows = self.rows[phase][event]
                if not rows:
                    lines.append(f"{phase:<12} {event:<18} refused")
                for row in rows:
                    names = ", ".join(f"{g.name}{'?' if g.mark.kind is Kind.PERMIT else ''}" for g in row.guards)
                    does = f" / {row.effect_name}" if row.effect_name else ""
                    lines.append(f"{phase:<12} {event:<18} [{names}] -> {row.target}{does}")
            lines.append("")
        return "\n".join(lines)


def step(table: Table[D, M, O], phase: str, data: D, message: M) -> Step[D, O] | Refused:
    """Take `message` in `phase` with `data`: the first row whose guards all hold, or a refusal that names them.

    Raises KeyError for a phase or an event that the table does not know: that is a fault of the caller, not a
    refusal by the protocol.
    """
    # `chosen`, written out once more: this is what every exploration spends its time in.
    failed: tuple[str, ...] = ()
    event = message.event
    for row in table.rows[phase][event]:
        for guard in row.guards:
            if not guard.holds(data, message):
                if guard.name not in failed:
                    failed += (guard.name,)
                break
        else:
            if row.effect is None:
                return Step(row.target, data, ())
            after, outputs = row.effect(data, message)
            return Step(row.target, after, outputs)
    return _refusal(event, phase, failed)


def chosen(table: Table[D, M, O], phase: str, data: D, message: M) -> Row[D, M, O] | Refused:
    """The row that `step` would take, without taking it; coverage of a table is counted in these answers."""
    failed: tuple[str, ...] = ()
    for row in table.rows[phase][message.event]:
        for guard in row.guards:
            if not guard.holds(data, message):
                if guard.name not in failed:
                    failed += (guard.name,)
                break
        else:
            return row
    return _refusal(message.event, phase, failed)


@cache
def _refusal(event: str, phase: str, guards: tuple[str, ...]) -> Refused:
    """The one value for this refusal: there are few, and most of what a world offers is refused."""
    return Refused(event, phase, guards)


def compile_chart(chart: type[StateMachine]) -> Table[D, M, O]:
    """Compile a chart to its table. Raises `ChartError`, which names the place, for what a table cannot honour."""
    compiler: _Compiler[D, M, O] = _Compiler(chart)
    return compiler.table()


def _always(data: object, message: object) -> bool:
    return True


def _never(data: object, message: object) -> bool:
    return False


# Callbacks that the library would find by their names alone. A table has no place for them, so a chart that defines
# one would run differently under the library's engine: refuse it.
_CONVENTIONS = ("before_", "after_", "on_", "on_enter_", "on_exit_", "on_invoke_", "prepare_")

# What a chart could change in the library's engine, and with it what a refusal or an error means. A table has no such
# settings: they stay as StateMachine has them.
_SETTINGS = (
    "allow_event_without_transition",
    "enable_self_transition_entries",
    "atomic_configuration_update",
    "catch_errors_as_events",
    "start_configuration_values",
    "_class_listeners",
)


class _Compiler(Generic[D, M, O]):
    def __init__(self, chart: type[StateMachine]) -> None:
        if not (isinstance(chart, type) and issubclass(chart, StateMachine)):
            raise ChartError(f"{chart!r}: a chart derives from StateMachine, which raises instead of swallowing")
        self.chart = chart
        self.used: set[str] = set()

    def table(self) -> Table[D, M, O]:
        chart = self.chart
        states = list(chart.states)
        self._refuse_conventions()
        self._refuse_settings()
        self._refuse_overrides()
        for state in states:
            self._refuse_structure(state)
        initial = chart.initial_state
        if initial is None:
            raise self._error("has no initial state")
        phases = tuple(state.id for state in states)
        events = tuple(dict.fromkeys(e.id for s in states for t in s.transitions for e in t.events))
        rows: dict[str, dict[str, list[Row[D, M, O]]]] = {p: {e: [] for e in events} for p in phases}
        for state in states:
            for transition in state.transitions:
                for row in self._rows(state, transition):
                    self._refuse_shadowed(rows[state.id][row.event], row)
                    rows[state.id][row.event].append(row)
        self._refuse_methods()
        idle = self._declared() - self.used
        if idle:
            raise self._error(f"declares {', '.join(sorted(idle))}, which no row uses")
        return Table(
            name=chart.__name__,
            initial=initial.id,
            phases=phases,
            events=events,
            rows={p: {e: tuple(r) for e, r in by_event.items()} for p, by_event in rows.items()},
        )

    def _rows(self, state: State, transition: Transition) -> Iterable[Row[D, M, O]]:
        where = f"{state.id} -> {transition.target.id if transition.target else '?'}"
        if transition.is_eventless:
            raise self._error(f"{where}: a transition without an event")
        if len(transition.targets) != 1:
            raise self._error(f"{where}: a transition needs exactly one target")
        if transition.internal:
            raise self._error(f"{where}: an internal transition; every row leaves its phase and enters its target")
        guards: list[Guard[D, M]] = []
        effects: list[tuple[str, Effect[D, M, O]]] = []
        for spec in transition._specs:
            if spec.is_convention:
                continue
            name = self._name(spec, where)
            function = self._function(name, where)
            if spec.group is CallbackGroup.COND:
                if spec.expected_value is False:
                    raise self._error(f"{where}: `unless` {name}; order the rows instead")
                mark = mark_of(function)
                if mark is None:
                    raise self._error(f"{where}: {name} carries no @guard or @permit with its law")
                guards.append(Guard(name, mark, cast("Test[D, M]", function)))
            elif spec.group is CallbackGroup.ON:
                if mark_of(function) is not None:
                    raise self._error(f"{where}: {name} is a guard or permit and cannot be an effect")
                effects.append((name, cast("Effect[D, M, O]", function)))
            else:
                raise self._error(f"{where}: {spec.group.name.lower()} callback {name}; only cond and on are honoured")
            self.used.add(name)
        if len(effects) > 1:
            raise self._error(f"{where}: more than one effect ({', '.join(n for n, _ in effects)})")
        effect_name, effect = effects[0] if effects else ("", None)
        assert transition.target is not None
        for event in transition.events:
            if not event.id.isidentifier():
                raise self._error(f"{where}: event {event.id!r} is not a plain name")
            if event.delay or event.internal:
                raise self._error(f"{where}: event {event.id} is delayed or internal; messages come from outside, now")
            yield Row(state.id, event.id, tuple(guards), effect_name, effect, transition.target.id)

    def _name(self, spec: CallbackSpec, where: str) -> str:
        if not isinstance(spec.func, str):
            raise self._error(f"{where}: {spec.func!r} is not a name; name a static function of the chart")
        if not spec.func.isidentifier():
            raise self._error(f"{where}: {spec.func!r} is an expression; list the guards by name")
        return spec.func

    def _function(self, name: str, where: str) -> Callable[..., object]:
        found = inspect.getattr_static(self.chart, name, None)
        if found is None:
            raise self._error(f"{where}: {name} is not defined")
        if not isinstance(found, staticmethod):
            raise self._error(f"{where}: {name} is not a static function")
        function = found.__func__
        taken = list(inspect.signature(function).parameters.values())
        plain = all(p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for p in taken)
        if not plain or [p.name for p in taken] != ["data", "message"]:
            raise self._error(f"{where}: {name} takes something other than (data, message)")
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise self._error(f"{where}: {name} is asynchronous; a step waits for nothing")
        return function

    def _declared(self) -> set[str]:
        return {
            name
            for cls in self.chart.__mro__
            if cls is not StateMachine and issubclass(cls, StateMachine)
            for name, value in vars(cls).items()
            if isinstance(value, staticmethod) and not name.startswith("_")
        }

    def _refuse_shadowed(self, earlier: list[Row[D, M, O]], row: Row[D, M, O]) -> None:
        names = {g.name for g in row.guards}
        for other in earlier:
            if {g.name for g in other.guards} <= names:
                raise self._error(f"{row} cannot be told apart from {other}: it is never reached")

    def _refuse_structure(self, state: State) -> None:
        if state.states or state.parallel:
            raise self._error(f"state {state.id} is nested or parallel; charts are flat")
        if state.value != state.id:
            raise self._error(f"state {state.id} has the value {state.value!r}; a phase is its name")
        for spec in state._specs:
            if not spec.is_convention:
                raise self._error(f"state {state.id} has a callback {spec}; only transitions act")

    def _refuse_conventions(self) -> None:
        names = {s.id for s in self.chart.states} | {"state", "transition", "event"}
        names |= {e.id for s in self.chart.states for t in s.transitions for e in t.events}
        for prefix in _CONVENTIONS:
            for name in sorted(names):
                found = inspect.getattr_static(self.chart, prefix + name, None)
                inherited = inspect.getattr_static(StateMachine, prefix + name, None)
                if found is not inherited:
                    raise self._error(f"defines {prefix + name}, which the library calls by its name alone")

    def _refuse_settings(self) -> None:
        for name in _SETTINGS:
            if getattr(self.chart, name) != getattr(StateMachine, name):
                raise self._error(f"changes {name.removeprefix('_class_')}; a table has no such setting")

    def _refuse_overrides(self) -> None:
        # An event called `send` would be what the engine's own `send` is taken for.
        phases = {state.id for state in self.chart.states}
        events = {e.id for s in self.chart.states for t in s.transitions for e in t.events}
        for name in sorted(phases | events | self._declared()):
            if hasattr(StateMachine, name):
                raise self._error(f"calls something {name}, which is the name of a part of the engine")

    def _refuse_methods(self) -> None:
        # A method could only be called by the engine (as an override), and a table would never call it.
        for cls in self.chart.__mro__:
            if cls in StateMachine.__mro__:
                continue
            for name, value in vars(cls).items():
                if isinstance(value, (FunctionType, classmethod, property)):
                    raise self._error(f"defines {name}; a chart holds states, events and static functions only")

    def _error(self, text: str) -> ChartError:
        return ChartError(f"{self.chart.__name__}: {text}")
