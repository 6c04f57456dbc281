"""Leading, as a library: acquire, keep, commit, suspend, resume, release; elected and lost are told (locks.md 9).

    with Leadership(lease, work=ThreadWork(poll), on_lost=print) as lead:
        lead.start_keeping()
        print(lead.acquire())          # leads, epoch 7  |  active-elsewhere: pid 4711, cwd /home/bot

Two ways to use it. With `start_keeping` threads of its own look after the lease and run the user's code. Without, the
caller does: call `pump` whenever `due_ms` has gone by or a descriptor of the work is readable. The verbs pump by
themselves while they wait, so a plain script needs neither, as long as it pumps (or calls a verb) every check.

All methods may be called from any thread, also from callbacks and from the work: there they return `Waiting` at once,
and what comes of it is told by the callbacks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from tenure.adapters.errors import TenureError
from tenure.adapters.files.lease import LeaseRuntime, NotOwner
from tenure.adapters.files.process_state import ProcessState, process_state
from tenure.adapters.ports import tell
from tenure.adapters.runtime.asks import AcquireAsk, Ask, ElectAsk, ReleaseAsk, ResumeAsk, RetireAsk, SuspendAsk
from tenure.adapters.runtime.keeping import Keeper
from tenure.adapters.runtime.outcomes import Elected, Following, Late, Lost, Outcome, Over, Refused, Statistics, Waiting
from tenure.adapters.runtime.polling import POLL_MS, Polling
from tenure.adapters.runtime.polling_steps import at_once
from tenure.adapters.runtime.standby import LOOKS_PER_CHECK, Standby
from tenure.adapters.runtime.work import NoThreadMode, NoWork, Registration, Work
from tenure.machines.identity import Owner

T = TypeVar("T")
Key = tuple[str, str]

_STARTED: Final[WeakKeyDictionary[ProcessState, dict[Key, list[Leadership]]]] = WeakKeyDictionary()
"""Which runtimes of a process have started, by registry and key: the newest retires the others (S37, V9)."""


class Leadership:
    """One runtime of this process that may lead. `phase` and `data` are those of the polling machine."""

    def __init__(
        self,
        lease: LeaseRuntime,
        *,
        work: Work | None = None,
        registration: Registration | None = None,
        interactive: bool = True,
        on_elected: Callable[[Elected], None] | None = None,
        on_lost: Callable[[Lost], None] | None = None,
        on_outcome: Callable[[Outcome], None] | None = None,
        process: ProcessState | None = None,
    ) -> None:
        """`work` runs only while this runtime leads. `interactive`: False for a background child, which never leads
        (A41). `on_elected` and `on_lost` are told of the lease's beginning and loss, `on_outcome` of every outcome; an
        exception of theirs changes nothing and is noted in the diagnostics. `process`: as for the lease."""
        self.lease = lease
        self.work: Work = work if work is not None else NoWork()
        self.interactive = interactive
        self._on_elected = on_elected
        self._on_lost = on_lost
        self._on_outcome = on_outcome
        self._process = process if process is not None else lease.process
        self._clock = lease.ports.clock
        self.polling = Polling(lease, self.work, registration or NoThreadMode(), self._alone, self._report)
        self.work.attach(self.wake)
        self._asks: list[Ask] = []
        self._turns = threading.Lock()
        """Held by the thread that pumps."""
        self._inside: set[int] = set()
        """The threads that run the user's code, or pump: a verb there does not wait."""
        self._keeper: Keeper | None = None
        self._session = 0

    # -- verbs --------------------------------------------------------------------------------------------------------

    def acquire(self, *, force: Owner | None = None, timeout_ms: float | None = None) -> Outcome:
        """A person connects: acquire the lease, start the work (locks.md 9.1, 9.2).

        `Elected` when the work runs. `Refused` when another owns; with `can_takeover`, its `owner` may be shown to a
        person and given as `force`: that succeeds only if the owner is still exactly this one, and otherwise is
        refused again, with the new owner (A04). `Failed` when a step of the start raised; everything is rolled back.
        `Following`, `Retired`, `Over` (it was released meanwhile); `Waiting` after `timeout_ms` or from a callback:
        then the wish stands.
        """
        return self._wait(self.ask_acquire(force=force), timeout_ms)

    def acquire_in_turn(self, *, timeout_ms: float | None = None, give_up: Callable[[], bool] | None = None) -> Outcome:
        """`acquire`; while another owns, stand by until it has died, released or outlived its lease, and try again.
        Ends with an outcome other than `Refused`, or with that after `timeout_ms`, or when `give_up()` says so, which
        is asked four times in a check."""
        clock = self._clock
        until = None if timeout_ms is None else clock.fence_ms() + timeout_ms
        every = max(1, self.lease.timings.check_ms // LOOKS_PER_CHECK)
        while True:
            found = self.acquire()
            if not isinstance(found, Refused) or found.owner is None:
                return found
            with Standby(self.lease) as standby:
                while not standby.wait(every):
                    if (until is not None and clock.fence_ms() >= until) or (give_up is not None and give_up()):
                        return found

    def elect(self, observed: Owner | None, *, timeout_ms: float | None = None) -> Outcome:
        """Stand for election against exactly `observed`, whose lease must be over, or against nobody (S16, A49, A50):
        as a follower, or as a process that followed by other means. Outcomes as those of `acquire`; nothing is offered
        to a person, and who is refused is not registered."""
        return self._wait(self.ask_elect(observed), timeout_ms)

    def release(self, *, timeout_ms: float | None = None) -> Outcome:
        """A person disconnects: say goodbye, stop the work, give the lease up, whatever fails on the way (A44).
        `Over`, or `Left` when the registry could not be written before the lease passed."""
        return self._wait(self.ask_release(), timeout_ms)

    def suspend(self, session: int | None = None, *, timeout_ms: float | None = None) -> Outcome:
        """A session ends and the process stays: stop the work, keep the entry as the intent to go on (locks.md 9.4).
        `session` as `session_start` gave it, None for the one that is served; `Late` for any other (A46)."""
        return self._wait(self.ask_suspend(session), timeout_ms)

    def resume(self, *, timeout_ms: float | None = None) -> Outcome:
        """A session begins: resume what this process, or a process that died, left in this directory; never take what
        nobody owns, and never what another directory left (S33). Outcomes as those of `acquire`. A registry that
        cannot be reached is tried until it is: the default time limit is one lease."""
        limit = self.lease.timings.stale_ms if timeout_ms is None else timeout_ms
        return self._wait(self.ask_resume(), limit)

    def session_start(self) -> int:
        """As `resume`, without waiting (A43): the start is deferred to a turn of its own. Answers the session, for
        `suspend`."""
        ask = self.ask_resume()
        return ask.session

    def commit_if_owned(self, effect: Callable[[int], T]) -> T:
        """Run `effect` with the epoch inside the ownership transaction (locks.md 7.2). Everybody else waits: it must
        be short, and use no method of this object. Raises NotOwner without having run it, GuardBusy and the like when
        the registry could not be reached; its own exceptions come through."""
        self._refuse_forked()
        try:
            return self.lease.commit(effect)
        except NotOwner:
            self.polling.look_soon()
            self.wake()
            raise

    def may_send(self) -> int | None:
        """The epoch under which a request may go out now; None when it may not: not leading, or past the own lease by
        the own clock, also just after a pause (S29, K11). Reads no file."""
        epoch = self.polling.may_send()
        if epoch is None and self.polling.watched:
            self.polling.look_soon()
            self.wake()
        return epoch

    def statistics(self) -> Statistics:
        """What this runtime has done so far."""
        return self.polling.statistics()

    # -- the same, without waiting ------------------------------------------------------------------------------------

    def ask_acquire(self, *, force: Owner | None = None) -> Ask:
        """`acquire`, to be waited for by pumping: `Ask.outcome` is None until there is one."""
        return self._ask(AcquireAsk(self.polling, self.interactive, self._alone, force))

    def ask_elect(self, observed: Owner | None) -> Ask:
        """`elect`, likewise."""
        return self._ask(ElectAsk(self.polling, self.interactive, self._alone, observed))

    def ask_release(self) -> Ask:
        """`release`, likewise. The work is told at the next turn; starts that still wait for theirs are given up."""
        self._give_up_starts()
        return self._ask(ReleaseAsk(self.polling))

    def ask_suspend(self, session: int | None = None) -> Ask:
        """`suspend`, likewise; starts that still wait for their turn are given up."""
        ask = SuspendAsk(self.polling, session)
        with self.polling.mutex:
            waiting = [other for other in self._asks if not other.taken]
            self._ask(ask)
        if not isinstance(ask.outcome, Late):
            self._give_up_starts(waiting)
        return ask

    def ask_resume(self) -> ResumeAsk:
        """`resume`, likewise."""
        with self.polling.mutex:
            self._session += 1
            ask = ResumeAsk(self.polling, self.interactive, self._session)
        self._ask(ask)
        return ask

    def withdraw(self, ask: Ask) -> Ask | None:
        """Nobody wants `ask` any more: it is forgotten, and if the machine has taken it, the release that rolls it back
        is answered. None where there is nothing to roll back."""
        with self.polling.mutex:
            self._asks = [other for other in self._asks if other is not ask]
            begun = ask.taken or isinstance(ask.outcome, Elected | Following)
            return self.ask_release() if begun and ask.began else None

    def pump(self) -> int:
        """Do everything that is due, and answer `due_ms`. Waits for the guard where it has to (up to two seconds), for
        nothing else. Does nothing while another thread pumps, and inside a callback."""
        self._pump()
        return self.due_ms()

    def due_ms(self) -> int:
        """In how many ms `pump` should be called again, at the latest."""
        with self.polling.mutex:
            naps = [ask.nap_ms for ask in self._asks if not ask.taken]
        return min([self.polling.due_ms(), *naps])

    def descriptors(self) -> tuple[int, ...]:
        """Call `pump` when one of these is readable: the work's, if it has one."""
        found = self.work.fileno()
        return (found,) if found >= 0 else ()

    def wake(self) -> None:
        """Have the keeping threads look around now. From any thread."""
        keeper = self._keeper
        if keeper is not None:
            keeper.wake()

    # -- keeping ------------------------------------------------------------------------------------------------------

    def start_keeping(self) -> None:
        """Start the daemon threads that look after the lease and run the user's code, until `stop_keeping`."""
        if self._keeper is None:
            self._keeper = Keeper(self._keep_once, self._inside)
            self.polling.hands = self._keeper.run_beside

    def stop_keeping(self) -> None:
        """End them; the lease then passes unless somebody pumps."""
        keeper, self._keeper = self._keeper, None
        self.polling.hands = at_once
        if keeper is not None:
            keeper.stop()

    def close(self) -> None:
        """End the threads, and forget this runtime where it has settled. It releases nothing."""
        self.stop_keeping()
        self._leave()

    @property
    def phase(self) -> str:
        """The phase of the polling machine: active while the work runs under a lease found healthy."""
        return self.polling.phase

    @property
    def epoch(self) -> int | None:
        """The epoch of the lease in memory."""
        return self.lease.epoch

    def __enter__(self) -> Leadership:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release and stop keeping. A killed process, and a fork, do nothing of the kind."""
        if (error is None or isinstance(error, Exception | KeyboardInterrupt | SystemExit)) and not self._forked():
            self.release()
            self.close()

    # -- inside -------------------------------------------------------------------------------------------------------

    def _ask(self, ask: Ask) -> Ask:
        self._refuse_forked()
        if isinstance(ask, AcquireAsk | ElectAsk | ResumeAsk):
            self._enter()
        with self.polling.mutex:
            self._asks.append(ask)
            if ask.prompt:
                ask.advance()
        self.wake()
        return ask

    def _pump(self) -> bool:
        if threading.get_ident() in self._inside or not self._turns.acquire(blocking=False):
            return False
        self._inside.add(threading.get_ident())
        try:
            self._refuse_forked()
            self._advance()
            while self.polling.turn():
                self._advance()
            return True
        finally:
            self._inside.discard(threading.get_ident())
            self._turns.release()

    def _advance(self) -> None:
        """Let everybody who waits look whether it is over."""
        with self.polling.mutex:
            asks = list(self._asks)
        for ask in asks:
            if isinstance(ask, AcquireAsk | ElectAsk | ResumeAsk) and not ask.taken:
                self._see_older_retire()
            ask.advance()
        with self.polling.mutex:
            self._asks = [ask for ask in self._asks if ask.outcome is None]

    def _wait(self, ask: Ask, timeout_ms: float | None) -> Outcome:
        if threading.get_ident() in self._inside:
            return ask.outcome or Waiting(self.polling.trouble)
        until = None if timeout_ms is None else self._clock.fence_ms() + timeout_ms
        while ask.outcome is None:
            if self._keeper is not None and self._keeper.alive:
                left = 1000.0 if until is None else until - self._clock.fence_ms()
                ask.wait(min(left, 1000.0))
            else:
                if not self._pump():
                    ask.wait(POLL_MS)  # another thread pumps
                elif ask.outcome is None and (due := self.due_ms()):
                    self._clock.sleep_ms(due)
            if ask.outcome is None and until is not None and self._clock.fence_ms() >= until:
                return Waiting(self.polling.trouble)
        return ask.outcome

    def _keep_once(self) -> int | None:
        """What the keeper does again and again: it answers when, and None for never."""
        if self.polling.gone and self.polling.settled:
            return None
        try:
            return self.pump()
        except TenureError as error:
            tell(self.lease.ports, "lock", "keep", error=str(error))
            return None
        except Exception as error:
            # A fault of this program: it is said, and the watchers go on.
            tell(self.lease.ports, "lock", "keep", error=f"{type(error).__name__}: {error}")
            return max(1, self.due_ms())

    def _report(self, outcome: Outcome) -> None:
        try:
            if isinstance(outcome, Elected) and self._on_elected is not None:
                self._on_elected(outcome)
            if isinstance(outcome, Lost) and self._on_lost is not None:
                self._on_lost(outcome)
        finally:
            if self._on_outcome is not None:
                self._on_outcome(outcome)

    # -- the other runtimes of this process ---------------------------------------------------------------------------

    def _started(self) -> list[Leadership]:
        process = self._process if self._process is not None else process_state()
        key = self.lease.directory.registry, self.lease.key
        return _STARTED.setdefault(process, {}).setdefault(key, [])

    def _give_up_starts(self, waiting: list[Ask] | None = None) -> None:
        """A person disconnects, a session ends: what was wished before does not stand any more (A43)."""
        for ask in list(self._asks) if waiting is None else waiting:
            if isinstance(ask, AcquireAsk | ResumeAsk | ElectAsk):
                ask.give_up(Over())

    def _enter(self) -> None:
        """This runtime starts: the older ones of its process retire, and where there is a newer one, this one does
        (S18, S37)."""
        started = self._started()
        if self not in started:
            started.append(self)
        for other in list(started):
            if other is not self:
                min(self, other, key=_generation).retire()

    def _see_older_retire(self) -> None:
        """Whoever waits for its predecessors lends them a hand: nobody else may be pumping them."""
        started = self._started()
        for other in list(started):
            if _generation(other) < _generation(self):
                other.pump()
                if other.polling.gone:
                    started.remove(other)

    def retire(self) -> None:
        """A newer runtime of this process was loaded: stop the work for it, and lead no more."""
        with self.polling.mutex:
            if not any(isinstance(ask, RetireAsk) for ask in self._asks) and self.phase != "retired":
                self._asks.append(RetireAsk(self.polling))
                self._asks[-1].advance()
        self.wake()

    def _alone(self) -> bool:
        return all(other.polling.gone for other in self._started() if _generation(other) < _generation(self))

    def _leave(self) -> None:
        if self._forked():
            return
        started = self._started()
        if self in started and self.polling.settled:
            started.remove(self)

    def _forked(self) -> bool:
        return self.lease.ports.processes.me() != self.lease.data.me.process

    def _refuse_forked(self) -> None:
        if self._forked():
            raise TenureError(f"this leadership is process {self.lease.data.me.process.pid}'s; make one after the fork")


def _generation(lead: Leadership) -> int:
    return lead.lease.data.generation
