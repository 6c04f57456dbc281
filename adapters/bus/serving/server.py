"""The serving side of the bus: every line is handled concurrently, answers go back as they come (bus.md a, FRAMING).

    server = BusServer(parse, handle)
    async with Endpoint(path, server):
        ...

It carries lines. What stands in one is `parse`'s affair, what becomes of it `handle`'s. It decides who gets
connections, memory and turns (`Limits`, `shares`), and refuses what cannot be a request with the answer of annex A.
"""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from tenure.adapters.awaiting import heard
from tenure.adapters.bus.peer import Peer
from tenure.adapters.bus.serving.connection import Connection
from tenure.adapters.bus.serving.counting import Counters, Statistics
from tenure.adapters.bus.serving.door import Door
from tenure.adapters.bus.serving.limits import Limits
from tenure.adapters.bus.serving.reading import Reader
from tenure.adapters.bus.serving.shares import Account, Room
from tenure.adapters.bus.serving.under_way import UnderWay

E = TypeVar("E")

INVALID: Final = json.dumps(
    {"kind": "bus.ack", "requestId": "invalid", "ok": False, "message": "not a request of this bus"},
    separators=(",", ":"),
).encode()
"""The answer to what is no envelope (bus.md annex A)."""


def _descriptors() -> int:
    """How many this process may have."""
    found = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if found == resource.RLIM_INFINITY else found


