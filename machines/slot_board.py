"""What a leader remembers of threads, as values: who has which slot and target (bus.md f, THREAD RECORD, PENDING).

`tenure.machines.slots` takes a `Board` from one value to the next. Times are in ms of the wall clock.
"""

from __future__ import annotations

from typing import Literal

import attrs

from tenure.machines.identity import Process
from tenure.machines.thread_names import LETTERS, slot_of

OwnerKind = Literal["leader", "manual-follower"]


@attrs.frozen(order=True)
class Target:
    """Where a thread is. `chat_id` 0: nowhere but here, provisioned without Telegram."""

    chat_id: int
    thread_id: int


@attrs.frozen
class Record:
    """The thread of one profile. `generation`: the registration that it was provisioned for; None for a leader's own.
    `process`: whose instance it is, where that was verified on this machine; only then its death can be proven.
    `probe`: it has to be shown to be there before it is used; it is held all the same (L17)."""

    key: str
    kind: OwnerKind
    instance: str
    generation: str | None
    target: Target
    slot: str | None
    name: str | None
    created_ms: int
    updated_ms: int
    process: Process | None = None
    probe: bool = False


@attrs.frozen
class Identity:
    """What is remembered of a profile that has no thread: it is offered again if it is free."""

    key: str
    slot: str | None
    name: str | None
    updated_ms: int


@attrs.frozen
class Reservation:
    """A slot and a target that nobody gets for a while. `expires_ms` None: until somebody takes it away."""

    slot: str
    target: Target
    reason: str
    created_ms: int
    expires_ms: int | None = None

    def lasts(self, now_ms: int) -> bool:
        """Whether it holds yet. The clock may step back: then it lasts longer, never shorter."""
        return self.expires_ms is None or self.expires_ms > now_ms


@attrs.frozen
class Wish:
    """Who asks for a thread, and for which: what a registration carries. `slot`, `name` and `target` are wishes: each
    is granted only if it is free. `process` as in `Record`."""

    key: str
    kind: OwnerKind
    instance: str
    generation: str | None = None
    slot: str | None = None
    name: str | None = None
    target: Target | None = None
    process: Process | None = None


@attrs.frozen
class Pending:
    """Provisioning that is under way: what it will be, held by nobody else meanwhile."""

    id: str
    wish: Wish
    epoch: int
    slot: str | None
    name: str | None
    target: Target
    started_ms: int


@attrs.frozen
class Board:
    """All that is remembered. `last_slot`: where the ring stands. `next_thread`: no thread had this
    number yet. `chat_id`: of the targets made here. `cleaning`: targets that are being deleted right now."""

    records: tuple[Record, ...] = ()
    identities: tuple[Identity, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    pendings: tuple[Pending, ...] = ()
    last_slot: str | None = None
    next_thread: int = 1
    chat_id: int = 0
    cleaning: tuple[Target, ...] = ()


@attrs.frozen
class Denied:
    """No thread: why, in words. `held`: a process that is not proven dead has the profile."""

    why: str
    held: bool = False


# -- who holds what ------------------------------------------------------------


def occupied(board: Board, now_ms: int) -> frozenset[str]:
    """The letters that somebody holds (I37)."""
    slots = [r.slot for r in board.records] + [p.slot for p in board.pendings]
    slots += [r.slot for r in board.reservations if r.lasts(now_ms)]
    return frozenset(slot for slot in slots if slot is not None)


def targets(board: Board, now_ms: int) -> frozenset[Target]:
    """The targets that somebody holds, or that are being deleted."""
    held = [r.target for r in board.records] + [p.target for p in board.pendings]
    return frozenset([*held, *board.cleaning, *(r.target for r in board.reservations if r.lasts(now_ms))])


def record_of(board: Board, key: str) -> Record | None:
    """The thread of a profile."""
    return next((r for r in board.records if r.key == key), None)


def holder_of(board: Board, target: Target) -> Record | None:
    """Whose thread is there."""
    return next((r for r in board.records if r.target == target), None)


def identity_of(board: Board, key: str) -> Identity | None:
    """What is remembered of a profile without a thread."""
    return next((i for i in board.identities if i.key == key), None)


def cursor(board: Board, now_ms: int) -> str | None:
    """Where the ring stands: at the last slot given out, else at the highest that is held; None: before A."""
    return board.last_slot or max(occupied(board, now_ms), default=None)


def free_slot(board: Board, now_ms: int, preferred: str | None = None) -> str | None:
    """`preferred` if it is free, else the first free letter after the last one, Z followed by A; None: all are held."""
    held = occupied(board, now_ms)
    if preferred is not None and slot_of(preferred) and preferred not in held:
        return preferred
    last = cursor(board, now_ms)
    start = 0 if last is None else LETTERS.index(last) + 1
    ring = (LETTERS[(start + step) % len(LETTERS)] for step in range(len(LETTERS)))
    return next((slot for slot in ring if slot not in held), None)
