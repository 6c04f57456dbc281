"""What is told of an update at the leader, remembered and done: the vocabulary of `tenure.machines.forwarding`."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import attrs

Failure = Literal[
    "transport-failed",
    "acknowledgement-missing",
    "acknowledgement-mismatched",
    "acknowledgement-rejected",
    "durable-receipt-missing",
    "durable-receipt-mismatched",
    "recipient-generation-missing",
    "recipient-binding-missing",
    "source-update-identity-missing",
    "forwarder-unavailable",
    "not-carriable",
]
"""Why an update was not delivered (bus.md c; `not-carriable` is ours). Each of them is tried again; those in `TERMINAL`
look as if that would not help, and are told apart for whoever looks."""
UNSERVED: Final[Failure] = "recipient-generation-missing"
"""Nobody is registered for the binding now."""
RETRYABLE: Final[frozenset[Failure]] = frozenset(
    {"transport-failed", "acknowledgement-missing", "acknowledgement-rejected", "recipient-generation-missing"}
)
TERMINAL: Final[frozenset[Failure]] = frozenset(
    {
        "acknowledgement-mismatched",
        "durable-receipt-missing",
        "durable-receipt-mismatched",
        "recipient-binding-missing",
        "source-update-identity-missing",
        "forwarder-unavailable",
        "not-carriable",
    }
)
NOT_SENT: Final[Failure] = "transport-failed"
"""It has certainly reached nobody, whatever it is: an attempt that says nothing of the update."""
NOT_CARRIABLE: Final[Failure] = "not-carriable"
"""No line of the bus can hold it. It is not sent; it can be delivered only to a binding of the leader itself."""


@attrs.frozen(cache_hash=True)
class Update:
    """The row of an update besides its phase. `kind`: that of the envelope in which it is forwarded."""

    update: int
    kind: str
    binding: str | None = None
    """Whom it is bound to, from the first attempt on (annex D)."""
    attempts: int = 0
    """How often it was sent, or may have been."""
    failure: Failure | None = None
    """Why it waits."""


# -- messages ---------------------------------------------------------------------------------------------------------
#
# `epoch` is that of the leader that acts, `fence` the highest one that has raised the fence, read in this transaction.


@attrs.frozen
class Admit:
    """Telegram has answered it. `offset`: the highest update id that the journal has passed."""

    event: ClassVar[str] = "admit"
    epoch: int
    fence: int
    offset: int


@attrs.frozen
class Skip:
    """Telegram has answered it, and it was there before the first start."""

    event: ClassVar[str] = "skip"
    epoch: int
    fence: int
    offset: int


@attrs.frozen
class Forward:
    """It is for `binding`, for which an instance is registered."""

    event: ClassVar[str] = "forward"
    epoch: int
    fence: int
    binding: str


@attrs.frozen
class Keep:
    """It is for `binding`, which is the leader's own."""

    event: ClassVar[str] = "keep"
    epoch: int
    fence: int
    binding: str


@attrs.frozen
class Unserved:
    """Nobody is registered for whom it is for, or nobody knows for whom it is."""

    event: ClassVar[str] = "unserved"
    epoch: int
    fence: int
    why: Failure = UNSERVED


@attrs.frozen
class Acknowledged:
    """The request of the attempt was answered. `delivery` and `update` are those of the receipt, None where it has
    none."""

    event: ClassVar[str] = "acknowledged"
    epoch: int
    fence: int
    ok: bool
    delivery: str | None = None
    update: int | None = None


@attrs.frozen
class Failed:
    """The request of the attempt was not answered, or by something that is no answer to it."""

    event: ClassVar[str] = "failed"
    epoch: int
    fence: int
    why: Failure


@attrs.frozen
class Retry:
    """The time has come, or a person wants it now."""

    event: ClassVar[str] = "retry"


@attrs.frozen
class Resume:
    """This leader makes no attempt of it now: who was sending it leads no more, or gave it up."""

    event: ClassVar[str] = "resume"
    epoch: int
    fence: int


@attrs.frozen
class Release:
    """It is wanted elsewhere than where it is bound. `gone`: by evidence, or since a person says so, nobody will serve
    that binding again. `admitted`: its delivery to that binding is in the journal."""

    event: ClassVar[str] = "release"
    gone: bool
    admitted: bool


@attrs.frozen
class Discard:
    """A person does not want it executed. `admitted` as in `Release`; what was admitted is discarded as a receipt."""

    event: ClassVar[str] = "discard"
    admitted: bool


@attrs.frozen
class Forget:
    """The row is trimmed, by number or age."""

    event: ClassVar[str] = "forget"


Happening = (
    Admit | Skip | Forward | Keep | Unserved | Acknowledged | Failed | Retry | Resume | Release | Discard | Forget
)


# -- outputs ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class Send:
    """Send it to whoever is registered for `binding`, as `delivery`, and tell `Acknowledged` or `Failed`."""

    binding: str
    delivery: str


@attrs.frozen
class Deliver:
    """Tell the delivery's own machine, in this transaction, that `binding` admits it; if that refuses, nothing is
    done."""

    binding: str
    delivery: str


@attrs.frozen
class RetryIn:
    """Tell `Retry` after so many milliseconds. `aside`: those behind it do not wait for that."""

    delay_ms: int
    aside: bool = False


Output = Send | Deliver | RetryIn
