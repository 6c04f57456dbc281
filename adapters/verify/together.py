"""The red twins of one configuration, checked together where that can be, and alone where anything is amiss.

What is shown of each guard is what `GuardCheck` shows; only how TLC is run differs (`batch`). Only a guard for which
all is as it should be gets its rows from here, so that what fails is said by one piece of code, `GuardCheck`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from tenure.adapters.errors import TenureError
from tenure.adapters.tlc import Answer
from tenure.adapters.verify import batch, graphs
from tenure.adapters.verify.batch import Asked, Found
from tenure.adapters.verify.checks import (
    SHORT,
    Checked,
    GuardCheck,
    Row,
    Stop,
    Tools,
    explored,
    guarded,
    row_of,
    workroom,
)
from tenure.adapters.verify.result import Verdict


def together(checks: Sequence[GuardCheck], tools: Tools) -> Iterator[Checked]:
    """Run the checks, which are of one module and one configuration and of guards that nothing covers."""
    found = _found(checks, tools)
    parts: graphs.Parts = {}
    for check in checks:
        checked = _checked(check, found, parts, tools) if found is not None else None
        yield checked if checked is not None else guarded(check, tools)


def _found(checks: Sequence[GuardCheck], tools: Tools) -> Found | None:
    entry, config = checks[0].entry, checks[0].config
    if tools.tlc is None or entry.root in tools.unparsed:
        return None
    twins = [_asked(check) for check in checks]
    brief = config.states * len(checks) < SHORT
    try:
        with workroom() as room:
            return batch.run(tools.tlc, entry, config, twins, room, tools.timeout, brief=brief)
    except Exception:  # each check alone comes to it again, and says it
        return None


def _asked(check: GuardCheck) -> Asked:
    return Asked(frozenset([check.guard.name]), check.guard.property)


def _checked(check: GuardCheck, found: Found, parts: graphs.Parts, tools: Tools) -> Checked | None:
    """The rows of a guard that passes, or None."""
    started = time.perf_counter()
    guard, entry = check.guard, check.entry
    off = [guard.name]
    asked = _asked(check)
    dump = found.graphs.get(asked.off)
    outcome = explored(entry, guard.config, off, [guard.property], tools, go_on=True)
    if dump is None or isinstance(outcome, Stop) or not outcome.complete:
        return None
    violation = outcome.violations.get(guard.property)
    length = found.lengths.get(asked)
    if length is None:
        run = tools.run(entry, check.config.cfg.text(off, [guard.property]), brief=check.config.states < SHORT)
        length = run.length if run.answer is Answer.VIOLATED else None
    if violation is None or length is None or (length != violation.length and check.is_stepwise()):
        return None
    compared = time.perf_counter()
    try:
        if graphs.compare(outcome.graph, dump, parts) is not None:
            return None
    except TenureError:
        return None
    done = time.perf_counter()
    share = found.seconds / len(found.graphs)
    red: Row = check.red_row() | {"tlc": length, "twin": violation.length, "states": len(dump.labels)}
    red["seconds"] = round(share + compared - started, 2)
    twin: Row = {"config": guard.config, "off": off, "seconds": round(done - compared, 2)}
    twin |= {"states": len(outcome.graph.states), "transitions": len(outcome.graph.transitions())}
    return Checked((("red", row_of(red, Verdict.PASS, "")), ("twin", row_of(twin, Verdict.PASS, ""))))
