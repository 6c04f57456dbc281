"""One receipt as values: who may execute it, how it changes hands, and what is refused (bus.md d, e)."""

from __future__ import annotations

from functools import reduce

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.machines.chart import Refused, Step, step
from tenure.machines.receipt import RECEIPT
from tenure.machines.receipt_messages import (
    Accept,
    Accepted,
    Cancel,
    Cancelled,
    Complete,
    Completed,
    Discard,
    Discarded,
    Doubt,
    Evidence,
    Fail,
    Freed,
    GivenUp,
    Happening,
    Holder,
    Interrupted,
    Offer,
    Offered,
    OfferTo,
    Output,
    Party,
    Receipt,
    Reclaim,
    Recover,
    Release,
    Retry,
    Right,
    Same,
    Start,
    Started,
    Take,
    Taken,
)

A, B, C = (Party(f"{name}:1", f"process {name}", 7) for name in "abc")
A2 = attrs.evolve(A, instance="a:2", session=8)
"""A after a reload: another activation of the same process."""


def holder(who: Party, acquisition: str, handoff: str | None = None) -> Holder:
    """`who` as an owner."""
    return Holder(who.instance, who.process, who.session, acquisition, handoff)


def offer(handoff: str, to: Party) -> Offer:
    """An open offer to somebody."""
    return Offer(handoff, to.instance, to.process)


HA, HB = holder(A, "1"), holder(B, "2", "h")
TAKE = Take(A, "1", "serves")
OFFERED = (TAKE, OfferTo(HA, "h", B))
ACCEPT = Accept(B, "h", HA, "2")
ACCEPTED = (*OFFERED, ACCEPT)
STARTED = (TAKE, Start(HA))


def told(*messages: Happening, limit: int = 3) -> Step[Receipt, Output]:
    """What a new row answers to the last of the messages; all must be taken."""

    def one(before: Step[Receipt, Output], message: Happening) -> Step[Receipt, Output]:
        after = step(RECEIPT, before.phase, before.data, message)
        assert isinstance(after, Step), (message, after)
        return after

    return reduce(one, messages, Step(RECEIPT.initial, Receipt(limit), ()))


def refused(message: Happening, *before: Happening) -> tuple[str, ...]:
    """The guards that refuse `message` after the others."""
    here = told(*before)
    answer = step(RECEIPT, here.phase, here.data, message)
    assert isinstance(answer, Refused), answer
    return answer.guards


def test_from_pending_to_done() -> None:
    """Taken, begun, done; who owned it is told in every decision, and nobody owns it afterwards."""
    assert told(TAKE).outputs == (Taken(HA),)
    assert told(*STARTED).outputs == (Started(HA, 1),)
    done = told(*STARTED, Complete(HA))
    assert (done.phase, done.outputs, done.data) == ("done", (Completed(HA),), Receipt(3, attempts=1))


@pytest.mark.parametrize("right", ["serves", "left"])
def test_who_may_take_pending_work(right: Right) -> None:
    """Who serves the binding, and the leader where nobody is left; nobody else."""
    assert told(Take(A, "1", right)).phase == "queued"
    assert refused(Take(A, "1", "none")) == ("may_take",)


def test_taking_it_again_is_the_same_answer() -> None:
    """For who has it, whatever acquisition he brings; another is refused."""
    again = told(TAKE, Take(A, "9", "serves"))
    assert (again.outputs, again.data.owner) == ((Same(HA),), HA)
    assert refused(Take(B, "9", "serves"), TAKE) == ("taker_has_it",)
    assert refused(Take(A2, "9", "serves"), TAKE) == ("taker_has_it",)
    assert told(*OFFERED, Take(A, "9", "serves")).outputs == (Same(HA, offer("h", B)),)
    assert refused(Take(A, "9", "serves"), *STARTED) == ()


def test_a_handoff_is_one_transaction() -> None:
    """The recipient owns it under a new acquisition, and the row says by which handoff."""
    assert told(*OFFERED).outputs == (Offered(offer("h", B)),)
    accepted = told(*ACCEPTED)
    assert (accepted.phase, accepted.outputs) == ("queued", (Accepted(HB, HA),))
    assert accepted.data == Receipt(3, owner=HB)
    assert told(*ACCEPTED, Start(HB), Complete(HB)).phase == "done"
    for late in (Start(HA), Release(HA), Cancel(HA, "h"), OfferTo(HA, "h2", C)):
        assert refused(late, *ACCEPTED) == ("process_owns",)


