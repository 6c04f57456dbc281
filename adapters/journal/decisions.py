"""What was decided about a row, in the transaction that did it; and what was refused, in one of its own.

`tenure why` reads it. A decision names the guards of the row that the machine took, a refusal the guards that refused,
both with their laws. Of one subject the first and the last ones are kept; what says the same as the last one is not
written again, so that whoever asks in a loop does not fill the file.
"""

from __future__ import annotations

from typing import Final, TypeVar

import attrs

from tenure.adapters.journal.capacity import TRIMMED_AT_ONCE
from tenure.adapters.journal.database import Row
from tenure.adapters.journal.events import Decided
from tenure.adapters.journal.rows import integer, text, text_or_none
from tenure.adapters.journal.transaction import Declined, Transaction
from tenure.machines.chart import Message, Refused, Step, Table, chosen, step
from tenure.machines.laws import Law

D = TypeVar("D")
M = TypeVar("M", bound=Message)
O = TypeVar("O")


@attrs.frozen
class Decision:
    """One decision. `seq` orders all of them, `nth` those of one `subject` (an update, delivery or receipt id), from 1.

    `action`: the event. `party`: the instance that asked; `tenure`: the epoch or acquisition under which it did.
    `guard` and `law`: of the guards that let it pass, or of those that refused; `detail`: what has come of it, or
    "refused in" a phase."""

    seq: int
    at_ms: int
    subject: str
    nth: int
    action: str
    party: str | None
    tenure: str | None
    guard: str
    law: str
    detail: str


DECISION_COLUMNS: Final = "seq, at_ms, subject, nth, action, party, tenure, guard, law, detail"


def decision_row(row: Row) -> Decision:
    """Of `DECISION_COLUMNS`."""
    return Decision(
        integer(row[0]),
        integer(row[1]),
        text(row[2]),
        integer(row[3]),
        text(row[4]),
        text_or_none(row[5]),
        text_or_none(row[6]),
        text(row[7]),
        text(row[8]),
        text(row[9]),
    )


UNRECORDED: Final = frozenset({"has_room"})
"""Guards whose refusal is not written down: a journal that is full does not grow by saying so (I23)."""

_LAST: Final = (
    "SELECT nth, action, party, tenure, guard, detail FROM decisions WHERE subject = ? ORDER BY nth DESC LIMIT 1"
)


def decide(
    transaction: Transaction,
    table: Table[D, M, O],
    phase: str,
    data: D,
    message: M,
    *,
    subject: str,
    party: str | None,
    tenure: object = None,
    minted: object = None,
    detail: str = "",
    update: int | None = None,
) -> Step[D, O]:
    """The machine's step, and the decision that tells it. `minted`: the tenure that begins with it, told in place of
    `tenure` where it does; `update`: what the row is about, for who records. Raises `Declined` where the machine
    refuses."""
    taken = step(table, phase, data, message)
    if isinstance(taken, Refused):
        raise Declined(taken, subject, party, _text(tenure), detail, _words(table, taken.guards)[1])
    row = chosen(table, phase, data, message)
    assert not isinstance(row, Refused)
    guards = tuple(guard.name for guard in row.guards)
    what = f"{phase} -> {taken.phase}" if phase != taken.phase else f"still {phase}"
    said = f"{what}: {detail}" if detail else what
    under = tenure if minted is None else minted
    told = _record(transaction, subject, party, _text(under), message.event, *_words(table, guards), said)
    if told and transaction.decided is not None:
        seq = _seq(transaction, subject)
        meta = transaction.meta
        transaction.decided.append(
            Decided(
                seq, subject, update, party, _text(under), phase, data, message, taken.phase, taken.outputs,
                meta.fence, meta.passed,
            )
        )  # fmt: skip
    return taken


def told(
    transaction: Transaction, subject: str, party: str, tenure: object, action: str, guard: str, law: Law, detail: str
) -> None:
    """Tell what no machine of a row decides."""
    _record(transaction, subject, party, _text(tenure), action, guard, law.value, detail)


def record_refusal(transaction: Transaction, declined: Declined) -> None:
    """Tell a refusal, in a transaction of its own: the one that was refused is rolled back."""
    refused = declined.refused
    said = f"refused in {refused.phase}: {declined.detail}" if declined.detail else f"refused in {refused.phase}"
    _record(
        transaction,
        declined.subject,
        declined.party,
        declined.tenure,
        refused.event,
        ", ".join(refused.guards),
        declined.laws,
        said,
    )


def _seq(transaction: Transaction, subject: str) -> int:
    """The number of the last decision about a subject."""
    row = transaction.one("SELECT seq FROM decisions WHERE subject = ? ORDER BY nth DESC LIMIT 1", (subject,))
    assert row is not None
    return integer(row[0])


def forget(transaction: Transaction, subject: str) -> None:
    """Forget what is told of a subject whose tombstone goes."""
    transaction.write("DELETE FROM decisions WHERE subject = ?", (subject,))
    transaction.meta.decisions -= transaction.changed()


def _record(
    transaction: Transaction,
    subject: str,
    party: str | None,
    tenure: str | None,
    action: str,
    guard: str,
    law: str,
    detail: str,
) -> bool:
    """Whether it is not told already: what is, by the last decision of this subject, has changed nothing."""
    said = (action, party, tenure, guard, detail)
    last = transaction.one(_LAST, (subject,))
    if last is not None and last[1:] == said:
        return False
    nth = 1 if last is None else integer(last[0]) + 1
    transaction.write(
        f"INSERT INTO decisions ({DECISION_COLUMNS}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (transaction.now_ms, subject, nth, action, party, tenure, guard, law, detail),
    )
    meta, limits = transaction.meta, transaction.limits
    meta.decisions += 1
    half = limits.decisions_of_one // 2
    if nth > 2 * half:
        transaction.write("DELETE FROM decisions WHERE subject = ? AND nth = ?", (subject, nth - half))
        meta.decisions -= transaction.changed()
    if meta.decisions > limits.decisions:
        transaction.write(
            "DELETE FROM decisions WHERE seq IN (SELECT seq FROM decisions ORDER BY seq LIMIT ?)", (TRIMMED_AT_ONCE,)
        )
        meta.decisions -= transaction.changed()
    return True


def _words(table: Table[D, M, O], guards: tuple[str, ...]) -> tuple[str, str]:
    """The guards, and their laws, each of them once."""
    laws = _laws(table)
    return ", ".join(guards), ", ".join(dict.fromkeys(laws[name] for name in guards))


def _laws(table: Table[D, M, O]) -> dict[str, str]:
    found = _LAWS.get(table.name)
    if found is None:
        found = _LAWS[table.name] = {name: mark.law.value for name, mark in table.guards.items()}
    return found


_LAWS: Final[dict[str, dict[str, str]]] = {}
"""By machine and guard: the name of its law."""


def _text(value: object) -> str | None:
    return None if value is None else str(value)
