"""That a person wants a receipt elsewhere, and what must not be forgotten whatever the epoch (tables `moves`,
`evidence`)."""

from __future__ import annotations

from typing import Final

import attrs

from tenure.adapters.journal.database import Row
from tenure.adapters.journal.rows import integer, text, text_or_none
from tenure.adapters.journal.transaction import Transaction
from tenure.machines.receipt_messages import Party


@attrs.frozen
class Move:
    """A person wants a receipt at another instance. `asked_at`: ms of the wall clock. Its owner makes the offer, and
    writes down the `outcome`."""

    receipt_id: str
    instance: str
    asked_at: int
    outcome: str | None


@attrs.frozen
class Evidence:
    """Something that happened. Rows are only inserted, under whatever epoch; who acts on them is another question."""

    seq: int
    at_ms: int
    kind: str
    subject: str
    detail: str


_COLUMNS: Final = "moves.receipt_id, moves.instance, moves.asked_at, moves.outcome"


def ask_move(transaction: Transaction, receipt_id: str, to: str) -> None:
    """Ask for it, in place of what was asked for before."""
    transaction.write(
        "INSERT INTO moves (receipt_id, instance, asked_at, outcome) VALUES (?, ?, ?, NULL)"
        " ON CONFLICT (receipt_id) DO UPDATE SET instance = excluded.instance, asked_at = excluded.asked_at,"
        " outcome = NULL",
        (receipt_id, to, transaction.now_ms),
    )


def answer_move(transaction: Transaction, receipt_id: str, outcome: str, asked: Move | None) -> bool:
    """What has come of it; whether anybody still asks. `asked`: what is answered; what a person has asked for since
    stays open."""
    if asked is not None and move_of(transaction, receipt_id) != asked:
        return False
    transaction.write("UPDATE moves SET outcome = ? WHERE receipt_id = ? AND outcome IS NULL", (outcome, receipt_id))
    return transaction.changed() > 0


def move_of(transaction: Transaction, receipt_id: str) -> Move | None:
    """What a person has asked for last, and what has come of it."""
    row = transaction.one(f"SELECT {_COLUMNS} FROM moves WHERE receipt_id = ?", (receipt_id,))
    return None if row is None else _move(row)


def moves_for(transaction: Transaction, process: str) -> tuple[Move, ...]:
    """The last ones of receipts that this process owns, answered or not, the oldest first."""
    rows = transaction.read(
        f"SELECT {_COLUMNS} FROM moves JOIN receipts ON receipts.receipt_id = moves.receipt_id"
        " WHERE receipts.owner_process = ? ORDER BY moves.asked_at, moves.receipt_id",
        (process,),
    )
    return tuple(map(_move, rows))


def moves_to_take(transaction: Transaction, by: Party) -> tuple[Move, ...]:
    """The open ones of pending receipts whose binding `by` serves, the oldest first: also of those that wait."""
    rows = transaction.read(
        f"SELECT {_COLUMNS} FROM moves JOIN receipts ON receipts.receipt_id = moves.receipt_id"
        " JOIN servers ON servers.binding = receipts.binding"
        " WHERE moves.outcome IS NULL AND receipts.phase = 'pending' AND servers.left_at IS NULL"
        " AND servers.instance = ? AND servers.process = ? ORDER BY moves.asked_at, moves.receipt_id",
        (by.instance, by.process),
    )
    return tuple(map(_move, rows))


def _move(row: Row) -> Move:
    return Move(text(row[0]), text(row[1]), integer(row[2]), text_or_none(row[3]))


def add_evidence(transaction: Transaction, kind: str, subject: str, detail: str) -> None:
    """Insert a row: no fence is asked."""
    transaction.write(
        "INSERT INTO evidence (at_ms, kind, subject, detail) VALUES (?, ?, ?, ?)",
        (transaction.now_ms, kind, subject, detail),
    )


def evidence_of(transaction: Transaction, kind: str, subject: str | None) -> tuple[Evidence, ...]:
    """All of a kind, perhaps of one subject, in their order."""
    rows = transaction.read(
        "SELECT seq, at_ms, kind, subject, detail FROM evidence WHERE kind = ? AND (? IS NULL OR subject = ?)"
        " ORDER BY seq",
        (kind, subject, subject),
    )
    return tuple(Evidence(integer(r[0]), integer(r[1]), text(r[2]), text(r[3]), text(r[4])) for r in rows)
