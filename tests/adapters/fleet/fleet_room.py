"""A fleet on a real directory with real sockets, whose processes, epochs and provisioning are told what to do.

All of it runs in this process, on one loop. Leaders and followers have pids of a table that can be told of deaths; to
the kernel all of them are this process, so to a leader each registration comes through a relay.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

import attrs

from tenure.adapters.bus.client import Answer, Client
from tenure.adapters.bus.endpoints.paths import endpoint_path, leader_path
from tenure.adapters.bus.messages.envelopes import Ack, Forward, Request
from tenure.adapters.bus.messages.wire import encode, parse
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import NotOwner
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.fleet.follower.follower import Follower
from tenure.adapters.fleet.follower.outcomes import Accepted
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.fleet.leader.leader import Leader
from tenure.adapters.fleet.leader.requests import Serve
from tenure.adapters.fleet.threads.provisioning import LocalProvisioning
from tenure.adapters.ports import Ports
from tenure.adapters.testing.memory import FakeClock, FakeProcesses, Notes
from tenure.machines.entry import Entry
from tenure.machines.follower_messages import Binding
from tenure.machines.slot_board import Pending

T = TypeVar("T")

LIMIT_S = 60.0
"""Of a whole story: what takes a second here may take much longer on a machine that is busy with other things."""
TIMES = attrs.evolve(
    DEFAULT, heartbeat_ms=30, prune_ms=5000, register_timeout_ms=4000, register_retries=3, register_delay_ms=10,
    response_ms=3000, grace_ms=100,
)  # fmt: skip
SECRET = "s" * 43


def run(story: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            await story

    asyncio.run(limited())


async def until(true: Callable[[], object]) -> None:
    """Let the loop run until `true()`; the whole story is limited in time."""
    while not true():
        await asyncio.sleep(0.002)


@attrs.define
class Ownership:
    """The lease of one leader, without a registry: whoever has an epoch owns. `unaware`: it has not noticed its loss,
    and believes in this epoch."""

    epoch: int | None = 1
    unaware: int | None = None
    transactions: int = 0
    refuse: Exception | None = None

    async def commit(self, effect: Callable[[int], T]) -> T:
        self.transactions += 1
        if self.refuse is not None:
            raise self.refuse
        return await asyncio.to_thread(self._inside, effect)

    def _inside(self, effect: Callable[[int], T]) -> T:
        if self.epoch is None:
            raise NotOwner("not owned")
        return effect(self.epoch)

    def may_send(self) -> int | None:
        return self.epoch if self.unaware is None else self.unaware


class Chief:
    """A leader with its lease and its provisioning."""

    def __init__(self, house: House, pid: int, leader: Leader, ownership: Ownership, local: LocalProvisioning) -> None:
        self.house = house
        self.pid = pid
        self.leader = leader
        self.own = ownership
        self.local = local
        self.secret = ""
        self.hold: asyncio.Event | None = None
        """While it is set up and not set, provisioning takes its time."""
        self.provisioning = 0
        """Calls of the port that are under way."""

    async def make(self, pending: Pending) -> None:
        if pending.wish.kind == "leader" or self.hold is None:
            return
        self.provisioning += 1
        try:
            await self.hold.wait()
        finally:
            self.provisioning -= 1

    def entry(self, path: str | None = None) -> Entry:
        """The entry in the owner registry, as a follower sees it."""
        epoch = self.own.epoch
        return Entry(
            self.pid, instance_id=f"{self.pid}:1", leader_epoch=epoch, bus_socket_path=path, bus_secret=self.secret
        )

    def routes(self) -> dict[str, str]:
        """Instances with their registrations."""
        view = self.leader.fleet_view()
        return {follower.instance_id: follower.generation for follower in view.followers}

    async def send(self, request: Request, *, auth: str | None = "") -> Ack:
        """A request of anybody's, over the socket."""
        secret = self.secret if auth == "" else auth
        return await self.house.raw(attrs.evolve(request, auth=secret))


