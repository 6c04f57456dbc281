"""What a machine tells its adapter is pinned: a changed output turns `twin` red, by its row and with a story."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs
import pytest

from tenure.adapters.verify import answers
from tenure.adapters.verify.coverage import NOTHING, Recorder, Taken, answer, spelled
from tenure.adapters.verify.manifest import ModuleEntry, load, spec_directory
from tenure.models.explore import explore


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the specifications, to doctor."""
    return Path(shutil.copytree(spec_directory(), tmp_path_factory.mktemp("spec") / "spec"))


@pytest.fixture(scope="module")
def taken(spec: Path) -> Taken:
    """What the graphs of a small module take."""
    entry, found = load(spec)["PollLoop"], NOTHING
    for config in entry.configs:
        world, recorder = entry.world(config), Recorder()
        recorder.attach(world)
        explore(world)
        found |= recorder.taken(())
    return found


def entry(spec: Path) -> ModuleEntry:
    """The module as the doctored directory has it."""
    return load(spec)["PollLoop"]


def test_committed_answers_are_current(spec: Path, taken: Taken) -> None:
    """No row answers anything but what is pinned."""
    assert [] == answers.drift(entry(spec), taken)


def test_a_changed_output_names_its_row_and_tells_how_it_comes_about(spec: Path, taken: Taken) -> None:
    """One output less in one answer of one row, and everything else as it was."""
    line = next(line for line in sorted(taken.answers) if not line.endswith("\tnothing"))
    row = line.split("\t")[0]
    silent = answer(row, "asked", "so", ())
    doctored = attrs.evolve(taken, answers=taken.answers - {line} | {silent})
    [message] = answers.drift(entry(spec), doctored)
    assert f"row {row} answers" in message
    assert "1. initially" in message


def test_a_row_that_falls_silent_and_a_row_nobody_pinned_are_drift(spec: Path, taken: Taken) -> None:
    """Neither a lost row nor a new one passes."""
    row = min(taken.answers).split("\t")[0]
    lost = attrs.evolve(taken, answers=frozenset(a for a in taken.answers if not a.startswith(f"{row}\t")))
    assert [f"row {row} answers nothing any more"] == [m.split(";")[0] for m in answers.drift(entry(spec), lost)]
    new = attrs.evolve(taken, answers=taken.answers | {answer("T: new", 0, 0, ())})
    assert "has no such row" in answers.drift(entry(spec), new)[0]


def test_a_module_without_pins_is_drift(spec: Path, taken: Taken) -> None:
    """Answers that are pinned nowhere are not checked, and that is said."""
    path = spec / answers.FILE
    whole = path.read_text(encoding="utf-8")
    try:
        path.write_text(whole.replace("[PollLoop]", "[Other]"), encoding="utf-8")
        assert ["answers.toml has no [PollLoop]"] == [m.split(":")[0] for m in answers.drift(entry(spec), taken)]
    finally:
        path.write_text(whole, encoding="utf-8")


def test_sets_are_spelled_alike_in_every_process() -> None:
    """A digest must not depend on the order in which a set gives its members."""
    assert "{'a', 'b', 'c'}" == spelled(frozenset("cab"))
