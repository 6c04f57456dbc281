"""Brings each journaled update to the instance that it is for: the leader's half of durable admission (bus.md c, annex
D). It runs while this process leads.

    forwarder = Forwarder(outbox, fleet=..., send=..., timings=...)
    await forwarder.run()               # until it is cancelled

An update is bound to one binding before its first attempt and stays bound (the row's machine sees to it). What is for a
binding of this very process is delivered in the same transaction; everything else goes over the bus, one forward at a
time for each binding, in the order of the ids, and is over only with the receipt of exactly that delivery. What nobody
is registered for waits, and is looked at again when the routes change (L21).

What failed keeps its place: those behind it for the same binding wait with it, until it was refused so often that it
may be the update that is the matter, and not the way to the instance (V5).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Final, Protocol

import attrs

from tenure.adapters.bus.messages import answers
from tenure.adapters.bus.messages.envelopes import Ack, Forward
from tenure.adapters.bus.messages.fields import Malformed
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.errors import TenureError, in_words
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.asking import NoAck, said
from tenure.adapters.ports import Ports, tell
from tenure.adapters.work.routing import Address, Fleet, Whose, address, forward
from tenure.machines.follower_messages import Target
from tenure.machines.forwarding_messages import Failure, Send

PAGE: Final = 100
"""So many updates are looked at at once."""
LANE: Final = 100
"""So many are on their way to one binding, or about to be, at most."""
ALL_EVERY: Final = 60
"""In so many looks without news, one is at everything."""
SUSPECT: Final = 3
"""From this refusal on it may be the update that is the matter: those behind it go on."""
OTHER: Final = "update"
"""The kind of what is forwarded to nobody: it is the leader's."""

SendTo = Callable[[Forward], Awaitable[Ack | NoAck]]
"""Sends an envelope to the registration that it names, and answers what came back."""


@attrs.frozen
class Outgoing:
    """An update that is to be brought to somebody. `binding`: whom it is bound to, from the first attempt on;
    `failure`: why it waits, None where it does not; `due`: it does not, or its time has come."""

    update_id: int
    body: Json
    binding: str | None = None
    attempts: int = 0
    failure: Failure | None = None
    due: bool = True


@attrs.frozen
class Outcome:
    """What an attempt has come to. `retry_ms`: after so long it is tried again, where it failed; None with `delivered`
    False: it is not ours to settle any more."""

    delivered: bool
    retry_ms: int | None = None


class Outbox(Protocol):
    """What a forwarder needs of the journal: each call is one transaction under this leader's epoch. All raise
    TenureError where it could not be done, or nobody knows whether it was; each may be repeated."""

    async def resume(self, besides: frozenset[int]) -> None:
        """What was being sent, by whoever led before or in an attempt that was given up here, is to be sent again;
        besides those ids, which are on their way."""

    async def outgoing(self, after: int, limit: int, *, unserved: bool) -> tuple[Outgoing, ...]:
        """Updates with ids above `after` that are to be brought to somebody and are not on their way, in order; also
        those whose time has not come, and with `unserved` those that nobody is registered for."""

    async def due_in(self) -> int | None:
        """In how many ms the time comes of the next one whose time has not come; None: there is none."""

    async def remembered(self, address: Address) -> str | None:
        """Which binding had that thread, or wrote that message, last."""

    async def forward(self, update: Outgoing, kind: str, binding: str) -> Send | None:
        """It is about to be sent; None: it is not to be, now."""

    async def keep(self, update: Outgoing, kind: str, binding: str) -> bool:
        """It is delivered to a binding of this process, with what gives the right to execute it. Whether it was."""

    async def unserved(self, update: Outgoing) -> None:
        """Nobody is registered for it."""

    async def acknowledged(self, update: Outgoing, ok: bool, delivery: str | None, source: int | None) -> Outcome:
        """The answer came, with the receipt that it has, if any."""

    async def failed(self, update: Outgoing, why: Failure) -> Outcome:
        """No answer came."""


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


