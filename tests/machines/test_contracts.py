"""CrossHair on the pure functions that carry contracts (PEP 316, in their docstrings), and on a mutant of each.

What CrossHair confirms over all paths is listed, and has to be confirmed. For the rest, whose values are too many
(owners with five optional fields, strings), it searches `UNREFUTED` seconds a condition for a counterexample and finds
none. A mutant is the module's own source with one piece of text replaced; the condition that it breaks has to be
refuted. Times are upper bounds of CrossHair's own search: most mutants fall in a tenth of a second, a few need one,
`supersedes` four to fifteen.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import attrs
import pytest

from tenure.machines import entry, guard_name, identity, lease

crosshair = pytest.importorskip("crosshair.core_and_libs")
from crosshair.core_and_libs import analyze_function, run_checkables  # noqa: E402
from crosshair.options import AnalysisKind, AnalysisOptionSet  # noqa: E402
from crosshair.statespace import MessageType  # noqa: E402

# CrossHair looks at every type it knows, `typing.io` included.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

UNREFUTED = 0.4
CONFIRMED = 10.0
REFUTED = 60.0

MODULES = (entry, guard_name, identity, lease)


def contracted(module: ModuleType) -> Iterator[str]:
    """The functions of a module that have a contract."""
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if function.__module__ == module.__name__ and "post:" in (function.__doc__ or ""):
            yield name


CONTRACTS = {f"{m.__name__.rpartition('.')[2]}.{n}": (m, n) for m in MODULES for n in contracted(m)}


def verdicts(module: ModuleType, name: str, seconds: float, only: str = "") -> list[tuple[MessageType, str]]:
    """CrossHair's verdict on each condition of a function that has `only` in its text."""
    function = getattr(module, name)
    texts = [line for line in (function.__doc__ or "").splitlines() if line.lstrip().startswith("post:")]
    options = AnalysisOptionSet(
        analysis_kind=[AnalysisKind.PEP316], per_condition_timeout=seconds, per_path_timeout=seconds, report_all=True
    )
    checkables = zip(texts, analyze_function(function, options), strict=True)
    return [(m.state, m.message) for text, c in checkables if only in text for m in run_checkables([c])]


