"""One item that may come to a process: what is checked, when it is accepted, and what is answered (bus.md e).

The recipient's half of `spec/QueueHandoff.tla`. Everything that can be checked is checked before the row is told to
accept; from that transaction on the item is this process' own, and is never merely unstaged: it goes into the queue, or
back into the journal (L3). An offer that comes again after that gets the same answer again (L5).

* A `Refused` is an answer: to `Arrived` it is a negative acknowledgement, unless an offer of the same item is under way
  here (staged, accepted, releasing): then the later one waits for what becomes of the first.
* `JournalFailed` means that nobody knows: the same is asked again, and the row answers as before.
"""

from __future__ import annotations

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.laws import Law, guard, permit
from tenure.machines.receipt_messages import Handoff, Holder
from tenure.machines.recipient_messages import (
    AcceptedInJournal,
    AcceptInJournal,
    AcceptRefused,
    Arrived,
    CheckFailed,
    Confirm,
    Deny,
    Happening,
    Held,
    JournalFailed,
    Left,
    Output,
    Place,
    Publish,
    Published,
    Released,
    ReleaseInJournal,
)

Effect = tuple[Place, tuple[Output, ...]]


class RecipientChart(StateMachine):
    """One item, of which there is nothing here; that is offered; that is mine; that is in the queue; that goes back."""

    none = State(initial=True)
    staged = State()
    accepted = State()
    live = State()
    releasing = State()

    arrived = none.to(staged, cond=["generation_is_mine", "has_a_worker"], on="ask_journal") | live.to(
        live, cond=["live_answers_again"], on="confirm_again"
    )
    accepted_in_journal = staged.to(accepted, on="publish")
    accept_refused = staged.to(none, on="deny")
    published = accepted.to(live, on="confirm")
    check_failed = accepted.to(releasing, on="give_back")
    released = releasing.to(none, on="deny")
    held = none.to(live, on="hold")
    left = live.to(none, on="forget")
    journal_failed = staged.to(staged, on="ask_again") | releasing.to(releasing, on="give_back")

    # -- guards -------------------------------------------------------------------------------------------------------

    @staticmethod
    @guard(Law.FENCE)
    def generation_is_mine(data: Place, message: Arrived) -> bool:
        """Fence: an offer names the registration under which it was decided, and it is mine. Without it an item comes
        to who has another thread by now (I31, M31b, F12)."""
        return message.current

    @staticmethod
    @guard(Law.PROOF)
    def has_a_worker(data: Place, message: Arrived) -> bool:
        """Proof: who cannot execute does not accept. Without it an item is owned by who never begins it (V10, F21)."""
        return message.able

    @staticmethod
    @permit(Law.LATE_IS_NOTHING)
    def live_answers_again(data: Place, message: Arrived) -> bool:
        """Late is nothing: an offer that was accepted is not refused when it comes once more. Without it a donor whose
        answer was lost is told no by who has the item (I29, L5, F14)."""
        return data.holder is not None and data.holder.handoff == message.handoff

    # -- effects ------------------------------------------------------------------------------------------------------

    @staticmethod
    def ask_journal(data: Place, message: Arrived) -> Effect:
        now = attrs.evolve(data, handoff=message.handoff, donor=message.donor)
        return now, (AcceptInJournal(message.handoff, message.donor),)

    @staticmethod
    def ask_again(data: Place, message: JournalFailed) -> Effect:
        return data, (AcceptInJournal(*_offered(data)),)

    @staticmethod
    def publish(data: Place, message: AcceptedInJournal) -> Effect:
        return attrs.evolve(data, holder=message.holder), (Publish(message.holder),)

    @staticmethod
    def confirm(data: Place, message: Published) -> Effect:
        return attrs.evolve(data, handoff=None, donor=None), (Confirm(_holder(data)),)

    @staticmethod
    def confirm_again(data: Place, message: Arrived) -> Effect:
        return data, (Confirm(_holder(data)),)

    @staticmethod
    def give_back(data: Place, message: CheckFailed | JournalFailed) -> Effect:
        return data, (ReleaseInJournal(_holder(data)),)

    @staticmethod
    def deny(data: Place, message: AcceptRefused | Released) -> Effect:
        return Place(data.me), (Deny(),)

    @staticmethod
    def hold(data: Place, message: Held) -> Effect:
        return Place(data.me, holder=message.holder), ()

    @staticmethod
    def forget(data: Place, message: Left) -> Effect:
        return Place(data.me), ()


def _offered(data: Place) -> tuple[Handoff, Holder]:
    assert data.handoff is not None, "something was offered"
    assert data.donor is not None, "by somebody"
    return data.handoff, data.donor


def _holder(data: Place) -> Holder:
    assert data.holder is not None, "it is mine"
    return data.holder


RECIPIENT: Table[Place, Happening, Output] = compile_chart(RecipientChart)
