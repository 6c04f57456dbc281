"""The seven laws (DESIGN 2), and how a guard says which of them it upholds.

A *guard* is a prohibition: taking it away lets something through that must not happen, and safety sees it.
A *permit* is a permission (retry, take over, wake up): taking it away blocks something that must happen, and
only liveness sees it. Both are pure static functions ``(data, message) -> bool`` of a chart; the mark made here is
what lets :meth:`tenure.machines.chart.Table.without` take one away, and what ``spec/GUARDS.md`` is generated from.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, TypeVar

import attrs


class Law(enum.Enum):
    """One of the seven laws. The value is the name used in TLA+ comments, the manifest and ``spec/GUARDS.md``."""

    FRESH = "Fresh"
    FENCE = "Fence"
    PROOF = "Proof"
    UNKNOWN = "Unknown"
    DURABLE_FIRST = "Durable first"
    LATE_IS_NOTHING = "Late is nothing"
    REFUSAL_IS_INERT = "Refusal is inert"


class Kind(enum.Enum):
    """Whether a name is a prohibition (``without`` makes it always true) or a permission (always false)."""

    GUARD = "guard"
    PERMIT = "permit"


@attrs.frozen
class Mark:
    """What a guard or permit function says of itself."""

    kind: Kind
    law: Law


MARK: Final = "__tenure_mark__"

_F = TypeVar("_F", bound=Callable[..., bool])


def guard(law: Law) -> Callable[[_F], _F]:
    """Mark a static function of a chart as a prohibition that upholds `law`."""
    return _marker(Mark(Kind.GUARD, law))


def permit(law: Law) -> Callable[[_F], _F]:
    """Mark a static function of a chart as a permission that `law` grants."""
    return _marker(Mark(Kind.PERMIT, law))


def mark_of(function: object) -> Mark | None:
    """The mark of a guard or permit function, or None for any other object."""
    found = getattr(function, MARK, None)
    return found if isinstance(found, Mark) else None


def _marker(mark: Mark) -> Callable[[_F], _F]:
    def put(function: _F) -> _F:
        setattr(function, MARK, mark)
        return function

    return put
