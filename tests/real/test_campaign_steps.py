"""Whoever is killed at whichever step of a delivery or of a handoff: the work is executed elsewhere, or interrupted if
it had begun (bus.md e, F1-F21; L1-L6)."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from tests.real.campaigns import Campaign, campaign_in
from tests.real.conftest import state, until
from tests.real.lives import said
from tests.real.terminals import Terminal
from tests.real.works import PATIENCE


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    """Three terminals, for all of these: what is killed is started again."""
    with campaign_in(tmp_path_factory.mktemp("steps"), 1) as campaign:
        campaign.open(3)
        yield campaign


def roles(campaign: Campaign) -> tuple[Terminal, Terminal, Terminal]:
    """The leader, and two followers."""
    leader = campaign.leader()
    first, second = (one for one in campaign.terminals if one is not leader)
    return leader, first, second


def nothing_is_wrong(campaign: Campaign, first: int, interrupted: set[int]) -> None:
    """From that update on, each was executed once, and told; besides those."""
    campaign.settles()
    updates = range(first, campaign.pushed + 1)
    executions = [line for line in campaign.executions() if line.update >= first]
    lives = campaign.lives(updates)
    assert {n for n, life in lives.items() if life.state != "done"} == interrupted
    assert [fault for life in lives.values() for fault in life.faults(executions)] == []
    ended = [line.update for line in executions if line.what == "ended"]
    began = [line.update for line in executions if line.what == "began"]
    assert sorted(ended) == sorted(set(ended))
    assert sorted(began) == sorted(set(began))
    assert set(updates) - interrupted <= set(ended)


DONOR = ["before JournalHandoffs.offer", "after JournalHandoffs.offer", "after FleetWay.send"]
RECIPIENT = [
    "before Recipient.accept",
    "before JournalHandoffs.accept",
    "after JournalHandoffs.accept",
    "after Recipient.accept",
]
LEADER = ["before Relay.pass_on", "after Relay.pass_on"]
BEGINNING = ["before JournalReceipts.start", "after JournalReceipts.start", "before JournalReceipts.complete"]


@pytest.mark.parametrize("when", [*DONOR, *RECIPIENT, *LEADER, *BEGINNING])
def test_killed_at_this_step_of_a_handoff(campaign: Campaign, when: str) -> None:
    leader, donor, recipient = roles(campaign)
    one, name = campaign.pushed + 1, f"go{campaign.pushed}"
    campaign.say((donor.thread, f"awaits {name}"), (donor.thread, "hello"))
    campaign.begins(one)
    busy, item = donor.pid, one + 1
    campaign.row(item)
    victim = next(
        v for v, whens in ((donor, DONOR), (leader, LEADER), (recipient, RECIPIENT + BEGINNING)) if when in whens
    )
    pid = campaign.dies(victim, when)
    campaign.ask(item, recipient)
    until(lambda: pid in victim.ended, PATIENCE)
    campaign.go(name)
    interrupted = {one} if pid == busy else set()
    if when in BEGINNING[1:]:
        interrupted.add(item)
    nothing_is_wrong(campaign, one, interrupted)


@pytest.mark.parametrize(
    ("when", "interrupts"),
    [
        ("before JournalInbox.record", False),
        ("after JournalInbox.record", False),
        ("before JournalOutbox.forward", False),
        ("after JournalOutbox.forward", False),
        ("before JournalOutbox.acknowledged", False),
        ("after JournalOutbox.acknowledged", False),
        ("before Intake.deliver", False),
        ("after Intake.deliver", False),
        ("after JournalReceipts.take", False),
        ("before JournalReceipts.start", False),
        ("after JournalReceipts.start", True),
        ("before JournalReceipts.complete", True),
        ("after JournalReceipts.complete", False),
    ],
)
def test_killed_at_this_step_of_a_delivery(campaign: Campaign, when: str, interrupts: bool) -> None:
    leader, follower, _ = roles(campaign)
    victim = leader if "box" in when else follower
    one = campaign.pushed + 1
    pid = campaign.dies(victim, when)
    campaign.say((follower.thread, "hello"))
    until(lambda: pid in victim.ended, PATIENCE)
    nothing_is_wrong(campaign, one, {one} if interrupts else set())


@pytest.mark.parametrize("when", ["before JournalOutbox.keep", "after JournalOutbox.keep"])
def test_a_leader_is_killed_where_it_keeps_what_is_its_own(campaign: Campaign, when: str) -> None:
    leader, _, _ = roles(campaign)
    one = campaign.pushed + 1
    pid = campaign.dies(leader, when)
    campaign.say((leader.thread, "hello"), (None, "hello"))
    until(lambda: pid in leader.ended, PATIENCE)
    nothing_is_wrong(campaign, one, set())


def test_an_item_moves_five_times_between_three_processes(campaign: Campaign) -> None:
    """All of them are busy, so it waits wherever it comes (L6)."""
    leader, second, third = roles(campaign)
    one, name = campaign.pushed + 1, f"go{campaign.pushed}"
    for terminal in (leader, second, third):
        campaign.say((terminal.thread, f"awaits {name}"))
    for update in range(one, one + 3):
        campaign.begins(update)
    campaign.say((second.thread, "hello"))
    item = one + 3
    until(lambda: campaign.owner(item) == campaign.instance(second), PATIENCE)
    for to in (third, leader, second, third, second):
        words = ("handoff", str(campaign.directory), campaign.row(item).receipt_id, "--to", str(to.pid), "--json")
        assert json.loads(said(*words, "--wait", str(PATIENCE)))["outcome"] == "moved"
        assert campaign.owner(item) == campaign.instance(to)
    campaign.go(name)
    nothing_is_wrong(campaign, one, set())
    assert campaign.lives([item])[item].moved == 5
    assert campaign.begins(item) == str(second.pid)


def closed(campaign: Campaign, terminal: Terminal) -> None:
    """Its process is killed, and nothing is started there for now."""
    pid = terminal.pid
    os.kill(terminal.shell, signal.SIGSTOP)
    campaign.harm.killed.add(pid)
    terminal.kill()
    until(lambda: state(pid) in ("Z", ""), PATIENCE)


def test_what_the_leader_took_goes_back_to_who_has_the_thread(campaign: Campaign) -> None:
    """Nobody asks for that: it is seen that the item is in a thread that another instance has (B76)."""
    leader, follower, _ = roles(campaign)
    one, name = campaign.pushed + 1, f"go{campaign.pushed}"
    campaign.say((leader.thread, f"awaits {name}"), (follower.thread, f"awaits {name}"))
    campaign.begins(one)
    campaign.begins(one + 1)
    campaign.say((follower.thread, "hello"), (follower.thread, "hello"))
    campaign.row(one + 3)
    closed(campaign, follower)
    instance = campaign.instance(leader)
    until(lambda: campaign.owner(one + 2) == campaign.owner(one + 3) == instance, PATIENCE)  # after the grace
    follower.go_on()
    items = [one + 2, one + 3]
    for update in items:
        until(lambda update=update: campaign.row_state(update) == "done", PATIENCE)  # type: ignore[misc]
    campaign.go(name)
    nothing_is_wrong(campaign, one, {one + 1})
    lives = campaign.lives(items)
    assert {update: life.moved for update, life in lives.items()} == dict.fromkeys(items, 1)
    assert {campaign.begins(update) for update in items} == {str(follower.pid)}


def test_what_no_instance_has_accepted_waits_for_who_comes_back(campaign: Campaign) -> None:
    """The leader does not take it, however long that lasts: whoever has the key may come back in that terminal
    (L21)."""
    leader, follower, third = roles(campaign)
    closed(campaign, follower)
    thread, one = follower.thread, campaign.pushed + 1
    campaign.say((thread, "hello"), (leader.thread, "hello"), (third.thread, "hello"))
    for update in (one + 1, one + 2):
        until(lambda update=update: campaign.row_state(update) == "done", PATIENCE)  # type: ignore[misc]
    epoch = campaign.listing().meta.fence
    until(lambda: campaign.lives([one])[one].told["update"]["state"] == "waiting", PATIENCE)
    campaign.harm.killed.add(leader.pid)
    leader.kill()
    until(lambda: campaign.listing().meta.fence > epoch, PATIENCE)  # a whole change of leaders later
    campaign.say((None, "hello"))
    until(lambda: campaign.row_state(one + 3) == "done", PATIENCE)
    assert campaign.row_state(one) == ""
    follower.go_on()
    nothing_is_wrong(campaign, one, set())
    assert campaign.begins(one) == str(follower.pid)


def test_nobody_has_said_anything_that_was_not_expected(campaign: Campaign) -> None:
    """No traceback in all of that, and nobody has ended who was not killed."""
    assert campaign.result().faults == ()
