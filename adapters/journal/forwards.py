"""Updates on their way: who leads brings each to whose it is, or keeps it, as `FORWARDING` says (bus.md c; annex D).
Every function is one operation inside a transaction, under the fence."""

from __future__ import annotations

from typing import Final

import attrs

from tenure.adapters.journal.capacity import size_of
from tenure.adapters.journal.decisions import decide
from tenure.adapters.journal.deliveries import LIVE, Admitted, Arrival, admit, find_update
from tenure.adapters.journal.due import waiting_updates
from tenure.adapters.journal.rows import UPDATE_COLUMNS, UpdateRow, update_row
from tenure.adapters.journal.servers import leading
from tenure.adapters.journal.settling import settling_at, trim
from tenure.adapters.journal.transaction import Declined, Transaction
from tenure.machines.admission_identity import Queue, delivery_id
from tenure.machines.chart import Refused, Step
from tenure.machines.forwarding import FORWARDING
from tenure.machines.forwarding_messages import (
    Acknowledged,
    Deliver,
    Discard,
    Failed,
    Failure,
    Forward,
    Happening,
    Keep,
    Output,
    Release,
    Resume,
    Retry,
    RetryIn,
    Send,
    Unserved,
    Update,
)

AT_ONCE: Final = 1_000
"""How many updates one transaction retries at most."""

_PUT: Final = (
    "UPDATE updates SET phase = ?, raw = ?, binding = ?, delivery_id = ?, attempts = ?, failure = ?, next_at = ?,"
    " settled_at = ? WHERE update_id = ?"
)
_FORWARDING: Final = (
    f"SELECT {UPDATE_COLUMNS} FROM updates WHERE settled_at IS NULL AND phase = 'forwarding' ORDER BY update_id"
)
_WAITING: Final = f"SELECT {UPDATE_COLUMNS} FROM updates WHERE phase = 'waiting'"
_DUE: Final = f"{_WAITING} AND next_at <= ? ORDER BY next_at LIMIT ?"
_BEYOND: Final = f"{_WAITING} AND next_at > ? ORDER BY next_at LIMIT ?"


@attrs.frozen
class Kept:
    """The leader's own update was delivered to its own binding."""

    admitted: Admitted


def forward(transaction: Transaction, update_id: int, epoch: int, binding: str, by: str, kind: str | None) -> Send:
    """An attempt begins: it is for `binding`, and goes in an envelope of that kind."""
    row = _now(transaction, _row(transaction, update_id, Forward.event, by), by, kind)
    message = Forward(epoch, transaction.meta.fence, binding)
    (output,) = _apply(transaction, row, message, by, epoch, detail=f"to {binding}").outputs
    assert isinstance(output, Send)
    return output


def keep(
    transaction: Transaction,
    update_id: int,
    epoch: int,
    binding: str,
    by: str,
    profile: str,
    queue: Queue,
    payload: str,
    kind: str | None,
) -> Kept:
    """It is for the leader's own `binding`: delivered and admitted in this transaction."""
    row = _now(transaction, _row(transaction, update_id, Keep.event, by), by, kind)
    message = Keep(epoch, transaction.meta.fence, binding)
    taken = _apply(transaction, row, message, by, epoch, detail=f"for {binding}")
    (output,) = taken.outputs
    assert isinstance(output, Deliver)
    arrival = Arrival(output.delivery, row.data.kind, output.binding, update_id, row.raw)
    # To the delivery the update is still to be delivered: this is what delivers it.
    source = attrs.evolve(row, data=taken.data)
    return Kept(admit(transaction, arrival, binding, by, profile, queue, payload, source))


def unserved(transaction: Transaction, update_id: int, epoch: int, by: str) -> RetryIn:
    """Nobody is registered for whom it is for: it waits."""
    row = _now(transaction, _row(transaction, update_id, Unserved.event, by), by, None)
    return _waits(_apply(transaction, row, Unserved(epoch, transaction.meta.fence), by, epoch))


def acknowledged(
    transaction: Transaction,
    update_id: int,
    epoch: int,
    ok: bool,
    delivery: str | None,
    update: int | None,
    by: str,
) -> RetryIn | None:
    """The request of the attempt was answered. None: delivered."""
    row = _row(transaction, update_id, Acknowledged.event, by)
    message = Acknowledged(epoch, transaction.meta.fence, ok, delivery, update)
    taken = _apply(transaction, row, message, by, epoch, detail="ok" if ok else "refused")
    return _waits(taken) if taken.outputs else None


def failed(transaction: Transaction, update_id: int, epoch: int, why: Failure, by: str) -> RetryIn:
    """The request of the attempt came to nothing."""
    row = _row(transaction, update_id, Failed.event, by)
    return _waits(_apply(transaction, row, Failed(epoch, transaction.meta.fence, why), by, epoch, detail=why))


