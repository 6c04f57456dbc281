"""A worker over receipts in memory: once each, in order, started before the effect, and settled or left as it is."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.ports import Killed
from tenure.adapters.work.items import Held, Item, Items
from tenure.adapters.work.worker import AHEAD, Worker
from tests.adapters.work.receipts_room import MemoryReceipts, Rows, failing
from tests.adapters.work.work_room import run


class Desk:
    """A worker that runs, and what its handler has seen."""

    def __init__(self, rows: Rows, handler: Callable[[Item], Awaitable[None]] | None = None, **who: str) -> None:
        self.rows = rows
        self.seen: list[tuple[int, int]] = []
        """Update and attempt of every execution."""
        self.receipts = MemoryReceipts(rows, **who)
        self.items = Items(lambda: self.worker.ready())
        self._handler = handler
        self.worker = Worker(self.receipts, self.items, self._handle, DEFAULT)
        self.task: asyncio.Task[None] | None = None

    async def _handle(self, item: Item) -> None:
        number = self.rows.rows[item.receipt_id].first_update
        assert self.rows.rows[item.receipt_id].phase == "started"
        self.seen.append((number, item.attempt))
        if self._handler is not None:
            await self._handler(item)

    def start(self) -> asyncio.Task[None]:
        self.task = asyncio.ensure_future(self.worker.run())
        return self.task

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task
        assert self.items.running is None

    async def settles(self) -> None:
        """Wait until nothing is to be done any more."""
        while not all(phase in ("done", "failed", "interrupted") for phase in self.rows.phases().values()):
            await asyncio.sleep(0.05)


def test_each_once_in_the_order_of_the_updates() -> None:
    async def story() -> None:
        desk = Desk(Rows(3, 1, 2))
        desk.start()
        await desk.settles()
        desk.rows.add(5, 4)
        desk.worker.signal()
        await desk.settles()
        assert desk.seen == [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]
        assert set(desk.rows.phases().values()) == {"done"}
        await desk.stop()

    run(story())


def test_a_signal_is_enough_and_without_one_a_tick_is() -> None:
    async def story() -> None:
        desk = Desk(Rows())
        desk.start()
        await asyncio.sleep(0.1)
        desk.rows.add(1)
        desk.worker.signal()
        await asyncio.sleep(0.01)
        assert desk.seen == [(1, 1)]
        desk.rows.add(2)
        await asyncio.sleep(DEFAULT.reconcile_ms / 1000 + 0.01)
        assert desk.seen == [(1, 1), (2, 1)]
        await desk.stop()

    run(story())


def test_poison_is_tried_again_and_stops_nobody() -> None:
    async def story() -> None:
        async def handler(item: Item) -> None:
            if item.receipt_id == "r1":
                raise ValueError("poison")

        desk = Desk(Rows(1, 2, 3), handler)
        desk.start()
        begun = asyncio.get_running_loop().time()
        await asyncio.sleep(0.1)
        assert desk.rows.phases() == {1: "pending", 2: "done", 3: "done"}
        await desk.settles()
        assert desk.rows.phases()[1] == "failed"  # at the limit of three: a person's
        assert [seen for seen in desk.seen if seen[0] == 1] == [(1, 1), (1, 2), (1, 3)]
        assert asyncio.get_running_loop().time() - begun == pytest.approx(1 + 2, abs=0.2)
        assert desk.worker.counts.failures == 3
        await desk.stop()

    run(story())


def test_the_delay_doubles_up_to_its_end() -> None:
    worker = Desk(Rows()).worker
    assert [worker._delay(n) for n in (1, 2, 3, 6, 7, 8, 100)] == [1000, 2000, 4000, 32000, 60000, 60000, 60000]


def test_who_stops_leaves_what_runs_interrupted_and_gives_the_rest_back() -> None:
    async def story() -> None:
        cleaned = []

        async def handler(item: Item) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(5)
                cleaned.append(item.receipt_id)

        rows = Rows(1, 2, 3)
        desk = Desk(rows, handler)
        desk.start()
        await asyncio.sleep(0.1)
        assert rows.phases() == {1: "started", 2: "queued", 3: "queued"}
        await desk.stop()
        assert cleaned == ["r1"]  # it was waited for
        assert rows.phases() == {1: "interrupted", 2: "pending", 3: "pending"}
        assert desk.worker.counts.interrupted == 1

        after = Desk(rows, instance="i2")  # the next activation of this process
        after.start()
        await after.settles()
        assert rows.phases() == {1: "interrupted", 2: "done", 3: "done"}
        assert after.seen == [(2, 1), (3, 1)]
        await after.stop()

    run(story())


def test_a_handler_that_ends_well_when_it_is_cancelled_has_done_it() -> None:
    async def story() -> None:
        async def handler(item: Item) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return

        desk = Desk(Rows(1), handler)
        desk.start()
        await asyncio.sleep(0.1)
        await desk.stop()
        assert desk.rows.phases() == {1: "done"}

    run(story())


def test_a_handler_that_raises_when_it_is_cancelled_is_interrupted() -> None:
    async def story() -> None:
        async def handler(item: Item) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError from None

        desk = Desk(Rows(1), handler)
        desk.start()
        await asyncio.sleep(0.1)
        await desk.stop()
        assert desk.rows.phases() == {1: "interrupted"}

    run(story())


def test_a_handler_that_is_cancelled_by_itself_is_interrupted_and_those_behind_it_go_on() -> None:
    async def story() -> None:
        async def handler(item: Item) -> None:
            if item.receipt_id == "r1":
                raise asyncio.CancelledError

        desk = Desk(Rows(1, 2), handler)
        desk.start()
        await desk.settles()
        assert desk.rows.phases() == {1: "interrupted", 2: "done"}
        assert desk.worker.counts.interrupted == 1
        await desk.stop()

    run(story())


def test_who_is_stopped_between_the_row_and_the_handler_has_done_nothing() -> None:
    async def story() -> None:
        desk = Desk(Rows(1))
        desk.start()
        desk.receipts.slow = asyncio.Event()
        await asyncio.sleep(0)
        while desk.rows.phases() == {1: "pending"}:
            await asyncio.sleep(0)
        desk.receipts.slow.set()
        desk.receipts.slow = None
        while desk.rows.phases() == {1: "queued"}:
            desk.receipts.slow = asyncio.Event()
            await asyncio.sleep(0)
        assert desk.rows.phases() == {1: "started"}
        stopping = asyncio.ensure_future(desk.stop())
        await asyncio.sleep(1)
        assert desk.receipts.slow is not None
        desk.receipts.slow.set()
        await stopping
        assert desk.seen == []
        assert desk.rows.phases() == {1: "pending"}  # certainly nothing has come of it

    run(story())


@pytest.mark.parametrize(("tries", "left"), [(1, "done"), (100, "started")])
def test_who_ends_while_the_journal_cannot_be_written_tries_once_more(tries: int, left: str) -> None:
    async def story() -> None:
        desk = Desk(Rows(1))
        desk.receipts.faults = failing("complete", "before", tries)
        desk.start()
        await asyncio.sleep(0.5)
        assert desk.rows.phases() == {1: "started"}
        begun = asyncio.get_running_loop().time()
        await desk.stop()
        assert asyncio.get_running_loop().time() - begun < 0.1
        assert desk.rows.phases() == {1: left}
        assert desk.seen == [(1, 1)]

    run(story())


@pytest.mark.parametrize("name", ["take", "start", "complete", "fail"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_call_of_the_journal_that_fails_is_made_again(name: str, when: str) -> None:
    """Once each, also where it was done and nobody was told."""

    async def story() -> None:
        attempts: dict[str, int] = {}

        async def handler(item: Item) -> None:
            attempts[item.receipt_id] = attempts.get(item.receipt_id, 0) + 1
            if name == "fail" and item.receipt_id == "r1" and item.attempt == 1:
                raise ValueError

        desk = Desk(Rows(1, 2), handler)
        desk.receipts.faults = failing(name, when, 2)
        desk.start()
        await desk.settles()
        assert set(desk.rows.phases().values()) == {"done"}
        assert attempts == {"r1": 2 if name == "fail" else 1, "r2": 1}
        assert desk.worker.counts.troubles == 2
        await desk.stop()

    run(story())


def test_what_the_dead_left_is_taken_and_what_they_had_begun_is_not() -> None:
    async def story() -> None:
        rows = Rows(1, 2)

        async def hangs(item: Item) -> None:
            await asyncio.Event().wait()

        dead = Desk(rows, hangs, process="p9", instance="i9")
        task = dead.start()
        await asyncio.sleep(0.1)
        desk = Desk(rows)
        desk.start()
        await asyncio.sleep(5)
        assert desk.seen == []  # it lives, as far as anybody knows
        rows.dead.add("p9")
        await desk.settles()
        assert rows.phases() == {1: "interrupted", 2: "done"}
        assert desk.seen == [(2, 1)]
        await desk.stop()
        task.cancel()
        await asyncio.wait([task])

    run(story())


def test_what_is_aside_is_not_begun_and_does_not_stand_in_the_way() -> None:
    async def story() -> None:
        gate = asyncio.Event()

        async def handler(item: Item) -> None:
            await gate.wait()

        desk = Desk(Rows(1, 2, 3), handler)
        desk.start()
        await asyncio.sleep(0.1)
        assert [held.receipt_id for held in desk.items] == ["r2", "r3"]
        assert desk.items.set_aside("r1") is None  # it has begun
        assert desk.items.set_aside("r2") is not None
        assert desk.items.set_aside("r2") is None
        gate.set()
        await asyncio.sleep(0.1)
        assert desk.seen == [(1, 1), (3, 1)]
        desk.items.resume("r2")
        await asyncio.sleep(0.1)
        assert desk.seen == [(1, 1), (3, 1), (2, 1)]
        await desk.stop()

    run(story())


def test_what_was_handed_over_is_dropped_and_what_was_accepted_is_executed() -> None:
    async def story() -> None:
        rows = Rows(1)
        desk = Desk(rows)
        held = (await MemoryReceipts(rows).take(1))[0]
        desk.items.put(held)
        assert held.receipt_id in desk.items
        assert len(desk.items) == 1
        desk.items.drop(held.receipt_id)
        assert desk.items.begin() is None
        desk.items.put(held)
        desk.start()
        await desk.settles()
        assert desk.seen == [(1, 1)]
        await desk.stop()

    run(story())


def test_not_everything_is_taken_at_once() -> None:
    async def story() -> None:
        gate = asyncio.Event()

        async def handler(item: Item) -> None:
            await gate.wait()

        desk = Desk(Rows(*range(1, 4 * AHEAD)), handler)
        desk.start()
        await asyncio.sleep(5)
        assert list(desk.rows.phases().values()).count("pending") > 2 * AHEAD
        gate.set()
        await desk.settles()
        assert [number for number, _ in desk.seen] == list(range(1, 4 * AHEAD))
        await desk.stop()

    run(story())


@pytest.mark.parametrize("when", ["at once", "when it is cancelled"])
def test_who_is_killed_in_a_handler_says_nothing_more(when: str) -> None:
    """The dead give nothing back: what they have is recovered with proof."""

    async def story() -> None:
        async def handler(item: Item) -> None:
            try:
                await asyncio.sleep(0 if when == "at once" else 100)
            finally:
                raise Killed

        desk = Desk(Rows(1, 2), handler)
        task = desk.start()
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(Killed):
            await task
        assert desk.rows.phases() == {1: "started", 2: "queued"}
        assert desk.receipts.calls[-1] == "start"

    run(story())


class Own(BaseException):
    """Of whoever wrote the handler."""


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, Own])
@pytest.mark.parametrize("when", ["at once", "when it is cancelled"])
def test_a_handler_that_ends_the_program_is_interrupted_and_the_rest_given_back(
    kind: type[BaseException], when: str
) -> None:
    """It may have happened. Others go on with what it had not begun, though this process may live for long."""

    async def story() -> None:
        async def handler(item: Item) -> None:
            try:
                await asyncio.sleep(0 if when == "at once" else 100)
            except asyncio.CancelledError:
                raise kind("of its own") from None
            raise kind("of its own")

        desk = Desk(Rows(1, 2), handler)
        with pytest.raises(kind, match="of its own"):
            async with asyncio.timeout(1):
                await desk.worker.run()
        assert desk.seen == [(1, 1)]
        assert desk.rows.phases() == {1: "interrupted", 2: "pending"}
        assert desk.worker.counts.interrupted == 1
        assert desk.receipts.calls[-1] == "leave"

    run(story())


def test_who_ends_the_program_does_not_wait_for_a_journal_that_cannot_be_written() -> None:
    async def story() -> None:
        async def handler(item: Item) -> None:
            raise Own

        desk = Desk(Rows(1), handler)
        desk.receipts.faults = failing("doubt", "before", 100)
        begun = asyncio.get_running_loop().time()
        with pytest.raises(Own):
            await desk.worker.run()
        assert asyncio.get_running_loop().time() - begun < 0.1
        assert desk.rows.phases() == {1: "started"}

    run(story())


# -- who finishes -----------------------------------------------------------------------------------------------------


def test_who_finishes_takes_and_begins_nothing_new_and_ends_what_it_has_begun() -> None:
    async def story() -> None:
        gate = asyncio.Event()

        async def handler(item: Item) -> None:
            await gate.wait()

        desk = Desk(Rows(1, 2, 3), handler)
        desk.start()
        await asyncio.sleep(0.1)
        assert desk.items.set_aside("r3") is not None  # it is being offered
        assert desk.worker.serves
        desk.worker.finish()
        assert not desk.worker.serves
        await asyncio.sleep(0.1)
        assert desk.rows.phases() == {1: "started", 2: "pending", 3: "queued"}
        assert desk.receipts.calls.count("leave") == 1
        desk.items.resume("r3")
        await asyncio.sleep(0.1)
        assert desk.rows.phases() == {1: "started", 2: "pending", 3: "pending"}
        desk.rows.add(4)
        desk.worker.signal()
        gate.set()
        await asyncio.sleep(10)
        assert desk.rows.phases() == {1: "done", 2: "pending", 3: "pending", 4: "pending"}
        assert desk.seen == [(1, 1)]
        await desk.stop()
        assert desk.receipts.calls.count("leave") == 1

    run(story())


@pytest.mark.parametrize("name", ["release", "leave"])
def test_who_finishes_while_the_journal_cannot_be_written_tries_again(name: str) -> None:
    async def story() -> None:
        async def handler(item: Item) -> None:
            await asyncio.Event().wait()

        desk = Desk(Rows(1, 2), handler)
        desk.start()
        await asyncio.sleep(0.1)
        desk.receipts.faults = failing(name, "before", 2)
        desk.worker.finish()
        await asyncio.sleep(2 * DEFAULT.reconcile_ms / 1000 + 0.1)
        assert desk.rows.phases() == {1: "started", 2: "pending"}
        assert desk.receipts.calls[-1] == ("leave" if name == "leave" else "release")
        assert desk.worker.counts.troubles == 2
        await desk.stop()

    run(story())


def test_who_finishes_between_the_row_and_the_handler_begins_nothing() -> None:
    async def story() -> None:
        desk = Desk(Rows(1))
        desk.start()
        while desk.rows.phases() != {1: "started"}:
            desk.receipts.slow = asyncio.Event() if desk.rows.phases() == {1: "queued"} else None
            await asyncio.sleep(0)
        assert desk.receipts.slow is not None
        desk.worker.finish()
        desk.receipts.slow.set()
        await asyncio.sleep(1)
        assert desk.seen == []
        assert desk.rows.phases() == {1: "pending"}
        await desk.stop()

    run(story())


def test_what_comes_back_from_an_offer_to_who_finishes_is_not_begun() -> None:
    """Nor is an attempt counted."""

    async def story() -> None:
        desk = Desk(Rows())
        desk.start()
        await asyncio.sleep(0.1)
        desk.rows.add(1)
        (held,) = await desk.receipts.take(1)
        desk.items.put(held)
        assert desk.items.set_aside("r1") is not None
        desk.worker.finish()
        await asyncio.sleep(0.1)
        assert desk.rows.phases() == {1: "queued"}
        desk.items.resume("r1")
        await asyncio.sleep(0.1)
        assert desk.rows.phases() == {1: "pending"}
        assert "start" not in desk.receipts.calls
        await desk.stop()

    run(story())


# -- what is under way ------------------------------------------------------------------------------------------------


def test_what_is_offered_is_not_given_back_at_the_end() -> None:
    """It is the recipient's, who may have accepted it, or falls with this process."""

    async def story() -> None:
        async def handler(item: Item) -> None:
            await asyncio.Event().wait()

        desk = Desk(Rows(1, 2, 3), handler)
        desk.start()
        await asyncio.sleep(0.1)
        assert desk.items.set_aside("r2") is not None
        await desk.stop()
        assert desk.rows.phases() == {1: "interrupted", 2: "queued", 3: "pending"}
        assert desk.receipts.calls.count("release") == 1

    run(story())


