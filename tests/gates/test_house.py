"""The house keeps its order: imports run one way, pure rooms stay pure, types and style hold (DESIGN 3)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
VALUES = "__future__ abc ast attrs collections enum functools hashlib heapq inspect itertools math operator re"
PURE = frozenset(VALUES.split(" ")) | {"statemachine", "types", "typing"}
"""What a machine or a model may import: values and functions, no clock, randomness, environment, logging or I/O."""
ALLOWED = {
    "machines": frozenset({"tenure.machines"}),
    "models": frozenset({"tenure.machines", "tenure.models"}),
}


def imports(path: Path) -> set[str]:
    """Every module that a file imports, by its full name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or ".")
            if node.module == "tenure":
                found |= {f"tenure.{alias.name}" for alias in node.names}
    return found


def strangers(room: str, names: set[str]) -> set[str]:
    """Those of `names` that a file of `room` must not import."""
    own = {name for name in names if any(name == a or name.startswith(f"{a}.") for a in ALLOWED[room])}
    return {name for name in names - own if name.partition(".")[0] not in PURE}


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_pure_rooms_import_nothing_that_acts(room: str) -> None:
    """Machines know machines, models know machines and models, and neither knows a clock, a file or a log."""
    for path in sorted((ROOT / room).glob("*.py")):
        assert set() == strangers(room, imports(path)), path.name
        called = {
            node.func.id
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert set() == called & {"open", "print", "input", "exec", "eval"}, path.name


def test_a_stranger_is_found() -> None:
    """The gate turns red: a clock in a machine, a model in a machine, an adapter in a model."""
    assert {"time"} == strangers("machines", {"time", "attrs"})
    assert {"tenure.models.world"} == strangers("machines", {"tenure.models.world"})
    assert {"tenure.adapters.tlc"} == strangers("models", {"tenure.adapters.tlc", "tenure.machines.chart"})


SERVING = frozenset(
    ["explain.py", "guards_md.py", "machines_found.py", "red.py", "spec_text.py", "story.py", "strategies.py"]
)
"""The adapters beside those of the rooms `verify` and `trace` that serve the verifier."""
PRODUCTION = frozenset({"trace/recorder.py", "trace/lines.py"})
"""What of those rooms runs where nobody verifies: recording."""


def knows_models(name: str) -> bool:
    """Whether a file of adapters/ may import models."""
    room = name.partition("/")[0]
    return (room in ("verify", "trace") and name not in PRODUCTION) or name in SERVING


def test_only_the_verifiers_adapters_know_models() -> None:
    """Of the adapters only those that serve the verifier import models; what records does not."""
    adapters = ROOT / "adapters"
    for path in sorted(adapters.rglob("*.py")):
        name = path.relative_to(adapters).as_posix()
        knows = {module for module in imports(path) if module.startswith("tenure.models")}
        assert not knows or knows_models(name), name
    assert not any(knows_models(name) for name in (*PRODUCTION, "files/guard.py", "lead/supervisor.py", "ports.py"))


def test_what_is_tested_is_what_is_installed() -> None:
    """tenure.* is found, and never as a bare folder of the repository."""
    for name in ("machines", "models", "adapters", "spec"):
        assert find_spec(f"tenure.{name}") is not None
        assert name not in sys.modules


ROOMS = ("adapters", "machines", "models", "spec")


def unlisted(data: dict[str, Any], rooms: set[str]) -> dict[str, set[str]]:
    """By table of pyproject.toml: packages that it lists and are none, and those that it does not list."""
    tables = data["tool"]["setuptools"]
    return {name: found for name in ("packages", "package-data") if (found := set(tables[name]) ^ rooms)}


def test_what_is_installed_is_what_is_there() -> None:
    """Both lists of pyproject.toml name every package and no other, once: who forgets one notices after an install."""
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    places = [path.parent for room in ROOMS for path in (ROOT / room).rglob("__init__.py")]
    rooms = {".".join(("tenure", *place.relative_to(ROOT).parts)) for place in places}
    rooms.add("tenure.spec")  # texts, and no module
    assert {} == unlisted(data, rooms)
    packages = data["tool"]["setuptools"]["packages"]
    assert len(packages) == len(set(packages))
    assert {"packages": {"tenure.new"}, "package-data": {"tenure.new"}} == unlisted(data, rooms | {"tenure.new"})


_TABLE = re.compile(r"^\| file \|.*\n\|[-|]+\|\n((?:\|.*\n?)+)", re.MULTILINE)
_ROOM_TABLE = re.compile(r"^\| room \|.*\n\|[-|]+\|\n((?:\|.*\n?)+)", re.MULTILINE)


def named(table: re.Pattern[str], text: str) -> set[str]:
    """What the first column of such tables names."""
    rows = [row for found in table.findall(text) for row in found.splitlines()]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def strayed(place: Path, text: str) -> set[str]:
    """What the tables of a package's docstring name that is not there."""
    files = {name for name in named(_TABLE, text) if not (place / f"{name.removesuffix('.py')}.py").is_file()}
    return files | {name for name in named(_ROOM_TABLE, text) if not (place / name / "__init__.py").is_file()}


def forgotten(place: Path, text: str) -> set[str]:
    """The files and rooms of a package that the tables of its docstring do not name."""
    files = {path.stem for path in place.glob("*.py")} - {"__init__"}
    rooms = {path.parent.name for path in place.glob("*/__init__.py")}
    known = {name.removesuffix(".py") for name in named(_TABLE, text)}
    return (files - known) | (rooms - {name.removesuffix("/") for name in named(_ROOM_TABLE, text)})


def test_a_package_says_what_it_has() -> None:
    """Every file and room of the adapters stands in a table of its package's docstring."""
    for path in sorted((ROOT / "adapters").rglob("__init__.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        assert set() == forgotten(path.parent, text), path
    table = "| file | what |\n|---|---|\n| `client` | a |\n\n| room | what |\n|---|---|\n| `messages/` | b |"
    assert {"peer", "wording", "serving", "endpoints"} == forgotten(ROOT / "adapters" / "bus", table)


def test_what_a_package_says_that_it_has_is_there() -> None:
    """The tables of files and rooms in the docstrings of packages name what stands beside them."""
    tables = 0
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("__init__.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        assert set() == strayed(path.parent, text), path
        tables += bool(named(_TABLE, text))
        assert ("| file |" in text) == bool(named(_TABLE, text)), path
    assert tables
    wrong = "| file | what |\n|---|---|\n| `member`, `nobody` | a |\n\n| room | what |\n|---|---|\n| `nowhere/` | b |"
    assert {"nobody", "nowhere/"} == strayed(ROOT / "adapters" / "fleet", wrong)


@pytest.mark.parametrize("package", ["tenure.machines", "tenure.models", "tenure.adapters"])
def test_types_are_strict(package: str, tmp_path: Path) -> None:
    """mypy --strict has nothing to say about the installed packages."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, "-p", package],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_style_holds(command: list[str]) -> None:
    """ruff has nothing to say about the repository."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--no-cache", "."], capture_output=True, text=True, cwd=ROOT
    )
    assert 0 == done.returncode, done.stdout + done.stderr
