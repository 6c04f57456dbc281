"""The Python of README runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tenure.adapters.trace.api import assert_explained

ROOT = Path(__file__).parents[2]


def blocks(text: str) -> list[str]:
    """The code of all Python blocks."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


CODE = blocks((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", range(len(CODE)))
def test_a_block_runs(number: int, tmp_path: Path) -> None:
    """In a directory of its own, DIR; what it records there is explained."""
    names: dict[str, object] = {"DIR": tmp_path}
    exec(compile(CODE[number], f"README.md block {number}", "exec"), names)

    if (tmp_path / "trace").is_dir():
        assert "written under epoch 1" == (tmp_path / "log").read_text(encoding="utf-8")
        names["recorder"].close()  # type: ignore[attr-defined]
        assert_explained(tmp_path / "trace")


def test_blocks_are_found() -> None:
    """There are some, and other languages are none."""
    assert len(CODE) >= 2
    assert blocks("```python\nx = 1\n```\n```text\ny\n```\n") == ["x = 1\n"]
