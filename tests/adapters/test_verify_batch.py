"""Red twins in one run: the copy that TLC is given, what its answers come to, and when it is not used."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tenure.adapters import dot, tlc
from tenure.adapters.verify import batch, graphs, manifest
from tenure.adapters.verify.batch import Asked, Found
from tenure.adapters.verify.checks import GuardCheck, Tools
from tenure.adapters.verify.manifest import ModuleEntry
from tenure.adapters.verify.together import together
from tenure.models.explore import check, explore

ASKED = [
    Asked(frozenset(["nobody_inside"]), "OneInside"),
    Asked(frozenset(["holder_is_gone"]), "LiveHolderKept"),
    Asked(frozenset(["death_frees"]), "EventuallyFree"),
]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A copy of Transaction, alone."""
    place = tmp_path / "spec"
    place.mkdir()
    source = manifest.spec_directory()
    for path in [*source.glob("*Transaction*"), source / "answers.toml"]:
        if "File" not in path.name:
            shutil.copy(path, place)
    text = (source / "manifest.toml").read_text(encoding="utf-8")
    own = [part for part in text.split("\n[") if part.startswith("Transaction")]
    (place / "manifest.toml").write_text("[" + "\n[".join(own), encoding="utf-8")
    return place


def entry_of(spec: Path) -> ModuleEntry:
    return manifest.load(spec)["Transaction"]


def found(spec: Path, room: Path, asked: list[Asked] = ASKED) -> Found | None:
    room.mkdir(exist_ok=True)
    entry = entry_of(spec)
    return batch.run(tlc.find(), entry, entry.configs["three"], asked, room, 60.0, brief=True)


def test_stories_and_graphs_are_those_of_each_twin_alone(spec: Path, tmp_path: Path) -> None:
    answer = found(spec, tmp_path / "room")
    assert answer is not None
    assert {asked.off for asked in ASKED} == answer.graphs.keys()
    assert {ASKED[0], ASKED[1]} == answer.lengths.keys(), "liveness is asked elsewhere"
    entry = entry_of(spec)
    for asked in ASKED:
        world = entry.world("three", asked.off)
        assert graphs.compare(explore(world), answer.graphs[asked.off]) is None
        if asked in answer.lengths:
            assert check(world, [asked.property]).violations[asked.property].length == answer.lengths[asked]


def test_a_property_that_holds_has_no_story(spec: Path, tmp_path: Path) -> None:
    idle = Asked(frozenset(["death_frees"]), "OneInside")
    answer = found(spec, tmp_path / "room", [ASKED[0], idle])
    assert answer is not None
    assert [ASKED[0]] == list(answer.lengths)


def test_a_step_keeps_the_columns_of_its_bullets(spec: Path, tmp_path: Path) -> None:
    """A bullet that moved would join other things: here the second disjunct belongs to the second conjunct."""
    module = spec / "Transaction.tla"
    step = "Rising == [][ /\\ phase' # phase \\/ holder' # holder\n              /\\ \\/ holder = \"nobody\"\n"
    step += '                 \\/ holder\' # "damaged" ]_vars\n'
    text = module.read_text(encoding="utf-8").replace("OneInside ==", step + "OneInside ==")
    module.write_text(text, encoding="utf-8")
    entry = entry_of(spec)
    written = batch.write(entry, entry.configs["three"], [Asked(frozenset(["nobody_inside"]), "Rising")])
    assert written is not None
    top = written.modules[batch.ROOT].splitlines()
    where = {line.index("/\\ phase"): "first" for line in top if "/\\ phase" in line}
    where |= {line.index("/\\ \\/ holder"): "second" for line in top if "/\\ \\/ holder" in line}
    assert {14: "second"} == where, "both in one column"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    Off         \\*", "    Of          \\*"),
        ("Spec == Init /\\ [][Next]_vars", "Spec == [][Next]_vars /\\ Init"),
        ("Want(t) ==", "Wants(t) =="),
        ("Next ==\n", "Next ==\n    \\/ holder' = 7 /\\ UNCHANGED phase\n"),
        ("    /\\ holder' = t\n", "    /\\ holder' = t[1]\n"),
    ],
)
def test_what_it_does_not_know_it_leaves_alone(spec: Path, tmp_path: Path, old: str, new: str) -> None:
    """Another declaration, another Spec, an action that the twin has not, an error: each twin is run alone then."""
    module = spec / "Transaction.tla"
    text = module.read_text(encoding="utf-8")
    assert old in text
    module.write_text(text.replace(old, new), encoding="utf-8")
    assert found(spec, tmp_path / "room") is None


def test_a_graph_whose_off_changes_is_none() -> None:
    labels = {1: '/\\\\ x = 1\\n/\\\\ Off = {\\"a\\"}', 2: '/\\\\ Off = {\\"b\\"}\\n/\\\\ x = 2'}
    parts = batch.parts_of(dot.Dump(dict(labels), {1, 2}, {(1, "A", 1)}))
    assert {frozenset("a"): {1: "/\\\\ x = 1"}, frozenset("b"): {2: "/\\\\ x = 2"}} == {
        off: part.labels for off, part in parts.items()
    }
    with pytest.raises(dot.DotError, match="changes Off"):
        batch.parts_of(dot.Dump(labels, {1}, {(1, "A", 2)}))


def test_what_passes_is_run_once(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of one guard alone is for what fails."""
    monkeypatch.setattr(GuardCheck, "run", lambda self, tools: pytest.fail(f"{self.title} was run alone"))
    entry = entry_of(spec)
    checks = [GuardCheck(entry, guard) for guard in entry.guards.values()]
    checked = list(together(checks, Tools(tlc.find(), "", 60.0, 1000)))
    assert 3 == len(checked)
    assert all(c.passed and ["red", "twin"] == [stage for stage, _ in c.rows] for c in checked)


@pytest.mark.parametrize("name", sorted(manifest.load(manifest.spec_directory())))
def test_every_module_can_be_taken_together(name: str) -> None:
    """One that could not would be verified all the same, but slowly."""
    entry = manifest.load(manifest.spec_directory())[name]
    for config in entry.configs.values():
        guards = [g for g in entry.guards.values() if g.config == config.name and not g.covered_by]
        asked = [Asked(frozenset([g.name]), g.property) for g in guards]
        written = batch.write(entry, config, asked)
        assert written is not None, config.name
        steps = entry.world(config.name).steps()
        wanted = {a for a in asked if a.property in config.cfg.invariants or a.property in steps}
        assert wanted == set(written.asked.values()), config.name
