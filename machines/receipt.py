"""One receipt in the journal: who may execute a queued item, and how that right moves (bus.md d, e; I21-I29).

The journal's half of `spec/QueueHandoff.tla`; `tenure.machines.donor` and `tenure.machines.recipient` are the two ends
of a handoff, `tenure.machines.relay` is the leader between them. A message is one transaction: the row is read, the
machine decides, the row is written, or nothing is. So whatever the memory of a process says, the row's owner is the
only one who may begin.

* An *offer* freezes the row: nobody starts it, and the first transaction decides, the recipient's `Accept` or the
  donor's `Cancel`.
* `Start` comes before the effect. Whoever dies after it leaves an item that is *interrupted*: nobody knows what came of
  it, and nobody but a person repeats it.
* The row changes hands without its owner in two ways: its process is proven dead (`Recover`), or its activation is over
  and the next one of the same process says so (`Reclaim`). Silence proves nothing.
* The same message again gets the answer that it got (`Same`); a `Refused` is an ordinary answer and changes nothing.
"""

from __future__ import annotations

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.laws import Law, guard, permit
from tenure.machines.receipt_messages import (
    Accept,
    Accepted,
    Cancel,
    Cancelled,
    Cause,
    Complete,
    Completed,
    Discard,
    Discarded,
    Doubt,
    Fail,
    Freed,
    GivenUp,
    Happening,
    Holder,
    Interrupted,
    Offer,
    Offered,
    OfferTo,
    Output,
    Receipt,
    Reclaim,
    Recover,
    Release,
    Retry,
    Same,
    Start,
    Started,
    Take,
    Taken,
)

Effect = tuple[Receipt, tuple[Output, ...]]
ByOwner = OfferTo | Cancel | Start | Complete | Fail | Doubt | Release


