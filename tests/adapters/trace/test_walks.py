"""Traces of random walks on the twins are explained, and most that are doctored are not."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tenure.adapters.trace.check import check
from tenure.adapters.trace.lines import Event, Trace
from tenure.adapters.trace.search import Limits

from .walks import Recording, walk_guard, walk_lease, walk_polling

WALKS: dict[str, Callable[[int], tuple[Recording, random.Random]]] = {
    "guard": lambda seed: walk_guard(seed, 400, chatty=0),
    "lease": lambda seed: walk_lease(seed, 250),
    "polling": lambda seed: walk_polling(seed, 200),
    "polling by many": lambda seed: walk_polling(seed, 200, ("1", "2", "3", "4", "5")),
}
LIMITS = Limits(places=30_000, seconds=20)


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("seed", range(8))
def test_a_walk_is_explained(walk: str, seed: int) -> None:
    """Whatever the twin did, with crashes, lost last lines and steps that nobody recorded."""
    recording, rng = WALKS[walk](seed)
    verdict = check(recording.trace(rng), LIMITS)
    assert verdict, str(verdict)


@pytest.mark.parametrize("seed", range(4))
def test_a_walk_that_records_every_step_is_explained(seed: int) -> None:
    """Nothing left out, nothing inside but what is needed: the order outside of transactions is found again."""
    recording, rng = walk_guard(seed, 150, chatty=1)
    verdict = check(recording.trace(rng), LIMITS)
    assert verdict, str(verdict)


def renumbered(events: list[Event]) -> Trace:
    """The events, with their files' numbers repaired: only the model can tell."""
    last: dict[str, int] = {}
    for event in events:
        last[event.file] = event.seq = last.get(event.file, 0) + 1
    return Trace(events)


def drop(events: list[Event], rng: random.Random) -> None:
    """One that is not the last of its file."""
    files: dict[str, list[Event]] = {}
    for event in events:
        files.setdefault(event.file, []).append(event)
    events.remove(rng.choice([e for mine in files.values() for e in mine[:-1]]))


def swap(events: list[Event], rng: random.Random) -> None:
    """Two neighbours of one file, with different actions."""
    pairs = [
        (i, i + 1)
        for i in range(len(events) - 1)
        if events[i].file == events[i + 1].file and events[i].action != events[i + 1].action
    ]
    one, two = rng.choice(pairs)
    events[one], events[two] = events[two], events[one]


def forge(events: list[Event], rng: random.Random) -> None:
    """The epoch of one is another."""
    event = rng.choice([e for e in events if isinstance(e.tenure, int)])
    assert isinstance(event.tenure, int)
    event.tenure += rng.choice((-10, 10))


@pytest.mark.parametrize(("doctor", "least"), [(drop, 4), (swap, 4), (forge, 6)])
def test_most_doctored_leases_are_refused(doctor: Callable[[list[Event], random.Random], None], least: int) -> None:
    """Of six, so many: what is left may really have been."""
    refused = 0
    for seed in range(6):
        recording, rng = walk_lease(seed, 300, chatty=1)
        events = list(recording.trace(rng).events)
        doctor(events, rng)
        refused += not check(renumbered(events), Limits(places=3_000, seconds=3))
        if refused >= least:
            return  # the others are looked at only where they matter: what nothing explains takes longest
    pytest.fail(f"only {refused} are refused")
