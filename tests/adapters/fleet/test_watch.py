"""Looking who leads: at once when it dies, and never at a descriptor that somebody closes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.fleet.succession.watch import REMEMBERED, Numbers, RegistryWatch
from tests.adapters.fleet.fleet_room import run
from tests.adapters.fleet.member_room import TIMES, Village

SLOW = attrs.evolve(TIMES, check_ms=200_000, stale_ms=600_000)
OWNER = """
import sys
from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime
print(LeaseRuntime(real_ports(), agent_directory(sys.argv[1]), "default", cwd="/").acquire("plain"), flush=True)
sys.stdin.read()
"""


def test_numbers() -> None:
    """The same for the same thing, and never for another; what was not seen for long is forgotten."""
    numbers: Numbers[str] = Numbers()
    assert [numbers.of(name) for name in "abab"] == [1, 2, 1, 2]
    for number in range(REMEMBERED - 1):
        numbers.of(str(number))
    assert numbers.of("b") == 2
    assert numbers.of("a") > REMEMBERED
    assert len(numbers.known()) == REMEMBERED


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return Village(tmp_path, SLOW)


def watch(village: Village, pid: int = 101) -> RegistryWatch:
    return RegistryWatch(village.lease(pid))


def test_who_and_where(village: Village) -> None:
    """Nobody, somebody, somebody else, and whatever is published."""

    async def story() -> None:
        eye = watch(village)
        seen = (await eye.look()).look
        assert (seen.state, seen.owner, seen.endpoint) == ("inactive", 0, 0)
        first = village.lease(50, bus_socket_path=village.path)
        await asyncio.to_thread(first.acquire, "plain")
        one = (await eye.look()).look
        assert (one.state, one.owner, one.endpoint) == ("elsewhere", 1, 0)
        assert eye.entries[1].pid == 50
        await asyncio.to_thread(first.refresh)
        assert (await eye.look()).look == one

        path = Path(village.path)
        path.symlink_to("nowhere")
        assert (await eye.look()).look.endpoint == 0
        (path.parent / "nowhere").touch()
        published = (await eye.look()).look.endpoint
        assert published > 0
        path.unlink()
        path.symlink_to("nowhere")  # published anew
        assert (await eye.look()).look.endpoint > published

        village.processes.kill(50)
        assert (await eye.look()).look.state == "stale"
        second = village.lease(60)
        await asyncio.to_thread(second.acquire, "plain")
        two = (await eye.look()).look
        assert (two.state, two.owner) == ("elsewhere", 2)
        await eye.close()

    run(story())


def test_a_path_that_is_none(village: Village) -> None:
    """What others write into their entries is no reason to see nothing."""

    async def story() -> None:
        lease = village.lease(50, bus_socket_path="/nul\0byte")
        await asyncio.to_thread(lease.acquire, "plain")
        eye = watch(village)
        seen = await eye.look()
        assert (seen.look.state, seen.look.endpoint, seen.problem) == ("elsewhere", 0, "")
        await eye.close()

    run(story())


def test_a_damaged_registry(village: Village) -> None:
    async def story() -> None:
        registry = Path(village.directory.registry)
        registry.parent.mkdir(parents=True)
        registry.write_text("torn")
        eye = watch(village)
        seen = await eye.look()
        assert seen.look.state == "unknown"
        assert str(registry) in eye.problem
        registry.unlink()
        await eye.look()
        assert eye.problem == ""
        await eye.close()

    run(story())


def test_a_death_is_news_at_once(tmp_path: Path) -> None:
    """Where the kernel tells of it, nothing is waited for; and while others look, the loop looks at no descriptor that
    they may close."""

    async def story() -> None:
        directory = AgentDirectory(str(tmp_path))
        owner = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert owner.stdout is not None
        assert owner.stdin is not None
        await asyncio.to_thread(owner.stdout.readline)
        lease = LeaseRuntime(real_ports(), directory, "default", cwd="/", timings=SLOW, process=ProcessState())
        eye = RegistryWatch(lease)
        assert (await eye.look()).look.state == "elsewhere"
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            news = asyncio.ensure_future(eye.news())
            await asyncio.sleep(0)
            looks = await asyncio.gather(*(eye.look() for _ in range(3)))
            assert {seen.look.state for seen in (*looks, await news)} == {"elsewhere"}
        assert len(os.listdir("/proc/self/fd")) == before

        news = asyncio.ensure_future(eye.news())
        await asyncio.sleep(0)
        assert eye._standby is not None
        descriptor = eye._standby.fileno()
        looking = asyncio.ensure_future(eye.look())
        await asyncio.sleep(0)
        assert not asyncio.get_running_loop().remove_reader(descriptor)
        await asyncio.wait([news, looking])
        news = asyncio.ensure_future(eye.news())
        await asyncio.sleep(0)
        owner.kill()
        assert (await news).look.state == "stale"
        await eye.close()
        owner.wait()
        owner.stdin.close()
        owner.stdout.close()

    run(story())


def test_cancelled_in_the_middle(village: Village) -> None:
    """A look goes on without whoever asked; the next one is a look as well."""

    async def story() -> None:
        eye = watch(village)
        for verb in (eye.look, eye.news):
            task = asyncio.ensure_future(verb())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            assert (await eye.look()).look.state == "inactive"
        await eye.close()

    run(story())


def test_it_looks_many_times_in_the_time_of_one_check(tmp_path: Path) -> None:
    """A winner's endpoint shows nowhere else, and its losers wait for it."""

    async def story() -> None:
        check_s = 10.0
        eye = watch(Village(tmp_path, attrs.evolve(SLOW, check_ms=round(check_s * 1000))))
        began = asyncio.get_running_loop().time()
        await eye.news()
        assert asyncio.get_running_loop().time() - began < check_s / 4
        await eye.close()

    run(story())
