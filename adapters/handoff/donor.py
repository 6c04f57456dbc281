"""Giving an item away, driven: the machine of `tenure.machines.donor` over the journal and the bus (bus.md e).

    outcome = await donors.give(held, parcel, destination, party)     # the item is set aside

The row is frozen before anybody is told; and thawed, or known to be another's, before the item is anything here again.
An answer that does not come, a withdrawal that is refused, a row that cannot be read: none of them decides (L4).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import attrs

from tenure.adapters.awaiting import heard, to_its_end
from tenure.adapters.bus.messages import answers
from tenure.adapters.bus.messages.fields import Malformed
from tenure.adapters.bus.messages.protocol import QUEUE_HANDOFF_AGAIN
from tenure.adapters.errors import TenureError, in_words
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.asking import NoAck, said
from tenure.adapters.fleet.identities import new_secret
from tenure.adapters.handoff.destinations import Destination
from tenure.adapters.handoff.events import answered
from tenure.adapters.handoff.outcomes import Gone, Kept, Moved, Outcome
from tenure.adapters.handoff.parties import holder_of, on_the_bus, recipient_owner
from tenure.adapters.handoff.payload import Parcel, payload_of, receipt_in
from tenure.adapters.handoff.ports import HandoffJournal
from tenure.adapters.handoff.way import Outgoing, Way
from tenure.adapters.journal.rows import ReceiptRow
from tenure.adapters.ports import Ports, tell
from tenure.adapters.work.items import Held, Items
from tenure.machines import donor_messages as own
from tenure.machines.chart import Refused, Step, step
from tenure.machines.donor import DONOR
from tenure.machines.handoff_identity import handoff_id
from tenure.machines.receipt_messages import Party

_NOT_CARRIED: Final = f"the leader lacks {QUEUE_HANDOFF_AGAIN}, and the item came by a handoff: it stays"


class Donors:
    """What one process gives away."""

    def __init__(self, ports: Ports, timings: Timings, journal: HandoffJournal, items: Items, way: Way) -> None:
        self._ports = ports
        self._timings = timings
        self._journal = journal
        self._items = items
        self._way = way

    async def give(self, held: Held, parcel: Parcel, to: Destination, party: Party) -> Outcome:
        """Offer an item that is set aside to who is at `to`, in this journal `party`; then it is dropped, or resumed.

        Cancelled, an offer that is open is withdrawn, if the journal can be written, before the cancellation goes on.
        """
        barred = self._way.barred(to, came_by_handoff=held.holder.handoff is not None)
        if barred is not None:
            self._items.resume(held.receipt_id)
            return Kept(barred, definite=True)
        return await self._through(_Copy(self, held, _Wanted(parcel, to, party)))

    async def withdraw(self, row: ReceiptRow) -> Outcome:
        """A row of this process is offered, and nobody here waits for that offer any more: it is looked up, and
        withdrawn if it is still open."""
        assert row.data.owner is not None, "it is this process's"
        held = Held(row.receipt_id, row.kind, row.binding, row.first_update, row.data.owner)
        self._items.set_aside(row.receipt_id)
        return await self._through(_Copy(self, held))

    async def _through(self, copy: _Copy) -> Outcome:
        running = asyncio.ensure_future(copy.run())
        heard(running)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            copy.ending.set()
            with suppress(TenureError):
                await to_its_end(running)
            raise


@attrs.frozen
class _Wanted:
    """What is to be offered, to whom: where he is, and who he is in this journal."""

    parcel: Parcel
    to: Destination
    party: Party


class _Copy:
    """One item in memory, from its being set aside to its being resumed or dropped. `phase` and `data` are the
    machine's."""

    def __init__(self, donors: Donors, held: Held, wanted: _Wanted | None = None) -> None:
        """`wanted`: None for one of which only the row knows that it is offered."""
        self.held = held
        self.ending = asyncio.Event()
        """This process ends: nothing is waited for."""
        self.phase = DONOR.initial
        self.data = own.Item(held.receipt_id, held.holder, () if wanted is None else wanted.parcel.update_ids)
        self._donors = donors
        self._wanted = wanted
        self._offer: Outgoing | None = None
        """What is sent, once it is made."""
        self._why = "nobody waits for its offer any more"
        self._waited: float = donors._timings.retry_first_ms

    async def run(self) -> Outcome:
        """Raises TenureError where the journal could not be used at the end of this process: then the item stays aside,
        and the row says whose it is."""
        told = await self._first()
        if isinstance(told, Kept):
            self._donors._items.resume(self.held.receipt_id)
            return told
        answer = self._tell(told)
        if isinstance(answer, Refused):
            self._donors._items.resume(self.held.receipt_id)
            return Kept(_NOT_CARRIED, definite=True)
        while True:
            (output,) = answer.outputs
            outcome = self._ended(output, told)
            if outcome is not None:
                return outcome
            try:
                told = await self._perform(output)
            except TenureError as error:
                await self._pause(error)
                told = own.JournalFailed()
            answer = self._tell(told)
            assert isinstance(answer, Step), "the machine has asked for it"

    async def _first(self) -> own.Happening | Kept:
        """What the machine is told first; what cannot be offered is not (F20)."""
        wanted, holder = self._wanted, self.held.holder
        if wanted is None:
            return own.StartRefused()
        try:
            key = await self._donors._journal.key()
        except TenureError as error:
            return Kept(in_words(error))
        try:
            payload = payload_of(wanted.parcel, key)
            to = recipient_owner(wanted.party)
            pid, birth = on_the_bus(holder.process)
        except TenureError as error:
            return Kept(in_words(error), definite=True)
        token = new_secret(self._donors._ports.identities)
        receipt = receipt_in(payload)
        handoff = handoff_id(
            token, receipt.queue_kind, receipt.receipt_id, receipt.source_update_ids, str(holder.acquisition), to
        )
        request = f"{holder.instance}:{handoff}"
        self._offer = Outgoing(request, wanted.to, holder, pid, birth, 0, token, payload)
        return own.Move(handoff, wanted.party, leader_carries=QUEUE_HANDOFF_AGAIN in wanted.to.leaders)

    def _tell(self, message: own.Happening) -> Step[own.Item, own.Output] | Refused:
        answer = step(DONOR, self.phase, self.data, message)
        if isinstance(answer, Step):
            self.phase, self.data = answer.phase, answer.data
            answered(self._donors._ports, self.held, message, answer)
        return answer

    def _ended(self, output: own.Output, told: own.Happening) -> Outcome | None:
        """What has come of it, if that is known: `told` is what has said so."""
        items, receipt = self._donors._items, self.held.receipt_id
        match output:
            case own.Drop():
                items.drop(receipt)
                return Moved() if self._is_there(told) else Gone()
            case own.Keep() | own.Begin():
                # What has begun already is begun again by the worker, and the row tells it that it has.
                if receipt not in items:
                    items.put(self.held)
                items.resume(receipt)
                return Kept(self._why)
        return None

    def _is_there(self, told: own.Happening) -> bool:
        """Whether it says that the item is where it was offered to: for a person, and for the counts."""
        if isinstance(told, own.Looked):
            return told.owner is not None and told.owner.handoff is not None and told.owner.handoff == self.data.handoff
        return isinstance(told, own.Acked)

    async def _perform(self, output: own.Output) -> own.Happening:
        journal, receipt = self._donors._journal, self.held.receipt_id
        match output:
            case own.OfferInJournal(holder, handoff, recipient):
                offered = await journal.offer(receipt, holder, handoff, recipient)
                if isinstance(offered, Refused):
                    self._why = f"the journal refuses the offer ({', '.join(offered.guards) or offered.phase})"
                    return own.OfferRefused()
                return own.Offered()
            case own.CancelInJournal(holder, handoff):
                cancelled = await journal.cancel(receipt, holder, handoff)
                return own.CancelRefused() if isinstance(cancelled, Refused) else own.Cancelled()
            case own.ReleaseInJournal(holder):
                await journal.release(receipt, holder, "the session ends")
                return own.Released()
            case own.SendOffer():
                assert self._offer is not None, "what is sent was made before it was offered"
                return await self._sent(attrs.evolve(self._offer, acquired_at_ms=await self._acquired_at()))
        row = await journal.look(receipt)
        if row is None:
            return own.Looked("absent", None, None)
        return own.Looked(row.phase, row.data.owner, row.data.offer)

    # -- the message --------------------------------------------------------------------------------------------------

    async def _sent(self, offer: Outgoing) -> own.Acked | own.NoAnswer:
        sending = asyncio.ensure_future(self._donors._way.send(offer))
        ending = asyncio.ensure_future(self.ending.wait())
        await asyncio.wait([sending, ending], return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if not sending.done():
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([sending])
            self._why = "this process ends"
            return own.NoAnswer()
        ack = sending.result()
        if isinstance(ack, NoAck):
            self._why = ack.text
            return own.NoAnswer()
        staged = answers.staged(ack) if ack.ok else None
        if staged is None or isinstance(staged, Malformed):
            self._why = said(ack) if staged is None else f"the answer is none: {staged.reason}"
            return own.Acked(self.held.receipt_id, None)
        self._why = "the answer is for something else"
        owner = holder_of(staged.queue_owner, self._donors._ports.processes.me())
        return own.Acked(staged.receipt_id, owner, staged.source_update_ids)

    async def _acquired_at(self) -> int:
        """For the eyes of the other system only."""
        try:
            row = await self._donors._journal.look(self.held.receipt_id)
        except TenureError:
            return 0
        return 0 if row is None or row.owned_since is None else row.owned_since

    async def _pause(self, error: TenureError) -> None:
        """The journal is asked the same again, after a while; who ends has asked once."""
        donors = self._donors
        tell(donors._ports, "handoff", "journal", receipt=self.held.receipt_id, error=in_words(error))
        if self.ending.is_set():
            raise error
        with suppress(TimeoutError):
            async with asyncio.timeout(self._waited / 1000):
                await self.ending.wait()
        self._waited = min(2 * self._waited, donors._timings.retry_last_ms)
