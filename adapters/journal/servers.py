"""Who serves a binding, and by which right pending work is taken (bus.md d; table `servers`).

An instance writes itself down when it is registered, or leads; it replaces whoever stood there, since the leader has
decided that. One that has died does not say so: whoever looks and finds the proof writes down when.
"""

from __future__ import annotations

from typing import Final

from tenure.adapters.fleet.identities import only_process, parent_process
from tenure.adapters.journal.rows import SERVER_COLUMNS, ServerRow, server_row, text
from tenure.adapters.journal.transaction import Transaction
from tenure.machines.chart import Refused, step
from tenure.machines.forwarding import FORWARDING
from tenure.machines.forwarding_messages import Admit, Update
from tenure.machines.receipt_messages import Party, Right

_GET: Final = f"SELECT {SERVER_COLUMNS} FROM servers WHERE binding = ?"

_PENDING: Final = "SELECT 1 FROM receipts WHERE phase = 'pending' AND binding = ? LIMIT 1"
_FORGET: Final = (
    "DELETE FROM servers WHERE binding = ? AND NOT EXISTS"
    " (SELECT 1 FROM receipts WHERE settled_at IS NULL AND binding = ?)"
)


def server_of(transaction: Transaction, binding: str) -> ServerRow | None:
    """Who serves the binding, or did last; None: nobody ever."""
    row = transaction.one(_GET, (binding,))
    return None if row is None else server_row(row)


def servers(transaction: Transaction) -> tuple[ServerRow, ...]:
    """All of them, by binding."""
    return tuple(map(server_row, transaction.read(f"SELECT {SERVER_COLUMNS} FROM servers ORDER BY binding")))


def served_by(transaction: Transaction, by: Party) -> tuple[str, ...]:
    """The bindings that `by` serves now."""
    rows = transaction.read(
        "SELECT binding FROM servers WHERE process = ? AND instance = ? AND left_at IS NULL ORDER BY binding",
        (by.process, by.instance),
    )
    return tuple(text(row[0]) for row in rows)


def serve(transaction: Transaction, binding: str, by: Party) -> None:
    """`by` serves the binding from now on."""
    known = server_of(transaction, binding)
    if known is not None and known.party == by and known.left_at is None:
        return
    transaction.write(
        "INSERT INTO servers (binding, instance, process, session, since, left_at) VALUES (?, ?, ?, ?, ?, NULL)"
        " ON CONFLICT (binding) DO UPDATE SET instance = excluded.instance, process = excluded.process,"
        " session = excluded.session, since = excluded.since, left_at = NULL",
        (binding, by.instance, by.process, by.session, transaction.now_ms),
    )


def expect(transaction: Transaction, binding: str, by: Party) -> None:
    """`by` is about to serve a binding that nobody ever has."""
    transaction.write(
        "INSERT INTO servers (binding, instance, process, session, since, left_at) VALUES (?, ?, ?, ?, ?, NULL)"
        " ON CONFLICT (binding) DO NOTHING",
        (binding, by.instance, by.process, by.session, transaction.now_ms),
    )


def abandoned(transaction: Transaction) -> tuple[str, ...]:
    """The bindings that nobody will ever serve again: who served last is proven dead, and the key is that of this one
    process, or of the children of one that is proven dead as well."""
    found: list[str] = []
    for row in servers(transaction):
        process, parent = row.party.process, parent_process(row.binding)
        birth, _, place = process.partition("@")
        needed = [process]
        if parent is not None:
            needed.append(f"{parent}@{place}")
        elif only_process(row.binding) != birth:
            continue
        if all(transaction.liveness.evidence(name) == "dead" for name in needed):
            found.append(row.binding)
    return tuple(found)


def unserve(transaction: Transaction, binding: str, by: Party) -> bool:
    """`by` serves it no longer; whether it did."""
    known = server_of(transaction, binding)
    if known is None or known.left_at is not None:
        return False
    if (known.party.instance, known.party.process) != (by.instance, by.process):
        return False
    _left(transaction, binding)
    return True


def vacancies(transaction: Transaction) -> tuple[str, ...]:
    """Write down which bindings have lost their server to a proven death, and answer those with pending work that
    nobody has served for the grace since: the leader may take it. Of a binding that was left long ago, and has no work,
    nothing is kept."""
    found: list[str] = []
    old = transaction.now_ms - transaction.limits.tombstone_ms
    for row in servers(transaction):
        work = row.left_at is None or transaction.one(_PENDING, (row.binding,)) is not None
        if work and transaction.liveness.evidence(row.party.process) == "dead":
            if row.left_at is None:
                _left(transaction, row.binding)
            elif _vacant(transaction, row):
                found.append(row.binding)
        elif not work and row.left_at is not None and row.left_at < old:
            transaction.write(_FORGET, (row.binding, row.binding))
    return tuple(found)


def right_of(transaction: Transaction, binding: str, by: Party, epoch: int | None) -> Right:
    """By which right `by`, who leads under `epoch` if that is not None, takes pending work of the binding."""
    row = server_of(transaction, binding)
    if row is None:
        return "none"
    if row.left_at is None and (row.party.instance, row.party.process) == (by.instance, by.process):
        return "serves"
    if epoch is None or leading(transaction, epoch) is not None or not _vacant(transaction, row):
        return "none"
    return "left" if transaction.liveness.evidence(row.party.process) == "dead" else "none"


def leading(transaction: Transaction, epoch: int) -> Refused | None:
    """None where `epoch` is the one that has raised the fence; else the refusal of the guard `epoch_current`, for
    leader's operations on no row of a machine."""
    meta = transaction.meta
    taken = step(FORWARDING, FORWARDING.initial, Update(meta.passed + 1, ""), Admit(epoch, meta.fence, meta.passed))
    return taken if isinstance(taken, Refused) else None


def _vacant(transaction: Transaction, row: ServerRow) -> bool:
    # A clock that went back makes it wait for longer.
    return row.left_at is not None and transaction.now_ms - row.left_at >= transaction.limits.grace_ms


def _left(transaction: Transaction, binding: str) -> None:
    transaction.write("UPDATE servers SET left_at = ? WHERE binding = ?", (transaction.now_ms, binding))