def test_the_same_offer_again_is_the_same_answer() -> None:
    """F15: the same id for the same recipient; any other is refused while one is open (I28)."""
    assert told(*OFFERED, OfferTo(HA, "h", B)).outputs == (Same(HA, offer("h", B)),)
    for other in (OfferTo(HA, "h2", B), OfferTo(HA, "h", C)):
        assert refused(other, *OFFERED) == ("one_offer", "same_offer")
    assert refused(OfferTo(HB, "h2", C), TAKE) == ("process_owns",)


def test_f16_an_offer_is_to_another_process() -> None:
    """F16: neither to oneself nor to another activation of the same process."""
    for mine in (A, A2):
        assert "to_another_process" in refused(OfferTo(HA, "h", mine), TAKE)


def test_f17_i28_while_offered_nothing_is_done_with_it() -> None:
    """F17: not begun, hence neither done nor failed; not thrown away either."""
    assert refused(Start(HA), *OFFERED) == ("offered_is_frozen",)
    for early in (Complete(HA), Fail(HA), Discard("ann"), Retry("ann")):
        assert refused(early, *OFFERED) == ()


def test_i29_accepting_again_is_the_same_answer() -> None:
    """I29: the same process and the same handoff; the session does not matter. What has begun is in no journal's hands:
    the recipient itself answers again."""
    later = attrs.evolve(ACCEPT, recipient=attrs.evolve(B, session=99), acquisition="9")
    assert told(*ACCEPTED, later).outputs == (Same(HB),)
    assert refused(later, *ACCEPTED, Start(HB)) == ()
    for other in (
        attrs.evolve(ACCEPT, recipient=C),
        attrs.evolve(ACCEPT, recipient=attrs.evolve(B, instance="b:2")),
        attrs.evolve(ACCEPT, handoff="h2"),
    ):
        assert "accepted_before" in refused(other, *ACCEPTED)
    assert refused(ACCEPT, *ACCEPTED, Start(HB), Complete(HB)) == ()


@pytest.mark.parametrize(
    ("wrong", "guard"),
    [
        (attrs.evolve(ACCEPT, handoff="old"), "offer_is_that"),
        (attrs.evolve(ACCEPT, recipient=C), "recipient_is_me"),
        (attrs.evolve(ACCEPT, recipient=attrs.evolve(B, process="another")), "recipient_is_me"),
        (attrs.evolve(ACCEPT, donor=attrs.evolve(HA, acquisition="0")), "donor_owns"),
        (attrs.evolve(ACCEPT, donor=attrs.evolve(HA, process="another")), "donor_owns"),
        (attrs.evolve(ACCEPT, donor=attrs.evolve(HA, handoff="before")), "donor_owns"),
    ],
)
def test_i27_what_is_accepted_is_the_exact_offer(wrong: Accept, guard: str) -> None:
    """I27: the id, the recipient, and the donor with its acquisition; the donor's session does not matter."""
    assert refused(wrong, *OFFERED) == (guard, "accepted_before")
    assert told(*OFFERED, attrs.evolve(ACCEPT, donor=attrs.evolve(HA, session=0))).data.owner == HB


def test_l6_a_receipt_moves_on() -> None:
    """L6: what came by a handoff is handed on, there and back, five times; the donor's handoff id is part of him."""
    messages: tuple[Happening, ...] = (TAKE,)
    donor = HA
    for turn in range(5):
        to, h = (A, B, C)[(turn + 1) % 3], f"h{turn}"
        messages += (OfferTo(donor, h, to), Accept(to, h, donor, f"n{turn}"))
        donor = holder(to, f"n{turn}", h)
        assert told(*messages).data.owner == donor
    assert told(*messages, Start(donor), Complete(donor)).phase == "done"


def test_l6_without_the_donors_own_handoff_it_is_not_he() -> None:
    """L6: who leaves it out names another owner."""
    onward = (*ACCEPTED, OfferTo(HB, "h2", C))
    assert "donor_owns" in refused(Accept(C, "h2", attrs.evolve(HB, handoff=None), "3"), *onward)
    assert told(*onward, Accept(C, "h2", HB, "3")).data.owner == holder(C, "3", "h2")


