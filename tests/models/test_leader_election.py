"""The twin of `spec/LeaderElection.tla`: its properties hold, and each of them can break."""

from __future__ import annotations

import tomllib

import pytest

from tenure.adapters.verify.manifest import spec_directory
from tenure.models.explore import check, explore
from tenure.models.leader_election import CONFIGS, LeaderElection

SMALL = ("alone", "clock", "foreign", "pair", "resume")
with (spec_directory() / "manifest.toml").open("rb") as file:
    PINNED = tomllib.load(file)["LeaderElection"]


@pytest.mark.parametrize("config", SMALL)
def test_the_properties_hold(config: str) -> None:
    """Every property that the configuration lists, in each small one; the verifier has the large ones."""
    wanted = [name for name in PINNED["config"][config]["properties"] if name != "TypeOK"]

    assert {} == check(LeaderElection(CONFIGS[config]), wanted).violations


@pytest.mark.parametrize("config", SMALL)
def test_the_counts_are_the_pinned_ones(config: str) -> None:
    """A change of the protocol shows in the counts."""
    graph = explore(LeaderElection(CONFIGS[config]))
    pinned = PINNED["config"][config]

    assert (pinned["states"], pinned["transitions"]) == (len(graph.states), len(graph.transitions()))


@pytest.mark.parametrize("guard", PINNED["guard"])
def test_every_guard_matters(guard: str) -> None:
    """Without it, the property that the manifest names breaks where the manifest says."""
    pinned = PINNED["guard"][guard]
    world = LeaderElection(CONFIGS[pinned["config"]], [guard])

    assert [pinned["property"]] == list(check(world, [pinned["property"]]).violations)


def test_every_property_can_break() -> None:
    """No property is true of everything: each is some guard's."""
    world = LeaderElection(CONFIGS["alone"])
    names = {*world.invariants(), *world.steps(), *world.eventually()}

    assert names == {pinned["property"] for pinned in PINNED["guard"].values()}


@pytest.mark.parametrize("outcome", ["FailWrite", "LoseWrite"])
def test_a_lost_write_leaves_no_lease_that_nobody_keeps(outcome: str) -> None:
    """K9 from the other side: wherever a write has failed or is unknown, the runtime can still come to own the key."""
    world = LeaderElection(CONFIGS["alone"])
    graph = explore(world)

    assert any(graph.labels[label][0] == outcome for _, label, _ in graph.edges)
    assert {} == check(world, ["EventuallyOwned_V4"]).violations
