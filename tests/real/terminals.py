"""Terminals in which something is started again whenever it has ended: `tests.real.terminal`, from outside."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.real.conftest import children, state, until
from tests.real.works import PATIENCE, ROOT, SCALE, Works


class Terminal:
    """See `tests.real.terminal`. `pid`: of the process that it started last."""

    def __init__(self, works: Works, *options: str, scale: float = SCALE) -> None:
        number = len(works.all) + 1
        self._output, self._errors = works.root / f"out{number}", works.root / f"err{number}"
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            words = [str(works.directory), works.socket, str(works.log), str(scale), *options]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.real.terminal", *words],
                cwd=ROOT,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )

    @property
    def _lines(self) -> list[tuple[int, str]]:
        whole = self._output.read_text().rpartition("\n")[0]
        return [(int(line.partition(" ")[0]), line.partition(" ")[2]) for line in whole.splitlines()]

    @property
    def pid(self) -> int:
        """Of the process that runs, or has ended last; 0 before the first."""
        lines = self._lines
        return lines[-1][0] if lines else 0

    @property
    def role(self) -> str:
        """What it is now."""
        lines = self._lines
        return lines[-1][1] if lines else ""

    @property
    def leads(self) -> bool:
        """It says so."""
        return self.role.startswith("leading")

    @property
    def pids(self) -> list[int]:
        """Of all that it has started."""
        return [pid for pid, what in self._lines if what == "starts"]

    @property
    def ended(self) -> dict[int, int]:
        """The statuses of those that have ended."""
        return {pid: int(what.rpartition(" ")[2]) for pid, what in self._lines if what.startswith("ends with ")}

    @property
    def place(self) -> int | None:
        """The number of the thread that it had last."""
        found = [re.search(r"thread -?\d+/(\d+)$", what) for _, what in self._lines]
        numbers = [int(match[1]) for match in found if match is not None]
        return numbers[-1] if numbers else None

    @property
    def thread(self) -> int:
        """The same."""
        assert self.place is not None, self._lines
        return self.place

    @property
    def said(self) -> str:
        """What was written on standard error."""
        return self._errors.read_text()

    def becomes(self, text: str) -> str:
        """Wait until its role begins with `text`."""
        until(lambda: self.role.startswith(text), PATIENCE)
        return self.role

    @property
    def shell(self) -> int:
        """The pid of the terminal itself."""
        return self._process.pid

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal the process that it started last."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def stop(self) -> None:
        """It stands still, and what it has started, when this returns."""
        with suppress(ProcessLookupError):
            os.killpg(self.shell, signal.SIGSTOP)
        until(lambda: _stands(self.shell))
        until(lambda: all(_stands(pid) for pid in children(self.shell)))

    def go_on(self) -> None:
        """Both go on."""
        with suppress(ProcessLookupError):
            os.killpg(self.shell, signal.SIGCONT)

    def close(self) -> None:
        """End it, and what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _stands(pid: int) -> bool:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return True
    return all(state(pid, int(task.name)) in ("T", "", "Z", "X") for task in tasks)
