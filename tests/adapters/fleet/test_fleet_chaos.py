"""Two leaders after each other, four followers, and whatever happens to them in any order: in the end each living
follower has one route, with the leader that leads, and a thread and a slot of its own (I1-I6, I10, V1, V2)."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path

import attrs
import pytest

from tenure.adapters.bus.endpoints.paths import endpoint_path, follower_path
from tenure.adapters.bus.messages.envelopes import ForwardMessage, Request
from tenure.adapters.fleet.follower.outcomes import Accepted
from tests.adapters.fleet.envelopes_of import asks, register, works
from tests.adapters.fleet.fleet_room import Chief, Hand, House, Proxy, run, until

PIDS = (101, 102, 103, 104)
KINDS = ("follower.register", "follower.heartbeat", "follower.disconnect", "follower.callApi")


class Chaos:
    """What happens, drawn from one seed."""

    def __init__(self, house: House, chief: Chief, proxy: Proxy, seed: int) -> None:
        self.house = house
        self.chief = chief
        self.proxy = proxy
        self.random = random.Random(seed)
        self.epoch = 1
        self.sessions = 1
        # Two of one shell, and two by themselves.
        self.hands: dict[int, Hand] = {pid: house.follower(pid, parent=7 if pid < 103 else pid + 1000) for pid in PIDS}
        self.activations = dict.fromkeys(PIDS, 1)
        self.jobs: set[asyncio.Task[object]] = set()

    def entry_path(self) -> str | None:
        return self.random.choice((None, self.proxy.path))

    def job(self, doing: Coroutine[object, object, object]) -> None:
        self.jobs.add(asyncio.ensure_future(doing))

    async def step(self) -> None:
        pid = self.random.choice(PIDS)
        hand = self.hands[pid]
        match self.random.randrange(14):
            case 0 | 1 | 2 | 3:
                self.job(hand.follower.register(self.chief.entry(self.entry_path()), None))
            case 4:
                hand.follower.leave()
            case 5:
                self.job(hand.follower.disconnect())
            case 6:
                self.sessions += 1
                hand.follower.set_session(self.sessions)
            case 7:
                generation = str(hand.follower.generation)
                self.job(self.send(self.random.choice([*asks(generation), *works(generation)])))
            case 8:
                self.proxy.drop = self.random.choice(KINDS)
            case 9 if self.jobs:
                self.random.choice(sorted(self.jobs, key=id)).cancel()
            case 10:
                with suppress(FileNotFoundError):
                    os.unlink(self.random.choice([self.house.path, self.own_path(hand)]))
            case 11:
                await self.change()
            case 12:
                await self.reload(pid)
            case _:
                self.house.clock.advance(self.house.times.prune_ms / 3)
        for _ in range(self.random.randrange(8)):
            await asyncio.sleep(self.random.choice((0, 0, 0.001, 0.004)))
        self.holds()

    async def send(self, request: Request) -> None:
        with suppress(AssertionError):
            await self.chief.send(request)

    def own_path(self, hand: Hand) -> str:
        return endpoint_path(follower_path(self.house.directory, "default", hand.follower.identity.instance_id))

    async def change(self) -> None:
        """The leader is deposed; another one leads, and knows nothing but what was published."""
        before, self.epoch = self.chief, self.epoch + 1
        before.own.epoch = None
        self.chief = self.house.chief(50 + self.epoch % 2 * 10, epoch=self.epoch, secret=f"{self.epoch:043}")
        await self.chief.leader.open(self.epoch, None)
        self.job(before.leader.close())

    async def reload(self, pid: int) -> None:
        """The process goes on as another instance."""
        before = self.hands[pid]
        self.activations[pid] += 1
        parent = 7 if pid < 103 else pid + 1000
        self.hands[pid] = self.house.follower(pid, activation=self.activations[pid], parent=parent)
        self.job(before.follower.stop())

    def holds(self) -> None:
        """At every moment: one route a member, one member a thread."""
        if self.chief.leader.epoch is None:
            return
        followers = self.chief.leader.fleet_view().followers
        for what in ("instance_id", "profile", "target"):
            seen = [getattr(follower, what) for follower in followers]
            assert len(seen) == len(set(seen)), what

    async def ends(self) -> None:
        """Nothing happens any more but what they do by themselves."""
        for job in self.jobs:
            job.cancel()
        if self.jobs:
            await asyncio.wait(self.jobs)
        self.proxy.drop = None
        await until(lambda: Path(self.house.path).exists())
        while not all(self.current(hand) for hand in self.hands.values()):
            for hand in self.hands.values():
                if hand.follower.phase == "idle":
                    await hand.follower.register(self.chief.entry(), None)
            await asyncio.sleep(0.002)
            self.house.clock.advance(5)
            self.holds()
        views = self.chief.leader.fleet_view().followers
        slots = [view.slot for view in views if view.instance_id in self.instances()]
        assert None not in slots
        assert len(set(slots)) == len(PIDS)
        for hand in self.hands.values():
            await until(lambda hand=hand: Path(self.own_path(hand)).exists())  # type: ignore[misc]
            assert (await self.chief.send(work(hand))).ok

    def instances(self) -> set[str]:
        return {hand.follower.identity.instance_id for hand in self.hands.values()}

    def current(self, hand: Hand) -> bool:
        follower = hand.follower
        instance = follower.identity.instance_id
        return follower.phase == "registered" and self.chief.routes().get(instance) == str(follower.generation)


def work(hand: Hand) -> Request:
    """A message for the registration that it holds now."""
    found = works(str(hand.follower.generation))[0]
    assert isinstance(found, ForwardMessage)
    me = hand.follower.identity.instance_id
    delivery = attrs.evolve(found.delivery, recipient_binding_key=hand.follower.profile_key)
    return attrs.evolve(found, request_id=f"end:{me}", recipient_instance_id=me, delivery=delivery)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens(seed: int) -> None:
    """Forty events of a seed."""

    async def story() -> None:
        with tempfile.TemporaryDirectory(prefix="tenure-") as room:
            async with House(Path(room)) as house, Proxy(house.path) as proxy:
                chief = await house.led()
                chaos = Chaos(house, chief, proxy, seed)
                for _ in range(40):
                    await chaos.step()
                await chaos.ends()

    run(story())


def test_strangers_do_not_disturb() -> None:
    """Two who register without ever beating, under the profiles of the living: refused or silent, and forgotten."""

    async def story() -> None:
        with tempfile.TemporaryDirectory(prefix="tenure-") as room:
            async with House(Path(room)) as house:
                chief = await house.led()
                hands = [house.follower(pid) for pid in PIDS]
                for hand in hands:
                    assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
                for n, pid in enumerate(PIDS):
                    await chief.send(register(f"9{n}:1:1", 900 + n, profile_key=f"manual:{pid + 1000}:start:70"))
                    await chief.send(register(f"8{n}:1:1", 800 + n))
                await house.silence(*hands)
                await until(lambda: len(chief.routes()) == len(PIDS))
                assert [hand.lost for hand in hands] == [[], [], [], []]

    run(story())
