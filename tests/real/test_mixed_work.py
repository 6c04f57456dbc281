"""Work between both systems: the other one is `other_fleet.py`, which knows nothing of ours (bus.md c, e; L8, L9)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real import other_bus
from tests.real.campaigns import Campaign
from tests.real.conftest import until
from tests.real.others import Other
from tests.real.terminals import Terminal
from tests.real.works import PATIENCE, SCALE

LEASE = 8 * SCALE
"""Theirs, in seconds: that of ours."""


class Both(Campaign):
    """Terminals of ours, and processes of the other system."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, 1)
        self.others: list[Other] = []

    def other(self) -> Other:
        """One of the other system."""
        number = len(self.others) + 1
        options = ("--shell", f"{number}:start:{number}", "--bare")
        other = Other(self.root / f"other{number}", self.directory, LEASE, options)
        self.others.append(other)
        return other

    def ours(self, leader: Other) -> tuple[Terminal, str]:
        """A follower of theirs, and its instance."""
        terminal = Terminal(self, scale=SCALE)
        self.all.append(terminal)  # type: ignore[arg-type]
        self.terminals.append(terminal)
        return terminal, self.follows(terminal, leader)

    def follows(self, terminal: Terminal, leader: Other) -> str:
        """Wait until it is registered; its instance."""
        terminal.becomes(f"following pid {leader.pid}")
        there: list[str] = until(
            lambda: [name for name in leader.ask("registry") if name.startswith(f"{terminal.pid}:")], PATIENCE
        )
        return there[0]

    def close(self) -> None:
        """End whatever is left."""
        for other in self.others:
            other.close()
        super().close()


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    both = Both(tmp_path)
    try:
        yield both
    finally:
        both.close()


def led_by_them(both: Both) -> tuple[Other, Terminal, str]:
    """Their leader, our follower and its instance."""
    leader = both.other()
    until(lambda: leader.role == "leading", PATIENCE)
    return leader, *both.ours(leader)


def executed(both: Both, update: int) -> None:
    """Wait until it has been."""
    until(lambda: [1 for line in both.executions() if (line.update, line.what) == (update, "ended")], PATIENCE)


def receipt(answer: dict[str, Any]) -> dict[str, Any]:
    """The one of an answer that is a yes."""
    assert answer["ok"], answer
    return dict(answer["result"])


def test_their_leader_forwards_to_our_follower(both: Both) -> None:
    """It is journaled, the receipt is exact, and it is executed once, however often it comes again (L8, L9)."""
    leader, ours, instance = led_by_them(both)
    binding = leader.ask("registry")[instance]["profileKey"]
    exact = other_bus.delivery("leader.forwardMessage", binding, 50)
    del exact["recipientBindingKey"]
    carrier = {"text": "awaits go"}
    first = leader.ask("deliver", instance=instance, update=50, carrier=carrier)
    assert receipt(first) == exact
    both.begins(50)
    positions: list[dict[str, str]] = [
        {},
        {"forwardCommentBatchPosition": "first"},
        {"forwardCommentBatchPosition": "second"},
    ]
    for members in positions:  # while it runs
        again = leader.ask("deliver", instance=instance, update=50, carrier=carrier, members=members)
        assert receipt(again) == exact
    both.go("go")
    executed(both, 50)
    until(lambda: both.row_state(50) == "done", PATIENCE)
    for members in positions:  # and when it is over
        again = leader.ask("deliver", instance=instance, update=50, carrier=carrier, members=members)
        assert receipt(again) == exact
    # Another body, and ids that are not made of what they say, get no receipt.
    assert not leader.ask("deliver", instance=instance, update=50, carrier={"text": "something else"})["ok"]
    for delivery in ({"deliveryId": f"telegram-follower-v1-{'0' * 64}"}, {"recipientBindingKey": "manual:1:start:1"}):
        assert not leader.ask("deliver", instance=instance, update=51, carrier=carrier, delivery=delivery)["ok"]
    assert not leader.ask("deliver", instance=instance, update=52, carrier=carrier, delivery={"sourceUpdateId": 53})[
        "ok"
    ]
    receipt(leader.ask("deliver", instance=instance, update=54, carrier={"text": "hello"}))
    executed(both, 54)
    assert both.began() == {50: 1, 54: 1}
    assert ours.said == ""


