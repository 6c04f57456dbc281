"""Values as text that is the same in every process, for digests."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs


def spelled(value: object) -> str:
    """A value as its class would be called with it; sets in the order of their texts, so that no hash shows."""
    if isinstance(value, enum.Enum):
        return str(value)
    kind: Any = type(value)
    if attrs.has(kind):
        inner = (f"{f.name}={spelled(getattr(value, f.name))}" for f in attrs.fields(kind))
        return f"{kind.__name__}({', '.join(inner)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{spelled(k)}: {spelled(v)}" for k, v in value.items())) + "}"
    if isinstance(value, (frozenset, set)):
        return "{" + ", ".join(sorted(map(spelled, value))) + "}"
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(spelled, value)) + ")"
    return repr(value)