class Forwarder:
    """That of one tenure, once."""

    def __init__(
        self,
        outbox: Outbox,
        *,
        fleet: Callable[[], Fleet],
        send: SendTo,
        timings: Timings,
        request_id: Callable[[], str],
        now_ms: Callable[[], int],
        on_kept: Callable[[], None] = lambda: None,
        counts: ForwardCounts | None = None,
        ports: Ports | None = None,
    ) -> None:
        """`fleet`: who is served by whom now. `on_kept` is told when a binding of this process has something to do."""
        self.counts = ForwardCounts() if counts is None else counts
        self.trouble = ""
        self._outbox = outbox
        self._fleet = fleet
        self._send = send
        self._timings = timings
        self._request_id = request_id
        self._now_ms = now_ms
        self._on_kept = on_kept
        self._ports = ports
        self._news = asyncio.Event()
        self._all_at = 0.0
        """When those that nobody is registered for are looked at again: others may have released them."""
        self._lanes: dict[str, Lane] = {}
        self._under_way: set[int] = set()
        self._had: dict[Target, str | None] = {}
        """Whose threads were that nobody has now, as this look has found out."""
        self._refusals: Counter[int] = Counter()
        """How often each was answered with something else than its receipt."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._fault: asyncio.Future[None] | None = None
        self._given_up = True
        """Something may be written down as being sent that is not: by whoever led before, or here."""

    def signal(self) -> None:
        """Something was journaled."""
        self._news.set()

    def rerouted(self) -> None:
        """Somebody has registered, or has gone: everything is looked at again."""
        for lane in self._lanes.values():
            lane.failures, lane.until = 0, 0.0
        self._all_at = 0.0
        self._news.set()

    async def run(self) -> None:
        """Forward until this is cancelled. Nothing is sent any more when it has ended; what was being sent then is sent
        again by whoever leads next."""
        self._fault = asyncio.get_running_loop().create_future()
        passing = asyncio.ensure_future(self._passes())
        try:
            await asyncio.wait([passing, self._fault], return_when=asyncio.FIRST_COMPLETED)
            for ended in (passing, self._fault):
                if ended.done():
                    ended.result()
        finally:
            left = [passing, *self._tasks]
            for task in left:
                task.cancel()
            while not all(task.done() for task in left):
                with suppress(asyncio.CancelledError):
                    await asyncio.wait(left)
            self._fault.cancel()

    # -- looking ------------------------------------------------------------------------------------------------------

    async def _passes(self) -> None:
        while True:
            self._news.clear()
            wait_ms: float = self._timings.reconcile_ms
            try:
                if self._given_up:
                    await self._outbox.resume(frozenset(self._under_way))
                    self._given_up = False
                unserved = self._time() >= self._all_at
                if unserved:
                    self._all_at = self._time() + self._timings.reconcile_ms * ALL_EVERY / 1000
                await self._pass(unserved)
                due = await self._outbox.due_in()
                wait_ms = wait_ms if due is None else min(wait_ms, max(due, 1))
            except TenureError as error:
                self._troubled(error)
                self._all_at = 0.0
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1000):
                    await self._news.wait()

    async def _pass(self, unserved: bool) -> None:
        """Look at everything that is to be brought to somebody, once."""
        after = -1
        in_a_row = 0
        self._had.clear()
        while page := await self._outbox.outgoing(after, PAGE, unserved=unserved):
            after = page[-1].update_id
            for update in page:
                if update.update_id in self._under_way:
                    continue
                try:
                    await self._route(update)
                    in_a_row = 0
                except TenureError as error:
                    in_a_row += 1
                    if in_a_row == SUSPECT:
                        raise
                    self._troubled(error)  # it may be this update: the others go on

    async def _route(self, update: Outgoing) -> None:
        place = address(update.body)
        whose = await self._whose(update, place)
        if whose is not None and whose.own:
            if await self._outbox.keep(update, OTHER if place is None else place.kind, whose.binding):
                self.counts.kept += 1
                self._on_kept()
        elif whose is not None and whose.route is not None and place is not None:
            if update.due or self._refusals[update.update_id] < SUSPECT:  # else those behind it go on without it
                self._queue(whose.binding, update, place)
        elif update.failure is None:  # one that waits goes on waiting
            await self._nobody(update)

    async def _whose(self, update: Outgoing, place: Address | None) -> Whose | None:
        fleet = self._fleet()
        if update.binding is not None:
            return fleet.serves(update.binding)
        if place is None:
            return Whose(fleet.own[0], own=True)
        if place.target is not None and (found := fleet.has(place.target)) is not None:
            return found
        if place.member != "message" or place.target is None:
            return fleet.whose(place, await self._outbox.remembered(place))
        if place.target not in self._had:  # a new message is known by its thread alone
            self._had[place.target] = await self._outbox.remembered(place)
        return fleet.whose(place, self._had[place.target])

    async def _nobody(self, update: Outgoing) -> None:
        self.counts.unserved += 1
        await self._outbox.unserved(update)

    # -- lanes --------------------------------------------------------------------------------------------------------

    def _queue(self, binding: str, update: Outgoing, place: Address) -> None:
        lane = self._lanes.setdefault(binding, Lane())
        if lane.until > self._time():
            return  # what comes before it has failed: they are looked at again together
        if len(lane.waiting) >= LANE:
            lane.more = True
        if lane.more:
            return
        self._under_way.add(update.update_id)
        lane.waiting.append((update, place))
        if not lane.runs:
            lane.runs = True
            self._task(self._drive(binding, lane))

    async def _drive(self, binding: str, lane: Lane) -> None:
        """One after the other. What is left when one has failed is looked at again when its time comes."""
        try:
            while lane.waiting and lane.until <= self._time():
                update, place = lane.waiting[0]
                began = self._time()
                outcome = await self._one(binding, update, place)
                self._under_way.discard(update.update_id)
                del lane.waiting[0]
                if outcome.delivered:
                    lane.failures = 0
                elif outcome.retry_ms is not None and self._refusals[update.update_id] < SUSPECT:
                    lane.failures += 1
                    lane.until = began + self._rest(lane.failures)
        except TenureError as error:
            self._troubled(error)
            self._given_up = True  # it is written down that it is sent
            lane.until = self._time() + self._timings.retry_first_ms / 1000
        finally:
            lane.runs = False
            if lane.more:
                lane.more = False
                self._news.set()
            self._under_way.difference_update(update.update_id for update, _ in lane.waiting)
            lane.waiting.clear()

    async def _one(self, binding: str, update: Outgoing, place: Address) -> Outcome:
        """One attempt, by the registration that serves the binding now."""
        whose = self._fleet().serves(binding)
        if whose.route is None:
            if update.failure is None:
                await self._nobody(update)
            return Outcome(delivered=False)
        asked = await self._outbox.forward(update, place.kind, binding)
        if asked is None:
            return Outcome(delivered=False)
        request = forward(
            place, update.update_id, asked.delivery, whose, request_id=self._request_id(), sent_at_ms=self._now_ms()
        )
        outcome = await self._settle(update, await self._send(request))
        if outcome.delivered:
            self.counts.forwarded += 1
            self.trouble = ""
            del self._refusals[update.update_id]
        else:
            self.counts.failures += 1
        return outcome

    def _rest(self, failures: int) -> float:
        """How long nothing is sent to a binding after so many failures in a row, in seconds."""
        first, last = self._timings.retry_first_ms, self._timings.retry_last_ms
        return min(last, first << min(failures - 1, 30)) / 1000

    async def _settle(self, update: Outgoing, ack: Ack | NoAck) -> Outcome:
        """The settlement classes of bus.md (c): what was answered, as the row's machine is told it."""
        if isinstance(ack, NoAck):
            self._note(ack.text)
            return await self._outbox.failed(update, "acknowledgement-missing" if ack.sent else "transport-failed")
        self._refusals[update.update_id] += 1
        if not ack.ok:
            self._note(said(ack))
            return await self._outbox.acknowledged(update, False, None, None)
        receipt = answers.receipt(ack)
        named = (None, None) if isinstance(receipt, Malformed) else receipt
        return await self._outbox.acknowledged(update, True, *named)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _task(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if self._fault is not None and not self._fault.done():
            self._fault.set_exception(error)

    def _time(self) -> float:
        return asyncio.get_running_loop().time()

    def _troubled(self, error: Exception) -> None:
        self.counts.troubles += 1
        self._note(in_words(error))

    def _note(self, text: str) -> None:
        self.trouble = text
        if self._ports is not None:
            tell(self._ports, "work", "forward", error=text)
