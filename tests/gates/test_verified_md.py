"""The figures of ``spec/VERIFIED.md`` are those of the manifest. With ``UPDATE_GOLDEN=1`` they are written."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

SPEC = Path(__file__).parents[2] / "spec"
FILE = SPEC / "VERIFIED.md"
_TABLE = re.compile(r"^\| module \| configurations \|.*\n\|[-|:]+\|\n((?:\|.*\n)+)", re.MULTILINE)


def row(name: str, module: dict[str, Any]) -> str:
    """One module's line: what is pinned of it."""
    configurations = module["config"].values()
    properties = {one for config in configurations for one in config["properties"]} - {"TypeOK"}
    largest = max(config["states"] for config in configurations)
    stages = ("none" if module[stage].startswith("none") else "yes" for stage in ("bind", "real"))
    cells = (f"`{name}`", len(configurations), f"{largest:,}", len(properties), len(module["guard"]))
    return f"| {' | '.join(map(str, (*cells, *stages)))} |\n"


def rows() -> str:
    """The lines of all modules, in the order of the manifest."""
    manifest = tomllib.loads((SPEC / "manifest.toml").read_text(encoding="utf-8"))
    return "".join(row(name, module) for name, module in manifest.items() if isinstance(module, dict))


def test_figures_are_those_of_the_manifest() -> None:
    """Red: a guard, a property or a configuration came or went, and this list does not say so."""
    text = FILE.read_text(encoding="utf-8")
    found = _TABLE.search(text)
    assert found is not None
    if os.environ.get("UPDATE_GOLDEN"):
        FILE.write_text(text[: found.start(1)] + rows() + text[found.end(1) :], encoding="utf-8")
    else:
        assert found[1] == rows(), "UPDATE_GOLDEN=1 pytest tests/gates/test_verified_md.py"


def test_a_line_says_what_is_pinned() -> None:
    """The largest configuration, and each property once."""
    config = {
        "a": {"states": 7, "properties": ["TypeOK", "Once_I15", "Ends_V4"]},
        "b": {"states": 1234, "properties": ["Once_I15", "EventuallyFree"]},
    }
    module = {"config": config, "guard": {"x": {}}, "bind": "none: why", "real": "a.b:C"}
    assert row("M", module) == "| `M` | 2 | 1,234 | 3 | 1 | none | yes |\n"
