"""One runtime and its poll loop as values: what they order, and what they refuse (locks.md 9, 10)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.machines.chart import Refused, Step, step
from tenure.machines.poller import POLLER, Begin, Ended, Loops, Start, Stop
from tenure.machines.polling_messages import (
    Acquire,
    Acquired,
    AcquireFailed,
    AutoRun,
    Checked,
    Cleaned,
    CleanUpFailed,
    Denied,
    Elect,
    Failed,
    Force,
    Happening,
    Launched,
    Memory,
    Output,
    Prepared,
    Refreshed,
    Registered,
    Released,
    ReleaseFailed,
    Report,
    Request,
    Returned,
    Saw,
    SessionStart,
    Stopped,
    Superseded,
    Suspend,
    Unregistered,
)
from tenure.machines.polling_messages import Start as Connect
from tenure.machines.polling_messages import Stop as Disconnect
from tenure.machines.polling_ownership import POLLING_OWNERSHIP

CONNECT = Connect(interactive=True, alone=True)
MINE = Checked("mine", passed=False)
TO_ACTIVE: tuple[Happening, ...] = (
    CONNECT, Acquired(), Refreshed("mine", passed=False), Prepared(), Launched(), MINE,
)  # fmt: skip
WATCHED = ("refreshing", "preparing", "launching", "confirming", "active", "cleaning")


@attrs.define
class Runtime:
    """A runtime that remembers what it ordered."""

    phase: str = "idle"
    data: Memory = attrs.Factory(Memory)
    ordered: list[Output] = attrs.Factory(list)

    def hear(self, *messages: Happening) -> tuple[Output, ...]:
        """Tell it each of `messages`, none of which it may refuse; what it ordered at the last."""
        done: Step[Memory, Output] | Refused | None = None
        for message in messages:
            done = step(POLLING_OWNERSHIP, self.phase, self.data, message)
            assert isinstance(done, Step), (message, done)
            self.phase, self.data = done.phase, done.data
            self.ordered += done.outputs
        assert isinstance(done, Step)
        return done.outputs

    def refuses(self, message: Happening) -> tuple[str, ...]:
        """The guards that refuse `message` here."""
        done = step(POLLING_OWNERSHIP, self.phase, self.data, message)
        assert isinstance(done, Refused), done
        return done.guards


def at(phase: str) -> Runtime:
    """A runtime on its way to lead, in `phase`."""
    runtime = Runtime()
    for message in TO_ACTIVE:
        if runtime.phase != phase:
            runtime.hear(message)
    assert phase == runtime.phase
    return runtime


def session(number: int = 1, *, observed: int = 0, interactive: bool = True, **seen: bool) -> SessionStart:
    """A session start that saw nothing but what is given."""
    facts = dict.fromkeys(("mine", "here", "stale", "same_process"), False) | seen
    return SessionStart(session=number, observed=observed, interactive=interactive, **facts)


# -- starting ---------------------------------------------------------------------------------------------------------


def test_start_in_order() -> None:
    """Acquire, watchers, first refresh, on_acquired, polling, a last look: only then is somebody told (9.2)."""
    runtime = Runtime()
    runtime.hear(*TO_ACTIVE)

    assert runtime.ordered == [
        Acquire("plain", 0), "start_watchers", "refresh", "on_acquired", "start_polling", "look", Report("leading"),
    ]  # fmt: skip


def test_heartbeat_runs_before_anything_slow() -> None:
    """A35, S28: the watchers are ordered with the acquisition, not when polling is up."""
    runtime = Runtime()

    assert ("start_watchers", "refresh") == runtime.hear(CONNECT, Acquired())


@pytest.mark.parametrize("saw", ["other", "unknown"])
def test_resumed_lease_is_refreshed_first(saw: Saw) -> None:
    """A38: nothing is started on a kept entry before a refresh has renewed it; a stale one is not taken on trust."""
    runtime = Runtime()
    runtime.hear(session(mine=True), AutoRun(alone=True), Acquired())

    runtime.hear(Refreshed(saw, passed=True))
    assert "losing" == runtime.phase
    assert "on_acquired" not in runtime.ordered


@pytest.mark.parametrize("phase", ["preparing", "launching", "confirming", "active"])
def test_exception_rolls_back(phase: str) -> None:
    """A37, S27: watchers off, stop, release; and the error is told at once, so that no later one masks it (K17)."""
    runtime = at(phase)

    assert ("stop_watchers", "stop_polling", Report("failed", 0, "boom")) == runtime.hear(Failed("boom"))
    assert ("release",) == runtime.hear(Stopped())
    assert ("release",) == runtime.hear(ReleaseFailed(passed=False, error="busy"))
    assert (Report("left", 0, "busy"),) == runtime.hear(ReleaseFailed(passed=True, error="busy"))
    assert "idle" == runtime.phase
    assert [Report("failed", 0, "boom")] == [o for o in runtime.ordered if isinstance(o, Report)][-2:-1]


def test_acquire_that_failed_may_have_written() -> None:
    """K9: its outcome is unknown, so what may be there is released."""
    runtime = Runtime()
    runtime.hear(CONNECT, AcquireFailed("busy"), Stopped())

    assert "releasing" == runtime.phase


def test_session_outlasts_a_busy_guard() -> None:
    """The intent to resume survives an acquire that failed: acquiring again is harmless."""
    runtime = Runtime()
    runtime.hear(session(here=True, stale=True, observed=7), AutoRun(alone=True))

    assert (Acquire("resume", 7),) == runtime.hear(AcquireFailed("busy"))
    assert "resuming" == runtime.phase


def test_refused_with_thread_mode_is_no_offer() -> None:
    """S30: a live owner with thread mode is waited for; takeover is offered only without it."""
    threads, classic = Runtime(), Runtime()
    threads.hear(CONNECT, Denied(3))
    classic.hear(CONNECT, Denied(3))

    assert (Report("refused", 3),) == threads.hear(Unregistered(thread_mode=True))
    assert ("was_shown",) == threads.refuses(Force())
    assert (Report("offer", 3),) == classic.hear(Unregistered(thread_mode=False))
    assert (Acquire("force", 3),) == classic.hear(Force())


def test_forced_takeover_is_refused_against_a_newcomer() -> None:
    """A04: who replaced the owner shown becomes the next one shown; the old confirmation is used up."""
    runtime = Runtime()
    runtime.hear(CONNECT, Denied(3), Unregistered(thread_mode=False), Force(), Denied(4))

    assert (Report("offer", 4),) == runtime.hear(Unregistered(thread_mode=False))
    assert (Acquire("force", 4),) == runtime.hear(Force())


def test_lost_election_is_no_registration() -> None:
    """9.1: Succession, not this machine, brings a loser back to the winner."""
    runtime = Runtime()
    runtime.hear(CONNECT, Denied(3), Registered())

    assert ("unregister", Acquire("elect", 3)) == runtime.hear(Elect(3, interactive=True, alone=True))
    assert (Report("refused", 3),) == runtime.hear(Denied(4))
    assert "idle" == runtime.phase


def test_who_follows_by_other_means_stands_for_election_from_idle() -> None:
    """12.1: no registration of this machine's is given up; and a background child, or a runtime whose predecessor has
    not stopped, does not stand."""
    runtime = Runtime()

    assert ("interactive",) == runtime.refuses(Elect(3, interactive=False, alone=True))
    assert ("predecessor_stopped",) == runtime.refuses(Elect(3, interactive=True, alone=False))
    assert (Acquire("elect", 3),) == runtime.hear(Elect(3, interactive=True, alone=True))
    assert (Report("refused", 3),) == runtime.hear(Denied(4))
    assert "idle" == runtime.phase


# -- watching ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", WATCHED[1:-1])
@pytest.mark.parametrize("look", [Refreshed, Checked])
def test_loss_stops_and_edits_nothing(phase: str, look: type[Refreshed | Checked]) -> None:
    """S29, A40, A58: loss orders the end of watching and polling; no release, no restart, no word to a dead session."""
    runtime = at(phase)

    assert ("stop_watchers", "stop_polling", Report("lost")) == runtime.hear(look("other", passed=False))
    if runtime.data.waiting:
        assert ("run_has_ended",) == runtime.refuses(Stopped())
        runtime.hear(Returned(registering=False))
    assert () == runtime.hear(Stopped())
    assert "idle" == runtime.phase


@pytest.mark.parametrize("phase", WATCHED[1:])
@pytest.mark.parametrize("look", [Refreshed, Checked])
def test_exception_is_no_loss_until_the_lease_has_passed(phase: str, look: type[Refreshed | Checked]) -> None:
    """K6: a look that failed is waited out while the own lease is healthy, and ends the tenure when it is not."""
    runtime = at("active")
    if phase == "cleaning":
        runtime.hear(Disconnect())
    else:
        runtime = at(phase)

    runtime.hear(look("unknown", passed=False))
    assert phase == runtime.phase
    runtime.hear(look("unknown", passed=True))
    assert runtime.phase in ("losing", "unwinding")


@pytest.mark.parametrize("saw", ["mine", "other", "unknown"])
def test_overdue_check_after_a_pause(saw: Saw) -> None:
    """K11: a lease that has passed is lost, whatever the registry still says; and nothing is sent before the check."""
    runtime = at("active")

    assert ("own_clock_allows",) == runtime.refuses(Request(passed=True))
    runtime.hear(Checked(saw, passed=True))
    assert "losing" == runtime.phase


@pytest.mark.parametrize("phase", POLLING_OWNERSHIP.phases)
def test_activity_needs_authority(phase: str) -> None:
    """A47: a loop of typing signals does not arm itself again; only a tenure sends, and only under a healthy lease."""
    done = step(POLLING_OWNERSHIP, phase, Memory(), Request(passed=False))

    assert isinstance(done, Step) == (phase in WATCHED[1:])


# -- leaving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [Cleaned(), CleanUpFailed("no route")])
def test_disconnect_always_releases(ending: Happening) -> None:
    """A44: stop and release follow the clean-up, also when it failed."""
    runtime = at("active")

    assert ("clean_up",) == runtime.hear(Disconnect())
    assert ("stop_watchers", "stop_polling") == runtime.hear(ending)
    assert ("release",) == runtime.hear(Stopped())
    assert (Report("over"),) == runtime.hear(Released())


def test_disconnect_while_acquiring_waits_for_the_answer() -> None:
    """A43, S34: an acquire that is on its way lands before the release, not after it."""
    runtime = Runtime()
    runtime.hear(CONNECT, Disconnect())

    assert ("run_has_ended",) == runtime.refuses(Stopped())
    runtime.hear(Returned(registering=False))
    assert ("release",) == runtime.hear(Stopped())


@pytest.mark.parametrize("phase", ["acquiring", *WATCHED[:-1]])
def test_suspend_keeps_the_entry_and_ends_the_run(phase: str) -> None:
    """9.4: nothing is released; a late answer of the run starts nothing; a new session start resumes."""
    runtime = at(phase)

    assert ("stop_watchers", "stop_polling") == runtime.hear(Suspend(session=0))
    for answer in (Acquired(), Prepared(), Launched()):
        assert () == runtime.refuses(answer)
    if runtime.data.waiting:
        runtime.hear(Returned(registering=False))
    runtime.hear(Stopped())
    assert "suspended" == runtime.phase
    assert "release" not in runtime.ordered
    assert ("defer",) == runtime.hear(session(2, mine=True))


def test_registration_of_a_suspended_run_is_taken_back() -> None:
    """A43: a registration that was accepted after its session ended leaves no follower behind."""
    runtime = Runtime()
    runtime.hear(CONNECT, Denied(3), Suspend(session=0))

    assert ("unregister",) == runtime.hear(Returned(registering=True))


@pytest.mark.parametrize("seen", [{}, {"stale": True}, {"here": True}], ids=["nothing", "elsewhere", "alive"])
def test_session_start_neither_creates_nor_steals(seen: dict[str, bool]) -> None:
    """S33: nothing there, another directory's stale entry, or a live owner: the session stays passive."""
    runtime = Runtime()

    assert () == runtime.hear(session(**seen))
    assert "idle" == runtime.phase
    assert 1 == runtime.data.session


