"""What the tests of the journal share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.journal.journal_room import Room


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A directory of its own."""
    return Room(tmp_path)
