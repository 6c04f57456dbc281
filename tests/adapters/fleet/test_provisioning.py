"""Local provisioning: the port's promises while it takes time, is cancelled, or loses its epoch (bus.md f, annex I)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import attrs
import pytest

from tenure.adapters.fleet.agreement import HELD
from tenure.adapters.fleet.threads.provisioning import (
    CleanUpRefused,
    LocalProvisioning,
    Provisioned,
    Provisioning,
    ProvisionRefused,
    ProvisionRequest,
)
from tenure.adapters.testing.memory import FakeProcesses, memory_ports
from tenure.machines.identity import UNKNOWN, ZOMBIE
from tenure.machines.slot_board import Pending, Target


def request(key: str, pid: int = 500, **fields: object) -> ProvisionRequest:
    made = ProvisionRequest(f"{pid}:1", f"{pid}:1:1", key, pid=pid, process_birth=f"{pid}:start:1")
    return attrs.evolve(made, **fields)


RIVALS = (("a", 501), ("b", 502))


class Room:
    """Processes that are there, and a provisioning whose work ends when it is told to."""

    def __init__(self) -> None:
        self.processes = FakeProcesses(1)
        self.made: list[Pending] = []
        self.unmade: list[Target] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()
        self.local = LocalProvisioning(memory_ports(processes=self.processes), make=self.make, unmake=self.unmake)

    def port(self) -> Provisioning:
        return self.local

    async def make(self, pending: Pending) -> None:
        self.made.append(pending)
        self.entered.set()
        await self.gate.wait()

    async def unmake(self, target: Target) -> None:
        self.unmade.append(target)
        self.entered.set()
        await self.gate.wait()

    async def begun(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """The work, as far as its outside call."""
        self.gate.clear()
        self.entered.clear()
        task = asyncio.get_running_loop().create_task(work)
        await self.entered.wait()
        return task


async def refused(work: Coroutine[Any, Any, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as found:
        await work
    assert "\n" not in str(found.value)


def test_threads_are_given_in_turn_and_kept_by_their_profile() -> None:
    async def scene() -> None:
        port = Room().port()
        first = await port.provision(request("a"), 1)
        second = await port.provision(request("b", 501), 1)
        assert ((Target(0, 1), "A"), (Target(0, 2), "B")) == ((first.target, first.slot), (second.target, second.slot))
        assert first == await port.provision(request("a", 502), 1)

    asyncio.run(scene())


def test_two_that_are_under_way_get_different_slots_and_targets() -> None:
    """L26: nothing is picked from a snapshot taken before an await."""

    async def scene() -> None:
        room = Room()
        wish = {"slot": "K", "target": Target(0, 7)}
        one = await room.begun(room.local.provision(request("a", **wish), 1))
        two = await room.begun(room.local.provision(request("b", 501, **wish), 1))
        await refused(room.local.provision(request("a"), 1), ProvisionRefused, "under way; register again")
        room.gate.set()
        found: list[Provisioned] = [await one, await two]
        assert [("K", Target(0, 7)), ("L", Target(0, 8))] == [(p.slot, p.target) for p in found]

    asyncio.run(scene())


def test_cancelled_provisioning_has_never_been() -> None:
    async def scene() -> None:
        room = Room()
        before = room.local.board
        task = await room.begun(room.local.provision(request("a", slot="K"), 1))
        assert room.local.board.pendings
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert attrs.evolve(before, next_thread=2) == room.local.board
        room.gate.set()
        assert "K" == (await room.local.provision(request("b", slot="K"), 1)).slot

    asyncio.run(scene())


def test_what_fails_outside_leaves_the_slot_free() -> None:
    """I36: a definite refusal."""

    async def scene() -> None:
        async def make(pending: Pending) -> None:
            raise ProvisionRefused("no more topics")

        local = LocalProvisioning(memory_ports(), make=make)
        await refused(local.provision(request("a"), 1), ProvisionRefused, "no more topics")
        assert ((), ()) == (local.board.pendings, local.board.records)

    asyncio.run(scene())


def test_what_an_earlier_epoch_began_comes_too_late() -> None:
    """M3 at the provisioning: a leader that was elected again does not take what its earlier self asked for."""

    async def scene() -> None:
        room = Room()
        late = await room.begun(room.local.provision(request("a"), 1))
        new = await room.begun(room.local.provision(request("a"), 2))
        room.gate.set()
        await refused(late, ProvisionRefused, "begun anew")
        assert "A" == (await new).slot
        assert 1 == len(room.local.board.records)

    asyncio.run(scene())


def test_a_new_leader_goes_on_from_what_was_remembered() -> None:
    async def scene() -> None:
        room = Room()
        room.processes.start(500)
        await room.local.provision(request("cwd:/old", kind="leader", generation=None), 1)
        kept = await room.local.provision(request("a", 501), 1)
        under_way = await room.begun(room.local.provision(request("b", 502), 1))
        board = room.local.board
        under_way.cancel()
        room.processes.kill(500)
        second = LocalProvisioning(memory_ports(processes=room.processes.as_pid(2)))
        second.begin_leading(board, "cwd:/new", 2)
        assert () == second.board.pendings
        assert ["A"] == [r.slot for r in second.board.reservations]  # the dead leader's, for a while
        assert kept == await second.provision(request("a", 501), 2)
        assert "C" == (await second.provision(request("new", 503), 2)).slot

    asyncio.run(scene())


def test_a_promoted_follower_keeps_slot_name_and_target() -> None:
    async def scene() -> None:
        room = Room()
        room.processes.start(500)
        before = await room.local.provision(request("manual:x"), 1)
        own = request("cwd:/here", kind="leader", generation=None)
        assert before == await room.local.provision(own, 2)
        assert 1 == len(room.local.board.records)

    asyncio.run(scene())


@pytest.mark.parametrize("birth", ["500:start:2", "501:start:1", "500:generation:1", "", None])
def test_a_process_that_is_not_seen_with_that_birth_is_never_proven_dead(birth: str | None) -> None:
    async def scene() -> None:
        room = Room()
        room.processes.start(500)
        await room.local.provision(request("a", process_birth=birth), 1)
        room.processes.kill(500)
        assert frozenset() == room.local.dead()

    asyncio.run(scene())


def test_a_verified_process_is_proven_dead_when_it_is() -> None:
    async def scene() -> None:
        room = Room()
        room.processes.start(500)
        await room.local.provision(request("a"), 1)
        await room.local.provision(request("me", 1, process_birth=None), 1)
        assert frozenset() == room.local.dead()
        room.processes.turn(500, UNKNOWN)
        assert frozenset() == room.local.dead()
        room.processes.turn(500, ZOMBIE)
        assert [500] == [process.pid for process in room.local.dead()]
        room.processes.start(500, ticks=9)
        assert [500] == [process.pid for process in room.local.dead()]

    asyncio.run(scene())


def test_the_death_of_one_that_borrowed_an_instance_proves_nothing_of_who_bears_it() -> None:
    """L16: a hand-written registration names the leader's instance, and its process ends."""

    async def scene() -> None:
        room = Room()
        room.processes.start(500)
        room.processes.start(501)
        leader = await room.local.provision(request("lead", kind="leader"), 1)
        await room.local.provision(request("x", 501, instance="500:1"), 1)
        room.processes.turn(501, ZOMBIE)
        assert [501] == [process.pid for process in room.local.dead()]
        taken = await room.local.provision(request("y", 502, slot=leader.slot, target=leader.target), 1)
        assert taken.target != leader.target
        assert taken.slot != leader.slot
        room.processes.turn(500, ZOMBIE)
        assert {500, 501} == {process.pid for process in room.local.dead()}

    asyncio.run(scene())


