"""Leading in memory, in virtual time: locks.md 9, scenarios A04 to A52, holes K5, K6, K8, K11, K17. What each story
records is explained by the specification."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.lease import NotOwner
from tenure.adapters.runtime.outcomes import (
    Elected,
    Failed,
    Following,
    Late,
    Left,
    Lost,
    Outcome,
    Over,
    Refused,
    Retired,
    Suspended,
    Waiting,
)
from tenure.adapters.runtime.work import Registered
from tenure.adapters.testing.faulty import Call, Fails, Fault
from tenure.adapters.trace.api import assert_explained
from tenure.machines.identity import Owner
from tests.adapters.runtime.leading_room import DIRECTORY, Member, Room


@pytest.fixture
def room() -> Iterator[Room]:
    room = Room()
    yield room
    assert_explained(room.recorder)


def refused(outcome: Outcome) -> Refused:
    assert isinstance(outcome, Refused)
    return outcome


def owner_of(room: Room) -> Owner:
    entry = room.entry
    assert entry is not None
    return entry.owner


class Followers:
    """A registration that answers as it is told."""

    def __init__(self, answer: Registered = "registered") -> None:
        self.answer = answer
        self.asked: list[Owner | None] = []
        self.left = 0

    def register(self, owner: Owner | None) -> Registered:
        self.asked.append(owner)
        return self.answer

    def unregister(self) -> None:
        self.left += 1


# -- acquire and release --------------------------------------------------------------------------------------------


def test_the_first_leads_the_second_is_refused_with_the_owner_it_may_take_over(room: Room) -> None:
    """locks.md 9.1: refused, canTakeover, owner text `pid N, cwd P`."""
    first, second = room.member(100, cwd="/first"), room.member(200)
    assert Elected(1) == first.lead.acquire()
    assert ["prepare", "start"] == first.work.heard
    found = refused(second.lead.acquire())
    assert found.can_takeover
    assert ("active-elsewhere", "pid 100, cwd /first") == (found.state, found.text)
    assert [] == second.work.heard


def test_who_leads_already_is_told_so(room: Room) -> None:
    first = room.member(100)
    assert Elected(1) == first.lead.acquire() == first.lead.acquire()
    assert ["prepare", "start"] == first.work.heard


def test_release_says_goodbye_stops_the_work_and_frees_the_lease(room: Room) -> None:
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    assert Over() == first.lead.release()
    assert ["prepare", "start", "clean_up", "stop"] == first.work.heard
    assert room.entry is None
    assert Elected(2) == second.lead.acquire()


def test_release_of_what_is_anothers_changes_nothing(room: Room) -> None:
    """A05: also when the other's lease is over."""
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    second.lead.acquire()
    room.clock.advance(20_000)
    before = room.entry
    assert Over() == second.lead.release()
    assert before == room.entry


def test_a_lease_that_is_over_is_replaced_and_said_to_be(room: Room) -> None:
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    room.kill(first)
    assert Elected(2, replaced_stale=True) == second.lead.acquire()


def test_leaving_the_with_block_releases(room: Room) -> None:
    member = room.member(100)
    with member.lead as lead:
        lead.acquire()
    assert room.entry is None
    assert "stop" in member.work.heard


# -- force ----------------------------------------------------------------------------------------------------------


def test_force_takes_over_from_the_owner_that_was_shown(room: Room) -> None:
    """And the displaced one stops by its next check (V11, S29)."""
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    found = refused(second.lead.acquire())
    assert Elected(2) == second.lead.acquire(force=found.owner)
    room.run(1_000)
    assert not first.work.running
    assert Lost(1, passed=False) == first.told[-1]
    assert "idle" == first.lead.phase


def test_force_over_an_owner_that_is_not_there_any_more_is_refused_with_the_new_one(room: Room) -> None:
    """A04: nobody confirmed the takeover from the third."""
    first, second, third = room.member(100), room.member(200), room.member(300, cwd="/third")
    first.lead.acquire()
    shown = refused(second.lead.acquire()).owner
    first.lead.release()
    third.lead.acquire()
    again = refused(second.lead.acquire(force=shown))
    assert again.can_takeover
    assert "pid 300, cwd /third" == again.text
    assert third.work.running
    assert Elected(3) == second.lead.acquire(force=again.owner)


