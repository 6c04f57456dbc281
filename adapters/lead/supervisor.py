"""The supervisor of ``tenure lead``: it stands by, leads, keeps the lease, and tells its guardian how long.

One thread, one place to wait. The polling machine decides; here its turns are taken, the registry is looked at while
somebody else leads, and signals reach COMMAND. There are no slots and no grace: a proven death of the leader is enough,
otherwise its lease has to be over.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from tenure.adapters.errors import TenureError, printable
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardBusy, GuardDamaged, GuardLost
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.timings import Timings
from tenure.adapters.lead import group
from tenure.adapters.lead.channel import Bell
from tenure.adapters.lead.employer import GuardedCommand
from tenure.adapters.lead.guardian import Work
from tenure.adapters.lead.standby import Standby
from tenure.adapters.ports import Ports
from tenure.adapters.runtime.outcomes import Failed, Left, Lost, Outcome, Refused
from tenure.adapters.runtime.polling import Polling
from tenure.adapters.runtime.work import NoThreadMode
from tenure.machines import polling_messages as own
from tenure.machines.lease import ACTIVE_ELSEWHERE

FORWARDED: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that COMMAND gets; they end a supervisor that has none. SIGHUP is one of them because a lost terminal must
not leave COMMAND without its supervisor."""
_BAD_INPUT: Final = 2
_STDERR: Final = 2
_HURRY_MS: Final = 10
"""How long until the next attempt where the last one came too early: the guard was busy, say."""


class Supervisor:
    """One candidate for the leadership of one key. Make it and `run` it in the main thread of a process without other
    threads: it forks."""

    def __init__(
        self,
        ports: Ports,
        directory: AgentDirectory,
        key: str,
        timings: Timings,
        work: Work,
        say: Callable[[str], None],
    ) -> None:
        """Forks the guardian, and listens to signals from now on."""
        self._ports = ports
        self._timings = timings
        self._say = say
        self._said = ""
        self._bell = Bell([*(number for number in FORWARDED if number not in work.ignored), signal.SIGCHLD])
        self._work = GuardedCommand(work, ports.clock, self._tell)
        self._lease = LeaseRuntime(ports, directory, key, cwd=os.getcwd(), timings=timings)
        self._polling = Polling(self._lease, self._work, NoThreadMode(), lambda: True, self._reported)
        self._standby = Standby(ports, timings)
        self._status: int | None = None
        """How this process will exit, once it owns nothing any more."""
        self._error: TenureError | None = None
        self._left = False
        """The entry could not be released, and is left to grow old."""
        self._hurry = False
        """There is something to do soon that nothing announces."""
        self._refused = False
        """The lease was not to be had just now, so this process looks again before it asks again."""

    def run(self) -> int:
        """Stand by and lead, until COMMAND ends by itself or a signal asks for the end; the exit status. Raises
        `TenureError` for what a person has to mend."""
        try:
            while not self._turn():
                pass
        finally:
            self._standby.close()
            self._work.close(self._bell)
            self._bell.close()
        if self._error is not None:
            raise self._error
        assert self._status is not None
        return self._status

    def _turn(self) -> bool:
        """All that is due, then wait; whether everything is over."""
        self._drive()
        self._hurry = False
        while self._polling.settled and self._polling.phase == "idle":
            if self._rest():
                return True
            self._drive()
            if self._hurry or self._standby.due_ms() is not None:
                break
        due = [self._polling.due_ms(), self._work.due_ms(), self._standby.due_ms(), _HURRY_MS if self._hurry else None]
        descriptors = [number for number in (self._work.fileno(), self._standby.fileno()) if number >= 0]
        signals = self._bell.wait(descriptors, min(ms for ms in due if ms is not None))
        self._work.look(group.reaped())
        for number in sorted(signals.intersection(FORWARDED)):
            self._signalled(number)
        if self._work.over is not None:
            self._command_over()
        return False

    def _drive(self) -> None:
        """Take the machine's turns. What was renewed holds from a moment before it was asked for."""
        counters = self._polling.counters
        while True:
            asked_ms, before = self._ports.clock.fence_ms(), counters.acquisitions + counters.refreshes
            if not self._polling.turn():
                return
            if counters.acquisitions + counters.refreshes > before:
                self._work.renewed(asked_ms + self._timings.stale_ms)

    def _rest(self) -> bool:
        """Nothing runs, nothing is asked for: leave, or look who leads; whether to leave."""
        if self._status is not None and (self._left or self._lease.epoch is None):
            return True
        if self._lease.epoch is not None:
            # After a loss the entry may still be ours, if nobody wanted it. The next COMMAND has an epoch of its own.
            self._polling.offer(own.Stop(), "Stop")
            return False
        view = self._lease.look()
        if not view.readable:
            self._fail(TenureError(view.problem))
            return True
        if view.state != ACTIVE_ELSEWHERE and not self._refused:
            self._standby.close()
            self._polling.offer(own.Start(interactive=True, alone=True), "Start")
            return False
        self._refused = False
        if view.entry is not None:
            if view.entry.pid <= 0 and view.entry.heartbeat_ms is None:
                # It can neither be seen to die nor grow old: to stand by would be for ever.
                registry = self._lease.directory.registry
                self._fail(TenureError(f"{registry}: {self._lease.key}.pid is no process; remove this entry by hand"))
                return True
            self._standby.behind(view.entry)
            self._tell(f"standing by behind pid {view.entry.pid}")
        else:
            self._hurry = True
        return False

    def _reported(self, outcome: Outcome) -> None:
        match outcome:
            case Refused():
                self._refused = True
            case Lost():
                self._tell(f"{outcome}; COMMAND is ended")
            case Failed(error, cause):
                if isinstance(cause, GuardLost) or (
                    isinstance(cause, GuardBusy) and not isinstance(cause, GuardDamaged)
                ):
                    self._hurry = True
                    self._tell(f"waiting: {error}")
                elif cause is not None:
                    self._fail(cause if isinstance(cause, TenureError) else TenureError(error))
                elif self._status is None:
                    self._tell(f"lost epoch {self._polling.epoch}: {error}")
            case Left():
                self._left = self._hurry = True
                self._tell(str(outcome))
            case _:
                pass

    def _command_over(self) -> None:
        over = self._work.over
        assert over is not None
        if self._status is not None:
            return
        if over.why == "ended":
            self._status = over.status
        elif over.why == "failed":
            self._status = over.status
            if over.status is None:
                self._fail(TenureError(over.error))
            else:
                self._tell(over.error)

    def _signalled(self, number: int) -> None:
        if self._work.may_be_signalled:
            self._work.forward(number)
            return
        if self._status is None:
            self._tell(f"ended by {signal.Signals(number).name}")
            self._status = 128 + number
        if self._polling.phase != "idle":
            self._polling.offer(own.Stop(), "Stop")

    def _fail(self, error: TenureError) -> None:
        if self._error is None:
            self._error, self._status = error, _BAD_INPUT

    def _tell(self, text: str) -> None:
        """One line for each change."""
        if text != self._said:
            self._said = text
            self._say(text)


def to_stderr(text: str) -> None:
    """Where a person reads. A reader that is gone changes nothing, nor does one that is stuck: a supervisor that waited
    for it would lose its lease."""
    poll = select.poll()
    poll.register(_STDERR, select.POLLOUT)
    with suppress(OSError):
        if any(event & select.POLLOUT for _, event in poll.poll(0)):
            os.write(_STDERR, f"tenure: {printable(text)}\n".encode())
