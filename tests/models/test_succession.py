"""The closed world of succession: its promises, and the faults of the field that each guard keeps out.

The whole of every configuration, compared with TLC, is `tenure verify`; here are the kinds of fault, one test each.
"""

from __future__ import annotations

import pytest

from tenure.models.explore import Graph, check, explore
from tenure.models.succession import CONFIGS, Succession
from tenure.models.succession_state import Config, State

Told = list[tuple[str, object]]


def story(config: str, prop: str, *off: str) -> tuple[Told, list[State]]:
    """The shortest story in which `prop` breaks: actions with whose they are, and states."""
    outcome = check(Succession(CONFIGS[config], off), [prop])
    assert prop in outcome.violations, f"{prop} holds without {', '.join(off)}"
    told = outcome.violations[prop].story
    return [(label[0], label[1][:1]) for label, _ in told if label is not None], [state for _, state in told]


def names(told: Told) -> list[str]:
    """The actions alone."""
    return [name for name, _ in told]


@pytest.mark.parametrize("config", [name for name in CONFIGS if name != "all"])
def test_everything_holds(config: str) -> None:
    """All properties, in each configuration that a test can afford."""
    assert {} == check(Succession(CONFIGS[config])).violations


def test_a_refreshed_leader_is_evicted() -> None:
    """A49: between the look and the election the leader woke up and refreshed."""
    told, states = story("alone", "OneWinner", "still_over")

    assert ["Hang", "Expire", "Wake", "Win"] == [n for n in names(told) if n in ("Hang", "Expire", "Wake", "Win")]
    assert ("up", "L") == (states[-1].proc["L"], states[-3].entry.owner)


def test_somebody_who_was_not_seen_is_replaced() -> None:
    """A50, I8: the entry at the commit is another one than the entry of the look."""
    _, states = story("alone", "NoPromotionOverLive_I8", "still_the_one_seen")

    assert states[-2].entry.owner != states[-2].call["a"].to


def test_an_unreachable_endpoint_is_enough() -> None:
    """B01, S31, I7: with a live leader, whose lease nothing but the follower's look protects."""
    told, states = story("alone", "NoPromotionOverLive_S31", "leader_is_gone", "still_over")

    assert "Expire" not in names(told)
    assert ("up", "L") == (states[-2].proc["L"], states[-2].entry.owner)


def test_a_leader_that_hangs_holds_its_followers_up() -> None:
    """K3, V5: its socket accepts, the call never answers, the lease has passed."""
    told, states = story("alone", "EventuallyOneLeader_V5", "look_outranks_call")

    assert "Hang" in names(told)
    assert ("registering", "hung") == (states[-1].node["a"].phase, states[-1].proc["L"])


def test_a_promotion_that_failed_strands_the_follower() -> None:
    """K4, V14: it has won, its start raised, and nobody is left to lead."""
    told, states = story("alone", "EventuallyOneLeader_V14", "failure_is_retried")

    assert names(told)[-1] in ("ElectFails", "StartFails")
    assert states[-1].node["a"].phase in ("electing", "starting")
    assert ("none", "off") == (states[-1].call["a"].kind, states[-1].timer["a"])


def test_the_loser_of_an_election_is_stranded() -> None:
    """A52, V7."""
    _, states = story("pair", "EventuallyOneLeader_V7", "loser_comes_back")
    stranded = [p for p, node in states[-1].node.items() if node.phase == "electing"]

    assert stranded
    assert {"none"} == {states[-1].call[p].kind for p in stranded}


def test_a_retry_that_was_dropped_with_its_session() -> None:
    """A53: no look said anything, or there was no session; nothing is tried again."""
    _, states = story("reload", "EventuallyOneLeader_V8", "tries_again")

    assert "off" == states[-1].timer["a"]
    assert states[-1].node["a"].phase in ("grace", "waiting")


def test_an_election_for_a_session_that_has_ended() -> None:
    """A53: it comes to nothing, also when another session begins."""
    told, states = story("session", "EventuallyOneLeader_V4", "session_is_live")

    assert "ChangeSession" in names(told)
    assert not states[-1].call["a"].live


