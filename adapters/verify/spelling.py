"""Values as text that is the same in every process, for digests."""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping
from typing import Final

import attrs

_PLAIN: Final = (str, int, bool, type(None))


def spelled(value: object) -> str:
    """A value as its class would be called with it; sets in the order of their texts, so that no hash shows."""
    kind: type = type(value)
    if kind in _PLAIN:
        return repr(value)
    names = _fields(kind)
    if names is not None:
        return f"{kind.__name__}({', '.join([f'{name}={spelled(getattr(value, name))}' for name in names])})"
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{spelled(k)}: {spelled(v)}" for k, v in value.items())) + "}"
    if isinstance(value, (frozenset, set)):
        return "{" + ", ".join(sorted(map(spelled, value))) + "}"
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(spelled, value)) + ")"
    return repr(value)


@functools.cache
def _fields(kind: type) -> tuple[str, ...] | None:
    """The fields that a value of this class is called with; None for a class without."""
    if issubclass(kind, enum.Enum) or not attrs.has(kind):
        return None
    return tuple(field.name for field in attrs.fields(kind))
