"""What a verification answers: verdicts, rows, stages, modules (DESIGN 7)."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

import attrs

Value = str | int | float | bool | None | list[str]


class Verdict(enum.Enum):
    """The four answers, and the exit status of each."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNDETERMINED = "UNDETERMINED"
    RAN_NOTHING = "RAN-NOTHING"

    @property
    def exit_status(self) -> int:
        return {"PASS": 0, "FAIL": 1, "UNDETERMINED": 3, "RAN-NOTHING": 4}[self.value]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """FAIL over UNDETERMINED over RAN-NOTHING over PASS; RAN-NOTHING for no verdict at all."""
    given = set(verdicts)
    for verdict in (Verdict.FAIL, Verdict.UNDETERMINED, Verdict.RAN_NOTHING, Verdict.PASS):
        if verdict in given:
            return verdict
    return Verdict.RAN_NOTHING


@attrs.frozen
class StageResult:
    """One stage of one module. `detail` has a row for each configuration, graph, guard or table looked at; each row
    has at least ``verdict`` and, when that is not PASS, ``message`` with the story."""

    stage: str
    verdict: Verdict
    seconds: float
    states: int
    transitions: int
    detail: tuple[Mapping[str, Value], ...] = ()
    none: str = ""
    """Why there is nothing to run, where the manifest says so: then it has no part in a verdict."""


@attrs.frozen
class ModuleResult:
    """All stages of one module."""

    module: str
    stages: tuple[StageResult, ...]

    @property
    def verdict(self) -> Verdict:
        return worst(s.verdict for s in self.stages if not s.none)
