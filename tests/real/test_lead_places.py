"""Guardian and supervisor killed at each step of a leadership: the next one goes on from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.real.conftest import Leads

GUARDIAN = (
    "before:WorkLock.take",
    "after:WorkLock.take",
    "before:Spare.ready",
    "before:WorkLock.write",
    "before:Spare.go",
    "after:Spare.go",
    "before:Charge.end",
    "before:Charge.over",
    "before:WorkLock.close",
    "before:Guardian._over",
    "after:Guardian._over",
)
SUPERVISOR = (
    "before:LeaseRuntime.acquire",
    "after:LeaseRuntime.acquire",
    "after:LeaseRuntime.refresh",
    "before:GuardedCommand.prepare",
    "before:GuardedCommand.start",
    "after:GuardedCommand.start",
    "after:LeaseRuntime.commit",
    "before:LeaseRuntime.release",
    "after:LeaseRuntime.release",
    "before:GuardedCommand.close",
)


def test_a_guardian_killed_at_each_step(leads: Leads) -> None:
    """COMMAND runs once, and its status is the status of the supervisor."""
    started = []
    for number, place in enumerate(GUARDIAN):
        room = leads.beside(str(number))
        started.append((place, room, room.shell("sleep 0.05; exit 5", die_at=place, lease=20)))
    for place, room, lead in started:
        assert lead.ends() == 5, (place, lead.said)
        assert (room.root / "died1").exists(), place
        assert len(room.runs) == 1, place
        assert room.entry() is None, place
    leads.until(lambda: not leads.processes())


def test_a_supervisor_killed_at_each_step(leads: Leads) -> None:
    """Whoever comes after it leads: with a higher epoch if one was given out, and never beside it."""
    started = []
    for number, place in enumerate(SUPERVISOR):
        room = leads.beside(str(number))
        started.append((place, room, room.shell("sleep 0.1", die_at=place, lease=20)))
    successors = []
    for place, room, victim in started:
        assert victim.ends() == 137, (place, victim.said)
        assert (room.root / "died1").exists(), place
        successors.append((place, room, room.shell("exit 5", lease=20)))
    for place, room, successor in successors:
        assert successor.ends() == 5, (place, successor.said)
        epochs = [epoch for epoch, _ in room.runs]
        assert epochs == sorted(set(epochs)), place
        assert not room.two, place
