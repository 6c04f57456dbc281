"""A red twin in Python: the story that a missing guard tells, for `tenure explain` and ``spec/GUARDS.md``.

The verifier's stage `red` shows the same in TLC as well; here no Java is needed and a story takes a second.
"""

from __future__ import annotations

from typing import Any

import attrs

from tenure.adapters.spec_text import Texts
from tenure.adapters.verify.manifest import GuardEntry, ModuleEntry
from tenure.models.explore import Violation, check


@attrs.frozen
class Red:
    """A guard taken away: what is off with it, and the violation (None: the property still holds)."""

    guard: GuardEntry
    off: tuple[str, ...]
    violation: Violation[Any] | None

    @property
    def length(self) -> int:
        """States in the story; 0 when there is none."""
        return self.violation.length if self.violation is not None else 0


def red(entry: ModuleEntry, name: str) -> Red:
    """Explore without the guard, and without those that cover it, until its property breaks."""
    guard = entry.guards[name]
    off = (name, *guard.covered_by)
    world = entry.world(guard.config, off)
    return Red(guard, off, check(world, [guard.property]).violations.get(guard.property))


def meaning(entry: ModuleEntry, name: str) -> str:
    """What the guard upholds and what goes wrong without it: its docstring in the chart, or what the module says."""
    for table in entry.twin.tables if entry.twin is not None else ():
        for row in table:
            for guard in row.guards:
                if guard.name == name and guard.holds.__doc__:
                    return " ".join(guard.holds.__doc__.split())
    return Texts(entry.spec, entry.root).about(name)
