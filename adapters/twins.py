"""Which twins there are: the worlds that `spec/manifest.toml` names, ready to be built in any of its configurations."""

from __future__ import annotations

import importlib
import importlib.resources
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from tenure.adapters.errors import TenureError
from tenure.models.world import World


@attrs.frozen
class Twin:
    """A twin: the module's name, its world class, its configurations by name, and its entry in the manifest."""

    module: str
    world: type[World[Any]]
    configs: Mapping[str, Any] = attrs.field(repr=False)
    entry: Mapping[str, Any] = attrs.field(repr=False)

    def build(self, config: str, off: Collection[str] = ()) -> World[Any]:
        """The world in this configuration, with these guards off."""
        return self.world(self.configs[config], off)  # type: ignore[call-arg]


@cache
def twins(spec: Path | None = None) -> tuple[Twin, ...]:
    """Every twin of the manifest in `spec` (the installed one for None), in the manifest's order."""
    folder = importlib.resources.files("tenure.spec") if spec is None else spec
    manifest = tomllib.loads(folder.joinpath("manifest.toml").read_text(encoding="utf-8"))
    return tuple(twin_of(module, entry) for module, entry in manifest.items())


def twin_of(module: str, entry: Mapping[str, Any]) -> Twin:
    """The twin that a manifest entry names. Raises `TenureError` when it cannot be imported."""
    name, _, attribute = str(entry.get("twin", "")).partition(":")
    try:
        home = importlib.import_module(name)
        world = getattr(home, attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise TenureError(f"manifest.toml: [{module}] twin = {entry.get('twin')!r} cannot be imported: {error}") from error
    configs = {c: home.CONFIGS[c] for c in entry.get("config", {}) if c in home.CONFIGS}
    return Twin(module, world, configs, entry)
