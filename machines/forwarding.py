"""One update at the leader: from the answer of a poll to the receipt of the instance that owns it (bus.md c, annex D).

With `tenure.machines.delivery` the machine of `spec/DurableAdmission.tla`. Its row is in the journal; the leader of the
moment moves it, and each move is one transaction that reads the row, asks this machine, and writes. What it compares
(the fence, the offset, whether an instance has the delivery) is read in that same transaction.

An update is bound to one binding before the first attempt, and stays bound: what an instance has journaled, and only
its answer was lost, must not go to another one as well. It is delivered when the instance says which delivery it has
journaled, and that is this one. Whatever else is answered, or not answered, leaves the work here; an instance that is
not there now is waited for (L21). The leader's own updates need no bus: they are delivered to its own binding in the
same transaction.
"""

from __future__ import annotations

from typing import Final

import attrs
from statemachine import State, StateMachine

from tenure.machines.admission_identity import delivery_id
from tenure.machines.chart import Table, compile_chart
from tenure.machines.forwarding_messages import (
    NOT_CARRIABLE,
    NOT_SENT,
    UNSERVED,
    Acknowledged,
    Admit,
    Deliver,
    Discard,
    Failed,
    Failure,
    Forward,
    Happening,
    Keep,
    Output,
    Release,
    Resume,
    Retry,
    RetryIn,
    Send,
    Skip,
    Unserved,
    Update,
)
from tenure.machines.laws import Law, guard, permit

FIRST_DELAY_MS: Final = 1_000
LAST_DELAY_MS: Final = 60_000
"""How long an update waits after its first failed attempt, and at most; it doubles in between."""
PATIENCE: Final = 3
"""So often an update is sent in vain before those behind it go on without it."""

Taken = tuple[Update, tuple[Output, ...]]


def retry_delay_ms(attempts: int) -> int:
    """How long to wait after so many attempts have failed: 1, 2, 4... 60 s."""
    return min(FIRST_DELAY_MS << min(max(attempts, 1) - 1, 16), LAST_DELAY_MS)


def aside(data: Update) -> bool:
    """Whether those behind it, for the same binding, go on without it (V5; `Forward` of the module).

    Nobody can tell an instance that is away from an update that no instance can take: what was sent in vain so often
    has lost its place, and is tried again, for ever or until a person discards it. What has reached nobody counts for
    nothing, so that an instance that is starting again finds them in their order; what no line holds counts at once.
    """
    return data.failure == NOT_CARRIABLE or data.attempts >= PATIENCE


