"""A changed journal, or a changed worker, turns the runs with workplaces red."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.verify.checks import Row
from tenure.adapters.verify.real.check import row_of, whole
from tenure.adapters.verify.real.director import WORKS
from tenure.adapters.verify.real.working import WORK
from tenure.adapters.verify.result import Verdict

SCRIPT = """
import json, sys
from pathlib import Path
import attrs
from tenure.adapters.verify.real import director
{mutation}
number, leases = int(sys.argv[2]), float(sys.argv[3])
plan = director.RunPlan(number, leases=leases, work=True)
found = director.run(plan, Path(sys.argv[1]) / str(number))
print(json.dumps(attrs.asdict(found)))
"""

MUTATIONS = {
    "a handler is called twice": (
        "DurableAdmission",
        """
from tenure.adapters.work import worker
async def twice(handler, item):
    await handler(item)
    await handler(item)
worker._called = twice
""",
    ),
    "who is silent is taken for dead": (
        "QueueHandoff",
        """
from tenure.adapters.journal.liveness import ProcessLiveness
ProcessLiveness.evidence = lambda self, process: "dead"
""",
    ),
    "what is done is pending in the row": (
        "QueueHandoff",
        """
import attrs
from tenure.adapters.journal import receipts
put = receipts._put
def puts(transaction, row, taken, not_before):
    if taken.phase == "done":
        taken = attrs.evolve(taken, phase="pending")
    put(transaction, row, taken, not_before)
receipts._put = puts
""",
    ),
    "an item begins before that is durable": (
        "DurableAdmission",
        """
from tenure.adapters.work.journaling import JournalReceipts
from tenure.adapters.work import worker
one = worker.Worker._one
async def begins(self, held):
    item = worker.Item(held.receipt_id, held.kind, await updates(self, held), held.binding, held.holder.acquisition, 1)
    await self._handler(item)
    return await one(self, held)
async def updates(self, held):
    from tenure.adapters.bus.messages.json_values import Json
    return (Json({"update_id": held.first_update}),)
worker.Worker._one = begins
""",
    ),
    "what is confirmed is not all journaled": (
        "DurableAdmission",
        """
from tenure.adapters.work.journaling import JournalInbox
record = JournalInbox.record
async def some(self, updates, *, skipped):
    return await record(self, updates[1:] if len(updates) > 1 else updates, skipped=skipped)
JournalInbox.record = some
""",
    ),
    "some transactions are not recorded": (
        "QueueHandoff",
        """
from tenure.adapters.journal.events import JournalEvents
committed = JournalEvents.committed
def some(self, decided):
    if decided[0].seq % 20:
        committed(self, decided)
JournalEvents.committed = some
""",
    ),
}
AT_ONCE = 3
LEASES = (8, 8, 16, 30, 30, 30)
"""How long the runs of a change may last, in turn, until it shows: on a busy machine little happens in one."""


def run(place: Path, mutation: str, number: int, leases: float = 8) -> dict[str, Any]:
    """The result of a run."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(mutation=mutation), str(place), str(number), str(leases)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def rows_until_found(name: str, place: Path) -> list[Row]:
    """What the runs of a change say of its module, up to the one that finds it."""
    module, mutation = MUTATIONS[name]
    rows: list[Row] = []
    for number, leases in enumerate(LEASES):
        rows.append(row_of(run(place, mutation, number * len(WORKS), leases), module))
        if rows[-1]["verdict"] == Verdict.FAIL.value:
            break
    return rows


def runs_unchanged(place: Path) -> list[dict[str, Any]]:
    """A run of each kind."""
    return [run(place, "", number) for number in range(len(WORKS))]


@attrs.frozen
class Begun:
    """All runs of this file, begun a few at a time: they wait more than they work."""

    changed: Mapping[str, Future[list[Row]]]
    unchanged: Future[list[dict[str, Any]]]
    place: Path


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    place = tmp_path_factory.mktemp("unchanged")
    pool = ThreadPoolExecutor(AT_ONCE)
    unchanged = pool.submit(runs_unchanged, place)
    changed = {name: pool.submit(rows_until_found, name, tmp_path_factory.mktemp("changed")) for name in MUTATIONS}
    yield Begun(changed, unchanged, place)
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_journal_is_found_out(name: str, begun: Begun) -> None:
    """Some event of its runs is unexplained, and the row of the module says so."""
    rows = begun.changed[name].result()
    assert rows[-1]["verdict"] == Verdict.FAIL.value, rows


def test_the_same_runs_unchanged_are_explained(begun: Begun) -> None:
    """What is found is the change, and not the run."""
    results = begun.unchanged.result()
    for number, result in enumerate(results):
        assert (result["problems"], result["limits"]) == ({}, {})
        assert not (begun.place / str(number)).exists()
    for module in WORK:
        assert whole(results, module, len(results))["verdict"] == Verdict.PASS.value


def test_runs_in_which_nothing_moved_are_not_enough() -> None:
    """Not for the module whose question that is."""
    base = {"number": 0, "kind": "work, kill", "seconds": 1, "kills": 1, "stops": 1, "effects": 1, "moves": 0}
    run = base | {"problems": {}, "limits": {}, "events": dict.fromkeys(WORK, 5)}
    handoff, admission = (whole([run], module, 1) for module in ("QueueHandoff", "DurableAdmission"))
    assert handoff["verdict"] == Verdict.FAIL.value
    assert "nothing moved" in str(handoff["message"])
    assert admission["verdict"] == Verdict.PASS.value


def test_runs_without_the_module_are_not_counted() -> None:
    """Work is not shown by the runs of leaders without any."""
    base = {"number": 0, "kind": "kill", "seconds": 1, "kills": 1, "stops": 1, "effects": 1}
    row = whole([base | {"problems": {}, "limits": {}, "events": {"LeaderElection": 5}}], "QueueHandoff", 1)
    assert row["verdict"] == Verdict.FAIL.value
    assert "no event of QueueHandoff" in str(row["message"])
