"""JSON as JavaScript has it: one kind of number, the last of equal keys, strings that may hold half a character.

`load` reads a line within bounds and raises `BadJson` for everything else, also for what would exhaust the stack, the
memory or the patience of a reader. `dump` spells a value as ``JSON.stringify`` does, byte for byte. (One thing differs:
JavaScript moves keys that are array indexes to the front of an object.)

Numbers are doubles. An integral one is an int here, whatever its size; what a double cannot hold (1e400) is no number,
and is null inside of values that are passed on, as JavaScript writes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Final, cast

import attrs

from tenure.machines.identity import Number

JsonValue = None | bool | Number | str | list["JsonValue"] | dict[str, "JsonValue"]
"""A JSON value as `load` answers it. What is inside is not changed by anybody."""

LINE_LIMIT: Final = 16 * 2**20
"""Bytes of the longest line that is read. (The other system has no limit.)"""
VALUES_LIMIT: Final = 2**16
"""Values in one line. A line of many small ones would take hundreds of times its length of memory."""
DEPTH_LIMIT: Final = 128
"""How deep values may be nested in each other."""
SAFE: Final = 2**53 - 1
"""The greatest integer that a double tells from its neighbours."""

_STACK: Final = 2 * DEPTH_LIMIT
"""How deep a walk over a value goes: whatever it is made of, it does not use up the stack."""
_TOO_DEEP: Final = f"is nested deeper than {DEPTH_LIMIT}"
_TOO_LONG: Final = f"is longer than {LINE_LIMIT} bytes"
_BLANK: Final = " \t\n\r"
_BRACKETS: Final = b"[]{}"
_OTHERS: Final = bytes(set(range(256)) - set(_BRACKETS))


@attrs.frozen(eq=False, repr=False)
class Json:
    """A value that is passed on as it is, a message or the result of a call. Equal where the text is: to Python True
    is 1, and an object knows no order."""

    value: JsonValue

    @property
    def text(self) -> str:
        """The compact spelling."""
        return dump(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Json) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        text = self.text
        return f"Json({text if len(text) <= 80 else text[:77] + '...'})"


def plain(value: object, depth: int = 0) -> JsonValue:
    """`value` as `load` would answer it: tuples are arrays, a `Json` is what it holds. Raises TypeError for what is no
    JSON value, BadJson for what is nested far deeper than `load` allows; `depth`: how deep it is nested itself."""
    if isinstance(value, Json):
        return value.value
    if depth > _STACK:
        raise BadJson(_TOO_DEEP)
    if isinstance(value, Mapping):
        return {name: plain(member, depth + 1) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(member, depth + 1) for member in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} is no JSON value")


class BadJson(ValueError):
    """The text is no JSON that is read here. The message says what is wrong with it, as in "it ...": is not UTF-8."""


def load(line: bytes, *, long: bool = False) -> JsonValue:
    """The value that a line is, in a time and a memory bounded by its length. `long`: it is no line but a text of ours,
    of any length and with any number of values. Raises BadJson; and RecursionError, where the caller has used up nearly
    all of the stack."""
    if len(line) > LINE_LIMIT and not long:
        raise BadJson(_TOO_LONG)
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJson(f"is not UTF-8 (byte {error.start + 1})") from error
    if text.startswith("\ufeff"):
        raise BadJson("begins with a byte order mark")
    _bound(line, long)
    try:
        return cast(JsonValue, _DECODER.decode(text))
    except json.JSONDecodeError as error:
        if not text.strip(_BLANK):
            raise BadJson("is blank") from error
        raise BadJson(f"is not JSON ({error.msg}, character {error.pos + 1})") from error
    except ValueError as error:
        raise BadJson(f"is not JSON ({error})") from error


def within(line: bytes, *, long: bool = False) -> bytes:
    """The line, which is JSON, if `load` reads it: it is not longer, not nested deeper, and has not more values. Raises
    BadJson."""
    if len(line) > LINE_LIMIT and not long:
        raise BadJson(_TOO_LONG)
    _bound(line, long)
    return line


def _bound(line: bytes, long: bool) -> None:
    """Refuse what has more values, or is nested deeper, than any line of the protocol. Nearly always the first few
    counts say that it cannot be; only where they do not are the strings taken out, whose signs count for nothing."""
    openings = line.count(b"[") + line.count(b"{")
    if openings <= DEPTH_LIMIT and (long or openings + line.count(b",") < VALUES_LIMIT):
        return
    # Backslashes stand inside of strings only, else it is no JSON anyway: without the escaped ones, and then without
    # the escaped quotes, every quote begins or ends a string.
    bare = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    if bare.count(b'"') > 4 * VALUES_LIMIT and not long:
        raise BadJson(f"holds more than {VALUES_LIMIT} values")
    structure = b"".join(bare.split(b'"')[::2])
    openings = structure.count(b"[") + structure.count(b"{")
    if openings + structure.count(b",") >= VALUES_LIMIT and not long:
        raise BadJson(f"holds more than {VALUES_LIMIT} values")
    depth = 0
    for sign in structure.translate(None, _OTHERS)[: 2 * openings]:
        depth += 1 if sign in b"[{" else -1
        if depth > DEPTH_LIMIT:
            raise BadJson(_TOO_DEEP)


def _integer(digits: str) -> Number | None:
    return int(digits) if len(digits) <= 15 else _real(digits)


def _real(digits: str) -> Number | None:
    value = float(digits)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() else value


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is none")


_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_float=_real, parse_constant=_no_constant)


def dump(value: JsonValue | Mapping[str, object]) -> str:
    """The compact spelling of `value`; tuples are arrays, a `Json` is what it holds. Half characters are escaped.
    Raises BadJson for what is nested far deeper than `load` allows."""
    return dump_bytes(value).decode()


def dump_bytes(value: JsonValue | Mapping[str, object]) -> bytes:
    """`dump`, as UTF-8."""
    parts: list[str] = []
    _spell(value, parts.append)
    # What cannot be encoded is half a character, and its escape is JavaScript's.
    return "".join(parts).encode("utf-8", "backslashreplace")


def _spell(value: object, put: Callable[[str], None], depth: int = 0) -> None:
    if isinstance(value, str):
        put(encode_basestring(value))
    elif value is None:
        put("null")
    elif value is True:
        put("true")
    elif value is False:
        put("false")
    elif isinstance(value, int):
        put(str(value) if -SAFE <= value <= SAFE else _double(value))
    elif isinstance(value, float):
        put(_double(value))
    elif isinstance(value, Json):
        _spell(value.value, put, depth)
    elif depth > _STACK:
        raise BadJson(_TOO_DEEP)
    elif isinstance(value, Mapping):
        opening = "{"
        for name, member in value.items():
            put(opening)
            put(encode_basestring(name))
            put(":")
            _spell(member, put, depth + 1)
            opening = ","
        put("{}" if opening == "{" else "}")
    elif isinstance(value, (list, tuple)):
        opening = "["
        for member in value:
            put(opening)
            _spell(member, put, depth + 1)
            opening = ","
        put("[]" if opening == "[" else "]")
    else:
        raise TypeError(f"{type(value).__name__} is no JSON value")


def _double(number: Number) -> str:
    """A number as JavaScript prints it: the shortest digits that mean it, an exponent from 1e21 on and below 1e-6."""
    try:
        value = float(number)
    except OverflowError:
        return "null"
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or "0") - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if not -6 < point <= 21:
        tail = f".{digits[1:]}" if count > 1 else ""
        return f"{sign}{digits[0]}{tail}e{point - 1:+d}"
    if count <= point:
        return sign + digits + "0" * (point - count)
    if point > 0:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    return f"{sign}0.{'0' * -point}{digits}"
