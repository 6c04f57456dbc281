"""The failure matrix of a handoff, F1 to F21 (bus.md e), by its machines alone: one test a row, named by it.

A row, two ends and a leader between, each told what the other's outputs ask for. What only a wire or a disk can show
(F13, F18, F20) is tested here as far as a machine has a part in it, and for the rest in `tests/adapters/handoff`.
"""

from __future__ import annotations

import attrs
import pytest

from tenure.machines import donor_messages as give
from tenure.machines import recipient_messages as take
from tenure.machines.chart import Refused, step
from tenure.machines.receipt_messages import (
    Accept,
    Accepted,
    Cancel,
    Complete,
    Discard,
    Evidence,
    Fail,
    Freed,
    Holder,
    Offer,
    OfferTo,
    Party,
    Recover,
    Release,
    Same,
    Start,
    Take,
    Taken,
)
from tenure.machines.recipient import RECIPIENT
from tenure.machines.relay import RELAY, Bounds, Pass
from tests.machines.handoff_world import FITS, ITEM, SOURCES, C, D, Here, R, World, done


@pytest.fixture
def world() -> World:
    """A row that the donor has taken."""
    return World()


def test_nothing_goes_wrong(world: World) -> None:
    """The donor's copy is dropped, the recipient's is executed, and the donor can do nothing with the row."""
    holder = world.moved()
    assert (holder.instance, holder.handoff, world.d.phase, world.r.phase) == (R.instance, "h", "gone", "live")
    for late in (Start(world.d.holder), Cancel(world.d.holder, "h"), Release(world.d.holder)):
        assert isinstance(world.journal.tell(late), Refused)
    assert world.executes(world.r)


def test_f1_a_negative_answer_before_the_acceptance(world: World) -> None:
    """F1: withdrawn, and the donor keeps its work."""
    world.r.stage(world.d.offer("h", R))
    assert world.d.answered(None) == (give.CancelInJournal(world.d.holder, "h"),)
    assert world.d.withdraw() == (give.Keep(),)
    assert isinstance(world.r.accept(), Refused)
    assert (world.d.phase, world.r.phase) == ("holding", "none")
    assert world.executes(world.d)


@pytest.mark.parametrize("accepted", [False, True])
@pytest.mark.parametrize("wrong", ["receipt", "sources", "recipient", "handoff", "none"])
def test_f2_an_answer_that_does_not_match(world: World, wrong: str, accepted: bool) -> None:
    """F2, I30: withdrawn where nobody has accepted; where somebody has, the row says so."""
    world.r.stage(world.d.offer("h", R))
    if accepted:
        world.r.accept()
    right = Holder(R.instance, R.process, 1, "acquisition 2", "h")
    answers = {
        "receipt": give.Acked("another", right, SOURCES),
        "sources": give.Acked(ITEM, right, (7, 8)),
        "recipient": give.Acked(ITEM, attrs.evolve(right, process="another"), SOURCES),
        "handoff": give.Acked(ITEM, attrs.evolve(right, handoff="h0"), SOURCES),
        "none": give.Acked(ITEM, attrs.evolve(right, handoff=None), SOURCES),
    }
    world.d.tell(answers[wrong])
    assert world.d.withdraw() == ((give.Drop(),) if accepted else (give.Keep(),))
    assert world.executes(world.r if accepted else world.d)


def test_f3_a_request_that_is_lost(world: World) -> None:
    """F3: the time is over, withdrawn; when it comes after all it finds no offer."""
    sent = world.d.offer("h", R)
    world.d.tell(give.NoAnswer())
    assert world.d.withdraw() == (give.Keep(),)
    world.r.stage(sent)
    assert isinstance(world.r.accept(), Refused)
    assert world.executes(world.d)


def test_f3_a_request_that_is_lost_and_offered_anew(world: World) -> None:
    """F3, I27: the late one finds another offer to the same recipient, and that is not its own."""
    sent = world.d.offer("h", R)
    world.d.tell(give.NoAnswer())
    world.d.withdraw()
    anew = world.d.offer("h2", R)
    world.r.stage(sent)
    assert isinstance(world.r.accept(), Refused)
    world.r.stage(anew)
    assert isinstance(world.r.accept(), Accepted)
    assert world.d.answered(world.r.publish()) == (give.Drop(),)