def test_cancelling_and_accepting_exclude_each_other() -> None:
    """F3, F4, F5: the first transaction decides."""
    assert told(*OFFERED, Cancel(HA, "h")).outputs == (Cancelled(HA),)
    assert refused(ACCEPT, *OFFERED, Cancel(HA, "h")) == ("recipient_is_me", "accepted_before")
    assert refused(Cancel(HA, "h"), *ACCEPTED) == ("process_owns",)
    assert refused(Cancel(HA, "other"), *OFFERED) == ("offer_still_open",)
    assert refused(Cancel(HA, "h"), TAKE) == ("offer_still_open",)
    assert told(*OFFERED, Cancel(HA, "h"), Start(HA)).phase == "started"


def test_m21_only_the_exact_owner_settles() -> None:
    """I21: neither the receipt's id nor the process is enough; the session is not needed."""
    for settle in (Complete, Fail):
        assert refused(settle(HB), *STARTED) == ("process_owns",)
        assert refused(settle(attrs.evolve(HA, acquisition="0")), *STARTED) == ("acquisition_is_current",)
        assert refused(settle(HA), TAKE) == ()
        told(*STARTED, settle(attrs.evolve(HA, session=0)))
    assert refused(Start(HA), *STARTED) == ()


def test_a_definite_failure_is_tried_again_and_then_no_more() -> None:
    """V5, B74: pending until the limit, then it waits for a person, who has all attempts again."""
    once = told(*STARTED, Fail(HA))
    assert (once.phase, once.outputs, once.data.attempts) == ("pending", (Freed("failed", HA),), 1)
    twice = (*STARTED, Fail(HA), TAKE, Start(HA), Fail(HA))
    last = told(*twice, limit=2)
    assert (last.phase, last.outputs) == ("failed", (GivenUp(HA, 2),))
    again = told(*twice, Retry("ann"), limit=2)
    assert (again.phase, again.data, again.outputs) == ("pending", Receipt(2), (Freed("retried"),))


@pytest.mark.parametrize("before", [(TAKE,), OFFERED])
def test_released_work_is_pending(before: tuple[Happening, ...]) -> None:
    """L3, L7: also while it is offered, and then nobody can accept it any more."""
    free = told(*before, Release(HA))
    assert (free.phase, free.outputs, free.data) == ("pending", (Freed("released", HA),), Receipt(3))
    assert refused(ACCEPT, *before, Release(HA)) == ()


def test_what_has_certainly_not_begun_is_released_whatever_the_row_says() -> None:
    """Its owner was not told that it may begin, and has not; the exact owner alone."""
    assert told(*STARTED, Release(HA)).outputs == (Freed("released", HA),)
    assert refused(Release(HB), *STARTED) == ("process_owns",)
    assert refused(Release(attrs.evolve(HA, acquisition="0")), *STARTED) == ("acquisition_is_current",)


def test_an_owner_that_does_not_know_what_came_of_it_says_so() -> None:
    """Unknown: neither done nor failed, and nobody but a person repeats it."""
    cut = told(*STARTED, Doubt(HA))
    assert (cut.phase, cut.outputs, cut.data) == ("interrupted", (Interrupted("doubted", HA),), Receipt(3, attempts=1))
    assert refused(Doubt(HA), TAKE) == ()
    assert refused(Doubt(HB), *STARTED) == ("process_owns",)


@pytest.mark.parametrize("evidence", ["alive", "unknown"])
@pytest.mark.parametrize("before", [(TAKE,), OFFERED, STARTED])
def test_m22_only_a_death_that_is_proven_recovers(before: tuple[Happening, ...], evidence: Evidence) -> None:
    """I22: alive and unverifiable are refused, and nothing changes."""
    assert refused(Recover("1", evidence), *before) == ("owner_proven_dead",)
    assert refused(Recover("0", "dead"), *before) == ("owner_is_expected",)


def test_f6_the_work_of_a_dead_owner_is_pending() -> None:
    """F6, V6: unless it had begun."""
    assert told(TAKE, Recover("1", "dead")).outputs == (Freed("dead", HA),)
    begun = told(*STARTED, Recover("1", "dead"))
    assert (begun.phase, begun.outputs, begun.data) == (
        "interrupted",
        (Interrupted("dead", HA),),
        Receipt(3, None, attempts=1),
    )