def test_force_shows_first_what_was_shown_elsewhere(room: Room) -> None:
    """A runtime that has shown nothing itself: the owner may have been shown by `tenure status`."""
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    assert Elected(2) == second.lead.acquire(force=owner_of(room))


# -- a start that is slow, fails, or is overtaken -------------------------------------------------------------------


def test_a_slow_start_does_not_look_stale(room: Room) -> None:
    """A35: the heartbeat goes on from the acquisition, while the work prepares."""
    first, second = room.member(100), room.member(200)
    slow: list[Callable[[], None]] = []
    first.lead.polling.hands = lambda lane, job: slow.append(job) if lane == "work" else job()
    ask = first.lead.ask_acquire()
    room.run(20_000, first)
    assert isinstance(second.lead.acquire(), Refused)
    assert ask.outcome is None
    slow.pop()()
    first.lead.pump()
    assert Elected(1) == ask.outcome


@pytest.mark.parametrize("step", ["prepare", "start"])
def test_a_failed_start_leaves_nothing(room: Room, step: str) -> None:
    """A37: stopped, released, said."""
    first, second = room.member(100), room.member(200)
    first.work.fails = {step}
    found = first.lead.acquire()
    assert Failed(f"RuntimeError: {step} failed") == found
    assert isinstance(found, Failed)
    assert isinstance(found.cause, RuntimeError)
    assert ("idle", None, False) == (first.lead.phase, room.entry, first.work.running)
    assert "stop" == first.work.heard[-1]
    assert Elected(2) == second.lead.acquire()


def test_a_release_that_fails_does_not_mask_why_the_start_failed(room: Room) -> None:
    """K17, and S27: it is tried until the lease has passed, then the entry is stale."""
    first, second = room.member(100), room.member(200)
    first.work.fails = {"start"}

    def no_guard(call: Call) -> Fault | None:
        return Fails(errno.EIO) if "start" in first.work.heard and call.name == "make_directory" else None

    first.files.plan = no_guard
    found = first.lead.acquire()
    assert isinstance(found, Failed)
    assert "RuntimeError: start failed" == found.error
    assert "owners.json" in found.left
    assert isinstance(first.told[-1], Left)
    assert Elected(2, replaced_stale=True) == second.lead.acquire()


def test_a_start_that_was_overtaken_is_no_success(room: Room) -> None:
    """S26: the look after the last step finds another owner."""
    first, second = room.member(100), room.member(200)

    first.work.is_ready = False
    ask = first.lead.ask_acquire()
    room.run(100, first)
    assert "launching" == first.lead.phase
    assert Elected(2) == second.lead.acquire(force=owner_of(room))
    first.work.is_ready = True
    room.run(2_000, first)
    assert Lost(1, passed=False) == ask.outcome
    assert "start" not in first.work.heard


def test_the_work_begins_only_inside_the_transaction_of_the_owner(room: Room) -> None:
    """S25: the lease is another's by the time the work is ready; it never starts, whatever was looked at before."""
    first, second = room.member(100), room.member(200)
    first.work.is_ready = False
    ask = first.lead.ask_acquire()
    room.run(100, first)
    second.lead.acquire(force=owner_of(room))
    first.work.is_ready = True
    first.lead.pump()  # no check is due: only the transaction knows
    first.lead.pump()
    assert "start" not in first.work.heard
    room.run(1_000, first)
    assert isinstance(ask.outcome, Lost)


def test_an_acquisition_that_cannot_be_made_is_a_failure_that_names_the_file(room: Room) -> None:
    room.files.make_directories(DIRECTORY.state)
    room.files.create(DIRECTORY.registry, b"{torn")
    first = room.member(100)
    found = first.lead.acquire()
    assert isinstance(found, Failed)
    assert DIRECTORY.registry in found.error
    assert "idle" == first.lead.phase
    assert b"{torn" == room.files.data[DIRECTORY.registry]
    assert ("owners.json",) == room.files.entries(DIRECTORY.state)


# -- keeping --------------------------------------------------------------------------------------------------------


def test_the_lease_is_kept_as_long_as_somebody_pumps(room: Room) -> None:
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    for _ in range(5):
        room.run(10_000, first)
        assert isinstance(second.lead.acquire(), Refused)
    assert 0 == first.lead.statistics().losses
    assert 50 <= first.lead.statistics().checks <= 52
    assert 26 == first.lead.statistics().refreshes