class ForwardingChart(StateMachine):
    """One update's row; absent is an update that the journal does not know, or has forgotten."""

    absent = State(initial=True)
    journaled = State()
    forwarding = State()
    waiting = State()
    delivered = State()
    skipped = State()
    discarded = State()

    admit = absent.to(journaled, cond=["epoch_current", "above_offset"])
    skip = absent.to(skipped, cond=["epoch_current", "above_offset"])
    forward = journaled.to(forwarding, cond=["epoch_current", "binding_sticks"], on="attempt")
    keep = journaled.to(delivered, cond=["epoch_current", "binding_sticks"], on="deliver_here")
    unserved = journaled.to(waiting, cond=["epoch_current"], on="wait_for_instance")
    acknowledged = forwarding.to(
        delivered, cond=["epoch_current", "says_yes", "names_a_receipt", "same_receipt"], on="complete"
    ) | forwarding.to(waiting, cond=["epoch_current"], on="wait_after_answer")
    failed = forwarding.to(waiting, cond=["epoch_current"], on="wait_after_failure")
    retry = waiting.to(journaled, cond=["retries_go_on"])
    resume = forwarding.to(journaled, cond=["epoch_current", "attempts_end"])
    release = journaled.to(journaled, cond=["binding_gone", "not_admitted"], on="unbind") | waiting.to(
        journaled, cond=["binding_gone", "not_admitted"], on="unbind"
    )
    discard = (
        journaled.to(discarded, cond=["not_admitted"])
        | forwarding.to(discarded, cond=["not_admitted"])
        | waiting.to(discarded, cond=["not_admitted"])
    )
    forget = delivered.to(absent) | skipped.to(absent) | discarded.to(absent)

    # -- guards ---------------------------------------------------------------

    @staticmethod
    @guard(Law.FENCE)
    def epoch_current(
        data: Update, message: Admit | Skip | Forward | Keep | Unserved | Acknowledged | Failed | Resume
    ) -> bool:
        """Fence: a leader's decision counts under the highest epoch that has raised the fence. Without it a leader that
        was displaced in its first start throws away, as history, what came in under its successor."""
        return message.epoch == message.fence

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def above_offset(data: Update, message: Admit | Skip) -> bool:
        """Late is nothing: what the offset has passed was journaled once, also when its row has been forgotten. Without
        it an old answer of Telegram is executed a second time."""
        return data.update > message.offset

    @staticmethod
    @guard(Law.PROOF)
    def binding_sticks(data: Update, message: Forward | Keep) -> bool:
        """Proof: an update that was offered to one binding goes to no other while the first may have it. Without it an
        instance whose answer was lost executes it, and so does the one that its thread belongs to now."""
        return data.binding is None or data.binding == message.binding

    @staticmethod
    @guard(Law.PROOF)
    def says_yes(data: Update, message: Acknowledged) -> bool:
        """Proof: who refuses has nothing. Without it a refusal, or a message shown to a person, settles the update."""
        return message.ok

    @staticmethod
    @guard(Law.PROOF)
    def names_a_receipt(data: Update, message: Acknowledged) -> bool:
        """Proof: only a journal has receipts. Without it any friendly answer completes the update."""
        return message.delivery is not None

    @staticmethod
    @guard(Law.FENCE)
    def same_receipt(data: Update, message: Acknowledged) -> bool:
        """Fence: a receipt is for one delivery. Without it what an instance says of another one completes this."""
        mine = data.binding is not None and message.delivery == delivery_id(data.kind, data.binding, data.update)
        return message.delivery is None or (mine and message.update == data.update)

    @staticmethod
    @guard(Law.PROOF)
    def binding_gone(data: Update, message: Release) -> bool:
        """Proof: that a binding is silent does not mean that it is gone. Without it a forward that is on its way is
        admitted beside the new binding by an instance of the old one, if that belongs to another system and sees no
        row of ours."""
        return message.gone

    @staticmethod
    @guard(Law.FENCE)
    def not_admitted(data: Update, message: Release | Discard) -> bool:
        """Fence: whether an instance has the delivery is looked up in the transaction that takes the update from it.
        Without it the update is executed by the binding that has it, and by the next one."""
        return not message.admitted

    @staticmethod
    @permit(Law.UNKNOWN)
    def retries_go_on(data: Update, message: Retry) -> bool:
        """Unknown: a failed attempt decides nothing. Without it an update that was not taken at once never is."""
        return True

    @staticmethod
    @permit(Law.LATE_IS_NOTHING)
    def attempts_end(data: Update, message: Resume) -> bool:
        """Late is nothing: an attempt ends with the leader that made it. Without it nobody sends what it was sending
        when it died."""
        return True

    # -- effects --------------------------------------------------------------

    @staticmethod
    def attempt(data: Update, message: Forward) -> Taken:
        bound = attrs.evolve(data, binding=message.binding, attempts=data.attempts + 1, failure=None)
        return bound, (Send(message.binding, delivery_id(data.kind, message.binding, data.update)),)

    @staticmethod
    def deliver_here(data: Update, message: Keep) -> Taken:
        bound = attrs.evolve(data, binding=message.binding, failure=None)
        return bound, (Deliver(message.binding, delivery_id(data.kind, message.binding, data.update)),)

    @staticmethod
    def wait_for_instance(data: Update, message: Unserved) -> Taken:
        return _waits(data, message.why, data.attempts)

    @staticmethod
    def complete(data: Update, message: Acknowledged) -> Taken:
        return attrs.evolve(data, failure=None), ()

    @staticmethod
    def wait_after_answer(data: Update, message: Acknowledged) -> Taken:
        if not message.ok:
            return _waits(data, "acknowledgement-rejected", data.attempts)
        missing = message.delivery is None
        return _waits(data, "durable-receipt-missing" if missing else "durable-receipt-mismatched", data.attempts)

    @staticmethod
    def wait_after_failure(data: Update, message: Failed) -> Taken:
        reached = message.why not in (NOT_SENT, NOT_CARRIABLE)
        return _waits(data, message.why, data.attempts if reached else data.attempts - 1)

    @staticmethod
    def unbind(data: Update, message: Release) -> Taken:
        return attrs.evolve(data, binding=None, attempts=0, failure=None), ()


def _waits(data: Update, why: Failure, attempts: int) -> Taken:
    after = attrs.evolve(data, failure=why, attempts=attempts)
    # Nobody there is no failed attempt; it is asked again as if it had failed once.
    delay = LAST_DELAY_MS if why == NOT_CARRIABLE else retry_delay_ms(1 if why == UNSERVED else data.attempts)
    return after, (RetryIn(delay, aside(after)),)


FORWARDING: Table[Update, Happening, Output] = compile_chart(ForwardingChart)
