"""The polling machine of one runtime, driven: outputs become calls, calls are answered (locks.md 9; DESIGN 4).

`Polling` owns the two machines (`polling_ownership`, and `poller` for the loops of the work), the calls that they
asked for, and the cadence of the watchers. Nothing here waits: `turn` does the first thing that is due, `due_ms` says
when there will be one. `tenure.adapters.files.leadership` has threads, verbs and results.

A message may be offered from any thread at any time; only one thread takes turns. File work and the user's code run
outside the mutex, except `Work.start`, which begins atomically with the machine's news of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.lease import Held, LeaseRuntime, NotOwner, Won
from tenure.adapters.files.outcomes import Elected, Failed, Following, Left, Lost, Outcome, Over, Refused, Statistics
from tenure.adapters.files.timings import Timings
from tenure.adapters.files.work import Registration, Work
from tenure.adapters.ports import tell
from tenure.machines import chart, poller
from tenure.machines import polling_messages as own
from tenure.machines.chart import Step, step
from tenure.machines.identity import Owner, same_owner
from tenure.machines.lease import INACTIVE
from tenure.machines.poller import POLLER, Loops
from tenure.machines.polling_messages import Acquire, Memory, Output, Report
from tenure.machines.polling_ownership import POLLING_OWNERSHIP

MODULE: Final = "PollingOwnership"
POLL_MS: Final = 5
"""How often `Work.ready` and `Work.ended` are asked while an answer is awaited and no descriptor announces it."""
PATIENCE: Final = 4
"""How often a guard is tried before the turn ends: a watcher that waits for a guard is asked for other things again
soon, and a lease that passes meanwhile is noticed (K6, K11)."""
SETTLED: Final = frozenset({"idle", "active", "follower", "suspended", "retired"})
"""Phases in which a run has come to something."""

Taken = Step[Memory, Output] | chart.Refused
Lane = Literal["work", "telling"]
Hands = Callable[[Lane, Callable[[], None]], None]
"""Runs calls of the user's code: at once, or beside the watchers, those of one lane one after the other."""


@attrs.frozen
class Call:
    """A call that a machine asked for. `not_before_ms` is a time of the fence clock; `waited` the last such delay."""

    kind: str
    mode: own.Mode = "plain"
    expected: int = 0
    outcome: Outcome | None = None
    not_before_ms: int = 0
    waited: int = 0


@attrs.define
class Counters:
    """What `Statistics` counts."""

    acquisitions: int = 0
    refusals: int = 0
    failures: int = 0
    losses: int = 0
    releases: int = 0
    refreshes: int = 0
    checks: int = 0
    waits: int = 0
    callback_errors: int = 0
    acquire_ms: int = 0
    refresh_ms: int = 0
    start_ms: int = 0


