"""What something in the journal waits for now, and what would move it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tenure.adapters.journal.due import left_ms
from tenure.adapters.journal.rows import ReceiptRow, ServerRow, UpdateRow
from tenure.adapters.looking.journal_look import Lives
from tenure.adapters.looking.journal_names import short
from tenure.adapters.looking.journal_place import Place
from tenure.adapters.looking.journal_story import Story
from tenure.adapters.looking.journal_wording import gone, owner, party, to_decide, update
from tenure.adapters.looking.line import duration
from tenure.machines.forwarding import aside
from tenure.machines.forwarding_messages import NOT_CARRIABLE, UNSERVED

_LIVE: Final = ("journaled", "forwarding", "waiting")


def waits(found: Story, place: Place, lives: Lives) -> tuple[str, ...]:
    """Lines about now: first what is, then what would move it. Commands only where there is a directory."""
    said: list[str] = []
    row = found.item.update
    if row is not None and (row.phase in _LIVE or not found.item.receipts):
        said += _update(row, found, place, lives)
    for receipt in found.item.receipts:
        said += _receipt(receipt, found, place, lives)
    for move in found.item.moves:
        ago = duration(found.now_ms - move.asked_at)
        came = "nobody has answered yet" if move.outcome is None else move.outcome
        said.append(f"{short(move.receipt_id)}: a person wanted it at {move.instance} {ago} ago: {came}")
    if not said:
        said.append("nothing of it is kept but these decisions: it was settled long ago")
    return tuple(said)


def _update(row: UpdateRow, found: Story, place: Place, lives: Lives) -> list[str]:
    number = row.data.update
    said = [f"update {number}: {update(row, found.now_ms)}"]
    match row.phase:
        case "journaled":
            said.append("  the leader brings it to whose it is; without a leader, the next one does")
        case "forwarding":
            said.append("  an answer is awaited; when its leader dies the next one sends it again")
        case "waiting":
            if row.data.failure == UNSERVED:
                said.append("  it is sent as soon as an instance is registered for whom it is")
            if row.data.failure == NOT_CARRIABLE:
                said.append("  it is delivered only where the leader itself serves that binding")
            said += _command(place, "to try it now:  ", "journal retry", str(number))
            if aside(row.data):
                said.append("  those behind it go on without it")
                said += _command(place, "to give it up:  ", "journal discard", str(number))
        case "skipped":
            said.append("  it was there before the first start, and is never executed")
        case "discarded":
            said.append("  a person did not want it executed, or it could not be kept: its last decision says which")
        case "delivered":
            said.append("  its instance has it; what came of it there is forgotten by now")
    if row.phase in _LIVE and row.data.binding is not None:
        said.append(f"  {_serves(row.data.binding, found.servers, lives)}")
        if row.phase != "forwarding":
            said += _command(place, "if that binding is gone for ever:  ", "journal release", str(number))
    return said


def _receipt(row: ReceiptRow, found: Story, place: Place, lives: Lives) -> list[str]:
    name, data, now = short(row.receipt_id), row.data, found.now_ms
    holder = data.owner
    dead = holder is not None and gone(holder.process, lives)
    match row.phase:
        case "pending":
            said = [f"{name} pending, admitted {duration(now - row.admitted_at)} ago: nobody has it"]
            if left := left_ms(row.not_before, now):
                said[0] += f", and it is not tried for {duration(left)} more"
            said.append(f"  {_serves(row.binding, found.servers, lives)}")
            if data.fallen is not None:
                said.append(f"  {data.fallen.instance} may take it as well: it was offered when its owner died")
            return said
        case "queued":
            said = [f"{name} queued at {owner(holder, lives)}"]
            if dead:
                said.append("  its owner is dead: whoever looks next makes it pending again")
            elif data.offer is not None:
                said.append(f"  frozen until {data.offer.instance} accepts the offer, or its owner withdraws it")
            else:
                said.append("  its owner executes it when its turn has come")
            return said
        case "started":
            said = [f"{name} started by {owner(holder, lives)}, attempt {data.attempts} of {data.limit}"]
            if dead:
                said.append("  its owner is dead: whoever looks next makes it interrupted")
            else:
                said.append("  it is being executed")
            return said
        case "interrupted" | "failed":
            return list(to_decide(row, place))
    at = "" if row.settled_at is None else f" {duration(now - row.settled_at)} ago"
    return [f"{name} {row.phase}{at}; nothing is left to do"]


def _serves(binding: str, servers: Mapping[str, ServerRow], lives: Lives) -> str:
    """Who would take what is for a binding."""
    row = servers.get(binding)
    if row is None:
        return f"an instance that serves {binding} takes it; none ever has"
    who = party(row.party.instance, row.party.process, lives)
    if gone(row.party.process, lives):
        return f"{binding} was served by {who}; whoever serves it next takes it, or soon the leader what it had left"
    if row.left_at is not None:
        return f"{binding} was served by {who}, which has left it; whoever serves it next takes it, or soon the leader"
    return f"{binding} is served by {who}, which takes it"


def _command(place: Place, what: str, verb: str, name: str) -> list[str]:
    return [] if place.backup else [f"  {what}{place.command(verb, name)}"]
