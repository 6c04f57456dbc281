"""One process of a fleet: it leads or follows, registers again, defers, is promoted, and keeps its slot, thread and
name through all of it (locks.md 12, bus.md b).

    async with Member(agent_directory("/home/bot/agent"), run=poll, on_role=print) as member:
        await member.join()          # following pid 4711, epoch 7, slot B (Birch), ...  |  leading with epoch 8, ...
        await member.until_left()

Which of the two it is, and what comes next, is decided by the machine of `tenure.machines.succession`, which `course`
drives. Everything runs on one event loop, file work in threads. Each
await of a caller may be cancelled: what the member is goes on without the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final, TypeVar

from tenure.adapters.bus.endpoint_paths import endpoint_path, leader_path
from tenure.adapters.bus.identities import new_secret
from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory, registry_key
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.fleet.course import Course
from tenure.adapters.fleet.follower import Deliver, Follower
from tenure.adapters.fleet.identity import own_identity
from tenure.adapters.fleet.leader import Leader
from tenure.adapters.fleet.moves import MemberMoves
from tenure.adapters.fleet.provisioning import LocalProvisioning, Provisioning
from tenure.adapters.fleet.roles import Following, Leading, Left, MemberStatistics, Role, Seeking
from tenure.adapters.fleet.watch import RegistryWatch
from tenure.adapters.fleet.work import FleetWork, Run
from tenure.adapters.ports import Ports, tell
from tenure.adapters.runtime.aio import AsyncLeadership
from tenure.adapters.runtime.outcomes import Elected, Failed, Lost, Outcome, Retired
from tenure.machines.follower_messages import Binding

V = TypeVar("V")

_AVAILABLE: Final = ("following", "leading")


class Member:
    """A member of the fleet of one directory and profile."""

    def __init__(
        self,
        directory: AgentDirectory,
        *,
        profile: str | None = None,
        name: str | None = None,
        cwd: str | None = None,
        run: Run | None = None,
        deliver: Deliver | None = None,
        provisioning: Provisioning | None = None,
        on_role: Callable[[Role], None] | None = None,
        on_available: Callable[[bool], None] | None = None,
        ports: Ports | None = None,
        timings: Timings = DEFAULT,
        process: ProcessState | None = None,
    ) -> None:
        """`run(epoch)` is a coroutine that runs only while this process leads. `deliver` takes the work that the leader
        sends to this process as a follower; without it such work is refused. `provisioning` gives slots, threads and
        names where this process leads; local ones if not given. `on_role` is told of each change of `role`,
        `on_available` of each beginning (True) and end (False) of leading or following; their exceptions are noted and
        change nothing. Raises TenureError for a profile that is none."""
        self.ports = real_ports() if ports is None else ports
        self.directory = directory
        self.timings = timings
        self._on_role = on_role
        self._on_available = on_available
        key = registry_key(profile)
        secret = new_secret(self.ports.identities)
        self.lease = LeaseRuntime(
            self.ports,
            directory,
            key,
            cwd=cwd,
            timings=timings,
            process=process,
            bus_socket_path=endpoint_path(leader_path(directory, key)),
            bus_secret=secret,
        )
        self.identity = own_identity(
            self.ports.processes, self.lease.data.me.instance_id or "", cwd=cwd or directory.root, name=name
        )
        self._work = FleetWork(self._opens, self._closes, run)
        self._leadership = AsyncLeadership(self.lease, work=self._work, on_outcome=self._heard_of, process=process)
        self.follower = Follower(
            self.ports,
            directory,
            profile,
            self.identity,
            timings,
            on_lost=self._lost,
            deliver=deliver,
            on_change=self._follower_changed,
        )
        self.leader = Leader(
            self.ports,
            directory,
            profile,
            self.identity,
            timings,
            provisioning=provisioning if provisioning is not None else LocalProvisioning(self.ports),
            commit=self._leadership.commit_if_owned,
            epoch=self._leadership.may_send,
            secret=secret,
            on_change=self._announce,
        )
        self._watch = RegistryWatch(self.lease)
        self.course = Course(
            MemberMoves(self._watch, self.follower, self._leadership),
            self.identity.session,
            after_grace=self._after_grace,
            on_step=self._announce,
            on_fault=self._fault,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._role: Role = Seeking("idle")
        self._changed = asyncio.Event()
        self._closing: asyncio.Future[None] | None = None

    # -- verbs --------------------------------------------------------------------------------------------------------

    async def join(self) -> Role:
        """Join the fleet, and answer the first role: with a live leader `Following`, else `Leading` or, where another
        was quicker, `Following` it. Cancelled, the member goes on joining; `leave` ends that."""
        await self.course.join()
        return await self._until(lambda: isinstance(self._role, Leading | Following | Left))

    async def until_left(self) -> None:
        """Wait until this member has left."""
        await self._until(lambda: isinstance(self._role, Left))

    async def leave(self, *, goodbye: bool = False) -> str:
        """Leave the fleet: give the lease up, or the registration. With `goodbye` a follower first says so to its
        leader, which takes its thread away and frees its slot; without, the leader finds out, and slot and name are
        kept for this terminal. Answers why a goodbye was not confirmed, "" when all is well. Not cancelled by the
        cancellation of the caller."""
        why = ""
        if goodbye and self.phase == "following":
            answer = await self.follower.disconnect()
            why = answer if isinstance(answer, str) else ""
        await self._close()
        return why

    def serve_session(self, session: int) -> None:
        """The session of the host was replaced inside this process: `session` is served from now on, 0 for none. A
        registration under way is begun again for it; a registration that is held is kept (bus.md b, row 13)."""
        if session != 0:
            self.follower.set_session(session)
        self.course.serve_session(session)

    @property
    def phase(self) -> str:
        """That of the succession machine."""
        return self.course.phase

    @property
    def role(self) -> Role:
        """What this process is now."""
        return self._role

    @property
    def available(self) -> bool:
        """It leads or follows."""
        return self.phase in _AVAILABLE

    @property
    def epoch(self) -> int | None:
        """The fencing token, where it leads and its lease holds by its own clock; None otherwise. Reads no file."""
        return self._leadership.may_send() if self.phase == "leading" else None

    def statistics(self) -> MemberStatistics:
        """What this member has done so far."""
        return self.course.counts.statistics(self.phase, self.available, self._watch.looks)

    async def __aenter__(self) -> Member:
        self._loop = asyncio.get_running_loop()
        self._work.bind(self._loop)
        await self._leadership.__aenter__()
        self.course.job(self._look_on())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave, without a goodbye, whatever happens to the caller meanwhile."""
        await self._close()

    # -- leading ------------------------------------------------------------------------------------------------------

    async def _opens(self, epoch: int) -> None:
        """The lease is won: what has to be there before the work."""
        saw = await asyncio.get_running_loop().run_in_executor(None, self.lease.check)
        if not self.course.won(owned=saw == "mine"):
            raise TenureError(f"election with epoch {epoch}: this member does not stand for it any more")
        await self.leader.open(epoch, self.course.moving)

    async def _closes(self) -> None:
        await self.leader.close()

    # -- news ---------------------------------------------------------------------------------------------------------

    async def _look_on(self) -> None:
        while self.phase != "ended":
            seen = await self._watch.news()
            if self.phase not in ("idle", "electing", "starting", "leading", "ended"):
                self.course.saw(seen.look, seen.problem)

    def _lost(self, binding: Binding, why: str) -> None:
        self.course.lost(why)

    def _follower_changed(self) -> None:
        self.course.heard(self.follower.roster, self.follower.binding)

    def _heard_of(self, outcome: Outcome) -> None:
        """Leading came to an end without being asked to."""
        if not isinstance(outcome, Elected):
            self.course.deposed(str(outcome) if isinstance(outcome, Lost | Failed | Retired) else "")

    # -- telling others -----------------------------------------------------------------------------------------------

    def _announce(self) -> None:
        role = self._now()
        if role == self._role:
            return
        was = isinstance(self._role, Leading | Following)
        self._role = role
        self._changed.set()
        self._changed = asyncio.Event()
        self._call_back(self._on_role, role)
        available = isinstance(role, Leading | Following)
        if available != was:
            self._call_back(self._on_available, available)

    def _call_back(self, callback: Callable[[V], None] | None, value: V) -> None:
        try:
            if callback is not None:
                callback(value)
        except Exception as error:
            self.course.counts.callback_errors += 1
            tell(self.ports, "fleet", "callback", error=f"{type(error).__name__}: {error}")

    def _now(self) -> Role:
        binding = self.course.data.binding
        match self.phase:
            case "leading":
                bound = self.leader.binding or binding
                return Leading(self.lease.epoch or 0, bound.slot, bound.name)
            case "following":
                entry = self._watch.entries[self.course.data.leader]
                generation = self.follower.generation
                return Following(entry.pid, entry.leader_epoch, generation, binding.slot, binding.name)
            case "ended":
                return Left()
            case phase:
                return Seeking(phase, self.course.error)

    async def _until(self, true: Callable[[], bool]) -> Role:
        while not true():
            await self._changed.wait()
        return self._role

    # -- the end ------------------------------------------------------------------------------------------------------

    async def _close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._end())
        closing = self._closing
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await asyncio.wait([closing])
            raise

    def _after_grace(self, then: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self.timings.grace_ms / 1000, then)

    async def _end(self) -> None:
        self.course.stop()
        await self._leadership.__aexit__(None, None, None)
        await self.follower.stop()
        await self.leader.close()
        await self.course.close()
        self._watch.close()

    def _fault(self, error: BaseException) -> None:
        tell(self.ports, "fleet", "fault", error=f"{type(error).__name__}: {error}")
