"""The owner registry's text: read strictly, changed in one member, left alone everywhere else (locks.md 2, 2.1, 4).

The registry is shared with programs that we do not know. So a write replaces, adds or removes the text of our own
member, and what belongs to others stays as they spelled it, byte for byte: their numbers, escapes and white space.
Nothing that cannot be read as one JSON object is ever taken for an empty registry (S12).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii
from typing import Final

import attrs

from tenure.adapters.errors import MEND, TenureError
from tenure.machines.entry import Entry, number, parse_entry, render_entry

_BLANK: Final = " \t\n\r"
_TOO_DEEP: Final = "nested too deep"
_LONGEST_INTEGER: Final = 308
"""Digits beyond which a number may be infinite to JavaScript, and then is none; so it is read as a double."""
_NAMES: Final = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "an array"}


class RegistryDamaged(TenureError):
    """The registry cannot be read, or not be understood. Nothing has been changed; nobody is an owner by it."""


@attrs.frozen
class Member:
    """A member of the object: `text[start:end]` is ``"key": value``, the value begins at `value_at`."""

    key: str
    value: object = attrs.field(repr=False)
    start: int
    value_at: int
    end: int


@attrs.frozen
class Registry:
    """What stands in the file. `text` is empty where there is none. `problem`: what is wrong with it, and where, in
    words; then there are no members."""

    text: str = attrs.field(default="", repr=False)
    members: tuple[Member, ...] = ()
    opens: int = 0
    """Where the object's brace opens in `text`, and where it closes."""
    closes: int = 0
    problem: str = ""
    remedy: str = MEND
    """What to do about the problem."""
    too_deep: bool = False
    """The problem is this reader's: others may be able to read it."""

    def value(self, key: str) -> object:
        """The value of `key`, None for none. Of several the last one counts, as in JavaScript."""
        for member in reversed(self.members):
            if member.key == key:
                return member.value
        return None

    def entry(self, key: str) -> Entry | None:
        """The entry of `key`; None for none, and for what names no owner."""
        return parse_entry(self.value(key))

    def implausible(self, key: str) -> str:
        """Why the member of `key` can neither be taken for an owner nor for nobody: a wrong type; empty for none."""
        value = self.value(key)
        if value is None:
            return ""
        if not isinstance(value, Mapping):
            return f"{key} is {_NAMES.get(type(value), 'no object')} instead of an object"
        pid = value.get("pid")
        return "" if pid is None or number(pid) is not None else f"{key}.pid is not a number"

    def with_entry(self, key: str, entry: Entry) -> bytes:
        """The whole text with `entry` as the one member of `key`. Not for a registry with a problem."""
        shown = _shown(render_entry(entry), "  ")
        found = [n for n, member in enumerate(self.members) if member.key == key]
        if len(found) > 1:
            return self._dropped(found[0]).with_entry(key, entry)
        if found:
            member = self.members[found[0]]
            return self._spliced(member.value_at, member.end, shown)
        added = f"\n  {encode_basestring_ascii(key)}: {shown}"
        if self.members:
            last = self.members[-1].end
            return self._spliced(last, last, f",{added}")
        if not self.text:
            return f"{{{added}\n}}\n".encode()
        return self._spliced(self.opens + 1, self.closes, f"{added}\n")

    def without(self, key: str) -> bytes:
        """The whole text without any member of `key`. Not for a registry with a problem."""
        for n, member in enumerate(self.members):
            if member.key == key:
                return self._dropped(n).without(key)
        return self.text.encode() if self.text else b"{}\n"

    def _dropped(self, place: int) -> Registry:
        """Without the member at `place`, and the comma that goes with it."""
        members = self.members
        if place + 1 < len(members):
            return parse_registry(self._spliced(members[place].start, members[place + 1].start, ""))
        if place > 0:
            return parse_registry(self._spliced(members[place - 1].end, members[place].end, ""))
        return parse_registry(self._spliced(self.opens + 1, self.closes, ""))

    def _spliced(self, start: int, end: int, new: str) -> bytes:
        return f"{self.text[:start]}{new}{self.text[end:]}".encode()


def parse_registry(data: bytes | None) -> Registry:
    """The registry that a file's bytes are; None is no file, and that is a registry without members."""
    if data is None:
        return Registry()
    if not data:
        return Registry(problem="it is empty")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Registry(problem=f"not UTF-8 (line {line}, byte {error.start + 1} of the file)")
    try:
        return _object(text)
    except _Wrong as wrong:
        line = text.count("\n", 0, wrong.at) + 1
        column = wrong.at - text.rfind("\n", 0, wrong.at)
        return Registry(problem=f"{wrong.what} (line {line}, column {column})", too_deep=wrong.what == _TOO_DEEP)


class _Wrong(Exception):
    """The text is no JSON object: what is wrong, and where."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.what = what
        self.at = at


def _object(text: str) -> Registry:
    if text.startswith("\ufeff"):
        raise _Wrong("bad JSON: it begins with a byte order mark", 0)
    opens = _blank(text, 0)
    if text[opens : opens + 1] != "{":
        raise _Wrong(_not_an_object(text, opens), opens)
    members: list[Member] = []
    at = _blank(text, opens + 1)
    if text[at : at + 1] != "}":
        while True:
            member = _member(text, at)
            members.append(member)
            at = _blank(text, member.end)
            if text[at : at + 1] == "}":
                break
            at = _blank(text, _expect(text, at, ","))
    end = _blank(text, at + 1)
    if end != len(text):
        raise _Wrong("bad JSON: something follows the object", end)
    return Registry(text, tuple(members), opens, at)


def _member(text: str, at: int) -> Member:
    if text[at : at + 1] != '"':
        raise _Wrong("bad JSON: a name in double quotes is expected", at)
    key, end = _value(text, at)
    assert isinstance(key, str)
    value_at = _blank(text, _expect(text, _blank(text, end), ":"))
    value, end = _value(text, value_at)
    return Member(key, value, at, value_at, end)


def _value(text: str, at: int) -> tuple[object, int]:
    value: object
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise _Wrong(f"bad JSON: {error.msg}", error.pos) from error
    except RecursionError as error:
        raise _Wrong(_TOO_DEEP, at) from error
    except ValueError as error:
        raise _Wrong(f"bad JSON: {error}", at) from error
    return value, end


def _not_an_object(text: str, at: int) -> str:
    """What the file is instead: some other JSON, or none."""
    try:
        value, end = _value(text, at)
    except _Wrong as wrong:
        return wrong.what
    if _blank(text, end) != len(text):
        return "bad JSON: something follows the first value"
    return f"{_NAMES.get(type(value), 'null')} instead of a JSON object"


def _blank(text: str, at: int) -> int:
    """Where the white space from `at` on ends."""
    while text[at : at + 1] in _BLANK and at < len(text):
        at += 1
    return at


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise _Wrong(f"bad JSON: {sign!r} is expected", at)
    return at + 1


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_constant=_no_constant)


def _shown(value: object, indent: str) -> str:
    """`value` as ``JSON.stringify(value, null, 2)`` has it at this depth, in ASCII; values of `render_entry` only."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if type(value) is int:
        return str(value)
    if isinstance(value, Mapping):
        deeper = f"{indent}  "
        parts = [f"{deeper}{encode_basestring_ascii(name)}: {_shown(part, deeper)}" for name, part in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return json.dumps(value, allow_nan=False)