def test_a_guard_that_is_busy_for_seconds_does_not_end_a_healthy_lease(room: Room) -> None:
    """K6: waited for, then renewed."""
    first = room.member(100)
    first.lead.acquire()
    room.run(1_900, first)
    room.while_busy(300, lambda: room.run(5_000, first))
    assert "active" == first.lead.phase
    assert first.lead.statistics().waits > 0
    room.run(500, first)
    assert first.lead.statistics().lease_ms > 7_000
    assert ["prepare", "start"] == first.work.heard


def test_a_guard_that_is_busy_for_longer_than_the_lease_ends_it(room: Room) -> None:
    """S29: by the own clock, at once when the lease passes, though the registry still says that it is ours."""
    first = room.member(100)
    first.lead.acquire()
    until = first.lead.statistics().lease_ms
    room.while_busy(300, lambda: (room.run(until - 100, first), None)[1])
    assert first.work.running
    room.while_busy(300, lambda: room.run(200, first))
    assert not first.work.running
    assert Lost(1, passed=True) == first.told[-1]


@pytest.mark.parametrize("asleep", [False, True])
def test_who_wakes_up_past_its_lease_sends_nothing_and_stops(room: Room, asleep: bool) -> None:
    """K11: before any request, and before its check has had its turn; also after a laptop's sleep."""
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    assert 1 == first.lead.may_send()
    if asleep:
        room.clock.suspend(20_000)
    else:
        room.clock.advance(20_000)
        assert Elected(2, replaced_stale=True) == second.lead.acquire()
    assert first.lead.may_send() is None
    first.lead.pump()
    assert not first.work.running
    assert isinstance(first.told[-1], Lost)


def test_a_displaced_leader_sends_nothing_after_its_next_check(room: Room) -> None:
    """A47: activity needs current authority."""
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    second.lead.acquire(force=owner_of(room))
    room.run(1_000, first)
    assert first.lead.may_send() is None
    assert 2 == second.lead.may_send()


def test_a_registry_that_cannot_be_read_is_no_loss_while_the_lease_is_healthy(room: Room) -> None:
    first = room.member(100)
    first.lead.acquire()
    first.files.plan = lambda call: Fails(errno.EIO) if call.paths == (DIRECTORY.registry,) else None
    room.run(4_000, first)
    assert "active" == first.lead.phase
    first.files.plan = None
    room.run(1_000, first)
    assert first.lead.statistics().lease_ms > 6_000


def test_a_loss_is_told_and_a_callback_that_raises_changes_nothing(room: Room) -> None:
    """A40: noted in the diagnostics."""

    def fails(lost: Lost) -> None:
        raise RuntimeError("the session is gone")

    first, second = room.member(100, on_lost=fails), room.member(200)
    first.lead.acquire()
    second.lead.acquire(force=owner_of(room))
    room.run(1_000, first)
    assert "idle" == first.lead.phase
    assert not first.work.running
    assert Lost(1, passed=False) == first.told[-1]
    assert "RuntimeError: the session is gone" == first.notes.said("lock", "callback")[0]["error"]
    assert 1 == first.lead.statistics().callback_errors


def test_after_a_loss_a_new_start_waits_for_the_old_work(room: Room) -> None:
    """K5, S37: never two, and not none."""
    first = room.member(100)
    first.work.drains = True
    first.lead.acquire()
    room.clock.advance(20_000)
    first.lead.pump()
    assert not first.work.running
    ask = first.lead.ask_acquire()
    room.run(3_000, first)
    assert "launching" == first.lead.phase
    assert 1 == first.work.heard.count("start")
    first.work.live = False
    room.run(100, first)
    assert Elected(1) == ask.outcome
    assert 2 == first.work.heard.count("start")


def test_a_work_that_is_done_releases_and_one_that_fails_says_why(room: Room) -> None:
    first = room.member(100)
    first.lead.acquire()
    first.work.ends = "done"
    first.lead.pump()
    assert [Elected(1), Over()] == first.told
    assert room.entry is None
    first.work.ends = ""
    first.lead.acquire()
    first.work.ends = "exit status 1"
    room.run(100, first)
    assert [Elected(2), Failed("exit status 1"), Over()] == first.told[2:]
    assert room.entry is None


# -- disconnect -----------------------------------------------------------------------------------------------------


