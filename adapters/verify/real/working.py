"""A workplace of a run: it joins, leads or follows, gets updates in its thread, executes them, has some of what is
queued here moved elsewhere, leaves and comes again, until it is killed. Some executions fail.

Here the journal is recorded and nothing else: what members do beside, the runs of fleets explain.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.roles import Following, Leading
from tenure.adapters.journal.journal import journal_path
from tenure.adapters.ports import Recorder
from tenure.adapters.testing.updates import Updates, confirmed
from tenure.adapters.trace.journal_rows import decided, vanished
from tenure.adapters.trace.lines import Event
from tenure.adapters.verify.real.worker import Faults, Room, ports_of
from tenure.adapters.work.items import Item
from tenure.adapters.work.workplace import Workplace
from tenure.machines.lease import DEFAULT_KEY

WORK: Final = ("DurableAdmission", "QueueHandoff")
"""The modules whose events are recorded."""
BUSY_S: Final = 0.04
"""How long an execution takes at most, and how often something comes at least."""
LONG: Final = 0.2
"""How many of them take `LONG_S` instead: what waits behind them may move."""
LONG_S: Final = 0.3
AT_ONCE: Final = 4
"""So many updates come together at most: then some of them wait, and may move."""
FAILS: Final = 0.05


class Only:
    """A recorder of some modules."""

    def __init__(self, recorder: Recorder, modules: Sequence[str]) -> None:
        self._recorder, self._modules = recorder, frozenset(modules)
        self.order = recorder.order

    def event(
        self,
        module: str,
        action: str,
        node: str,
        number: int,
        args: Mapping[str, object] | None = None,
        observed: Mapping[str, object] | None = None,
        tenure: object = None,
    ) -> None:
        """See `Recorder`."""
        if module in self._modules:
            self._recorder.event(module, action, node, number, args, observed, tenure)


def working(room: Room, faults: Faults, slot: int, seed: int, timings: Timings) -> None:
    """Live until killed."""
    asyncio.run(_lives(room, faults, slot, seed, timings))


async def _lives(room: Room, faults: Faults, slot: int, seed: int, timings: Timings) -> None:
    ports = ports_of(room, faults, slot, seed, timings)
    assert ports.recorder is not None
    ports = attrs.evolve(ports, recorder=Only(ports.recorder, WORK))
    chance, lease = random.Random(seed + 5), timings.stale_ms / 1000
    source = Updates(room.updates)

    async def handler(item: Item) -> None:
        await asyncio.sleep(LONG_S if chance.random() < LONG else chance.uniform(0, BUSY_S))
        if chance.random() < FAILS:
            raise RuntimeError("in vain")

    while True:
        directory = AgentDirectory(str(room.agent))
        cwd = str(room.agent)
        place = Workplace(directory, source=source, handler=handler, cwd=cwd, ports=ports, timings=timings)
        # Whoever is stopped inside the journal holds up all others: they come again.
        with suppress(TenureError):
            async with place:
                await place.join()
                await _goes_on(place, source, chance, lease)
        await asyncio.sleep(BUSY_S)


async def _goes_on(place: Workplace, source: Updates, chance: random.Random, lease: float) -> None:
    """For some leases, or until killed."""
    end = asyncio.get_running_loop().time() + lease * chance.expovariate(1 / 8)
    while asyncio.get_running_loop().time() < end:
        await asyncio.sleep(chance.uniform(0, 2 * BUSY_S))
        thread = _thread(place)
        if thread is not None:
            with suppress(TenureError):
                await source.push(*[_update(thread, chance) for _ in range(chance.randint(1, AT_ONCE))])
                await _has_moved(place, chance)


def _update(thread: int, chance: random.Random) -> dict[str, Any]:
    """A message in the thread; the queue gives it its number."""
    number = chance.randrange(1, 1 << 31)
    return {"message": {"message_id": number, "chat": {"id": 0}, "message_thread_id": thread, "text": "work"}}


def _thread(place: Workplace) -> int | None:
    member = place.member
    role = place.role
    if not isinstance(role, Leading | Following):
        return None
    bound = member.leader.binding if isinstance(role, Leading) else member.follower.binding
    number = "" if bound is None else str(bound.target).partition("/")[2]
    return int(number) if number.isdecimal() else None


async def _has_moved(place: Workplace, chance: random.Random) -> None:
    """A person wants the last of what waits here at somebody else's."""
    waiting, me = list(place.items), place.me.instance
    if not waiting:
        return
    servers = await place.journal.call(lambda j: j.servers())
    others = sorted({row.party.instance for row in servers if row.left_at is None} - {me})
    if others:
        to, last = chance.choice(others), waiting[-1].receipt_id
        await place.journal.call(lambda j: j.ask_move(last, to))


# -- afterwards -------------------------------------------------------------------------------------------------------


def journal_of(room: Room) -> str:
    """The journal of the run."""
    return journal_path(AgentDirectory(str(room.agent)), DEFAULT_KEY)


def wrong(room: Room, events: Sequence[Event]) -> str:
    """What is wrong with the journal beside its recording; empty if nothing is.

    What was recorded is in it; what it has and nobody recorded was done last by a process that was killed; and what the
    queue has forgotten, it has."""
    path = journal_of(room)
    gone = vanished(events, path)
    if gone:
        return f"{gone[0].place}: {gone[0]}: the journal has no such decision"
    last: defaultdict[str, int] = defaultdict(int)
    for event in events:
        last[event.process] = max(last[event.process], event.number)
    lost = decided(path, events)
    for event in lost:
        if event.number < last[event.process]:
            return f"decision {event.number}, {event}: nobody has recorded it, and its process has gone on"
    if len(lost) > len(events):
        return f"{len(lost)} decisions were not recorded, and {len(events)} were"
    return _unknown(path, confirmed(room.updates))


def _unknown(path: str, upto: int) -> str:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        known: set[Any] = {row[0] for row in database.execute("SELECT update_id FROM updates")}
    missing = [number for number in range(1, upto + 1) if number not in known]
    return f"update {missing[0]} was confirmed, and is not in the journal" if missing else ""
