"""What a machine tells its adapter is pinned: a changed output turns `twin` red, by its row and with a story."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.verify import answers
from tenure.adapters.verify.coverage import NOTHING, Recorder, Taken, answer
from tenure.adapters.verify.manifest import ModuleEntry, load, spec_directory
from tenure.adapters.verify.probes import probe
from tenure.adapters.verify.spelling import spelled
from tenure.machines.poll_loop import POLL_LOOP
from tenure.models.explore import explore
from tenure.models.poll_loop import CONFIGS, PollLoop


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
    line = next(line for line in sorted(taken.answers) if not line.endswith("\tnothing") and "-->" in line)
    row = line.split("\t")[0]
    silent = answer(row, "asked", "after", ())
    doctored = attrs.evolve(taken, answers=taken.answers - {line} | {silent})
    [message] = answers.drift(entry(spec), doctored)
    assert f"row {row} answers" in message
    assert "1. initially" in message


def test_a_row_that_falls_silent_and_a_row_nobody_pinned_are_drift(spec: Path, taken: Taken) -> None:
    """Neither a lost row nor a new one passes."""
    row = min(line for line in taken.answers if "-->" in line).split("\t")[0]
    lost = attrs.evolve(taken, answers=frozenset(a for a in taken.answers if not a.startswith(f"{row}\t")))
    assert [f"row {row} answers nothing any more"] == [m.split(";")[0] for m in answers.drift(entry(spec), lost)]
    new = attrs.evolve(taken, answers=taken.answers | {answer("T: new", 0, 0, ())})
    assert "has no such row" in answers.drift(entry(spec), new)[0]


def test_memory_that_no_state_shows_is_pinned(spec: Path, taken: Taken) -> None:
    """An effect that forgets something which the twin makes up again is drift, though the graph is the same."""
    line = next(line for line in sorted(taken.answers) if "-->" in line)
    row, _, shown = line.split("\t")
    forgetful = "\t".join([row, "0" * 16, shown])
    doctored = attrs.evolve(taken, answers=taken.answers - {line} | {forgetful})
    assert any(f"row {row} answers" in message for message in answers.drift(entry(spec), doctored))


def test_a_guard_without_one_of_its_conditions_is_drift(taken: Taken) -> None:
    """PollLoop's worlds poll one update at a time; that a batch must increase is asked all the same."""
    table = POLL_LOOP
    recorder = Recorder()
    for config in CONFIGS.values():
        world = PollLoop(config)
        recorder.attach(world)
        explore(world)

    def asked(event: str) -> Iterable[tuple[object, object]]:
        return recorder.asked.get((table.name, event), ())

    def lax(data: Any, message: Any) -> bool:
        return not message.ids or message.ids[0] > data.cursor

    [strict] = [g for row in table for g in row.guards if g.name == "in_order"][:1]
    before = dict((name, digest) for name, digest, _ in probe(table, asked))
    rows = {
        phase: {
            event: tuple(
                attrs.evolve(
                    r, guards=tuple(attrs.evolve(g, holds=lax) if g.name == strict.name else g for g in r.guards)
                )
                for r in found
            )
            for event, found in by_event.items()
        }
        for phase, by_event in table.rows.items()
    }
    after = dict((name, digest) for name, digest, _ in probe(attrs.evolve(table, rows=rows), asked))
    assert ["in_order"] == [name for name in before if before[name] != after[name]]


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("offset' >= offset", "offset' >= 0", "CursorNeverDecreases_S35"),
        ("WF_vars", "SF_vars", "Spec"),
    ],
)
def test_a_weaker_property_or_another_fairness_is_drift(
    spec: Path, taken: Taken, old: str, new: str, name: str
) -> None:
    """A property that says less breaks nothing, and too much fairness proves too much: their text is pinned."""
    path = spec / "PollLoop.tla"
    whole = path.read_text(encoding="utf-8")
    assert old in whole
    try:
        path.write_text(whole.replace(old, new), encoding="utf-8")
        assert any(message.startswith(f"{name}, or what") for message in answers.drift(entry(spec), taken))
    finally:
        path.write_text(whole, encoding="utf-8")


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
