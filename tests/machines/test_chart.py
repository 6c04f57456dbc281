"""What compiling a chart refuses, and what the table that comes out of it promises (DESIGN 4)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statemachine import Event, State, StateChart, StateMachine

from tenure.machines.chart import ChartError, Refused, Step, Table, chosen, compile_chart, step
from tenure.machines.laws import Kind, Law, guard, mark_of, permit


@attrs.frozen
class Data:
    """Memory of the machine under test."""

    served: int = 0


@attrs.frozen
class Ask:
    """A message whose facts decide every guard of the machine under test."""

    event: ClassVar[str] = "ask"
    first: bool = True
    second: bool = True
    willing: bool = True


@attrs.frozen
class Back:
    """The way back."""

    event: ClassVar[str] = "back"


@attrs.frozen
class Halt:
    """An event that no phase but `open` takes."""

    event: ClassVar[str] = "halt"


class DoorChart(StateMachine):
    """Three rows for one event, an else-branch among them, a permit, an effect."""

    shut = State(initial=True)
    open = State()

    ask = (
        shut.to(open, cond=["first_holds", "second_holds"], on="serve")
        | shut.to(shut, cond=["willing"], on="note")
        | open.to(open, cond=["second_holds"])
        | open.to(shut)
    )
    back = open.to(shut)
    halt = open.to(open)

    @staticmethod
    @guard(Law.FENCE)
    def first_holds(data: Data, message: Ask) -> bool:
        return message.first

    @staticmethod
    @guard(Law.PROOF)
    def second_holds(data: Data, message: Ask) -> bool:
        return message.second

    @staticmethod
    @permit(Law.UNKNOWN)
    def willing(data: Data, message: Ask) -> bool:
        return message.willing

    @staticmethod
    def serve(data: Data, message: Ask) -> tuple[Data, tuple[str, ...]]:
        return Data(data.served + 1), ("served",)

    @staticmethod
    def note(data: Data, message: Ask) -> tuple[Data, tuple[str, ...]]:
        return data, ("noted",)


DOOR: Table[Data, Any, str] = compile_chart(DoorChart)


# -- what compiling refuses ---------------------------------------------------


@guard(Law.FENCE)
def _holds(data: object, message: object) -> bool:
    return True


@guard(Law.FENCE)
def _holds_too(data: object, message: object) -> bool:
    return True


def _act(data: object, message: object) -> tuple[object, tuple[str, ...]]:
    return data, ()


def _unmarked(data: object, message: object) -> bool:
    return True


@guard(Law.FENCE)
def _one_parameter(message: object) -> bool:
    return True


@guard(Law.FENCE)
def _keyword_only(*, data: object, message: object) -> bool:
    return True


@guard(Law.FENCE)
def _variadic(*data: object, message: object) -> bool:
    return True


@guard(Law.FENCE)
def _swapped(message: object, data: object) -> bool:
    return True


async def _asynchronous(data: object, message: object) -> tuple[object, tuple[str, ...]]:
    return data, ()


def _nothing(*_: object) -> None:
    """A callback that a table has no place for."""


Body = Callable[[State, State], dict[str, Any]]


def _chart(body: Body, base: type = StateMachine) -> type[StateMachine]:
    """A chart of two phases, `a` and `b`, with `go` and `back` unless `body` says otherwise."""
    a, b = State(initial=True), State()
    members = body(a, b)
    if "go" not in members:
        members["go"] = a.to(b)
    if "back" not in members:
        members["back"] = b.to(a)
    made: type[StateMachine] = type(base)("Sketch", (base,), {"a": a, "b": b, **members})
    return made


def _go(*functions: Callable[..., object], **arguments: Any) -> Body:
    """A body whose `go` has these arguments; `functions` become static functions of the chart by their names."""
    static = {f.__name__.lstrip("_"): staticmethod(f) for f in functions}
    return lambda a, b: {"go": a.to(b, **arguments), **static}


def _with(**members: Any) -> Body:
    return lambda a, b: members


class _Nested(StateMachine):
    class a(State.Compound):
        one = State(initial=True)
        two = State()
        move = one.to(two) | two.to(one)

    b = State()
    go = a.to(b)
    back = b.to(a)


class _Parallel(StateMachine):
    validate_disconnected_states = False

    class a(State.Parallel):
        class left(State.Compound):
            one = State(initial=True)
            two = State()
            move = one.to(two) | two.to(one)

        class right(State.Compound):
            three = State(initial=True)
            four = State()
            shift = three.to(four) | four.to(three)


class _Decorated(StateMachine):
    a = State(initial=True)
    b = State()
    go = a.to(b)
    back = b.to(a)

    @go.on
    def act(self) -> None:
        """The library's decorator form."""


