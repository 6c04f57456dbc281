"""The two machines of one runtime's polling, with what they asked for: the part of `Polling` that does no call.

`offer` tells the machine something and notes its outputs: calls to be made, when the watchers are due, what is to be
told to whoever asked. It may be used from any thread; nothing here reads a file or waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Literal

import attrs

from tenure.adapters.errors import in_words
from tenure.adapters.files.lease import Held, LeaseRuntime
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import tell
from tenure.adapters.runtime.outcomes import Elected, Failed, Following, Left, Lost, Outcome, Over, Refused, Statistics
from tenure.adapters.runtime.work import Registration, Work
from tenure.machines import chart, poller
from tenure.machines import polling_messages as own
from tenure.machines.chart import Step, step
from tenure.machines.identity import Owner, same_owner
from tenure.machines.lease import INACTIVE
from tenure.machines.poller import POLLER, Loops
from tenure.machines.polling_messages import Acquire, Memory, Output, Report
from tenure.machines.polling_ownership import POLLING_OWNERSHIP

MODULE: Final = "PollingOwnership"
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


_LOOKS: Final = frozenset({"Check", "Refresh"})


class PollingSteps:
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
        self.engaged = False
        """The work was told to prepare, and has not been told to stop since."""
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

    # -- messages ------------------------------------------------------------------------------------------------------

    def offer(self, message: own.Happening, action: str = "", **args: object) -> Taken:
        """Tell the machine, and note what it asks for. A refusal changes nothing. `action` is the twin's, with its
        arguments, for the recorder: what changes nothing but when to try again is no step of it."""
        with self.mutex:
            before = self.phase, self.data
            answer = step(POLLING_OWNERSHIP, *before, message)
            if isinstance(answer, Step):
                self.phase, self.data = answer.phase, answer.data
                if action not in _LOOKS and before == (self.phase, self.data):
                    action = ""
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
            case "on_acquired":
                self.engaged = True
                self.calls.append(Call("on_acquired"))
            case "stop_polling":
                self._turn_loop(poller.Stop())
                self._disengage(now)
            case "transmit":
                return
            case "release":
                self.calls.append(Call("release", not_before_ms=now + self._delay, waited=self._delay))
            case _:
                self.calls.append(Call(output))

    def _turn_loop(self, message: poller.Happening) -> bool:
        answer = step(POLLER, self.loop_phase, self.loops, message)
        if not isinstance(answer, Step):
            return False
        self.loop_phase, self.loops = answer.phase, answer.data
        return True

    def _disengage(self, now: int) -> None:
        """Nothing of this run waits any longer, and a work that was only prepared is told to stop as well: it may be on
        its way."""
        self.calls = [attrs.evolve(call, not_before_ms=min(call.not_before_ms, now)) for call in self.calls]
        if self.engaged:
            self.calls.insert(0, Call("abort"))
        self.engaged = False

    # -- what stands ---------------------------------------------------------------------------------------------------

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

    def statistics(self) -> Statistics:
        """What has happened so far."""
        epoch = self.lease.epoch
        with self.mutex:
            left = max(0, self.lease_until - self._now()) if epoch is not None else 0
            return Statistics(phase=self.phase, epoch=epoch, lease_ms=left, **attrs.asdict(self.counters))

    # -- inside --------------------------------------------------------------------------------------------------------

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

    def _holds(self, asked_at: int) -> None:
        """The lease was written, and asked for at `asked_at` or a moment later."""
        self.lease_until = asked_at + self._timings.stale_ms

    def _again(self, call: Call, delay: int | None = None) -> None:
        waited = longer(call.waited, self._timings) if delay is None else delay
        with self.mutex:
            self.calls.append(attrs.evolve(call, not_before_ms=self._now() + waited, waited=waited))

    def _stumbled(self, phase: str, error: Exception) -> None:
        self._cause = error
        self.trouble = error_text(error)
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


def error_text(error: Exception) -> str:
    return in_words(error)


def longer(waited: int, timings: Timings) -> int:
    return min(max(1, round(timings.delay_ms), 2 * waited), timings.check_ms)
