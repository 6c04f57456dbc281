"""A lease on one key of the owner registry: the machine of `tenure.machines.leader_election`, guard and file around it.

Every operation that decides enters the guard of the registry, reads the registry once, tells the machine what it saw,
performs what the machine asks for, tells how that went, and leaves (locks.md 7). The machine decides. What is offered
to it, and in which order, is here; how it is run is in `tenure.adapters.files.lease_steps`.

A `LeaseRuntime` is one runtime of one process and may be used by several of its threads: operations come one after the
other, and one that waits for the guard keeps nobody from asking `may_send` or `lease_passed`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from tenure.adapters.errors import TenureError, to_write
from tenure.adapters.files.directory import AgentDirectory, require_directory, require_key
from tenure.adapters.files.guard import GuardedFile
from tenure.adapters.files.high_water import read_mark
from tenure.adapters.files.lease_steps import LeaseSteps, Transaction
from tenure.adapters.files.lease_values import AcquireMode, Guard, Held, Inside, NotOwner, View, Won
from tenure.adapters.files.process_state import ProcessState, process_state
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.ports import Ports, tell
from tenure.machines.chart import Refused, Step, step
from tenure.machines.identity import Owner, same_owner
from tenure.machines.leader_election import LEADER_ELECTION
from tenure.machines.leader_messages import (
    Abandon,
    Acquire,
    Commit,
    Elect,
    Force,
    Happening,
    Look,
    Me,
    Mint,
    Refresh,
    Release,
    Resume,
    Send,
    SendEffect,
    Start,
    Supersede,
)
from tenure.machines.lease import MAX_EPOCH, Sight, next_epoch, passed
from tenure.machines.polling_messages import Saw

__all__ = ["AcquireMode", "Guard", "Held", "Inside", "LeaseRuntime", "NotOwner", "View", "Won"]

T = TypeVar("T")

_ACQUIRING: Final = ("raising", "placing")
_SAW: Final[dict[str, Saw]] = {"owner": "mine", "committing": "mine", "doubtful": "unknown"}


class LeaseRuntime(LeaseSteps):
    """One runtime and its lease on `key`. `phase` and `data` are the machine's.

    `cwd`: the directory that asks for ownership; `instance_id`: ``<pid>:<generation>`` if not given. `process`: what
    all runtimes of this process share (a test gives each simulated process its own). `guard`: what excludes others, the
    registry's `GuardedFile` if not given.
    """

    def __init__(
        self,
        ports: Ports,
        directory: AgentDirectory,
        key: str,
        *,
        cwd: str | None,
        instance_id: str | None = None,
        timings: Timings = DEFAULT,
        process: ProcessState | None = None,
        bus_socket_path: str | None = None,
        bus_secret: str | None = None,
        guard: Guard | None = None,
    ) -> None:
        """Raises TenureError for a directory that is no `AgentDirectory`, and for a key that no profile has."""
        require_directory(directory)
        require_key(key)
        me, wall_ms = ports.processes.me(), ports.clock.wall_ms()
        self.process = process
        """What all runtimes of this process share; None for that of the process that runs."""
        generation, previous = (process or process_state()).next_generation(wall_ms)
        # By the generation, which is the time and unique: two runtimes of one millisecond are two instances (A08).
        name = instance_id if instance_id is not None else f"{me.pid}:{generation}"
        if guard is None:
            guard = GuardedFile(ports, directory.registry, timings, process=process)
        identity = Me(me, cwd, name, timings.stale_ms, bus_socket_path, bus_secret)
        super().__init__(ports, directory, key, timings, guard, identity)
        self._made: tuple[str, ...] = ()
        """Directories that the last acquisition made."""
        self._tell(Start(generation, previous), 0)

    # -- what anybody may ask -----------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int | None:
        """The fencing token of the tenure in memory, doubtful or passed as it may be; None without one."""
        phase, data = self._now
        return data.tenure.epoch if data.tenure is not None and phase not in _ACQUIRING else None

    def look(self) -> View:
        """A plain read (locks.md 4): who owns the key? No guard is taken, nothing is written, nothing is raised."""
        with self._lock:
            registry, sight = self._read(inside=False)
            self._tell(Look(sight), 0, sight)
            tenure = self.data.tenure
            mine = tenure is not None and sight.entry is not None and same_owner(tenure.owner, sight.entry.owner)
            problem = f"{self.directory.registry}: {registry.problem}; {registry.remedy}" if registry.problem else ""
            return View(sight.entry, self._classify(sight), mine, sight.readable, problem)

    def check(self) -> Saw:
        """A look at the own entry (locks.md 9.3). "unknown": it could not be read, or nobody knows what was written."""
        if self._forked():
            return "other"
        with self._lock:
            view = self.look()
            if view.readable:
                return _SAW.get(self.phase, "other")
        tell(self.ports, "lock", "check", error=view.problem)
        return "unknown"

    def may_send(self) -> int | None:
        """The epoch under which an effect may be sent now; None when this runtime does not own, or when its lease is
        over by its own clock, which counts suspends (K11). The resource compares the epochs that it is sent."""
        if self._forked():
            return None
        with self._lock:
            tenure = self.data.tenure
            if tenure is None:
                return None
            age_ms = self.ports.clock.fence_ms() - self._asked_ms
            taken = step(LEADER_ELECTION, *self._now, Send(tenure.stamp_ms + age_ms))
            outputs = taken.outputs if isinstance(taken, Step) else ()
            return next((output.epoch for output in outputs if isinstance(output, SendEffect)), None)

    def lease_passed(self) -> bool:
        """Whether by this process's own clock, which counts suspends, more than a lease has gone by since the last
        acquisition or refresh that succeeded was *asked for*. True without a tenure."""
        if self.data.tenure is None or self._forked():
            return True
        return passed(self._asked_ms, self.ports.clock.fence_ms(), self.timings.stale_ms)

    # -- operations, each in one transaction --------------------------------------------------------------------------

    def acquire(self, mode: AcquireMode, expected: Owner | None = None) -> Won | Held:
        """Acquire the key in one of the ways of `AcquireMode` (locks.md 7.1); `expected` is what force, elect and
        resume compare. An owner that acquires again keeps what it has, and renews it.

        Raises GuardBusy and GuardFailed (nothing has happened), RegistryDamaged and MarkDamaged (nothing was changed),
        WriteFailed (nothing was written; or nobody knows, and then this runtime is doubtful and reads again before it
        does anything else).
        """
        self._refuse_nested()
        if mode in ("force", "elect", "resume") and self.data.shown != expected:
            self.look()
        try:
            self._ensure_parent()
            answer, error = self._run(lambda transaction: self._acquire(transaction, mode, expected))
        except (TenureError, OSError):
            self._remove_made()
            raise
        if error is not None:
            # Perhaps we were not alone in there: what the file says now is what counts.
            view = self.look()
            if self.phase == "idle":
                return Held(view.entry, view.state)
        return answer

    def refresh(self, *, attempts: int | None = None) -> Saw:
        """Renew the lease (locks.md 7.2). "other": it is another's; "unknown": that could not be done, for a reason
        that is noted in the diagnostics, and the old lease stands as long as it lasts (K6). `attempts`: how often the
        guard is tried, None: as the timings say."""
        self._refuse_nested()
        if self.phase == "idle":
            return "other"
        try:
            saw, error = self._run(self._refresh, attempts)
        except (TenureError, OSError) as failed:
            tell(self.ports, "lock", "refresh", error=str(failed))
            return "unknown"
        return saw if error is None else self.check()

    def release(self, *, attempts: int | None = None) -> None:
        """Give the key up (locks.md 7.2). What is another's stays as it is. Raises as `acquire`; then the lease is
        kept, or doubtful. `attempts` as in `refresh`."""
        self._refuse_nested()
        if self.phase != "idle":
            self._run(self._release, attempts)

    def commit(self, effect: Callable[[int], T], *, attempts: int | None = None) -> T:
        """Run `effect` with the epoch inside the transaction, if this runtime owns the key there (commitIfOwned, 7.2).

        All others wait meanwhile: it should take milliseconds, and must use no operation of this runtime (K13). Its
        exception is raised here. Raises NotOwner without having run it; GuardLost when it has run, but not surely
        alone; and as `acquire`. `attempts` as in `refresh`.
        """
        self._refuse_nested()
        if self.phase == "idle":
            raise self._not_owner()
        result, error = self._run(lambda transaction: self._commit(transaction, effect), attempts)
        if error is not None:
            raise error
        return result

    # -- inside -------------------------------------------------------------------------------------------------------

    def _acquire(self, transaction: Transaction, mode: AcquireMode, expected: Owner | None) -> Won | Held:
        sight = transaction.sight
        if self.phase == "owner":
            self._drive(transaction, Refresh(sight))
            if self.phase == "owner":
                transaction.require_readable()
                return Won(self._epoch(), "kept")
        for offer in self._offers(mode, expected, sight):
            if isinstance(self._drive(transaction, offer), Step):
                break
        else:
            transaction.require_readable()
            self._drive(transaction, Look(sight))
            return Held(sight.entry, self._classify(sight))
        self._mint(transaction)
        if self.phase == "doubtful":
            self._resolve(transaction)
        if self.phase != "owner":
            raise transaction.failure()
        return Won(self._epoch(), transaction.how, sight.entry)

    def _offers(self, mode: AcquireMode, expected: Owner | None, sight: Sight) -> list[Happening]:
        """What the machine is offered, one after the other, until it takes one.

        `force`, `elect` and `resume` are compared by the machine, with the owner that it remembers as shown: that has
        to be `expected`. (An election that was shown nobody can only win what is nobody's, whatever is expected.)
        """
        shown = self.data.shown
        plain: list[Happening] = [Acquire(sight), Supersede(sight)]
        match mode:
            case "plain":
                return plain
            case "force":
                return [*plain, Force(sight)] if shown is not None and shown == expected else plain
            case "elect":
                return [Elect(sight)] if shown is None or shown == expected else []
            case "resume":
                return [Resume(sight)] if shown == expected else []
            case "supersede":
                return [Supersede(sight)]

    def _mint(self, transaction: Transaction) -> None:
        """An epoch above the mark and the entry, both read in this transaction; the machine's outputs do the rest."""
        path = self.directory.high_water
        entry = transaction.sight.entry
        entry_epoch = None if entry is None else entry.leader_epoch
        try:
            transaction.mark = read_mark(self.ports, path)
        except TenureError:
            self._drive(transaction, Abandon())
            raise
        epoch = next_epoch(transaction.mark, entry_epoch)
        if isinstance(self._drive(transaction, Mint(epoch, transaction.mark, entry_epoch)), Refused):
            self._drive(transaction, Abandon())
            if transaction.mark < MAX_EPOCH:
                raise TenureError(
                    f"{self.directory.registry}: {self.key}.leaderEpoch is so high that no epoch is left after it; "
                    "remove that entry by hand, if no resource has seen its epoch"
                )
            raise TenureError(f"{path}: no epoch is left after {MAX_EPOCH}; begin with a fresh directory")

    def _refresh(self, transaction: Transaction) -> Saw:
        taken = self._drive(transaction, Refresh(transaction.sight))
        if self.phase != "owner":
            return "other"
        if isinstance(taken, Refused):
            transaction.require_readable()
        if transaction.error is not None:
            raise transaction.error
        return "mine"

    def _release(self, transaction: Transaction) -> None:
        if isinstance(self._drive(transaction, Release(transaction.sight)), Refused):
            transaction.require_readable()
            self._drive(transaction, Look(transaction.sight))
        if self.phase == "doubtful":
            self._resolve(transaction)
        if self.phase != "idle":
            raise transaction.failure()

    def _commit(self, transaction: Transaction, effect: Callable[[int], T]) -> T:
        results: list[T] = []
        transaction.effect = lambda epoch: results.append(effect(epoch))
        if isinstance(self._drive(transaction, Commit(transaction.sight)), Refused):
            transaction.require_readable()
            self._drive(transaction, Look(transaction.sight))
            raise self._not_owner()
        if transaction.raised is not None:
            raise transaction.raised
        return results[0]

    def _epoch(self) -> int:
        tenure = self.data.tenure
        assert tenure is not None, "the phase says that there is a tenure"
        return tenure.epoch

    def _not_owner(self) -> NotOwner:
        return NotOwner(f"{self.directory.registry}: {self.key} is not owned by {self.instance_id}; nothing was run")

    def _ensure_parent(self) -> None:
        """Make DIR/tmp and DIR/tmp/telegram, mode 0700, where they are missing (3.1 S0)."""
        state = self.directory.state
        self._made = ()
        for path in (os.path.dirname(state), state):
            try:
                kind = self.ports.files.kind(path)
                if kind == "file":
                    raise TenureError(f"{path}: a file stands where a directory has to be; move it away")
                if kind == "absent":
                    self.ports.files.make_directory(path)
                    self._made = (path, *self._made)
            except FileExistsError:
                continue  # another process was faster
            except OSError as error:
                raise TenureError(f"{path}: cannot be made: {error.strerror or error}; {to_write(error)}") from error

    def _remove_made(self) -> None:
        """Leave nothing behind where nothing came about: the directories that were made, if they are empty still."""
        with suppress(OSError):
            for path in self._made:
                self.ports.files.remove_directory(path)
