"""``tenure trace check`` turns red: a doctored trace, a dropped line, two inside at once, an effect of a stale epoch.

The trace is one of the real drivers (`tests/adapters/trace/recorded.py`), explained as it is; each test doctors it in
one place, and asserts that it is not explained any more and that the message names the place.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenure.adapters.cli import main
from tenure.adapters.trace.api import explained
from tenure.adapters.trace.check import Verdict
from tenure.adapters.trace.lines import Event

from ..adapters.trace.recorded import find, takeover, write


def checked(events: list[Event], room: Path) -> Verdict:
    """The verdict on the doctored events, which are consistent as files."""
    return explained(*write(events, room))


def test_the_recording_is_explained(tmp_path: Path) -> None:
    """As it is, it is: or else the gates below would be red for another reason."""
    verdict = checked(takeover(), tmp_path)
    assert verdict, str(verdict)
    assert len(takeover()) == verdict.events


def test_a_forged_epoch(tmp_path: Path) -> None:
    """A refresh under an epoch that is not the one acquired."""
    events = takeover()
    place = find(events, "Write", "201", 2)
    events[place].tenure = 7
    verdict = checked(events, tmp_path)
    assert not verdict
    assert verdict.limit == ""
    assert verdict.first is not None
    assert (7, "Write") == (verdict.first.tenure, verdict.first.action)
    assert "tenure 7 does not agree" in str(verdict)


def test_an_epoch_that_was_given_out_before(tmp_path: Path) -> None:
    """The successor works under its predecessor's epoch, from its acquisition on."""
    events = takeover()
    for event in events:
        if event.process.startswith("202") and event.module == "LeaderElection" and event.tenure == 2:
            event.tenure = 1
    assert not checked(events, tmp_path)


def test_another_owner(tmp_path: Path) -> None:
    """What the successor says it saw when it acquired is not who owned."""
    events = takeover()
    place = find(events, "Acquire", "202")
    assert events[place].observed["owner"] == "201:1"
    events[place].observed = {**events[place].observed, "owner": "202:1"}
    verdict = checked(events, tmp_path)
    assert not verdict
    assert verdict.first is events[place] or verdict.first is not None


def test_a_dropped_line(tmp_path: Path) -> None:
    """A line in the middle of one file is gone: its number is missed, whatever it said."""
    events = takeover()
    (path, *_) = write(events, tmp_path)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    del lines[4]
    path.write_text("".join(lines), encoding="utf-8")
    verdict = explained(tmp_path)
    assert not verdict
    assert f"{path}:5: seq 6 follows 4: 1 event(s) before this line are missing" == verdict.message


@pytest.mark.parametrize(("action", "which"), [("Publish", 1), ("Verify", 1), ("Commit", 0), ("Acquire", 0)])
def test_an_event_that_never_was_recorded(action: str, which: int, tmp_path: Path) -> None:
    """A line is gone and the numbers were repaired: what came after it cannot have been."""
    events = takeover()
    del events[find(events, action, "201", which)]
    assert not checked(events, tmp_path)


def test_two_inside_at_once(tmp_path: Path) -> None:
    """202 enters while 201, which goes on afterwards, is inside."""
    events = takeover()
    inside = find(events, "Publish", "201", 1)
    number = events[inside].number
    entry = Event(
        "", 0, "FileTransaction", "Publish", "202-1/guard@owners.json.transaction", 0, number + 1, number + 1,
        {}, {}, "another generation",
    )  # fmt: skip
    for event in events[inside + 1 :]:
        event.at += 1
        event.number += bool(event.number > number)
    events.insert(inside + 1, entry)
    verdict = checked(events, tmp_path)
    assert not verdict
    assert verdict.limit == ""


def test_two_entries_with_one_number(tmp_path: Path) -> None:
    """Two that were inside at once may have drawn one number."""
    events = takeover()
    entry = events[find(events, "Publish", "202")]
    entry.number = entry.at = events[find(events, "Publish", "201", 1)].number
    verdict = checked(events, tmp_path)
    assert not verdict
    assert "entered under the same number" in verdict.message


