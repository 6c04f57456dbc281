"""What is kept: only what passed, and only for as long as nothing it depends on has changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tenure.adapters.verify import cache, manifest
from tenure.adapters.verify.result import ModuleResult
from tenure.adapters.verify.run import Effort, Options, verify


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    place = tmp_path / "spec"
    place.mkdir()
    for path in manifest.spec_directory().glob("*Transaction*"):
        if "File" not in path.name:
            shutil.copy(path, place)
    text = (manifest.spec_directory() / "manifest.toml").read_text(encoding="utf-8")
    own = [part for part in text.split("\n[") if part.startswith("Transaction")]
    (place / "manifest.toml").write_text("[" + "\n[".join(own), encoding="utf-8")
    return place


def cached(result: ModuleResult) -> set[str]:
    """The rows of red that were not run."""
    return {str(row["guard"]) for s in result.stages for row in s.detail if "guard" in row and row.get("cached")}


def run(spec: Path, place: Path, effort: Effort = Effort.QUICK) -> ModuleResult:
    (result,) = verify([manifest.load(spec)["Transaction"]], Options(effort, cache=place, stages=("red",)))
    return result


def test_quick_runs_again_only_what_changed_and_thorough_everything(spec: Path, tmp_path: Path) -> None:
    guards = {"nobody_inside", "holder_is_gone", "death_frees"}
    place = tmp_path / "cache"
    first = run(spec, place)
    assert set() == cached(first)
    again = run(spec, place)
    assert guards == cached(again)
    assert first.verdict is again.verdict

    manifest_file = spec / "manifest.toml"
    text = manifest_file.read_text(encoding="utf-8")
    manifest_file.write_text(text.replace('property = "EventuallyFree"', 'property = "OneInside"'), encoding="utf-8")
    changed = run(spec, place)
    assert guards - {"death_frees"} == cached(changed), "one guard's entry changed"
    assert guards - {"death_frees"} == cached(run(spec, place)), "what failed is not kept"
    assert set() == cached(run(spec, place, Effort.THOROUGH))


def test_the_key_sees_every_input(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = manifest.load(spec)["Transaction"]
    before = cache.inputs(entry, "jar")
    assert before == cache.inputs(entry, "jar")
    assert before != cache.inputs(entry, "another jar")
    with (spec / "Transaction.tla").open("a", encoding="utf-8") as file:
        file.write("\n")
    assert before != cache.inputs(entry, "jar")


def test_the_sources_are_the_twin_its_machines_and_the_verifier(spec: Path) -> None:
    twin = cache.sources("tenure.models.transaction")
    assert {"tenure.models.world", "tenure.machines.transaction", "tenure.machines.chart"} <= twin.keys()
    assert "tenure.machines.file_transaction" not in twin
    assert {"tenure.adapters.tlc", "tenure.adapters.verify.graphs"} <= cache._verifier().keys()


def test_a_torn_entry_is_no_entry(tmp_path: Path) -> None:
    kept = cache.Cache(tmp_path)
    kept.put("key", {"a": 1})
    assert {"a": 1} == kept.get("key")
    (tmp_path / "verify" / "key.json").write_text('{"a": ', encoding="utf-8")
    assert kept.get("key") is None
    assert kept.get("other") is None


@pytest.mark.parametrize("text", ["{}", "[]", "3", "null", '{"key": "key", "sum": "", "body": {}}'])
def test_an_entry_of_another_shape_is_no_entry(tmp_path: Path, text: str) -> None:
    kept = cache.Cache(tmp_path)
    kept.put("key", {"a": 1})
    (tmp_path / "verify" / "key.json").write_text(text, encoding="utf-8")
    assert kept.get("key") is None


def test_an_entry_under_another_name_or_changed_is_no_entry(tmp_path: Path) -> None:
    kept = cache.Cache(tmp_path)
    kept.put("key", {"a": 1})
    file = tmp_path / "verify" / "key.json"
    shutil.copy(file, file.with_name("other.json"))
    assert kept.get("other") is None
    file.write_text(file.read_text(encoding="utf-8").replace('"a": 1', '"a": 2'), encoding="utf-8")
    assert kept.get("key") is None


def test_a_body_of_another_shape_is_run_again(spec: Path, tmp_path: Path) -> None:
    run(spec, tmp_path / "cache")
    kept = cache.Cache(tmp_path / "cache")
    for file in kept.place.glob("*.json"):
        kept.put(file.stem, {"taken": 3})
    assert set() == cached(run(spec, tmp_path / "cache"))


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    cache.Cache(tmp_path / "file").put("key", 1)


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TENURE_CACHE", str(tmp_path / "mine"))
    assert tmp_path / "mine" == cache.directory()
    monkeypatch.delenv("TENURE_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert tmp_path / "xdg" / "tenure" == cache.directory()
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert Path.home() / ".cache" / "tenure" == cache.directory()
