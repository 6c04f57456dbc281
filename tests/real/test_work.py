"""Real processes share the work of one queue; the leader is killed on the way."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.adapters.journal.journal import Journal
from tests.real.conftest import until
from tests.real.works import PATIENCE, Works, works_in


@pytest.fixture
def works(tmp_path: Path) -> Iterator[Works]:
    with works_in(tmp_path) as works:
        yield works


def test_each_update_is_executed_once_though_the_leader_is_killed(works: Works) -> None:
    leader, second, third = works.fleet(3)
    threads = [leader.thread, second.thread, third.thread]
    works.push(*threads * 10)
    until(lambda: len(works.began()) >= 12)
    leader.kill()
    works.push(*threads * 10)
    works.settles()
    verdict = works.verdict()
    assert verdict.faults == ()
    assert verdict.executed + verdict.interrupted == 60
    assert verdict.interrupted <= 1
    # Whoever has a thread executes what is in it; the dead leader's thread is the next one's.
    assert set(works.by(third.pid)) >= {n for n in range(3, 61, 3)} - set(works.by(leader.pid))
    heir = second if second.role.startswith("leading") else third
    assert set(works.by(heir.pid)) >= {31, 34, 37}
    assert works.queue()["confirmed"] <= 60


def test_who_is_told_to_leave_gives_its_work_back_to_who_comes_after_it(works: Works) -> None:
    leader, second = works.fleet(2, "0.3")
    works.push(*[second.thread] * 5, leader.thread)
    until(lambda: works.by(second.pid))
    second.kill(signal.SIGTERM)
    second.ends()
    assert second.role == "left"
    third = works.start()
    third.becomes(f"following pid {leader.pid}")
    works.settles()
    verdict = works.verdict()
    assert verdict.faults == ()
    assert (verdict.executed, verdict.interrupted) == (5, 1)
    assert works.interrupted() == works.by(second.pid)[-1:]
    assert works.by(third.pid) == sorted(works.by(third.pid))  # what it is in time for; the leader takes the rest
    assert 6 in works.by(leader.pid)


def test_what_was_there_before_the_first_start_is_history(works: Works) -> None:
    works.push(*[1] * 25)
    leader = works.start()
    leader.becomes("leading")
    until(lambda: works.journal(lambda j: j.state().opened))
    works.push(leader.thread)
    works.settles()
    assert works.began() == {26: 1}
    assert works.queue()["conflicts"] == 0


def test_a_leader_that_was_stopped_does_nothing_as_leader_when_it_goes_on(works: Works) -> None:
    leader, second = works.fleet(2, "0.02")
    works.push(*[leader.thread, second.thread] * 8)
    until(lambda: len(works.began()) >= 4)
    works.stop(leader)
    second.becomes("leading")
    works.push(*[second.thread] * 10)
    until(lambda: all(works.began()[number] for number in range(17, 27)))
    leader.kill(signal.SIGCONT)
    leader.becomes(f"following pid {second.pid}")
    works.push(*[leader.thread, second.thread] * 5)
    works.settles()
    verdict = works.verdict()
    assert verdict.faults == ()
    assert (verdict.executed, verdict.interrupted) == (36, 0)


def test_whoever_is_killed_whenever_nothing_is_lost_and_nothing_is_done_twice(works: Works) -> None:
    """Three instances in three terminals, in which whatever was killed is started again; items move between them."""
    fleet = works.fleet(3, "0.02", lasting=True)
    chance = random.Random(5)
    kills = 0
    while works.pushed < 120:
        threads = [found for working in fleet if (found := working.place) is not None]
        works.push(*[chance.choice(threads) for _ in range(12)])
        before, more = len(works.began()), chance.randint(1, 8)
        until(lambda before=before, more=more: len(works.began()) >= before + more, PATIENCE)
        works.journal(lambda journal: wants_moved(journal, chance))
        until(lambda before=before, more=more: len(works.began()) >= before + more + 2, PATIENCE)
        chance.choice(fleet).kill()
        kills += 1
    works.settles()
    verdict = works.verdict()
    assert verdict.faults == (), verdict
    assert verdict.executed + verdict.interrupted == works.pushed
    assert verdict.interrupted <= kills
    ends = {"done": "started -> done", "interrupted": "started -> interrupted"}
    for number, state in works.states().items():
        life = works.journal(lambda journal, number=number: journal.life(str(number)))
        assert life[0].action == "admit"
        assert [d for d in life if d.detail.startswith(ends[state])], life


def wants_moved(journal: Journal, chance: random.Random) -> None:
    """A person wants some of what waits elsewhere."""
    waits = [row.receipt_id for row in journal.listing().receipts if row.phase == "queued"]
    there = [row.party.instance for row in journal.servers() if row.left_at is None]
    for receipt in chance.sample(waits, min(3, len(waits))):
        journal.ask_move(receipt, chance.choice(there))
