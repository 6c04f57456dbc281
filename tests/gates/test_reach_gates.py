"""The stage `reach` turns red: for a row that no message reaches, and for a transition that no walk takes."""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from statemachine import State, StateMachine

from tenure.adapters.machines_found import Machine
from tenure.adapters.verify import reach
from tenure.adapters.verify.manifest import ConfigEntry, ModuleEntry, load, spec_directory
from tenure.adapters.verify.result import Verdict
from tenure.machines.chart import Table, compile_chart
from tenure.machines.laws import Law, guard
from tenure.models.world import Action, World


@attrs.frozen
class Memory:
    """What the machine under test remembers."""

    rung: int = 0


@attrs.frozen
class Climb:
    """Its message."""

    event: ClassVar[str] = "climb"
    strong: bool
    word: str


@attrs.frozen
class Fall:
    """Its other message."""

    event: ClassVar[str] = "fall"


class _Chart(StateMachine):
    low = State(initial=True)
    high = State()
    climb = low.to(high, cond=["is_strong"])
    fall = high.to(low)

    @staticmethod
    @guard(Law.FENCE)
    def is_strong(data: Memory, message: Climb) -> bool:
        return message.strong


class _Unreachable(StateMachine):
    low = State(initial=True)
    high = State()
    climb = low.to(high, cond=["knows_the_word"]) | low.to(low, cond=["is_strong"])
    fall = high.to(low)

    is_strong = staticmethod(_Chart.is_strong)

    @staticmethod
    @guard(Law.PROOF)
    def knows_the_word(data: Memory, message: Climb) -> bool:
        return message.word == "a word that nobody says"


class _NeverRefuses(StateMachine):
    low = State(initial=True)
    high = State()
    climb = low.to(high, cond=["is_anything"])
    fall = high.to(low)

    @staticmethod
    @guard(Law.PROOF)
    def is_anything(data: Memory, message: Climb) -> bool:
        return message.strong or not message.strong


