"""The README's work, done as it says: three terminals, an item handed over, its neighbour's process killed, and what a
person is shown and decides."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.real.conftest import until

README = Path(__file__).parents[2] / "README.md"
SECTION = README.read_text(encoding="utf-8").partition("## Work")[2].partition("\n## ")[0]
PATIENCE = 60.0


def program() -> str:
    """`work.py`, as the section says that it is made."""
    (code,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    stays = re.search(r"instead of these three lines: (.*)$", code, re.MULTILINE)
    head = re.search(r"with `(from [^`]*)` and `(DIR[^`]*)` above it", SECTION)
    assert stays is not None
    assert head is not None
    main, _, end = code.rpartition("\n\n\n")
    lines = main.splitlines()[:-3]
    return "\n".join([head[1], "", head[2], *lines, f"        {stays[1]}", "", "", end])


class Terminals:
    """Shells, each with one `work.py`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.all: list[subprocess.Popen[bytes]] = []

    def start(self) -> int:
        """The pid of a process more, once it is in the fleet."""
        output = self.root / f"out{len(self.all)}"
        with output.open("wb") as file:
            shell = subprocess.Popen(
                ["sh", "-c", '"$0" -u work.py; :', sys.executable],
                cwd=self.root,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.all.append(shell)
        until(lambda: re.search("^(leading|following)", output.read_text(), re.MULTILINE), PATIENCE)
        return int(Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text())

    def close(self) -> None:
        """End them all."""
        for shell in self.all:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    (tmp_path / "work.py").write_text(program(), encoding="utf-8")
    (tmp_path / "agent").mkdir()
    found = Terminals(tmp_path)
    yield found
    found.close()


def typed(root: Path, command: str) -> str:
    """What a command line of the section prints."""
    tenure = f"'{sys.executable}' -m tenure.adapters.cli"
    line = command.replace(".venv/bin/tenure", tenure)
    done = subprocess.run(line, shell=True, cwd=root, capture_output=True, text=True, timeout=60)
    assert (0, "") == (done.returncode, done.stderr), done
    return done.stdout


def shape(text: str) -> list[str]:
    """What does not differ from one time to the next; wrapped lines whole. A guard is no end of a line."""
    lines = []
    for line in re.sub(r"\n {17,}(?! |[A-Z][a-z ]+, \w+)", " ", text).splitlines():
        line = re.sub(r"\b(manual|cwd):\S+(?=:)", "BINDING", line)
        line = re.sub(r"\d\d:\d\d:\d\d\.\d{3}|\b[0-9a-f]{10}\b|\b\d+:\d+\b|\bpid \d+|\b\d+\.\d s", "N", line)
        lines.append(re.sub(r" +", " ", re.sub(r"slot (.), \w+", r"slot \1, NAME", line)).strip())
    return lines


def shows(shown: str, promised: str) -> bool:
    """Whether each promised line, or what it says before its `...`, was shown, in this order."""
    rest = iter(shape(shown))
    return all(
        any(line.startswith(start) for line in rest)
        for start in (one.partition("...")[0].strip() for one in shape(promised))
        if start
    )


def steps() -> list[tuple[str, str]]:
    """The command lines of the section, and what each of them prints."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```text\n(.*?)```", SECTION, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def test_four_terminals(terminals: Terminals) -> None:
    root = terminals.root
    _, second, _ = (terminals.start() for _ in range(3))
    (pushes, nothing), (first, listed), (handoff, moved), (again, stuck), (why, life), (retry, retried) = steps()
    assert "" == typed(root, pushes) == nothing
    until(lambda: shows(typed(root, first), re.sub(r", \d of 5 attempts failed", "", listed)), PATIENCE)
    assert shows(typed(root, handoff), moved.replace(": started there", ":"))  # or it is queued there at that moment
    assert re.search(r"`kill -9 \d+`", SECTION)
    os.kill(second, signal.SIGKILL)
    until(lambda: shows(typed(root, again), stuck), PATIENCE)
    assert shows(typed(root, why), life)
    assert shows(typed(root, retry), re.sub(r"by .*", "by", retried))


def test_what_is_not_shown_is_missed() -> None:
    """Lines are looked for in their order, up to their dots."""
    shown = "  decide       a02affd2b2 failed: it failed each time\n  now          a02affd2b2 done\n"
    assert shows(shown, "  ...\n  decide       0123456789 failed: ...\n  now          0123456789 done\n")
    assert not shows(shown, "  decide       0123456789 interrupted\n")
    assert not shows(shown, "  now          0123456789 done\n  decide       0123456789 failed\n")
