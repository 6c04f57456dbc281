"""Receipts: who may execute, how that right moves, and what becomes of the work of the dead."""

from __future__ import annotations

import pytest

from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.receipts import Recovered
from tenure.machines.chart import Refused
from tenure.machines.receipt_messages import (
    Accepted,
    Cancelled,
    Completed,
    Discarded,
    Freed,
    GivenUp,
    Holder,
    Interrupted,
    Offer,
    Offered,
    Party,
    Same,
    Started,
    Taken,
)
from tests.adapters.journal.journal_room import EPOCH, ME, THIRD, YOU, Room, kept, miscounted, serves, table, taken


def phase(journal: Journal, receipt: str) -> str:
    """Of its row."""
    row = journal.receipt(receipt)
    assert row is not None
    return row.phase


# -- taking -----------------------------------------------------------------------------------------------------------


def test_taken_by_who_serves(room: Room) -> None:
    """Under an acquisition that was never used; again it is the same one; nobody else has it."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    first = journal.take(receipt, ME)
    assert isinstance(first, Taken)
    assert ("i1", "p1", 1, None) == (
        first.holder.instance,
        first.holder.process,
        first.holder.session,
        first.holder.handoff,
    )
    assert Same(first.holder) == journal.take(receipt, ME)
    assert Refused("take", "queued", ("taker_has_it",)) == journal.take(receipt, YOU)
    journal.release(receipt, first.holder)
    second = journal.take(receipt, ME)
    assert isinstance(second, Taken)
    assert first.holder.acquisition != second.holder.acquisition
    assert (receipt,) == tuple(row.receipt_id for row in journal.owned_by("p1"))


def test_nobody_else_takes(room: Room) -> None:
    """Neither an instance of another binding, nor a former one, nor the leader while the server lives."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    journal.serve("C", YOU)
    assert Refused("take", "pending", ("may_take",)) == journal.take(receipt, YOU)
    serves(journal, "B", YOU)
    assert Refused("take", "pending", ("may_take",)) == journal.take(receipt, ME, epoch=EPOCH)
    assert isinstance(journal.take(receipt, YOU), Taken)


def test_the_leader_takes_what_a_dead_server_left(room: Room) -> None:
    """When that is proven, nobody has served it for the grace, and it leads."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    refused = Refused("take", "pending", ("may_take",))
    room.lives.dead.add("p1")
    assert refused == journal.take(receipt, YOU, epoch=EPOCH)
    assert () == journal.vacancies()
    room.clock.advance(room.limits.grace_ms)
    assert refused == journal.take(receipt, YOU)
    assert refused == journal.take(receipt, YOU, epoch=EPOCH - 1)
    room.lives.dead.clear()  # that it was found dead is written down
    assert isinstance(journal.take(receipt, YOU, epoch=EPOCH), Taken)


def test_many_are_taken_at_once(room: Room) -> None:
    """The oldest updates first, so many at most; what is queued already is answered again."""
    journal = room.started(5, 6, 7, 8)
    receipts = [kept(journal, update) for update in (8, 6, 5, 7)]
    first = journal.take_some(ME, 2)
    assert [5, 6] == [row.first_update for row in first]
    assert all(row.phase == "queued" and row.data.owner is not None for row in first)
    assert [5, 6, 7] == [row.first_update for row in journal.take_some(ME, 3)]
    assert [5, 6, 7, 8] == [row.first_update for row in journal.take_some(ME, 9)]
    assert () == journal.take_some(YOU, 9)
    assert set(receipts) == {row.receipt_id for row in journal.owned_by("p1")}


def test_the_leader_takes_many_that_were_left(room: Room) -> None:
    """Its own, and those of bindings that nobody serves any more."""
    journal = room.started(5, 6)
    for update in (5, 6):
        kept(journal, update)
    room.lives.dead.add("p1")
    journal.serve("A", YOU)
    assert () == journal.take_some(YOU, 9, epoch=EPOCH)  # the death is found
    room.clock.advance(room.limits.grace_ms)
    assert () == journal.take_some(YOU, 9)
    assert [5, 6] == [row.first_update for row in journal.take_some(YOU, 9, epoch=EPOCH)]


# -- executing --------------------------------------------------------------------------------------------------------


def test_executed(room: Room) -> None:
    """Started before, done after; done twice is refused."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    holder = taken(journal, receipt)
    assert Refused("complete", "queued", ()) == journal.complete(receipt, holder)
    assert Started(holder, 1) == journal.start(receipt, holder)
    assert Completed(holder) == journal.complete(receipt, holder)
    assert Refused("complete", "done", ()) == journal.complete(receipt, holder)
    assert Refused("take", "done", ()) == journal.take(receipt, ME)
    assert [] == miscounted(room)


