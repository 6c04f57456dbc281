"""The LEADER_ELECTION machine, run: what it is told of the registry, what it asks for, how that went.

The half of a `LeaseRuntime` that knows nothing of acquiring or releasing: it enters the guard, reads, tells the
machine, performs its outputs and feeds the answers. The other half, `tenure.adapters.files.lease`, says what is offered
when.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

import attrs

from tenure.adapters.errors import TenureError, to_read
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.high_water import raise_mark
from tenure.adapters.files.lease_events import record
from tenure.adapters.files.lease_values import Guard, Inside
from tenure.adapters.files.registry import Registry, RegistryDamaged, parse_registry
from tenure.adapters.files.replacing import WriteFailed, read_or_absent, replace_file
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Ports, tell
from tenure.machines.chart import Refused, Step, step
from tenure.machines.entry import Entry
from tenure.machines.identity import RUNNING, UNKNOWN, Sighting, is_me
from tenure.machines.leader_election import LEADER_ELECTION
from tenure.machines.leader_messages import (
    Abandon,
    DeleteEntry,
    Happening,
    Landed,
    Lost,
    Me,
    Outcome,
    Output,
    Owned,
    Raised,
    RaiseHighWater,
    Resolve,
    RunEffect,
    Runtime,
    SendEffect,
    Settle,
    WriteEntry,
)
from tenure.machines.lease import Sight, classify

T = TypeVar("T")

NOBODY: Final = Sighting(UNKNOWN)
Taken = Step[Runtime, Output] | Refused


class Transaction:
    """What one operation knows while it is inside."""

    def __init__(self, path: str, number: int) -> None:
        self.path = path
        self.number = number
        self.registry = Registry()
        self.sight = Sight(False, False, "", None, NOBODY, 0, 0)
        self.mark = 0
        """The high-water mark that was read."""
        self.how = ""
        """How the key was acquired, as the machine says."""
        self.effect: Callable[[int], None] = _no_effect
        self.raised: Exception | None = None
        """What the effect raised."""
        self.error: WriteFailed | None = None
        """Why a write failed."""

    def require_readable(self) -> None:
        """Raises RegistryDamaged where that is why the machine refused: nothing was changed (S12)."""
        if not self.sight.readable:
            found = self.registry
            raise RegistryDamaged(f"{self.path}: {found.problem}; nothing was changed: {found.remedy}")

    def failure(self) -> TenureError:
        """Why the operation did not come about."""
        if self.error is not None:
            return self.error
        self.require_readable()
        return TenureError(f"{self.path}: it is not known what was written; try again")


class LeaseSteps:
    """The machine, with its calls. `phase` and `data` are the machine's."""

    def __init__(
        self, ports: Ports, directory: AgentDirectory, key: str, timings: Timings, guard: Guard, identity: Me
    ) -> None:
        self.ports = ports
        self.directory = directory
        self.key = key
        self.timings = timings
        self.guard = guard
        self.instance_id = identity.instance_id
        self.node = f"{identity.process.pid}-{identity.process.birth.ticks}/{identity.instance_id}"
        """Its name in a recording."""
        self._operating = threading.RLock()
        """Held by an operation from the wish to its end, also while it waits for the guard."""
        self._lock = threading.RLock()
        """Held while the machine is told something, and from the read inside to the last answer."""
        self._now: tuple[str, Runtime] = (LEADER_ELECTION.initial, Runtime(identity, key))
        self._transaction: Transaction | None = None
        self._asking_ms = 0
        """Fence clock: when the operation that runs was asked for; when the last lease that was written was."""
        self._asked_ms = 0
        self._last_seen: Entry | None = None
        """The entry that was read last, and since when (monotonic) it has been read unchanged."""
        self._seen_since_ms = 0

    @property
    def phase(self) -> str:
        """The machine's phase: idle, owner, doubtful; others while an operation runs."""
        return self._now[0]

    @property
    def data(self) -> Runtime:
        """The machine's memory."""
        return self._now[1]

    # -- in and out ---------------------------------------------------------------------------------------------------

    def _run(self, operation: Callable[[Transaction], T], attempts: int | None = None) -> tuple[T, TenureError | None]:
        """Run `operation` inside the guard, after a doubt is resolved. What it has done is not undone by an error on
        the way out (K9c): that comes beside the result."""
        done: list[T] = []

        def inside(guarded: Inside) -> T:
            with self._lock:
                transaction = self._transaction = Transaction(self.directory.registry, guarded.number)
                try:
                    self._begin(transaction)
                    done.append(operation(transaction))
                finally:
                    self._transaction = None
            return done[0]

        self._refuse_nested()
        with self._operating:
            self._refuse_forked()
            self._asking_ms = self.ports.clock.fence_ms()
            try:
                return self.guard.run(inside, attempts=attempts), None
            except TenureError as error:
                if not done:
                    raise
                tell(self.ports, "lock", "leave", error=str(error))
                return done[0], error

    def _begin(self, transaction: Transaction) -> None:
        """Read, once. What an interrupt has broken off is ended first, and a doubt is resolved (K9)."""
        broken = _BROKEN_OFF.get(self.phase)
        if broken is not None:
            self._tell(broken, transaction.number)
        transaction.registry, transaction.sight = self._read(inside=True)
        if self.phase == "doubtful":
            self._drive(transaction, Resolve(transaction.sight))
            transaction.require_readable()

    def _resolve(self, transaction: Transaction) -> None:
        """Read again, in the same transaction, what nobody knows to be written; where that fails the doubt stays."""
        transaction.registry, transaction.sight = self._read(inside=True)
        self._drive(transaction, Resolve(transaction.sight))

    # -- the machine and its outputs ----------------------------------------------------------------------------------

    def _drive(self, transaction: Transaction, message: Happening) -> Taken:
        """Tell the machine, perform what it asks for, and tell it the answers."""
        taken = self._tell(message, transaction.number, transaction.sight)
        if isinstance(taken, Step):
            for output in taken.outputs:
                answer = self._perform(transaction, output)
                if answer is not None:
                    self._drive(transaction, answer)
        return taken

    def _tell(self, message: Happening, number: int, sight: Sight | None = None) -> Taken:
        before = self._now
        taken = step(LEADER_ELECTION, *before, message)
        if isinstance(taken, Step):
            self._now = taken.phase, taken.data
            if self.ports.recorder is not None and before != self._now:
                record(self.ports.recorder, self.node, number, message, sight, before, self._now)
        return taken

    def _perform(self, transaction: Transaction, output: Output) -> Happening | None:
        match output:
            case WriteEntry(key, entry):
                return self._settle(transaction, transaction.registry.with_entry(key, entry))
            case DeleteEntry(key):
                return self._settle(transaction, transaction.registry.without(key))
            case RaiseHighWater(epoch):
                durable = True
                try:
                    raise_mark(self.ports, self.directory.high_water, epoch, transaction.mark, self.timings)
                except WriteFailed as error:
                    durable, transaction.error = False, error
                return Raised(durable, self.ports.clock.wall_ms(), self.ports.clock.monotonic_ms())
            case RunEffect(_, epoch):
                try:
                    transaction.effect(epoch)
                except Exception as error:
                    transaction.raised = error
                return Landed()
            case Owned(_, _, how):
                transaction.how = how
            case Lost(key, epoch):
                tell(self.ports, "lock", "lost", key=key, epoch=epoch)
            case SendEffect():
                raise AssertionError("what is sent is sent by whoever asked")
        return None

    def _settle(self, transaction: Transaction, data: bytes) -> Happening:
        outcome = Outcome.SUCCEEDED
        try:
            replace_file(self.ports, self.directory.registry, data, self.timings)
        except WriteFailed as error:
            outcome, transaction.error = error.outcome, error
        if outcome is Outcome.SUCCEEDED or (outcome is Outcome.UNKNOWN and self.phase == "placing"):
            self._asked_ms = self._asking_ms
        return Settle(outcome)

    # -- reading ------------------------------------------------------------------------------------------------------

    def _read(self, *, inside: bool) -> tuple[Registry, Sight]:
        """The registry, and what this runtime sees of its key in it."""
        try:
            registry = parse_registry(read_or_absent(self.ports.files, self.directory.registry))
        except OSError as error:
            registry = Registry(problem=f"cannot be read: {error.strerror or error}", remedy=to_read(error))
        if not registry.problem and (problem := registry.implausible(self.key)):
            registry = attrs.evolve(registry, problem=problem)
        entry = None if registry.problem else registry.entry(self.key)
        now_ms = self.ports.clock.monotonic_ms()
        if not registry.problem and entry != self._last_seen:
            self._last_seen, self._seen_since_ms = entry, now_ms
        sight = Sight(
            inside=inside,
            readable=not registry.problem,
            key=self.key,
            entry=entry,
            seen=NOBODY if entry is None else self._sighting(entry),
            wall_ms=self.ports.clock.wall_ms(),
            monotonic_ms=now_ms,
            unchanged_ms=0 if entry is None else now_ms - self._seen_since_ms,
        )
        return registry, sight

    def _sighting(self, entry: Entry) -> Sighting:
        """The probe of the entry's pid; of oneself one knows that one runs."""
        me = self.data.me.process
        if is_me(entry.pid, entry.birth, me):
            return Sighting(RUNNING, me.birth.ticks)
        return self.ports.processes.sighting(entry.pid)

    def _classify(self, sight: Sight) -> str:
        return classify(sight.entry, sight, self.data.me.process, self.data.me.stale_ms)

    # -- what is out of place -----------------------------------------------------------------------------------------

    def _refuse_nested(self) -> None:
        """K13: an operation inside an effect of this runtime would wait for itself."""
        with self._lock:
            if self._transaction is not None:
                raise TenureError(
                    f"{self.directory.registry}: an effect used the lease that it runs under; end it first"
                )

    def _forked(self) -> bool:
        """A fork has its parent's memory and is another process: it owns nothing."""
        return self.ports.processes.me() != self.data.me.process

    def _refuse_forked(self) -> None:
        if self._forked():
            pid = self.data.me.process.pid
            raise TenureError(f"{self.directory.registry}: this lease is of process {pid}; make one after the fork")


def _no_effect(epoch: int) -> None:
    raise AssertionError("only a commit runs an effect")


_BROKEN_OFF: Final[dict[str, Happening]] = {
    "minting": Abandon(),
    "raising": Raised(False, 0, 0),
    "placing": Settle(Outcome.UNKNOWN),
    "renewing": Settle(Outcome.UNKNOWN),
    "deleting": Settle(Outcome.UNKNOWN),
    "committing": Landed(),
}
"""What an operation that an interrupt (Ctrl-C) broke off has not been told: nobody knows that it was done."""
