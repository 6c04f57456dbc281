"""Who serves a binding, and by which right pending work is taken (bus.md d; table `servers`).

An instance writes itself down when it is registered, or leads: a compare-and-set against who stands there. A leader
does so under its fence. Who is registered replaces one that has left, or is proven dead, and one that is alive only
where its own registration was confirmed after it had read that row (law Late is nothing). One that leaves says so; one
that has died does not: whoever looks and finds the proof writes down when.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tenure.adapters.fleet.identities import only_process, parent_process
from tenure.adapters.journal.rows import SERVER_COLUMNS, ServerRow, server_row, text
from tenure.adapters.journal.transaction import Declined, Transaction
from tenure.machines.chart import Refused, step
from tenure.machines.forwarding import FORWARDING
from tenure.machines.forwarding_messages import Admit, Update
from tenure.machines.receipt_messages import Party, Right

_GET: Final = f"SELECT {SERVER_COLUMNS} FROM servers WHERE binding = ?"

KEPT: Final = 256
"""So many bindings that were left are remembered, however long ago that was: who served them last proves that nobody
can come back."""

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


def serve(
    transaction: Transaction, binding: str, by: Party, under: int | None = None, over: ServerRow | None = None
) -> ServerRow | None:
    """`by`, which is registered for the binding under the leader of epoch `under` (None: it said none), serves it from
    now on. Else who stands in the way: a process that is not known to be dead, and has not left.

    `over`: that row, where `by` has read it and its registration was confirmed since, so that whoever stands there has
    lost his. A row that was written meanwhile is another one. Raises `Declined` under the leader of an epoch that is
    over."""
    if under is not None and under < transaction.meta.fence:
        _require_leading(transaction, under, by)
    known = server_of(transaction, binding)
    if known is not None and known.left_at is None:
        if known.party == by:
            return None
        of_the_past = known.party.process == by.process or known == over
        if not of_the_past and transaction.liveness.evidence(known.party.process) != "dead":
            return known
    _put(transaction, binding, by, known)
    return None


def serve_leading(transaction: Transaction, binding: str, by: Party, epoch: int, adopted: Iterable[str]) -> None:
    """`by`, which leads under `epoch`, serves the leader's binding from now on, whoever stands there: the fence says
    that he does not lead. What nobody has ever served of `adopted` is as if `by` had left it now: it is taken after the
    grace. Raises `Declined` for an epoch that is not the one that has raised the fence."""
    _require_leading(transaction, epoch, by)
    known = server_of(transaction, binding)
    if known is None or known.left_at is not None or known.party != by:
        _put(transaction, binding, by, known)
    for key in adopted:
        if server_of(transaction, key) is None:
            _put(transaction, key, by, None)
            _left(transaction, key)


def _put(transaction: Transaction, binding: str, by: Party, known: ServerRow | None) -> None:
    # Two rows of one binding are never the same: `since` rises, whatever the clock does.
    since = transaction.now_ms if known is None else max(transaction.now_ms, known.since + 1)
    transaction.write(
        "INSERT OR REPLACE INTO servers (binding, instance, process, session, since, left_at)"
        " VALUES (?, ?, ?, ?, ?, NULL)",
        (binding, by.instance, by.process, by.session, since),
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


def leave(transaction: Transaction, by: Party, bindings: Sequence[str] | None) -> tuple[str, ...]:
    """`by` serves these no longer (None: nothing); which of them it did."""
    mine = served_by(transaction, by)
    left = tuple(binding for binding in mine if bindings is None or binding in bindings)
    for binding in left:
        _left(transaction, binding)
    return left


def vacancies(transaction: Transaction) -> tuple[str, ...]:
    """Write down which bindings have lost their server to a proven death, and answer those with pending work that
    nobody has served for the grace since that, or since their server left: the leader may take it. Of a binding that
    was left long ago, has no work, and is none of the last `KEPT`, nothing is kept."""
    found: list[str] = []
    rows = servers(transaction)
    old = _long_ago(transaction, rows)
    for row in rows:
        if row.left_at is None:
            if transaction.liveness.evidence(row.party.process) == "dead":
                _left(transaction, row.binding)
        elif transaction.one(_PENDING, (row.binding,)) is not None:
            if row.left_at > transaction.now_ms:
                _left(transaction, row.binding)  # the clock went back: the grace begins anew
            elif _vacant(transaction, row):
                found.append(row.binding)
        elif old is not None and row.left_at < old:
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
    return "left"


def leading(transaction: Transaction, epoch: int) -> Refused | None:
    """None where `epoch` is the one that has raised the fence; else the refusal of the guard `epoch_current`, for
    leader's operations on no row of a machine."""
    meta = transaction.meta
    taken = step(FORWARDING, FORWARDING.initial, Update(meta.passed + 1, ""), Admit(epoch, meta.fence, meta.passed))
    return taken if isinstance(taken, Refused) else None


def _require_leading(transaction: Transaction, epoch: int, by: Party) -> None:
    refused = leading(transaction, epoch)
    if refused is not None:
        raise Declined(refused, "", by.instance, str(epoch))


def _vacant(transaction: Transaction, row: ServerRow) -> bool:
    return row.left_at is not None and transaction.now_ms - row.left_at >= transaction.limits.grace_ms


def _long_ago(transaction: Transaction, rows: Iterable[ServerRow]) -> int | None:
    """What was left before that time is forgotten; None: nothing is."""
    left = sorted((row.left_at for row in rows if row.left_at is not None), reverse=True)
    return min(transaction.now_ms - transaction.limits.tombstone_ms, left[KEPT - 1]) if len(left) > KEPT else None


def _left(transaction: Transaction, binding: str) -> None:
    transaction.write("UPDATE servers SET left_at = ? WHERE binding = ?", (transaction.now_ms, binding))
