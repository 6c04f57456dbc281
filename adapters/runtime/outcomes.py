"""What becomes of a wish to lead, as values: nothing that the protocol may answer is an exception."""

from __future__ import annotations

import attrs

from tenure.machines.identity import Owner


@attrs.frozen
class Elected:
    """This runtime leads: its work runs. `epoch` is the tenure; `replaced_stale`: a lease that was over stood there."""

    epoch: int
    replaced_stale: bool = False

    def __str__(self) -> str:
        return f"leads, epoch {self.epoch}" + (" (replaced a stale lease)" if self.replaced_stale else "")


@attrs.frozen
class Following:
    """The owner took this process as a follower; nothing of its work runs."""

    def __str__(self) -> str:
        return "follows"


@attrs.frozen
class Refused:
    """Somebody else owns, or there is nothing that this runtime may take.

    `owner` is the entry that stands there (None: none) and what `acquire(force=owner)` compares; `state` is what it is
    to us (locks.md 5); `can_takeover`: a person may be offered the takeover (locks.md 9.1).
    """

    owner: Owner | None
    state: str
    can_takeover: bool
    reason: str = ""

    @property
    def text(self) -> str:
        """`pid N, cwd P`: whom a person is asked about."""
        return owner_text(self.owner)

    def __str__(self) -> str:
        return self.reason or (f"{self.state}: {self.text}" if self.owner is not None else "nobody owns")


@attrs.frozen
class Lost:
    """The lease was lost: another owns, or it passed unrenewed. The work has been told to stop; the registry is left as
    it is."""

    epoch: int
    passed: bool

    def __str__(self) -> str:
        return f"lost epoch {self.epoch}" + (": the lease passed unrenewed" if self.passed else ": another owns")


@attrs.frozen
class Failed:
    """A start failed, or the work did. It is rolled back; `error` is the first error, whatever the roll-back met
    (K17), `cause` the exception if there was one. `left`: why the entry could not be released, if so."""

    error: str
    cause: Exception | None = attrs.field(default=None, eq=False)
    left: str = ""

    def __str__(self) -> str:
        return self.error + (f" (and the lease stays until it passes: {self.left})" if self.left else "")


@attrs.frozen
class Over:
    """The own entry is gone, or there was none; nothing of the work runs."""

    def __str__(self) -> str:
        return "released"


@attrs.frozen
class Left:
    """Releasing failed until the lease had passed: the entry stays, and is stale."""

    error: str

    def __str__(self) -> str:
        return f"the entry stays, and is stale: {self.error}"


@attrs.frozen
class Suspended:
    """Nothing of the work runs. `kept`: the entry is kept, as the intent to go on."""

    kept: bool

    def __str__(self) -> str:
        return "suspended" if self.kept else "at rest"


@attrs.frozen
class Retired:
    """A newer runtime of this process took over; this one leads no more."""

    def __str__(self) -> str:
        return "retired: a newer runtime of this process took over"


@attrs.frozen
class Late:
    """It came from a session that is not served any more: nothing changed (A46)."""

    def __str__(self) -> str:
        return "ignored: another session is served"


@attrs.frozen
class Waiting:
    """Asked for and not over: the time given was, or it was asked from inside a callback. The callbacks will say."""

    error: str = ""

    def __str__(self) -> str:
        return f"waiting: {self.error}" if self.error else "waiting"


Outcome = Elected | Following | Refused | Lost | Failed | Over | Left | Suspended | Retired | Late | Waiting


@attrs.frozen
class Statistics:
    """What a runtime has done since it was made. Counts, and durations in ms by the fence clock (0: never)."""

    phase: str
    """Of `tenure.machines.polling_ownership`."""
    epoch: int | None
    """Of the lease it holds."""
    acquisitions: int
    """Leases won."""
    refusals: int
    """Starts that found another owner, or nothing to resume."""
    failures: int
    """Starts that failed, and works that did."""
    losses: int
    releases: int
    refreshes: int
    """Heartbeats written."""
    checks: int
    """Looks at the own entry."""
    waits: int
    """Calls that found the guard busy, or could not read or write, and were tried again."""
    callback_errors: int
    acquire_ms: int
    """How long the last acquisition took."""
    refresh_ms: int
    """How long the last refresh took that wrote."""
    start_ms: int
    """How long it took from the wish to lead to leading, the last time."""
    lease_ms: int
    """For how long the own lease still holds by the own clock; 0 without one."""


def owner_text(owner: Owner | None) -> str:
    """`pid N, cwd P`, `pid N` for an owner without a directory, `nobody` for none."""
    if owner is None:
        return "nobody"
    return f"pid {owner.pid}" if owner.cwd is None else f"pid {owner.pid}, cwd {owner.cwd}"
