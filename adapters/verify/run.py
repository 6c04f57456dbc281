"""`verify`: the checks of the modules asked for, run beside each other, gathered into stages (DESIGN 7)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

from tenure.adapters.tlc import Run, Tlc, TlcMissing, find
from tenure.adapters.verify import answers, workers
from tenure.adapters.verify.bind.check import BindCheck, bind_checks, named
from tenure.adapters.verify.cache import Cache, digest, inputs
from tenure.adapters.verify.checks import (
    STATES,
    Check,
    Checked,
    ConfigCheck,
    GuardCheck,
    ReachCheck,
    Row,
    Tools,
    failed,
    guarded,
)
from tenure.adapters.verify.coverage import NOTHING, Taken, missing
from tenure.adapters.verify.effort import Effort
from tenure.adapters.verify.manifest import TYPE_OK, ManifestError, ModuleEntry
from tenure.adapters.verify.result import ModuleResult, StageResult, Verdict, worst
from tenure.adapters.verify.together import together

STAGES = ("spec", "twin", "red", "reach", "bind", "real")


TOGETHER: Final = 60_000
"""States that the guards of one configuration may come to, as pinned, to be taken together: what a process holds."""

WORTH_TEACHING: Final = 8
"""Checks that TLC is started for, from which on it pays to teach Java first."""


@attrs.frozen
class Options:
    """How to verify."""

    effort: Effort = Effort.QUICK
    tlc: str | None = None
    """A jar or a script to use in place of the pinned TLC."""
    timeout: float | None = None
    """Seconds that one TLC run may take; 300 for quick, 1200 for thorough."""
    cache: Path | None = None
    """Where passed checks are kept; None keeps nothing."""
    workers: int = 3
    """Checks at once, each with at most one JVM: one more than two cores, since what Python does takes turns."""
    states: int = STATES
    """The explorer's limit on one graph."""
    stages: tuple[str, ...] = STAGES
    """What to run. The graphs with a guard off, which belong to `twin`, come with `red`."""

    @property
    def seconds(self) -> float:
        return self.timeout or (300.0 if self.effort is Effort.QUICK else 1200.0)


Progress = Callable[[str, int, int], None]
"""Told after each check: its title, how many are done, how many there are."""


def verify(
    entries: Sequence[ModuleEntry], options: Options, progress: Progress | None = None
) -> tuple[ModuleResult, ...]:
    """Verify the modules. Nothing that goes wrong in a check raises: it is a row with its verdict."""
    tlc, why = _tlc(options)
    if tlc is not None and not tlc.script and options.cache is not None:
        tlc = attrs.evolve(tlc, warm=options.cache / "java" / f"{digest(tlc.command)[:16]}.aot")
    tools = Tools(tlc, why, options.seconds, options.states)
    checks: list[Check] = [check for entry in entries for check in _checks(entry, options)]
    cache = _Kept(options, tools, entries)
    results = _run(checks, tools, cache, options, progress)
    return tuple(_module(entry, results, options) for entry in entries)


def _tlc(options: Options) -> tuple[Tlc | None, str]:
    try:
        return find(options.tlc), ""
    except TlcMissing as error:
        return None, str(error)


def _checks(entry: ModuleEntry, options: Options) -> list[Check]:
    """The largest first, so that the end is not one long run beside an idle core."""
    found: list[Check] = [ReachCheck(entry, options.effort.value)] if "reach" in options.stages else []
    if "real" in options.stages and entry.real is not None and not entry.real.startswith("none:"):
        found.append(named(entry, entry.real)(entry, options.effort.value))
    if "bind" in options.stages:
        found += bind_checks(entry, options.effort)
    if entry.twin is None:
        return found
    known = [c for c in entry.configs.values() if c.name in entry.python_configs]
    if {"spec", "twin"} & set(options.stages):
        found += [ConfigCheck(entry, c, options.effort) for c in sorted(known, key=lambda c: -c.states)]
    if "red" in options.stages:
        names = {c.name for c in known}
        found += [GuardCheck(entry, g) for g in entry.guards.values() if g.config in names]
    return found


class _Kept:
    """The cache as `verify` uses it: `quick` reads it, both write it, and only passed checks are in it."""

    def __init__(self, options: Options, tools: Tools, entries: Iterable[ModuleEntry]) -> None:
        self.cache = Cache(options.cache) if options.cache is not None and tools.tlc is not None else None
        self.read = options.effort is Effort.QUICK
        self.inputs: dict[str, str] = {}
        if self.cache is not None and tools.tlc is not None:
            for entry in entries:
                try:
                    self.inputs[entry.name] = inputs(entry, tools.tlc.identity)
                except ManifestError:
                    continue

    def key(self, check: Check) -> str | None:
        if self.cache is None or check.entry.name not in self.inputs:
            return None
        return digest([self.inputs[check.entry.name], *check.key()])

    def get(self, key: str | None) -> Checked | None:
        found = self.cache.get(key) if key is not None and self.cache is not None and self.read else None
        if found is None:
            return None
        try:
            taken = Taken(*(frozenset(part) for part in found["taken"]))
            rows = tuple((stage, row | {"cached": True}) for stage, row in found["rows"])
            totals = found["totals"]
            return Checked(rows, taken, (totals[0], 0.0, *totals[2:]) if totals else None)
        except (LookupError, TypeError, ValueError):
            return None  # kept by a verifier that kept something else

    def put(self, key: str | None, checked: Checked) -> None:
        if key is None or self.cache is None or not checked.passed:
            return
        taken = checked.taken
        parts = [sorted(part) for part in attrs.astuple(taken, recurse=False)]
        self.cache.put(key, {"rows": [list(pair) for pair in checked.rows], "taken": parts, "totals": checked.totals})


