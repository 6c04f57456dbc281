"""Receipts: each function is one operation on one row, inside a transaction (bus.md d, e).

The row is read, `RECEIPT` decides, the row and the decision are written. What the machine is told of the world, who
serves a binding and who is proven dead, is looked up here, in the same transaction.
"""

from __future__ import annotations

from typing import Final

import attrs

from tenure.adapters.journal.capacity import size_of
from tenure.adapters.journal.decisions import decide
from tenure.adapters.journal.rows import RECEIPT_COLUMNS, ReceiptRow, receipt_cells, receipt_row, text
from tenure.adapters.journal.servers import right_of
from tenure.adapters.journal.settling import settle_deliveries
from tenure.adapters.journal.transaction import Declined, Transaction
from tenure.machines.chart import Refused, Step
from tenure.machines.receipt import RECEIPT
from tenure.machines.receipt_messages import (
    Accept,
    Cancel,
    Complete,
    Discard,
    Doubt,
    Fail,
    Freed,
    Happening,
    Holder,
    Interrupted,
    OfferTo,
    Output,
    Party,
    Receipt,
    Reclaim,
    Recover,
    Release,
    Retry,
    Same,
    Start,
    Take,
)

ABSENT: Final = "absent"
"""The phase that a refusal names where there is no such row: never admitted, or settled for so long that its tombstone
is forgotten."""
AT_ONCE: Final = 500
"""How many receipts one transaction recovers or reclaims at most."""

_GET: Final = f"SELECT {RECEIPT_COLUMNS} FROM receipts WHERE receipt_id = ?"
_PUT: Final = (
    "UPDATE receipts SET phase = ?, not_before = ?, owned_since = ?, attempts = ?,"
    " owner_instance = ?, owner_process = ?, owner_session = ?, owner_acquisition = ?, owner_handoff = ?,"
    " offer_handoff = ?, offer_instance = ?, offer_process = ?,"
    " fallen_handoff = ?, fallen_instance = ?, fallen_process = ? WHERE receipt_id = ?"
)
_OWNERS: Final = """WITH RECURSIVE owners (process) AS (
        SELECT min(owner_process) FROM receipts WHERE owner_process IS NOT NULL
        UNION ALL
        SELECT (SELECT min(owner_process) FROM receipts WHERE owner_process > process) FROM owners
        WHERE process IS NOT NULL)
    SELECT process FROM owners WHERE process IS NOT NULL"""
"""Each process once, by one look at the index for each; DISTINCT would look at every receipt that somebody owns."""
_OF_PROCESS: Final = f"SELECT {RECEIPT_COLUMNS} FROM receipts WHERE owner_process = ? ORDER BY first_update LIMIT ?"
_OF_PAST: Final = (
    f"SELECT {RECEIPT_COLUMNS} FROM receipts WHERE owner_process = ? AND owner_instance <> ?"
    " ORDER BY first_update LIMIT ?"
)


@attrs.frozen
class Recovered:
    """One receipt whose owner is gone, and what has become of it."""

    receipt_id: str
    outcome: Freed | Interrupted


def find(transaction: Transaction, receipt_id: str) -> ReceiptRow | None:
    """The row; None where there is none."""
    row = transaction.one(_GET, (receipt_id,))
    return None if row is None else receipt_row(row)


# -- the operations: each raises `Declined` where the machine refuses -------------------------------------------------


def take(transaction: Transaction, receipt_id: str, by: Party, acquisition: str, epoch: int | None) -> Output:
    """`by` takes it; `epoch`: under which it leads, None where it does not."""
    return take_row(transaction, _row(transaction, receipt_id, Take.event, by.instance), by, acquisition, epoch)


def take_row(transaction: Transaction, row: ReceiptRow, by: Party, acquisition: str, epoch: int | None) -> Output:
    """As `take`."""
    message = Take(by, acquisition, right_of(transaction, row.binding, by, epoch))
    detail = f"right: {message.right}"
    return _apply(transaction, row, message, by.instance, None, minted=acquisition, detail=detail)


