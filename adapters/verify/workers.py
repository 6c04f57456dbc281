"""Work in processes of its own, some at a time: what Python does in threads takes turns, in processes it does not.

Each task is one forked process, which inherits everything as it stands and gives its memory back when it ends. It tells
its results through a pipe, one after the other. When the parent is interrupted, or gives up the iterator, every process
and what it runs is ended, and its temporary directories are gone.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Final, Generic, NoReturn, TypeVar

import attrs

from tenure.adapters.tlc import Stopped, stop_here

R = TypeVar("R")

PATIENCE: Final = 5.0
"""Seconds that a process has to clean up after it was told to end."""
SELDOM: Final = (200_000, 100, 1_000)
"""When Python looks for cycles: graphs are large and have none, and a search at every turn costs a seventh."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@attrs.frozen
class Told(Generic[R]):
    """A result of the task with this number."""

    task: int
    result: R


@attrs.frozen
class Ended:
    """The task with this number is over; `why` is empty, or says why its process ended before it was done."""

    task: int
    why: str


def run(tasks: Sequence[Callable[[], Iterator[R]]], workers: int) -> Iterator[Told[R] | Ended]:
    """Run the tasks, in order, `workers` at a time, and tell what each tells, as it comes."""
    waiting = list(range(len(tasks)))[::-1]
    running: dict[Connection, tuple[int, int]] = {}
    # The temporary directories of all processes: one that is ended at the wrong moment leaves none behind.
    room = tempfile.mkdtemp(prefix="tenure-checks-")
    try:
        while waiting or running:
            while waiting and len(running) < max(1, workers):
                number = waiting.pop()
                _start(tasks[number], number, running, room)
            for there in wait(list(running)):
                assert isinstance(there, Connection)
                number, pid = running[there]
                try:
                    found = there.recv()
                except (EOFError, OSError, pickle.UnpicklingError):
                    found = None
                if isinstance(found, _Result):
                    yield Told(number, found.value)
                    continue
                status = _reap(pid)
                del running[there]
                there.close()
                done = isinstance(found, _Done)
                yield Ended(number, "" if done else f"its process ended early, with status {status}")
    finally:
        _end(running)
        shutil.rmtree(room, ignore_errors=True)


@attrs.frozen
class _Result(Generic[R]):
    value: R


@attrs.frozen
class _Done:
    pass


def _start(task: Callable[[], Iterator[R]], number: int, running: dict[Connection, tuple[int, int]], room: str) -> None:
    mine, its = Pipe(duplex=False)
    gc.freeze()  # what is here now is shared with the process, as long as nobody touches it
    # A signal that came between the fork and the entry in `running` would leave a process that nobody knows.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a thread that draws: a child never does
            pid = os.fork()
        if pid == 0:
            tempfile.tempdir = room
            _child(task, its, [mine, *running], before)
        running[mine] = (number, pid)
        its.close()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _child(
    task: Callable[[], Iterator[R]], its: Connection, others: list[Connection], mask: set[signal.Signals | int]
) -> NoReturn:
    """The forked process: it never returns, and says nothing but through its pipe."""
    status = 1
    try:
        for other in others:
            other.close()
        # The parent has its own way to handle these, and ends this process; what Java is started with is the default.
        for number in SIGNALS:
            signal.signal(number, _terminate if number == signal.SIGTERM else _pass)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        gc.set_threshold(*SELDOM)
        for result in task():
            its.send(_Result(result))
        its.send(_Done())
        status = 0
    except Stopped:
        pass
    except BaseException as error:
        with contextlib.suppress(BaseException):
            sys.stderr.write(f"tenure: a process of the verifier ended: {type(error).__name__}: {error}\n")
            sys.stderr.flush()
    finally:
        os._exit(status)


def _pass(number: int, frame: FrameType | None) -> None:
    """Not for this process."""


def _terminate(number: int, frame: FrameType | None) -> None:
    """End what this process runs, and unwind: directories are left behind by nobody."""
    signal.signal(signal.SIGTERM, _pass)
    stop_here()


def _reap(pid: int) -> int:
    with contextlib.suppress(ChildProcessError):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return 0


def _end(running: dict[Connection, tuple[int, int]]) -> None:
    """End every process: told to, it cleans up; if it does not, it is killed."""
    left = {pid for _, pid in running.values()}
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while left:
        for pid in list(left):
            late = time.monotonic() > deadline
            if late:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                found, _ = os.waitpid(pid, 0 if late else os.WNOHANG)
            except ChildProcessError:
                found = pid
            if found:
                left.discard(pid)
        if left:
            time.sleep(0.01)
    for connection in running:
        connection.close()
    running.clear()
