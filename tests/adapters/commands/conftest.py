"""What the tests of commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.commands.desk import Desk, Tenure


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A directory of its own."""
    return Desk(tmp_path / "agent")


@pytest.fixture
def tenure(capsys: pytest.CaptureFixture[str]) -> Tenure:
    """The commands."""
    return Tenure(capsys)