@pytest.mark.parametrize("seen", [{"mine": True}, {"here": True, "stale": True}, {"here": True, "same_process": True}])
def test_session_start_resumes_what_was_left_here(seen: dict[str, bool]) -> None:
    """V10: its own entry, a dead owner's of this directory, or that of the runtime before a reload."""
    runtime = Runtime()
    runtime.hear(session(observed=5, **seen))

    assert (Acquire("resume", 5),) == runtime.hear(AutoRun(alone=True))


def test_background_child_stays_passive() -> None:
    """A41: print and json runs, and those without a token, neither start nor resume."""
    runtime = Runtime()

    assert ("interactive",) == runtime.refuses(Connect(interactive=False, alone=True))
    assert () == runtime.hear(session(interactive=False, mine=True))
    assert "idle" == runtime.phase


def test_session_start_returns_at_once() -> None:
    """A43: it orders only a turn of its own; and one that was suspended before that turn acquires nothing."""
    runtime = Runtime()

    assert ("defer",) == runtime.hear(session(1, mine=True))
    runtime.hear(Suspend(session=1), Stopped())
    assert () == runtime.refuses(AutoRun(alone=True))


def test_late_shutdown_of_an_old_session() -> None:
    """A46: only the session served ends it."""
    runtime = Runtime()
    runtime.hear(session(1, mine=True), AutoRun(alone=True), *TO_ACTIVE[1:], session(2, mine=True))

    assert ("current_session",) == runtime.refuses(Suspend(session=1))
    assert "active" == runtime.phase
    runtime.hear(Suspend(session=2))
    assert "suspending" == runtime.phase


