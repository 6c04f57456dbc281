"""What each process on the other end has of a server: connections, requests, room for long lines (`Limits`).

Room is granted in the order in which it was asked for, except that whoever has its share waits for itself alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import attrs

C = TypeVar("C")
"""A connection; anything with an identity."""


@attrs.define(eq=False)
class Account(Generic[C]):
    """One process."""

    pid: int
    connections: set[C] = attrs.field(factory=set)
    spares: set[C] = attrs.field(factory=set)
    """Those beyond its bound."""
    requests: int = 0
    """Requests of it that are being answered, also on connections that it closed meanwhile; not those that hang."""
    hung: int = 0
    """Requests of it that are being answered for too long."""
    room: int = 0
    """Bytes."""
    begun: int = 0
    """Lines of it that were begun in this turn of the loop; a long one counts more than once."""
    postponed: deque[C] = attrs.field(factory=deque)
    """Its connections that wait for the next turn."""
    parsing: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    """Held while a line of it is parsed in the thread."""

    @property
    def idle(self) -> bool:
        """Whether nothing of it is left, and it can be forgotten."""
        return not self.connections and not self.spares and not self.requests and not self.hung and not self.room


@attrs.frozen
class _Wish(Generic[C]):
    connection: C
    account: Account[C]
    size: int
    granted: Callable[[], None]


class Room(Generic[C]):
    """A number of bytes that all share. Each connection has at most one wish waiting."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.used = 0
        self._waiting: deque[_Wish[C]] = deque()

    @property
    def waiting(self) -> int:
        """How many wishes wait."""
        return len(self._waiting)

    def ask(self, connection: C, account: Account[C], size: int, granted: Callable[[], None]) -> bool:
        """Whether `size` bytes, at most half of the total, belong to `account` now. If not, `granted` is called when
        they do; it only takes note, since others' affairs are under way."""
        assert size <= self.total // 2, "a share that is never free"
        wish = _Wish(connection, account, size, granted)
        if self._fits(wish) and not any(self._has_share(earlier) for earlier in self._waiting):
            self._charge(wish)
            return True
        self._waiting.append(wish)
        return False

    def give(self, account: Account[C], size: int) -> None:
        """So many bytes are free again."""
        if size:
            self.used -= size
            account.room -= size
            self._grant()

    def forget(self, connection: C) -> None:
        """This connection does not wait any more."""
        kept = [wish for wish in self._waiting if wish.connection is not connection]
        if len(kept) < len(self._waiting):
            self._waiting = deque(kept)
            self._grant()

    def _has_share(self, wish: _Wish[C]) -> bool:
        return wish.account.room + wish.size <= self.total // 2

    def _fits(self, wish: _Wish[C]) -> bool:
        return self._has_share(wish) and self.used + wish.size <= self.total

    def _charge(self, wish: _Wish[C]) -> None:
        self.used += wish.size
        wish.account.room += wish.size

    def _grant(self) -> None:
        for wish in tuple(self._waiting):
            if self._fits(wish):
                self._waiting.remove(wish)
                self._charge(wish)
                wish.granted()
            elif self._has_share(wish):
                return  # it waits for everybody, and nobody passes it
