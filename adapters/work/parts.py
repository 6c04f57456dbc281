"""What works in one process on its open journal: each part made, and told what this process is now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import attrs

from tenure.adapters.fleet.member import Member
from tenure.adapters.fleet.roles import Following, Leading, Left, Role, Seeking
from tenure.adapters.handoff.handoff import Handoff
from tenure.adapters.handoff.journal import JournalHandoffs
from tenure.adapters.journal.threaded import ThreadedJournal
from tenure.adapters.ports import tell
from tenure.adapters.work.forwarding import ForwardCounts
from tenure.adapters.work.intake import Intake, IntakeCounts
from tenure.adapters.work.items import Handler, Items
from tenure.adapters.work.journaling import JournalReceipts
from tenure.adapters.work.leading import LeadersWork
from tenure.adapters.work.polling import PollCounts
from tenure.adapters.work.source import Source
from tenure.adapters.work.worker import WorkCounts, Worker
from tenure.machines.receipt_messages import Party


@attrs.frozen
class Counts:
    """What each part counts."""

    polled: PollCounts = attrs.field(factory=PollCounts)
    forwarded: ForwardCounts = attrs.field(factory=ForwardCounts)
    admitted: IntakeCounts = attrs.field(factory=IntakeCounts)
    worked: WorkCounts = attrs.field(factory=WorkCounts)


class Parts:
    """Those of one process. Made before it enters the fleet, started when it has."""

    def __init__(
        self,
        member: Member,
        journal: ThreadedJournal,
        me: Party,
        items: Items,
        source: Source,
        handler: Handler,
        *,
        profile: str | None,
        counts: Counts,
    ) -> None:
        ports, timings = member.ports, member.timings
        self.receipts = JournalReceipts(journal, me, lambda: member.epoch, self._refused)
        self.worker = Worker(self.receipts, items, handler, timings, ports=ports, counts=counts.worked)
        self.intake = Intake(
            journal,
            me,
            binding=lambda: member.follower.profile_key,
            on_admitted=self.worker.signal,
            counts=counts.admitted,
        )
        self.leading = LeadersWork(
            member,
            journal,
            me,
            source,
            own=self.own,
            on_kept=self.worker.signal,
            polled=counts.polled,
            forwarded=counts.forwarded,
        )
        self.handoff = Handoff(
            ports,
            timings,
            JournalHandoffs(journal, member.lease.key, me),
            items,
            member.identity,
            party=lambda: me,
            serves=self._serves,
        )
        self.handoff.bind(member.leader, member.follower)
        self._member = member
        self._profile = profile
        self._working: asyncio.Task[None] | None = None
        self._moving: asyncio.Task[None] | None = None

    # -- as long as it lives ------------------------------------------------------------------------------------------

    def start(self, on_end: Callable[[asyncio.Task[None]], None]) -> None:
        """The worker works, and items move, until `withdraw` and `end`. `on_end` is told of a task that has ended."""
        self._working = asyncio.ensure_future(self.worker.run())
        self._moving = asyncio.ensure_future(self.handoff.run())
        for task in (self._working, self._moving):
            task.add_done_callback(on_end)

    async def withdraw(self) -> None:
        """What is being offered stays here, and nothing moves any more."""
        await _ended(self._moving)

    async def end(self) -> None:
        """Nothing is executed here any more: what runs is cancelled and waited for, the rest is given back."""
        await self.handoff.close()
        await _ended(self._working)

    def blame(self) -> None:
        """Raise what has ended a task, if that was no cancellation."""
        for task in (self._working, self._moving):
            if task is not None and task.done():
                with suppress(asyncio.CancelledError):
                    task.result()

    @property
    def trouble(self) -> str:
        """What failed last and is tried again; "" when nothing has since."""
        return self.worker.trouble or self.leading.trouble

    def _serves(self) -> bool:
        return self._working is not None and not self._working.done() and self.worker.serves

    # -- what this process is -----------------------------------------------------------------------------------------

    def becomes(self, role: Role) -> None:
        """Its role has changed: which bindings are its own by that, and whether it takes anything."""
        serving, identity = self.receipts.serving, self._member.identity
        match role:
            case Following():
                follower = self._member.follower
                under = role.epoch if isinstance(role.epoch, int) else None
                serving.follows(follower.profile_key, under, lambda: follower.statistics().heartbeats)
            case Leading():
                own = (identity.profile_key(self._profile),)
                serving.leads(identity.leader_key(self._profile), role.epoch, own)
            case Left() | Seeking(phase="ended"):
                self.worker.finish()  # and with it all bindings are left
            case _:
                serving.ends()
        self.worker.signal()

    def own(self) -> tuple[str, ...]:
        """The bindings that are this process's where it leads: the leader's, those that it served before, and the one
        under which it would be registered, which who was here before it may have left something for."""
        identity, served = self._member.identity, self.receipts.serving.served
        return tuple(dict.fromkeys((identity.leader_key(self._profile), *served, identity.profile_key(self._profile))))

    def rerouted(self) -> None:
        """Where it leads: somebody has registered, or has gone."""
        self.receipts.serving.gone(route.entry.key for route in self._member.leader.routes())
        self.leading.rerouted()
        self.handoff.signal()

    def _refused(self, receipt: str, why: str) -> None:
        tell(self._member.ports, "work", "refused", receipt=receipt, why=why)


async def _ended(task: asyncio.Task[None] | None) -> None:
    """Cancel it, and wait until it has ended."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
