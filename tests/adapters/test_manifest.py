"""The manifest is read strictly: whatever is forgotten, misspelt or idle is a problem with a name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tenure.adapters.verify import cfg, manifest
from tenure.adapters.verify.manifest import ManifestError, ModuleEntry
from tenure.machines.laws import Kind

MANIFEST = """
[Transaction]
twin = "tenure.models.transaction:Transaction"

[Transaction.coverage]
actions = 8
rows = 6
refusals = 10

[Transaction.config.three]
states = 36
transitions = 242
properties = ["TypeOK", "OneInside", "LiveHolderKept", "EventuallyFree"]

[Transaction.guard.nobody_inside]
law = "Fence"
property = "OneInside"
config = "three"

[Transaction.guard.holder_is_gone]
law = "Proof"
property = "LiveHolderKept"
config = "three"

[Transaction.guard.death_frees]
law = "Proof"
property = "EventuallyFree"
config = "three"
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    source = manifest.spec_directory()
    for name in ("Transaction.tla", "MCTransaction.tla", "Transaction_three.cfg"):
        shutil.copy(source / name, tmp_path / name)
    (tmp_path / "manifest.toml").write_text(MANIFEST, encoding="utf-8")
    return tmp_path


def edit(spec: Path, name: str, old: str, new: str) -> None:
    path = spec / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def load(spec: Path) -> ModuleEntry:
    return manifest.load(spec)["Transaction"]


def test_a_good_manifest_has_no_problem(spec: Path) -> None:
    entry = load(spec)
    assert () == entry.problems
    assert {"nobody_inside", "holder_is_gone", "death_frees"} == entry.guards.keys()
    assert Kind.PERMIT is entry.guards["death_frees"].kind
    assert (36, 242) == (entry.configs["three"].states, entry.configs["three"].transitions)
    assert "MCTransaction" == entry.root


def test_the_installed_manifest_names_every_module_that_is_there() -> None:
    assert {p.stem.removeprefix("MC") for p in manifest.spec_directory().glob("MC*.tla")} <= manifest.load(
        manifest.spec_directory()
    ).keys()


@pytest.mark.parametrize(
    ("old", "new", "stage", "says"),
    [
        ('law = "Fence"', 'lawn = "Fence"', "red", "unknown key lawn"),
        ('law = "Fence"', 'lawn = "Fence"', "red", "[Transaction.guard.nobody_inside] lacks law"),
        ('law = "Fence"', 'law = "Proof"', "red", "says Proof, its mark in Python says Fence"),
        ("states = 36", 'states = "36"', "spec", "states should be int"),
        ("states = 36", "states = true", "spec", "states should be int"),
        ("[Transaction.guard.nobody_inside]", "[Transaction.guard.nobody]", "red", "nobody: neither a machine nor"),
        ("[Transaction.guard.nobody_inside]", "[Transaction.guard.nobody]", "red", "nobody_inside: nothing shows"),
        ('config = "three"', 'config = "four"', "red", "nobody_inside: there is no configuration four"),
        ('property = "OneInside"', 'property = "NotThere"', "red", "Transaction_three.cfg does not check NotThere"),
        ('property = "OneInside"', 'property = "TypeOK"', "red", "TypeOK shows no harm"),
        ('"OneInside", ', "", "spec", "three: only in the .cfg: OneInside"),
        ('"OneInside", ', '"OneInside", "More", ', "spec", "three: only in the manifest: More"),
        ('config = "three"', 'config = "three"\nwith = ["nobody_inside"]', "red", "no other guard of this module"),
        ("[Transaction.config.three]", "[Transaction.config.four]", "spec", "Transaction_four.cfg: No such file"),
        ("[Transaction.config.three]", "[Transaction.config.four]", "twin", "CONFIGS has three, the manifest has no"),
        ("[Transaction.config.three]", "[Transaction.config.four]", "spec", "Transaction_three.cfg is there"),
        ("[Transaction.coverage]", "[Transaction.cover]", "spec", "unknown key cover"),
        ("[Transaction.coverage]", "[Transaction.cover]", "twin", "no [Transaction.coverage]"),
        ("refusals = 10", "refuse = 10", "twin", "lacks refusals"),
        (":Transaction", ":Nothing", "twin", "cannot be imported"),
        ("tenure.models.transaction:", "tenure.models.nothing:", "twin", "cannot be imported"),
        (":Transaction", ":State", "twin", "wants a World State"),
        ('["TypeOK", "OneInside"', '[3, ["x"], "OneInside"', "spec", "properties should be a list of str"),
        ('config = "three"', 'config = "three"\nwith = [[1]]', "red", "with should be a list of str, is [[1]]"),
        ('config = "three"', 'config = "three"\nholes = [1]', "red", "holes should be a list of str"),
        ('config = "three"', 'config = ["three"]', "red", "config should be str"),
        (
            "states = 36",
            'thorough = ["OneInside"]\nstates = 36',
            "spec",
            "thorough names OneInside, which is none",
        ),
        ("states = 36", 'thorough = ["EventuallyFree"]\nstates = 36', "spec", "EventuallyFree is thorough wherever"),
    ],
)
def test_what_is_wrong_is_named(spec: Path, old: str, new: str, stage: str, says: str) -> None:
    edit(spec, "manifest.toml", old, new)
    assert any(p.stage == stage and says in p.message for p in load(spec).problems), load(spec).problems


