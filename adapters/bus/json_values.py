"""JSON as JavaScript has it: one kind of number, the last of equal keys, strings that may hold half a character.

`load` reads a line within bounds and raises `BadJson` for everything else, also for what would exhaust the stack, the
memory or the patience of a reader. `dump` spells a value as ``JSON.stringify`` does, byte for byte. (One thing differs:
JavaScript moves keys that are array indexes to the front of an object.)

Numbers are doubles. An integral one is an int here, whatever its size; what a double cannot hold (1e400) is no number,
and is null inside of values that are passed on, as JavaScript writes it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Final

import attrs

from tenure.machines.identity import Number

JsonValue = None | bool | Number | str | list["JsonValue"] | dict[str, "JsonValue"]
"""A JSON value as `load` answers it. What is inside is not changed by anybody."""

__all__ = ["Json", "JsonValue", "Number", "dump", "dump_bytes"]

_SAFE: Final = 2**53
_HALF: Final = re.compile("[\ud800-\udfff]")


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


def dump(value: JsonValue | Mapping[str, object]) -> str:
    """The compact spelling of `value`; tuples are arrays, a `Json` is what it holds. Half characters are escaped, so
    that it can be encoded. Raises RecursionError for what is nested far beyond what `load` answers."""
    parts: list[str] = []
    _spell(value, parts.append)
    text = "".join(parts)
    return text if text.isascii() else _HALF.sub(_escaped, text)


def dump_bytes(value: JsonValue | Mapping[str, object]) -> bytes:
    """`dump`, as UTF-8."""
    return dump(value).encode()


def _escaped(half: re.Match[str]) -> str:
    return f"\\u{ord(half[0]):04x}"


def _spell(value: object, put: Callable[[str], None]) -> None:
    if isinstance(value, str):
        put(encode_basestring(value))
    elif value is None:
        put("null")
    elif value is True:
        put("true")
    elif value is False:
        put("false")
    elif isinstance(value, int):
        put(str(value) if -_SAFE <= value <= _SAFE else _double(value))
    elif isinstance(value, float):
        put(_double(value))
    elif isinstance(value, Json):
        _spell(value.value, put)
    elif isinstance(value, Mapping):
        opening = "{"
        for name, member in value.items():
            put(opening)
            put(encode_basestring(name))
            put(":")
            _spell(member, put)
            opening = ","
        put("{}" if opening == "{" else "}")
    elif isinstance(value, (list, tuple)):
        opening = "["
        for member in value:
            put(opening)
            _spell(member, put)
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
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"
