"""What a polling runtime is told, remembers and answers: the vocabulary of `tenure.machines.polling_ownership`."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

Saw = Literal["mine", "other", "unknown"]
"""What a look at the registry showed: my exact entry; none or another; nothing, because the look itself failed."""
Mode = Literal["plain", "force", "elect", "resume"]
"""How to acquire (locks.md 7.1). `resume` replaces exactly `expected`, or nothing: it never creates an entry."""
Outcome = Literal["leading", "lost", "failed", "refused", "offer", "following", "left", "over"]
"""What became of a start, a stop or a tenure; `left` says that a release failed and the entry stays until it passes."""


@attrs.frozen(cache_hash=True)
class Memory:
    """What a runtime remembers besides its phase."""

    waiting: bool = False
    """A call of the current run has not returned."""
    shown: int = 0
    """The entry that was shown to the person (or observed by an election or session start); 0 for none."""
    session: int = 0
    """The session this runtime serves; 0 for none."""


# -- messages ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class Start:
    """A person connects. `interactive`: not a background child (print or json run mode, no token).
    `alone`: every older runtime of this process has retired."""

    event: ClassVar[str] = "start"
    interactive: bool
    alone: bool


@attrs.frozen
class Force:
    """The person confirms the takeover that was offered."""

    event: ClassVar[str] = "force"


@attrs.frozen
class Elect:
    """Succession decides that this process stands for election against `observed`; the rest as in `Start`."""

    event: ClassVar[str] = "elect"
    observed: int
    interactive: bool
    alone: bool


@attrs.frozen
class SessionStart:
    """A session begins. `mine`, `stale`, `same_process` and `here` (same directory) describe entry `observed`; all
    are False when there is none."""

    event: ClassVar[str] = "session_start"
    session: int
    interactive: bool
    observed: int
    mine: bool
    here: bool
    stale: bool
    same_process: bool


@attrs.frozen
class AutoRun:
    """The deferred start of a session has its turn. `alone` as in `Start`."""

    event: ClassVar[str] = "auto_run"
    alone: bool


@attrs.frozen
class Acquired:
    """The lease is ours."""

    event: ClassVar[str] = "acquired"


@attrs.frozen
class Denied:
    """Entry `observed` stands in the way."""

    event: ClassVar[str] = "denied"
    observed: int


@attrs.frozen
class AcquireFailed:
    """Acquiring raised: it is not known whether the entry was written (K9)."""

    event: ClassVar[str] = "acquire_failed"
    error: str = ""


@attrs.frozen
class Registered:
    """The owner took us as a follower."""

    event: ClassVar[str] = "registered"


@attrs.frozen
class Unregistered:
    """We are no follower. `thread_mode`: the owner publishes thread mode, so registration was tried and failed."""

    event: ClassVar[str] = "unregistered"
    thread_mode: bool


@attrs.frozen
class Refreshed:
    """A refresh ended; in phase refreshing it is the first one of the run."""

    event: ClassVar[str] = "refreshed"
    saw: Saw
    passed: bool


@attrs.frozen
class Checked:
    """A read-only look at the own entry ended."""

    event: ClassVar[str] = "checked"
    saw: Saw
    passed: bool


@attrs.frozen
class Prepared:
    """`on_acquired` returned."""

    event: ClassVar[str] = "prepared"


@attrs.frozen
class Launched:
    """The poll loop runs."""

    event: ClassVar[str] = "launched"


@attrs.frozen
class Failed:
    """Preparing or starting raised, or the loop ended by itself."""

    event: ClassVar[str] = "failed"
    error: str = ""


@attrs.frozen
class Returned:
    """A call of an abandoned run returned, whatever it said. `registering`: it was a registration, which may have
    been accepted."""

    event: ClassVar[str] = "returned"
    registering: bool


@attrs.frozen
class Request:
    """Somebody is about to send a request (a poll, a message, a typing signal) under this tenure."""

    event: ClassVar[str] = "request"
    passed: bool


@attrs.frozen
class Stop:
    """A person disconnects."""

    event: ClassVar[str] = "stop"


@attrs.frozen
class Cleaned:
    """The clean-up before a disconnect ended."""

    event: ClassVar[str] = "cleaned"


@attrs.frozen
class CleanUpFailed:
    """The clean-up before a disconnect raised."""

    event: ClassVar[str] = "clean_up_failed"
    error: str = ""


@attrs.frozen
class Suspend:
    """The session `session` ends, the process stays."""

    event: ClassVar[str] = "suspend"
    session: int


@attrs.frozen
class Superseded:
    """A newer runtime of this process was loaded."""

    event: ClassVar[str] = "superseded"


@attrs.frozen
class Stopped:
    """No poll loop of this runtime is live or wanted."""

    event: ClassVar[str] = "stopped"


@attrs.frozen
class Released:
    """The own entry is gone (or was no longer there)."""

    event: ClassVar[str] = "released"


@attrs.frozen
class ReleaseFailed:
    """Releasing raised, most likely because the guard is busy."""

    event: ClassVar[str] = "release_failed"
    passed: bool
    error: str = ""


Happening = (
    Start | Force | Elect | SessionStart | AutoRun | Acquired | Denied | AcquireFailed | Registered | Unregistered
    | Refreshed | Checked | Prepared | Launched | Failed | Returned | Request | Stop | Cleaned | CleanUpFailed | Suspend
    | Superseded | Stopped | Released | ReleaseFailed
)  # fmt: skip


# -- outputs ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class Acquire:
    """Call: acquire in one transaction. `expected` is the entry that `force`, `elect` and `resume` compare."""

    mode: Mode
    expected: int


@attrs.frozen
class Report:
    """Tell whoever asked, and the callbacks: leading is *elected*, lost is *lost*. Its own errors change nothing."""

    outcome: Outcome
    shown: int = 0
    error: str = ""


Signal = Literal[
    "defer", "register", "unregister", "start_watchers", "stop_watchers", "refresh", "look", "on_acquired",
    "start_polling", "stop_polling", "clean_up", "release", "transmit",
]  # fmt: skip
"""Outputs without fields. `defer`: offer `AutoRun` in a turn of its own. `refresh`, `look`: do it now."""

Output = Acquire | Report | Signal
