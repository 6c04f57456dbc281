"""Leading under asyncio, on a real directory: callbacks on the loop, cancellation rolls back, the loop never waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime, NotOwner
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.runtime.aio import AsyncLeadership, TaskWork
from tenure.adapters.runtime.outcomes import Elected, Failed, Lost, Outcome, Over, Refused, Suspended, Waiting
from tenure.adapters.runtime.work import Work
from tenure.adapters.testing.memory import FakeProcesses
from tests.adapters.runtime.leading_room import Recorded

FAST = DEFAULT.scaled(1 / 20)
LIMIT_S = 20.0


class House:
    """Simulated processes on one real directory, in real time."""

    def __init__(self, root: Path) -> None:
        self.directory = AgentDirectory(str(root))
        self.processes = FakeProcesses(1)
        self.told: dict[int, list[Outcome]] = {}

    def leadership(
        self,
        pid: int,
        work: Work | None = None,
        *,
        on_elected: Callable[[Elected], None] | None = None,
        on_lost: Callable[[Lost], None] | None = None,
        on_over: Callable[[], None] | None = None,
    ) -> AsyncLeadership:
        process = ProcessState()
        ports = attrs.evolve(real_ports(), processes=self.processes.as_pid(pid))
        lease = LeaseRuntime(ports, self.directory, "default", cwd="/bot", timings=FAST, process=process)
        told = self.told.setdefault(pid, [])

        def hear(outcome: Outcome) -> None:
            told.append(outcome)
            if on_over is not None and isinstance(outcome, Over):
                on_over()

        return AsyncLeadership(
            lease, work=work, process=process, on_outcome=hear, on_elected=on_elected, on_lost=on_lost
        )


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def run(story: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            await story

    asyncio.run(limited())


def test_the_work_is_a_task_that_runs_while_leading(house: House) -> None:
    """Started after the acquisition, cancelled at the release, before the lease is free."""
    heard: list[str] = []

    async def poll(epoch: int) -> None:
        heard.append(f"begins {epoch}")
        try:
            await asyncio.Event().wait()
        finally:
            heard.append(f"ends {epoch}")

    async def story() -> None:
        async with house.leadership(100, TaskWork(poll)) as lead:
            assert Elected(1) == await lead.acquire()
            await asyncio.sleep(0)
            assert ["begins 1"] == heard
            assert 1 == lead.may_send()
            assert Over() == await lead.release()
            assert ["begins 1", "ends 1"] == heard
            assert lead.may_send() is None

    run(story())


def test_a_task_that_returns_is_done_and_one_that_raises_has_failed(house: House) -> None:
    """Either way the lease is given up."""
    fails = False

    async def poll(epoch: int) -> None:
        if fails:
            raise ValueError("broken")

    async def story() -> None:
        nonlocal fails
        over = asyncio.Event()
        async with house.leadership(100, TaskWork(poll), on_over=over.set) as lead:
            await lead.acquire()
            await over.wait()
            assert [Elected(1), Over()] == house.told[100]
            over.clear()
            fails = True
            await lead.acquire()
            await over.wait()
            assert Failed("ValueError: broken") in house.told[100]

    run(story())


def test_callbacks_are_called_on_the_loop(house: House) -> None:
    """An exception of theirs changes nothing, and is counted."""
    threads: list[int] = []

    def told(elected: Elected) -> None:
        threads.append(threading.get_ident())
        raise RuntimeError("a callback failed")

    async def story() -> None:
        async with house.leadership(100, on_elected=told) as lead:
            assert Elected(1) == await lead.acquire()
            assert [threading.get_ident()] == threads
            assert 1 == lead.statistics().callback_errors

    run(story())


def test_a_successor_takes_its_turn_after_a_release(house: House) -> None:
    async def story() -> None:
        async with house.leadership(100) as first, house.leadership(200) as second:
            await first.acquire()
            turn = asyncio.create_task(second.acquire_in_turn())
            while not house.told[200]:
                await asyncio.sleep(0.001)
            assert isinstance(house.told[200][0], Refused)
            await first.release()
            assert Elected(2) == await turn

    run(story())


def test_a_cancelled_acquire_leaves_nothing(house: House) -> None:
    """Cancelled while the work prepares: the lease is given up before the cancellation goes on."""

    class Slow(Recorded):
        def __init__(self) -> None:
            super().__init__()
            self.preparing = threading.Event()
            self.go_on = threading.Event()

        def prepare(self, epoch: int) -> None:
            self.preparing.set()
            self.go_on.wait(LIMIT_S)

    work = Slow()

    async def story() -> None:
        async with house.leadership(100, work) as lead, house.leadership(200) as other:
            starting = asyncio.create_task(lead.acquire())
            await asyncio.to_thread(work.preparing.wait, LIMIT_S)
            starting.cancel()
            await asyncio.sleep(0)
            assert not starting.done()
            work.go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await starting
            assert "idle" == lead.phase
            assert "start" not in work.heard
            assert Elected(2) == await other.acquire()

    run(story())


def test_a_slow_preparation_does_not_make_the_lease_look_stale(house: House) -> None:
    """A35: the heartbeat goes on beside it, from the acquisition on."""

    class Slow(Recorded):
        def prepare(self, epoch: int) -> None:
            go_on.wait(LIMIT_S)

    go_on = threading.Event()
    work = Slow()

    async def story() -> None:
        async with house.leadership(100, work) as lead, house.leadership(200) as other:
            starting = asyncio.create_task(lead.acquire())
            while lead.statistics().refreshes < 8:  # two leases
                await asyncio.sleep(0.01)
            assert isinstance(await other.acquire(), Refused)
            go_on.set()
            assert Elected(1) == await starting

    run(story())


def test_a_time_limit_answers_waiting_and_the_wish_stands(house: House) -> None:
    work = Recorded()
    work.is_ready = False

    async def story() -> None:
        async with house.leadership(100, work) as lead:
            assert isinstance(await lead.acquire(timeout_ms=20), Waiting)
            work.is_ready = True
            while not house.told[100]:
                await asyncio.sleep(0.001)
            assert [Elected(1)] == house.told[100]

    run(story())


def test_an_effect_is_committed_by_the_owner_alone(house: House) -> None:
    async def story() -> None:
        async with house.leadership(100) as lead, house.leadership(200) as other:
            await lead.acquire()
            assert ("done", 1) == await lead.commit_if_owned(lambda epoch: ("done", epoch))
            with pytest.raises(NotOwner):
                await other.commit_if_owned(lambda epoch: ("never", epoch))

    run(story())


@pytest.mark.parametrize("error", [None, OSError("what nobody waits for any more")])
def test_a_cancelled_commit_is_not_left_running(house: House, error: Exception | None) -> None:
    """The cancellations go on when the effect has ended, however it ends."""
    entered, go_on = threading.Event(), threading.Event()

    def effect(epoch: int) -> None:
        entered.set()
        go_on.wait(LIMIT_S)
        if error is not None:
            raise error

    async def story() -> None:
        async with house.leadership(100) as lead:
            await lead.acquire()
            running = asyncio.create_task(lead.commit_if_owned(effect))
            await asyncio.to_thread(entered.wait, LIMIT_S)
            for _ in range(2):
                running.cancel()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                assert not running.done()
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await running

    run(story())


def test_suspended_and_resumed(house: House) -> None:
    """The entry is kept and taken up again under its epoch."""

    async def story() -> None:
        async with house.leadership(100, Recorded()) as lead:
            await lead.acquire()
            assert Suspended(kept=True) == await lead.suspend()
            assert Elected(1) == await lead.resume()

    run(story())


def test_the_loss_is_told_on_the_loop(house: House) -> None:
    async def story() -> None:
        lost: asyncio.Future[Lost] = asyncio.get_running_loop().create_future()
        async with house.leadership(100, on_lost=lost.set_result) as first, house.leadership(200) as second:
            await first.acquire()
            refused = await second.acquire()
            assert isinstance(refused, Refused)
            assert Elected(2) == await second.acquire(force=refused.owner)
            assert Lost(1, passed=False) == await lost

    run(story())
