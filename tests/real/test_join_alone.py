"""One `tenure join` whose lease passes while nobody else is there to take it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.conftest import PATIENCE, Zygote, stop, until
from tests.real.joins import Joins


@pytest.fixture
def joins(zygote: Zygote, tmp_path: Path) -> Iterator[Joins]:
    """A directory, and the processes in it."""
    found = Joins(zygote, tmp_path)
    yield found
    found.close()


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives and does nothing."""
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait(PATIENCE)


def test_a_leader_that_was_stopped_past_its_lease(joins: Joins) -> None:
    """As a machine that was suspended: it leads no more, and then it does again, under the next epoch."""
    alone = joins.start(lease=1.0)
    alone.becomes("leading with epoch 1")
    stop(alone.pid, joins.registry)
    subprocess.run(["sleep", "1.2"], check=True)  # its lease is one second long, by the clock of all
    alone.kill(signal.SIGCONT)
    alone.becomes("leading with epoch 2")


def test_a_leader_behind_a_guard_that_is_held_past_its_lease(joins: Joins, holder: subprocess.Popen[bytes]) -> None:
    """It could not renew: it leads no more, and as soon as it can write it does again, under the next epoch."""
    alone = joins.start(lease=1.0)
    alone.becomes("leading with epoch 1")
    name, staged = str(uuid.uuid4()), joins.root / "staged"
    guard = joins.registry.with_name("owners.json.transaction")
    staged.mkdir()
    payload = {"pid": holder.pid, "acquiredAtMs": 1, "generation": name}
    (staged / f"owner.{name}.json").write_text(json.dumps(payload))

    def published() -> bool:
        try:
            staged.rename(guard)
        except OSError:
            return False
        return True

    until(published)
    until(lambda: not alone.role.startswith("leading"))
    shutil.rmtree(guard)
    alone.becomes("leading with epoch 2")