def test_a_clean_up_that_fails_does_not_keep_the_lease(room: Room) -> None:
    """A44: always stopped, always released."""
    first = room.member(100)
    first.work.fails = {"clean_up", "stop"}
    first.lead.acquire()
    assert Over() == first.lead.release()
    assert (None, False) == (room.entry, first.work.running)


def test_a_release_waits_for_a_work_that_drains(room: Room) -> None:
    """The lease is freed when nothing of it runs, not before."""
    first = room.member(100)
    first.work.drains = True
    first.lead.acquire()
    ask = first.lead.ask_release()
    room.run(5_000, first)
    assert ask.outcome is None
    assert room.entry is not None
    first.work.live = False
    room.run(100, first)
    assert Over() == ask.outcome
    assert room.entry is None


def test_a_release_while_the_start_is_under_way_rolls_it_back(room: Room) -> None:
    first = room.member(100)
    first.work.is_ready = False
    start = first.lead.ask_acquire()
    room.run(100, first)
    assert Over() == first.lead.release()
    assert Over() == start.outcome
    assert "start" not in first.work.heard
    assert room.entry is None


# -- suspend, resume, sessions --------------------------------------------------------------------------------------


def test_suspended_keeps_the_entry_and_resume_goes_on(room: Room) -> None:
    first = room.member(100)
    first.lead.acquire()
    assert Suspended(kept=True) == first.lead.suspend()
    assert not first.work.running
    assert owner_of(room).pid == 100
    assert Elected(1) == first.lead.resume()
    assert first.work.running


def test_a_resumed_lease_is_fresh_before_anything_starts(room: Room) -> None:
    """A38: the heartbeat was five seconds old."""
    first = room.member(100)
    first.lead.acquire()
    first.lead.suspend()
    room.clock.advance(5_000)
    stamps: list[int | None] = []
    started = first.work.prepare

    def prepare(epoch: int) -> None:
        entry = room.entry
        stamps.append(None if entry is None else entry.stamp_ms)
        started(epoch)

    first.work.prepare = prepare  # type: ignore[method-assign]
    assert Elected(1) == first.lead.resume()
    assert [room.clock.monotonic_ms()] == stamps


def test_a_resume_that_was_overtaken_is_refused(room: Room) -> None:
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    first.lead.suspend()
    room.clock.advance(9_000)
    assert Elected(2, replaced_stale=True) == second.lead.acquire()
    found = refused(first.lead.resume())
    assert not found.can_takeover
    assert "pid 200, cwd /bot" == found.text
    assert second.work.running


def test_a_restart_in_the_same_directory_resumes_what_the_dead_one_left(room: Room) -> None:
    """V10."""
    first = room.member(100)
    first.lead.acquire()
    room.kill(first)
    again = room.member(200)
    assert Elected(2, replaced_stale=True) == again.lead.resume()


def test_a_session_start_neither_creates_nor_steals(room: Room) -> None:
    """S33: nothing from inactive, nothing from another directory, nothing from the living."""
    first, other, here = room.member(100), room.member(200, cwd="/elsewhere"), room.member(300)
    assert "nothing was left here to resume" == str(here.lead.resume())
    first.lead.acquire()
    here.lead.suspend()
    assert isinstance(here.lead.resume(), Refused)
    here.lead.suspend()
    room.kill(first)
    assert isinstance(other.lead.resume(), Refused)
    assert [] == other.work.heard == here.work.heard
    assert Elected(2, replaced_stale=True) == here.lead.resume()


def test_an_explicit_release_leaves_nothing_to_resume(room: Room) -> None:
    """V10: a person who disconnects is believed, also while suspended."""
    first = room.member(100)
    first.lead.acquire()
    first.lead.suspend()
    assert Over() == first.lead.release()
    assert isinstance(first.lead.resume(), Refused)


def test_a_background_child_never_leads(room: Room) -> None:
    """A41: whatever stands there, by whatever way."""
    first = room.member(100)
    child = room.member(200, interactive=False)
    assert not refused(child.lead.acquire()).can_takeover
    first.lead.acquire()
    room.kill(first)
    assert isinstance(child.lead.acquire(), Refused)
    assert isinstance(child.lead.resume(), Refused)
    assert [] == child.work.heard