def test_a_profile_whose_process_lives_is_held() -> None:
    """L24: its follower is stopped, and no longer routed to; the newcomer of the same shell asks under its own key."""

    async def scene() -> None:
        room = Room()
        room.processes.start(500)
        room.processes.start(501)
        await room.local.provision(request("shell"), 1)
        await refused(room.local.provision(request("shell", 501), 1), ProvisionRefused, HELD)
        assert "B" == (await room.local.provision(request("own", 501), 1)).slot
        room.processes.turn(500, ZOMBIE)
        assert "A" == (await room.local.provision(request("shell", 502), 1)).slot

    asyncio.run(scene())


def test_a_clean_up_forgets_the_thread_and_remembers_the_name() -> None:
    async def scene() -> None:
        room = Room()
        given = await room.local.provision(request("a"), 1)
        await room.local.clean_up(given.target, "500:1", "500:1:1")
        assert [given.target] == room.unmade
        assert () == room.local.board.records
        again = await room.local.provision(request("a", 501), 1)
        assert (given.slot, given.name, Target(0, 2)) == (again.slot, again.name, again.target)
        await room.local.clean_up(given.target, "500:1", "500:1:1")  # it has gone already

    asyncio.run(scene())


def test_a_thread_of_another_registration_is_not_deleted() -> None:
    """L0: the same instance, registered again."""

    async def scene() -> None:
        room = Room()
        given = await room.local.provision(request("a", generation="g2"), 1)
        await refused(room.local.clean_up(given.target, "500:1", "g1"), CleanUpRefused, "nothing was deleted")
        assert [] == room.unmade
        assert 1 == len(room.local.board.records)

    asyncio.run(scene())


def test_a_thread_that_is_being_deleted_is_given_to_nobody() -> None:
    """Also not to its own profile, and not to whoever names it as that of a dead process."""

    async def scene() -> None:
        room = Room()
        room.processes.start(500)
        given = await room.local.provision(request("a"), 1)
        room.processes.kill(500)
        deleting = await room.begun(room.local.clean_up(given.target, "500:1", "500:1:1"))
        await refused(room.local.clean_up(given.target, "500:1", "500:1:1"), CleanUpRefused, "already; ask again")
        tasks = [await room.begun(room.local.provision(request(k, n, target=given.target), 1)) for k, n in RIVALS]
        room.gate.set()
        await deleting
        assert [Target(0, 2), Target(0, 3)] == [(await task).target for task in tasks]
        assert ["B", "C"] == [r.slot for r in room.local.board.records]

    asyncio.run(scene())


def test_a_cancelled_clean_up_keeps_the_thread() -> None:
    async def scene() -> None:
        room = Room()
        given = await room.local.provision(request("a"), 1)
        task = await room.begun(room.local.clean_up(given.target, "500:1", "500:1:1"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [given.target] == [r.target for r in room.local.board.records]
        assert () == room.local.board.cleaning
        room.gate.set()
        assert given == await room.local.provision(request("a", 501), 1)

    asyncio.run(scene())


def test_the_profile_is_the_instances_own_where_none_is_named() -> None:
    assert ("manual:500:1", "k") == (request("").key, request("k").key)