def offer(transaction: Transaction, receipt_id: str, by: Holder, handoff: str, recipient: Party) -> Output:
    """Its owner offers it."""
    row = _row(transaction, receipt_id, OfferTo.event, by.instance)
    detail = f"{handoff} to {recipient.instance}"
    return _apply(transaction, row, OfferTo(by, handoff, recipient), by.instance, by.acquisition, detail=detail)


def accept(
    transaction: Transaction, receipt_id: str, recipient: Party, handoff: str, donor: Holder, acquisition: str
) -> Output:
    """The recipient accepts what it was offered."""
    row = _row(transaction, receipt_id, Accept.event, recipient.instance)
    message = Accept(recipient, handoff, donor, acquisition)
    detail = f"{handoff} of {donor.instance}"
    return _apply(transaction, row, message, recipient.instance, donor.acquisition, minted=acquisition, detail=detail)


def cancel(transaction: Transaction, receipt_id: str, by: Holder, handoff: str) -> Output:
    """Its owner withdraws the offer."""
    row = _row(transaction, receipt_id, Cancel.event, by.instance)
    return _apply(transaction, row, Cancel(by, handoff), by.instance, by.acquisition, detail=handoff)


def start(transaction: Transaction, receipt_id: str, by: Holder) -> Output:
    """Its owner is about to execute it."""
    row = _row(transaction, receipt_id, Start.event, by.instance)
    return _apply(transaction, row, Start(by), by.instance, by.acquisition, detail=f"attempt {row.data.attempts + 1}")


def complete(transaction: Transaction, receipt_id: str, by: Holder) -> Output:
    """Its owner has executed it: the deliveries are settled with it."""
    row = _row(transaction, receipt_id, Complete.event, by.instance)
    answer = _apply(transaction, row, Complete(by), by.instance, by.acquisition)
    _settle(transaction, row, "done", by.instance)
    return answer


def fail(transaction: Transaction, receipt_id: str, by: Holder, delay_ms: int, why: str) -> Output:
    """Its owner has tried in vain: it is not to be taken before `delay_ms` are over."""
    row = _row(transaction, receipt_id, Fail.event, by.instance)
    due = transaction.now_ms + min(delay_ms, transaction.limits.delay_ms)
    return _apply(transaction, row, Fail(by), by.instance, by.acquisition, not_before=due, detail=why)


def doubt(transaction: Transaction, receipt_id: str, by: Holder, why: str) -> Output:
    """Its owner has begun it, and does not know what has come of it."""
    row = _row(transaction, receipt_id, Doubt.event, by.instance)
    return _apply(transaction, row, Doubt(by), by.instance, by.acquisition, detail=why)


def release(transaction: Transaction, receipt_id: str, by: Holder, why: str) -> Output:
    """Its owner gives it back."""
    row = _row(transaction, receipt_id, Release.event, by.instance)
    return _apply(transaction, row, Release(by), by.instance, by.acquisition, detail=why)


def recover(transaction: Transaction, receipt_id: str, expected: str, by: Party) -> Output:
    """`by` thinks that the owner with that acquisition is dead: whether it is, is looked up here (I22)."""
    row = _row(transaction, receipt_id, Recover.event, by.instance)
    owner = row.data.owner
    evidence = "unknown" if owner is None else transaction.liveness.evidence(owner.process)
    message = Recover(expected, evidence)
    return _apply(transaction, row, message, by.instance, expected, detail=f"the owner is {evidence}")


def recover_all(transaction: Transaction, by: Party) -> tuple[Recovered, ...]:
    """At most `AT_ONCE` receipts of owners that are proven dead."""
    found: list[Recovered] = []
    for cells in transaction.read(_OWNERS):
        process = text(cells[0])
        if len(found) >= AT_ONCE or transaction.liveness.evidence(process) != "dead":
            continue
        for row in map(receipt_row, transaction.read(_OF_PROCESS, (process, AT_ONCE - len(found)))):
            assert row.data.owner is not None
            expected = row.data.owner.acquisition
            message = Recover(expected, "dead")
            outcome = _apply(transaction, row, message, by.instance, expected, detail="the owner is dead")
            assert isinstance(outcome, (Freed, Interrupted))
            found.append(Recovered(row.receipt_id, outcome))
    return tuple(found)


