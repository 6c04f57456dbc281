"""What a donor is told, remembers and answers: the vocabulary of `tenure.machines.donor` (bus.md e)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from tenure.machines.receipt_messages import Handoff, Holder, Offer, Party


@attrs.frozen(cache_hash=True)
class Item:
    """A copy of a queued item in the memory of the process that took or accepted it. `receipt`, `sources`: what it is
    the right to execute; `holder`: who I am in the row, by which acquisition; `handoff`, `recipient`: the offer that is
    being made or withdrawn."""

    receipt: str
    holder: Holder
    sources: tuple[int, ...] = ()
    handoff: Handoff | None = None
    recipient: Party | None = None


# -- messages ---------------------------------------------------------------------------------------------------------


@attrs.frozen(cache_hash=True)
class Move:
    """It is wanted elsewhere: offer it to `recipient` as `handoff`, an id that was never used. `leader_carries`: the
    leader between passes on by which handoff an item has come (queue-handoff-v2)."""

    event: ClassVar[str] = "move"
    handoff: Handoff
    recipient: Party
    leader_carries: bool = True


@attrs.frozen(cache_hash=True)
class Offered:
    """The journal has the offer, since now or since before."""

    event: ClassVar[str] = "offered"


@attrs.frozen(cache_hash=True)
class OfferRefused:
    """The journal has refused the offer."""

    event: ClassVar[str] = "offer_refused"


@attrs.frozen(cache_hash=True)
class Acked:
    """The offer was answered. `owner`: who owns the item now, as the answer says; None where it says no, or nothing
    that can be read."""

    event: ClassVar[str] = "acked"
    receipt: str
    owner: Holder | None
    sources: tuple[int, ...] = ()


@attrs.frozen(cache_hash=True)
class NoAnswer:
    """The time for an answer is over, or the call has failed."""

    event: ClassVar[str] = "no_answer"


@attrs.frozen(cache_hash=True)
class Cancelled:
    """The journal has withdrawn the offer."""

    event: ClassVar[str] = "cancelled"


@attrs.frozen(cache_hash=True)
class CancelRefused:
    """The journal has refused to withdraw the offer."""

    event: ClassVar[str] = "cancel_refused"


@attrs.frozen(cache_hash=True)
class JournalFailed:
    """What was asked of the journal has failed, and nobody knows whether it was done."""

    event: ClassVar[str] = "journal_failed"


@attrs.frozen(cache_hash=True)
class Begun:
    """The journal has written down that it begins: it is being executed, and no longer in the queue."""

    event: ClassVar[str] = "begun"


@attrs.frozen(cache_hash=True)
class StartRefused:
    """The journal has refused that it begins."""

    event: ClassVar[str] = "start_refused"


@attrs.frozen(cache_hash=True)
class Looked:
    """The row as it is now: its phase, owner and open offer. A row that is not there has none of them."""

    event: ClassVar[str] = "looked"
    phase: str
    owner: Holder | None
    offer: Offer | None


@attrs.frozen(cache_hash=True)
class EndSession:
    """The session ends: what has not begun is given back."""

    event: ClassVar[str] = "end_session"


@attrs.frozen(cache_hash=True)
class Released:
    """The journal has taken it back, or has refused to, since it is no longer mine."""

    event: ClassVar[str] = "released"


Happening = (
    Move
    | Offered
    | OfferRefused
    | Acked
    | NoAnswer
    | Cancelled
    | CancelRefused
    | JournalFailed
    | Begun
    | StartRefused
    | Looked
    | EndSession
    | Released
)

# -- outputs ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class OfferInJournal:
    """Tell the row `OfferTo`, and then `Offered` (also where it is the same), `OfferRefused` or `JournalFailed`."""

    holder: Holder
    handoff: Handoff
    recipient: Party


@attrs.frozen
class SendOffer:
    """Send it to the recipient, through the leader, and tell `Acked` or `NoAnswer`."""

    holder: Holder
    handoff: Handoff
    recipient: Party


@attrs.frozen
class CancelInJournal:
    """Tell the row `Cancel`, and then `Cancelled`, `CancelRefused` or `JournalFailed`."""

    holder: Holder
    handoff: Handoff


@attrs.frozen
class LookUp:
    """Read the row, and tell `Looked` or `JournalFailed`."""


@attrs.frozen
class ReleaseInJournal:
    """Tell the row `Release`, and then `Released` (also where it refuses) or `JournalFailed`."""

    holder: Holder


@attrs.frozen
class Keep:
    """It is in the queue again, and may be begun."""


@attrs.frozen
class Begin:
    """The row says that it has begun, and here it has not (who asked was not told): execute it, as if the row had just
    allowed it."""


@attrs.frozen
class Drop:
    """It is no longer mine: forget this copy, and do nothing with it."""


Output = OfferInJournal | SendOffer | CancelInJournal | LookUp | ReleaseInJournal | Keep | Begin | Drop
