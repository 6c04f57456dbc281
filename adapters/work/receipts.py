"""What a worker needs of the journal: the receipts that its process may execute, and what becomes of each."""

from __future__ import annotations

from typing import Protocol

from tenure.adapters.work.items import Held, Item


class Receipts(Protocol):
    """What a worker needs of the journal. All of these raise TenureError where the journal could not do it, or nobody
    knows whether it did; each may be repeated."""

    async def take(self, limit: int) -> tuple[Held, ...]:
        """Take pending receipts that this process may take now, in order, so many at most; and what is queued for it
        already (an answer was lost)."""

    async def start(self, held: Held) -> Item | None:
        """Write down that it begins. None: it is not to be begun here."""

    async def complete(self, held: Held) -> None:
        """It is done."""

    async def fail(self, held: Held, delay_ms: int, why: str) -> None:
        """Certainly nothing has come of it; it is not tried again before `delay_ms` are over. `why`: for a person."""

    async def doubt(self, held: Held, why: str) -> None:
        """It was begun, and nobody knows what has come of it. `why`: for a person."""

    async def release(self, held: Held) -> None:
        """It was not begun, whatever the journal says of that, and is anybody's."""

    async def recover(self) -> int:
        """What the dead have left, and earlier activations of this process, is pending or interrupted; how much."""

    async def leave(self) -> None:
        """This process serves nothing any more: what is pending is for others."""

    async def due_in(self) -> int | None:
        """In how many ms the next receipt may be taken that may not be yet; None: there is none."""
