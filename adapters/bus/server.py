"""The serving side of the bus: every line is handled concurrently, answers go back as they come (bus.md a, FRAMING).

    server = BusServer(parse, handle)
    async with Endpoint(path, server):
        ...

It carries lines. What stands in one is `parse`'s affair, what becomes of it `handle`'s. It decides who gets
connections, memory and turns (`Limits`, `shares`), and refuses what cannot be a request with the answer of annex A.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, Generic, TypeVar

import attrs

from tenure.adapters.bus.connection import Connection
from tenure.adapters.bus.limits import Limits
from tenure.adapters.bus.peer import Peer, peer_of
from tenure.adapters.bus.shares import Account, Room
from tenure.adapters.bus.structure import outside_strings
from tenure.adapters.errors import TenureError

E = TypeVar("E")

INVALID: Final = json.dumps(
    {"kind": "bus.ack", "requestId": "invalid", "ok": False, "message": "not a request of this bus"},
    separators=(",", ":"),
).encode()
"""The answer to what is no envelope (bus.md annex A)."""

_ACCEPTS_PER_TURN: Final = 64
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_RETRY_S: Final = 0.1


@attrs.frozen
class Statistics:
    """What a server has now, and what it has seen since it was made."""

    connections: int
    requests: int
    """Being answered."""
    room_used: int
    """Bytes of long lines."""
    accepted: int
    refused: int
    """Connections beyond a bound, closed at once."""
    foreign: int
    """Connections of other users, closed at once."""
    displaced: int
    """Connections closed for those of a process that has fewer."""
    exhausted: int
    """Connections closed because the process, or the system, has no descriptor left."""
    lines: int
    invalid: int
    """Lines that are no envelope."""
    too_long: int
    answers: int
    unread: int
    """Answers whose asker was gone."""
    failures: int
    """Requests whose handler raised."""
    idle: int
    """Connections closed after `Limits.idle_ms`."""
    stalled: int
    """Connections closed because a line took longer than `Limits.line_ms`."""
    cut: int
    """Connections cut because answers were not read."""


class Counters:
    """The counts of `Statistics`, while they change."""

    def __init__(self) -> None:
        self.accepted = self.refused = self.foreign = self.displaced = self.exhausted = 0
        self.lines = self.invalid = self.too_long = 0
        self.answers = self.unread = self.failures = 0
        self.idle = self.stalled = self.cut = 0


class BusServer(Generic[E]):
    """Serves what its listening sockets accept. All of it runs on one event loop; `statistics` may be read anywhere."""

    def __init__(
        self,
        parse: Callable[[bytes], E | None],
        handle: Callable[[E, Peer], Awaitable[bytes]],
        *,
        failed: Callable[[E, BaseException], bytes] | None = None,
        limits: Limits | None = None,
        may_connect: Callable[[Peer], bool] = lambda peer: peer.ours,
        time: Callable[[], float] | None = None,
    ) -> None:
        """`parse` answers None, or raises ValueError, for what is no envelope; it is called in a thread for long lines.
        `handle` answers with a line, its newline optional. It is not cancelled when the asker goes away, since the
        asker may ask again for the same; `stop` cancels it. `failed` makes the answer to a request whose `handle` raised.
        `time` (s) is the loop's where None."""
        self.limits = limits if limits is not None else Limits()
        self.parse = parse
        self.handle = handle
        self.failed = failed
        self.counters = Counters()
        self.room: Room[Connection[E]] = Room(self.limits.room_bytes)
        self.owing: set[Connection[E]] = set()
        """The connections on which answers wait to be read."""
        self._may_connect = may_connect
        self._time = time
        self._accounts: dict[int, Account[Connection[E]]] = {}
        self._connections: set[Connection[E]] = set()
        self._requests: set[asyncio.Task[None]] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._open = 0
        """Descriptors of connections."""
        self._listening: set[socket.socket] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._parser: ThreadPoolExecutor | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._spare = -1
        self._stopping = False
        self._empty = asyncio.Event()
        self._empty.set()
        self.chunk = bytearray(self.limits.small_bytes)
        """Where everything is received, one connection at a time."""

    # -- listening ----------------------------------------------------------------------------------------------------

    def accept_from(self, listening: socket.socket) -> None:
        """Accept from this socket, which listens and does not block, until `leave` or `stop`. Call it on the loop."""
        self._loop = asyncio.get_running_loop()
        self._stopping = False
        self._listening.add(listening)
        self._loop.add_reader(listening, self._accept, listening)
        if self._spare < 0:
            self._spare = _spare()
        if self._sweeper is None:
            self._sweep_later()

    def leave(self, listening: socket.socket) -> None:
        """Accept no more from this socket; it stays open, and so does what it accepted."""
        if listening in self._listening:
            self._listening.discard(listening)
            assert self._loop is not None
            self._loop.remove_reader(listening)

    async def stop(self) -> None:
        """End everything: no more is accepted, requests are cancelled, connections closed. Takes at most `stop_ms`,
        also where a handler does not heed its cancellation. It can accept again afterwards."""
        self._stopping = True
        for listening in tuple(self._listening):
            self.leave(listening)
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        requests = tuple(self._requests)
        for request in requests:
            request.cancel()
        for connection in tuple(self._connections):
            connection.finish()
        if self._parser is not None:
            self._parser.shutdown(wait=False, cancel_futures=True)
            self._parser = None
        ends = [asyncio.ensure_future(self._empty.wait()), *requests]
        try:
            await asyncio.wait(ends, timeout=self.limits.stop_ms / 1000)
        finally:
            ends[0].cancel()

    def statistics(self) -> Statistics:
        """What it has now, and what it has seen."""
        return Statistics(
            connections=len(self._connections),
            requests=len(self._requests),
            room_used=self.room.used,
            **vars(self.counters),
        )

    # -- for its connections ------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds, of a clock that only goes on."""
        if self._time is not None:
            return self._time()
        assert self._loop is not None
        return self._loop.time()

    def begin(self, connection: Connection[E], line: bytes, held: int) -> None:
        """Answer this line of the connection, for which it holds so many bytes of room."""
        self.counters.lines += 1
        if len(line) > self.limits.small_bytes:
            self._begin(connection, self._answer_long(connection, line), held)
        elif (envelope := self._parsed(line)) is not None:
            self._begin(connection, self._answer(connection, envelope), held)
        else:
            self.room.give(connection.account, held)
            self.refuse(connection)

    def refuse(self, connection: Connection[E]) -> None:
        """Answer that this was no envelope."""
        self.counters.invalid += 1
        connection.answer(INVALID)

    def owe(self, connection: Connection[E]) -> None:
        """An answer of this connection waits to be read."""
        self.owing.add(connection)
        while sum(each.owed for each in self.owing) > self.limits.owed_bytes:
            worst = max(self.owing, key=lambda each: each.owed)
            self.counters.cut += 1
            worst.abort()

    def lost(self, connection: Connection[E]) -> None:
        """This connection is closed, or will be in a moment; called as often as one likes."""
        if connection in self._connections:
            self._connections.discard(connection)
            self.owing.discard(connection)
            connection.account.connections.discard(connection)
            self.room.forget(connection)
            self._forget(connection.account)

    def closed(self) -> None:
        """The descriptor of a connection is closed."""
        self._open -= 1
        if not self._open:
            self._empty.set()

    def sweep(self) -> None:
        """Close what has taken too long. Called every `sweep_ms`."""
        now = self.now()
        for connection in tuple(self._connections):
            connection.look(now)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _sweep_later(self) -> None:
        assert self._loop is not None
        self._sweeper = self._loop.call_later(self.limits.sweep_ms / 1000, self._sweep)

    def _sweep(self) -> None:
        self._sweep_later()
        self.sweep()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            if listening not in self._listening:
                return
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
        if self._spare < 0:
            self._spare = _spare()
            return self._spare >= 0
        os.close(self._spare)
        try:
            with suppress(OSError):
                listening.accept()[0].close()
                self.counters.exhausted += 1
        finally:
            self._spare = _spare()
        return True

    def _rest(self, listening: socket.socket) -> None:
        """Accept again in a moment: a socket that cannot be accepted from stays readable, and would take every turn."""
        assert self._loop is not None
        self._loop.remove_reader(listening)
        self._loop.call_later(_RETRY_S, self._resume, listening)

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
            self.counters.foreign += 1
            end.close()
            return
        account = self._accounts.get(peer.pid) or Account(peer.pid)
        if len(account.connections) >= self.limits.connections_of_one or not self._place_for(account):
            self.counters.refused += 1
            end.close()
            return
        assert self._loop is not None
        self.counters.accepted += 1
        self._accounts[peer.pid] = account
        connection = Connection(self, peer, account)
        account.connections.add(connection)
        self._connections.add(connection)
        self._open += 1
        self._empty.clear()
        connecting = self._loop.create_task(self._connect(connection, end))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)

    def _place_for(self, account: Account[Connection[E]]) -> bool:
        """Whether one more is borne. Where all places are taken, who has most gives one up for who has fewer."""
        if len(self._connections) < self.limits.connections:
            return True
        greedy = max(self._accounts.values(), key=lambda each: len(each.connections))
        if len(account.connections) + 1 >= len(greedy.connections):
            return False
        self.counters.displaced += 1
        min(greedy.connections, key=lambda each: (each.requests > 0, each.active_at)).abort()
        return True

    async def _connect(self, connection: Connection[E], end: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, end)
        except OSError:
            end.close()
            self.lost(connection)
            self.closed()

    def _begin(self, connection: Connection[E], answer: Coroutine[None, None, None], held: int) -> None:
        assert self._loop is not None
        connection.requests += 1
        connection.account.requests += 1
        task = self._loop.create_task(answer)
        self._requests.add(task)
        # Not in a `finally` of the coroutine: one that is cancelled before its first turn never gets there.
        task.add_done_callback(partial(self._end, connection, held))

    def _end(self, connection: Connection[E], held: int, task: asyncio.Task[None]) -> None:
        self._requests.discard(task)
        account = connection.account
        connection.requests -= 1
        account.requests -= 1
        self.room.give(account, held)
        if account.requests == self.limits.requests_of_one - 1:
            for other in tuple(account.connections):
                other.advance()
        else:
            connection.advance()
        self._forget(account)

    async def _answer_long(self, connection: Connection[E], line: bytes) -> None:
        if self._parser is None:
            self._parser = ThreadPoolExecutor(1, thread_name_prefix="tenure-bus-parse")
        envelope = await asyncio.get_running_loop().run_in_executor(self._parser, self._parsed, line)
        if envelope is None:
            self.refuse(connection)
        else:
            await self._answer(connection, envelope)

    async def _answer(self, connection: Connection[E], envelope: E) -> None:
        try:
            reply = await self.handle(envelope, connection.peer)
        except (Exception, asyncio.CancelledError) as error:
            if self._stopping:
                raise
            self.counters.failures += 1
            reply = INVALID if self.failed is None else self.failed(envelope, error)
        connection.answer(reply)

    def _parsed(self, line: bytes) -> E | None:
        bound = self.limits.structure_bytes
        if len(line) > bound and outside_strings(line, bound) > bound:
            return None
        try:
            return self.parse(line)
        except (ValueError, RecursionError, TenureError):
            return None

    def _forget(self, account: Account[Connection[E]]) -> None:
        if account.idle:
            self._accounts.pop(account.pid, None)


def _spare() -> int:
    """A descriptor to give up when there is no other."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