def test_only_the_exact_owner_settles(room: Room) -> None:
    """M21a, M21b: neither another process with the acquisition, nor the process under another one."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    holder = taken(journal, receipt)
    for wrong, guard in (
        (Holder("i1", "p2", 1, holder.acquisition), "process_owns"),
        (Holder("i1", "p1", 1, "another"), "acquisition_is_current"),
    ):
        for answer in (
            journal.start(receipt, wrong),
            journal.release(receipt, wrong),
            journal.offer(receipt, wrong, "handoff-1", THIRD),
            journal.cancel(receipt, wrong, "handoff-1"),
        ):
            assert isinstance(answer, Refused)
            assert guard in answer.guards
    assert isinstance(journal.start(receipt, holder), Started)


def test_an_ex_leader_settles_its_own(room: Room) -> None:
    """The fence does not ask for it: settlement is by exact acquisition."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    holder = taken(journal, receipt)
    journal.raise_fence(EPOCH + 1, "i2")
    assert isinstance(journal.start(receipt, holder), Started)
    assert isinstance(journal.complete(receipt, holder), Completed)


def test_what_fails_is_tried_again_later(room: Room) -> None:
    """Not before its time, and at the limit only by a person (V5, B74)."""
    room.limits = room.limits.__class__(attempts=2)
    journal = room.started(5, 6)
    receipt = kept(journal, 5)
    holder = taken(journal, receipt)
    journal.start(receipt, holder)
    assert Freed("failed", holder) == journal.fail(receipt, holder, 500, "no network")
    assert () == journal.pending_work("B")
    assert 500 == journal.due_in(ME)
    assert () == journal.take_some(ME, 9)
    kept(journal, 6)
    assert [6] == [row.first_update for row in journal.take_some(ME, 9)]  # it stops nobody
    room.clock.advance(500)
    assert journal.due_in(ME) is None
    assert [5, 6] == [row.first_update for row in journal.take_some(ME, 9)]
    row = journal.receipt(receipt)
    assert row is not None
    assert row.data.owner is not None
    journal.start(receipt, row.data.owner)
    assert GivenUp(row.data.owner, 2) == journal.fail(receipt, row.data.owner, 500)
    assert [receipt] == [row.receipt_id for row in journal.stuck()]
    assert Refused("retry", "failed", ("a_person_asks",)) == journal.retry(receipt, "")
    assert Freed("retried") == journal.retry(receipt, "ann")
    assert isinstance(journal.take(receipt, ME), Taken)
    assert any("no network" in decision.detail for decision in journal.life(receipt))


def test_discarded_by_a_person(room: Room) -> None:
    """With its delivery; what is queued is not."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    holder = taken(journal, receipt)
    assert Refused("discard", "queued", ()) == journal.discard(receipt, "ann")
    journal.release(receipt, holder)
    assert Discarded("ann") == journal.discard(receipt, "ann")
    assert [("discarded",)] == table(room, "SELECT phase FROM deliveries")
    assert [] == miscounted(room)


# -- handing over -----------------------------------------------------------------------------------------------------


def offered(journal: Journal, receipt: str) -> Holder:
    """It is offered to you; its owner."""
    holder = taken(journal, receipt)
    assert isinstance(journal.offer(receipt, holder, "handoff-1", YOU), Offered)
    return holder


def test_handed_over_in_one_transaction(room: Room) -> None:
    """F14, F18, F19: accepted once, told again; and it goes on from there."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    donor = offered(journal, receipt)
    accepted = journal.accept(receipt, YOU, "handoff-1", donor)
    assert isinstance(accepted, Accepted)
    assert (donor, "handoff-1", "p2") == (accepted.donor, accepted.holder.handoff, accepted.holder.process)
    assert Same(accepted.holder) == journal.accept(receipt, YOU, "handoff-1", donor)
    assert isinstance(journal.cancel(receipt, donor, "handoff-1"), Refused)
    assert isinstance(journal.start(receipt, donor), Refused)
    assert isinstance(journal.offer(receipt, accepted.holder, "handoff-2", THIRD), Offered)
    further = journal.accept(receipt, THIRD, "handoff-2", accepted.holder)
    assert isinstance(further, Accepted)
    assert isinstance(journal.start(receipt, further.holder), Started)


