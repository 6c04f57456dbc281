"""Wishes of the verbs: each is offered to the polling machine until it is taken, and followed until it has come to
something. An event that the machine refuses in one phase is offered again when the phase has changed (DESIGN 4)."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

import attrs

from tenure.adapters.files.lease import View
from tenure.adapters.runtime.outcomes import (
    Failed,
    Following,
    Late,
    Left,
    Outcome,
    Over,
    Refused,
    Retired,
    Suspended,
)
from tenure.adapters.runtime.polling import POLL_MS, Polling
from tenure.machines import chart
from tenure.machines import polling_messages as own
from tenure.machines.chart import Step
from tenure.machines.identity import Owner, same_owner
from tenure.machines.lease import ACTIVE_HERE, INACTIVE, STALE


class Ask(ABC):
    """One wish. `outcome` is None until it has come to something."""

    prompt = True
    """Whether it needs no file: then it is offered at once, by whoever asks."""

    def __init__(self, polling: Polling) -> None:
        self.polling = polling
        self.outcome: Outcome | None = None
        self.nap_ms = POLL_MS
        """How long until it is worth while to offer it again."""
        self.taken = False
        self.began = False
        """The machine took the wish once: what came of it is this wish's."""
        self._said: list[Outcome] = []
        self._mutex = polling.mutex
        self._over = threading.Event()
        self._listeners: list[Callable[[Outcome], None]] = []

    def advance(self) -> None:
        """Go as far as it goes now."""
        with self._mutex:
            if self.outcome is None:
                found = self._follow() if self.taken else self._offer()
                listeners = self._settle(found)
            else:
                found, listeners = None, []
        self._announce(found, listeners)

    def give_up(self, outcome: Outcome) -> None:
        """Its wish does not stand any more: unless it was taken, this is what came of it."""
        with self._mutex:
            found = outcome if self.outcome is None and not self.taken else None
            listeners = self._settle(found)
        self._announce(found, listeners)

    def _settle(self, found: Outcome | None) -> list[Callable[[Outcome], None]]:
        if found is None:
            return []
        self._part()
        self.outcome = found
        listeners, self._listeners = self._listeners, []
        return listeners

    def _announce(self, found: Outcome | None, listeners: list[Callable[[Outcome], None]]) -> None:
        if found is not None:
            self._over.set()
            for listener in listeners:
                listener(found)

    def wait(self, timeout_ms: float) -> None:
        """Wait for the outcome, which somebody else's pumping brings."""
        self._over.wait(max(timeout_ms, 0.0) / 1000)

    def then(self, listener: Callable[[Outcome], None]) -> None:
        """Have `listener` called with the outcome, by the thread that finds it; now if there is one."""
        with self._mutex:
            if self.outcome is None:
                self._listeners.append(listener)
                return
        listener(self.outcome)

    # -- for the kinds ------------------------------------------------------------------------------------------------

    @abstractmethod
    def _offer(self) -> Outcome | None:
        """Offer the wish to the machine; an outcome where that decides it."""

    def _follow(self) -> Outcome | None:
        """What was said first since the wish was taken, once everything has settled."""
        if not self.polling.settled:
            return None
        return self._first() or self._standing()

    def _try(self, message: own.Happening, action: str) -> chart.Refused | None:
        """Offer; None when it was taken."""
        self._join()
        answer = self.polling.offer(message, action)
        if isinstance(answer, Step):
            self.began = True
            return None
        self._part()
        return answer

    def _join(self) -> None:
        self.taken = True
        self.polling.listening.append(self._said)

    def _part(self) -> None:
        self.taken = False
        self.polling.listening = [said for said in self.polling.listening if said is not self._said]
        self._said.clear()

    def _first(self) -> Outcome | None:
        """The first outcome, and with a failure what became of its lease."""
        if not self._said:
            return None
        first, last = self._said[0], self._said[-1]
        if isinstance(first, Failed) and isinstance(last, Left):
            return attrs.evolve(first, left=last.error)
        return first

    def _standing(self) -> Outcome:
        """What the phase says, where nothing was reported."""
        return self._bar() or (Suspended(kept=True) if self.polling.phase == "suspended" else Over())

    def _bar(self) -> Outcome | None:
        """What a start comes to in a phase from which there is none; None where it waits for another phase."""
        match self.polling.phase:
            case "active":
                return self.polling.elected
            case "follower":
                return Following()
            case "retired":
                return Retired()
            case _:
                return None


