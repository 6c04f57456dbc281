"""`tenure join` behind a leader that it cannot reach: one line that says what it is, and it keeps waiting."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.conftest import Leads, Zygote, until
from tests.real.joins import Joins


@pytest.fixture
def place() -> Iterator[str]:
    """A directory with a short path: that of an endpoint in a long one is mapped to another directory."""
    with tempfile.TemporaryDirectory(prefix="tenure-") as found:
        yield found


@pytest.fixture
def joins(zygote: Zygote, tmp_path: Path, place: str) -> Iterator[Joins]:
    """A directory, and the processes in it. They are over before `place` is taken away."""
    found = Joins(zygote, tmp_path / "joins")
    yield found
    found.close()


def test_a_leader_without_a_fleet(leads: Leads, joins: Joins) -> None:
    """`tenure lead` publishes no endpoint. When it has ended, this one leads."""
    lead = leads.shell(lease=2.0)
    leads.ran(1)
    join = joins.start(directory=str(leads.directory))
    until(lambda: len(join.roles) > 1)
    leads.never(lambda: len(join.roles) > 2 or join.status is not None, 3.0)  # several times it is tried again
    assert join.roles == [
        "registering",
        f"waiting for the leader to answer: pid {lead.pid} leads, and serves no fleet (it is tenure lead, or another "
        "program); it is waited for until it has ended",
    ]
    assert join.said == ""
    lead.kill(signal.SIGTERM)
    lead.ends()
    join.becomes("leading with epoch 2")


@pytest.mark.parametrize("what", ["a directory", "a file that is no socket"])
def test_something_that_stands_where_the_leader_listened(joins: Joins, place: str, what: str) -> None:
    """It is not ours: nobody takes it away but a person. Then the leader publishes again."""
    leader = joins.start(directory=place)
    leader.becomes("leading")
    endpoint = Path(place) / "tmp" / "telegram" / "bus.sock"
    endpoint.unlink()
    endpoint.mkdir() if what == "a directory" else endpoint.write_text("somebody's")
    join = joins.start(directory=place)
    said = f"{endpoint}: {what} stands where pid {leader.pid} listens for its fleet; move it away"
    join.becomes(f"waiting for the leader to answer: {said}")
    assert endpoint.is_dir() if what == "a directory" else endpoint.read_text() == "somebody's"
    assert join.status is None
    endpoint.rmdir() if what == "a directory" else endpoint.unlink()
    join.becomes(f"following pid {leader.pid}")
