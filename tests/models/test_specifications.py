"""`tenure verify` from a cold cache, as a user runs it: every module, every stage, PASS (DESIGN 7)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

STAGES = ["spec", "twin", "red", "reach", "bind", "real"]


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of one cold run."""
    place = tmp_path_factory.mktemp("verify")
    done = subprocess.run(
        [sys.executable, "-m", "tenure.adapters.cli", "verify", "--json", place / "report.json"],
        env=dict(os.environ, TENURE_CACHE=str(place / "cache")),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=place,
    )
    report: dict[str, Any] = json.loads((Path(place) / "report.json").read_text(encoding="utf-8"))
    report["exit"], report["output"] = done.returncode, done.stdout
    return report


def test_everything_passes(verified: dict[str, Any]) -> None:
    """Every stage of every module is PASS and the exit status is 0."""
    assert 0 == verified["exit"], verified["output"]
    assert "PASS" == verified["verdict"]
    for module in verified["modules"]:
        assert STAGES == [stage["stage"] for stage in module["stages"]]
        ran = [stage for stage in module["stages"] if "none" not in stage]
        assert {"PASS"} == {stage["verdict"] for stage in ran}, module["module"]
        assert {"bind", "real"} >= {stage["stage"] for stage in module["stages"]} - {stage["stage"] for stage in ran}


def test_the_protocols_of_leading_are_bound_and_run(verified: dict[str, Any]) -> None:
    """Their adapters are held against their twins, and real processes were run."""
    for module in verified["modules"]:
        if module["module"] in ("FileTransaction", "LeaderElection", "PollingOwnership"):
            assert not [stage["stage"] for stage in module["stages"] if "none" in stage]
            bound = next(stage for stage in module["stages"] if stage["stage"] == "bind")
            assert bound["states"] >= 20_000


def test_the_compared_graphs_are_no_toys(verified: dict[str, Any]) -> None:
    """With every guard on, the graphs that are compared have 20,000 states and 100,000 transitions and more."""
    graphs = [
        row
        for module in verified["modules"]
        for stage in module["stages"]
        if stage["stage"] == "twin"
        for row in stage["detail"]
        if row.get("off") == []
    ]
    assert sum(row["states"] for row in graphs) >= 20_000
    assert sum(row["transitions"] for row in graphs) >= 100_000


def test_every_guard_is_red_on_both_sides(verified: dict[str, Any]) -> None:
    """Each guard has its law, its property, and a story in TLC and in the twin."""
    for module in verified["modules"]:
        red = next(stage for stage in module["stages"] if stage["stage"] == "red")
        guards = [row for row in red["detail"] if "guard" in row]
        assert guards, module["module"]
        for row in guards:
            assert all([row["law"], row["property"]]), row
            assert min(row["tlc"], row["twin"]) >= 2, row