class ReceiptChart(StateMachine):
    """One row. An offer is part of queued: the owner stays the owner until somebody else has accepted."""

    pending = State(initial=True)
    queued = State()
    started = State()
    interrupted = State()
    failed = State()
    done = State(final=True)
    discarded = State(final=True)

    take = pending.to(queued, cond=["may_take"], on="take_it") | queued.to(
        queued, cond=["taker_has_it"], on="say_whose"
    )
    offer_to = queued.to(
        queued, cond=["process_owns", "acquisition_is_current", "to_another_process", "one_offer"], on="freeze"
    ) | queued.to(queued, cond=["process_owns", "acquisition_is_current", "same_offer"], on="say_whose")
    accept = queued.to(queued, cond=["recipient_is_me", "donor_owns", "offer_is_that"], on="hand_over") | queued.to(
        queued, cond=["accepted_before"], on="say_whose"
    )
    cancel = queued.to(queued, cond=["process_owns", "acquisition_is_current", "offer_still_open"], on="thaw")
    start = queued.to(started, cond=["process_owns", "acquisition_is_current", "offered_is_frozen"], on="begin")
    complete = started.to(done, cond=["process_owns", "acquisition_is_current"], on="end")
    fail = started.to(
        pending, cond=["process_owns", "acquisition_is_current", "attempts_left"], on="try_again"
    ) | started.to(failed, cond=["process_owns", "acquisition_is_current"], on="give_up")
    doubt = started.to(interrupted, cond=["process_owns", "acquisition_is_current"], on="interrupt_of_doubt")
    release = pending.from_(queued, started, cond=["process_owns", "acquisition_is_current"], on="give_back")
    recover = (
        queued.to(pending, cond=["owner_is_expected", "owner_proven_dead", "offered_is_frozen"], on="free_of_dead")
        | queued.to(pending, cond=["owner_is_expected", "owner_proven_dead", "offer_of_the_dead_falls"], on="let_fall")
        | started.to(interrupted, cond=["owner_is_expected", "owner_proven_dead"], on="interrupt_of_dead")
    )
    reclaim = queued.to(pending, cond=["earlier_activation", "own_past_is_over"], on="free_of_past") | started.to(
        interrupted, cond=["earlier_activation", "own_past_is_over"], on="interrupt_of_past"
    )
    retry = pending.from_(interrupted, failed, cond=["a_person_asks"], on="start_over")
    discard = discarded.from_(pending, interrupted, failed, cond=["a_person_asks"], on="forget")

    # -- guards: taking, and what only the owner does -----------------------------------------------------------------

    @staticmethod
    @guard(Law.FENCE)
    def may_take(data: Receipt, message: Take) -> bool:
        """Fence: pending work is taken by who serves its binding, by who was named in the offer that fell with its
        donor, or by the leader when nobody is left. Without it work is done in another's thread (I17)."""
        fallen, by = data.fallen, message.by
        named = fallen is not None and (fallen.instance, fallen.process) == (by.instance, by.process)
        return message.right != "none" or named

    @staticmethod
    @guard(Law.FENCE)
    def taker_has_it(data: Receipt, message: Take) -> bool:
        """Fence: whoever asks again is told that he has it, and nobody else is. Without it two believe that they may
        begin it (I21, I25)."""
        owner, by = data.owner, message.by
        return owner is not None and (owner.instance, owner.process) == (by.instance, by.process)

    @staticmethod
    @guard(Law.FENCE)
    def process_owns(data: Receipt, message: ByOwner) -> bool:
        """Fence: a receipt belongs to one activation of a process, whatever its session. Without it a recipient that
        was only offered an item executes it under its donor's acquisition (I21, I25, M21a, M25b)."""
        owner, by = data.owner, message.by
        return owner is not None and (owner.instance, owner.process) == (by.instance, by.process)

    @staticmethod
    @guard(Law.FENCE)
    def acquisition_is_current(data: Receipt, message: ByOwner) -> bool:
        """Fence: what is done with a receipt names the acquisition under which that was decided. Without it a call of
        an execution that was given up settles the one that has begun since (I21, M21b)."""
        return data.owner is not None and data.owner.acquisition == message.by.acquisition

    @staticmethod
    @guard(Law.FENCE)
    def to_another_process(data: Receipt, message: OfferTo) -> bool:
        """Fence: one offers to another process; what tells a donor's copy from its recipient's is the process. Without
        it an item moves between two activations of one process, of which only one lives (F16)."""
        return message.recipient.process != message.by.process

    @staticmethod
    @guard(Law.FENCE)
    def one_offer(data: Receipt, message: OfferTo) -> bool:
        """Fence: one open offer at a time. Without it a second one takes the place of the first, whose recipient is
        about to accept (I28, F15)."""
        return data.offer is None

    @staticmethod
    @guard(Law.FENCE)
    def same_offer(data: Receipt, message: OfferTo) -> bool:
        """Fence: the same offer is the same id for the same recipient. Without it a donor sends an offer that nobody
        can accept, and waits for its answer (I28)."""
        return data.offer == Offer(message.handoff, message.recipient.instance, message.recipient.process)

    # -- guards: changing hands ---------------------------------------------------------------------------------------

    @staticmethod
    @guard(Law.FENCE)
    def offer_is_that(data: Receipt, message: Accept) -> bool:
        """Fence: accepted is the offer that is open, by its id. Without it a late message of an offer that was
        withdrawn takes the work from its owner (I27, F3, F4)."""
        return data.offer is not None and data.offer.handoff == message.handoff

    @staticmethod
    @guard(Law.FENCE)
    def recipient_is_me(data: Receipt, message: Accept) -> bool:
        """Fence: an offer is for one activation of one process. Without it somebody accepts what was offered to
        another (I27)."""
        offer, who = data.offer, message.recipient
        return offer is not None and (offer.instance, offer.process) == (who.instance, who.process)

    @staticmethod
    @guard(Law.FENCE)
    def donor_owns(data: Receipt, message: Accept) -> bool:
        """Fence: only its owner gives a receipt away, under the acquisition, and the handoff, by which he has it.
        Without it an offer is accepted whose donor has lost the work meanwhile (I27)."""
        owner, donor = data.owner, message.donor
        if owner is None or (owner.instance, owner.process) != (donor.instance, donor.process):
            return False
        return (owner.acquisition, owner.handoff) == (donor.acquisition, donor.handoff)

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def accepted_before(data: Receipt, message: Accept) -> bool:
        """Late is nothing: the same process that accepted the same offer is told the same owner again, and nobody else
        is. Without it a process is told that it owns what another has (I29)."""
        owner, who = data.owner, message.recipient
        if owner is None or owner.handoff is None:
            return False
        return (owner.handoff, owner.instance, owner.process) == (message.handoff, who.instance, who.process)

    @staticmethod
    @guard(Law.FENCE)
    def offer_still_open(data: Receipt, message: Cancel) -> bool:
        """Fence: withdrawn is the offer that is open. Without it a call that comes late thaws the offer that was made
        since, and its donor waits for an answer that nobody can give (I28, M26b)."""
        return data.offer is not None and data.offer.handoff == message.handoff

    @staticmethod
    @guard(Law.FENCE)
    def offered_is_frozen(data: Receipt, message: Start | Recover) -> bool:
        """Fence: what is offered may belong to another at the next moment. Without it the donor executes it while its
        recipient is about to accept it (I25, I28, M25a, F17)."""
        return data.offer is None

    @staticmethod
    @guard(Law.UNKNOWN)
    def attempts_left(data: Receipt, message: Fail) -> bool:
        """Unknown: why it fails nobody knows, and it may fail for ever. Without it a poisoned item is tried again
        without end (V5, B74)."""
        return data.attempts < data.limit

    # -- guards: when the owner is gone -------------------------------------------------------------------------------

    @staticmethod
    @guard(Law.FENCE)
    def owner_is_expected(data: Receipt, message: Recover) -> bool:
        """Fence: what was found out about one owner says nothing of the next. Without it somebody who comes late with
        the proof that the old owner is dead takes the work from the new one, who lives (I22, M22c)."""
        return data.owner is not None and data.owner.acquisition == message.expected

    @staticmethod
    @guard(Law.PROOF)
    def owner_proven_dead(data: Receipt, message: Recover) -> bool:
        """Proof: who is silent may be working. Without it work is executed twice (I22, M22a, M22b, B70)."""
        return message.evidence == "dead"

    @staticmethod
    @permit(Law.PROOF)
    def offer_of_the_dead_falls(data: Receipt, message: Recover) -> bool:
        """Proof: a donor that is dead withdraws nothing any more, so its open offer is no bar. Without it the work of a
        donor that died with an open offer waits for ever (V6, V8, L1, F7)."""
        return True

    @staticmethod
    @guard(Law.PROOF)
    def earlier_activation(data: Receipt, message: Reclaim) -> bool:
        """Proof: an activation speaks for earlier ones of its own process, and for nobody else. Without it one that
        begins takes the work of another process that lives (I22)."""
        owner = data.owner
        return owner is not None and owner.process == message.process and owner.instance != message.instance

    @staticmethod
    @permit(Law.PROOF)
    def own_past_is_over(data: Receipt, message: Reclaim) -> bool:
        """Proof: nobody has to die for it that an activation is over; its successor knows. Without it the work of a
        process that reloaded waits until that process dies (V7, L7)."""
        return True

    @staticmethod
    @guard(Law.UNKNOWN)
    def a_person_asks(data: Receipt, message: Retry | Discard) -> bool:
        """Unknown: what was interrupted may have happened. Without it it happens twice, or is forgotten, and nobody has
        decided that."""
        return message.person != ""

    # -- effects ------------------------------------------------------------------------------------------------------

    @staticmethod
    def take_it(data: Receipt, message: Take) -> Effect:
        by = message.by
        holder = Holder(by.instance, by.process, by.session, message.acquisition)
        return attrs.evolve(data, owner=holder, fallen=None), (Taken(holder),)

    @staticmethod
    def say_whose(data: Receipt, message: Take | OfferTo | Accept) -> Effect:
        return data, (Same(_owner(data), data.offer),)

    @staticmethod
    def freeze(data: Receipt, message: OfferTo) -> Effect:
        offer = Offer(message.handoff, message.recipient.instance, message.recipient.process)
        return attrs.evolve(data, offer=offer), (Offered(offer),)

    @staticmethod
    def hand_over(data: Receipt, message: Accept) -> Effect:
        who = message.recipient
        holder = Holder(who.instance, who.process, who.session, message.acquisition, message.handoff)
        return attrs.evolve(data, owner=holder, offer=None), (Accepted(holder, _owner(data)),)

    @staticmethod
    def thaw(data: Receipt, message: Cancel) -> Effect:
        return attrs.evolve(data, offer=None), (Cancelled(_owner(data)),)

    @staticmethod
    def begin(data: Receipt, message: Start) -> Effect:
        now = attrs.evolve(data, attempts=data.attempts + 1)
        return now, (Started(_owner(data), now.attempts),)

    @staticmethod
    def end(data: Receipt, message: Complete) -> Effect:
        return _unowned(data), (Completed(_owner(data)),)

    @staticmethod
    def try_again(data: Receipt, message: Fail) -> Effect:
        return _freed(data, "failed")

    @staticmethod
    def give_up(data: Receipt, message: Fail) -> Effect:
        return _unowned(data), (GivenUp(_owner(data), data.attempts),)

    @staticmethod
    def interrupt_of_doubt(data: Receipt, message: Doubt) -> Effect:
        return _unowned(data), (Interrupted("doubted", _owner(data)),)

    @staticmethod
    def give_back(data: Receipt, message: Release) -> Effect:
        return _freed(data, "released")

    @staticmethod
    def free_of_dead(data: Receipt, message: Recover) -> Effect:
        return _freed(data, "dead")

    @staticmethod
    def let_fall(data: Receipt, message: Recover) -> Effect:
        freed = attrs.evolve(_unowned(data), fallen=data.offer)
        return freed, (Freed("dead", _owner(data), data.offer),)

    @staticmethod
    def free_of_past(data: Receipt, message: Reclaim) -> Effect:
        return _freed(data, "over")

    @staticmethod
    def interrupt_of_dead(data: Receipt, message: Recover) -> Effect:
        return _unowned(data), (Interrupted("dead", _owner(data)),)

    @staticmethod
    def interrupt_of_past(data: Receipt, message: Reclaim) -> Effect:
        return _unowned(data), (Interrupted("over", _owner(data)),)

    @staticmethod
    def start_over(data: Receipt, message: Retry) -> Effect:
        return Receipt(data.limit), (Freed("retried"),)

    @staticmethod
    def forget(data: Receipt, message: Discard) -> Effect:
        return data, (Discarded(message.person),)


def _owner(data: Receipt) -> Holder:
    assert data.owner is not None, "what is queued or started has an owner"
    return data.owner


def _unowned(data: Receipt) -> Receipt:
    """Without an owner and without an offer; the attempts are remembered."""
    return attrs.evolve(data, owner=None, offer=None, fallen=None)


def _freed(data: Receipt, cause: Cause) -> Effect:
    return _unowned(data), (Freed(cause, _owner(data)),)


RECEIPT: Table[Receipt, Happening, Output] = compile_chart(ReceiptChart)