def test_a_follower_without_its_thread() -> None:
    """A55: asked for its binding after its registration was cleared."""
    told, states = story("alone", "EventuallyOneLeader_V8", "binding_is_known")

    assert "HearNothing" in names(told)
    assert "own" != states[-1].node["a"].bound


def test_all_stand_at_once() -> None:
    """A56: an election storm."""
    _, states = story("pair", "OneWinner_A56", "nobody_before_me")

    assert ["electing", "electing"] == [node.phase for node in states[-1].node.values()]


def test_all_wait_for_a_favourite_that_is_dead() -> None:
    """A56, V6."""
    told, states = story("slotless", "EventuallyOneLeader_V6", "one_grace_is_enough")

    assert "deferring" == states[-1].node["z"].phase
    assert "TimeUp" in names(told)


def test_the_loser_has_destroyed_its_record() -> None:
    """S32, B04: the binding moved before the election was won."""
    _, states = story("alone", "BindingMovesAfterWinning_S32", "won_first")

    assert ("leader", "L") == (states[-1].record["a"], states[-1].entry.owner)


def test_a_late_word_of_a_leader_that_was_given_up() -> None:
    """I5: its follower believes to be registered with the winner."""
    told, states = story("late", "LateIsInert_I5", "asked_of_this_leader")

    assert "AnsweredLate" == names(told)[-1]
    assert not any(states[-1].route.values())


@pytest.mark.parametrize("guard", ["leader_is_gone", "another_leader"])
def test_a_healthy_registration_is_dropped_for_a_look(guard: str) -> None:
    """Nothing had happened."""
    told, _ = story("alone", "LateIsInert_Healthy", guard)

    assert ["See"] == names(told)


def test_a_leader_that_refuses_is_hammered() -> None:
    """Asked again before a grace has gone by."""
    told, _ = story("reload", "LateIsInert_Pause", "something_new")

    assert "See" == names(told)[-1]


@pytest.fixture(scope="module")
def everything() -> Graph[State]:
    """The graph of the pair."""
    return explore(Succession(CONFIGS["pair"]))


def test_the_lowest_slot_leads_and_the_other_follows_it(everything: Graph[State]) -> None:
    """V4, V7: and the other way round where the lowest was slow, failed or died."""
    led = {
        (p, q)
        for state in everything.states
        for p, q in (("a", "b"), ("b", "a"))
        if state.node[p].phase == "leading" and state.node[q].leader == p and state.node[q].phase == "following"
    }
    assert {("a", "b"), ("b", "a")} == led


def test_winners_follow_each_other(everything: Graph[State]) -> None:
    """L dies, one leads and dies, the other leads: a composition of winners."""
    assert any(
        [state.proc[x] for x in ("L", "a")] == ["dead", "dead"] and state.node["b"].phase == "leading"
        for state in everything.states
    )


def test_a_call_goes_astray_and_is_given_up(everything: Graph[State]) -> None:
    """K3: the winner is seen before its endpoint; until then the one that hangs accepts."""
    astray = [s for s in everything.states if any((n.phase, n.endpoint) == ("registering", 2) for n in s.node.values())]
    assert any(s.serving and s.proc["L"] == "hung" for s in astray)
    assert any(
        s.proc["L"] == "hung" and s.entry.owner == "a" and s.node["b"].phase == "following" and s.route["b"]
        for s in everything.states
    )


def test_a_deposed_leader_follows_its_successor(everything: Graph[State]) -> None:
    """It hung while it led, was replaced, and woke up."""
    hung = {n for n, s in enumerate(everything.states) if s.node["a"].phase == "leading" and s.proc["a"] == "hung"}
    assert hung
    assert any(
        s.node["a"].phase == "following" and s.node["a"].leader == "b" and s.record["a"] == "follower" and s.route["a"]
        for s in everything.states
    )


def test_three_followers() -> None:
    """One more than is compared with TLC: the one without a slot ranks last, and one of the three leads."""
    three = Config(("a", "b", "z"), frozenset(), frozenset({"die"}), 1)

    assert {} == check(Succession(three)).violations
