"""One item in the memory of the process that owns it: how it is offered, and when its copy is dropped (bus.md e).

The donor's half of `spec/QueueHandoff.tla`. What is in memory is a copy; who may execute is what the row in the journal
says (`tenure.machines.receipt`). So the row comes first: it is offered, and then the recipient hears of it; when the
answer is not exactly that the recipient owns it, the offer is withdrawn; and when that is refused, the row is looked up
until it can be read. What it says holds: mine, and perhaps offered; mine and begun; or not mine.

* An output that asks for something is answered once, by one of the messages that it names.
* `JournalFailed` means that nobody knows: the same is asked again, and the row answers as before.
* What arrives after it was waited for is refused here, and changes nothing.
"""

from __future__ import annotations

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.donor_messages import (
    Acked,
    Begin,
    CancelInJournal,
    Cancelled,
    CancelRefused,
    Drop,
    EndSession,
    Happening,
    Item,
    JournalFailed,
    Keep,
    Looked,
    LookUp,
    Move,
    NoAnswer,
    Offered,
    OfferInJournal,
    OfferRefused,
    Output,
    Released,
    ReleaseInJournal,
    SendOffer,
    StartRefused,
)
from tenure.machines.laws import Law, guard, permit
from tenure.machines.receipt_messages import Handoff, Party

Effect = tuple[Item, tuple[Output, ...]]


class DonorChart(StateMachine):
    """One copy: held, being offered, waiting for an answer, withdrawing, looking at the row, giving it back, gone."""

    holding = State(initial=True)
    offering = State()
    awaiting = State()
    cancelling = State()
    looking = State()
    releasing = State()
    gone = State(final=True)

    move = holding.to(offering, cond=["leader_can_carry"], on="offer_it")
    offered = offering.to(awaiting, on="send_offer")
    offer_refused = offering.to(looking, on="look_up")
    acked = awaiting.to(gone, cond=["ack_is_exact"], on="drop") | awaiting.to(cancelling, on="withdraw")
    no_answer = awaiting.to(cancelling, on="withdraw")
    cancelled = cancelling.to(holding, on="keep")
    cancel_refused = cancelling.to(looking, cond=["refused_cancel_looks"], on="look_up")
    start_refused = holding.to(looking, on="look_up")
    begun = gone.from_(holding, offering, cancelling, looking)
    looked = (
        looking.to(gone, cond=["row_is_mine", "row_says_begun"], on="begin")
        | looking.to(holding, cond=["row_is_mine", "row_says_unoffered"], on="keep")
        | looking.to(cancelling, cond=["row_is_mine"], on="withdraw_that")
        | looking.to(gone, on="drop")
    )
    end_session = releasing.from_(holding, offering, awaiting, cancelling, looking, on="give_back")
    released = releasing.to(gone, on="drop")
    journal_failed = (
        offering.to(offering, on="offer_again")
        | cancelling.to(cancelling, on="withdraw")
        | looking.to(looking, on="look_up")
        | releasing.to(releasing, on="give_back")
    )

    # -- guards -------------------------------------------------------------------------------------------------------

    @staticmethod
    @guard(Law.FENCE)
    def leader_can_carry(data: Item, message: Move) -> bool:
        """Fence: by which handoff its donor has an item is part of what the recipient compares. Without it an item that
        has come by a handoff goes through a leader that drops this, and its offer is declined every time (L6)."""
        return message.leader_carries or data.holder.handoff is None

    @staticmethod
    @guard(Law.PROOF)
    def ack_is_exact(data: Item, message: Acked) -> bool:
        """Proof: that the recipient owns it says who names the item, himself, and the donor's own handoff. Without it a
        donor forgets an item that nobody has accepted (I30, I26)."""
        owner, to = message.owner, data.recipient
        if owner is None or to is None or (message.receipt, message.sources) != (data.receipt, data.sources):
            return False
        return (owner.instance, owner.process, owner.handoff) == (to.instance, to.process, data.handoff)

    @staticmethod
    @permit(Law.UNKNOWN)
    def refused_cancel_looks(data: Item, message: CancelRefused) -> bool:
        """Unknown: an offer that cannot be withdrawn may have been accepted, and the row says so. Without it the copy
        stays for ever, and holds up everything behind it (V9, L4, F5)."""
        return True

    @staticmethod
    @guard(Law.PROOF)
    def row_is_mine(data: Item, message: Looked) -> bool:
        """Proof: mine is what the row says is mine, by my acquisition. Without it a donor keeps what another owns, and
        tries for ever to begin it (V9, M25c)."""
        owner, me = message.owner, data.holder
        if owner is None or owner.acquisition != me.acquisition:
            return False
        return (owner.instance, owner.process) == (me.instance, me.process)

    @staticmethod
    @guard(Law.DURABLE_FIRST)
    def row_says_begun(data: Item, message: Looked) -> bool:
        """Durable first: begun is what the row says has begun. Without it an item is executed of which the journal says
        that it is waiting (I25)."""
        return message.phase == "started"

    @staticmethod
    @guard(Law.FENCE)
    def row_says_unoffered(data: Item, message: Looked) -> bool:
        """Fence: what is offered may not begin, whoever has offered it. Without it an offer of which only the row knows
        is never withdrawn, and its item waits for ever (V8, V10)."""
        return message.offer is None

    # -- effects ------------------------------------------------------------------------------------------------------

    @staticmethod
    def offer_it(data: Item, message: Move) -> Effect:
        now = attrs.evolve(data, handoff=message.handoff, recipient=message.recipient)
        return now, (OfferInJournal(now.holder, message.handoff, message.recipient),)

    @staticmethod
    def offer_again(data: Item, message: JournalFailed) -> Effect:
        return data, (OfferInJournal(data.holder, *_offer(data)),)

    @staticmethod
    def send_offer(data: Item, message: Offered) -> Effect:
        return data, (SendOffer(data.holder, *_offer(data)),)

    @staticmethod
    def withdraw(data: Item, message: Acked | NoAnswer | JournalFailed) -> Effect:
        assert data.handoff is not None, "what is withdrawn was offered"
        return data, (CancelInJournal(data.holder, data.handoff),)

    @staticmethod
    def withdraw_that(data: Item, message: Looked) -> Effect:
        # The row's offer may be one that this worker made before it forgot everything.
        assert message.offer is not None, "the row is offered"
        now = attrs.evolve(data, handoff=message.offer.handoff, recipient=None)
        return now, (CancelInJournal(now.holder, message.offer.handoff),)

    @staticmethod
    def keep(data: Item, message: Cancelled | Looked) -> Effect:
        return attrs.evolve(data, handoff=None, recipient=None), (Keep(),)

    @staticmethod
    def look_up(data: Item, message: OfferRefused | CancelRefused | StartRefused | JournalFailed) -> Effect:
        return data, (LookUp(),)

    @staticmethod
    def begin(data: Item, message: Looked) -> Effect:
        return data, (Begin(),)

    @staticmethod
    def give_back(data: Item, message: EndSession | JournalFailed) -> Effect:
        return data, (ReleaseInJournal(data.holder),)

    @staticmethod
    def drop(data: Item, message: Acked | Looked | Released) -> Effect:
        return data, (Drop(),)


def _offer(data: Item) -> tuple[Handoff, Party]:
    assert data.handoff is not None, "something is offered"
    assert data.recipient is not None, "to somebody"
    return data.handoff, data.recipient


DONOR: Table[Item, Happening, Output] = compile_chart(DonorChart)
