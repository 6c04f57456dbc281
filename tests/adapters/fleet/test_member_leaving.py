"""Leaving, at any moment and however it hangs: nothing is left, and it takes seconds at most."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import attrs
import pytest

from tenure.adapters.files.guard import GuardedFile
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.fleet import member as member_module
from tenure.adapters.fleet.roles import Following, Leading, Left
from tenure.adapters.fleet.threads.provisioning import LocalProvisioning
from tests.adapters.fleet.every_await import Awaits
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.fleet.member_room import TIMES, Life, Mute, Village

SECRET = "x" * 43


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return Village(tmp_path)


async def elsewhere(village: Village, pid: int = 50) -> LeaseRuntime:
    """Somebody else owns, and its endpoint is where such endpoints are."""
    lease = village.lease(pid, bus_socket_path=village.path, bus_secret=SECRET)
    await asyncio.to_thread(lease.acquire, "plain")
    return lease


async def gone(life: Life, said: str = "") -> None:
    """It has left, and nobody is told anything more."""
    assert life.role == Left()
    assert (life.member.phase, life.member.available, life.member.epoch) == ("ended", False, None)
    assert life.edges in ([], [True, False])
    assert await life.member.join() == Left()
    await life.member.until_left()
    assert await life.member.leave(goodbye=True) == said
    assert life.member.follower.phase == "stopped"


def test_before_joining(village: Village) -> None:
    async def story() -> None:
        async with village:
            life = await village.enters(101)
            assert await life.member.leave() == ""
            await gone(life)

    run(story())


def test_while_registering(village: Village) -> None:
    async def story() -> None:
        async with village, Mute(village.path) as mute:
            await elsewhere(village)
            life = await village.enters(101)
            joining = asyncio.ensure_future(life.member.join())
            await until(lambda: mute.calls)
            await life.member.leave()
            assert await joining == Left()
            await gone(life)

    run(story())


def test_in_a_grace(village: Village) -> None:
    """The leader's endpoint is not there."""

    async def story() -> None:
        async with village:
            await elsewhere(village)
            life = await village.enters(101)
            joining = asyncio.ensure_future(life.member.join())
            await life.is_in("grace")
            await life.member.leave()
            assert await joining == Left()
            await gone(life)

    run(story())


def test_while_deferring(tmp_path: Path) -> None:
    """A smaller slot is there, and does nothing."""

    async def story() -> None:
        village = Village(tmp_path, attrs.evolve(TIMES, grace_ms=20_000))
        async with village:
            first, second, third = await village.fleet(101, 102, 103)
            await until(lambda: third.member.course.data.roster == ("B", "C"))
            second.member.course.phase = "idle"  # it sees nothing any more
            await first.member.leave()
            await third.is_in("deferring")
            await third.member.leave()
            await gone(third)

    run(story())


class Held:
    """Provisioning that takes until it is let go."""

    def __init__(self, village: Village, pid: int) -> None:
        self.let = asyncio.Event()
        self.begun = 0
        self.local = LocalProvisioning(village.ports(pid), make=self.make)

    async def make(self, pending: object) -> None:
        self.begun += 1
        await self.let.wait()


def test_while_starting(village: Village) -> None:
    """Its own thread is being provisioned: the lease is given up all the same, and the next one leads."""

    async def story() -> None:
        async with village:
            held = Held(village, 101)
            life = await village.enters(101, provisioning=held.local)
            joining = asyncio.ensure_future(life.member.join())
            await until(lambda: held.begun)
            await life.member.leave()
            assert await joining == Left()
            await gone(life)
            assert "default" not in village.registry
            assert isinstance((await village.joins(102)).role, Leading)

    run(story())


def test_while_electing(village: Village) -> None:
    """Somebody is inside the guard."""

    async def story() -> None:
        async with village:
            await (await village.joins(100)).member.leave()
            async with Inside(village):
                life = await village.enters(101)
                joining = asyncio.ensure_future(life.member.join())
                await life.is_in("electing")
                began = time.monotonic()
                await life.member.leave()
                assert time.monotonic() - began < 8.0
                assert await joining == Left()
                await gone(life)

    run(story())


