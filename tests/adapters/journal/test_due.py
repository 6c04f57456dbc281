"""Nothing waits for longer than it was to wait, though the wall clock is set back, and nothing waits for nothing where
it is set ahead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.journal.due import LONGEST_MS, due, left_ms
from tenure.adapters.journal.journal import Journal
from tenure.machines.chart import Refused
from tenure.machines.forwarding import LAST_DELAY_MS
from tests.adapters.journal.journal_room import EPOCH, ME, THIRD, YOU, Room, kept, taken

HOUR = 3_600_000
DELAY = 30_000


def failed_receipt(room: Room) -> tuple[Journal, str]:
    """One that is not to be tried again before `DELAY` is over."""
    journal = room.started(1)
    receipt = kept(journal, 1)
    holder = taken(journal, receipt)
    journal.start(receipt, holder)
    journal.fail(receipt, holder, DELAY)
    return journal, receipt


def some(journal: Journal) -> list[str]:
    """What may be taken now."""
    return [row.receipt_id for row in journal.pending_work("B")]


def test_a_receipt_waits_its_time(room: Room) -> None:
    """On a clock that goes as it should."""
    journal, receipt = failed_receipt(room)
    assert (DELAY, []) == (journal.due_in(ME), some(journal))
    room.clock.advance(DELAY - 1)
    assert (1, []) == (journal.due_in(ME), some(journal))
    room.clock.advance(1)
    assert (None, [receipt]) == (journal.due_in(ME), some(journal))


def test_a_receipt_does_not_wait_for_a_clock_that_was_set_back(room: Room) -> None:
    """It was an hour ahead when that failed."""
    room.clock.step(HOUR)
    journal, receipt = failed_receipt(room)
    room.clock.step(-HOUR)
    assert (None, [receipt]) == (journal.due_in(ME), some(journal))
    assert [receipt] == [row.receipt_id for row in journal.take_some(ME, 9)]


def test_a_clock_that_is_set_ahead_ends_the_waiting(room: Room) -> None:
    """And set back again, it does not begin anew."""
    journal, receipt = failed_receipt(room)
    room.clock.step(HOUR)
    assert (None, [receipt]) == (journal.due_in(ME), some(journal))
    room.clock.step(-HOUR)
    assert (DELAY, []) == (journal.due_in(ME), some(journal))


def test_a_delay_has_a_longest(room: Room) -> None:
    """Else nobody could tell a long one from a clock that was set back."""
    journal = room.started(1)
    receipt = kept(journal, 1)
    holder = taken(journal, receipt)
    journal.start(receipt, holder)
    journal.fail(receipt, holder, 2 * HOUR)
    assert room.limits.delay_ms == journal.due_in(ME)


def test_what_fell_to_its_recipient_does_not_wait_either(room: Room) -> None:
    """The donor of an offer died; before, it had failed."""
    room.clock.step(HOUR)
    journal, receipt = failed_receipt(room)
    room.clock.advance(DELAY)
    holder = taken(journal, receipt, ME)

    journal.offer(receipt, holder, "h", YOU)
    room.lives.dead.add("p1")
    journal.recover_all(THIRD)
    room.clock.step(-2 * HOUR)
    assert [receipt] == [row.receipt_id for row in journal.take_some(YOU, 9)]


def test_an_update_waits_its_time(room: Room) -> None:
    """On a clock that goes as it should."""
    journal = room.started(1)
    journal.forward(1, EPOCH, "C", "i1")
    journal.failed(1, EPOCH, "transport-failed", "i1")
    assert 1_000 == journal.retry_in()
    assert ((), ()) == (journal.outgoing(0, 9), journal.retry_due("i1"))
    room.clock.advance(1_000)
    assert [1] == [row.data.update for row in journal.outgoing(0, 9)]
    assert (None, (1,)) == (journal.retry_in(), journal.retry_due("i1"))


def test_an_update_does_not_wait_for_a_clock_that_was_set_back(room: Room) -> None:
    """It was an hour ahead when that failed."""
    journal = room.started(1)
    journal.forward(1, EPOCH, "C", "i1")
    room.clock.step(HOUR)
    journal.failed(1, EPOCH, "transport-failed", "i1")
    room.clock.step(-HOUR)
    assert [1] == [row.data.update for row in journal.outgoing(0, 9)]
    assert (None, (1,)) == (journal.retry_in(), journal.retry_due("i1"))
    assert not isinstance(journal.forward(1, EPOCH, "C", "i1"), Refused)


@given(at=st.integers(0, 2**42), now=st.integers(0, 2**42), longest=st.integers(0, 10**6))
def test_nothing_waits_for_longer(at: int, now: int, longest: int) -> None:
    """Whatever the clock says: what is not due is within reach, and so is due later."""
    if not due(at, now, longest):
        assert 0 < at - now <= longest
        assert due(at, at, longest)
    else:
        assert at <= now or at - now > longest


@pytest.mark.parametrize(
    ("at", "left"), [(0, 0), (10, 0), (11, 1), (10 + LONGEST_MS, LONGEST_MS), (11 + LONGEST_MS, 0)]
)
def test_a_person_is_told_how_long_it_is(at: int, left: int) -> None:
    """Or that it is now."""
    assert left == left_ms(at, 10)
    assert LONGEST_MS >= LAST_DELAY_MS