def test_what_is_about_to_begin_is_not_held_twice() -> None:
    """The journal answers what is queued for this process already; it is beginning to execute that."""

    async def story() -> None:
        desk = Desk(Rows(1))
        starting, go_on = asyncio.Event(), asyncio.Event()
        start = desk.receipts.start

        async def slow(held: Held) -> Item | None:
            starting.set()
            await go_on.wait()
            return await start(held)

        desk.receipts.start = slow  # type: ignore[method-assign]
        desk.start()
        await starting.wait()
        desk.worker.signal()
        await asyncio.sleep(0.1)
        assert desk.receipts.calls.count("take") >= 2
        assert list(desk.items) == []
        assert desk.worker.counts.taken == 1
        go_on.set()
        await desk.settles()
        assert desk.seen == [(1, 1)]
        await desk.stop()

    run(story())


# -- all of it --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_whoever_dies_whenever_nothing_is_begun_again_that_was_not_known_to_have_failed(seed: int) -> None:
    """Three processes over one journal; calls fail, handlers fail, processes die and others begin."""

    async def story() -> None:
        chance = random.Random(seed)
        rows = Rows()
        may_have_happened: Counter[str] = Counter()

        async def handler(item: Item) -> None:
            may_have_happened[item.receipt_id] += 1
            assert may_have_happened[item.receipt_id] == 1, f"{item.receipt_id} twice"
            await asyncio.sleep(chance.random() / 2)
            if chance.random() < 0.2:
                may_have_happened[item.receipt_id] -= 1
                raise ValueError("certainly nothing")

        desks: list[Desk] = []
        bad = [True]

        def begins() -> None:
            desk = Desk(rows, handler, process=f"p{len(desks)}", instance=f"i{len(desks)}")

            def fault(name: str, when: str) -> None:
                if desk.receipts.me.process in rows.dead:
                    raise Killed
                if bad[0] and chance.random() < 0.05:
                    raise TenureError(f"{name} failed {when}")

            desk.receipts.faults = fault
            desks.append(desk)
            desk.start()

        async def dies(desk: Desk) -> None:
            rows.dead.add(desk.receipts.me.process)
            assert desk.task is not None
            desk.task.cancel()
            await asyncio.wait([desk.task])
            if not desk.task.cancelled():
                desk.task.exception()

        for _ in range(3):
            begins()
        for number in range(1, 61):
            rows.add(number)
            living = [desk for desk in desks if desk.receipts.me.process not in rows.dead]
            chance.choice(living).worker.signal()
            if chance.random() < 0.15:
                await dies(chance.choice(living))
                begins()
            await asyncio.sleep(chance.random() / 2)
        bad[0] = False
        await desks[-1].settles()
        for desk in desks:
            if desk.receipts.me.process not in rows.dead:
                await desk.stop()
        phases = {row.receipt_id: row.phase for row in rows.rows.values()}
        assert all(may_have_happened[receipt] == 1 for receipt, phase in phases.items() if phase == "done")
        assert all(may_have_happened[receipt] == 0 for receipt, phase in phases.items() if phase == "failed")
        assert list(phases.values()).count("done") > 30

    run(story())
