"""Updates: a batch is appended as a whole or not at all, under the fence, and moves as its machine says."""

from __future__ import annotations

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.journal.forwards import Kept
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.updates import Appended, Conflict, Incoming, NoRoom
from tenure.machines.admission_identity import delivery_id
from tenure.machines.chart import Refused
from tenure.machines.forwarding_messages import RetryIn, Send
from tests.adapters.journal.journal_room import EPOCH, KIND, Room, arrival, body, incoming, miscounted, table


def append(journal: Journal, *updates: int | Incoming, epoch: int = EPOCH, skipped: bool = False) -> object:
    """A batch."""
    batch = [u if isinstance(u, Incoming) else incoming(u) for u in updates]
    return journal.append(batch, epoch, "i1", skipped=skipped)


def phases(journal: Journal) -> dict[int, str]:
    """Of all unsettled updates."""
    return {row.data.update: row.phase for row in journal.listing().updates}


# -- appending --------------------------------------------------------------------------------------------------------


def test_a_batch_is_appended_once(room: Room) -> None:
    """The same again is known; what is new in it is appended (I16, I18)."""
    journal = room.started()
    assert Appended((5, 6), (), 6) == append(journal, 5, 6)
    assert Appended((7,), (5, 6), 7) == append(journal, 5, 6, 7)
    assert Appended((), (), 7) == append(journal)
    assert {5: "journaled", 6: "journaled", 7: "journaled"} == phases(journal)
    assert [] == miscounted(room)


def test_equal_duplicates_in_a_batch_count_once(room: Room) -> None:
    """And unequal ones are a conflict."""
    journal = room.started()
    assert Appended((5,), (), 5) == append(journal, 5, 5)
    assert Conflict(6) == append(journal, incoming(6, "1"), incoming(6, "2"))
    assert {5: "journaled"} == phases(journal)


@pytest.mark.parametrize("other", ['{"a":1,"b":[1,2]}', '{ "b" : [1, 2], "a" : 1 }'])
def test_bodies_are_compared_as_values(room: Room, other: str) -> None:
    """An object knows no order."""
    journal = room.started()
    append(journal, incoming(5, '{"a":1,"b":[1,2]}'))
    assert Appended((), (5,), 5) == append(journal, incoming(5, other))


@pytest.mark.parametrize("other", ['{"a":1,"b":[2,1]}', '{"a":true,"b":[1,2]}', '{"a":1}', "not JSON"])
def test_a_conflict_refuses_the_whole_batch(room: Room, other: str) -> None:
    """Nothing of it is there, and not a byte has changed."""
    journal = room.started()
    append(journal, incoming(5, '{"a":1,"b":[1,2]}'))
    before = room.bytes()
    assert Conflict(5) == append(journal, incoming(5, other), incoming(6))
    assert before == room.bytes()


def test_what_does_not_ascend_is_no_batch(room: Room) -> None:
    """It is no answer of a poll."""
    journal = room.started()
    before = room.bytes()
    with pytest.raises(TenureError, match="ascend"):
        append(journal, 6, 5)
    assert before == room.bytes()


def test_a_tombstone_is_known_whatever_comes(room: Room) -> None:
    """What was settled does not come back, also with another body, also when its row is forgotten."""
    journal = room.started(5)
    assert journal.discard_update(5, "ann") is None
    assert Appended((), (5,), 5) == append(journal, incoming(5, "{}"))
    assert {} == phases(journal)
    assert Appended((9,), (), 9) == append(journal, 9)
    assert Appended((), (8,), 9) == append(journal, 8)  # passed


def test_a_body_has_no_bound_but_the_room(room: Room) -> None:
    """What is refused would be polled for ever, and nothing after it."""
    room.limits = room.limits.__class__(payload_bytes=100, entry_bytes=200)
    journal = room.started()
    assert append(journal, incoming(5, "x" * 101)) == Appended((5,), (), 5)
    before = room.bytes()
    assert append(journal, incoming(6, "x" * 101)) == NoRoom(1, 101)
    assert before == room.bytes()


def test_half_a_character_is_kept(room: Room) -> None:
    """As a binding that is named after a directory may have it."""
    journal = room.started(5)
    binding = "cwd:/tmp/\udcff"
    assert isinstance(journal.forward(5, EPOCH, binding, "i1"), Send)
    row = journal.update(5)
    assert row is not None
    assert binding == row.data.binding
    assert any(binding in decision.detail for decision in journal.life("5"))


# -- the first start --------------------------------------------------------------------------------------------------


def test_what_was_there_before_is_skipped(room: Room) -> None:
    """It is journaled, and never executed; afterwards nothing is skipped any more."""
    journal = room.open()
    journal.raise_fence(EPOCH, "i1")
    assert Appended((1, 2), (), 2) == append(journal, 1, 2, skipped=True)
    assert {} == phases(journal)
    assert journal.end_first_start(EPOCH, "i1") is None
    assert journal.end_first_start(EPOCH, "i1") is None
    assert Refused("skip", "absent", ()) == append(journal, 3, skipped=True)
    assert Appended((3,), (2,), 3) == append(journal, 2, 3)
    assert [(1, "skipped", ""), (2, "skipped", ""), (3, "journaled", body(3))] == table(
        room, "SELECT update_id, phase, raw FROM updates ORDER BY 1"
    )
    assert [] == miscounted(room)


