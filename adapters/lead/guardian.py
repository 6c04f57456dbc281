"""The guardian of ``tenure lead``: it holds the lock while COMMAND runs, and ends COMMAND when the lease is over.

A process of its own, forked by the supervisor before there is anything to lead, so that a won election costs one fork.
It ends COMMAND's process group when the supervisor says so, when the supervisor is gone (end of file), and when the
lease has passed by the guardian's own clock, which a stopped supervisor cannot keep it from seeing. It gives the lock
up only when nothing of COMMAND is left; what left the group keeps the lock, its own copy or the guardian's.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NoReturn

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.lead import group
from tenure.adapters.lead.channel import (
    Bell,
    Channel,
    Ended,
    Forward,
    Over,
    Prepared,
    Run,
    Running,
    Shared,
    Stop,
    Waiting,
    Why,
    Word,
    channels,
)
from tenure.adapters.lead.lock import Record, WorkLock
from tenure.adapters.ports import Clock

_LATE_MS: Final = 250
"""A lock that is held for longer than this is worth a word."""
_TRY_MS: Final = 2.0
_TRY_LATE_MS: Final = 25.0
"""How often the lock is tried, at first and when it takes long."""
_LOOK_MS: Final = 3.0
"""How often an ending group is looked at."""
_LONGEST_MS: Final = 500.0
"""The longest wait: timers stand still in a suspend, the lease does not."""
_IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@attrs.frozen
class Work:
    """What a guardian runs, and how it is ended."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    """Without the epoch."""
    lock: str
    kill_after_ms: int
    ignored: frozenset[int]
    """Signals that were ignored when the program started; COMMAND ignores them as well."""
    supervisor: int


@attrs.define
class _Waits:
    """For the lock."""

    epoch: int
    lock: WorkLock
    since_ms: int
    told: bool = False


@attrs.define
class _Runs:
    """COMMAND runs, or is being ended."""

    lock: WorkLock
    charge: group.Charge
    child: group.Spare
    failed: int | None = None
    """The status for a COMMAND that could not be executed."""
    error: str = ""


class Guardian:
    """The guardian's side."""

    def __init__(self, channel: Channel, lease: Shared, work: Work, clock: Clock) -> None:
        self._channel = channel
        self._lease = lease
        self._work = work
        self._clock = clock
        self._bell = Bell([signal.SIGCHLD])
        self._state: _Waits | _Runs | None = None
        self._kept: WorkLock | None = None
        """What keeps the lock for descendants that left the group."""
        self._spare: group.Spare | None = None
        """The child that will be the next COMMAND."""

    def serve(self) -> None:
        """Until the supervisor is gone and nothing is left to guard."""
        while not self._channel.closed or self._state is not None:
            self._turn()
        if self._kept is not None:
            _let_go_of_terminal()
            while self._kept is not None:
                self._turn()

    def _turn(self) -> None:
        self._have_spare()
        self._wait()
        for word in self._channel.hear():
            self._hear(word)
        if self._channel.closed:
            self._end("stopped")
        statuses = group.reaped()
        if isinstance(self._state, _Runs):
            status = statuses.get(self._state.charge.pid)
            if status is not None:
                if self._state.charge.why is None:
                    # Said at once: from now on nobody else can learn it.
                    self._channel.say(Ended(status))
                self._state.charge.status = status
        elif self._spare is not None and self._spare.pid in statuses:
            self._spare.close()
            self._spare = None
        elif self._kept is not None and not group.has_children():
            self._kept.close()
            self._kept = None
        if self._state is not None and self._clock.fence_ms() > self._lease.get():
            self._end("passed")
        if isinstance(self._state, _Waits):
            self._try(self._state)
        elif self._state is not None:
            self._look(self._state)

    def _wait(self) -> None:
        descriptors = [] if self._channel.closed else [self._channel.fileno()]
        state, left = self._state, _LONGEST_MS
        if isinstance(state, _Waits):
            left = _TRY_LATE_MS if state.told else _TRY_MS
        elif isinstance(state, _Runs):
            if state.child.fileno() >= 0:
                descriptors.append(state.child.fileno())
            ends = state.charge.why is not None
            left = _LOOK_MS if ends else self._lease.get() - self._clock.fence_ms() + 1
        self._bell.wait(descriptors, min(left, _LONGEST_MS))

    def _hear(self, word: Word) -> None:
        if isinstance(word, Run) and self._state is None:
            try:
                self._state = _Waits(word.epoch, WorkLock(self._work.lock), self._clock.fence_ms())
            except TenureError as error:
                self._over(Over("failed", None, error=str(error)))
        elif isinstance(word, Stop):
            self._end("stopped")
        elif isinstance(word, Forward) and isinstance(self._state, _Runs):
            group.send(self._state.charge.pid, word.signal)

    def _end(self, why: Why) -> None:
        if isinstance(self._state, _Waits):
            self._state.lock.close()
            self._over(Over(why, None))
        elif self._state is not None:
            self._state.charge.end(why)

    def _try(self, state: _Waits) -> None:
        try:
            if state.lock.take():
                self._start(state)
            elif not state.told and self._clock.fence_ms() - state.since_ms > _LATE_MS:
                state.told = True
                self._channel.say(Waiting())
        except TenureError as error:
            state.lock.close()
            self._over(Over("failed", None, error=str(error)))

    def _have_spare(self) -> None:
        """Fork the next COMMAND's process now, so that the lock need not wait for it. Not while descendants of the last
        one are waited for: it would be one of the children that are counted."""
        if self._spare is None and self._kept is None and not isinstance(self._state, _Runs):
            with suppress(OSError):  # perhaps there can be one when it is needed
                self._spare = self._fork()

    def _fork(self) -> group.Spare:
        return group.Spare(self._work.command, self._work.environment, self._work.ignored)

    def _start(self, state: _Waits) -> None:
        child, self._spare = self._spare, None
        try:
            if child is not None and not child.ready():
                child.close()
                child = None
            if child is None:
                child = self._fork()
                child.ready()
        except OSError as error:
            raise TenureError(f"no process for {self._work.command[0]}: {error.strerror}") from error
        record = Record(os.getpid(), self._work.supervisor, child.pid, state.epoch, self._work.command)
        state.lock.write(record)
        # The supervisor can hear of the child before the child can become COMMAND: it never has to search for it.
        self._channel.say(Prepared(child.pid))
        self._state = _Runs(state.lock, group.Charge(child.pid, self._work.kill_after_ms, self._clock), child)
        child.go(state.epoch, state.lock.fileno())

    def _look(self, state: _Runs) -> None:
        number = state.child.executed() if state.child.fileno() >= 0 else None
        if number is not None:
            if number == 0:
                self._channel.say(Running(state.charge.pid))
            else:
                state.charge.end("failed")
                state.error = f"{self._work.command[0]}: {os.strerror(number)}"
                state.failed = group.exec_status(number)
        if not state.charge.over():
            return
        state.child.close()
        charge = state.charge
        charge.status = group.reaped().get(charge.pid, charge.status)
        left = group.has_children()
        if left:
            # Perhaps none of them has the descriptor any more; then this is what keeps the lock for them.
            self._kept = state.lock
        else:
            state.lock.close()
        status = charge.status if state.failed is None else state.failed
        self._over(Over(charge.why or "ended", status, left, state.error))

    def _over(self, word: Over) -> None:
        self._channel.say(word)
        self._state = None


