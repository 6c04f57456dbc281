"""``spec/manifest.toml``, read strictly (DESIGN 5): what is pinned, and everything that a slip would leave out.

A guard that nobody lists, a property that only one side has, a configuration without its file: each is a `Problem` of
the stage that would otherwise pass without it. Only a manifest that is no TOML at all is an error.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.verify import cfg
from tenure.machines.laws import Kind, Law
from tenure.models.world import World

TYPE_OK: Final = "TypeOK"
"""The one property that the twin need not have: attrs and mypy say it."""

_MODULE_KEYS: Final = {"twin", "config", "guard", "coverage", "reach", "bind", "real"}
_CONFIG_KEYS: Final = {"states", "transitions", "properties", "thorough"}
_GUARD_KEYS: Final = {"law", "property", "config", "with", "holes", "note"}
_COVERAGE_KEYS: Final = {"actions", "rows", "refusals"}


class ManifestError(TenureError):
    """The manifest is missing, no TOML, or lacks the module asked for."""


@attrs.frozen
class Problem:
    """Something the manifest gets wrong: the stage that fails for it, the thing, and what to do."""

    stage: str
    name: str
    message: str


@attrs.frozen
class ConfigEntry:
    """One configuration that is checked and compared."""

    name: str
    cfg: cfg.Cfg
    states: int
    transitions: int
    thorough: tuple[str, ...] = ()
    """Of its properties, those that TLC decides here with `thorough` only. The twin has the same graph, and always
    decides them there; TLC decides them in another configuration with every effort."""


@attrs.frozen
class GuardEntry:
    """One guard or permit, and how its absence shows."""

    name: str
    kind: Kind
    law: Law
    property: str
    config: str
    covered_by: tuple[str, ...]
    """Defence in depth: the guards that must be off as well before the property breaks."""


@attrs.frozen
class Coverage:
    """What the compared graphs of a module take together."""

    actions: int
    rows: int
    refusals: int


@attrs.frozen
class ModuleEntry:
    """A module as the manifest, the files and the twin together describe it."""

    name: str
    spec: Path
    """The directory of the modules."""
    twin_name: str
    twin: type[World[Any]] | None
    """None when it cannot be imported; there is a `Problem` then."""
    python_configs: Mapping[str, Any]
    configs: Mapping[str, ConfigEntry]
    guards: Mapping[str, GuardEntry]
    coverage: Coverage | None
    reach: str | None
    """The configuration, at most 2,000 transitions, that the stage `reach` walks; None: the smallest one pinned."""
    problems: tuple[Problem, ...]
    bind: str | None = None
    """What the stage `bind` runs: ``module:NAME``, or ``none: <reason>``; None: the manifest does not say."""
    real: str | None = None
    """The same for the stage `real`: ``module:Class``, made with the entry and the effort."""

    @property
    def root(self) -> str:
        """The module that TLC runs."""
        return f"MC{self.name}"

    def world(self, config: str, off: Collection[str] = ()) -> World[Any]:
        """The twin at a configuration, with `off` taken away."""
        if self.twin is None:
            raise ManifestError(f"{self.name}: its twin {self.twin_name} cannot be imported")
        make: Any = self.twin
        world: World[Any] = make(self.python_configs[config], off)
        return world


def spec_directory() -> Path:
    """The modules that are installed."""
    return Path(str(files("tenure.spec") / "manifest.toml")).parent


def load(spec: Path) -> dict[str, ModuleEntry]:
    """Every module of the manifest of the directory `spec`, in its order. Raises `ManifestError`."""
    path = spec / "manifest.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}; name a directory like spec/") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: {error}") from error
    unlisted = {p.stem.removeprefix("MC") for p in spec.glob("MC*.tla")} - data.keys()
    found = {name: _Reader(spec, name, table).entry() for name, table in data.items()}
    return found | {name: _forgotten(spec, name) for name in sorted(unlisted)}


def _forgotten(spec: Path, name: str) -> ModuleEntry:
    """A module that is there and that nobody verifies."""
    problem = Problem("spec", name, f"MC{name}.tla is there, the manifest has no [{name}]")
    return ModuleEntry(name, spec, "", None, {}, {}, {}, None, None, (problem,))


class _Reader:
    """Reads one module's table and holds it against the files and the twin."""

    def __init__(self, spec: Path, name: str, table: object) -> None:
        if not isinstance(table, dict):
            raise ManifestError(f"{spec / 'manifest.toml'}: {name} is not a table; every key belongs to a module")
        self.spec = spec
        self.name = name
        self.table: dict[str, Any] = table
        self.problems: list[Problem] = []

    def problem(self, stage: str, name: str, message: str) -> None:
        self.problems.append(Problem(stage, name, message))

    def entry(self) -> ModuleEntry:
        self._unknown("spec", "", self.table, _MODULE_KEYS)
        twin_name = self._get("twin", "", self.table, "twin", str) or ""
        twin, python_configs = self._twin(twin_name)
        configs = dict(self._configs(twin, python_configs))
        self._always(configs)
        guards = dict(self._guards(twin, configs))
        if twin is not None:
            self._texts(twin)
        return ModuleEntry(
            name=self.name,
            spec=self.spec,
            twin_name=twin_name,
            twin=twin,
            python_configs=python_configs,
            configs=configs,
            guards=guards,
            coverage=self._coverage(),
            reach=self._reach(configs),
            bind=self._runs("bind"),
            real=self._runs("real"),
            problems=tuple(self.problems),
        )

    # -- the twin -------------------------------------------------------------

    def _twin(self, name: str) -> tuple[type[World[Any]] | None, Mapping[str, Any]]:
        module_name, _, class_name = name.partition(":")
        if not name:
            return None, {}
        try:
            module = importlib.import_module(module_name)
            twin = getattr(module, class_name)
            configs = module.CONFIGS
            if not (isinstance(twin, type) and issubclass(twin, World) and isinstance(configs, Mapping)):
                raise TypeError(f"wants a World {class_name} and a mapping CONFIGS")
        except Exception as error:
            self.problem("twin", name, f"the twin {name} cannot be imported: {type(error).__name__}: {error}")
            return None, {}
        if twin.module != self.name:
            self.problem("twin", name, f"the twin says that it is of module {twin.module}, not {self.name}")
        return twin, configs

    # -- configurations -------------------------------------------------------

    def _configs(self, twin: type[World[Any]] | None, python: Mapping[str, Any]) -> Iterator[tuple[str, ConfigEntry]]:
        listed = self._table("config")
        if not listed:
            self.problem("spec", self.name, "the manifest lists no configuration")
        for name in sorted(python.keys() - listed.keys()):
            self.problem("twin", name, f"CONFIGS has {name}, the manifest has no [{self.name}.config.{name}]")
        files_there = {p.stem.removeprefix(f"{self.name}_") for p in self.spec.glob(f"{self.name}_*.cfg")}
        for name in sorted(files_there - listed.keys()):
            place = f"[{self.name}.config.{name}]"
            self.problem("spec", name, f"{self.name}_{name}.cfg is there, the manifest has no {place}")
        unchecked: dict[str, None] | None = None
        for name, table in listed.items():
            where = f"config.{name}"
            if not isinstance(table, dict):
                self.problem("spec", name, f"[{self.name}.{where}] is not a table")
                continue
            self._unknown("spec", where, table, _CONFIG_KEYS)
            states = self._get("spec", where, table, "states", int)
            transitions = self._get("spec", where, table, "transitions", int)
            properties = self._get("spec", where, table, "properties", list)
            try:
                found = cfg.read(self.spec / f"{self.name}_{name}.cfg")
            except UnicodeDecodeError as error:
                self.problem("spec", name, f"{self.name}_{name}.cfg: {error}")
                continue
            except cfg.CfgError as error:
                self.problem("spec", name, str(error))
                continue
            if properties is not None and sorted(properties) != sorted(found.names):
                self.problem("spec", name, f"{name}: {_unlike('the manifest', properties, 'the .cfg', found.names)}")
            if twin is not None:
                if name not in python:
                    self.problem("twin", name, f"the twin's CONFIGS has no {name}")
                    continue
                known = self._properties(name, twin, python[name], found)
                unchecked = dict.fromkeys(known) if unchecked is None else unchecked
                for checked in found.names:
                    unchecked.pop(checked, None)
            later = self._get("spec", where, table, "thorough", list, []) or []
            for other in sorted(set(later) - set(found.properties)):
                self.problem("spec", name, f"{name}: thorough names {other}, which is none of the .cfg's PROPERTIES")
            yield name, ConfigEntry(name, found, states or 0, transitions or 0, tuple(later))
        for name in unchecked or ():
            self.problem("twin", name, f"no configuration checks the twin's property {name}: only in the twin: {name}")

    def _always(self, configs: Mapping[str, ConfigEntry]) -> None:
        """What TLC leaves to `thorough` in one configuration it decides in another with every effort."""
        always = {name for c in configs.values() for name in set(c.cfg.properties) - set(c.thorough)}
        for config in configs.values():
            for name in sorted(set(config.thorough) & set(config.cfg.properties) - always):
                self.problem(
                    "spec", name, f"{config.name}: {name} is thorough wherever it is checked; let one be quick"
                )

    def _properties(self, name: str, twin: Any, config: Any, found: cfg.Cfg) -> Iterable[str]:
        """A configuration checks some of the twin's properties, and nothing that the twin has not; answers them all."""
        try:
            world: World[Any] = twin(config)
        except Exception as error:
            self.problem("twin", name, f"the twin cannot be built: {type(error).__name__}: {error}")
            return ()
        others = {*world.steps(), *world.eventually(), *world.refines()}
        for kind, listed, known in (
            ("INVARIANTS", set(found.invariants) - {TYPE_OK}, set(world.invariants())),
            ("PROPERTIES", set(found.properties), others),
        ):
            if not listed <= known:
                self.problem("twin", name, f"{name}: the twin has no {', '.join(sorted(listed - known))} of {kind}")
        return [*world.invariants(), *others]

    # -- guards ---------------------------------------------------------------

    def _guards(
        self, twin: type[World[Any]] | None, configs: Mapping[str, ConfigEntry]
    ) -> Iterator[tuple[str, GuardEntry]]:
        marks = twin.guards() if twin is not None else {}
        listed = self._table("guard")
        for name in sorted(marks.keys() - listed.keys()):
            place = f"[{self.name}.guard.{name}]"
            self.problem("red", name, f"{name}: nothing shows that it matters; the manifest has no {place}")
        for name, table in listed.items():
            where = f"guard.{name}"
            if not isinstance(table, dict):
                self.problem("red", name, f"[{self.name}.{where}] is not a table")
                continue
            self._unknown("red", where, table, _GUARD_KEYS)
            law = self._get("red", where, table, "law", str)
            property_ = self._get("red", where, table, "property", str)
            config = self._get("red", where, table, "config", str)
            covered_by = self._get("red", where, table, "with", list, [])
            self._get("red", where, table, "holes", list, [])
            self._get("red", where, table, "note", str, "")
            if twin is not None and name not in marks:
                self.problem("red", name, f"{name}: neither a machine nor the environment of the twin has this guard")
                continue
            if law is None or property_ is None or config is None or covered_by is None or twin is None:
                continue
            mark = marks[name]
            if law != mark.law.value:
                self.problem("red", name, f"{name}: the manifest says {law}, its mark in Python says {mark.law.value}")
            for other in covered_by:
                if other not in marks or other == name:
                    self.problem("red", name, f"{name}: with = [{other!r}] is no other guard of this module")
            if config not in configs:
                self.problem("red", name, f"{name}: there is no configuration {config}")
                continue
            if property_ not in configs[config].cfg.names:
                self.problem("red", name, f"{name}: {self.name}_{config}.cfg does not check {property_}")
                continue
            if property_ == TYPE_OK:
                self.problem("red", name, f"{name}: {TYPE_OK} shows no harm; name the harm")
                continue
            known = tuple(other for other in covered_by if other in marks and other != name)
            yield name, GuardEntry(name, mark.kind, mark.law, property_, config, known)

    def _texts(self, twin: type[World[Any]]) -> None:
        """The names that the module uses are the names that the twin has, kinds included."""
        try:
            written = guards_in(self.spec, f"MC{self.name}")
        except ManifestError as error:
            self.problem("spec", self.name, str(error))
            return
        marks = {name: mark.kind for name, mark in twin.guards().items()}
        for name in sorted(written.keys() | marks.keys()):
            theirs, ours = written.get(name), marks.get(name)
            if ours is None and theirs is not None:
                self.problem("twin", name, f"{name}: {self.name}.tla has this {theirs.value}, the twin has not")
            elif theirs is None and ours is not None:
                self.problem("twin", name, f"{name}: the twin has this {ours.value}, {self.name}.tla has not")
            elif theirs is not ours and theirs is not None and ours is not None:
                self.problem("twin", name, f"{name}: a {theirs.value} in TLA+, a {ours.value} in Python")

    # -- the rest -------------------------------------------------------------

    def _coverage(self) -> Coverage | None:
        table = self._table("coverage")
        if not table:
            self.problem("twin", "coverage", f"the manifest has no [{self.name}.coverage] with actions, rows, refusals")
            return None
        self._unknown("twin", "coverage", table, _COVERAGE_KEYS)
        counts = [self._get("twin", "coverage", table, key, int) for key in ("actions", "rows", "refusals")]
        return Coverage(*(count or 0 for count in counts))

    def _reach(self, configs: Mapping[str, ConfigEntry]) -> str | None:
        if "reach" not in self.table:
            return None
        named: str | None = self._get("reach", "", self.table, "reach", str)
        if named is not None and named not in configs:
            self.problem("reach", named, f"[{self.name}] reach = {named!r}: there is no configuration of this name")
            return None
        return named

    def _runs(self, stage: str) -> str | None:
        if stage not in self.table:
            return None
        named: str | None = self._get(stage, "", self.table, stage, str)
        if named is not None and not re.fullmatch(r"none: \S.*|[\w.]+:\w+", named):
            self.problem(stage, named, f"[{self.name}] {stage} = {named!r}: neither module:NAME nor none: <reason>")
            return None
        return named

    def _table(self, key: str) -> dict[str, Any]:
        found = self.table.get(key, {})
        if isinstance(found, dict):
            return found
        self.problem("spec", key, f"{self.name}.{key} is not a table")
        return {}

    def _unknown(self, stage: str, where: str, table: Mapping[str, Any], known: set[str]) -> None:
        for key in sorted(table.keys() - known):
            place = ".".join(filter(None, (self.name, where)))
            self.problem(stage, key, f"[{place}] has an unknown key {key}; known are {', '.join(sorted(known))}")

    def _get(self, stage: str, where: str, table: Mapping[str, Any], key: str, kind: type, default: Any = None) -> Any:
        found = table.get(key, default)
        place = ".".join(filter(None, (self.name, where)))
        if found is None:
            self.problem(stage, key, f"[{place}] lacks {key}")
            return None
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            self.problem(stage, key, f"[{place}] {key} should be {kind.__name__}, is {found!r}")
            return None
        if isinstance(found, list) and not all(isinstance(one, str) for one in found):
            self.problem(stage, key, f"[{place}] {key} should be a list of str, is {found!r}")
            return None
        return found


