"""The checks that `tenure verify` runs (DESIGN 7), each of which can run beside the others.

A `ConfigCheck` runs one configuration with every guard on: its TLC half belongs to the stage `spec`, its twin half
to `twin`. A `GuardCheck` takes one guard away: that its property breaks belongs to `red`, that both graphs still
agree to `twin`.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import attrs

from tenure.adapters import dot, story
from tenure.adapters.errors import TenureError
from tenure.adapters.tlc import Answer, Run, Tlc, TlcMissing
from tenure.adapters.verify import graphs
from tenure.adapters.verify.coverage import NOTHING, Recorder, Taken
from tenure.adapters.verify.effort import Effort
from tenure.adapters.verify.manifest import TYPE_OK, ConfigEntry, GuardEntry, ModuleEntry
from tenure.adapters.verify.reach import reach
from tenure.adapters.verify.result import Value, Verdict
from tenure.models.explore import Graph, LimitReached, Outcome, Violation, check

STATES: Final = 150_000
"""The explorer's limit on one graph; beyond it the verdict is UNDETERMINED, and memory stays within its budget."""

SMALL: Final = 500
"""Pinned states below which TLC's product of the graph and the liveness properties is small enough to be dumped."""

SHORT: Final = 13_000
"""States below which a run is a short one, over before Java's slow compiler has paid for itself: measured, with it and
without, of 16 configurations of 4,000 to 26,000 states."""

Row = dict[str, Value]


@attrs.frozen
class Tools:
    """What a check runs with."""

    tlc: Tlc | None
    missing: str
    """Why there is no TLC, and what to install."""
    timeout: float
    """Seconds that one TLC run may take."""
    states: int
    """States that the explorer may find in one graph."""
    unparsed: dict[str, Run] = attrs.field(factory=dict, eq=False, repr=False)
    """The modules that TLC could not parse, by root: what it said the first time, said again without running it."""

    def run(self, entry: ModuleEntry, cfg: str, *, dump: Path | None = None, brief: bool = False) -> Run:
        """Run TLC, which is there, on a module, unless it is known not to parse."""
        found = self.unparsed.get(entry.root)
        if found is None:
            assert self.tlc is not None
            found = self.tlc.run(entry.root, cfg, entry.spec, dump=dump, timeout=self.timeout, brief=brief)
            if found.unparsed:
                self.unparsed[entry.root] = found
        return found


@attrs.frozen
class Checked:
    """What a check found: rows with their stage, and what the twin took."""

    rows: tuple[tuple[str, Row], ...]
    taken: Taken = NOTHING
    totals: tuple[str, float, int, int] | None = None
    """Stage, seconds, states and transitions, where they are not the sums over the rows."""

    @property
    def passed(self) -> bool:
        return all(row["verdict"] == Verdict.PASS.value for _, row in self.rows)


class Check(Protocol):
    """One unit of work."""

    @property
    def entry(self) -> ModuleEntry: ...

    @property
    def title(self) -> str:
        """For the progress line."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that this check has rows for."""

    def key(self) -> tuple[str, ...]:
        """What distinguishes this check among those of its module, its configuration's text included."""

    def run(self, tools: Tools) -> Checked: ...


