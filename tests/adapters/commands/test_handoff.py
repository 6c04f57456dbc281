"""``tenure handoff``: whom it means, and each way in which it ends."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
import pytest

from tenure.adapters.bus.messages.fleet_view import FleetView, FollowerView, LeaderView
from tenure.adapters.errors import TenureError
from tenure.adapters.files.host import real_ports
from tenure.adapters.fleet.threads.views import followers
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.liveness import ProcessLiveness, process_name
from tenure.adapters.journal.rows import ServerRow
from tenure.adapters.looking.fleet_look import FleetLook
from tenure.adapters.looking.instances import Known, meant, present
from tenure.machines.identity import Process
from tenure.machines.receipt_messages import Party
from tests.adapters.commands.desk import MINE, THEIRS, Desk, Tenure, dead
from tests.adapters.journal.journal_room import serves

SHAPE = ["receipt", "to", "outcome", "why", "state", "owner"]
PATIENCE_S = 20


@pytest.fixture
def other() -> Iterator[Party]:
    """An instance in another process, which lives."""
    child = subprocess.Popen(["sleep", "1000"])
    ports = real_ports()
    birth = attrs.evolve(ports.processes.me().birth, ticks=ports.processes.sighting(child.pid).ticks or 0)
    yield Party(f"{child.pid}:4", process_name(Process(child.pid, birth)), 1)
    child.kill()
    child.wait()


@contextmanager
def meanwhile(desk: Desk, work: Callable[[Journal], None]) -> Iterator[None]:
    """Somebody works on the journal in another thread, as soon as a move is asked for."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            with desk.open() as journal:
                deadline = time.monotonic() + PATIENCE_S
                while not any(journal.move_of(row.receipt_id) for row in journal.listing().receipts):
                    assert time.monotonic() < deadline
                    time.sleep(0.005)
                work(journal)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert [] == failed


def queued(desk: Desk, other: Party, *, by: Party | None = None) -> str:
    """A receipt that `by` has queued, and an instance that may be handed it."""
    with desk.open() as journal:
        journal.serve(THEIRS, other)
        receipt = desk.kept(journal, 1)
        desk.taken(journal, receipt, by)
        serves(journal, MINE, desk.me)
    return receipt


def give(desk: Desk, receipt: str, other: Party, *, say: bool = True) -> Callable[[Journal], None]:
    """Its owner offers it, and the other accepts."""

    def work(journal: Journal) -> None:
        (move,) = journal.moves_for(desk.me.process)
        assert (receipt, other.instance) == (move.receipt_id, move.instance)
        row = journal.receipt(receipt)
        assert row is not None
        assert row.data.owner is not None
        journal.offer(receipt, row.data.owner, "handoff-1", other)
        journal.accept(receipt, other, "handoff-1", row.data.owner)
        if say:
            journal.answer_move(receipt, f"moved to {other.instance}")

    return work


# -- how it ends ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("say", [True, False])
def test_it_moves(desk: Desk, tenure: Tenure, other: Party, say: bool) -> None:
    receipt = queued(desk, other)
    with meanwhile(desk, give(desk, receipt, other, say=say)):
        said = tenure("handoff", desk.root, receipt[-64:-50], "--to", other.instance)
    pid = other.instance.partition(":")[0]
    assert (0, "") == (said.status, said.err)
    assert f"{receipt[-64:-54]}: moved to {other.instance} (pid {pid}): queued there\n" == said.out
    again = tenure("handoff", desk.root, "1", "--to", pid, "--json")
    assert 0 == again.status
    assert SHAPE == list(again.json)
    assert [receipt, other.instance, "there", "queued", other.instance] == [
        again.json[key] for key in SHAPE if key != "why"
    ]


def test_it_has_moved_also_where_it_is_done_by_then(desk: Desk, tenure: Tenure, other: Party) -> None:
    receipt = queued(desk, other)

    def work(journal: Journal) -> None:
        give(desk, receipt, other)(journal)
        row = journal.receipt(receipt)
        assert row is not None
        assert row.data.owner is not None
        journal.start(receipt, row.data.owner)
        journal.complete(receipt, row.data.owner)

    with meanwhile(desk, work):
        found = tenure("handoff", desk.root, receipt, "--to", other.instance, "--json")
    assert (0, "moved") == (found.status, found.json["outcome"])


