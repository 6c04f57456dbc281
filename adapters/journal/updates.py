"""What a leader has polled: appended, as a whole, before its offset is confirmed; and the fence (bus.md c, d). Every
function is one operation inside a transaction. How an update goes on is in `tenure.adapters.journal.forwards`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.journal.bodies import same_body
from tenure.adapters.journal.capacity import size_of
from tenure.adapters.journal.decisions import decide, told
from tenure.adapters.journal.deliveries import find_update
from tenure.adapters.journal.forwards import discard_unkept
from tenure.adapters.journal.servers import leading
from tenure.adapters.journal.settling import settling_at, trim
from tenure.adapters.journal.transaction import Declined, Transaction, Undone
from tenure.machines.chart import Refused, Step
from tenure.machines.forwarding import FORWARDING
from tenure.machines.forwarding_messages import Admit, Output, Skip, Update
from tenure.machines.laws import Law
from tenure.machines.poll_loop import numbered_anew

_INSERT: Final = "INSERT INTO updates (update_id, phase, raw, admitted_at, kind, settled_at) VALUES (?, ?, ?, ?, ?, ?)"
RENUMBER: Final = "renumber"
"""What is told of an update from which on Telegram numbers anew."""


@attrs.frozen
class Incoming:
    """An update as it was polled: `raw` is its JSON text, `kind` that of the envelope in which it would be forwarded;
    it may be said later (`forward`, `keep`). `beyond`: why it is out of the bounds of what is kept, in words; it is
    discarded as soon as it is journaled, and that is told under its id."""

    update: int
    raw: str = attrs.field(repr=False, default="")
    kind: str = ""
    beyond: str = ""


@attrs.frozen
class Appended:
    """The whole batch is in the journal. `new`: the ids that were not; `known`: those that it had, or had passed. Poll
    for what lies above `passed` next: never before this is durable."""

    new: tuple[int, ...]
    known: tuple[int, ...]
    passed: int


@attrs.frozen
class Conflict:
    """The batch was refused, all of it: the update `update` is in the journal with another body."""

    update: int


@attrs.frozen
class NoRoom:
    """The batch was refused, all of it, and not a byte was changed: so many updates are unsettled. Telegram keeps what
    is not confirmed."""

    updates: int
    bytes: int


# -- appending --------------------------------------------------------------------------------------------------------


def append(transaction: Transaction, batch: Sequence[Incoming], epoch: int, by: str, skipped: bool) -> Appended:
    """What a poll has answered; `skipped`: as what was there before the first start, and is never executed.

    Raises `Declined` under another epoch than that of the fence, and for history when the first start is over;
    `Undone` with `Conflict` or `NoRoom`; `TenureError` for ids that do not ascend.
    """
    meta = transaction.meta
    refused = leading(transaction, epoch)
    if refused is None and skipped and meta.opened:
        refused = Refused(Skip.event, FORWARDING.initial, ())
    if refused is not None:
        raise Declined(refused, "", by, str(epoch))
    fresh, known = _sorted_out(transaction, batch)
    if fresh and not skipped:
        count, size = len(fresh), sum(size_of(incoming.raw) for incoming in fresh)
        if (
            meta.updates + count > transaction.limits.entries
            or meta.update_bytes + size > transaction.limits.entry_bytes
        ):
            raise Undone(NoRoom(meta.updates, meta.update_bytes))
    settled = settling_at(transaction, "updates") if skipped else None
    for incoming in fresh:
        _append_one(transaction, incoming, epoch, by, settled)
    if skipped:
        trim(transaction, len(fresh))
    meta.passed = max(meta.passed, *known, -1)  # where Telegram numbers anew they may lie above
    return Appended(tuple(incoming.update for incoming in fresh), known, meta.passed)


def _sorted_out(transaction: Transaction, batch: Sequence[Incoming]) -> tuple[list[Incoming], tuple[int, ...]]:
    """Those that are to be appended, each once, and the ids of those that the journal has or has passed."""
    passed = transaction.meta.passed
    fresh: list[Incoming] = []
    known: list[int] = []
    for incoming in batch:
        if fresh and incoming.update < fresh[-1].update:
            raise TenureError("a batch of updates has to ascend by update id; nothing was appended")
        if fresh and incoming.update == fresh[-1].update:
            if not same_body(incoming.raw, fresh[-1].raw):
                raise Undone(Conflict(incoming.update))
        else:
            row = find_update(transaction, incoming.update)
            if row is None and incoming.update > passed:
                fresh.append(incoming)
                continue
            if row is not None and row.settled_at is None and not same_body(incoming.raw, row.raw):
                raise Undone(Conflict(incoming.update))
            known.append(incoming.update)
    return fresh, tuple(known)


def _append_one(transaction: Transaction, incoming: Incoming, epoch: int, by: str, settled: int | None) -> None:
    """`settled`: when it is skipped; None: it is not."""
    skipped = settled is not None
    meta, now = transaction.meta, transaction.now_ms
    data = Update(incoming.update, incoming.kind)
    message = (Skip if skipped else Admit)(epoch, meta.fence, meta.passed)
    subject = str(incoming.update)
    taken: Step[Update, Output] = decide(
        transaction, FORWARDING, FORWARDING.initial, data, message, subject=subject, party=by, tenure=epoch
    )
    raw = "" if skipped else incoming.raw
    transaction.write(_INSERT, (incoming.update, taken.phase, raw, now, incoming.kind, settled))
    meta.passed = incoming.update
    if skipped:
        meta.tombstones += 1
    else:
        meta.updates += 1
        meta.update_bytes += size_of(raw)
    if incoming.beyond and not skipped:
        discard_unkept(transaction, incoming.update, epoch, by, incoming.beyond)


def refuse(transaction: Transaction, name: str, epoch: int, by: str, why: str) -> None:
    """What has no id is not appended. Always raises `Declined`."""
    refused = leading(transaction, epoch) or Refused(Admit.event, FORWARDING.initial, ())
    raise Declined(refused, name, by, str(epoch), why)


def renumber(transaction: Transaction, first: int, asked: int, epoch: int, by: str) -> int:
    """Telegram numbers anew: what is passed goes down to just below `first`, so that it is appended. What has a row, or
    a tombstone, is known all the same. What is passed by now. Raises `Declined` under another epoch than that of the
    fence, and where it was not `asked` often enough."""
    meta = transaction.meta
    refused = leading(transaction, epoch)
    if refused is None and not numbered_anew(asked):
        refused = Refused(RENUMBER, FORWARDING.initial, ("asked_again",))
    if refused is not None:
        raise Declined(refused, str(first), by, str(epoch), f"answered {asked} times", Law.PROOF.value)
    if first <= meta.passed:
        detail = f"{meta.passed} was passed, and {first} came {asked} times in a row: Telegram numbers anew"
        told(transaction, str(first), by, epoch, RENUMBER, "asked_again", Law.PROOF, detail)
        meta.passed = first - 1
    return meta.passed


# -- the fence and the first start ------------------------------------------------------------------------------------


def raise_fence(transaction: Transaction, epoch: int, by: str) -> int:
    """Who has won `epoch` raises the fence to it, before it reads, polls or publishes anything. Raises `Declined` where
    a higher one has."""
    meta = transaction.meta
    if epoch > meta.fence:
        meta.fence = epoch
    refused = leading(transaction, epoch)
    if refused is not None:
        raise Declined(refused, "", by, str(epoch))
    return meta.fence


def end_first_start(transaction: Transaction, epoch: int, by: str) -> None:
    """What was there before is journaled as skipped; what comes from now on is work."""
    refused = leading(transaction, epoch)
    if refused is not None:
        raise Declined(refused, "", by, str(epoch))
    transaction.meta.opened = True
