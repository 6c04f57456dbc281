"""A sample of a trace, put to TLC (DESIGN 8): a literal module that constrains the specification's Next.

The explanation that was found, recorded and unrecorded steps, becomes the module ``Trace``: at its step n it allows
the action of that step alone, with its arguments, and the phase that was observed. ``NotDone`` says that the end is
not reached; when TLC violates it, the specification has this behaviour, not its Python twin only.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from tenure.adapters import tlc
from tenure.adapters.errors import TenureError
from tenure.adapters.tlavalue import canonical, text
from tenure.adapters.trace.check import Part, Verdict
from tenure.adapters.trace.file_transaction import FileTransactions
from tenure.adapters.trace.instance import Args, Instance, Taken
from tenure.adapters.trace.leader_election import LeaderElections
from tenure.adapters.trace.polling_ownership import NAMES, PollingOwnerships
from tenure.adapters.verify.manifest import spec_directory

MODULE: Final = "Trace"


@attrs.frozen
class Asked:
    """What TLC made of it."""

    agrees: bool
    message: str
    undetermined: bool = False


@attrs.frozen
class Line:
    """One step of the literal trace; `phase`: what the node's phase is afterwards, where that was observed."""

    action: str
    args: Args
    node: str = ""
    phase: str = ""


def check(verdict: Verdict, sample: int, given: str | None = None, *, timeout: float = 120.0) -> Asked:
    """Ask TLC about the first `sample` events of the largest part of each module. Raises `TlcMissing`."""
    tool = tlc.find(given)
    largest: dict[str, Part] = {}
    for part in verdict.parts:
        module = part.instance.module
        if module not in largest or len(part.found.steps) > len(largest[module].found.steps):
            largest[module] = part
    said: list[str] = []
    for module, part in largest.items():
        steps = lines(part, sample)
        module_text, cfg = literal(part.instance, steps)
        with tempfile.TemporaryDirectory(prefix="tenure-trace-") as name:
            room = Path(name)
            for path in spec_directory().glob("*.tla"):
                shutil.copy(path, room / path.name)
            (room / f"{MODULE}.tla").write_text(module_text, encoding="utf-8")
            run = tool.run(MODULE, cfg, room, timeout=timeout, brief=True)
        if run.answer is tlc.Answer.VIOLATED and run.violated == "NotDone":
            said.append(f"TLC: {module} has the first {len(steps)} steps of {part.title} as a behaviour")
            continue
        if run.answer is tlc.Answer.HOLDS:
            line = steps[min(run.states, len(steps)) - 1]
            return Asked(
                False, f"TLC: {module} has no behaviour beyond step {run.states} of {len(steps)} ({line.action})"
            )
        return Asked(False, f"TLC gave no verdict on {module}: {' '.join(run.message.split())[:300]}", True)
    return Asked(True, "\n".join(said))


def lines(part: Part, sample: int) -> list[Line]:
    """The steps of the first `sample` events; a look that saw what is not there any more stands where it saw it, behind
    what its node had done by then."""
    found = part.found.steps[:sample]
    before: list[list[Line]] = [[] for _ in found]
    at: list[list[Line]] = []
    for place, (index, outcome) in enumerate(found):
        event = part.merged.events[index]
        steps = [_line(part.instance, step, event.observed) for step in outcome.path]
        if outcome.late:
            early = place - outcome.late
            for passed in range(early, place):
                if part.merged.events[found[passed][0]].node == event.node:
                    before[early] += at[passed]
                    at[passed] = []
            before[early] += steps
            steps = []
        at.append(steps)
    return [line for place, steps in enumerate(at) for line in (*before[place], *steps)]


def _line(instance: Instance[Any], step: Taken, observed: Mapping[str, object]) -> Line:
    phase = observed.get("phase")
    if step.event and isinstance(phase, str):
        return Line(step.action, step.args, str(step.args[0]), phase)
    return Line(step.action, step.args)


def literal(instance: Instance[Any], steps: Sequence[Line]) -> tuple[str, str]:
    """The module and its configuration."""
    used = {str(value) for line in steps for value in line.args if isinstance(value, str)}
    definitions, constants = _constants(instance, used, len(steps))
    rows = []
    for number, line in enumerate(steps, 1):
        args = f"({', '.join(map(_value, line.args))})" if line.args else ""
        seen = f" /\\ node'[{_value(line.node)}].phase = {_value(line.phase)}" if line.phase else ""
        rows.append(f"    \\/ at = {number} /\\ at' = {number + 1} /\\ {line.action}{args}{seen}")
    module = [
        f"---- MODULE {MODULE} ----",
        f"EXTENDS MC{instance.module}, Naturals, TLC",
        "VARIABLE at",
        *definitions,
        "TraceInit == Init /\\ at = 1",
        "TraceNext ==",
        *rows,
        "TraceSpec == TraceInit /\\ [][TraceNext]_<<vars, at>>",
        f"NotDone == at <= {len(steps)}",
        "====",
        "",
    ]
    cfg = ["SPECIFICATION TraceSpec", "CONSTANTS", *(f"    {line}" for line in constants), "INVARIANT NotDone", ""]
    return "\n".join(module), "\n".join(cfg)


def _constants(instance: Instance[Any], used: Collection[str], budget: int) -> tuple[list[str], list[str]]:
    config = instance.world.config  # type: ignore[attr-defined]
    if isinstance(instance, FileTransactions):
        pid = {t: p for t, p in config.pid.items() if t in used or p in used}
        return (
            [f"TracePid == {_function(pid)}"],
            [
                f"Threads = {_set(pid)}",
                "Pid <- TracePid",
                f"Foreign = {_set(set(config.foreign) & set(pid.values()))}",
                f"Faults = {_set(config.faults)}",
                f"Neighbours = {_set(config.neighbours)}",
                f"Budget = {budget}",
                "Off = {}",
            ],
        )
    if isinstance(instance, LeaderElections):
        runtimes = {r: at for r, at in config.runtimes.items() if r in used or at[0] in used}
        return (
            [
                f"TraceProc == {_function({r: process for r, (process, _) in runtimes.items()})}",
                f"TraceHome == {_function({r: key for r, (_, key) in runtimes.items()})}",
            ],
            [
                f"Runtimes = {_set(runtimes)}",
                "Proc <- TraceProc",
                f"Keys = {_set(config.keys)}",
                "Home <- TraceHome",
                f"Causes = {_set(config.causes)}",
                f"Budget = {budget}",
                "MaxEpoch = 1000000",
                "Off = {}",
            ],
        )
    if isinstance(instance, PollingOwnerships):
        if not set(config.runtimes) <= set(NAMES):
            raise TenureError(
                f"{instance.title}: the specification has an old and a new runtime, and this process had "
                f"{len(config.runtimes)}; leave --tlc out"
            )
        return (
            [],
            [
                f"Runtimes = {_set(config.runtimes)}",
                f"Causes = {_set(config.causes)}",
                f"Budget = {budget}",
                f"ThreadMode = {str(config.thread_mode).upper()}",
                f"Background = {str(config.background).upper()}",
                "Off = {}",
            ],
        )
    raise TenureError(f"{instance.module}: TLC cannot be asked about its traces yet; leave --tlc out")


def _value(value: object) -> str:
    return text(canonical(value))


def _set(values: Collection[str]) -> str:
    return "{" + ", ".join(_value(v) for v in sorted(values)) + "}"


def _function(pairs: Mapping[str, str]) -> str:
    return " @@ ".join(f"{_value(key)} :> {_value(value)}" for key, value in pairs.items())