def test_reload_stops_the_predecessor_first() -> None:
    """DESIGN 5: a new runtime waits until the old one has retired, and the old one never comes back (A07)."""
    old, new = at("active"), Runtime()

    assert ("predecessor_stopped",) == new.refuses(Connect(interactive=True, alone=False))
    assert ("stop_watchers", "stop_polling") == old.hear(Superseded())
    old.hear(Stopped())
    assert "retired" == old.phase
    assert () == old.refuses(CONNECT)
    assert () == old.refuses(session(2, mine=True))
    new.hear(CONNECT)


# -- the loop ---------------------------------------------------------------------------------------------------------


def test_reconnect_during_drain_gets_its_loop() -> None:
    """K5, S37: the wish waits for the old loop, then there is one loop."""
    draining = Loops(live=1)

    pending = step(POLLER, "off", draining, Start())
    assert isinstance(pending, Step)
    assert "pending" == pending.phase
    early = step(POLLER, "pending", draining, Begin(owned=True))
    assert isinstance(early, Refused)
    assert ("previous_loop_ended",) == early.guards
    drained = step(POLLER, "pending", draining, Ended())
    assert isinstance(drained, Step)
    begun = step(POLLER, drained.phase, drained.data, Begin(owned=True))
    assert Step("running", Loops(1), ("run",)) == begun