@attrs.frozen
class ConfigCheck:
    """One configuration, every guard on."""

    entry: ModuleEntry
    config: ConfigEntry
    effort: Effort = Effort.QUICK

    @property
    def title(self) -> str:
        return f"{self.entry.name} {self.config.name}"

    @property
    def stages(self) -> tuple[str, ...]:
        return ("spec", "twin")

    def key(self) -> tuple[str, ...]:
        config = self.config
        pins = (str(config.states), str(config.transitions))
        return ("config", config.name, config.cfg.text(), *self._asked(), *pins)

    def _asked(self) -> list[str]:
        """What TLC is asked; the twin is asked everything."""
        later = () if self.effort is Effort.THOROUGH else self.config.thorough
        return [name for name in self.config.cfg.names if name not in later]

    def run(self, tools: Tools) -> Checked:
        with workroom() as room:
            dump, spec = self._spec(tools, room)
            twin, taken = self._twin(tools, dump, room)
        return Checked((("spec", spec), ("twin", twin)), taken)

    def _spec(self, tools: Tools, room: Path) -> tuple[dot.Dump | None, Row]:
        """Run TLC with its properties; the graph if the run was complete."""
        config, entry, names = self.config, self.entry, self._asked()
        row: Row = {"config": config.name, "properties": list(names)}
        if tools.tlc is None:
            return None, row_of(row, Verdict.UNDETERMINED, tools.missing)
        # With liveness TLC dumps its product with the properties as well, six times as large: a run without properties
        # that dumps the graph alone costs less, unless starting Java is most of it.
        whole = config.states < SMALL or not self._has_liveness(names)
        started = time.perf_counter()
        path: Path | None = room / "graph.dot" if whole else None
        run = tools.run(entry, config.cfg.text((), names), dump=path, brief=config.states < SHORT)
        row |= {"seconds": round(run.seconds, 2), "states": run.states}
        if run.answer is Answer.TIMEOUT:
            return None, row_of(row, Verdict.UNDETERMINED, f"{config.name}: {run.message}")
        if run.answer is Answer.ERROR:
            return None, row_of(row, Verdict.FAIL, _error(config.name, run))
        if run.answer is Answer.VIOLATED:
            name = run.violated or self._name(tools, tools.tlc) or "a property"
            message = _lines(f"{config.name}: {name} is violated", story.lines(story.of_run(run)))
            return None, row_of(row | {"property": name, "tlc": run.length}, Verdict.FAIL, message)
        if path is None:
            path, stop = _dump(entry, config, (), tools, room)
            if stop is not None:
                return None, row_of(row, stop.verdict, stop.message)
            assert path is not None
        dump = dot.read(path)
        row |= {"seconds": round(time.perf_counter() - started, 2), "transitions": len(dump.edges)}
        drift = _drift(config, len(dump.labels), len(dump.edges))
        return dump, row_of(row, Verdict.FAIL if drift else Verdict.PASS, drift)

    def _has_liveness(self, names: Collection[str]) -> bool:
        """Whether one of them is about more than states and steps; if the twin cannot say, one may be."""
        return not _steps(self.entry, self.config.name) >= set(self.config.cfg.properties) & set(names)

    def _name(self, tools: Tools, tlc: Tlc) -> str | None:
        """The property that TLC does not name: the first that breaks alone."""
        for name in (name for name in self.config.cfg.properties if name in self._asked()):
            cfg = self.config.cfg.text((), [name])
            if tlc.run(self.entry.root, cfg, self.entry.spec, timeout=tools.timeout).answer is Answer.VIOLATED:
                return name
        return None

    def _twin(self, tools: Tools, dump: dot.Dump | None, room: Path) -> tuple[Row, Taken]:
        config, entry = self.config, self.entry
        row: Row = {"config": config.name, "off": []}
        started = time.perf_counter()
        recorder = Recorder()
        lacking = {TYPE_OK, *_lacking(entry, config.name, config.cfg.names)}  # said where the manifest is read
        outcome = explored(entry, config.name, (), [n for n in config.cfg.names if n not in lacking], tools, recorder)
        if isinstance(outcome, Stop):
            return row_of(row, outcome.verdict, f"{config.name}: {outcome.message}"), NOTHING
        broken = outcome.violations
        if not outcome.complete:
            whole = explored(entry, config.name, (), (), tools, recorder)
            if isinstance(whole, Stop):
                return row_of(row, whole.verdict, f"{config.name}: {whole.message}"), NOTHING
            outcome = whole
        graph = outcome.graph
        transitions = graph.transitions()
        taken = recorder.taken({action for _, action, _ in transitions})
        row |= {"states": len(graph.states), "transitions": len(transitions)}
        messages = [
            _lines(f"{config.name}: the twin breaks {name}", story.lines(story.of_violation(violation)))
            for name, violation in broken.items()
        ]
        verdict = Verdict.FAIL if messages else Verdict.PASS
        if dump is None and tools.tlc is not None:
            path, stop = _dump(entry, config, (), tools, room)
            dump = dot.read(path) if path is not None else None
            if stop is not None:
                messages.append(stop.message)
                verdict = stop.verdict if verdict is Verdict.PASS else verdict
        if dump is not None:
            difference = _compare(graph, dump)
            if difference:
                messages.insert(0, f"{config.name}: {difference}")
                verdict = Verdict.FAIL
        elif tools.tlc is None:
            drift = _drift(config, len(graph.states), len(transitions))
            messages.append(drift or tools.missing)
            verdict = Verdict.FAIL if drift or messages[1:] else Verdict.UNDETERMINED
        row["seconds"] = round(time.perf_counter() - started, 2)
        return row_of(row, verdict, "\n".join(filter(None, messages))), taken


