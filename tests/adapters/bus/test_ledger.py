"""The ledger of a server under asyncio: who is executed, who joins, who is told what (bus.md a, LEDGER)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.serving.ledger import Done, Ledger, LedgerStatistics, RequestKey, Unexecuted, body_of
from tenure.adapters.ports import Killed
from tenure.machines.request_ledger import Kind, Outcome

LIMIT = 2
LONG = 100
"""So many characters of long answers are kept."""


def key(request_id: str) -> RequestKey:
    """A request of one follower."""
    return RequestKey("secret", "follower", request_id)


@attrs.define
class House:
    """A server with a small ledger, whose executions end when the test says so."""

    stands: bool = True
    begun: list[str] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)
    ends: dict[str, asyncio.Future[Done[str]]] = attrs.field(factory=dict)
    ledger: Ledger[RequestKey, str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.begin_with(LIMIT)

    def begin_with(self, limit: int) -> None:
        """A new ledger."""

        def refusal(key: RequestKey, why: Unexecuted) -> str:
            return f"{key.request_id}: {why}"

        def failed(key: RequestKey, error: Exception) -> None:
            self.errors.append(f"{key.request_id}: {error}")

        self.ledger = Ledger(
            refusal, lambda key: self.stands, limit=limit, on_error=failed, size=len, small_bytes=4, kept_bytes=LONG
        )

    def ask(self, request_id: str, body: str = "body", kind: Kind = "other") -> asyncio.Task[str]:
        """One request that comes in."""

        async def execute() -> Done[str]:
            self.begun.append(request_id)
            return await self.ends.setdefault(request_id, asyncio.get_running_loop().create_future())

        return asyncio.create_task(self.ledger.run(key(request_id), body, kind, execute))

    async def asked(self, request_id: str, body: str = "body", kind: Kind = "other") -> asyncio.Task[str]:
        """The same, as far as it goes without anything else."""
        task = self.ask(request_id, body, kind)
        await quiet()
        return task

    async def end(self, request_id: str, outcome: Outcome = "done", ack: str = "ack") -> None:
        """Its execution ends."""
        self.ends.pop(request_id).set_result(Done(ack, outcome))
        await quiet()

    async def executed(self, request_id: str, outcome: Outcome = "done", kind: Kind = "other", ack: str = "ack") -> str:
        """One request from its arrival to its answer."""
        task = await self.asked(request_id, kind=kind)
        await self.end(request_id, outcome, ack)
        return await task


async def quiet() -> None:
    """Everything that can run has run: a few turns of the loop, since nothing here waits for time."""
    for _ in range(5):
        await asyncio.sleep(0)


Test = Callable[[House], Coroutine[Any, Any, None]]


def in_a_loop(test: Test) -> Callable[[], None]:
    """Run a test on a loop of its own."""

    def run() -> None:
        async def whole() -> None:
            await asyncio.wait_for(test(House()), 60)

        asyncio.run(whole())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@in_a_loop
async def test_a_request_that_comes_twice_is_executed_once(house: House) -> None:
    """The second joins the first, a third hears the same afterwards; all get the one acknowledgement."""
    first, second = await house.asked("r"), await house.asked("r")
    await house.end("r", ack="the one")
    third = await house.asked("r")

    assert ["the one"] * 3 == [await first, await second, await third]
    assert ["r"] == house.begun


@in_a_loop
async def test_two_that_arrive_in_one_turn_of_the_loop_are_one(house: House) -> None:
    """Nothing is awaited between the look into the ledger and the entry."""
    tasks = [house.ask("r") for _ in range(3)]
    await quiet()
    await house.end("r")

    assert ["ack"] * 3 == await asyncio.gather(*tasks)
    assert ["r"] == house.begun


@in_a_loop
async def test_another_body_under_the_same_id_collides(house: House) -> None:
    """While the first is executed, and afterwards; the first is not disturbed."""
    first = await house.asked("r")
    assert "r: collision" == await house.ask("r", "another")
    await house.end("r")

    assert "r: collision" == await house.ask("r", "another")
    assert "ack" == await first


@in_a_loop
async def test_the_same_id_of_another_peer_is_another_request(house: House) -> None:
    """A key names the secret, who asks, and the id."""

    async def execute() -> Done[str]:
        return Done("another's", "done")

    await house.executed("r")
    for other in (attrs.evolve(key("r"), identity="another"), attrs.evolve(key("r"), auth=None)):
        assert "another's" == await house.ledger.run(other, "body", "other", execute)


@in_a_loop
async def test_what_was_settled_for_longest_gives_way(house: House) -> None:
    """In the order in which they were settled, not in that in which they came."""
    await house.asked("x")
    await house.executed("y")
    await house.end("x")
    await house.executed("z")

    assert "ack" == await house.ask("x")
    again = await house.asked("y")
    assert ["x", "y", "z", "y"] == house.begun
    await house.end("y")
    assert "ack" == await again


@in_a_loop
async def test_a_full_ledger_refuses_work_and_lets_heartbeats_pass(house: House) -> None:
    """L20: nothing under way gives way; a heartbeat is executed each time it comes."""
    work = [await house.asked(name) for name in ("x", "y")]

    assert "z: overloaded" == await house.ask("z")
    assert "r: overloaded" == await house.ask("r", kind="register")
    assert ["ack"] * 2 == [await house.executed("b", kind="heartbeat") for _ in range(2)]
    assert ["x", "y", "b", "b"] == house.begun
    await house.end("x")
    assert "ack" == await house.executed("z")
    await house.end("y")
    assert ["ack"] * 2 == await asyncio.gather(*work)
    assert LedgerStatistics(2, 2, 3, 2, 0, 0, 2, 1, 0, 0) == house.ledger.statistics()


@in_a_loop
async def test_a_failure_that_may_be_retried_is_tried_again(house: House) -> None:
    """L13: the same id, the same body, another execution; both who waited for the first hear of the failure."""
    first, second = await house.asked("r"), await house.asked("r")
    await house.end("r", "failed", "later, please")

    assert ["later, please"] * 2 == [await first, await second]
    assert "ack" == await house.executed("r")
    assert ["r", "r"] == house.begun


@pytest.mark.parametrize("outcome", ["refused", "unknown"])
def test_a_refusal_for_good_and_an_unknown_outcome_are_told_again(outcome: Outcome) -> None:
    """The one is no failure, the other may have been a success: neither is executed again."""

    @in_a_loop
    async def test(house: House) -> None:
        await house.executed("r", outcome)
        assert "ack" == await house.ask("r")
        assert ["r"] == house.begun

    test()


@in_a_loop
async def test_a_registration_that_is_over_is_not_acknowledged_again(house: House) -> None:
    """L14: it was pruned meanwhile. Nothing is executed again either: a registration does not come back by itself."""
    await house.executed("r", kind="register")
    assert "ack" == await house.ask("r", kind="register")
    house.stands = False

    assert "r: over" == await house.ask("r", kind="register")
    assert ["r"] == house.begun


@in_a_loop
async def test_who_leaves_leaves_alone(house: House) -> None:
    """The first of two is cancelled: the execution goes on, and the other is told. So if both are."""
    first, second = await house.asked("r"), await house.asked("r")
    first.cancel()
    await quiet()
    await house.end("r")
    assert (True, "ack") == (first.cancelled(), await second)

    only = await house.asked("s")
    only.cancel()
    await quiet()
    await house.end("s")
    assert "ack" == await house.ask("s")
    assert ["r", "s"] == house.begun


@in_a_loop
async def test_a_heartbeat_without_a_record_ends_with_the_one_who_asked(house: House) -> None:
    """Nobody else waits for it."""
    work = [await house.asked(name) for name in ("x", "y")]
    beat = await house.asked("b", kind="heartbeat")
    beat.cancel()
    await quiet()

    assert house.ends["b"].cancelled()
    await house.end("x")
    await house.end("y")
    await asyncio.gather(*work)


@in_a_loop
async def test_an_execution_that_raises_is_told_in_general_words(house: House) -> None:
    """To all who wait, and again: what it had done by then nobody knows. The error itself stays in the house."""
    first, second = await house.asked("r"), await house.asked("r")
    house.ends["r"].set_exception(ValueError("no such table"))

    assert ["r: broken"] * 3 == [await first, await second, await house.ask("r")]
    assert (["r"], ["r: no such table"]) == (house.begun, house.errors)


@in_a_loop
async def test_a_heartbeat_without_a_record_may_raise_too(house: House) -> None:
    """And is told as well."""
    work = [await house.asked(name) for name in ("x", "y")]
    beat = await house.asked("b", kind="heartbeat")
    house.ends["b"].set_exception(ValueError("no such table"))

    assert ("b: broken", ["b: no such table"]) == (await beat, house.errors)
    await house.end("x")
    await house.end("y")
    await asyncio.gather(*work)


@in_a_loop
async def test_a_server_that_stops_lets_nobody_wait(house: House) -> None:
    """Those who wait are refused at once, what is under way can be awaited or ended, and comes to nothing."""
    await house.executed("over")
    waiting = await house.asked("r")
    (running,) = house.ledger.stop()

    assert "r: stopped" == await waiting
    assert ["over: stopped", "r: stopped", "new: stopped"] == [await house.ask(r) for r in ("over", "r", "new")]
    await house.end("r")
    assert running.done()
    assert ((), 0) == (house.ledger.stop(), house.ledger.statistics().held)


@in_a_loop
async def test_an_execution_that_is_cancelled_is_told(house: House) -> None:
    """Whoever ends it, before its first step or in the middle: nobody knows what it has done."""
    first = house.ask("r")
    await asyncio.sleep(0)
    for task in asyncio.all_tasks():
        if task.get_name().startswith("tenure-request-"):
            task.cancel()

    assert "r: broken" == await first
    assert "r: broken" == await house.ask("r")


@in_a_loop
async def test_the_death_of_the_process_is_no_answer(house: House) -> None:
    """`Killed` goes through to those who wait."""

    async def dies() -> Done[str]:
        raise Killed

    waiting = asyncio.create_task(house.ledger.run(key("r"), "body", "other", dies))
    await quiet()

    assert isinstance(waiting.exception(), Killed)


@in_a_loop
async def test_a_simulated_crash_for_which_nobody_waits(house: House) -> None:
    """Who had asked has gone: the loop has nothing to report either."""

    async def dies() -> Done[str]:
        await house.ends.setdefault("r", asyncio.get_running_loop().create_future())
        raise Killed

    waiting = asyncio.create_task(house.ledger.run(key("r"), "body", "other", dies))
    await quiet()
    waiting.cancel()
    await quiet()
    await house.end("r")

    assert waiting.cancelled()


@in_a_loop
async def test_long_answers_are_kept_within_a_bound(house: House) -> None:
    """The one that was given first is dropped. Its request is not executed again, and who repeats it hears why."""
    house.begin_with(9)
    first, second = await house.asked("x"), await house.asked("x")
    await house.end("x", ack="1" * 60)
    assert ["1" * 60] * 2 == [await first, await second]
    assert "1" * 60 == await house.ask("x")

    assert "2" * 60 == await house.executed("y", ack="2" * 60)
    assert ["x: dropped", "2" * 60] == [await house.ask("x"), await house.ask("y")]
    assert "x: collision" == await house.ask("x", "another")
    assert ["x", "y"] == house.begun
    numbers = house.ledger.statistics()
    assert (2, 60, 1) == (numbers.settled, numbers.kept_bytes, numbers.dropped)


@in_a_loop
async def test_short_answers_are_dropped_for_no_long_one(house: House) -> None:
    """There are as many of them as there are entries at most: a registration is told again, whatever others ask."""
    house.begin_with(9)
    await house.executed("r", kind="register")
    for name in ("x", "y", "z"):
        await house.executed(name, ack="1" * 60)

    assert ["ack", "x: dropped", "y: dropped", "1" * 60] == [
        await house.ask("r", kind="register"), await house.ask("x"), await house.ask("y"), await house.ask("z")
    ]  # fmt: skip


@in_a_loop
async def test_an_answer_that_is_longer_than_all_may_be(house: House) -> None:
    """It is told to those who wait, and not kept."""
    assert "1" * 101 == await house.executed("x", ack="1" * 101)
    assert "x: dropped" == await house.ask("x")
    assert 0 == house.ledger.statistics().kept_bytes


@in_a_loop
async def test_a_long_answer_that_gives_way_takes_no_room(house: House) -> None:
    """Evicted, forgotten with its failure, or gone with the server."""
    await house.executed("x", ack="1" * 60)
    for name in "ab":
        await house.executed(name)
    assert 0 == house.ledger.statistics().kept_bytes
    await house.executed("y", "failed", ack="1" * 60)
    assert 0 == house.ledger.statistics().kept_bytes
    await house.executed("z", ack="1" * 60)
    assert 60 == house.ledger.statistics().kept_bytes
    house.ledger.stop()
    assert 0 == house.ledger.statistics().kept_bytes


def test_a_long_fingerprint_is_not_kept() -> None:
    """A line may have 16 MiB, and the ledger 4,096 entries."""
    bodies = {body_of("x" * n) for n in range(100)} | {body_of("\ud800")}

    assert (101, {32}) == (len(bodies), {len(body) for body in bodies})


def test_execute_is_any_awaitable() -> None:
    """What `run` is given is called only where the request is executed."""

    @in_a_loop
    async def test(house: House) -> None:
        def execute() -> Awaitable[Done[str]]:
            future: asyncio.Future[Done[str]] = asyncio.get_running_loop().create_future()
            future.set_result(Done("at once", "done"))
            return future

        assert "at once" == await house.ledger.run(key("r"), "body", "other", execute)

    test()
