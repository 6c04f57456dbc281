"""Benchmarks of a handoff: from the moment that an item is set aside until its donor has dropped it, there and back.

A leader and two followers, each with a journal open for itself, real sockets between them, all in this process. Beside
it what a handoff cannot do without: two durable transactions, the donor's offer and the recipient's acceptance, as bare
SQLite inserts with the same settings.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from journal import bare_insert

if TYPE_CHECKING:
    from tests.adapters.handoff.town import Citizen

Row = dict[str, Any]
ROUNDS: Final = 60


async def moved(here: Citizen, there: Citizen, receipt: str) -> float:
    """Move it by hand; how long its donor took, in microseconds."""
    await here.do(lambda journal: journal.ask_move(receipt, there.party.instance))
    mover = here.handoff._mover
    assert mover is not None
    donor, times = mover._donor, []
    give = donor.give

    async def timed(*what: Any) -> Any:
        started = time.perf_counter()
        outcome = await give(*what)
        times.append((time.perf_counter() - started) * 1e6)
        return outcome

    donor.give = timed  # type: ignore[method-assign]
    try:
        await here.handoff.reconcile()
    finally:
        donor.give = give  # type: ignore[method-assign]
    assert receipt in there.items, times
    return times[0]


async def rounds(room: Path) -> dict[str, float]:
    """The medians of both ways, and of two bare inserts."""
    from tests.adapters.handoff.town import Town

    insert = bare_insert(str(room))
    found: dict[str, list[float]] = {"leader to follower": [], "follower to follower": [], "two bare inserts": []}
    async with Town(room / "agent") as town:
        lead = await town.leads()
        one, two = await town.follows(101, directly=True), await town.follows(102, directly=True)
        receipt = (await lead.holds(1, lead.thread)).receipt_id
        for _ in range(ROUNDS):
            found["leader to follower"].append(await moved(lead, one, receipt))
            found["follower to follower"].append(await moved(one, two, receipt))
            started = time.perf_counter()
            insert()
            insert()
            found["two bare inserts"].append((time.perf_counter() - started) * 1e6)
            await moved(two, lead, receipt)
    return {name: statistics.median(times) for name, times in found.items()}


def bench_handoff(place: Path | None) -> list[Row]:
    """One row: the ratios are to two bare durable inserts."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    with tempfile.TemporaryDirectory(dir=place) as room:
        (Path(room) / "agent").mkdir()
        found = asyncio.run(rounds(Path(room)))
    bare = found["two bare inserts"]
    return [
        {
            "what": "a queued item moves to another instance: offered, accepted, acknowledged, dropped",
            "leader to follower us": found["leader to follower"],
            "follower to follower us": found["follower to follower"],
            "two bare inserts us": bare,
            "ratio directly": found["leader to follower"] / bare,
            "ratio through the leader": found["follower to follower"] / bare,
        }
    ]
