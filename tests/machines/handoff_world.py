"""One row, its two ends, and what goes between them, for the failure matrix of a handoff: machines alone."""

from __future__ import annotations

import attrs

from tenure.machines import donor_messages as give
from tenure.machines import recipient_messages as take
from tenure.machines.chart import Refused, Step, Table, step
from tenure.machines.donor import DONOR
from tenure.machines.receipt import RECEIPT
from tenure.machines.receipt_messages import (
    Accept,
    Accepted,
    Cancel,
    Complete,
    Happening,
    Holder,
    OfferTo,
    Output,
    Party,
    Receipt,
    Same,
    Start,
    Take,
    Taken,
)
from tenure.machines.recipient import RECIPIENT
from tenure.machines.relay import PassOn

D, R, C = (Party(f"{name}:1", f"process {name}", 1) for name in "drc")
ITEM, SOURCES = "item", (7,)
FITS = PassOn(True, True, True, False, True, 1_000)


def done(answer: Step | Refused) -> Step:  # type: ignore[type-arg]
    """The step, where it was one."""
    assert isinstance(answer, Step), answer
    return answer


@attrs.define
class Journal:
    """One row, and the acquisitions that were minted for it."""

    phase: str = RECEIPT.initial
    data: Receipt = attrs.field(factory=lambda: Receipt(3))
    minted: int = 0

    def tell(self, message: Happening) -> Output | Refused:
        """One transaction."""
        answer = step(RECEIPT, self.phase, self.data, message)
        if isinstance(answer, Refused):
            return answer
        self.phase, self.data = answer.phase, answer.data
        (output,) = answer.outputs
        return output

    def fresh(self) -> str:
        self.minted += 1
        return f"acquisition {self.minted}"

    @property
    def owner(self) -> Holder | None:
        return self.data.owner

    def look(self) -> give.Looked:
        return give.Looked(self.phase, self.data.owner, self.data.offer)


@attrs.define
class Here:
    """What one process has of the item in its memory: a donor's machine, or a recipient's; and what that asks for."""

    me: Party
    journal: Journal
    phase: str = "none"
    data: give.Item | take.Place | None = None
    outputs: tuple[object, ...] = ()

    @property
    def machine(self) -> Table:  # type: ignore[type-arg]
        return DONOR if isinstance(self.data, give.Item) else RECIPIENT

    def tell(self, message: give.Happening | take.Happening) -> tuple[object, ...]:
        """It must be taken."""
        answer = done(step(self.machine, self.phase, self.data, message))
        self.phase, self.data, self.outputs = answer.phase, answer.data, answer.outputs
        return self.outputs

    def refuses(self, message: give.Happening | take.Happening) -> tuple[str, ...]:
        """It must not."""
        answer = step(self.machine, self.phase, self.data, message)
        assert isinstance(answer, Refused), answer
        return answer.guards

    # -- a donor ------------------------------------------------------------------------------------------------------

    def hold(self, holder: Holder) -> Here:
        self.phase, self.data = DONOR.initial, give.Item(ITEM, holder, SOURCES)
        return self

    @property
    def holder(self) -> Holder:
        assert isinstance(self.data, give.Item)
        return self.data.holder

    def offer(self, handoff: str, to: Party) -> give.SendOffer:
        """Decide, write it down; what is sent then."""
        (asked,) = self.tell(give.Move(handoff, to))
        assert isinstance(asked, give.OfferInJournal)
        assert not isinstance(self.journal.tell(OfferTo(asked.holder, asked.handoff, asked.recipient)), Refused)
        (sent,) = self.tell(give.Offered())
        assert isinstance(sent, give.SendOffer)
        return sent

    def answered(self, holder: Holder | None) -> tuple[object, ...]:
        return self.tell(give.Acked(ITEM, holder, SOURCES))

    def withdraw(self) -> tuple[object, ...]:
        """Do as it asks: withdraw the offer, and look where that is refused."""
        (asked,) = self.outputs
        assert isinstance(asked, give.CancelInJournal), asked
        answer = self.journal.tell(Cancel(asked.holder, asked.handoff))
        if not isinstance(answer, Refused):
            return self.tell(give.Cancelled())
        assert self.tell(give.CancelRefused()) == (give.LookUp(),)
        return self.tell(self.journal.look())

    # -- a recipient --------------------------------------------------------------------------------------------------

    def stage(self, sent: give.SendOffer) -> None:
        self.phase, self.data = RECIPIENT.initial, take.Place(self.me)
        self.tell(take.Arrived(sent.handoff, sent.holder, current=True, able=True))

    def accept(self) -> Output | Refused:
        """The transaction, and what it says."""
        assert isinstance(self.data, take.Place)
        handoff, donor = self.data.handoff, self.data.donor
        assert handoff is not None
        assert donor is not None
        answer = self.journal.tell(Accept(self.me, handoff, donor, self.journal.fresh()))
        if isinstance(answer, Refused):
            assert self.tell(take.AcceptRefused()) == (take.Deny(),)
        else:
            assert isinstance(answer, Accepted | Same)
            self.tell(take.AcceptedInJournal(answer.holder))
        return answer

    def publish(self) -> Holder:
        """Into the queue; what it answers."""
        (said,) = self.tell(take.Published())
        assert isinstance(said, take.Confirm)
        return said.holder


@attrs.define
class World:
    """A row that the donor has taken; what it has offered to the recipient as "h"."""

    journal: Journal = attrs.field(factory=Journal)
    d: Here = attrs.field(init=False)
    r: Here = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        taken = self.journal.tell(Take(D, self.journal.fresh(), "serves"))
        assert isinstance(taken, Taken)
        self.d, self.r = Here(D, self.journal).hold(taken.holder), Here(R, self.journal)

    def moved(self, handoff: str = "h") -> Holder:
        """From donor to recipient, and nothing goes wrong."""
        self.r.stage(self.d.offer(handoff, R))
        self.r.accept()
        holder = self.r.publish()
        assert self.d.answered(holder) == (give.Drop(),)
        return holder

    def executes(self, here: Here) -> bool:
        """Whether this one can begin the item, and ends it."""
        holder = here.holder if isinstance(here.data, give.Item) else self.journal.owner
        assert holder is not None
        if isinstance(self.journal.tell(Start(holder)), Refused):
            return False
        return not isinstance(self.journal.tell(Complete(holder)), Refused)
