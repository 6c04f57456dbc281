"""Leading with threads, on a real directory, in real time: the keeper keeps, verbs come from anywhere."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import attrs
import pytest

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardedFile
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime, NotOwner
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.runtime.leadership import Leadership
from tenure.adapters.runtime.outcomes import Elected, Failed, Lost, Outcome, Over, Refused, Suspended, Waiting
from tenure.adapters.runtime.work import NoWork, ThreadWork, Work
from tenure.adapters.testing.memory import FakeProcesses

FAST = DEFAULT.scaled(1 / 20)
LIMIT_S = 20.0


class House:
    """Simulated processes on one real directory."""

    def __init__(self, root: Path) -> None:
        self.directory = AgentDirectory(str(root))
        self.processes = FakeProcesses(1)
        self.told: dict[int, list[Outcome]] = {}

    def leadership(
        self, pid: int, work: Work | None = None, on_elected: Callable[[Elected], None] | None = None
    ) -> Leadership:
        process = ProcessState()
        ports = attrs.evolve(real_ports(), processes=self.processes.as_pid(pid))
        lease = LeaseRuntime(ports, self.directory, "default", cwd="/bot", timings=FAST, process=process)
        told = self.told.setdefault(pid, [])
        return Leadership(lease, work=work, process=process, on_elected=on_elected, on_outcome=told.append)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def until(holds: Callable[[], bool]) -> None:
    """Wait for what other threads do, with a deadline."""
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.001)


def test_the_keeper_keeps_a_lease_that_nobody_pumps(house: House) -> None:
    with house.leadership(100) as lead, house.leadership(200) as other:
        lead.start_keeping()
        assert Elected(1) == lead.acquire()
        until(lambda: lead.statistics().refreshes > 8)  # two leases
        assert isinstance(other.acquire(), Refused)
        assert 0 == lead.statistics().losses


def test_the_work_is_a_thread_that_is_told_to_stop(house: House) -> None:
    heard: list[str] = []
    running = threading.Event()

    def work(epoch: int, stopping: threading.Event) -> None:
        heard.append(f"begins {epoch}")
        running.set()
        stopping.wait(LIMIT_S)
        heard.append(f"ends {epoch}")

    with house.leadership(100, ThreadWork(work)) as lead:
        lead.start_keeping()
        assert Elected(1) == lead.acquire()
        running.wait(LIMIT_S)
        assert Over() == lead.release()
        assert ["begins 1", "ends 1"] == heard


def test_a_work_that_fails_gives_the_lease_up(house: House) -> None:
    def work(epoch: int, stopping: threading.Event) -> None:
        raise ValueError("broken")

    with house.leadership(100, ThreadWork(work)) as lead:
        lead.start_keeping()
        lead.acquire()
        until(lambda: Over() in house.told[100])
        assert Failed("ValueError: broken") in house.told[100]
        assert lead.epoch is None


def test_the_keeper_notices_a_loss(house: House) -> None:
    work = NoWork()
    with house.leadership(100, work) as lead, house.leadership(200) as other:
        lead.start_keeping()
        lead.acquire()
        refused = other.acquire()
        assert isinstance(refused, Refused)
        assert Elected(2) == other.acquire(force=refused.owner)
        until(lambda: Lost(1, passed=False) in house.told[100])
        assert not work.running


def test_a_guard_that_is_busy_outlives_no_healthy_lease(house: House) -> None:
    """K6, with a guard that is held for two refreshes, and K11, with one that is held for more than a lease."""
    with house.leadership(100) as lead:
        lead.start_keeping()
        lead.acquire()
        ports = attrs.evolve(real_ports(), processes=house.processes.as_pid(300))
        guard = GuardedFile(ports, house.directory.registry, FAST, process=ProcessState())
        before = lead.statistics().waits

        def hold(inside: object) -> None:
            until(lambda: lead.statistics().waits > before + 1)

        guard.run(hold, attempts=1_000)
        refreshes = lead.statistics().refreshes
        until(lambda: lead.statistics().refreshes > refreshes)
        assert (1, "active") == (lead.may_send(), lead.phase)
        guard.run(lambda inside: until(lambda: lead.phase == "idle"), attempts=1_000)
        until(lambda: Lost(1, passed=True) in house.told[100])  # a moment later


def test_verbs_from_many_threads(house: House) -> None:
    """Whatever order they come in, everybody is answered, and in the end nobody owns."""
    with house.leadership(100) as lead:
        lead.start_keeping()
        found: list[Outcome] = []

        def person(number: int) -> None:
            for turn in range(4):
                match (number + turn) % 4:
                    case 0:
                        found.append(lead.acquire())
                    case 1:
                        found.append(lead.suspend())
                    case 2:
                        found.append(lead.resume())
                    case _:
                        found.append(lead.release())
                        with suppress(NotOwner):
                            lead.commit_if_owned(lambda epoch: None)

        people = [threading.Thread(target=person, args=(n,)) for n in range(6)]
        for one in people:
            one.start()
        for one in people:
            one.join(LIMIT_S)
        assert not any(one.is_alive() for one in people)
        assert 24 == len(found)
        assert Over() == lead.release()
        assert {type(outcome) for outcome in found} <= {Elected, Over, Suspended, Refused}
        assert "idle" == lead.phase


def test_verbs_from_many_threads_without_a_keeper(house: House) -> None:
    """They pump by themselves, one at a time."""
    with house.leadership(100) as lead:
        found: list[Outcome] = []

        def person() -> None:
            found.append(lead.acquire())

        people = [threading.Thread(target=person) for _ in range(6)]
        for one in people:
            one.start()
        for one in people:
            one.join(LIMIT_S)
        assert [Elected(1)] * 6 == found


def test_a_verb_inside_a_callback_answers_at_once(house: House) -> None:
    inside: list[Outcome] = []
    lead = house.leadership(100, on_elected=lambda elected: inside.append(lead.release()))
    with lead:
        lead.start_keeping()
        lead.acquire()
        until(lambda: Over() in house.told[100])
        assert [Waiting()] == inside


def test_an_end_of_keeping_leaves_a_lease_that_passes(house: House) -> None:
    with house.leadership(100) as lead, house.leadership(200) as other:
        lead.start_keeping()
        lead.acquire()
        lead.stop_keeping()
        until(lambda: lead.may_send() is None)  # a moment before the others see it pass
        until(lambda: Elected(2, replaced_stale=True) == other.acquire())
        lead.pump()
        assert isinstance(house.told[100][-1], Lost)


_LEADER = """
import sys
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.host import real_ports
from tenure.adapters.runtime.leadership import Leadership
from tenure.adapters.files.lease import LeaseRuntime
lead = Leadership(LeaseRuntime(real_ports(), AgentDirectory(sys.argv[1]), "default", cwd=sys.argv[1]))
lead.start_keeping()
print(lead.acquire(), flush=True)
input()
"""


def test_a_killed_process_is_succeeded_at_once(house: House, tmp_path: Path) -> None:
    """Its heartbeat is fresh, and nobody waits for it to grow old: the death is proof."""
    lease = LeaseRuntime(real_ports(), house.directory, "default", cwd=str(tmp_path), process=ProcessState())
    command = [sys.executable, "-c", _LEADER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert "leads, epoch 1\n" == child.stdout.readline()
        with Leadership(lease, process=ProcessState()) as lead:
            refused = lead.acquire()
            assert isinstance(refused, Refused)
            assert child.pid == (refused.owner.pid if refused.owner is not None else 0)
            began = time.monotonic()
            child.kill()
            assert Elected(2, replaced_stale=True) == lead.acquire_in_turn(timeout_ms=LIMIT_S * 1000)
            assert time.monotonic() - began < 5  # the lease lasts eight
