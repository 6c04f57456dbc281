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
for number in (0, 1):
    found = director.run(director.RunPlan(number, seconds=8, damage=True), Path(sys.argv[1]) / str(number))
    print(json.dumps(attrs.asdict(found)), flush=True)
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


def runs(place: Path, mutation: str) -> list[dict[str, Any]]:
    """The results of two runs with a changed doctor."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(mutation=mutation), str(place)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_doctor_is_found_out(name: str, tmp_path: Path) -> None:
    rows = [row_of(result, "RuntimeRecovery") for result in runs(tmp_path, MUTATIONS[name])]
    assert Verdict.FAIL.value in {str(row["verdict"]) for row in rows}, rows


def test_the_same_runs_unchanged_are_explained(tmp_path: Path) -> None:
    for result in runs(tmp_path, ""):
        assert (result["problems"], result["limits"]) == ({}, {})
        assert result["events"]["RuntimeRecovery"] > 0
