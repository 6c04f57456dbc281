"""What a recorder leaves on disk: whole lines, one file for each process, whatever ends it."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.trace.lines import read
from tenure.adapters.trace.recorder import TraceRecorder

MODULE = "FileTransaction"


def lines(directory: Path) -> list[dict[str, object]]:
    """Every line in the directory, closed or not."""
    texts = [path.read_bytes().rstrip(b"\0").decode() for path in sorted(directory.glob("*.trace"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def test_what_says_nothing_is_left_out(tmp_path: Path) -> None:
    """Inside a transaction the counter is its number and is not said; outside it says where the recording was."""
    recorder = TraceRecorder(tmp_path)
    number = recorder.order()
    recorder.event(MODULE, "Publish", "1-1/a", number, None, None, "generation")
    recorder.event(MODULE, "Look", "1-1/a", 0, {"x": 1}, {"phase": 'a "quoted" one'}, 7)
    recorder.close()
    inside, outside = lines(tmp_path)
    assert {
        "module": MODULE, "action": "Publish", "node": "1-1/a", "seq": 1, "number": 1, "tenure": "generation",
    } == inside  # fmt: skip
    assert isinstance(outside.pop("t"), int)
    assert {
        "module": MODULE, "action": "Look", "node": "1-1/a", "seq": 2, "at": 1, "tenure": 7, "args": {"x": 1},
        "observed": {"phase": 'a "quoted" one'},
    } == outside  # fmt: skip


def test_who_went_on_after_anothers_entry_shows(tmp_path: Path) -> None:
    """Two recorders are two processes with one counter: the second's entry is seen in the first's later events."""
    first, second = TraceRecorder(tmp_path), TraceRecorder(tmp_path)
    number = first.order()
    assert 2 == second.order()
    first.event(MODULE, "Verify", "1-1/a", number)
    first.close()
    second.close()
    assert [(1, 2)] == [(e["number"], e["at"]) for e in lines(tmp_path)]


def test_a_file_grows_and_is_cut_when_closed(tmp_path: Path) -> None:
    """Chunks are filled one after the other; a closed file has no unused space."""
    recorder = TraceRecorder(tmp_path, chunk=4096)
    for _ in range(1000):
        recorder.event(MODULE, "Look", "1-1/a", 0)
    recorder.close()
    (path,) = tmp_path.glob("*.trace")
    data = path.read_bytes()
    assert b"\0" not in data
    assert list(range(1, 1001)) == [e.seq for e in read([path]).events]


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    """Every number once, in the order of the file."""
    recorder = TraceRecorder(tmp_path, chunk=4096)

    def work(name: str) -> None:
        for _ in range(500):
            recorder.event(MODULE, "Look", name, 0, None, {"phase": "publishing"})

    threads = [threading.Thread(target=work, args=(f"1-1/{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()
    assert list(range(1, 2001)) == [e["seq"] for e in lines(tmp_path)]


def _record(recorder: TraceRecorder) -> None:
    recorder.event(MODULE, "Look", "2-1/b", 0)
    recorder.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_has_a_file_of_its_own(tmp_path: Path) -> None:
    """The child's events do not go to its parent's file, nor the other way."""
    recorder = TraceRecorder(tmp_path)
    recorder.event(MODULE, "Look", "1-1/a", 0)
    child = multiprocessing.get_context("fork").Process(target=_record, args=(recorder,))
    child.start()
    child.join(30)
    assert 0 == child.exitcode
    recorder.event(MODULE, "Look", "1-1/a", 0)
    recorder.close()
    assert 2 == len(list(tmp_path.glob("*.trace")))
    assert [("1-1/a", 1), ("1-1/a", 2), ("2-1/b", 1)] == sorted((str(e["node"]), e["seq"]) for e in lines(tmp_path))


KILLED = """
import os, signal, sys
from tenure.adapters.trace.recorder import TraceRecorder
recorder = TraceRecorder(sys.argv[1])
for n in range(100):
    recorder.event("FileTransaction", "Look", "1-1/a", 0)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_loses_nothing_that_was_written(tmp_path: Path) -> None:
    """What was copied into the mapped file is there, followed by unused space, which is no torn line."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True)
    assert -signal.SIGKILL == done.returncode, done.stderr
    trace = read([tmp_path])
    assert (100, 0) == (len(trace.events), trace.torn)


def test_a_failure_does_not_reach_the_protocol(tmp_path: Path) -> None:
    """What cannot be spelled, or written, is said in `broken`; the event has no outcome."""
    recorder = TraceRecorder(tmp_path)
    recorder.event(MODULE, "Look", "1-1/a", 0, None, {"phase": object()})
    assert recorder.broken is not None
    recorder.event(MODULE, "Look", "1-1/a", 0)
    recorder.close()
    recorder.event(MODULE, "Look", "1-1/a", 0)


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    """One line that names it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(TenureError, match=f"{tmp_path}/file/room: cannot record here"):
        TraceRecorder(os.fspath(tmp_path / "file" / "room"))