def test_what_is_offered_is_frozen(room: Room) -> None:
    """I28: no start, no second offer; the same offer again is the same answer."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    donor = offered(journal, receipt)
    offer = Offer("handoff-1", "i2", "p2")
    assert Same(donor, offer) == journal.offer(receipt, donor, "handoff-1", YOU)
    assert isinstance(journal.offer(receipt, donor, "handoff-2", THIRD), Refused)
    assert isinstance(journal.start(receipt, donor), Refused)
    assert Cancelled(donor) == journal.cancel(receipt, donor, "handoff-1")
    assert isinstance(journal.accept(receipt, YOU, "handoff-1", donor), Refused)
    assert isinstance(journal.start(receipt, donor), Started)


@pytest.mark.parametrize(
    ("who", "handoff", "guard"),
    [(THIRD, "handoff-1", "recipient_is_me"), (YOU, "handoff-9", "offer_is_that")],
)
def test_acceptance_is_exact(room: Room, who: Party, handoff: str, guard: str) -> None:
    """I27."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    donor = offered(journal, receipt)
    answer = journal.accept(receipt, who, handoff, donor)
    assert isinstance(answer, Refused)
    assert guard in answer.guards
    answer = journal.accept(receipt, YOU, "handoff-1", Holder("i1", "p1", 1, "old"))
    assert isinstance(answer, Refused)
    assert "donor_owns" in answer.guards


# -- when the owner is gone -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("open_offer", [False, True])
def test_recovered_only_with_proof(room: Room, open_offer: bool) -> None:
    """I22: looked up inside the transaction; an open offer is no bar (L1), and its recipient may take the work."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    donor = offered(journal, receipt) if open_offer else taken(journal, receipt)
    expected = str(donor.acquisition)
    for state in ("alive", "unknown"):
        if state == "unknown":
            room.lives.unknown.add("p1")
        answer = journal.recover(receipt, expected, YOU)
        assert isinstance(answer, Refused)
        assert "owner_proven_dead" in answer.guards
        assert f"refused in queued: the owner is {state}" == journal.life(receipt)[-1].detail
    room.lives.dead.add("p1")
    assert isinstance(journal.recover(receipt, "another", YOU), Refused)
    answer = journal.recover(receipt, expected, YOU)
    offer = Offer("handoff-1", "i2", "p2") if open_offer else None
    assert Freed("dead", donor, offer) == answer
    assert isinstance(journal.accept(receipt, YOU, "handoff-1", donor), Refused)
    assert [receipt] * open_offer == [row.receipt_id for row in journal.take_some(YOU, 9)]


def test_what_had_begun_is_interrupted(room: Room) -> None:
    """Never by itself again; shown; repeated by a person."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    holder = taken(journal, receipt)
    journal.start(receipt, holder)
    room.lives.dead.add("p1")
    assert Interrupted("dead", holder) == journal.recover(receipt, str(holder.acquisition), YOU)
    assert () == journal.take_some(ME, 9)
    assert [receipt] == [row.receipt_id for row in journal.stuck()]
    assert isinstance(journal.retry(receipt, "ann"), Freed)
    assert [receipt] == [row.receipt_id for row in journal.take_some(ME, 9)]


def test_all_work_of_the_dead_is_recovered(room: Room) -> None:
    """Each process is looked up once a transaction; the living keep theirs."""
    updates = range(10, 30)
    journal = room.started(*updates)
    receipts = {update: kept(journal, update) for update in updates}
    for row in journal.take_some(ME, 15):
        if row.first_update < 13:
            assert row.data.owner is not None
            journal.start(row.receipt_id, row.data.owner)
    serves(journal, "B", YOU)
    assert 5 == len(journal.take_some(YOU, 99))
    assert () == journal.recover_all(THIRD)
    room.lives.dead.add("p1")
    room.lives.asked.clear()
    found = journal.recover_all(THIRD)
    assert 15 == len(found)
    assert {"interrupted", "pending"} == {phase(journal, each.receipt_id) for each in found}
    assert [receipts[u] for u in (10, 11, 12)] == [e.receipt_id for e in found if isinstance(e.outcome, Interrupted)]
    assert 1 == room.lives.asked.count("p1")
    assert () == journal.recover_all(THIRD)


