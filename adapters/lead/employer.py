"""The work of ``tenure lead`` as its supervisor sees it: a guardian that is asked to run COMMAND, and what if it fails.

`GuardedCommand` is the `Work` that the polling machine starts and stops. As long as the guardian lives it only passes
words on. When the guardian dies, the supervisor inherits COMMAND, looks after it as the guardian would have, and is
responsible to the end; it never has the lock, which COMMAND keeps. When the guardian is stopped, COMMAND runs on, and
the supervisor ends it itself if it has to. A guardian without a COMMAND is simply replaced.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import Final, Literal

from tenure.adapters.lead import channel, group
from tenure.adapters.lead.channel import Bell, Forward, Over, Prepared, Run, Running, Shared, Stop, Waiting
from tenure.adapters.lead.guardian import Hired, Work, hire
from tenure.adapters.lead.lock import holders, state_of
from tenure.adapters.ports import Clock
from tenure.adapters.runtime.work import Ended, NoWork

_LOOK_MS: Final = 3
"""How often a group is looked at that this process has to end itself."""
_FAREWELL_MS: Final = 2_000
"""How long a dismissed guardian may take to be gone."""

_UNKNOWN_STATUS: Final = 1
_NAMED: Final = 3
"""How many holders of the lock one line names."""

State = Literal["idle", "asked", "prepared", "running"]


class GuardedCommand(NoWork):
    """A guardian, and COMMAND in its hands."""

    def __init__(self, work: Work, clock: Clock, say: Callable[[str], None]) -> None:
        """Forks the guardian. `say` tells a person what has become different."""
        super().__init__()
        self._work = work
        self._clock = clock
        self._say = say
        self._lease = Shared()
        self._inherits = group.adopt_orphans()
        self._epoch = 0
        self._pid = 0
        self._stopping = False
        self._status: int | None = None
        """COMMAND's exit status, as soon as the guardian knows it."""
        self._said = ""
        self._charge: group.Charge | None = None
        self.state: State = "idle"
        self.over: Over | None = None
        """What became of the last COMMAND; None as long as there is one."""
        self._guardian: Hired | None = hire(self._lease, work, clock)

    # -- for the polling machine --------------------------------------------------------------------------------------

    def prepare(self, epoch: int) -> None:
        self._say(f"leading with epoch {epoch}")
        self.look({})

    def start(self, epoch: int) -> None:
        self._epoch, self._stopping, self._status, self.over, self._said = epoch, False, None, None, ""
        self._ask()

    def stop(self) -> None:
        if self.state == "idle":
            return
        self._stopping = True
        if self._charge is not None:
            self._charge.end("stopped")
        elif self._guardian is not None:
            self._guardian.channel.say(Stop())

    def ended(self) -> Ended | None:
        if self.state != "idle":
            return None
        if self.over is None or self.over.why in ("ended", "stopped"):
            return Ended()
        return Ended(self.over.error or "the lease passed unrenewed")

    def fileno(self) -> int:
        return -1 if self._guardian is None else self._guardian.channel.fileno()

    # -- for the supervisor -------------------------------------------------------------------------------------------

    def renewed(self, until_ms: int) -> None:
        """The lease holds until this time of the fence clock."""
        self._lease.set(until_ms)

    @property
    def may_be_signalled(self) -> bool:
        """Whether there is a COMMAND that nobody has told to end."""
        return self.state in ("prepared", "running") and not self._stopping

    def forward(self, number: int) -> None:
        """Send a signal to COMMAND's group."""
        if self._charge is not None or self._is_stopped():
            group.send(self._pid, number)
        elif self._guardian is not None:
            self._guardian.channel.say(Forward(number))

    def due_ms(self) -> int | None:
        """In how many ms `look` has something to do that nothing announces; None for never."""
        ends = self._charge is not None and (self._charge.why is not None or not self._inherits)
        return _LOOK_MS if ends else None

    def look(self, statuses: Mapping[int, int]) -> None:
        """Hear what the guardian says, and see to it that there is one. `statuses`: the children that have ended."""
        self._hear()
        if self._guardian is not None:
            if self._guardian.pid in statuses:
                self._bereaved(self._guardian)
            elif self._is_stopped():
                self._without_guardian(self._guardian)
        if self._charge is not None:
            self._care(self._charge, statuses)
        if self._guardian is None and self.state in ("idle", "asked"):
            self._guardian = hire(self._lease, self._work, self._clock)
            if self.state == "asked":
                self._ask()

    def close(self, bell: Bell) -> None:
        """Dismiss the guardian and see it go; one that still keeps the lock for something stays."""
        guardian, self._guardian = self._guardian, None
        if guardian is None:
            return
        guardian.channel.close()
        if self.state == "idle" and state_of(guardian.pid) == "stopped":
            os.kill(guardian.pid, signal.SIGKILL)
        until = self._clock.fence_ms() + _FAREWELL_MS
        stays = self.over is not None and self.over.left
        while not stays and guardian.pid not in group.reaped() and self._clock.fence_ms() < until:
            bell.wait((), 50)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        self.state = "asked"
        if self._guardian is not None:
            self._guardian.channel.say(Run(self._epoch))

    def _hear(self) -> None:
        if self._guardian is None:
            return
        for word in self._guardian.channel.hear():
            match word:
                case Waiting():
                    self._tell_waiting()
                case Prepared(pid):
                    self.state, self._pid = "prepared", pid
                case Running(pid):
                    self.state, self._pid = "running", pid
                    if self._said:
                        self._say(f"has the lock: pid {pid} runs with epoch {self._epoch}")
                case channel.Ended(status):
                    self._status = status
                case Over():
                    self._finish(word)

    def _tell_waiting(self) -> None:
        found = [str(holder) for holder in holders(self._work.lock)] or ["another process"]
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        self._said = f"waiting for the lock {self._work.lock} held by {', '.join(found[:_NAMED])}{more}"
        self._say(self._said)

    def _status_is_lost(self, charge: group.Charge) -> bool:
        """COMMAND is no child of this process, and its guardian is gone (which may have waited for it before)."""
        return self._guardian is None and (self._inherits or group.gone(charge.pid))

    def _finish(self, word: Over) -> None:
        self.state, self.over, self._charge = "idle", word, None

    def _is_stopped(self) -> bool:
        return self._guardian is not None and state_of(self._guardian.pid) == "stopped"

    def _bereaved(self, guardian: Hired) -> None:
        """The guardian is dead. What it said before counts; its COMMAND is this process's child now."""
        guardian.channel.close()
        self._guardian = None
        if self.state in ("prepared", "running"):
            self._say(f"the guardian, pid {guardian.pid}, is gone: this process looks after pid {self._pid} itself")
            if self._charge is None:
                self._charge = group.Charge(self._pid, self._work.kill_after_ms, self._clock)
                self._charge.status = self._status
            if self._stopping:
                self._charge.end("stopped")
        elif self.state == "asked" and self._stopping:
            self._finish(Over("stopped", None))

    def _without_guardian(self, guardian: Hired) -> None:
        """The guardian is stopped. It may have the lock, but nothing runs that it would have to end; or COMMAND runs,
        and keeps the lock together with it."""
        if self.state in ("idle", "asked"):
            os.kill(guardian.pid, signal.SIGKILL)
        elif self._stopping and self._charge is None:
            self._charge = group.Charge(self._pid, self._work.kill_after_ms, self._clock)
            self._charge.end("stopped")
        elif not self._said:
            self._said = f"the guardian, pid {guardian.pid}, is stopped: pid {self._pid} keeps the lock"
            self._say(self._said)

    def _care(self, charge: group.Charge, statuses: Mapping[int, int]) -> None:
        charge.status = statuses.get(charge.pid, charge.status)
        if charge.status is None and not group.is_child(charge.pid) and self._status_is_lost(charge):
            self._say(f"pid {charge.pid} has ended, and only its guardian knew how")
            charge.status = _UNKNOWN_STATUS
        if charge.status == group.NOT_STARTED and self.state == "prepared" and not self._stopping:
            self.state, self._charge = "asked", None  # the guardian died before COMMAND could be anything
            return
        if not charge.over():
            return
        self._finish(Over(charge.why or "ended", charge.status, group.has_children()))
        if self._guardian is not None:
            # A stopped one, that has nothing to guard any more. What it may still have to say is late.
            os.kill(self._guardian.pid, signal.SIGKILL)
            self._guardian.channel.close()
            self._guardian = None
