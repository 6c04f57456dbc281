"""A record says when it was written: what it tells of may be of any moment since its node's record before."""

from __future__ import annotations

import pytest

from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.trace import tlc_trace
from tenure.adapters.trace.api import MemoryRecorder, assert_explained, explained
from tenure.adapters.trace.lines import Event
from tenure.adapters.trace.search import Limits

from .recorded import Town, find

QUICK = Limits(places=3_000, seconds=2)
"""What is not explained by then is not explained: what is, is in milliseconds."""


def race(looks: int, *, outside: bool = True) -> list[Event]:
    """203 comes and looks at what 201 does, acquire and release and acquire; then 202 takes over, and 203 looks again,
    outside of the guard or when it tries to acquire."""
    town = Town()
    first, second, third = town.lease(201), town.lease(202), town.lease(203)
    for number in range(looks):
        if number % 2:
            first.release()
        else:
            first.acquire("plain")
        third.look()
    town.kill(201)
    second.acquire("plain")
    if outside:
        third.look()
    third.acquire("plain")
    return town.recorder.events


def coming(events: list[Event], looks: int) -> list[int]:
    """Where 203 starts and looks."""
    return [find(events, "Start", "203"), *(find(events, "Look", "203", n) for n in range(looks))]


def late(events: list[Event], *places: int) -> MemoryRecorder:
    """These were recorded when 202 was inside already: at best they come after what it wrote there."""
    last = events[find(events, "Verify", "202")]
    after = [events[place] for place in places]
    where = events.index(last) + 1
    recorder = MemoryRecorder()
    recorder.events = [e for e in events[:where] if e not in after] + after + events[where:]
    for event in after:
        event.at = last.number
    for line, event in enumerate(recorder.events, 1):
        event.line = event.seq = event.t = line
    return recorder


@pytest.mark.parametrize("looks", [1, 2, 3])
@pytest.mark.parametrize("timely", [0, 1, 2])
def test_whoever_comes_during_a_takeover_is_explained(looks: int, timely: int) -> None:
    """It started and looked before the successor wrote, and was slow to record all of that, or all but the first."""
    events = race(looks)
    assert_explained(late(events, *coming(events, looks)[timely:]))


def test_a_look_that_shows_what_is_known_is_explained() -> None:
    """In the model it is no step; what it says was there all the same, and only then."""
    events = race(1)
    look = events[find(events, "Look", "203")]
    again = Event("memory", 0, look.module, "Look", look.node, 0, 0, 0, {}, look.observed)
    events.insert(events.index(look) + 1, again)
    assert_explained(late(events, events.index(again)))
    assert_explained(late(events, *coming(events, 2)))


def test_tlc_has_the_start_where_the_look_needs_it() -> None:
    """What was late stands in the literal trace where it was, in its order."""
    events = race(2)
    asked = tlc_trace.check(assert_explained(late(events, *coming(events, 2))), 100)
    assert asked.agrees, asked.message


@pytest.mark.parametrize("busy", [False, True])
def test_a_runtime_that_comes_to_a_process(busy: bool) -> None:
    """Its process has another runtime. What that one does is in its order with this one's start."""
    town, state = Town(), ProcessState()
    first, second, mate = town.lease(201), town.lease(202), town.lease(203, state=state, instance="203:1")
    first.acquire("plain")
    comer = town.lease(203, state=state, instance="203:2")
    comer.look()
    town.kill(201)
    second.acquire("plain")
    if busy:
        mate.look()
    events = town.recorder.events
    assert_explained(late(events, find(events, "Start", "203", 1), find(events, "Look", "203")))


def test_a_look_behind_one_that_saw_the_successor_is_refused() -> None:
    """It cannot have seen what was before that."""
    events = race(1)
    early, then = find(events, "Look", "203"), find(events, "Look", "203", 1)
    events[early].observed, events[then].observed = events[then].observed, events[early].observed
    assert not explained(late(events, *coming(events, 1)), limits=QUICK)


def test_a_look_behind_a_transaction_of_its_own_is_refused() -> None:
    """Likewise."""
    events = race(1, outside=False)
    seen = events[find(events, "Look", "203")]
    inside = events[find(events, "Look", "203", 1)]
    assert inside.number
    events.append(Event("memory", 0, seen.module, "Look", seen.node, 0, 0, inside.number, {}, seen.observed))
    assert_explained(late(events[:-1], *coming(events, 1)))
    assert not explained(late(events, *coming(events, 1)), limits=QUICK)


def test_a_look_at_what_never_was_is_refused() -> None:
    """However far back one looks."""
    events = race(3)
    look = events[find(events, "Look", "203", 1)]
    look.observed = {**look.observed, "owner": "202:1", "id": 1}
    assert not explained(late(events, *coming(events, 3)), limits=QUICK)


def test_looks_in_another_order_are_refused() -> None:
    """What was there first is not seen last."""
    events = race(3)
    _, one, _, other = (events[place] for place in coming(events, 3))
    one.observed, other.observed = other.observed, one.observed
    assert not explained(late(events, *coming(events, 3)), limits=QUICK)
