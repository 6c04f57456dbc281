"""The journal in a thread of its own: never on the loop, one call after the other, and none is broken off."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.journal.errors import ForeignIdentity
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.threaded import ThreadedJournal
from tests.adapters.journal.journal_room import BOT, EPOCH, OTHER_BOT, Room, incoming


def ids(journal: Journal) -> list[int]:
    """Of the updates that are there."""
    return [row.data.update for row in journal.listing().updates]


def test_calls_are_made_in_its_thread(room: Room) -> None:
    """In the order in which they were asked for."""

    async def run() -> None:
        async with await ThreadedJournal.open(lambda: room.started()) as journal:
            calls = [
                journal.call(lambda j, n=n: (j.append([incoming(n)], EPOCH, "i1"), threading.get_ident()))  # type: ignore[misc]
                for n in range(1, 6)
            ]
            threads = {thread for _, thread in await asyncio.gather(*calls)}
            assert 1 == len(threads - {threading.get_ident()})
            assert [1, 2, 3, 4, 5] == await journal.call(ids)

    asyncio.run(run())


def test_who_is_cancelled_leaves_and_the_transaction_goes_on(room: Room) -> None:
    """What became of it the journal tells whoever asks again."""

    async def run() -> None:
        inside, go_on = threading.Event(), threading.Event()

        def slow(journal: Journal) -> None:
            inside.set()
            go_on.wait()
            journal.append([incoming(1)], EPOCH, "i1")

        async with await ThreadedJournal.open(lambda: room.started()) as journal:
            running = asyncio.ensure_future(journal.call(slow))
            waiting = asyncio.ensure_future(journal.call(lambda j: j.append([incoming(2)], EPOCH, "i1")))
            await asyncio.to_thread(inside.wait)
            for task in (running, waiting):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            go_on.set()
            assert [1, 2] == await journal.call(ids)

    asyncio.run(run())


def test_closing_waits_for_what_is_under_way(room: Room) -> None:
    """Also if who closes it is cancelled; afterwards it is closed, and says so."""

    async def run() -> None:
        inside, go_on = threading.Event(), threading.Event()

        def slow(journal: Journal) -> None:
            inside.set()
            go_on.wait()
            journal.append([incoming(1)], EPOCH, "i1")

        journal = await ThreadedJournal.open(lambda: room.started())
        running = asyncio.ensure_future(journal.call(slow))
        await asyncio.to_thread(inside.wait)
        closing = asyncio.ensure_future(journal.close())
        await asyncio.sleep(0)
        with pytest.raises(TenureError, match="closed"):
            await journal.call(ids)
        closing.cancel()
        await asyncio.sleep(0)
        assert not closing.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await running
        await journal.close()

    asyncio.run(run())
    assert [1] == ids(room.open())


def test_what_it_raises_is_raised_where_it_was_asked_for(room: Room) -> None:
    """And what it cannot open leaves no thread."""
    room.started(1).close()

    async def run() -> None:
        with pytest.raises(ForeignIdentity):
            await ThreadedJournal.open(lambda: room.open(OTHER_BOT))
        async with await ThreadedJournal.open(lambda: room.open(BOT)) as journal:
            with pytest.raises(TenureError, match="ascend"):
                await journal.call(lambda j: j.append([incoming(5), incoming(4)], EPOCH, "i1"))
            assert [1] == await journal.call(ids)

    asyncio.run(run())
    for thread in threading.enumerate():
        if thread.name.startswith("tenure-journal"):
            thread.join(10)
            assert not thread.is_alive()


def test_cancelled_while_it_is_opened(room: Room) -> None:
    """Nothing stays open."""

    async def run() -> None:
        inside, go_on = threading.Event(), threading.Event()
        opened: list[Journal] = []

        def slow() -> Journal:
            inside.set()
            go_on.wait()
            opened.append(room.started())
            return opened[0]

        opening = asyncio.ensure_future(ThreadedJournal.open(slow))
        await asyncio.to_thread(inside.wait)
        opening.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert 1 == len(opened)

    asyncio.run(run())
    assert [] == ids(room.open())
