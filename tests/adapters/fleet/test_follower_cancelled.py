"""Whatever await a verb is cancelled at: the machine has given the attempt up when the cancellation goes on, nothing of
it comes back, and the next attempt finds nobody in its way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tenure.adapters.fleet.follower.outcomes import Accepted, RefusedBy
from tests.adapters.fleet.every_await import Awaits, at_every_await
from tests.adapters.fleet.fleet_room import Chief, Hand, House, until

Verb = Callable[[Hand, Chief], Awaitable[object]]


async def cancelled(awaits: Awaits, n: int, verb: Awaitable[object]) -> bool:
    """Do `verb`, cancelled at the n-th await from now; whether it was quicker."""

    async def do() -> object:
        return await verb

    task = asyncio.ensure_future(do())
    awaits.arm(n, task.cancel)
    await asyncio.wait([task])
    quicker = awaits.count < n
    awaits.disarm()
    if not task.cancelled():
        task.result()
    return quicker


async def still_works(house: House, chief: Chief, hand: Hand) -> None:
    """What was cancelled is over at once: nothing holds the machine, nobody has the secret, nothing comes back."""
    follower = hand.follower
    assert follower.phase == "idle"
    assert (follower.data.generation, follower.data.abandoned, follower.data.beating) == (None, None, False)
    before = follower.data
    chief.hold = None
    for _ in range(20):
        await asyncio.sleep(0)
    assert follower.data == before
    found = await follower.register(chief.entry(), None)
    assert isinstance(found, Accepted), found
    assert chief.routes() == {"101:1": str(found.generation)}
    assert hand.lost == []


def test_registering_cancelled_at_every_await() -> None:
    """Of the follower's tasks and of its leader's."""

    async def story(house: House, awaits: Awaits, n: int) -> bool:
        chief = await house.led()
        hand = house.follower(101)
        quicker = await cancelled(awaits, n, hand.follower.register(chief.entry(), None))
        if hand.follower.phase == "registered":
            return quicker
        await still_works(house, chief, hand)
        return quicker

    assert at_every_await(story) > 10


def test_registering_again_cancelled_at_every_await() -> None:
    """After a loss: what was held before is over, and is not taken for the new one."""

    async def story(house: House, awaits: Awaits, n: int) -> bool:
        chief = await house.led()
        hand = house.follower(101)
        first = await hand.follower.register(chief.entry(), None)
        assert isinstance(first, Accepted)
        hand.follower.leave()
        quicker = await cancelled(awaits, n, hand.follower.register(chief.entry(), None))
        if hand.follower.phase == "registered":
            assert chief.routes() == {"101:1": str(hand.follower.generation)}
            return quicker
        await still_works(house, chief, hand)
        assert hand.follower.binding == first.binding
        return quicker

    assert at_every_await(story) > 10


def test_a_goodbye_cancelled_at_every_await() -> None:
    """Nobody knows what the leader did: the registration stands, or the next heartbeat ends it."""

    async def story(house: House, awaits: Awaits, n: int) -> bool:
        chief = await house.led()
        hand = house.follower(101)
        assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
        quicker = await cancelled(awaits, n, hand.follower.disconnect())
        phase = hand.follower.phase
        assert phase in ("idle", "registered")
        if phase == "registered":
            beats = hand.follower.statistics().heartbeats
            await until(lambda: hand.lost or hand.follower.statistics().heartbeats > beats + 2)
            assert (hand.follower.phase == "idle") == bool(hand.lost)
        return quicker

    assert at_every_await(story) > 10


def test_stopping_cancelled_at_every_await() -> None:
    """It has stopped all the same."""

    async def story(house: House, awaits: Awaits, n: int) -> bool:
        chief = await house.led()
        hand = house.follower(101)
        assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
        quicker = await cancelled(awaits, n, hand.follower.stop())
        assert hand.follower.phase == "stopped"
        again = await hand.follower.register(chief.entry(), None)
        assert isinstance(again, RefusedBy)
        assert again.code == "stopped"
        return quicker

    at_every_await(story)


def test_opening_a_leader_cancelled_at_every_await() -> None:
    """Nothing of it is left: it is closed, nobody finds an endpoint, and it can be opened again."""

    async def story(house: House, awaits: Awaits, n: int) -> bool:
        chief = house.chief()
        quicker = await cancelled(awaits, n, chief.leader.open(1, None))
        if chief.leader.epoch is not None:
            return quicker
        assert chief.leader.statistics().phase == "closed"
        assert not Path(house.path).exists()
        assert not [name for name in Path(house.path).parent.iterdir() if name.name.startswith(".pt-")]
        await chief.leader.open(1, None)
        hand = house.follower(101)
        assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
        return quicker

    assert at_every_await(story) > 5


def test_closing_a_leader_cancelled_at_every_await() -> None:
    """It is closed all the same, and can be opened again."""

    async def story(house: House, awaits: Awaits, n: int) -> bool:
        chief = await house.led()
        hand = house.follower(101)
        assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
        quicker = await cancelled(awaits, n, chief.leader.close())
        assert chief.leader.epoch is None
        await until(lambda: hand.lost)
        await chief.leader.open(1, None)
        assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
        return quicker

    at_every_await(story)