@attrs.frozen
class GuardCheck:
    """One guard or permit, taken away."""

    entry: ModuleEntry
    guard: GuardEntry

    @property
    def config(self) -> ConfigEntry:
        return self.entry.configs[self.guard.config]

    @property
    def title(self) -> str:
        return f"{self.entry.name} without {self.guard.name}"

    @property
    def stages(self) -> tuple[str, ...]:
        return ("red", "twin")

    def key(self) -> tuple[str, ...]:
        guard = self.guard
        return ("guard", guard.name, guard.property, guard.config, *guard.covered_by, self.config.cfg.text())

    def run(self, tools: Tools) -> Checked:
        guard = self.guard
        off = (guard.name, *guard.covered_by)
        with workroom() as room:
            red, graph, dump = self._red(off, tools, room)
            rows: list[tuple[str, Row]] = [("red", red), ("twin", self._twin(off, graph, dump, tools, room))]
            if guard.covered_by:
                # What it does in the machine may show only where its cover is off: compare that graph as well.
                rows.append(("twin", self._twin((guard.name,), None, None, tools, room)))
                rows.append(("twin", self._twin(guard.covered_by, None, None, tools, room)))
        return Checked(tuple(rows))

    def _red(self, off: Sequence[str], tools: Tools, room: Path) -> tuple[Row, Graph[Any] | None, Path | None]:
        """Both halves of the red twin; and the graphs, where a half had to build its own to the end."""
        guard = self.guard
        row = self.red_row()
        started = time.perf_counter()
        stops: list[Stop] = []
        if guard.covered_by:
            stops += self._alone(tools)
        run, dump = self._break_tlc(off, tools, room, stops)
        violation, graph = self._break_twin(off, tools, stops)
        if guard.covered_by and violation is not None:
            stops += self._idle(violation.length, tools)
        row["tlc"] = run.length if run is not None and run.answer is Answer.VIOLATED else None
        row["twin"] = violation.length if violation is not None else None
        row["states"] = run.states if run is not None else 0
        unparsed = run is not None and run.unparsed
        if (
            row["tlc"] is None
            and not unparsed
            and violation is not None
            and any(s.verdict is Verdict.FAIL for s in stops)
        ):
            stops.append(Stop(Verdict.FAIL, _lines("the twin's story", story.lines(story.of_violation(violation)))))
        if row["twin"] is None and run is not None and run.answer is Answer.VIOLATED:
            stops.append(Stop(Verdict.FAIL, _lines("TLC's story", story.lines(story.of_run(run)))))
        differ = row["tlc"] not in (None, row["twin"])
        if differ and run is not None and violation is not None and self.is_stepwise():
            stops.append(Stop(Verdict.FAIL, self._unequal(run, violation)))
        verdict = Verdict.PASS
        if stops:
            fails = any(stop.verdict is Verdict.FAIL for stop in stops)
            verdict = Verdict.FAIL if fails else Verdict.UNDETERMINED
        row["seconds"] = round(time.perf_counter() - started, 2)
        return row_of(row, verdict, "\n".join(dict.fromkeys(stop.message for stop in stops))), graph, dump

    def red_row(self) -> Row:
        """The row of `red`, without what was found."""
        guard = self.guard
        return {
            "guard": guard.name,
            "kind": guard.kind.value,
            "law": guard.law.value,
            "property": guard.property,
            "config": guard.config,
            "with": list(guard.covered_by),
            "tlc": None,
            "twin": None,
        }

    def _names(self, off: Collection[str]) -> str:
        return " and ".join(off)

    def is_stepwise(self) -> bool:
        """Whether the property is of states or of steps, where breadth-first search finds a shortest story."""
        guard = self.guard
        return guard.property in self.config.cfg.invariants or guard.property in _steps(self.entry, guard.config)

    def _unequal(self, run: Run, violation: Violation[Any]) -> str:
        text = f"{self.guard.name}: the two stories of {self.guard.property} differ in length"
        text = f"{text}: {run.length} in TLC, {violation.length} in the twin"
        theirs = _lines("TLC's story", story.lines(story.of_run(run)))
        ours = _lines("the twin's story", story.lines(story.of_violation(violation)))
        return f"{text}: the property is not the same on both sides\n{theirs}\n{ours}"

    def _alone(self, tools: Tools) -> list[Stop]:
        """Defence in depth says that the property holds while its cover stands."""
        guard, found = self.guard, []
        where = f"{guard.name}: the manifest says that {self._names(guard.covered_by)} covers it"
        if tools.tlc is not None:
            cfg = self.config.cfg.text((guard.name,), [guard.property])
            run = tools.run(self.entry, cfg, brief=True)
            if run.answer is Answer.VIOLATED:
                text = f"{where}, but without it alone TLC breaks {guard.property}"
                found.append(Stop(Verdict.FAIL, _lines(text, story.lines(story.of_run(run)))))
            elif run.answer is not Answer.HOLDS:
                found.append(_stop_of(run, guard.name))
        outcome = explored(self.entry, guard.config, (guard.name,), [guard.property], tools)
        if isinstance(outcome, Stop):
            found.append(outcome)
        elif outcome.violations:
            text = f"{where}, but without it alone the twin breaks {guard.property}"
            violation = outcome.violations[guard.property]
            found.append(Stop(Verdict.FAIL, _lines(text, story.lines(story.of_violation(violation)))))
        return found

    def _idle(self, length: int, tools: Tools) -> list[Stop]:
        """What the guard adds to its cover: without the cover alone the harm needs more steps, or never comes."""
        guard = self.guard
        outcome = explored(self.entry, guard.config, guard.covered_by, [guard.property], tools)
        if isinstance(outcome, Stop):
            return [Stop(outcome.verdict, f"without {self._names(guard.covered_by)} alone: {outcome.message}")]
        violation = outcome.violations.get(guard.property)
        if violation is None or violation.length > length:
            return []
        text = f"guard {guard.name} is idle: without {self._names(guard.covered_by)} alone the story is the same"
        return [Stop(Verdict.FAIL, _lines(text, story.lines(story.of_violation(violation))))]

    def _break_tlc(
        self, off: Sequence[str], tools: Tools, room: Path, stops: list[Stop]
    ) -> tuple[Run | None, Path | None]:
        guard = self.guard
        if tools.tlc is None:
            stops.append(Stop(Verdict.UNDETERMINED, tools.missing))
            return None, None
        # A broken invariant ends the run, so its dump would be no graph; liveness is decided on the whole of it.
        liveness = not self.is_stepwise()
        whole = liveness and self.config.states < SMALL
        path = room / "red.dot" if whole else None
        cfg = self.config.cfg.text(off, [guard.property])
        run = tools.run(self.entry, cfg, dump=path, brief=not liveness or self.config.states < SHORT)
        if run.answer is Answer.HOLDS:
            text = f"{guard.property} still holds in TLC without {self._names(off)}, at {guard.config}"
            stops.append(Stop(Verdict.FAIL, f"{text}: the guard or the property is idle"))
        elif run.answer is not Answer.VIOLATED:
            stops.append(_stop_of(run, f"without {self._names(off)}"))
        return run, path if run.complete and path is not None and path.exists() else None

    def _break_twin(
        self, off: Sequence[str], tools: Tools, stops: list[Stop]
    ) -> tuple[Violation[Any] | None, Graph[Any] | None]:
        guard = self.guard
        outcome = explored(self.entry, guard.config, off, [guard.property], tools)
        if isinstance(outcome, Stop):
            stops.append(Stop(outcome.verdict, f"without {self._names(off)}: {outcome.message}"))
            return None, None
        violation = outcome.violations.get(guard.property)
        if violation is None:
            text = f"{guard.property} still holds in the twin without {self._names(off)}, at {guard.config}"
            stops.append(Stop(Verdict.FAIL, f"{text}: the guard or the property is idle"))
        return violation, outcome.graph if outcome.complete else None

    def _twin(self, off: Sequence[str], graph: Graph[Any] | None, dump: Path | None, tools: Tools, room: Path) -> Row:
        """Graph equality with `off` taken away, without properties."""
        name = f"{self.guard.config} without {self._names(off)}"
        row: Row = {"config": self.guard.config, "off": list(off)}
        started = time.perf_counter()
        if graph is None:
            outcome = explored(self.entry, self.guard.config, off, (), tools)
            if isinstance(outcome, Stop):
                return row_of(row, outcome.verdict, f"{name}: {outcome.message}")
            graph = outcome.graph
        row |= {"states": len(graph.states), "transitions": len(graph.transitions())}
        if tools.tlc is None:
            return row_of(row, Verdict.UNDETERMINED, tools.missing)
        if dump is None:
            dump, stop = _dump(self.entry, self.config, off, tools, room)
            if stop is not None:
                message = stop.message if self.entry.root in tools.unparsed else f"{name}: {stop.message}"
                return row_of(row, stop.verdict, message)
            assert dump is not None
        difference = _compare(graph, dump)
        row["seconds"] = round(time.perf_counter() - started, 2)
        return row_of(row, Verdict.FAIL if difference else Verdict.PASS, f"{name}: {difference}" if difference else "")


