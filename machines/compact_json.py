"""What identities are hashes of: compact JSON as JavaScript spells it (bus.md c, d, e).

Both systems have to come to the same bytes. Members stand in the order in which they are given, nothing between them;
half a character is escaped, and so are quotes, backslashes and what is below a blank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

Value = None | bool | int | str | Sequence["Value"] | Mapping[str, "Value"]
"""What an identity is made of. Integers are safe ones (below 2^53), since JavaScript has no others."""

_SHORT: Final = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_ESCAPES: Final = {code: f"\\u{code:04x}" for code in range(32)} | _SHORT


def compact(value: Value) -> bytes:
    """The compact spelling of `value`, as UTF-8."""
    # What cannot be encoded is half a character, and its escape is JavaScript's.
    return _spelled(value).encode("utf-8", "backslashreplace")


def digest(value: Value) -> str:
    """SHA-256 of the compact spelling, 64 hex digits."""
    return sha256(compact(value)).hexdigest()


def _spelled(value: Value) -> str:
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        members = ",".join(f"{_spelled(name)}:{_spelled(member)}" for name, member in value.items())
        return "{" + members + "}"
    return "[" + ",".join(map(_spelled, value)) + "]"
