"""The shapes of ``tenure journal ... --json`` and ``tenure why --json``, which stay: fields may be added.

Times are ms of the wall clock, null stands for nothing, ids are whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from tenure.adapters.journal.liveness import process_named
from tenure.adapters.journal.looking import Item
from tenure.adapters.journal.moves import Move
from tenure.adapters.journal.rows import DeliveryRow, ReceiptRow, ServerRow, UpdateRow
from tenure.adapters.looking.journal_look import STUCK, JournalCounts, JournalLook, Lives
from tenure.adapters.looking.journal_names import short
from tenure.adapters.looking.journal_place import Place
from tenure.machines.receipt_messages import Offer

Json = dict[str, object]


def glance_json(found: JournalCounts) -> Json:
    """One of `journals` of ``tenure status --json``: {key, path, problem, unfinished, updates, receipts}: counts by
    phase, null where it cannot be read; `unfinished`: what a dead process had begun in it has to be undone first."""
    counts = found.counts
    return {
        "key": found.key,
        "path": found.path,
        "problem": found.problem or None,
        "unfinished": found.unfinished,
        "updates": None if counts is None else dict(counts.updates),
        "receipts": None if counts is None else dict(counts.receipts),
    }


def list_json(found: JournalLook | None, place: Place, lives: Lives) -> Json:
    """``tenure journal list --json``: {profile, path, exists, atMs, bot, fence, passed, opened, totals, servers,
    updates, receipts, waitsForPerson, more}.

    * `profile`: null for the file of a backup; `exists` false: the rest is null or empty;
    * `bot`: {botId, tokenSha256}; `fence`: the highest epoch that raised it; `passed`: the highest update id ever
      appended, -1 for none; `opened`: the first start is over;
    * `totals`: {updates, receipts, updateBytes, receiptBytes, tombstones, decisions}, the first two by phase;
    * `servers`: [{binding, instance, pid, process, life, provenDead, sinceMs, leftAtMs}];
    * `updates`: see `update_json`; `receipts`: see `receipt_json`, with `updates`, the ids;
    * `waitsForPerson`: [{receipt, state, retry, discard}], the last two as commands;
    * `more`: not all rows are there.
    """
    profile = None if place.backup else place.key
    if found is None:
        empty: Json = {"profile": profile, "path": place.path, "exists": False, "atMs": None, "bot": None}
        empty |= {"fence": None, "passed": None, "opened": None, "totals": None, "servers": [], "updates": []}
        return empty | {"receipts": [], "waitsForPerson": [], "more": False}
    meta = found.meta
    bot = None if meta.bot is None else {"botId": meta.bot.bot_id, "tokenSha256": meta.bot.token_sha256}
    return {
        "profile": profile,
        "path": place.path,
        "exists": True,
        "atMs": found.now_ms,
        "bot": bot,
        "fence": meta.fence,
        "passed": meta.passed,
        "opened": meta.opened,
        "totals": {
            "updates": dict(found.counts.updates),
            "receipts": dict(found.counts.receipts),
            "updateBytes": meta.update_bytes,
            "receiptBytes": meta.delivery_bytes,
            "tombstones": meta.tombstones,
            "decisions": meta.decisions,
        },
        "servers": [server_json(row, lives) for row in found.servers],
        "updates": [update_json(row) for row in found.updates],
        "receipts": [
            receipt_json(row, found.updates_of.get(row.receipt_id, ()), found.moves.get(row.receipt_id), lives)
            for row in found.receipts
        ],
        "waitsForPerson": [
            {
                "receipt": row.receipt_id,
                "state": row.phase,
                "retry": place.command("journal retry", short(row.receipt_id)),
                "discard": place.command("journal discard", short(row.receipt_id)),
            }
            for row in found.receipts
            if row.phase in STUCK
        ],
        "more": found.more,
    }


def update_json(row: UpdateRow) -> Json:
    """An update: {update, state, kind, binding, delivery, attempts, failure, admittedAtMs, nextAtMs, settledAtMs}."""
    return {
        "update": row.data.update,
        "state": row.phase,
        "kind": row.data.kind or None,
        "binding": row.data.binding,
        "delivery": row.delivery_id,
        "attempts": row.data.attempts,
        "failure": row.data.failure,
        "admittedAtMs": row.admitted_at,
        "nextAtMs": row.next_at,
        "settledAtMs": row.settled_at,
    }


def receipt_json(row: ReceiptRow, updates: Iterable[int], move: Move | None, lives: Lives) -> Json:
    """A receipt: {receipt, state, kind, binding, updates, owner, ownedSinceMs, offer, fallen, attempts, attemptLimit,
    admittedAtMs, notBeforeMs, settledAtMs, move}.

    * `owner`: {instance, pid, process, life, provenDead, session, acquisition, handoff};
    * `offer`, `fallen`: {handoff, instance, pid, process}; `move`: {instance, askedAtMs, outcome}.
    """
    data = row.data
    holder = None
    if data.owner is not None:
        holder = {
            "instance": data.owner.instance,
            **_process(data.owner.process, lives),
            "session": data.owner.session,
            "acquisition": data.owner.acquisition,
            "handoff": data.owner.handoff,
        }
    return {
        "receipt": row.receipt_id,
        "state": row.phase,
        "kind": row.kind,
        "binding": row.binding,
        "updates": list(updates),
        "owner": holder,
        "ownedSinceMs": row.owned_since,
        "offer": _offer(data.offer),
        "fallen": _offer(data.fallen),
        "attempts": data.attempts,
        "attemptLimit": data.limit,
        "admittedAtMs": row.admitted_at,
        "notBeforeMs": row.not_before or None,
        "settledAtMs": row.settled_at,
        "move": move_json(move),
    }


def delivery_json(row: DeliveryRow) -> Json:
    """A delivery: {delivery, state, kind, binding, update, receipt, position, digest, admittedAtMs, settledAtMs}."""
    return {
        "delivery": row.delivery_id,
        "state": row.phase,
        "kind": row.kind,
        "binding": row.binding,
        "update": row.update_id,
        "receipt": row.receipt_id,
        "position": row.position,
        "digest": row.digest,
        "admittedAtMs": row.admitted_at,
        "settledAtMs": row.settled_at,
    }


def item_json(name: str, item: Item, lives: Lives) -> Json:
    """``tenure journal show --json``: {id, update, deliveries, receipts}: as above, each with its body as the text that
    stands in the journal: `raw` of an update and of a delivery, `payload` of a receipt; "" where it is settled."""
    moves = {move.receipt_id: move for move in item.moves}
    return {
        "id": name,
        "update": None if item.update is None else {**update_json(item.update), "raw": item.update.raw},
        "deliveries": [{**delivery_json(row), "raw": row.raw} for row in item.deliveries],
        "receipts": [
            {
                **receipt_json(row, updates_in(item, row.receipt_id), moves.get(row.receipt_id), lives),
                "payload": row.payload,
            }
            for row in item.receipts
        ],
    }


def updates_in(item: Item, receipt_id: str) -> tuple[int, ...]:
    """The updates that one of its receipts stands for."""
    return tuple(sorted(row.update_id for row in item.deliveries if row.receipt_id == receipt_id))


def move_json(move: Move | None) -> Json | None:
    """That a person wants a receipt elsewhere."""
    if move is None:
        return None
    return {"instance": move.instance, "askedAtMs": move.asked_at, "outcome": move.outcome}


def server_json(row: ServerRow, lives: Lives) -> Json:
    """Who serves a binding, or did last."""
    return {
        "binding": row.binding,
        "instance": row.party.instance,
        **_process(row.party.process, lives),
        "sinceMs": row.since,
        "leftAtMs": row.left_at,
    }


def _offer(offer: Offer | None) -> Json | None:
    if offer is None:
        return None
    named = process_named(offer.process)
    pid = None if named is None else named.pid
    return {"handoff": offer.handoff, "instance": offer.instance, "pid": pid, "process": offer.process}


def _process(name: str, lives: Lives) -> Json:
    named, seen = process_named(name), lives.get(name)
    return {
        "pid": None if named is None else named.pid,
        "process": name,
        "life": "unknown" if seen is None else seen.life,
        "provenDead": seen is not None and seen.proven_dead,
    }
