"""What runs while a member leads, driven as `Leadership` does: from threads, in any order that it may come in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tenure.adapters.fleet.succession.work import FleetWork
from tests.adapters.fleet.fleet_room import run, until


class Room:
    """The work, and what became of it."""

    def __init__(self, run: Any = None) -> None:
        self.heard: list[str] = []
        self.hold: asyncio.Event | None = None
        self.opens_raises: Exception | None = None
        self.closes_raises: Exception | None = None
        self.woken = 0
        self.work = FleetWork(self.opens, self.closes, run)
        self.work.attach(self.wake)
        self.work.bind(asyncio.get_running_loop())

    def wake(self) -> None:
        self.woken += 1

    async def opens(self, epoch: int) -> None:
        self.heard.append(f"opens {epoch}")
        if self.hold is not None:
            await self.hold.wait()
        if self.opens_raises is not None:
            raise self.opens_raises

    async def closes(self) -> None:
        self.heard.append("closes")
        if self.closes_raises is not None:
            raise self.closes_raises

    async def prepare(self, epoch: int) -> None:
        await asyncio.to_thread(self.work.prepare, epoch)

    async def ended(self) -> str:
        await until(lambda: self.work.ended() is not None)
        found = self.work.ended()
        assert found is not None
        return found.error


def told(story: Callable[[], Any]) -> None:
    run(story())


def test_a_tenure_and_the_next() -> None:
    async def story() -> None:
        ran: list[str] = []

        async def work(epoch: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ran.append(f"ran {epoch}")

        room = Room(work)
        assert room.work.ended() is not None
        for epoch in (1, 2):
            await room.prepare(epoch)
            room.work.start(epoch)
            await asyncio.sleep(0)
            assert room.work.ended() is None
            room.work.stop()
            assert await room.ended() == ""
        assert room.heard == ["opens 1", "closes", "opens 2", "closes"]
        assert ran == ["ran 1", "ran 2"]
        assert room.woken == 2

    told(story)


def test_the_stop_comes_before_the_preparation() -> None:
    """It was on its way when the tenure ended: nothing is opened."""

    async def story() -> None:
        room = Room()
        room.work.stop()
        with pytest.raises(RuntimeError, match="ended before"):
            await room.prepare(1)
        assert room.heard == []
        await room.prepare(2)
        assert room.work.ended() is None
        room.work.stop()
        assert await room.ended() == ""

    told(story)


def test_the_stop_comes_in_the_middle_of_it() -> None:
    async def story() -> None:
        room = Room()
        room.hold = asyncio.Event()
        preparing = asyncio.ensure_future(room.prepare(1))
        await until(lambda: room.heard)
        room.work.stop()
        with pytest.raises(RuntimeError, match="while it was prepared"):
            await preparing
        assert await room.ended() == ""
        assert room.heard == ["opens 1", "closes"]

    told(story)


@pytest.mark.parametrize("error", [ValueError("a"), TimeoutError("b")])
def test_opening_raises(error: Exception) -> None:
    async def story() -> None:
        room = Room()
        room.opens_raises = error
        with pytest.raises(type(error), match=str(error)):
            await room.prepare(1)
        room.work.stop()
        assert await room.ended() == ""
        assert room.heard == ["opens 1", "closes"]

    told(story)


def test_the_start_comes_after_the_stop() -> None:
    """Nothing is begun."""

    async def story() -> None:
        ran: list[int] = []

        async def work(epoch: int) -> None:
            ran.append(epoch)

        room = Room(work)
        await room.prepare(1)
        room.work.stop()
        room.work.start(1)
        assert await room.ended() == ""
        await asyncio.sleep(0.01)
        assert ran == []

    told(story)


@pytest.mark.parametrize("error", [None, RuntimeError("the work")])
def test_it_ends_by_itself(error: Exception | None) -> None:
    """What was opened is closed before that is said; the stop that follows does nothing more."""

    async def story() -> None:
        async def work(epoch: int) -> None:
            if error is not None:
                raise error

        room = Room(work)
        await room.prepare(1)
        room.work.start(1)
        assert await room.ended() == ("" if error is None else "RuntimeError: the work")
        assert room.heard == ["opens 1", "closes"]
        room.work.stop()
        await asyncio.sleep(0.01)
        assert room.heard == ["opens 1", "closes"]

    told(story)


def test_it_ignores_its_cancellation() -> None:
    """It is running as long as it runs."""

    async def story() -> None:
        release = asyncio.Event()

        async def work(epoch: int) -> None:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

        room = Room(work)
        await room.prepare(1)
        room.work.start(1)
        await asyncio.sleep(0.01)
        room.work.stop()
        await asyncio.sleep(0.05)
        assert room.work.ended() is None
        assert room.heard == ["opens 1"]
        release.set()
        assert await room.ended() == ""

    told(story)


def test_the_next_is_prepared_while_the_last_one_closes() -> None:
    async def story() -> None:
        release = asyncio.Event()

        async def work(epoch: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await release.wait()

        room = Room(work)
        await room.prepare(1)
        room.work.start(1)
        await asyncio.sleep(0.01)
        room.work.stop()
        preparing = asyncio.ensure_future(room.prepare(2))
        await asyncio.sleep(0.02)
        assert room.heard == ["opens 1"]
        release.set()
        await preparing
        assert room.heard == ["opens 1", "closes", "opens 2"]
        room.work.stop()
        assert await room.ended() == ""

    told(story)


def test_closing_raises() -> None:
    """It has ended, and why is said."""

    async def story() -> None:
        room = Room()
        room.closes_raises = OSError("no")
        await room.prepare(1)
        room.work.stop()
        assert await room.ended() == "OSError: no"

    told(story)


def test_the_loop_is_closed() -> None:
    """What ran on it is over, whoever asks."""
    loop = asyncio.new_event_loop()
    work = FleetWork(_nothing, _closes, None)
    work.bind(loop)
    thread = loop.run_in_executor(None, work.prepare, 1)
    loop.run_until_complete(thread)
    assert work.ended() is None
    loop.close()
    found = work.ended()
    assert found is not None
    assert found.error == "the event loop is closed"
    work.stop()
    assert work.state == "closed"
    with pytest.raises(RuntimeError, match="closed"):
        work.prepare(2)
    with pytest.raises(RuntimeError, match="closed"):
        work.start(2)


async def _nothing(epoch: int) -> None:
    return


async def _closes() -> None:
    return
