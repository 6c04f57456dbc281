"""What `tenure lead` is made of: the lock and who holds it, words between processes, a group and its end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.host import HostClock
from tenure.adapters.lead import group
from tenure.adapters.lead.channel import Bell, Forward, Over, Run, Shared, Stop, channels
from tenure.adapters.lead.lock import Holder, Record, WorkLock, holders, read_record
from tenure.adapters.lead.supervisor import to_stderr

RECORD = Record(guardian=2, supervisor=1, pid=3, epoch=7, command=("sh", "-c", "true"))


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where the lock is."""
    return str(tmp_path / "lead.lock")


@pytest.fixture
def child() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that end with the test."""
    made: list[subprocess.Popen[bytes]] = []
    yield made
    for process in made:
        process.kill()
        process.wait()


def test_one_open_file_has_the_lock(path: str) -> None:
    """Until it is closed."""
    first, second = WorkLock(path), WorkLock(path)
    assert first.take()
    assert not second.take()
    first.close()
    assert second.take()
    second.close()


def test_holders_are_those_who_inherited(path: str, child: list[subprocess.Popen[bytes]]) -> None:
    """Not who took it, and not who waits for it; a stopped one is said to be stopped."""
    lock, other = WorkLock(path), WorkLock(path)
    assert holders(path) == ()
    assert lock.take()
    assert [holder.pid for holder in holders(path)] == [os.getpid()]
    child.append(subprocess.Popen(["sleep", "1000"], pass_fds=[lock.fileno()]))
    lock.close()
    assert holders(path) == (Holder(child[0].pid, "running", ("sleep", "1000")),)
    child[0].send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child[0].pid, os.WSTOPPED)
    (holder,) = holders(path)
    assert str(holder) == f"pid {child[0].pid} (sleep 1000, stopped)"
    assert not other.take()
    other.close()


def test_nobody_holds_what_is_not_there(path: str) -> None:
    """Asking makes no file."""
    assert holders(path) == ()
    assert not os.path.exists(path)


def test_a_holder_is_told_in_one_line() -> None:
    """Whatever its command line is."""
    said = str(Holder(1, "running", ("sh", "-c", "a\nb " * 40)))
    assert said.startswith("pid 1 (sh -c a b a b ")
    assert said.endswith("b...)")
    assert len(said) == len("pid 1 ()") + 60
    assert str(Holder(1, "zombie", ())) == "pid 1 (?, a zombie)"


def test_a_record_is_read_as_written(path: str) -> None:
    """A shorter one after a longer one as well."""
    lock = WorkLock(path)
    lock.write(Record(1, 1, 1, 1, ("x" * 100,)))
    lock.write(RECORD)
    lock.close()
    assert RECORD == read_record(path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"guardian": "1"}', "[" * 60_000])
def test_a_record_that_is_none(path: str, text: str) -> None:
    """It is for people: nothing depends on it."""
    Path(path).write_text(text)
    assert read_record(path) is None


def test_a_removed_file_is_not_the_lock(path: str) -> None:
    """Who waited for it opens the path again."""
    lock = WorkLock(path)
    os.unlink(path)
    assert not lock.take()
    assert lock.take()
    assert os.path.samestat(os.fstat(lock.fileno()), os.stat(path))
    lock.close()


@pytest.mark.parametrize("kind", ["directory", "link", "pipe", "nowhere"])
def test_what_is_no_file_is_no_lock(path: str, kind: str) -> None:
    """Nor is what cannot be opened."""
    if kind == "directory":
        os.mkdir(path)
    elif kind == "link":
        os.symlink("elsewhere", path)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path = os.path.join(path, "lead.lock")
    with pytest.raises(TenureError, match=r"lead\.lock: "):
        WorkLock(path)


def test_words_arrive_in_order_and_then_the_end() -> None:
    """What was said before the end is heard, also when the other side is gone."""
    left, right = channels()
    for word in (Run(7), Forward(15), Over("ended", 3, True, "why")):
        left.say(word)
    left.close()
    assert right.hear() == [Run(7), Forward(15), Over("ended", 3, True, "why")]
    assert right.closed
    right.say(Stop())  # to nobody
    assert right.hear() == []
    right.close()


def test_a_shared_integer_is_seen_by_who_was_forked() -> None:
    """In both directions of time."""
    shared = Shared()
    assert shared.get() == 0
    pid = os.fork()
    if pid == 0:
        shared.set(2**53 - 1)
        os._exit(0)
    os.waitpid(pid, 0)
    assert shared.get() == 2**53 - 1


def test_a_bell_rings_and_gives_the_signals_back() -> None:
    """A signal is something to wait for, not something that happens."""
    before = signal.getsignal(signal.SIGUSR1)
    bell = Bell([signal.SIGUSR1])
    assert bell.wait((), 0) == set()
    os.kill(os.getpid(), signal.SIGUSR1)
    assert bell.wait((), 10_000) == {signal.SIGUSR1}
    bell.close()
    assert signal.getsignal(signal.SIGUSR1) == before


def test_a_charge_is_asked_and_then_killed(child: list[subprocess.Popen[bytes]]) -> None:
    """A group that ignores SIGTERM is gone after the bound."""
    script = 'trap "" TERM; echo; while :; do sleep 0.02; done'
    child.append(subprocess.Popen(["sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE))
    assert child[0].stdout is not None
    child[0].stdout.read(1)
    clock = HostClock()
    charge = group.Charge(child[0].pid, 100, clock)
    assert not charge.over()
    charge.end("passed")
    charge.end("stopped")
    until = clock.fence_ms() + 20_000
    while not charge.over():
        assert clock.fence_ms() < until
        clock.sleep_ms(2)
    assert charge.why == "passed"
    assert child[0].wait() == -signal.SIGKILL
    child[0].stdout.close()


def test_a_spare_that_nobody_needs_ends(path: str) -> None:
    """When its socket is closed, and without having been anything."""
    spare = group.Spare(["true"], dict(os.environ), frozenset())
    assert spare.ready()
    assert spare.executed() is None
    spare.close()
    assert os.waitstatus_to_exitcode(os.waitpid(spare.pid, 0)[1]) == group.NOT_STARTED


def test_a_spare_becomes_the_command(path: str) -> None:
    """With the epoch and the lock, and with no descriptor that was not meant for it."""
    lock = WorkLock(path)
    assert lock.take()
    script = f'test "$TENURE_EPOCH" = 7 && exec ls -l /proc/self/fd > {path}.list'
    spare = group.Spare(["sh", "-c", script], dict(os.environ), frozenset())
    assert spare.ready()
    spare.go(7, lock.fileno())
    assert os.waitstatus_to_exitcode(os.waitpid(spare.pid, 0)[1]) == 0
    assert spare.executed() == 0
    listed = Path(f"{path}.list").read_text()
    assert listed.count(f"{path}\n") == 1
    assert "socket:" not in listed
    lock.close()


def test_a_line_that_nobody_reads_holds_up_nobody() -> None:
    """A full pipe as standard error: the line is lost, not the lease."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with suppress(BlockingIOError):
        while True:
            os.write(write, b"x" * 4096)
    os.set_blocking(write, True)
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 2)
        signal.alarm(10)
        to_stderr("a line")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(read)
    os.close(write)
