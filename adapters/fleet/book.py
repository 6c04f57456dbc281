"""Ownership transactions of a leader, shared by all who need one at the same time (locks.md 7.2; I3, I40).

Who asks whether we still lead, and who wants something published, needs a transaction that begins after it asked; one
is enough for all who wait. So sixty-four registrations at once cost the registry two transactions, not a hundred and
twenty-eight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol, TypeVar

from tenure.adapters.errors import TenureError
from tenure.adapters.files.lease import NotOwner
from tenure.adapters.ports import Ports, tell

T = TypeVar("T")

AGAIN_S: Final = 0.5
"""How long after a failure what nobody waits for is published again."""


class Commit(Protocol):
    """Runs an effect with the epoch inside the ownership transaction: `AsyncLeadership.commit_if_owned`."""

    def __call__(self, effect: Callable[[int], T], /) -> Awaitable[T]: ...


class Deposed(TenureError):
    """We do not lead any more, or under another epoch: nothing was done."""


class Book:
    """The transactions of one leading, under `epoch`."""

    def __init__(self, ports: Ports, commit: Commit, epoch: int, page: Callable[[], Callable[[int], object]]) -> None:
        """`page()`, called on the loop, answers what is to be published as a function that does it inside the
        transaction."""
        self._ports = ports
        self._commit = commit
        self._epoch = epoch
        self._page = page
        self._waiting: list[asyncio.Future[int | None]] = []
        self._dirty = False
        self._turns: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None
        self._closed = False

    async def owned(self) -> int | None:
        """The epoch under which we own, in a transaction that begins now; None where we do not. Raises TenureError
        where nobody can tell."""
        return await self._turn()

    async def published(self) -> None:
        """Publish everything as it is now. Raises `Deposed` where we do not own, and whatever the writing raises."""
        self._dirty = True
        if await self._turn() != self._epoch:
            raise Deposed("this process does not lead any more; nothing was published")

    def publish_soon(self) -> None:
        """Publish without waiting for it."""
        self._dirty = True
        self._begin()

    async def close(self) -> None:
        """Begin no more. A transaction under way is waited for."""
        self._closed = True
        if self._later is not None:
            self._later.cancel()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()
        if self._turns is not None:
            await asyncio.wait([self._turns])

    async def _turn(self) -> int | None:
        if self._closed:
            return None
        waiting: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self._begin()
        return await waiting

    def _begin(self) -> None:
        if self._turns is None and not self._closed:
            self._turns = asyncio.ensure_future(self._take_turns())
            self._turns.add_done_callback(self._over)

    def _over(self, turns: asyncio.Task[None]) -> None:
        self._turns = None
        if not turns.cancelled() and (error := turns.exception()) is not None:
            tell(self._ports, "fleet", "fault", error=f"{type(error).__name__}: {error}")
        if self._waiting or self._dirty:  # somebody came in between
            self._begin()

    async def _take_turns(self) -> None:
        while (self._waiting or self._dirty) and not self._closed:
            waiting, self._waiting = self._waiting, []
            dirty, self._dirty = self._dirty, False
            found: int | None = None
            failed: Exception | None = None
            try:
                write = self._page() if dirty else None
                found = await self._commit(partial(self._inside, write))
            except NotOwner:
                self._dirty = False
            except (TenureError, OSError) as error:
                failed = error
                tell(self._ports, "fleet", "publish", error=str(error))
            for one in waiting:
                if one.done():
                    continue
                if failed is None:
                    one.set_result(found)
                else:
                    one.set_exception(failed if isinstance(failed, TenureError) else TenureError(str(failed)))
            if failed is not None and dirty:
                self._retry()
                return

    def _inside(self, write: Callable[[int], object] | None, epoch: int) -> int:
        if write is not None and epoch == self._epoch:
            write(epoch)
        return epoch

    def _retry(self) -> None:
        self._later = asyncio.get_running_loop().call_later(AGAIN_S, self.publish_soon)
