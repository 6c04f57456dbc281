"""What need not be run again (DESIGN 7): PASS results under a hash of everything that they depend on."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tenure.adapters.verify.manifest import ModuleEntry, modules_of

_PACKAGES: Final = ("attrs", "python-statemachine")


def directory() -> Path:
    """``TENURE_CACHE``, or ``tenure`` in the user's cache directory."""
    if given := os.environ.get("TENURE_CACHE"):
        return Path(given)
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tenure"


class Cache:
    """A directory with one JSON file per passed check. A file that cannot be read or written is no result, no error.

    Each entry says its own key and a checksum of what it keeps: a file of another shape, or another's, is no result.
    """

    def __init__(self, place: Path) -> None:
        self.place = place / "verify"

    def get(self, key: str) -> Any | None:
        """What was kept under `key`, or None."""
        try:
            kept = json.loads((self.place / f"{key}.json").read_text(encoding="utf-8"))
            whole = isinstance(kept, dict) and kept == _entry(key, kept.get("body"))
        except (OSError, ValueError, RecursionError):
            return None
        return kept["body"] if whole else None

    def put(self, key: str, value: Any) -> None:
        """Keep `value`, whole or not at all."""
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.place, suffix=".tmp")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(_entry(key, value), file)
            os.replace(name, self.place / f"{key}.json")
        except OSError:
            pass


def _entry(key: str, body: Any) -> dict[str, Any]:
    return {"key": key, "sum": digest([key, json.dumps(body, sort_keys=True)]), "body": body}


def digest(parts: Iterable[str]) -> str:
    """A hash of texts, in their order."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode()
        found.update(len(data).to_bytes(8, "big"))
        found.update(data)
    return found.hexdigest()


def inputs(entry: ModuleEntry, tlc: str) -> str:
    """A hash of what every check of the module depends on: modules, twin, machines, verifier, TLC, Python."""
    parts = [entry.name, tlc, platform.python_version()]
    for name in _PACKAGES:
        parts.append(f"{name} {importlib.metadata.version(name)}")
    for module in modules_of(entry.spec, entry.root, instances=True):
        parts += [module, (entry.spec / f"{module}.tla").read_text(encoding="utf-8")]
    twin = entry.twin_name.partition(":")[0]
    for name, path in sorted({**sources(twin), **_verifier()}.items()):
        parts += [name, path.read_text(encoding="utf-8")]
    return digest(parts)


@functools.lru_cache(maxsize=1_024)
def _imports(text: str) -> tuple[str, ...]:
    """What a source imports; kept by its text, for most of them are asked for again and again."""
    names: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)


def sources(*roots: str) -> dict[str, Path]:
    """The source files of these modules and of all of tenure that they import, by name."""
    found: dict[str, Path] = {}
    queue = list(roots)
    while queue:
        name = queue.pop()
        if name in found:
            continue
        path = _source(name)
        if path is None:
            continue
        found[name] = path
        named = _imports(path.read_text(encoding="utf-8"))
        queue += [n for n in named if n.startswith("tenure.") or n.partition(".")[0] == name.partition(".")[0]]
    return found


def digest_of_sources(*roots: str) -> str:
    """A hash of the names and texts of `sources`."""
    found = sources(*roots)
    return digest(part for name, path in sorted(found.items()) for part in (name, path.read_text(encoding="utf-8")))


def _source(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


def _verifier() -> dict[str, Path]:
    return sources("tenure.adapters.verify.together", "tenure.adapters.verify.reach")
