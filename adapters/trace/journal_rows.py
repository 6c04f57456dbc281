"""Events made from a journal itself, from its table `decisions`: those that a recording has lost, or all of them.

    trace = read([directory_of_the_recording, path_of_the_journal])
    added = write_lost(trace.events, path_of_the_journal, directory_of_the_recording)     # to be read later

A decision is written in the transaction that it tells of, so that it is there where the transaction is; a line of the
recorder is not, if its process was killed in between. A decision says less: who asked and under which tenure, what went
over into what, and in words what it was about. What it does not say is left out of the event, and is believed.

Of a row whose tombstone was forgotten, and of decisions that were trimmed, nothing is left: a recording that is to be
completed is shorter than that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tenure.adapters.journal.database import DatabaseFault
from tenure.adapters.journal.decisions import DECISION_COLUMNS, Decision, decision_row
from tenure.adapters.journal.errors import told
from tenure.adapters.journal.events import ADMISSION, HANDOFF
from tenure.adapters.journal.rows import integer, text, text_or_none
from tenure.adapters.journal.sqlite import SqliteDatabases
from tenure.adapters.journal.updates import RENUMBER
from tenure.adapters.trace import lines
from tenure.adapters.trace.journal_events import DECISIONS, LOST
from tenure.adapters.trace.lines import Event, Trace

MODULES: Final = frozenset({ADMISSION, HANDOFF})
_UPDATES: Final[Mapping[str, str]] = {
    "admit": "Journal", "skip": "Journal", "forward": "Forward", "keep": "Keep", "unserved": "Unserved",
    "acknowledged": "HearAck", "failed": "Unanswered", "retry": "Retry", "resume": "Resume", "release": "Release",
    "discard": "Discard",
}  # fmt: skip
_RECEIPTS: Final[Mapping[str, str]] = {
    "take": "Take", "offer_to": "Freeze", "accept": "Accept", "cancel": "Cancel", "start": "Start",
    "complete": "Complete", "fail": "Fail", "doubt": "Doubt", "release": "EndSession", "recover": "Recover",
    "reclaim": "Reclaim", "retry": "Retry", "discard": "Discard",
}  # fmt: skip
_MAGIC: Final = b"SQLite format 3\0"
_STILL: Final = "still "
_REFUSED: Final = "refused in "


class _Rows:
    """What the tables say of what decisions are about."""

    def __init__(self, path: str) -> None:
        try:
            database = SqliteDatabases().open(path)
            try:
                database.snapshot()
                found = database.execute(f"SELECT {DECISION_COLUMNS} FROM decisions ORDER BY seq")
                self.decisions = tuple(map(decision_row, found))
                read = database.execute("SELECT delivery_id, update_id, kind, binding, digest FROM deliveries")
                self.deliveries = {text(r[0]): (integer(r[1]), text(r[2]), text(r[3]), text(r[4])) for r in read}
                read = database.execute("SELECT receipt_id, first_update, attempt_limit FROM receipts")
                self.receipts = {text(r[0]): (integer(r[1]), integer(r[2])) for r in read}
                read = database.execute("SELECT update_id, kind, delivery_id FROM updates")
                self.updates = {str(integer(r[0])): (text(r[1]), text_or_none(r[2])) for r in read}
                database.rollback()
            finally:
                database.close()
        except DatabaseFault as fault:
            raise told(path, fault) from fault


def decided(path: str, known: Sequence[Event] = ()) -> list[Event]:
    """All that the journal at `path` has decided and `known`, a recording, does not say; in order. Raises
    `JournalError` where it cannot be read."""
    rows = _Rows(path)
    numbers = {event.number for event in known if event.module in MODULES and event.number}
    nodes = {_party(event): event.node.partition("/")[0] for event in known if event.module in MODULES}
    found: list[Event] = []
    before: Decision | None = None
    for decision in rows.decisions:
        if decision.detail.startswith(_REFUSED):
            continue
        if decision.seq not in numbers:
            made = _event(f"{path}{DECISIONS}", decision, before, rows, nodes)
            if made is not None:
                made.seq = len(found) + 1
                found.append(made)
        before = decision
    return found


def read(paths: Iterable[str | os.PathLike[str]]) -> Trace:
    """As `lines.read`, of a recording that journals among the files complete. Raises `BadTrace`, and `JournalError` for
    a journal that cannot be read."""
    named = [os.fspath(path) for path in paths]
    journals = [path for path in named if _is_journal(path)]
    others = [path for path in named if path not in journals]
    trace = lines.read(others) if others or not journals else Trace([])
    more = [event for path in journals for event in decided(os.path.abspath(path), trace.events)]
    return Trace([*trace.events, *more], trace.torn, [*trace.files, *journals])


def _is_journal(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def write_lost(known: Sequence[Event], path: str, directory: Path) -> int:
    """Add what `known` has lost to the recording in `directory`; how many events that are. Raises `JournalError`, and
    OSError where it cannot be written."""
    found = decided(path, known)
    if found:
        (directory / LOST).write_text("".join(f"{event.text()}\n" for event in found), encoding="utf-8")
    return len(found)


def vanished(known: Sequence[Event], path: str) -> list[Event]:
    """The recorded transactions of which the journal knows nothing: none, as long as no decision is trimmed."""
    there = {decision.seq for decision in _Rows(path).decisions}
    return [event for event in known if event.module in MODULES and event.number and event.number not in there]


def _party(event: Event) -> str:
    return event.node.partition("@")[0].partition("/")[2]


def _event(
    file: str, decision: Decision, before: Decision | None, rows: _Rows, nodes: Mapping[str, str]
) -> Event | None:
    what, _, detail = decision.detail.partition(": ")
    was, arrow, phase = what.partition(" -> ")
    if not arrow:
        was = phase = what.removeprefix(_STILL)
    observed: dict[str, object] = {"phase": phase, "was": was}
    subject, party = decision.subject, decision.party or ""
    if subject in rows.receipts:
        update, limit = rows.receipts[subject]
        action = _RECEIPTS[decision.action]
        if action == "Take" and was == phase:
            return None  # it was told again that it has it
        args = {"update": update, "limit": limit, **_of_receipt(action, decision, party, detail)}
        module, row = HANDOFF, subject
    elif subject in rows.deliveries:
        if decision.action != "admit" or was == phase:
            return None
        number, kind, binding, digest = rows.deliveries[subject]
        if before is not None and (before.action, before.subject) == ("keep", str(number)):
            return None  # it is part of that, in the same transaction
        mine = detail.removeprefix("for ")
        args = {"delivery": subject, "kind": kind, "binding": binding, "body": digest, "mine": mine}
        module, action, row = ADMISSION, "HearForward", str(number)
    elif subject in rows.updates:
        if decision.action == RENUMBER:
            return None  # it is the file's, and happens before the update is there
        action = _UPDATES[decision.action]
        args = _of_update(action, decision, detail, rows)
        delivery = rows.updates[subject][1] or ""
        if action == "Keep" and delivery in rows.deliveries:
            _, kind, binding, digest = rows.deliveries[delivery]
            args |= {"delivery": delivery, "kind": kind, "body": digest, "mine": binding}
        module, row = ADMISSION, subject
    else:
        return None
    node = f"{nodes.get(party, 'journal')}/{party}@{row}"
    number = decision.seq
    return Event(file, number, module, action, node, 0, number, number, args, observed, decision.tenure)


def _of_receipt(action: str, decision: Decision, party: str, detail: str) -> dict[str, object]:
    holder = [party, None, decision.tenure, None]
    match action:
        case "Take":
            right = detail.removeprefix("right: ")
            return {"by": [party, None], "acquisition": decision.tenure, "right": right}
        case "Freeze":
            handoff, _, to = detail.partition(" to ")
            return {"by": holder, "handoff": handoff, "recipient": [to, None]}
        case "Accept":
            handoff, _, donor = detail.partition(" of ")
            whom = {"recipient": [party, None], "donor": [donor, None, None, None]}
            return {**whom, "handoff": handoff, "acquisition": decision.tenure}
        case "Cancel":
            return {"by": holder, "handoff": detail}
        case "Recover":
            return {"expected": decision.tenure, "evidence": detail.rpartition(" ")[2]}
        case "Reclaim":
            return {"instance": party}
        case "Retry" | "Discard":
            return {"person": party}
    return {"by": holder}


def _of_update(action: str, decision: Decision, detail: str, rows: _Rows) -> dict[str, object]:
    args: dict[str, object] = {}
    if decision.tenure is not None:
        args["epoch"] = int(decision.tenure)
    kind, delivery = rows.updates[decision.subject]
    if action == "Journal":
        return args | ({"skips": True} if decision.action == "skip" else {})
    if action == "Forward":
        return args | {"binding": detail.removeprefix("to "), "kind": kind}
    if action == "Keep":
        return args | {"binding": detail.removeprefix("for ")}
    if action == "HearAck":
        said = {"delivery": delivery, "update": int(decision.subject)} if "-> delivered" in decision.detail else {}
        return args | {"ok": detail == "ok", **said}
    if action == "Unanswered":
        return args | {"why": detail}
    return args
