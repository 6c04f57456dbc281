"""Which items of this process belong to another instance, and why (bus.md e, reconcile tick; `tenure handoff`).

An item belongs where its thread is: what was written in a thread that another live instance has now goes to that
instance. And an item goes where a person wants it, and stays there then, whatever its thread is.

What persons want is read once, of what is held by then: so an item that has come by a wish is never seen without it,
and no wish half before and half after another one has replaced it.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from tenure.adapters.files.timings import Timings
from tenure.adapters.handoff.destinations import Destination
from tenure.adapters.handoff.patience import Attempt, Patience, attempt
from tenure.adapters.handoff.payload import Parcel
from tenure.adapters.handoff.ports import HandoffJournal
from tenure.adapters.handoff.way import Way
from tenure.adapters.journal.due import due
from tenure.adapters.journal.moves import Move
from tenure.adapters.ports import Clock
from tenure.adapters.work.items import Held, Items
from tenure.adapters.work.routing import address
from tenure.machines.chart import Refused
from tenure.machines.follower_messages import Target
from tenure.machines.receipt_messages import Party


@attrs.frozen
class Wish:
    """One item, and where it is to go. `by_hand`: a person asked for it."""

    held: Held
    parcel: Parcel
    to: Destination
    by_hand: Move | None = None

    @property
    def attempt(self) -> Attempt:
        return attempt(self.held.receipt_id, self.to, self.by_hand)


class Wishes:
    """What is to be moved from one process."""

    def __init__(
        self,
        clock: Clock,
        timings: Timings,
        journal: HandoffJournal,
        items: Items,
        way: Way,
        patience: Patience,
        *,
        instance: str,
        thread: Callable[[], Target | None],
    ) -> None:
        """`thread` is the own thread at this moment."""
        self._clock = clock
        self._timings = timings
        self._journal = journal
        self._items = items
        self._way = way
        self._patience = patience
        self._instance = instance
        self._thread = thread
        self._parcels: dict[str, Parcel] = {}
        """Of what is held now."""
        self._taken: set[str] = set()
        """Receipts that were taken to be offered, and are aside until they are."""

    async def found(self) -> list[Wish]:
        """All of them now. What a person answers is not awaited: what can come of no wish is written down. Raises
        TenureError where the journal cannot be used."""
        return [*await self._of_pending(), *await self._of_held()]

    def set_aside(self, wish: Wish) -> Held | None:
        """It is about to be offered, and not begun from now on. None: it is not here any more, or has begun."""
        receipt = wish.held.receipt_id
        if receipt in self._taken:
            self._taken.discard(receipt)
            return wish.held
        return self._items.set_aside(receipt)

    def release(self) -> None:
        """What was taken to be offered, and was not, may be begun."""
        for receipt in self._taken:
            self._items.resume(receipt)
        self._taken.clear()

    async def parties(self) -> dict[str, Party]:
        """Who works out of this journal, by instance."""
        return {row.party.instance: row.party for row in await self._journal.servers() if row.left_at is None}

    def late(self, move: Move) -> bool:
        """A person does not wait for ever."""
        patience = self._timings.handoff_timeout_ms
        return due(move.asked_at + patience, self._clock.wall_ms(), patience)

    # -- what nobody has taken ----------------------------------------------------------------------------------------

    async def _of_pending(self) -> list[Wish]:
        """What a person wants moved, and nobody has taken yet, is taken for that: else it is begun when it is."""
        moves = [move for move in await self._journal.moves_to_take() if move.instance != self._instance]
        if not moves:
            return []
        there, parties = await self._way.destinations(), await self.parties()
        wishes = []
        for move in moves:
            to = _called(move.instance, there)
            if to is None:
                await self._nobody(move)
            elif to.instance in parties and not self._patience.waits(attempt(move.receipt_id, to, move)):
                held = await self._took(move.receipt_id)
                parcel = None if held is None else await self._journal.parcel(move.receipt_id)
                if held is not None and parcel is not None:
                    wishes.append(Wish(held, parcel, to, move))
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

    # -- what is held -------------------------------------------------------------------------------------------------

    async def _of_held(self) -> list[Wish]:
        held = [one for one in self._items if not self._items.is_aside(one.receipt_id)]  # before the moves are read
        moves = {move.receipt_id: move for move in await self._journal.moves()}
        for move in moves.values():
            if move.outcome is None and (why := await self._pointless(move)) is not None:
                await self._journal.answer_move(move, why)
        await self._read(held)
        wishes: list[Wish] = []
        there: tuple[Destination, ...] | None = None
        for one in held:
            parcel = self._parcels.get(one.receipt_id)
            if parcel is None or (wanted := self._wanted(parcel, moves.get(one.receipt_id))) is None:
                continue
            there = await self._way.destinations() if there is None else there
            asked = wanted if isinstance(wanted, Move) else None
            to = _called(wanted.instance, there) if isinstance(wanted, Move) else _at(wanted, there)
            if to is not None and not self._patience.waits(attempt(one.receipt_id, to, asked)):
                wishes.append(Wish(one, parcel, to, asked))
            elif to is None and asked is not None:
                await self._nobody(asked)
        return wishes

    def _wanted(self, parcel: Parcel, move: Move | None) -> Move | Target | None:
        """What says that it belongs elsewhere: a person's wish, or its thread; None: it belongs here."""
        if move is not None and move.instance == self._instance:
            return None  # a person has put it here
        if move is not None and move.outcome is None:
            return move
        thread = thread_of(parcel)
        return None if thread == self._thread() else thread

    async def _read(self, held: list[Held]) -> None:
        """The updates of what is held, each read once."""
        ids = frozenset(one.receipt_id for one in self._items)
        self._patience.forget(ids)
        self._parcels = {receipt: parcel for receipt, parcel in self._parcels.items() if receipt in ids}
        for one in held:
            if one.receipt_id not in self._parcels:
                found = await self._journal.parcel(one.receipt_id)
                if found is not None:
                    self._parcels[one.receipt_id] = found

    async def _pointless(self, move: Move) -> str | None:
        """Why nothing can come of an open wish any more; None where something can."""
        held = self._items.get(move.receipt_id)
        if held is not None:
            return f"it is at {self._instance}" if move.instance == self._instance else None
        row = await self._journal.look(move.receipt_id)
        owner = None if row is None else row.data.owner
        if row is None or owner is None or owner.instance != self._instance:
            return None
        if row.phase == "started":
            return f"it has begun at {self._instance}: it is not moved any more"
        return f"it is at {self._instance}" if move.instance == self._instance else None

    async def _nobody(self, move: Move) -> None:
        if self.late(move):
            await self._journal.answer_move(move, f"{move.instance} is not here")


def thread_of(parcel: Parcel) -> Target | None:
    """The thread that an item belongs to: that of its first update that names one."""
    places = (address(update) for update in parcel.updates)
    return next((place.target for place in places if place is not None and place.target is not None), None)


def _called(instance: str, there: tuple[Destination, ...]) -> Destination | None:
    return next((one for one in there if one.instance == instance), None)


def _at(thread: Target, there: tuple[Destination, ...]) -> Destination | None:
    return next((one for one in there if one.target == thread), None)
