"""The journal as a handoff uses it: each operation in the journal's thread.

What was asked of it happens, whether anybody waits for it or not. Donor and recipient therefore wait for whatever they
have asked, also when their callers do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenure.adapters.bus.messages.json_values import BadJson, Json, load
from tenure.adapters.errors import TenureError
from tenure.adapters.handoff.payload import Parcel, journal_key
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.moves import Move
from tenure.adapters.journal.rows import ReceiptRow, ServerRow
from tenure.adapters.journal.threaded import ThreadedJournal
from tenure.machines.chart import Refused
from tenure.machines.receipt_messages import Handoff, Holder, Output, Party

T = TypeVar("T")


class JournalHandoffs:
    """`tenure.adapters.handoff.ports.HandoffJournal` over the one open journal of this process."""

    def __init__(self, journal: ThreadedJournal, profile: str, me: Party) -> None:
        """`me`: this activation of this process."""
        self._journal = journal
        self._profile = profile
        self._me = me

    async def key(self) -> str:
        """As the port says."""
        return await self._do(lambda journal: journal_key(journal.path, self._profile, journal.state().bot))

    async def offer(self, receipt_id: str, by: Holder, handoff: Handoff, to: Party) -> Output | Refused:
        """As the port says."""
        return await self._do(lambda journal: journal.offer(receipt_id, by, str(handoff), to))

    async def accept(self, receipt_id: str, me: Party, handoff: Handoff, donor: Holder) -> Output | Refused:
        """As the port says."""
        return await self._do(lambda journal: journal.accept(receipt_id, me, str(handoff), donor))

    async def cancel(self, receipt_id: str, by: Holder, handoff: Handoff) -> Output | Refused:
        """As the port says."""
        return await self._do(lambda journal: journal.cancel(receipt_id, by, str(handoff)))

    async def release(self, receipt_id: str, by: Holder, why: str) -> Output | Refused:
        """As the port says."""
        return await self._do(lambda journal: journal.release(receipt_id, by, why))

    async def look(self, receipt_id: str) -> ReceiptRow | None:
        """As the port says."""
        return await self._do(lambda journal: journal.receipt(receipt_id))

    async def parcel(self, receipt_id: str) -> Parcel | None:
        """As the port says."""

        def read(journal: Journal) -> Parcel | None:
            row = journal.receipt(receipt_id)
            if row is None or row.settled_at is not None:
                return None
            raws = [(one.update_id, one.raw) for one in journal.deliveries_of(receipt_id)]
            return Parcel(receipt_id, row.kind, tuple(_update(receipt_id, raw) for _, raw in sorted(raws)))

        return await self._do(read)

    async def offers(self) -> tuple[ReceiptRow, ...]:
        """As the port says."""
        rows = await self._do(lambda journal: journal.owned_by(self._me.process))
        mine = [row for row in rows if row.data.owner is not None and row.data.owner.instance == self._me.instance]
        return tuple(row for row in mine if row.data.offer is not None)

    async def servers(self) -> tuple[ServerRow, ...]:
        """As the port says."""
        return await self._do(lambda journal: journal.servers())

    async def moves(self) -> tuple[Move, ...]:
        """As the port says."""
        return await self._do(lambda journal: journal.moves_for(self._me.process))

    async def moves_to_take(self) -> tuple[Move, ...]:
        """As the port says."""
        return await self._do(lambda journal: journal.moves_to_take(self._me))

    async def take(self, receipt_id: str) -> Output | Refused:
        """As the port says."""
        return await self._do(lambda journal: journal.take(receipt_id, self._me))

    async def answer_move(self, move: Move, outcome: str) -> None:
        """As the port says."""
        await self._do(lambda journal: journal.answer_move(move.receipt_id, outcome, move))

    async def _do(self, work: Callable[[Journal], T]) -> T:
        return await self._journal.call(work)


def _update(receipt_id: str, raw: str) -> Json:
    try:
        return Json(load(raw.encode("utf-8", "surrogatepass")))
    except BadJson as error:
        raise TenureError(f"{receipt_id}: an update of it {error}; the journal was changed by hand") from error
