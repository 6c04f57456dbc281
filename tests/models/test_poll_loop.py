"""The scenarios of locks.md 10 as stories of the twin with one guard off, and none of them with all guards on."""

from __future__ import annotations

import pytest

from tenure.models.explore import check
from tenure.models.poll_loop import CONFIGS, PollLoop

SCENARIOS = {
    "A64-deaf": ("deaf_poll_ends", "EventuallyPolled", "alone", ["Deafen"]),
    "A67-backwards": ("offset_only_grows", "CursorNeverDecreases_S35", "pair", ["Persist", "Persist"]),
    "A68-unordered": ("in_order", "CursorNeverDecreases_S35", "alone", ["Persist", "Answer", "Record", "Persist"]),
    "A68-lost": ("appended", "JournalBeforeOffset_S35", "alone", ["Answer", "Record", "Persist"]),
    "A68-skipped": ("still_first_start", "NothingSkipped_S35", "pair", ["Open", "Send", "Answer", "Record"]),
    "K18-rollback": ("persisted", "ConfirmOnlyPersisted_K18", "alone", ["Record", "Persist"]),
}


@pytest.mark.parametrize(("guard", "property_", "config", "told"), SCENARIOS.values(), ids=list(SCENARIOS))
def test_without_its_guard_the_scenario_happens(guard: str, property_: str, config: str, told: list[str]) -> None:
    """The story goes through the steps that the scenario names, in their order."""
    violation = check(PollLoop(CONFIGS[config], {guard}), [property_]).violations[property_]

    steps = iter([label[0] for label, _ in violation.story if label is not None])
    assert all(step in steps for step in told), violation.story


@pytest.mark.parametrize("config", CONFIGS)
def test_with_all_guards_it_does_not(config: str) -> None:
    """Every property holds on the whole graph."""
    outcome = check(PollLoop(CONFIGS[config]))

    assert outcome.complete
    assert outcome.violations == {}
