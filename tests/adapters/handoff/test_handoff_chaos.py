"""Items that move while everything goes wrong are executed once, each of them, and nothing is left open."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import attrs
import pytest

from tenure.adapters.journal.errors import JournalBusy, OutcomeUnknown
from tests.adapters.fleet.fleet_room import run
from tests.adapters.handoff.between import Fate
from tests.adapters.handoff.handoff_room import Fault
from tests.adapters.handoff.town import FAST, Citizen, Town

FATES: list[Fate] = ["pass", "pass", "lose", "drop", "twice"]
CALLS = ["offer", "accept", "cancel", "release", "look"]
ITEMS = 8


def disturb(chance: random.Random, citizen: Citizen) -> None:
    """Something goes wrong with the next few calls of one process."""
    name = chance.choice(CALLS)
    error = OutcomeUnknown("journal.db", "nobody knows") if chance.random() < 0.5 else JournalBusy("journal.db", "busy")
    fault = Fault(after=error) if isinstance(error, OutcomeUnknown) else Fault(before=error)
    citizen.journal.faults.setdefault(name, []).append(fault)
    if citizen.between is not None:
        for kind in ("leader.offerQueueHandoff",):
            citizen.between.fates.setdefault(kind, []).append(chance.choice(FATES))


@pytest.mark.parametrize("seed", range(6))
def test_each_item_is_executed_once(tmp_path: Path, seed: int) -> None:
    """Whatever is lost, doubled, unknown, refused, and whoever executes what he has at that moment."""
    chance = random.Random(seed)

    async def story() -> None:
        async with Town(tmp_path, attrs.evolve(FAST, handoff_timeout_ms=1000)) as town:
            lead = await town.leads()
            citizens = [lead, await town.follows(101), await town.follows(102)]
            receipts = []
            for number in range(ITEMS):
                home = chance.choice(citizens)
                receipts.append((await home.holds(number, home.thread)).receipt_id)
            executed: dict[str, int] = dict.fromkeys(receipts, 0)
            for _ in range(12):
                for citizen in citizens:
                    if chance.random() < 0.6:
                        disturb(chance, citizen)
                for receipt in chance.sample(receipts, 4):
                    wanted = chance.choice(citizens).party.instance
                    await lead.do(lambda j, receipt=receipt, wanted=wanted: j.ask_move(receipt, wanted))
                town.clock.advance(1000)
                passes = [asyncio.ensure_future(citizen.handoff.reconcile()) for citizen in citizens]
                if chance.random() < 0.5:
                    receipt = chance.choice(receipts)
                    for citizen in chance.sample(citizens, 3):
                        held = citizen.items.get(receipt)
                        if held is not None and not citizen.items.is_aside(receipt):
                            executed[receipt] += await citizen.executes(receipt)
                await asyncio.gather(*passes)
                for citizen in citizens:
                    await citizen.takes()
            for citizen in citizens:
                citizen.journal.faults.clear()
                if citizen.between is not None:
                    citizen.between.fates.clear()
                await citizen.handoff.reconcile()
            for citizen in citizens:
                await citizen.takes()
            for receipt in receipts:
                row = await lead.row(receipt)
                assert None is row.data.offer
                for citizen in citizens:
                    executed[receipt] += await citizen.executes(receipt)
            assert dict.fromkeys(receipts, 1) == executed

    run(story())