@attrs.frozen
class Mutant:
    """A function with `old` replaced by `new`; the condition that this breaks is the one with `breaks` in its text."""

    contract: str
    old: str
    new: str
    breaks: str = "post:"

    def build(self, directory: Path) -> ModuleType:
        """The module with the function mutated, imported from `directory` under a name of its own."""
        module, name = CONTRACTS[self.contract]
        source = inspect.getsource(module)
        function = inspect.getsource(getattr(module, name))
        assert function.count(self.old) == 1, f"{self.contract}: {self.old!r} is there {function.count(self.old)} times"
        path = directory / f"mutant_{module.__name__.rpartition('.')[2]}_{name}.py"
        path.write_text(source.replace(function, function.replace(self.old, self.new)), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        mutant = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = mutant
        spec.loader.exec_module(mutant)
        return mutant


MUTANTS = (
    Mutant("entry.number", "isinstance(value, bool) or ", "", "not isinstance(value, bool)"),
    Mutant(
        "entry.text", "value if isinstance(value, str)", "value if isinstance(value, int)", "isinstance(value, str)"
    ),
    Mutant("entry.integer", "return found if isinstance(found, int) else None", "return 1"),
    Mutant("entry.finite", "math.isfinite", "math.isnan"),
    Mutant("entry.parse_pid", '{"pid": pid}', '{"pid": str(pid)}', "number(pid)"),
    Mutant("entry.reread", "render_entry(entry)", 'render_entry(entry) | {"cwd": None}'),
    Mutant("guard_name.plain_pid", "holder_pid(pid)", "integer(pid)", "__return__ > 0"),
    Mutant("guard_name.word", 'c == "-"', 'c in "-."', '"."'),
    Mutant("guard_name.decimal", ' or part[0] == "0"', "", "part[0]"),
    Mutant("guard_name.uuid_lengths", "lengths == _UUID", "sum(lengths) == 32", "len(lengths) == 5"),
    Mutant("guard_name.agree", "return isinstance(name, MarkerName) or", "return True or", "name.generation"),
    Mutant("guard_name.with_hash", "+ _OURS) * 2**12", ") * 2**12", "// 2**64"),
    Mutant("guard_name.hash_in", "bits % _LOW", "bits // _LOW", "bits - __return__"),
    Mutant("identity.same_owner", "and left.leader_epoch == right.leader_epoch", "", "leader_epoch"),
    Mutant(
        "identity.proven_dead",
        "return seen.state in (GONE, ZOMBIE)\n",
        "return seen.state != RUNNING\n",
        'birth is not None or seen.state in ("gone", "zombie")',
    ),
    Mutant("identity.proven_dead", "seen.ticks != birth.ticks", "seen.ticks == birth.ticks", "birth == me.birth"),
    Mutant(
        "identity.proven_dead",
        "    if birth.namespace != me.birth.namespace:\n        return False\n",
        "",
        "birth.namespace == me.birth.namespace",
    ),
    Mutant("identity.under_my_pid", "return pid == me.pid and", "return", "pid == me.pid"),
    Mutant("identity.is_me", " and birth.ticks == me.birth.ticks", ""),
    Mutant("identity.next_generation", "max(clock_ms, previous + 1)", "max(clock_ms, previous)", "> previous"),
    Mutant("lease.stamped", "and entry.birth.boot_id == boot_id\n", "\n", "boot_id == boot_id"),
    Mutant("lease.passed", "now_ms - since_ms > limit_ms", "now_ms - since_ms >= limit_ms"),
    Mutant(
        "lease.heartbeat_passed",
        "None and wall_ms - entry.heartbeat_ms > limit_ms",
        "None and wall_ms - entry.heartbeat_ms >= limit_ms",
        "not __return__ or wall_ms",
    ),
    Mutant(
        "lease.from_future",
        "entry.heartbeat_ms - wall_ms > limit_ms",
        "wall_ms - entry.heartbeat_ms > limit_ms",
        "heartbeat_passed(",
    ),
    Mutant("lease.over", "return passed(", "return not passed(", "not (__return__ and stamped"),
    Mutant("lease.classify", "if over(entry, sight, me, limit_ms):", "if sight.unchanged_ms > limit_ms:", '!= "stale"'),
    Mutant(
        "lease.supersedes",
        "or generation > entry.runtime_generation)",
        "or generation >= entry.runtime_generation)",
        "runtime_generation",
    ),
    Mutant("lease.next_epoch", " + 1\n", "\n", "> high_water"),
    Mutant("lease.ordered", "else 0\n", "else 1\n"),
    Mutant("lease.admits", "return epoch >= fence", "return epoch > fence", "__return__ or epoch < fence"),
)


PROVEN = (
    "entry.finite",
    "guard_name.hash_in",
    "guard_name.uuid_lengths",
    "guard_name.with_hash",
    "identity.next_generation",
    "lease.admits",
    "lease.next_epoch",
    "lease.ordered",
    "lease.passed",
)


@pytest.mark.parametrize("contract", PROVEN)
def test_the_contract_is_confirmed(contract: str) -> None:
    """Every condition holds for every input: CrossHair has walked all paths."""
    found = verdicts(*CONTRACTS[contract], CONFIRMED)

    assert [state for state, _ in found] == [MessageType.CONFIRMED] * len(found)
    assert found


@pytest.mark.parametrize("contract", sorted(CONTRACTS.keys() - set(PROVEN)))
def test_the_contract_is_not_refuted(contract: str) -> None:
    """No input that CrossHair can find breaks a condition of the contract."""
    found = verdicts(*CONTRACTS[contract], UNREFUTED)

    assert found
    assert [v for v in found if v[0] not in (MessageType.CONFIRMED, MessageType.CANNOT_CONFIRM)] == []


def test_every_contract_has_a_mutant() -> None:
    """A contract that nothing can break says nothing."""
    assert CONTRACTS.keys() == {mutant.contract for mutant in MUTANTS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.contract)
def test_the_mutant_is_refuted(mutant: Mutant, tmp_path: Path) -> None:
    """CrossHair finds an input with which the mutated function breaks the condition."""
    module = mutant.build(tmp_path)
    try:
        found = verdicts(module, CONTRACTS[mutant.contract][1], REFUTED, mutant.breaks)
    finally:
        del sys.modules[module.__name__]

    assert [state for state, _ in found] == [MessageType.POST_FAIL], found