class AcquireAsk(Ask):
    """A person connects; with `force` over exactly the owner that was shown, which may have to be shown first."""

    def __init__(
        self, polling: Polling, interactive: bool, alone: Callable[[], bool], force: Owner | None = None
    ) -> None:
        super().__init__(polling)
        self._interactive = interactive
        self._alone = alone
        self._force = force
        self._forced = False

    def _offer(self) -> Outcome | None:
        if self._force is not None and same_owner(self.polling.shown, self._force):
            self._forced = True
            refusal = self._try(own.Force(), "Force")
        else:
            refusal = self._try(own.Start(self._interactive, self._alone()), "Start")
        if refusal is None:
            return None
        if "interactive" in refusal.guards:
            return Refused(None, INACTIVE, False, "this process runs in the background, and never leads")
        return self._bar()

    def _follow(self) -> Outcome | None:
        found = super()._follow()
        offered = isinstance(found, Refused) and found.can_takeover and same_owner(found.owner, self._force)
        if offered and not self._forced:
            self._part()
            return self._offer()
        return found


class ElectAsk(Ask):
    """Succession has this process stand for election, as a follower of this machine's or of its own."""

    def __init__(self, polling: Polling, interactive: bool, alone: Callable[[], bool], observed: Owner | None) -> None:
        super().__init__(polling)
        self._interactive = interactive
        self._alone = alone
        self._observed = observed

    def _offer(self) -> Outcome | None:
        observed = self.polling.number(self._observed)
        refusal = self._try(own.Elect(observed, self._interactive, self._alone()), "Elect")
        if refusal is None:
            return None
        if "interactive" in refusal.guards:
            return Refused(None, INACTIVE, False, "this process runs in the background, and never leads")
        return self._bar()


class ReleaseAsk(Ask):
    """A person disconnects."""

    def _offer(self) -> Outcome | None:
        if self._try(own.Stop(), "Stop") is None:
            return None
        match self.polling.phase:
            case "cleaning" | "unwinding" | "releasing":
                self._join()
            case "retired":
                return Retired()
        return None

    def _follow(self) -> Outcome | None:
        if not self.polling.settled:
            return None
        ends = [said for said in self._said if isinstance(said, Over | Left)]
        return ends[-1] if ends else Retired() if self.polling.phase == "retired" else Over()


class SuspendAsk(Ask):
    """A session ends; `session` None: the one that is served."""

    def __init__(self, polling: Polling, session: int | None) -> None:
        super().__init__(polling)
        self._session = session

    def _offer(self) -> Outcome | None:
        served = self.polling.data.session
        refusal = self._try(own.Suspend(served if self._session is None else self._session), "Suspend")
        if refusal is None:
            return None
        if refusal.guards:
            return Late()
        if self.polling.phase == "suspending":
            self._join()
        return Retired() if self.polling.phase == "retired" else None

    def _follow(self) -> Outcome | None:
        if not self.polling.settled:
            return None
        return Retired() if self.polling.phase == "retired" else Suspended(kept=self.polling.phase == "suspended")


class ResumeAsk(Ask):
    """A session begins, and resumes what was left here."""

    prompt = False

    def __init__(self, polling: Polling, interactive: bool, session: int) -> None:
        super().__init__(polling)
        self.session = session
        self._interactive = interactive
        self._view: View | None = None

    def advance(self) -> None:
        if not self.taken and self.outcome is None:
            self._view = self.polling.lease.look()  # a file is read: not under the mutex
        super().advance()

    def _offer(self) -> Outcome | None:
        view = self._view
        if view is None or not view.readable:
            # Unknown: what cannot be read says neither that something was left here nor that nothing was.
            self.polling.trouble = "" if view is None else view.problem
            self.nap_ms = max(1, self.polling.lease.timings.check_ms // 4)
            return None
        entry = view.entry
        here, same_process = False, view.state == ACTIVE_HERE and not view.mine
        if entry is not None:
            here = entry.cwd == self.polling.lease.data.me.cwd if entry.cwd is not None else same_process
        message = own.SessionStart(
            session=self.session,
            interactive=self._interactive,
            observed=self.polling.number(None if entry is None else entry.owner),
            mine=view.mine,
            here=here,
            stale=view.state == STALE,
            same_process=same_process,
        )
        return None if self._try(message, "SessionStart") is None else self._bar()

    def _follow(self) -> Outcome | None:
        if not self.polling.settled:
            return None
        found = self._first() or self._bar()
        view = self._view
        if found is None and view is not None:
            owner = None if view.entry is None else view.entry.owner
            return Refused(owner, view.state, False, "nothing was left here to resume")
        return found or self._standing()


class RetireAsk(Ask):
    """A newer runtime of this process was loaded."""

    def _offer(self) -> Outcome | None:
        if self._try(own.Superseded(), "Supersede") is None:
            return self._follow()
        if self.polling.phase in ("retiring", "retired"):
            self._join()
        return None

    def _follow(self) -> Outcome | None:
        return Retired() if self.polling.gone else None
