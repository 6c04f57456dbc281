"""``spec/GUARDS.md`` is generated, and is current: a guard cannot change without the list of guards saying so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tenure.adapters import guards_md
from tenure.adapters.verify.manifest import spec_directory


@pytest.fixture
def transaction(tmp_path: Path) -> Path:
    """A copy of `spec/` with the one small module, and its list of guards."""
    spec = tmp_path / "spec"
    shutil.copytree(spec_directory(), spec)
    manifest = (spec / "manifest.toml").read_text(encoding="utf-8")
    start = manifest.index("\n[Transaction]\n")
    end = next((manifest.index(line) for line in manifest[start:].splitlines() if _other(line)), len(manifest))
    (spec / "manifest.toml").write_text(manifest[start:end], encoding="utf-8")
    (spec / guards_md.FILE).write_text(guards_md.text(spec), encoding="utf-8")
    return spec


def _other(line: str) -> bool:
    return line.startswith("[") and not line.startswith("[Transaction")


def test_committed_file_is_current() -> None:
    """Red: the manifest, a chart, a comment or a story changed, and `tenure guards > spec/GUARDS.md` was forgotten."""
    assert guards_md.drift(spec_directory()) == ""


def test_every_guard_has_a_meaning() -> None:
    """Each guard says in one sentence what it upholds."""
    spec = spec_directory()
    lengths = guards_md.known_lengths(spec)
    entries = guards_md.load(spec).values()

    assert [row.name for entry in entries for row in guards_md.rows(entry, lengths) if not row.meaning] == []


def test_every_story_has_a_length() -> None:
    """No guard of the committed list is idle."""
    assert [key for key, length in guards_md.known_lengths(spec_directory()).items() if length == 0] == []


def test_current_copy(transaction: Path) -> None:
    """Green: what was just generated is current, and its lengths can be read back."""
    assert guards_md.drift(transaction) == ""
    assert {"nobody_inside", "holder_is_gone", "death_frees"} == {
        name for module, name in guards_md.known_lengths(transaction) if module == "Transaction"
    }


def test_changed_law_is_drift(transaction: Path) -> None:
    """Red: the file says another law than the machine."""
    path = transaction / guards_md.FILE
    path.write_text(path.read_text(encoding="utf-8").replace("| Fence |", "| Fresh |"), encoding="utf-8")

    assert "`nobody_inside`" in guards_md.drift(transaction)


def test_missing_file_is_drift(transaction: Path) -> None:
    """Red: the file is not there."""
    (transaction / guards_md.FILE).unlink()

    assert "is not there" in guards_md.drift(transaction)