def test_f4_an_answer_that_is_lost_before_the_acceptance(world: World) -> None:
    """F4: the recipient has only staged it; the donor's transaction comes first."""
    world.r.stage(world.d.offer("h", R))
    world.d.tell(give.NoAnswer())
    assert world.d.withdraw() == (give.Keep(),)
    assert isinstance(world.r.accept(), Refused)
    assert (world.r.phase, world.executes(world.d)) == ("none", True)


@pytest.mark.parametrize("finished", [False, True])
def test_f5_an_answer_that_is_lost_after_the_acceptance(world: World, finished: bool) -> None:
    """F5, L4: the row says whose it is, or that nobody's; the copy is dropped, and holds nothing up."""
    world.r.stage(world.d.offer("h", R))
    world.r.accept()
    world.r.publish()
    if finished:
        assert world.executes(world.r)
    world.d.tell(give.NoAnswer())
    assert world.d.withdraw() == (give.Drop(),)
    assert world.d.phase == "gone"
    assert world.d.refuses(give.Acked(ITEM, world.journal.owner, SOURCES)) == ()


def test_f5_a_row_that_cannot_be_read_is_looked_up_again(world: World) -> None:
    """F5: it is neither mine nor another's, until it can be read."""
    world.r.stage(world.d.offer("h", R))
    world.d.tell(give.NoAnswer())
    assert world.d.tell(give.JournalFailed()) == (give.CancelInJournal(world.d.holder, "h"),)
    world.d.tell(give.CancelRefused())
    assert world.d.tell(give.JournalFailed()) == (give.LookUp(),)
    assert world.d.tell(world.journal.look()) == (give.CancelInJournal(world.d.holder, "h"),)
    assert world.d.withdraw() == (give.Keep(),)


def test_f6_a_donor_that_dies_before_it_offers(world: World) -> None:
    """F6: recovered on proof."""
    assert world.journal.tell(Recover(world.d.holder.acquisition, "dead")) == Freed("dead", world.d.holder)
    assert world.journal.phase == "pending"


@pytest.mark.parametrize("evidence", ["alive", "unknown"])
def test_f7_a_donor_that_may_live_is_not_recovered(world: World, evidence: Evidence) -> None:
    """F7, I22: offered or not."""
    world.d.offer("h", R)
    assert isinstance(world.journal.tell(Recover(world.d.holder.acquisition, evidence)), Refused)
    assert world.journal.data.offer == Offer("h", R.instance, R.process)


def test_f7_a_donor_that_dies_with_an_open_offer(world: World) -> None:
    """F7, L1: the offer falls, an acceptance that comes then is refused, and its recipient may take the work."""
    world.r.stage(world.d.offer("h", R))
    world.journal.tell(Recover(world.d.holder.acquisition, "dead"))
    assert isinstance(world.r.accept(), Refused)
    taken = world.journal.tell(Take(R, world.journal.fresh(), "none"))
    assert isinstance(taken, Taken)
    assert world.executes(Here(R, world.journal).hold(taken.holder))


def test_f7_the_acceptance_that_was_first_counts(world: World) -> None:
    """F7: then the donor's death is no matter of the row any more."""
    world.r.stage(world.d.offer("h", R))
    world.r.accept()
    assert isinstance(world.journal.tell(Recover(world.d.holder.acquisition, "dead")), Refused)


def test_f8_a_donor_that_dies_after_the_acceptance(world: World) -> None:
    """F8: nothing is to be done, and nothing can be: its acquisition is over."""
    world.r.stage(world.d.offer("h", R))
    world.r.accept()
    assert isinstance(world.journal.tell(Recover(world.d.holder.acquisition, "dead")), Refused)
    world.r.publish()
    assert world.executes(world.r)


