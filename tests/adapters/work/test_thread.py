"""Something that one thread uses: opened, used and closed there, in order, whoever is cancelled."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.ports import Killed
from tenure.adapters.work.thread import OneThread


class Thing:
    """Notes who does what with it."""

    def __init__(self) -> None:
        self.threads = {threading.get_ident()}
        self.done: list[object] = []
        self.entered = threading.Event()
        self.gate = threading.Event()

    def note(self, what: object) -> int:
        self.threads.add(threading.get_ident())
        self.done.append(what)
        return len(self.done)

    def wait(self) -> None:
        self.entered.set()
        assert self.gate.wait(60)
        self.note("waited")

    def close(self) -> None:
        self.note("closed")


def test_one_thread_and_not_the_loops() -> None:
    async def story() -> None:
        made: list[Thing] = []
        desk = OneThread(lambda: made.append(Thing()) or made[-1], "tenure-test")
        await desk.open()
        thing = made[0]
        assert await asyncio.gather(*(desk.do(lambda t, n=n: t.note(n)) for n in range(5))) == [1, 2, 3, 4, 5]
        await desk.close()
        assert thing.done == [0, 1, 2, 3, 4, "closed"]
        assert len(thing.threads) == 1
        assert threading.get_ident() not in thing.threads
        with pytest.raises(TenureError, match="closed"):
            await desk.do(lambda t: t.note(9))

    asyncio.run(story())


def test_who_is_cancelled_does_not_break_off_what_has_begun() -> None:
    async def story() -> None:
        thing = Thing()
        desk = OneThread(lambda: thing, "tenure-test")
        await desk.open()
        begun = asyncio.ensure_future(desk.do(Thing.wait))
        queued = asyncio.ensure_future(desk.do(lambda t: t.note("queued")))
        assert await asyncio.to_thread(thing.entered.wait, 60)
        begun.cancel()
        queued.cancel()
        await asyncio.wait([begun, queued])
        thing.gate.set()
        await desk.close()
        assert thing.done == ["waited", "closed"]

    asyncio.run(story())


@pytest.mark.parametrize("error", [TenureError("x"), RuntimeError("its own"), Killed()])
def test_what_it_raises_is_raised(error: BaseException) -> None:
    async def story() -> None:
        thing = Thing()
        desk = OneThread(lambda: thing, "tenure-test")

        def fails(thing: Thing) -> None:
            raise error

        with pytest.raises(TenureError, match="closed"):
            await desk.do(fails)
        await desk.open()
        with pytest.raises(type(error)):
            await desk.do(fails)
        await desk.close()

    asyncio.run(story())


def test_what_cannot_be_opened_is_not_open() -> None:
    async def story() -> None:
        def opens() -> Thing:
            raise TenureError("another bot's")

        desk = OneThread(opens, "tenure-test")
        with pytest.raises(TenureError, match="another"):
            await desk.open()
        await desk.close()

    asyncio.run(story())
