"""What is on its way to each binding: one forward at a time, in the order of the ids (bus.md c; V5).

What failed keeps its place: those behind it wait with it until the lane goes on. What was sent in vain so often that
it may be the update that is the matter (the row's machine says so: `tenure.machines.forwarding.aside`) has lost it: it
is tried after the others, and its failures stop nobody. What no line of the bus can hold is not sent at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final

import attrs

from tenure.adapters.bus.messages import answers
from tenure.adapters.bus.messages.envelopes import Ack, Forward
from tenure.adapters.bus.messages.fields import Malformed
from tenure.adapters.bus.messages.wire import not_carriable
from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.asking import NoAck, said
from tenure.adapters.work.outbox import Outbox, Outcome, Outgoing
from tenure.adapters.work.routing import Address, Fleet, forward
from tenure.machines.forwarding_messages import NOT_CARRIABLE, NOT_SENT

LANE: Final = 100
"""So many are on their way to one binding, or about to be, at most."""

SendTo = Callable[[Forward], Awaitable[Ack | NoAck]]
"""Sends an envelope to the registration that it names, and answers what came back."""


@attrs.define
class ForwardCounts:
    """What a forwarder has done so far."""

    kept: int = 0
    """Delivered to bindings of this process."""
    forwarded: int = 0
    """Sent, and acknowledged with their receipts."""
    failures: int = 0
    """Attempts that came to nothing."""
    unserved: int = 0
    """Times that an update was found to be for nobody who is registered."""
    troubles: int = 0
    """Calls of the journal that failed."""


@attrs.define
class Lane:
    """What is on its way to one binding."""

    waiting: list[tuple[Outgoing, Address]] = attrs.field(factory=list)
    runs: bool = False
    more: bool = False
    """There are more than were taken."""
    failures: int = 0
    """In a row, since somebody registered for it."""
    until: float = 0.0
    """Not before this time of the loop is anything sent: what comes first has failed."""


class Lanes:
    """Those of one forwarder."""

    def __init__(
        self,
        outbox: Outbox,
        *,
        fleet: Callable[[], Fleet],
        send: SendTo,
        timings: Timings,
        request_id: Callable[[], str],
        now_ms: Callable[[], int],
        counts: ForwardCounts,
        begin: Callable[[Coroutine[object, object, None]], None],
        on_room: Callable[[], None],
        on_trouble: Callable[[TenureError], None],
        note: Callable[[str], None],
    ) -> None:
        """`begin` runs a lane; `on_room` is told when a lane takes more again, `on_trouble` of a call of the journal
        that failed in the middle of an attempt, `note` of what failed, in words ("": nothing does any more)."""
        self.under_way: set[int] = set()
        """The updates that are in some lane."""
        self._outbox = outbox
        self._fleet = fleet
        self._send = send
        self._timings = timings
        self._request_id = request_id
        self._now_ms = now_ms
        self._counts = counts
        self._begin = begin
        self._on_room = on_room
        self._on_trouble = on_trouble
        self._note = note
        self._lanes: dict[str, Lane] = {}

    def rerouted(self) -> None:
        """Somebody has registered, or has gone: nobody rests any longer."""
        for lane in self._lanes.values():
            lane.failures, lane.until = 0, 0.0

    def queue(self, binding: str, update: Outgoing, place: Address) -> None:
        """It goes to that binding, after those that are on their way there; not now, where the lane rests or is
        full."""
        lane = self._lanes.setdefault(binding, Lane())
        if lane.until > _time():
            return  # what comes before it has failed: they are looked at again together
        if len(lane.waiting) >= LANE:
            lane.more = True
        if lane.more:
            return
        self.under_way.add(update.update_id)
        lane.waiting.append((update, place))
        if not lane.runs:
            lane.runs = True
            self._begin(self._drive(binding, lane))

    async def nobody(self, update: Outgoing) -> None:
        """Nobody is registered for it."""
        self._counts.unserved += 1
        await self._outbox.unserved(update)

    async def _drive(self, binding: str, lane: Lane) -> None:
        """One after the other. What is left when one has failed is looked at again when its time comes."""
        try:
            while lane.waiting and lane.until <= _time():
                update, place = lane.waiting[0]
                began = _time()
                outcome = await self._one(binding, update, place)
                self.under_way.discard(update.update_id)
                del lane.waiting[0]
                if outcome.delivered:
                    lane.failures = 0
                elif outcome.retry_ms is not None and not outcome.aside:
                    lane.failures += 1
                    lane.until = began + self._rest(lane.failures)
        except TenureError as error:
            self._on_trouble(error)
            lane.until = _time() + self._timings.retry_first_ms / 1000
        finally:
            lane.runs = False
            if lane.more:
                lane.more = False
                self._on_room()
            self.under_way.difference_update(update.update_id for update, _ in lane.waiting)
            lane.waiting.clear()

    async def _one(self, binding: str, update: Outgoing, place: Address) -> Outcome:
        """One attempt, by the registration that serves the binding now."""
        whose = self._fleet().serves(binding)
        if whose.route is None:
            if update.failure is None:
                await self.nobody(update)
            return Outcome(delivered=False)
        asked = await self._outbox.forward(update, place.kind, binding)
        if asked is None:
            return Outcome(delivered=False)
        request = forward(
            place, update.update_id, asked.delivery, whose, request_id=self._request_id(), sent_at_ms=self._now_ms()
        )
        if (why := not_carriable(request)) is not None:
            self._note(f"update {update.update_id} fits into no line of the bus: it {why}")
            outcome = await self._outbox.failed(update, NOT_CARRIABLE)
        else:
            outcome = await self._settle(update, await self._send(request))
        if outcome.delivered:
            self._counts.forwarded += 1
            self._note("")
        else:
            self._counts.failures += 1
        return outcome

    def _rest(self, failures: int) -> float:
        """How long nothing is sent to a binding after so many failures in a row, in seconds."""
        first, last = self._timings.retry_first_ms, self._timings.retry_last_ms
        return min(last, first << min(failures - 1, 30)) / 1000

    async def _settle(self, update: Outgoing, ack: Ack | NoAck) -> Outcome:
        """The settlement classes of bus.md (c): what was answered, as the row's machine is told it."""
        if isinstance(ack, NoAck):
            self._note(ack.text)
            reached = ack.sent or ack.reached
            return await self._outbox.failed(update, "acknowledgement-missing" if reached else NOT_SENT)
        if not ack.ok:
            self._note(said(ack))
            return await self._outbox.acknowledged(update, False, None, None)
        receipt = answers.receipt(ack)
        named = (None, None) if isinstance(receipt, Malformed) else receipt
        return await self._outbox.acknowledged(update, True, *named)


def _time() -> float:
    return asyncio.get_running_loop().time()
