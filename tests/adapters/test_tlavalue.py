"""TLA+ values: what TLC prints is what is parsed, and what a twin's state stands for is what is rendered."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.tlavalue import (
    EMPTY,
    NotAValue,
    Renderer,
    canonical,
    function,
    parse,
    parse_state,
    text,
)
from tenure.models.world import FrozenMap


@attrs.frozen
class Record:
    phase: str
    n: int
    on: bool


TRUE = ("bool", True)


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("0", 0),
        ("-12", -12),
        ("TRUE", TRUE),
        ("FALSE", ("bool", False)),
        ('"a b"', "a b"),
        (r'"id\"le\\n"', 'id"le\\n'),
        (r'"a\nb\tc"', "a\nb\tc"),
        ('""', ""),
        ("{}", ("set", frozenset())),
        ("{-2, 1, 3}", ("set", frozenset({-2, 1, 3}))),
        ("1..3", ("set", frozenset({1, 2, 3}))),
        ("<<>>", EMPTY),
        ("<< >>", EMPTY),
        ('<<1, "x y z">>', ("seq", (1, "x y z"))),
        ("[a |-> 1]", ("fun", frozenset({("a", 1)}))),
        ("(-1 :> TRUE @@ 3 :> FALSE)", ("fun", frozenset({(-1, TRUE), (3, ("bool", False))}))),
        ("(1 :> {1} @@ 2 :> {2})", ("seq", (("set", frozenset({1})), ("set", frozenset({2}))))),
        ("m1", ("model", "m1")),
        ("{{}, {1}}", ("set", frozenset({("set", frozenset()), ("set", frozenset({1}))}))),
    ],
)
def test_every_shape_that_tlc_prints(printed: str, value: object) -> None:
    assert value == parse(printed)


def test_long_values_wrap_over_lines() -> None:
    """TLC breaks a long value and indents it; the value is the same."""
    wrapped = '[ alpha |->\n   [ phase |-> "a phase",\n     seen |-> {"alpha", "beta"} ],\n  beta |-> <<1,\n 2>> ]'
    flat = '[beta |-> <<1, 2>>, alpha |-> [seen |-> {"beta", "alpha"}, phase |-> "a phase"]]'
    assert parse(flat) == parse(wrapped)


def test_field_order_is_no_difference() -> None:
    """TLC prints fields in interning order, which depends on what was parsed first."""
    assert parse('[a |-> 1, b |-> "x"]') == parse('[b |-> "x", a |-> 1]')


def test_a_record_is_a_function_on_strings() -> None:
    assert parse("[a |-> 1]") == parse('("a" :> 1)')


@pytest.mark.parametrize(
    "bad", ["", "[a |->", "<<1, 2", "{1 2}", "1 2", '"open', "[a -> 1]", "@", "(1 :> 2 @@)", "1.."]
)
def test_what_tlc_does_not_print_is_refused(bad: str) -> None:
    with pytest.raises(NotAValue):
        parse(bad)


def test_a_function_has_one_value_for_an_argument() -> None:
    with pytest.raises(NotAValue):
        function([(1, 2), (1, 3)])


def test_a_printed_state_is_split_into_its_variables() -> None:
    state = parse_state('/\\ holder = "x\\n/\\\\ y = 1"\n/\\ phase = [ a |->\n   1,\n  b |-> 2 ]\n/\\ n = 3')
    assert state == {"holder": "x\n/\\ y = 1", "phase": canonical(FrozenMap({"a": 1, "b": 2})), "n": 3}


def test_a_state_of_one_variable_has_no_bullet() -> None:
    assert {"x": 1} == parse_state("x = 1")


def test_what_a_twin_means() -> None:
    state = FrozenMap({"a": Record("idle", 1, True), "b": Record("busy", 0, False)})
    printed = '[b |-> [on |-> FALSE, phase |-> "busy", n |-> 0], a |-> [n |-> 1, on |-> TRUE, phase |-> "idle"]]'
    assert parse(printed) == canonical(state)
    assert EMPTY == canonical(()) == canonical(FrozenMap({}))
    assert parse("<<{1}, {2}>>") == canonical(FrozenMap({1: frozenset({1}), 2: frozenset({2})}))


def test_true_is_not_one() -> None:
    """They are equal in Python, also inside containers; they are not in TLA+, whichever the renderer meets first."""
    assert canonical(True) != canonical(1)
    assert canonical((True,)) != canonical((1,))
    for first, second in ((1, True), (True, 1)):
        render = Renderer()
        kept = [FrozenMap({"x": first}), FrozenMap({"x": second})]
        assert render(kept[0]) != render(kept[1])


@pytest.mark.parametrize("thing", [None, 1.5, object(), {"a": None}, b"x"])
def test_what_stands_for_no_value_is_refused(thing: object) -> None:
    with pytest.raises(NotAValue):
        canonical(thing)


names = st.text(alphabet='abc XYZ09"\\\n\t/|->:@<>[]{}(),', max_size=8)
things: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.sampled_from(["idle", 'q"', "back\\slash", "a\nb", "\\n"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c d"]) | st.integers(-1, 3), inner, max_size=3).map(FrozenMap)
        | st.builds(Record, names, st.integers(0, 5), st.booleans())
    ),
    max_leaves=12,
)


@given(things)
def test_text_and_back(thing: Any) -> None:
    """Whatever a twin can hold, its text says the same value."""
    value = canonical(thing)
    assert value == parse(text(value))
    assert "\n" not in text(value)


@given(things)
def test_the_remembering_renderer_is_the_plain_one(thing: Any) -> None:
    render = Renderer()
    assert canonical(thing) == render(thing) == render(thing)


@given(things, things)
def test_equal_values_have_equal_text(one: Any, other: Any) -> None:
    first, second = canonical(one), canonical(other)
    assert (first == second) is (text(first) == text(second))