def test_a_session_start_is_deferred_and_a_suspend_cancels_it(room: Room) -> None:
    """A43: it blocks nobody, and nothing starts after the suspend."""
    first = room.member(100)
    first.lead.acquire()
    first.lead.suspend()
    session = first.lead.session_start()
    assert "suspended" == first.lead.phase
    first.work.is_ready = False
    room.run(100, first)
    assert "launching" == first.lead.phase
    assert Suspended(kept=True) == first.lead.suspend(session)
    first.work.is_ready = True
    room.run(5_000, first)
    assert 1 == first.work.heard.count("start")


def test_the_late_shutdown_of_an_old_session_does_not_stop_its_successor(room: Room) -> None:
    """A46."""
    first = room.member(100)
    first.lead.acquire()
    old = first.lead.session_start()
    first.lead.pump()
    new = first.lead.session_start()
    first.lead.pump()
    assert Late() == first.lead.suspend(old)
    assert first.work.running
    assert Suspended(kept=True) == first.lead.suspend(new)


def test_a_session_goes_on_trying_while_the_guard_is_busy(room: Room) -> None:
    """It is no failure, and the time limit answers with what it waits for."""
    first = room.member(100)
    first.lead.acquire()
    first.lead.suspend()
    found = room.while_busy(300, lambda: first.lead.resume(timeout_ms=3_000))
    assert isinstance(found, Waiting)
    assert "owners.json.transaction" in found.error
    room.run(3_000, first)
    assert "active" == first.lead.phase


def test_a_session_start_that_cannot_read_the_registry_decides_nothing(room: Room) -> None:
    """Unknown: it is neither "nothing was left" nor "take it"; a lease that is kept does not lose its keeper by it."""
    first = room.member(100)
    first.lead.acquire()
    first.lead.suspend()
    first.files.plan = lambda call: Fails(errno.EIO) if call.paths == (DIRECTORY.registry,) else None
    found = first.lead.resume(timeout_ms=1_000)
    assert isinstance(found, Waiting)
    assert DIRECTORY.registry in found.error
    assert "suspended" == first.lead.phase
    first.files.plan = None
    room.run(500, first)
    assert "active" == first.lead.phase


@pytest.mark.parametrize("verb", ["release", "suspend"])
def test_a_start_that_still_waits_does_not_outlive_a_disconnect(room: Room, verb: str) -> None:
    """A43: the wish was withdrawn, and nothing starts once the registry can be read again."""
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    second.files.plan = lambda call: Fails(errno.EIO) if call.paths == (DIRECTORY.registry,) else None
    start = second.lead.ask_resume()
    second.lead.pump()
    room.kill(first)
    assert isinstance(second.lead.release() if verb == "release" else second.lead.suspend(), Over | Suspended)
    assert Over() == start.outcome
    second.files.plan = None
    room.run(5_000, second)
    assert [] == second.work.heard


# -- reload ---------------------------------------------------------------------------------------------------------


def test_the_newer_runtime_of_a_process_takes_over_after_the_older_has_stopped(room: Room) -> None:
    """V9, S37: never two works, the drain included; and the older one leads no more (A07)."""
    old, new = room.member(100), room.member(100)
    old.work.drains = True
    old.lead.acquire()
    ask = new.lead.ask_acquire()
    room.run(2_000, new)
    assert "retiring" == old.lead.phase or "retired" == old.lead.phase
    assert [] == new.work.heard
    old.work.live = False
    room.run(200, new)
    assert Elected(2) == ask.outcome
    assert Retired() == old.lead.acquire()
    assert Retired() == old.lead.release()
    assert new.work.running


def test_a_runtime_that_is_older_than_one_that_started_retires() -> None:
    """S18: the order of the generations counts, not that of the starts."""
    room = Room()  # the recording tells old and new by the order of their first steps
    old, new = room.member(100), room.member(100)
    assert Elected(1) == new.lead.acquire()
    assert Retired() == old.lead.acquire()
    assert "active" == new.lead.phase


def test_a_reload_resumes_what_its_predecessor_has(room: Room) -> None:
    """9.4: active-here, same directory."""
    old, new = room.member(100), room.member(100)
    old.lead.acquire()
    assert Elected(2) == new.lead.resume()
    assert not old.work.running


# -- followers ------------------------------------------------------------------------------------------------------


