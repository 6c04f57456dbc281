"""Lanes: what fails keeps its place, what no instance takes loses it, and what no line can hold is not sent (V5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tenure.adapters.bus.messages.envelopes import Ack, Forward
from tenure.adapters.bus.messages.json_values import LINE_LIMIT, VALUES_LIMIT, Json, JsonValue
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.asking import NoAck
from tenure.adapters.work.forwarding import SUSPECT
from tenure.adapters.work.outbox import Outgoing
from tests.adapters.work.test_forwarding import A, Desk, Follower, receipt, refusal
from tests.adapters.work.work_room import message, run


class Choosy(Follower):
    """It answers some updates as it is told to, and takes the others."""

    def __init__(self, bad: Callable[[Forward], Ack | NoAck], *numbers: int) -> None:
        super().__init__()
        self.bad = bad
        self.numbers = frozenset(numbers)

    async def take(self, request: Forward) -> Ack | NoAck:
        number = request.delivery.source_update_id
        self.heard.append((number, request.recipient_registration_generation))
        return self.bad(request) if number in self.numbers else receipt(request)


@pytest.mark.parametrize(
    "bad",
    [
        refusal,
        lambda request: NoAck("it broke off", sent=True),
        lambda request: NoAck("the line cannot be read", sent=False, reached=True),
    ],
)
def test_those_that_no_instance_takes_stop_nobody_behind_them(bad: Callable[[Forward], Ack | NoAck]) -> None:
    """V5, B74: not even several in a row."""

    async def story() -> None:
        desk = Desk("a")
        desk.followers["a"] = Choosy(bad, 1, 2)
        desk.start()
        desk.push(A, 1, 2, 3, 4)
        async with asyncio.timeout(120):
            await desk.delivers(3, 4)
        assert {desk.outbox.phases()[number] for number in (1, 2)} == {"waiting"}
        desk.push(A, 5)
        async with asyncio.timeout(1):
            await desk.delivers(5)
        await desk.stop()

    run(story())


def test_who_dies_of_an_update_gets_the_others_when_he_comes_back() -> None:
    """Whatever the time that this takes: what has lost its place goes after them."""

    async def story() -> None:
        desk = Desk("a")

        class Mortal(Choosy):
            async def take(self, request: Forward) -> Ack | NoAck:
                answer = await super().take(request)
                if isinstance(answer, NoAck):
                    desk.routes.pop("a", None)
                return answer

        desk.followers["a"] = Mortal(lambda request: NoAck("it broke off", sent=True), 1)
        desk.start()
        desk.push(A, 1, 2, 3)
        for life in range(4):
            await asyncio.sleep(1_000)
            desk.register("a", generation=f"g{life + 2}")
        await asyncio.sleep(1)
        assert desk.outbox.phases() == {1: "waiting", 2: "delivered", 3: "delivered"}
        await desk.stop()

    run(story())


def test_who_is_not_there_yet_gets_them_in_their_order() -> None:
    """What has reached nobody says nothing of the update."""

    async def story() -> None:
        desk = Desk("a")
        away = [True]

        def absent(request: Forward) -> Ack | NoAck:
            return NoAck("nobody listens", sent=False) if away[0] else receipt(request)

        desk.followers["a"] = Choosy(absent, 1, 2, 3)
        desk.start()
        desk.push(A, 1, 2, 3)
        await asyncio.sleep(1_000)
        assert set(desk.followers["a"].updates) == {1}
        away[0] = False
        await desk.delivers(1, 2, 3)
        assert desk.followers["a"].updates[-3:] == [1, 2, 3]
        await desk.stop()

    run(story())


def test_who_registers_again_is_sent_to_at_once() -> None:
    """However long the one before was not there."""

    async def story() -> None:
        desk = Desk("a")
        desk.followers["a"].answers = [lambda request: NoAck("nobody listens", sent=False)] * 12
        desk.start()
        desk.push(A, 1, 2)
        while desk.followers["a"].answers:
            await asyncio.sleep(1)
        desk.register("a", generation="g2")
        async with asyncio.timeout(0.1):
            await desk.delivers(1, 2)
        assert desk.followers["a"].heard[-2:] == [(1, "g2"), (2, "g2")]
        await desk.stop()

    run(story())


def _nested(depth: int) -> Json:
    inner: JsonValue = []
    for _ in range(depth):
        inner = [inner]
    return Json(
        {"update_id": 1, "message": {"message_id": 1, "chat": {"id": -100}, "message_thread_id": A, "x": inner}}
    )


@pytest.mark.parametrize(
    "update",
    [
        _nested(126),
        message(1, "x" * LINE_LIMIT, thread=A),
        Json(
            {
                "update_id": 1,
                "message": {"message_id": 1, "chat": {"id": -100}, "message_thread_id": A, "x": [0] * VALUES_LIMIT},
            }
        ),
    ],
    ids=["deep", "long", "many"],
)
def test_what_no_line_can_hold_is_not_sent_and_stops_nobody(update: Json) -> None:
    async def story() -> None:
        desk = Desk("a")
        desk.outbox.add(update)
        desk.start()
        desk.push(A, 2)
        async with asyncio.timeout(1):
            await desk.delivers(2)
        assert desk.followers["a"].updates == [2]
        assert desk.outbox.rows[1].data.failure == "not-carriable"
        await asyncio.sleep(3_600)
        assert desk.outbox.calls.count("failed") < 70
        desk.routes.clear()
        desk.own = ("cwd:/agent", "manual:a")  # the leader serves that binding itself, and needs no line
        desk.forwarder.rerouted()
        await desk.delivers(1)
        await desk.stop()

    run(story())


def test_what_waits_in_a_lane_is_not_queued_twice() -> None:
    async def story() -> None:
        desk = Desk("a")
        desk.followers["a"].gate = asyncio.Event()
        desk.start()
        desk.push(A, 1, 2, 3)
        for _ in range(10):
            await asyncio.sleep(0.1)
            desk.forwarder.signal()
        desk.followers["a"].gate.set()
        await desk.delivers(1, 2, 3)
        assert desk.outbox.calls.count("forward") == 3
        await desk.stop()

    run(story())


def test_a_lane_that_rests_is_not_looked_at_again_and_again() -> None:
    """Though there is more for it than it takes."""

    async def story() -> None:
        desk = Desk("a")
        desk.followers["a"].answers = [lambda request: NoAck("nobody listens", sent=False)] * 6
        looks = 0
        outgoing = desk.outbox.outgoing

        async def counted(after: int, limit: int, *, unserved: bool) -> tuple[Outgoing, ...]:
            nonlocal looks
            looks += 1
            assert looks < 1_000, "it spins"
            return await outgoing(after, limit, unserved=unserved)

        desk.outbox.outgoing = counted  # type: ignore[method-assign]
        desk.push(A, *range(1, 301))
        desk.start()
        await asyncio.sleep(30)
        assert desk.task is not None
        assert not desk.task.done()
        assert desk.outbox.phases()[300] == "journaled"
        await desk.delivers(*range(1, 301))
        await desk.stop()

    run(story())


def test_a_journal_that_fails_is_not_asked_for_each_update() -> None:
    async def story() -> None:
        desk = Desk()

        def broken(name: str, when: str) -> None:
            if name == "keep":
                raise TenureError("the disk is full")

        desk.outbox.faults = broken
        desk.push(6, *range(1, 51))
        desk.start()
        await asyncio.sleep(0.5)
        assert desk.outbox.calls.count("keep") == SUSPECT
        await desk.stop()

    run(story())
