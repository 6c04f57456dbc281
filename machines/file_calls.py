"""The calls that a guarded file needs, and their answers: the vocabulary of `tenure.machines.file_transaction`.

Each answer and each call is one line of locks.md 3.1. Generations and claims are integers here; an adapter maps its
uuids to them one to one. A birth of 0 is not known. "Contention" is what locks.md 3.2 calls so.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

# -- what the machine is told ------------------------------------------------


@attrs.frozen
class Begin:
    """S0 is done: the parent directory exists, and the thread wants to enter."""

    event: ClassVar[str] = "begin"


@attrs.frozen
class Staged:
    """S1: a sibling directory with the owner file of generation `id` exists."""

    event: ClassVar[str] = "staged"
    id: int


@attrs.frozen
class StageFailed:
    """S1 failed with something that waiting does not cure (no space, read-only)."""

    event: ClassVar[str] = "stage_failed"


@attrs.frozen
class Looked:
    """S2: does anything stand at the guard's path?"""

    event: ClassVar[str] = "looked"
    present: bool


@attrs.frozen
class Published:
    """S3: the rename succeeded."""

    event: ClassVar[str] = "published"


@attrs.frozen
class PublishRefused:
    """S3: the rename was refused, as contention (locks.md 3.2)."""

    event: ClassVar[str] = "publish_refused"


@attrs.frozen
class Observed:
    """R1: what stands at the path, and what is known of the process that wrote it.

    id and birth are the payload's; `alive` says that a process with the payload's pid exists, `birth_now` is that
    process's birth (0: not known here, or nothing to compare).
    """

    event: ClassVar[str] = "observed"
    verifiable: bool
    id: int
    alive: bool
    birth: int
    birth_now: int


@attrs.frozen
class OwnerListed:
    """R2: the one entry is an owner file of generation `id`."""

    event: ClassVar[str] = "owner_listed"
    id: int


@attrs.frozen
class MarkerListed:
    """R2: the one entry is a claim marker `claim`."""

    event: ClassVar[str] = "marker_listed"
    claim: int


@attrs.frozen
class ListedOther:
    """R2: the guard vanished, or holds anything but exactly one entry of ours."""

    event: ClassVar[str] = "listed_other"


@attrs.frozen
class OwnerJudged:
    """R3 for an owner name: nothing more to probe, the death of the payload's process was proven by R1."""

    event: ClassVar[str] = "owner_judged"


@attrs.frozen
class MarkerJudged:
    """R3 for a marker: what is known of its claimant.

    `mine`: the claimant is this very process (pid, and birth where both are known). `running`: such a reclaim runs in
    this process right now. `alive`, `birth`, `birth_now` as in `Observed`.
    """

    event: ClassVar[str] = "marker_judged"
    alive: bool
    birth: int
    birth_now: int
    mine: bool
    running: bool


@attrs.frozen
class MarkerGone:
    """R3 for a marker: it is not there any more."""

    event: ClassVar[str] = "marker_gone"


@attrs.frozen
class Claimed:
    """R4: the observed entry now is my marker `claim`."""

    event: ClassVar[str] = "claimed"
    claim: int


@attrs.frozen
class ClaimMissed:
    """R4: the observed entry is not there any more, or could not be renamed: contention, never an error (K7)."""

    event: ClassVar[str] = "claim_missed"


@attrs.frozen
class Moved:
    """R5: the dead guard is away."""

    event: ClassVar[str] = "moved"


@attrs.frozen
class MoveFailed:
    """R5 failed as often as it may."""

    event: ClassVar[str] = "move_failed"


@attrs.frozen
class RolledBack:
    """My marker is an owner file of the dead generation again."""

    event: ClassVar[str] = "rolled_back"


@attrs.frozen
class RollbackFailed:
    """The marker stays; it will be tried again, since to everybody else a live claimant stands there."""

    event: ClassVar[str] = "rollback_failed"


@attrs.frozen
class Aborted:
    """An exception ended the attempt before R5 was done; its claim leaves the set of running reclaims."""

    event: ClassVar[str] = "aborted"