def _unlike(one: str, first: Iterable[str], other: str, second: Iterable[str]) -> str:
    only_first = sorted(set(first) - set(second))
    only_second = sorted(set(second) - set(first))
    parts = [f"only in {one}: {', '.join(only_first)}"] if only_first else []
    parts += [f"only in {other}: {', '.join(only_second)}"] if only_second else []
    return "; ".join(parts) or f"{one} or {other} names something twice"


# -- what a module's text says ----------------------------------------------------------------------------------------

_COMMENT: Final = re.compile(r"\\\*[^\n]*|\(\*.*?\*\)", re.DOTALL)
_GUARD: Final = re.compile(r'\b(Guard|Permit)\s*\(\s*"(\w+)"')
_EXTENDS: Final = re.compile(r"\bEXTENDS\s+(\w+(?:\s*,\s*\w+)*)")
_INSTANCE: Final = re.compile(r"\bINSTANCE\s+(\w+)")


def text_of(spec: Path, module: str) -> str:
    """The module's text without comments. Raises `ManifestError` when the file is not there."""
    path = spec / f"{module}.tla"
    try:
        return _COMMENT.sub("", path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ManifestError(f"{path.name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ManifestError(f"{path.name}: {error}") from error


def modules_of(spec: Path, root: str, *, instances: bool) -> list[str]:
    """`root` and the modules of the directory that it extends, and those it instantiates if asked."""
    found: list[str] = []
    queue = [root]
    while queue:
        name = queue.pop(0)
        if name in found or (name != root and not (spec / f"{name}.tla").exists()):
            continue
        found.append(name)
        text = text_of(spec, name)
        for names in _EXTENDS.findall(text):
            queue += [n.strip() for n in names.split(",")]
        if instances:
            queue += _INSTANCE.findall(text)
    return found


def guards_in(spec: Path, root: str) -> dict[str, Kind]:
    """The guards and permits that the module and what it extends use, by name."""
    found: dict[str, Kind] = {}
    for module in modules_of(spec, root, instances=False):
        for kind, name in _GUARD.findall(text_of(spec, module)):
            found[name] = Kind.GUARD if kind == "Guard" else Kind.PERMIT
    return found
