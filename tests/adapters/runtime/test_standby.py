"""Waiting for one's turn: a proven death is enough, a release and the end of a lease are seen by looking."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime, Won
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.processes import processes
from tenure.adapters.ports import Ports, Processes, Watch
from tenure.adapters.runtime.standby import Standby
from tenure.adapters.testing.memory import FakeProcesses
from tenure.machines.identity import Birth, Process, Sighting
from tests.adapters.runtime.leading_room import DIRECTORY, Room

LIMIT_MS = 20_000


def leading(room: Room, pid: int = 100) -> LeaseRuntime:
    lease = room.member(pid).lead.lease
    assert isinstance(lease.acquire("plain"), Won)
    return lease


# -- in virtual time --------------------------------------------------------------------------------------------------


def test_where_nobody_owns_there_is_nothing_to_wait_for() -> None:
    room = Room()
    standby = Standby(room.member(200).lead.lease)
    assert (True, 0, -1) == (standby.free, standby.due_ms(), standby.fileno())
    assert standby.wait()


def test_a_death_is_seen_by_the_next_look() -> None:
    """Where nothing tells it: four looks in the time of a check."""
    room = Room()
    leading(room)
    standby = Standby(room.member(200).lead.lease)
    assert 250 == standby.due_ms()
    assert not standby.wait(timeout_ms=1_000)
    room.processes.kill(100)
    began = room.clock.monotonic_ms()
    assert standby.wait()
    assert room.clock.monotonic_ms() - began <= 250


def test_a_release_is_seen_by_the_next_look() -> None:
    room = Room()
    holder = leading(room)
    standby = Standby(room.member(200).lead.lease)
    holder.release()
    assert not standby.free
    assert standby.look()


def test_the_end_of_the_lease_is_looked_at_when_it_comes() -> None:
    """Not at the next quarter of a check: exactly a lease old is not over, a millisecond older is."""
    room = Room()
    leading(room)
    room.clock.advance(7_900)
    standby = Standby(room.member(200).lead.lease)
    assert 101 == standby.due_ms()
    room.clock.advance(100)
    assert not standby.look()
    assert 1 == standby.due_ms()
    assert standby.wait()
    assert 8_001 == room.clock.monotonic_ms() - 1_000_000


def test_a_lease_that_is_renewed_is_waited_for_again() -> None:
    room = Room()
    holder = leading(room)
    room.clock.advance(7_900)
    standby = Standby(room.member(200).lead.lease)
    holder.refresh()
    room.clock.advance(101)
    assert not standby.look()
    assert 250 == standby.due_ms()


@pytest.mark.parametrize(
    ("text", "due_ms"),
    [
        ('{"default": {"pid": 100, "heartbeatMs": %d}}', 101),
        ('{"default": {"pid": 100, "heartbeatMs": %d.5}}', 101),
        ('{"default": {"pid": 100, "now": %d}}', 250),
    ],
)
def test_a_foreign_lease_is_looked_at_when_its_heartbeat_is_old(text: str, due_ms: int) -> None:
    """Its owner writes neither birth nor stamp, perhaps not even a heartbeat."""
    room = Room()
    room.files.make_directories(DIRECTORY.state)
    room.processes.start(100)
    room.files.create(DIRECTORY.registry, (text % (room.clock.wall - 7_900)).encode())
    standby = Standby(room.member(200).lead.lease)
    assert not standby.free
    assert due_ms == pytest.approx(standby.due_ms(), abs=1)


def test_who_takes_over_meanwhile_is_waited_for() -> None:
    room = Room()
    holder, third = leading(room), room.member(300).lead.lease
    standby = Standby(room.member(200).lead.lease)
    holder.release()
    third.acquire("plain")
    assert not standby.look()
    entry = standby.view.entry
    assert entry is not None
    assert 300 == entry.pid
    room.processes.kill(300)
    assert standby.look()


def test_a_registry_that_cannot_be_read_proves_nothing() -> None:
    room = Room()
    leading(room)
    room.files.data[DIRECTORY.registry] = b"[]"
    standby = Standby(room.member(200).lead.lease)
    assert not standby.free
    assert standby.due_ms() > 0
    assert not standby.wait(timeout_ms=2_000)


# -- with processes --------------------------------------------------------------------------------------------------


class Someone:
    """The processes of this machine, as one of them that is not us sees them."""

    def __init__(self, real: Processes, me: Process) -> None:
        self.real = real
        self._me = me

    def me(self) -> Process:
        return self._me

    def sighting(self, pid: int) -> Sighting:
        return self.real.sighting(pid)

    def watch(self, pid: int, birth: Birth | None) -> Watch | None:
        return self.real.watch(pid, birth)


def lease_of(directory: Path, ports: Ports) -> LeaseRuntime:
    return LeaseRuntime(ports, AgentDirectory(str(directory)), "default", cwd="/bot", process=ProcessState())


def held_by(child: subprocess.Popen[bytes], directory: Path, namespace: int | None = None) -> None:
    """The registry says that `child` leads."""
    real = processes()
    mine = real.me().birth
    ticks = real.sighting(child.pid).ticks
    assert ticks is not None
    birth = Birth(ticks, mine.boot_id, mine.namespace if namespace is None else namespace)
    ports = attrs.evolve(real_ports(), processes=Someone(real, Process(child.pid, birth)))
    assert isinstance(lease_of(directory, ports).acquire("plain"), Won)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


pidfd = pytest.mark.skipif(not hasattr(select, "poll") or sys.platform != "linux", reason="no pidfd here")


@pidfd
def test_a_killed_holder_is_told_by_a_descriptor(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """As a zombie: nobody has waited for it yet."""
    held_by(child, tmp_path)
    lease = lease_of(tmp_path, real_ports())
    with Standby(lease) as standby:
        assert ([], [], []) == select.select([standby], [], [], 0)
        child.kill()
        assert [standby] == select.select([standby], [], [], LIMIT_MS / 1000)[0]
        assert standby.look()
        assert -1 == standby.fileno()
        assert isinstance(lease.acquire("plain"), Won)


@pidfd
def test_waiting_ends_with_the_death(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    held_by(child, tmp_path)
    with Standby(lease_of(tmp_path, real_ports())) as standby:
        assert not standby.wait(timeout_ms=1)
        child.kill()
        assert standby.wait(LIMIT_MS)


@pidfd
def test_a_death_that_proves_nothing_is_no_reason_to_spin(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """The pid is that of another namespace's process here: only the lease counts."""
    held_by(child, tmp_path, namespace=1)
    with Standby(lease_of(tmp_path, real_ports())) as standby:
        child.kill()
        child.wait()
        assert not standby.look()
        assert not standby.look()
        assert -1 == standby.fileno()
        assert standby.due_ms() > 0


def test_without_a_descriptor_it_looks(tmp_path: Path) -> None:
    """A platform that has no pidfds, on a real directory and in real time."""
    fakes = FakeProcesses(100)
    holder = lease_of(tmp_path, attrs.evolve(real_ports(), processes=fakes))
    assert isinstance(holder.acquire("plain"), Won)
    waiting = lease_of(tmp_path, attrs.evolve(real_ports(), processes=fakes.as_pid(200)))
    with Standby(waiting) as standby:
        assert -1 == standby.fileno()
        fakes.kill(100)
        assert standby.wait(LIMIT_MS)
