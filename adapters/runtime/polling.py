"""The polling machine of one runtime, driven: outputs become calls, calls are answered (locks.md 9; DESIGN 4).

`Polling` makes the calls that the machines asked for, and looks after the lease on time. Nothing here waits, except
for the guard, and for that not long: `turn` does the first thing that is due, `due_ms` says when there will be one.
`tenure.adapters.runtime.leadership` has threads, verbs and results.

Only one thread takes turns. File work and the user's code run outside the mutex, except `Work.start`, which begins
atomically with the machine's news of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tenure.adapters.files.lease import NotOwner, Won
from tenure.adapters.ports import tell
from tenure.adapters.runtime.polling_steps import (
    Call,
    PollingSteps,
    Taken,
    error_text,
    longer,
)
from tenure.machines import chart, poller
from tenure.machines import polling_messages as own
from tenure.machines.chart import Step
from tenure.machines.identity import is_me

POLL_MS: Final = 5
"""How often `Work.ready` and `Work.ended` are asked while an answer is awaited and no descriptor announces it."""
PATIENCE: Final = 4
"""How often a guard is tried before the turn ends: a watcher that waits for a guard is asked for other things again
soon, and a lease that passes meanwhile is noticed (K6, K11)."""


class Polling(PollingSteps):
    """One runtime's machines over its lease, its work and its registration, and the calls that they ask for."""

    # -- turns ---------------------------------------------------------------------------------------------------------

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

    def may_send(self) -> int | None:
        """The epoch under which a request may be sent now; None when it may not (S29, K11)."""
        request = own.Request(self.lease.lease_passed())
        return self.lease.may_send() if isinstance(self.offer(request), Step) else None

    # -- the watchers --------------------------------------------------------------------------------------------------

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

    def _wait(self) -> int:
        """How long until a watcher's next attempt: a little longer each time, and always shorter than a check."""
        self._backoff = min(longer(self._backoff, self._timings), max(1, self._timings.check_ms // 4))
        return self._backoff

    # -- the loops of the work -----------------------------------------------------------------------------------------

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

    def _nap(self) -> int:
        return POLL_MS if self.work.fileno() < 0 else max(1, self._timings.check_ms // 4)

    # -- calls ---------------------------------------------------------------------------------------------------------

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
                self._answer(own.AcquireFailed(error_text(error)), own.Returned(False), "AcquireFails", mode=call.mode)
            return
        self.trouble = ""
        if isinstance(answer, Won):
            self._held = None
            self.epoch = answer.epoch
            was, me = answer.replaced, self.lease.data.me.process
            over = was is not None and not is_me(was.pid, was.birth, me)  # an older runtime's is taken as it is
            self._replaced_stale = over and answer.how in ("plain", "election", "resume")
            self.counters.acquisitions += 1
            self.counters.acquire_ms = self._now() - began
            self._holds(began)
            self._answer(own.Acquired(), own.Returned(False), "Acquire", mode=call.mode)
            return
        self._held = answer
        with self.mutex:
            observed = self.number(None if answer.entry is None else answer.entry.owner)
            self._answer(own.Denied(observed), own.Returned(False), "Acquire", mode=call.mode)

    @contextmanager
    def _waiting(self, call: Call) -> Iterator[None]:
        """What the answer asks for again is not tried at once."""
        with self.mutex:
            self._delay = longer(call.waited, self._timings)
            try:
                yield
            finally:
                self._delay = 0

    def _release(self, call: Call) -> None:
        try:
            self.lease.release(attempts=PATIENCE)
        except Exception as error:
            self._stumbled("release", error)
            with self._waiting(call):
                self.offer(own.ReleaseFailed(self.lease.lease_passed(), error_text(error)), "ReleaseFails")
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
            self._answer(own.CleanUpFailed(error_text(error)), own.Returned(False), "CleanUpFails", call="clean_up")
            return
        self._answer(own.Cleaned(), own.Returned(False), "CleanUp", call="clean_up")

    def _tell(self, call: Call) -> None:
        assert call.outcome is not None
        try:
            self.report(call.outcome)
        except Exception as error:
            self.counters.callback_errors += 1
            tell(self._ports, "lock", "callback", error=error_text(error), outcome=str(call.outcome))

    def _fail(self, error: Exception, call: str) -> None:
        """Preparing or starting raised."""
        tell(self._ports, "lock", "start", error=error_text(error))
        with self.mutex:
            self._cause = error
            self._answer(own.Failed(error_text(error)), own.Returned(False), "Fail", call=call)
