"""The stage `real` turns red: an adapter that was changed leaves traces that no behaviour explains."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenure.adapters.verify.manifest import load, spec_directory
from tenure.adapters.verify.real import check
from tenure.adapters.verify.real.check import RUNS, campaign, row_of, whole
from tenure.adapters.verify.real.director import KINDS
from tenure.adapters.verify.real.worker import interleaved
from tenure.adapters.verify.result import Verdict

SCRIPT = """
import json, sys
from pathlib import Path
import attrs
from tenure.adapters.verify.real import director
{mutation}
number, seconds = int(sys.argv[2]), float(sys.argv[3])
found = director.run(director.RunPlan(number, seconds=seconds), Path(sys.argv[1]) / str(number))
print(json.dumps(attrs.asdict(found)))
"""

MUTATIONS = {
    "a live holder is evicted": (
        "FileTransaction",
        (0, 7),
        """
import time
from tenure.adapters.files import passage
from tenure.adapters.verify.real import worker
at_once = worker.effect
worker.effect = lambda room, epoch: (time.sleep(0.05), at_once(room, epoch))
passage.FILE_TRANSACTION = passage.FILE_TRANSACTION.without("holder_is_gone")
""",
    ),
    "the guard is not entered": (
        "FileTransaction",
        (0,),
        """
from tenure.adapters.files import guard
guard.GuardedFile.run = lambda self, operation, **_: operation(guard.Guarded("none", self.ports.recorder.order()))
""",
    ),
    "a live lease is taken": (
        "LeaderElection",
        (0,),
        """
from tenure.adapters.files import lease, lease_steps
from tenure.adapters.runtime import standby
standby.Standby.wait = lambda self, timeout_ms: True
weak = lease.LEADER_ELECTION.without("lease_has_passed")
lease.LEADER_ELECTION = lease_steps.LEADER_ELECTION = weak
""",
    ),
    "an epoch is used again": (
        "LeaderElection",
        (0,),
        """
from tenure.adapters.files import lease, lease_steps
lease.read_mark = lambda *_: 0
lease_steps.raise_mark = lambda *_: None
""",
    ),
    "a command runs under an old epoch": (
        "FencedCommit",
        (0, 7),
        """
from tenure.adapters.lead import commit
commit.FENCED_COMMIT = commit.FENCED_COMMIT.without("epoch_is_current")
""",
    ),
}


ROUNDS = 4
"""How often the runs of a change may be made until it shows: on a busy machine little happens in one."""


def run(place: Path, mutation: str, number: int, seconds: float) -> dict[str, Any]:
    """The result of a run with a changed adapter; `seconds`: what the search for an explanation may take."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(mutation=mutation), str(place), str(number), str(seconds)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_adapter_is_found_out(name: str, tmp_path: Path) -> None:
    """Some event of its runs is unexplained, or two effects were interleaved, and the row of the module says so."""
    module, numbers, mutation = MUTATIONS[name]
    # Two inside at once are seen first by whoever is counted in there: the module whose operation goes on.
    modules = {module, "LeaderElection"}
    rows = []
    for more in range(0, ROUNDS * len(KINDS), len(KINDS)):  # other chances, of the same kind
        for number in numbers:
            result = run(tmp_path, mutation, number + more, 8)
            rows += [row_of(result, module) for module in modules]
            if {Verdict.FAIL.value, Verdict.UNDETERMINED.value} & {str(row["verdict"]) for row in rows}:
                return
    pytest.fail(str(rows))


def test_the_same_runs_unchanged_are_explained(tmp_path: Path) -> None:
    """What is found is the change, and not the run."""
    for number in range(2):
        result = run(tmp_path, "", number, 60)
        assert result["problems"] == {}
        assert result["limits"] == {}


def test_runs_that_show_nothing_fail() -> None:
    """Too few, nobody killed or stopped, no event, no effect."""
    empty = {"number": 0, "kind": "kill", "seconds": 1, "kills": 0, "stops": 0, "effects": 0, "events": {}}

    row = whole([empty | {"problems": {}, "limits": {}}], "LeaderElection", 2)

    assert row["verdict"] == Verdict.FAIL.value
    for said in ("only 1 of 2 runs", "nobody was killed", "nobody was stopped", "no event", "no effect"):
        assert said in str(row["message"])
    assert "no command ran" in str(whole([empty], "FencedCommit", 1)["message"])


def test_a_run_that_breaks_down_fails_and_a_limit_is_undetermined() -> None:
    """Neither is passed over."""
    base = {"number": 3, "kind": "kill", "seconds": 1.0, "kills": 1, "stops": 0, "events": {}, "room": ""}

    broken = row_of({"number": 3, "kind": "kill", "error": "it ended"}, "LeaderElection")
    unexplained = row_of(base | {"problems": {"LeaderElection": "no"}, "limits": {}}, "LeaderElection")
    limited = row_of(base | {"problems": {}, "limits": {"LeaderElection": "60 seconds"}}, "LeaderElection")
    fine = row_of(base | {"problems": {"LeaderElection": "no"}, "limits": {}}, "FileTransaction")

    assert [row["verdict"] for row in (broken, unexplained, limited, fine)] == ["FAIL", "FAIL", "UNDETERMINED", "PASS"]
    assert "run 3 (kill): no" in str(unexplained["message"])


def test_a_campaign_that_cannot_be_made_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ends badly, or takes too long: that is said, and is no PASS."""
    entry = load(spec_directory())["LeaderElection"]
    monkeypatch.setattr(check, "PROGRAM", "tenure.adapters.verify.real.nothing")
    check.forget()
    try:
        found = campaign("quick")
        assert isinstance(found, str)
        assert "status 1" in found
        done = check.RealCheck(entry, "quick").run(None)  # type: ignore[arg-type]
        assert not done.passed
    finally:
        check.forget()
    assert RUNS["quick"][0] >= 20
    assert RUNS["thorough"][0] >= 200


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (["+1 5", "-1 5", "+2 6", "-2 6"], ""),
        (["+1 5", "+2 6", "-2 6"], ""),
        (["+1 5", "-1 5", "+a-text 6", "-a-text 6", "+2 5", "-2 5"], ""),
        (["+1 5", "+1 6", "-1 5"], "interleaved"),
        (["+2 5", "-2 5", "+1 6"], "came after"),
        (["+2 5", "!2 5", "-2 5"], "did not have"),
    ],
)
def test_effects_are_judged_by_their_lines(lines: list[str], wrong: str) -> None:
    """Begun and ended behind each other, epochs upwards; one that was begun and not ended died with its process."""
    assert (wrong in interleaved(lines)) is True
    assert bool(wrong) is bool(interleaved(lines))
