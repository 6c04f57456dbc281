"""One process of a fleet: it leads or follows, registers again, defers, is promoted, and keeps its slot, thread and
name through all of it (locks.md 12, bus.md b).

    async with Member(agent_directory("/home/bot/agent"), run=poll, on_role=print) as member:
        await member.join()          # following pid 4711, epoch 7, slot B (Birch), ...  |  leading with epoch 8, ...
        await member.until_left()

Which of the two it is, and what comes next, is decided by the machine of `tenure.machines.succession`; this object
performs what it asks for and tells it what came of it. Everything runs on one event loop, file work in threads. Each
await of a caller may be cancelled: what the member is goes on without the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
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
from tenure.adapters.fleet.follower import Accepted, Deliver, Follower
from tenure.adapters.fleet.identity import own_identity
from tenure.adapters.fleet.leader import Leader
from tenure.adapters.fleet.member_counts import Counts
from tenure.adapters.fleet.provisioning import LocalProvisioning, Provisioning
from tenure.adapters.fleet.roles import Following, Leading, Left, MemberStatistics, Role, Seeking
from tenure.adapters.fleet.watch import RegistryWatch, Seen
from tenure.adapters.fleet.work import FleetWork, Run
from tenure.adapters.ports import Ports, tell
from tenure.adapters.runtime.aio import AsyncLeadership
from tenure.adapters.runtime.outcomes import Elected, Failed, Lost, Outcome, Refused, Retired
from tenure.machines import succession_messages as own
from tenure.machines.chart import Step, step
from tenure.machines.follower_messages import Binding
from tenure.machines.identity import Owner
from tenure.machines.succession import SUCCESSION

V = TypeVar("V")

_AVAILABLE: Final = ("following", "leading")


class Member:
    """A member of the fleet of one directory and profile. `phase` and `data` are those of the succession machine."""

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
            on_change=self._heartbeat_told,
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
        self.phase = SUCCESSION.initial
        self.data = own.Memory(session=self.identity.session)
        self.counts = Counts()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._jobs: set[asyncio.Task[None]] = set()
        self._call: asyncio.Task[None] | None = None
        """The registration or election that is under way, or the last one."""
        self._timer: asyncio.TimerHandle | None = None
        self._moving: Binding | None = None
        """What a promotion takes to the leader's profile."""
        self._error = ""
        self._role: Role = Seeking(self.phase)
        self._changed = asyncio.Event()
        self._closing: asyncio.Future[None] | None = None

    # -- verbs --------------------------------------------------------------------------------------------------------

    async def join(self) -> Role:
        """Join the fleet, and answer the first role: with a live leader `Following`, else `Leading` or, where another
        was quicker, `Following` it. Cancelled, the member goes on joining; `leave` ends that."""
        if self.phase == "idle":
            seen = await self._watch.look()
            self._tell(own.Join(seen.look))
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
        self._tell(own.SessionChanged(session))

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
        return self.counts.statistics(self.phase, self.available, self._watch.looks)

    async def __aenter__(self) -> Member:
        self._loop = asyncio.get_running_loop()
        self._work.bind(self._loop)
        await self._leadership.__aenter__()
        self._job(self._look_on())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave, without a goodbye, whatever happens to the caller meanwhile."""
        await self._close()

    # -- the machine --------------------------------------------------------------------------------------------------

    def _tell(self, message: own.Happening) -> bool:
        """Tell the machine, and perform what it asks for. Whether it took it."""
        before = self.phase
        answer = step(SUCCESSION, self.phase, self.data, message)
        if not isinstance(answer, Step):
            return False
        self.phase, self.data = answer.phase, answer.data
        if before != self.phase:
            self._disarm()
        self.counts.note(before, message, self.phase)
        for output in answer.outputs:
            self._perform(output)
        self._announce()
        return True

    def _perform(self, output: own.Output) -> None:
        match output:
            case own.Register():
                self._begin(self._register(output))
            case own.Elect():
                self._begin(self._elect(output))
            case own.MoveBinding():
                self._moving = output.binding
            case own.RestoreBinding():
                self._moving = None
            case "leave":
                if self._call is not None:
                    self._call.cancel()
                self.follower.leave()
            case "wait":
                self._arm()
            case "resign":
                if self._call is not None:
                    self._call.cancel()
                self._job(self._resign())

    def _arm(self) -> None:
        self._disarm()
        assert self._loop is not None
        self._timer = self._loop.call_later(self.timings.grace_ms / 1000, lambda: self._job(self._time_up()))

    def _disarm(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    async def _time_up(self) -> None:
        timer, phase = self._timer, self.phase
        seen = await self._watch.look()
        if timer is self._timer and phase == self.phase:
            self._tell(own.TimeUp(seen.look))

    # -- calls --------------------------------------------------------------------------------------------------------

    def _begin(self, call: Coroutine[object, object, None]) -> None:
        """Begin a call when the last one, which may have been given up, has come to its end."""
        before = self._call

        async def after() -> None:
            try:
                if before is not None:
                    await asyncio.wait([before])
            except asyncio.CancelledError:
                call.close()
                raise
            await call

        self._call = self._job(after())

    async def _register(self, output: own.Register) -> None:
        entry = self._watch.entries[output.leader]
        try:
            answer = await self.follower.register(entry, output.binding)
        except TenureError as error:
            self._error = str(error)
        else:
            if isinstance(answer, Accepted):
                self._error = ""
                self._tell(own.Registered(output.leader, answer.binding))
                self._heartbeat_told()
                return
            self._error = answer.text
        self._tell(own.RegisterFailed(output.leader))

    async def _elect(self, output: own.Elect) -> None:
        observed: Owner | None = None if output.observed == 0 else self._watch.entries[output.observed].owner
        outcome = await self._leadership.elect(observed)
        if isinstance(outcome, Elected):
            self._error = ""
            self._tell(own.Started())
        elif isinstance(outcome, Refused):
            self._tell(own.Denied())
        else:
            self._error = str(outcome)
            self._tell(own.ElectFailed())

    async def _resign(self) -> None:
        await self._leadership.release()

    async def _opens(self, epoch: int) -> None:
        """The lease is won: what has to be there before the work."""
        saw = await asyncio.get_running_loop().run_in_executor(None, self.lease.check)
        if not self._tell(own.Won(saw == "mine")):
            raise TenureError(f"election with epoch {epoch}: this member does not stand for it any more")
        await self.leader.open(epoch, self._moving)

    async def _closes(self) -> None:
        await self.leader.close()

    # -- news ---------------------------------------------------------------------------------------------------------

    async def _look_on(self) -> None:
        while self.phase != "ended":
            seen = await self._watch.news()
            if self.phase not in ("idle", "electing", "starting", "leading", "ended"):
                if seen.problem:
                    self._error = seen.problem
                self._tell(own.Saw(seen.look))

    def _lost(self, binding: Binding, why: str) -> None:
        self._error = why
        self._job(self._look_after_loss())

    async def _look_after_loss(self) -> None:
        seen: Seen = await self._watch.look()
        self._tell(own.Lost(seen.look))

    def _heartbeat_told(self) -> None:
        self._tell(own.Heard(self.follower.roster, self.follower.binding))

    def _heard_of(self, outcome: Outcome) -> None:
        """Leading came to an end without being asked to."""
        if isinstance(outcome, Lost | Failed | Retired) and self.phase == "leading":
            self._error = str(outcome)
        if not isinstance(outcome, Elected):
            self._tell(own.Deposed())

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
            self.counts.callback_errors += 1
            tell(self.ports, "fleet", "callback", error=f"{type(error).__name__}: {error}")

    def _now(self) -> Role:
        binding = self.data.binding
        match self.phase:
            case "leading":
                bound = self.leader.binding or binding
                return Leading(self.lease.epoch or 0, bound.slot, bound.name)
            case "following":
                entry = self._watch.entries[self.data.leader]
                generation = self.follower.generation
                return Following(entry.pid, entry.leader_epoch, generation, binding.slot, binding.name)
            case "ended":
                return Left()
            case phase:
                return Seeking(phase, self._error)

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

    async def _end(self) -> None:
        self._tell(own.Stop())
        await self._leadership.__aexit__(None, None, None)
        await self.follower.stop()
        await self.leader.close()
        for job in list(self._jobs):
            job.cancel()
        if self._jobs:
            await asyncio.wait(list(self._jobs))
        self._watch.close()

    def _job(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._jobs.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._jobs.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A fault of this program: it is said, and the member goes on.
            tell(self.ports, "fleet", "fault", error=f"{type(error).__name__}: {error}")
