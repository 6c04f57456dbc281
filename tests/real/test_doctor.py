"""`tenure status` and `tenure doctor` beside real processes, and every bad input of issue 3 given to every command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tenure.adapters import cli
from tests.real.privileges import bound_by_modes

if TYPE_CHECKING:
    from tests.real.conftest import Leads

GENERATION = "11111111-1111-4111-8111-111111111111"


def tenure(*arguments: str) -> int:
    """The exit status of a command in this process."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    return ended.value.code if isinstance(ended.value.code, int) else 0


def seen(capsys: pytest.CaptureFixture[str], directory: Path, *options: str) -> dict[str, Any]:
    """What status says, which does not change anything."""
    capsys.readouterr()
    before = tree(directory)
    assert 0 == tenure("status", str(directory), "--json", *options)
    assert before.keys() == tree(directory).keys()
    return dict(json.loads(capsys.readouterr().out))


def text(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    tenure(*arguments)
    return capsys.readouterr().out


def tree(directory: Path) -> dict[str, bytes | str]:
    """Everything below a directory: bytes of files, targets of links."""
    found: dict[str, bytes | str] = {}
    for path in sorted(directory.rglob("*")):
        with suppress(FileNotFoundError):
            name = str(path.relative_to(directory))
            if path.is_symlink():
                found[name] = f"-> {path.readlink()}"
            else:
                found[name] = "directory" if path.is_dir() else path.read_bytes()
    return found


# -- beside a real leader -------------------------------------------------------


def test_a_leader_is_shown_with_its_guardian_and_its_command(leads: Leads, capsys: pytest.CaptureFixture[str]) -> None:
    lead = leads.shell(lease=60)
    _, command = leads.ran(1)
    leads.calm()
    found = seen(capsys, leads.directory, "--lease", "60")
    (key,) = found["keys"]
    assert (lead.pid, "running", 1) == (key["owner"]["pid"], key["owner"]["process"], key["epoch"])
    assert "active-elsewhere" == key["state"]
    (work,) = found["work"]
    assert {lead.guardian, command} <= {holder["pid"] for holder in work["holders"]}
    assert work["orphaned"] is False
    assert 1 == found["highWater"]["mark"]


def test_a_stopped_leader_is_said_to_be_stopped(leads: Leads, capsys: pytest.CaptureFixture[str]) -> None:
    lead = leads.shell(lease=60)
    leads.ran(1)
    leads.stop(lead)
    said = text(capsys, "status", str(leads.directory), "--lease", "60")
    assert f"pid {lead.pid} (stopped" in said
    assert f"kill -CONT {lead.pid}" in said


def test_status_says_why_nobody_starts_when_the_guardian_is_stopped(
    leads: Leads, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 3: the lock stays with COMMAND, nobody else starts one, and status says why."""
    leader, second = leads.pair(lease=60)
    _, command = leads.runs[0]
    guardian = leader.guardian
    os.kill(guardian, signal.SIGSTOP)
    leads.until(lambda: leads.stopped(guardian))
    leader.kill()
    leads.until(lambda: (leads.entry() or {}).get("leaderEpoch") == 2)
    second.says("waiting for the lock")
    leads.calm()
    said = text(capsys, "status", str(leads.directory), "--lease", "60")
    assert "COMMAND of epoch 1, which is over, keeps" in said
    assert f"pid {second.pid}, which leads, starts its own when that ends" in said
    assert f"kill -CONT {guardian}" in said
    (work,) = seen(capsys, leads.directory, "--lease", "60")["work"]
    assert work["orphaned"] is True
    assert {guardian, command} <= {holder["pid"] for holder in work["holders"]}
    os.kill(guardian, signal.SIGCONT)
    leads.ran(2)
    leads.calm()
    leads.until(lambda: seen(capsys, leads.directory, "--lease", "60")["work"][0]["orphaned"] is False)


def test_a_doctor_moves_nothing_from_under_a_leader(leads: Leads, capsys: pytest.CaptureFixture[str]) -> None:
    lead = leads.shell(lease=60)
    leads.ran(1)
    leads.calm()
    threads = leads.registry.with_name("state.json")
    threads.write_text("{torn")
    assert 1 == tenure("doctor", str(leads.directory), "--lease", "60")
    said = capsys.readouterr().out
    assert f"alive: pid {lead.pid} (running" in said
    assert "nothing was changed" in said
    assert "{torn" == threads.read_text()
    lead.kill()
    lead.ends()
    assert 0 == tenure("doctor", str(leads.directory), "--lease", "60")
    assert not threads.exists()


HOLD = """
import sys
from tenure.adapters.files.guard import GuardedFile
from tenure.adapters.files.host import real_ports
def inside(guarded):
    print("inside", flush=True)
    sys.stdin.read(1)
GuardedFile(real_ports(), sys.argv[1]).run(inside)
print("left", flush=True)
"""


def test_who_is_stopped_inside_the_guard_is_named_and_all_go_on_after_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "tmp" / "telegram"
    state.mkdir(parents=True)
    registry = str(state / "owners.json")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, registry], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        try:
            assert "inside\n" == holder.stdout.readline()
            holder.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT)
            said = text(capsys, "status", str(tmp_path))
            assert f"held by pid {holder.pid} (stopped" in said
            assert f"kill -CONT {holder.pid}" in said
            assert "held" == seen(capsys, tmp_path)["guard"]["state"]
            (state / "owners.json").write_text("torn")
            assert 1 == tenure("doctor", str(tmp_path))
            assert f"alive: pid {holder.pid} (stopped" in capsys.readouterr().out
        finally:
            holder.send_signal(signal.SIGCONT)
            holder.stdin.close()
        assert "left\n" == holder.stdout.readline()
    assert 0 == tenure("doctor", str(tmp_path))
    assert not (state / "owners.json").exists()


def test_the_guard_and_the_registry_of_a_killed_process_are_healed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "tmp" / "telegram"
    state.mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(state / "owners.json")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert b"inside\n" == holder.stdout.readline()
        holder.kill()
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
        found = seen(capsys, tmp_path)["guard"]
        assert ("abandoned", "zombie") == (found["state"], found["holder"]["process"])
    assert 0 == tenure("doctor", str(tmp_path))
    assert {"tmp": "directory", "tmp/telegram": "directory"} == tree(tmp_path)


def test_of_many_doctors_at_once_one_heals(tmp_path: Path) -> None:
    """A31, with processes."""
    state = tmp_path / "tmp" / "telegram"
    (state / "owners.json.transaction").mkdir(parents=True)
    (state / "owners.json").write_text("torn")
    command = [sys.executable, "-m", "tenure.adapters.cli", "doctor", str(tmp_path), "--json"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(4)]
    outcomes = []
    for process in running:
        with process:
            outcomes.append(json.loads(process.communicate(timeout=60)[0]))
    assert ["recovered"] == [o["outcome"] for o in outcomes if o["moved"]]
    assert all(outcome["healthy"] for outcome in outcomes)
    quarantined = sorted(path.name for path in (state / "recovery").glob("*/*"))
    assert ["owners.json", "owners.json.transaction"] == quarantined
    assert ["recovery"] == [path.name for path in state.iterdir()]


# -- bad input ------------------------------------------------------------------


def payload(**fields: object) -> str:
    return json.dumps({"pid": 2**31 - 1, "acquiredAtMs": 1, "generation": GENERATION, **fields})


def guard(state: Path, **files: str) -> None:
    (state / "owners.json.transaction").mkdir()
    for name, content in files.items():
        (state / "owners.json.transaction" / name.replace("__", ".")).write_text(content)


OWNER = f"owner__{GENERATION}__json"
DAMAGE: dict[str, Callable[[Path], object]] = {
    "registry torn": lambda state: (state / "owners.json").write_text('{"default": {"pid"'),
    "registry an array": lambda state: (state / "owners.json").write_text("[]"),
    "registry a number": lambda state: (state / "owners.json").write_text("7"),
    "registry empty": lambda state: (state / "owners.json").write_text(""),
    "registry a directory": lambda state: (state / "owners.json").mkdir(),
    "registry not UTF-8": lambda state: (state / "owners.json").write_bytes(b'{"a": "\xff"}'),
    "guard empty": lambda state: guard(state),
    "guard of two files": lambda state: guard(state, **{OWNER: payload(), "other": ""}),
    "guard with a foreign name": lambda state: guard(state, lock=payload()),
    "guard with bad JSON": lambda state: guard(state, **{OWNER: "{torn"}),
    "guard with an implausible pid": lambda state: guard(state, **{OWNER: payload(pid=-1)}),
    "guard a symlink": lambda state: (state / "owners.json.transaction").symlink_to(state),
    "guard a symlink to nothing": lambda state: (state / "owners.json.transaction").symlink_to("nothing"),
    "guard a file": lambda state: (state / "owners.json.transaction").write_text("hello"),
    "epochs torn": lambda state: (state / "epochs.json").write_text("{"),
}
HEALED = tuple(DAMAGE)
ODD: dict[str, Callable[[Path], object]] = {
    "key of a wrong type": lambda state: (state / "owners.json").write_text('{"default": 7, "x.y": {"z": 1}}'),
    "pid of a wrong type": lambda state: (state / "owners.json").write_text('{"default": {"pid": "7"}}'),
}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "tmp" / "telegram"
    made.mkdir(parents=True)
    return made


@pytest.mark.parametrize("name", [*DAMAGE, *ODD])
def test_status_says_what_is_wrong_in_one_line_and_changes_nothing(
    name: str, tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    {**DAMAGE, **ODD}[name](state)
    before = tree(tmp_path)
    assert 0 == tenure("status", str(tmp_path))
    assert before == tree(tmp_path)
    problem = seen(capsys, tmp_path)["problem"]
    assert problem.startswith(str(state))
    assert "\n" not in problem


@pytest.mark.parametrize("name", HEALED)
def test_doctor_heals_it_and_keeps_what_was_there(
    name: str, tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    DAMAGE[name](state)
    (state / "telegram.json").write_text("{}")
    before = {path.rpartition("/")[2] for path in tree(tmp_path)}
    assert 0 == tenure("doctor", str(tmp_path))
    assert 0 == os.stat(state / "recovery").st_mode & 0o077
    assert "{}" == (state / "telegram.json").read_text()
    assert before <= {path.rpartition("/")[2] for path in tree(tmp_path)}
    assert seen(capsys, tmp_path)["problems"] == []
    after = tree(tmp_path)
    assert 0 == tenure("doctor", str(tmp_path))
    assert after == tree(tmp_path)
    assert "nothing is damaged" in capsys.readouterr().out


@pytest.mark.parametrize("name", ODD)
def test_doctor_leaves_an_odd_member_to_a_person(
    name: str, tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ODD[name](state)
    before = tree(tmp_path)
    assert 1 == tenure("doctor", str(tmp_path))
    assert before == tree(tmp_path)
    assert "correct or remove that member" in capsys.readouterr().out


@pytest.mark.parametrize("name", [*DAMAGE, *ODD])
def test_lead_says_it_in_one_line_and_changes_nothing(name: str, leads: Leads) -> None:
    """Nothing of ours is there afterwards that was not before, no guard, and no COMMAND has run."""
    state = leads.registry.parent
    state.mkdir(parents=True)
    {**DAMAGE, **ODD}[name](state)
    before = tree(leads.directory)
    lead = leads.shell()
    assert 2 == lead.ends()
    assert 1 == lead.said.count("\n"), lead.said
    assert str(state) in lead.said
    assert [] == leads.log
    assert_same(before, tree(leads.directory))


SEEN_BY_COMMIT = (
    "guard empty",
    "guard with bad JSON",
    "guard a symlink",
    *(n for n in [*DAMAGE, *ODD] if n[0] in "rkp"),
)
"""A few guards, which it waits for, and all registries."""


@pytest.mark.parametrize("name", SEEN_BY_COMMIT)
def test_commit_says_it_in_one_line_and_changes_nothing(
    name: str, tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under the epoch of a live lease, as far as there is one. (The mark of epochs is nothing to a commit.)"""
    if name.startswith("guard"):
        entry = {"pid": os.getpid(), "instanceId": "i", "heartbeatMs": time.time_ns() // 10**6, "leaderEpoch": 1}
        (state / "owners.json").write_text(json.dumps({"default": entry}))
    {**DAMAGE, **ODD}[name](state)
    before = tree(tmp_path)
    assert 2 == tenure("commit", str(tmp_path), "--epoch", "1", "--", "touch", str(tmp_path / "ran"))
    said = capsys.readouterr().err
    assert 1 == said.count("\n"), said
    assert str(state) in said
    assert_same(before, tree(tmp_path))


def assert_same(before: dict[str, bytes | str], after: dict[str, bytes | str]) -> None:
    """The same, lock files apart, which stay for whoever locks them next."""
    assert before == {path: content for path, content in after.items() if not path.endswith(".lock")}


@pytest.mark.parametrize("command", ["status", "doctor"])
@pytest.mark.parametrize(
    "arguments",
    [("{}/none",), ("{}/file",), ("{}", "--profile", "Bad"), ("{}", "--unknown"), ("{}", "--lease", "x")],
)
def test_a_bad_directory_or_flag_is_status_2(
    command: str, arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    before = tree(tmp_path)
    assert 2 == tenure(command, *(word.format(tmp_path) for word in arguments))
    assert "Traceback" not in capsys.readouterr().err
    assert before == tree(tmp_path)


@pytest.mark.parametrize("words", [("doctor",), ("doctor", "--probe")])
def test_a_directory_that_cannot_be_written_is_one_line_and_status_2(
    words: tuple[str, ...], tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (state / "owners.json").write_text("torn")
    before = tree(tmp_path)
    state.chmod(0o500)
    try:
        assert 0 == tenure("status", str(tmp_path))
        capsys.readouterr()
        with bound_by_modes():
            assert 2 == tenure(words[0], str(tmp_path), *words[1:])
        said = capsys.readouterr().err
        assert (1, True) == (said.count("\n"), str(state) in said)
        assert before == tree(tmp_path)
    finally:
        state.chmod(0o700)


def test_watch_in_plain_lines_parts_its_looks(tmp_path: Path) -> None:
    """By an empty line, where no terminal is drawn anew."""
    command = [sys.executable, "-m", "tenure.adapters.cli", "status", str(tmp_path), "--watch"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as watching:
        assert watching.stdout is not None
        lines = [watching.stdout.readline().rstrip() for _ in range(7)]
        watching.send_signal(signal.SIGINT)
    assert lines[3] == ""
    assert lines[:3] == lines[4:]
    assert lines[0] == str(tmp_path)


def test_watch_looks_again_until_it_is_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tenure.adapters.cli", "status", str(tmp_path), "--watch", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        lines = [json.loads(watching.stdout.readline()) for _ in range(2)]
        assert [str(tmp_path)] * 2 == [line["directory"] for line in lines]
        watching.send_signal(signal.SIGINT)
        assert 130 == watching.wait(timeout=20)
    assert {} == tree(tmp_path)
