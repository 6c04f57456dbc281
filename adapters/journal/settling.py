"""What ends: deliveries with their receipt, and tombstones by number and age (I15, L9).

Settled rows stay, without their bodies, so that a replay is known for one. They are forgotten a few at a time, on the
way of the operations that settle: the oldest first, and never one that a leader may still ask for.
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
    f"SELECT {DELIVERY_COLUMNS} FROM deliveries WHERE settled_at IS NOT NULL ORDER BY settled_at, delivery_id LIMIT ?"
)
_WANTED: Final = "SELECT 1 FROM updates WHERE update_id = ? AND settled_at IS NULL"


def deliveries_of(transaction: Transaction, receipt_id: str) -> tuple[DeliveryRow, ...]:
    """The deliveries that a receipt gives the right to execute."""
    return tuple(map(delivery_row, transaction.read(_OF_RECEIPT, (receipt_id,))))


def settle_deliveries(transaction: Transaction, receipt_id: str, phase: str, party: str) -> None:
    """The receipt was settled: done or discarded."""
    message = messages.Settle() if phase == "done" else messages.Discard()
    meta = transaction.meta
    for row in deliveries_of(transaction, receipt_id):
        data = Delivery(row.binding, row.digest)
        taken = decide(transaction, DELIVERY, row.phase, data, message, subject=row.delivery_id, party=party)
        transaction.write(
            "UPDATE deliveries SET phase = ?, raw = '', settled_at = ? WHERE delivery_id = ?",
            (taken.phase, transaction.now_ms, row.delivery_id),
        )
        meta.deliveries -= 1
        meta.delivery_bytes -= size_of(row.raw)
        meta.tombstones += 1
    trim(transaction)


def trim(transaction: Transaction) -> None:
    """Forget at most `TRIMMED_AT_ONCE` old updates, and as many deliveries."""
    for cells in transaction.read(_OLD_UPDATES, (TRIMMED_AT_ONCE,)):
        row = update_row(cells)
        if not _old(transaction, row.settled_at):
            break
        _forget_update(transaction, row)
    for cells in transaction.read(_OLD_DELIVERIES, (TRIMMED_AT_ONCE,)):
        delivery = delivery_row(cells)
        if not _old(transaction, delivery.settled_at):
            break
        _forget_delivery(transaction, delivery)


def _old(transaction: Transaction, settled_at: int | None) -> bool:
    limits = transaction.limits
    if transaction.meta.tombstones > limits.tombstones:
        return True
    return settled_at is not None and transaction.now_ms - settled_at > limits.tombstone_ms


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
            "UPDATE deliveries SET settled_at = ? WHERE delivery_id = ?", (transaction.now_ms, row.delivery_id)
        )
        return
    transaction.write("DELETE FROM deliveries WHERE delivery_id = ?", (row.delivery_id,))
    forget(transaction, row.delivery_id)
    transaction.meta.tombstones -= 1
    if not transaction.one("SELECT 1 FROM deliveries WHERE receipt_id = ? LIMIT 1", (row.receipt_id,)):
        transaction.write("DELETE FROM receipts WHERE receipt_id = ?", (row.receipt_id,))
        forget(transaction, row.receipt_id)
        transaction.meta.tombstones -= 1
