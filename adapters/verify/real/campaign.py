"""Many runs, a few at once: ``python -m tenure.adapters.verify.real.campaign --runs 21`` prints their results as JSON.

It is a program of its own, because runs fork, and a verifier with threads must not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import attrs

from tenure.adapters.verify.real.director import FLEETS, RunPlan, RunResult, run

AT_ONCE = 5
"""Runs beside each other: they mostly wait for leases to pass."""
LAST_FLEET = len(FLEETS) - 1
"""The number of a run with a fleet to which everything happens."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, and print one JSON line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run, which is its seed")
    parser.add_argument("--real-time", type=int, default=0, help="so many more runs with leases of their real length")
    parser.add_argument("--damage", type=int, default=0, help="so many more runs in which files are damaged and healed")
    parser.add_argument("--fleets", type=int, default=0, help="so many more runs in which a fleet of members is")
    parser.add_argument("--fleets-real-time", type=int, default=0, help="so many of these with leases of real length")
    parser.add_argument("--work", type=int, default=0, help="so many more runs in which workplaces execute updates")
    parser.add_argument("--keep", type=Path, help="where traces that are not explained are left")
    chosen = parser.parse_args(arguments)
    plans = [RunPlan(number) for number in range(chosen.first, chosen.first + chosen.runs)]
    plans += [RunPlan(number, leases=2, scale=1.0) for number in range(chosen.real_time)]
    plans += [RunPlan(number, damage=True) for number in range(chosen.damage)]
    plans += [RunPlan(number, fleet=True) for number in range(chosen.first, chosen.first + chosen.fleets)]
    plans += [RunPlan(LAST_FLEET, leases=1, scale=1.0, fleet=True) for _ in range(chosen.fleets_real_time)]
    plans += [RunPlan(number, leases=8, work=True) for number in range(chosen.first, chosen.first + chosen.work)]
    for result in results(plans, chosen.keep):
        print(json.dumps(result), flush=True)


def results(plans: Sequence[RunPlan], keep: Path | None = None) -> Iterator[dict[str, Any]]:
    """The results of all runs, as they come, as the values of `RunResult`; `error` for one that broke down."""
    place = Path(tempfile.mkdtemp(prefix="tenure-real-"))
    signal.signal(signal.SIGTERM, _ended)
    running: dict[int, int] = {}
    waiting = list(enumerate(plans))
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                number, plan = waiting.pop(0)
                running[_start(number, plan, place)] = number
            pid, _ = os.wait()
            done = running.pop(pid, None)
            if done is not None:
                yield _read(place / f"{done}.json", plans[done])
    finally:
        for pid in running:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        left = [] if running else [entry for entry in place.iterdir() if entry.is_dir()]
        if keep is not None:
            for entry in left:
                shutil.move(entry, keep / entry.name)
        if keep is not None or not left:
            shutil.rmtree(place, ignore_errors=True)
        # Else the traces of runs that were not explained stay where the results say that they are.


def _start(number: int, plan: RunPlan, place: Path) -> int:
    """A process group of its own for each run, so that it can be ended with all of its processes."""
    pid = os.fork()
    if pid:
        with suppress(OSError):
            os.setpgid(pid, pid)
        return pid
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    result: dict[str, Any]
    try:
        result = attrs.asdict(run(plan, place / f"run-{number}"))
    except BaseException as error:
        result = {"number": plan.number, "kind": plan.kind, "error": f"{error}\n{traceback.format_exc()}"}
    (place / f"{number}.json").write_text(json.dumps(result), encoding="utf-8")
    os._exit(0)


def _read(path: Path, plan: RunPlan) -> dict[str, Any]:
    if not path.exists():
        return {"number": plan.number, "kind": plan.kind, "error": "the run was killed"}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _ended(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


__all__ = ["RunResult", "main", "results"]

if __name__ == "__main__":
    main()
