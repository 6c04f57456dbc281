"""Who comes in: accepting connections for a bus server, within its bounds (`Limits`, `shares`).

Whoever is over a bound is refused at once, by closing: its client reads the end of the stream instead of waiting. Where
all places are taken, the process that has most connections gives one up for a process that has fewer; where all have as
many, one that asks nothing gives up its own.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, Generic, Protocol, TypeVar

from tenure.adapters.bus.peer import Peer, peer_of
from tenure.adapters.bus.serving.counting import Counters
from tenure.adapters.bus.serving.limits import Limits
from tenure.adapters.bus.serving.shares import Account

_ACCEPTS_PER_TURN: Final = 64
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_REST_S: Final = 0.1


class Guest(Protocol):
    """What the door knows of a connection."""

    requests: int
    active_at: float
    since: float
    spare: bool
    """It is beyond the bounds, and may ask what is urgent."""

    def abort(self) -> None:
        """Close it at once; its place is free when this returns."""


C = TypeVar("C", bound=Guest)


class Door(Generic[C]):
    """Listening sockets, and the connections that came in by them."""

    def __init__(
        self,
        limits: Limits,
        counters: Counters,
        may_connect: Callable[[Peer], bool],
        welcome: Callable[[socket.socket, Peer, Account[C]], C],
        now: Callable[[], float],
        *,
        spares: int,
    ) -> None:
        """`welcome` makes a connection of an accepted socket, which is its own from then on. `now` is in seconds.
        `spares`: how many there may be beyond the bounds."""
        self.connections: set[C] = set()
        """All of them."""
        self._spares: dict[C, Account[C]] = {}
        """Those beyond the bounds, the oldest first."""
        self._most_spares = spares
        self._limits = limits
        self._counters = counters
        self._may_connect = may_connect
        self._welcome = welcome
        self._now = now
        self._accounts: dict[int, Account[C]] = {}
        self._listening: set[socket.socket] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._spare = -1

    @property
    def listens(self) -> bool:
        """Whether anything is accepted."""
        return bool(self._listening)

    @property
    def processes(self) -> int:
        """How many processes have something here."""
        return len(self._accounts)

    def open(self, listening: socket.socket) -> None:
        """Accept from this socket. Call it on the loop."""
        self._loop = asyncio.get_running_loop()
        self._listening.add(listening)
        self._loop.add_reader(listening, self._accept, listening)
        if self._spare < 0:
            self._spare = _spare()

    def leave(self, listening: socket.socket) -> None:
        """Accept no more from this socket."""
        if listening in self._listening:
            self._listening.discard(listening)
            assert self._loop is not None
            self._loop.remove_reader(listening)

    def close(self) -> None:
        """Accept no more."""
        for listening in tuple(self._listening):
            self.leave(listening)
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1

    def left(self, connection: C, account: Account[C]) -> None:
        """The place of this connection is free."""
        self.connections.discard(connection)
        account.connections.discard(connection)
        account.spares.discard(connection)
        self._spares.pop(connection, None)
        self.forget(account)

    def forget(self, account: Account[C]) -> None:
        """Keep no account of a process of which nothing is left."""
        if account.idle:
            self._accounts.pop(account.pid, None)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                end, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED or not self._refuse_exhausted(listening):
                    self._rest(listening)
                    return
            else:
                self._admit(end)

    def _refuse_exhausted(self, listening: socket.socket) -> bool:
        """No descriptor is left: give up the spare one, so that whoever waits is refused instead of waiting."""
        if self._spare >= 0:
            os.close(self._spare)
        with suppress(OSError):
            listening.accept()[0].close()
            self._counters.exhausted += 1
        self._spare = _spare()
        return self._spare >= 0

    def _rest(self, listening: socket.socket) -> None:
        """Accept again in a moment: a socket that cannot be accepted from stays readable, and would take every turn."""
        assert self._loop is not None
        self._loop.remove_reader(listening)
        self._loop.call_later(_REST_S, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._listening:
            assert self._loop is not None
            self._loop.add_reader(listening, self._accept, listening)

    def _admit(self, end: socket.socket) -> None:
        end.setblocking(False)
        try:
            peer = peer_of(end)
        except OSError:
            end.close()
            return
        if not self._may_connect(peer):
            self._counters.foreign += 1
            end.close()
            return
        account = self._accounts.get(peer.pid) or Account(peer.pid)
        regular = len(account.connections) < self._limits.connections_of_one and self._place_for(account)
        if not regular and not self._spare_for(account):
            self._counters.refused += 1
            end.close()
            return
        self._counters.accepted += 1
        self._accounts[peer.pid] = account
        connection = self._welcome(end, peer, account)
        connection.spare = not regular
        self.connections.add(connection)
        if regular:
            account.connections.add(connection)
        else:
            account.spares.add(connection)
            self._spares[connection] = account

    def _spare_for(self, account: Account[C]) -> bool:
        """Whether there is a spare place: where all are taken, the one who has most gives the oldest up that has asked
        nothing yet."""
        if len(account.spares) >= self._limits.spares_of_one:
            silent = [each for each in account.spares if not each.requests]
        elif len(self._spares) >= self._most_spares:
            silent = [each for each in self._spares if not each.requests]
        else:
            return True
        if not silent:
            return False
        min(silent, key=lambda each: (-len(self._spares[each].spares), each.since)).abort()
        return True

    def _place_for(self, account: Account[C]) -> bool:
        if len(self.connections) - len(self._spares) < self._limits.connections:
            return True
        greedy = max(self._accounts.values(), key=lambda each: len(each.connections))
        victim = _silent_longest(greedy.connections)
        if len(account.connections) + 1 >= len(greedy.connections):
            victim = _silent_longest(self.connections - self._spares.keys())
            if victim.requests or (self._now() - victim.active_at) * 1000 < self._limits.silent_ms:
                return False
        self._counters.displaced += 1
        victim.abort()
        return True


def _silent_longest(connections: Iterable[C]) -> C:
    return min(connections, key=lambda each: (each.requests > 0, each.active_at))


def _spare() -> int:
    """A descriptor to give up when there is no other."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
