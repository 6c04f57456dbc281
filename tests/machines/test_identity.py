"""Who somebody is, and when somebody is dead (locks.md 2.1, 3.4; holes K1, K2, K14)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.machines.identity import (
    GONE,
    RUNNING,
    UNKNOWN,
    ZOMBIE,
    Birth,
    Owner,
    Process,
    Sighting,
    is_me,
    next_generation,
    proven_dead,
    same_owner,
    under_my_pid,
)

ME = Process(7, Birth(100, "this boot", 1))
OWNER = Owner(7, "/home", "7:1", 3, 1)

births = st.builds(
    Birth, st.sampled_from([100, 101]), st.sampled_from(["this boot", "last boot"]), st.sampled_from([1, 2])
)
sightings = st.builds(Sighting, st.sampled_from([RUNNING, ZOMBIE, GONE, UNKNOWN]), st.sampled_from([None, 100, 101]))


@pytest.mark.parametrize("field", [field.name for field in attrs.fields(Owner)])
def test_every_field_of_an_owner_counts(field: str) -> None:
    """Two owners that differ in any one of the five fields, absence included, are two (A08: equal instance ids)."""
    assert same_owner(OWNER, attrs.evolve(OWNER))
    assert not same_owner(OWNER, attrs.evolve(OWNER, **{field: 99 if field != "cwd" else None}))


def test_nobody_is_never_the_same() -> None:
    """An absent entry or an absent expectation matches nothing, not even another absence."""
    assert not same_owner(None, OWNER)
    assert not same_owner(OWNER, None)
    assert not same_owner(None, None)


def test_epochs_of_two_types_are_two() -> None:
    """The number 1 is not the string "1"."""
    assert not same_owner(attrs.evolve(OWNER, leader_epoch=1), attrs.evolve(OWNER, leader_epoch="1"))


@pytest.mark.parametrize(
    ("birth", "seen", "dead"),
    [
        (ME.birth, Sighting(RUNNING, 100), False),
        (ME.birth, Sighting(RUNNING, 101), True),
        (ME.birth, Sighting(RUNNING, None), False),
        (ME.birth, Sighting(UNKNOWN), False),
        (ME.birth, Sighting(GONE), True),
        (ME.birth, Sighting(ZOMBIE, 100), True),
        (Birth(100, "last boot", 1), Sighting(RUNNING, 100), True),
        (Birth(100, "this boot", 2), Sighting(GONE), False),
        (None, Sighting(RUNNING, 101), False),
        (None, Sighting(GONE), True),
        (None, Sighting(ZOMBIE), True),
        (None, Sighting(UNKNOWN), False),
    ],
)
def test_what_proves_a_death(birth: Birth | None, seen: Sighting, dead: bool) -> None:
    """Absence, a zombie, another birth, another boot do; silence and another pid namespace do not."""
    assert dead == proven_dead(birth, seen, ME)


@given(births, sightings)
def test_i_am_never_dead(birth: Birth, seen: Sighting) -> None:
    """Whoever is this very process, sighted as itself, is alive and here."""
    if is_me(ME.pid, birth, ME):
        assert under_my_pid(ME.pid, birth, ME)
        assert not proven_dead(birth, Sighting(RUNNING, ME.birth.ticks), ME)


def test_a_record_without_birth_is_not_mine() -> None:
    """I write my birth, so a foreign entry that names my pid is somebody else's."""
    assert not under_my_pid(ME.pid, None, ME)


@given(st.integers(), st.lists(st.integers(), min_size=1))
def test_generations_only_grow(first: int, clocks: list[int]) -> None:
    """Whatever the clock does, each runtime of a process is newer than the one before it (S19)."""
    previous = first
    for clock in clocks:
        assert next_generation(clock, previous) > previous
        previous = next_generation(clock, previous)