class Polling:
    """One runtime's machines over its lease, its work and its registration."""

    def __init__(
        self,
        lease: LeaseRuntime,
        work: Work,
        registration: Registration,
        alone: Callable[[], bool],
        report: Callable[[Outcome], None],
    ) -> None:
        """`alone`: whether every older runtime of this process has retired. `report` is called with what became of a
        start, a stop or a tenure; its errors change nothing."""
        self.lease = lease
        self.work = work
        self.registration = registration
        self.alone = alone
        self.report = report
        self.hands: Hands = at_once
        self.mutex = threading.RLock()
        self.phase = POLLING_OWNERSHIP.initial
        self.data = Memory()
        self.loop_phase = POLLER.initial
        self.loops = Loops()
        self.calls: list[Call] = []
        self.open = 0
        """Calls that run now."""
        self.watched = False
        self.check_at = 0
        self.refresh_at = 0
        self.lease_until = 0
        """Fence time beyond which the own lease has surely passed, if nothing is written any more."""
        self.owners: dict[int, Owner] = {}
        """The owners that the machine's numbers stand for."""
        self.listening: list[list[Outcome]] = []
        """Every outcome is added to each of these."""
        self.counters = Counters()
        self.trouble = ""
        """The last error of a call that is tried again; "" after one that was not."""
        self.epoch = 0
        self._ports = lease.ports
        self._timings = lease.timings
        me = lease.data.me
        self._node = f"{me.process.pid}-{me.process.birth.ticks}/{me.instance_id}"
        self._held: Held | None = None
        self._replaced_stale = False
        self._cause: Exception | None = None
        self._passed = False
        self._wished_at: int | None = None
        self._backoff = 0
        self._delay = 0
        self._checked_at = 0

    # -- messages -----------------------------------------------------------------------------------------------------

    def offer(self, message: own.Happening, action: str = "", **args: object) -> Taken:
        """Tell the machine, and note what it asks for. A refusal changes nothing. `action` is the twin's, with its
        arguments, for the recorder."""
        with self.mutex:
            answer = step(POLLING_OWNERSHIP, self.phase, self.data, message)
            if isinstance(answer, Step):
                self.phase, self.data = answer.phase, answer.data
                for output in answer.outputs:
                    self._perform(output)
                self._record(action, args)
            self._forget()
            return answer

    def _answer(self, message: own.Happening, late: own.Returned, action: str, **args: object) -> Taken:
        """The answer of a call. What is refused belongs to a run that was abandoned: then all that counts is that the
        call has returned."""
        with self.mutex:
            answer = self.offer(message, action, **args)
            if isinstance(answer, chart.Refused):
                return self.offer(late, action if "mode" in args else "Return", **args)
            return answer

    def _perform(self, output: Output) -> None:
        now = self._now()
        match output:
            case Acquire(mode, expected):
                if self._wished_at is None:
                    self._wished_at = now
                self.calls.append(Call("acquire", mode, expected, not_before_ms=now + self._delay, waited=self._delay))
            case Report():
                outcome = self._outcome(output)
                for said in self.listening:
                    said.append(outcome)
                self.calls.append(Call("report", outcome=outcome))
            case "start_watchers":
                self.watched = True
                self.check_at, self.refresh_at = now + self._timings.check_ms, now + self._timings.refresh_ms
            case "stop_watchers":
                self.watched = False
            case "refresh":
                self.refresh_at = now
            case "look":
                self.check_at = now
            case "start_polling":
                self._turn_loop(poller.Start())
                self.calls.append(Call("start_polling"))
            case "stop_polling":
                self._turn_loop(poller.Stop())
            case "transmit":
                return
            case "release":
                self.calls.append(Call("release", not_before_ms=now + self._delay, waited=self._delay))
            case _:
                self.calls.append(Call(output))

    # -- turns --------------------------------------------------------------------------------------------------------

    def due_ms(self) -> int:
        """In how many ms `turn` has something to do; 0 for now. It may find that it has nothing yet."""
        with self.mutex:
            now = self._now()
            times = [now + self._timings.check_ms, *(call.not_before_ms for call in self.calls)]
            if self.watched:
                times += [self.check_at, self.refresh_at]
                if self._checked_at <= self.lease_until:
                    times.append(self.lease_until + 1)
            if self.loops.live and self.loop_phase != "running":
                times.append(now + self._nap())
            return max(0, min(times) - now)

    def turn(self) -> bool:
        """Do the first thing that is due. False when there is none now."""
        now = self._now()
        if self.watched and (now >= self.check_at or self._checked_at <= self.lease_until < now):
            self._check(now)
            return True
        call = self._next(now)
        if call is not None:
            self._make(call)
            return True
        if self._loop_ended() or isinstance(self._stopped(), Step):
            return True
        if self.watched and now >= self.refresh_at:
            self._refresh(now)
            return True
        return False

    @property
    def settled(self) -> bool:
        """Nothing is on its way: the last run has come to something, and whoever asked has been told."""
        with self.mutex:
            return self.phase in SETTLED and not self.calls and not self.open

    @property
    def gone(self) -> bool:
        """Retired, with nothing of the work left."""
        with self.mutex:
            return self.phase == "retired" and self.loops.live == 0

    def number(self, owner: Owner | None) -> int:
        """The machine's number for an owner: the least that stands for nobody else now; 0 for none."""
        if owner is None:
            return 0
        with self.mutex:
            for number, known in self.owners.items():
                if same_owner(known, owner):
                    return number
            number = next(n for n in range(1, len(self.owners) + 2) if n not in self.owners)
            self.owners[number] = owner
            return number

    @property
    def shown(self) -> Owner | None:
        """The owner that was offered to a person, while that stands."""
        with self.mutex:
            return self.owners.get(self.data.shown) if self.phase == "idle" else None

    @property
    def elected(self) -> Elected:
        """What a start that led to this tenure was told."""
        return Elected(self.epoch, self._replaced_stale)

    def look_soon(self) -> None:
        """Somebody saw something: the next turn looks at the own entry."""
        with self.mutex:
            self.check_at = self._now()

    def may_send(self) -> int | None:
        """The epoch under which a request may be sent now; None when it may not (S29, K11)."""
        request = own.Request(self.lease.lease_passed())
        return self.lease.may_send() if isinstance(self.offer(request, "Request"), Step) else None

    def statistics(self) -> Statistics:
        """What has happened so far."""
        epoch = self.lease.epoch
        with self.mutex:
            left = max(0, self.lease_until - self._now()) if epoch is not None else 0
            return Statistics(phase=self.phase, epoch=epoch, lease_ms=left, **attrs.asdict(self.counters))

    # -- the watchers -------------------------------------------------------------------------------------------------

    def _check(self, now: int) -> None:
        saw, passed = self.lease.check(), self.lease.lease_passed()
        self.counters.checks += 1
        self._checked_at = now
        self.check_at = now + self._timings.check_ms
        if now > self.lease_until and not passed:
            self.lease_until = now + POLL_MS  # it was asked for a little later than is known here
        self._looked(own.Checked(saw, passed), "Check", fails=saw == "unknown")
        if saw == "unknown":
            self.check_at = self._now() + self._wait()

    def _refresh(self, now: int) -> None:
        """Rewrite the heartbeat. A lease that has passed is not (it may be anybody's), except by the first refresh of
        a run, which has just acquired."""
        saw: own.Saw = "unknown"
        if self.phase == "refreshing" or not self.lease.lease_passed():
            saw = self.lease.refresh(attempts=PATIENCE)
        if saw == "mine":
            self.counters.refreshes += 1
            self.counters.refresh_ms = self._now() - now
            self._holds(now)
        elif saw == "unknown":
            self.counters.waits += 1
        self.refresh_at = now + self._timings.refresh_ms
        self._looked(own.Refreshed(saw, self.lease.lease_passed()), "Refresh")
        if saw == "unknown":
            # Somebody is busy in the guard: the next attempt soon, so that a healthy lease outlives him (K6).
            self.refresh_at = self._now() + self._wait()

    def _looked(self, message: own.Refreshed | own.Checked, action: str, **args: object) -> None:
        if message.saw != "unknown":
            self._backoff = 0
        self._passed = message.passed and message.saw != "other"
        self.offer(message, action, **args)

    # -- the loops of the work ----------------------------------------------------------------------------------------

    def _turn_loop(self, message: poller.Happening) -> bool:
        answer = step(POLLER, self.loop_phase, self.loops, message)
        if not isinstance(answer, Step):
            return False
        self.loop_phase, self.loops = answer.phase, answer.data
        if "abort" in answer.outputs:
            self.calls.append(Call("abort"))
        return True

    def _loop_ended(self) -> bool:
        if not self.loops.live:
            return False
        ended = self.work.ended()
        if ended is None:
            return False
        with self.mutex:
            if self.loop_phase != "running":
                self._turn_loop(poller.Ended())
                self._record("LoopEnds", {})
                return True
            if not ended.error:
                # It is done: as if a person had disconnected.
                return isinstance(self.offer(own.Stop(), "Stop"), Step)
            self._turn_loop(poller.Ended())
            self._cause = None
            if isinstance(self.offer(own.Failed(ended.error), "LoopDies"), chart.Refused):
                self._record("LoopDies", {})
            return True

    def _stopped(self) -> Taken | None:
        with self.mutex:
            if self.loop_phase != "off" or self.loops.live:
                return None
            return self.offer(own.Stopped(), "Stopped")

    def _begin(self, call: Call) -> None:
        """Begin the loop inside the ownership transaction, together with the machine's news of it."""
        if self.loop_phase != "pending":
            self._answer(own.Launched(), own.Returned(False), "Begin", call="start_polling")
            return
        try:
            ready = self.loops.live == 0 and self.work.ready()
        except Exception as error:
            self._fail(error, "start_polling")
            return
        if not ready:
            self._again(call, self._nap())
            return
        begun: list[bool] = []

        def begin(epoch: int) -> None:
            with self.mutex:
                if not self._turn_loop(poller.Begin(owned=not self.lease.lease_passed())):
                    return
                begun.append(True)
                try:
                    self.work.start(epoch)
                except Exception as error:
                    self._turn_loop(poller.Ended())
                    self._fail(error, "start_polling")
                    return
                self._answer(own.Launched(), own.Returned(False), "Begin", call="start_polling")

        try:
            self.lease.commit(begin, attempts=PATIENCE)
        except NotOwner:
            self.check_at = self._now()  # the watcher says what that means
        except Exception as error:
            self._stumbled("begin", error)
        if not begun:
            self._again(call)

    # -- calls --------------------------------------------------------------------------------------------------------

    def _next(self, now: int) -> Call | None:
        with self.mutex:
            for place, call in enumerate(self.calls):
                if call.not_before_ms <= now:
                    del self.calls[place]
                    self.open += 1
                    return call
            return None

    def _make(self, call: Call) -> None:
        match call.kind:
            case "acquire":
                self._done(lambda: self._acquire(call))
            case "release":
                self._done(lambda: self._release(call))
            case "start_polling":
                self._done(lambda: self._begin(call))
            case "defer":
                self._done(lambda: self._auto_run(call))
            case "abort":
                self._done(self._abort)
            case "unregister":
                self._done(self._unregister)
            case "register":
                self.hands("work", lambda: self._done(self._register))
            case "on_acquired":
                self.hands("work", lambda: self._done(self._prepare))
            case "clean_up":
                self.hands("work", lambda: self._done(self._clean_up))
            case _:
                self.hands("telling", lambda: self._done(lambda: self._tell(call)))

    def _done(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:
            # Every call is answered by its own method; what escapes one is a fault of this program, and is said.
            tell(self._ports, "lock", "fault", error=f"{type(error).__name__}: {error}")
            raise
        finally:
            with self.mutex:
                self.open -= 1

    def _acquire(self, call: Call) -> None:
        began = self._now()
        try:
            answer = self.lease.acquire(call.mode, self.owners.get(call.expected))
        except Exception as error:
            self._stumbled("acquire", error)
            with self._waiting(call):
                self._answer(own.AcquireFailed(_text(error)), own.Returned(False), "AcquireFails", mode=call.mode)
            return
        self.trouble = ""
        if isinstance(answer, Won):
            self._held = None
            self.epoch = answer.epoch
            self._replaced_stale = answer.replaced is not None and answer.how in ("plain", "election")
            self.counters.acquisitions += 1
            self.counters.acquire_ms = self._now() - began
            self._holds(began)
            self._answer(own.Acquired(), own.Returned(False), "Acquire", mode=call.mode)
            return
        self._held = answer
        with self.mutex:
            observed = self.number(None if answer.entry is None else answer.entry.owner)
            self._answer(own.Denied(observed), own.Returned(False), "Acquire", mode=call.mode)

    def _release(self, call: Call) -> None:
        try:
            self.lease.release(attempts=PATIENCE)
        except Exception as error:
            self._stumbled("release", error)
            with self._waiting(call):
                self.offer(own.ReleaseFailed(self.lease.lease_passed(), _text(error)), "ReleaseFails")
            return
        self.trouble = ""
        self.counters.releases += 1
        self.offer(own.Released(), "Release")

    def _auto_run(self, call: Call) -> None:
        answer = self.offer(own.AutoRun(self.alone()), "AutoRun")
        if isinstance(answer, chart.Refused) and answer.guards:
            self._again(call)  # the predecessor has not retired yet; a refusal without a guard: the wish was withdrawn

    def _abort(self) -> None:
        try:
            self.work.stop()
        except Exception as error:
            self._stumbled("stop", error)

    def _register(self) -> None:
        held = self._held
        try:
            found = self.registration.register(None if held is None or held.entry is None else held.entry.owner)
        except Exception as error:
            self._stumbled("register", error)
            found = "failed"
        if found == "registered":
            self._answer(own.Registered(), own.Returned(True), "Register", call="register")
        else:
            message = own.Unregistered(thread_mode=found == "failed")
            self._answer(message, own.Returned(True), "RegisterFails", call="register")

    def _unregister(self) -> None:
        try:
            self.registration.unregister()
        except Exception as error:
            self._stumbled("unregister", error)

    def _prepare(self) -> None:
        try:
            self.work.prepare(self.epoch)
        except Exception as error:
            self._fail(error, "on_acquired")
            return
        self._answer(own.Prepared(), own.Returned(False), "Prepared", call="on_acquired")

    def _clean_up(self) -> None:
        try:
            self.work.clean_up()
        except Exception as error:
            self._stumbled("clean-up", error)
            self._answer(own.CleanUpFailed(_text(error)), own.Returned(False), "CleanUpFails", call="clean_up")
            return
        self._answer(own.Cleaned(), own.Returned(False), "CleanUp", call="clean_up")

    def _tell(self, call: Call) -> None:
        assert call.outcome is not None
        try:
            self.report(call.outcome)
        except Exception as error:
            self.counters.callback_errors += 1
            tell(self._ports, "lock", "callback", error=_text(error), outcome=str(call.outcome))

    def _fail(self, error: Exception, call: str) -> None:
        """Preparing or starting raised."""
        tell(self._ports, "lock", "start", error=_text(error))
        with self.mutex:
            self._cause = error
            self._answer(own.Failed(_text(error)), own.Returned(False), "Fail", call=call)

    # -- small things -------------------------------------------------------------------------------------------------

    def _outcome(self, said: Report) -> Outcome:
        match said.outcome:
            case "leading":
                if self._wished_at is not None:
                    self.counters.start_ms, self._wished_at = self._now() - self._wished_at, None
                return Elected(self.epoch, self._replaced_stale)
            case "lost":
                self.counters.losses += 1
                return Lost(self.epoch, self._passed)
            case "failed":
                self.counters.failures += 1
                cause, self._cause = self._cause, None
                return Failed(said.error, cause)
            case "refused" | "offer":
                self.counters.refusals += 1
                self._wished_at = None
                held = self._held
                entry = None if held is None else held.entry
                state = INACTIVE if held is None else held.state
                return Refused(None if entry is None else entry.owner, state, said.outcome == "offer")
            case "following":
                return Following()
            case "left":
                return Left(said.error)
            case _:
                return Over()

    def _now(self) -> int:
        return self._ports.clock.fence_ms()

    def _nap(self) -> int:
        return POLL_MS if self.work.fileno() < 0 else max(1, self._timings.check_ms // 4)

    def _holds(self, asked_at: int) -> None:
        """The lease was written, and asked for at `asked_at` or a moment later."""
        self.lease_until = asked_at + self._timings.stale_ms

    def _wait(self) -> int:
        """How long until a watcher's next attempt: a little longer each time, and always shorter than a check."""
        self._backoff = min(_longer(self._backoff, self._timings), max(1, self._timings.check_ms // 4))
        return self._backoff

    @contextmanager
    def _waiting(self, call: Call) -> Iterator[None]:
        """What the answer asks for again is not tried at once."""
        with self.mutex:
            self._delay = _longer(call.waited, self._timings)
            try:
                yield
            finally:
                self._delay = 0

    def _again(self, call: Call, delay: int | None = None) -> None:
        waited = _longer(call.waited, self._timings) if delay is None else delay
        with self.mutex:
            self.calls.append(attrs.evolve(call, not_before_ms=self._now() + waited, waited=waited))

    def _stumbled(self, phase: str, error: Exception) -> None:
        self._cause = error
        self.trouble = _text(error)
        self.counters.waits += 1
        tell(self._ports, "lock", phase, error=self.trouble)

    def _forget(self) -> None:
        """Numbers that nobody means any more are free again."""
        meant = {self.data.shown, *(call.expected for call in self.calls)}
        for number in self.owners.keys() - meant:
            del self.owners[number]

    def _record(self, action: str, args: dict[str, object]) -> None:
        recorder = self._ports.recorder
        if recorder is None or not action:
            return
        observed = {"phase": self.phase, "poller": self.loop_phase, "live": self.loops.live}
        recorder.event(MODULE, action, self.lease.node, 0, args or None, observed, self.lease.epoch)


def at_once(lane: Lane, job: Callable[[], None]) -> None:
    """`Hands` without threads."""
    job()


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, TenureError) else f"{type(error).__name__}: {error}"


def _longer(waited: int, timings: Timings) -> int:
    return min(max(1, round(timings.delay_ms), 2 * waited), timings.check_ms)
