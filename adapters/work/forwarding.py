"""Brings each journaled update to the instance that it is for: the leader's half of durable admission (bus.md c, annex
D). It runs while this process leads.

    forwarder = Forwarder(outbox, fleet=..., send=..., timings=...)
    await forwarder.run()               # until it is cancelled

An update is bound to one binding before its first attempt and stays bound (the row's machine sees to it). What is for a
binding of this very process is delivered in the same transaction; everything else goes over the bus, in the lane of its
binding (`tenure.adapters.work.lanes`), and is over only with the receipt of exactly that delivery. What nobody is
registered for waits, and is looked at again when the routes change (L21).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final

from tenure.adapters.errors import TenureError, in_words
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Ports, tell
from tenure.adapters.work.lanes import ForwardCounts, Lanes, SendTo
from tenure.adapters.work.outbox import OTHER, Outbox, Outcome, Outgoing
from tenure.adapters.work.routing import Address, Fleet, Whose, address
from tenure.machines.follower_messages import Target

__all__ = ["SUSPECT", "ForwardCounts", "Forwarder"]

PAGE: Final = 100
"""So many updates are looked at at once."""
ALL_EVERY: Final = 60
"""In so many looks without news, one is at everything."""
SUSPECT: Final = 3
"""So many updates in a row of which the journal could do nothing: it is the journal that is the matter."""

_NOT_TAKEN: Final = "what is this process's own is not taken"


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
        """What failed last; "" when nothing has since."""
        self._failure = ""
        """The last failure of the journal, in words."""
        self._outbox = outbox
        self._fleet = fleet
        self._timings = timings
        self._on_kept = on_kept
        self._ports = ports
        self._news = asyncio.Event()
        self._all_at = 0.0
        """When those that nobody is registered for are looked at again: others may have released them."""
        self._lanes = Lanes(
            outbox,
            fleet=fleet,
            send=send,
            timings=timings,
            request_id=request_id,
            now_ms=now_ms,
            counts=self.counts,
            begin=self._task,
            on_room=self._news.set,
            on_trouble=self._gave_up,
            note=self._note,
        )
        self._had: dict[Target, str | None] = {}
        """Whose threads were that nobody has now, as this look has found out."""
        self._last: list[tuple[str, Outgoing, Address]] = []
        """Those that have lost their place, as this look has found them: they go after the others."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._fault: asyncio.Future[None] | None = None
        self._given_up = True
        """Something may be written down as being sent that is not: by whoever led before, or here."""

    @property
    def under_way(self) -> int:
        """How many updates are in some lane: all that is in memory."""
        return len(self._lanes.under_way)

    def signal(self) -> None:
        """Something was journaled."""
        self._news.set()

    def rerouted(self) -> None:
        """Somebody has registered, or has gone: everything is looked at again."""
        self._lanes.rerouted()
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
            failed = self.counts.troubles
            try:
                if self._given_up:
                    await self._outbox.resume(frozenset(self._lanes.under_way))
                    self._given_up = False
                unserved = self._time() >= self._all_at
                if unserved:
                    self._all_at = self._time() + self._timings.reconcile_ms * ALL_EVERY / 1000
                await self._pass(unserved)
                due = await self._outbox.due_in()
                wait_ms = wait_ms if due is None else min(wait_ms, max(due, 1))
                if self.counts.troubles == failed and self.trouble == self._failure:
                    self.trouble = ""
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
        self._last.clear()
        while page := await self._outbox.outgoing(after, PAGE, unserved=unserved):
            after = page[-1].update_id
            for update in page:
                if update.update_id in self._lanes.under_way:
                    continue
                try:
                    await self._route(update)
                    in_a_row = 0
                except TenureError as error:
                    in_a_row += 1
                    if in_a_row == SUSPECT:
                        raise
                    self._troubled(error)  # it may be this update: the others go on
        for last in self._last:
            self._lanes.queue(*last)

    async def _route(self, update: Outgoing) -> None:
        place = address(update.body)
        whose = await self._whose(update, place)
        if whose is not None and whose.own:
            self._kept(await self._outbox.keep(update, OTHER if place is None else place.kind, whose.binding))
        elif whose is not None and whose.route is not None and place is not None:
            if not update.aside:
                self._lanes.queue(whose.binding, update, place)
            elif update.due:
                self._last.append((whose.binding, update, place))
        elif update.failure is None:  # one that waits goes on waiting
            await self._lanes.nobody(update)

    def _kept(self, outcome: Outcome) -> None:
        if outcome.delivered:
            self.counts.kept += 1
            self._on_kept()
            if self.trouble.startswith(_NOT_TAKEN):
                self._note("")
        elif outcome.why and (text := f"{_NOT_TAKEN}: {outcome.why}") != self.trouble:
            self._note(text)  # of many, and again and again, it is told once

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

    def _gave_up(self, error: TenureError) -> None:
        self._troubled(error)
        self._given_up = True  # it is written down that it is sent

    def _troubled(self, error: Exception) -> None:
        self.counts.troubles += 1
        self._failure = in_words(error)
        self._note(self._failure)

    def _note(self, text: str) -> None:
        self.trouble = text
        if text and self._ports is not None:
            tell(self._ports, "work", "forward", error=text)
