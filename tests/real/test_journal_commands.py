"""The commands about the journal while real processes work on it, are killed, or have left it to a copy."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.conftest import state, until
from tests.real.privileges import before_exec
from tests.real.works import Works, works_in


@pytest.fixture
def works(tmp_path: Path) -> Iterator[Works]:
    with works_in(tmp_path) as works:
        yield works


def tenure(*arguments: str | int | Path, bound: bool = False) -> subprocess.CompletedProcess[str]:
    """A command; `bound`: modes of files bind it, whoever runs it."""
    return subprocess.run(
        [sys.executable, "-m", "tenure.adapters.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=before_exec if bound else None,
    )


def found(*arguments: str | Path) -> Any:
    """The object that a command prints with --json."""
    done = tenure(*arguments, "--json")
    assert (0, "") == (done.returncode, done.stderr), done
    return json.loads(done.stdout)


def test_lists_and_lives_while_a_fleet_works(works: Works) -> None:
    leader, second = works.fleet(2)
    works.push(*[leader.thread, second.thread] * 15)
    seen = []
    while len(works.began()) < 30:
        seen.append(found("journal", "list", works.directory, "--all"))
    for listed in seen:
        updates = [row["update"] for row in listed["updates"]]
        assert sorted(set(updates)) == updates
        owners = {row["owner"]["pid"] for row in listed["receipts"] if row["owner"] is not None}
        assert owners <= {leader.pid, second.pid}
    file = works.root / "copy.db"
    assert 0 == tenure("journal", "backup", works.directory, file).returncode
    works.settles()
    assert {"profile", "updates", "receipts"} <= set(found("journal", "list", file))
    for update in (1, 2, 30):
        life = found("why", works.directory, str(update))
        assert (0, []) == (life["missing"], life["untold"])
        actions = [row["action"] for row in life["decisions"]]
        assert "admit" == actions[0]
        assert ["take", "start", "complete"] == [one for one in actions if one in ("take", "start", "complete")]
        (receipt,) = life["receipts"]
        assert "done" == receipt["state"]
        pids = {row["pid"] for row in life["decisions"] if row["action"] == "start"}
        assert pids == {leader.pid if update in works.by(leader.pid) else second.pid}


def test_what_was_interrupted_is_done_again_by_a_person(works: Works) -> None:
    leader, second = works.fleet(2, "600")
    works.push(second.thread)
    until(lambda: works.by(second.pid))
    second.kill()
    second.ends()
    until(lambda: works.interrupted() == [1])
    said = tenure("journal", "list", works.directory).stdout
    short = re.findall(r"^  decide +([0-9a-f]{10}) interrupted", said, re.MULTILINE)
    assert 1 == len(short)
    assert "1 interrupted" in tenure("status", works.directory).stdout
    done = tenure("journal", "retry", works.directory, short[0], "--yes")
    assert (0, "") == (done.returncode, done.stderr)
    until(lambda: 1 in works.by(leader.pid))  # it takes what is left behind
    life = found("why", works.directory, "1")
    started = [row["pid"] for row in life["decisions"] if row["action"] == "start"]
    assert [second.pid, leader.pid] == started
    (retried,) = [row for row in life["decisions"] if row["action"] == "retry" and row["person"]]
    assert f"(uid {os.getuid()})" in retried["by"]
    assert 1 == tenure("journal", "discard", works.directory, short[0], "--yes").returncode


def test_copies_of_a_directory_at_work_are_read(works: Works) -> None:
    """All processes are stopped wherever they are, and the directory is copied."""
    fleet = works.fleet(2)
    for number in range(6):
        works.push(*[working.thread for working in fleet] * 10)
        executes_more(works, 3)
        for working in fleet:
            working.kill(signal.SIGSTOP)
        until(lambda: all(state(working.pid) == "T" for working in fleet))
        executed = works.began()
        copy = works.root / f"copy{number}"
        shutil.copytree(works.directory, copy, ignore=lambda place, names: sockets(Path(place), names))
        for working in fleet:
            working.kill(signal.SIGCONT)
        listed = found("journal", "list", copy, "--all", "--limit", "1000")
        states = {row["updates"][0]: row["state"] for row in listed["receipts"]}
        # What was begun is written down before it happens.
        assert all(states.get(update) in ("started", "done") for update in executed), (states, executed)
        assert {update for update, found in states.items() if found == "done"} <= set(executed)
        assert listed == found("journal", "list", copy, "--all", "--limit", "1000") | {"atMs": listed["atMs"]}
    works.settles()


def executes_more(works: Works, count: int) -> None:
    """Wait until so many more are executed."""
    before = len(works.began())
    until(lambda: len(works.began()) >= before + count)


def sockets(place: Path, names: list[str]) -> list[str]:
    """Those that are no files."""
    return [name for name in names if stat.S_ISSOCK((place / name).lstat().st_mode)]


# A process that is in the middle of a transaction that has begun to overwrite the file.
TEAR = """
import sqlite3, sys
writer = sqlite3.connect(sys.argv[1], isolation_level=None)
writer.execute("PRAGMA journal_mode = TRUNCATE")
writer.execute("PRAGMA cache_size = 1")
writer.execute("BEGIN IMMEDIATE")
writer.execute("UPDATE decisions SET detail = printf('%.4000c', 'x')")
writer.execute("UPDATE meta SET fence = 99")
print("torn", flush=True)
sys.stdin.read()
"""


def test_a_directory_that_cannot_be_written_is_read_if_nothing_is_to_be_undone(works: Works) -> None:
    (leader,) = works.fleet(1)
    works.push(*[leader.thread] * 5)
    works.settles()
    leader.kill()
    leader.ends()
    state_directory = works.directory / "tmp" / "telegram"
    file = state_directory / "journal.db"
    fence = found("journal", "list", works.directory)["fence"]

    def bound() -> subprocess.CompletedProcess[str]:
        """A look at it where nothing may be written."""
        file.chmod(0o400)
        state_directory.chmod(0o500)
        try:
            return tenure("journal", "list", works.directory, "--json", bound=True)
        finally:
            state_directory.chmod(0o700)
            file.chmod(0o600)

    done = bound()
    assert (0, "") == (done.returncode, done.stderr)
    assert fence == json.loads(done.stdout)["fence"]
    writer = subprocess.Popen(
        [sys.executable, "-c", TEAR, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert "torn\n" == writer.stdout.readline()
    writer.kill()
    writer.communicate()
    torn = file.read_bytes()
    done = bound()
    assert 2 == done.returncode
    assert f"tenure: {file}: a process died in the middle of a transaction, and that cannot be undone" in done.stderr
    assert "copy the directory and look at the copy" in done.stderr
    assert torn == file.read_bytes()
    assert fence == found("journal", "list", works.directory)["fence"]
    assert torn != file.read_bytes()
    refused = tenure("journal", "list", works.directory, bound=True)
    assert 0 == refused.returncode
    file.chmod(0o000)
    unreadable = tenure("journal", "list", works.directory, bound=True)
    assert 2 == unreadable.returncode
    assert f"tenure: {file}: " in unreadable.stderr
    assert "give this user the right" in unreadable.stderr
    file.chmod(0o600)


def test_a_queued_item_is_moved_by_hand(works: Works) -> None:
    """To a follower by its slot, on to the leader by its pid; what runs stays."""
    leader, second, third = works.fleet(3, "600")
    works.push(second.thread, second.thread)
    until(lambda: works.by(second.pid) == [1])
    slots = {
        follower["pid"]: follower["slot"]
        for fleet in found("status", works.directory)["fleets"]
        for follower in fleet["followers"]
    }
    done = tenure("handoff", works.directory, "2", "--to", slots[third.pid])
    assert (0, "") == (done.returncode, done.stderr)
    assert "moved to " in done.stdout
    until(lambda: works.by(third.pid) == [2])
    runs = tenure("handoff", works.directory, "1", "--to", slots[third.pid])
    assert 1 == runs.returncode
    assert "it has begun, and is not moved any more" in runs.stdout
    works.push(second.thread)
    until(lambda: any(row["updates"] == [3] for row in found("journal", "list", works.directory)["receipts"]))
    assert 0 == tenure("handoff", works.directory, "3", "--to", leader.pid).returncode
    until(lambda: works.by(leader.pid) == [3])
    life = found("why", works.directory, "3")
    actions = [row["action"] for row in life["decisions"] if row["subject"] == life["receipts"][0]["receipt"]]
    assert ["take", "offer_to", "accept", "start"] == actions
    assert [1] == works.by(second.pid)
    assert (
        "tenure: --to Nobody: no instance, pid, slot or name of this fleet; there are"
        in tenure("handoff", works.directory, "1", "--to", "Nobody").stderr
    )


def test_what_a_dead_owner_had_is_moved_by_hand(works: Works) -> None:
    """The leader, which is busy, takes what was left, and offers it on."""
    leader, second, third = works.fleet(3, "600")
    works.push(leader.thread, second.thread, second.thread)
    until(lambda: (works.by(leader.pid), works.by(second.pid)) == ([1], [2]))
    # What is only admitted is nobody's yet: then there is no dead owner.
    until(lambda: [row.phase for row in works.listing().receipts] == ["started", "started", "queued"])
    second.kill()
    second.ends()
    done = tenure("handoff", works.directory, "3", "--to", third.pid)
    assert 0 == done.returncode, (done.stdout, done.stderr, tenure("why", works.directory, "3").stdout)
    until(lambda: works.by(third.pid) == [3])
    owners = [row["pid"] for row in found("why", works.directory, "3")["decisions"] if row["action"] == "take"]
    assert [second.pid, leader.pid] == owners