class _DecoratedEvent(StateMachine):
    a = State(initial=True)
    b = State()
    back = b.to(a)

    @a.to(b)
    def go(self) -> None:
        """The library's decorator form of an event."""


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    # an expression is not a name
    "conjunction": (lambda: _chart(_go(_holds, _holds_too, cond="holds and holds_too")), "is an expression"),
    "disjunction": (lambda: _chart(_go(_holds, _holds_too, cond=["holds or holds_too"])), "is an expression"),
    "negation": (lambda: _chart(_go(_holds, cond=["not holds"])), "is an expression"),
    "exclamation mark": (lambda: _chart(_go(_holds, cond=["!holds"])), "is an expression"),
    "comparison": (lambda: _chart(_go(_holds, cond=["holds == 1"])), "is an expression"),
    # a callable is not a name
    "function as guard": (lambda: _chart(_go(cond=[_holds])), "is not a name"),
    "lambda as guard": (lambda: _chart(_go(cond=lambda: True)), "is not a name"),
    "partial as effect": (lambda: _chart(_go(on=functools.partial(_act, None))), "is not a name"),
    "property as guard": (lambda: _chart(_go(cond=property(_nothing))), "is not a name"),
    "decorated callback": (lambda: _Decorated, "is not a name"),
    "decorated event": (lambda: _DecoratedEvent, "is not a name"),
    # a name must be that of a marked, static, pure function (data, message)
    "unknown guard": (lambda: _chart(_go(cond=["nowhere"])), "nowhere is not defined"),
    "unknown effect": (lambda: _chart(_go(on="nowhere")), "nowhere is not defined"),
    "guard without mark": (lambda: _chart(_go(_unmarked, cond=["unmarked"])), "carries no @guard or @permit"),
    "marked effect": (lambda: _chart(_go(_holds, on="holds")), "cannot be an effect"),
    "plain method": (lambda: _chart(lambda a, b: {"go": a.to(b, cond=["f"]), "f": _holds}), "not a static function"),
    "class method": (
        lambda: _chart(lambda a, b: {"go": a.to(b, cond=["f"]), "f": classmethod(_holds)}),
        "not a static function",
    ),
    "attribute as guard": (lambda: _chart(lambda a, b: {"go": a.to(b, cond=["f"]), "f": True}), "not a static"),
    "phase as guard": (lambda: _chart(_go(cond=["b"])), "not a static function"),
    "event as effect": (lambda: _chart(_go(on="back")), "not a static function"),
    "one parameter": (lambda: _chart(_go(_one_parameter, cond=["one_parameter"])), "other than (data, message)"),
    "keyword-only": (lambda: _chart(_go(_keyword_only, cond=["keyword_only"])), "other than (data, message)"),
    "variadic": (lambda: _chart(_go(_variadic, cond=["variadic"])), "other than (data, message)"),
    "swapped parameters": (lambda: _chart(_go(_swapped, cond=["swapped"])), "other than (data, message)"),
    "asynchronous": (lambda: _chart(_go(_asynchronous, on="asynchronous")), "asynchronous"),
    "unused guard": (lambda: _chart(_go(_holds)), "declares holds, which no row uses"),
    "unused effect": (lambda: _chart(_go(_act)), "declares act, which no row uses"),
    # only cond and on
    "unless": (lambda: _chart(_go(_holds, unless=["holds"])), "`unless` holds"),
    "two effects": (lambda: _chart(_go(_act, _unmarked, on=["act", "unmarked"])), "more than one effect"),
    "validators": (lambda: _chart(_go(_act, validators="act")), "validator callback act"),
    "before": (lambda: _chart(_go(_act, before="act")), "before callback act"),
    "after": (lambda: _chart(_go(_act, after="act")), "after callback act"),
    "enter": (lambda: _state(enter="act"), "state c has a callback"),
    "exit": (lambda: _state(exit="act"), "state c has a callback"),
    "invoke": (lambda: _state(invoke=_act), "state c has a callback"),
    # callbacks by their names alone
    **{
        f"convention {name}": (lambda name=name: _chart(_with(**{name: _nothing})), f"defines {name}")
        for name in (
            "on_enter_a",
            "on_exit_b",
            "on_enter_state",
            "on_exit_state",
            "on_invoke_a",
            "on_invoke_state",
            "before_go",
            "on_go",
            "after_go",
            "before_transition",
            "on_transition",
            "after_transition",
            "prepare_event",
        )
    },
    "convention in a mixin": (lambda: type(StateMachine)("Mixed", (_Hooked, _Plain), {}), "defines on_go"),
    "static convention": (lambda: _chart(_with(on_go=staticmethod(_act))), "defines on_go"),
    # what would change the library's engine, or never be called by a table
    "listeners": (lambda: _chart(_with(listeners=[_Hooked])), "changes listeners"),
    "lenient events": (lambda: _chart(_with(allow_event_without_transition=True)), "changes allow_event"),
    "swallowed errors": (lambda: _chart(_with(catch_errors_as_events=True)), "changes catch_errors"),
    "start values": (lambda: _chart(_with(start_configuration_values=["b"])), "changes start_configuration"),
    "event called send": (lambda: _chart(lambda a, b: {"send": a.to(b)}), "calls something send"),
    "event called raise_": (lambda: _chart(lambda a, b: {"raise_": a.to(b)}), "calls something raise_"),
    "guard called raise_": (
        lambda: _chart(lambda a, b: {"go": a.to(b, cond=["raise_"]), "raise_": staticmethod(_holds)}),
        "calls something raise_",
    ),
    "constructor": (lambda: _chart(_with(__init__=_nothing)), "defines __init__"),
    "method": (lambda: _chart(_with(helper=_nothing)), "defines helper"),
    "property": (lambda: _chart(_with(helper=property(_nothing))), "defines helper"),
    # flat charts of plain events
    "nested": (lambda: _Nested, "nested or parallel"),
    "parallel": (lambda: _Parallel, "nested or parallel"),
    "eventless": (lambda: _eventless(), "without an event"),
    "internal": (lambda: _chart(lambda a, b: {"stay": a.to.itself(internal=True)}), "internal transition"),
    "no target": (lambda: _chart(lambda a, b: {"stay": a.to(None)}), "exactly one target"),
    "two targets": (lambda: _two_targets(), "exactly one target"),
    "any event": (lambda: _chart(_go(event="*")), "not a plain name"),
    "dotted event": (lambda: _chart(lambda a, b: {"error_here": a.to(b)}), "not a plain name"),
    "delayed event": (lambda: _chart(lambda a, b: {"go": Event(a.to(b), delay=5)}), "delayed or internal"),
    "internal event": (lambda: _chart(lambda a, b: {"go": Event(a.to(b), internal=True)}), "delayed or internal"),
    "phase with a value": (lambda: _state(value=7), "state c has the value 7"),
    # rows that cannot be told apart
    "same guards": (lambda: _rows(["holds"], ["holds"]), "cannot be told apart"),
    "same guards, other order": (lambda: _rows(["holds", "holds_too"], ["holds_too", "holds"]), "cannot be told"),
    "no guards twice": (lambda: _rows([], []), "cannot be told apart"),
    "else-branch first": (lambda: _rows([], ["holds"]), "cannot be told apart"),
    "subset first": (lambda: _rows(["holds"], ["holds_too", "holds"]), "cannot be told apart"),
    # not a chart at all
    "StateChart": (lambda: _chart(_with(), StateChart), "derives from StateMachine"),
    "instance": (lambda: DoorChart(), "derives from StateMachine"),
    "other class": (lambda: Data, "derives from StateMachine"),
}


