"""The tables and diagrams of every machine, committed as text, so that a change in what is refused shows in review.

After a deliberate change: ``UPDATE_GOLDEN=1 python -m pytest tests/machines/test_golden.py`` and read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tenure.adapters.machines_found import Machine, machines

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("UPDATE_GOLDEN", "") not in ("", "0")

FORMS = {
    ".txt": lambda machine: machine.table.text(),
    ".mmd": lambda machine: f"{machine.chart:mermaid}",
}


@pytest.mark.parametrize("suffix", FORMS)
@pytest.mark.parametrize("machine", machines(), ids=lambda machine: machine.name)
def test_golden(machine: Machine, suffix: str) -> None:
    """The table text and the library's own Mermaid diagram of each chart are the committed ones."""
    path = GOLDEN / f"{machine.name}{suffix}"
    text = FORMS[suffix](machine).rstrip("\n") + "\n"
    if UPDATE:
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    assert path.exists(), f"{machine.name} has no {path.name}: run this test with UPDATE_GOLDEN=1 and review it"
    assert path.read_text(encoding="utf-8") == text


def test_no_golden_file_is_left_over() -> None:
    """A machine that is gone takes its golden files with it."""
    expected = {f"{machine.name}{suffix}" for machine in machines() for suffix in FORMS}

    assert expected == {path.name for path in GOLDEN.iterdir()}


@pytest.mark.parametrize("machine", machines(), ids=lambda machine: machine.name)
def test_every_event_has_a_message(machine: Machine) -> None:
    """Each event of a chart is named by the class of a message, and each message names an event of the chart."""
    assert set(machine.table.events) == {message.event for message in machine.messages}