def _let_go_of_terminal() -> None:
    """Whoever reads what COMMAND wrote need not wait for what COMMAND left behind."""
    with open(os.devnull, "r+b", buffering=0) as nothing:
        for descriptor in range(3):
            os.dup2(nothing.fileno(), descriptor)


@attrs.frozen
class Hired:
    """A guardian as its supervisor knows it."""

    pid: int
    channel: Channel


def hire(lease: Shared, work: Work, clock: Clock) -> Hired:
    """Fork a guardian. The calling process has one thread. Raises `TenureError` when there can be no process."""
    mine, its = channels()
    # No signal between the fork and the guardian's own handlers: it would ring in the supervisor.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            mine.close()
            _guard(its, lease, work, clock)
    except OSError as error:
        mine.close()
        raise TenureError(
            f"no process for a guardian: {error.strerror}; lead again when the machine has room"
        ) from error
    finally:
        its.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return Hired(pid, mine)


def _guard(channel: Channel, lease: Shared, work: Work, clock: Clock) -> NoReturn:
    """The life of the guardian."""
    try:
        os.setsid()
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        group.adopt_orphans()
        guardian = Guardian(channel, lease, work, clock)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        guardian.serve()
    except Exception as error:
        print(f"tenure: the guardian failed: {error!r}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)
