"""Two leaders at once, answers that are lost, and a disk that is full: nothing is lost, nothing is executed twice."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.adapters.bus.endpoints.paths import endpoint_path, follower_path, leader_path
from tenure.adapters.files.directory import agent_directory
from tests.real.campaigns import Campaign, campaign_in
from tests.real.conftest import until
from tests.real.others import Proxy
from tests.real.terminals import Terminal
from tests.real.works import PATIENCE


@pytest.fixture
def campaign(tmp_path: Path) -> Iterator[Campaign]:
    with campaign_in(tmp_path, 1) as campaign:
        yield campaign


def followers(campaign: Campaign) -> tuple[Terminal, Terminal, Terminal]:
    """The leader, and two followers."""
    leader = campaign.leader()
    first, second = (one for one in campaign.terminals if one is not leader)
    return leader, first, second


def proxy_of(campaign: Campaign, terminal: Terminal) -> Proxy:
    """Between it and whoever asks it something from now on."""
    directory = agent_directory(campaign.directory)
    path = leader_path(directory, "default")
    if not terminal.leads:
        path = follower_path(directory, "default", campaign.instance(terminal))
    return Proxy(Path(endpoint_path(path)))


# -- two leaders ------------------------------------------------------------------------------------------------------


def test_a_leader_that_sleeps_while_it_polls_and_wakes_beside_its_successor(campaign: Campaign) -> None:
    """Three times: it is stopped with its poll on the way, another takes over, and it goes on. At most a conflict."""
    campaign.open(3)
    for _ in range(3):
        sleeper, *others = followers(campaign)
        polls = campaign.queue()["polls"]
        until(lambda polls=polls: campaign.queue()["polls"] >= polls, PATIENCE)  # type: ignore[misc]
        sleeper.kill(signal.SIGSTOP)
        # Its poll is on the way: the server answers it, and nobody reads that.
        campaign.say(*[(one.thread, "hello") for one in (sleeper, *others)] * 5)
        until(lambda: any(one.leads for one in others), PATIENCE)  # noqa: B023
        campaign.say(*[(one.thread, "hello") for one in (sleeper, *others)] * 5)
        first = campaign.pushed - 29
        until(lambda first=first: set(range(first, first + 30)) & set(campaign.began()), PATIENCE)  # type: ignore[misc]
        sleeper.kill(signal.SIGCONT)
        campaign.leader()
        campaign.settles()
    result = campaign.result()
    assert result.faults == ()
    assert (result.executed, result.interrupted) == (90, 0)
    queue = campaign.queue()
    assert queue["confirmed"] <= campaign.pushed
    assert queue["conflicts"] <= 3


# -- answers ----------------------------------------------------------------------------------------------------------


def test_the_answer_to_a_forward_is_lost(campaign: Campaign) -> None:
    campaign.open(3)
    _, follower, _ = followers(campaign)
    proxy = proxy_of(campaign, follower)
    proxy.to_lose.add("leader.forwardMessage")
    campaign.say(*[(follower.thread, "hello")] * 3)
    until(lambda: proxy.lost, PATIENCE)
    result = campaign.result()
    proxy.close()
    assert proxy.lost == ["leader.forwardMessage"]
    assert result.faults == ()
    assert (result.executed, result.begun) == (3, 3)
    assert campaign.lives([1])[1].told["update"]["attempts"] == 2
    assert {line.process for line in campaign.executions()} == {str(follower.pid)}


@pytest.mark.parametrize("way", ["through the leader: to it", "through the leader: from it", "direct"])
def test_the_answer_to_an_offer_is_lost_after_it_was_accepted(campaign: Campaign, way: str) -> None:
    """The donor looks the row up, finds that it is another's, and goes on with its queue (L4, F5)."""
    campaign.open(3)
    leader, first, second = followers(campaign)
    donor = leader if way == "direct" else first
    campaign.say((donor.thread, "awaits go"), (second.thread, "awaits go"))
    campaign.begins(1)
    campaign.begins(2)
    campaign.say((donor.thread, "hello"), (donor.thread, "hello"))
    campaign.row(4)
    kind = "follower.offerQueueHandoff" if way.endswith("from it") else "leader.offerQueueHandoff"
    proxy = proxy_of(campaign, leader if way.endswith("from it") else second)
    proxy.to_lose.add(kind)
    campaign.ask(3, second)
    until(lambda: proxy.lost, PATIENCE)
    until(lambda: campaign.owner(3) == campaign.instance(second), PATIENCE)
    campaign.go("go")
    result = campaign.result()
    proxy.close()
    assert proxy.lost == [kind]
    assert result.faults == ()
    assert (result.executed, result.begun, result.moved) == (4, 4, 1)
    by = {line.update: line.process for line in campaign.executions()}
    assert by == {1: str(donor.pid), 2: str(second.pid), 3: str(second.pid), 4: str(donor.pid)}


# -- a full disk ------------------------------------------------------------------------------------------------------


def test_nothing_is_confirmed_that_finds_no_room_and_all_goes_on_when_there_is_some(campaign: Campaign) -> None:
    """The file may not grow in the leader, then in a follower, then in nobody."""
    campaign.open(3)
    leader, follower, _ = followers(campaign)
    file = campaign.directory / "tmp" / "telegram" / "journal.db"
    big = "x" * 20_000

    def room(terminal: Terminal, size: int) -> None:
        hard = resource.prlimit(terminal.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(terminal.pid, resource.RLIMIT_FSIZE, (size, hard))

    for terminal in (leader, follower):
        campaign.settles()
        confirmed = campaign.queue()["confirmed"]
        room(terminal, file.stat().st_size + 8_192)
        campaign.say(*[(follower.thread, big)] * 30)
        polls = campaign.queue()["polls"]
        until(lambda polls=polls: campaign.queue()["polls"] > polls + 1, PATIENCE)  # type: ignore[misc]
        listing = campaign.listing()
        queue = campaign.queue()
        assert queue["confirmed"] <= max(listing.meta.passed, 0)
        if terminal is leader:
            assert queue["confirmed"] == confirmed  # thirty are more than there is room for
        room(terminal, resource.RLIM_INFINITY)
    campaign.settles()
    result = campaign.result()
    assert result.faults == ()
    assert (result.executed, result.begun, result.interrupted) == (60, 60, 0)
