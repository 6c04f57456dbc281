"""Benchmarks of the bus: a request beside a bare echo, and many followers that heart-beat at one server.

The bare echo is asyncio's own streams on both ends; its client connects per request as well, sends a line of the same
length and reads one. Both servers are processes of their own, and the two are asked in turns. The fleet is 64
followers in one process that heart-beat 20 times a second each at one server process: what a heartbeat takes, from
before it connects until its answer is there, and what the server needs for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from rude import WAYS

from tenure.adapters.bus.client import Answer, Client
from tenure.adapters.bus.endpoints.endpoint import Endpoint
from tenure.adapters.bus.messages.envelopes import Envelope
from tenure.adapters.bus.messages.fields import Malformed
from tenure.adapters.bus.messages.wire import parse
from tenure.adapters.bus.peer import Peer
from tenure.adapters.bus.serving.server import BusServer

Row = dict[str, Any]

HEARTBEAT = (
    b'{"kind":"follower.heartbeat","requestId":"4711:1790000000000:%d","auth":"0123456789abcdef0123456789abcdef0123456789a"'
    b',"instanceId":"4711:1790000000000","registrationGeneration":"4711:1790000000000:1","sentAtMs":1790000000000}'
)
FOLLOWERS, HERTZ = 64, 20


# -- the two servers, each in a process of its own ---------------------------------------------------------------------


async def serve(path: str) -> None:
    """Ours, with a handler that does nothing."""

    async def handle(line: bytes, peer: Peer) -> bytes:
        return line

    async with Endpoint(path, BusServer(lambda line: line, handle)):
        print("ready", flush=True)
        await _until_told()


async def serve_parsed(path: str) -> None:
    """Ours, with the parser of the bus."""

    async def handle(envelope: Envelope | Malformed, peer: Peer) -> bytes:
        return b"{}"

    async with Endpoint(path, BusServer(parse, handle)):
        print("ready", flush=True)
        await _until_told()


async def echo(path: str) -> None:
    """asyncio's."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(one, path, limit=2**25):
        print("ready", flush=True)
        await _until_told()


async def _until_told() -> None:
    """Serve until standard input ends."""
    told = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, told.set)
    await told.wait()


