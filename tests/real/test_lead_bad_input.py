"""`tenure lead` and what a person has to mend: one line, exit 2, and nothing on disk is different."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.privileges import before_exec

if TYPE_CHECKING:
    from tests.real.conftest import Leads

UUID = "0a0a0a0a-0000-4000-8000-000000000000"


def snapshot(directory: Path) -> dict[str, object]:
    """All that is below a directory: bytes of files, targets of links, names of directories."""
    found: dict[str, object] = {}
    for path in sorted(directory.rglob("*")):
        kind = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(directory))] = kind
    return found


def refusal(leads: Leads, named: str, *command: str, **options: object) -> Callable[[], None]:
    """Start a lead with this input; the answer checks that it ends with one line that names it, and changes nothing."""
    before = snapshot(leads.directory)
    lead = leads.start(*(command or ("touch", str(leads.directory / "ran"))), **options)  # type: ignore[arg-type]

    def check() -> None:
        assert lead.ends() == 2, lead.said
        assert len(lead.said.splitlines()) == 1, lead.said
        assert 1 == lead.said.count(named), lead.said
        assert before == snapshot(leads.directory)
        leads.until(lambda: not leads.processes())

    return check


def refused(leads: Leads, named: str, *command: str, **options: object) -> None:
    """A lead with this input is refused."""
    refusal(leads, named, *command, **options)()


REGISTRIES = ['{"default": {"pid": 1', "[1]", '"text"', "", '{"default": {"pid": 1.5}}', '{"default": {"pid": -4}}']


def test_a_damaged_registry(leads: Leads) -> None:
    """Torn, no object, empty, an implausible pid: nobody can tell who leads."""
    checks = []
    for number, text in enumerate(REGISTRIES):
        room = leads.beside(str(number))
        room.registry.parent.mkdir(parents=True)
        room.registry.write_text(text)
        checks.append(refusal(room, str(room.registry)))
    for check in checks:
        check()


def test_a_damaged_mark(leads: Leads) -> None:
    """Which epochs have been used is not known: none is given out."""
    leads.registry.parent.mkdir(parents=True)
    leads.registry.with_name("epochs.json").write_text("torn")
    refused(leads, "epochs.json")


GUARDS: dict[str, dict[str, str]] = {
    "two files": {f"owner.{UUID}.json": "{}", "another": ""},
    "a foreign name": {"who.json": "{}"},
    "bad JSON": {f"owner.{UUID}.json": '{"pid": '},
    "an implausible pid": {f"owner.{UUID}.json": json.dumps({"pid": 0, "acquiredAtMs": 1, "generation": UUID})},
    "another generation": {f"owner.{UUID}.json": json.dumps({"pid": 1, "acquiredAtMs": 1, "generation": UUID[::-1]})},
}


def test_an_unverifiable_guard(leads: Leads) -> None:
    """Somebody may be inside: nobody enters."""
    checks = []
    for name, files in GUARDS.items():
        room = leads.beside(name)
        guard = room.registry.with_name("owners.json.transaction")
        guard.mkdir(parents=True)
        for file, text in files.items():
            (guard / file).write_text(text)
        checks.append(refusal(room, "owners.json.transaction"))
    for check in checks:
        check()


def test_a_guard_that_is_a_link(leads: Leads) -> None:
    """Not followed."""
    leads.registry.parent.mkdir(parents=True)
    leads.registry.with_name("owners.json.transaction").symlink_to("/nowhere")
    refused(leads, "owners.json.transaction")


@pytest.mark.parametrize("kind", ["directory", "link", "pipe"])
def test_a_lock_that_is_no_file(leads: Leads, kind: str) -> None:
    """Found before there is anything to lead."""
    leads.lock.parent.mkdir(parents=True)
    if kind == "directory":
        leads.lock.mkdir()
    elif kind == "link":
        leads.lock.symlink_to(leads.root / "elsewhere")
    else:
        os.mkfifo(leads.lock)
    refused(leads, "lead.lock")


def test_a_directory_that_is_not_there(leads: Leads) -> None:
    """It is not made."""
    refused(leads, "nowhere: no such directory", directory=leads.root / "nowhere")
    assert not (leads.root / "nowhere").exists()


def test_a_directory_that_cannot_be_written(leads: Leads) -> None:
    """Where nothing can be made, nobody leads."""
    refused(leads, "/proc/self", directory=Path("/proc/self"))
    (leads.directory / "tmp").write_text("a file")
    refused(leads, str(leads.directory / "tmp"))


def test_a_read_only_directory(leads: Leads) -> None:
    """The same, of a directory whose mode forbids it."""
    leads.directory.chmod(0o500)
    command = [sys.executable, "-m", "tenure.adapters.cli", "lead", str(leads.directory), "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=before_exec)
    leads.directory.chmod(0o700)

    assert (2, 1) == (done.returncode, done.stderr.count("\n")), done.stderr
    assert str(leads.directory) in done.stderr
    assert [] == list(leads.directory.iterdir())


def test_a_profile_that_is_no_name(leads: Leads) -> None:
    """Names are those of locks.md 1."""
    profiles = ["main", "Work", "a-b", "x" * 33]
    for check in [refusal(leads, f"profile '{name}'", options=["--profile", name]) for name in profiles]:
        check()


def test_a_command_that_is_not_there(leads: Leads) -> None:
    """Found before there is anything to lead."""
    commands = ["no-such-command", "./no-such-command", "/no/such/command"]
    for check in [refusal(leads, f"{command}: command not found", command) for command in commands]:
        check()


def test_no_command(leads: Leads) -> None:
    """Said, with how to say it."""
    lead = leads.start()
    assert lead.ends() == 2
    assert lead.said == "tenure: lead: no COMMAND; say what to run: tenure lead DIR -- COMMAND...\n"
    assert list(leads.directory.iterdir()) == []


def test_options_that_are_none(leads: Leads) -> None:
    """Usage."""
    options = [["--lease", "0"], ["--lease", "soon"], ["--kill-after", "-1"], ["--leas", "1"]]
    for lead in [leads.start("true", lease=None, options=each) for each in options]:
        assert lead.ends() == 2
    assert list(leads.directory.iterdir()) == []


@pytest.mark.parametrize("stopped", [False, True])
def test_a_guard_that_is_held_is_no_bad_input(leads: Leads, stopped: bool) -> None:
    """Whoever is inside, running or stopped, is waited for."""
    holder = leads.holder()
    if stopped:
        os.kill(holder, signal.SIGSTOP)
        leads.until(lambda: leads.stopped(holder))
    lead = leads.shell()
    lead.says("waiting: ")
    assert str(holder) in lead.said
    leads.never(lambda: lead.status is not None or leads.runs, 0.4)
    os.kill(holder, signal.SIGKILL)
    leads.ran(1)
