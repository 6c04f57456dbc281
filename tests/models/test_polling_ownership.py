"""The closed world of one polling process: its promises, and the faults of the field that each guard keeps out.

The whole of every configuration, compared with TLC, is `tenure verify`; here are the kinds of fault, one test each.
"""

from __future__ import annotations

import pytest

from tenure.models.explore import Graph, Violation, check, explore
from tenure.models.polling_ownership import CONFIGS, PollingOwnership, State

Sent = list[str]


def story(config: str, prop: str, *off: str) -> tuple[Sent, list[State]]:
    """The shortest story in which `prop` breaks: action names and states."""
    outcome = check(PollingOwnership(CONFIGS[config], off), [prop])
    assert prop in outcome.violations, f"{prop} holds without {', '.join(off) or 'nothing'}"
    violation: Violation[State] = outcome.violations[prop]
    return [label[0] for label, _ in violation.story if label is not None], [state for _, state in violation.story]


@pytest.mark.parametrize("config", [name for name in CONFIGS if name not in ("all", "reload")])
def test_everything_holds(config: str) -> None:
    """All properties, in each configuration that a test can afford."""
    assert {} == check(PollingOwnership(CONFIGS[config])).violations


def test_slow_start_looks_stale_without_early_heartbeat() -> None:
    """A35: acquired, still starting, and already anybody's; with the watchers on from the acquisition never."""
    names, states = story("start", "PollOnlyOwned_S28", "heartbeat_from_acquisition")

    assert "Expire" == names[-1]
    assert states[-1].node["new"].phase in ("refreshing", "preparing", "launching", "confirming")


def test_failed_start_leaves_nothing_even_when_the_guard_is_busy() -> None:
    """A37, K17: idle means released; giving up on a busy guard leaves a lease that looks alive."""
    names, states = story("start", "FailedStartLeavesNothing_S27", "release_waits")

    assert "ReleaseFails" == names[-1]
    assert "new" == states[-1].entry.owner
    assert not states[-1].passed


def test_displaced_in_a_slow_start() -> None:
    """S25: a takeover between acquisition and loop is seen by the transaction that begins the loop."""
    names, _ = story("loss", "PollOnlyOwned_S25", "owned_at_start")

    assert ["ForeignForces", "Begin"] == [name for name in names if name in ("ForeignForces", "Begin")]


def test_displaced_before_it_is_announced() -> None:
    """S26: the last look of a start is made after its last step."""
    names, _ = story("loss", "PollOnlyOwned_S26", "owned_at_the_end")

    assert names.index("Begin") < names.index("ForeignForces") < names.index("Check")


def test_displaced_poller_that_never_stops() -> None:
    """V11: the watcher that sees another owner is what ends the overlap."""
    _, states = story("loss", "EventuallyPolling_V11", "still_mine")

    assert "running" == states[-1].poller["new"].phase
    assert "new" != states[-1].entry.owner


def test_busy_guard_stops_a_healthy_leader() -> None:
    """K6: without the permission to wait, one time-out leaves a lease under which nobody polls."""
    names, states = story("start", "EventuallyPolling_V12", "unknown_is_no_loss")

    assert "Busy" in names
    assert "new" == states[-1].entry.owner
    assert "running" != states[-1].poller["new"].phase


def test_reconnect_during_drain() -> None:
    """K5: a start that the draining loop swallows is an owner that never polls; S37: or there are two loops."""
    _, states = story("loss", "EventuallyPolling_V12", "start_waits_for_drain")
    assert ("launching", "off", 0) == (
        states[-1].node["new"].phase,
        states[-1].poller["new"].phase,
        states[-1].poller["new"].live,
    )

    _, states = story("loss", "PollOnlyOwned_S37", "previous_loop_ended")
    assert 2 == states[-1].poller["new"].live


def test_paused_leader_sends_before_its_check() -> None:
    """K11: what a process sends at wake-up is fenced by its own clock, not by the check that is overdue."""
    names, states = story("loss", "PollOnlyOwned_K11", "own_clock_allows")

    assert "Request" == names[-1]
    assert states[-2].passed
    assert "other" == states[-2].entry.owner


def test_pause_alone_is_enough_for_a_loss() -> None:
    """S29: a lease that passed while the process was stopped is lost at the next look, taken over or not."""
    _, states = story("loss", "LossStopsPolling_S29", "lease_healthy")

    assert states[-1].passed
    assert "running" == states[-1].poller["new"].phase


