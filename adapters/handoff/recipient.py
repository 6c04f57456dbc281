"""Taking what is offered, driven: the machine of `tenure.machines.recipient` over the journal (bus.md e).

Everything that can be checked is checked before the row is told to accept. From then on the item is this process' own:
it goes into the queue here, or back into the journal, and is never merely forgotten (L3). So an acceptance that has
begun goes on whatever becomes of the request; whoever asks again waits for what comes of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import attrs

from tenure.adapters.awaiting import heard
from tenure.adapters.bus.messages.envelopes_handoff import AdmissionReceipt, LeaderOfferQueueHandoff, Staged
from tenure.adapters.errors import TenureError, in_words
from tenure.adapters.files.timings import Timings
from tenure.adapters.handoff.parties import donor_of, queue_owner, recipient_owner
from tenure.adapters.handoff.payload import receipt_in
from tenure.adapters.handoff.ports import HandoffJournal
from tenure.adapters.ports import Ports, tell
from tenure.adapters.work.items import Held, Items
from tenure.machines import recipient_messages as own
from tenure.machines.chart import Refused, Step, step
from tenure.machines.handoff_identity import handoff_id
from tenure.machines.receipt_messages import Accepted, Holder, Party, Same
from tenure.machines.recipient import RECIPIENT

_WHY: Final = {
    "generation_is_mine": "stale registration generation: register again",
    "has_a_worker": "nobody here executes queued items now: try again later",
    "live_answers_again": "the item is here already, by another handoff",
}
_ELSEWHERE: Final = "the item is in another journal: it is not taken here"


@attrs.define
class _Place:
    """One item that may come here: its machine."""

    phase: str
    data: own.Place


class Recipient:
    """What is offered to one process."""

    def __init__(
        self,
        ports: Ports,
        timings: Timings,
        journal: HandoffJournal,
        items: Items,
        *,
        party: Callable[[], Party],
        serves: Callable[[], bool],
        current: Callable[[str], bool],
    ) -> None:
        """`party`: who this process is in the journal. `serves`: a worker is here that begins what is put into `items`.
        `current`: whether a generation is that of the registration that is held now."""
        self.accepted = 0
        """Offers that were answered with yes, each time that they came."""
        self.refused = 0
        self._ports = ports
        self._timings = timings
        self._journal = journal
        self._items = items
        self._party = party
        self._serves = serves
        self._current = current
        self._taking: dict[str, asyncio.Future[Staged]] = {}
        """By receipt: what is under way. Whatever has ended is not among it: who finds something waits for it."""
        self._closed = asyncio.Event()

    async def accept(self, offer: LeaderOfferQueueHandoff) -> Staged:
        """Who owns the item now: this process. Raises TenureError where it is not taken, with why.

        Cancelled, what was begun goes on."""
        receipt = receipt_in(offer.payload)
        while (under_way := self._taking.get(receipt.receipt_id)) is not None and not under_way.done():
            await asyncio.wait([under_way])
        taking = self._taking[receipt.receipt_id] = asyncio.ensure_future(self._take(offer, receipt))
        heard(taking)
        try:
            staged = await asyncio.shield(taking)
        except TenureError:
            self.refused += 1
            raise
        self.accepted += 1
        return staged

    async def close(self) -> None:
        """Nothing is asked of the journal again and again any more. What is under way ends as soon as it can."""
        self._closed.set()
        if self._taking:
            await asyncio.wait(list(self._taking.values()))

    # -- one offer ----------------------------------------------------------------------------------------------------

    async def _take(self, offer: LeaderOfferQueueHandoff, receipt: AdmissionReceipt) -> Staged:
        try:
            return await self._taken(offer, receipt)
        finally:  # before whoever waits for it, or comes in this turn of the loop, looks again
            del self._taking[receipt.receipt_id]

    async def _taken(self, offer: LeaderOfferQueueHandoff, receipt: AdmissionReceipt) -> Staged:
        me = self._party()
        here = receipt.journal_binding_key == await self._journal.key()
        handoff = handoff_id(
            offer.handoff_token,
            receipt.queue_kind,
            receipt.receipt_id,
            receipt.source_update_ids,
            offer.donor_acquisition_id,
            recipient_owner(me),
        )
        donor = donor_of(offer, self._ports.processes.me())
        place = _Place(RECIPIENT.initial, own.Place(me))
        if (holder := self._holds(receipt.receipt_id)) is not None:
            self._offer(place, own.Held(holder))
        mine = offer.recipient_instance_id == me.instance
        current = mine and self._current(offer.recipient_registration_generation)
        answer = self._offer(place, own.Arrived(handoff, donor, current, able=here and self._serves()))
        if isinstance(answer, Refused):
            raise TenureError(_ELSEWHERE if not here else "; ".join(_WHY[guard] for guard in answer.guards))
        why, waited = "refused", self._timings.retry_first_ms
        while True:
            (output,) = answer.outputs
            match output:
                case own.Confirm(holder):
                    return await self._staged(receipt, holder)
                case own.Deny():
                    raise TenureError(why)
                case own.AcceptInJournal() | own.ReleaseInJournal():
                    try:
                        happened, why = await self._asked(receipt.receipt_id, me, output, why)
                    except TenureError as error:
                        tell(self._ports, "handoff", "accept", receipt=receipt.receipt_id, error=in_words(error))
                        await self._pause(waited, error)
                        waited = min(2 * waited, self._timings.retry_last_ms)
                        happened = own.JournalFailed()
                case own.Publish(holder):
                    happened, why = await self._published(receipt, holder)
            told = self._offer(place, happened)
            assert isinstance(told, Step), "the machine has asked for it"
            answer = told

    async def _asked(
        self, receipt: str, me: Party, order: own.AcceptInJournal | own.ReleaseInJournal, why: str
    ) -> tuple[own.Happening, str]:
        if isinstance(order, own.ReleaseInJournal):
            await self._journal.release(receipt, order.holder, why)
            return own.Released(), why
        answer = await self._journal.accept(receipt, me, order.handoff, order.donor)
        if isinstance(answer, Accepted | Same):
            return own.AcceptedInJournal(answer.holder), why
        said = ", ".join(answer.guards) or answer.phase if isinstance(answer, Refused) else "no acceptance"
        return own.AcceptRefused(), f"it is not offered to this process, or no longer ({said})"

    async def _published(self, receipt: AdmissionReceipt, holder: Holder) -> tuple[own.Happening, str]:
        """It is in the queue here, if a worker is still there to begin it. One that has begun by now needs no place."""
        try:
            row = await self._journal.look(receipt.receipt_id)
        except TenureError as error:
            if self._holds(receipt.receipt_id) == holder:
                return own.Published(), ""  # its worker was faster, and may have begun it: it is not given back
            return own.CheckFailed(), in_words(error)
        if not self._serves():
            return own.CheckFailed(), "its worker has gone; the item is given back"
        waits = row is not None and row.phase == "queued" and row.data.owner == holder
        if row is not None and waits and self._holds(receipt.receipt_id) is None:
            self._items.put(Held(row.receipt_id, row.kind, row.binding, row.first_update, holder))
        return own.Published(), ""

    async def _staged(self, receipt: AdmissionReceipt, holder: Holder) -> Staged:
        try:
            row = await self._journal.look(receipt.receipt_id)
        except TenureError:
            row = None  # it is accepted all the same, and whoever asks again is told so
        since = None if row is None or row.data.owner != holder else row.owned_since
        return Staged(
            receipt_id=receipt.receipt_id,
            source_update_ids=receipt.source_update_ids,
            queue_owner=queue_owner(holder, 0 if since is None else since),
        )

    # -- inside -------------------------------------------------------------------------------------------------------

    def _offer(self, place: _Place, message: own.Happening) -> Step[own.Place, own.Output] | Refused:
        answer = step(RECIPIENT, place.phase, place.data, message)
        if isinstance(answer, Step):
            place.phase, place.data = answer.phase, answer.data
        return answer

    def _holds(self, receipt: str) -> Holder | None:
        """As whom this process has it in its queue, or executes it."""
        held = self._items.get(receipt) or self._items.running
        return held.holder if held is not None and held.receipt_id == receipt else None

    async def _pause(self, ms: float, error: TenureError) -> None:
        if self._closed.is_set():
            raise error
        with suppress(TimeoutError):
            async with asyncio.timeout(ms / 1000):
                await self._closed.wait()