def _run(
    checks: Sequence[Check], tools: Tools, cache: _Kept, options: Options, progress: Progress | None
) -> dict[str, list[Checked]]:
    results: dict[int, Checked] = {}
    done = 0

    def told(check: Check) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(check.title, done, len(checks))

    waiting: list[int] = []
    keys = [cache.key(check) for check in checks]
    for number, check in enumerate(checks):
        kept = cache.get(keys[number])
        if kept is None:
            waiting.append(number)
        else:
            results[number] = kept
            told(check)
    for number, checked in _answered(checks, waiting, tools, options):
        results[number] = checked
        cache.put(keys[number], checked)
        told(checks[number])
    by_module: dict[str, list[Checked]] = defaultdict(list)
    for number, check in enumerate(checks):
        by_module[check.entry.name].append(results[number])
    return by_module


def _answered(
    checks: Sequence[Check], waiting: Sequence[int], tools: Tools, options: Options
) -> Iterator[tuple[int, Checked]]:
    """What the checks with these numbers find, as it comes: each group of checks in a process of its own."""
    groups = _groups(checks, waiting)
    left = set(waiting)

    def task(group: Sequence[int]) -> Callable[[], Iterator[tuple[int, Checked] | dict[str, Run]]]:
        def run() -> Iterator[tuple[int, Checked] | dict[str, Run]]:
            yield from zip(group, _found([checks[number] for number in group], tools), strict=True)
            yield tools.unparsed

        return run

    tasks = [task(group) for group in groups]
    if (teacher := _teacher([checks[number] for number in waiting], tools)) is not None:
        tasks.insert(0, teacher)
        groups.insert(0, [])
    for told in workers.run(tasks, options.workers):
        if isinstance(told, workers.Told):
            if isinstance(told.result, dict):
                tools.unparsed.update(told.result)  # what starts from now on is not asked again
            else:
                left.discard(told.result[0])
                yield told.result
        elif told.why:
            for number in left.intersection(groups[told.task]):
                left.discard(number)
                yield number, failed(checks[number], f"the verifier did not finish: {told.why}")


def _teacher(checks: Sequence[Check], tools: Tools) -> Callable[[], Iterator[Any]] | None:
    """A task that leaves what Java starts faster with, if nothing is there yet and there will be many starts."""
    tlc = tools.tlc
    found = [check for check in checks if isinstance(check, (ConfigCheck, GuardCheck))]
    if tlc is None or tlc.warm is None or tlc.warm.exists() or len(found) < WORTH_TEACHING:
        return None
    first = min(found, key=lambda check: check.config.states)

    def run() -> Iterator[Any]:
        with suppress(Exception):  # the checks will come to it, and say it
            cfg = first.config.cfg.text()
            tlc.run(first.entry.root, cfg, first.entry.spec, timeout=tools.timeout, teach=True)
        yield from ()

    return run


def _found(group: Sequence[Check], tools: Tools) -> Iterator[Checked]:
    guards = [check for check in group if isinstance(check, GuardCheck)]
    if len(guards) == len(group) and not any(check.guard.covered_by for check in guards):
        return together(guards, tools)
    return (guarded(check, tools) for check in group)