def test_f9_a_recipient_that_dies_before_it_accepts(world: World) -> None:
    """F9: no answer, withdrawn."""
    world.r.stage(world.d.offer("h", R))
    world.d.tell(give.NoAnswer())
    assert world.d.withdraw() == (give.Keep(),)
    assert world.executes(world.d)


def test_f10_a_recipient_that_dies_after_it_has_accepted(world: World) -> None:
    """F10: the donor drops its copy; the work is recovered on proof of the recipient's death, also by the donor, and
    then under an acquisition of its own."""
    world.r.stage(world.d.offer("h", R))
    world.r.accept()
    owner = world.journal.owner
    assert owner is not None
    world.d.tell(give.NoAnswer())
    assert world.d.withdraw() == (give.Drop(),)
    assert isinstance(world.journal.tell(Recover(owner.acquisition, "dead")), Freed)
    taken = world.journal.tell(Take(D, world.journal.fresh(), "serves"))
    assert isinstance(taken, Taken)
    assert isinstance(world.journal.tell(Start(world.d.holder)), Refused)
    assert world.executes(Here(D, world.journal).hold(taken.holder))


@pytest.mark.parametrize("stale", ["donor_current", "recipient_current"])
def test_f11_a_leader_that_is_new(stale: str) -> None:
    """F11: it knows neither generation, and passes nothing on: to the donor that is F3 or F5."""
    assert done(step(RELAY, RELAY.initial, Bounds(100), FITS)).outputs == (Pass(900),)
    answer = step(RELAY, RELAY.initial, Bounds(100), attrs.evolve(FITS, **{stale: False}))
    guard = {"donor_current": "donor_is_live", "recipient_current": "recipient_is_live"}[stale]
    assert isinstance(answer, Refused)
    assert answer.guards == (guard,)


def test_f12_a_recipient_that_registers_again(world: World) -> None:
    """F12: before the acceptance its old generation is refused; after it the owner is the same process."""
    sent = world.d.offer("h", R)
    world.r.phase, world.r.data = RECIPIENT.initial, take.Place(R)
    stale = take.Arrived(sent.handoff, sent.holder, current=False, able=True)
    assert world.r.refuses(stale) == ("generation_is_mine",)
    world.r.stage(sent)
    world.r.accept()
    world.r.me = attrs.evolve(R, session=2)
    again = world.journal.tell(Accept(world.r.me, "h", sent.holder, "another"))
    assert again == Same(world.journal.owner or world.d.holder)


def test_f13_f14_the_same_offer_again(world: World) -> None:
    """F13, F14, L5: under the same request or another, the same answer; also when it has begun, or asks the row."""
    sent = world.d.offer("h", R)
    world.r.stage(sent)
    again = take.Arrived(sent.handoff, sent.holder, current=True, able=True)
    assert world.r.refuses(again) == ()
    world.r.accept()
    assert world.r.refuses(again) == ()
    holder = world.r.publish()
    assert world.r.tell(again) == (take.Confirm(holder),)
    other = attrs.evolve(again, handoff="h2")
    assert world.r.refuses(other) == ("live_answers_again",)
    world.journal.tell(Start(holder))
    assert world.r.tell(again) == (take.Confirm(holder),)


def test_f15_another_token_while_it_is_offered(world: World) -> None:
    """F15, I28: refused at the offer, and at the acceptance; the donor then finds the offer that is open."""
    world.d.offer("h", R)
    assert isinstance(world.journal.tell(OfferTo(world.d.holder, "h2", R)), Refused)
    other = Here(R, world.journal)
    other.stage(give.SendOffer(world.d.holder, "h2", R))
    assert isinstance(other.accept(), Refused)
    forgetful = Here(D, world.journal).hold(world.d.holder)
    forgetful.tell(give.Move("h3", R))
    assert forgetful.tell(give.OfferRefused()) == (give.LookUp(),)
    assert forgetful.tell(world.journal.look()) == (give.CancelInJournal(world.d.holder, "h"),)
    assert forgetful.withdraw() == (give.Keep(),)


