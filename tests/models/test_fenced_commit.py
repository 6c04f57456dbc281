"""What a fenced commit must not do, as stories of the twin with one guard off, and none of them with all guards on."""

from __future__ import annotations

import pytest

from tenure.models.explore import check
from tenure.models.fenced_commit import CONFIGS, FencedCommit

STORIES = {
    "deposed": ("epoch_is_current", "NoStaleCommand_S24", ["Ask", "Take", "Enter", "Run"]),
    "replaced meanwhile": ("inside", "NoStaleCommand_S24", ["Ask", "Lock", "Run"]),
    "ghost": ("lease_is_live", "NothingAfterTheEnd_K11", ["Pass", "Tell", "Run"]),
    "torn registry": ("strict_read", "StaleIsProven", ["Enter", "Tear", "FindStale"]),
    "background job": ("ended_before_leaving", "NoStaleCommand_S24", ["Run", "Leave"]),
    "killed committer": ("dies_with_committer", "NoStaleCommand_S24", ["Run", "Crash", "Come"]),
    "stray": ("previous_command_is_over", "OneCommandAtATime", ["Run", "Crash", "Ask", "Lock", "Run"]),
    "stray without the lock": ("lock_is_inherited", "OneCommandAtATime", ["Run", "Crash", "Ask", "Lock", "Run"]),
    "hanging command": ("bounded", "OthersGetIn", ["Enter", "Run"]),
    "deaf command": ("kill_follows", "OthersGetIn", ["Enter", "Run"]),
    "no answer": ("patience_ends", "CommitAnswers", ["Ask"]),
}


@pytest.mark.parametrize(("guard", "property_", "told"), STORIES.values(), ids=list(STORIES))
def test_without_its_guard_it_happens(guard: str, property_: str, told: list[str]) -> None:
    """The story goes through these steps, in their order."""
    violation = check(FencedCommit(CONFIGS["alone"], {guard}), [property_]).violations[property_]

    steps = iter([label[0] for label, _ in violation.story if label is not None])
    assert all(step in steps for step in told), violation.story


@pytest.mark.parametrize("config", ["calm", "alone"])
def test_with_all_guards_it_does_not(config: str) -> None:
    """Every property holds on the whole graph; the two committers are left to `tenure verify`."""
    outcome = check(FencedCommit(CONFIGS[config]))

    assert outcome.complete
    assert outcome.violations == {}


def test_a_command_of_the_pair_is_alone() -> None:
    """Two committers: the safety of every reachable state, and of every step."""
    outcome = check(
        FencedCommit(CONFIGS["pair"]),
        ["NoStaleCommand_S24", "OneCommandAtATime", "NothingAfterTheEnd_K11", "StaleIsProven"],
    )

    assert outcome.complete
    assert outcome.violations == {}
