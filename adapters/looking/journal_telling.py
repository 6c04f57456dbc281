"""The story of an update, delivery or receipt, in words and in JSON (``tenure why``)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from tenure.adapters.errors import printable
from tenure.adapters.looking.journal_json import Json, item_json, server_json
from tenure.adapters.looking.journal_look import Lives
from tenure.adapters.looking.journal_names import short
from tenure.adapters.looking.journal_place import Place
from tenure.adapters.looking.journal_story import Story, Told
from tenure.adapters.looking.journal_waits import waits
from tenure.adapters.looking.line import Line, Mood

NOW: Final = "now"
_NO_SUCH: Final = "no row of the machine takes this event there"


def story_lines(found: Story, place: Place, lives: Lives) -> Iterator[Line]:
    """Each decision in its order: when, about what, what happened, by whom, and what has come of it. Below it the
    guards that it passed, or those that refused it: their laws, and what they say, once each where they let it pass.
    Then what is now."""
    day, said = "", set[str]()
    for told in found.told:
        at = told.decision.at_ms
        if (date := _local(at, "%Y-%m-%d")) != day:
            day = date
            yield Line("", date)
        if told.missing:
            yield _gap(told)
        yield from _decision(told, said)
    for subject in found.untold:
        yield Line("", f"what was decided about {_subject(subject)} is not kept", "warn")
    for subject in found.untaken:
        yield Line("", f"nothing was decided about {_subject(subject)} since it was admitted", "quiet")
    for number, text in enumerate(waits(found, place, lives)):
        yield Line("" if number else NOW, printable(text), "quiet")


def story_json(found: Story, place: Place, lives: Lives) -> Json:
    """``tenure why --json``: {id, path, atMs, decisions, missing, untold, waits, servers, update, deliveries,
    receipts}.

    * `decisions`: [{seq, nth, atMs, subject, action, by, pid, person, tenure, refused, detail, guards, missingBefore}]
      in their order over all subjects; `nth` counts those of one subject from 1, `missingBefore`: so many of them are
      not kept; `tenure`: the epoch or acquisition; `guards`: [{guard, law, says}], of a refusal those that refused;
    * `missing`: how many are not kept in all; `untold`: subjects of which none is;
    * `waits`: lines about now; `servers`: as in ``journal list``, those of the bindings that it is about;
    * `update`, `deliveries`, `receipts`: as in ``journal show``.
    """
    item = found.item
    bindings = {row.binding for row in item.receipts} | {row.binding for row in item.deliveries}
    if item.update is not None and item.update.data.binding is not None:
        bindings.add(item.update.data.binding)
    return {
        "id": found.name,
        "path": place.path,
        "atMs": found.now_ms,
        "decisions": [_decision_json(told) for told in found.told],
        "missing": found.missing,
        "untold": list(found.untold),
        "waits": list(waits(found, place, lives)),
        "servers": [server_json(row, lives) for row in found.servers.values() if row.binding in bindings],
        **{name: value for name, value in item_json(found.name, item, lives).items() if name != "id"},
    }


def _decision_json(told: Told) -> Json:
    decision = told.decision
    return {
        "seq": decision.seq,
        "nth": decision.nth,
        "atMs": decision.at_ms,
        "subject": decision.subject,
        "action": decision.action,
        "by": decision.party,
        "pid": told.pid,
        "person": told.person,
        "tenure": decision.tenure,
        "refused": told.refused,
        "detail": decision.detail,
        "guards": [{"guard": r.guard, "law": r.law or None, "says": r.says or None} for r in told.reasons],
        "missingBefore": told.missing,
    }


def _decision(told: Told, said: set[str]) -> Iterator[Line]:
    decision = told.decision
    mood: Mood = "warn" if told.refused else "quiet"
    text = f"{_subject(decision.subject)}  {decision.action}: {decision.detail}; by {_by(told)}"
    yield Line(_clock(decision.at_ms), printable(text), mood)
    for reason in told.reasons:
        text = f"  {reason.law or 'no law'}, {reason.guard}"
        if reason.says and (told.refused or reason.guard not in said):
            text += f": {reason.says}"
            said.add(reason.guard)
        yield Line("", printable(text), mood)
    if told.refused and not told.reasons:
        yield Line("", f"  {_NO_SUCH}", mood)


def _gap(told: Told) -> Line:
    count, subject = told.missing, _subject(told.decision.subject)
    many = "1 decision is" if count == 1 else f"{count} decisions are"
    return Line("...", f"{many} not kept here, about {subject}", "warn")


def _by(told: Told) -> str:
    decision = told.decision
    if decision.party is None:
        return "nobody"
    if told.person:
        return f"a person, {decision.party}"
    pid = "" if told.pid is None else f" (pid {told.pid})"
    if decision.tenure is None:
        return f"{decision.party}{pid}"
    kind = "epoch" if decision.subject.isdecimal() else "acquisition"
    return f"{decision.party}{pid}, {kind} {decision.tenure[:8] if kind == 'acquisition' else decision.tenure}"


def _subject(subject: str) -> str:
    if subject.isdecimal():
        return f"update {subject}"
    return f"{'delivery' if 'follower' in subject else 'receipt'} {short(subject)}"


def _clock(at_ms: int) -> str:
    return f"{_local(at_ms, '%H:%M:%S')}.{at_ms % 1_000:03}"


def _local(at_ms: int, form: str) -> str:
    try:
        return time.strftime(form, time.localtime(at_ms // 1_000))
    except (OverflowError, ValueError, OSError):
        return "at no time"
