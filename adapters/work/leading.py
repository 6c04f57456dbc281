"""What a process does with everybody's updates while it leads: it polls them, and brings each to whose it is.

An update whose instance is not registered waits for it (L21). Where that can never be, since its key is that of one
process, or of the children of one, and all of these are proven dead, the leader delivers the update to that binding
itself, and takes what is left there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress

from tenure.adapters.awaiting import to_its_end
from tenure.adapters.bus.messages.envelopes import Ack, Forward
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.asking import NoAck
from tenure.adapters.fleet.identities import RequestIds, only_process
from tenure.adapters.fleet.member import Member
from tenure.adapters.fleet.threads.provisioning import ProvisionRequest
from tenure.adapters.journal.ownership import About
from tenure.adapters.journal.threaded import ThreadedJournal
from tenure.adapters.work.forwarding import ForwardCounts, Forwarder
from tenure.adapters.work.journaling import JournalInbox, JournalOutbox, in_words, patiently
from tenure.adapters.work.polling import PollCounts, Poller
from tenure.adapters.work.routing import Fleet, thread_of
from tenure.adapters.work.source import Source
from tenure.machines.chart import Refused
from tenure.machines.follower_messages import Target
from tenure.machines.receipt_messages import Party


class LeadersWork:
    """That of one process, whenever it leads."""

    def __init__(
        self,
        member: Member,
        journal: ThreadedJournal,
        me: Party,
        source: Source,
        *,
        own: Callable[[], tuple[str, ...]],
        on_kept: Callable[[], None],
        polled: PollCounts,
        forwarded: ForwardCounts,
    ) -> None:
        """`own`: the bindings that are this process's where it leads, the leader's first. `on_kept` is told when one of
        them has something to do."""
        self._member = member
        self._journal = journal
        self._me = me
        self._source = source
        self._own = own
        self._on_kept = on_kept
        self._polled = polled
        self._forwarded = forwarded
        self._requests = RequestIds(f"{me.instance}:work")
        self._poller: Poller | None = None
        self._forwarder: Forwarder | None = None
        self._abandoned: frozenset[str] = frozenset()
        """Bindings that nobody will ever serve again."""

    @property
    def trouble(self) -> str:
        """What failed last and is tried again; "" when nothing has since."""
        parts = (self._poller, self._forwarder)
        return next((part.trouble for part in parts if part is not None and part.trouble), "")

    async def prepare(self, epoch: int) -> None:
        """The lease is won: from here on the journal refuses what leaders before this one decide. Raises TenureError
        where it refuses this one: it has seen a higher epoch, so the mark of epochs was lost. The next is above it."""
        raised = await patiently(lambda: self._journal.call(lambda j: j.raise_fence(epoch, self._me.instance)))
        if not isinstance(raised, Refused):
            return
        fence = (await patiently(lambda: self._journal.call(lambda j: j.state()))).fence
        await self._member.pass_over(fence)
        raise TenureError(
            f"{self._journal.path}: epoch {epoch} is not led with: {in_words(raised)}; the next is above {fence}, "
            "which was given out before"
        )

    async def remember(self, target: Target, request: ProvisionRequest) -> None:
        """That thread is the binding's; told before anybody else is. Of a key that only one process can have, one of
        ours, it is written down which one that is: if it dies before it serves, nobody waits for it."""
        only, here = only_process(request.key), self._me.process.partition("@")[2]
        expected = None if only is None else Party(request.instance, f"{only}@{here}")
        await self._journal.call(lambda j: j.remember(About(thread_of(target)), request.key, expected))

    async def run(self, epoch: int) -> None:
        """Poll and forward, until it is cancelled or one of both ends."""
        ports = self._member.ports
        self._forwarder = Forwarder(
            JournalOutbox(self._journal, self._me, epoch, ports.clock.wall_ms),
            fleet=self._fleet,
            send=self._send,
            timings=self._member.timings,
            request_id=self._requests.next,
            now_ms=ports.clock.wall_ms,
            on_kept=self._on_kept,
            counts=self._forwarded,
            ports=ports,
        )
        self._poller = Poller(
            self._source,
            JournalInbox(self._journal, self._me, epoch),
            leads=lambda: self._member.owns(epoch),
            on_journaled=self._forwarder.signal,
            counts=self._polled,
            ports=ports,
        )
        try:
            await _first_to_end(self._poller.run(), self._forwarder.run(), self._looks())
        finally:
            self._poller = self._forwarder = None

    async def _looks(self) -> None:
        """See which bindings nobody will ever serve again."""
        while True:
            with suppress(TenureError):  # it is asked again
                found = frozenset(await self._journal.call(lambda j: j.abandoned()))
                fresh, self._abandoned = found - self._abandoned, found
                if fresh:
                    self.rerouted()
            await asyncio.sleep(self._member.timings.reconcile_ms / 1000)

    def rerouted(self) -> None:
        """Somebody has registered, or has gone."""
        if self._forwarder is not None:
            self._forwarder.rerouted()

    def _fleet(self) -> Fleet:
        leader = self._member.leader
        binding = leader.binding
        own = (*self._own(), *self._abandoned)
        return Fleet(leader.routes(), None if binding is None else binding.target, own)

    async def _send(self, request: Forward) -> Ack | NoAck:
        return await self._member.leader.attempt(
            request.recipient_instance_id, request.recipient_registration_generation, request
        )


async def _first_to_end(*works: Coroutine[object, object, None]) -> None:
    """Run them together until one of them ends, or this is cancelled; then none of them runs any more."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = asyncio.ensure_future(asyncio.wait(tasks))
        await to_its_end(ended)
    for task in tasks:
        if not task.cancelled():
            task.result()
