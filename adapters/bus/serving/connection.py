"""One connection of a bus server: from bytes to lines, from answers to bytes, and when it is over (bus.md a, FRAMING).

It reads no faster than it may: while its requests are at their bound, while answers wait to be read, or while a long
line has no room yet, nothing is read from it, and its sender waits in the kernel.

An over-long line is answered as no envelope, and the connection is over: who sends one does not speak this protocol,
and looking for its next line would mean to read from it for ever. But what it still sends is thrown away for a while
before the connection is closed: who is still sending when that happens sees a broken pipe instead of the answer.
"""

from __future__ import annotations

import asyncio
import select
import sys
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from tenure.adapters.bus.peer import Peer
from tenure.adapters.bus.serving.shares import Account

if TYPE_CHECKING:
    from tenure.adapters.bus.serving.server import BusServer

E = TypeVar("E")


class Connection(asyncio.BufferedProtocol, Generic[E]):
    """What a server knows of one connection; it is the protocol of its transport as well."""

    def __init__(self, server: BusServer[E], peer: Peer, account: Account[Connection[E]]) -> None:
        self.peer = peer
        self.account = account
        self.requests = 0
        """Being answered."""
        self.hung = 0
        """Those of them that are being answered for too long."""
        self.spare = False
        """It is beyond the bounds: what is urgent is answered, and nothing else."""
        self.since = server.now()
        self.active_at = self.since
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._scanned = 0
        """So many bytes of it hold no newline."""
        self._held = 0
        """Bytes of room for the line that is being received."""
        self._asked = False
        """Whether room was asked for, and is not granted yet."""
        self._postponed = False
        """Whether its lines wait for the next turn of its process."""
        self._passed_over = False
        """Its next line was looked at, and is not urgent."""
        self._reading = True
        self._half_closed = False
        self._line_at: float | None = None
        self._owes_at: float | None = None
        self._lingers_at: float | None = None
        self._over = False
        """Nothing more is read as lines, or answered."""

    # -- the transport's calls ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)  # `pause_writing` whenever anything waits to be read
        if self._over:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._server.chunk

    def buffer_updated(self, nbytes: int) -> None:
        if self._lingers_at is None and not self._over:
            self.active_at = self._server.now()
            self._received += memoryview(self._server.chunk)[:nbytes]
            self.advance()

    def eof_received(self) -> bool:
        """Who asks may close its half. Bytes without a newline are no line, and are nothing."""
        self._half_closed = True
        if self.requests and self._gone():
            self.abort()
        else:
            self.advance()
        return True

    def pause_writing(self) -> None:
        self._owes_at = self._server.now()

    def resume_writing(self) -> None:
        self._owes_at = None
        self._server.owing.discard(self)
        # Not now: the transport is in the midst of its write, and whoever closes it there ends it twice.
        asyncio.get_running_loop().call_soon(self.advance)

    def connection_lost(self, error: Exception | None) -> None:
        self._end()
        self._server.closed()

    # -- the server's calls -------------------------------------------------------------------------------------------

    @property
    def owed(self) -> int:
        """Bytes of answers that wait to be read."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def answer(self, line: bytes) -> None:
        """Write one line; where the asker is gone, nobody reads it."""
        if self._over or self._transport is None or self._transport.is_closing():
            self._server.counters.unread += 1
            return
        self.active_at = self._server.now()
        self._server.counters.answers += 1
        self._transport.write(line if line.endswith(b"\n") else line + b"\n")
        if self._owes_at is not None:
            self._server.owe(self)

    def advance(self) -> None:
        """Begin what may begin: the next lines, reading, the end."""
        if self._over or self._postponed or self._transport is None:
            return
        while self._lingers_at is None and (self._may_begin() or self._may_look()):
            stop = self._received.find(b"\n", self._scanned)
            if stop >= 0 and self._server.postpones(self):
                self._postponed = True
                break
            if not (self._take(stop) if self._may_begin() else self._take_urgent(stop)):
                break
            if self._over:
                return
        self._read_or_rest()

    def take_turn(self) -> None:
        """Its process has its next turn."""
        self._postponed = False
        self.advance()

    def look(self, now: float) -> None:
        """Be over if something takes too long."""
        limits, counters = self._server.limits, self._server.counters
        if _passed(self._lingers_at, limits.linger_ms, now):
            self.abort()
        elif _passed(self._owes_at, limits.write_ms, now):
            counters.cut += 1
            self.abort()
        elif _passed(self._line_at, limits.line_ms, now):
            counters.stalled += 1
            self._server.refuse(self)
            self.finish()
        elif self._half_closed and self._gone():
            self.abort()
        elif self.spare and not self.requests and _passed(self.since, limits.silent_ms, now):
            self.finish()
        elif not self.requests and self._lingers_at is None and _passed(self.active_at, limits.idle_ms, now):
            counters.idle += 1
            self.finish()

    def finish(self) -> None:
        """Close it. What is answered already is still written, unless its reader has fallen behind."""
        self._end()
        if self._transport is not None:
            if self._owes_at is None:
                self._transport.close()
            else:
                self._transport.abort()

    def abort(self) -> None:
        """Close it at once."""
        self._end()
        if self._transport is not None:
            self._transport.abort()

    # -- inside -------------------------------------------------------------------------------------------------------

    def _may_begin(self) -> bool:
        limits = self._server.limits
        return (
            not self.spare
            and self._owes_at is None
            and not self._asked
            and self.requests - self.hung < limits.requests_of_connection
            and self.account.requests < limits.requests_of_one
        )

    def _may_look(self) -> bool:
        """Where its requests are at their bound: whether the next line may be looked at, since it may be urgent."""
        return self._server.urgent is not None and self._owes_at is None and not self._asked and not self._passed_over

    def _take(self, stop: int) -> bool:
        """Take the line that ends at `stop` (-1: none ends yet). False where nothing more can be taken now."""
        limits = self._server.limits
        size = stop if stop >= 0 else len(self._received)
        if size > limits.line_bytes:
            self._linger()
            return False
        if stop < 0:
            self._scanned = size
            if size > limits.small_bytes:
                self._hold(limits.line_bytes)
            return False
        self._scanned = stop
        if size > limits.tiny_bytes and not self._hold(size):
            return False
        held, self._held = self._held, 0
        kept = size if size > limits.tiny_bytes else 0
        with memoryview(self._received) as received:
            line = bytes(received[:stop])
        del self._received[: stop + 1]
        self._scanned = 0
        self._line_at = None
        self._passed_over = False
        self._server.room.give(self.account, held - kept)
        self._server.begin(self, line, kept)
        return True

    def _take_urgent(self, stop: int) -> bool:
        """Take the line that ends at `stop` (-1: none ends yet) if it is urgent. What is long never is."""
        if max(stop, 0 if stop >= 0 else len(self._received)) > self._server.limits.tiny_bytes:
            self._passed_over = True
        elif stop < 0:
            self._scanned = len(self._received)
        elif self._server.begin_urgent(self, bytes(self._received[:stop])):
            del self._received[: stop + 1]
            self._scanned = 0
            self._line_at = None
            return True
        else:
            self._passed_over = True
        if self._passed_over and self.spare:
            self._server.counters.refused += 1
            self.finish()
        return False

    def _hold(self, size: int) -> bool:
        """Have room for so many bytes: True now, or `_granted` later."""
        if self._held < size:
            if not self._server.room.ask(self, self.account, size, lambda: self._granted(size)):
                self._asked = True
                return False
            self._held += size
        return True

    def _granted(self, size: int) -> None:
        # Called from inside of other connections' affairs, hence no more than a note now.
        self._asked = False
        self._held += size
        asyncio.get_running_loop().call_soon(self.advance)

    def _linger(self) -> None:
        self._server.counters.too_long += 1
        self._server.refuse(self)
        self._lingers_at = self._server.now()
        self._line_at = None
        self._received = bytearray()
        self._give_back()

    def _read_or_rest(self) -> None:
        transport = self._transport
        if self._over or transport is None or transport.is_closing():
            return
        if self._half_closed:  # which was read behind all lines, so none is waiting
            if not self.requests and self._owes_at is None:
                self._end()
                transport.close()
            return
        reads = self._lingers_at is not None or ((self._may_begin() or self._may_look()) and not self._postponed)
        if not reads:
            self._line_at = None  # what it is kept waiting for is not its fault
        elif self._received and self._line_at is None:
            self._line_at = self._server.now()
        if reads != self._reading:
            self._reading = reads
            if reads:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def _gone(self) -> bool:
        """Whether who closed its half has closed the other as well: nobody reads its answers, and its place is free.
        The end of the stream looks the same; where the kernel does not tell them apart, who has waited for too long
        has gone."""
        if sys.platform != "linux" or self._transport is None:
            return self.hung == self.requests > 0
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), 0)
        return any(event & select.POLLHUP for _, event in poll.poll(0))

    def _give_back(self) -> None:
        held, self._held = self._held, 0
        self._server.room.give(self.account, held)

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._received = bytearray()
            self._server.room.forget(self)  # before it gives back: it would be given that
            self._give_back()
            self._server.lost(self)


def _passed(since: float | None, limit_ms: float, now: float) -> bool:
    return since is not None and (now - since) * 1000 > limit_ms