# -- the fence --------------------------------------------------------------------------------------------------------


def test_the_fence_only_rises(room: Room) -> None:
    """The highest epoch that has won; a lower one does not lead."""
    journal = room.open()
    assert 5 == journal.raise_fence(5, "i1")
    assert 5 == journal.raise_fence(5, "i1")
    assert Refused("admit", "absent", ("epoch_current",)) == journal.raise_fence(4, "i0")
    assert 7 == journal.raise_fence(7, "i2")
    assert 7 == journal.state().fence


def test_a_leader_of_the_past_changes_nothing(room: Room) -> None:
    """Every operation of a leader is refused under an old epoch, and under one that has not raised the fence yet."""
    journal = room.started(5, 6)
    journal.forward(6, EPOCH, "C", "i1")
    delivery = delivery_id(KIND, "C", 6)
    for epoch in (EPOCH - 1, EPOCH + 1):
        before = table(room, "SELECT * FROM updates"), journal.state().passed
        answers = [
            append(journal, 9, epoch=epoch),
            append(journal, epoch=epoch),
            journal.forward(5, epoch, "C", "i1"),
            journal.keep(5, epoch, "B", "i1"),
            journal.unserved(5, epoch, "i1"),
            journal.acknowledged(6, epoch, True, delivery, 6, "i1"),
            journal.failed(6, epoch, "transport-failed", "i1"),
            journal.resume(epoch, "i1"),
            journal.end_first_start(epoch, "i1"),
        ]
        assert all(isinstance(answer, Refused) and "epoch_current" in answer.guards for answer in answers), answers
        assert before == (table(room, "SELECT * FROM updates"), journal.state().passed)
    assert () == journal.listing().receipts


# -- forwarding -------------------------------------------------------------------------------------------------------


def test_an_attempt_that_is_acknowledged(room: Room) -> None:
    """Delivered for the exact receipt only (I13); a tombstone has no body."""
    journal = room.started(5)
    delivery = delivery_id(KIND, "C", 5)
    assert Send("C", delivery) == journal.forward(5, EPOCH, "C", "i1")
    assert {5: "forwarding"} == phases(journal)
    assert journal.acknowledged(5, EPOCH, True, delivery, 5, "i1") is None
    row = journal.update(5)
    assert row is not None
    assert ("delivered", "", delivery, room.clock.wall) == (row.phase, row.raw, row.delivery_id, row.settled_at)
    assert [] == miscounted(room)


@pytest.mark.parametrize(
    ("ok", "delivery", "source", "why"),
    [
        (False, None, None, "acknowledgement-rejected"),
        (True, None, None, "durable-receipt-missing"),
        (True, "other", 5, "durable-receipt-mismatched"),
    ],
)
def test_any_other_answer_waits(room: Room, ok: bool, delivery: str | None, source: int | None, why: str) -> None:
    """The classes of bus.md c; when it is tried again stands in the row."""
    journal = room.started(5)
    journal.forward(5, EPOCH, "C", "i1")
    assert RetryIn(1_000) == journal.acknowledged(5, EPOCH, ok, delivery, source, "i1")
    row = journal.update(5)
    assert row is not None
    assert ("waiting", why, room.clock.wall + 1_000, body(5)) == (row.phase, row.data.failure, row.next_at, row.raw)
    assert 1_000 == journal.retry_in()
    assert () == journal.outgoing(-1, 10)
    assert (5,) == tuple(r.data.update for r in journal.outgoing(-1, 10, all_of_them=True))
    room.clock.advance(1_000)
    assert (5,) == tuple(r.data.update for r in journal.outgoing(-1, 10))
    assert (5,) == journal.retry_due("i1")
    assert () == journal.retry_due("i1")
    assert {5: "journaled"} == phases(journal)


