"""The scenarios of bus.md b as stories of the twin with one guard off, and none of them with all guards on."""

from __future__ import annotations

import pytest

from tenure.models.explore import check
from tenure.models.follower_registration import CONFIGS, FollowerRegistration

LIVE = {"channel", "shell", "pair", "claim", "strangers", "foreign", "successor", "all"}
"""Configurations in which whoever lost its registration notices: heartbeats are looked at, or nobody loses one."""

SCENARIOS = {
    "B08-M1a-replaced-acts": (
        "generation_is_current",
        "RouteIsCurrent_I1_asked",
        "asks",
        ["Ask", "Leave", "Prune", "Perform"],
    ),
    "B10-M1b-unnamed": ("generation_named", "RouteIsCurrent_I1_asked", "asks", ["Ask", "Perform"]),
    "B11-M1c-too-early": ("registered_first", "RouteIsCurrent_I1", "all", ["Provisioned", "Forward", "Deliver"]),
    "B26-M2-two-routes": ("replaces_nobody", "OneRoutePerProfile_I2", "successor", ["Crash", "Restart", "Provisioned"]),
    "B17-M3-deposed": ("epoch_still_held", "RouteIsCurrent_I3", "all", ["HearRegister", "Depose", "Provisioned"]),
    "B62-M4a-M4b-order": (
        "nobody_mutates_profile",
        "RouteIsCurrent_L0",
        "intents",
        ["HearGoodbye", "Provisioned", "Delete"],
    ),
    "B20-M5-late-failure": ("beat_is_mine", "LateIsInert_I5", "all", ["Leave", "Register", "HearBeat"]),
    "M5-late-answer": ("answer_is_mine", "LateIsInert_I5", "all", ["Return", "Register", "HearAnswer"]),
    "M5-late-goodbye": (
        "goodbye_is_mine",
        "LateIsInert_I5",
        "intents",
        ["Disconnect", "Leave", "Disconnect", "HearGone"],
    ),
    "M6-piled-beats": ("one_beat_at_a_time", "LateIsInert_I6", "all", ["HearAnswer", "Beat"]),
    "B29-M9-odd": ("compatible", "RouteIsCurrent_I9", "strangers", ["Register", "HearRegister"]),
    "B14-M10-L12-old-stamp": ("stamped_anew", "RouteIsCurrent_V3_I10", "claim", ["Provisioned", "Prune"]),
    "M12-L15-overlap": ("one_at_a_time", "LateIsInert_I12", "all", ["Register", "Session", "Register"]),
    "B19-gone-and-routed": ("goodbye_confirmed", "LateIsInert_B19", "intents", ["Disconnect", "HearGone"]),
    "L0-returned": (
        "no_other_generation_holds",
        "RouteIsCurrent_L0",
        "intents",
        ["CleanUpFails", "Provisioned", "Delete"],
    ),
    "L0-replaced": (
        "no_other_instance_holds",
        "RouteIsCurrent_L0",
        "reload",
        ["CleanUpFails", "Reload", "Resume", "Delete"],
    ),
    "L14-echo": ("still_stands", "RouteIsCurrent_L14", "channel", ["Provisioned", "Prune", "HearRegister"]),
    "L16-named": ("target_not_held", "OneRoutePerProfile_L24", "claim", ["Provisioned", "Provisioned"]),
    "L16-refused-for-ever": ("target_may_be_kept", "EventuallyRegistered_V1", "claim", ["Provisioned", "HearAnswer"]),
    "L24-put-out": (
        "profile_not_held",
        "OneRoutePerProfile_L24",
        "shell",
        ["Provisioned", "HearRegister", "Provisioned"],
    ),
    "L24-refused-for-ever": ("own_key_when_held", "EventuallyRegistered_V1", "shell", ["HearRegister", "HearAnswer"]),
    "work-for-nobody": ("host_serves", "RouteIsCurrent_Host", "host", ["HearAnswer", "Host", "Deliver"]),
    "L25-dead-session": ("session_ends_registration", "LateIsInert_L25", "all", ["Register", "Session", "HearAnswer"]),
    "V3-cut-off": ("silent_too_long", "RouteIsCurrent_V3_I10", "claim", ["Provisioned", "Prune"]),
    "B59-deposed-deletes": ("clean_up_is_fenced", "RouteIsCurrent_L0", "deposed", ["Depose", "Provisioned", "Delete"]),
    "silence-deletes": ("death_is_proven", "RouteIsCurrent_Silence", "all", ["Provisioned", "Depose", "Bury"]),
}


@pytest.mark.parametrize(("guard", "property_", "config", "told"), SCENARIOS.values(), ids=list(SCENARIOS))
def test_without_its_guard_the_scenario_happens(guard: str, property_: str, config: str, told: list[str]) -> None:
    """The story goes through the steps that the scenario names, in their order."""
    violation = check(FollowerRegistration(CONFIGS[config], {guard}), [property_]).violations[property_]

    steps = iter([label[0] for label, _ in violation.story if label is not None])
    assert all(step in steps for step in told), violation.story


def test_m4c_an_old_goodbye_removes_its_successor() -> None:
    """M4c: where the order of the profile is away as well, the route that is removed is another registration's."""
    config, off = CONFIGS["intents"], {"clean_up_is_current", "nobody_mutates_profile"}
    story = check(FollowerRegistration(config, off), ["LateIsInert_I4"]).violations["LateIsInert_I4"].story
    before, after = story[-2][1], story[-1][1]

    assert [e.gen for e in before.route["L1"].entries] == [2]
    assert not after.route["L1"].entries
    for name in off:
        assert check(FollowerRegistration(config, {name}), ["LateIsInert_I4"]).violations == {}


def test_work_that_goes_astray() -> None:
    """I1: either of the two guards keeps it out of the wrong hands."""
    config, off = CONFIGS["shell"], {"addressed_to_me", "route_is_mine"}

    assert check(FollowerRegistration(config, off), ["RouteIsCurrent_I1"]).violations
    for name in off:
        assert check(FollowerRegistration(config, {name}), ["RouteIsCurrent_I1"]).violations == {}


@pytest.mark.parametrize("config", CONFIGS)
def test_with_all_guards_it_does_not(config: str) -> None:
    """Every property that the configuration checks holds on the whole graph."""
    world = FollowerRegistration(CONFIGS[config])
    asked = [*world.invariants(), *world.steps(), *(world.eventually() if config in LIVE else ())]

    assert check(world, asked).violations == {}


def test_a_successor_takes_the_thread_of_the_dead() -> None:
    """B22, annex A: the profile's thread is the successor's, whose process is another one."""
    graph = check(FollowerRegistration(CONFIGS["successor"]), []).graph
    taken = [s for s in graph.states if any(t.who == "b" and t.key == "shared" for t in s.threads)]

    assert taken
    assert all(s.outside["a"].up == "dead" for s in taken)


def test_both_live_processes_of_one_shell_are_registered() -> None:
    """L24: the second one under a key of its own, with a thread of its own."""
    graph = check(FollowerRegistration(CONFIGS["shell"]), []).graph
    both = [e for s in graph.states if len(e := s.route["L1"].entries) == 2]

    assert both
    for entries in both:
        assert {e.key for e in entries} in ({"shared", "a"}, {"shared", "b"})
        assert len({e.target for e in entries}) == 2
