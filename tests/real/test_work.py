"""Real processes share the work of one queue; the leader is killed on the way."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.conftest import until
from tests.real.works import Works, works_in


@pytest.fixture
def works(tmp_path: Path) -> Iterator[Works]:
    with works_in(tmp_path) as works:
        yield works


def test_each_update_is_executed_once_though_the_leader_is_killed(works: Works) -> None:
    leader, second, third = works.fleet(3)
    threads = [leader.thread, second.thread, third.thread]
    works.push(*threads * 10)
    until(lambda: len(works.executions()) >= 12)
    leader.kill()
    works.push(*threads * 10)
    works.settles()
    executed, interrupted = works.executions(), works.interrupted()
    assert set(executed.values()) == {1}
    assert set(executed) | set(interrupted) == set(range(1, 61))
    assert len(interrupted) <= 1
    assert set(interrupted) <= set(works.by(leader)) | set(range(1, 61)) - set(executed)
    # Whoever has a thread executes what is in it.
    assert {number for number in works.by(third)} >= {n for n in range(3, 61, 3)} - set(works.by(leader))
    heir = second if second.role.startswith("leading") else third
    assert set(works.by(heir)) >= {31, 34, 37}  # the dead leader's thread is the next one's
    assert works.queue()["confirmed"] <= 60


def test_who_is_told_to_leave_gives_its_work_back_to_who_comes_after_it(works: Works) -> None:
    leader, second = works.fleet(2, "0.3")
    works.push(*[second.thread] * 5, leader.thread)
    until(lambda: works.by(second))
    second.kill(signal.SIGTERM)
    second.ends()
    assert second.role == "left"
    third = works.start()
    third.becomes(f"following pid {leader.pid}")
    works.settles()
    executed, interrupted = works.executions(), works.interrupted()
    assert set(executed) == set(range(1, 7))
    assert set(executed.values()) == {1}
    assert interrupted == works.by(second)[-1:]
    assert works.by(third) == sorted(works.by(third))  # what it is in time for; the leader takes what is left behind
    assert 6 in works.by(leader)


def test_what_was_there_before_the_first_start_is_history(works: Works) -> None:
    works.push(*[1] * 25)
    leader = works.start()
    leader.becomes("leading")
    until(lambda: works.journal(lambda j: j.state().opened))
    works.push(leader.thread)
    works.settles()
    assert works.executions() == {26: 1}
    assert works.queue()["conflicts"] == 0
