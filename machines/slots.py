"""Which slot, target and name a profile gets: what is remembered, and the ring rule (bus.md f, SLOT ALLOCATION).

A `Board` is all that a leader remembers of threads. Pure functions take it from one value to the next: `begin` picks
and reserves, before anything is awaited; `settle` makes the reservation a record; `abandon` gives it back. So never
two holders have one letter or one target, however long provisioning takes and however many are under way (I37, L26):
a letter is occupied by every record (also one that must be probed first: L17), by a reservation that lasts, and by
whatever is under way. A letter that is only remembered occupies nothing, and is looked at like any other before it is
used again (L18). Without a free letter there is no slot (L19): such a follower ranks after Z.

Times are in ms of the wall clock. Evidence of death comes in: `dead` are the processes that are proven dead. It is of
processes and not of instances, since anybody may register as an instance that another bears: the death of one proves
nothing of the other, and the life of one keeps nobody out of what the other left (L16).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from tenure.machines.identity import Process
from tenure.machines.slot_board import (
    Board,
    Denied,
    Identity,
    Pending,
    Record,
    Reservation,
    Target,
    Wish,
    free_slot,
    holder_of,
    identity_of,
    occupied,
    record_of,
    targets,
)
from tenure.machines.thread_names import palette_names, slot_of, valid_name

RESERVATION_MS: Final = 15 * 60_000
"""For how long a slot is kept for nobody, after its holder's thread was given up."""
GREATEST_THREAD: Final = 2**31 - 1
"""No thread has a higher number; a target beyond it is nobody's."""
REMEMBERED: Final = 512
"""How many profiles without a thread are remembered, the newest."""


# -- provisioning ------------------------------------------------------------


def begin(
    board: Board, wish: Wish, epoch: int, now_ms: int, dead: Iterable[Process] = ()
) -> tuple[Board, Pending] | Denied:
    """Pick a slot, a target and a name for `wish`, and hold them while provisioning is under way.

    A follower that leads now keeps the three that it had, under the leader's profile (S32, A55). Else a profile's own
    record keeps all three. Else each wish is granted if it is free, then what is remembered of the
    profile, then the ring. Another's record gives way only to its own process, or when its process is proven dead and
    the wish names its target: naming somebody else's thread takes nothing (L16). The letter of one proven dead is given
    out when no other is free, and its record goes at once. Denied: provisioning of this profile is under way under the
    same epoch (I4); or the profile's thread is that of another process which is not proven dead: who is silent and no
    longer routed to, stopped by its user, has its thread still (L24).
    """
    if any(p.wish.key == wish.key and p.epoch == epoch for p in board.pendings):
        return Denied("provisioning of this profile is under way")
    board = attrs.evolve(board, pendings=tuple(p for p in board.pendings if p.wish.key != wish.key))
    gone = frozenset(dead)
    if _held_by_another(record_of(board, wish.key), wish, gone):
        return Denied("the profile's thread is another process's", held=True)
    own = _promoted(board, wish) or record_of(board, wish.key) or _yielding(board, wish, gone)
    rest = board if own is None else _without(board, own)
    if own is not None and own.target in targets(rest, now_ms):
        own, rest = None, board
    slot = None if own is None else own.slot
    if slot is None or slot in occupied(rest, now_ms):
        rest, slot = _slot(rest, wish, now_ms, gone)
    target = own.target if own is not None else _target(rest, wish, now_ms)
    name = _name(rest, wish, own, slot, now_ms)
    pending = Pending(f"provision:{wish.instance}:{slot or '-'}:{now_ms}", wish, epoch, slot, name, target, now_ms)
    following = max(rest.next_thread, target.thread_id + 1) if target.chat_id == rest.chat_id else rest.next_thread
    # The own record stays while this is under way: if it is abandoned, nothing has happened.
    records = rest.records if own is None else (*rest.records, own)
    return attrs.evolve(rest, records=records, pendings=(*rest.pendings, pending), next_thread=following), pending


