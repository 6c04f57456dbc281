"""Recordings of a fleet in which something is missing that may be: whoever does not record is environment."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path

import attrs
import pytest

from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.trace.api import explained
from tenure.adapters.trace.lines import Event
from tenure.adapters.trace.polling_world import Several
from tenure.models import follower_registration, succession
from tenure.models.polling_ownership import ALONE, Config
from tenure.models.world import FrozenMap
from tests.adapters.fleet.fleet_room import run
from tests.adapters.fleet.member_room import Village

from .fleet_recorded import FIRST, SECOND, THIRD, RecordedVillage, fleet
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


# -- one process, many members ----------------------------------------------------------------------------------------


def room(path: Path, name: str) -> Path:
    """A directory of its own."""
    (path / name).mkdir()
    return path / name


def chain(root: Path, members: int, *, follow: bool) -> list[Event]:
    """Of a process that joins so often, one member after the other: beside a leader, or alone."""
    events: list[Event] = []

    async def story() -> None:
        village, state = RecordedVillage(root), ProcessState()
        async with village:
            first = await village.joins(FIRST) if follow else None
            for number in range(members):
                life = await village.joins(SECOND, process=state)
                await (life.leads() if first is None else life.follows(first))
                assert await life.member.leave(goodbye=number % 2 == 0) == ""
        events.extend(village.recorder.events)

    run(story())
    return events


@pytest.mark.parametrize("follow", [True, False], ids=["following", "leading"])
@pytest.mark.parametrize("members", [1, 2, 3, 6])
def test_one_process_joins_again_and_again(members: int, follow: bool, tmp_path: Path) -> None:
    """Any number of runtimes of one process, each after the one before."""
    events = chain(room(tmp_path, "fleet"), members, follow=follow)
    assert len({e.node for e in events if e.module == "PollingOwnership" and of(e, SECOND)}) == members
    verdict = explained(*write(events, room(tmp_path, "trace")))
    assert verdict, str(verdict)


def test_each_of_many_is_held_against_the_model() -> None:
    """Nobody acts before it is there, a successor takes what the one before it owns, and only that direction; who has a
    successor is superseded."""
    world = Several(Config(("1", "2", "3"), frozenset({"start", "reload"}), 9))
    does = {action.name: action.body for action in world.actions()}
    (state,) = world.initial()
    assert list(does["Start"](state, "2")) == list(does["Supersede"](state, "1")) == []
    (state,) = does["Start"](state, "1")
    (state,) = does["Acquire"](state, "1", "plain")
    for _ in range(2):
        (state,) = does["Reload"](state)
    assert list(does["Reload"](state)) == []
    assert list(does["Start"](state, "3")) == []  # the first is not over yet
    asked = attrs.evolve(ALONE, calls=frozenset({"plain"}))
    state = attrs.evolve(state, outside=FrozenMap(dict.fromkeys(state.node, asked)))
    (owned,) = does["Acquire"](state, "3", "plain")
    (denied,) = does["Acquire"](owned, "2", "plain")
    assert (state.entry.owner, owned.entry.owner, denied.entry.owner) == ("1", "3", "3")
    assert list(does["Supersede"](owned, "1"))
    assert list(does["Supersede"](owned, "3")) == []
    assert list(does["Expire"](attrs.evolve(owned, paused=True)))


def test_a_leader_that_lost_its_lease_registers_with_what_it_had(tmp_path: Path) -> None:
    """It was no follower before: what it carries to its successor is not what it remembers as one."""
    events: list[Event] = []

    async def story() -> None:
        village = RecordedVillage(room(tmp_path, "fleet"))
        async with village:
            first = await village.joins(FIRST)
            second = await village.joins(SECOND)
            await asyncio.to_thread(first.member.lease.release)
            await second.leads()
            await first.follows(second)
        events.extend(village.recorder.events)

    run(story())
    verdict = explained(*write(events, room(tmp_path, "trace")))
    assert verdict, str(verdict)
