"""What the drivers of a handoff need of the journal: one method per operation, each one transaction (bus.md d, e).

`Refused` is an answer: the row's machine has refused, and nothing has changed. What raises TenureError was not done, or
nobody knows whether it was; each of these may be repeated, and then answers what was done before.
"""

from __future__ import annotations

from typing import Protocol

from tenure.adapters.handoff.payload import Parcel
from tenure.adapters.journal.moves import Move
from tenure.adapters.journal.rows import ReceiptRow, ServerRow
from tenure.machines.chart import Refused
from tenure.machines.receipt_messages import Handoff, Holder, Output, Party


class HandoffJournal(Protocol):
    """The journal, off the event loop."""

    async def key(self) -> str:
        """Which journal it is: what a receipt in it names as its journalBindingKey (`payload.journal_key`)."""

    async def offer(self, receipt_id: str, by: Holder, handoff: Handoff, to: Party) -> Output | Refused:
        """Offer it: from then on the row is frozen."""

    async def accept(self, receipt_id: str, me: Party, handoff: Handoff, donor: Holder) -> Output | Refused:
        """Accept what was offered, under a fresh acquisition."""

    async def cancel(self, receipt_id: str, by: Holder, handoff: Handoff) -> Output | Refused:
        """Withdraw an offer."""

    async def release(self, receipt_id: str, by: Holder, why: str) -> Output | Refused:
        """Give a row back that was not begun."""

    async def look(self, receipt_id: str) -> ReceiptRow | None:
        """The row as it stands; None where there is none."""

    async def parcel(self, receipt_id: str) -> Parcel | None:
        """The receipt with its updates; None where there is none, or nothing of it is kept."""

    async def offers(self) -> tuple[ReceiptRow, ...]:
        """The rows that this activation owns and has offered."""

    async def servers(self) -> tuple[ServerRow, ...]:
        """Who serves which binding out of this journal."""

    async def moves(self) -> tuple[Move, ...]:
        """Where persons wanted last what this process owns, and what has come of that: all of it as of one moment."""

    async def moves_to_take(self) -> tuple[Move, ...]:
        """What persons want moved of what this process may take, and nobody has taken."""

    async def take(self, receipt_id: str) -> Output | Refused:
        """Take it, under a fresh acquisition."""

    async def answer_move(self, move: Move, outcome: str) -> None:
        """What came of it, for the person; nothing is answered that was asked for since."""