def test_what_its_owner_refuses_stays(desk: Desk, tenure: Tenure, other: Party) -> None:
    receipt = queued(desk, other)

    def work(journal: Journal) -> None:
        assert journal.answer_move(receipt, "stays here: it is too long")

    with meanwhile(desk, work):
        said = tenure("handoff", desk.root, receipt, "--to", other.instance)
    assert 1 == said.status
    assert "not moved: stays here: it is too long" in said.out


def test_what_is_executed_first_is_not_moved(desk: Desk, tenure: Tenure, other: Party) -> None:
    receipt = queued(desk, other)

    def work(journal: Journal) -> None:
        row = journal.receipt(receipt)
        assert row is not None
        assert row.data.owner is not None
        journal.start(receipt, row.data.owner)
        journal.complete(receipt, row.data.owner)

    with meanwhile(desk, work):
        found = tenure("handoff", desk.root, receipt, "--to", other.instance, "--json")
    assert 1 == found.status
    assert found.json["outcome"] in ("executed", "refused")  # seen done, or seen while it runs
    last = tenure("handoff", desk.root, receipt, "--to", other.instance)
    assert f"it was executed by {desk.me.instance} before it could be moved" in last.out


def test_what_has_begun_is_not_asked_for(desk: Desk, tenure: Tenure, other: Party) -> None:
    receipts = desk.full()
    with desk.open() as journal:
        journal.serve(THEIRS, other)
    found = tenure("handoff", desk.root, receipts["started"], "--to", other.instance, "--json")
    assert (1, "refused", "started") == (found.status, found.json["outcome"], found.json["state"])
    for state in ("interrupted", "failed"):
        found = tenure("handoff", desk.root, receipts[state], "--to", other.instance, "--json")
        assert (1, "stuck") == (found.status, found.json["outcome"])
        assert f"tenure journal retry {desk.root}" in found.json["why"]
    found = tenure("handoff", desk.root, receipts["done"], "--to", other.instance, "--json")
    assert (1, "executed") == (found.status, found.json["outcome"])
    with desk.open() as journal:
        assert [None] * 4 == [journal.move_of(receipts[s]) for s in ("started", "interrupted", "failed", "done")]


def test_not_in_time_it_is_still_asked_for(desk: Desk, tenure: Tenure, other: Party) -> None:
    receipt = queued(desk, other)
    began = time.monotonic()
    said = tenure("handoff", desk.root, receipt, "--to", other.instance, "--wait", "0.3")
    assert 0.3 <= time.monotonic() - began
    assert 1 == said.status
    assert f"not in time: it is queued at {desk.me.instance}, pid {os.getpid()} (running" in said.out
    with desk.open() as journal:
        move = journal.move_of(receipt)
    assert move is not None
    assert (other.instance, None) == (move.instance, move.outcome)


def test_what_a_dead_owner_had_is_recovered_first(desk: Desk, tenure: Tenure, other: Party) -> None:
    gone = dead()
    receipt = queued(desk, other, by=gone)

    def work(journal: Journal) -> None:
        desk.taken(journal, receipt)
        give(desk, receipt, other)(journal)

    with meanwhile(desk, work):
        said = tenure("handoff", desk.root, receipt, "--to", other.instance)
    assert 0 == said.status
    assert f"{gone.instance}, which had it, is dead: recovered\n" == said.err
    told = tenure("why", desk.root, receipt, "--json").json["decisions"]
    (recovered,) = [row for row in told if row["action"] == "recover"]
    assert (True, "queued -> pending: the owner is dead") == (recovered["person"], recovered["detail"])


def test_what_a_dead_owner_had_begun_waits_for_a_person(desk: Desk, tenure: Tenure, other: Party) -> None:
    with desk.open() as journal:
        journal.serve(THEIRS, other)
        receipt = desk.kept(journal, 1)
        journal.start(receipt, desk.taken(journal, receipt, dead()))
    said = tenure("handoff", desk.root, receipt, "--to", other.instance)
    assert 1 == said.status
    assert "it is interrupted, and waits for a person" in said.out


# -- bad input --------------------------------------------------------------------------------------------------------