@attrs.frozen
class ReachCheck:
    """The stage `reach` of one module, whole."""

    entry: ModuleEntry
    effort: str

    @property
    def title(self) -> str:
        return f"{self.entry.name} reach"

    @property
    def stages(self) -> tuple[str, ...]:
        return ("reach",)

    def key(self) -> tuple[str, ...]:
        sizes = [f"{c.name} {c.states} {c.transitions}" for c in self.entry.configs.values()]
        return ("reach", self.effort, str(self.entry.reach), *sizes)

    def run(self, tools: Tools) -> Checked:
        try:
            found = reach(self.entry, self.effort)
        except Exception as error:
            message = f"the stage raised {type(error).__name__}: {error}{_place(error)}"
            return Checked((("reach", row_of({}, Verdict.FAIL, message)),))
        rows = tuple(("reach", dict(row)) for row in found.detail)
        return Checked(rows, totals=("reach", found.seconds, found.states, found.transitions))


# -- the parts --------------------------------------------------------------------------------------------------------


@attrs.frozen
class Stop:
    """Why a half has no result, or a bad one."""

    verdict: Verdict
    message: str


@contextmanager
def workroom() -> Iterator[Path]:
    name = tempfile.mkdtemp(prefix="tenure-verify-")
    try:
        yield Path(name)
    finally:
        shutil.rmtree(name, ignore_errors=True)


