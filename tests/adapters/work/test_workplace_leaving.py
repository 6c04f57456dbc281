"""Who leaves, in order or not, leaves its work to others; who is late takes nothing back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenure.adapters.fleet.roles import Left
from tenure.adapters.journal.errors import JournalFull
from tenure.adapters.journal.journal import Journal
from tenure.adapters.work.items import Item
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.work.place_room import Place, Town, settled


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def serves(town: Town, place: Place) -> list[str]:
    """The bindings that it serves now."""
    with town.journal() as journal:
        return [row.binding for row in journal.servers() if row.left_at is None and row.party == place.work.me]


def test_what_was_left_in_order_is_the_leaders_though_that_process_lives(town: Town) -> None:
    async def story() -> None:
        async def hangs(item: Item) -> None:
            await asyncio.Event().wait()

        async with town:
            await town.works(101)
            await town.opens()
            second = await town.works(102, hangs)
            second.push(1, 2, 3)
            await town.has_executed(1)
            await until(lambda: len(second.work.items) == 2)
            assert serves(town, second)
            await second.leaves()
            assert serves(town, second) == []
            await town.has_executed(2, 3)
            assert town.executed == [(102, 1), (101, 2), (101, 3)]
            await until(lambda: settled(town) == {1: "interrupted"})

    run(story())


def test_who_leaves_begins_nothing_new_and_ends_what_it_has_begun(town: Town) -> None:
    async def story() -> None:
        gate = asyncio.Event()

        async def waits(item: Item) -> None:
            await gate.wait()

        async with town:
            await town.works(101)
            await town.opens()
            second = await town.works(102, waits)
            second.push(1, 2)
            await town.has_executed(1)
            await until(lambda: len(second.work.items) == 1)
            thread = second.thread
            await second.work.leave()
            await town.has_executed(2)
            gate.set()
            await until(lambda: settled(town) == {})
            assert town.executed == [(102, 1), (101, 2)]
            assert serves(town, second) == []
            again = await town.works(103)
            again.push(3)
            await town.has_executed(3)
            assert town.updates_of(102) == [1]
            assert thread

    run(story())


def test_an_ex_leader_that_is_late_takes_nothing_back_from_its_successor(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It led, and could not write down that the leader's binding is its own; now it can, and another one leads."""

    async def story() -> None:
        full = True
        serve = Journal.serve_leading

        def serve_leading(self: Journal, binding: str, by: object, *said: object) -> object:
            if full and by == first.work.me:
                raise JournalFull(self.path, "the disk is full")
            return serve(self, binding, by, *said)  # type: ignore[arg-type]

        async with town:
            first = Place(town, 101, None)
            monkeypatch.setattr(Journal, "serve_leading", serve_leading)
            town.places.append(first)
            await first.work.__aenter__()
            await first.work.join()
            await town.opens()
            await until(lambda: "disk is full" in first.work.trouble)
            assert first.work._parts is not None
            receipts = first.work._parts.receipts
            late = tuple(receipts.serving.untold)
            second = await town.works(102)
            await first.work.member.leave()
            assert isinstance(first.work.role, Left)
            await second.leads()
            second.push(1)
            await town.has_executed(1)
            assert receipts.serving.untold == []
            full = False
            receipts.serving.untold.extend(late)  # as one that was on its way
            await receipts.serving.tell()
            town.source.push(2)
            await town.has_executed(2)
            assert town.executed == [(102, 1), (102, 2)]

    run(story())


class Own(BaseException):
    """Of whoever wrote the handler."""


def test_a_handler_that_ends_the_program_leaves_the_rest_to_others(town: Town) -> None:
    """Also where the process lives on: what it had begun is shown to a person, what it had taken goes on."""

    async def story() -> None:
        gate = asyncio.Event()

        async def ends(item: Item) -> None:
            await gate.wait()
            raise Own("the end")

        async with town:
            await town.works(101)
            await town.opens()
            second = await town.works(102, ends)
            second.push(1, 2, 3)
            await town.has_executed(1)
            await until(lambda: len(second.work.items) == 2)
            gate.set()
            with pytest.raises(Own, match="the end"):
                await second.work.until_left()
            await town.has_executed(2, 3)
            assert town.executed == [(102, 1), (101, 2), (101, 3)]
            await until(lambda: settled(town) == {1: "interrupted"})
            assert town.notes.said("work", "fault")
            town.notes.kept.clear()
            await second.leaves()

    run(story())
