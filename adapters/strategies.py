"""Hypothesis strategies for what machines are told, derived from the attrs classes of their messages and data.

A machine compares: a token with an entry, a time with a threshold, a name with a constant. Values drawn blindly from
all strings and integers are almost never equal, so every draw comes from a `Vocabulary`: the constants of the
machine's module with their neighbours, a few small names and numbers, and, where a world is given to learn from, the
values that it puts into each field. Equal values are then common, and so are values that are nearly right.
"""

from __future__ import annotations

import enum
import importlib
import types
import typing
from collections.abc import Iterable
from functools import cache
from typing import Any, Literal, Union

import attrs
from hypothesis import strategies as st

from tenure.adapters.machines_found import Machine

NAMES = ("a", "b")
NUMBERS = (0, 1, 2, 3)


@attrs.define
class Vocabulary:
    """The words of a machine: strings, integers, and whole values by the class and field in which they were seen."""

    strings: dict[str, None] = attrs.field(factory=dict)
    numbers: dict[int, None] = attrs.field(factory=dict)
    fields: dict[tuple[type, str], dict[Any, None]] = attrs.field(factory=dict, repr=False)
    wholes: dict[type, dict[Any, None]] = attrs.field(factory=dict, repr=False)

    @classmethod
    def of(cls, machine: Machine) -> Vocabulary:
        """The words of the machine's module: its constants, and for each integer the two next to it."""
        words = cls(dict.fromkeys(NAMES), dict.fromkeys(NUMBERS))
        module = importlib.import_module(f"tenure.machines.{machine.module}")
        for name, value in vars(module).items():
            if name.startswith("_"):
                continue
            if isinstance(value, str):
                words.strings[value] = None
            elif isinstance(value, int) and not isinstance(value, bool):
                words.numbers.update(dict.fromkeys((value - 1, value, value + 1)))
        return words

    def learn(self, *values: Any) -> None:
        """Take in attrs values (messages, data) field by field, and what is inside them."""
        for value in values:
            kind = type(value)
            if not attrs.has(kind):
                continue
            seen = self.wholes.setdefault(kind, {})
            if value in seen:
                continue
            seen[value] = None
            for field in attrs.fields(kind):
                inner = getattr(value, field.name)
                self.fields.setdefault((kind, field.name), {})[inner] = None
                self.learn(inner, *(inner if isinstance(inner, (tuple, frozenset)) else ()))


def messages(machine: Machine, words: Vocabulary | None = None) -> st.SearchStrategy[Any]:
    """Any message of the machine; each event is as likely as any other."""
    words = words or Vocabulary.of(machine)
    return st.one_of(*(instances(kind, words) for kind in machine.messages))


def data(machine: Machine, words: Vocabulary | None = None) -> st.SearchStrategy[Any]:
    """Any data of the machine."""
    if machine.data is None:
        raise TypeError(f"{machine.name}: annotate its table as Table[data, messages, output]")
    return values(machine.data, words or Vocabulary.of(machine))


def calls(machine: Machine, words: Vocabulary | None = None) -> st.SearchStrategy[tuple[str, Any, Any]]:
    """Any (phase, data, message)."""
    words = words or Vocabulary.of(machine)
    return st.tuples(st.sampled_from(machine.table.phases), data(machine, words), messages(machine, words))


def instances(kind: type, words: Vocabulary) -> st.SearchStrategy[Any]:
    """Instances of an attrs class, field by field; now and then one that was seen as a whole."""
    arguments = {field.alias: _field(kind, field.name, hint, words) for field, hint in _hints(kind)}
    built = st.builds(kind, **arguments)
    seen = list(words.wholes.get(kind, ()))
    return st.one_of(st.sampled_from(seen), built) if seen and arguments else built


def values(hint: Any, words: Vocabulary) -> st.SearchStrategy[Any]:
    """Values of an annotated type. Raises TypeError for a type that no frozen value of a machine should have."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, typing.NewType):
        return values(hint.__supertype__, words)
    if origin in (Union, types.UnionType):
        return st.one_of(*(values(a, words) for a in arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return st.lists(values(arguments[0], words), max_size=2).map(tuple)
        return st.tuples(*(values(a, words) for a in arguments))
    if origin is frozenset:
        return st.frozensets(values(arguments[0], words), max_size=2)
    if hint is None or hint is type(None):
        return st.none()
    if isinstance(hint, type):
        if issubclass(hint, enum.Enum):
            return st.sampled_from(hint)
        if issubclass(hint, bool):
            return st.booleans()
        if issubclass(hint, (int, float)):
            return st.sampled_from(sorted(words.numbers))
        if issubclass(hint, str):
            return st.sampled_from(list(words.strings))
        if attrs.has(hint):
            return instances(hint, words)
    raise TypeError(f"{hint!r} in a message or data: use attrs classes, str, numbers, bool, enum, tuple, frozenset")


def _field(kind: type, name: str, hint: Any, words: Vocabulary) -> st.SearchStrategy[Any]:
    seen = list(words.fields.get((kind, name), ()))
    anything = values(hint, words)
    return st.one_of(st.sampled_from(seen), anything) if seen else anything


@cache
def _hints(kind: type) -> tuple[tuple[Any, Any], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((field, hints[field.name]) for field in attrs.fields(kind) if field.init)


def vocabulary_of(machine: Machine, told: Iterable[tuple[Any, Any]]) -> Vocabulary:
    """The machine's words and what a world was seen to tell it: (data, message) pairs."""
    words = Vocabulary.of(machine)
    for pair in told:
        words.learn(*pair)
    return words