class _Hooked:
    def on_go(self) -> None:
        """A convention that comes from elsewhere."""


class _Plain(StateMachine):
    a = State(initial=True)
    b = State()
    go = a.to(b)
    back = b.to(a)


def _state(**arguments: Any) -> type[StateMachine]:
    """A chart with a third phase `c` made with these arguments."""
    c = State(**arguments)
    return _chart(lambda a, b: {"c": c, "leave": a.to(c), "home": c.to(a), "act": staticmethod(_act)})


def _eventless() -> type[StateMachine]:
    def body(a: State, b: State) -> dict[str, Any]:
        a.to(b)
        return {}

    return _chart(body)


def _two_targets() -> type[StateMachine]:
    def body(a: State, b: State) -> dict[str, Any]:
        fork = a.to(b)
        next(iter(fork))._targets.append(a)
        return {"fork": fork}

    return _chart(body)


def _rows(first: list[str], second: list[str]) -> type[StateMachine]:
    """Two rows for `go` in phase `a`, with these guards."""
    used = {"holds": staticmethod(_holds), "holds_too": staticmethod(_holds_too)}
    return _chart(
        lambda a, b: {
            "go": a.to(b, cond=first) | a.to(a, cond=second),
            **{n: f for n, f in used.items() if n in first + second},
        }
    )