class BusServer(Generic[E]):
    """Serves what its listening sockets accept. All of it runs on one event loop; `statistics` may be read anywhere."""

    def __init__(
        self,
        parse: Callable[[bytes], E | None],
        handle: Callable[[E, Peer], Awaitable[bytes]],
        *,
        failed: Callable[[E, BaseException], bytes] | None = None,
        urgent: Callable[[E], bool] | None = None,
        limits: Limits | None = None,
        may_connect: Callable[[Peer], bool] = lambda peer: peer.ours,
        time: Callable[[], float] | None = None,
    ) -> None:
        """`parse` answers None, or raises, for what is no envelope; it is called in a thread for long lines.
        `handle` answers with a line, its newline optional. It is not cancelled when the asker goes away, since the
        asker may ask again for the same; `stop` cancels it. `failed` makes the answer to a request whose `handle`
        raised. `urgent` says what is answered also beyond the bounds on connections and requests, as heartbeats are: it
        must be short, and answered at once. `limits`: the usual ones, within this process's descriptors, where None;
        `time` (s): the loop's."""
        self.limits = limits if limits is not None else Limits().within(_descriptors())
        self.parse = parse
        self.handle = handle
        self.failed = failed
        self.urgent = urgent
        self.counters = Counters()
        self.room: Room[Connection[E]] = Room(self.limits.room_bytes)
        self.owing: set[Connection[E]] = set()
        """The connections on which answers wait to be read."""
        self.door: Door[Connection[E]] = Door(
            self.limits,
            self.counters,
            may_connect,
            self._welcome,
            self.now,
            spares=0 if urgent is None else self.limits.spares,
        )
        self._time = time
        self._turns: set[Account[Connection[E]]] = set()
        """Of whom lines were begun in this turn of the loop."""
        self._under_way: UnderWay[E] = UnderWay(self.limits, self.counters, self._ended)
        self._reader: Reader[E] = Reader(lambda line: self.parse(line), self.limits.structure_bytes)
        self._connecting: set[asyncio.Task[None]] = set()
        self._open = 0
        """Descriptors of connections."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sweeper: asyncio.TimerHandle | None = None
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
        self.door.open(listening)
        if self._sweeper is None:
            self._sweep_later()

    def leave(self, listening: socket.socket) -> None:
        """Accept no more from this socket; it stays open, and so does what it accepted."""
        self.door.leave(listening)

    async def stop(self) -> None:
        """End everything: no more is accepted, requests are cancelled, connections closed. Takes at most `stop_ms`,
        also where a handler does not heed its cancellation. It can accept again afterwards."""
        self._stopping = True
        self.door.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        requests = self._under_way.cancel()
        for connection in tuple(self.door.connections):
            connection.finish()
        self._reader.close()
        ends = [asyncio.ensure_future(self._empty.wait()), *requests]
        try:
            await asyncio.wait(ends, timeout=self.limits.stop_ms / 1000)
        finally:
            ends[0].cancel()

    def statistics(self) -> Statistics:
        """What it has now, and what it has seen."""
        return Statistics(
            processes=self.door.processes,
            connections=len(self.door.connections),
            requests=len(self._under_way),
            hanging=self._under_way.hanging,
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
        self._count_turn(connection.account, line)
        if len(line) > self.limits.loop_bytes:
            self._under_way.begin(connection, self._answer_long(connection, line), held, self.now())
        elif (envelope := self._reader.read(line)) is not None:
            self._under_way.begin(connection, self._answer(connection, envelope), held, self.now())
        else:
            self.room.give(connection.account, held)
            self.refuse(connection)

    def begin_urgent(self, connection: Connection[E], line: bytes) -> bool:
        """Answer this short line of the connection if it is urgent; whether it was."""
        self._count_turn(connection.account, line)
        envelope = self._reader.read(line)
        if envelope is None or self.urgent is None or not self.urgent(envelope):
            return False
        self.counters.lines += 1
        self._under_way.begin(connection, self._answer(connection, envelope), 0, self.now())
        return True

    def postpones(self, connection: Connection[E]) -> bool:
        """Whether the next line of this connection has to wait: its process has had its turn. It is told then."""
        account = connection.account
        if account.begun < self.limits.lines_of_turn:
            return False
        account.postponed.append(connection)
        return True

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
        """Nothing more comes of this connection."""
        self.owing.discard(connection)
        self.door.left(connection, connection.account)

    def closed(self) -> None:
        """The descriptor of a connection is closed."""
        self._open -= 1
        if not self._open:
            self._empty.set()

    def sweep(self) -> None:
        """Close what has taken too long. Called every `sweep_ms`."""
        now = self.now()
        self._under_way.leave_hanging(now)
        for connection in tuple(self.door.connections):
            connection.look(now)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _sweep_later(self) -> None:
        assert self._loop is not None
        self._sweeper = self._loop.call_later(self.limits.sweep_ms / 1000, self._sweep)

    def _sweep(self) -> None:
        self.sweep()
        if self.door.listens or self.door.connections:
            self._sweep_later()
        else:
            self._sweeper = None

    def _count_turn(self, account: Account[Connection[E]], line: bytes) -> None:
        account.begun += 1 + len(line) // self.limits.tiny_bytes
        if not self._turns:
            assert self._loop is not None
            self._loop.call_soon(self._next_turns)
        self._turns.add(account)

    def _next_turns(self) -> None:
        had, self._turns = self._turns, set()
        for account in had:
            account.begun = 0
            while account.postponed and account.begun < self.limits.lines_of_turn:
                account.postponed.popleft().take_turn()

    def _welcome(self, end: socket.socket, peer: Peer, account: Account[Connection[E]]) -> Connection[E]:
        assert self._loop is not None
        connection = Connection(self, peer, account)
        self._open += 1
        self._empty.clear()
        connecting = self._loop.create_task(self._connect(connection, end))
        self._connecting.add(connecting)
        heard(connecting)
        connecting.add_done_callback(self._connecting.discard)
        return connection

    async def _connect(self, connection: Connection[E], end: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, end)
        except OSError:
            end.close()
            connection.connection_lost(None)

    def _ended(self, connection: Connection[E], held: int) -> None:
        account = connection.account
        self.room.give(account, held)
        if account.requests == self.limits.requests_of_one - 1:
            for other in tuple(account.connections):
                other.advance()
        else:
            connection.advance()
        self.door.forget(account)

    async def _answer_long(self, connection: Connection[E], line: bytes) -> None:
        envelope = await self._reader.read_apart(line, connection.account.parsing)
        if envelope is None:
            self.refuse(connection)
        else:
            await self._answer(connection, envelope)

    async def _answer(self, connection: Connection[E], envelope: E) -> None:
        try:
            reply = await self.handle(envelope, connection.peer)
        except asyncio.CancelledError as error:
            if self._stopping:
                raise
            reply = self._failure(envelope, error)
        except Exception as error:
            reply = self._failure(envelope, error)
        connection.answer(reply)

    def _failure(self, envelope: E, error: BaseException) -> bytes:
        self.counters.failures += 1
        try:
            return INVALID if self.failed is None else self.failed(envelope, error)
        except Exception:  # an asker is answered, whatever fails
            return INVALID