def test_who_is_taken_as_a_follower_is_offered_no_takeover(room: Room) -> None:
    """S30."""
    followers = Followers()
    first, second = room.member(100), room.member(200, registration=followers)
    first.lead.acquire()
    assert Following() == second.lead.acquire()
    assert [owner_of(room)] == followers.asked
    assert "follower" == second.lead.phase
    assert Over() == second.lead.release()
    assert 1 == followers.left


def test_a_registration_that_failed_says_nothing_about_the_owner(room: Room) -> None:
    """S30: no takeover is offered."""
    first, second = room.member(100), room.member(200, registration=Followers("failed"))
    first.lead.acquire()
    assert not refused(second.lead.acquire()).can_takeover


def follower(room: Room, pid: int = 200) -> tuple[Member, Owner]:
    member = room.member(pid, registration=Followers())
    assert Following() == member.lead.acquire()
    return member, owner_of(room)


def test_an_election_replaces_exactly_the_owner_that_was_seen_dead(room: Room) -> None:
    first = room.member(100)
    first.lead.acquire()
    second, seen = follower(room)
    room.kill(first)
    assert Elected(2, replaced_stale=True) == second.lead.elect(seen)


def test_an_election_does_not_evict_a_leader_that_refreshed(room: Room) -> None:
    """A49: it was stale when it was looked at."""
    first = room.member(100)
    first.lead.acquire()
    second, seen = follower(room)
    room.clock.advance(9_000)
    assert "stale" == second.lead.lease.look().state
    first.lead.lease.refresh()
    assert not refused(second.lead.elect(seen)).can_takeover
    assert [] == second.work.heard


def test_an_election_after_nobody_does_not_evict_a_newcomer(room: Room) -> None:
    """A50."""
    first, third = room.member(100), room.member(300)
    first.lead.acquire()
    second, _ = follower(room)
    first.lead.release()
    assert "inactive" == second.lead.lease.look().state
    assert Elected(2) == third.lead.acquire()
    assert isinstance(second.lead.elect(None), Refused)
    assert third.work.running


def test_the_loser_of_an_election_can_follow_the_winner(room: Room) -> None:
    """A52: it is not stranded."""
    first = room.member(100)
    first.lead.acquire()
    second, seen = follower(room)
    third, _ = follower(room, 300)
    room.kill(first)
    assert Elected(2, replaced_stale=True) == third.lead.elect(seen)
    assert isinstance(second.lead.elect(seen), Refused)
    assert Following() == second.lead.acquire()


def test_a_process_that_follows_by_other_means_is_elected_from_idle(room: Room) -> None:
    """Its registration is succession's (locks.md 12.1): nothing is acquired before, and none is given up."""
    first, second = room.member(100), room.member(200, registration=(followers := Followers()))
    first.lead.acquire()
    seen = owner_of(room)
    assert not refused(second.lead.elect(seen)).can_takeover  # alive
    assert "idle" == second.lead.phase
    room.kill(first)
    assert Elected(2, replaced_stale=True) == second.lead.elect(seen)
    assert ([], 0) == (followers.asked, followers.left)


def test_an_election_from_idle_against_nobody_creates_the_entry(room: Room) -> None:
    """S17: and only while nobody owns."""
    first, second = room.member(100), room.member(200)
    assert Elected(1) == first.lead.elect(None)
    assert isinstance(second.lead.elect(None), Refused)
    assert first.work.running


def test_a_background_child_does_not_stand_for_election(room: Room) -> None:
    """A41."""
    child = room.member(100, interactive=False)
    assert "background" in refused(child.lead.elect(None)).reason
    assert [] == child.work.heard


def test_a_newer_runtime_stands_for_election_after_its_predecessor_retired(room: Room) -> None:
    """S37: one loop in one process, whichever of its runtimes wins."""
    old = room.member(100)
    assert Elected(1) == old.lead.elect(None)
    new = room.member(100)
    assert isinstance(new.lead.elect(owner_of(room)), Refused)
    assert "retired" == old.lead.phase
    assert not old.work.running


# -- effects, callbacks, the process --------------------------------------------------------------------------------


def test_an_effect_runs_only_for_the_owner(room: Room) -> None:
    """A14: and who was displaced notices at once."""
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    assert ("written", 1) == first.lead.commit_if_owned(lambda epoch: ("written", epoch))
    second.lead.acquire(force=owner_of(room))
    ran: list[int] = []
    with pytest.raises(NotOwner):
        first.lead.commit_if_owned(ran.append)
    first.lead.pump()
    assert [] == ran
    assert isinstance(first.told[-1], Lost)


