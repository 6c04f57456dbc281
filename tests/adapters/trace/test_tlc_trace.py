"""TLC is asked about what the twin explained, and agrees; and does not where a step is another."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from tenure.adapters.trace import tlc_trace
from tenure.adapters.trace.api import assert_explained

from .recorded import takeover, write


def test_tlc_has_the_behaviour_as_well(tmp_path: Path) -> None:
    """Of each module, the largest part; a literal module per part."""
    verdict = assert_explained(*write(takeover(), tmp_path))
    asked = tlc_trace.check(verdict, 40)
    assert asked.agrees, asked.message
    assert 2 == asked.message.count("as a behaviour")


def test_tlc_refuses_another_phase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate turns red: what was observed after the last step is not what the specification has."""
    verdict = assert_explained(*write(takeover(), tmp_path))
    honest = tlc_trace.lines

    def doctored(part: object, sample: int) -> list[tlc_trace.Line]:
        steps = honest(part, sample)  # type: ignore[arg-type]
        place = max(i for i, line in enumerate(steps) if line.phase)
        steps[place] = attrs.evolve(steps[place], phase="idle" if steps[place].phase != "idle" else "owner")
        return steps

    monkeypatch.setattr(tlc_trace, "lines", doctored)
    asked = tlc_trace.check(verdict, 10)
    assert not asked.agrees
    assert not asked.undetermined
    assert "has no behaviour beyond step" in asked.message
