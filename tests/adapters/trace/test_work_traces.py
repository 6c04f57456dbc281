"""Recordings of the journal: they are explained, also where lines of them were lost that the journal has."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

import pytest

from tenure.adapters.cli import main
from tenure.adapters.errors import TenureError
from tenure.adapters.trace.api import explained
from tenure.adapters.trace.check import MODULES as KNOWN
from tenure.adapters.trace.journal_rows import decided, read, write_lost
from tenure.adapters.trace.lines import BadTrace, Event
from tenure.models import durable_admission, queue_handoff

from .recorded import write
from .work_recorded import MODULES, journal_of_work, work

TWINS = {
    "DurableAdmission": durable_admission.DurableAdmission(durable_admission.CONFIGS["all"]),
    "QueueHandoff": queue_handoff.QueueHandoff(queue_handoff.CONFIGS["all"]),
}


@pytest.fixture
def journal(tmp_path: Path) -> str:
    path = tmp_path / "journal.db"
    path.write_bytes(journal_of_work())
    return str(path)


def test_the_recording_is_explained(tmp_path: Path) -> None:
    """Without a step that nobody recorded; each update and each receipt by itself."""
    verdict = explained(*write(work(), tmp_path))
    assert verdict, str(verdict)
    assert verdict.hidden == 0
    assert {part.title for part in verdict.parts} >= {f"DurableAdmission of {n}" for n in range(1, 6)}
    seen = {(event.module, event.action) for event in work()}
    assert {
        ("QueueHandoff", a)
        for a in ("Take", "Freeze", "Accept", "Acked", "Start", "Complete", "Fail", "Recover", "Retry")
    } <= seen
    assert {("DurableAdmission", a) for a in ("Journal", "Forward", "HearForward", "HearAck", "Keep", "Effect")} <= seen


@pytest.mark.parametrize("module", MODULES)
def test_events_are_steps_of_the_twin(module: str) -> None:
    """By its names, and as JSON."""
    events = [event for event in work() if event.module == module]
    assert {event.action for event in events} <= {action.name for action in TWINS[module].actions()}
    assert json.dumps([event.text() for event in events])
    assert module in KNOWN


def test_the_table_has_what_the_lines_have(journal: str, tmp_path: Path) -> None:
    """The same transactions, and what each of them was; executions are not in it."""
    lines, table = [event for event in work() if event.number], decided(journal)
    assert sorted(map(_what, lines)) == sorted(map(_what, table))
    assert write_lost(work(), journal, tmp_path) == 0
    assert write_lost([], journal, tmp_path) == len(table)
    verdict = explained(tmp_path)
    assert verdict, str(verdict)
    assert verdict.hidden == sum(event.action == "Complete" for event in table)


@pytest.mark.parametrize("seed", range(8))
def test_lines_that_were_lost_are_made_from_the_table(seed: int, journal: str, tmp_path: Path) -> None:
    """Any of them: a kill takes the last one of a process, an unknown outcome any."""
    chance, room = random.Random(seed), tmp_path / "room"
    room.mkdir()
    kept = [copy.copy(event) for event in work() if not event.number or chance.random() < 0.8]
    write(kept, room)
    assert write_lost(kept, journal, room) == len(work()) - len(kept)
    verdict = explained(room)
    assert verdict, str(verdict)


def test_a_journal_among_the_files_completes_them(journal: str, tmp_path: Path) -> None:
    """So the command is told of it; alone it is explained as well."""
    room = tmp_path / "room"
    room.mkdir()
    first = next(i for i, e in enumerate(work()) if e.action == "Take")
    write([event for i, event in enumerate(work()) if i != first], room)
    assert not explained(room)
    assert explained(read([room, journal]))
    assert explained(room, journal)
    assert explained(journal)
    (tmp_path / "none.db").write_bytes(Path(journal).read_bytes()[:5000])
    with pytest.raises(TenureError):
        read([tmp_path / "none.db"])
    with pytest.raises(BadTrace):
        read([tmp_path / "nothing.db"])


def test_a_line_that_is_nested_too_deep_is_no_event(tmp_path: Path) -> None:
    """It does not use up the stack."""
    (tmp_path / "deep.jsonl").write_text("[" * 100_000 + "\n")
    with pytest.raises(BadTrace, match="not a JSON line"):
        read([tmp_path / "deep.jsonl"])


def test_the_command_takes_a_journal(journal: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Among the files that it is given."""
    with pytest.raises(SystemExit) as done:
        main(["trace", "check", journal])
    assert done.value.code in (None, 0)
    assert "events explained" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("action", "name", "value", "said"),
    [
        ("Take", "by", "101:1", "args.by is no list of 2"),
        ("Take", "right", "wrong", "args.right is none of"),
        ("Start", "by", [None, None, None, None], "names no instance"),
        ("Recover", "evidence", "maybe", "args.evidence is none of"),
        ("Freeze", "handoff", 7, "args.handoff is no text"),
        ("Journal", "epoch", "1", "neither an integer nor null"),
        ("Forward", "epoch", None, "args.epoch is missing"),
    ],
)
def test_what_is_no_event_is_said_in_one_line(action: str, name: str, value: object, said: str, tmp_path: Path) -> None:
    """With the file, the line and the member."""
    events = work()
    wrong = next(event for event in events if event.action == action)
    wrong.args = {**wrong.args, name: value}
    with pytest.raises(BadTrace, match=said) as found:
        explained(*write(events, tmp_path))
    assert "\n" not in str(found.value)


def test_an_update_is_named_by_its_id(tmp_path: Path) -> None:
    """A node without one is none of this module."""
    event = next(event for event in work() if event.action == "Journal")
    event.node = event.node.partition("@")[0]
    with pytest.raises(BadTrace, match="no update id"):
        explained(*write([event], tmp_path))


def _what(event: Event) -> tuple[int, str, str, str, str, str]:
    seen = event.observed
    party = event.node.partition("/")[2]
    return event.number, event.module, event.action, party, str(seen["was"]), str(seen["phase"])