class _Raises(StateMachine):
    low = State(initial=True)
    high = State()
    climb = low.to(high, on="divide")
    fall = high.to(low)

    @staticmethod
    def divide(data: Memory, message: Climb) -> tuple[Memory, tuple[str, ...]]:
        return Memory(1 // (message.word != "a")), ()


@attrs.frozen
class Height:
    """The state of the world under test."""

    rung: int


class Ladder(World[Height]):
    """One may climb from rung to rung, and fall from any of them to the ground."""

    module: ClassVar[str] = "Ladder"

    def __init__(self, config: int, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.top = config

    def initial(self) -> Iterable[Height]:
        yield Height(0)

    def actions(self) -> tuple[Action[Height], ...]:
        return (Action("Climb", self._climb), Action("Fall", self._fall))

    def _climb(self, state: Height) -> Iterable[Height]:
        return (Height(state.rung + 1),) if state.rung < self.top else ()

    def _fall(self, state: Height) -> Iterable[Height]:
        return (Height(0),) if state.rung else ()


def _entry(
    monkeypatch: pytest.MonkeyPatch, top: int = 3, chart: type[StateMachine] | None = None, named: str | None = None
) -> ModuleEntry:
    """A module with the ladder as its world and, perhaps, one machine."""
    tables: tuple[Table[Any, Any, Any], ...] = ()
    if chart is not None:
        table: Table[Any, Any, Any] = compile_chart(chart)
        machine = Machine("transaction", chart, table, Memory, (Climb, Fall))
        monkeypatch.setattr(reach, "machine_of", lambda table: machine)
        tables = (table,)
    world = type("Ladder", (Ladder,), {"tables": tables})
    blank = {f.name: None for f in attrs.fields(ConfigEntry)}
    config = ConfigEntry(**{**blank, "name": "some", "transitions": 2 * top})
    given: dict[str, Any] = {f.name: () for f in attrs.fields(ModuleEntry)}
    given |= {"name": "Ladder", "spec": Path(), "twin": world, "python_configs": {"some": top}}
    given |= {"configs": {"some": config}, "reach": named, "problems": ()}
    return ModuleEntry(**given)


def _message(entry: ModuleEntry) -> str:
    result = reach.reach(entry, "quick")
    assert result.verdict is Verdict.FAIL
    return " | ".join(str(row["message"]) for row in result.detail if row["verdict"] == "FAIL")


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is never reached is not reached in three rounds either."""
    monkeypatch.setattr(reach, "ROUNDS", {"quick": 3, "thorough": 3})


def test_green(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is missing: PASS, with counts of what was visited."""
    result = reach.reach(_entry(monkeypatch, chart=_Chart), "quick")

    assert Verdict.PASS is result.verdict
    assert (result.states, result.transitions) == (4, 6)
    assert [(row["visited"], row.get("transitions", row.get("rows"))) for row in result.detail] == [(6, 6), (5, 5)]


def test_unreachable_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that no message takes is named."""
    message = _message(_entry(monkeypatch, chart=_Unreachable))

    assert "low --climb[knows_the_word]--> high" in message
    assert "high --fall[]--> low" in message
    assert "is_strong as what refuses" not in message


def test_guard_that_never_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prohibition that stops nothing is named."""
    assert "is_anything as what refuses" in _message(_entry(monkeypatch, chart=_NeverRefuses))


def test_effect_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine is total on its messages: what raises is named, with the message."""
    message = _message(_entry(monkeypatch, chart=_Raises))

    assert "_Raises in low with" in message
    assert "ZeroDivisionError" in message


def test_machine_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is no machine of the package has no messages to draw."""
    entry = _entry(monkeypatch, chart=_Chart)
    monkeypatch.undo()

    assert "_Chart is no machine of tenure.machines" in _message(entry)


def test_unreachable_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rung that no walk climbs to is named."""
    message = _message(_entry(monkeypatch, top=60))

    assert "of 120 transitions, 95% are wanted" in message
    assert "Climb (rung: " in message


@pytest.mark.parametrize("top", [1_500, 3_000])
def test_graph_that_is_too_large(monkeypatch: pytest.MonkeyPatch, top: int) -> None:
    """More than 2,000 transitions: the message says what to add."""
    assert "add a smaller configuration" in _message(_entry(monkeypatch, top=top))


def test_module_without_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to walk is not a pass."""
    entry = attrs.evolve(_entry(monkeypatch), configs={})

    assert Verdict.RAN_NOTHING is reach.reach(entry, "quick").verdict


def test_twin_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a twin there is nothing to run, and that is a failure."""
    assert "cannot be imported" in _message(attrs.evolve(_entry(monkeypatch), twin=None, twin_name="nowhere:X"))


def test_unknown_configuration(tmp_path: Path) -> None:
    """`reach` must name a configuration of the manifest."""
    text = (spec_directory() / "manifest.toml").read_text(encoding="utf-8")
    (tmp_path / "manifest.toml").write_text(
        text.replace("\n[Transaction]\n", '\n[Transaction]\nreach = "nowhere"\n'), encoding="utf-8"
    )

    problems = load(tmp_path)["Transaction"].problems

    assert any(p.stage == "reach" and "no configuration of this name" in p.message for p in problems)


def test_same_seed_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs visit the same in the same number of messages and steps."""
    entry = _entry(monkeypatch, top=20, chart=_Chart)

    assert reach.reach(entry, "quick").detail == reach.reach(entry, "quick").detail


def test_smallest_configuration_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `reach` in the manifest, the walks cover the smallest configuration; with it, that one."""
    entry = _entry(monkeypatch)
    small = attrs.evolve(entry.configs["some"], name="small", transitions=1)
    entry = attrs.evolve(entry, configs={**entry.configs, "small": small})

    assert reach.pinned(entry) == "small"
    assert reach.pinned(attrs.evolve(entry, reach="some")) == "some"


def test_without_hypothesis_the_right_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier's, which has it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    entry = load(spec_directory())["Transaction"]
    found = reach.reach(entry)
    assert Verdict.UNDETERMINED is found.verdict
    assert any("pip install 'tenure[verify]'" in str(row.get("message")) for row in found.detail)
    data = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert any(name.startswith("hypothesis") for name in data["project"]["optional-dependencies"]["verify"])
