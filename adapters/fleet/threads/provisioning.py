"""Threads for profiles: the port that a leader asks, and the one that needs no Telegram (bus.md f).

What decides is `tenure.machines.slots`; `LocalProvisioning` keeps the board and looks who is dead. Both calls of the
port may take many seconds, and both may be cancelled: then nothing has happened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.agreement import HELD
from tenure.adapters.ports import Ports
from tenure.machines import slots
from tenure.machines.identity import RUNNING, Birth, Process, proven_dead
from tenure.machines.slot_board import Board, Denied, OwnerKind, Pending, Target, Wish


class ProvisionRefused(TenureError):
    """There is no thread for this request now; the registration is answered with this text."""


class CleanUpRefused(TenureError):
    """The thread was not deleted: it is somebody else's now, or the deletion was not confirmed. The intent stays, or
    is void."""


@attrs.frozen
class ProvisionRequest:
    """What a registration says of the thread it wants (bus.md a, follower.register). `slot`, `name`, `target` are what
    the follower had last; each is kept if it is free. `process_birth`: the birth id that it sent.

    `kind` is "leader" for the leader's own thread, which is provisioned like any other.
    """

    instance: str
    generation: str | None = None
    profile_key: str | None = None
    kind: OwnerKind = "manual-follower"
    slot: str | None = None
    name: str | None = None
    target: Target | None = None
    previous_instance: str | None = None
    pid: int | None = None
    process_birth: str | None = None

    @property
    def key(self) -> str:
        """The profile that the thread belongs to."""
        return self.profile_key or f"manual:{self.instance}"


@attrs.frozen
class Provisioned:
    """A thread. `slot` None: all letters are held, the follower ranks after Z. `name` None: nothing to call it by."""

    target: Target
    slot: str | None
    name: str | None


class Provisioning(Protocol):
    """Where threads come from."""

    async def provision(self, request: ProvisionRequest, epoch: int) -> Provisioned:
        """A thread for `request`, held by nobody else. Raises `ProvisionRefused`. `epoch` is the leader's: what was
        begun under an earlier one is given up."""

    async def clean_up(self, target: Target, instance: str, generation: str | None) -> None:
        """Delete the thread of that registration, confirmed; also when it has gone already. Slot and name stay
        remembered. Raises `CleanUpRefused`: also when the thread belongs to another instance or generation (L0)."""


Make = Callable[[Pending], Awaitable[None]]
"""What takes time: makes the thread that is pending, or raises."""


Unmake = Callable[[Target], Awaitable[None]]
"""Deletes the thread, confirmed, or raises."""


async def nothing(what: Pending | Target) -> None:
    """Local threads are there as soon as they are recorded, and gone as soon as they are not."""


class LocalProvisioning:
    """Slots, names and numbered targets without Telegram.

    `board` is what is remembered; the leader publishes it (`projection`) after each change and
    begins with the one that the leader before it published. `make` and `unmake` stand for what takes time.
    """

    def __init__(
        self,
        ports: Ports,
        board: Board | None = None,
        *,
        make: Make = nothing,
        unmake: Unmake = nothing,
    ) -> None:
        self._ports = ports
        self._make = make
        self._unmake = unmake
        self.board = Board() if board is None else board

    async def provision(self, request: ProvisionRequest, epoch: int) -> Provisioned:
        """As the port says. Without `make` there is no moment in which anybody else has a turn."""
        now_ms = self._ports.clock.wall_ms()
        begun = slots.begin(self.board, self._wish(request), epoch, now_ms, self.dead())
        if isinstance(begun, Denied):
            raise ProvisionRefused(f"{request.key}: {HELD if begun.held else begun.why}; register again")
        self.board, pending = begun
        try:
            await self._make(pending)
            settled = slots.settle(self.board, pending, self._ports.clock.wall_ms())
        finally:
            self.board = slots.abandon(self.board, pending)
        if settled is None:
            raise ProvisionRefused(f"{request.key}: provisioning was begun anew meanwhile; register again")
        self.board, record = settled
        return Provisioned(record.target, record.slot, record.name)

    async def clean_up(self, target: Target, instance: str, generation: str | None) -> None:
        """As the port says."""
        self._refuse_void(target, instance, generation)
        if target in self.board.cleaning:
            raise CleanUpRefused(f"thread {target.thread_id}: it is being deleted already; ask again")
        self.board = slots.cleaning(self.board, target)
        try:
            await self._unmake(target)
        except BaseException:
            self.board = slots.kept(self.board, target)
            raise
        self.board = slots.cleaned(self.board, target, instance, generation, self._ports.clock.wall_ms())

    def begin_leading(self, board: Board, key: str, epoch: int) -> None:
        """A new leader of profile `key` goes on from what was remembered: what was under way under others is given up,
        threads of dead leaders are given up and their slots kept for a while."""
        now_ms = self._ports.clock.wall_ms()
        self.board = slots.abandon_before(board, epoch)
        dead = self.dead()
        self.board = slots.tidy(slots.retire(self.board, key, dead, now_ms), dead, now_ms)

    def dead(self) -> frozenset[Process]:
        """The remembered processes that are proven dead now."""
        remembered = {record.process for record in self.board.records if record.process is not None}
        return frozenset(process for process in remembered if self._dead(process))

    def _dead(self, process: Process) -> bool:
        processes = self._ports.processes
        me = processes.me()
        return process != me and proven_dead(process.birth, processes.sighting(process.pid), me)

    def _refuse_void(self, target: Target, instance: str, generation: str | None) -> None:
        if slots.void(self.board, target, instance, generation):
            raise CleanUpRefused(f"thread {target.thread_id}: it is not {instance}'s any more; nothing was deleted")

    def _wish(self, request: ProvisionRequest) -> Wish:
        return Wish(
            key=request.key,
            kind=request.kind,
            instance=request.instance,
            generation=request.generation,
            slot=request.slot,
            name=request.name,
            target=request.target,
            process=self._verified(request.pid, request.process_birth),
        )

    def _verified(self, pid: int | None, birth_id: str | None) -> Process | None:
        """The process that a request names, if it is seen here with that very birth: only then its death can be proven
        later. A birth id has neither boot nor pid namespace, so one that is not seen now proves nothing ever."""
        processes = self._ports.processes
        me = processes.me()
        if pid == me.pid:
            return me if birth_id in (None, f"{me.pid}:start:{me.birth.ticks}") else None
        if pid is None or birth_id is None:
            return None
        seen = processes.sighting(pid)
        if seen.state != RUNNING or seen.ticks is None or birth_id != f"{pid}:start:{seen.ticks}":
            return None
        return Process(pid, Birth(seen.ticks, me.birth.boot_id, me.birth.namespace))