@pytest.mark.parametrize("when", ["before Intake.deliver", "after Intake.deliver", "before JournalReceipts.start"])
def test_our_follower_is_killed_on_the_way(both: Both, when: str) -> None:
    """Their leader forwards again what was not acknowledged, to who comes back in the same terminal: it is executed
    once."""
    leader, ours, instance = led_by_them(both)
    pid = both.dies(ours, when)
    answer = leader.ask("deliver", instance=instance, update=50, carrier={"text": "hello"})
    until(lambda: pid in ours.ended, PATIENCE)
    after = both.follows(ours, leader)
    if not answer["ok"]:
        receipt(leader.ask("deliver", instance=after, update=50, carrier={"text": "hello"}))
    executed(both, 50)
    receipt(leader.ask("deliver", instance=after, update=50, carrier={"text": "hello"}))
    receipt(leader.ask("deliver", instance=after, update=51, carrier={"text": "hello"}))
    executed(both, 51)
    assert both.began() == {50: 1, 51: 1}


def test_their_leader_offers_us_what_is_in_another_journal(both: Both) -> None:
    """It is refused before anything is accepted, and nothing of it is in our journal."""
    leader, ours, instance = led_by_them(both)
    name = f"telegram-prompt-v1-{'a' * 64}"
    for key in ('{"version":1}', None):
        admission = {"queueKind": "prompt", "receiptId": name, "sourceUpdateIds": [7]}
        admission |= {} if key is None else {"journalBindingKey": key}
        payload = {"kind": "prompt", "chatId": 7, "replyToMessageId": 0, "queueOrder": 1, "queueLane": "default"}
        payload |= {"laneOrder": 1, "statusSummary": "", "admissionReceipts": [admission], "sourceMessageIds": [1]}
        payload |= {"queuedAttachments": [], "content": [{"type": "text", "text": "do it"}], "historyText": "do it"}
        answer = leader.ask("offer", instance=instance, payload=payload)
        assert not answer["ok"]
        assert "another journal" in answer["message"]
    assert both.listing().receipts == ()
    assert both.journal(lambda j: j.receipt(name)) is None
    assert (both.began(), ours.said) == ({}, "")


def test_our_leader_forwards_to_their_follower(both: Both) -> None:
    """Once, though the first answer is lost: with the same id, which is made as theirs is. It is theirs to execute."""
    both.open(1)
    (ours,) = both.terminals
    theirs = both.other()
    until(lambda: theirs.leader == ours.pid, PATIENCE)
    target = theirs.says("following")["target"]
    theirs.ask("fault", kind="leader.forwardMessage", how="drop", times=1)
    both.say((target["threadId"], "hello"), (ours.thread, "hello"))
    both.settles()
    first, *again = theirs.heard("delivered")
    assert [other["delivery"] for other in again] == [first["delivery"]]
    assert theirs.heard("another id") == theirs.heard("another source") == []
    life = both.lives([1])[1].told
    assert (life["update"]["state"], life["update"]["attempts"]) == ("delivered", 2)
    assert (life["deliveries"], life["receipts"]) == ([], [])
    assert both.began() == {2: 1}


def test_ours_offers_nothing_to_theirs(both: Both) -> None:
    """They say that they know handoffs, and are in another journal: a person is told so, and the item stays here."""
    both.open(2)
    leader = both.leader()
    ours = next(one for one in both.terminals if one is not leader)
    theirs = both.other()
    until(lambda: theirs.leader == leader.pid, PATIENCE)
    both.say(*[(one.thread, "awaits go") for one in (leader, ours)])
    both.begins(1)
    both.begins(2)
    both.say((leader.thread, "hello"), (ours.thread, "hello"))
    for update in (3, 4):
        name = both.row(update).receipt_id
        assert both.journal(lambda j, name=name: j.ask_move(name, theirs.instance))
        until(lambda name=name: both.journal(lambda j: j.move_of(name)).outcome, PATIENCE)  # type: ignore[misc]
        move = both.journal(lambda j, name=name: j.move_of(name))
        assert "does not work out of this journal" in move.outcome
    both.go("go")
    both.settles()
    assert both.began() == {1: 1, 2: 1, 3: 1, 4: 1}
    assert both.lives([3, 4])[4].moved == both.lives([3])[3].moved == 0
    assert theirs.heard("delivered") == []
