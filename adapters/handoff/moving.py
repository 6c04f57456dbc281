"""Which items belong to another instance, and moving them there (bus.md e, reconcile tick; `tenure handoff`).

An item belongs where its thread is: what was written in a thread that another live instance has now goes to that
instance. And an item goes where a person wants it, and stays there then, whatever its thread is.

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
from tenure.adapters.handoff.outcomes import Kept, Moved, Outcome
from tenure.adapters.handoff.payload import Parcel
from tenure.adapters.handoff.ports import HandoffJournal
from tenure.adapters.handoff.way import Way
from tenure.adapters.journal.moves import Move
from tenure.adapters.journal.rows import ReceiptRow
from tenure.adapters.ports import Ports, tell
from tenure.adapters.work.items import Held, Items
from tenure.adapters.work.routing import address
from tenure.machines.chart import Refused
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
    troubles: int = 0
    """Passes that failed; the next one begins anew."""


@attrs.frozen
class _Wish:
    """One item, and where it is to go. `by_hand`: a person asked for it."""

    held: Held
    parcel: Parcel
    to: Destination
    by_hand: Move | None = None


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
        self._items = items
        self._way = way
        self._donor = donor
        self._instance = instance
        self._thread = thread
        self._parcels: dict[str, Parcel] = {}
        """Of what is held now."""
        self._kept: dict[tuple[str, str], tuple[int, int]] = {}
        """By receipt and registration: how often it was kept, and until when nothing is tried, monotonic ms."""
        self._taken: set[str] = set()
        """Receipts that this pass has taken to be offered, and not offered yet."""
        self._news = asyncio.Event()
        self._passing: asyncio.Future[None] | None = None

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
        """One pass; who asks while one is under way waits for its end."""
        if self._passing is not None:
            await asyncio.shield(self._passing)
            return
        passing = self._passing = asyncio.ensure_future(self._pass())
        try:
            await passing
        finally:
            self._passing = None

    # -- one pass -----------------------------------------------------------------------------------------------------

    async def _pass(self) -> None:
        try:
            for row in await self._journal.offers():  # nobody waits for these: one pass at a time
                await self._donor.withdraw(row)
            wishes = [*await self._wishes_for_pending(), *await self._wishes()]
            if wishes:
                parties = await self._parties()
                lanes: dict[str, list[_Wish]] = {}
                for wish in wishes:
                    lanes.setdefault(wish.to.instance, []).append(wish)
                ended = await asyncio.gather(
                    *(self._lane(lane, parties.get(to)) for to, lane in lanes.items()), return_exceptions=True
                )
                for fault in ended:  # when all of them have ended, so that no pass overlaps another
                    if fault is not None:
                        raise fault
            self.trouble = ""
        except TenureError as error:
            self.counts.troubles += 1
            self.trouble = in_words(error)
            tell(self._ports, "handoff", "reconcile", error=self.trouble)
        finally:
            for receipt in self._taken:  # what was not offered after all may be begun
                self._items.resume(receipt)
            self._taken.clear()

    async def _wishes_for_pending(self) -> list[_Wish]:
        """What a person wants moved, and nobody has taken yet, is taken for that: else it is begun when it is."""
        moves = [move for move in await self._journal.moves_to_take() if move.instance != self._instance]
        if not moves:
            return []
        there, parties = await self._way.destinations(), await self._parties()
        wishes = []
        for move in moves:
            to = self._wanted(move, None, there)
            if to is None:
                await self._nobody(move)
            elif to.instance in parties and not self._waits(move.receipt_id, to):
                held = await self._took(move.receipt_id)
                parcel = None if held is None else await self._journal.parcel(move.receipt_id)
                if held is not None and parcel is not None:
                    wishes.append(_Wish(held, parcel, to, move))
        return wishes

    async def _took(self, receipt: str) -> Held | None:
        """Take it, and set it aside before anybody can begin it."""
        answer, row = await self._journal.take(receipt), await self._journal.look(receipt)
        if isinstance(answer, Refused) or row is None or row.phase != "queued" or row.data.owner is None:
            return None
        running = self._items.running
        if receipt not in self._items and (running is None or running.receipt_id != receipt):
            self._items.put(Held(receipt, row.kind, row.binding, row.first_update, row.data.owner))
        held = self._items.set_aside(receipt)
        if held is not None:
            self._taken.add(receipt)
        return held

    async def _parties(self) -> dict[str, Party]:
        """Who works out of this journal, by instance."""
        return {row.party.instance: row.party for row in await self._journal.servers() if row.left_at is None}

    async def _wishes(self) -> list[_Wish]:
        asked = await self._asked()
        held = list(self._items)
        ids = {one.receipt_id for one in held}
        self._kept = {key: known for key, known in self._kept.items() if key[0] in ids or known[1] > self._now}
        self._parcels = {receipt: parcel for receipt, parcel in self._parcels.items() if receipt in ids}
        mine = self._thread()
        for one in held:
            if (
                one.receipt_id not in self._parcels
                and (found := await self._journal.parcel(one.receipt_id)) is not None
            ):
                self._parcels[one.receipt_id] = found
        elsewhere = {
            one.receipt_id: target
            for one in held
            if one.receipt_id not in asked
            and (parcel := self._parcels.get(one.receipt_id)) is not None
            and (target := thread_of(parcel)) not in (None, mine)
        }
        if not elsewhere and not asked:
            return []
        there = await self._way.destinations()
        wishes: list[_Wish] = []
        for one in held:
            parcel = self._parcels.get(one.receipt_id)
            if parcel is None or self._items.is_aside(one.receipt_id):
                continue
            move = asked.get(one.receipt_id)
            to = self._wanted(move, elsewhere.get(one.receipt_id), there)
            if move is not None and to is None:
                await self._nobody(move)
            elif to is not None and not self._waits(one.receipt_id, to) and (move or not await self._stays(one)):
                wishes.append(_Wish(one, parcel, to, move))
        return wishes

    async def _lane(self, wishes: Sequence[_Wish], party: Party | None) -> None:
        for wish in wishes:
            if party is None:
                # Who is not in this journal cannot accept what is (F18).
                await self._ended(wish, Kept(f"{wish.to.instance} does not work out of this journal", definite=True))
                continue
            taken = wish.held.receipt_id in self._taken
            held = wish.held if taken else self._items.set_aside(wish.held.receipt_id)
            self._taken.discard(wish.held.receipt_id)
            if held is not None:  # else it has begun meanwhile
                await self._ended(wish, await self._donor.give(held, wish.parcel, wish.to, party))

    async def _ended(self, wish: _Wish, outcome: Outcome) -> None:
        receipt, to = wish.held.receipt_id, wish.to
        key = (receipt, to.generation)
        match outcome:
            case Moved():
                self.counts.moved += 1
                self._kept.pop(key, None)
                if wish.by_hand is not None:
                    await self._journal.answer_move(wish.by_hand, f"moved to {to.instance}")
            case Kept(why, definite):
                self.counts.kept += 1
                tell(self._ports, "handoff", "kept", receipt=receipt, to=to.instance, why=why)
                times = self._kept.get(key, (0, 0))[0] + 1
                first, last = self._timings.retry_first_ms, self._timings.retry_last_ms
                wait = min(last, first << min(times - 1, 30))
                self._kept[key] = (times, self._now + wait)
                if wish.by_hand is not None and (definite or self._late(wish.by_hand)):
                    await self._journal.answer_move(wish.by_hand, f"stays at {self._instance}: {why}")

    # -- who wants what -----------------------------------------------------------------------------------------------

    async def _asked(self) -> dict[str, Move]:
        """What persons want moved that is held here; what cannot be moved is answered."""
        found: dict[str, Move] = {}
        for move in await self._journal.moves():
            held = self._items.get(move.receipt_id)
            if held is not None and move.instance != self._instance:
                found[move.receipt_id] = move
            elif (why := await self._pointless(move)) is not None:
                await self._journal.answer_move(move, why)
        return found

    async def _pointless(self, move: Move) -> str | None:
        row = await self._journal.look(move.receipt_id)
        phase = None if row is None else row.phase
        if phase == "started":
            return f"it has begun at {self._instance}: it is not moved any more"
        return f"it is at {self._instance}" if phase == "queued" and move.instance == self._instance else None

    async def _nobody(self, move: Move) -> None:
        if self._late(move):
            await self._journal.answer_move(move, f"{move.instance} is not here")

    def _wanted(self, move: Move | None, target: Target | None, there: tuple[Destination, ...]) -> Destination | None:
        if move is not None:
            return next((one for one in there if one.instance == move.instance), None)
        return next((one for one in there if target is not None and one.target == target), None)

    async def _stays(self, held: Held) -> bool:
        """A person has put it here."""
        return await self._journal.moved(held.receipt_id) == self._instance

    def _waits(self, receipt: str, to: Destination) -> bool:
        known = self._kept.get((receipt, to.generation))
        return known is not None and self._now < known[1]

    @property
    def _now(self) -> int:
        return self._ports.clock.monotonic_ms()

    def _late(self, move: Move) -> bool:
        """A person does not wait for ever."""
        return self._ports.clock.wall_ms() - move.asked_at >= self._timings.handoff_timeout_ms


def thread_of(parcel: Parcel) -> Target | None:
    """The thread that an item belongs to: that of its first update that names one."""
    places = (address(update) for update in parcel.updates)
    return next((place.target for place in places if place is not None and place.target is not None), None)
