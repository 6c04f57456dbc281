"""What the tests of a lease get: a directory, in memory and a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.adapters.files.posix import PosixFiles

from .lease_house import House


@pytest.fixture(params=["memory", "real"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """The same contract in memory and in a real directory; clocks and processes are ours in both.
    Whatever a test does: no guard and no temporary file is left."""
    made = House() if request.param == "memory" else House(PosixFiles(), str(tmp_path))
    yield made
    if made.inner.kind(made.directory.state) == "directory":
        assert [] == made.left()
