"""What stands in a journal, in words: rows, and what each of them waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tenure.adapters.errors import printable
from tenure.adapters.journal.due import left_ms
from tenure.adapters.journal.moves import Move
from tenure.adapters.journal.rows import ReceiptRow, ServerRow, UpdateRow
from tenure.adapters.looking.journal_look import STUCK, JournalLook, Lives
from tenure.adapters.looking.journal_names import short
from tenure.adapters.looking.journal_place import Place
from tenure.adapters.looking.line import Line, Mood, duration
from tenure.adapters.looking.wording import process
from tenure.machines.forwarding import aside
from tenure.machines.forwarding_messages import NOT_CARRIABLE, UNSERVED
from tenure.machines.lease import DEFAULT_KEY
from tenure.machines.receipt_messages import Holder, Offer

_FAILURES: Final[Mapping[str, str]] = {
    "transport-failed": "it could not be sent",
    "acknowledgement-missing": "no answer came",
    "acknowledgement-mismatched": "the answer was to something else",
    "acknowledgement-rejected": "its instance refused it",
    "durable-receipt-missing": "the answer had no receipt",
    "durable-receipt-mismatched": "the answer had the receipt of something else",
    "recipient-generation-missing": "nobody is registered for it",
    "recipient-binding-missing": "its instance has no stable binding",
    "source-update-identity-missing": "it carries no update id",
    "forwarder-unavailable": "nothing could forward it",
    "not-carriable": "no line of the bus can hold it",
}
_UPDATES_SHOWN: Final = 5


# -- a list -----------------------------------------------------------------------------------------------------------


def lines(found: JournalLook, place: Place, lives: Lives) -> tuple[Line, ...]:
    """A whole list: the journal, who serves what, updates, receipts, and what a person is to decide."""
    said = [_journal(found, place), *_totals(found)]
    said += [server(row, lives, found.now_ms) for row in found.servers]
    said += [Line(f"update {row.data.update}", update(row, found.now_ms), _update_mood(row)) for row in found.updates]
    said += [
        Line(
            short(row.receipt_id),
            receipt(row, found.updates_of.get(row.receipt_id, ()), lives, found.now_ms)
            + moved(found.moves.get(row.receipt_id)),
            _receipt_mood(row, lives),
        )
        for row in found.receipts
    ]
    if found.more:
        said.append(Line("note", "there is more; see --limit", "warn"))
    if not place.backup:
        said += [Line("decide", text, "warn") for row in found.updates for text in in_vain(row, place)]
        said += [Line("decide", text, "warn") for row in found.stuck for text in to_decide(row, place)]
    return tuple(Line(printable(line.label), printable(line.text), line.mood) for line in said)


def others(keys: Iterable[str], place: Place) -> tuple[Line, ...]:
    """That the directory has journals of other profiles."""
    more = [key for key in keys if key != place.key]
    if not more:
        return ()
    named = ", ".join("the default" if key == DEFAULT_KEY else f"--profile {key}" for key in more)
    return (Line("others", f"journals of other profiles: {named}"),)


def _journal(found: JournalLook, place: Place) -> Line:
    meta = found.meta
    whose = "nobody's yet" if meta.bot is None else f"of {meta.bot}"
    passed = "no update" if meta.passed < 0 else f"update {meta.passed}"
    first = "" if meta.opened else ", the first start is not over"
    name = "backup" if place.backup else f"profile {place.key}"
    return Line("journal", f"{name}, {whose}, epoch fence {meta.fence}, up to {passed}{first}")


def _totals(found: JournalLook) -> list[Line]:
    meta = found.meta
    said = [
        Line("updates", _total(found.counts.updates, meta.update_bytes)),
        Line("receipts", _total(found.counts.receipts, meta.delivery_bytes)),
        Line("kept", f"{meta.tombstones} settled rows, {meta.decisions} decisions"),
    ]
    return said


def _total(phases: Mapping[str, int], size: int) -> str:
    parts = [f"{n} {phase}" for phase, n in phases.items() if n]
    return f"{', '.join(parts)} ({amount(size)})" if parts else "none unsettled"


def server(row: ServerRow, lives: Lives, now_ms: int) -> Line:
    """Who serves a binding, or did last."""
    who = party(row.party.instance, row.party.process, lives)
    if row.left_at is not None:
        return Line("binding", f"{row.binding}: nobody for {duration(now_ms - row.left_at)}; last {who}", "warn")
    dead = gone(row.party.process, lives)
    return Line("binding", f"{row.binding}: {who}, for {duration(now_ms - row.since)}", "warn" if dead else "good")


# -- rows -------------------------------------------------------------------------------------------------------------


def update(row: UpdateRow, now_ms: int) -> str:
    """An update: where it is on its way."""
    data = row.data
    if row.settled_at is not None:
        whom = "" if data.binding is None else f" {'to' if row.phase == 'delivered' else 'for'} {data.binding}"
        return f"{row.phase}{whom} {duration(now_ms - row.settled_at)} ago"
    whom = "" if data.binding is None else f", bound to {data.binding}"
    parts = [f"{row.phase}{whom}, polled {duration(now_ms - row.admitted_at)} ago"]
    if data.attempts:
        parts.append(f"{data.attempts} attempt{'' if data.attempts == 1 else 's'}")
    if data.failure is not None:
        parts.append(f"{_FAILURES.get(data.failure, 'it failed')} ({data.failure})")
    if row.next_at is not None and data.failure != UNSERVED:  # it is sent as soon as somebody is
        parts.append(_next(row.next_at, now_ms))
    return ", ".join(parts)


def receipt(row: ReceiptRow, updates: Iterable[int], lives: Lives, now_ms: int) -> str:
    """A receipt: who has it, since when, and how often it was tried."""
    what = f"{row.kind} of {_updates(row, updates)} for {row.binding}"
    data, tried = row.data, f"attempt {row.data.attempts} of {row.data.limit}"
    since = "" if row.owned_since is None else f" for {duration(now_ms - row.owned_since)}"
    match row.phase:
        case "pending":
            later = f", {_next(row.not_before, now_ms)}" if left_ms(row.not_before, now_ms) else ""
            fell = "" if data.fallen is None else f", an offer to {data.fallen.instance} fell with its owner"
            said = (
                f"pending{f', {data.attempts} of {data.limit} attempts failed' if data.attempts else ''}{later}{fell}"
            )
        case "queued":
            said = f"queued at {owner(data.owner, lives)}{since}{offered(data.offer)}"
        case "started":
            said = f"started by {owner(data.owner, lives)}, {tried}{since}"
        case "interrupted":
            said = f"interrupted in {tried}"
        case "failed":
            said = f"failed {data.attempts} times"
        case _:
            at = "" if row.settled_at is None else f" {duration(now_ms - row.settled_at)} ago"
            said = f"{row.phase}{at}"
    return f"{what}: {said}"


def moved(move: Move | None) -> str:
    """That a person wants a receipt elsewhere."""
    if move is None:
        return ""
    return f"; wanted at {move.instance}{f': {move.outcome}' if move.outcome is not None else ''}"


def offered(offer: Offer | None) -> str:
    """That it is offered to somebody."""
    return "" if offer is None else f", offered to {offer.instance}"


def owner(holder: Holder | None, lives: Lives) -> str:
    """Who owns a receipt."""
    return "nobody" if holder is None else party(holder.instance, holder.process, lives)


def party(instance: str, name: str, lives: Lives) -> str:
    """An instance, and what has become of its process."""
    seen = lives.get(name)
    return f"{instance}, {process(seen)}" if seen is not None else f"{instance}, {name}"


def gone(name: str, lives: Lives) -> bool:
    """Whether a process is proven dead."""
    seen = lives.get(name)
    return seen is not None and seen.proven_dead


def in_vain(row: UpdateRow, place: Place) -> tuple[str, ...]:
    """What a person can do about an update that is sent again and again, and that those behind it do not wait for."""
    if row.phase != "waiting" or not aside(row.data):
        return ()
    number, data = str(row.data.update), row.data
    why = _FAILURES[NOT_CARRIABLE] if data.failure == NOT_CARRIABLE else f"sent {data.attempts} times in vain"
    return (
        f"update {number} {why}; those behind it go on",
        f"  to try it now:   {place.command('journal retry', number)}",
        f"  to give it up:   {place.command('journal discard', number)}",
    )


def to_decide(row: ReceiptRow, place: Place) -> tuple[str, ...]:
    """What a person can do about a receipt that waits for one."""
    name = short(row.receipt_id)
    if row.phase == "interrupted":
        why = "nobody knows what came of it; done again it may be done twice"
    elif row.phase == "failed":
        why = "it failed each time"
    else:
        return ()
    return (
        f"{name} {row.phase}: {why}",
        f"  to do it again:  {place.command('journal retry', name)}",
        f"  to give it up:   {place.command('journal discard', name)}",
    )


def amount(size: int) -> str:
    """So many bytes."""
    for unit, factor in (("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} byte{'' if size == 1 else 's'}"


def _updates(row: ReceiptRow, updates: Iterable[int]) -> str:
    ids = list(updates) or [row.first_update]
    if len(ids) == 1:
        return f"update {ids[0]}"
    return f"updates {', '.join(map(str, ids[:_UPDATES_SHOWN]))}{', ...' if len(ids) > _UPDATES_SHOWN else ''}"


def _next(at: int, now_ms: int) -> str:
    left = left_ms(at, now_ms)
    return f"next try in {duration(left)}" if left else "next try now"


def _update_mood(row: UpdateRow) -> Mood:
    return "warn" if row.phase == "waiting" else "quiet"


def _receipt_mood(row: ReceiptRow, lives: Lives) -> Mood:
    if row.phase in STUCK:
        return "bad"
    holder = row.data.owner
    if holder is not None and gone(holder.process, lives):
        return "warn"
    return "good" if row.phase == "started" else "quiet"
