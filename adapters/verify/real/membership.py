"""One member of a run's fleet: it joins, leads or follows, sends and takes work, leaves and joins again, until it is
killed. Now and then its host's session is another one, or it asks its leader for something.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Final

from tenure.adapters.bus.messages.envelopes import CallApi, Delivery, ForwardMessage
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.leader.requests import Work
from tenure.adapters.fleet.member import Member
from tenure.adapters.fleet.roles import Following
from tenure.adapters.verify.real.worker import Faults, Room, ports_of
from tenure.machines.follower_messages import Generation

BUSY_S: Final = 0.02
"""How often a leader sends work, or a member does something else, at least."""

LIVES: Final = 3
"""How often a process joins: once more than the model of a process's ownership has runtimes."""


def membership(room: Room, faults: Faults, slot: int, seed: int, timings: Timings) -> None:
    """Live until killed."""
    asyncio.run(_lives(room, faults, slot, seed, timings))


async def _lives(room: Room, faults: Faults, slot: int, seed: int, timings: Timings) -> None:
    ports = ports_of(room, faults, slot, seed, timings)
    chance = random.Random(seed + 4)
    lease = timings.stale_ms / 1000
    for number in range(LIVES):
        life = Life(chance, lease)
        member = Member(
            AgentDirectory(str(room.agent)),
            cwd=str(room.agent),
            run=life.leads,
            deliver=life.takes,
            ports=ports,
            timings=timings,
        )
        life.member = member
        async with member:
            await member.join()
            await life.goes_on(for_good=number + 1 == LIVES)
            await member.leave(goodbye=chance.random() < 0.5)


class Life:
    """What one activation does."""

    member: Member

    def __init__(self, chance: random.Random, lease: float) -> None:
        self._chance = chance
        self._lease = lease
        self._sent = 0

    async def goes_on(self, *, for_good: bool) -> None:
        """As a member, for some leases or until killed."""
        chance, member = self._chance, self.member
        session, end = 1, asyncio.get_running_loop().time() + self._lease * chance.expovariate(1 / 2)
        while for_good or asyncio.get_running_loop().time() < end:
            await asyncio.sleep(chance.uniform(BUSY_S, self._lease / 2))
            if chance.random() < 0.2:
                session += 1
                member.serve_session(session)
            elif isinstance(member.role, Following):
                await member.follower.ask(self._call, timeout_ms=self._lease * 1000)

    def _call(self, generation: Generation) -> CallApi:
        me = self.member.identity.instance_id
        return CallApi(
            request_id="", instance_id=me, registration_generation=str(generation), method="call", args=(), sent_at_ms=0
        )

    async def leads(self, epoch: int) -> None:
        """Send work to everybody, again and again."""
        while True:
            await asyncio.sleep(self._chance.uniform(BUSY_S, self._lease / 4))
            with suppress(TenureError):
                for follower in self.member.leader.fleet_view().followers:
                    work = self._work(follower.profile or "")
                    await self.member.leader.forward(follower.instance_id, follower.generation, work)

    def _work(self, key: str) -> Work:
        self._sent += 1
        delivery = Delivery(
            delivery_id=f"telegram-follower-v1-{self._sent:064x}",
            source_update_id=self._sent,
            recipient_binding_key=key,
        )
        me = self.member.identity.instance_id
        return ForwardMessage(
            request_id=f"{me}:work:{self._sent}", recipient_instance_id="", recipient_registration_generation="",
            delivery=delivery, message=Json({}), sent_at_ms=0,
        )  # fmt: skip

    async def takes(self, work: object) -> None:
        """What the leader sends."""
        await asyncio.sleep(0)