def test_whom_and_what_it_means_has_to_be_there(desk: Desk, tenure: Tenure, other: Party) -> None:
    desk.full()
    gone = dead()
    with desk.open() as journal:
        journal.serve(THEIRS, other)
        journal.serve("manual:gone", gone)
        desk.append(journal, 30)
    before = desk.bytes()
    nobody = tenure.refused("handoff", desk.root, "13", "--to", "Q")
    assert "no instance, pid, slot or name of this fleet; there are " in nobody
    assert f" {desk.me.instance} (pid" in nobody
    assert f"{gone.instance}" in tenure.refused("handoff", desk.root, "13", "--to", gone.instance)
    assert "is dead" in tenure.refused("handoff", desk.root, "13", "--to", gone.instance)
    assert "no instance has it yet" in tenure.refused("handoff", desk.root, "30", "--to", other.instance)
    assert "no update, delivery or receipt" in tenure.refused("handoff", desk.root, "99", "--to", other.instance)
    assert before == desk.bytes()
    for words in (["13"], ["13", "--to", "A", "--wait", "-1"], ["13", "--to", "A", "--wait", "soon"]):
        assert 2 == tenure("handoff", desk.root, *words).status


def test_who_is_in_no_journal_can_take_nothing(desk: Desk, tenure: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenure.adapters.looking import instances

    receipt = desk.full()["queued"]
    monkeypatch.setattr(instances, "fleet_of", lambda *given: FLEET)
    line = tenure.refused("handoff", desk.root, receipt, "--to", "B")
    assert "80:1 (pid 80, slot B, Badger) does not work out of this journal" in line


VIEW = FleetView(
    leader=LeaderView(pid=77, instance_id="77:1", epoch=4, slot="A", name="Acorn"),
    followers=(
        FollowerView(instance_id="80:1", generation="g", heartbeat_age_ms=1, pid=80, slot="B", name="Badger"),
        FollowerView(instance_id="81:1", generation="g", heartbeat_age_ms=1, pid=80, slot="C", name="badger"),
    ),
)
FLEET = FleetLook("default", "leader", "/state.json", leader=VIEW.leader, followers=followers(VIEW.followers))


@pytest.mark.parametrize(
    ("name", "instance"),
    [("77:1", "77:1"), ("77", "77:1"), ("A", "77:1"), ("c", "81:1"), ("acorn", "77:1"), ("80:1", "80:1")],
)
def test_an_instance_is_called_by_id_pid_slot_or_name(name: str, instance: str) -> None:
    assert instance == meant(name, present([], FLEET, ProcessLiveness(real_ports().processes))).instance


@pytest.mark.parametrize(
    ("name", "says"),
    [("80", "several are called so"), ("Badger", "several are called so"), ("Z", "no instance"), ("", "no instance")],
)
def test_what_means_nobody_or_several_is_refused(name: str, says: str) -> None:
    with pytest.raises(TenureError, match=says):
        meant(name, present([], FLEET, ProcessLiveness(real_ports().processes)))


def test_a_dead_one_does_not_stand_in_the_way_of_one_that_lives() -> None:
    """Of two with the same pid, one is of a process that has gone."""
    gone, there = Known("80:1", 80, serves=("a",), dead=True), Known("80:2", 80, serves=("b",))
    assert there == meant("80", (gone, there))
    assert gone == meant("80:1", (gone, there))
    assert gone == meant("80", (gone,))
    with pytest.raises(TenureError, match="several are called so"):
        meant("80", (gone, attrs.evolve(gone, instance="80:0")))


def test_who_serves_and_who_is_in_the_fleet_are_one(other: Party) -> None:
    liveness = ProcessLiveness(real_ports().processes)
    rows = [ServerRow(MINE, Party("80:1", other.process), 0, None), ServerRow("x", other, 0, 5)]
    (leader, badger, again) = present(rows, FLEET, liveness)
    assert ("77:1", ()) == (leader.instance, leader.serves)
    assert Known("80:1", int(other.instance.partition(":")[0]), "B", "Badger", (MINE,)) == badger
    assert () == again.serves
    assert () == present([], None, liveness)
    with pytest.raises(TenureError, match="nobody is there"):
        meant("A", ())
