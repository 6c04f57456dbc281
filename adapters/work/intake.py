"""What a leader delivers to this process is in the journal before it is acknowledged (bus.md c, FOLLOWER ADMIT).

    intake = Intake(journal, me, binding=lambda: follower.profile_key, on_admitted=worker.signal)
    Member(..., deliver=intake.deliver)

What is refused raises TenureError; then there is no receipt, and the leader has the update still.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from tenure.adapters.bus.messages.envelopes import Forward, ForwardMessage
from tenure.adapters.bus.messages.json_values import dump
from tenure.adapters.errors import TenureError
from tenure.adapters.journal.deliveries import Arrival
from tenure.adapters.journal.threaded import ThreadedJournal
from tenure.adapters.work.journaling import in_words
from tenure.adapters.work.routing import received
from tenure.machines.chart import Refused
from tenure.machines.receipt_messages import Party


@attrs.define
class IntakeCounts:
    """What was delivered so far."""

    admitted: int = 0
    again: int = 0
    """Deliveries that were in the journal before, and perhaps executed long since."""
    refused: int = 0


class Intake:
    """That of one process as a follower."""

    def __init__(
        self,
        journal: ThreadedJournal,
        me: Party,
        *,
        binding: Callable[[], str],
        on_admitted: Callable[[], None] = lambda: None,
        counts: IntakeCounts | None = None,
    ) -> None:
        """`binding`: the stable key under which this process is registered now."""
        self.counts = IntakeCounts() if counts is None else counts
        self._journal = journal
        self._me = me
        self._binding = binding
        self._on_admitted = on_admitted

    async def deliver(self, request: Forward) -> None:
        """Admit it: durable when this returns. Raises TenureError where it is refused, or the journal could not."""
        update = received(request)
        if update is None:
            self.counts.refused += 1
            raise TenureError("the delivery carries no update, or another one than it says")
        position = request.forward_comment_batch_position if isinstance(request, ForwardMessage) else None
        arrival = Arrival(
            delivery=request.delivery.delivery_id,
            kind=request.KIND,
            binding=request.delivery.recipient_binding_key,
            update=request.delivery.source_update_id,
            raw=update.text,
            position=None if position is None else dump(position),
        )
        answer = await self._journal.call(lambda j: j.admit(arrival, self._binding(), self._me.instance))
        if isinstance(answer, Refused):
            self.counts.refused += 1
            raise TenureError(in_words(answer))
        if answer.again:
            self.counts.again += 1
        else:
            self.counts.admitted += 1
            self._on_admitted()