class Inside:
    """Somebody is inside the registry's guard."""

    def __init__(self, village: Village) -> None:
        ports = village.ports(50)
        self._guard = GuardedFile(ports, village.directory.registry, village.times, process=ProcessState())
        self._entered, self._out = threading.Event(), threading.Event()

    async def __aenter__(self) -> None:
        self._holding = asyncio.get_running_loop().run_in_executor(None, self._guard.run, self._wait)
        await until(self._entered.is_set)

    async def __aexit__(self, *error: object) -> None:
        self._out.set()
        await self._holding

    def _wait(self, transaction: object) -> None:
        self._entered.set()
        self._out.wait(20)


def test_a_leader_whose_guard_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tries for a while; then the lease passes by itself."""
    monkeypatch.setattr(member_module, "RELEASE_MS", 300)

    async def story() -> None:
        village = Village(tmp_path, attrs.evolve(TIMES, stale_ms=60_000, attempts=8))
        async with village:
            first = await village.joins(101)
            async with Inside(village):
                began = time.monotonic()
                await first.member.leave()
                assert time.monotonic() - began < 5.0
                assert first.role == Left()
            assert "default" in village.registry

    run(story())


def test_twice_and_at_once(village: Village) -> None:
    """All wait for the same end."""

    async def story() -> None:
        async with village:
            first, second = await village.fleet(101, 102)
            answers = await asyncio.gather(*(life.member.leave() for life in (second, first, second, first)))
            assert answers == ["", "", "", ""]
            await gone(first)
            await gone(second)

    run(story())


def test_with_a_goodbye(village: Village) -> None:
    """The leader takes the thread away and frees the slot."""

    async def story() -> None:
        async with village:
            first, second = await village.fleet(101, 102)
            assert await second.member.leave(goodbye=True) == ""
            await gone(second)
            assert [str(role) for role in second.roles[-2:]] == ["leaving", "left"]
            assert isinstance(second.roles[-3], Following)  # nothing was lost
            assert first.member.leader.fleet_view().followers == ()
            assert first.member.leader.statistics().intents == 0

    run(story())


def test_a_goodbye_that_nobody_answers(village: Village, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, and it has left all the same."""
    monkeypatch.setattr(member_module, "GOODBYE_S", 0.2)

    async def story() -> None:
        async with village:
            first, second = await village.fleet(101, 102)
            endpoint = Path(village.path)
            endpoint.unlink()
            first.member.leader._open.endpoint.heal = _never  # type: ignore[union-attr, method-assign]
            async with Mute(village.path) as mute:
                why = await second.member.leave(goodbye=True)
                assert mute.calls
            assert why == "the leader did not answer within 0.2 s"
            await gone(second, why)

    run(story())


async def _never() -> bool:
    return False


def test_from_a_callback_and_from_the_work(village: Village) -> None:
    """The work ends, and does not wait for itself."""

    async def story() -> None:
        async with village:
            box: list[Life] = []
            said: list[str] = []

            async def work(epoch: int) -> None:
                try:
                    await box[0].member.leave()
                finally:
                    said.append("ended")

            life = await village.enters(101, run=work)
            box.append(life)
            await life.member.join()
            await life.member.until_left()
            assert said == ["ended"]
            await gone(life)

            other: list[asyncio.Task[str]] = []

            def on_role(role: object) -> None:
                if isinstance(role, Leading):
                    other.append(asyncio.ensure_future(second.member.leave()))

            second = await village.enters(102, on_role=on_role)
            await second.member.join()
            await second.member.until_left()
            assert await other[0] == ""

    run(story())


