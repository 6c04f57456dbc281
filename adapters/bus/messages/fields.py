"""Reading the members of an object that came over the wire: mandatory, checked where present, or dropped.

A wrong member raises `Wrong`, which names it by its path from the top; whoever began to read answers a
`Malformed`.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from tenure.adapters.bus.messages.json_values import SAFE, Json, JsonValue
from tenure.machines.identity import Number

_LETTER: Final = re.compile("[A-Z]")


@attrs.frozen
class Malformed:
    """A line that is no envelope. `field`: the path of the member that is missing or malformed, as in
    ``registration.target``; ``line`` for the line as a whole."""

    field: str
    problem: str

    @property
    def reason(self) -> str:
        """In words: ``registration.instanceId is missing``."""
        return f"{self.field} {self.problem}"


class Wrong(Exception):
    """A member is missing or malformed."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field = field
        self.problem = problem


def integer_of(value: JsonValue, least: int = -SAFE) -> int | None:
    """`value` as a safe integer that is not below `least`; None for everything else, also true."""
    return value if type(value) is int and least <= value <= SAFE else None


class Fields:
    """An object's members, and where it stands."""

    __slots__ = ("_path", "_value")

    def __init__(self, value: dict[str, JsonValue], path: str = "") -> None:
        self._value = value
        self._path = path

    def wrong(self, name: str, problem: str) -> Wrong:
        """To be raised: what is wrong with a member."""
        return Wrong(self._path + name, problem)

    def has(self, name: str) -> bool:
        """Whether there is such a member, null or not."""
        return name in self._value

    def raw(self, name: str) -> JsonValue:
        """A member as it is; None for null and for none."""
        return self._value.get(name)

    # Mandatory ones

    def text(self, name: str) -> str:
        """A string."""
        value = self._value.get(name)
        if not isinstance(value, str):
            raise self._no(name, "string")
        return value

    def some_text(self, name: str) -> str:
        """A string that is not empty."""
        value = self.text(name)
        if not value:
            raise self.wrong(name, "is empty")
        return value

    def number(self, name: str) -> Number:
        """A number that a double can hold."""
        value = self._value.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._no(name, "finite number")
        return value

    def integer(self, name: str, least: int = -SAFE) -> int:
        """A safe integer that is not below `least`."""
        value = integer_of(self._value.get(name), least)
        if value is None:
            raise self._no(name, "safe integer" if least == -SAFE else f"integer from {least} on")
        return value

    def boolean(self, name: str) -> bool:
        """True or false."""
        value = self._value.get(name)
        if not isinstance(value, bool):
            raise self._no(name, "boolean")
        return value

    def object(self, name: str) -> Fields:
        """An object."""
        value = self._value.get(name)
        if not isinstance(value, dict):
            raise self._no(name, "object")
        return Fields(value, f"{self._path}{name}.")

    def array(self, name: str) -> list[JsonValue]:
        """An array."""
        value = self._value.get(name)
        if not isinstance(value, list):
            raise self._no(name, "array")
        return value

    def objects(self, name: str) -> list[Fields]:
        """An array of objects."""
        return [
            Fields(value, f"{self._path}{name}[{n}].") if isinstance(value, dict) else self._raise(name, n)
            for n, value in enumerate(self.array(name))
        ]

    def integers(self, name: str) -> tuple[int, ...]:
        """An array of safe integers."""
        found: list[int] = []
        for n, value in enumerate(self.array(name)):
            integer = integer_of(value)
            if integer is None:
                raise self.wrong(f"{name}[{n}]", "is not a safe integer")
            found.append(integer)
        return tuple(found)

    # Absent, or right

    def text_if_any(self, name: str) -> str | None:
        """A string, or no such member."""
        return self.text(name) if name in self._value else None

    def boolean_if_any(self, name: str) -> bool | None:
        """True or false, or no such member."""
        return self.boolean(name) if name in self._value else None

    # Dropped where they are wrong

    def text_or_none(self, name: str) -> str | None:
        """A string; whatever else is dropped."""
        value = self._value.get(name)
        return value if isinstance(value, str) else None

    def integer_or_none(self, name: str, least: int = -SAFE) -> int | None:
        """A safe integer that is not below `least`; whatever else is dropped."""
        return integer_of(self._value.get(name), least)

    def letter_or_none(self, name: str) -> str | None:
        """One letter A to Z; whatever else is dropped."""
        value = self._value.get(name)
        return value if isinstance(value, str) and _LETTER.fullmatch(value) else None

    def json_if_any(self, name: str) -> Json | None:
        """Any value, as it is; None where there is no such member."""
        return Json(self._value[name]) if name in self._value else None

    def _no(self, name: str, kind: str) -> Wrong:
        article = "an" if kind[0] in "aio" else "a"
        return self.wrong(name, f"is not {article} {kind}" if name in self._value else "is missing")

    def _raise(self, name: str, place: int) -> Fields:
        raise self.wrong(f"{name}[{place}]", "is not an object")
