"""One process of a fleet: it leads or follows, registers again, defers, is promoted, and keeps its slot, thread and
name through all of it (locks.md 12, bus.md b).

    async with Member(agent_directory("/home/bot/agent"), run=poll, on_role=print) as member:
        await member.join()          # following pid 4711, epoch 7, slot B (Beech), ...  |  leading with epoch 8, ...
        await member.until_left()

Which of the two it is, and what comes next, is decided by the machine of `tenure.machines.succession`, which `course`
drives. Everything runs on one event loop, file work in threads. Each await of a caller may be cancelled: what the
member is goes on without the caller.

A loop that is blocked keeps the lease all the same, since threads renew it, and its followers wait: what takes long
belongs into a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final

from tenure.adapters.awaiting import heard, to_its_end
from tenure.adapters.bus.endpoints.paths import endpoint_path, leader_path
from tenure.adapters.errors import TenureError, in_words
from tenure.adapters.files.directory import AgentDirectory, registry_key, require_directory
from tenure.adapters.files.high_water import raise_mark, read_mark
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime, NotOwner
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.fleet.follower.follower import Accept, Deliver, Follower
from tenure.adapters.fleet.identities import new_secret
from tenure.adapters.fleet.identity import own_identity
from tenure.adapters.fleet.leader.leader import Leader
from tenure.adapters.fleet.leader.requests import Authorise, PassOn, Serve, nobody_is_barred
from tenure.adapters.fleet.residents import settle_in, settle_out
from tenure.adapters.fleet.roles import Following, Leading, Left, MemberStatistics, Role, Seeking
from tenure.adapters.fleet.succession.course import Course
from tenure.adapters.fleet.succession.events import SuccessionEvents
from tenure.adapters.fleet.succession.mending import needs_a_person
from tenure.adapters.fleet.succession.moves import MemberMoves
from tenure.adapters.fleet.succession.watch import RegistryWatch
from tenure.adapters.fleet.succession.work import FleetWork, Run
from tenure.adapters.fleet.telling import Teller
from tenure.adapters.fleet.threads.projection import refuse_unfit
from tenure.adapters.fleet.threads.provisioning import LocalProvisioning, Provisioning
from tenure.adapters.journal.foreign import refuse_foreign_work
from tenure.adapters.ports import Ports, tell
from tenure.adapters.runtime.aio import AsyncLeadership
from tenure.adapters.runtime.outcomes import Elected, Failed, Lost, Outcome, Refused, Retired, Waiting
from tenure.machines.follower_messages import Binding

GOODBYE_S: Final = 5.0
"""How long a goodbye waits for the leader to confirm it."""
RELEASE_MS: Final = 3_000
"""How long a member that leaves tries to give its lease up, once its work has ended. After that the lease passes, or
the death of this process is seen."""

_NO_LOOKS: Final = ("idle", "electing", "starting", "leading")
"""Phases in which nothing is looked for."""


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
        prepare: Run | None = None,
        deliver: Deliver | None = None,
        accept: Accept | None = None,
        serve: Serve | None = None,
        authorise: Authorise = nobody_is_barred,
        pass_on: PassOn | None = None,
        provisioning: Provisioning | None = None,
        on_role: Callable[[Role], None] | None = None,
        on_available: Callable[[bool], None] | None = None,
        on_routes: Callable[[], None] = lambda: None,
        ports: Ports | None = None,
        timings: Timings = DEFAULT,
        process: ProcessState | None = None,
    ) -> None:
        """`run(epoch)` is a coroutine that runs only while this process leads, and is cancelled when that ends; if it
        returns or raises before, the lease is given up, and after one grace this process may lead again.
        `prepare(epoch)` is awaited first, when the lease is won and nothing is read or published under it; what it
        raises fails the start. `deliver` takes the work that the leader sends to this process as a follower, `accept`
        the queued items that it is offered; without them such work is refused. Where this process leads, `serve` does
        what followers ask for, `authorise` says who may not, and `pass_on` relays the items that they offer to each
        other; without them it is refused.
        `provisioning` gives slots, threads and names where this process leads; local ones if not given. `on_role` is
        told of each change of `role`, `on_available` of each beginning (True) and end (False) of leading or following;
        their exceptions are noted and change nothing. `on_routes` is told of registrations that come and go where this
        process leads; it does not raise. `process`: as for the lease, for tests that play several processes. Raises
        TenureError for a profile that is none, and for a directory that is no `AgentDirectory`."""
        require_directory(directory)
        self.ports = real_ports() if ports is None else ports
        self.directory = directory
        self.timings = timings
        self._process = process
        self._prepare = prepare
        self._on_routes = on_routes
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
            accept=accept,
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
            on_change=self._routes_changed,
            serve=serve,
            authorise=authorise,
            pass_on=pass_on,
        )
        self._watch = RegistryWatch(self.lease)
        self._moves = MemberMoves(
            self._watch,
            self.follower,
            self._leadership,
            lambda: _refuse_foreign(self.ports, directory, key),
        )
        self.course = Course(
            self._moves,
            self.identity.session,
            after_grace=self._after_grace,
            on_step=self._step_taken,
            on_fault=self._fault,
            events=SuccessionEvents(self.ports, self.identity, self._watch.named)
            if self.ports.recorder is not None
            else None,
        )
        self._teller = Teller(self.ports, on_role, on_available, self._callback_failed)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stepped = asyncio.Event()
        self._mend = False
        """The last election failed for something that a person has to mend."""
        self._closing: asyncio.Future[str] | None = None
        self._over = False

    # -- verbs --------------------------------------------------------------------------------------------------------

    async def join(self) -> Role:
        """Join the fleet, and answer the first role: with a live leader `Following`, else `Leading` or, where another
        was quicker, `Following` it; `Left` for a member that leaves. What fails is tried again; `role` says what it is.
        Cancelled, the member goes on joining; `leave` ends that."""
        self._ready()
        if self.phase == "idle":
            await asyncio.shield(self.course.job(self.course.join()))
        return await self._teller.until(lambda: isinstance(self.role, Leading | Following | Left))

    async def until_left(self) -> None:
        """Wait until this member has left, and nothing of it is there any more."""
        await self._teller.until(lambda: isinstance(self.role, Left))

    async def leave(self, *, goodbye: bool = False) -> str:
        """Leave the fleet: give the lease up, or the registration. With `goodbye` a follower first says so to its
        leader, which takes its thread away and frees its slot; without, the leader finds out, and slot and name are
        kept for this terminal. Answers why a goodbye was not confirmed, "" when all is well.

        It takes seconds at most, whatever hangs, but for a `run` that ignores its cancellation: that is waited for,
        since nobody else may lead before. Cancelled, or called by `run`, which it cancels, the leaving goes on."""
        self._ready()
        return await asyncio.shield(self._leaving(goodbye))

    def serve_session(self, session: int) -> None:
        """The session of the host was replaced inside this process: `session` is served from now on, 0 for none. A
        registration under way is begun again for it; a registration that is held is kept, but takes work only while
        one is served (bus.md a; b, row 13). Raises TenureError for a number that is none."""
        if session < 0:
            raise TenureError(f"session {session}: give a positive number, or 0 for none")
        self.follower.set_session(session)
        self.course.serve_session(session)

    @property
    def phase(self) -> str:
        """That of the succession machine."""
        return self.course.phase

    @property
    def role(self) -> Role:
        """What this process is now."""
        return self._teller.role

    @property
    def available(self) -> bool:
        """It leads or follows."""
        return self._teller.available

    @property
    def epoch(self) -> int | None:
        """The fencing token, where it leads and its lease holds by its own clock; None otherwise. Reads no file."""
        return self._leadership.may_send() if self.phase == "leading" else None

    def owns(self, epoch: int) -> bool:
        """Whether the lease is this member's under `epoch`, by its own clock; also while it begins to lead. Reads no
        file."""
        return self._leadership.may_send() == epoch

    async def pass_over(self, epoch: int) -> None:
        """No epoch up to this one is won here any more, since somebody has seen it: the mark of epochs was lost, or put
        back. Only while the lease is this member's; raises TenureError where it is not, or the mark cannot be written,
        and then nothing has changed."""
        ports, path = self.ports, self.directory.high_water

        def pass_over(_: int) -> None:
            known = read_mark(ports, path)
            if epoch > known:
                raise_mark(ports, path, epoch, known, self.timings)

        await self._leadership.commit_if_owned(pass_over)

    @property
    def runs(self) -> bool:
        """It was entered, and the event loop that it was entered on is still there."""
        return self._loop is not None and not self._loop.is_closed()

    def statistics(self) -> MemberStatistics:
        """What this member has done so far."""
        return self.course.counts.statistics(self.phase, self.available, self._watch.looks)

    async def __aenter__(self) -> Member:
        """Raises TenureError where this process is a member already, and for a member that was one before."""
        if self._loop is not None:
            raise TenureError("a member joins and leaves once; make a new one")
        self._refuse_forked()
        settle_in(self._process, self.directory, self.lease.key, self)
        self._loop = asyncio.get_running_loop()
        self._work.bind(self._loop)
        await self._leadership.__aenter__()
        self.course.job(self._look_on())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave, without a goodbye, whatever happens to the caller meanwhile: a cancellation goes on when it has left.
        A fork does nothing of the kind."""
        if self._forked():
            return
        await to_its_end(self._leaving(False))

    # -- leading ------------------------------------------------------------------------------------------------------

    async def _opens(self, epoch: int) -> None:
        """The lease is won: what has to be there before the work."""
        saw = await asyncio.get_running_loop().run_in_executor(None, self.lease.check)
        if not self.course.won(owned=saw == "mine"):
            raise NotOwner(f"election with epoch {epoch}: it is over, or this member does not stand for it any more")
        if self._prepare is not None:
            await self._prepare(epoch)
        await self.leader.open(epoch, self.course.moving)
        self._moves.place = self.leader.binding

    async def _closes(self) -> None:
        await self.leader.close()

    def _routes_changed(self) -> None:
        self._announce()
        self._on_routes()

    # -- news ---------------------------------------------------------------------------------------------------------

    async def _look_on(self) -> None:
        while self.phase != "ended":
            self._stepped.clear()
            if self.phase in _NO_LOOKS:
                await self._stepped.wait()
                continue
            seen = await self._watch.news()
            if seen.mine and self.phase == "waiting" and self._leadership.lead.polling.settled:
                # A lease of ours that passed unrenewed, after a suspend or behind a guard, and nobody took it. Nobody
                # of this process would ever lead over what is left of it.
                await self._leadership.release()
            elif self.phase not in _NO_LOOKS and self._closing is None:  # who says goodbye begins nothing any more
                self.course.saw(seen.look)

    def _lost(self, binding: Binding, why: str) -> None:
        if self._closing is not None:
            return
        self.course.lost(why)
        self._announce()

    def _follower_changed(self) -> None:
        self.course.heard(self.follower.roster, self.follower.binding)

    def _heard_of(self, outcome: Outcome) -> None:
        """What came of an election, and that leading has ended."""
        if isinstance(outcome, Elected | Failed | Refused):  # others follow upon these
            self._mend = isinstance(outcome, Failed) and needs_a_person(outcome.cause)
        if not isinstance(outcome, Elected):
            self.course.deposed(str(outcome) if isinstance(outcome, Lost | Failed | Retired) else "")

    # -- telling others -----------------------------------------------------------------------------------------------

    def _step_taken(self) -> None:
        self._stepped.set()
        self._announce()

    def _announce(self) -> None:
        self._teller.now(self._now())

    def _now(self) -> Role:
        binding, phase = self.course.data.binding, self.phase
        if phase == "ended" and self._over:
            return Left()
        if self._closing is not None:
            return Seeking("ended")  # whatever goes meanwhile is given up, and not lost
        if phase == "leading" and (epoch := self.leader.epoch) is not None:
            bound = self.leader.binding or binding
            return Leading(epoch, bound.slot, bound.name)
        entry = self._watch.entries.get(self.course.data.leader)
        if phase == "following" and entry is not None and (generation := self.follower.generation) is not None:
            return Following(entry.pid, entry.leader_epoch, generation, binding.slot, binding.name)
        return Seeking(phase, *self._trouble())

    def _trouble(self) -> tuple[str, bool]:
        """What failed last, and whether a person has to mend it."""
        match self.phase:
            case "idle" | "ended" | "deferring" | "electing" | "starting":  # what failed before them is over
                return "", False
            case "waiting" if self._watch.problem:
                return self._watch.problem, True
            case "waiting" if self._watch.state == "here" and not self.course.error:
                return "another runtime of this process owns the lease", False
            case phase:
                stuck = (phase == "waiting" and (self._mend or self._moves.unfit)) or (
                    phase == "grace" and self._moves.homeless
                )
                return self.course.error, stuck

    def _callback_failed(self) -> None:
        self.course.counts.callback_errors += 1

    # -- the end ------------------------------------------------------------------------------------------------------

    def _leaving(self, goodbye: bool) -> asyncio.Future[str]:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._end(goodbye))
            heard(self._closing)
        return self._closing

    async def _end(self, goodbye: bool) -> str:
        self._announce()
        why = await self._say_goodbye() if goodbye and self.phase == "following" else ""
        self.course.stop()
        for found in await asyncio.gather(self._give_up(), self.follower.stop(), return_exceptions=True):
            if isinstance(found, BaseException):
                self._fault(found)
        for close in (self.leader.close, self.course.close, self._watch.close):
            try:
                await close()
            except Exception as error:
                self._fault(error)
        settle_out(self._process, self.directory, self.lease.key, self)
        self._over = True
        self._announce()
        return why

    async def _say_goodbye(self) -> str:
        try:
            async with asyncio.timeout(GOODBYE_S):
                answer = await self.follower.disconnect()
        except TimeoutError:
            return f"the leader did not answer within {GOODBYE_S:g} s"
        except Exception as error:  # whatever it is, the member leaves
            self._fault(error)
            return in_words(error)
        return answer if isinstance(answer, str) else ""

    async def _give_up(self) -> None:
        """Release the lease, if there is one. While the work runs it is kept, so that nobody else leads."""
        while isinstance(await self._leadership.release(timeout_ms=RELEASE_MS), Waiting):
            if self._work.state == "closed":
                break
        await self._leadership.close()

    def _after_grace(self, then: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self.timings.grace_ms / 1000, then)

    def _fault(self, error: BaseException) -> None:
        tell(self.ports, "fleet", "fault", error=f"{type(error).__name__}: {error}")

    # -- where it may be used -----------------------------------------------------------------------------------------

    def _ready(self) -> None:
        self._refuse_forked()
        if self._loop is None:
            raise TenureError("enter the member first: async with Member(...) as member")

    def _forked(self) -> bool:
        return self.ports.processes.me() != self.identity.process

    def _refuse_forked(self) -> None:
        if self._forked():
            raise TenureError(f"this member is process {self.identity.pid}'s; make one after the fork")


def _refuse_foreign(ports: Ports, directory: AgentDirectory, key: str) -> None:
    """Raises TenureError where the other system has left threads or updates: nobody of ours leads over that."""
    refuse_unfit(ports.files, directory, key)
    refuse_foreign_work(ports, directory, key)