def test_background_child_takes_the_bot() -> None:
    """A41: an inherited or non-interactive session of the same directory."""
    _, states = story("background", "NoStealAtSessionStart_A41", "interactive")

    assert "new" == states[-1].entry.owner


@pytest.mark.parametrize("guard", ["left_here", "observed_still_there"])
def test_session_start_steals(guard: str) -> None:
    """S33: at the look, or between the look and the acquisition."""
    names, states = story("session", "NoStealAtSessionStart_S33", guard)

    assert ["SessionStart", "AutoRun", "Acquire"] == [n for n in names if not n.startswith("Foreign")]
    assert states[-2].entry.owner == "none" or states[-2].entry.cwd == "there"


def test_suspend_outrun_by_its_own_start() -> None:
    """A43, S34: an acquire that was on its way when everything else had stopped."""
    names, states = story("session", "PollOnlyOwned_S34", "run_has_ended")

    assert "Acquire" == names[-1]
    assert states[-2].node["new"].phase in ("idle", "suspended", "retired")


def test_late_shutdown_silences_its_successor() -> None:
    """A46: the session lives, its entry is there, and nobody polls."""
    names, states = story("session", "EventuallyPolling_V10", "current_session")

    assert "LateSuspend" in names
    assert states[-1].outside["new"].wish
    assert "suspended" == states[-1].node["new"].phase


def test_restart_stays_silent() -> None:
    """V10: the permission to resume is what a restart in the same directory needs."""
    _, states = story("session", "EventuallyPolling_V10", "session_resumes")

    assert states[-1].outside["new"].wish
    assert "idle" == states[-1].node["new"].phase


def test_disconnect_that_keeps_leading() -> None:
    """A44: a clean-up that fails must not be the end of the way out."""
    _, states = story("start", "EventuallyPolling_V10_left", "leave_anyway")

    assert "cleaning" == states[-1].node["new"].phase
    assert "new" == states[-1].entry.owner


def test_offer_against_a_live_leader() -> None:
    """S30: a person would be asked to force a split brain."""
    names, _ = story("threads", "PollOnlyOwned_S30", "no_thread_mode")

    assert ["Start", "RegisterFails", "Force"] == [n for n in names if n in ("Start", "RegisterFails", "Force")]


def test_force_against_somebody_not_shown() -> None:
    """A04: the registry compares the entry shown; who was shown nothing may not even try, but that alone hides it."""
    names, states = story("takeover", "PollOnlyOwned_S15", "exact_owner")
    assert "Acquire" == names[-1]
    assert 0 != states[-2].node["new"].shown != states[-2].entry.id

    assert {} == check(PollingOwnership(CONFIGS["takeover"], ["was_shown"]), ["PollOnlyOwned_S15"]).violations
    _, states = story("takeover", "PollOnlyOwned_S15", "was_shown", "exact_owner")
    assert 0 == states[-2].node["new"].shown


def test_reload_with_two_loops() -> None:
    """A07, S37: the predecessor stops first, or its loop runs on under the successor's lease."""
    _, states = story("reload", "PollOnlyOwned_S37", "predecessor_stopped")

    assert (1, 1) == (states[-1].poller["old"].live, states[-1].poller["new"].live)


@pytest.fixture(scope="module")
def loss() -> Graph[State]:
    """The graph of loss and reconnect."""
    return explore(PollingOwnership(CONFIGS["loss"]))


def test_loss_edits_nothing_and_restarts_nothing(loss: Graph[State]) -> None:
    """9.3: from the loss to rest the runtime itself leaves the registry alone, and only a person starts it again."""
    for source, label, target in loss.edges:
        before, after = loss.states[source], loss.states[target]
        name = loss.labels[label][0]
        if before.node["new"].phase == "losing":
            assert before.entry == after.entry or name.startswith("Foreign")
            assert after.node["new"].phase in ("losing", "idle") or name == "Start"


def test_overlap_is_a_forced_takeover_or_a_request_on_its_way(loss: Graph[State]) -> None:
    """DESIGN 5: requests are *opened* beside another owner only before the next check after a forced takeover."""
    for source, _label, target in loss.edges:
        before, after = loss.states[source], loss.states[target]
        opened = after.outside["new"].asking and not before.outside["new"].asking
        if opened and before.entry.owner != "new":
            assert not before.passed
            assert not before.outside["new"].noticed
