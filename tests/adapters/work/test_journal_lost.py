"""A process whose journal is another bot's by now, or is gone, says so and leaves: it keeps no lease that it can do
nothing with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.adapters.journal.errors import ForeignIdentity, JournalDamaged, JournalGone, JournalLost
from tenure.adapters.journal.identity import identity_of_token
from tenure.adapters.journal.journal import Journal, journal_path
from tenure.adapters.journal.sqlite import SqliteDatabases
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.work.place_room import Place, Town, settled
from tests.adapters.work.work_room import MemorySource


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def removed(town: Town) -> None:
    """With what is beside it."""
    for path in Path(town.directory.state).glob("journal.db*"):
        path.unlink()


def another_bots(town: Town) -> None:
    """As it is where both began at the same moment: nobody is written down yet who works with it."""
    path = journal_path(town.directory, "default")
    database = SqliteDatabases().open(path)
    database.begin()
    database.execute("DELETE FROM servers")
    database.commit()
    database.close()
    other = identity_of_token("8:other")
    Journal.open(town.ports(999), town.directory, bot=other).close()


def test_another_bot_does_not_come_in_beside_who_works(town: Town) -> None:
    """Though nothing waits in the journal: who has it goes on, and the other is told what to do."""

    async def story() -> None:
        async with town:
            first = await town.works(101)
            await town.opens()
            first.push(1)
            await town.has_executed(1)
            await until(lambda: settled(town) == {})
            source = MemorySource()
            source.bot = identity_of_token("8:other")
            stranger = Place(town, 102, None, source=source)
            with pytest.raises(ForeignIdentity, match=r"\(pid 101\) works with it.*another profile"):
                await stranger.work.__aenter__()
            first.push(2)
            await town.has_executed(1, 2)
            assert first.work.journal.lost is None

    run(story())


@pytest.mark.parametrize(
    ("harm", "kind", "again"), [(removed, JournalGone, JournalDamaged), (another_bots, ForeignIdentity, None)]
)
def test_who_has_lost_its_journal_leaves(
    town: Town, harm: Callable[[Town], None], kind: type[JournalLost], again: type[Exception] | None
) -> None:
    async def story() -> None:
        async with town:
            first = await town.works(101)
            await town.opens()
            harm(town)
            first.push(1)
            with pytest.raises(kind):
                await first.work.until_left()
            await until(lambda: first.work.member.epoch is None)
            assert town.executed == []
            if again is not None:
                with pytest.raises(again, match=r"journal\.made"):
                    await town.works(102)

    run(story())
