"""The bus between real processes: rude ones, killed ones, those of other users (bus.md a; DESIGN 10)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.adapters.bus.client import Answer, Client, Reply, Retry, Unreachable
from tenure.adapters.bus.endpoints.endpoint import Endpoint
from tenure.adapters.bus.peer import Peer
from tenure.adapters.bus.serving.server import BusServer
from tests.real.conftest import PATIENCE, until

RUDE = Path(__file__).parents[1] / "bench" / "rude.py"
HEARTBEAT = b'{"kind":"follower.heartbeat","requestId":"1:1:1","instanceId":"1:1","sentAtMs":1}'
SERVER = """
import asyncio, resource, sys
from tenure.adapters.bus.endpoints.endpoint import Endpoint
from tenure.adapters.bus.serving.server import BusServer
from tenure.adapters.bus.messages.wire import parse

if len(sys.argv) > 3:
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[3]), int(sys.argv[3])))

async def handle(envelope, peer):
    return sys.argv[2].encode()

async def main():
    async with Endpoint(sys.argv[1], BusServer(parse, handle)):
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
STRANGER_ASKS = """
import socket, sys
end = socket.socket(socket.AF_UNIX)
end.connect(sys.argv[1])
try:
    end.sendall(b"hello\\n")
    print(len(end.recv(100)), flush=True)
except OSError:
    print(0, flush=True)
"""
STRANGER_LISTENS = """
import socket, sys
end = socket.socket(socket.AF_UNIX)
end.bind(sys.argv[1])
end.listen()
print("ready", flush=True)
print(len(end.accept()[0].recv(100)), flush=True)
"""


@pytest.fixture
def path() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="bus-", dir="/tmp") as place:
        yield f"{place}/bus.sock"


@contextlib.contextmanager
def server(path: str, answer: str, descriptors: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """A process that serves, and answers everything with `answer`; perhaps with so many descriptors and no more."""
    command = [sys.executable, "-c", SERVER, path, answer, *([str(descriptors)] if descriptors else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def rude(way: str, path: str) -> Iterator[None]:
    """A process that is rude to it."""
    with subprocess.Popen([sys.executable, str(RUDE), way, path]) as process:
        try:
            yield
        finally:
            process.kill()


def ask(path: str, line: bytes = HEARTBEAT, retry: Retry | None = None) -> Reply:
    return asyncio.run(Client().request(path, line, timeout_ms=PATIENCE * 1_000, retry=retry or Retry()))


@pytest.mark.parametrize(
    "way",
    [
        "connects and goes",
        "occupies connections",
        "sends empty lines",
        "sends structure",
        "never reads",
        "sends 17 MiB",
    ],
)
def test_heartbeats_are_answered_beside_a_rude_process(path: str, way: str) -> None:
    """Every single one, whatever the other does meanwhile; how fast, is for the benchmark."""
    with server(path, "yes"), rude(way, path), rude(way, path):
        for _ in range(50):
            assert Answer(b"yes") == ask(path)


def test_a_server_without_descriptors_refuses_at_once(path: str) -> None:
    """Nobody is kept waiting, and when some go there are places again."""
    with server(path, "yes", descriptors=40), contextlib.ExitStack() as stack:
        ends = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(80)]
        for end in ends:
            end.connect(path)
            end.settimeout(PATIENCE)
        assert b"" == ends[-1].recv(1)
        refused = select.select(ends, [], [], 0)[0]
        assert len(refused) > 30
        assert all(b"" == end.recv(1) for end in refused)
        for end in ends:
            end.close()
        until(lambda: Answer(b"yes") == ask(path))


def test_a_killed_server_is_refused_and_its_successor_found(path: str) -> None:
    """Its socket is left, and nobody listens: definite, and retryable. What is left is swept when it is old."""
    with server(path, "old") as old:
        assert Answer(b"old") == ask(path)
        old.send_signal(signal.SIGKILL)
        old.wait()
        assert Unreachable("ECONNREFUSED", retryable=True, sent=False) == ask(path)
        left = os.readlink(path)
        with server(path, "young"):
            assert Answer(b"young") == ask(path)
            assert left in os.listdir(os.path.dirname(path))


def test_a_stopped_server_is_silent_and_goes_on(path: str) -> None:
    """SIGSTOP: its backlog takes the request, and it is answered when the process wakes up."""
    with server(path, "yes") as process:
        assert Answer(b"yes") == ask(path)
        process.send_signal(signal.SIGSTOP)
        found = asyncio.run(Client().request(path, HEARTBEAT, timeout_ms=50))
        assert Unreachable("timeout", retryable=True, sent=True) == found
        process.send_signal(signal.SIGCONT)
        assert Answer(b"yes") == ask(path)


def test_a_request_to_a_server_that_is_killed_meanwhile(path: str) -> None:
    """Sent, and no answer: it may have been done. The reset is told from silence."""

    async def main(process: subprocess.Popen[bytes]) -> Reply:
        request = asyncio.ensure_future(Client().request(path, HEARTBEAT, timeout_ms=PATIENCE * 1_000))
        await asyncio.sleep(0)
        process.kill()
        return await request

    with server(path, "yes") as process:
        process.send_signal(signal.SIGSTOP)
        assert Unreachable("ECONNRESET", retryable=True, sent=True) == asyncio.run(main(process))


@pytest.fixture(params=["to us", "to the kernel"] if os.geteuid() == 0 else ["to us"])
def become(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What makes a program that is run with it another user's. Only root can become another user; whoever else runs
    this takes itself for one. The kernel tells both apart by the same two numbers."""
    if request.param == "to the kernel":
        return "import os, socket; os.setgroups([]); os.setgid(12345); os.setuid(12345)\n"
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 12345)
    return ""


def test_another_user_is_refused_on_either_side(path: str, become: str) -> None:
    """Also where the directory's mode lets it in: the kernel says who it is."""

    async def handle(line: bytes, peer: Peer) -> bytes:
        return b"for one's own only"

    async def main() -> None:
        bus = BusServer(lambda line: line, handle)
        async with Endpoint(path, bus) as endpoint:
            os.chmod(os.path.dirname(path), 0o777)
            os.chmod(endpoint.path, 0o777)
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", become + STRANGER_ASKS, path, stdout=asyncio.subprocess.PIPE
            )
            said, _ = await process.communicate()
            assert b"0\n" == said
            assert (1, 0) == (bus.statistics().foreign, bus.statistics().lines)

    asyncio.run(main())


def test_nothing_is_said_to_another_user_s_server(path: str, become: str) -> None:
    """Somebody listens where we connect, for our secret."""
    os.chmod(os.path.dirname(path), 0o777)
    with subprocess.Popen([sys.executable, "-c", become + STRANGER_LISTENS, path], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            assert Unreachable("foreign-listener", retryable=False, sent=False) == ask(path)
            assert process.stdout.readline() == b"0\n"
            until(lambda: process.poll() is not None)
        finally:
            process.kill()