def row_of(row: Row, verdict: Verdict, message: str) -> Row:
    found = {"states": 0, "transitions": 0, "seconds": 0.0} | row | {"verdict": verdict.value}
    return found | {"message": message} if message else found


def _lines(head: str, rest: Collection[str]) -> str:
    return "\n".join([f"{head}:", *(f"  {line}" for line in rest)])


def _steps(entry: ModuleEntry, config: str) -> frozenset[str]:
    """The properties of steps, as far as the twin can say."""
    try:
        return frozenset(entry.world(config).steps())
    except Exception:
        return frozenset()  # whoever explores it says what is wrong


def _lacking(entry: ModuleEntry, config: str, names: Collection[str]) -> list[str]:
    """Those of `names` that the twin has no property for, as far as it can say."""
    try:
        world = entry.world(config)
        known = {*world.invariants(), *world.steps(), *world.refines(), *world.eventually()}
    except Exception:
        return []  # whoever explores it says what is wrong
    return [name for name in names if name not in known]


def _error(name: str, run: Run) -> str:
    if run.unparsed:
        return f"TLC cannot parse the module: {run.message}"  # the same of every check
    text = f"{name}: TLC gave no verdict (status {run.status}): {run.message}"
    return _lines(text, story.lines(story.of_run(run))) if run.story else text