def test_a_verb_inside_a_callback_does_not_wait(room: Room) -> None:
    inside: list[Outcome] = []
    first = room.member(100, on_elected=lambda elected: inside.append(first.lead.release()))
    first.lead.acquire()
    room.run(100, first)
    assert [Waiting()] == inside
    assert (None, "idle") == (room.entry, first.lead.phase)


def test_a_time_limit_answers_waiting_and_the_wish_stands(room: Room) -> None:
    first = room.member(100)
    first.work.is_ready = False
    assert Waiting() == first.lead.acquire(timeout_ms=500)
    first.work.is_ready = True
    room.run(100, first)
    assert [Elected(1)] == first.told


def test_a_fork_does_nothing_with_its_parents_lease(room: Room) -> None:
    """Also on its way out of the parent's with block."""
    first = room.member(100)
    first.lead.acquire()
    parents = first.lead.lease.ports
    child = attrs.evolve(parents, processes=room.processes.as_pid(101))
    first.lead.lease.ports = child
    with pytest.raises(TenureError, match="process 100"):
        first.lead.release()
    with first.lead:
        pass
    assert first.work.running
    assert 100 == owner_of(room).pid


def test_standing_by_takes_over_when_the_leader_dies(room: Room) -> None:
    """No grace: within a quarter of a check where nothing tells the death."""
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    began = room.clock.monotonic_ms()
    naps = 0

    def nap(duration_ms: float) -> None:
        nonlocal naps
        naps += 1
        room.clock.on_sleep = None
        room.clock.advance(duration_ms)
        room.clock.on_sleep = nap
        first.lead.pump()
        if naps == 40:
            room.kill(first)
            room.processes.kill(100)

    room.clock.on_sleep = nap
    try:
        assert Elected(2, replaced_stale=True) == second.lead.acquire_in_turn()
    finally:
        room.clock.on_sleep = None
    assert 41 >= naps
    assert 10_300 > room.clock.monotonic_ms() - began


def test_standing_by_can_be_given_up(room: Room) -> None:
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    assert isinstance(second.lead.acquire_in_turn(timeout_ms=1_000), Refused)
    assert isinstance(second.lead.acquire_in_turn(give_up=lambda: True), Refused)


# -- numbers and texts ----------------------------------------------------------------------------------------------


def test_statistics_say_what_happened(room: Room) -> None:
    """K8: numbers and texts are true."""
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    second.lead.acquire()
    room.run(4_000, first)
    said = first.lead.statistics()
    assert ("active", 1, 1, 0, 0, 0) == (
        said.phase,
        said.epoch,
        said.acquisitions,
        said.losses,
        said.releases,
        said.refusals,
    )
    assert 3 == said.refreshes
    assert 6_000 <= said.lease_ms <= 8_000
    said = second.lead.statistics()
    assert (1, 0, None, 0) == (said.refusals, said.acquisitions, said.epoch, said.lease_ms)
    first.lead.release()
    assert (1, None) == (first.lead.statistics().releases, first.lead.statistics().epoch)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Elected(7), "leads, epoch 7"),
        (Elected(7, True), "leads, epoch 7 (replaced a stale lease)"),
        (Refused(Owner(9, "/d"), "active-elsewhere", True), "active-elsewhere: pid 9, cwd /d"),
        (Refused(Owner(9), "stale", False), "stale: pid 9"),
        (Refused(None, "inactive", False), "nobody owns"),
        (Lost(7, False), "lost epoch 7: another owns"),
        (Lost(7, True), "lost epoch 7: the lease passed unrenewed"),
        (Failed("no room"), "no room"),
        (Failed("no room", left="busy"), "no room (and the lease stays until it passes: busy)"),
        (Over(), "released"),
        (Left("busy"), "the entry stays, and is stale: busy"),
        (Suspended(True), "suspended"),
        (Suspended(False), "at rest"),
        (Waiting(), "waiting"),
        (Waiting("busy"), "waiting: busy"),
    ],
)
def test_outcomes_say_what_they_are(outcome: Outcome, text: str) -> None:
    """K8."""
    assert text == str(outcome)
