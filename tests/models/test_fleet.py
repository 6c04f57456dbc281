"""The fleet as a whole: what its three machines promise together, and what happens when their driver keeps a word back.

Two or three processes; the whole of every configuration, compared with TLC, is `tenure verify`.
"""

from __future__ import annotations

import pytest

from tenure.models.explore import Graph, check, explore
from tenure.models.fleet import CONFIGS, Fleet
from tenure.models.fleet_state import Config, State, settled


@pytest.mark.parametrize("config", ["last", "pair", "again"])
def test_everything_holds(config: str) -> None:
    """All properties, in each configuration that a test can afford."""
    assert {} == check(Fleet(CONFIGS[config])).violations


def story(config: str, prop: str, off: str) -> tuple[list[str], list[State]]:
    """The shortest story in which `prop` breaks: actions and states."""
    outcome = check(Fleet(CONFIGS[config], {off}), [prop])
    assert prop in outcome.violations, f"{prop} holds without {off}"
    told = outcome.violations[prop].story
    return [label[0] for label, _ in told if label is not None], [state for _, state in told]


def test_a_deposed_leader_registers_a_follower() -> None:
    """I3, B17: it woke up, has not looked, and acts under the epoch that it remembers."""
    told, states = story("last", "OneLeader_I3", "epoch_is_read")

    assert ["Hang", "Wake", "Provisioned"] == [name for name in told if name in ("Hang", "Wake", "Provisioned")]
    assert states[-1].entry.owner != "L"
    assert states[-1].table["L"].routes


def test_a_hung_leader_keeps_the_followers_half() -> None:
    """K3: succession has given the call up, and nobody told the half that waits for its answer."""
    told, states = story("last", "EventuallySettled_V2", "leave_is_told")

    assert "See" in told
    assert states[-1].link["a"].phase != "idle"
    assert states[-1].node["a"].phase != "following"


def test_a_loss_that_nobody_heard_of() -> None:
    """A follower that was pruned follows nobody, and believes it does."""
    told, states = story("last", "EventuallySettled_V2", "loss_is_told")

    assert ["Prune", "Lose"] == told
    assert ("following", "idle") == (states[-1].node["a"].phase, states[-1].link["a"].phase)


def test_a_leader_whose_routes_never_opened() -> None:
    """The other follower registers with it for ever."""
    _, states = story("pair", "EventuallySettled_V7", "routes_open")

    leader = states[-1].entry.owner
    assert ("leading", 0) == (states[-1].node[leader].phase, states[-1].table[leader].epoch)


def test_a_leader_that_leads_again_with_the_routes_of_its_last_time() -> None:
    """They are another epoch's, and refuse everybody."""
    _, states = story("again", "EventuallySettled_V2", "routes_close")

    leader = states[-1].entry.owner
    assert 0 < states[-1].table[leader].epoch < states[-1].epoch


def test_a_failed_registration_that_nobody_heard_of() -> None:
    """A62: the leader was not ready when it was asked; when it is, no news says so."""
    told, states = story("again", "EventuallySettled_V2", "failure_is_told")

    assert "CallFails" in told
    assert ("asked", "idle") in [(states[-1].call[p].kind, states[-1].link[p].phase) for p in ("a", "b")]


def test_a_failed_promotion_that_nobody_heard_of() -> None:
    """K4, V14."""
    told, states = story("last", "EventuallySettled_V14", "end_is_told")

    assert told[-1] in ("StartFails", "Notice")
    assert states[-1].node["a"].phase in ("electing", "starting")


@pytest.fixture(scope="module")
def everything() -> Graph[State]:
    """The graph of two followers and any one fault."""
    return explore(Fleet(CONFIGS["all"]))


def test_where_nothing_is_left_to_do_the_fleet_is_settled(everything: Graph[State]) -> None:
    """V2: after any fault, when only faults and heartbeats could follow, exactly one live process leads, and every
    other live one is registered with it, by both halves; a process that hangs is as it is."""
    moves = {"Die", "Hang", "Wake", "Prune", "WorkFails", "StartFails", "Beat"}
    busy = {source for source, label, _ in everything.edges if everything.labels[label][0] not in moves}
    quiet = [state for number, state in enumerate(everything.states) if number not in busy]

    assert quiet
    for state in quiet:
        alive = [p for p in state.node if state.proc[p] == "up"]
        assert settled(state) or not alive or "hung" in state.proc.values(), state


def test_the_successor_is_the_lowest_slot_unless_it_was_slow(everything: Graph[State]) -> None:
    """A56: both come to lead somewhere, with the other one registered."""
    leaders = {state.entry.owner for state in everything.states if settled(state)}

    assert {"L", "a", "b"} == leaders


def test_a_follower_without_a_slot_leads_where_nobody_else_is_left() -> None:
    """Three processes, two deaths."""
    outcome = check(Fleet(Config(("a", "z"), frozenset({"die"}), 2)))

    assert {} == outcome.violations
    assert any(settled(state) and state.entry.owner == "z" for state in outcome.graph.states)
