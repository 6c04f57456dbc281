"""One thread's way through a guarded file: stage, look, publish; observe, claim, move; verify, move away (3.1).

The machine of `spec/FileTransaction.tla`. A phase names the file-system call that the thread is about to make; the
event is that call's answer, and the outputs are the next call. So an adapter performs outputs and tells answers, and
decides nothing. The guard is a directory at a fixed path which is published by renaming a staged directory there, with
exactly one file in it: an owner file, whose name carries the generation, or a claim marker, whose name carries the
claimant. Rename of a non-empty directory onto an occupied path fails; that is all the atomicity there is, and enough.
"""

from __future__ import annotations

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.file_calls import (
    Aborted,
    Answer,
    Begin,
    Call,
    Claimed,
    ClaimEntry,
    DeleteAside,
    GaveUp,
    JudgeName,
    Left,
    ListGuard,
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
    PublishRefused,
    ReadGuard,
    ReleasedDeleted,
    ReleaseFailed,
    RemoveNeighbour,
    Report,
    Reread,
    RollBackClaim,
    RollbackFailed,
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
from tenure.machines.laws import Law, guard, permit


@attrs.frozen(cache_hash=True)
class Attempt:
    """What the thread remembers between two calls; all zero when it is not trying.

    id: the generation of its own staged or published guard. saw: did it see something at the path when it looked.
    payload, name: the generation it read in an abandoned guard, and the id in the entry's name (a generation, or the
    claim of a marker). claim: its own claim marker. recovered: it took a dead guard away on its way in.
    """

    id: int = 0
    saw: bool = False
    payload: int = 0
    name: int = 0
    claim: int = 0
    recovered: bool = False


FRESH_ATTEMPT = Attempt()
RECOVERED_ATTEMPT = Attempt(recovered=True)


Does = tuple[Attempt, tuple[Call, ...]]


class FileTransactionChart(StateMachine):
    """One thread and one guarded path."""

    idle = State(initial=True)
    staging = State()
    checking = State()
    publishing = State()
    observing = State()
    listing = State()
    judging_owner = State()
    judging_marker = State()
    claiming = State()
    moving = State()
    rolling_back = State()
    deleting_stale = State()
    pausing = State()
    tidying = State()
    inside = State()
    verifying = State()
    releasing = State()
    deleting_released = State()

    begin = idle.to(staging, on="stage")
    staged = staging.to(checking, on="look")
    stage_failed = staging.to(idle, on="report_stage_failed")
    looked = checking.to(publishing, cond=["path_is_free"], on="publish") | checking.to(observing, on="read")
    published = publishing.to(inside, cond=["took_nothing_over"], on="run") | publishing.to(tidying, on="tidy")
    publish_refused = publishing.to(observing, on="read")
    observed = (
        observing.to(listing, cond=["payload_verifiable", "holder_is_gone"], on="list_entries")
        | observing.to(listing, cond=["payload_verifiable", "another_birth"], on="list_entries")
        | observing.to(pausing, on="sleep")
    )
    owner_listed = listing.to(judging_owner, on="judge_owner")
    marker_listed = listing.to(judging_marker, on="judge_marker")
    listed_other = listing.to(pausing, on="sleep")
    owner_judged = judging_owner.to(claiming, cond=["name_matches_payload"], on="claim_entry") | judging_owner.to(
        pausing, on="sleep"
    )
    marker_judged = (
        judging_marker.to(claiming, cond=["dead_claims_are_taken_over", "claimant_is_gone"], on="claim_entry")
        | judging_marker.to(claiming, cond=["dead_claims_are_taken_over", "another_birth"], on="claim_entry")
        | judging_marker.to(
            claiming, cond=["own_claims_are_resumed", "claimant_is_me", "claim_not_running"], on="claim_entry"
        )
        | judging_marker.to(pausing, on="sleep")
    )
    marker_gone = judging_marker.to(pausing, on="sleep")
    claimed = claiming.to(moving, on="move")
    claim_missed = claiming.to(pausing, on="sleep")
    moved = moving.to(deleting_stale, on="delete_stale")
    move_failed = moving.to(rolling_back, on="roll_back")
    rolled_back = rolling_back.to(pausing, on="sleep")
    rollback_failed = rolling_back.to(rolling_back, on="roll_back")
    aborted = moving.to(idle, on="report_aborted")
    stale_deleted = deleting_stale.to(staging, on="stage_again")
    tidied = tidying.to(inside, cond=["neighbour_is_gone"], on="remove_neighbour") | tidying.to(inside, on="run")
    tidy_failed = tidying.to(verifying, on="verify")
    woke = pausing.to(staging, cond=["contention_is_retried"], on="stage")
    gave_up = pausing.to(idle, on="report_timeout")
    left = inside.to(verifying, on="verify")
    reread = verifying.to(releasing, cond=["still_mine"], on="move_away") | verifying.to(idle, on="report_replaced")
    moved_away = releasing.to(deleting_released, on="delete_released")
    release_failed = releasing.to(releasing, on="move_away")
    released_deleted = deleting_released.to(idle, on="report_done")

    # -- guards ---------------------------------------------------------------

    @staticmethod
    @guard(Law.UNKNOWN)
    def path_is_free(data: Attempt, message: Looked) -> bool:
        """Unknown: whatever stands at the path, even an empty directory, occupies it (S2).

        Without it the rename silently replaces an empty directory, and a damaged guard keeps nobody out.
        """
        return not message.present

    @staticmethod
    @guard(Law.DURABLE_FIRST)
    def took_nothing_over(data: Attempt, message: Published) -> bool:
        """Durable first: whoever took a dead guard over clears the neighbour before it works (R8, A16).

        Without it a dead recovery guard of an older version outlives the recovery, and that version's processes wait.
        """
        return not data.recovered

    @staticmethod
    @guard(Law.UNKNOWN)
    def payload_verifiable(data: Attempt, message: Observed) -> bool:
        """Unknown: an unreadable guard is not an abandoned one (S9).

        Without it a thread evicts a holder whose guard it cannot read and enters beside it.
        """
        return message.verifiable

    @staticmethod
    @guard(Law.PROOF)
    def holder_is_gone(data: Attempt, message: Observed) -> bool:
        """Proof: only a dead holder's guard is reclaimed (S3). Without it a live holder is evicted."""
        return not message.alive

    @staticmethod
    @permit(Law.PROOF)
    def another_birth(data: Attempt, message: Observed | MarkerJudged) -> bool:
        """Proof: a process with the same pid and another birth is another process (K1).

        Without the permission a dead holder whose pid was reused pins the guard for ever.
        """
        return message.alive and message.birth != 0 != message.birth_now and message.birth != message.birth_now

    @staticmethod
    @guard(Law.FENCE)
    def name_matches_payload(data: Attempt, message: OwnerJudged) -> bool:
        """Fence: the entry listed is the one whose holder was proven dead (S5).

        Without it the guard of a newcomer, published between the reading and the listing, is claimed.
        """
        return data.name == data.payload

    @staticmethod
    @permit(Law.PROOF)
    def dead_claims_are_taken_over(data: Attempt, message: MarkerJudged) -> bool:
        """Proof: the marker of a dead claimant may be claimed in its turn (V2).

        Without the permission a recoverer that dies between claim and move blocks everybody (A16, A26).
        """
        return True

    @staticmethod
    @guard(Law.PROOF)
    def claimant_is_gone(data: Attempt, message: MarkerJudged) -> bool:
        """Proof: a live claimant is not robbed (S7). Without it two recoverers move, the second a live guard."""
        return not message.alive

    @staticmethod
    @permit(Law.PROOF)
    def own_claims_are_resumed(data: Attempt, message: MarkerJudged) -> bool:
        """Proof: a marker of this very process whose reclaim does not run is as good as a dead one's (V3).

        Without the permission a process whose reclaim was cut short waits for itself for ever (A19).
        """
        return True

    @staticmethod
    @guard(Law.PROOF)
    def claimant_is_me(data: Attempt, message: MarkerJudged) -> bool:
        """Proof: of a living process only its own threads know what runs in it (S7).

        Without it any live claimant is robbed by whoever does not know its claim.
        """
        return message.mine

    @staticmethod
    @guard(Law.PROOF)
    def claim_not_running(data: Attempt, message: MarkerJudged) -> bool:
        """Proof: a reclaim that runs in another thread of this process is not entered again (S7, K16).

        Without it two threads of one process move, the second a live guard.
        """
        return not message.running

    @staticmethod
    @guard(Law.PROOF)
    def neighbour_is_gone(data: Attempt, message: Tidied) -> bool:
        """Proof: a live recovery guard of an older version is left alone (A23). Without it its holder is evicted."""
        return not message.neighbour_alive

    @staticmethod
    @permit(Law.PROOF)
    def contention_is_retried(data: Attempt, message: Woke) -> bool:
        """Proof: contention proves nothing but a moment; the thread tries again.

        Without the permission one collision keeps a thread out for ever.
        """
        return True

    @staticmethod
    @guard(Law.FENCE)
    def still_mine(data: Attempt, message: Reread) -> bool:
        """Fence: release only the generation that was published here (S8, A22).

        Without it a release destroys the guard of whoever came after a tampered one.
        """
        return message.id == data.id

    # -- effects --------------------------------------------------------------

    @staticmethod
    def stage(data: Attempt, message: Begin | Woke) -> Does:
        return FRESH_ATTEMPT, (StageGuard(),)

    @staticmethod
    def stage_again(data: Attempt, message: StaleDeleted) -> Does:
        return RECOVERED_ATTEMPT, (StageGuard(),)

    @staticmethod
    def look(data: Attempt, message: Staged) -> Does:
        return attrs.evolve(data, id=message.id), (LookAtPath(),)

    @staticmethod
    def publish(data: Attempt, message: Looked) -> Does:
        return attrs.evolve(data, saw=message.present), (PublishGuard(data.id),)

    @staticmethod
    def read(data: Attempt, message: Looked | PublishRefused) -> Does:
        return FRESH_ATTEMPT, (ReadGuard(),)

    @staticmethod
    def tidy(data: Attempt, message: Published) -> Does:
        return data, (TidyNeighbour(),)

    @staticmethod
    def run(data: Attempt, message: Published | Tidied) -> Does:
        return data, (RunInside(),)

    @staticmethod
    def remove_neighbour(data: Attempt, message: Tidied) -> Does:
        return data, (RemoveNeighbour(), RunInside())

    @staticmethod
    def list_entries(data: Attempt, message: Observed) -> Does:
        return attrs.evolve(data, payload=message.id), (ListGuard(),)

    @staticmethod
    def judge_owner(data: Attempt, message: OwnerListed) -> Does:
        return attrs.evolve(data, name=message.id), (JudgeName(),)

    @staticmethod
    def judge_marker(data: Attempt, message: MarkerListed) -> Does:
        return attrs.evolve(data, name=message.claim), (JudgeName(),)

    @staticmethod
    def claim_entry(data: Attempt, message: OwnerJudged | MarkerJudged) -> Does:
        return data, (ClaimEntry(data.name),)

    @staticmethod
    def move(data: Attempt, message: Claimed) -> Does:
        return attrs.evolve(data, name=0, claim=message.claim), (MoveStale(),)

    @staticmethod
    def roll_back(data: Attempt, message: MoveFailed | RollbackFailed) -> Does:
        return data, (RollBackClaim(data.claim, data.payload),)

    @staticmethod
    def delete_stale(data: Attempt, message: Moved) -> Does:
        return FRESH_ATTEMPT, (DeleteAside(),)

    @staticmethod
    def sleep(data: Attempt, message: Answer) -> Does:
        return FRESH_ATTEMPT, (Sleep(),)

    @staticmethod
    def verify(data: Attempt, message: Left | TidyFailed) -> Does:
        return data, (ReadGuard(),)

    @staticmethod
    def move_away(data: Attempt, message: Reread | ReleaseFailed) -> Does:
        return data, (MoveAway(),)

    @staticmethod
    def delete_released(data: Attempt, message: MovedAway) -> Does:
        return FRESH_ATTEMPT, (DeleteAside(),)

    @staticmethod
    def report_stage_failed(data: Attempt, message: StageFailed) -> Does:
        return FRESH_ATTEMPT, (Report(entered=False, fault="stage_failed"),)

    @staticmethod
    def report_aborted(data: Attempt, message: Aborted) -> Does:
        return FRESH_ATTEMPT, (Report(entered=False, fault="aborted"),)

    @staticmethod
    def report_timeout(data: Attempt, message: GaveUp) -> Does:
        return FRESH_ATTEMPT, (Report(entered=False, fault="timeout"),)

    @staticmethod
    def report_replaced(data: Attempt, message: Reread) -> Does:
        return FRESH_ATTEMPT, (Report(entered=True, fault="replaced"),)

    @staticmethod
    def report_done(data: Attempt, message: ReleasedDeleted) -> Does:
        return FRESH_ATTEMPT, (Report(entered=True, fault=""),)


FILE_TRANSACTION: Table[Attempt, Answer, Call] = compile_chart(FileTransactionChart)
