"""What a request ledger must not do, as stories of the twin with one guard off, and none of them with all guards on."""

from __future__ import annotations

import pytest

from tenure.models.explore import check
from tenure.models.request_ledger import CONFIGS, RequestLedger

STORIES = {
    "two executions, since nobody knew": (
        "without_effect",
        "ExecutedOnce",
        "register",
        ["Settle", "Execute", "Settle"],
    ),
    "two executions beside a full ledger": ("is_heartbeat", "ExecutedOnce", "full", ["Execute", "ExecuteAlone"]),
    "repeated after its eviction": ("repeats_end_in_time", "ExecutedOnce", "full", ["Execute", "Execute", "Execute"]),
    "no bound": ("has_room", "WithinBound", "full", ["Execute", "Execute"]),
    "heartbeat refused (L20)": ("heartbeats_pass", "HeartbeatsPass_L20", "full", ["Execute", "Overload"]),
    "somebody else's answer": ("same_body", "SameBodyOnly", "register", ["Execute", "Join", "Settle"]),
    "failure for ever (L13)": ("failure_is_forgotten", "FailureIsForgotten_L13", "register", ["Settle", "Replay"]),
    "pruned, and acknowledged (L14)": ("still_stands", "AckStillStands_L14", "register", ["Settle", "Prune", "Replay"]),
    "cancelled for all": ("others_wait", "EventuallyAnswered", "register", ["Execute", "Join", "Leave"]),
}


@pytest.mark.parametrize(("guard", "property_", "config", "told"), STORIES.values(), ids=list(STORIES))
def test_without_its_guard_it_happens(guard: str, property_: str, config: str, told: list[str]) -> None:
    """The story goes through these steps, in their order."""
    violation = check(RequestLedger(CONFIGS[config], {guard}), [property_]).violations[property_]

    steps = iter([label[0] for label, _ in violation.story if label is not None])
    assert all(step in steps for step in told), violation.story


@pytest.mark.parametrize("config", CONFIGS)
def test_with_all_guards_it_does_not(config: str) -> None:
    """Every property holds on the whole graph."""
    outcome = check(RequestLedger(CONFIGS[config]))

    assert outcome.complete
    assert outcome.violations == {}