def test_attempts_take_longer_and_longer(room: Room) -> None:
    """1, 2, 4... seconds; what waits may be sent at once, when somebody registers."""
    journal = room.started(5)
    delays = []
    for _ in range(8):
        assert isinstance(journal.forward(5, EPOCH, "C", "i1"), Send)
        answer = journal.failed(5, EPOCH, "acknowledgement-missing", "i1")
        assert isinstance(answer, RetryIn)
        delays.append(answer.delay_ms // 1_000)
    assert [1, 2, 4, 8, 16, 32, 60, 60] == delays
    row = journal.update(5)
    assert row is not None
    assert 8 == row.data.attempts


def test_one_for_nobody_waits(room: Room) -> None:
    """L21: it is not dropped, and no attempt of it is counted."""
    journal = room.started(5)
    for _ in range(3):
        assert RetryIn(1_000) == journal.unserved(5, EPOCH, "i1")
    row = journal.update(5)
    assert row is not None
    assert ("waiting", 0) == (row.phase, row.data.attempts)


def test_the_binding_sticks(room: Room) -> None:
    """Annex D: what one instance may have goes to no other, until the first is gone and has it not."""
    journal = room.started(5)
    journal.forward(5, EPOCH, "C", "i1")
    journal.failed(5, EPOCH, "transport-failed", "i1")
    assert Refused("forward", "journaled", ("binding_sticks",)) == journal.forward(5, EPOCH, "D", "i1")
    assert {5: "waiting"} == phases(journal)
    assert Refused("release", "waiting", ("binding_gone",)) == journal.release_update(5, "i1", gone=False)
    assert journal.release_update(5, "i1", gone=True) is None
    assert isinstance(journal.forward(5, EPOCH, "D", "i1"), Send)


def test_what_was_admitted_is_not_released_nor_discarded(room: Room) -> None:
    """Whether the instance has it is looked up in the same transaction."""
    journal = room.started(5)
    journal.forward(5, EPOCH, "C", "i1")
    journal.admit(arrival(5, "C"), "C", "i2")
    journal.failed(5, EPOCH, "acknowledgement-missing", "i1")
    assert Refused("release", "waiting", ("not_admitted",)) == journal.release_update(5, "i1", gone=True)
    assert Refused("discard", "waiting", ("not_admitted",)) == journal.discard_update(5, "ann")


def test_attempts_of_a_leader_that_is_gone_begin_anew(room: Room) -> None:
    """All of them but those that are on their way."""
    journal = room.started(5, 6, 7)
    for update in (5, 6, 7):
        journal.forward(update, EPOCH, "C", "i1")
    journal.raise_fence(EPOCH + 1, "i2")
    assert (5, 7) == journal.resume(EPOCH + 1, "i2", frozenset({6}))
    assert {5: "journaled", 6: "forwarding", 7: "journaled"} == phases(journal)


def test_the_kind_is_said_with_the_first_attempt(room: Room) -> None:
    """And sticks with the binding: it is part of the delivery's id."""
    journal = room.started()
    append(journal, Incoming(5, body(5)))
    assert Send("C", delivery_id("one", "C", 5)) == journal.forward(5, EPOCH, "C", "i1", kind="one")
    journal.failed(5, EPOCH, "transport-failed", "i1")
    assert Send("C", delivery_id("one", "C", 5)) == journal.forward(5, EPOCH, "C", "i1", kind="two")


# -- the leader's own -------------------------------------------------------------------------------------------------


def test_the_leaders_own_is_delivered_in_one_transaction(room: Room) -> None:
    """The update is a tombstone, its delivery is journaled, and the right to execute it is there."""
    journal = room.started(5)
    answer = journal.keep(5, EPOCH, "B", "i1", payload='{"p":1}')
    assert isinstance(answer, Kept)
    known = journal.item("5")
    assert known.update is not None
    assert ["delivered", "journaled", "pending"] == [
        known.update.phase,
        *(row.phase for row in known.deliveries),
        *(row.phase for row in known.receipts),
    ]
    assert (body(5), '{"p":1}') == (known.deliveries[0].raw, known.receipts[0].payload)
    assert Refused("keep", "delivered", ()) == journal.keep(5, EPOCH, "B", "i1")
    assert [] == miscounted(room)


def test_no_room_for_the_delivery_leaves_the_update(room: Room) -> None:
    """Nothing is half done."""
    room.limits = room.limits.__class__(entries=1)
    journal = room.started(5)
    assert isinstance(journal.keep(5, EPOCH, "B", "i1"), Kept)
    append(journal, 6)
    before = room.bytes()
    assert Refused("admit", "absent", ("has_room",)) == journal.keep(6, EPOCH, "B", "i1")
    assert before == room.bytes()
    assert {6: "journaled"} == phases(journal)


# -- capacity ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("entries", "size"), [(2, 10_000), (100, 2 * len(body(5)))])
def test_a_full_journal_changes_no_byte(room: Room, entries: int, size: int) -> None:
    """I23: by number and by size; what waits for a person at Telegram's is not lost, and what is settled makes room."""
    room.limits = room.limits.__class__(entries=entries, entry_bytes=size)
    journal = room.started(5, 6)
    before = room.bytes()
    for _ in range(3):
        assert NoRoom(2, 2 * len(body(5))) == append(journal, 7)
        assert Appended((), (5, 6), 6) == append(journal, 5, 6)
    assert before == room.bytes()
    journal.discard_update(5, "ann")
    assert Appended((7,), (), 7) == append(journal, 7)


def test_no_such_update(room: Room) -> None:
    """A refusal like any other, and no decision about nothing."""
    journal = room.started()
    before = room.bytes()
    assert Refused("forward", "absent", ()) == journal.forward(5, EPOCH, "C", "i1")
    assert Refused("discard", "absent", ()) == journal.discard_update(5, "ann")
    assert before == room.bytes()
