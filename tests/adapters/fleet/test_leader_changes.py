"""The leader changes in the middle of everything: at every await of whatever is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tenure.adapters.fleet.follower.outcomes import Accepted
from tenure.adapters.fleet.threads.projection import look
from tests.adapters.fleet.every_await import Awaits, at_every_await
from tests.adapters.fleet.fleet_room import Chief, Hand, House, joined, until

Verb = Callable[[Hand, Chief], Awaitable[object]]


async def changed(house: House, awaits: Awaits, n: int, verb: Verb, *, known: bool) -> tuple[bool, Hand, Chief]:
    """Do `verb`; at its n-th await the first leader is deposed, and another one begins to lead. Whether the verb was
    quicker; who is left."""
    first, second = await house.led(), house.chief(60, epoch=2, secret="t" * 43)
    hand = await joined(house, first) if known else house.follower(101)
    changing: list[asyncio.Task[None]] = []

    async def change() -> None:
        await second.leader.open(2, None)
        await first.leader.close()

    def depose() -> None:
        first.own.epoch = None
        changing.append(asyncio.ensure_future(change()))

    async def do() -> None:
        await verb(hand, first)

    task = asyncio.ensure_future(do())
    awaits.arm(n, depose)
    await asyncio.wait([task])
    quicker = not changing
    awaits.disarm()
    if quicker:
        depose()
    await changing[0]
    task.result()
    return quicker, hand, second


async def follows(house: House, hand: Hand, chief: Chief) -> None:
    """In the end it is registered with the second leader, and with nobody else."""
    follower = hand.follower
    while True:
        if follower.phase == "idle":
            found = await follower.register(chief.entry(), None)
            assert isinstance(found, Accepted), found
            break
        await asyncio.sleep(0.002)
    assert chief.routes() == {"101:1": str(follower.generation)}
    assert follower.binding.slot == "B"
    written = look(house.ports(1).files, house.directory, "default").written
    assert written is not None
    assert written.mark.epoch == 2
    await until(lambda: follower.statistics().heartbeats > 2)


def test_while_a_follower_registers() -> None:
    """Whoever acknowledges, it ends up with the leader that leads."""

    async def story(house: House, awaits: Awaits, n: int) -> bool:
        quicker, hand, chief = await changed(
            house, awaits, n, lambda hand, chief: hand.follower.register(chief.entry(), None), known=False
        )
        await follows(house, hand, chief)
        return quicker

    assert at_every_await(story) > 10


def test_while_a_follower_says_goodbye() -> None:
    """Confirmed by the leader that led, or not: then it is a member of the second one as before, or registers anew."""

    async def story(house: House, awaits: Awaits, n: int) -> bool:
        quicker, hand, chief = await changed(
            house, awaits, n, lambda hand, chief: hand.follower.disconnect(), known=True
        )
        await until(lambda: hand.follower.phase == "idle")
        await follows(house, hand, chief)
        assert chief.leader.fleet_view().clean_ups == ()
        return quicker

    assert at_every_await(story) > 10
