"""One update, delivery or receipt with every field, in words (``tenure journal show``)."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tenure.adapters.errors import printable
from tenure.adapters.journal.looking import Item
from tenure.adapters.looking.journal_json import updates_in
from tenure.adapters.looking.journal_look import Lives
from tenure.adapters.looking.journal_wording import amount, moved, owner, party, receipt, update
from tenure.adapters.looking.line import Line


def processes_of(item: Item) -> frozenset[str]:
    """Every process that a row of it names."""
    found = [row.data.owner.process for row in item.receipts if row.data.owner is not None]
    found += [o.process for row in item.receipts for o in (row.data.offer, row.data.fallen) if o is not None]
    return frozenset(found)


def item_lines(item: Item, lives: Lives, now_ms: int, shown: int) -> Iterator[Line]:
    """All of it; so many characters of each body."""
    for line in _lines(item, lives, now_ms, shown):
        yield Line(line.label, printable(line.text), line.mood)


def _lines(item: Item, lives: Lives, now_ms: int, shown: int) -> Iterator[Line]:
    if item.update is not None:
        row = item.update
        yield Line("update", str(row.data.update))
        yield Line("  state", update(row, now_ms))
        yield Line("  kind", row.data.kind or "not known yet")
        if row.delivery_id is not None:
            yield Line("  delivery", row.delivery_id)
        yield Line("  polled", when(row.admitted_at))
        yield from _settled(row.settled_at)
        yield from _body("  update", row.raw, row.settled_at, shown)
    for delivery in item.deliveries:
        yield Line("delivery", delivery.delivery_id)
        yield Line("  state", delivery.phase)
        yield Line("  kind", delivery.kind)
        yield Line("  binding", delivery.binding)
        yield Line("  update", str(delivery.update_id))
        yield Line("  receipt", delivery.receipt_id)
        if delivery.position is not None:
            yield Line("  position", delivery.position)
        yield Line("  admitted", when(delivery.admitted_at))
        yield from _settled(delivery.settled_at)
        same = item.update is not None and item.update.raw == delivery.raw and delivery.raw != ""
        if same:
            yield Line("  body", "that of the update")
        else:
            yield from _body("  body", delivery.raw, delivery.settled_at, shown)
    moves = {move.receipt_id: move for move in item.moves}
    for right in item.receipts:
        yield Line("receipt", right.receipt_id)
        yield Line(
            "  state",
            receipt(right, updates_in(item, right.receipt_id), lives, now_ms) + moved(moves.get(right.receipt_id)),
        )
        data = right.data
        if data.owner is not None:
            yield Line("  owner", owner(data.owner, lives))
            yield Line("  acquisition", str(data.owner.acquisition))
            if data.owner.handoff is not None:
                yield Line("  came by", str(data.owner.handoff))
        for label, offer in (("  offer", data.offer), ("  fallen offer", data.fallen)):
            if offer is not None:
                yield Line(label, f"{offer.handoff} to {party(offer.instance, offer.process, lives)}")
        yield Line("  admitted", when(right.admitted_at))
        if right.not_before:
            yield Line("  not before", when(right.not_before))
        yield from _settled(right.settled_at)
        if right.payload:
            yield from _body("  payload", right.payload, right.settled_at, shown)


def when(at_ms: int) -> str:
    """A time of the wall clock, here."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms // 1_000)) + f".{at_ms % 1_000:03}"
    except (OverflowError, ValueError, OSError):
        return f"{at_ms} ms, which is no time"


def _settled(at_ms: int | None) -> Iterator[Line]:
    if at_ms is not None:
        yield Line("  settled", when(at_ms))


def _body(label: str, text: str, settled_at: int | None, shown: int) -> Iterator[Line]:
    if settled_at is not None:
        yield Line(label, "settled: its body is not kept")
        return
    rest = "" if len(text) <= shown else f" ... ({amount(len(text))} in all; --json has everything)"
    yield Line(label, text[:shown] + rest)
