"""The field's faults around a guarded file, played step by step through the twin (scenarios A16-A26)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import attrs
import pytest

from tenure.models.explore import check
from tenure.models.file_transaction import CONFIGS, Config, FileTransaction, State

PUBLISH = ("EnsureParent", "Stage", "Look", "Publish")
CONTEND = ("EnsureParent", "Stage", "Look", "Observe")
RETRY = ("Wake", "Stage", "Look", "Observe")
CLAIM = ("List", "JudgeOwner", "Claim")
THREE = {"a": "P", "b": "Q", "c": "R"}
TWO = {"a": "P", "b": "Q"}


@attrs.define
class Play:
    """A behaviour of the twin, one action after the other."""

    world: FileTransaction
    state: State = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        [self.state] = self.world.initial()

    def after(self, action: str, *args: Hashable) -> list[State]:
        """The states that the action leads to now; none: it is disabled."""
        [found] = [a for a in self.world.actions() if a.name == action]
        return list(found.body(self.state, *args))

    def take(self, actions: str | Iterable[str], *args: Hashable) -> Play:
        """Take the actions; each must be enabled, and lead to one state."""
        for action in (actions,) if isinstance(actions, str) else actions:
            [self.state] = self.after(action, *args)
        return self


def play(
    pid: dict[str, str], *faults: str, budget: int = 3, neighbour: str = "none", off: tuple[str, ...] = ()
) -> Play:
    """A world with these faults."""
    return Play(FileTransaction(Config(pid, frozenset(faults), budget, (neighbour,)), off))


def test_a_dead_recoverer_blocks_nobody() -> None:
    """A16, A26: P dies inside, Q dies between claim and move, R takes Q's marker over and gets in."""
    found = play(THREE, "crash").take(PUBLISH, "a").take("Crash", "P")
    found.take(CONTEND, "b").take(CLAIM, "b").take("Crash", "Q")
    assert "marker" == found.state.guard.kind
    found.take(CONTEND, "c").take(("List", "JudgeMarker", "Claim", "Move", "DeleteStale"), "c")
    assert "tidying" == found.take(("Stage", "Look", "Publish"), "c").state.node["c"].phase


def test_a_delayed_recoverer_cannot_take_a_replacement() -> None:
    """A17: Q saw P dead and slept; R recovered and is inside; Q's claim, by name, misses."""
    found = play(THREE, "crash").take(PUBLISH, "a").take("Crash", "P")
    found.take(CONTEND, "b").take(("List", "JudgeOwner"), "b")
    found.take(CONTEND, "c").take(CLAIM, "c").take(("Move", "DeleteStale", "Stage", "Look", "Publish"), "c")
    held = found.state.guard
    assert [] == found.after("Claim", "b")
    assert held == found.take("ClaimMissed", "b").state.guard


def test_a_process_does_not_wait_for_its_own_marker() -> None:
    """A19: Q's reclaim is cut short; another thread of Q finds a marker of a live pid, its own, and takes it."""
    found = play({"a": "Q", "b": "Q", "c": "P"}, "crash", "abort").take(PUBLISH, "c").take("Crash", "P")
    found.take(CONTEND, "a").take(CLAIM, "a").take("Abort", "a")
    found.take(CONTEND, "b").take(("List", "JudgeMarker"), "b")
    assert "claiming" == found.state.node["b"].phase


def test_a_running_reclaim_is_not_entered_by_a_sibling_thread() -> None:
    """K16: two threads of one process do not reclaim each other's running claim."""
    found = play({"a": "Q", "b": "Q", "c": "P"}, "crash").take(PUBLISH, "c").take("Crash", "P")
    found.take(CONTEND, "a").take(CLAIM, "a")
    found.take(CONTEND, "b").take(("List", "JudgeMarker"), "b")
    assert "pausing" == found.state.node["b"].phase


def test_peers_get_in_after_a_failed_move() -> None:
    """A20: Q's move fails, the marker is an owner file again, and R recovers."""
    found = play(THREE, "crash", "rename").take(PUBLISH, "a").take("Crash", "P")
    found.take(CONTEND, "b").take(CLAIM, "b").take(("MoveFails", "RollBackFails", "RollBack"), "b")
    assert "owner" == found.state.guard.kind
    assert "moving" == found.take(CONTEND, "c").take(CLAIM, "c").state.node["c"].phase


def test_a_release_leaves_a_replacement_alone() -> None:
    """A22: P's guard was removed by hand and Q is inside; P's release ends without touching Q's guard."""
    found = play(TWO, "tamper").take(PUBLISH, "a").take("Tamper").take(PUBLISH, "b")
    held = found.state.guard
    assert held == found.take(("Leave", "Verify"), "a").state.guard
    assert "idle" == found.state.node["a"].phase


@pytest.mark.parametrize(("neighbour", "left"), [("dead", "none"), ("live", "live")])
def test_the_neighbour_of_an_older_version(neighbour: str, left: str) -> None:
    """A23: main guard recovered; an abandoned recovery guard goes, a live one stays."""
    found = play(TWO, "crash", neighbour=neighbour).take(PUBLISH, "a").take("Crash", "P")
    found.take(CONTEND, "b").take(CLAIM, "b").take(("Move", "DeleteStale", "Stage", "Look", "Publish", "Tidy"), "b")
    assert left == found.state.neighbour


def test_a_transient_publish_error_runs_once() -> None:
    """A25: Q's rename fails because R's guard is just going; Q tries again and is inside once."""
    found = play(TWO, "rename").take(("EnsureParent", "Stage", "Look", "PublishFails", "Observe"), "b")
    assert "inside" == found.take(("Wake", "Stage", "Look", "Publish"), "b").state.node["b"].phase


def test_a_reused_pid_does_not_pin_the_guard() -> None:
    """K1: P dies inside, its pid goes to a process that lives for ever, and Q gets in all the same."""
    found = play(TWO, "crash", "reuse").take(PUBLISH, "a").take("Crash", "P").take("Reuse", "P")
    assert "moving" == found.take(CONTEND, "b").take(CLAIM, "b").state.node["b"].phase
    pinned = (
        play(TWO, "crash", "reuse", off=("another_birth",)).take(PUBLISH, "a").take("Crash", "P").take("Reuse", "P")
    )
    assert "pausing" == pinned.take(CONTEND, "b").state.node["b"].phase


def test_two_faults_of_a_kind_do_no_more_harm_than_one() -> None:
    """The small configurations with one fault more than the manifest gives them still hold."""
    for name in ("tidy", "rename", "stranger"):
        config = attrs.evolve(CONFIGS[name], budget=CONFIGS[name].budget + 1)
        assert {} == check(FileTransaction(config)).violations, name


def test_a_foreign_holder_without_birth_is_alive_while_its_pid_is() -> None:
    """A guard of the other system whose pid was reused keeps us out: that is a limit, and it is safe."""
    config = Config(TWO, frozenset({"crash", "reuse"}), 2, foreign=frozenset({"P"}))
    found = Play(FileTransaction(config)).take(PUBLISH, "a").take("Crash", "P").take("Reuse", "P")
    assert "pausing" == found.take(CONTEND, "b").state.node["b"].phase
    assert {"EventuallyFree_V1"} == set(check(FileTransaction(config)).violations)