@attrs.frozen
class StaleDeleted:
    """R6, best effort."""

    event: ClassVar[str] = "stale_deleted"


@attrs.frozen
class Tidied:
    """R8: the recovery guard of older versions beside mine was looked at."""

    event: ClassVar[str] = "tidied"
    neighbour_alive: bool


@attrs.frozen
class TidyFailed:
    """R8 failed."""

    event: ClassVar[str] = "tidy_failed"


@attrs.frozen
class Woke:
    """The sleep between two attempts is over."""

    event: ClassVar[str] = "woke"


@attrs.frozen
class GaveUp:
    """The attempts are used up."""

    event: ClassVar[str] = "gave_up"


@attrs.frozen
class Left:
    """The operation inside is over, well or badly."""

    event: ClassVar[str] = "left"


@attrs.frozen
class Reread:
    """X1: what stands at the path now; id 0 for anything but an owner file."""

    event: ClassVar[str] = "reread"
    id: int


@attrs.frozen
class MovedAway:
    """X2: the path is free."""

    event: ClassVar[str] = "moved_away"


@attrs.frozen
class ReleaseFailed:
    """X2 failed; it will be tried again, since nobody else may take a living process's guard."""

    event: ClassVar[str] = "release_failed"


@attrs.frozen
class ReleasedDeleted:
    """X3, best effort."""

    event: ClassVar[str] = "released_deleted"


Answer = (
    Begin
    | Staged
    | StageFailed
    | Looked
    | Published
    | PublishRefused
    | Observed
    | OwnerListed
    | MarkerListed
    | ListedOther
    | OwnerJudged
    | MarkerJudged
    | MarkerGone
    | Claimed
    | ClaimMissed
    | Moved
    | MoveFailed
    | RolledBack
    | RollbackFailed
    | Aborted
    | StaleDeleted
    | Tidied
    | TidyFailed
    | Woke
    | GaveUp
    | Left
    | Reread
    | MovedAway
    | ReleaseFailed
    | ReleasedDeleted
)


# -- what the adapter has to do ----------------------------------------------


@attrs.frozen
class StageGuard:
    """S1: make a sibling directory with an owner file of a generation that was never used."""


@attrs.frozen
class LookAtPath:
    """S2: lstat the guard's path."""


@attrs.frozen
class PublishGuard:
    """S3: rename the staged directory `id` to the path."""

    id: int


@attrs.frozen
class ReadGuard:
    """R1, X1: remove what is staged, then read the payload at the path (and, for R1, probe its process)."""


@attrs.frozen
class ListGuard:
    """R2: list the guard."""


@attrs.frozen
class JudgeName:
    """R3: probe the claimant that the name carries, if it carries one."""


@attrs.frozen
class ClaimEntry:
    """R4: rename the entry called `name` to a marker of mine, put in the set of running reclaims before."""

    name: int


@attrs.frozen
class MoveStale:
    """R5: rename the path away, a bounded number of times."""


@attrs.frozen
class RollBackClaim:
    """Rename marker `claim` to the owner file of generation `payload`."""

    claim: int
    payload: int


@attrs.frozen
class DeleteAside:
    """R6, X3: delete what was moved away, best effort."""


@attrs.frozen
class TidyNeighbour:
    """R8: look at the recovery guard beside mine."""


@attrs.frozen
class RemoveNeighbour:
    """R8: it is abandoned; take it away."""


@attrs.frozen
class Sleep:
    """Wait before the next attempt, or say `GaveUp`."""


@attrs.frozen
class RunInside:
    """The thread is inside: run the operation."""


@attrs.frozen
class MoveAway:
    """X2: rename the path away."""


@attrs.frozen
class Report:
    """Tell the caller how it ended: entered (False: the operation did not run), and what was wrong."""

    entered: bool
    fault: str


Call = (
    StageGuard
    | LookAtPath
    | PublishGuard
    | ReadGuard
    | ListGuard
    | JudgeName
    | ClaimEntry
    | MoveStale
    | RollBackClaim
    | DeleteAside
    | TidyNeighbour
    | RemoveNeighbour
    | Sleep
    | RunInside
    | MoveAway
    | Report
)
