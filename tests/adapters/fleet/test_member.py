"""Members of one fleet: who leads, who follows, and what they keep through it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.fleet.member import Member
from tenure.adapters.fleet.roles import Following, Leading, Left, Seeking
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.fleet.member_room import TIMES, Mute, Village


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return Village(tmp_path)


def test_a_path_is_no_directory_and_a_word_no_key(village: Village, tmp_path: Path) -> None:
    """Said where it is made, and what to pass; a key that no profile has is refused as the profile is."""
    where: Any
    for where in (tmp_path, str(tmp_path)):
        for make in (Member, lambda path: LeaseRuntime(real_ports(), path, "default", cwd=None)):
            with pytest.raises(TenureError, match=r"is no AgentDirectory; pass agent_directory\(DIR\)$"):
                make(where)
    for key in ("Bad Name", "", "main"):
        with pytest.raises(TenureError, match=rf"^(key|profile) '{key}'"):
            LeaseRuntime(real_ports(), village.directory, key, cwd=None)
    assert not list(tmp_path.iterdir())


def test_the_first_leads_and_the_others_follow(village: Village) -> None:
    """Each has a slot of its own; what is told is told once, and the numbers say the same."""

    async def story() -> None:
        async with village:
            first, second, third = await village.fleet(101, 102, 103)
            assert first.role == Leading(1, "A", first.role.name)  # type: ignore[union-attr]
            assert (await second.follows(first)).slot == "B"
            assert (await third.follows(first)).slot == "C"
            assert [type(role) for role in second.roles] == [Seeking, Following]
            assert (first.edges, second.edges) == ([True], [True])
            assert first.member.epoch == 1
            assert second.member.epoch is None
            one, two = first.member.statistics(), second.member.statistics()
            assert (one.phase, one.promotions, one.elections, one.registrations) == ("leading", 1, 1, 0)
            assert (two.phase, two.registrations, two.losses, two.available) == ("following", 1, 0, True)

    run(story())


def test_the_smallest_slot_is_next(village: Village) -> None:
    """The leader leaves: the others go on with the slots, the threads and the names that they had."""

    async def story() -> None:
        async with village:
            first, second, third = await village.fleet(101, 102, 103)
            before = await second.follows(first), await third.follows(first)
            await first.member.leave()
            assert first.role == Left()
            assert first.edges == [True, False]
            now = await second.leads()
            assert (now.epoch, now.slot, now.name) == (2, before[0].slot, before[0].name)
            after = await third.follows(second)
            assert (after.slot, after.name) == (before[1].slot, before[1].name)
            assert after.generation != before[1].generation
            assert third.member.statistics().losses == 1
            assert second.member.statistics().promotions == 1

    run(story())


def test_one_that_is_replaced_follows(village: Village) -> None:
    """Its entry is gone, and another is quicker: it follows that one, in the place that it had as the leader."""

    async def story() -> None:
        async with village:
            first = await village.joins(101, times=attrs.evolve(TIMES, grace_ms=15_000))
            second = await village.joins(102)
            before = first.role
            assert isinstance(before, Leading)
            await asyncio.to_thread(Path(village.directory.registry).write_text, "{}")
            await second.leads()
            after = await first.follows(second)
            assert (after.slot, after.name) == ("A", before.name)
            assert first.member.statistics().depositions == 1
            assert first.edges == [True, False, True]

    run(story())


def test_two_who_stand_at_once(village: Village) -> None:
    """One wins; the other is registered with it as soon as its endpoint is there, without waiting for a grace."""

    async def story() -> None:
        slow = attrs.evolve(TIMES, grace_ms=15_000)
        async with village:
            lives = [await village.enters(pid, times=slow) for pid in (101, 102, 103)]
            await asyncio.gather(*(life.member.join() for life in lives))
            leading = [life for life in lives if isinstance(life.role, Leading)]
            assert len(leading) == 1
            for life in lives:
                if life is not leading[0]:
                    await life.follows(leading[0])

    run(story())


def test_a_registry_that_cannot_be_read_for_a_while(village: Village) -> None:
    """Followers keep their registration; who joins waits, says why, and joins afterwards."""

    async def story() -> None:
        async with village:
            first, second = await village.fleet(101, 102)
            registry = Path(village.directory.registry)
            whole = registry.read_text()
            third = await village.enters(103)
            registry.write_text("torn")
            joining = asyncio.ensure_future(third.member.join())
            await until(lambda: isinstance(third.role, Seeking) and third.role.mend)
            assert "bad JSON" in str(third.role)
            assert isinstance(second.role, Following)
            registry.write_text(whole)
            await joining
            assert isinstance(third.role, Following | Leading)
            assert first.member.statistics().depositions == 0

    run(story())


def test_a_look_that_raises(village: Village) -> None:
    """It says nothing: looks go on."""

    async def story() -> None:
        async with village:
            first, second = await village.fleet(101, 102)
            lease: Any = second.member.lease
            look, fails = lease.look, [True]

            def broken() -> Any:
                if fails:
                    raise ValueError("embedded null byte")
                return look()

            lease.look = broken
            await until(lambda: second.member._watch.problem)
            assert isinstance(second.role, Following)
            await first.member.leave()
            fails.clear()
            await second.leads()

    run(story())


def test_a_stale_entry_and_nobody_there(village: Village) -> None:
    """Who joins then leads at once."""

    async def story() -> None:
        async with village:
            lease = village.lease(50)
            await asyncio.to_thread(lease.acquire, "plain")
            village.processes.kill(50)
            life = await village.joins(101)
            assert life.role == Leading(2, "A", life.role.name)  # type: ignore[union-attr]
            assert [str(role) for role in life.roles[:2]] == ["standing for election", "starting to lead"]

    run(story())


def test_a_leader_that_hangs_keeps_nobody_past_its_lease(tmp_path: Path) -> None:
    """Its socket takes the registration and says nothing: the follower leads when the lease is over (K3, V5)."""

    async def story() -> None:
        times = attrs.evolve(TIMES, stale_ms=900, register_timeout_ms=60_000)
        village = Village(tmp_path, times)
        async with village, Mute(village.path) as mute:
            lease = village.lease(50, bus_socket_path=village.path, bus_secret="x" * 43)
            await asyncio.to_thread(lease.acquire, "plain")
            life = await village.enters(101)
            joining = asyncio.ensure_future(life.member.join())
            await until(lambda: mute.calls)
            for _ in range(5):  # the lease is fresh: it goes on waiting for this leader
                await asyncio.to_thread(lease.refresh)
                await asyncio.sleep(0.1)
            assert life.member.phase == "registering"
            began = asyncio.get_running_loop().time()
            await joining
            waited = asyncio.get_running_loop().time() - began
            assert 0.3 < waited < 0.9 + 1.5
            assert isinstance(life.role, Leading)
            assert life.member.statistics().abandoned_registrations == 1

    run(story())


def test_sessions(tmp_path: Path) -> None:
    """A registration under way is begun again for the next session, and not at all for none; one that is held stays
    (A53, L25)."""

    async def story() -> None:
        village = Village(tmp_path)
        async with village:
            lease = village.lease(50, bus_socket_path=village.path, bus_secret="x" * 43)
            await asyncio.to_thread(lease.acquire, "plain")
            async with Mute(village.path) as mute:
                life = await village.enters(101)
                joining = asyncio.ensure_future(life.member.join())
                await until(lambda: mute.calls == 1)
                life.member.serve_session(2)
                life.member.serve_session(3)
                await until(lambda: mute.calls == 2)
                assert life.member.statistics().refused_registrations == 0
                life.member.serve_session(0)
                await life.is_in("waiting")
                village.processes.kill(50)
                await asyncio.sleep(0.5)  # two graces: without a session nothing begins
                assert life.member.phase == "waiting"
                assert mute.calls == 2
            life.member.serve_session(4)
            await joining
            assert isinstance(life.role, Leading)
            other = await village.joins(102)
            generation = (await other.follows(life)).generation
            for session in (0, 7):
                other.member.serve_session(session)
                await asyncio.sleep(0.1)
                assert (await other.follows(life)).generation == generation
            with pytest.raises(TenureError, match="session -1"):
                other.member.serve_session(-1)

    run(story())


def test_one_process_is_one_member(village: Village) -> None:
    """A second one is refused as long as the first is there; then not."""

    async def story() -> None:
        async with village:
            mine = ProcessState()
            first = await village.joins(101, process=mine)
            with pytest.raises(TenureError, match="a member of this fleet already"):
                await village.life(101, process=mine).member.__aenter__()
            other = await village.joins(101, process=mine, profile="other")  # another fleet
            assert isinstance(other.role, Leading)
            await first.member.leave()
            again = await village.joins(101, process=mine)
            assert isinstance(again.role, Leading)
            with pytest.raises(TenureError, match="make a new one"):
                await first.member.__aenter__()

    run(story())


def test_verbs_before_it_is_entered(village: Village) -> None:
    """Said in one line."""

    async def story() -> None:
        life = village.life(101)
        for verb in (life.member.join, life.member.leave):
            with pytest.raises(TenureError, match="enter the member first"):
                await verb()

    run(story())


def test_callbacks_that_raise_and_that_bring_the_next_change(village: Village) -> None:
    """Each is noted and changes nothing; edges alternate all the same."""

    async def story() -> None:
        async with village:
            first = await village.joins(101)
            edges: list[bool] = []
            box: list[Member] = []

            def on_role(role: object) -> None:
                if isinstance(role, Following):
                    box[0].follower.leave()  # as if it had been lost at this very moment
                    box[0]._announce()
                raise RuntimeError("a callback")

            life = await village.enters(102, on_role=on_role, on_available=edges.append)
            box.append(life.member)
            joining = asyncio.ensure_future(life.member.join())
            await until(lambda: len(edges) >= 2)
            assert edges[:2] == [True, False]
            joining.cancel()
            assert life.member.statistics().callback_errors >= 2
            assert isinstance(first.role, Leading)

    run(story())


def test_a_fork_is_no_member(village: Village) -> None:
    """Its verbs say so, and the end of the block there does nothing."""

    async def story() -> None:
        async with village:
            life = await village.joins(101)
            mine = life.member.ports
            life.member.ports = attrs.evolve(mine, processes=village.processes.as_pid(999))
            for verb in (life.member.join, life.member.leave):
                with pytest.raises(TenureError, match="make one after the fork"):
                    await verb()
            await life.member.__aexit__(None, None, None)
            life.member.ports = mine
            assert isinstance(life.role, Leading)

    run(story())


def test_the_others_session_in_a_callback(village: Village) -> None:
    """What a callback brings about is told after it, in order."""

    async def story() -> None:
        async with village:
            first = await village.joins(101)
            told: list[str] = []
            box: list[Member] = []

            def on_role(role: object) -> None:
                told.append(str(role).split(",")[0])
                if str(role) == "registering" and len(told) == 1:
                    box[0].serve_session(0)
                    box[0].serve_session(5)
                    told.append("returned")

            life = await village.enters(102, on_role=on_role)
            box.append(life.member)
            await life.member.join()
            assert told == [
                "registering",
                "returned",
                "waiting to try again",
                "registering",
                f"following pid {first.pid}",
            ]
            assert life.member.course.data.session == 5

    run(story())


def test_a_follower_that_was_silent_for_long(tmp_path: Path) -> None:
    """As after a suspend: its leader has forgotten it, and takes it again in its old place."""

    async def story() -> None:
        village = Village(tmp_path, attrs.evolve(TIMES, prune_ms=300))
        async with village:
            first, second = await village.fleet(101, 102)
            before = await second.follows(first)
            follower: Any = second.member.follower
            ticker, follower._ticker = follower._ticker, None
            ticker.cancel()
            await until(lambda: first.member.leader.fleet_view().followers == ())
            follower._ticker = asyncio.ensure_future(follower._tick(before.generation))
            await until(lambda: len(second.edges) == 3)
            after = await second.follows(first)
            assert (after.slot, after.name) == (before.slot, before.name)
            assert after.generation != before.generation
            assert second.member.statistics().losses == 1

    run(story())
