"""One process that does the work of a bot, together with others on the same directory: the one object of it.

    async def handler(item: Item) -> None:
        ...

    async with Workplace(agent_directory(DIR), source=source, handler=handler) as place:
        await place.join()
        await place.until_left()

It is a member of the fleet (`tenure.adapters.fleet.member`). Where it leads it polls the source, journals what comes,
and brings each update to the instance whose thread it is in; leading or not, it executes what is its own, one item
after the other, and hands over what belongs elsewhere. All processes of a profile share one journal, beside the owner
registry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final

import attrs

from tenure.adapters.awaiting import heard, to_its_end
from tenure.adapters.bus.messages.envelopes import Ack, Forward
from tenure.adapters.bus.messages.envelopes_handoff import FollowerOfferQueueHandoff, LeaderOfferQueueHandoff, Staged
from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory, registry_key, require_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.fleet.leader.requests import Route
from tenure.adapters.fleet.member import Member
from tenure.adapters.fleet.roles import Following, Leading, Left, MemberStatistics, Role, Seeking
from tenure.adapters.fleet.threads.provisioning import LocalProvisioning, Provisioning, ProvisionRequest
from tenure.adapters.handoff.handoff import Handoff
from tenure.adapters.handoff.journal import JournalHandoffs
from tenure.adapters.handoff.moving import MoveCounts
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.database import Databases
from tenure.adapters.journal.errors import JournalLost
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.liveness import process_name
from tenure.adapters.journal.threaded import ThreadedJournal
from tenure.adapters.ports import Ports, tell
from tenure.adapters.work.events import recorded
from tenure.adapters.work.forwarding import ForwardCounts
from tenure.adapters.work.intake import Intake, IntakeCounts
from tenure.adapters.work.items import Handler, Items
from tenure.adapters.work.journaling import JournalReceipts, patiently
from tenure.adapters.work.leading import LeadersWork
from tenure.adapters.work.polling import PollCounts
from tenure.adapters.work.remembering import remembering
from tenure.adapters.work.serving import Serving
from tenure.adapters.work.source import Source
from tenure.adapters.work.worker import WorkCounts, Worker
from tenure.machines.follower_messages import Target
from tenure.machines.receipt_messages import Party

_ENTER: Final = "enter the workplace first: async with Workplace(...) as place"


@attrs.frozen
class WorkplaceStatistics:
    """What a process has done since it entered. `trouble`: what failed last and is tried again, "" if nothing did."""

    member: MemberStatistics
    polled: PollCounts
    forwarded: ForwardCounts
    admitted: IntakeCounts
    worked: WorkCounts
    moved: MoveCounts
    held: int
    """Items that are taken and not begun."""
    trouble: str


class Workplace:
    """One process at work, once."""

    def __init__(
        self,
        directory: AgentDirectory,
        *,
        source: Source,
        handler: Handler,
        profile: str | None = None,
        name: str | None = None,
        cwd: str | None = None,
        provisioning: Provisioning | None = None,
        on_role: Callable[[Role], None] | None = None,
        on_available: Callable[[bool], None] | None = None,
        limits: Limits | None = None,
        databases: Databases | None = None,
        ports: Ports | None = None,
        timings: Timings = DEFAULT,
        process: ProcessState | None = None,
    ) -> None:
        """`source` is polled where this process leads, `handler` executes what is its own. `limits`: of the journal;
        every process of a directory should have the same. `databases`: where the journal is opened, for tests. The
        others are as for a `Member`. Raises TenureError for a profile that is none, and for a directory that is no
        `AgentDirectory`."""
        require_directory(directory)
        self.directory = directory
        self.ports = real_ports() if ports is None else ports
        self.timings = timings
        self.key = registry_key(profile)
        self.items = Items(self._ready)
        """What this process has taken and not begun."""
        self._profile = profile
        self._source = source
        self._handler = handler
        self._limits = attrs.evolve(Limits() if limits is None else limits, grace_ms=timings.grace_ms)
        self._databases = databases
        self._on_role = on_role
        self.member = Member(
            directory,
            profile=profile,
            name=name,
            cwd=cwd,
            run=self._lead,
            prepare=self._prepare,
            deliver=self._deliver,
            accept=self._accept,
            pass_on=self._pass_on,
            provisioning=remembering(
                LocalProvisioning(self.ports) if provisioning is None else provisioning, self._remember
            ),
            on_role=self._role,
            on_available=on_available,
            on_routes=self._rerouted,
            ports=self.ports,
            timings=timings,
            process=process,
        )
        identity = self.member.identity
        self.me = Party(identity.instance_id, process_name(identity.process), identity.session)
        """Who this process is in the journal."""
        self._polled, self._forwarded = PollCounts(), ForwardCounts()
        self._admitted, self._worked = IntakeCounts(), WorkCounts()
        self._open: ThreadedJournal | None = None
        self._receipts: JournalReceipts | None = None
        self._worker: Worker | None = None
        self._intake: Intake | None = None
        self._leading: LeadersWork | None = None
        self._handoff: Handoff | None = None
        self._working: asyncio.Task[None] | None = None
        self._moving: asyncio.Task[None] | None = None

    # -- verbs --------------------------------------------------------------------------------------------------------

    async def join(self) -> Role:
        """Join the fleet; see `Member.join`."""
        self._entered()
        return await self.member.join()

    async def until_left(self) -> None:
        """Wait until this process has left the fleet. Raises what has ended its work, if that was no leaving:
        `JournalLost` where its journal is another one's by now, or is gone."""
        self._entered()
        await self.member.until_left()
        if self.journal.lost is not None:
            raise self.journal.lost
        for task in (self._working, self._moving):
            if task is not None and task.done() and not task.cancelled():
                task.result()

    async def leave(self, *, goodbye: bool = False) -> str:
        """Leave the fleet; see `Member.leave`. Nothing is taken or begun any more, and what was not begun is given
        back; what runs goes on until this is exited."""
        self._finish()
        return await self.member.leave(goodbye=goodbye)

    @property
    def role(self) -> Role:
        """What this process is now."""
        return self.member.role

    @property
    def journal(self) -> ThreadedJournal:
        """The journal of this profile. Raises TenureError where this was not entered."""
        if self._open is None:
            raise TenureError(_ENTER)
        return self._open

    @property
    def trouble(self) -> str:
        """What failed last and is tried again; "" when nothing has since."""
        parts = (self._worker, self._leading)
        return next((part.trouble for part in parts if part is not None and part.trouble), "")

    def statistics(self) -> WorkplaceStatistics:
        """What this process has done so far; copies."""
        return WorkplaceStatistics(
            self.member.statistics(),
            attrs.evolve(self._polled),
            attrs.evolve(self._forwarded),
            attrs.evolve(self._admitted),
            attrs.evolve(self._worked),
            MoveCounts() if self._handoff is None else attrs.evolve(self._handoff.counts),
            len(self.items),
            self.trouble,
        )

    async def __aenter__(self) -> Workplace:
        """Open the journal and begin to serve. Raises `JournalError` where it cannot be opened, or holds another bot's
        work, and TenureError as a `Member` does; then nothing of it is left."""
        if self._open is not None:
            raise TenureError("a workplace is entered once; make a new one")
        ports, bot = self.ports, self._source.bot
        journal = self._open = await patiently(
            lambda: ThreadedJournal.open(
                lambda: Journal.open(
                    ports, self.directory, self.key, bot=bot, limits=self._limits, databases=self._databases
                )
            )
        )
        journal.on_lost = self._lost
        try:
            self._receipts = JournalReceipts(journal, self.me, lambda: self.member.epoch, self._refused)
            handler = recorded(self._handler, ports.recorder, self.member.identity)
            self._worker = Worker(self._receipts, self.items, handler, self.timings, ports=ports, counts=self._worked)
            self._intake = Intake(
                journal,
                self.me,
                binding=lambda: self.member.follower.profile_key,
                on_admitted=self._worker.signal,
                counts=self._admitted,
            )
            self._leading = LeadersWork(
                self.member,
                journal,
                self.me,
                self._source,
                own=self._own,
                on_kept=self._worker.signal,
                polled=self._polled,
                forwarded=self._forwarded,
            )
            self._handoff = Handoff(
                ports,
                self.timings,
                JournalHandoffs(journal, self.key, self.me),
                self.items,
                self.member.identity,
                party=lambda: self.me,
                serves=self._works,
            )
            self._handoff.bind(self.member.leader, self.member.follower)
            await self.member.__aenter__()
        except BaseException:
            await journal.close()
            raise
        self._working = asyncio.ensure_future(self._worker.run())
        self._moving = asyncio.ensure_future(self._handoff.run())
        for task in (self._working, self._moving):
            task.add_done_callback(self._stopped)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave, and end what is executed here: a handler that runs is cancelled and waited for, its item is then
        interrupted. A cancellation of the caller goes on when all of that has ended."""
        ending = asyncio.ensure_future(self._end())
        await to_its_end(ending)

    async def _end(self) -> None:
        journal = self._open
        await _ended(self._moving)  # what is being offered is withdrawn while the others can be told
        await self.member.__aexit__(None, None, None)
        if self._handoff is not None:
            await self._handoff.close()
        await _ended(self._working)
        if journal is not None:
            await journal.close()

    def _lost(self, error: JournalLost) -> None:
        """What is at its place is not this process's journal any more, and will not be again: it leaves, and with it
        goes the lease."""
        tell(self.ports, "work", "lost", error=str(error))
        leaving = asyncio.ensure_future(self.member.leave())
        heard(leaving)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        """The worker or the mover has ended. By itself it does so only for a fault: then this process leaves."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        tell(self.ports, "work", "fault", error=f"{type(error).__name__}: {error}")
        leaving = asyncio.ensure_future(self.member.leave())
        heard(leaving)

    # -- leading ------------------------------------------------------------------------------------------------------

    async def _prepare(self, epoch: int) -> None:
        await self._leads().prepare(epoch)

    async def _remember(self, target: Target, request: ProvisionRequest) -> None:
        await self._leads().remember(target, request)

    async def _lead(self, epoch: int) -> None:
        await self._leads().run(epoch)

    def _leads(self) -> LeadersWork:
        assert self._leading is not None, "nobody leads before the journal is open"
        return self._leading

    def _own(self) -> tuple[str, ...]:
        """The bindings that are this process's where it leads: the leader's, those that it served before, and the one
        under which it would be registered, which who was here before it may have left something for."""
        identity = self.member.identity
        served = [] if self._receipts is None else self._receipts.serving.served
        return tuple(dict.fromkeys((identity.leader_key(self._profile), *served, identity.profile_key(self._profile))))

    def _rerouted(self) -> None:
        if self._receipts is not None:
            self._receipts.serving.gone(route.entry.key for route in self.member.leader.routes())
        if self._leading is not None:
            self._leading.rerouted()
        if self._handoff is not None:
            self._handoff.signal()

    # -- news ---------------------------------------------------------------------------------------------------------

    def _role(self, role: Role) -> None:
        if self._receipts is not None:
            self._serves(role, self._receipts.serving)
        if self._on_role is not None:
            self._on_role(role)

    def _serves(self, role: Role, serving: Serving) -> None:
        match role:
            case Following():
                follower = self.member.follower
                under = role.epoch if isinstance(role.epoch, int) else None
                serving.follows(follower.profile_key, under, lambda: follower.statistics().heartbeats)
            case Leading():
                identity = self.member.identity
                own = (identity.profile_key(self._profile),)
                serving.leads(identity.leader_key(self._profile), role.epoch, own)
            case Left() | Seeking(phase="ended"):
                serving.ends()
                self._finish()
            case _:
                serving.ends()
        self._signal()

    async def _deliver(self, request: Forward) -> None:
        assert self._intake is not None, "nobody registers before the journal is open"
        await self._intake.deliver(request)

    async def _accept(self, offer: LeaderOfferQueueHandoff) -> Staged:
        assert self._handoff is not None, "nobody registers before the journal is open"
        return await self._handoff.accept(offer)

    async def _pass_on(self, offer: FollowerOfferQueueHandoff, donor: Route, left_ms: float) -> Ack:
        assert self._handoff is not None, "nobody leads before the journal is open"
        return await self._handoff.pass_on(offer, donor, left_ms)

    def _signal(self) -> None:
        if self._worker is not None:
            self._worker.signal()

    def _works(self) -> bool:
        """It executes what it takes."""
        return (
            self._working is not None and not self._working.done() and self._worker is not None and self._worker.serves
        )

    def _finish(self) -> None:
        if self._worker is not None:
            self._worker.finish()

    def _ready(self) -> None:
        if self._worker is not None:
            self._worker.ready()

    def _refused(self, receipt: str, why: str) -> None:
        tell(self.ports, "work", "refused", receipt=receipt, why=why)

    def _entered(self) -> None:
        if self._working is None:
            raise TenureError(_ENTER)


async def _ended(task: asyncio.Task[None] | None) -> None:
    """Cancel it, and wait until it has ended."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
