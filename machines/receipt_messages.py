"""What a receipt in the journal is told, remembers and answers: the vocabulary of `tenure.machines.receipt` (bus.md d,
e).

Identities are compared for equality alone; an adapter's are texts, a model numbers them.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

Acquisition = int | str
"""One acquisition of one receipt: minted fresh whenever it is taken or accepted, and never used again."""
Handoff = int | str
"""One offer: "handoff-" and a hash over token, receipt, the donor's acquisition and the recipient (bus.md e)."""

Evidence = Literal["alive", "dead", "unknown"]
"""What is known of an owner's process. unknown: there is no stable proof of its birth; it is not dead."""
Right = Literal["serves", "left", "none"]
"""By which right pending work is taken. serves: the instance serves the receipt's binding now. left: the leader, under
its fence, takes what is pending of a binding whose last server has left it, or is proven dead, and that nobody has
served for a grace.
none: neither; then only the recipient of an offer that fell with its donor may take it."""


@attrs.frozen(cache_hash=True)
class Party:
    """Who asks: one activation (`instance`) of one process (its pid and birth as one text), in one session. The session
    is written down and never compared."""

    instance: str
    process: str
    session: int = 0


@attrs.frozen(cache_hash=True)
class Holder:
    """Who owns a receipt: who it is, by which acquisition, and by which handoff that came (None: it was taken)."""

    instance: str
    process: str
    session: int
    acquisition: Acquisition
    handoff: Handoff | None = None


@attrs.frozen(cache_hash=True)
class Offer:
    """An offer: its id, and the one recipient that may accept it."""

    handoff: Handoff
    instance: str
    process: str


@attrs.frozen(cache_hash=True)
class Receipt:
    """The row besides its state. `limit`: at how many attempts that failed nobody tries again by himself. `fallen`: the
    offer that fell with its donor when the work was recovered; whoever was named in it may take the work."""

    limit: int
    owner: Holder | None = None
    offer: Offer | None = None
    fallen: Offer | None = None
    attempts: int = 0


# -- messages ---------------------------------------------------------------------------------------------------------


@attrs.frozen(cache_hash=True)
class Take:
    """`by` takes pending work under an `acquisition` that was never used. Again by the activation that has it: the same
    answer, with the offer that is open."""

    event: ClassVar[str] = "take"
    by: Party
    acquisition: Acquisition
    right: Right


@attrs.frozen(cache_hash=True)
class OfferTo:
    """Its owner offers it to `recipient`. The same offer again: the same answer."""

    event: ClassVar[str] = "offer_to"
    by: Holder
    handoff: Handoff
    recipient: Party


@attrs.frozen(cache_hash=True)
class Accept:
    """`recipient` accepts what `donor` has offered it as `handoff`, and owns it from then on under an `acquisition`
    that was never used. Again by the same process: the same answer. `donor` is who sent it, as the offer's message
    says, with the handoff by which it has come to him (L6)."""

    event: ClassVar[str] = "accept"
    recipient: Party
    handoff: Handoff
    donor: Holder
    acquisition: Acquisition


@attrs.frozen(cache_hash=True)
class Cancel:
    """Its owner withdraws the offer."""

    event: ClassVar[str] = "cancel"
    by: Holder
    handoff: Handoff


@attrs.frozen(cache_hash=True)
class Start:
    """Its owner is about to execute it: nothing has happened yet."""

    event: ClassVar[str] = "start"
    by: Holder


@attrs.frozen(cache_hash=True)
class Complete:
    """Its owner has executed it."""

    event: ClassVar[str] = "complete"
    by: Holder


@attrs.frozen(cache_hash=True)
class Fail:
    """Its owner has tried, and certainly nothing has come of it. A failure that is not certain is no `Fail`."""

    event: ClassVar[str] = "fail"
    by: Holder


@attrs.frozen(cache_hash=True)
class Doubt:
    """Its owner has begun it, and does not know what has come of it."""

    event: ClassVar[str] = "doubt"
    by: Holder


@attrs.frozen(cache_hash=True)
class Release:
    """Its owner gives it back, and has certainly not begun: its session ends, or its own check failed after it had
    accepted. That the row says started (who asked for it was not told) is no bar."""

    event: ClassVar[str] = "release"
    by: Holder


@attrs.frozen(cache_hash=True)
class Recover:
    """Somebody thinks that the owner with the acquisition `expected` is dead. `evidence`: what is known of that owner's
    process, looked up inside this very transaction."""

    event: ClassVar[str] = "recover"
    expected: Acquisition
    evidence: Evidence


@attrs.frozen(cache_hash=True)
class Reclaim:
    """The activation `instance` of `process` has begun, and every earlier one of that process is over."""

    event: ClassVar[str] = "reclaim"
    process: str
    instance: str


@attrs.frozen(cache_hash=True)
class Retry:
    """It is to be done again. `person`: who wants it so; empty if nobody does."""

    event: ClassVar[str] = "retry"
    person: str


@attrs.frozen(cache_hash=True)
class Discard:
    """It is not to be done any more. `person`: who wants it so; empty if nobody does."""

    event: ClassVar[str] = "discard"
    person: str


Happening = (
    Take
    | OfferTo
    | Accept
    | Cancel
    | Start
    | Complete
    | Fail
    | Doubt
    | Release
    | Recover
    | Reclaim
    | Retry
    | Discard
)  # fmt: skip

# -- outputs: what was decided ----------------------------------------------------------------------------------------

Cause = Literal["failed", "released", "doubted", "dead", "over", "retried"]
"""Why work is pending again or interrupted. failed, released, doubted: its owner said so. dead: its owner's process is.
over: its owner's activation is. retried: a person wants it so."""


@attrs.frozen
class Taken:
    """It has been taken: `holder` owns it."""

    holder: Holder


@attrs.frozen
class Offered:
    """It is offered: frozen until the offer is accepted, withdrawn, or falls."""

    offer: Offer


@attrs.frozen
class Accepted:
    """It has changed hands: `holder` owns it now, and `donor` no longer."""

    holder: Holder
    donor: Holder


@attrs.frozen
class Same:
    """A repetition: this is what was decided before, and nothing has changed. `offer`: the one that is open."""

    holder: Holder
    offer: Offer | None = None


@attrs.frozen
class Cancelled:
    """The offer is withdrawn: `holder` may execute it."""

    holder: Holder


@attrs.frozen
class Started:
    """That it has begun is written down: execute it. This is attempt number `attempt`, from 1."""

    holder: Holder
    attempt: int


@attrs.frozen
class Completed:
    """It is done."""

    holder: Holder


@attrs.frozen
class Freed:
    """It is pending again: anybody with a right may take it. `was`: who owned it; `fallen`: the offer that fell."""

    cause: Cause
    was: Holder | None = None
    fallen: Offer | None = None


@attrs.frozen
class Interrupted:
    """It had begun, and nobody knows what has come of it: only a person repeats it."""

    cause: Cause
    was: Holder


@attrs.frozen
class GivenUp:
    """It has failed as often as it may: only a person repeats it."""

    was: Holder
    attempts: int


@attrs.frozen
class Discarded:
    """A person does not want it any more."""

    person: str


Output = (
    Taken
    | Offered
    | Accepted
    | Same
    | Cancelled
    | Started
    | Completed
    | Freed
    | Interrupted
    | GivenUp
    | Discarded
)  # fmt: skip
