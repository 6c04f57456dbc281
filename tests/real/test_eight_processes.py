"""Eight processes on one directory, killed and stopped at random; with processes of the other system among them.

TENURE_SECONDS=60 makes the disturbance last a minute (by hand); here it lasts a few seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SECONDS = float(os.environ.get("TENURE_SECONDS", "5"))
SCRIPT = """
import json, os, random, sys, time
from pathlib import Path
import attrs
from tenure.adapters.verify.real import director, worker
from tests.real import other_system

foreign = int(sys.argv[2])
ours = director.work

def work(room, faults, slot, seed, timings):
    if slot >= foreign:
        return ours(room, faults, slot, seed, timings)
    other_system.STALE_MS = timings.stale_ms
    chance = random.Random(seed)
    owner = other_system.Owner(room.agent / "tmp" / "telegram" / "owners.json", cwd=str(room.agent))
    while True:
        try:
            if owner.acquire():
                until = time.monotonic() + chance.uniform(0.5, 3) * timings.stale_ms / 1000
                while time.monotonic() < until and owner.refresh():
                    owner.commit_if_owned(lambda: worker.effect(room, 0))
                    time.sleep(timings.refresh_ms / 1000)
                owner.release()
        except (TimeoutError, RuntimeError):
            pass
        time.sleep(timings.check_ms / 1000)

def idle(*_):
    while True:
        time.sleep(60)

director.work = work
if foreign:
    # What a commit sees of owners that do not record is no trace of the model's owners; without them it is explained.
    director.commits = idle
    director.PATIENCE = 0  # so that none is waited for
lease = 0.4
plan = director.RunPlan(9, leases=float(sys.argv[3]) / lease, processes=8, seconds=120)
print(json.dumps(attrs.asdict(director.run(plan, Path(sys.argv[1])))))
"""


def run(place: Path, foreign: int) -> dict[str, Any]:
    """Eight processes, of which so many are of the other system; those are killed and stopped as well."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(place), str(foreign), str(SECONDS)],
        capture_output=True,
        text=True,
        timeout=240 + SECONDS,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_eight_of_ours(tmp_path: Path) -> None:
    """Every event is explained, effects are never interleaved, epochs only grow, and the debris goes."""
    found = run(tmp_path / "room", 0)

    assert found["problems"] == {}
    assert found["limits"] == {}
    assert min(found["kills"], found["stops"], found["effects"]) > 3, found


def test_five_of_ours_and_three_of_the_other_system(tmp_path: Path) -> None:
    """Foreign participants are environment: what ours did is explained, and nobody's effect is interleaved."""
    found = run(tmp_path / "room", 3)

    assert found["problems"] == {"FencedCommit": "nothing was recorded"}
    assert found["limits"] == {}
    assert min(found["kills"], found["stops"], found["effects"]) > 3, found
