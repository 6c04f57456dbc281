"""Rows and the machines' values: nothing but mapping.

A cell of another type than the schema's makes the file a damaged one: `Unreadable`, which names the column.
"""

from __future__ import annotations

from typing import Final, cast

import attrs

from tenure.adapters.journal.database import DatabaseFault, Row, Value
from tenure.machines.delivery import DELIVERY
from tenure.machines.forwarding import FORWARDING
from tenure.machines.forwarding_messages import Failure, Update
from tenure.machines.receipt import RECEIPT
from tenure.machines.receipt_messages import Holder, Offer, Party, Receipt


def text(value: Value) -> str:
    """A text; one that holds half a character is kept as bytes (`tenure.adapters.journal.sqlite`)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogatepass")
    raise _unreadable(value)


def text_or_none(value: Value) -> str | None:
    """A text, or NULL."""
    return None if value is None else text(value)


def integer(value: Value) -> int:
    """An integer."""
    if isinstance(value, int):
        return value
    raise _unreadable(value)


def integer_or_none(value: Value) -> int | None:
    """An integer, or NULL."""
    return None if value is None else integer(value)


def phase_of(value: Value, phases: frozenset[str]) -> str:
    """One of the phases of a machine."""
    found = text(value)
    if found not in phases:
        raise DatabaseFault("SQLITE_FORMAT", f"a row is {found!r}, which nothing is")
    return found


_RECEIPT: Final = frozenset(RECEIPT.phases)
_UPDATE: Final = frozenset(FORWARDING.phases)
_DELIVERY: Final = frozenset(DELIVERY.phases)


def _unreadable(value: Value) -> DatabaseFault:
    return DatabaseFault("SQLITE_FORMAT", f"a cell holds {type(value).__name__} where something else belongs")


# -- receipts -----------------------------------------------------------------


@attrs.frozen
class ReceiptRow:
    """A receipt as it stands in the file. `first_update`: the least of its update ids, by which receipts are ordered.
    `settled_at`: when it was done or discarded; then it is a tombstone, and its payload is gone."""

    receipt_id: str
    phase: str
    kind: str
    binding: str
    first_update: int
    payload: str = attrs.field(repr=False)
    admitted_at: int
    not_before: int
    owned_since: int | None
    settled_at: int | None
    data: Receipt


RECEIPT_COLUMNS: Final = (
    "receipt_id, phase, kind, binding, first_update, payload, admitted_at, not_before, owned_since, settled_at,"
    " attempt_limit, attempts, owner_instance, owner_process, owner_session, owner_acquisition, owner_handoff,"
    " offer_handoff, offer_instance, offer_process, fallen_handoff, fallen_instance, fallen_process"
)


def receipt_row(row: Row) -> ReceiptRow:
    """Of `RECEIPT_COLUMNS`."""
    owner = None
    if row[15] is not None:
        owner = Holder(text(row[12]), text(row[13]), integer(row[14]), text(row[15]), text_or_none(row[16]))
    return ReceiptRow(
        receipt_id=text(row[0]),
        phase=phase_of(row[1], _RECEIPT),
        kind=text(row[2]),
        binding=text(row[3]),
        first_update=integer(row[4]),
        payload=text(row[5]),
        admitted_at=integer(row[6]),
        not_before=integer(row[7]),
        owned_since=integer_or_none(row[8]),
        settled_at=integer_or_none(row[9]),
        data=Receipt(integer(row[10]), owner, _offer(row[17:20]), _offer(row[20:23]), integer(row[11])),
    )


def _offer(cells: Row) -> Offer | None:
    return None if cells[0] is None else Offer(text(cells[0]), text(cells[1]), text(cells[2]))


def receipt_cells(data: Receipt) -> Row:
    """The cells of `attempts` and of owner, offer and fallen offer, in the order of `RECEIPT_COLUMNS`."""
    return (data.attempts, *_holder_cells(data.owner), *_offer_cells(data.offer), *_offer_cells(data.fallen))


def _holder_cells(owner: Holder | None) -> Row:
    if owner is None:
        return (None, None, None, None, None)
    return (owner.instance, owner.process, owner.session, str(owner.acquisition), _id(owner.handoff))


def _offer_cells(offer: Offer | None) -> Row:
    return (None, None, None) if offer is None else (str(offer.handoff), offer.instance, offer.process)


def _id(value: int | str | None) -> str | None:
    return None if value is None else str(value)


# -- servers ------------------------------------------------------------------


@attrs.frozen
class ServerRow:
    """Who serves a binding. `left_at`: when it said that it does no longer; None while it does."""

    binding: str
    party: Party
    since: int
    left_at: int | None


SERVER_COLUMNS: Final = "binding, instance, process, session, since, left_at"


def server_row(row: Row) -> ServerRow:
    """Of `SERVER_COLUMNS`."""
    party = Party(text(row[1]), text(row[2]), integer(row[3]))
    return ServerRow(text(row[0]), party, integer(row[4]), integer_or_none(row[5]))


# -- updates ------------------------------------------------------------------


@attrs.frozen
class UpdateRow:
    """An update as it stands in the file. `next_at`: when it is tried again, if it waits. `settled_at`: when it was
    delivered, skipped or discarded; then it is a tombstone, and its body is gone."""

    phase: str
    raw: str = attrs.field(repr=False)
    admitted_at: int
    delivery_id: str | None
    next_at: int | None
    settled_at: int | None
    data: Update


UPDATE_COLUMNS: Final = (
    "update_id, phase, raw, admitted_at, kind, binding, delivery_id, attempts, failure, next_at, settled_at"
)


def update_row(row: Row) -> UpdateRow:
    """Of `UPDATE_COLUMNS`."""
    data = Update(
        integer(row[0]),
        text(row[4]),
        text_or_none(row[5]),
        integer(row[7]),
        cast("Failure | None", text_or_none(row[8])),
    )
    return UpdateRow(
        phase=phase_of(row[1], _UPDATE),
        raw=text(row[2]),
        admitted_at=integer(row[3]),
        delivery_id=text_or_none(row[6]),
        next_at=integer_or_none(row[9]),
        settled_at=integer_or_none(row[10]),
        data=data,
    )


# -- deliveries ---------------------------------------------------------------


@attrs.frozen
class DeliveryRow:
    """A delivery as it stands in the file. `settled_at`: when its receipt was settled, or when that was last needed;
    then it is a tombstone, and its body is gone; `digest` is that of the body."""

    delivery_id: str
    phase: str
    kind: str
    binding: str
    update_id: int
    raw: str = attrs.field(repr=False)
    digest: str
    position: str | None
    admitted_at: int
    receipt_id: str
    settled_at: int | None


DELIVERY_COLUMNS: Final = (
    "delivery_id, phase, kind, binding, update_id, raw, digest, position, admitted_at, receipt_id, settled_at"
)


def delivery_row(row: Row) -> DeliveryRow:
    """Of `DELIVERY_COLUMNS`."""
    return DeliveryRow(
        delivery_id=text(row[0]),
        phase=phase_of(row[1], _DELIVERY),
        kind=text(row[2]),
        binding=text(row[3]),
        update_id=integer(row[4]),
        raw=text(row[5]),
        digest=text(row[6]),
        position=text_or_none(row[7]),
        admitted_at=integer(row[8]),
        receipt_id=text(row[9]),
        settled_at=integer_or_none(row[10]),
    )
