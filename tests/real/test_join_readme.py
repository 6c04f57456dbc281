"""The README's fleet, done as it says: three terminals, the leader killed, and what `tenure status` shows then."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.conftest import Zygote
from tests.real.joins import Joins

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def joins(zygote: Zygote, tmp_path: Path) -> Iterator[Joins]:
    """A directory, and the processes in it."""
    found = Joins(zygote, tmp_path)
    yield found
    found.close()


def shape(text: str) -> list[str]:
    """What does not differ from one time to the next: no pids, names, ages, identities."""
    lines = []
    for line in text.splitlines():
        line = re.sub(r"\(running, python[\d.]*\)", "(running, tenure)", line)  # `python -m` is not called tenure
        plain = re.sub(r"\((?!running)\w+\)|epoch 2, \w+, thread", "NAME", line.partition(", heartbeat")[0])
        lines.append(re.sub(r"\b\d+(:\d+)+\b|\bpid \d+|\d+\.\d s", "N", plain))
    return lines


def test_three_terminals(joins: Joins) -> None:
    """Lines as they are shown."""
    section = README.read_text(encoding="utf-8").partition("## A fleet")[2].partition("\n## ")[0]
    _, first, second, leads, follows, status = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    leader, birch, cedar = joins.fleet(3, lease=8.0)
    assert shape("\n".join(leader.roles)) == shape(first)
    assert shape("\n".join(birch.roles)) == shape(second)
    before, behind = len(cedar.roles), len(birch.roles)
    joins.until(lambda: f"slot {birch.slot}" in status_of(joins) and f"slot {cedar.slot}" in status_of(joins))

    leader.kill()
    birch.becomes("leading with epoch 2")
    cedar.becomes(f"following pid {birch.pid}")
    assert_shown(birch.roles[behind:], leads)
    said = [line for line in cedar.roles[before:] if line in follows or line.startswith(f"following pid {birch.pid}")]
    assert_shown(said, follows)
    assert shape(status_of(joins))[1:5] == shape(status)


def assert_shown(said: list[str], shown: str) -> None:
    """In this order, the last one certainly; on a busy machine some are skipped."""
    lines = shape(shown)
    rest = iter(lines)
    assert all(line in rest for line in shape("\n".join(said))), said
    assert shape(said[-1]) == lines[-1:]


def status_of(joins: Joins) -> str:
    command = [sys.executable, "-m", "tenure.adapters.cli", "status", str(joins.directory)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
