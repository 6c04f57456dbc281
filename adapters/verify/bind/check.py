"""The checks of the stage `bind`: one for each configuration that a module's adapter is bound in."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

import attrs

from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.explore import explore
from tenure.adapters.verify.bind.situations import Limits
from tenure.adapters.verify.cache import digest_of_sources
from tenure.adapters.verify.checks import Checked, Row, Tools
from tenure.adapters.verify.effort import Effort
from tenure.adapters.verify.manifest import ManifestError, ModuleEntry
from tenure.adapters.verify.result import Verdict

LIMITS: Final[Mapping[Effort, Limits]] = {
    Effort.QUICK: Limits(situations=200_000, seconds=60),
    Effort.THOROUGH: Limits(situations=2_000_000, seconds=900),
}


@attrs.frozen
class BindCheck:
    """One adapter in one configuration, held against its twin."""

    entry: ModuleEntry
    name: str
    bound: Bound
    effort: Effort
    sources: str
    """A hash of what it runs."""

    @property
    def title(self) -> str:
        return f"{self.entry.name} bind {self.name}"

    @property
    def stages(self) -> tuple[str, ...]:
        return ("bind",)

    def key(self) -> tuple[str, ...]:
        return ("bind", self.name, self.sources)

    def run(self, tools: Tools) -> Checked:
        found = explore(self.bound.binding(), LIMITS[self.effort])
        row: Row = {
            "config": self.name,
            "seconds": round(found.seconds, 2),
            "states": found.situations,
            "transitions": found.steps,
            "locals": found.locals,
            "sets": found.sets,
        }
        verdict, message = Verdict.PASS, ""
        if found.story:
            verdict, message = Verdict.FAIL, "\n".join((f"{self.name}:", *(f"  {line}" for line in found.story)))
        elif found.limit:
            verdict, message = Verdict.UNDETERMINED, f"{self.name}: a limit was hit: {found.limit}"
        elif found.situations < self.bound.least:
            verdict = Verdict.FAIL
            message = f"{self.name}: {found.situations} situations, where there were {self.bound.least} at least: idle?"
        row["verdict"] = verdict.value
        if message:
            row["message"] = message
        return Checked((("bind", row),))


def bind_checks(entry: ModuleEntry, effort: Effort) -> list[BindCheck]:
    """Those that the module's manifest names, the small ones only for `quick`. Raises `ManifestError`."""
    if entry.bind is None or entry.bind.startswith("none:"):
        return []
    table = named(entry, entry.bind)
    found = digest_of_sources(entry.bind.partition(":")[0], __name__)
    return [
        BindCheck(entry, name, bound, effort, found)
        for name, bound in table.items()
        if effort is Effort.THOROUGH or not bound.thorough
    ]


def named(entry: ModuleEntry, name: str) -> Any:
    """What ``module:name`` names. Raises `ManifestError`."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise ManifestError(f"[{entry.name}] {name} cannot be imported: {type(error).__name__}: {error}") from error
