"""Three `tenure join`: who leads, who follows, and what becomes of them when the leader dies, hangs or leaves."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.conftest import Zygote, state, stop
from tests.real.joins import Join, Joins


@pytest.fixture
def joins(zygote: Zygote, tmp_path: Path) -> Iterator[Joins]:
    """A directory, and the processes in it."""
    found = Joins(zygote, tmp_path)
    yield found
    found.close()


def test_the_lowest_slot_leads_next(joins: Joins) -> None:
    """Within a second; the other is registered with it within one grace, anew, with the slot and name it had."""
    leader, second, third = joins.fleet(3, lease=8.0)
    first, last = sorted((second, third), key=lambda join: join.slot)
    slot, name, generation = last.slot, last.name, last.generation
    assert leader.slot < first.slot < last.slot
    assert "" not in (name, first.name)
    assert name != first.name

    began = time.monotonic()
    leader.kill()
    first.becomes("leading with epoch 2", 1.0)
    last.becomes(f"following pid {first.pid}", 2.5)

    assert time.monotonic() - began < 3.5
    assert first.role.startswith(f"leading with epoch 2, slot {first.slot} ({first.name})")
    assert (last.slot, last.name) == (slot, name)
    assert last.generation != generation
    assert joins.leading() == [first]


def test_a_leader_that_is_stopped_outside_the_guard(joins: Joins) -> None:
    """It is replaced within stale time and one grace after its last heartbeat on disk, and never earlier; when it goes
    on it does nothing as leader, and follows."""
    lease = 2.0
    leader, second, third = joins.fleet(3, lease=lease)
    stop(leader.pid, joins.registry)
    heartbeat = joins.registry.stat().st_mtime
    winner = joins.until(lambda: next(iter(j for j in (second, third) if j.role.startswith("leading")), None))
    waited = time.time() - heartbeat
    assert lease <= waited < lease + lease * 2.5 / 8 + 0.5
    other = third if winner is second else second
    other.becomes(f"following pid {winner.pid}", 3.0)  # no call waits for the one that hangs: that is 7.5 s (K3)

    leader.kill(signal.SIGCONT)
    leader.becomes(f"following pid {winner.pid}")
    assert joins.leading() == [winner]


def test_a_leader_that_leaves(joins: Joins) -> None:
    """The next one needs no grace: nobody owns the lease."""
    leader, second, third = joins.fleet(3)
    leader.kill(signal.SIGTERM)
    assert leader.ends() == 128 + signal.SIGTERM
    winner: Join = joins.until(lambda: next(iter(joins.leading()), None))
    other = third if winner is second else second
    assert winner.slot < other.slot
    other.becomes(f"following pid {winner.pid}")


def test_two_processes_of_one_shell(joins: Joins) -> None:
    """They share a parent, and so a profile key; neither evicts the other."""
    _, second, third = joins.fleet(3)
    before = (second.generation, third.generation)
    time.sleep(1.5)  # six heartbeats: an eviction would show at the next one
    assert (second.generation, third.generation) == before
    assert second.slot != third.slot


def test_the_endpoint_is_removed(joins: Joins) -> None:
    """The leader publishes it again, and leads on; nobody is promoted over it."""
    leader, second = joins.fleet(2)
    joins.endpoint.unlink()
    joins.until(joins.endpoint.exists)
    second.becomes(f"following pid {leader.pid}")
    third = joins.start()
    third.becomes(f"following pid {leader.pid}")
    assert joins.leading() == [leader]
    assert leader.role.startswith("leading with epoch 1")


def test_a_dead_favourite(joins: Joins) -> None:
    """The smaller slot is stopped, so the other lets one grace pass and leads."""
    leader, second, third = joins.fleet(3)
    first, last = sorted((second, third), key=lambda join: join.slot)
    first.kill(signal.SIGSTOP)
    joins.until(lambda: state(first.pid) == "T")
    leader.kill()
    last.becomes("leading with epoch 2")
    first.kill(signal.SIGCONT)
    first.becomes(f"following pid {last.pid}")
    assert joins.leading() == [last]


def test_a_profile_of_its_own(joins: Joins) -> None:
    """Two fleets in one directory know nothing of each other."""
    joins.start().becomes("leading with epoch 1")
    joins.start("--profile", "other").becomes("leading with epoch 2")  # epochs are the directory's
    joins.start("--profile", "other").becomes("following")
    assert len(joins.leading()) == 2
