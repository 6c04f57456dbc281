"""What `tenure join --trace` records of a whole story is explained by the models."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.conftest import Zygote, stop
from tests.real.joins import Joins

PROGRAM = (sys.executable, "-m", "tenure.adapters.cli")


@pytest.fixture
def joins(zygote: Zygote, tmp_path: Path) -> Iterator[Joins]:
    """A directory, and the processes in it."""
    found = Joins(zygote, tmp_path)
    yield found
    found.close()


def test_a_recorded_fleet_is_explained(joins: Joins, tmp_path: Path) -> None:
    """The leader is killed, its successor is stopped past its lease and goes on as a follower, the endpoint is taken
    away, another joins, one says goodbye, and the last one leads alone."""
    options = ("--trace", str(tmp_path / "trace"))
    first = joins.start(*options, lease=1.0)
    first.becomes("leading")
    others = [joins.start(*options, lease=1.0) for _ in range(2)]
    for join in others:
        join.becomes(f"following pid {first.pid}")
    first.kill()
    second = joins.until(lambda: next(iter(joins.leading()), None))
    (third,) = [join for join in others if join is not second]
    third.becomes(f"following pid {second.pid}")

    stop(second.pid, joins.registry)
    third.becomes("leading")
    second.kill(signal.SIGCONT)
    second.becomes(f"following pid {third.pid}")

    joins.endpoint.unlink()
    fourth = joins.start("--goodbye", *options, lease=1.0)
    fourth.becomes(f"following pid {third.pid}")
    fourth.kill(signal.SIGTERM)
    assert fourth.ends() == 128 + signal.SIGTERM
    third.kill(signal.SIGTERM)
    second.becomes("leading")
    second.kill(signal.SIGINT)
    assert second.ends() == 128 + signal.SIGINT

    done = subprocess.run([*PROGRAM, "trace", "check", str(tmp_path / "trace")], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "events explained" in done.stdout
