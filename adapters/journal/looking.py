"""Looking at the journal: for workers that seek their next item, and for people. Every function reads one state of the
file, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from tenure.adapters.journal import deliveries, receipts
from tenure.adapters.journal.decisions import DECISION_COLUMNS, Decision, decision_row
from tenure.adapters.journal.deliveries import LIVE
from tenure.adapters.journal.due import waiting, waiting_updates
from tenure.adapters.journal.moves import Move, move_of
from tenure.adapters.journal.rows import (
    DELIVERY_COLUMNS,
    RECEIPT_COLUMNS,
    UPDATE_COLUMNS,
    DeliveryRow,
    ReceiptRow,
    ServerRow,
    UpdateRow,
    delivery_row,
    receipt_row,
    update_row,
)
from tenure.adapters.journal.servers import leading, served_by, servers, vacancies
from tenure.adapters.journal.settling import deliveries_of
from tenure.adapters.journal.transaction import Meta, Transaction
from tenure.machines.forwarding_messages import UNSERVED
from tenure.machines.receipt_messages import Party

PAGE: Final = 10_000
"""How many rows are listed at most, if nothing else is asked for."""

_PENDING: Final = (
    f"SELECT {RECEIPT_COLUMNS} FROM receipts WHERE phase = 'pending' AND binding = ?"
    " AND NOT (not_before > ? AND not_before <= ?) ORDER BY first_update, receipt_id LIMIT ?"
)
_FALLEN: Final = (
    f"SELECT {RECEIPT_COLUMNS} FROM receipts WHERE fallen_process = ? AND fallen_instance = ? AND phase = 'pending'"
    " AND NOT (not_before > ? AND not_before <= ?) ORDER BY first_update, receipt_id LIMIT ?"
)
_OWNED: Final = f"SELECT {RECEIPT_COLUMNS} FROM receipts WHERE owner_process = ? ORDER BY first_update, receipt_id"
_NEXT: Final = (
    "SELECT min(not_before) FROM receipts WHERE phase = 'pending' AND binding = ?"
    " AND not_before > ? AND not_before <= ?"
)
_IN_PHASE: Final = (
    f"SELECT {UPDATE_COLUMNS} FROM updates WHERE settled_at IS NULL AND phase = ? AND update_id > ?"
    " ORDER BY update_id LIMIT ?"
)
_SERVED: Final = (
    f"SELECT {UPDATE_COLUMNS} FROM updates WHERE settled_at IS NULL AND phase = 'waiting' AND failure <> ?"
    " AND update_id > ? ORDER BY update_id LIMIT ?"
)
_DUE: Final = (
    f"SELECT {UPDATE_COLUMNS} FROM updates WHERE settled_at IS NULL AND phase = 'waiting'"
    " AND NOT (next_at > ? AND next_at <= ?) AND update_id > ?"
    " ORDER BY update_id LIMIT ?"
)
_NEXT_RETRY: Final = "SELECT min(next_at) FROM updates WHERE phase = 'waiting' AND next_at > ? AND next_at <= ?"
_LIVE_RECEIPTS: Final = (
    f"SELECT {RECEIPT_COLUMNS} FROM receipts WHERE settled_at IS NULL ORDER BY first_update, receipt_id LIMIT ?"
)
_STUCK: Final = (
    f"SELECT {RECEIPT_COLUMNS} FROM receipts WHERE phase IN ('interrupted', 'failed') ORDER BY first_update, receipt_id"
    " LIMIT ?"
)
_OF_UPDATE: Final = f"SELECT {DELIVERY_COLUMNS} FROM deliveries WHERE update_id = ? ORDER BY delivery_id"
_DECISIONS: Final = f"SELECT {DECISION_COLUMNS} FROM decisions WHERE subject = ? ORDER BY nth"


# -- for workers ------------------------------------------------------------------------------------------------------


def pending_work(transaction: Transaction, binding: str, limit: int) -> tuple[ReceiptRow, ...]:
    """What may be taken now of what is for a binding, the oldest updates first."""
    return tuple(map(receipt_row, transaction.read(_PENDING, (binding, *_waiting(transaction), limit))))


def fallen_to(transaction: Transaction, by: Party, limit: int) -> tuple[ReceiptRow, ...]:
    """What may be taken now since its offer to this instance fell with its donor."""
    cells = transaction.read(_FALLEN, (by.process, by.instance, *_waiting(transaction), limit))
    return tuple(map(receipt_row, cells))


def within_reach(transaction: Transaction, by: Party, limit: int, epoch: int | None) -> tuple[ReceiptRow, ...]:
    """What `by` may take now: of the bindings that it serves, of offers that fell, and, where it leads under `epoch`,
    of bindings that nobody serves any more; the oldest updates first."""
    bindings = served_by(transaction, by)
    if epoch is not None and leading(transaction, epoch) is None:
        bindings += vacancies(transaction)
    found = {row.receipt_id: row for row in fallen_to(transaction, by, limit)}
    for binding in bindings:
        found |= {row.receipt_id: row for row in pending_work(transaction, binding, limit)}
    return tuple(sorted(found.values(), key=lambda row: (row.first_update, row.receipt_id))[:limit])


def next_due_ms(transaction: Transaction, by: Party) -> int | None:
    """When (wall clock) the next receipt may be taken by `by` that may not be yet; None: there is none."""
    bindings = served_by(transaction, by)
    found = [row[0] for name in bindings for row in transaction.read(_NEXT, (name, *_waiting(transaction)))]
    return min((at for at in found if isinstance(at, int)), default=None)


def owned_by(transaction: Transaction, process: str) -> tuple[ReceiptRow, ...]:
    """What this process owns, queued and started, whichever of its activations."""
    return tuple(map(receipt_row, transaction.read(_OWNED, (process,))))


def outgoing(transaction: Transaction, after: int, limit: int, all_of_them: bool) -> tuple[UpdateRow, ...]:
    """The updates above `after` for which an attempt may begin now, the oldest first; with `all_of_them` also those
    whose time has not come."""
    found = list(transaction.read(_IN_PHASE, ("journaled", after, limit)))
    if all_of_them:
        found += transaction.read(_IN_PHASE, ("waiting", after, limit))
    else:
        found += transaction.read(_DUE, (*waiting_updates(transaction.now_ms), after, limit))
    return tuple(sorted(map(update_row, found), key=lambda row: row.data.update)[:limit])


def unbrought(transaction: Transaction, after: int, limit: int, unserved: bool) -> tuple[UpdateRow, ...]:
    """The updates above `after` that are to be brought to somebody and are not on their way, whether their time has
    come or not, the oldest first; those that nobody is registered for only with `unserved`."""
    found = list(transaction.read(_IN_PHASE, ("journaled", after, limit)))
    if unserved:
        found += transaction.read(_IN_PHASE, ("waiting", after, limit))
    else:
        found += transaction.read(_SERVED, (UNSERVED, after, limit))
    return tuple(sorted(map(update_row, found), key=lambda row: row.data.update)[:limit])


def next_retry_ms(transaction: Transaction) -> int | None:
    """When (wall clock) the time of the next waiting update comes that has not come; None: there is none."""
    found = transaction.one(_NEXT_RETRY, waiting_updates(transaction.now_ms))
    return None if found is None or not isinstance(found[0], int) else found[0]


def _waiting(transaction: Transaction) -> tuple[int, int]:
    return waiting(transaction.now_ms, transaction.limits.delay_ms)


# -- for people -------------------------------------------------------------------------------------------------------


@attrs.frozen
class Item:
    """One id with everything that is known of it: the update, its deliveries, and their receipts."""

    update: UpdateRow | None
    deliveries: tuple[DeliveryRow, ...]
    receipts: tuple[ReceiptRow, ...]
    moves: tuple[Move, ...]

    @property
    def found(self) -> bool:
        """Whether the journal knows anything of it."""
        return self.update is not None or bool(self.deliveries or self.receipts)


@attrs.frozen
class Listing:
    """What is unsettled, as of one moment. `more`: there are more rows than were asked for."""

    meta: Meta
    updates: tuple[UpdateRow, ...]
    receipts: tuple[ReceiptRow, ...]
    servers: tuple[ServerRow, ...]
    more: bool


def listing(transaction: Transaction, limit: int = PAGE) -> Listing:
    """Everything that is unsettled, by update id."""
    rows = [row for phase in sorted(LIVE) for row in transaction.read(_IN_PHASE, (phase, -1, limit + 1))]
    updates = tuple(sorted(map(update_row, rows), key=lambda row: row.data.update))
    found = tuple(map(receipt_row, transaction.read(_LIVE_RECEIPTS, (limit + 1,))))
    more = len(updates) > limit or len(found) > limit
    return Listing(transaction.meta, updates[:limit], found[:limit], servers(transaction), more)


def stuck(transaction: Transaction, limit: int = PAGE) -> tuple[ReceiptRow, ...]:
    """What waits for a person: interrupted, or failed too often."""
    return tuple(map(receipt_row, transaction.read(_STUCK, (limit,))))


def item(transaction: Transaction, name: str) -> Item:
    """What is known of an update, delivery or receipt id."""
    found: dict[str, DeliveryRow] = {}
    update = None
    rights: dict[str, ReceiptRow] = {}
    if name.isascii() and name.isdecimal() and len(name) < 19:
        update = deliveries.find_update(transaction, int(name))
        _collect(found, map(delivery_row, transaction.read(_OF_UPDATE, (int(name),))))
    else:
        delivery = deliveries.find(transaction, name)
        _collect(found, () if delivery is None else (delivery,))
        receipt = receipts.find(transaction, name)
        if receipt is not None:
            rights[name] = receipt
            _collect(found, deliveries_of(transaction, name))
    for row in found.values():
        receipt = rights.get(row.receipt_id) or receipts.find(transaction, row.receipt_id)
        if receipt is not None:
            rights[receipt.receipt_id] = receipt
        if update is None:
            update = deliveries.find_update(transaction, row.update_id)
    moves = [move for receipt_id in rights if (move := move_of(transaction, receipt_id)) is not None]
    return Item(update, tuple(found.values()), tuple(rights.values()), tuple(moves))


def life(transaction: Transaction, name: str) -> tuple[Decision, ...]:
    """All that was decided about an id, and about the update, deliveries and receipts that belong to it, in order."""
    known = item(transaction, name)
    subjects = {name, *(row.delivery_id for row in known.deliveries), *(row.receipt_id for row in known.receipts)}
    if known.update is not None:
        subjects.add(str(known.update.data.update))
    subjects |= {str(row.update_id) for row in known.deliveries}
    told = [decision_row(row) for subject in subjects for row in transaction.read(_DECISIONS, (subject,))]
    return tuple(sorted(told, key=lambda decision: decision.seq))


def _collect(found: dict[str, DeliveryRow], rows: Iterable[DeliveryRow]) -> None:
    for row in rows:
        found[row.delivery_id] = row