def test_a_work_that_ignores_its_cancellation(village: Village, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for, and nobody else leads before it has ended."""
    monkeypatch.setattr(member_module, "RELEASE_MS", 50)

    async def story() -> None:
        async with village:
            release = asyncio.Event()
            cancelled = asyncio.Event()

            async def stubborn(epoch: int) -> None:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancelled.set()
                    await release.wait()

            first = await village.joins(101, run=stubborn)
            second = await village.joins(102)
            leaving = asyncio.ensure_future(first.member.leave())
            await cancelled.wait()
            await asyncio.sleep(0.3)
            assert not leaving.done()
            assert not isinstance(second.role, Leading)
            assert "default" in village.registry
            release.set()
            await leaving
            await second.leads()

    run(story())


def test_leaving_that_is_cancelled_goes_on(village: Village) -> None:
    async def story() -> None:
        async with village:
            life = await village.joins(101)
            leaving = asyncio.ensure_future(life.member.leave())
            await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.wait([leaving])
            assert leaving.cancelled()
            await life.member.until_left()
            await gone(life)

    run(story())


def test_the_end_of_the_block_is_the_end_of_it(village: Village) -> None:
    """Cancelled in the middle, it has left when the cancellation goes on."""

    async def story() -> None:
        async with village:
            life = village.life(101)

            async def block() -> None:
                async with life.member as member:
                    await member.join()
                    await member.until_left()

            task = asyncio.ensure_future(block())
            await until(lambda: isinstance(life.role, Leading))
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            await gone(life)

    run(story())


def test_joining_cancelled_at_every_await(tmp_path: Path) -> None:
    """The member goes on joining without whoever asked."""

    async def story(n: int) -> bool:
        awaits = Awaits()
        village = Village(tmp_path / str(n))
        Path(village.directory.root).mkdir()
        async with village:
            life = await village.enters(101)
            awaits.install()

            async def join() -> None:
                await life.member.join()

            joining = asyncio.ensure_future(join())
            awaits.arm(n, joining.cancel)
            await asyncio.wait([joining])
            quicker = awaits.count < n
            awaits.disarm()
            await life.leads()
            return quicker

    async def all_of_them() -> None:
        n = 1
        while not await story(n):
            n += 1 if n < 12 else 7
        assert n > 10

    run(all_of_them())


def test_leaving_at_every_await_of_a_fleet(tmp_path: Path) -> None:
    """Whatever the leader, or its follower, is about: it leaves, nothing is left, and the other leads or is alone."""

    async def story(n: int, leader: bool) -> bool:
        awaits = Awaits()
        village = Village(tmp_path / f"{n}{leader}")
        Path(village.directory.root).mkdir()
        async with village:
            first, second = await village.enters(101), await village.enters(102)
            awaits.install()
            who = first if leader else second
            leaving: list[asyncio.Task[str]] = []
            awaits.arm(n, lambda: leaving.append(asyncio.ensure_future(who.member.leave())))
            await asyncio.gather(first.member.join(), second.member.join())
            await until(lambda: leaving or all(isinstance(x.role, Leading | Following) for x in (first, second)))
            quicker = not leaving
            awaits.disarm()
            await who.member.leave()
            await gone(who)
            await (second if leader else first).leads()
            return quicker

    async def all_of_them() -> None:
        for leader in (True, False):
            n = 1
            while not await story(n, leader):
                n += 5

    run(all_of_them())


def test_the_loop_is_closed(tmp_path: Path) -> None:
    """A member whose loop ended without it stops keeping its lease, and the same process may be a member again."""
    village, mine = Village(tmp_path), ProcessState()
    life = village.life(101, process=mine)

    async def begin() -> None:
        await life.member.__aenter__()
        await life.member.join()

    asyncio.run(begin())

    async def again() -> None:
        other = village.life(101, process=mine)
        async with other.member as member:
            await member.join()
            assert (await other.leads()).epoch == 2

    run(again())
    assert life.member._leadership.phase != "active"
    life.member._leadership.lead.close()
    for executor in (life.member._leadership._files, life.member._watch._files):
        executor.shutdown()
    life.member.leader._open.endpoint._listening.close()  # type: ignore[union-attr]
