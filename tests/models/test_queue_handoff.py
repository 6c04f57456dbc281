"""What must not become of an item that moves, as stories of the twin with one guard off; none with all guards on."""

from __future__ import annotations

import pytest

from tenure.models.explore import check
from tenure.models.queue_handoff import CONFIGS, QueueHandoff

STORIES = {
    "another's work (I17)": ("may_take", "OwnBinding_I17", "two", ["Take"]),
    "two believe to have it (I21)": ("taker_has_it", "OneExecutor_I25_knows", "two", ["Forget", "Rebuild"]),
    "the recipient executes what it was only offered (M21a, M25b)": (
        "process_owns",
        "OneExecutor_I25",
        "two",
        ["Stage", "Start"],
    ),
    "the past settles for the present (M21b)": (
        "acquisition_is_current",
        "OwnerSettles_I21",
        "reload",
        ["Start", "Forget", "Rebuild", "Retry", "Take", "Start", "LateCall"],
    ),
    "begun while offered (M25a, F17)": ("offered_is_frozen", "FrozenWhileOffered_I28", "two", ["Freeze", "Start"]),
    "late offer accepted (M27)": (
        "offer_is_that",
        "AcceptIsExact_I27",
        "two",
        ["Stage", "Cancel", "Freeze", "Accept"],
    ),
    "somebody else's offer accepted (M27)": (
        "recipient_is_me",
        "AcceptIsExact_I27_recipient",
        "third",
        ["Relay", "Stray", "Stage", "Accept"],
    ),
    "a second offer (M28, F15)": ("one_offer", "FrozenWhileOffered_I28_other", "forget", ["Freeze", "LateCall"]),
    "accepted, says who is not the owner (M29)": ("accepted_before", "OneExecutor_I25_knows", "two", ["Accept"]),
    "dropped for a refusal (M30)": ("ack_is_exact", "ExactAck_I30", "two", ["Freeze", "RelayRefuses", "Acked"]),
    "dropped too early (M26a)": ("kept_until_acknowledged", "ExactAck_I30", "two", ["Freeze", "DropEarly"]),
    "thawed by a late call (M26b)": (
        "offer_still_open",
        "FrozenWhileOffered_I28_awaited",
        "forget",
        ["Forget", "Freeze", "LateCall"],
    ),
    "accepted, then unstaged (M26c, L3)": ("released_in_journal", "WorkIsHeld_I26", "two", ["Accept", "CheckFails"]),
    "unverifiable is dead (M22a)": ("owner_proven_dead", "RecoveryNeedsProof_I22", "elder", ["Take", "Recover"]),
    "an old proof (M22c)": ("owner_is_expected", "RecoveryNeedsProof_I22", "two", ["Crash", "Recover", "Recover"]),
    "the offer of the dead (L1, F7)": ("offer_of_the_dead_falls", "DeadIsRecovered_V6", "two", ["Freeze", "Crash"]),
    "frozen for ever (L4, F5)": ("refused_cancel_looks", "DonorDrops_V9", "two", ["TimeOut", "Accept"]),
    "the donor's copy stays (M25c)": ("row_is_mine", "DonorDrops_V9", "two", ["TimeOut", "CancelRefused"]),
    "a yes and then a no (L5, F14)": ("live_answers_again", "AcceptIdempotent_I29", "two", ["Publish", "Refuse"]),
    "once and no more, by the leader (L6)": ("leader_can_carry", "MovesOn_L6", "elder", ["Accept", "AcceptRefused"]),
    "once and no more, by the peer (L6, F19)": (
        "second_move_known",
        "MovesOn_L6",
        "peers",
        ["Accept", "AcceptRefused"],
    ),
    "reloaded, stranded (L7)": ("own_past_is_over", "ReloadIsRecovered_V7", "reload", ["Take", "Reload"]),
    "accepted by who cannot (F21)": ("has_a_worker", "EventuallyExecutedOrInterrupted_V10", "peers", ["Accept"]),
    "poison without end (V5)": ("attempts_left", "EventuallyExecutedOrInterrupted_V10", "poison", ["Fail", "Take"]),
    "swept away (M21c)": ("owned_is_kept", "OwnerSettles_I21_done", "elder", ["Take", "Sweep"]),
    "twice, and nobody wanted it": ("a_person_asks", "AtMostOnce", "reload", ["Start", "Retry", "Start"]),
}


@pytest.mark.parametrize(("guard", "property_", "config", "told"), STORIES.values(), ids=list(STORIES))
def test_without_its_guard_it_happens(guard: str, property_: str, config: str, told: list[str]) -> None:
    """The story goes through these steps, in their order."""
    violation = check(QueueHandoff(CONFIGS[config], {guard}), [property_]).violations[property_]

    steps = iter([label[0] for label, _ in violation.story if label is not None])
    assert all(step in steps for step in told), violation.story


@pytest.mark.parametrize("config", CONFIGS)
def test_with_all_guards_it_does_not(config: str) -> None:
    """Every property holds on the whole graph."""
    outcome = check(QueueHandoff(CONFIGS[config]))

    assert outcome.complete
    assert outcome.violations == {}
