"""A recording of processes at work by the real drivers: what is polled, brought, kept, moved, executed, interrupted."""

from __future__ import annotations

import asyncio
import copy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs

from tenure.adapters.ports import Ports
from tenure.adapters.trace.lines import Event
from tenure.adapters.work.items import Item
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.trace.fleet_recorded import Recorder
from tests.adapters.work.place_room import Place, Town, settled

FIRST, SECOND, THIRD = 101, 102, 103
MODULES = ("DurableAdmission", "QueueHandoff")


class RecordedTown(Town):
    """A town in which all record."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.recorder = Recorder()

    def ports(self, pid: int) -> Ports:
        return attrs.evolve(super().ports(pid), recorder=self.recorder)

    def receipt(self, update: int) -> str:
        """The receipt of an update."""
        with self.journal() as journal:
            (row,) = journal.item(str(update)).receipts
            return row.receipt_id


def work() -> list[Event]:
    """The events of both modules, to be doctored.

    Updates 1, 2 and 4 are the second's: 1 fails once and is executed, 2 moves to the third, the second dies in 4, and a
    person wants that again, which the leader executes. 3 is the leader's own, which leaves in favour of the third; 5 is
    the third's.
    """
    return [copy.copy(event) for event in _recorded()[0]]


def journal_of_work() -> bytes:
    """The database of that story, as a file."""
    return _recorded()[1]


@cache
def _recorded() -> tuple[tuple[Event, ...], bytes]:
    found: list[Event] = []
    data = b""

    async def story() -> None:
        nonlocal data
        gate = asyncio.Event()
        tries: list[int] = []

        async def second_does(item: Item) -> None:
            number = item.updates[0].value["update_id"]  # type: ignore[index, call-overload]
            if number == 4:
                await asyncio.Event().wait()
            await gate.wait()
            tries.append(number)
            if tries == [1]:
                raise RuntimeError("in vain")

        with TemporaryDirectory(prefix="tenure-") as root:
            town = RecordedTown(Path(root))
            async with town:
                first = await town.works(FIRST)
                second, third = await town.works(SECOND, second_does), await town.works(THIRD)
                await town.opens()
                second.push(1, 2)
                await until(lambda: settled(town) == {1: "started", 2: "queued"})
                with town.journal() as journal:
                    assert journal.ask_move(town.receipt(2), third.work.me.instance)
                await town.has_executed(2)
                first.push(3)
                await town.has_executed(3)
                gate.set()
                await until(lambda: settled(town) == {})
                second.push(4)
                await until(lambda: settled(town) == {4: "started"})
                second.dies()
                await until(lambda: settled(town) == {4: "interrupted"})
                await second.leaves()  # to others it is dead, and here nothing of it goes on
                with town.journal() as journal:
                    journal.retry(town.receipt(4), "ann")
                await until(lambda: settled(town) == {})
                await _leaves(first, third)
                third.push(5)
                await town.has_executed(5)
                await until(lambda: settled(town) == {})
                with town.journal() as journal:
                    journal.backup(f"{root}/copy.db")
                data = Path(root, "copy.db").read_bytes()
            found.extend(event for event in town.recorder.events if event.module in MODULES)

    run(story())
    return tuple(found), data


async def _leaves(first: Place, third: Place) -> None:
    await first.leaves()
    await third.leads()
