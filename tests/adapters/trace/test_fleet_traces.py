"""Recordings of a fleet in which something is missing that may be: whoever does not record is environment."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from tenure.adapters.trace.api import explained
from tenure.adapters.trace.lines import Event
from tenure.models import follower_registration, succession
from tests.adapters.fleet.member_room import Village

from .fleet_recorded import FIRST, SECOND, THIRD, fleet
from .recorded import write

TWINS = {
    "Succession": succession.Succession(succession.CONFIGS["all"]),
    "FollowerRegistration": follower_registration.FollowerRegistration(follower_registration.CONFIGS["all"]),
}


def of(event: Event, *pids: int) -> bool:
    """Whether it is one of theirs."""
    return any(event.process.startswith(f"{pid}-") for pid in pids)


def within(events: list[Event]) -> list[Event]:
    """Without what a transaction of somebody else's shows of the guard."""
    return [copy.copy(event) for event in events if event.module != "FileTransaction"]


@pytest.mark.parametrize(
    "silent", [(FIRST,), (SECOND,), (THIRD,), (FIRST, SECOND), (FIRST, THIRD), (SECOND, THIRD)], ids=str
)
def test_members_that_do_not_record(silent: tuple[int, ...], tmp_path: Path) -> None:
    """They lead, follow, say and hear whatever is needed."""
    events = [event for event in within(fleet()) if not of(event, *silent)]
    verdict = explained(*write(events, tmp_path))
    assert verdict, str(verdict)
    assert {e.module for e in events} >= {"Succession", "FollowerRegistration"}


def test_nothing_but_registrations(tmp_path: Path) -> None:
    """Who owned is not recorded: then who opens leads."""
    events = [event for event in fleet() if event.module == "FollowerRegistration"]
    verdict = explained(*write(events, tmp_path))
    assert verdict, str(verdict)


def test_a_write_that_a_kill_has_swallowed(tmp_path: Path) -> None:
    """The second is killed in the moment in which it wrote the lease: the third finds it there, its process dead."""
    events = within(fleet())
    won = next(i for i, e in enumerate(events) if e.action == "Write" and of(e, SECOND) and e.observed)
    owner = f"{events[won].node.rpartition('/')[2]}#{events[won].tenure}"
    joined = next(i for i, e in enumerate(events) if of(e, THIRD) and e.action == "Hear")
    mine = [e for e in events[: joined + 1] if of(e, THIRD) and e.module == "Succession"]
    defers, rings = copy.copy(mine[-1]), copy.copy(mine[-1])
    for event, action, phase, lease, seen in (
        (defers, "See", "deferring", "inactive", None),
        (rings, "TimeUp", "electing", "stale", owner),
    ):
        event.action, event.at, event.t, event.args = action, events[won].at, events[won].t, {}
        event.observed = {**event.observed, "phase": phase, "lease": lease, "owner": seen, "published": 0}
    defers.observed = {**defers.observed, "roster": ["B", "C"]}
    rings.observed = {**defers.observed, **rings.observed, "roster": ["B", "C"], "deferred": True}
    mine[-1].observed = {**mine[-1].observed, "roster": ["B", "C"]}
    others = [e for e in events[:won] if not of(e, THIRD) and e.module in ("Succession", "LeaderElection")]
    verdict = explained(*write([*others, *mine, defers, rings], tmp_path))
    assert verdict, str(verdict)


@pytest.mark.parametrize("module", TWINS)
def test_events_are_steps_of_the_twin(module: str) -> None:
    """By its names, and as JSON."""
    events = [event for event in fleet() if event.module == module]
    assert {event.action for event in events} <= {action.name for action in TWINS[module].actions()}
    assert json.dumps([event.text() for event in events])


def test_without_a_recorder_nothing_is_made(tmp_path: Path) -> None:
    """A member that records nothing has nothing that could."""
    assert Village(tmp_path).life(FIRST).member.course._events is None
