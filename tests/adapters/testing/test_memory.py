"""Files in memory behave as those of a real directory, call by call."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.ports import Files, Killed
from tenure.adapters.testing.faulty import ERRORS, Call, Fails, FaultyFiles, Kills, at, nth, script
from tenure.adapters.testing.memory import BOOT, CountedIdentities, FakeClock, FakeProcesses, MemoryFiles
from tenure.machines.identity import GONE, RUNNING, UNKNOWN, ZOMBIE, Birth

NAMES = ("a", "b", "c", "a/x", "a/y", "b/x", "b/x/z", "c/x")
paths = st.sampled_from(NAMES)
calls = st.one_of(
    st.tuples(st.just("make_directory"), paths),
    st.tuples(st.just("create"), paths, st.sampled_from([b"", b"one", b"two"])),
    st.tuples(st.just("read"), paths),
    st.tuples(st.just("entries"), paths),
    st.tuples(st.just("kind"), paths),
    st.tuples(st.just("rename"), paths, paths),
    st.tuples(st.just("unlink"), paths),
    st.tuples(st.just("remove_directory"), paths),
    st.tuples(st.just("sync"), paths),
)


def answer(files: Files, root: str, call: tuple[object, ...]) -> object:
    """What the call answers, an error as its number."""
    name, *rest = call
    arguments = [f"{root}/{part}" if isinstance(part, str) else part for part in rest]
    try:
        return getattr(files, str(name))(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno or 0]


@given(st.lists(calls, min_size=1, max_size=30))
def test_memory_answers_as_a_real_directory(sequence: list[tuple[object, ...]]) -> None:
    """The same calls in the same order have the same answers, errors by their numbers."""
    real = tempfile.mkdtemp()
    try:
        memory = MemoryFiles("/room")
        for call in sequence:
            assert answer(PosixFiles(), real, call) == answer(memory, "/room", call), call
    finally:
        shutil.rmtree(real)


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    """A symbolic link, a pipe and a directory are refused, and a pipe is not waited for."""
    files = PosixFiles()
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")

    for name, number in (("link", errno.ELOOP), ("pipe", errno.EINVAL), (".", errno.EISDIR)):
        with pytest.raises(OSError, match=r"\w") as caught:
            files.read(str(tmp_path / name))
        assert caught.value.errno == number
    assert files.read(str(tmp_path / "link"), follow=True) == b"text"
    assert ["other", "other", "file"] == [files.kind(str(tmp_path / name)) for name in ("link", "pipe", "file")]


def test_a_large_file_is_read_whole(tmp_path: Path) -> None:
    """More than one chunk comes as one."""
    text = os.urandom(200_000)
    files = PosixFiles()
    files.create(str(tmp_path / "file"), text)

    assert files.read(str(tmp_path / "file")) == text
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_faults_come_where_they_are_planned() -> None:
    """A call fails before or after it is done, or is the last thing that the process does, also half done."""
    inner = MemoryFiles("/d")
    files = FaultyFiles(inner, at(0, Fails(errno.EIO, "after")))
    with pytest.raises(OSError, match="error"):
        files.create("/d/a", b"text")
    assert inner.data == {"/d/a": b"text"}
    assert files.calls == [Call("create", ("/d/a",), 0)]

    files = FaultyFiles(inner, nth("create", 2, Kills(torn=1)))
    files.create("/d/b", b"text")
    with pytest.raises(Killed):
        files.create("/d/c", b"text")
    with pytest.raises(Killed):
        files.kind("/d")
    assert inner.data["/d/c"] == b"t"

    files = FaultyFiles(inner, script([None, Fails(errno.EPERM)]))
    files.unlink("/d/c")
    with pytest.raises(PermissionError):
        files.unlink("/d/b")
    assert "/d/b" in inner.data
    assert len(set(ERRORS)) == 5


def test_clocks_and_processes_do_as_they_are_told() -> None:
    """Time moves by sleeping, the wall clock steps alone, a suspend is seen by the fence; processes die and return."""
    clock = FakeClock(wall_ms=1_000, monotonic_ms=10)
    clock.sleep_ms(2.5)
    clock.sleep_ms(2.5)
    clock.step(-500)
    clock.suspend(100)
    assert (505 + 100, 15, 115) == (clock.wall_ms(), clock.monotonic_ms(), clock.fence_ms())

    mine = FakeProcesses(7)
    other = mine.as_pid(8, ticks=3)
    assert other.me().birth == Birth(3, BOOT, 1)
    assert (RUNNING, 3) == (mine.sighting(8).state, mine.sighting(8).ticks)
    mine.turn(8, ZOMBIE)
    assert mine.sighting(8).state == ZOMBIE
    mine.kill(8)
    assert [GONE, GONE, UNKNOWN] == [mine.sighting(pid).state for pid in (8, 2**40, 0)]
    assert len({CountedIdentities(n).uuid() for n in range(5)}) == 5
