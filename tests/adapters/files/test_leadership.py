"""Leading in memory, in virtual time: locks.md 9, scenarios A35 to A52, holes K6, K8, K11, K17."""

from __future__ import annotations

from tenure.adapters.files.outcomes import Elected, Lost, Over, Refused
from tests.adapters.files.leading_room import Room


def test_the_first_leads_the_second_is_refused_with_the_owner_it_may_take_over() -> None:
    """locks.md 9.1: refused, canTakeover, owner text `pid N, cwd P`."""
    room = Room()
    first, second = room.member(100, cwd="/first"), room.member(200)
    assert Elected(1) == first.lead.acquire()
    assert ["prepare", "start"] == first.work.heard
    refused = second.lead.acquire()
    assert isinstance(refused, Refused)
    assert refused.can_takeover
    assert "pid 100, cwd /first" == refused.text
    assert [] == second.work.heard


def test_release_stops_the_work_and_frees_the_lease() -> None:
    room = Room()
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    assert Over() == first.lead.release()
    assert ["prepare", "start", "clean_up", "stop"] == first.work.heard
    assert Elected(2) == second.lead.acquire()


def test_a_displaced_leader_stops_by_its_next_check() -> None:
    """V11, S29: who was taken over from by force notices, stops, and says so."""
    room = Room()
    first, second = room.member(100), room.member(200)
    first.lead.acquire()
    refused = second.lead.acquire()
    assert isinstance(refused, Refused)
    assert Elected(2) == second.lead.acquire(force=refused.owner)
    room.run(1_000)
    assert not first.work.running
    assert Lost(1, passed=False) == first.told[-1]
    assert "idle" == first.lead.phase
