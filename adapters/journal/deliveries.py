"""Deliveries: an update at the instance that owns it, admitted with the receipt that gives the right to execute it
(bus.md c, FOLLOWER ADMIT)."""

from __future__ import annotations

from typing import Final

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.journal import receipts
from tenure.adapters.journal.bodies import body_digest
from tenure.adapters.journal.capacity import size_of
from tenure.adapters.journal.decisions import decide
from tenure.adapters.journal.rows import (
    DELIVERY_COLUMNS,
    UPDATE_COLUMNS,
    DeliveryRow,
    UpdateRow,
    delivery_row,
    update_row,
)
from tenure.adapters.journal.transaction import Transaction
from tenure.machines.admission_identity import Queue, receipt_id
from tenure.machines.chart import Step
from tenure.machines.compact_json import compact
from tenure.machines.delivery import DELIVERY, Admit, Delivery, Insert, Output

LIVE: Final = frozenset({"journaled", "forwarding", "waiting"})
"""Phases of an update that a leader still has to deliver."""

_GET: Final = f"SELECT {DELIVERY_COLUMNS} FROM deliveries WHERE delivery_id = ?"
_UPDATE: Final = f"SELECT {UPDATE_COLUMNS} FROM updates WHERE update_id = ?"
_INSERT: Final = (
    "INSERT INTO deliveries (delivery_id, phase, kind, binding, update_id, raw, digest, position, admitted_at,"
    " receipt_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@attrs.frozen
class Arrival:
    """A delivery as a leader sends it. `delivery` is the id that the leader says, `kind` that of its envelope.

    `raw`: the update as JSON text, without its position in a batch; `position`: that position, as JSON text. Of two
    arrivals of one delivery only `raw` is compared, in its normal form (I16; `tenure.adapters.journal.bodies`)."""

    delivery: str
    kind: str
    binding: str
    update: int
    raw: str = attrs.field(repr=False)
    position: str | None = None


@attrs.frozen
class Admitted:
    """It is in the journal: answer the leader with `delivery` and `update`. `receipt` gives the right to execute it;
    `again`: it was there before, and may be executed long since."""

    delivery: str
    update: int
    receipt: str
    again: bool


def find(transaction: Transaction, delivery_id: str) -> DeliveryRow | None:
    """The row; None where there is none."""
    row = transaction.one(_GET, (delivery_id,))
    return None if row is None else delivery_row(row)


def find_update(transaction: Transaction, update_id: int) -> UpdateRow | None:
    """The row of an update; None where there is none."""
    row = transaction.one(_UPDATE, (update_id,))
    return None if row is None else update_row(row)


def admit(
    transaction: Transaction,
    arrival: Arrival,
    mine: str,
    by: str,
    profile: str,
    queue: Queue,
    payload: str,
    source: UpdateRow | None = None,
) -> Admitted:
    """The instance `by`, which serves the binding `mine`, admits an arrival. `profile`: whose journal this is;
    `source`: the update's row as it will be, None: as it stands in the file."""
    size = size_of(arrival.raw) + size_of(payload)
    if size_of(payload) > transaction.limits.payload_bytes:
        raise TenureError(
            f"a payload of {size_of(payload)} bytes is longer than the journal takes "
            f"({transaction.limits.payload_bytes}); nothing was changed"
        )
    meta, limits = transaction.meta, transaction.limits
    row = find(transaction, arrival.delivery)
    update = source or find_update(transaction, arrival.update)
    digest = body_digest(arrival.raw, arrival.kind)
    message = Admit(
        arrival.delivery,
        arrival.kind,
        arrival.binding,
        arrival.update,
        digest,
        "none" if update is None else "live" if update.phase in LIVE else "over",
        None if update is None else update.data.binding,
        arrival.update <= meta.passed,
        meta.deliveries < limits.entries and meta.delivery_bytes + size <= limits.entry_bytes,
    )
    phase = DELIVERY.initial if row is None else row.phase
    data = Delivery(mine, "" if row is None else row.digest)
    taken: Step[Delivery, Output] = decide(
        transaction, DELIVERY, phase, data, message, subject=arrival.delivery, party=by, detail=f"for {mine}"
    )
    if not any(isinstance(output, Insert) for output in taken.outputs):
        assert row is not None
        return Admitted(arrival.delivery, arrival.update, row.receipt_id, True)
    receipt = receipt_id(queue, _scope(transaction, profile, arrival.delivery), (arrival.update,))
    transaction.write(
        _INSERT,
        (
            arrival.delivery,
            taken.phase,
            arrival.kind,
            mine,
            arrival.update,
            arrival.raw,
            digest,
            arrival.position,
            transaction.now_ms,
            receipt,
        ),
    )
    receipts.insert(transaction, receipt, queue, mine, arrival.update, payload)
    meta.deliveries += 1
    meta.delivery_bytes += size
    return Admitted(arrival.delivery, arrival.update, receipt, False)


def _scope(transaction: Transaction, profile: str, delivery: str) -> str:
    """Whose receipt it is: one delivery, one receipt. Two forms of one update, or one for two bindings, are two
    rights."""
    bot = transaction.meta.bot
    whose: dict[str, str | int] = {}
    if bot is not None:
        whose = {"tokenSha256": bot.token_sha256} if bot.bot_id is None else {"botId": bot.bot_id}
    return compact({"version": 1, "profile": profile, "bot": whose, "delivery": delivery}).decode()
