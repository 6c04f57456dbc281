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

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.lease import NotOwner
from tenure.adapters.fleet.ending import note_error
from tenure.adapters.ports import Ports, tell

T = TypeVar("T")

AGAIN_S: Final = 0.5
"""How long after a failure it is tried again to publish."""


class Commit(Protocol):
    """Runs an effect with the epoch inside the ownership transaction: `AsyncLeadership.commit_if_owned`."""

    def __call__(self, effect: Callable[[int], T], /) -> Awaitable[T]: ...


class Deposed(TenureError):
    """We do not lead any more, or under another epoch: nothing was done."""


NOBODY: Final = 0
"""No epoch: they begin at 1."""


@attrs.frozen
class _Turn:
    """What came of one transaction. `failed`: nobody can tell who owns."""

    epoch: int
    failed: TenureError | None = None
    unpublished: TenureError | None = None


class Book:
    """The transactions of one leading, under `epoch`."""

    def __init__(self, ports: Ports, commit: Commit, epoch: int, page: Callable[[], Callable[[int], object]]) -> None:
        """`page()`, called on the loop, answers what is to be published as a function that does it inside the
        transaction."""
        self._ports = ports
        self._commit = commit
        self._epoch = epoch
        self._page = page
        self._waiting: list[asyncio.Future[_Turn]] = []
        self._dirty = False
        self._turns: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None
        self._closed = False

    async def owned(self) -> int | None:
        """The epoch under which we own, in a transaction that begins now; None where we do not. Raises TenureError
        where nobody can tell."""
        turn = await self._turn()
        if turn.failed is not None:
            raise turn.failed
        return None if turn.epoch == NOBODY else turn.epoch

    async def published(self) -> None:
        """Publish everything as it is now. Raises `Deposed` where we do not own; another TenureError where it was not
        published, or nobody knows: then it is tried again until it is."""
        self._dirty = True
        turn = await self._turn()
        if turn.unpublished is not None:
            raise turn.unpublished
        if turn.epoch != self._epoch:
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
                waiting.set_result(_Turn(NOBODY))
        self._waiting.clear()
        if self._turns is not None:
            await asyncio.wait([self._turns])

    async def _turn(self) -> _Turn:
        if self._closed:
            return _Turn(NOBODY)
        waiting: asyncio.Future[_Turn] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self._begin()
        return await waiting

    def _begin(self) -> None:
        if self._turns is None and not self._closed:
            self._turns = asyncio.ensure_future(self._take_turns())
            self._turns.add_done_callback(self._over)

    def _over(self, turns: asyncio.Task[None]) -> None:
        self._turns = None
        note_error(self._ports, turns)
        if self._waiting or self._dirty:  # somebody came in between
            self._begin()

    async def _take_turns(self) -> None:
        while (self._waiting or self._dirty) and not self._closed:
            waiting, self._waiting = self._waiting, []
            dirty, self._dirty = self._dirty, False
            turn = await self._transaction(self._page() if dirty else None)
            for one in waiting:
                if not one.done():
                    one.set_result(turn)
            if dirty and turn.unpublished is not None:
                self._later = asyncio.get_running_loop().call_later(AGAIN_S, self.publish_soon)
                return

    async def _transaction(self, write: Callable[[int], object] | None) -> _Turn:
        try:
            return await self._commit(partial(self._inside, write))
        except NotOwner:
            return _Turn(NOBODY)
        except (TenureError, OSError) as error:
            failed = _told(error)
            tell(self._ports, "fleet", "transaction", error=str(failed))
            return _Turn(NOBODY, failed, failed)

    def _inside(self, write: Callable[[int], object] | None, epoch: int) -> _Turn:
        if write is None or epoch != self._epoch:
            return _Turn(epoch)
        try:
            write(epoch)
        except (TenureError, OSError) as error:
            failed = _told(error)
            tell(self._ports, "fleet", "publish", error=str(failed))
            return _Turn(epoch, unpublished=failed)
        return _Turn(epoch)


def _told(error: TenureError | OSError) -> TenureError:
    return error if isinstance(error, TenureError) else TenureError(str(error))
