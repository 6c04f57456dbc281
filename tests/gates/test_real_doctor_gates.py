"""A changed doctor turns the runs with damage red."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenure.adapters.verify.real.check import row_of
from tenure.adapters.verify.result import Verdict

SCRIPT = """
import json, os, sys
from pathlib import Path
import attrs
from tenure.adapters.verify.real import director
{mutation}
number, seconds = int(sys.argv[2]), float(sys.argv[3])
found = director.run(director.RunPlan(number, seconds=seconds, damage=True), Path(sys.argv[1]) / str(number))
print(json.dumps(attrs.asdict(found)))
"""

MUTATIONS = {
    "it deletes": """
from tenure.adapters.looking.quarantine import Quarantine
Quarantine.move = lambda self, path: os.unlink(path) if os.path.isfile(path) else os.rename(path, path + ".gone")
""",
    "it heals nothing": """
from tenure.adapters.looking.doctor import Doctor
Doctor.heal = lambda self: None
""",
    "it moves what it has not seen": """
from tenure.adapters.looking import doctor
confirm = doctor.Confirm
doctor.Confirm = lambda *given: confirm(*given[:4], frozenset(["registry", "state"]))
""",
}


RUNS = 8
"""How many runs a change may take to show: each has little damage, and on a busy machine little of it is healed."""


def run(place: Path, mutation: str, number: int, seconds: float) -> dict[str, Any]:
    """The result of a run with a changed doctor; `seconds`: what the search for an explanation may take."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(mutation=mutation), str(place), str(number), str(seconds)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_doctor_is_found_out(name: str, tmp_path: Path) -> None:
    rows = []
    for number in range(RUNS):
        rows.append(row_of(run(tmp_path, MUTATIONS[name], number, 8), "RuntimeRecovery"))
        if rows[-1]["verdict"] == Verdict.FAIL.value:
            return
    pytest.fail(str(rows))


def test_the_same_runs_unchanged_are_explained(tmp_path: Path) -> None:
    for number in range(2):
        result = run(tmp_path, "", number, 60)
        assert (result["problems"], result["limits"]) == ({}, {})
        assert result["events"]["RuntimeRecovery"] > 0