def retry(transaction: Transaction, update_id: int, by: str) -> None:
    """It does not wait any longer."""
    _apply(transaction, _row(transaction, update_id, Retry.event, by), Retry(), by, None)


def retry_due(transaction: Transaction, by: str) -> tuple[int, ...]:
    """At most `AT_ONCE` updates whose time has come do not wait any longer."""
    after, until = waiting_updates(transaction.now_ms)
    cells = [*transaction.read(_DUE, (after, AT_ONCE)), *transaction.read(_BEYOND, (until, AT_ONCE))]
    found = tuple(map(update_row, cells[:AT_ONCE]))
    for row in found:
        _apply(transaction, row, Retry(), by, None, detail="its time has come")
    return tuple(row.data.update for row in found)


def resume(transaction: Transaction, epoch: int, by: str, besides: frozenset[int]) -> tuple[int, ...]:
    """The attempts have ended of whoever led before, and of this leader; besides those, which are on their way."""
    refused = leading(transaction, epoch)
    if refused is not None:
        raise Declined(refused, "", by, str(epoch))
    rows = map(update_row, transaction.read(_FORWARDING))
    found = tuple(row for row in rows if row.data.update not in besides)
    for row in found:
        _apply(transaction, row, Resume(epoch, transaction.meta.fence), by, epoch)
    return tuple(row.data.update for row in found)


def release(transaction: Transaction, update_id: int, gone: bool, by: str) -> None:
    """It is wanted elsewhere than where it is bound, and nobody will serve that binding again (`gone`)."""
    row = _row(transaction, update_id, Release.event, by)
    message = Release(gone, _admitted(transaction, row))
    _apply(transaction, row, message, by, None, detail=f"from {row.data.binding}")


def discard(transaction: Transaction, update_id: int, person: str) -> None:
    """A person does not want it executed."""
    row = _row(transaction, update_id, Discard.event, person)
    _apply(transaction, row, Discard(_admitted(transaction, row)), person, None)


def discard_unkept(transaction: Transaction, update_id: int, epoch: int, by: str, why: str) -> None:
    """It has been journaled, and is out of the bounds of what is kept."""
    row = _row(transaction, update_id, Discard.event, by)
    _apply(transaction, row, Discard(admitted=False), by, epoch, detail=f"not kept: {why}")


# -- the row ----------------------------------------------------------------------------------------------------------


def _row(transaction: Transaction, update_id: int, event: str, by: str) -> UpdateRow:
    row = find_update(transaction, update_id)
    if row is None:
        raise Declined(Refused(event, FORWARDING.initial, ()), "", by)
    return row


def _now(transaction: Transaction, row: UpdateRow, by: str, kind: str | None) -> UpdateRow:
    """The row, as it is to be moved: what waits does not any longer, and what is bound to nobody is of that kind."""
    if kind is not None and row.data.binding is None and row.data.kind != kind:
        transaction.write("UPDATE updates SET kind = ? WHERE update_id = ?", (kind, row.data.update))
        row = attrs.evolve(row, data=attrs.evolve(row.data, kind=kind))
    if row.phase != "waiting":
        return row
    taken = _apply(transaction, row, Retry(), by, None)
    return attrs.evolve(row, phase=taken.phase, data=taken.data, next_at=None)


def _admitted(transaction: Transaction, row: UpdateRow) -> bool:
    """Whether the binding that it is bound to has it."""
    data = row.data
    if data.binding is None:
        return False
    found = delivery_id(data.kind, data.binding, data.update)
    return transaction.one("SELECT 1 FROM deliveries WHERE delivery_id = ?", (found,)) is not None


def _apply(
    transaction: Transaction, row: UpdateRow, message: Happening, by: str, epoch: int | None, *, detail: str = ""
) -> Step[Update, Output]:
    subject = str(row.data.update)
    taken: Step[Update, Output] = decide(
        transaction, FORWARDING, row.phase, row.data, message, subject=subject, party=by, tenure=epoch, detail=detail
    )
    data, live = taken.data, taken.phase in LIVE
    delay = next((output.delay_ms for output in taken.outputs if isinstance(output, RetryIn)), None)
    transaction.write(
        _PUT,
        (
            taken.phase,
            row.raw if live else "",
            data.binding,
            None if data.binding is None else delivery_id(data.kind, data.binding, data.update),
            data.attempts,
            data.failure,
            None if delay is None else transaction.now_ms + delay,
            None if live else settling_at(transaction, "updates"),
            data.update,
        ),
    )
    if not live:
        meta = transaction.meta
        meta.updates -= 1
        meta.update_bytes -= size_of(row.raw)
        meta.tombstones += 1
        trim(transaction, 1)
    return taken


def _waits(taken: Step[Update, Output]) -> RetryIn:
    (output,) = taken.outputs
    assert isinstance(output, RetryIn)
    return output