def reclaim(transaction: Transaction, by: Party) -> tuple[Recovered, ...]:
    """At most `AT_ONCE` receipts of earlier activations of this very process."""
    found: list[Recovered] = []
    for cells in transaction.read(_OF_PAST, (by.process, by.instance, AT_ONCE)):
        row = receipt_row(cells)
        outcome = _apply(transaction, row, Reclaim(by.process, by.instance), by.instance, None)
        assert isinstance(outcome, (Freed, Interrupted))
        found.append(Recovered(row.receipt_id, outcome))
    return tuple(found)


def retry(transaction: Transaction, receipt_id: str, person: str) -> Output:
    """A person wants it done again."""
    row = _row(transaction, receipt_id, Retry.event, person)
    return _apply(transaction, row, Retry(person), person, None, not_before=0)


def discard(transaction: Transaction, receipt_id: str, person: str) -> Output:
    """A person does not want it done: the deliveries are discarded with it."""
    row = _row(transaction, receipt_id, Discard.event, person)
    answer = _apply(transaction, row, Discard(person), person, None)
    _settle(transaction, row, "discarded", person)
    return answer


# -- the row ----------------------------------------------------------------------------------------------------------


def insert(transaction: Transaction, receipt_id: str, kind: str, binding: str, update_id: int, payload: str) -> None:
    """A receipt that is pending, for one update. Its delivery is inserted with it."""
    transaction.write(
        "INSERT INTO receipts (receipt_id, phase, kind, binding, first_update, payload, admitted_at, attempt_limit)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            receipt_id,
            RECEIPT.initial,
            kind,
            binding,
            update_id,
            payload,
            transaction.now_ms,
            transaction.limits.attempts,
        ),
    )


def _row(transaction: Transaction, receipt_id: str, event: str, party: str) -> ReceiptRow:
    row = find(transaction, receipt_id)
    if row is None:
        raise Declined(Refused(event, ABSENT, ()), "", party, None)
    return row


def _apply(
    transaction: Transaction,
    row: ReceiptRow,
    message: Happening,
    party: str,
    tenure: int | str | None,
    *,
    minted: str | None = None,
    not_before: int | None = None,
    detail: str = "",
) -> Output:
    # What was minted for nothing is not told: asking in a loop would be another decision each time.
    owner = row.data.owner
    new = None if owner is not None and minted is not None and owner.instance == party else minted
    taken: Step[Receipt, Output] = decide(
        transaction,
        RECEIPT,
        row.phase,
        row.data,
        message,
        subject=row.receipt_id,
        party=party,
        tenure=tenure,
        minted=new,
        detail=detail,
        update=row.first_update,
    )
    (answer,) = taken.outputs
    if not isinstance(answer, Same):
        _put(transaction, row, taken, row.not_before if not_before is None else not_before)
    return answer


def _put(transaction: Transaction, row: ReceiptRow, taken: Step[Receipt, Output], not_before: int) -> None:
    owner, before = taken.data.owner, row.data.owner
    since = None if owner is None else row.owned_since if owner == before else transaction.now_ms
    transaction.write(_PUT, (taken.phase, not_before, since, *receipt_cells(taken.data), row.receipt_id))


def _settle(transaction: Transaction, row: ReceiptRow, phase: str, party: str) -> None:
    """It is a tombstone from now on; so are its deliveries."""
    now = transaction.now_ms
    transaction.write("UPDATE receipts SET payload = '', settled_at = ? WHERE receipt_id = ?", (now, row.receipt_id))
    transaction.write("DELETE FROM moves WHERE receipt_id = ?", (row.receipt_id,))
    transaction.meta.delivery_bytes -= size_of(row.payload)
    transaction.meta.tombstones += 1
    settle_deliveries(transaction, row.receipt_id, phase, party)
