"""Members of one fleet on a real directory with real sockets, all in this process: each is a process of a table.

To the kernel all of them are this process, so a death is told by the table alone; real deaths are in `tests/real`.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import attrs

from tenure.adapters.bus.endpoints.paths import endpoint_path, leader_path
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.fleet.member import Member
from tenure.adapters.fleet.roles import Following, Leading, Role
from tenure.adapters.ports import Ports
from tenure.adapters.testing.memory import FakeProcesses, Notes
from tests.adapters.fleet.fleet_room import until

TIMES = attrs.evolve(
    DEFAULT, stale_ms=6000, check_ms=100, refresh_ms=200, heartbeat_ms=50, prune_ms=4000, grace_ms=150,
    register_timeout_ms=6000, register_retries=3, register_delay_ms=10, response_ms=4000, delay_ms=5,
)  # fmt: skip
"""Short where somebody waits for it, long where a busy machine would be taken for a dead one."""


class Village:
    """The directory, and who is in it."""

    def __init__(self, root: Path, times: Timings = TIMES) -> None:
        self.directory = AgentDirectory(str(root))
        self.times = times
        self.processes = FakeProcesses(1)
        self.notes = Notes()
        self.path = endpoint_path(leader_path(self.directory, "default"))
        self.lives: list[Life] = []
        self._threads = set(threading.enumerate())

    def ports(self, pid: int) -> Ports:
        return attrs.evolve(real_ports(self.notes), processes=self.processes.as_pid(pid, ticks=pid * 10))

    def life(self, pid: int, **more: Any) -> Life:
        """A member that was not entered."""
        life = Life(self, pid, **more)
        self.lives.append(life)
        return life

    async def enters(self, pid: int, **more: Any) -> Life:
        """A member that has not joined."""
        life = self.life(pid, **more)
        await life.member.__aenter__()
        return life

    async def joins(self, pid: int, **more: Any) -> Life:
        """A member."""
        life = await self.enters(pid, **more)
        await life.member.join()
        return life

    async def fleet(self, *pids: int) -> list[Life]:
        """A leader and its followers."""
        return [await self.joins(pid) for pid in pids]

    def lease(self, pid: int, **more: Any) -> LeaseRuntime:
        """Somebody who owns by other means, with an endpoint or not."""
        return LeaseRuntime(
            self.ports(pid), self.directory, "default", cwd="/elsewhere", timings=self.times, process=ProcessState(),
            **more,
        )  # fmt: skip

    @property
    def registry(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(Path(self.directory.registry).read_text())
        return found

    def faults(self) -> list[object]:
        """What should never have been raised."""
        return [*self.notes.said("fleet", "fault"), *self.notes.said("lock", "fault")]

    def _new_threads(self) -> set[threading.Thread]:
        return set(threading.enumerate()) - self._threads

    async def __aenter__(self) -> Village:
        return self

    async def __aexit__(self, kind: object, *error: object) -> None:
        for life in reversed(self.lives):
            if life.member._loop is not None:
                await life.member.__aexit__(None, None, None)
        if kind is None:
            await self.nothing_is_left()

    async def nothing_is_left(self) -> None:
        """No task, no thread, no socket. (Links stay: who comes next replaces them.)"""
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
        state = Path(self.directory.state)
        left = [str(path) for path in state.rglob("*") if path.is_socket()]
        assert not left, left
        await until(lambda: not [t for t in self._new_threads() if t.name.startswith("tenure") and t.is_alive()])
        assert self.faults() == []
        for life in self.lives:
            life.edges_alternate()


class Life:
    """One member, and what was told of it."""

    def __init__(self, village: Village, pid: int, **more: Any) -> None:
        self.pid = pid
        self.roles: list[Role] = []
        self.edges: list[bool] = []
        more.setdefault("process", ProcessState())
        more.setdefault("on_role", self.roles.append)
        more.setdefault("on_available", self.edges.append)
        self.member = Member(
            village.directory, ports=village.ports(pid), timings=more.pop("times", village.times), **more
        )

    @property
    def role(self) -> Role:
        return self.member.role

    @property
    def slot(self) -> str | None:
        found = self.role
        return found.slot if isinstance(found, Leading | Following) else None

    async def leads(self) -> Leading:
        await until(lambda: isinstance(self.role, Leading))
        assert isinstance(self.role, Leading)
        return self.role

    async def follows(self, leader: Life) -> Following:
        await until(lambda: isinstance(self.role, Following) and self.role.pid == leader.pid)
        assert isinstance(self.role, Following)
        return self.role

    async def is_in(self, phase: str) -> None:
        await until(lambda: self.member.phase == phase)

    def edges_alternate(self) -> None:
        assert self.edges == [number % 2 == 0 for number in range(len(self.edges))]


class Mute:
    """An endpoint that takes connections and says nothing."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.calls = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Mute:
        os.makedirs(os.path.dirname(self.path), exist_ok=True, mode=0o700)
        self._server = await asyncio.start_unix_server(self._serve, f"{self.path}.mute")
        os.symlink(f"{self.path}.mute", self.path)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        Path(f"{self.path}.mute").unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        self._writers.append(writer)