def test_an_effect_under_a_stale_epoch(tmp_path: Path) -> None:
    """201 wakes up when 202 owns, and commits."""
    events = takeover()
    place = find(events, "Release", "202")
    number = events[place - 1].number
    node = events[find(events, "Commit", "201")].node
    for event in events[place:]:
        event.number += bool(event.number)
        event.at += 1
    late = [
        Event("", 0, "LeaderElection", action, node, 0, number, number, {}, {"phase": phase}, 1)
        for action, phase in (("Commit", "committing"), ("Land", "owner"))
    ]
    events[place:place] = late
    verdict = checked(events, tmp_path)
    assert not verdict
    assert verdict.first is not None
    assert "LeaderElection" == verdict.first.module


def test_the_command_says_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 0 and what was explained; status 1, the event with its file and line, and the guard that refused."""
    room, other = tmp_path / "good", tmp_path / "bad"
    room.mkdir()
    other.mkdir()
    write(takeover(), room)
    with pytest.raises(SystemExit) as ended:
        main(["trace", "check", str(room)])
    assert 0 == ended.value.code
    assert "events explained" in capsys.readouterr().out
    events = takeover()
    events[find(events, "Commit", "202")].observed = {"phase": "committing", "owner": "201:1", "id": 1}
    write(events, other)
    with pytest.raises(SystemExit) as ended:
        main(["trace", "check", str(other)])
    assert 1 == ended.value.code
    said = capsys.readouterr().out
    assert "202-1.trace:" in said
    assert "nearest state" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no *.trace file in it"),
        ("nonsense\n", "not a JSON line"),
        ("[1]\n", "not a JSON object"),
        ('{"module":"FileTransaction"}\n', "an event without action"),
        ('{"module":"Nowhere","action":"Look","node":"a/b","seq":1}\n', "no module is called 'Nowhere'"),
        ('{"module":"FileTransaction","action":"Jump","node":"a/b","seq":1}\n', "has no action 'Jump'"),
        ('{"module":"FileTransaction","action":"Crash","node":"a/b","seq":1}\n', "has no action 'Crash'"),
        ('{"module":"FileTransaction","action":"Look","node":"a/b","seq":"1"}\n', "seq is not an integer"),
        ('{"module":"FileTransaction","action":"Look","node":"a/b","seq":1,"who":2}\n', "unknown member who"),
    ],
)
def test_what_is_no_trace(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that names the file and the line, and status 2."""
    if text:
        (tmp_path / "x.trace").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["trace", "check", str(tmp_path)])
    assert 2 == ended.value.code
    error = capsys.readouterr().err
    assert said in error
    assert 1 == error.count("\n")


@pytest.mark.parametrize("text", ["", '{"module":"FileTrans'])
def test_a_trace_without_events(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was recorded, so nothing was checked: a wrong name must not stay green."""
    file = tmp_path / "x.trace"
    file.write_text(text, encoding="utf-8")
    for named in (file, tmp_path):
        with pytest.raises(SystemExit) as ended:
            main(["trace", "check", str(named)])
        assert 2 == ended.value.code
        error = capsys.readouterr().err
        assert f"tenure: {file}: no event was recorded; " in error
        assert 1 == error.count("\n")


def test_a_line_torn_in_the_middle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At the end it is what a kill leaves, and counted; in the middle it is no trace."""
    (first, *_) = write(takeover(), tmp_path)
    lines = first.read_text(encoding="utf-8").splitlines(keepends=True)
    torn = lines[3][:20]
    first.write_text("".join([*lines[:3], torn + "\n", *lines[4:]]), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["trace", "check", str(tmp_path)])
    assert 2 == ended.value.code
    assert f"{first}:4: not a JSON line" in capsys.readouterr().err
    first.write_text("".join([*lines[:-1], lines[-1][:20]]) + "\0" * 100, encoding="utf-8")
    verdict = explained(tmp_path)
    assert 1 == verdict.torn
    assert json.dumps(verdict.message)