def test_l1_f7_the_open_offer_of_a_dead_donor_falls() -> None:
    """L1: the work is pending, and who was named in the offer may take it, whatever it serves."""
    fallen = (*OFFERED, Recover("1", "dead"))
    assert told(*fallen).outputs == (Freed("dead", HA, offer("h", B)),)
    assert refused(ACCEPT, *fallen) == ()
    assert refused(Take(C, "3", "none"), *fallen) == ("may_take",)
    assert refused(Take(attrs.evolve(B, instance="b:2"), "3", "none"), *fallen) == ("may_take",)
    taken = told(*fallen, Take(B, "3", "none"))
    assert (taken.data, taken.outputs) == (Receipt(3, owner=holder(B, "3")), (Taken(holder(B, "3")),))


def test_f10_a_recipient_that_died_after_it_accepted_is_recovered() -> None:
    """F8, F10: it is the recipient's death that counts, no longer the donor's."""
    assert refused(Recover("1", "dead"), *ACCEPTED) == ("owner_is_expected",)
    assert told(*ACCEPTED, Recover("2", "dead")).phase == "pending"


def test_l7_an_activation_that_is_over_is_reclaimed_by_the_next() -> None:
    """L7, V7: of the same process, and of no other; an offer falls, what had begun is interrupted."""
    mine = Reclaim(A2.process, A2.instance)
    assert told(TAKE, mine).outputs == (Freed("over", HA),)
    assert told(*OFFERED, mine).data == Receipt(3)
    assert told(*STARTED, mine).outputs == (Interrupted("over", HA),)
    for other in (Reclaim(B.process, B.instance), Reclaim(A.process, A.instance)):
        assert refused(other, TAKE) == refused(other, *STARTED) == ("earlier_activation",)


def test_what_was_interrupted_only_a_person_repeats() -> None:
    """Nobody else, and it begins from its first attempt."""
    cut = (*STARTED, Recover("1", "dead"))
    assert refused(Retry(""), *cut) == refused(Discard(""), *cut) == ("a_person_asks",)
    assert refused(TAKE, *cut) == ()
    assert told(*cut, Retry("ann"), TAKE, Start(HA)).outputs == (Started(HA, 1),)
    gone = told(*cut, Discard("ann"))
    assert (gone.phase, gone.outputs) == ("discarded", (Discarded("ann"),))
    assert told(Discard("ann")).phase == "discarded"
    assert refused(Discard("ann"), TAKE) == refused(Discard("ann"), *STARTED) == ()
    assert refused(Retry("ann"), TAKE) == refused(Retry("ann")) == ()


PARTIES = st.sampled_from([A, A2, B, C])
NUMBERS = st.sampled_from(["1", "2", "3"])
HOLDERS = st.builds(holder, PARTIES, NUMBERS, st.sampled_from([None, "1", "2"]))
HAPPENINGS = st.one_of(
    st.builds(Take, PARTIES, NUMBERS, st.sampled_from(["serves", "none"])),
    st.builds(OfferTo, HOLDERS, NUMBERS, PARTIES),
    st.builds(Accept, PARTIES, NUMBERS, HOLDERS, NUMBERS),
    st.builds(Cancel, HOLDERS, NUMBERS),
    *(st.builds(kind, HOLDERS) for kind in (Start, Complete, Fail, Doubt, Release)),
    st.builds(Recover, NUMBERS, st.sampled_from(["alive", "dead", "unknown"])),
    st.builds(Reclaim, PARTIES.map(lambda p: p.process), PARTIES.map(lambda p: p.instance)),
    *(st.builds(kind, st.sampled_from(["", "ann"])) for kind in (Retry, Discard)),
)


@given(st.lists(HAPPENINGS, max_size=40))
def test_a_row_is_always_a_row(messages: list[Happening]) -> None:
    """Owned exactly while queued or started; offered only while queued, and never to its own process."""
    phase, data = RECEIPT.initial, Receipt(2)
    for message in messages:
        answer = step(RECEIPT, phase, data, message)
        if isinstance(answer, Refused):
            continue
        phase, data = answer.phase, answer.data
        assert len(answer.outputs) == 1
        assert (data.owner is not None) == (phase in ("queued", "started"))
        assert data.offer is None or phase == "queued"
        assert data.offer is None or data.owner is None or data.offer.process != data.owner.process
        assert data.fallen is None or phase in ("pending", "discarded")
        assert 0 <= data.attempts <= 2
