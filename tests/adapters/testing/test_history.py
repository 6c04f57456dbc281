"""What became of work is judged from outside: every kind of damage to a history is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure.adapters.testing.history import Execution, State, What, judge, read_executions, written


def line(update: int, what: What, process: str = "p", tenure: str = "t1") -> Execution:
    return Execution(update, f"r{update}", what, tenure, process)


def once(update: int, process: str = "p") -> list[Execution]:
    return [line(update, "began", process), line(update, "ended", process)]


def test_a_good_history() -> None:
    lines = [*once(1), line(2, "began"), line(3, "began"), line(3, "failed"), *once(3, "q"), line(4, "began")]
    states: dict[int, State] = {1: "done", 2: "interrupted", 3: "done", 4: "discarded", 5: "waiting", 6: "interrupted"}
    verdict = judge(states, lines, states)
    assert not verdict.faults
    assert str(verdict) == "2 executed, 2 interrupted, 0 failed, 1 discarded, 1 waiting, 0 faults"


@pytest.mark.parametrize(
    ("lines", "state", "what"),
    [
        ([*once(1), *once(1, "q")], "done", "began again in q, and nobody had asked for that"),
        ([line(1, "began"), *once(1, "q")], "done", "began again in q, and nobody had asked for that"),
        ([line(1, "began"), line(1, "began", "q")], "interrupted", "began again in q, and nobody had asked for that"),
        ([], "done", "is done, and nobody has executed it"),
        ([line(1, "began")], "done", "is done, and nobody has executed it"),
        ([line(1, "began"), line(1, "failed")], "done", "is done, and nobody has executed it"),
        ([line(1, "began")], "waiting", "is waiting, and it was begun and not known to have failed"),
        (once(1), "failed", "is failed, and it was begun and not known to have failed"),
        ([line(1, "ended")], "done", "ended in p without having begun there under t1"),
        ([line(1, "began"), line(1, "ended", "q")], "done", "ended in q without having begun there under t1"),
        (
            [line(1, "began"), line(1, "ended", tenure="t2")],
            "done",
            "ended in p without having begun there under t2",
        ),
    ],
)
def test_damage(lines: list[Execution], state: State, what: str) -> None:
    assert what in [fault.what for fault in judge([1], lines, {1: state}).faults]


def test_an_update_that_the_journal_does_not_know() -> None:
    (fault,) = judge([1], [], {}).faults
    assert str(fault) == "update 1: is lost: the journal does not know it"


def test_an_execution_of_what_was_not_admitted() -> None:
    (fault,) = judge([], once(7), {}).faults
    assert str(fault) == "update 7: was executed and never admitted"


def test_a_person_may_repeat_what_was_interrupted() -> None:
    lines = [line(1, "began"), *once(1, "q")]
    assert not judge([1], lines, {1: "done"}, {1: 1}).faults
    assert judge([1], [*lines, *once(1, "r")], {1: "done"}, {1: 1}).faults


@given(st.lists(st.sampled_from(["began", "ended", "failed"]), max_size=6))
@example(["began", "failed", "began", "ended"])
def test_what_is_done_failed_some_times_and_ended_once(whats: list[What]) -> None:
    verdict = judge([1], [line(1, what) for what in whats], {1: "done"})
    good = whats == ["began", "failed"] * (len(whats) // 2 - 1) + ["began", "ended"]
    assert bool(verdict.faults) is not good


def test_lines_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [*once(1), line(2, "began")]
    path.write_bytes(written(lines[0]) + written(line(9, "began"))[:20] + written(lines[1]) + written(lines[2]))
    record = read_executions(path)
    assert record.executions == tuple(lines)
    assert record.torn == 1


def test_a_line_of_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"what":"sang"}\n')
    with pytest.raises(ValueError, match="no execution"):
        read_executions(path)