def _stop_of(run: Run, name: str) -> Stop:
    if run.answer is Answer.TIMEOUT:
        return Stop(Verdict.UNDETERMINED, f"{name}: {run.message}")
    return Stop(Verdict.FAIL, _error(name, run))


def _drift(config: ConfigEntry, states: int, transitions: int) -> str:
    drifts = []
    if states != config.states:
        drifts.append(f"{states} distinct states, the manifest pins {config.states}")
    if transitions != config.transitions:
        drifts.append(f"{transitions} distinct (state, action, state'), the manifest pins {config.transitions}")
    return f"{config.name}: {'; '.join(drifts)}" if drifts else ""


def explored(
    entry: ModuleEntry,
    config: str,
    off: Collection[str],
    names: Collection[str] | None,
    tools: Tools,
    recorder: Recorder | None = None,
    *,
    go_on: bool = False,
) -> Outcome[Any] | Stop:
    """Explore the twin; what goes wrong in its own code is a failure of the twin, not of the verifier."""
    if lacking := _lacking(entry, config, names or ()):
        return Stop(Verdict.FAIL, f"the twin has no {', '.join(lacking)}")
    try:
        world = entry.world(config, off)
        if recorder is not None:
            recorder.attach(world)
        return check(world, names, tools.states, go_on=go_on)
    except LimitReached as error:
        away = " with it off" if off else ""
        advice = f"name a smaller configuration than {config}{away}"
        return Stop(Verdict.UNDETERMINED, f"the explorer's limit was hit: {error}; {advice}")
    except Exception as error:
        return Stop(Verdict.FAIL, f"the twin raised {type(error).__name__}: {error}{_place(error)}")


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def _dump(
    entry: ModuleEntry, config: ConfigEntry, off: Collection[str], tools: Tools, room: Path
) -> tuple[Path | None, Stop | None]:
    """TLC's graph without properties."""
    assert tools.tlc is not None
    path = room / "graph.dot"
    run = tools.run(entry, config.cfg.text(off, ()), dump=path, brief=True)
    if run.answer is not Answer.HOLDS:
        return None, _stop_of(run, config.name)
    return path, None


def _compare(graph: Graph[Any], dump: dot.Dump | Path) -> str:
    """The first difference in words, or nothing."""
    try:
        difference = graphs.compare(graph, dump if isinstance(dump, dot.Dump) else dot.read(dump))
    except TenureError as error:
        return f"the graphs cannot be compared: {error}"
    if difference is None:
        return ""
    more = f"\n  ({difference.count} transitions differ in all)" if difference.count > 1 else ""
    return f"the graphs differ: {difference.message}{more}"


def guarded(check_: Check, tools: Tools) -> Checked:
    """Run a check, and answer rows whatever happens: TLC that does not start leaves the twin's half, anything
    unforeseen is a failure that says where."""
    try:
        return check_.run(tools)
    except TlcMissing as error:
        if tools.tlc is not None:
            return guarded(check_, attrs.evolve(tools, tlc=None, missing=str(error)))
        return failed(check_, str(error))
    except TenureError as error:
        return failed(check_, str(error))
    except Exception as error:
        return failed(check_, f"the verifier raised {type(error).__name__}: {error}{_place(error)}")


def failed(check_: Check, message: str) -> Checked:
    row = row_of({"check": check_.title}, Verdict.FAIL, f"{check_.title}: {message}")
    return Checked(tuple((stage, dict(row)) for stage in check_.stages))
