"""`tenure verify` from a cold cache, as a user runs it: every module, every stage, PASS (DESIGN 7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cold_run import ColdRun

STAGES = ["spec", "twin", "red", "reach", "bind", "real"]


@pytest.fixture(scope="module")
def verified(cold_run: ColdRun) -> dict[str, Any]:
    """The report of one cold run."""
    return cold_run.report()


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
