"""What is found of the dead, of one's own past and of persons' wishes, by who looks for all of it at once."""

from __future__ import annotations

import pytest

from tenure.adapters.journal import receipts
from tenure.adapters.journal.journal import Journal
from tenure.machines.receipt_messages import Freed, Party
from tests.adapters.journal.journal_room import EPOCH, ME, THIRD, YOU, Room, incoming, kept, taken

LATER = Party("i1b", "p1", 2)
"""The next activation in the process of `ME`."""


def owned(journal: Journal, *updates: int, by: Party = ME) -> list[str]:
    """Receipts that somebody has taken."""
    found = [kept(journal, update) for update in updates]
    for receipt in found:
        taken(journal, receipt, by)
    return found


@pytest.mark.parametrize("evidence", ["alive", "unknown"])
def test_nothing_is_recovered_without_proof(room: Room, evidence: str) -> None:
    """I22: one that cannot be told is not dead, whoever asks for everything."""
    journal = room.started(5)
    (receipt,) = owned(journal, 5)
    getattr(room.lives, evidence, set()).add("p1")
    assert () == journal.recover_all(YOU)
    assert [receipt] == [row.receipt_id for row in journal.owned_by("p1")]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_all_of_it_is_found_however_much_it_is(room: Room, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of it in each transaction, until none is left."""
    monkeypatch.setattr(receipts, "AT_ONCE", 2)
    journal = room.started(*range(1, count + 1))
    mine = owned(journal, *range(1, count + 1))
    room.lives.dead.add("p1")
    found = journal.recover_all(YOU)
    assert mine == [one.receipt_id for one in found]
    assert {Freed} == {type(one.outcome) for one in found}
    assert () == journal.owned_by("p1")
    room.lives.dead.clear()
    for receipt in mine:
        taken(journal, receipt)
    assert mine == [one.receipt_id for one in journal.reclaim(LATER)]
    assert () == journal.owned_by("p1")


def test_what_a_person_wants_again_is_tried_at_once(room: Room) -> None:
    """The delay was for who tries it by himself."""
    room.limits = room.limits.__class__(attempts=1)
    journal = room.started(5)
    (receipt,) = owned(journal, 5)
    (row,) = journal.owned_by("p1")
    assert row.data.owner is not None
    journal.start(receipt, row.data.owner)
    journal.fail(receipt, row.data.owner, 60_000)
    assert ["failed"] == [row.phase for row in journal.stuck()]
    journal.retry(receipt, "ann")
    assert [receipt] == [row.receipt_id for row in journal.take_some(ME, 9)]


def test_who_takes_does_not_get_what_its_past_has(room: Room) -> None:
    """Of an earlier activation in this process, which may still be at it: that is reclaimed, and not simply had."""
    journal = room.started(5, 6)
    (past,) = owned(journal, 5)
    assert [past] == [row.receipt_id for row in journal.take_some(ME, 9)]
    journal.serve("B", LATER)
    fresh = kept(journal, 6)
    assert [fresh] == [row.receipt_id for row in journal.take_some(LATER, 9)]
    assert [past] == [one.receipt_id for one in journal.reclaim(LATER)]
    assert [past, fresh] == [row.receipt_id for row in journal.take_some(LATER, 9)]


def test_who_led_before_takes_his_own_still(room: Room) -> None:
    """What others have left is not his to take; it does not keep him from what is."""
    journal = room.started(5, 6)
    journal.serve("C", THIRD)
    answer = journal.keep(5, EPOCH, "C", "i1")
    assert hasattr(answer, "admitted")
    mine = kept(journal, 6)
    room.lives.dead.add("p3")
    journal.vacancies()
    room.clock.advance(room.limits.grace_ms)
    assert ("C",) == journal.vacancies()
    journal.raise_fence(EPOCH + 1, "i2")
    assert [mine] == [row.receipt_id for row in journal.take_some(ME, 1, epoch=EPOCH)]


def test_who_has_left_moves_nothing(room: Room) -> None:
    """A person's wish is for who takes what waits there; that is not he any more."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    journal.ask_move(receipt, "i2")
    assert [receipt] == [move.receipt_id for move in journal.moves_to_take(ME)]
    journal.unserve("B", ME)
    assert () == journal.moves_to_take(ME)
    journal.serve("B", YOU)
    assert () == journal.moves_to_take(ME)
    assert [receipt] == [move.receipt_id for move in journal.moves_to_take(YOU)]


def test_the_fence_is_not_asked_by_who_only_takes_his_own(room: Room) -> None:
    """An update of a leader of the past is refused; what he serves is his."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    journal.raise_fence(EPOCH + 1, "i2")
    assert "epoch_current" in getattr(journal.append([incoming(6)], EPOCH, "i1"), "guards", ())
    assert [receipt] == [row.receipt_id for row in journal.take_some(ME, 9, epoch=EPOCH)]
