"""The strategies draw from a vocabulary, so that what a machine compares is often equal and often nearly so."""

from __future__ import annotations

import enum
from typing import Any, Literal, NewType

import attrs
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from tenure.adapters.machines_found import machine_of, machines
from tenure.adapters.strategies import Vocabulary, calls, data, instances, messages, values, vocabulary_of
from tenure.machines.transaction import TRANSACTION, Enter, Member

WORDS = Vocabulary({"a": None, "b": None}, {0: None, 8_001: None})
TRANSACTION_MACHINE = machine_of(TRANSACTION)
Epoch = NewType("Epoch", int)


class _Mood(enum.Enum):
    GOOD = 1
    BAD = 2


@attrs.frozen
class _Token:
    owner: str
    epoch: int


@attrs.frozen
class _Claim:
    token: _Token | None
    pair: tuple[int, str]


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (bool, {True, False}),
        (int, {0, 8_001}),
        (Epoch, {0, 8_001}),
        (float, {0, 8_001}),
        (str, {"a", "b"}),
        (None, {None}),
        (str | None, {None, "a", "b"}),
        (Literal["x", "y"], {"x", "y"}),
        (_Mood, {_Mood.GOOD, _Mood.BAD}),
    ],
)
def test_values(hint: Any, expected: set[Any]) -> None:
    """Every value of the vocabulary is drawn, and no other."""
    for value in expected:
        assert find(values(hint, WORDS), lambda drawn, value=value: drawn == value) == value

    @given(values(hint, WORDS))
    def run(drawn: Any) -> None:
        assert drawn in expected

    run()


@given(st.data())
def test_containers(drawn: st.DataObject) -> None:
    """Tuples and sets are drawn member by member, attrs classes field by field."""
    assert all(n in (0, 8_001) for n in drawn.draw(values(tuple[int, ...], WORDS)))
    assert drawn.draw(values(frozenset[str], WORDS)) <= {"a", "b"}
    number, text = drawn.draw(values(tuple[int, str], WORDS))
    assert (number in (0, 8_001), text in ("a", "b")) == (True, True)
    claim = drawn.draw(instances(_Claim, WORDS))
    assert claim.token is None or claim.token.owner in ("a", "b")


@pytest.mark.parametrize("hint", [list[int], dict[str, int], bytes, object])
def test_types_that_no_machine_should_have(hint: Any) -> None:
    """What is not a frozen, comparable value is refused, by name."""
    with pytest.raises(TypeError, match="in a message or data"):
        values(hint, WORDS)


def test_constants_are_words() -> None:
    """The strings of the machine's module are in its vocabulary."""
    assert {"nobody", "abandoned", "damaged"} <= Vocabulary.of(TRANSACTION_MACHINE).strings.keys()


def test_learned_values_are_drawn() -> None:
    """What a world was seen to tell a machine is drawn again, whole and field by field."""
    words = vocabulary_of(TRANSACTION_MACHINE, [(Member("zoe"), Enter("yan"))])

    assert find(data(TRANSACTION_MACHINE, words), lambda d: d.me == "zoe") == Member("zoe")
    assert find(messages(TRANSACTION_MACHINE, words), lambda m: m == Enter("yan")) == Enter("yan")


def test_learning_goes_into_what_is_inside() -> None:
    """A token inside a claim is a word of its own."""
    words = Vocabulary()
    words.learn(_Claim(_Token("o", 7), (1, "x")))

    assert list(words.wholes[_Token]) == [_Token("o", 7)]
    assert list(words.fields[_Token, "epoch"]) == [7]


@pytest.mark.parametrize("machine", machines(), ids=lambda machine: machine.name)
def test_every_machine_can_be_called(machine: Any) -> None:
    """Each message class of each machine can be drawn, and its data."""
    words = Vocabulary.of(machine)
    each = [instances(kind, words) for kind in machine.messages]

    @settings(max_examples=5)
    @given(st.tuples(*each), calls(machine, words))
    def run(drawn: tuple[Any, ...], call: tuple[str, Any, Any]) -> None:
        assert [type(message) for message in drawn] == list(machine.messages)
        assert call[0] in machine.table.phases
        assert machine.data is None or isinstance(call[1], machine.data)

    run()
