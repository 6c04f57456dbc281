"""The machine of the guarded file: what it tells its adapter to do next, and what it refuses."""

from __future__ import annotations

import attrs
import pytest

from tenure.machines.chart import Refused, Step, step
from tenure.machines.file_calls import (
    Aborted,
    Answer,
    Begin,
    Call,
    Claimed,
    ClaimEntry,
    ClaimMissed,
    DeleteAside,
    GaveUp,
    Left,
    LookAtPath,
    Looked,
    MarkerJudged,
    MarkerListed,
    MoveAway,
    Moved,
    MovedAway,
    MoveFailed,
    MoveStale,
    Observed,
    OwnerJudged,
    OwnerListed,
    Published,
    PublishGuard,
    ReadGuard,
    ReleasedDeleted,
    ReleaseFailed,
    RemoveNeighbour,
    Report,
    Reread,
    RollBackClaim,
    RollbackFailed,
    RolledBack,
    RunInside,
    Sleep,
    Staged,
    StageFailed,
    StageGuard,
    StaleDeleted,
    Tidied,
    TidyFailed,
    TidyNeighbour,
    Woke,
)
from tenure.machines.file_transaction import FILE_TRANSACTION, FRESH_ATTEMPT, Attempt

DEAD = Observed(verifiable=True, id=7, alive=False, birth=1, birth_now=0)
LIVE = Observed(verifiable=True, id=7, alive=True, birth=1, birth_now=1)
REUSED = Observed(verifiable=True, id=7, alive=True, birth=1, birth_now=2)
UNREADABLE = Observed(verifiable=False, id=0, alive=False, birth=0, birth_now=0)


@attrs.define
class Thread:
    """A thread that is told one answer after the other."""

    phase: str = FILE_TRANSACTION.initial
    data: Attempt = FRESH_ATTEMPT
    calls: tuple[Call, ...] = ()

    def told(self, *answers: Answer) -> Thread:
        """Take the answers; each must be accepted."""
        for answer in answers:
            done = step(FILE_TRANSACTION, self.phase, self.data, answer)
            assert isinstance(done, Step), done
            self.phase, self.data, self.calls = done.phase, done.data, done.outputs
        return self


CONTENDING = (Begin(), Staged(3), Looked(True))
CLAIMING = (*CONTENDING, DEAD, OwnerListed(7), OwnerJudged())
INSIDE = (Begin(), Staged(3), Looked(False), Published())


def test_the_way_in_and_out_is_one_call_after_the_other() -> None:
    """Stage, look, publish, run; read again, move away, delete, report."""
    thread = Thread()
    for answer, call in (
        (Begin(), StageGuard()),
        (Staged(3), LookAtPath()),
        (Looked(False), PublishGuard(3)),
        (Published(), RunInside()),
        (Left(), ReadGuard()),
        (Reread(3), MoveAway()),
        (MovedAway(), DeleteAside()),
        (ReleasedDeleted(), Report(entered=True, fault="")),
    ):
        assert (call,) == thread.told(answer).calls
    assert ("idle", FRESH_ATTEMPT) == (thread.phase, thread.data)


def test_a_dead_guard_is_taken_by_name_then_moved_then_deleted() -> None:
    """The claim names the very entry whose holder was proven dead, and comes before the move (S4, S6)."""
    thread = Thread().told(*CLAIMING)
    assert (ClaimEntry(7),) == thread.calls
    assert (MoveStale(),) == thread.told(Claimed(9)).calls
    thread.told(Moved(), StaleDeleted())
    assert (StageGuard(),) == thread.calls
    assert (TidyNeighbour(),) == thread.told(Staged(4), Looked(False), Published()).calls
    assert (RemoveNeighbour(), RunInside()) == thread.told(Tidied(neighbour_alive=False)).calls


def test_a_live_neighbour_is_left_alone() -> None:
    """A23: the recovery guard of an older version is taken away only if it is abandoned."""
    thread = Thread().told(*CLAIMING, Claimed(9), Moved(), StaleDeleted(), Staged(4), Looked(False), Published())
    assert (RunInside(),) == thread.told(Tidied(neighbour_alive=True)).calls


@pytest.mark.parametrize("seen", [LIVE, UNREADABLE])
def test_what_is_not_proven_dead_is_left_alone(seen: Observed) -> None:
    """Proof and Unknown: a live holder and an unreadable guard keep everybody out (S3, S9)."""
    assert (Sleep(),) == Thread().told(*CONTENDING, seen).calls


