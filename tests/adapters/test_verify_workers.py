"""Work in processes: results in the order they come, a process that dies, and an end that leaves nothing behind."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure.adapters.verify import workers
from tenure.adapters.verify.workers import Ended, Told

Task = Callable[[], Iterator[int]]


def counting(*numbers: int) -> Task:
    return lambda: iter(numbers)


def test_each_task_tells_its_results_and_then_that_it_ended() -> None:
    told = list(workers.run([counting(1, 2), counting(), counting(3)], 2))
    for task, results in ((0, [1, 2]), (1, []), (2, [3])):
        mine = [t for t in told if t.task == task]
        assert [*(Told(task, r) for r in results), Ended(task, "")] == mine


def test_no_more_at_a_time_than_asked(tmp_path: Path) -> None:
    def alone() -> Iterator[int]:
        (tmp_path / "here").mkdir()
        time.sleep(0.05)
        (tmp_path / "here").rmdir()
        yield 1

    told = list(workers.run([alone] * 3, 1))
    assert 3 == sum(isinstance(t, Told) for t in told)


def test_a_process_that_dies_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    def killed() -> Iterator[int]:
        yield 1
        os.kill(os.getpid(), signal.SIGKILL)

    def raises() -> Iterator[int]:
        yield 2
        raise ValueError("so it is")

    told = list(workers.run([killed, raises], 1))
    assert [Told(0, 1), Ended(0, "its process ended early, with status -9")] == told[:2]
    assert [Told(1, 2), Ended(1, "its process ended early, with status 1")] == told[2:]
    assert "ValueError: so it is" in capfd.readouterr().err


def test_giving_up_ends_the_others_and_their_directories(tmp_path: Path) -> None:
    """Whoever leaves the iterator, an interrupt for one, leaves no process behind, and no directory."""
    pids = tmp_path / "pids"
    pids.mkdir()
    room = tmp_path / "room"
    room.mkdir()

    def slow() -> Iterator[int]:
        with tempfile.TemporaryDirectory(dir=room):
            (pids / str(os.getpid())).touch()
            time.sleep(600)
        yield 1

    def quick() -> Iterator[int]:
        deadline = time.monotonic() + 60
        while len(list(pids.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        yield 1

    working = workers.run([slow, slow, quick], 3)
    assert Told(2, 1) == next(working)
    started = time.monotonic()
    working.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < workers.PATIENCE
    assert [] == list(room.iterdir())
    assert 2 == len(list(pids.iterdir()))
    for pid in pids.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.name), 0)
