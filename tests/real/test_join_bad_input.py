"""`tenure join` and what a person has to mend, readers that are gone or stuck, signals at any moment: one line, the
exit status that the manual says, and nothing said twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.real.conftest import PATIENCE, Zygote, state, stop, until
from tests.real.joins import Join, Joins
from tests.real.privileges import before_exec

JOIN = [sys.executable, "-m", "tenure.adapters.cli", "join"]
LEADING = ["standing for election", "starting to lead", "leading with epoch 1, slot A"]


@pytest.fixture
def joins(zygote: Zygote, tmp_path: Path) -> Iterator[Joins]:
    """A directory, and the processes in it."""
    found = Joins(zygote, tmp_path)
    yield found
    found.close()


def short(lines: list[str]) -> list[str]:
    """Without names."""
    return [line.split(" (")[0] for line in lines]


def refused(join: Join, *named: str) -> None:
    """It ended with one line that names what is wrong."""
    assert join.ends() == 2, join.said
    assert len(join.said.splitlines()) == 1, join.said
    assert join.said.startswith("tenure: ")
    for text in named:
        assert join.said.count(text) == 1, join.said
    assert not any(role.startswith(("leading", "following", "left")) for role in join.roles)


def test_a_directory_that_is_none(joins: Joins) -> None:
    """It is not made, and what is no directory is no directory."""
    file = joins.root / "file"
    file.write_text("")
    places = {"nowhere": "no such directory", str(file): "a file, not a directory", "": "DIR is empty"}
    started = {text: joins.start(directory=place) for place, text in places.items()}
    for text, join in started.items():
        refused(join, text)
    assert not (joins.root / "nowhere").exists()
    assert list(joins.directory.iterdir()) == []


def test_options_that_are_none(joins: Joins) -> None:
    """Said in one line where it is a name, with the usage where it is a number."""
    words = [["--profile", "main"], ["--profile", "Work"], ["--name", "lower"], ["--name", "Two words"], ["--name", ""]]
    for option, join in [(each[0][2:], joins.start(*each)) for each in words]:
        refused(join, option)
    for join in [joins.start(lease=lease) for lease in (0, -1, 1e9)]:
        assert join.ends() == 2
        assert "--lease" in join.said
    assert list(joins.directory.iterdir()) == []


def test_a_directory_that_cannot_be_written(joins: Joins) -> None:
    """Where nothing can be made, nobody leads."""
    (joins.directory / "tmp").write_text("a file")
    proc, file = joins.start(directory="/proc/self"), joins.start()
    refused(proc, "/proc/self/tmp")
    refused(file, str(joins.directory / "tmp"))


def test_a_directory_without_permission(joins: Joins) -> None:
    """The same, of a directory whose mode forbids it."""
    joins.directory.chmod(0o500)
    done = subprocess.run(
        [*JOIN, str(joins.directory)], capture_output=True, text=True, timeout=60, preexec_fn=before_exec
    )
    joins.directory.chmod(0o700)
    assert (2, 1) == (done.returncode, done.stderr.count("\n")), done.stderr
    assert str(joins.directory) in done.stderr
    assert list(joins.directory.iterdir()) == []


@pytest.mark.parametrize("command", ["join", "lead"])
@pytest.mark.parametrize(
    ("what", "mode", "advice"),
    [
        ("torn", None, "mend it, or run tenure doctor"),
        ("owners.json", 0, "give this user the right to read it"),
        ("", 0, "give this user the right to read it"),
        ("", 0o555, "make the directory writable for this user"),
    ],
)
def test_what_to_do(tmp_path: Path, command: str, what: str, mode: int | None, advice: str) -> None:
    """Both commands say it, and the right thing: doctor mends no permissions."""
    registry = tmp_path / "tmp" / "telegram" / "owners.json"
    if what:
        registry.parent.mkdir(parents=True)
        registry.write_text("torn" if what == "torn" else "{}")
    bound = registry if what else tmp_path
    if mode is not None:
        bound.chmod(mode)
    arguments = [*JOIN[:-1], command, str(tmp_path), *(["--", "true"] if command == "lead" else [])]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, preexec_fn=before_exec)
    bound.chmod(0o700)
    assert (2, 1) == (done.returncode, done.stderr.count("\n")), done.stderr
    assert done.stderr.startswith(f"tenure: {tmp_path}/tmp")
    assert done.stderr.endswith(f"; {advice}\n")


def test_files_that_are_damaged(joins: Joins) -> None:
    """The registry, the mark of the epochs, the guard, and what stands where the endpoint should: each is named, and
    left as it is."""
    rooms = []
    short_path = Path(tempfile.mkdtemp(prefix="tenure-"))  # a long one would be mapped to another directory
    for number, name in enumerate(("owners.json", "epochs.json", "owners.json.transaction", "bus.sock")):
        room = short_path if name == "bus.sock" else joins.root / f"room{number}"
        place = room / "tmp" / "telegram" / name
        place.parent.mkdir(parents=True)
        if name == "bus.sock":
            place.mkdir()
        elif name.endswith("transaction"):
            place.mkdir()
            (place / "who.json").write_text("{}")
        else:
            place.write_text("torn")
        rooms.append((place, joins.start(directory=str(room))))
    for place, join in rooms:
        refused(join, str(place))
        assert place.is_dir() or place.read_text() == "torn"
    shutil.rmtree(short_path)


def test_a_place_for_followers_that_is_none(joins: Joins) -> None:
    """There is a leader, and nobody can listen beside it."""
    with tempfile.TemporaryDirectory(prefix="tenure-") as place:  # a long path would be mapped to another directory
        leader = joins.start(directory=place)
        leader.becomes("leading")
        room = Path(place) / "tmp" / "telegram" / "followers"
        room.write_text("a file")
        refused(joins.start(directory=place), str(room))
        assert leader.status is None
        leader.kill(signal.SIGTERM)
        leader.ends()


def test_a_member_does_not_end_for_what_breaks_later(joins: Joins) -> None:
    """It goes on, and joins again when it is mended."""
    leader, follower = joins.fleet(2)
    whole = joins.registry.read_text()
    stop(leader.pid, joins.registry)
    joins.registry.write_text("torn")
    leader.kill()
    time.sleep(1.0)
    assert follower.status is None
    joins.registry.write_text(whole)
    follower.becomes("leading with epoch 2")


def test_a_long_path(joins: Joins) -> None:
    """An address has about a hundred bytes: longer ones are mapped, for all alike."""
    place = joins.root / ("d" * 120) / "agent"
    place.mkdir(parents=True)
    leader = joins.start(directory=str(place))
    leader.becomes("leading")
    joins.start(directory=str(place)).becomes(f"following pid {leader.pid}")


def test_a_trace_that_cannot_be_written(joins: Joins) -> None:
    """Said before there is anything to record; and what can be written is."""
    (joins.root / "file").write_text("")
    refused(joins.start("--trace", str(joins.root / "file" / "trace")), "cannot record here")
    join = joins.start("--trace", str(joins.root / "trace"))
    join.becomes("leading")
    join.kill(signal.SIGTERM)
    assert join.ends() == 128 + signal.SIGTERM
    assert any(path.suffix == ".trace" and path.stat().st_size for path in (joins.root / "trace").iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals(joins: Joins, number: int) -> None:
    """Each leaves in order, once, however often it comes: the next one leads at once."""
    leader, follower = joins.fleet(2)
    for _ in range(3):
        leader.kill(number)
    assert leader.ends() == 128 + number
    assert leader.said == ""
    assert short(leader.roles) == [*LEADING, "leaving", "left"]
    follower.becomes("leading with epoch 2")
    follower.kill(number)
    assert follower.ends() == 128 + number
    assert follower.roles[-2:] == ["leaving", "left"]
    assert not [path for path in joins.directory.rglob("*") if path.is_socket()]


def test_a_goodbye(joins: Joins) -> None:
    """The leader knows it no more; one that hangs is not waited for long, and that is said."""
    leader = joins.start()
    leader.becomes("leading")
    first, second = joins.start("--goodbye"), joins.start("--goodbye")
    for join in (first, second):
        join.becomes(f"following pid {leader.pid}")
    first.kill(signal.SIGTERM)
    assert (first.ends(), first.said) == (128 + signal.SIGTERM, "")
    stop(leader.pid, joins.registry)
    began = time.monotonic()
    second.kill(signal.SIGTERM)
    assert second.ends() == 128 + signal.SIGTERM
    assert time.monotonic() - began < 9.0
    # Where the leader's lease had passed before, there was nobody to say goodbye to.
    assert second.said == "" or second.said.startswith("tenure: the goodbye was not confirmed: ")


def test_all_hangs_and_it_ends(joins: Joins) -> None:
    """The leader is stopped inside the guard, so that nobody gets in: followers leave all the same, and soon."""
    leader, follower = joins.fleet(2, lease=1.0)
    guard = joins.registry.with_name("owners.json.transaction")
    _stop_inside(leader.pid, guard)
    follower.becomes("standing for election")
    joining = joins.start(lease=1.0)
    joining.becomes("standing for election")
    for join in (follower, joining):
        began = time.monotonic()
        join.kill(signal.SIGTERM)
        assert join.ends() == 128 + signal.SIGTERM
        assert time.monotonic() - began < 8.0


def _stop_inside(pid: int, guard: Path) -> None:
    """Stop a process inside the guard."""

    def inside() -> bool:
        os.kill(pid, signal.SIGSTOP)
        until(lambda: all(state(pid, int(task.name)) == "T" for task in Path(f"/proc/{pid}/task").iterdir()))
        if guard.exists() and any(f'"pid":{pid}' in path.read_text().replace(" ", "") for path in guard.iterdir()):
            return True
        os.kill(pid, signal.SIGCONT)
        return False

    until(inside)


def run(joins: Joins, *, closed: bool = False) -> subprocess.Popen[bytes]:
    """`tenure join` from its very beginning, with its standard output closed or not."""
    return subprocess.Popen(
        [*JOIN, str(joins.directory), "--lease", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=(lambda: os.close(1)) if closed else None,
    )


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    assert process.stderr is not None
    said = process.stderr.read().decode()
    process.stderr.close()
    return process.wait(PATIENCE), said


def leads(joins: Joins) -> None:
    until(lambda: joins.registry.exists() and "instanceId" in joins.registry.read_text())
    until(joins.endpoint.exists)


def pipe(joins: Joins) -> tuple[Path, int]:
    """A named pipe, and its reader."""
    path = joins.root / "pipe"
    os.mkfifo(path)
    return path, os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def test_nobody_reads(joins: Joins) -> None:
    """A reader that is gone ends it in order, as it ends other programs."""
    path, reader = pipe(joins)
    leader = joins.start(output=path)
    leads(joins)
    follower = joins.start()
    follower.becomes(f"following pid {leader.pid}")
    os.close(reader)
    stop(leader.pid, joins.registry)  # until its lease has passed: then it has something to say
    follower.becomes("leading with epoch 2")
    leader.kill(signal.SIGCONT)
    assert (leader.ends(), leader.said) == (128 + signal.SIGPIPE, "")


def test_standard_output_is_closed(joins: Joins) -> None:
    """Then nobody is told, and no socket gets what was meant for a terminal."""
    process = run(joins, closed=True)
    leads(joins)
    process.terminate()
    assert ended(process) == (128 + signal.SIGTERM, "")


def test_a_full_device(joins: Joins) -> None:
    """One line, exit 2."""
    join = joins.start(output=Path("/dev/full"))
    assert (join.ends(), join.said) == (2, "tenure: standard output: No space left on device\n")


def test_a_reader_that_is_stuck(joins: Joins) -> None:
    """The pipe is full: the leader serves its fleet all the same, and what it could not say follows."""
    path, reader = pipe(joins)
    filler, filled = os.open(path, os.O_WRONLY | os.O_NONBLOCK), 0
    with suppress(BlockingIOError):
        while True:
            filled += os.write(filler, b"x" * 4096)
    os.close(filler)
    leader = joins.start(output=path)
    leads(joins)
    joins.start().becomes(f"following pid {leader.pid}")
    os.set_blocking(reader, True)
    found = b""
    while found.count(b"\n") < len(LEADING):
        found += os.read(reader, 65536)
    leader.kill(signal.SIGTERM)
    assert leader.ends() == 128 + signal.SIGTERM
    while more := os.read(reader, 65536):
        found += more
    os.close(reader)
    assert short(found[filled:].decode().splitlines()) == [*LEADING, "leaving", "left"]


def test_a_signal_at_any_moment_of_the_start(joins: Joins) -> None:
    """It ends with that signal's status, whatever it was about; nothing of it is left for the next one."""
    began = time.monotonic()
    process = run(joins)
    leads(joins)
    whole = time.monotonic() - began
    process.terminate()
    assert ended(process)[0] == 128 + signal.SIGTERM
    started = []
    for part in (0.4, 0.7, 0.85, 0.95):
        each = run(joins)
        timer = threading.Timer(part * whole, each.send_signal, [signal.SIGINT])
        timer.start()
        started.append(each)
    for each in started:
        status, said = ended(each)
        # Before Python has its handlers the signal ends it without a word; while it loads, Python says where it was.
        assert status in (128 + signal.SIGINT, -signal.SIGINT, 1), said
        assert "Traceback" not in said or status in (1, -signal.SIGINT)
    joins.start().becomes("leading")
