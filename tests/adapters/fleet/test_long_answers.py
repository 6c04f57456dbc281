"""Answers that are too long to be kept for those who ask again: nothing is done twice for that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.fleet.leader.requests import Asked, Route
from tests.adapters.fleet.envelopes_of import asks
from tests.adapters.fleet.fleet_room import House, joined, run


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_call_whose_answer_was_dropped(house: House) -> None:
    """Who repeats it is told that it was done and must not be done again, under the code that forbids it."""

    async def story() -> None:
        done: list[str] = []

        async def serve(request: Asked, route: Route) -> Ack:
            done.append(request.request_id)
            return attrs.evolve(acks.done(request), result=Json("x" * 40_000))

        async with house:
            chief = await house.led(serve=serve)
            hand = await joined(house, chief)
            opened: Any = chief.leader._open
            opened.desk._ledger._entries.settled._bound = 100_000
            call = asks(str(hand.follower.generation))[2]
            calls = [attrs.evolve(call, request_id=f"q:{number}") for number in range(3)]
            first = [await chief.send(each) for each in calls]
            again = [await chief.send(each) for each in calls]
            assert [ack.ok for ack in first] == [True] * 3
            assert again[1:] == first[1:]
            dropped = again[0]
            assert (dropped.ok, dropped.request_id) == (False, "q:0")
            assert dropped.error is not None
            assert dropped.error.code == "commit-unknown"
            assert done == ["q:0", "q:1", "q:2"]
            ledger = chief.leader.statistics().ledger
            assert ledger is not None
            assert (ledger.dropped, ledger.kept_bytes < 100_000) == (1, True)

    run(story())
