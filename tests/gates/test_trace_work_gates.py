"""``tenure trace check`` turns red on a recording of the journal that was doctored, and names the event and the guard.

The recording is one of the real drivers (`tests/adapters/trace/work_recorded.py`), explained as it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tenure.adapters.trace.check import Verdict, check
from tenure.adapters.trace.journal_rows import decided, vanished, write_lost
from tenure.adapters.trace.lines import Event, read

from ..adapters.trace.recorded import write
from ..adapters.trace.work_recorded import journal_of_work, work
from .test_trace_fleet_gates import again

ADMISSION, HANDOFF = "DurableAdmission", "QueueHandoff"


def checked(events: list[Event], room: Path, *passed_over: str) -> Verdict:
    """The verdict on the doctored events, which are consistent as files."""
    return check(read(write(events, room)), passed_over=passed_over)


def find(events: list[Event], action: str, update: int, which: int = 0) -> int:
    """The index of the event number `which` of its kind that is about that update; negative ones from the end."""
    found = [
        i
        for i, e in enumerate(events)
        if e.action == action and str(update) == str(e.args.get("update") if e.module == HANDOFF else e.resource)
    ]
    return found[which]


def at_the_end(events: list[Event], event: Event) -> Event:
    """Such an event in a transaction after all others, which finds the file as they have left it."""
    last = next(e for e in reversed(events) if "fence" in e.observed)
    file = {"fence": last.observed["fence"], "passed": last.observed["passed"]}
    return again(event, number=max(e.number for e in events) + 1, observed={**event.observed, **file})


def executed_twice(events: list[Event]) -> None:
    place = find(events, "Effect", 2)
    events.insert(place + 1, again(events[place]))


def executed_before_its_start(events: list[Event]) -> None:
    place = find(events, "Effect", 2)
    effect = events.pop(place)
    events.insert(find(events, "Start", 2), effect)


def executed_under_what_was_given_away(events: list[Event]) -> None:
    place = find(events, "Effect", 2)
    events[place].tenure = events[find(events, "Take", 2)].tenure


def never_executed(events: list[Event]) -> None:
    del events[find(events, "Effect", 2)]


def accepted_without_an_offer(events: list[Event]) -> None:
    del events[find(events, "Freeze", 2)]


def dropped_without_an_acceptance(events: list[Event]) -> None:
    gone = find(events, "Accept", 2)
    del events[gone]


def accepted_by_whom_it_was_not_offered_to(events: list[Event]) -> None:
    offer = events[find(events, "Freeze", 2)]
    offer.args = {**offer.args, "recipient": ["somebody", "another process"]}


def completed_without_a_start(events: list[Event]) -> None:
    del events[find(events, "Start", 3)]


def completed_without_a_receipt(events: list[Event]) -> None:
    for action in ("Take", "Start"):
        del events[find(events, action, 3)]


def settled_by_the_owner_before(events: list[Event]) -> None:
    first, last = events[find(events, "Take", 1)], events[find(events, "Complete", 1)]
    by = list(last.args["by"])  # type: ignore[call-overload]
    last.args = {**last.args, "by": [*by[:2], first.tenure, None]}


def taken_from_a_living_owner(events: list[Event]) -> None:
    recovered = events[find(events, "Recover", 4)]
    recovered.args = {**recovered.args, "evidence": "alive"}


def done_by_the_dead(events: list[Event]) -> None:
    start, taken = events[find(events, "Start", 4, -1)], events[find(events, "Take", 4, -1)]
    dead = events[find(events, "Take", 4)]
    taken.node, taken.args = dead.node, {**taken.args, "by": dead.args["by"]}
    by = [*dead.args["by"], taken.tenure, None]  # type: ignore[misc]
    start.node, start.args = dead.node, {**start.args, "by": by}


def repeated_by_nobody(events: list[Event]) -> None:
    asked = events[find(events, "Retry", 4)]
    asked.args = {**asked.args, "person": ""}


def journaled_twice(events: list[Event]) -> None:
    place = find(events, "Journal", 2)
    events.append(at_the_end(events, events[place]))


def delivered_without_an_admission(events: list[Event]) -> None:
    del events[find(events, "HearForward", 2)]
    later = (HANDOFF, "Effect")
    events[:] = [e for e in events if str(e.args.get("update")) != "2" or e.module not in later]
    events[:] = [e for e in events if e.resource != "2" or e.action not in later]


def admitted_by_another_binding_too(events: list[Event]) -> None:
    place = find(events, "HearForward", 2)
    here = events[place]
    args = {**here.args, "binding": "elsewhere", "mine": "elsewhere"}
    node = f"103-1030/103:1@{here.resource}"
    events.append(again(at_the_end(events, here), args=args, node=node))


def the_fence_went_back(events: list[Event]) -> None:
    kept = events[find(events, "Keep", 5)]
    kept.args = {**kept.args, "epoch": 1}
    kept.observed = {**kept.observed, "fence": 1}


def a_stale_leader_journals(events: list[Event]) -> None:
    kept = events[find(events, "Journal", 5)]
    kept.args = {**kept.args, "epoch": 1}


def the_offset_went_back(events: list[Event]) -> None:
    heard = events[find(events, "HearAck", 2)]
    heard.observed = {**heard.observed, "passed": 1}


def a_row_vanished(events: list[Event]) -> None:
    heard = events[find(events, "Keep", 3)]
    heard.observed = {**heard.observed, "was": "absent"}


def a_receipt_vanished(events: list[Event]) -> None:
    started = events[find(events, "Start", 3)]
    started.observed = {**started.observed, "was": "pending", "owner": None}


DOCTORS: dict[Callable[[list[Event]], None], tuple[str, str, tuple[str, ...]]] = {
    executed_twice: (ADMISSION, "Effect", ("executed",)),
    executed_before_its_start: (ADMISSION, "Effect", ("receipt queued",)),
    executed_under_what_was_given_away: (ADMISSION, "Effect", ()),
    never_executed: (ADMISSION, "Complete", ("0 effects",)),
    accepted_without_an_offer: (HANDOFF, "Accept", ("recipient_is_me",)),
    dropped_without_an_acceptance: (HANDOFF, "Acked", ("offered to 103",)),
    accepted_by_whom_it_was_not_offered_to: (HANDOFF, "Accept", ("recipient_is_me",)),
    completed_without_a_start: (HANDOFF, "Complete", ("in phase queued complete has no row",)),
    completed_without_a_receipt: (HANDOFF, "Complete", ("in phase pending complete has no row",)),
    settled_by_the_owner_before: (HANDOFF, "Complete", ("acquisition_is_current",)),
    taken_from_a_living_owner: (HANDOFF, "Recover", ("owner_proven_dead",)),
    done_by_the_dead: (HANDOFF, "Take", ("dead: 102",)),
    repeated_by_nobody: (HANDOFF, "Retry", ("a_person_asks",)),
    journaled_twice: (ADMISSION, "Journal", ("admit has no row",)),
    delivered_without_an_admission: (ADMISSION, "HearAck", ()),
    admitted_by_another_binding_too: (ADMISSION, "HearForward", ()),
    the_fence_went_back: (ADMISSION, "Lead", ("Lead by =103", "fence=1")),
    a_stale_leader_journals: (ADMISSION, "Journal", ("epoch_current",)),
    the_offset_went_back: (ADMISSION, "HearAck", ("passed 2",)),
    a_row_vanished: (ADMISSION, "Keep", ("what it observed does not agree",)),
    a_receipt_vanished: (HANDOFF, "Start", ("what it observed does not agree",)),
}


@pytest.mark.parametrize("doctor", DOCTORS, ids=lambda doctor: doctor.__name__)
def test_a_doctored_recording_is_found_out(doctor: Callable[[list[Event]], None], tmp_path: Path) -> None:
    """The event that is wrong is named, with what stands there and what refuses it."""
    module, action, said = DOCTORS[doctor]
    events = work()
    assert checked(events, _room(tmp_path, "as it is"))
    doctor(events)
    # That an update's own module objects as well to what its receipt does is another gate's affair.
    others = {ADMISSION, HANDOFF} - {module}
    verdict = checked(events, _room(tmp_path, "doctored"), *others)
    assert not verdict, str(verdict)
    assert verdict.limit == ""
    assert verdict.first is not None
    assert (verdict.first.module, verdict.first.action) == (module, action), str(verdict)
    for text in said:
        assert text in str(verdict)


def test_a_line_that_is_missing_is_said(tmp_path: Path) -> None:
    """In a file, every line has its number."""
    events = work()
    paths = write(events, tmp_path)
    lines = paths[0].read_text(encoding="utf-8").splitlines(keepends=True)
    paths[0].write_text("".join(lines[:3] + lines[4:]), encoding="utf-8")
    verdict = check(read(paths))
    assert not verdict
    assert "missing" in verdict.message


def test_a_decision_that_vanished_from_the_journal_is_named(tmp_path: Path) -> None:
    """What was recorded as durable is there."""
    journal = tmp_path / "journal.db"
    journal.write_bytes(journal_of_work())
    events = work()
    assert vanished(events, str(journal)) == []
    gone = events[find(events, "Complete", 2)].number
    with closing(sqlite3.connect(journal)) as database, database:
        database.execute("DELETE FROM decisions WHERE seq = ?", (gone,))
    assert [event.number for event in vanished(events, str(journal))] == [gone]


def test_what_the_journal_alone_tells_is_checked_as_well(tmp_path: Path) -> None:
    """A journal from which a decision was taken is explained by nothing."""
    journal = tmp_path / "journal.db"
    journal.write_bytes(journal_of_work())
    room = _room(tmp_path, "whole")
    assert write_lost([], str(journal), room) == len([e for e in work() if e.number])
    assert check(read([room]))
    accepted = next(event for event in decided(str(journal)) if event.action == "Freeze")
    with closing(sqlite3.connect(journal)) as database, database:
        database.execute("DELETE FROM decisions WHERE seq = ?", (accepted.number,))
    room = _room(tmp_path, "less")
    write_lost([], str(journal), room)
    verdict = check(read([room]))
    assert verdict.first is not None
    assert verdict.first.action == "Accept", str(verdict)


def _room(tmp_path: Path, name: str) -> Path:
    room = tmp_path / name
    room.mkdir()
    return room
