"""What a process does with everybody's updates while it leads, and only then."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.work.leading import LeadersWork, _first_to_end
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.work import work_room
from tests.adapters.work.place_room import Town


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def test_where_one_part_ends_the_others_do() -> None:
    """A leader that only polls, or only forwards, gives its lease up."""

    async def story() -> None:
        ended = []

        async def goes_on(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(1)
                ended.append(name)

        async def ends(error: Exception | None) -> None:
            await asyncio.sleep(1)
            if error is not None:
                raise error

        await _first_to_end(goes_on("a"), ends(None), goes_on("b"))
        assert sorted(ended) == ["a", "b"]
        with pytest.raises(TenureError, match="why"):
            await _first_to_end(goes_on("c"), ends(TenureError("why")))
        assert ended[2:] == ["c"]

    work_room.run(story())


def test_who_does_not_own_the_lease_any_more_polls_nothing(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before it has been told."""

    async def story() -> None:
        async with town:
            first = await town.works(101)
            await town.opens()
            first.push(1)
            await town.has_executed(1)
            monkeypatch.setattr(first.work.member, "owns", lambda epoch: False)
            first.push(2)
            await until(lambda: first.work.statistics().member.depositions)
            asked = [cursor for cursor, _ in town.source.asked]
            assert max(asked) <= 2
            assert 2 not in town.updates

    run(story())


def test_who_registers_is_told_to_who_forwards(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has waited for it is sent at once."""

    async def story() -> None:
        told = []
        rerouted = LeadersWork.rerouted

        def tells(self: LeadersWork) -> None:
            told.append(self)
            rerouted(self)

        monkeypatch.setattr(LeadersWork, "rerouted", tells)
        async with town:
            first = await town.works(101)
            told.clear()
            await town.works(102)
            assert first.work._parts is not None
            assert first.work._parts.leading in told

    run(story())
