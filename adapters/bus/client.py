"""One request over the bus: connect, one line, the first line of the answer, close (bus.md a, FRAMING).

    reply = await Client().request(path, line, timeout_ms=1000)

What happened is a value, never an exception: `Answer`, `NoResponse`, `Unreachable`. Nothing here reads what is in a
line. The socket is connected and used by hand: connecting a Unix socket never waits, and asyncio takes the EAGAIN of a
full backlog for a connection that is under way.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Final

import attrs

from tenure.adapters.bus.endpoints.paths import endpoint_path
from tenure.adapters.bus.peer import Peer, peer_of
from tenure.adapters.bus.serving.limits import LINE_BYTES

_CHUNK: Final = 64 * 1024
_BUSY_S: Final = 0.005
_ADDRESS_BYTES: Final = 107 if sys.platform == "linux" else 103
_RETRYABLE: Final = frozenset({errno.ENOENT, errno.ECONNREFUSED, errno.EPIPE, errno.ECONNRESET, errno.EBUSY})
"""bus.md a, CLIENT ERROR CLASSES; a time-out is retryable as well."""
TIMEOUT: Final = "timeout"
FOREIGN: Final = "foreign-listener"
TOO_LONG: Final = "answer-too-long"


@attrs.frozen
class Answer:
    """The first line of the answer, without its newline."""

    line: bytes


@attrs.frozen
class NoResponse:
    """The other side closed without a line. It may have done what it was asked."""


@attrs.frozen
class Unreachable:
    """No answer, and why: an errno's name, "timeout", "foreign-listener", "answer-too-long"."""

    reason: str
    retryable: bool
    """Whether the same bytes may be sent again: ENOENT, ECONNREFUSED, EPIPE, ECONNRESET, EBUSY, time-out."""
    sent: bool
    """Whether anything of the line may have arrived in any of the attempts: if not, nothing was done."""
    attempts: int = 1


Reply = Answer | NoResponse | Unreachable


@attrs.frozen
class Retry:
    """How often the same bytes are sent while the reply is a retryable `Unreachable`, and the pause between, in ms."""

    attempts: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    delay_ms: float = attrs.field(default=0.0, validator=attrs.validators.ge(0))


ONCE: Final = Retry()
REGISTRATION: Final = Retry(10, 150)
"""bus.md 0: for follower.register."""


@attrs.frozen
class Client:
    """How requests are made. Safe to share: it keeps nothing between requests."""

    line_bytes: int = LINE_BYTES
    may_answer: Callable[[Peer], bool] = lambda peer: peer.ours
    """Who may listen where we connect. Asked before anything is sent: a line carries the secret."""
    pause: Callable[[float], Awaitable[object]] = asyncio.sleep
    """Waiting so many seconds: between attempts, and for a place in a full backlog."""

    async def request(self, path: str, line: bytes, *, timeout_ms: float, retry: Retry = ONCE) -> Reply:
        """Send `line` to whoever listens at the endpoint `path`, and say what came of it.

        `timeout_ms` is for each attempt, from the connection to the last byte of the answer. `line` has no newline, or
        one at its end. Raises ValueError for a line that cannot be one. Cancelled, the connection is closed at once;
        the other side may have done what it was asked all the same.
        """
        data = self._framed(line)
        try:
            address = endpoint_path(path)
        except ValueError:
            address = ""
        if not address.startswith("/") or "\0" in address:  # it may come from another process; nothing is there
            return Unreachable(errno.errorcode[errno.EINVAL], retryable=False, sent=False)
        sent = False
        for attempt in range(1, retry.attempts + 1):
            if attempt > 1:
                await self.pause(retry.delay_ms / 1000)
            reply = await self._attempt(address, data, timeout_ms)
            if not isinstance(reply, Unreachable):
                return reply
            sent = sent or reply.sent
            reply = attrs.evolve(reply, sent=sent, attempts=attempt)
            if not reply.retryable:
                return reply
        return reply

    def _framed(self, line: bytes) -> bytes:
        data = line if line.endswith(b"\n") else line + b"\n"
        if data.find(b"\n") != len(data) - 1:
            raise ValueError("a request is one line: a newline stands inside it")
        if len(data) - 1 > self.line_bytes:
            raise ValueError(f"a line has at most {self.line_bytes} bytes, this one {len(data) - 1}")
        return data

    async def _attempt(self, path: str, data: bytes, timeout_ms: float) -> Reply:
        sent = False
        try:
            end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as error:  # no descriptor is left
            return _unreachable(error, sent)
        try:
            end.setblocking(False)
            async with asyncio.timeout(timeout_ms / 1000):
                await self._connect(end, path)
                if not self.may_answer(peer_of(end)):
                    return Unreachable(FOREIGN, retryable=False, sent=False)
                sent = True
                return await self._converse(end, data)
        except TimeoutError:
            return Unreachable(TIMEOUT, retryable=True, sent=sent)
        except OSError as error:
            return _unreachable(error, sent)
        finally:
            end.close()

    async def _connect(self, end: socket.socket, path: str) -> None:
        if len(os.fsencode(path)) > _ADDRESS_BYTES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        while True:
            try:
                return end.connect(path)
            except BlockingIOError:  # a full backlog: whoever listens lives, and is busy
                await self.pause(_BUSY_S)

    async def _converse(self, end: socket.socket, data: bytes) -> Reply:
        loop = asyncio.get_running_loop()
        broken: OSError | None = None
        try:
            await loop.sock_sendall(end, data)
        except (BrokenPipeError, ConnectionResetError) as error:
            # Whoever refuses an over-long line may have said so and closed: what it said is still to be read.
            broken = error
        answer = bytearray()
        while True:
            scanned = len(answer)
            try:
                found = await loop.sock_recv(end, _CHUNK)
            except ConnectionResetError as error:
                return _unreachable(broken or error, sent=True)
            answer += found
            stop = answer.find(b"\n", scanned)
            if stop > self.line_bytes or (stop < 0 and len(answer) > self.line_bytes):
                return Unreachable(TOO_LONG, retryable=False, sent=True)
            if stop >= 0:
                return Answer(bytes(answer[:stop]))
            if not found:
                return NoResponse() if broken is None else _unreachable(broken, sent=True)


def _unreachable(error: OSError, sent: bool) -> Unreachable:
    number = error.errno or 0
    return Unreachable(errno.errorcode.get(number, os.strerror(number)), number in _RETRYABLE, sent)
