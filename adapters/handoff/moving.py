"""Moving what belongs elsewhere, again and again (bus.md e, reconcile tick; `tenure handoff`). What that is, `wishes`
says.

One pass at a time (B76). Each recipient is offered one item after the other; recipients do not wait for each other.
What was refused is offered again later, after a delay that doubles.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import attrs

from tenure.adapters.errors import TenureError, in_words
from tenure.adapters.files.timings import Timings
from tenure.adapters.handoff.destinations import Destination
from tenure.adapters.handoff.outcomes import Gone, Kept, Moved, Outcome
from tenure.adapters.handoff.patience import Patience
from tenure.adapters.handoff.payload import Parcel
from tenure.adapters.handoff.ports import HandoffJournal
from tenure.adapters.handoff.way import Way
from tenure.adapters.handoff.wishes import Wish, Wishes
from tenure.adapters.journal.rows import ReceiptRow
from tenure.adapters.ports import Ports, tell
from tenure.adapters.work.items import Held, Items
from tenure.machines.follower_messages import Target
from tenure.machines.receipt_messages import Party


class Donor(Protocol):
    """Who gives items away: `tenure.adapters.handoff.donor.Donors`."""

    async def give(self, held: Held, parcel: Parcel, to: Destination, party: Party) -> Outcome:
        """Offer an item that is set aside; it is resumed or dropped then."""

    async def withdraw(self, row: ReceiptRow) -> Outcome:
        """See to an offer that nobody here waits for any more."""


@attrs.define
class MoveCounts:
    """What was moved so far."""

    moved: int = 0
    kept: int = 0
    """Offers that came to nothing; the item stayed."""
    gone: int = 0
    """Items that were not this process's any more when they were offered, or settled before it was known who had
    them."""
    troubles: int = 0
    """Passes that failed; the next one begins anew."""


class Mover:
    """Moves the items of one process."""

    def __init__(
        self,
        ports: Ports,
        timings: Timings,
        journal: HandoffJournal,
        items: Items,
        way: Way,
        donor: Donor,
        *,
        instance: str,
        thread: Callable[[], Target | None],
        counts: MoveCounts | None = None,
    ) -> None:
        """`thread` is the own thread at this moment."""
        self.counts = MoveCounts() if counts is None else counts
        self.trouble = ""
        """What failed last; "" when nothing has since."""
        self._ports = ports
        self._timings = timings
        self._journal = journal
        self._donor = donor
        self._instance = instance
        self._patience = Patience(ports.clock, timings)
        self._wishes = Wishes(
            ports.clock, timings, journal, items, way, self._patience, instance=instance, thread=thread
        )
        self._news = asyncio.Event()
        self._passing: asyncio.Future[None] | None = None
        """The last pass that was begun."""

    def signal(self) -> None:
        """There is something to look at: a registration, an item, a wish."""
        self._news.set()

    async def run(self) -> None:
        """Look again and again, until this is cancelled. An offer that is under way then is ended in order: accepted,
        withdrawn, or left to the journal."""
        while True:
            self._news.clear()
            await self.reconcile()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timings.reconcile_ms / 1000):
                    await self._news.wait()

    async def reconcile(self) -> None:
        """One pass; who asks while one is under way waits for its end, however that is."""
        if self._passing is not None and not self._passing.done():
            await asyncio.wait([self._passing])
            return
        self._passing = asyncio.ensure_future(self._pass())
        await self._passing

    # -- one pass -----------------------------------------------------------------------------------------------------

    async def _pass(self) -> None:
        try:
            for row in await self._journal.offers():  # nobody waits for these: one pass at a time
                await self._donor.withdraw(row)
            wishes = await self._wishes.found()
            if wishes:
                await self._move(wishes)
            self.trouble = ""
        except TenureError as error:
            self.counts.troubles += 1
            self.trouble = in_words(error)
            tell(self._ports, "handoff", "reconcile", error=self.trouble)
        finally:
            self._wishes.release()

    async def _move(self, wishes: Sequence[Wish]) -> None:
        """All of them; raises what failed when all of it has ended, so that no pass overlaps another."""
        parties = await self._wishes.parties()
        lanes: dict[str, list[Wish]] = {}
        for wish in wishes:
            lanes.setdefault(wish.to.instance, []).append(wish)
        ended = await asyncio.gather(
            *(self._lane(lane, parties.get(to)) for to, lane in lanes.items()), return_exceptions=True
        )
        for fault in ended:
            if fault is not None:
                raise fault

    async def _lane(self, wishes: Sequence[Wish], party: Party | None) -> None:
        """What goes to one recipient, `party` in this journal."""
        for wish in wishes:
            if party is None:
                # Who is not in this journal cannot accept what is (F18).
                await self._ended(wish, Kept(f"{wish.to.instance} does not work out of this journal", definite=True))
                continue
            held = self._wishes.set_aside(wish)
            if held is not None:  # else it has begun meanwhile
                await self._ended(wish, await self._donor.give(held, wish.parcel, wish.to, party))

    async def _ended(self, wish: Wish, outcome: Outcome) -> None:
        move, to = wish.by_hand, wish.to.instance
        match outcome:
            case Moved():
                self.counts.moved += 1
                if move is not None:
                    await self._journal.answer_move(move, f"moved to {to}")
            case Gone():
                self.counts.gone += 1  # who has it sees what a person wants
            case Kept(why, definite):
                self.counts.kept += 1
                tell(self._ports, "handoff", "kept", receipt=wish.held.receipt_id, to=to, why=why)
                self._patience.kept(wish.attempt)
                if move is not None and (definite or self._wishes.late(move)):
                    await self._journal.answer_move(move, f"stays at {self._instance}: {why}")
