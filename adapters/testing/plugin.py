"""The kit as pytest fixtures: ``pytest_plugins = ["tenure.adapters.testing.plugin"]`` in a conftest.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.adapters.testing.agent import FakeAgent
from tenure.adapters.testing.faulty import FaultyFiles
from tenure.adapters.testing.memory import FakeClock, MemoryFiles
from tenure.adapters.trace.api import TraceRecorder, explained


@pytest.fixture
def fake_clock() -> FakeClock:
    """Clocks that move when told."""
    return FakeClock()


@pytest.fixture
def memory_files() -> MemoryFiles:
    """An empty file system."""
    return MemoryFiles("/")


@pytest.fixture
def faulty_files(memory_files: MemoryFiles) -> FaultyFiles:
    """The same, with a `plan` of what fails."""
    return FaultyFiles(memory_files)


@pytest.fixture
def fake_agent() -> Iterator[FakeAgent]:
    """An agent directory with processes, in memory. When the test is over, what they did must be a behaviour of the
    specification."""
    agent = FakeAgent()
    yield agent
    agent.assert_explained()


@pytest.fixture
def trace_recorder(tmp_path: Path) -> Iterator[TraceRecorder]:
    """A recorder into files of a temporary directory, for ports of real processes; explained in the end."""
    recorder = TraceRecorder(tmp_path / "trace")
    yield recorder
    recorder.close()
    verdict = explained(tmp_path / "trace")
    assert verdict, str(verdict)