@pytest.mark.parametrize("case", REFUSED)
def test_compiling_refuses(case: str) -> None:
    """A chart that a table cannot honour exactly is refused, and the message names the place."""
    build, text = REFUSED[case]
    chart = build()

    with pytest.raises(ChartError) as caught:
        compile_chart(chart)

    assert text in str(caught.value)


def test_refusal_names_the_chart() -> None:
    """One look at the message is enough to find the chart and the transition."""
    with pytest.raises(ChartError, match=r"^Sketch: a -> b: nowhere is not defined$"):
        compile_chart(_chart(_go(cond=["nowhere"])))


def test_guards_after_a_permit_are_no_subset() -> None:
    """Rows whose guards overlap without inclusion can be told apart."""
    table: Table[Any, Any, Any] = compile_chart(_rows(["holds", "holds_too"], ["holds"]))

    guards = [[g.name for g in row.guards] for row in table if row.event == "go"]
    assert guards == [["holds", "holds_too"], ["holds"]]


def test_inherited_chart_compiles() -> None:
    """A chart may take its phases and events from a base chart."""
    assert compile_chart(_Plain).rows == compile_chart(type(StateMachine)("Heir", (_Plain,), {})).rows


# -- what the table promises --------------------------------------------------


def test_row_for_every_phase_and_event() -> None:
    """The table is total: `rows[phase][event]` exists everywhere, empty where the event is always refused."""
    assert DOOR.phases == ("shut", "open")
    assert {"ask", "back", "halt"} == set(DOOR.events)
    assert {p: set(DOOR.events) for p in DOOR.phases} == {p: set(DOOR.rows[p]) for p in DOOR.phases}
    assert DOOR.rows["shut"]["back"] == ()
    assert "shut         back               refused" in DOOR.text().splitlines()


def test_golden_text_says_what_kind_a_name_is() -> None:
    """A permit is marked with a question mark, an effect with a slash."""
    assert "shut         ask                [willing?] -> shut / note" in DOOR.text().splitlines()


def test_first_row_whose_guards_hold_is_taken() -> None:
    """Rows are tried in order; an else-branch is a later row with fewer guards."""
    assert Step("open", Data(1), ("served",)) == step(DOOR, "shut", Data(), Ask())
    assert Step("shut", Data(), ("noted",)) == step(DOOR, "shut", Data(), Ask(first=False))
    assert Step("open", Data(), ()) == step(DOOR, "open", Data(), Ask())
    assert Step("shut", Data(), ()) == step(DOOR, "open", Data(), Ask(second=False))


def test_refusal_names_the_first_failed_guard_of_each_row() -> None:
    """A refusal names the guards in the order of the rows, each once, and nothing where there is no row."""
    assert Refused("ask", "shut", ("first_holds", "willing")) == step(
        DOOR, "shut", Data(), Ask(first=False, second=False, willing=False)
    )
    assert Refused("ask", "shut", ("second_holds", "willing")) == step(
        DOOR, "shut", Data(), Ask(second=False, willing=False)
    )
    assert Refused("back", "shut", ()) == step(DOOR, "shut", Data(), Back())


def test_refusal_names_a_guard_once() -> None:
    """A guard that fails in two rows is named once."""
    table: Table[Any, Any, Any] = compile_chart(_rows(["holds", "holds_too"], ["holds"]))
    never = attrs.evolve(
        table,
        rows={
            p: {
                e: tuple(
                    attrs.evolve(r, guards=tuple(attrs.evolve(g, holds=lambda data, message: False) for g in r.guards))
                    for r in rows
                )
                for e, rows in by_event.items()
            }
            for p, by_event in table.rows.items()
        },
    )

    @attrs.frozen
    class Go:
        event: ClassVar[str] = "go"

    assert Refused("go", "a", ("holds",)) == step(never, "a", None, Go())


