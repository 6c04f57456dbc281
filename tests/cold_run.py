"""A cold `tenure verify`, as a user runs it, beside the other tests: it takes minutes, and they wait a lot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

KINDER = 5
"""How much its priority is below that of the tests: they have deadlines, which it must not use up."""
PATIENCE = 20.0
"""Seconds that it has to end what it runs when it is not wanted any more."""


class ColdRun:
    """One run, from when this is made. `place`: an empty directory for its cache and what it says."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._output = place / "output"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tenure.adapters.cli", "verify", "--json", place / "report.json"],
                env=dict(os.environ, TENURE_CACHE=str(place / "cache")),
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=place,
            )
        mine = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, self._process.pid, min(19, mine + KINDER))  # and so of all that it starts

    def report(self) -> dict[str, Any]:
        """Wait for its end: its report, with its exit status and its output. AssertionError if it wrote none."""
        status = self._process.wait()
        output = self._output.read_text(encoding="utf-8")
        path = self._place / "report.json"
        assert path.exists(), f"exit status {status}, and no report:\n{output}"
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found | {"exit": status, "output": output}

    def close(self) -> None:
        """End it, if nobody has waited for it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
