"""What was decided and what was refused is told with its guard and law, in a bounded number of rows."""

from __future__ import annotations

import sqlite3

import pytest

from tenure.adapters.journal.errors import JournalError
from tenure.adapters.testing.databases import CallFails, nth_call
from tenure.machines.chart import Refused
from tests.adapters.journal.journal_room import EPOCH, ME, YOU, Room, arrival, incoming, kept, miscounted, table, taken


def test_the_life_of_an_update(room: Room) -> None:
    """By any of its ids, over all machines, in order, each with guard and law."""
    journal = room.started(5, 6)
    receipt = kept(journal, 5)
    holder = taken(journal, receipt)
    journal.start(receipt, holder)
    room.lives.dead.add("p1")
    journal.recover(receipt, str(holder.acquisition), YOU)
    journal.retry(receipt, "ann")
    journal.discard(receipt, "ann")
    known = journal.item("5")
    lives = [journal.life(name) for name in ("5", known.deliveries[0].delivery_id, receipt)]
    assert lives[0] == lives[1] == lives[2]
    told = [(d.action, d.party, d.guard, d.law) for d in lives[0]]
    assert ("admit", "i1", "epoch_current, above_offset", "Fence, Late is nothing") == told[0]
    assert ("recover", "i2", "owner_is_expected, owner_proven_dead", "Fence, Proof") in told
    assert ("retry", "ann", "a_person_asks", "Unknown") in told
    assert ["admit", "keep", "admit", "take", "start", "recover", "retry", "discard", "discard"] == [t[0] for t in told]
    assert sorted(d.seq for d in lives[0]) == [d.seq for d in lives[0]]
    assert str(holder.acquisition) == next(d.tenure for d in lives[0] if d.action == "take")


def test_a_refusal_is_told_once(room: Room) -> None:
    """Who asks in a loop does not fill the file; when something has happened it is told again."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    holder = taken(journal, receipt)
    for _ in range(5):
        journal.take(receipt, YOU)
    size = len(journal.life(receipt))
    journal.take(receipt, YOU)
    assert size == len(journal.life(receipt))
    last = journal.life(receipt)[-1]
    assert ("take", "i2", "taker_has_it", "Fence") == (last.action, last.party, last.guard, last.law)
    assert last.detail.startswith("refused in queued")
    journal.release(receipt, holder)
    taken(journal, receipt)
    journal.take(receipt, YOU)
    assert size + 3 == len(journal.life(receipt))


def test_a_number_is_no_other_decisions_when_the_newest_are_forgotten(room: Room) -> None:
    """Fresh: what was recorded under a number is never somebody else's."""
    journal = room.started(5)
    highest = max(decision.seq for decision in journal.life("5"))
    with sqlite3.connect(room.path) as past_the_journal:
        past_the_journal.execute("DELETE FROM decisions")
    past_the_journal.close()
    journal.forward(5, EPOCH, "C", "i1")
    assert [decision.seq for decision in journal.life("5")] == [highest + 1]


def test_of_one_subject_the_first_and_the_last_are_kept(room: Room) -> None:
    """However long it is tried in vain."""
    room.limits = room.limits.__class__(decisions_of_one=10)
    journal = room.started(5)
    for _ in range(30):
        journal.forward(5, EPOCH, "C", "i1")
        journal.failed(5, EPOCH, "transport-failed", "i1")
    told = journal.life("5")
    assert 10 == len(told)
    assert [1, 2, 3, 4, 5] == [d.nth for d in told[:5]]
    assert list(range(told[-1].nth - 4, told[-1].nth + 1)) == [d.nth for d in told[5:]]
    assert [] == miscounted(room)


def test_all_of_them_are_bounded(room: Room) -> None:
    """Also those about what the journal does not have: who sends nonsense does not fill the file."""
    room.limits = room.limits.__class__(decisions=20)
    journal = room.started(5)
    for number in range(60):
        refused = journal.admit(arrival(5, delivery=f"nonsense-{number}"), "B", "i1")
        assert isinstance(refused, Refused)
    assert journal.state().decisions <= 20
    assert [] == miscounted(room)


def test_a_refusal_that_cannot_be_told_is_one_all_the_same(room: Room) -> None:
    """Best effort: no error is made of it."""
    room.started(5).close()
    databases = room.faulty()
    journal = room.open(databases=databases)
    receipt = kept(journal, 5)
    taken(journal, receipt)
    databases.plan = nth_call("begin", 2, CallFails("SQLITE_BUSY"))
    assert Refused("take", "queued", ("taker_has_it",)) == journal.take(receipt, YOU)
    databases.plan = nth_call("commit", 1, CallFails("SQLITE_FULL"))
    assert Refused("take", "queued", ("taker_has_it",)) == journal.take(receipt, YOU)
    assert not [d for d in journal.life(receipt) if d.party == "i2"]
    databases.plan = nth_call("begin", 1, CallFails("SQLITE_BUSY"))
    with pytest.raises(JournalError):
        journal.take(receipt, YOU)


def test_decisions_are_written_with_what_they_tell(room: Room) -> None:
    """One commit for both: there is no row without its decision."""
    databases = room.faulty()
    journal = room.open(databases=databases)
    journal.raise_fence(EPOCH, "i1")
    journal.end_first_start(EPOCH, "i1")
    first = len(databases.calls)
    journal.append([incoming(5), incoming(6)], EPOCH, "i1")
    names = [call.name for call in databases.calls[first:]]
    assert ["begin", "commit"] == [name for name in names if name != "execute"]
    assert [("5",), ("6",)] == table(room, "SELECT subject FROM decisions ORDER BY seq")
    assert journal.take_some(ME, 1) == ()