class House:
    """The directory, and who is in it."""

    def __init__(self, root: Path, times: Timings = TIMES) -> None:
        self.directory = AgentDirectory(str(root))
        (root / "tmp" / "telegram").mkdir(parents=True, mode=0o700)  # as whoever owned the lease first has done
        self.times = times
        self.processes = FakeProcesses(1)
        self.notes = Notes()
        self.clock = FakeClock()
        """By which routes fall silent: it stands still until it is told otherwise."""
        self.recorder: Any = None
        self.path = endpoint_path(leader_path(self.directory, "default"))
        self._open: list[Callable[[], Awaitable[None]]] = []

    def ports(self, pid: int) -> Ports:
        processes = self.processes.as_pid(pid, ticks=pid * 10)
        return attrs.evolve(real_ports(self.notes, self.recorder), processes=processes, clock=self.clock)

    def identity(self, pid: int, *, activation: int = 1, parent: int = 7, name: str | None = None) -> InstanceIdentity:
        process = self.ports(pid).processes.me()
        return InstanceIdentity(process, f"{pid}:{activation}", f"{parent}:start:70", 1, "/bot", name)

    def chief(
        self, pid: int = 50, *, epoch: int = 1, secret: str = SECRET, serve: Serve | None = None, **more: Any
    ) -> Chief:
        ownership = Ownership(epoch)
        ports = self.ports(pid)
        box: list[Chief] = []
        local = LocalProvisioning(ports, make=lambda pending: box[0].make(pending))
        leader = Leader(
            ports, self.directory, None, self.identity(pid), self.times, provisioning=local, commit=ownership.commit,
            epoch=ownership.may_send, secret=secret, serve=serve, **more,
        )  # fmt: skip
        chief = Chief(self, pid, leader, ownership, local)
        chief.secret = secret
        box.append(chief)
        self._open.append(leader.close)
        return chief

    async def led(self, pid: int = 50, *, binding: Binding | None = None, **more: Any) -> Chief:
        """A leader that is open."""
        chief = self.chief(pid, **more)
        await chief.leader.open(chief.own.epoch or 0, binding)
        return chief

    def follower(self, pid: int, *, activation: int = 1, parent: int | None = None, **more: Any) -> Hand:
        identity = self.identity(pid, activation=activation, parent=pid + 1000 if parent is None else parent)
        hand = Hand()
        more.setdefault("deliver", hand.take)
        hand.follower = Follower(
            self.ports(pid), self.directory, None, identity, self.times, on_lost=hand.lose, on_change=hand.hear, **more
        )
        self._open.append(hand.follower.stop)
        return hand

    async def silence(self, *live: Hand) -> None:
        """So much time goes by that whoever does not beat is silent for too long; `live` ones do."""
        for _ in range(4):
            beats = [hand.follower.statistics().heartbeats for hand in live]
            self.clock.advance(self.times.prune_ms / 2)
            for hand, before in zip(live, beats, strict=True):
                await until(lambda hand=hand, before=before: hand.follower.statistics().heartbeats > before + 1)  # type: ignore[misc]

    async def raw(self, request: Request, path: str | None = None) -> Ack:
        """The answer to a request of anybody's, at the leader's endpoint or at `path`."""
        reply = await Client().request(path or self.path, encode(request), timeout_ms=5000)
        assert isinstance(reply, Answer), reply
        ack = parse(reply.line)
        assert isinstance(ack, Ack), ack
        return ack

    async def __aenter__(self) -> House:
        return self

    async def __aexit__(self, *error: object) -> None:
        for close in reversed(self._open):
            await close()


async def joined(house: House, chief: Chief, pid: int = 101, **more: Any) -> Hand:
    hand = house.follower(pid, **more)
    found = await hand.follower.register(chief.entry(), None)
    assert isinstance(found, Accepted), found
    return hand


class Hand:
    """A follower, and what it was told."""

    def __init__(self) -> None:
        self.follower: Follower = None  # type: ignore[assignment]
        self.lost: list[tuple[Binding, str]] = []
        self.heard = 0
        self.taken: list[Forward] = []
        self.gate: asyncio.Event | None = None
        """While it is set up and not set, work is not taken in."""
        self.waiting = 0

    def lose(self, binding: Binding, why: str) -> None:
        self.lost.append((binding, why))

    def hear(self) -> None:
        self.heard += 1

    async def take(self, work: Forward) -> None:
        if self.gate is not None:
            self.waiting += 1
            await self.gate.wait()
        self.taken.append(work)


class Proxy:
    """Passes requests on, and loses what it is told to: an answer of this kind, once."""

    def __init__(self, target: str) -> None:
        self._room = tempfile.TemporaryDirectory(prefix="tenure-")
        self.path = f"{self._room.name}/proxy.sock"
        self.target = target
        self.drop: str | None = None
        """The kind whose next answer is lost."""
        self.seen: list[str] = []
        self.dropped: list[str] = []
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[object]] = set()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_unix_server(self._serve, self.path, limit=2**20)
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        for serving in tuple(self._serving):
            serving.cancel()
        if self._serving:
            await asyncio.wait(self._serving)
        self._room.cleanup()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        # Cancelled at the end: asyncio's own callback of this task is not prepared for that.
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError), closing(writer):
            line = await reader.readline()
            if line:
                kind = json.loads(line)["kind"]
                self.seen.append(kind)
                answer = await self._ask(line)
                if self.drop == kind:
                    self.drop = None
                    self.dropped.append(kind)
                else:
                    writer.write(answer)
                    await writer.drain()

    async def _ask(self, line: bytes) -> bytes:
        reader, writer = await asyncio.open_unix_connection(self.target, limit=2**20)
        with closing(writer):
            writer.write(line)
            await writer.drain()
            return await reader.readline()
