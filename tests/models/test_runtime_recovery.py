"""The scenarios of locks.md 8 as stories of the twin with one guard off, and none of them with all guards on."""

from __future__ import annotations

import pytest

from tenure.models.explore import check
from tenure.models.runtime_recovery import CONFIGS, RuntimeRecovery

SCENARIOS = {
    "A28": ("lease_is_over", "EventuallyHealed_V13", "together", ["ReusePid"]),
    "A29": ("no_own_owner", "QuarantineOnlyUnowned_S36", "together", ["Inspect", "Commit", "Confirm", "MoveState"]),
    "A31": ("recovery_is_free", "QuarantineOnlyUnowned_S36", "apart", ["Enter", "Enter", "Secure", "MoveGuard"]),
    "A32-release": ("release_failure_is_logged", "EventuallyHealed_V13", "broken", ["Look", "Suspend"]),
    "A32-stop": ("polling_stopped", "MoverIsQuiet_S36", "together", ["Start", "Look", "Suspend", "Inspect"]),
    "S36": ("no_foreign_owner", "QuarantineOnlyUnowned_S36", "broken", ["Inspect", "Commit", "Confirm", "MoveState"]),
}


@pytest.mark.parametrize(("guard", "property_", "config", "told"), SCENARIOS.values(), ids=list(SCENARIOS))
def test_without_its_guard_the_scenario_happens(guard: str, property_: str, config: str, told: list[str]) -> None:
    """The story goes through the steps that the scenario names, in their order."""
    violation = check(RuntimeRecovery(CONFIGS[config], {guard}), [property_]).violations[property_]

    steps = iter([label[0] for label, _ in violation.story if label is not None])
    assert all(step in steps for step in told), violation.story


@pytest.mark.parametrize("config", ["together", "broken"])
def test_with_all_guards_it_does_not(config: str) -> None:
    """Every property holds on the whole graph; the configuration of two recoverers is left to `tenure verify`."""
    outcome = check(RuntimeRecovery(CONFIGS[config]))

    assert outcome.complete
    assert outcome.violations == {}