def _groups(checks: Sequence[Check], waiting: Sequence[int]) -> list[list[int]]:
    """The checks that run one after the other: guards of one configuration, which TLC takes together, or one check.

    The largest first, so that the end is not one long run beside an idle core.
    """
    alone: list[list[int]] = []
    guards: dict[tuple[str, str], list[int]] = defaultdict(list)
    if real := [number for number in waiting if checks[number].stages == ("real",)]:
        alone.append(real)  # they share their runs
    for number in waiting:
        check = checks[number]
        if checks[number].stages == ("real",):
            continue
        if isinstance(check, GuardCheck) and not check.guard.covered_by:
            guards[check.entry.name, check.guard.config].append(number)
        else:
            alone.append([number])
    for numbers in guards.values():
        first = checks[numbers[0]]
        assert isinstance(first, GuardCheck)
        most = max(1, TOGETHER // max(1, first.config.states))
        alone += [numbers[at : at + most] for at in range(0, len(numbers), most)]
    return sorted(alone, key=lambda group: -sum(_weight(checks[number]) for number in group))


def _weight(check: Check) -> float:
    """About how long a check takes, in states of a graph that is compared."""
    match check:
        case ConfigCheck(config=config):
            return 1_000 + 3 * config.states
        case GuardCheck(config=config):
            return 500 + 1.5 * config.states
        case ReachCheck():
            return 3_000
        case BindCheck():
            return 20_000
        case _:
            return math.inf


# -- gathering --------------------------------------------------------------------------------------------------------


def _module(entry: ModuleEntry, results: Mapping[str, list[Checked]], options: Options) -> ModuleResult:
    rows: dict[str, list[Row]] = {stage: [] for stage in STAGES}
    for problem in entry.problems:
        if problem.stage == "reach":
            continue  # the stage has it
        rows[problem.stage].append({"problem": problem.name, "verdict": Verdict.FAIL.value, "message": problem.message})
    taken, totals = NOTHING, {}
    for checked in results.get(entry.name, []):
        taken |= checked.taken
        if checked.totals is not None:
            totals[checked.totals[0]] = checked.totals[1:]
        for stage, row in checked.rows:
            rows[stage].append(row)
    if entry.twin is not None and entry.configs:
        rows["twin"] += _coverage(entry, taken, rows["twin"])
        rows["red"] += _idle_properties(entry, rows["red"])
    stages = [
        _stage(stage, rows[stage], totals.get(stage))
        for stage in STAGES
        if stage in options.stages and (stage not in _OPTIONAL or rows[stage])
    ]
    for stage in _OPTIONAL:
        reason = getattr(entry, stage) or ""
        if stage in options.stages and reason.startswith("none:") and not rows[stage]:
            stages.append(StageResult(stage, Verdict.RAN_NOTHING, 0.0, 0, 0, none=reason[len("none:") :].strip()))
    return ModuleResult(entry.name, tuple(stages))


_OPTIONAL: Final = ("bind", "real")
"""Stages of modules whose manifest names what they run, or says why there is nothing."""


def _stage(name: str, rows: Sequence[Row], totals: tuple[float, int, int] | None) -> StageResult:
    def total(key: str) -> float:
        return sum(v for row in rows if isinstance(v := row.get(key), (int, float)) and not isinstance(v, bool))

    verdict = worst(Verdict(row["verdict"]) for row in rows)
    if totals is not None:
        return StageResult(name, verdict, round(totals[0], 2), totals[1], totals[2], tuple(rows))
    fresh = [row for row in rows if not row.get("cached")]
    seconds = sum(v for row in fresh if isinstance(v := row.get("seconds"), (int, float)))
    return StageResult(
        stage=name,
        verdict=verdict,
        seconds=round(seconds, 2),
        states=int(total("states")),
        transitions=int(total("transitions")),
        detail=tuple(rows),
    )


def counts(taken: Taken) -> dict[str, int]:
    """The numbers that ``[M.coverage]`` pins."""
    return {"actions": len(taken.actions), "rows": len(taken.rows), "refusals": len(taken.refusals)}


def _coverage(entry: ModuleEntry, taken: Taken, rows: Sequence[Row]) -> list[Row]:
    """Every action, row and refusal is taken somewhere, and as many as the manifest pins."""
    base = [row for row in rows if row.get("off") == []]
    if any(row["verdict"] != Verdict.PASS.value and not row.get("states") for row in base):
        return []  # a graph is missing: what it would have taken is not known, and its own row says why
    found = counts(taken)
    row: Row = {"coverage": "all configurations", "verdict": Verdict.PASS.value, **found}
    try:
        world = entry.world(next(c for c in entry.configs if c in entry.python_configs))
    except (StopIteration, Exception):
        return []
    messages = [*(message for _, message in missing(world, taken)), *answers.drift(entry, taken)]
    pinned = entry.coverage
    if pinned is not None:
        messages += [
            f"coverage: {value} {key} taken, the manifest pins {getattr(pinned, key)}"
            for key, value in found.items()
            if value != getattr(pinned, key)
        ]
    if messages:
        row |= {"verdict": Verdict.FAIL.value, "message": "\n".join(messages)}
    return [row]


def _idle_properties(entry: ModuleEntry, rows: Sequence[Row]) -> list[Row]:
    """A property that no red twin breaks may be trivially true."""
    broken = {row["property"] for row in rows if row["verdict"] == Verdict.PASS.value and "guard" in row}
    failed = {row["property"] for row in rows if row["verdict"] != Verdict.PASS.value and "guard" in row}
    listed = dict.fromkeys(name for config in entry.configs.values() for name in config.cfg.names)
    found: list[Row] = []
    for name in listed:
        if name == TYPE_OK or name in broken or name in failed:
            continue
        message = f"no guard needs property {name}: no red twin breaks it, so it may be trivially true"
        found.append({"property": name, "verdict": Verdict.FAIL.value, "message": message})
    return found
