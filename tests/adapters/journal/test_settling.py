"""What has ended is remembered for some time and in some number, and not forgotten while it may come again."""

from __future__ import annotations

import pytest

from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.updates import Appended
from tenure.machines.chart import Refused
from tests.adapters.journal.journal_room import (
    EPOCH,
    ME,
    YOU,
    Room,
    arrival,
    incoming,
    kept,
    miscounted,
    table,
    taken,
)


def executed(journal: Journal, update: int) -> str:
    """From the poll to the end; the receipt."""
    journal.append([incoming(update)], EPOCH, "i1")
    receipt = kept(journal, update)
    holder = taken(journal, receipt)
    journal.start(receipt, holder)
    journal.complete(receipt, holder)
    return receipt


def count(room: Room, name: str) -> int:
    """Rows of a table."""
    return int(str(table(room, f"SELECT count(*) FROM {name}")[0][0]))


def test_tombstones_are_bounded_by_number(room: Room) -> None:
    """The oldest go first, with what was decided about them; what was passed stays passed."""
    room.limits = room.limits.__class__(tombstones=12)
    journal = room.started()
    for update in range(1, 41):
        executed(journal, update)
        room.clock.advance(1)
        assert journal.state().tombstones <= 12 + 3
        assert [] == miscounted(room)
    assert count(room, "updates") + count(room, "deliveries") + count(room, "receipts") <= 15
    assert not journal.item("1").found
    assert () == journal.life("1")
    assert journal.item("40").found
    subjects = {str(row[0]) for row in table(room, "SELECT DISTINCT subject FROM decisions")}
    assert len(subjects) <= 15
    assert Appended((), (1,), 40) == journal.append([incoming(1)], EPOCH, "i1")
    assert Refused("admit", "absent", ("wanted_here",)) == journal.admit(arrival(1), "B", "i1")


def test_tombstones_are_bounded_by_age(room: Room) -> None:
    """What is older than the bound goes as others settle; however old, a number stays."""
    room.limits = room.limits.__class__(tombstone_ms=1_000, tombstones_least=9)
    journal = room.started()
    for update in range(1, 5):
        executed(journal, update)
    room.clock.advance(1_001)
    for update in range(5, 8):
        executed(journal, update)
    assert [5, 6, 7] == [row[0] for row in table(room, "SELECT update_id FROM updates ORDER BY 1")]
    assert 3 == count(room, "deliveries")
    assert [] == miscounted(room)


def test_a_tombstone_that_may_be_asked_for_stays(room: Room) -> None:
    """L9: the leader has not heard the answer, however long ago; and it keeps no other one from going."""
    room.limits = room.limits.__class__(tombstones=3)
    journal = room.started(1)
    journal.serve("C", YOU)
    journal.forward(1, EPOCH, "C", "i1")
    answer = journal.admit(arrival(1, "C"), "C", "i2")
    receipt = str(getattr(answer, "receipt", ""))
    holder = taken(journal, receipt, YOU)
    journal.start(receipt, holder)
    journal.complete(receipt, holder)
    for update in range(2, 20):
        room.clock.advance(1)
        executed(journal, update)
    again = journal.admit(arrival(1, "C"), "C", "i2")
    assert (receipt, True) == (getattr(again, "receipt", None), getattr(again, "again", None))
    assert count(room, "deliveries") <= 4
    assert journal.acknowledged(1, EPOCH, True, arrival(1, "C").delivery, 1, "i1") is None
    for update in range(20, 24):
        room.clock.advance(1)
        executed(journal, update)
    assert not journal.item(receipt).found
    assert Refused("admit", "absent", ("wanted_here",)) == journal.admit(arrival(1, "C"), "C", "i2")
    assert [] == miscounted(room)


def test_skipped_history_is_trimmed_as_well(room: Room) -> None:
    """A long history of the first start does not stay."""
    room.limits = room.limits.__class__(tombstones=10)
    journal = room.open()
    journal.raise_fence(EPOCH, "i1")
    for first in range(0, 100, 2):
        journal.append([incoming(first), incoming(first + 1)], EPOCH, "i1", skipped=True)
    assert count(room, "updates") <= 12
    assert 99 == journal.state().passed
    assert [] == miscounted(room)


def test_the_bound_holds_in_the_first_start(room: Room) -> None:
    """As many are forgotten as are added, however many come at once."""
    room.limits = room.limits.__class__(tombstones=12)
    journal = room.open()
    journal.raise_fence(EPOCH, "i1")
    for first in range(0, 3_000, 100):
        journal.append([incoming(first + i) for i in range(100)], EPOCH, "i1", skipped=True)
        assert 12 == journal.state().tombstones
    assert [2_988, 2_999] == [table(room, f"SELECT {what}(update_id) FROM updates")[0][0] for what in ("min", "max")]
    assert [] == miscounted(room)


def executed_unpolled(journal: Journal, update: int) -> str:
    """For a leader of the other system, of whose updates the journal has no rows; the receipt."""
    answer = journal.admit(arrival(update), "B", "i1")
    receipt = str(getattr(answer, "receipt", ""))
    holder = taken(journal, receipt)
    journal.start(receipt, holder)
    journal.complete(receipt, holder)
    return receipt


def test_a_clock_that_jumps_ahead_forgets_nothing(room: Room) -> None:
    """Everything is old at once, and a leader of the other system may still hand it out: nothing but the tombstone says
    that it was executed."""
    journal = room.started()
    receipt = executed_unpolled(journal, 77)
    room.clock.step(2 * room.limits.tombstone_ms)
    for update in range(100, 105):
        executed_unpolled(journal, update)
    for _ in range(2):
        again = journal.admit(arrival(77), "B", "i1")
        assert (receipt, True) == (getattr(again, "receipt", None), getattr(again, "again", None))
        room.clock.step(-2 * room.limits.tombstone_ms)


@pytest.mark.parametrize("back", [0, 1, 3_600_000, 10**10])
def test_what_was_settled_last_is_forgotten_last(room: Room, back: int) -> None:
    """Also where the clock was set back meanwhile: else it would be forgotten as soon as it is settled."""
    room.limits = room.limits.__class__(tombstones=12)
    journal = room.started()
    for update in range(1, 11):
        executed_unpolled(journal, update)
    room.clock.step(-back)
    for update in range(11, 31):
        executed_unpolled(journal, update)
        known = [u for (u,) in table(room, "SELECT update_id FROM deliveries ORDER BY 1")]
        assert list(range(update - len(known) + 1, update + 1)) == known
        assert len(known) >= 5
        assert [] == miscounted(room)


def test_unsettled_work_is_never_trimmed(room: Room) -> None:
    """However old, and however many are settled after it."""
    room.limits = room.limits.__class__(tombstones=3, tombstones_least=0, tombstone_ms=10)
    journal = room.started(1, 2)
    receipt = kept(journal, 1)
    for update in range(3, 20):
        room.clock.advance(100)
        executed(journal, update)
    assert ["pending"] == [row.phase for row in journal.item("1").receipts if row.receipt_id == receipt]
    known = journal.update(2)
    assert known is not None
    assert "journaled" == known.phase
    assert [receipt] == [row.receipt_id for row in journal.take_some(ME, 9)]
