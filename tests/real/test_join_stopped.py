"""Followers that their users stop for a while (Ctrl-Z): silent for longer than a leader routes to them, and alive."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.conftest import Zygote, state
from tests.real.joins import Joins


@pytest.fixture
def joins(zygote: Zygote, tmp_path: Path) -> Iterator[Joins]:
    """A directory, and the processes in it."""
    found = Joins(zygote, tmp_path)
    yield found
    found.close()


def test_a_newcomer_of_the_same_shell_takes_nothing_from_one_that_is_stopped(joins: Joins) -> None:
    """L24: it asks under a key of its own; the one that goes on has its slot, thread and name still."""
    _, follower = joins.fleet(2, lease=1.0)
    slot, name, generation = follower.slot, follower.name, follower.generation
    follower.kill(signal.SIGSTOP)
    joins.until(lambda: state(follower.pid) == "T")
    joins.until(lambda: '"busFollowers": []' in (joins.registry.parent / "state.json").read_text())  # pruned

    newcomer = joins.start(lease=1.0)
    newcomer.becomes("following")
    assert newcomer.slot not in ("", slot)
    follower.kill(signal.SIGCONT)
    joins.until(lambda: follower.role.startswith("following") and follower.generation != generation)
    assert (slot, name) == (follower.slot, follower.name)
    assert newcomer.role.startswith("following")