def test_loop_begins_only_under_the_lease() -> None:
    """S25: what was true when the slow start began is not asked; what the transaction sees is."""
    begun = step(POLLER, "pending", Loops(), Begin(owned=False))

    assert isinstance(begun, Refused)
    assert ("owned_at_start",) == begun.guards


@given(st.lists(st.sampled_from([Start(), Begin(True), Begin(False), Stop(), Ended()]), max_size=60))
def test_at_most_one_loop(told: list[Start | Begin | Stop | Ended]) -> None:
    """S37, whatever the poller is told in whatever order, as long as only loops that are live end."""
    phase, loops = POLLER.initial, Loops()
    for message in told:
        if isinstance(message, Ended) and loops.live == 0:
            continue
        done = step(POLLER, phase, loops, message)
        if isinstance(done, Step):
            phase, loops = done.phase, done.data
        assert 0 <= loops.live <= 1
        assert phase != "running" or loops.live == 1


# -- any order --------------------------------------------------------------------------------------------------------

BOOLS = st.booleans()
SAW = st.sampled_from(["mine", "other", "unknown"])
MESSAGES: st.SearchStrategy[Happening] = st.one_of(
    st.builds(Connect, BOOLS, BOOLS),
    st.builds(Elect, st.integers(0, 2), BOOLS, BOOLS),
    st.builds(SessionStart, st.integers(1, 2), BOOLS, st.integers(0, 2), BOOLS, BOOLS, BOOLS, BOOLS),
    st.builds(AutoRun, BOOLS),
    st.builds(Denied, st.integers(0, 2)),
    st.builds(Refreshed, SAW, BOOLS),
    st.builds(Checked, SAW, BOOLS),
    st.builds(Unregistered, BOOLS),
    st.builds(Suspend, st.integers(0, 2)),
    st.builds(Request, BOOLS),
    st.builds(ReleaseFailed, BOOLS),
    st.builds(Returned, BOOLS),
    st.sampled_from([
        Force(), Acquired(), AcquireFailed(), Registered(), Prepared(), Launched(), Failed(), Disconnect(),
        Cleaned(), CleanUpFailed(), Superseded(), Stopped(), Released(),
    ]),
)  # fmt: skip


@given(st.lists(MESSAGES, max_size=80))
def test_orders_fit_together(told: list[Happening]) -> None:
    """Whatever it is told: watchers are on exactly in the watched phases, polling is ordered only under them, and a
    release never comes before the order to stop polling."""
    phase, data = POLLING_OWNERSHIP.initial, Memory()
    watchers = polling = False
    for message in told:
        done = step(POLLING_OWNERSHIP, phase, data, message)
        if isinstance(done, Refused):
            continue
        phase, data = done.phase, done.data
        for output in done.outputs:
            if output == "start_watchers":
                watchers = True
            elif output == "stop_watchers":
                watchers = False
            elif output == "start_polling":
                assert watchers
                polling = True
            elif output == "stop_polling":
                polling = False
            elif output in ("release", Report("over")) or (isinstance(output, Acquire)):
                assert not polling
        assert watchers == (phase in WATCHED)
        assert watchers or not polling
