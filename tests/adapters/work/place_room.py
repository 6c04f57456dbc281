"""Workplaces of one fleet on a real directory, with real sockets and one journal, all in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.fleet.roles import Following, Leading
from tenure.adapters.journal.journal import Journal
from tenure.adapters.work.items import Handler, Item
from tenure.adapters.work.source import update_id
from tenure.adapters.work.workplace import Workplace
from tests.adapters.fleet import member_room
from tests.adapters.fleet.fleet_room import until
from tests.adapters.fleet.member_room import Village
from tests.adapters.work.work_room import MemorySource, message

TIMES = attrs.evolve(member_room.TIMES, retry_first_ms=20, retry_last_ms=500, reconcile_ms=100)


class Town(Village):
    """A village whose people work. `executed`: who executed which update, in order."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, TIMES)
        self.source = MemorySource()
        self.executed: list[tuple[int, int]] = []
        self.places: list[Place] = []

    async def works(self, pid: int, handler: Handler | None = None, **more: Any) -> Place:
        """A workplace that has joined."""
        place = Place(self, pid, handler, **more)
        self.places.append(place)
        await place.work.__aenter__()
        await place.work.join()
        return place

    def updates_of(self, pid: int) -> list[int]:
        return [number for who, number in self.executed if who == pid]

    @property
    def updates(self) -> list[int]:
        """What was executed, by whomever."""
        return sorted(number for _, number in self.executed)

    async def has_executed(self, *numbers: int) -> None:
        await until(lambda: set(numbers) <= set(self.updates))

    async def opens(self) -> None:
        """Wait until the first start is over: what is pushed from now on is work."""
        await until(lambda: any(timeout > 0 for _, timeout in self.source.asked))

    def journal(self) -> Journal:
        return Journal.open(self.ports(1), self.directory)

    async def __aexit__(self, kind: object, *error: object) -> None:
        for place in reversed(self.places):
            await place.leaves()
        await super().__aexit__(kind, *error)
        if kind is None:
            assert not self.notes.said("work", "fault")


class Place:
    """One workplace."""

    def __init__(self, town: Town, pid: int, handler: Handler | None, **more: Any) -> None:
        self.town = town
        self.pid = pid
        self._handler = handler
        self._left = False
        # Each is the child of a shell of its own: its key is the same when it comes back.
        more.setdefault("source", town.source)
        more.setdefault("process", ProcessState())
        self.work = Workplace(
            town.directory,
            handler=self._handle,
            ports=town.ports(pid),
            timings=town.times,
            **more,
        )

    async def _handle(self, item: Item) -> None:
        for update in item.updates:
            number = update_id(update)
            assert number is not None
            self.town.executed.append((self.pid, number))
        if self._handler is not None:
            await self._handler(item)

    @property
    def thread(self) -> int:
        """The number of its thread."""
        member = self.work.member
        role = self.work.role
        found = member.leader.binding if isinstance(role, Leading) else member.follower.binding
        assert isinstance(role, Leading | Following), role
        assert found is not None
        return int(str(found.target).partition("/")[2])

    def push(self, *numbers: int) -> None:
        """Updates in its thread."""
        self.town.source.put(*(message(number, thread=self.thread, chat=0) for number in numbers))

    async def leaves(self) -> None:
        if not self._left:
            self._left = True
            await self.work.__aexit__(None, None, None)

    def dies(self) -> None:
        """To the others it is dead."""
        self.town.processes.kill(self.pid)

    async def follows(self, leader: Place) -> None:
        await until(lambda: isinstance(self.work.role, Following) and self.work.role.pid == leader.pid)

    async def leads(self) -> None:
        await until(lambda: isinstance(self.work.role, Leading))


def settled(town: Town) -> dict[int, str]:
    """Every receipt's phase by update, as the journal has it."""
    with town.journal() as journal:
        listing = journal.listing()
        return {row.first_update: row.phase for row in listing.receipts}


def answered(town: Town, receipt: str) -> bool:
    """Whether what a person asked for has been answered."""
    with town.journal() as journal:
        move = journal.move_of(receipt)
        return move is not None and move.outcome is not None
