"""What succession is told, remembers and answers: the vocabulary of `tenure.machines.succession` (locks.md 12)."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from tenure.machines.follower_messages import NOTHING_BOUND, Binding

LeaseState = Literal["elsewhere", "stale", "inactive", "here", "unknown"]
"""What a look at the registry shows: the live lease of another process; one that has passed or whose process is proven
dead; no entry; a live lease of this process; nothing, because the look itself failed."""


@attrs.frozen(cache_hash=True)
class Look:
    """A look at the registry, made just now."""

    state: LeaseState
    owner: int = 0
    """Which exact entry, by a number that the adapter gives to entries; 0 where there is none."""
    endpoint: int = 0
    """Which endpoint of that owner is published, by a number likewise (a reload gives another); 0 for none."""


@attrs.frozen(cache_hash=True)
class Memory:
    """What a process remembers of succession besides its phase."""

    binding: Binding = NOTHING_BOUND
    """Thread, slot and name, remembered while they are known and carried through everything (A55)."""
    roster: tuple[str, ...] = ()
    """Slots that may stand for election, as the last leader said."""
    session: int = 1
    """The session that is served now; 0 for none."""
    leader: int = 0
    """The entry that the last registration was asked of."""
    endpoint: int = 0
    """The endpoint at which it was asked."""
    deferred: bool = False
    """Smaller slots have had their grace since the last registration."""


# -- messages ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class Join:
    """A process joins the fleet."""

    event: ClassVar[str] = "join"
    look: Look


@attrs.frozen
class Lost:
    """The leader refused a heartbeat or did not answer it, or its death is proven. `look`: made after that."""

    event: ClassVar[str] = "lost"
    look: Look


@attrs.frozen
class Saw:
    """A look was made, for whatever reason: every check, at once when the leader's process dies or files change."""

    event: ClassVar[str] = "saw"
    look: Look


@attrs.frozen
class Heard:
    """The follower's registration says what holds now: after each heartbeat, and when its thread was replaced.
    `binding` is empty where the registration has been cleared already."""

    event: ClassVar[str] = "heard"
    roster: tuple[str, ...]
    binding: Binding


@attrs.frozen
class Registered:
    """`leader` took us, with this binding. A roster comes with heartbeats (`Heard`); until then the last one holds."""

    event: ClassVar[str] = "registered"
    leader: int
    binding: Binding


@attrs.frozen
class RegisterFailed:
    """`leader` refused us, or all attempts to reach it are used up."""

    event: ClassVar[str] = "register_failed"
    leader: int


@attrs.frozen
class TimeUp:
    """The grace that `wait` asked for is over. `look`: made after that."""

    event: ClassVar[str] = "time_up"
    look: Look


@attrs.frozen
class Won:
    """The election's start is about to do what only the owner may do. `owned`: a look just now, inside the ownership
    transaction or after the first refresh, found the lease ours."""

    event: ClassVar[str] = "won"
    owned: bool


@attrs.frozen
class Started:
    """The promotion is complete: this process leads."""

    event: ClassVar[str] = "started"


@attrs.frozen
class Denied:
    """The election was refused: another entry stands there, or the observed one is live after all."""

    event: ClassVar[str] = "denied"


@attrs.frozen
class ElectFailed:
    """The election or the promotion's start raised, or the lease was lost on the way; all is rolled back."""

    event: ClassVar[str] = "elect_failed"


@attrs.frozen
class Deposed:
    """This process leads no more: the lease is lost, or was given up because the work failed."""

    event: ClassVar[str] = "deposed"


@attrs.frozen
class SessionChanged:
    """Another session is served from now on; 0: none."""

    event: ClassVar[str] = "session_changed"
    session: int


@attrs.frozen
class Stop:
    """A person leaves the fleet."""

    event: ClassVar[str] = "stop"


Happening = (
    Join | Lost | Saw | Heard | Registered | RegisterFailed | TimeUp | Won | Started | Denied | ElectFailed | Deposed
    | SessionChanged | Stop
)  # fmt: skip


# -- outputs ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class Register:
    """Call: register with this leader, under a fresh generation, for `session`; answered by `Registered` or
    `RegisterFailed` with the same leader, unless `leave` comes first."""

    leader: int
    session: int
    binding: Binding


@attrs.frozen
class Elect:
    """Call: stand for election against exactly `observed` (0: against nobody), for `session`
    (`Leadership.ask_elect`). Answered by `Won` and `Started`, by `Denied`, or by `ElectFailed`."""

    observed: int
    session: int


@attrs.frozen
class MoveBinding:
    """Convert the record of `binding` to the leader's profile, under the lease that was just won (S32)."""

    binding: Binding


@attrs.frozen
class RestoreBinding:
    """Convert it back: `binding` is a follower's again."""

    binding: Binding


Signal = Literal["leave", "wait", "resign"]
"""Outputs without fields. `leave`: give up the registration, or the call for one, without a word. `wait`: tell `TimeUp`
after one grace, unless this phase is left before. `resign`: give up the lease, or the election for it."""

Output = Register | Elect | MoveBinding | RestoreBinding | Signal
