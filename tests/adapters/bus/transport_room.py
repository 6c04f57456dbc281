"""What the tests of the bus's transport share: a loop whose time is moved by hand, a server, rude peers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import TypeVar

from tenure.adapters.bus.client import Client, Reply
from tenure.adapters.bus.endpoints.endpoint import Endpoint
from tenure.adapters.bus.peer import Peer
from tenure.adapters.bus.serving.limits import Limits
from tenure.adapters.bus.serving.server import BusServer

T = TypeVar("T")

PATIENCE_S = 60
"""Of the real clock, for what takes milliseconds: a test that waits in vain fails instead of hanging."""
SMALL = Limits(
    line_bytes=4_000,
    tiny_bytes=100,
    loop_bytes=300,
    small_bytes=1_000,
    structure_bytes=2_000,
    room_bytes=16_000,
    owed_bytes=64_000,
    connections=8,
    connections_of_one=4,
    requests_of_connection=2,
    requests_of_one=4,
    spares=4,
)
"""Bounds that a test reaches with a few lines. Durations are those of the real ones."""


class HandLoop(asyncio.SelectorEventLoop):
    """A loop whose time is a number. Whatever waits on it has to be polled (`until`): its time goes by in `wait`."""

    hand = 1_000.0

    def time(self) -> float:
        return self.hand


def run(main: Coroutine[object, object, T]) -> T:
    """Run a test on a `HandLoop`."""
    with asyncio.Runner(loop_factory=HandLoop) as runner:
        return runner.run(main)


async def until(holds: Callable[[], object]) -> None:
    """Go on with everything else until `holds`."""
    patience = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < patience, "waited in vain"
        await asyncio.sleep(0)


async def done(work: Awaitable[T]) -> T:
    """The result of `work`, polled: no timer wakes a `HandLoop`."""
    task = asyncio.ensure_future(work)
    await until(task.done)
    return task.result()


async def turns(count: int = 50) -> None:
    """Let everything go on for a while that is long enough for what is not to happen."""
    for _ in range(count):
        await asyncio.sleep(0)


def wait(seconds: float) -> None:
    """So much time goes by."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, HandLoop)
    loop.hand += seconds


@contextlib.contextmanager
def short_place() -> Iterator[str]:
    """A directory with a path short enough for a socket; pytest's are not, on some machines."""
    with tempfile.TemporaryDirectory(prefix="bus-", dir="/tmp") as place:
        yield place


class Handler:
    """Answers with what it was asked, when it may."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.peers: list[Peer] = []
        self.held: dict[bytes, asyncio.Event] = {}
        """Requests that wait until their event is set."""
        self.answers: dict[bytes, bytes] = {}
        self.cancelled: list[bytes] = []

    async def __call__(self, line: bytes, peer: Peer) -> bytes:
        self.asked.append(line)
        self.peers.append(peer)
        if line.startswith(b"raise"):
            raise RuntimeError("a handler's own fault")
        if line in self.held:
            try:
                await self.held[line].wait()
            except asyncio.CancelledError:
                self.cancelled.append(line)
                raise
        return self.answers.get(line, line)

    def hold(self, line: bytes) -> None:
        """From now on this request waits."""
        self.held[line] = asyncio.Event()

    def let(self, line: bytes) -> None:
        """It may be answered."""
        self.held[line].set()


def parsed(line: bytes) -> bytes | None:
    """For these servers an envelope is UTF-8 that does not begin with "no"."""
    return None if line.decode().startswith("no") or not line else line


@contextlib.asynccontextmanager
async def serving(
    handler: Handler | None = None, limits: Limits = SMALL, **more: object
) -> AsyncIterator[tuple[BusServer[bytes], str, Handler]]:
    """A server at an endpoint, its path, and its handler."""
    handler = handler or Handler()
    server = BusServer(parsed, handler, limits=limits, failed=lambda line, error: b"failed " + line, **more)  # type: ignore[arg-type]
    with short_place() as place:
        endpoint = Endpoint(f"{place}/bus.sock", server)
        await done(endpoint.start())
        try:
            yield server, endpoint.path, handler
        finally:
            await done(endpoint.stop())


async def ask(path: str, line: bytes, timeout_ms: float = 1_000) -> Reply:
    """A polite request."""
    return await done(Client().request(path, line, timeout_ms=timeout_ms))


class Rude:
    """A peer that does with its connection what it likes, and never waits."""

    def __init__(self, path: str) -> None:
        self.end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.end.setblocking(False)
        self.end.connect(path)
        self.received = bytearray()
        self.closed = False
        """Whether the server has closed."""

    def send(self, data: bytes) -> int:
        """Send what goes out at once; how many bytes that were."""
        sent = 0
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while sent < len(data):
                sent += self.end.send(data[sent:])
        return sent

    async def send_all(self, data: bytes) -> None:
        """Send all of it, however slowly it is read."""
        sent = 0

        def on() -> bool:
            nonlocal sent
            sent += self.send(data[sent : sent + 2**20])
            return sent == len(data)

        await until(on)

    def read(self) -> bytes:
        """What has come so far, of which nothing is forgotten."""
        try:
            while found := self.end.recv(2**16):
                self.received += found
            self.closed = True
        except BlockingIOError:
            pass
        except ConnectionResetError:
            self.closed = True
        return bytes(self.received)

    def lines(self) -> list[bytes]:
        """The lines that have come so far."""
        return self.read().split(b"\n")[:-1]

    def over(self) -> bool:
        """Whether the server has closed."""
        self.read()
        return self.closed

    def half_close(self) -> None:
        """Send nothing more."""
        self.end.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Go away."""
        self.end.close()

    def __enter__(self) -> Rude:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def listing(path: str) -> list[str]:
    """The names beside `path`."""
    return sorted(os.listdir(os.path.dirname(path)))
