"""What a probe found, as values, in words, and in JSON."""

from __future__ import annotations

from typing import Literal

import attrs

Mood = Literal["good", "quiet", "warn", "bad"]


@attrs.frozen
class Row:
    """One measurement: what was found, and what that means for tenure. A `bad` one: tenure cannot run here."""

    name: str
    found: str
    means: str = ""
    mood: Mood = "good"


@attrs.frozen
class Probe:
    """All measurements of one directory."""

    directory: str
    rows: tuple[Row, ...]

    @property
    def fit(self) -> bool:
        """Whether tenure can run here."""
        return all(row.mood != "bad" for row in self.rows)


def verdict(found: Probe) -> str:
    """In one line."""
    warnings = sum(row.mood == "warn" for row in found.rows)
    if not found.fit:
        bad = ", ".join(row.name for row in found.rows if row.mood == "bad")
        return f"tenure cannot run here: {bad}"
    return "tenure can run here" + (f", with {warnings} warning{'s' if warnings > 1 else ''}" if warnings else "")


def as_json(found: Probe) -> dict[str, object]:
    """The shape of ``tenure doctor --probe --json``. `mood` is good, quiet (a fact), warn or bad."""
    return {
        "directory": found.directory,
        "fit": found.fit,
        "rows": [{"name": r.name, "found": r.found, "means": r.means, "mood": r.mood} for r in found.rows],
    }
