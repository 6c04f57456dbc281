"""Benchmarks of a fleet: followers that heart-beat at one leader, and how long a killed leader is missed.

The leader is a process of its own, a whole member with its lease, routes, request ledger and projection; the followers
are the real ones, all in one other process, each with its own registration. What a heartbeat takes is from before it
connects until its acknowledgement is there. For succession three `tenure join` with the default lease are started,
the leader is killed, and the other two say when.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import attrs

from tenure.adapters.bus.client import ONCE, Client, Reply, Retry
from tenure.adapters.files.directory import AgentDirectory, agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.follower.follower import Accepted, Follower
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.fleet.member import Member
from tenure.adapters.fleet.succession.watch import RegistryWatch

Row = dict[str, Any]

FOLLOWERS, HERTZ = 64, 20


@attrs.frozen
class Timed(Client):
    """A client that notes how long each request took, in seconds."""

    times: list[float] = attrs.Factory(list)

    async def request(self, path: str, line: bytes, *, timeout_ms: float, retry: Retry = ONCE) -> Reply:
        started = time.perf_counter()
        reply = await super().request(path, line, timeout_ms=timeout_ms, retry=retry)
        self.times.append(time.perf_counter() - started)
        return reply


# -- heartbeats --------------------------------------------------------------------------------------------------------


async def lead(where: AgentDirectory) -> None:
    """Lead until standard input ends."""
    told = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, told.set)
    async with Member(where) as member:
        await member.join()
        print("ready", flush=True)
        await told.wait()


@contextlib.contextmanager
def leading(where: AgentDirectory) -> Iterator[int]:
    """A leader; its pid."""
    command = [sys.executable, __file__, where.root]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process.pid
        finally:
            process.stdin.close()
            process.wait()


async def beat(where: AgentDirectory, pid: int, seconds: int) -> tuple[list[float], float, int]:
    """What each heartbeat took, the leader's processor time per second, and how many registrations were lost."""
    ports = real_ports()
    lease = LeaseRuntime(ports, where, "default", cwd=where.root)
    watch = RegistryWatch(lease)
    look = await watch.look()
    assert look.entry is not None
    client, lost = Timed(), list[str]()
    timings = attrs.evolve(DEFAULT, heartbeat_ms=1_000 // HERTZ)
    me, followers = ports.processes.me(), list[Follower]()
    for number in range(FOLLOWERS):
        identity = InstanceIdentity(me, f"{me.pid}:{number + 1}", f"{number + 1}:start:1", cwd=where.root)
        follower = Follower(
            ports, where, None, identity, timings, on_lost=lambda binding, why: lost.append(why), client=client
        )
        assert isinstance(await follower.register(look.entry, None), Accepted)
        followers.append(follower)
    client.times.clear()
    before, started = cpu_s(pid), time.perf_counter()
    await asyncio.sleep(seconds)
    times, used = sorted(client.times), (cpu_s(pid) - before) / (time.perf_counter() - started)
    for follower in followers:
        await follower.stop()
    await watch.close()
    return times, used, len(lost)


def bench_heartbeats(place: Path | None, seconds: int = 15) -> list[Row]:
    """64 followers at 20 Hz."""
    with tempfile.TemporaryDirectory(dir=place) as room:
        where = agent_directory(room)
        with leading(where) as pid:
            at_first = memory_mib(pid)
            times, used, lost = asyncio.run(beat(where, pid, seconds))
            memory = memory_mib(pid, "VmHWM")
    return [
        {
            "what": f"{FOLLOWERS} followers, {HERTZ} heartbeats a second each, at one leader",
            "heartbeats": len(times),
            "a second": round(len(times) / seconds),
            "registrations lost": lost,
            "p50 ms": round(times[len(times) // 2] * 1e3, 2),
            "p99 ms": round(times[len(times) * 99 // 100] * 1e3, 2),
            "worst ms": round(times[-1] * 1e3, 2),
            "leader cpu": f"{used:.1%}",
            "leader MiB": round(memory, 1),
            "before the first": round(at_first, 1),
            "load": round(os.getloadavg()[0], 1),
        }
    ]


def cpu_s(pid: int) -> float:
    """Processor time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int, which: str = "VmRSS") -> float:
    """The memory that it has; VmHWM: the most that it has had."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(which))


# -- succession --------------------------------------------------------------------------------------------------------


class Join:
    """A `tenure join`, and when it said what."""

    def __init__(self, where: str) -> None:
        command = [sys.executable, "-m", "tenure.adapters.cli", "join", where]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.said: list[tuple[float, str]] = []
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append((time.perf_counter(), line))

    def when(self, text: str, after: float = 0) -> float:
        """When it began to say `text`; waits for it."""
        until = time.perf_counter() + 30
        while time.perf_counter() < until:
            for at, line in list(self.said):
                if at > after and line.startswith(text):
                    return at
            time.sleep(0.001)
        raise TimeoutError(f"{text}: not said, but {self.said}")


def bench_succession(place: Path | None, rounds: int = 20) -> list[Row]:
    """From kill -9 of the leader until the next one leads, and until the third is registered with it."""
    leads, follows = list[float](), list[float]()
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=place) as room, contextlib.ExitStack() as stack:
            joins = []
            for text in ("leading", "following", "following"):
                joins.append(Join(room))
                stack.callback(end, joins[-1].process)
                joins[-1].when(text)
            killed = time.perf_counter()
            joins[0].process.kill()
            leads.append((joins[1].when("leading", killed) - killed) * 1e3)
            follows.append((joins[2].when(f"following pid {joins[1].process.pid},", killed) - killed) * 1e3)
    return [
        {
            "what": f"kill -9 of the leader, until {what}",
            "median ms": round(statistics.median(times), 1),
            "worst ms": round(max(times), 1),
            "rounds": rounds,
            "load": round(os.getloadavg()[0], 1),
        }
        for what, times in (("the smallest slot leads", leads), ("the other is registered with it", follows))
    ]


def end(process: subprocess.Popen[str]) -> None:
    """It leaves in order, if it is there."""
    process.send_signal(signal.SIGTERM)
    process.wait()


def bench_fleets(place: Path | None = None) -> list[Row]:
    """All of them."""
    return [*bench_heartbeats(place), *bench_succession(place)]


if __name__ == "__main__":
    asyncio.run(lead(agent_directory(sys.argv[1])))
