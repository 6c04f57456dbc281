"""A delivery is admitted once, with the right to execute it, by the instance that it is for."""

from __future__ import annotations

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.journal.deliveries import Admitted, Arrival
from tenure.adapters.journal.journal import Journal
from tenure.machines.admission_identity import delivery_id
from tenure.machines.chart import Refused
from tests.adapters.journal.journal_room import (
    EPOCH,
    KIND,
    YOU,
    Room,
    arrival,
    body,
    miscounted,
    table,
    taken,
)


def forwarded(room: Room, *updates: int) -> Journal:
    """A journal whose updates are on their way to the binding C, which you serve."""
    journal = room.started(*updates)
    for update in updates:
        journal.forward(update, EPOCH, "C", "i1")
    journal.serve("C", YOU)
    return journal


def test_admitted_once(room: Room) -> None:
    """The row, and a receipt that is pending; the same again is answered with the same receipt (I15)."""
    journal = forwarded(room, 5)
    first = journal.admit(arrival(5, "C"), "C", "i2", payload="{}")
    assert isinstance(first, Admitted)
    assert (delivery_id(KIND, "C", 5), 5, False) == (first.delivery, first.update, first.again)
    assert attrs.evolve(first, again=True) == journal.admit(arrival(5, "C"), "C", "i2")
    row = journal.receipt(first.receipt)
    assert row is not None
    assert ("pending", "prompt", "C", 5, "{}") == (row.phase, row.kind, row.binding, row.first_update, row.payload)
    assert (first.receipt,) == tuple(r.receipt_id for r in journal.pending_work("C"))
    assert [] == miscounted(room)


def test_another_position_is_the_same_delivery(room: Room) -> None:
    """I16, L8: a leader that starts again computes another one."""
    journal = forwarded(room, 5)
    first = journal.admit(arrival(5, "C", position='{"index":0}'), "C", "i2")
    again = journal.admit(arrival(5, "C", position='{"index":3}'), "C", "i2")
    assert isinstance(first, Admitted)
    assert isinstance(again, Admitted)
    assert first.receipt == again.receipt
    assert [('{"index":0}',)] == table(room, "SELECT position FROM deliveries")


def test_a_replay_meets_a_tombstone(room: Room) -> None:
    """I15, L9: also after it was executed nothing is executed, and the receipt is the same. Its body is gone."""
    journal = forwarded(room, 5)
    first = journal.admit(arrival(5, "C"), "C", "i2", payload="{}")
    assert isinstance(first, Admitted)
    holder = taken(journal, first.receipt, YOU)
    journal.start(first.receipt, holder)
    journal.complete(first.receipt, holder)
    assert attrs.evolve(first, again=True) == journal.admit(arrival(5, "C"), "C", "i2")
    assert [("settled", "", "done", "")] == table(
        room, "SELECT d.phase, d.raw, r.phase, r.payload FROM deliveries d JOIN receipts r USING (receipt_id)"
    )
    assert () == journal.pending_work("C")
    assert [] == miscounted(room)


@pytest.mark.parametrize(
    ("given", "mine", "guard"),
    [
        (arrival(5, "C", delivery=delivery_id(KIND, "C", 6)), "C", "genuine_id"),
        (arrival(5, "C", delivery="telegram-follower-v1-0"), "C", "genuine_id"),
        (arrival(5, "C"), "D", "own_binding"),
        (arrival(5, "D"), "D", "wanted_here"),
    ],
)
def test_what_is_not_for_it_is_refused(room: Room, given: Arrival, mine: str, guard: str) -> None:
    """I14, I17; and nothing is changed but the decision about it."""
    journal = forwarded(room, 5)
    assert Refused("admit", "absent", (guard,)) == journal.admit(given, mine, "i2")
    assert [] == table(room, "SELECT * FROM deliveries")
    assert [guard] == [decision.guard for decision in journal.life(given.delivery) if decision.action == "admit"][-1:]


def test_another_body_is_refused(room: Room) -> None:
    """A receipt is for what was journaled, also when that is long settled."""
    journal = forwarded(room, 5)
    first = journal.admit(arrival(5, "C"), "C", "i2")
    assert isinstance(first, Admitted)
    other = arrival(5, "C", raw="{}")
    assert Refused("admit", "journaled", ("same_body",)) == journal.admit(other, "C", "i2")
    journal.discard(first.receipt, "ann")
    assert Refused("admit", "discarded", ("same_body",)) == journal.admit(other, "C", "i2")


def test_one_that_is_over_is_not_wanted(room: Room) -> None:
    """Late is nothing: its update was discarded, or is bound elsewhere by now."""
    journal = forwarded(room, 5, 6)
    journal.discard_update(5, "ann")
    journal.failed(6, EPOCH, "transport-failed", "i1")
    journal.release_update(6, "i1", gone=True)
    for update in (5, 6):
        assert Refused("admit", "absent", ("wanted_here",)) == journal.admit(arrival(update, "C"), "C", "i2")


def test_a_leader_without_this_journal(room: Room) -> None:
    """Of an update that the journal does not know it admits what it has not passed."""
    journal = room.started()
    assert isinstance(journal.admit(arrival(5, "B"), "B", "i1"), Admitted)
    journal = room.started(7)
    assert Refused("admit", "absent", ("wanted_here",)) == journal.admit(arrival(6, "B"), "B", "i1")


def test_two_kinds_of_one_update_are_two_rights(room: Room) -> None:
    """An id of a receipt is never that of another delivery."""
    journal = forwarded(room, 5)
    other = Arrival(delivery_id("edited", "C", 5), "edited", "C", 5, body(5))
    found = {getattr(journal.admit(each, "C", "i2"), "receipt", None) for each in (arrival(5, "C"), other)}
    assert 2 == len(found)


@pytest.mark.parametrize(("entries", "size"), [(1, 10_000), (100, len(body(5)) + 2)])
def test_no_room(room: Room, entries: int, size: int) -> None:
    """I23: refused without a byte changed; what is known is answered all the same; what is settled makes room."""
    room.limits = room.limits.__class__(entries=entries, entry_bytes=size)
    journal = room.started()
    first = journal.admit(arrival(5), "B", "i1", payload="{}")
    assert isinstance(first, Admitted)
    journal.admit(arrival(5), "B", "i1")
    before = room.bytes()
    for _ in range(3):
        assert Refused("admit", "absent", ("has_room",)) == journal.admit(arrival(6), "B", "i1")
    journal.admit(arrival(5), "B", "i1")
    assert before == room.bytes()
    assert journal.discard(first.receipt, "ann")
    assert isinstance(journal.admit(arrival(6), "B", "i1"), Admitted)


def test_payloads_are_bounded(room: Room) -> None:
    """8 MiB by default; nothing is cut."""
    room.limits = room.limits.__class__(payload_bytes=200)
    journal = forwarded(room, 5)
    before = room.bytes()
    with pytest.raises(TenureError, match="payload of 201 bytes"):
        journal.admit(arrival(5, "C"), "C", "i2", payload="x" * 201)
    assert before == room.bytes()
    assert isinstance(journal.admit(arrival(5, "C", raw="x" * 201), "C", "i2"), Admitted)  # bodies are not