@pytest.mark.parametrize(("phase", "message"), [("nowhere", Back()), ("shut", type("Odd", (), {"event": "odd"})())])
def test_unknown_phase_or_event_is_a_fault(phase: str, message: Any) -> None:
    """What the table does not know is the caller's fault, not a refusal by the protocol."""
    with pytest.raises(KeyError):
        step(DOOR, phase, Data(), message)


MESSAGES = st.one_of(st.builds(Ask, st.booleans(), st.booleans(), st.booleans()), st.just(Back()), st.just(Halt()))
CALLS = (st.sampled_from(DOOR.phases), st.builds(Data, st.integers(0, 3)), MESSAGES)


@given(*CALLS)
def test_refusal_is_inert(phase: str, data: Data, message: Any) -> None:
    """Refusal is inert: the data are the same value afterwards, and asking again gives the same answer."""
    before = attrs.evolve(data)
    answer = step(DOOR, phase, data, message)

    assert before == data
    assert answer == step(DOOR, phase, data, message)
    if isinstance(answer, Refused):
        assert (phase, message.event) == (answer.phase, answer.event)
        assert all(name in DOOR.guards for name in answer.guards)


@given(*CALLS)
def test_step_and_chosen_agree(phase: str, data: Data, message: Any) -> None:
    """`chosen` answers the row that `step` takes, or the very refusal."""
    row = chosen(DOOR, phase, data, message)
    answer = step(DOOR, phase, data, message)

    if isinstance(row, Refused):
        assert row == answer
    else:
        expected = (data, ()) if row.effect is None else row.effect(data, message)
        assert Step(row.target, *expected) == answer
        assert (phase, message.event) == (row.phase, row.event)
        assert all(g.holds(data, message) for g in row.guards)


@given(*CALLS, st.sampled_from(["first_holds", "second_holds"]))
def test_without_a_guard_only_lets_more_through(phase: str, data: Data, message: Any, name: str) -> None:
    """A table without a prohibition never refuses what the whole table takes, and never names that guard."""
    answer = step(DOOR.without(name), phase, data, message)

    if isinstance(answer, Refused):
        assert isinstance(step(DOOR, phase, data, message), Refused)
        assert name not in answer.guards


def test_without_takes_a_guard_away() -> None:
    """A guard that is off is always true, in every row that has it; the table itself is unchanged."""
    off = DOOR.without("second_holds")

    assert Step("open", Data(1), ("served",)) == step(off, "shut", Data(), Ask(second=False))
    assert Step("open", Data(), ()) == step(off, "open", Data(), Ask(second=False))
    assert Step("shut", Data(), ()) == step(DOOR, "open", Data(), Ask(second=False))


def test_without_takes_a_permit_away() -> None:
    """A permit that is off is always false: the row is never taken, and the refusal names it."""
    off = DOOR.without("willing")

    assert Refused("ask", "shut", ("first_holds", "willing")) == step(off, "shut", Data(), Ask(first=False))


def test_without_several() -> None:
    """Defence in depth is shown with several guards off at once."""
    off = DOOR.without("first_holds", "second_holds")

    assert Step("open", Data(1), ("served",)) == step(off, "shut", Data(), Ask(first=False, second=False))
    assert DOOR.guards == off.guards


def test_without_nothing_is_the_table() -> None:
    """No name, no change."""
    assert DOOR.without() == DOOR


def test_without_refuses_unknown_names() -> None:
    """A red twin cannot be idle by a typing error."""
    with pytest.raises(ChartError, match="DoorChart: no row uses nowhere, serve"):
        DOOR.without("first_holds", "serve", "nowhere")


def test_guards_carry_their_mark() -> None:
    """The mark of a function is what `guards` answers, in the order of first use."""
    assert list(DOOR.guards) == ["first_holds", "second_holds", "willing"]
    assert (DOOR.guards["willing"].kind, DOOR.guards["willing"].law) == (Kind.PERMIT, Law.UNKNOWN)
    assert DOOR.guards["first_holds"] == mark_of(DoorChart.first_holds)
    assert mark_of(_unmarked) is None