def test_an_activation_takes_its_past_back(room: Room) -> None:
    """L7: nobody has to die for it that an earlier activation of this very process is over."""
    journal = room.started(5, 6)
    one, two = kept(journal, 5), kept(journal, 6)
    begun, queued = taken(journal, one), taken(journal, two)
    journal.start(one, begun)
    assert () == journal.reclaim(ME)
    assert () == journal.reclaim(YOU)
    reloaded = Party("i1b", "p1", 1)
    assert (
        Recovered(one, Interrupted("over", begun)),
        Recovered(two, Freed("over", queued)),
    ) == journal.reclaim(reloaded)
    journal.serve("B", reloaded)
    assert [two] == [row.receipt_id for row in journal.take_some(reloaded, 9)]


# -- nothing there ----------------------------------------------------------------------------------------------------


def test_no_such_receipt(room: Room) -> None:
    """A refusal like any other; nothing is written about it."""
    journal = room.started()
    before = room.bytes()
    holder = Holder("i1", "p1", 1, "a")
    answers = [
        journal.take("no", ME),
        journal.offer("no", holder, "h", YOU),
        journal.accept("no", YOU, "h", holder),
        journal.cancel("no", holder, "h"),
        journal.start("no", holder),
        journal.complete("no", holder),
        journal.fail("no", holder, 1),
        journal.release("no", holder),
        journal.recover("no", "a", ME),
        journal.retry("no", "ann"),
        journal.discard("no", "ann"),
    ]
    assert all(isinstance(answer, Refused) and ("absent", ()) == (answer.phase, answer.guards) for answer in answers)
    assert before == room.bytes()
    assert journal.receipt("no") is None


def test_a_move_that_a_person_wants(room: Room) -> None:
    """Its owner sees it, and writes down what has come of it; what is settled needs no move."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    holder = taken(journal, receipt)
    assert not journal.ask_move("no", "i2")
    assert journal.ask_move(receipt, "i2")
    assert [(receipt, "i2")] == [(move.receipt_id, move.instance) for move in journal.moves_for("p1")]
    assert () == journal.moves_for("p2")
    assert journal.answer_move(receipt, "accepted")
    assert not journal.answer_move(receipt, "again")
    assert ["accepted"] == [move.outcome for move in journal.moves_for("p1")]
    move = journal.move_of(receipt)
    assert move is not None
    assert "accepted" == move.outcome
    assert journal.ask_move(receipt, "i3")
    (asked,) = journal.moves_for("p1")
    # What came of a wish is no answer to the next one.
    assert journal.ask_move(receipt, "i4")
    assert not journal.answer_move(receipt, "moved to i3", asked)
    (asked,) = journal.moves_for("p1")
    assert ("i4", None) == (asked.instance, asked.outcome)
    assert journal.answer_move(receipt, "moved to i4", asked)
    assert journal.ask_move(receipt, "i3")
    assert [None] == [move.outcome for move in journal.moves_for("p1")]
    journal.start(receipt, holder)
    journal.complete(receipt, holder)
    assert journal.move_of(receipt) is None
    assert not journal.ask_move(receipt, "i2")


def test_evidence_is_inserted_under_any_epoch(room: Room) -> None:
    """Exempt from the fence by design (DESIGN 10)."""
    journal = room.started()
    journal.raise_fence(EPOCH + 5, "i2")
    journal.add_evidence("thread", "pending-1", '{"id":7}')
    journal.add_evidence("thread", "pending-2", '{"id":8}')
    journal.add_evidence("other", "pending-1", "{}")
    assert ["pending-1", "pending-2"] == [row.subject for row in journal.evidence("thread")]
    assert ['{"id":7}'] == [row.detail for row in journal.evidence("thread", "pending-1")]
