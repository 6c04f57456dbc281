"""What ends: deliveries with their receipt, and tombstones by number and age (I15, L9).

Settled rows stay, without their bodies, so that a replay is known for one. They are forgotten a few at a time, on the
way of the operations that settle: the oldest first, and never one that a leader may still ask for. Which is the oldest
does not depend on the wall clock: of two rows the one that is settled later never has the earlier time.
"""

from __future__ import annotations

from typing import Final

from tenure.adapters.journal.capacity import TRIMMED_AT_ONCE, size_of
from tenure.adapters.journal.decisions import decide, forget
from tenure.adapters.journal.rows import (
    DELIVERY_COLUMNS,
    UPDATE_COLUMNS,
    DeliveryRow,
    UpdateRow,
    delivery_row,
    integer_or_none,
    update_row,
)
from tenure.adapters.journal.transaction import Transaction
from tenure.machines import delivery as messages
from tenure.machines import forwarding_messages
from tenure.machines.chart import Refused, step
from tenure.machines.delivery import DELIVERY, Delivery
from tenure.machines.forwarding import FORWARDING

_OF_RECEIPT: Final = f"SELECT {DELIVERY_COLUMNS} FROM deliveries WHERE receipt_id = ? ORDER BY update_id"
_OLD_UPDATES: Final = (
    f"SELECT {UPDATE_COLUMNS} FROM updates WHERE settled_at IS NOT NULL ORDER BY settled_at, update_id LIMIT ?"
)
_OLD_DELIVERIES: Final = (
    f"SELECT {DELIVERY_COLUMNS} FROM deliveries WHERE settled_at IS NOT NULL ORDER BY settled_at, rowid LIMIT ?"
)
_NEWEST: Final = "SELECT max(settled_at) FROM {} WHERE settled_at IS NOT NULL"
_WANTED: Final = "SELECT 1 FROM updates WHERE update_id = ? AND settled_at IS NULL"


def deliveries_of(transaction: Transaction, receipt_id: str) -> tuple[DeliveryRow, ...]:
    """The deliveries that a receipt gives the right to execute."""
    return tuple(map(delivery_row, transaction.read(_OF_RECEIPT, (receipt_id,))))


def settle_deliveries(transaction: Transaction, receipt_id: str, phase: str, party: str) -> None:
    """The receipt was settled: done or discarded."""
    message = messages.Settle() if phase == "done" else messages.Discard()
    meta, rows, now = transaction.meta, deliveries_of(transaction, receipt_id), settling_at(transaction, "deliveries")
    for row in rows:
        data = Delivery(row.binding, row.digest)
        taken = decide(transaction, DELIVERY, row.phase, data, message, subject=row.delivery_id, party=party)
        transaction.write(
            "UPDATE deliveries SET phase = ?, raw = '', settled_at = ? WHERE delivery_id = ?",
            (taken.phase, now, row.delivery_id),
        )
        meta.deliveries -= 1
        meta.delivery_bytes -= size_of(row.raw)
        meta.tombstones += 1
    trim(transaction, len(rows) + 1)


def settling_at(transaction: Transaction, table: str) -> int:
    """The time at which a row of `updates` or `deliveries` is settled now: that of the wall clock, and where that was
    set back that of the newest one, since what is forgotten first is what has the earliest."""
    newest = transaction.one(_NEWEST.format(table))
    assert newest is not None
    return max(transaction.now_ms, integer_or_none(newest[0]) or 0)


def trim(transaction: Transaction, added: int) -> None:
    """Forget at most `added` old updates and `TRIMMED_AT_ONCE` more, and as many deliveries. `added`: how many
    tombstones this transaction has made."""
    limit = added + TRIMMED_AT_ONCE
    for cells in transaction.read(_OLD_UPDATES, (limit,)):
        row = update_row(cells)
        if not _old(transaction, row.settled_at):
            break
        _forget_update(transaction, row)
    for cells in transaction.read(_OLD_DELIVERIES, (limit,)):
        delivery = delivery_row(cells)
        if not _old(transaction, delivery.settled_at):
            break
        _forget_delivery(transaction, delivery)


def _old(transaction: Transaction, settled_at: int | None) -> bool:
    limits, count = transaction.limits, transaction.meta.tombstones
    if count > limits.tombstones:
        return True
    aged = settled_at is not None and transaction.now_ms - settled_at > limits.tombstone_ms
    return aged and count > limits.tombstones_least


def _forget_update(transaction: Transaction, row: UpdateRow) -> None:
    if isinstance(step(FORWARDING, row.phase, row.data, forwarding_messages.Forget()), Refused):
        return
    update_id = row.data.update
    transaction.write("DELETE FROM updates WHERE update_id = ?", (update_id,))
    forget(transaction, str(update_id))
    transaction.meta.tombstones -= 1


def _forget_delivery(transaction: Transaction, row: DeliveryRow) -> None:
    wanted = transaction.one(_WANTED, (row.update_id,)) is not None
    taken = step(DELIVERY, row.phase, Delivery(row.binding, row.digest), messages.Forget(wanted))
    if isinstance(taken, Refused):
        # To the end of the line, so that it does not keep the others.
        transaction.write(
            "UPDATE deliveries SET settled_at = ? WHERE delivery_id = ?",
            (settling_at(transaction, "deliveries"), row.delivery_id),
        )
        return
    transaction.write("DELETE FROM deliveries WHERE delivery_id = ?", (row.delivery_id,))
    forget(transaction, row.delivery_id)
    transaction.meta.tombstones -= 1
    if not transaction.one("SELECT 1 FROM deliveries WHERE receipt_id = ? LIMIT 1", (row.receipt_id,)):
        transaction.write("DELETE FROM receipts WHERE receipt_id = ?", (row.receipt_id,))
        forget(transaction, row.receipt_id)
        transaction.meta.tombstones -= 1
