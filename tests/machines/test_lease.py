"""When a lease is over, and what an entry is to a reader (locks.md 5; holes K2, K12)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.machines.entry import Entry
from tenure.machines.identity import GONE, RUNNING, UNKNOWN, Birth, Process, Sighting, proven_dead
from tenure.machines.lease import (
    ACTIVE_ELSEWHERE,
    ACTIVE_HERE,
    INACTIVE,
    MAX_EPOCH,
    STALE,
    STALE_HEARTBEAT_MS,
    Sight,
    admits,
    classify,
    next_epoch,
    over,
    supersedes,
)

BOOT = "boot"
ME = Process(7, Birth(100, BOOT, 1))
OTHER = Birth(200, BOOT, 1)
NOW, MONOTONIC = 1_000_000, 500_000
OURS = Entry(8, "/home", "8:1", NOW, 3, 1, birth=OTHER, stamp_ms=MONOTONIC)
FOREIGN = Entry(9, "/home", "9:1", NOW, "9f0c", 1)
MINE = Entry(7, "/home", "7:1", NOW, 3, 5, birth=ME.birth, stamp_ms=MONOTONIC)
LIVE = Sighting(RUNNING, 200)


def sight(entry: Entry | None, seen: Sighting = LIVE, wall: int = 0, monotonic: int = 0, unchanged: int = 0) -> Sight:
    """`entry` seen some ms later by each clock."""
    return Sight(True, True, "default", entry, seen, NOW + wall, MONOTONIC + monotonic, unchanged)


def state(seen: Sight) -> str:
    return classify(seen.entry, seen, ME, STALE_HEARTBEAT_MS)


LIMIT = STALE_HEARTBEAT_MS


@pytest.mark.parametrize(
    ("expected", "seen"),
    [
        (INACTIVE, sight(None)),
        (ACTIVE_ELSEWHERE, sight(OURS)),
        (ACTIVE_ELSEWHERE, sight(OURS, monotonic=LIMIT)),
        (STALE, sight(OURS, monotonic=LIMIT + 1)),
        (ACTIVE_ELSEWHERE, sight(OURS, wall=LIMIT + 1)),  # the clock was set forward, or the laptop slept
        (STALE, sight(OURS, wall=-LIMIT * 9, monotonic=LIMIT + 1)),  # set back: the stamp still tells (K12)
        (STALE, sight(OURS, Sighting(GONE))),
        (STALE, sight(OURS, Sighting(RUNNING, 201))),  # its pid belongs to somebody else
        (ACTIVE_ELSEWHERE, sight(OURS, Sighting(UNKNOWN))),
        (STALE, sight(attrs.evolve(OURS, birth=Birth(200, "last boot", 1)))),
        (ACTIVE_ELSEWHERE, sight(FOREIGN)),
        (ACTIVE_ELSEWHERE, sight(FOREIGN, wall=LIMIT)),
        (STALE, sight(FOREIGN, wall=LIMIT + 1)),
        (STALE, sight(FOREIGN, Sighting(GONE))),
        (ACTIVE_ELSEWHERE, sight(attrs.evolve(FOREIGN, heartbeat_ms=None), wall=10**12)),
        (ACTIVE_ELSEWHERE, sight(FOREIGN, wall=-LIMIT - 1, unchanged=LIMIT)),  # from the future
        (STALE, sight(FOREIGN, wall=-LIMIT - 1, unchanged=LIMIT + 1)),  # ... and not renewed while I watched (K12)
        (ACTIVE_HERE, sight(MINE, Sighting(RUNNING, 100), monotonic=LIMIT * 9)),
        (STALE, sight(attrs.evolve(MINE, birth=Birth(99, BOOT, 1)), Sighting(RUNNING, 100))),  # had my pid (K2)
        (ACTIVE_ELSEWHERE, sight(attrs.evolve(FOREIGN, pid=7), Sighting(RUNNING, 100))),
    ],
)
def test_what_an_entry_is(expected: str, seen: Sight) -> None:
    """The table of locks.md 5, with births and stamps."""
    assert expected == state(seen)


clock = st.integers(-3 * LIMIT, 3 * LIMIT)
seen_entries = st.sampled_from([OURS, FOREIGN, MINE, attrs.evolve(MINE, birth=None), attrs.evolve(OURS, stamp_ms=None)])
sightings = st.sampled_from([LIVE, Sighting(RUNNING, 100), Sighting(GONE), Sighting(UNKNOWN)])
sights = st.builds(sight, st.none() | seen_entries, sightings, clock, clock, st.integers(0, 2 * LIMIT))


@given(sights, clock)
def test_the_wall_clock_says_nothing_of_our_leases(seen: Sight, step: int) -> None:
    """A step of the wall clock changes nothing for an entry that has a stamp of this boot."""
    if seen.entry is not None and seen.entry.stamp_ms is not None:
        assert state(seen) == state(attrs.evolve(seen, wall_ms=seen.wall_ms + step))


@given(sights)
def test_stale_needs_proof(seen: Sight) -> None:
    """An entry is stale for one of two reasons only: a proven death, or a lease that is over and not of my process."""
    found = state(seen)
    if found == STALE:
        assert seen.entry is not None
        assert proven_dead(seen.entry.birth, seen.seen, ME) or over(seen.entry, seen, ME, LIMIT)


@pytest.mark.parametrize(
    ("expected", "entry", "cwd", "generation"),
    [
        (True, MINE, "/home", 6),
        (False, MINE, "/home", 5),
        (False, MINE, "/home", 4),
        (False, MINE, "/elsewhere", 6),
        (True, attrs.evolve(MINE, cwd=None), "/elsewhere", 6),
        (False, OURS, "/home", 6),
        (False, attrs.evolve(MINE, birth=Birth(99, BOOT, 1)), "/home", 6),
    ],
)
def test_only_the_newer_runtime_of_my_process_supersedes(
    expected: bool, entry: Entry, cwd: str, generation: int
) -> None:
    """A larger generation, this very process, the same directory (S18, A07)."""
    assert expected == supersedes(entry, ME, cwd, generation)


@given(st.integers(0, MAX_EPOCH - 1), st.none() | st.integers(0, MAX_EPOCH - 1) | st.text(max_size=3))
def test_an_epoch_is_new(high_water: int, epoch: int | str | None) -> None:
    """Above the mark and above an integer in the entry; strings have no order and are passed over (A10)."""
    minted = next_epoch(high_water, epoch)

    assert minted > high_water
    assert not isinstance(epoch, int) or minted > epoch
    assert minted <= MAX_EPOCH


def test_a_resource_takes_no_older_tenure() -> None:
    """The same tenure may act again, a newer one too, an older one never."""
    assert [True, True, False] == [admits(3, epoch) for epoch in (3, 4, 2)]
