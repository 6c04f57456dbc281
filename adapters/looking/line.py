"""One line of ``tenure status``, and durations as people say them."""

from __future__ import annotations

from typing import Final, Literal

import attrs

Mood = Literal["good", "quiet", "warn", "bad"]

_YEAR_MS: Final = 365 * 24 * 3_600_000


@attrs.frozen
class Line:
    """One line: what it is about, what there is to say, and how serious that is."""

    label: str
    text: str
    mood: Mood = "quiet"


def duration(ms: float) -> str:
    """A duration as people say it. Others write any number into a file, also such as no float can hold."""
    if abs(ms) > _YEAR_MS:
        return "more than a year"
    seconds = abs(ms) / 1000
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