@pytest.mark.parametrize(
    ("name", "old", "new", "stage", "says"),
    [
        ("Transaction.tla", 'Guard("nobody_inside"', 'Guard("nobody"', "twin", "nobody: Transaction.tla has this"),
        ("Transaction.tla", 'Guard("nobody_inside"', 'Guard("nobody"', "twin", "nobody_inside: the twin has this"),
        ("Transaction.tla", 'Permit("death_frees"', 'Guard("death_frees"', "twin", "guard in TLA+, a permit in Python"),
        ("Transaction_three.cfg", "    OneInside\n", "", "twin", "only in the twin: OneInside"),
        ("Transaction_three.cfg", "    EventuallyFree\n", "", "twin", "EventuallyFree"),
        ("Transaction_three.cfg", "    OneInside\n", "    OneInside\n    More\n", "twin", "has no More of INVARIANTS"),
        ("Transaction_three.cfg", "    EventuallyFree\n", "    OneInside\n", "twin", "no OneInside of PROPERTIES"),
        ("Transaction_three.cfg", "    Off = {}\n", "", "spec", "exactly one line Off = {}"),
        ("Transaction_three.cfg", "Off = {}", 'Off = {"nobody_inside"}', "spec", "exactly one line Off = {}"),
        ("Transaction_three.cfg", "INVARIANTS", "SYMMETRY Perms\nINVARIANTS", "spec", "SYMMETRY has no place"),
    ],
)
def test_the_files_are_held_against_the_twin(spec: Path, name: str, old: str, new: str, stage: str, says: str) -> None:
    edit(spec, name, old, new)
    assert any(p.stage == stage and says in p.message for p in load(spec).problems), load(spec).problems


def test_a_guard_in_a_comment_is_none(spec: Path) -> None:
    edit(spec, "Transaction.tla", "Repair ==", '\\* Guard("ghost", x)\n(* Guard("spirit", y) *)\nRepair ==')
    assert () == load(spec).problems


def test_a_module_that_nobody_lists(spec: Path) -> None:
    (spec / "MCOther.tla").write_text("---- MODULE MCOther ----\n====\n", encoding="utf-8")
    (problem,) = manifest.load(spec)["Other"].problems
    assert "the manifest has no [Other]" in problem.message


def test_nothing_excuses_a_property_that_no_guard_needs(spec: Path) -> None:
    path = spec / "manifest.toml"
    path.write_text(MANIFEST + '\n[Transaction.hole.K1]\nproperty = "OneInside"\n', encoding="utf-8")
    assert any("unknown key hole" in p.message for p in load(spec).problems)


def test_no_manifest_and_no_toml_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"manifest\.toml: No such file"):
        manifest.load(tmp_path)
    (tmp_path / "manifest.toml").write_text("[Transaction\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=r"manifest\.toml"):
        manifest.load(tmp_path)
    (tmp_path / "manifest.toml").write_text("twin = 1\n", encoding="utf-8")
    with pytest.raises(ManifestError, match="twin is not a table"):
        manifest.load(tmp_path)


# -- configurations ---------------------------------------------------------------------------------------------------

CFG = """\\* a comment
SPECIFICATION Spec
CONSTANTS
    Threads = {"a", "b"}  (* two *)
    Off = {}
INVARIANTS
    TypeOK
    One
INVARIANT Two
PROPERTIES Ever
"""


def test_a_red_configuration_differs_in_off_and_in_what_is_checked() -> None:
    read = cfg.parse(CFG)
    assert ("TypeOK", "One", "Two") == read.invariants
    assert ("Ever",) == read.properties
    red = read.text(["b", "a"], ["Ever"])
    assert 'Off = {"a", "b"}' in red
    assert 'Threads = {"a", "b"}' in red
    again = cfg.parse(red.replace('Off = {"a", "b"}', "Off = {}"))
    assert ((), ("Ever",)) == (again.invariants, again.properties)
    assert ((), ()) == (cfg.parse(read.text((), ())).invariants, cfg.parse(read.text((), ())).properties)
    assert read.names == cfg.parse(read.text()).names


def test_text_outside_a_section_is_refused() -> None:
    with pytest.raises(cfg.CfgError, match="outside any section"):
        cfg.parse("Off = {}\nSPECIFICATION Spec\n")
