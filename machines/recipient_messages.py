"""What a recipient is told, remembers and answers: the vocabulary of `tenure.machines.recipient` (bus.md e)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from tenure.machines.receipt_messages import Handoff, Holder, Party


@attrs.frozen(cache_hash=True)
class Place:
    """Where one item may come to. `me`: who may accept it; `handoff`, `donor`: what was offered, and by whom; `holder`:
    who I am in the row, once it is mine."""

    me: Party
    handoff: Handoff | None = None
    donor: Holder | None = None
    holder: Holder | None = None


# -- messages ---------------------------------------------------------------------------------------------------------


@attrs.frozen(cache_hash=True)
class Arrived:
    """An offer has arrived. `current`: it names my registration as it is now; `able`: a worker of mine is there that
    has the authority to execute it, out of the journal that it names."""

    event: ClassVar[str] = "arrived"
    handoff: Handoff
    donor: Holder
    current: bool
    able: bool


@attrs.frozen(cache_hash=True)
class AcceptedInJournal:
    """The row says that it is mine, since now or since before: `holder` is who I am in it."""

    event: ClassVar[str] = "accepted_in_journal"
    holder: Holder


@attrs.frozen(cache_hash=True)
class AcceptRefused:
    """The row has refused that I accept."""

    event: ClassVar[str] = "accept_refused"


@attrs.frozen(cache_hash=True)
class JournalFailed:
    """What was asked of the journal has failed, and nobody knows whether it was done."""

    event: ClassVar[str] = "journal_failed"


@attrs.frozen(cache_hash=True)
class Published:
    """The item is in the queue here, and may be begun."""

    event: ClassVar[str] = "published"


@attrs.frozen(cache_hash=True)
class CheckFailed:
    """The item cannot be taken into the queue here, although it was accepted."""

    event: ClassVar[str] = "check_failed"


@attrs.frozen(cache_hash=True)
class Released:
    """The journal has taken it back, or has refused to, since it is no longer mine."""

    event: ClassVar[str] = "released"


@attrs.frozen(cache_hash=True)
class Held:
    """The item is in the queue here: this process has taken it, or found it to be its own."""

    event: ClassVar[str] = "held"
    holder: Holder


@attrs.frozen(cache_hash=True)
class Left:
    """The item is no longer here: executed, moved on, given back, or another's."""

    event: ClassVar[str] = "left"


Happening = (
    Arrived
    | AcceptedInJournal
    | AcceptRefused
    | JournalFailed
    | Published
    | CheckFailed
    | Released
    | Held
    | Left
)  # fmt: skip

# -- outputs ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class AcceptInJournal:
    """Tell the row `Accept`, and then `AcceptedInJournal` (also where it is the same), `AcceptRefused` or
    `JournalFailed`."""

    handoff: Handoff
    donor: Holder


@attrs.frozen
class Publish:
    """Take the item into the queue, and tell `Published` or `CheckFailed`."""

    holder: Holder


@attrs.frozen
class Confirm:
    """Answer that it is mine: `holder`, with the handoff by which it has come."""

    holder: Holder


@attrs.frozen
class Deny:
    """Answer that it is not taken."""


@attrs.frozen
class ReleaseInJournal:
    """Tell the row `Release`, and then `Released` (also where it refuses) or `JournalFailed`."""

    holder: Holder


Output = AcceptInJournal | Publish | Confirm | Deny | ReleaseInJournal