def settle(board: Board, pending: Pending, now_ms: int) -> tuple[Board, Record] | None:
    """The thread is there: the reservation becomes the record of its profile. None: it was abandoned meanwhile, or
    another epoch has begun it anew, and what comes late is nothing (I5)."""
    if pending not in board.pendings:
        return None
    wish = pending.wish
    old = record_of(board, wish.key) or holder_of(board, pending.target)
    same = old is not None and old.target == pending.target
    record = Record(
        key=wish.key,
        kind=wish.kind,
        instance=wish.instance,
        generation=wish.generation,
        target=pending.target,
        slot=pending.slot,
        name=pending.name,
        created_ms=old.created_ms if same and old is not None else now_ms,
        updated_ms=now_ms,
        process=wish.process,
    )
    others = tuple(r for r in board.records if r.key != wish.key and r.target != pending.target)
    moved = old is None or not same or (old.key, old.slot) != (wish.key, pending.slot)
    settled = attrs.evolve(
        board,
        records=(*others, record),
        identities=tuple(i for i in board.identities if i.key != wish.key),
        pendings=tuple(p for p in board.pendings if p != pending),
        last_slot=pending.slot if moved and pending.slot is not None else board.last_slot,
    )
    return settled, record


def abandon(board: Board, pending: Pending) -> Board:
    """Provisioning was cancelled or refused: what it held is free, as if it had never begun (I36)."""
    return attrs.evolve(board, pendings=tuple(p for p in board.pendings if p != pending))


def abandon_before(board: Board, epoch: int) -> Board:
    """Give up all that was under way under an earlier epoch, which had no effect outside (local provisioning)."""
    return attrs.evolve(board, pendings=tuple(p for p in board.pendings if p.epoch >= epoch))


# -- the end of a thread ------------------------------------------------------------


def void(board: Board, target: Target, instance: str, generation: str | None) -> bool:
    """Whether a clean-up of `target` for that registration must not happen: a current record has another instance or
    another generation there (L0, I38), or somebody is being provisioned with it."""
    record = holder_of(board, target)
    if record is not None and (record.instance, record.generation) != (instance, generation):
        return True
    return any(
        p.target == target and (p.wish.instance, p.wish.generation) != (instance, generation) for p in board.pendings
    )


def cleaning(board: Board, target: Target) -> Board:
    """A deletion begins: nobody gets this target any more, also not its own profile, until `cleaned` or `kept`."""
    return attrs.evolve(board, cleaning=(*board.cleaning, target))


def kept(board: Board, target: Target) -> Board:
    """The deletion was not confirmed, or there was none: the record stays as it is (I39)."""
    return attrs.evolve(board, cleaning=tuple(t for t in board.cleaning if t != target))


def cleaned(board: Board, target: Target, instance: str, generation: str | None, now_ms: int) -> Board:
    """The thread is confirmed to be gone: its record goes, slot and name are remembered. A record of another
    registration stays (M4c)."""
    board = kept(board, target)
    record = holder_of(board, target)
    if record is None or void(board, target, instance, generation):
        return board
    return _forget(board, record, now_ms)


def retire(board: Board, key: str, dead: Iterable[Process], now_ms: int) -> Board:
    """A new leader of profile `key`: threads of earlier leaders that are proven dead are given up, and their slots
    kept for a while (bus.md f, LEADER OWN THREAD). The own one is taken over by `begin`."""
    gone = frozenset(dead)
    for record in board.records:
        if record.kind == "leader" and record.key != key and record.process in gone:
            board = _forget(board, record, now_ms)
            if record.slot is not None:
                vacant = Reservation(record.slot, record.target, "previous-leader", now_ms, now_ms + RESERVATION_MS)
                board = attrs.evolve(board, reservations=(*board.reservations, vacant))
    return board


def tidy(board: Board, dead: Iterable[Process], now_ms: int) -> Board:
    """Without reservations that are over, and without threads of the dead that have no letter; the ring stands where
    the newest thread is, if it stood at none."""
    gone = frozenset(dead)
    records = tuple(r for r in board.records if r.slot is not None or r.process not in gone)
    lasting = tuple(r for r in board.reservations if r.lasts(now_ms))
    slotted = [r for r in reversed(records) if r.slot is not None]
    last = board.last_slot
    if all(r.slot != last for r in slotted):
        newest = max(slotted, key=lambda r: (r.created_ms, r.updated_ms), default=None)
        last = None if newest is None else newest.slot
    return attrs.evolve(board, records=records, reservations=lasting, last_slot=last)


