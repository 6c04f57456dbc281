"""A changed member turns the runs with a fleet red."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenure.adapters.verify.real.check import row_of, whole
from tenure.adapters.verify.real.director import FLEET, FLEETS
from tenure.adapters.verify.result import Verdict

SCRIPT = """
import json, sys
from pathlib import Path
import attrs
from tenure.adapters.verify.real import director
{mutation}
number, seconds = int(sys.argv[2]), float(sys.argv[3])
plan = director.RunPlan(number, leases=float(sys.argv[4]), seconds=seconds, fleet=True)
found = director.run(plan, Path(sys.argv[1]) / str(number))
print(json.dumps(attrs.asdict(found)))
"""

MUTATIONS = {
    "it stands for election over a live leader": (
        "Succession",
        """
from tenure.adapters.fleet.succession import course
course.SUCCESSION = course.SUCCESSION.without("leader_is_gone")
""",
    ),
    "it lets no smaller slot go first": (
        "Succession",
        """
from tenure.adapters.fleet.succession import course
course.SUCCESSION = course.SUCCESSION.without("nobody_before_me")
""",
    ),
    "it forgets its thread when its leader is gone": (
        "Succession",
        """
from tenure.adapters.fleet.succession import course
from tenure.machines.follower_messages import NOTHING_BOUND
tell = course.Course.tell
def forgets(self, message):
    if message.event in ("lost", "saw") and self.phase == "following":
        import attrs
        self.data = attrs.evolve(self.data, binding=NOTHING_BOUND)
    return tell(self, message)
course.Course.tell = forgets
""",
    ),
    "a heartbeat of any generation is as good": (
        "FollowerRegistration",
        """
from tenure.adapters.fleet.follower import steps
from tenure.adapters.fleet.leader import routing_steps
beat = steps.Heartbeat
old = lambda fields: fields | {"registration_generation": f"{fields['instance_id']}:0"}
steps.Heartbeat = lambda **fields: beat(**old(fields))
routing_steps.ROUTES = routing_steps.ROUTES.without("generation_is_current")
""",
    ),
    "work of any generation is taken": (
        "FollowerRegistration",
        """
from tenure.adapters.fleet.follower import steps
from tenure.adapters.fleet.follower import deliveries
weak = steps.FOLLOWER.without("route_is_mine")
steps.FOLLOWER = deliveries.FOLLOWER = weak
take = deliveries.own.Deliver
deliveries.own.Deliver = lambda instance, generation, number: take(instance, f"{generation}0", number)
""",
    ),
    "the leader lets another process's profile be taken": (
        "FollowerRegistration",
        """
from tenure.adapters.fleet.leader import routing_steps
routing_steps.ROUTES = routing_steps.ROUTES.without("profile_not_held")
""",
    ),
}


LEASES = (3.5, 3.5, 10, 30, 30, 60)
"""How long the runs of a change may last, in turn, until it shows: on a busy machine little happens in one."""


def run(place: Path, mutation: str, number: int, seconds: float, leases: float = 3.5) -> dict[str, Any]:
    """The result of a run with a changed member; `seconds`: what the search for an explanation may take."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(mutation=mutation), str(place), str(number), str(seconds), str(leases)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_member_is_found_out(name: str, tmp_path: Path) -> None:
    """Some event of its runs is unexplained, and the row of the module says so."""
    module, mutation = MUTATIONS[name]
    rows = []
    for number, leases in enumerate(LEASES):
        rows.append(row_of(run(tmp_path, mutation, number * len(FLEETS), 8, leases), module))
        if rows[-1]["verdict"] == Verdict.FAIL.value:
            return
    pytest.fail(str(rows))


def test_the_same_runs_unchanged_are_explained(tmp_path: Path) -> None:
    """What is found is the change, and not the run."""
    for number in range(len(FLEETS)):
        result = run(tmp_path, "", number, 60)
        assert (result["problems"], result["limits"]) == ({}, {})
        assert all(result["events"][module] for module in FLEET)
        assert not (tmp_path / str(number)).exists()


def test_runs_without_the_module_are_not_counted() -> None:
    """A fleet is not shown by the runs of leaders without one."""
    base = {
        "number": 0,
        "kind": "kill",
        "seconds": 1,
        "kills": 1,
        "stops": 1,
        "effects": 1,
        "problems": {},
        "limits": {},
    }
    others = [base | {"events": {"LeaderElection": 5}}]

    row = whole(others, "Succession", 1)

    assert row["verdict"] == Verdict.FAIL.value
    assert "no event of Succession" in str(row["message"])
