"""What `tenure lead --trace` records of a takeover is explained by the models."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PROGRAM = (sys.executable, "-m", "tenure.adapters.cli")


def until(what: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for it."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def test_a_recorded_takeover_is_explained(tmp_path: Path) -> None:
    """The leader is killed, its successor stopped past its lease, a third one leads, and ends when it is told to."""
    (tmp_path / "agent").mkdir()
    log = tmp_path / "log"
    command = ("sh", "-c", f'echo "$TENURE_EPOCH" >> {log}; exec sleep 1000')

    def epochs() -> list[str]:
        return log.read_text().split() if log.exists() else []

    leads: list[subprocess.Popen[bytes]] = []
    options = ("--lease", "1", "--trace", str(tmp_path / "trace"))
    try:
        for _ in range(3):
            leads.append(subprocess.Popen([*PROGRAM, "lead", str(tmp_path / "agent"), *options, "--", *command]))
            until(lambda: bool(epochs()))
        registry = tmp_path / "agent" / "tmp" / "telegram" / "owners.json"
        leads[0].kill()
        until(lambda: len(epochs()) == 2)
        second = next(lead for lead in leads if f'"pid": {lead.pid}' in registry.read_text())
        second.send_signal(signal.SIGSTOP)
        until(lambda: len(epochs()) == 3)
        second.send_signal(signal.SIGCONT)
        for lead in leads:
            lead.terminate()
            lead.wait(30)
    finally:
        for lead in leads:
            for number in (signal.SIGCONT, signal.SIGKILL):
                if lead.poll() is None:
                    os.kill(lead.pid, number)
            lead.wait(30)
    checked = subprocess.run([*PROGRAM, "trace", "check", str(tmp_path / "trace")], capture_output=True, text=True)

    assert epochs() == ["1", "2", "3"]
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "events explained" in checked.stdout
