"""Workplaces whose journal fails at any transaction, whose leader is displaced, and who begin anew in one process."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path

import pytest

from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.fleet.roles import Leading
from tenure.adapters.journal.sqlite import SqliteDatabases
from tenure.adapters.testing.databases import FAULTS, CallFails, DatabaseCall, FaultyDatabases
from tenure.adapters.work.items import Item
from tenure.adapters.work.journaling import JournalReceipts
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.work.place_room import Town, settled
from tests.adapters.work.work_room import message


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


class Mischief:
    """Databases of which so many transactions fail, before they count or after. Chance is the same in every run, the
    order of calls is not."""

    def __init__(self, seed: int, share: float) -> None:
        self.databases = FaultyDatabases(SqliteDatabases(), self._plan)
        self.on = False
        self.failed = 0
        self._share = share
        self._chance = random.Random(seed)
        self._mutex = threading.Lock()

    def _plan(self, call: DatabaseCall) -> CallFails | None:
        with self._mutex:
            if not self.on or call.name not in ("begin", "commit") or self._chance.random() > self._share:
                return None
            self.failed += 1
            when = self._chance.choice(("before", "after")) if call.name == "commit" else "before"
            return CallFails(self._chance.choice(FAULTS), when)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [1, 2])
def test_transactions_that_fail_lose_nothing_and_repeat_nothing(town: Town, seed: int) -> None:
    async def story() -> None:
        async with town:
            mischiefs = [Mischief(10 * seed + number, 0.1) for number in range(3)]
            places = [
                await town.works(101 + number, databases=mischief.databases)
                for number, mischief in enumerate(mischiefs)
            ]
            await town.opens()
            for mischief in mischiefs:
                mischief.on = True
            for number in range(1, 31):
                places[number % 3].push(number)
            await town.has_executed(*range(1, 31))
            for mischief in mischiefs:
                mischief.on = False
            await until(lambda: settled(town) == {})
            assert town.updates == list(range(1, 31))
            assert all(mischief.failed for mischief in mischiefs)

    run(story())


def test_a_full_disk_confirms_nothing_and_is_no_end(town: Town) -> None:
    async def story() -> None:
        async with town:
            mischief = Mischief(1, 2.0)
            first = await town.works(101, databases=mischief.databases)
            await town.opens()
            mischief.on = True
            first.push(1, 2)
            await until(lambda: first.work.statistics().polled.failures)
            assert first.work.trouble
            assert town.source.forgotten == set()
            assert town.executed == []
            mischief.on = False
            await town.has_executed(1, 2)
            assert town.updates == [1, 2]
            assert first.work.statistics().member.depositions == 0

    run(story())


def test_a_leader_that_was_displaced_writes_nothing_and_ends_what_it_has(town: Town) -> None:
    """Somebody else has raised the fence, and it has not noticed: the journal refuses what it decides as a leader. What
    it executes it settles all the same."""

    async def story() -> None:
        gate = asyncio.Event()

        async def waits(item: Item) -> None:
            await gate.wait()

        async with town:
            first = await town.works(101, waits)
            await town.opens()
            first.push(1, 2)
            await until(lambda: settled(town) == {1: "started", 2: "queued"})
            with town.journal() as journal:
                assert journal.raise_fence(99, "another") == 99
            first.push(3)
            town.source.put(message(4, thread=9, chat=0))
            await until(lambda: "has led since" in first.work.trouble)
            gate.set()
            await until(lambda: town.updates == [1, 2] and settled(town) == {})
            with town.journal() as journal:
                assert journal.state().passed == 2
            assert {3, 4} <= set(town.source.waiting)  # not confirmed: whoever leads now gets them

    run(story())


def test_a_mark_of_epochs_that_was_lost_is_made_up_for(town: Town) -> None:
    """The journal has seen higher epochs than those that would be won now: the first is refused, the next is above."""

    async def story() -> None:
        async with town:
            with town.journal() as journal:
                assert journal.raise_fence(50, "who led before") == 50
            first = await town.works(101)
            assert isinstance(first.work.role, Leading)
            assert first.work.role.epoch == 51
            assert first.work.statistics().member.failed_promotions == 1

    run(story())


def test_who_begins_anew_in_one_process_takes_what_it_had(town: Town) -> None:
    """Nobody has died, and what the activation before had begun is over all the same (L7)."""

    async def story() -> None:
        async def hangs(item: Item) -> None:
            await asyncio.Event().wait()

        async with town:
            state = ProcessState()
            first = await town.works(101, hangs, process=state)
            await town.opens()
            first.push(1, 2)
            await until(lambda: settled(town) == {1: "started", 2: "queued"})
            await first.leaves()
            assert settled(town) == {1: "interrupted", 2: "pending"}
            again = await town.works(101, process=state)
            await town.has_executed(2)
            await until(lambda: settled(town) == {1: "interrupted"})
            assert again.work.me.instance != first.work.me.instance
            assert town.executed == [(101, 1), (101, 2)]

    run(story())


def test_a_fault_of_the_worker_is_no_silence(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that executes nothing any more leaves the fleet, and says why: others take over."""

    async def story() -> None:
        async def broken(self: JournalReceipts) -> int | None:
            if first.work._parts is not None and self is first.work._parts.receipts:
                raise ValueError("a fault of this program")
            return await due_in(self)

        async with town:
            first, second = await town.works(101), await town.works(102)
            due_in = JournalReceipts.due_in
            monkeypatch.setattr(JournalReceipts, "due_in", broken)
            with pytest.raises(ValueError, match="a fault"):
                await first.work.until_left()
            await second.leads()
            assert town.notes.said("work", "fault")
            town.notes.kept.clear()

    run(story())