def test_a_reused_pid_is_no_life() -> None:
    """K1: a process with the same pid and another birth does not pin the guard."""
    assert "listing" == Thread().told(*CONTENDING, REUSED).phase


@pytest.mark.parametrize(("birth", "now"), [(0, 2), (1, 0), (0, 0)])
def test_an_unknown_birth_proves_nothing(birth: int, now: int) -> None:
    """A foreign owner without birth, or a platform that cannot tell, counts as alive while the pid is."""
    seen = Observed(verifiable=True, id=7, alive=True, birth=birth, birth_now=now)
    assert "pausing" == Thread().told(*CONTENDING, seen).phase


def test_a_newcomer_between_reading_and_listing_is_safe() -> None:
    """A17: the name listed is not the one whose holder was proven dead, so nothing is claimed."""
    assert (Sleep(),) == Thread().told(*CONTENDING, DEAD, OwnerListed(8), OwnerJudged()).calls


def test_a_failed_claim_is_contention() -> None:
    """K7: an EBUSY on the claim does not escape; the thread sleeps and tries again."""
    thread = Thread().told(*CLAIMING, ClaimMissed())
    assert (Sleep(),) == thread.calls
    assert (StageGuard(),) == thread.told(Woke()).calls


def test_a_failed_move_is_rolled_back_until_it_is_back() -> None:
    """A20: the marker becomes an owner file again, however often that has to be tried."""
    thread = Thread().told(*CLAIMING, Claimed(9), MoveFailed())
    back = (RollBackClaim(claim=9, payload=7),)
    assert back == thread.calls
    assert back == thread.told(RollbackFailed(), RollbackFailed()).calls
    assert (Sleep(),) == thread.told(RolledBack()).calls


@pytest.mark.parametrize(
    ("judged", "phase"),
    [
        (MarkerJudged(alive=False, birth=1, birth_now=0, mine=False, running=False), "claiming"),  # A26
        (MarkerJudged(alive=True, birth=1, birth_now=2, mine=False, running=False), "claiming"),
        (MarkerJudged(alive=True, birth=1, birth_now=1, mine=True, running=False), "claiming"),  # A19
        (MarkerJudged(alive=True, birth=1, birth_now=1, mine=True, running=True), "pausing"),  # K16
        (MarkerJudged(alive=True, birth=1, birth_now=1, mine=False, running=False), "pausing"),
    ],
)
def test_whose_marker_may_be_taken(judged: MarkerJudged, phase: str) -> None:
    """A dead claimant's, and this process's own if no thread runs it; never a live claimant's (S7)."""
    assert phase == Thread().told(*CONTENDING, DEAD, MarkerListed(5), judged).phase


def test_a_replaced_guard_is_not_released() -> None:
    """A22: what stands there is another generation; it is left alone and the caller is told."""
    thread = Thread().told(*INSIDE, Left(), Reread(4))
    assert (Report(entered=True, fault="replaced"),) == thread.calls


def test_a_release_that_fails_is_tried_again() -> None:
    """V3: nobody else may take a living process's guard, so its own thread goes on until it is away."""
    thread = Thread().told(*INSIDE, Left(), Reread(3), ReleaseFailed(), ReleaseFailed())
    assert ("releasing", (MoveAway(),)) == (thread.phase, thread.calls)


def test_a_guard_won_is_released_when_tidying_fails() -> None:
    """S10: the caller sees an error, and no guard is left behind."""
    thread = Thread().told(*CLAIMING, Claimed(9), Moved(), StaleDeleted(), Staged(4), Looked(False), Published())
    assert "releasing" == thread.told(TidyFailed(), Reread(4)).phase


@pytest.mark.parametrize(
    ("answers", "fault"),
    [
        ((Begin(), StageFailed()), "stage_failed"),
        ((*CONTENDING, LIVE, GaveUp()), "timeout"),
        ((*CLAIMING, Claimed(9), Aborted()), "aborted"),
    ],
)
def test_a_caller_that_did_not_get_in_is_told_so(answers: tuple[Answer, ...], fault: str) -> None:
    """The operation did not run, and nothing is remembered."""
    thread = Thread().told(*answers)
    assert ("idle", FRESH_ATTEMPT) == (thread.phase, thread.data)
    assert (Report(entered=False, fault=fault),) == thread.calls


def test_nesting_is_refused_at_once() -> None:
    """K13: a thread that is inside does not wait for itself; the refusal changes nothing."""
    thread = Thread().told(*INSIDE)
    assert Refused("begin", "inside", ()) == step(FILE_TRANSACTION, thread.phase, thread.data, Begin())
