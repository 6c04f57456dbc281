"""The check of one module in the stage `real`. The runs are the same for all modules, and are made once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import attrs

from tenure.adapters.verify.cache import digest_of_sources
from tenure.adapters.verify.checks import Checked, Row, Tools
from tenure.adapters.verify.manifest import ModuleEntry
from tenure.adapters.verify.real.director import FLEET
from tenure.adapters.verify.real.working import WORK
from tenure.adapters.verify.result import Verdict

PROGRAM: Final = "tenure.adapters.verify.real.campaign"
OPTIONS: Final = ("--runs", "--real-time", "--damage", "--fleets", "--fleets-real-time", "--work")
RUNS: Final[Mapping[str, tuple[int, ...]]] = {"quick": (21, 1, 4, 8, 1, 3), "thorough": (200, 5, 40, 80, 2, 30)}
"""By effort: runs whose leases are scaled, runs in real time, (scaled) runs with damage and healing, runs with a fleet
of members, scaled and in real time, and (scaled) runs with workplaces."""
APART: Final = frozenset({*FLEET, *WORK})
"""Modules that only some of the runs are about."""
SECONDS: Final[Mapping[str, float]] = {"quick": 180.0, "thorough": 1_500.0}
"""How long all of them may take."""


@attrs.frozen
class RealCheck:
    """All runs, as far as they are about one module."""

    entry: ModuleEntry
    effort: str

    @property
    def title(self) -> str:
        return f"{self.entry.name} real"

    @property
    def stages(self) -> tuple[str, ...]:
        return ("real",)

    def key(self) -> tuple[str, ...]:
        return ("real", self.effort, str(RUNS[self.effort]), digest_of_sources(PROGRAM))

    def run(self, tools: Tools) -> Checked:
        found = campaign(self.effort)
        if isinstance(found, str):
            verdict = Verdict.UNDETERMINED if found.startswith("limit") else Verdict.FAIL
            return Checked((("real", {"runs": 0, "verdict": verdict.value, "message": found}),))
        rows = [row_of(result, self.entry.name) for result in found]
        rows.append(whole(found, self.entry.name, sum(RUNS[self.effort])))
        return Checked(tuple(("real", row) for row in rows))


def row_of(result: Mapping[str, Any], module: str) -> Row:
    """What one run says of one module."""
    row: Row = {"run": int(result["number"]), "kind": str(result["kind"])}
    title = f"run {result['number']} ({result['kind']})"
    if "error" in result:
        return row | {"verdict": Verdict.FAIL.value, "message": f"{title}: {result['error']}"}
    row |= {
        "seconds": float(result["seconds"]),
        "kills": int(result["kills"]),
        "stops": int(result["stops"]),
        "transitions": int(result["events"].get(module, 0)),
    }
    if module in result["problems"]:
        where = f"; the trace is in {result['room']}" if os.path.isdir(result["room"]) else ""
        said = f"{title}: {result['problems'][module]}{where}"
        return row | {"verdict": Verdict.FAIL.value, "message": said}
    if module in result["limits"]:
        return row | {"verdict": Verdict.UNDETERMINED.value, "message": f"{title}: {result['limits'][module]}"}
    return row | {"verdict": Verdict.PASS.value}


def whole(results: Sequence[Mapping[str, Any]], module: str, wanted: int) -> Row:
    """What all runs together must have: as many as were asked for, and that something was done to them."""
    done = [result for result in results if "error" not in result]
    if module in APART:
        done = [result for result in done if module in result["events"]]
    kills, stops = sum(r["kills"] for r in done), sum(r["stops"] for r in done)
    events, effects = sum(r["events"].get(module, 0) for r in done), sum(r["effects"] for r in done)
    row: Row = {"runs": len(results), "kills": kills, "stops": stops, "effects": effects}
    missing = [
        said
        for said, there in (
            (f"only {len(results)} of {wanted} runs", len(results) >= wanted),
            ("nobody was killed", kills > 0),
            ("nobody was stopped", stops > 0),
            (f"no event of {module}", events > 0),
            ("no effect was committed", effects > 0 or module in FLEET),
            ("nothing moved", module != "QueueHandoff" or any(r.get("moves") for r in done)),
            ("no command ran", module != "FencedCommit" or any(r.get("commands") for r in done)),
        )
        if not there
    ]
    if missing:
        return row | {"verdict": Verdict.FAIL.value, "message": f"the runs show nothing: {', '.join(missing)}"}
    return row | {"verdict": Verdict.PASS.value}


_made: dict[str, list[dict[str, Any]] | str] = {}
_making: Final = threading.Lock()
_running: Final[set[subprocess.Popen[str]]] = set()


def campaign(effort: str) -> list[dict[str, Any]] | str:
    """The results of all runs; what went wrong, where there are none. Made once for all modules."""
    with _making:
        if effort not in _made:
            _made[effort] = _make(effort)
        return _made[effort]


def forget() -> None:
    """The next check makes the runs anew."""
    with _making:
        _made.clear()


def stop_runs() -> None:
    """End what runs, with all of its processes."""
    for process in list(_running):
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)


def _make(effort: str) -> list[dict[str, Any]] | str:
    options = zip(OPTIONS, RUNS[effort], strict=True)
    command = [sys.executable, "-m", PROGRAM, *(str(part) for option in options for part in option)]
    started = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _running.add(process)
    try:
        text, errors = process.communicate(timeout=SECONDS[effort])
    except subprocess.TimeoutExpired:
        return f"limit hit: the runs took more than {time.monotonic() - started:.0f} s"
    finally:
        _running.discard(process)
        _end(process)
    if process.returncode != 0:
        return f"the runs ended with status {process.returncode}: {errors.strip()[-2000:]}"
    return [json.loads(line) for line in text.splitlines()]


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
