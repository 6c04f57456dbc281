"""A leader of the other system that evicts instead of refusing (L24)."""

from __future__ import annotations

from tenure.adapters.fleet.follower.evictions import Evictions

LEAD = "7:1"


def lost(evictions: Evictions, at_ms: int, *, after_ms: int = 1000, lead: str = LEAD) -> None:
    """A registration that was refused so long after it was acknowledged."""
    evictions.registered(lead, at_ms)
    evictions.refused(lead, at_ms + after_ms)


def test_one_loss_is_chance() -> None:
    """A registry that was begun anew costs nobody slot and thread."""
    evictions = Evictions(5000)
    lost(evictions, 0)
    assert not evictions.held_by_another(LEAD)


def test_two_in_a_row_are_another_process() -> None:
    """At that leader, and at no other."""
    evictions = Evictions(5000)
    lost(evictions, 0)
    lost(evictions, 2000)
    assert evictions.held_by_another(LEAD)
    assert not evictions.held_by_another("8:1")


def test_who_was_silent_was_not_evicted() -> None:
    """It may have been pruned; and a row that was broken begins anew."""
    evictions = Evictions(5000)
    lost(evictions, 0)
    lost(evictions, 2000, after_ms=5000)
    assert not evictions.held_by_another(LEAD)
    lost(evictions, 8000)
    assert not evictions.held_by_another(LEAD)
    lost(evictions, 10_000)
    assert evictions.held_by_another(LEAD)


def test_another_leader_has_evicted_nobody() -> None:
    """What it is blamed for begins with it."""
    evictions = Evictions(5000)
    lost(evictions, 0)
    lost(evictions, 2000, lead="8:1")
    lost(evictions, 4000)
    assert not evictions.held_by_another(LEAD)
    evictions.refused("8:1", 4001)
    assert not evictions.held_by_another("8:1")
