"""What must not happen to an update, as stories of the twin with one guard off, and none of them with all guards on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from tenure.models.durable_admission import CONFIGS, DurableAdmission
from tenure.models.durable_admission_state import State, current, leads
from tenure.models.explore import Graph, check, explore

ONCE = "AtMostOnce_I15"

STORIES = {
    "confirmed before it is journaled (M18)": (
        "journal_first",
        "JournalBeforeConfirm_I18",
        "once",
        ["Serve", "Poll", "Serve"],
    ),
    "a negative offset": ("never_negative", "NothingLost", "room", ["Poll", "Send", "Send", "Serve"]),
    "thrown away as history": (
        "epoch_current",
        "StaleLeaderInert",
        "leaders",
        ["Lead", "Open", "Send", "Serve", "Journal"],
    ),
    "an old answer, taken for a new numbering": (
        "asked_again",
        ONCE,
        "alone",
        ["Effect", "Forget", "Renumber", "Journal", "Keep", "Effect"],
    ),
    "stopped by what no instance can take": (
        "aside_passes",
        "PoisonPasses_V5",
        "mute",
        ["Forward", "Unheard", "Unanswered"],
    ),
    "an old answer": ("above_offset", ONCE, "alone", ["Effect", "Forget", "Journal", "Keep", "Effect"]),
    "no bound": ("has_room", "Bounded_I23", "room", ["Keep", "Journal", "Keep"]),
    "dropped, since nobody was there (L21)": ("waits_for_instance", "NothingLost", "once", ["Journal", "Drop"]),
    "two bindings (annex D)": ("binding_sticks", ONCE, "move", ["HearForward", "Unanswered", "Move", "Keep", "Effect"]),
    "thought to be gone": ("binding_gone", ONCE, "move", ["Forward", "Release", "HearForward", "Keep"]),
    "taken from who has it": ("not_admitted", ONCE, "left", ["Effect", "Crash", "Release", "Keep", "Effect"]),
    "a refusal settles (M13d)": ("says_yes", "ExactReceipt_I13", "once", ["Forward", "Babble", "HearAck"]),
    "a friendly answer settles (M13b)": (
        "names_a_receipt",
        "ExactReceipt_I13",
        "once",
        ["Forward", "Babble", "HearAck"],
    ),
    "another receipt settles (M13c)": ("same_receipt", "ExactReceipt_I13", "once", ["Forward", "Babble", "HearAck"]),
    "answered before it is journaled (M13a)": (
        "ack_after_commit",
        "ExactReceipt_I13",
        "once",
        ["HearForward", "HearAck"],
    ),
    "a generation in the id (M14)": (
        "genuine_id",
        "StableDelivery_I14",
        "once",
        ["HearForward", "Retry", "HearForward"],
    ),
    "a forward of long ago": (
        "wanted_here",
        ONCE,
        "again",
        ["HearForward", "Effect", "Trim", "HearForward", "Effect"],
    ),
    "no tombstone (M15, L9)": ("replays_end", ONCE, "again", ["Effect", "Trim", "HearForward", "Effect"]),
    "safe, and nobody has it": ("same_body", "NothingLost", "channel", ["HearForward", "Unanswered", "HearForward"]),
    "another position (M16, L8)": (
        "position_left_out",
        "Admittable_I16",
        "channel",
        ["HearForward", "Unanswered", "HearForward"],
    ),
    "in another's thread (M17)": ("own_binding", "OwnBinding_I17", "once", ["Forward", "HearForward", "Take"]),
    "not written down before": ("started_first", ONCE, "crash", ["Effect", "Crash", "Recover", "Effect"]),
    "taken from the living (M22)": ("owner_proven_dead", "RecoveryNeedsProof_I22", "once", ["Take", "Recover"]),
    "repeated by nobody": ("a_person_asks", ONCE, "crash", ["Effect", "Crash", "Recover", "Redo", "Effect"]),
    "stopped by another's poison (B74)": ("poison_passes", "PoisonPasses_V5", "poison", ["Fail", "Fail"]),
    "never tried again": ("retries_go_on", "EventuallyExecutedOrInterrupted_V4", "once", ["Unserved"]),
    "an attempt without a leader": (
        "attempts_end",
        "EventuallyExecutedOrInterrupted_V4",
        "crash",
        ["Forward", "Crash", "Lead"],
    ),
}


@pytest.mark.parametrize(("guard", "property_", "config", "told"), STORIES.values(), ids=list(STORIES))
def test_without_its_guard_it_happens(guard: str, property_: str, config: str, told: list[str]) -> None:
    """The story goes through these steps, in their order."""
    violation = check(DurableAdmission(CONFIGS[config], {guard}), [property_]).violations[property_]

    steps = iter([label[0] for label, _ in violation.story if label is not None])
    assert all(step in steps for step in told), violation.story


def test_every_guard_has_its_story() -> None:
    """Each of the module is here, so that none can be dropped unseen."""
    assert set(DurableAdmission.guards()) == {guard for guard, *_ in STORIES.values()}


@pytest.mark.parametrize("config", CONFIGS)
def test_with_all_guards_it_does_not(config: str) -> None:
    """Every property holds on the whole graph."""
    outcome = check(DurableAdmission(CONFIGS[config]))

    assert outcome.complete
    assert outcome.violations == {}


@cache
def graph(config: str) -> Graph[State]:
    """Everything that may happen."""
    return explore(DurableAdmission(CONFIGS[config]))


def steps(config: str, *names: str) -> Iterator[tuple[State, tuple[object, ...], State]]:
    """Every step of these actions: the state before, their parameters, the state after."""
    found = graph(config)
    for source, label, target in found.edges:
        name, args = found.labels[label]
        if name in names:
            yield found.states[source], args, found.states[target]


def test_the_poll_of_a_displaced_leader_costs_a_conflict_at_most() -> None:
    """It confirms what is journaled already, and what it is answered is refused."""
    served = refused = conflicts = 0
    for before, (p, *_), after in steps("leaders", "Serve", "Conflict", "Journal", "JournalRefused"):
        node = before.node[str(p)]
        if current(before, str(p)) or not leads(node):
            continue
        assert after.confirmed <= before.offset
        assert (before.update, before.work, before.net) == (after.update, after.work, after.net)
        served += node.poll >= 0 and after.node[str(p)].got > 0
        conflicts += node.poll >= 0 and after.node[str(p)].got == 0
        refused += node.got > 0
    assert served
    assert refused
    assert conflicts


def test_a_displaced_leader_moves_no_update() -> None:
    """Nor does its late answer."""
    leaders = ("Forward", "Unserved", "Keep", "HearAck", "Unanswered", "Resume")
    late = [(b, a) for b, (p, *_), a in steps("leaders", *leaders) if not current(b, str(p))]

    assert late
    assert all(before.update == after.update for before, after in late)


def test_the_next_leader_takes_up_what_the_last_one_was_sending() -> None:
    """In another epoch, and to the same binding."""
    resumed = [(b, a) for b, _, a in steps("crash", "Resume") if b.fence > 1]

    assert resumed
    for before, after in resumed:
        assert [row.binding for row in before.update.values()] == [row.binding for row in after.update.values()]


def test_work_that_had_begun_is_shown_and_work_that_had_not_goes_on() -> None:
    """Death while started is interrupted, whether it has had its effect or not."""
    ends = {
        (was.receipt, now.receipt)
        for before, _, after in steps("all", "Recover")
        for was in before.work - after.work
        for now in after.work - before.work
    }

    assert ends == {("queued", "pending"), ("started", "interrupted")}


def test_only_a_person_repeats_what_was_interrupted() -> None:
    """No other step leaves that state."""
    found = graph("all")
    left = {
        found.labels[label][0]
        for source, label, target in found.edges
        for d in found.states[source].work - found.states[target].work
        if d.receipt == "interrupted"
    }

    assert left == {"Again", "Waive"}


def test_a_leader_that_was_a_follower_keeps_what_it_has_admitted() -> None:
    """What it journaled for the last leader it says again to itself: nothing is inserted twice."""
    again = [a for b, _, a in steps("all", "Keep") if b.work and b.work == a.work]

    assert again
    assert all(max(state.effects.values()) <= 1 for state in again)
