"""Whose a thread or a message was last, as the journal remembers it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.journal import ownership
from tenure.adapters.journal.identity import identity_of_token
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.ownership import About
from tenure.adapters.journal.updates import Incoming


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(real_ports(), agent_directory(tmp_path), bot=identity_of_token("7:x")) as journal:
        yield journal


def test_the_message_comes_before_the_thread(journal: Journal) -> None:
    assert journal.remembered(About()) is None
    assert journal.remembered(About((1, 2), (1, 3))) is None
    journal.remember(About(thread=(1, 2)), "a")
    journal.remember(About(message=(1, 3)), "b")
    assert journal.remembered(About((1, 2), (1, 3))) == "b"
    assert journal.remembered(About((1, 2), (1, 4))) == "a"
    assert journal.remembered(About((1, 3), (1, 2))) is None  # a thread is no message
    assert journal.remembered(About((2, 2))) is None  # of another chat
    journal.remember(About((1, 2), (1, 3)), "c")
    assert journal.remembered(About((1, 2), (1, 4))) == "c"


def test_what_is_brought_to_a_binding_is_its_own(journal: Journal) -> None:
    journal.raise_fence(1, "i")
    journal.end_first_start(1, "i")
    journal.append([Incoming(5, "{}"), Incoming(6, "{}")], 1, "i")
    journal.forward(5, 1, "a", "i", kind="k", about=About((1, 2), (1, 3)))
    journal.keep(6, 1, "b", "i", kind="k", about=About(message=(1, 4)))
    assert journal.remembered(About((1, 2))) == "a"
    assert journal.remembered(About(message=(1, 4))) == "b"
    journal.forward(5, 1, "other", "i", kind="k", about=About((1, 2)))  # refused: it is being sent
    journal.forward(5, 0, "other", "i", kind="k", about=About((1, 2)))
    assert journal.remembered(About((1, 2))) == "a"


def test_only_so_many_are_known(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "KNOWN", 10)
    for number in range(50):
        journal.remember(About((1, 1), (1, number)), "a")
    known = [number for number in range(50) if journal.remembered(About(message=(1, number)))]
    assert 5 <= len(known) <= 10
    assert known[-1] == 49
    assert journal.remembered(About((1, 1))) == "a"  # what is asked for again and again