@contextlib.contextmanager
def running(what: str, path: str) -> Iterator[int]:
    """A server process; its pid."""
    command = [sys.executable, __file__, what, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process.pid
        finally:
            process.stdin.close()
            process.wait()


# -- what is measured --------------------------------------------------------------------------------------------------


async def ask_bare(path: str, line: bytes) -> None:
    """A request of the bare echo."""
    reader, writer = await asyncio.open_unix_connection(path, limit=2**25)
    writer.write(line + b"\n")
    await writer.drain()
    answer = await reader.readline()
    assert len(answer) == len(line) + 1
    writer.close()
    await writer.wait_closed()


async def ask_bus(path: str, line: bytes) -> None:
    """A request of the bus."""
    answer = await Client().request(path, line, timeout_ms=30_000)
    assert isinstance(answer, Answer)
    assert len(answer.line) == len(line)


async def medians(calls: dict[str, Callable[[], Awaitable[None]]], rounds: int) -> dict[str, tuple[float, float]]:
    """The median and the first quartile of one call of each in microseconds, asked in turns. On a machine that is busy
    with other things a call takes one or two milliseconds now and then, and the quartile sees less of that."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(min(rounds, 50)):
            await call()
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for name, call in calls.items():
            started = time.perf_counter()
            await call()
            times[name].append((time.perf_counter() - started) * 1e6)
    gc.enable()
    return {name: (statistics.median(found), statistics.quantiles(found)[0]) for name, found in times.items()}


def bench_requests(place: Path | None, rounds: int = 3_000) -> list[Row]:
    """Row 6 of DESIGN 11, for a heartbeat and for longer lines."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=place) as room:
        bus, bare = f"{room}/bus.sock", f"{room}/echo.sock"
        with running("serve", bus), running("echo", bare):
            for length in (len(HEARTBEAT), 4_000, 60_000, 1_000_000, 16 * 2**20):
                line = HEARTBEAT % 7 if length == len(HEARTBEAT) else b'"' + b"x" * (length - 2) + b'"'
                found = asyncio.run(_both(bus, bare, line, max(20, rounds * 300 // max(300, len(line)))))
                rows.append(
                    {
                        "what": f"bus request, a line of {len(line):,} bytes",
                        "us": round(found["bus"][0], 1),
                        "bare us": round(found["bare"][0], 1),
                        "ratio": round(found["bus"][0] / found["bare"][0], 2),
                        "ratio of quartiles": round(found["bus"][1] / found["bare"][1], 2),
                    }
                )
    return rows


async def _both(bus: str, bare: str, line: bytes, rounds: int) -> dict[str, tuple[float, float]]:
    return await medians({"bus": lambda: ask_bus(bus, line), "bare": lambda: ask_bare(bare, line)}, rounds)


def bench_fleet(place: Path | None, seconds: int = 15) -> list[Row]:
    """64 followers at 20 Hz."""
    with tempfile.TemporaryDirectory(dir=place) as room:
        path = f"{room}/bus.sock"
        with running("serve", path) as pid:
            before, started = _cpu_s(pid), time.perf_counter()
            times = sorted(asyncio.run(_fleet(path, seconds)))
            cpu = (_cpu_s(pid) - before) / (time.perf_counter() - started)
            memory = _peak_mib(pid)
    return [
        {
            "what": f"{FOLLOWERS} followers, {HERTZ} heartbeats a second each, a handler that does nothing",
            "heartbeats": len(times),
            "p50 ms": round(times[len(times) // 2] * 1e3, 2),
            "p99 ms": round(times[len(times) * 99 // 100] * 1e3, 2),
            "worst ms": round(times[-1] * 1e3, 2),
            "server cpu": f"{cpu:.1%}",
            "server MiB": round(memory, 1),
        }
    ]


async def _fleet(path: str, seconds: int) -> list[float]:
    client, times = Client(), list[float]()
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def follower(number: int) -> None:
        for beat in range(seconds * HERTZ):
            await asyncio.sleep(began + (beat + number / FOLLOWERS) / HERTZ - loop.time())
            started = time.perf_counter()
            answer = await client.request(path, HEARTBEAT % beat, timeout_ms=1_000)
            assert isinstance(answer, Answer)
            times.append(time.perf_counter() - started)

    await asyncio.gather(*(follower(number) for number in range(FOLLOWERS)))
    return times


def _cpu_s(pid: int) -> float:
    """Processor time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mib(pid: int) -> float:
    """The most memory that it has had."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def bench_rude(place: Path | None, seconds: int = 4) -> list[Row]:
    """The same fleet at a server that parses what it is sent, while another process is rude to it."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=place) as room:
        for way in ("", *WAYS):
            path = f"{room}/{len(rows)}.sock"
            with running("parse", path) as pid, rude(way, path):
                before = _cpu_s(pid)
                times = sorted(asyncio.run(_fleet(path, seconds)))
                rows.append(
                    {
                        "what": f"{FOLLOWERS} followers, {HERTZ} Hz, beside one process that {way or 'does nothing'}",
                        "heartbeats": len(times),
                        "p50 ms": round(times[len(times) // 2] * 1e3, 2),
                        "p99 ms": round(times[len(times) * 99 // 100] * 1e3, 2),
                        "worst ms": round(times[-1] * 1e3, 2),
                        "server cpu s": round(_cpu_s(pid) - before, 2),
                        "server MiB": round(_peak_mib(pid), 1),
                    }
                )
    return rows


@contextlib.contextmanager
def rude(way: str, path: str) -> Iterator[None]:
    """A rude process beside."""
    if not way:
        yield
        return
    with subprocess.Popen([sys.executable, str(Path(__file__).parent / "rude.py"), way, path]) as process:
        try:
            yield
        finally:
            process.kill()


def bench_bus(place: Path | None = None) -> list[Row]:
    """All of them."""
    return [*bench_requests(place), *bench_fleet(place), *bench_rude(place)]


if __name__ == "__main__":
    asyncio.run({"serve": serve, "parse": serve_parsed, "echo": echo}[sys.argv[1]](sys.argv[2]))