@pytest.mark.parametrize("same", [D, attrs.evolve(D, instance="d:2")])
def test_f16_a_recipient_of_the_same_process(world: World, same: Party) -> None:
    """F16: refused, and the donor goes on."""
    world.d.tell(give.Move("h", same))
    assert isinstance(world.journal.tell(OfferTo(world.d.holder, "h", same)), Refused)
    world.d.tell(give.OfferRefused())
    assert world.d.tell(world.journal.look()) == (give.Keep(),)
    assert world.executes(world.d)


@pytest.mark.parametrize("kind", [Start, Complete, Fail])
def test_f17_a_donor_that_wants_to_end_it_while_it_is_offered(
    world: World, kind: type[Start | Complete | Fail]
) -> None:
    """F17: refused, and nobody throws it away either."""
    world.d.offer("h", R)
    before = (world.journal.phase, world.journal.data)
    assert isinstance(world.journal.tell(kind(world.d.holder)), Refused)
    assert isinstance(world.journal.tell(Discard("ann")), Refused)
    assert (world.journal.phase, world.journal.data) == before


def test_f18_another_journal(world: World) -> None:
    """F18, L2: there is one journal, and changing hands is one step of one row. Who has another says that he is not
    able, before he accepts."""
    sent = world.d.offer("h", R)
    world.r.phase, world.r.data = RECIPIENT.initial, take.Place(R)
    assert world.r.refuses(take.Arrived(sent.handoff, sent.holder, True, able=False)) == ("has_a_worker",)


def test_f19_a_second_transfer(world: World) -> None:
    """F19, L6: there, back, and on; the donor's own handoff goes with it."""
    first = world.moved()
    back = Here(R, world.journal).hold(first)
    sent = back.offer("h2", D)
    assert sent.holder.handoff == "h"
    here = Here(D, world.journal)
    here.stage(sent)
    assert isinstance(here.accept(), Accepted)
    second = here.publish()
    assert (back.answered(second), second.handoff) == ((give.Drop(),), "h2")
    on = Here(D, world.journal).hold(second)
    there = Here(C, world.journal)
    there.stage(on.offer("h3", C))
    there.accept()
    assert on.answered(there.publish()) == (give.Drop(),)
    assert world.executes(there)


def test_f19_not_through_who_does_not_know_it(world: World) -> None:
    """F19, L6: neither by a leader nor to a recipient that drops the donor's handoff; a first move goes everywhere."""
    assert world.d.tell(give.Move("h", R, leader_carries=False))
    second = Here(R, world.journal).hold(Holder(R.instance, R.process, 1, "2", "h"))
    assert second.refuses(give.Move("h2", C, leader_carries=False)) == ("leader_can_carry",)
    old = attrs.evolve(FITS, came_by_handoff=True, recipient_carries=False)
    answer = step(RELAY, RELAY.initial, Bounds(100), old)
    assert isinstance(answer, Refused)
    assert answer.guards == ("second_move_known",)
    done(step(RELAY, RELAY.initial, Bounds(100), attrs.evolve(old, came_by_handoff=False)))


def test_f20_a_payload_that_cannot_be_sent(world: World) -> None:
    """F20: then no `Move` is told, and the item stays: the row has heard nothing. If it is found out later, no answer
    comes, and that is F3."""
    assert (world.d.phase, world.journal.data.offer) == ("holding", None)
    world.d.offer("h", R)
    world.d.tell(give.NoAnswer())
    assert world.d.withdraw() == (give.Keep(),)


def test_f21_a_recipient_without_a_worker(world: World) -> None:
    """F21: it refuses before it accepts, so that it is F1."""
    sent = world.d.offer("h", R)
    world.r.phase, world.r.data = RECIPIENT.initial, take.Place(R)
    assert world.r.refuses(take.Arrived(sent.handoff, sent.holder, True, able=False)) == ("has_a_worker",)
    assert world.journal.owner == world.d.holder


# -- and what is beside the matrix ------------------------------------------------------------------------------------
