"""The README's walk-through, executed as it stands: each command, the lines it promises, and its exit status."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


@attrs.frozen
class Command:
    """A command, the lines that its output has in this order, and how it ends."""

    line: str
    expected: tuple[str, ...]
    status: int


def commands(text: str) -> list[Command]:
    """The commands of all console blocks. ``# exit N`` is the status of the command before it, 0 where it is not."""
    found: list[Command] = []
    for block in _BLOCK.findall(text):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Command(line[2:], (), 0))
            elif line.startswith("# exit "):
                found[-1] = attrs.evolve(found[-1], status=int(line.removeprefix("# exit ")))
            elif line.strip():
                found[-1] = attrs.evolve(found[-1], expected=(*found[-1].expected, line.strip()))
    return found


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with a `.venv` that finds the packages already installed, but not tenure itself."""
    place = tmp_path_factory.mktemp("clone") / "tenure"
    ignore = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", "*.egg-info", ".hypothesis", ".*_cache")
    shutil.copytree(ROOT, place, ignore=ignore)
    venv.create(place / ".venv", with_pip=True)
    python = place / ".venv" / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    # The clone's own site-packages come first, so its tenure hides the one under test.
    (Path(site) / "installed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    subprocess.run([place / ".venv" / "bin" / "pip", "install", "--quiet", "--no-deps", "."], cwd=place, check=True)
    return place


def test_the_walk_through_works_as_written(clone: Path, tmp_path: Path) -> None:
    """Every command of the README ends as it says and prints what it says, in that order."""
    steps = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(steps) >= 9
    environment = dict(os.environ, TENURE_CACHE=str(tmp_path / "cache"), COLUMNS="120")
    for step in steps:
        done = subprocess.run(
            step.line,
            shell=True,
            cwd=clone,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == step.status, f"$ {step.line}\n{done.stdout}"
        rest = done.stdout
        for line in step.expected:
            _, found, rest = rest.partition(line)
            assert found, f"$ {step.line}\nmisses {line!r} in\n{done.stdout}"


def test_commands_are_read_off_the_text() -> None:
    """A block's commands, their promised lines and statuses are what the text says."""
    text = "x\n```console\n$ one\nsays this\n# exit 3\n$ two\n```\n"
    assert commands(text) == [Command("one", ("says this",), 3), Command("two", (), 0)]
