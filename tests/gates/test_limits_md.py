"""The bounds in ``spec/LIMITS.md`` are those of the program."""

from __future__ import annotations

import re
from pathlib import Path

from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.database import BUSY_MS

TEXT = (Path(__file__).parents[2] / "spec" / "LIMITS.md").read_text(encoding="utf-8")


def bounds(text: str) -> dict[str, int]:
    """The bounds that a table of such a text names, by their names in `Limits`."""
    found = re.findall(r"^\| [^|]* \| `(\w+)` \| ([\d,]+) \|$", text, re.MULTILINE)
    return {name: int(value.replace(",", "")) for name, value in found}


def test_bounds_are_those_of_a_journal() -> None:
    """Each bound, and its number."""
    limits = Limits()
    told = bounds(TEXT)
    assert told == {name: getattr(limits, name) for name in told}
    assert set(told) | {"grace_ms"} == {field.name for field in Limits.__attrs_attrs__}  # type: ignore[attr-defined]


def test_times_are_those_of_the_program() -> None:
    """The grace, how long a transaction waits, and when a handler is called again."""
    assert f"the grace ({DEFAULT.grace_ms / 1000} s)" in TEXT
    assert Limits().grace_ms == DEFAULT.grace_ms
    assert f"an error says it after {BUSY_MS / 1000} s" in TEXT
    delays = [min(DEFAULT.retry_last_ms, DEFAULT.retry_first_ms << n) // 1000 for n in range(Limits().attempts - 1)]
    assert f"after {', '.join(map(str, delays[:-1]))} and {delays[-1]} s" in TEXT


def test_a_wrong_number_is_found() -> None:
    """A bound is read off its line."""
    assert bounds("| x of y | `entries` | 1,000 |\n| a | b | c |\n") == {"entries": 1000}
