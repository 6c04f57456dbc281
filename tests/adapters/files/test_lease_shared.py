"""One runtime in several threads, in a fork, and in a recording."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.high_water import MarkDamaged
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime, Won
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.ports import Recorder
from tenure.adapters.testing.memory import FakeProcesses
from tenure.adapters.trace.api import MemoryRecorder, assert_explained

from .lease_house import House, foreign, held, owner, won


def test_threads_of_one_runtime(tmp_path: Path) -> None:
    """Operations of several threads come one after the other, each whole."""
    house = House(PosixFiles(), str(tmp_path))
    ports = real_ports()
    dweller = house.process(1)
    dweller.ports = ports
    lease = dweller.lease()
    won(lease)
    count = tmp_path / "count"
    count.write_text("0")
    errors: list[BaseException] = []

    def bump(epoch: int) -> None:
        count.write_text(str(int(count.read_text()) + 1))

    def work() -> None:
        try:
            for _ in range(15):
                lease.commit(bump)
                assert "mine" == lease.refresh()
                assert "mine" == lease.check()
                assert lease.may_send() == 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == errors
    assert "60" == count.read_text()


def test_waiting_for_the_guard_keeps_nobody_from_asking(house: House) -> None:
    """K6: a refresh that waits does not stop what asks whether it may send."""
    answers: list[int | None] = []
    lease_of: list[LeaseRuntime] = []

    def ask() -> None:
        answers.append(lease_of[0].may_send())

    def asked_elsewhere(duration_ms: float) -> None:
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(timeout=5)
        house.clock.advance(duration_ms)

    lease = house.process(1).lease()
    lease_of.append(lease)
    won(lease)
    other = house.process(2).lease("work")

    def effect(epoch: int) -> None:
        house.clock.on_sleep = lambda ms: (setattr(house.clock, "on_sleep", None), asked_elsewhere(ms))  # type: ignore[func-returns-value]
        assert "unknown" == lease.refresh()

    won(other)
    other.commit(effect)
    assert [1] == answers


def test_a_fork_owns_nothing() -> None:
    """Its memory is its parent's, its process is another."""
    house = House()
    dweller = house.process(1)
    lease = dweller.lease()
    won(lease)
    text = house.text()
    child = FakeProcesses(2, 1, house.first.table)
    object.__setattr__(lease.ports, "processes", child)
    with pytest.raises(TenureError, match="of process 1"):
        lease.release()
    assert ("unknown", text) == (lease.refresh(), house.text())
    assert ("other", None, True) == (lease.check(), lease.may_send(), lease.lease_passed())


class Kept:
    """A recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, int]] = []
        self.count = 0

    def order(self) -> int:
        self.count += 1
        return self.count

    def event(
        self,
        module: str,
        action: str,
        node: str,
        number: int,
        args: Mapping[str, object] | None = None,
        observed: Mapping[str, object] | None = None,
        tenure: object = None,
    ) -> None:
        if module == "LeaderElection":
            self.events.append((action, node, number))


def recorded(ask: Callable[[LeaseRuntime, House], object]) -> list[str]:
    """What is recorded of `ask`, the start apart."""
    house, kept = House(), Kept()
    recorder: Recorder = kept
    dweller = house.process(1, recorder=recorder)
    lease = dweller.lease()
    assert [("Start", lease.node, 0)] == kept.events
    ask(lease, house)
    assert {lease.node} == {node for _, node, _ in kept.events}
    return [action for action, _, _ in kept.events[1:]]


def test_what_is_recorded_is_what_the_twin_calls_it() -> None:
    """DESIGN 8: the twin's actions in their order; nothing of what changes nothing, a refresh in one event."""
    acquired = ["Acquire", "Mint", "Raise", "Write"]

    def all_of_it(lease: LeaseRuntime, house: House) -> None:
        won(lease)
        lease.refresh()
        lease.commit(lambda epoch: None)
        lease.look()
        lease.release()

    assert [*acquired, "Write", "Commit", "Land", "Release", "Write"] == recorded(all_of_it)

    def displaced(lease: LeaseRuntime, house: House) -> None:
        won(lease)
        foreign(house)
        lease.refresh()
        held(lease)
        lease.look()

    assert [*acquired, "Displaced", "Look"] == recorded(displaced)

    def resumed(lease: LeaseRuntime, house: House) -> None:
        won(house.process(2).lease())
        shown = owner(house)
        house.die(2)
        assert isinstance(lease.acquire("resume", shown), Won)

    assert ["Look", "Resume", *acquired[1:]] == recorded(resumed)

    def damaged(lease: LeaseRuntime, house: House) -> None:
        house.make_state()
        house.inner.create(house.directory.high_water, b"")
        with pytest.raises(MarkDamaged):
            lease.acquire("plain")

    assert ["Acquire", "Abandon"] == recorded(damaged)


def test_all_events_of_a_transaction_have_its_number() -> None:
    """DESIGN 8: numbered inside."""
    house, kept = House(), Kept()
    lease = house.process(1, recorder=kept).lease()
    won(lease)
    lease.refresh()
    lease.look()

    assert [0, 1, 1, 1, 1, 2] == [number for _, _, number in kept.events]


def test_a_recorded_resume_is_explained() -> None:
    """Of what a dead process left, and of what an older runtime has."""
    house, recorder = House(), MemoryRecorder()
    gone, dweller = house.process(1, recorder=recorder).lease(), house.process(2, recorder=recorder)
    old, new = dweller.lease(), dweller.lease()
    won(gone)
    shown = owner(house)
    house.die(1)
    assert isinstance(old.acquire("resume", shown), Won)
    assert isinstance(new.acquire("resume", owner(house)), Won)
    assert_explained(recorder)
