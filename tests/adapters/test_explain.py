"""``tenure explain``: the shortest story of a missing guard, in words and as a diagram; and its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenure.adapters import cli, explain
from tenure.adapters.errors import TenureError
from tenure.adapters.spec_text import Texts, definitions, first_sentence, question
from tenure.adapters.verify.manifest import ModuleEntry, spec_directory


@pytest.fixture(scope="module")
def entry() -> ModuleEntry:
    """The module of which every story is known."""
    return explain.module(spec_directory(), "Transaction")


def _run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_overview(entry: ModuleEntry) -> None:
    """Without a guard to take away: the question, the properties, the guards with law and length, configurations."""
    text = "\n".join(explain.overview(entry))

    assert "May two threads be inside one guarded file at once?" in text
    assert "OneInside\n      At most one is inside." in text
    assert "nobody_inside   Fence; OneInside; 5" in text
    assert "three: 36 states, 242 transitions" in text


def test_story_of_a_missing_guard(entry: ModuleEntry) -> None:
    """Law, meaning, property and what it says; then the steps, with what changed in each."""
    found, lines = explain.without(entry, "nobody_inside")
    text = "\n".join(lines)

    assert found.length == 5
    assert "law       Fence" in text
    assert "meaning   Fence: enter only when nobody holds the file. Without it two are inside at once." in text
    assert "breaks    OneInside: At most one is inside." in text
    assert '  5. Enter("b")\n       holder: "a" -> "b"\n       phase.b: "waiting" -> "inside"' in text


def test_story_of_a_missing_permit_goes_on_for_ever(entry: ModuleEntry) -> None:
    """A promise is broken by a behaviour without end: it says what is repeated, or that nothing more happens."""
    _, lines = explain.without(entry, "death_frees")

    assert "for ever" in lines[-1]


def test_diagram(entry: ModuleEntry) -> None:
    """Participants are those that act; the environment has its own lifeline; the last note is the property."""
    found, _ = explain.without(entry, "holder_is_gone")
    lines = explain.diagram(found).splitlines()

    assert lines[0] == "sequenceDiagram"
    assert "    participant p1 as a" in lines
    assert "    participant env as environment" in lines
    assert '    p1->>p1: Want("a")' in lines
    assert "    env->>env: Free" in lines
    assert '    Note over env: holder: "a" → "nobody"' in lines
    assert '    Note over p1: phase.a: "out" → "waiting"' in lines
    assert lines[-1] == "    Note over p1,env: LiveHolderKept is broken"


def test_diagram_of_an_endless_story(entry: ModuleEntry) -> None:
    """Loops are closed."""
    found, _ = explain.without(entry, "death_frees")
    lines = explain.diagram(found).splitlines()

    assert lines.count("    loop for ever") == lines.count("    end")
    assert lines[-1].endswith("EventuallyFree is never kept")


def test_text_is_escaped_for_mermaid() -> None:
    """A semicolon would end a Mermaid statement, a hash would start an entity."""
    assert explain._text("a;b #1") == "a#59;b #35;1"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["Transacton"], "no module Transacton; near"),
        (["Transacton"], "near: Transaction"),
        (["Transaction", "--without", "nobody"], "has no guard or permit nobody; near: nobody_inside"),
        (["Transaction", "--without", "xyzzy"], "there are: nobody_inside, holder_is_gone, death_frees"),
        (["Transaction", "--diagram", "story.mmd"], "say which with --without GUARD"),
        (["Transaction", "--spec", "nowhere"], "manifest.toml"),
    ],
)
def test_errors_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], error: str) -> None:
    """Status 2, and one line that says what is near."""
    status, out, err = _run(capsys, "explain", *arguments)

    assert status == 2
    assert out == ""
    assert error in err
    assert err.count("\n") == 1


def test_command_writes_the_diagram(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The story goes to the terminal, the diagram to the file."""
    path = tmp_path / "story.mmd"
    status, out, _ = _run(capsys, "explain", "Transaction", "--without", "nobody_inside", "--diagram", path)

    assert status == 0
    assert out.startswith("Transaction without guard nobody_inside\n")
    assert path.read_text(encoding="utf-8").startswith("sequenceDiagram\n")


def test_idle_guard_has_no_story(entry: ModuleEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the property holds without the guard, that is what is said, and there is nothing to draw."""
    assert entry.twin is not None
    monkeypatch.setattr(entry.twin, "invariants", lambda self: {"OneInside": lambda state: True})
    found, lines = explain.without(entry, "nobody_inside")

    assert "OneInside still holds" in lines[-1]
    with pytest.raises(TenureError, match="no story to draw"):
        explain.diagram(found)


MODULE = """---- MODULE M ----
(* What is asked? *)
(* And more.      *)
EXTENDS Naturals
VARIABLE x
vars == <<x>>
----
(* A step. *)
Step(p) == /\\ Guard("one", x = p) /\\ x' = 1
Step2 == TRUE

\\* A line
\\* and another.
Other == Guard("two", TRUE)   \\* what two is for
=====
"""


def test_definitions() -> None:
    """The comment right above a definition, or above the block that it is in, is its intent; in either form."""
    assert [(d.name, d.comment) for d in definitions(MODULE)] == [
        ("vars", ""),
        ("Step", "A step."),
        ("Step2", "A step."),
        ("Other", "A line and another."),
    ]


def test_question() -> None:
    """The first comment of the text is what the module asks."""
    assert question(MODULE) == "What is asked? And more."
    assert question("---- MODULE M ----\n====\n") == ""


def test_about(tmp_path: Path) -> None:
    """A guard is explained behind its use, or above the definition that uses it."""
    (tmp_path / "M.tla").write_text(MODULE, encoding="utf-8")
    texts = Texts(tmp_path, "M")

    assert (texts.about("one"), texts.about("two"), texts.about("three")) == ("A step.", "what two is for", "")
    assert (texts.says("Step"), texts.says("vars")) == ("A step.", "")


def test_says_by_number(tmp_path: Path) -> None:
    """Conjuncts that share a comment are told apart by their numbers."""
    (tmp_path / "M.tla").write_text(
        "(* S1: a step. *)\nStep == TRUE\n\nTypeOK == TRUE\n\n(* S1: at most one.  S2: never two. *)\nOne_S1 == TRUE\n"
        "One_S2 == TRUE\n\n(* V1: it ends. *)\nHelper == TRUE\n\nEnds_V1 == TRUE\nPlain_V9 == TRUE\n====\n",
        encoding="utf-8",
    )
    texts = Texts(tmp_path, "M")

    assert [texts.says(name) for name in ("One_S1", "One_S2", "Ends_V1", "Plain_V9", "Nothing")] == [
        "at most one.",
        "never two.",
        "it ends.",
        "",
        "",
    ]


def test_first_sentence() -> None:
    """A full stop inside a reference does not end a sentence."""
    assert first_sentence("Proof: see locks.md 3.1 and\n   more. Without it all is lost.") == (
        "Proof: see locks.md 3.1 and more."
    )