# -- inside ------------------------------------------------------------


def _held_by_another(record: Record | None, wish: Wish, dead: frozenset[Process]) -> bool:
    """A leader's profile is its directory, and its thread goes with the lease."""
    if record is None or record.process is None or wish.kind == "leader":
        return False
    return record.process != wish.process and record.process not in dead


def _promoted(board: Board, wish: Wish) -> Record | None:
    """The thread that a leader had as a follower: it was its own to the last, and an earlier leader's was not. Where
    the leader of that time could not see its process, as in another pid namespace, it is the one that it carries."""
    if wish.kind != "leader" or wish.process is None:
        return None
    for record in board.records:
        seen = record.process == wish.process or (record.process is None and record.target == wish.target)
        if record.kind != "leader" and record.instance == wish.instance and seen:
            return record
    return None


def _yielding(board: Board, wish: Wish, dead: frozenset[Process]) -> Record | None:
    """Another profile's record that is the asker's to take: its own process's, or that of one proven dead whose target
    it names."""
    for record in board.records:
        if wish.process is not None and record.process == wish.process and record.instance == wish.instance:
            return record
        if record.target == wish.target:
            mine = wish.process is not None and record.process == wish.process
            return record if mine or record.process in dead else None
    return None


def _without(board: Board, record: Record) -> Board:
    return attrs.evolve(board, records=tuple(r for r in board.records if r != record))


def _slot(board: Board, wish: Wish, now_ms: int, dead: frozenset[Process]) -> tuple[Board, str | None]:
    """A free letter, and the board without the dead one that had to give it up."""
    remembered = identity_of(board, wish.key)
    for preferred in (slot_of(wish.slot), None if remembered is None else remembered.slot):
        if preferred is not None and preferred not in occupied(board, now_ms):
            return board, preferred
    found = free_slot(board, now_ms)
    if found is not None:
        return board, found
    busy = {p.target for p in board.pendings} | set(board.cleaning)
    past = [r for r in board.records if r.slot is not None and r.process in dead and r.target not in busy]
    if not past:
        return board, None
    oldest = min(past, key=lambda r: (r.updated_ms, r.slot or ""))
    freed = _forget(board, oldest, now_ms)
    return freed, free_slot(freed, now_ms, oldest.slot)


def _target(board: Board, wish: Wish, now_ms: int) -> Target:
    """The wished one if nobody has it and it is one of ours, else one that was never given out."""
    wished = wish.target
    held = targets(board, now_ms)
    ours = wished is not None and wished.chat_id == board.chat_id and 0 < wished.thread_id <= GREATEST_THREAD
    if wished is not None and ours and wished not in held:
        return wished
    number = board.next_thread
    while Target(board.chat_id, number) in held:
        number += 1
    return Target(board.chat_id, number)


def _name(board: Board, wish: Wish, own: Record | None, slot: str | None, now_ms: int) -> str | None:
    """The remembered name, else the one that is carried, if it is valid and nobody has it; else the slot's word."""
    remembered = identity_of(board, wish.key)
    taken = {r.name for r in board.records} | {p.name for p in board.pendings}
    known = (None if own is None else own.name, None if remembered is None else remembered.name, wish.name)
    found = next((name for name in known if name is not None and valid_name(name) and name not in taken), None)
    if found is not None or slot is None:
        return found
    words = palette_names(slot, now_ms)
    taken |= {i.name for i in board.identities}
    return next((word for word in words if word not in taken), words[0])


def _forget(board: Board, record: Record, now_ms: int) -> Board:
    """Without the record; slot and name are remembered."""
    others = tuple(i for i in board.identities if i.key != record.key)
    if record.slot is not None or record.name is not None:
        others = (*others, Identity(record.key, record.slot, record.name, now_ms))[-REMEMBERED:]
    return attrs.evolve(_without(board, record), identities=others)
