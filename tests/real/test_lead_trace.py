"""What `tenure lead --trace` records of a takeover is explained by the models."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.conftest import stop, until

PROGRAM = (sys.executable, "-m", "tenure.adapters.cli")


@pytest.mark.parametrize("ready", [True, False], ids=["all stand by", "the others are starting"])
def test_a_recorded_takeover_is_explained(ready: bool, tmp_path: Path) -> None:
    """The leader is killed, its successor stopped past its lease, a third one leads, and ends when it is told to.

    Where the others are starting when the leader is killed, one may take over while the other one has its first look.
    """
    (tmp_path / "agent").mkdir()
    log, registry = tmp_path / "log", tmp_path / "agent" / "tmp" / "telegram" / "owners.json"
    command = ("sh", "-c", f'echo "$TENURE_EPOCH" >> {log}; exec sleep 1000')

    def epochs() -> list[str]:
        return log.read_text().split() if log.exists() else []

    leads: list[subprocess.Popen[bytes]] = []
    options = ("--lease", "2", "--trace", str(tmp_path / "trace"))

    def start() -> None:
        with (tmp_path / f"stderr{len(leads)}").open("wb") as errors:
            words = [*PROGRAM, "lead", str(tmp_path / "agent"), *options, "--", *command]
            leads.append(subprocess.Popen(words, stderr=errors))

    try:
        start()
        until(lambda: bool(epochs()))
        start()
        start()
        if ready:
            until(lambda: all("standing by" in (tmp_path / f"stderr{n}").read_text() for n in (1, 2)))
        leads[0].kill()
        until(lambda: len(epochs()) == 2)
        pid = json.loads(registry.read_text())["default"]["pid"]
        second = next(lead for lead in leads if lead.pid == pid)
        stop(second.pid, registry)
        until(lambda: len(epochs()) == 3)
        second.send_signal(signal.SIGCONT)
        for lead in sorted(leads, key=lambda lead: lead is not second):  # who stands by first: it would lead again
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
