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
from tenure.adapters.fleet.roles import MemberStatistics, Role
from tenure.adapters.fleet.threads.provisioning import LocalProvisioning, Provisioning, ProvisionRequest
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
from tenure.adapters.work.intake import IntakeCounts
from tenure.adapters.work.items import Handler, Items
from tenure.adapters.work.journaling import patiently
from tenure.adapters.work.parts import Counts, Parts
from tenure.adapters.work.polling import PollCounts
from tenure.adapters.work.remembering import remembering
from tenure.adapters.work.source import Source
from tenure.adapters.work.worker import WorkCounts
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
        self._counts = Counts()
        self._open: ThreadedJournal | None = None
        self._parts: Parts | None = None

    # -- verbs --------------------------------------------------------------------------------------------------------

    async def join(self) -> Role:
        """Join the fleet; see `Member.join`."""
        self._entered()
        return await self.member.join()

    async def until_left(self) -> None:
        """Wait until this process has left the fleet. Raises what has ended its work, if that was no leaving:
        `JournalLost` where its journal is another one's by now, or is gone."""
        parts = self._entered()
        await self.member.until_left()
        if self.journal.lost is not None:
            raise self.journal.lost
        parts.blame()

    async def leave(self, *, goodbye: bool = False) -> str:
        """Leave the fleet; see `Member.leave`. Nothing is taken or begun any more, and what was not begun is given
        back; what runs goes on until this is exited."""
        if self._parts is not None:
            self._parts.worker.finish()
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
        return "" if self._parts is None else self._parts.trouble

    def statistics(self) -> WorkplaceStatistics:
        """What this process has done so far; copies."""
        counts = self._counts
        return WorkplaceStatistics(
            self.member.statistics(),
            attrs.evolve(counts.polled),
            attrs.evolve(counts.forwarded),
            attrs.evolve(counts.admitted),
            attrs.evolve(counts.worked),
            MoveCounts() if self._parts is None else attrs.evolve(self._parts.handoff.counts),
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
            self._parts = Parts(
                self.member,
                journal,
                self.me,
                self.items,
                self._source,
                recorded(self._handler, ports.recorder, self.member.identity),
                profile=self._profile,
                counts=self._counts,
            )
            await self.member.__aenter__()
        except BaseException:
            self._parts = None
            await journal.close()
            raise
        self._parts.start(self._stopped)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave, and end what is executed here: a handler that runs is cancelled and waited for, its item is then
        interrupted. A cancellation of the caller goes on when all of that has ended."""
        ending = asyncio.ensure_future(self._end())
        await to_its_end(ending)

    async def _end(self) -> None:
        journal, parts = self._open, self._parts
        if parts is not None:
            await parts.withdraw()  # while the others can be told
        await self.member.__aexit__(None, None, None)
        if parts is not None:
            await parts.end()
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

    # -- what the member asks for -------------------------------------------------------------------------------------

    async def _prepare(self, epoch: int) -> None:
        await self._working.leading.prepare(epoch)

    async def _remember(self, target: Target, request: ProvisionRequest) -> None:
        await self._working.leading.remember(target, request)

    async def _lead(self, epoch: int) -> None:
        await self._working.leading.run(epoch)

    async def _deliver(self, request: Forward) -> None:
        await self._working.intake.deliver(request)

    async def _accept(self, offer: LeaderOfferQueueHandoff) -> Staged:
        return await self._working.handoff.accept(offer)

    async def _pass_on(self, offer: FollowerOfferQueueHandoff, donor: Route, left_ms: float) -> Ack:
        return await self._working.handoff.pass_on(offer, donor, left_ms)

    @property
    def _working(self) -> Parts:
        assert self._parts is not None, "nobody leads, or registers, before the journal is open"
        return self._parts

    # -- news ---------------------------------------------------------------------------------------------------------

    def _role(self, role: Role) -> None:
        if self._parts is not None:
            self._parts.becomes(role)
        if self._on_role is not None:
            self._on_role(role)

    def _rerouted(self) -> None:
        if self._parts is not None:
            self._parts.rerouted()

    def _ready(self) -> None:
        if self._parts is not None:
            self._parts.worker.ready()

    def _entered(self) -> Parts:
        if self._parts is None:
            raise TenureError(_ENTER)
        return self._parts
