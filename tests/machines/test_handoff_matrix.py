"""The failure matrix of a handoff, F1 to F21 (bus.md e), by its machines alone: one test a row, named by it.

A row, two ends and a leader between, each told what the other's outputs ask for. What only a wire or a disk can show
(F13, F18, F20) is tested here as far as a machine has a part in it, and for the rest in `tests/adapters/handoff`.
"""

from __future__ import annotations

import attrs
import pytest

from tenure.machines import donor_messages as give
from tenure.machines import recipient_messages as take
from tenure.machines.chart import Refused, Step, Table, step
from tenure.machines.donor import DONOR
from tenure.machines.receipt import RECEIPT
from tenure.machines.receipt_messages import (
    Accept,
    Accepted,
    Cancel,
    Complete,
    Discard,
    Evidence,
    Fail,
    Freed,
    Happening,
    Holder,
    Offer,
    OfferTo,
    Output,
    Party,
    Receipt,
    Reclaim,
    Recover,
    Release,
    Same,
    Start,
    Take,
    Taken,
)
from tenure.machines.recipient import RECIPIENT
from tenure.machines.relay import RELAY, Bounds, Pass, PassOn

D, R, C = (Party(f"{name}:1", f"process {name}", 1) for name in "drc")
ITEM, SOURCES = "item", (7,)
FITS = PassOn(True, True, True, False, True, 1_000)


def done(answer: Step | Refused) -> Step:  # type: ignore[type-arg]
    """The step, where it was one."""
    assert isinstance(answer, Step), answer
    return answer


@attrs.define
class Journal:
    """One row, and the acquisitions that were minted for it."""

    phase: str = RECEIPT.initial
    data: Receipt = attrs.field(factory=lambda: Receipt(3))
    minted: int = 0

    def tell(self, message: Happening) -> Output | Refused:
        """One transaction."""
        answer = step(RECEIPT, self.phase, self.data, message)
        if isinstance(answer, Refused):
            return answer
        self.phase, self.data = answer.phase, answer.data
        (output,) = answer.outputs
        return output

    def fresh(self) -> str:
        self.minted += 1
        return f"acquisition {self.minted}"

    @property
    def owner(self) -> Holder | None:
        return self.data.owner

    def look(self) -> give.Looked:
        return give.Looked(self.phase, self.data.owner, self.data.offer)


@attrs.define
class Here:
    """What one process has of the item in its memory: a donor's machine, or a recipient's; and what that asks for."""

    me: Party
    journal: Journal
    phase: str = "none"
    data: give.Item | take.Place | None = None
    outputs: tuple[object, ...] = ()

    @property
    def machine(self) -> Table:  # type: ignore[type-arg]
        return DONOR if isinstance(self.data, give.Item) else RECIPIENT

    def tell(self, message: give.Happening | take.Happening) -> tuple[object, ...]:
        """It must be taken."""
        answer = done(step(self.machine, self.phase, self.data, message))
        self.phase, self.data, self.outputs = answer.phase, answer.data, answer.outputs
        return self.outputs

    def refuses(self, message: give.Happening | take.Happening) -> tuple[str, ...]:
        """It must not."""
        answer = step(self.machine, self.phase, self.data, message)
        assert isinstance(answer, Refused), answer
        return answer.guards

    # -- a donor ------------------------------------------------------------------------------------------------------

    def hold(self, holder: Holder) -> Here:
        self.phase, self.data = DONOR.initial, give.Item(ITEM, holder, SOURCES)
        return self

    @property
    def holder(self) -> Holder:
        assert isinstance(self.data, give.Item)
        return self.data.holder

    def offer(self, handoff: str, to: Party) -> give.SendOffer:
        """Decide, write it down; what is sent then."""
        (asked,) = self.tell(give.Move(handoff, to))
        assert isinstance(asked, give.OfferInJournal)
        assert not isinstance(self.journal.tell(OfferTo(asked.holder, asked.handoff, asked.recipient)), Refused)
        (sent,) = self.tell(give.Offered())
        assert isinstance(sent, give.SendOffer)
        return sent

    def answered(self, holder: Holder | None) -> tuple[object, ...]:
        return self.tell(give.Acked(ITEM, holder, SOURCES))

    def withdraw(self) -> tuple[object, ...]:
        """Do as it asks: withdraw the offer, and look where that is refused."""
        (asked,) = self.outputs
        assert isinstance(asked, give.CancelInJournal), asked
        answer = self.journal.tell(Cancel(asked.holder, asked.handoff))
        if not isinstance(answer, Refused):
            return self.tell(give.Cancelled())
        assert self.tell(give.CancelRefused()) == (give.LookUp(),)
        return self.tell(self.journal.look())

    # -- a recipient --------------------------------------------------------------------------------------------------

    def stage(self, sent: give.SendOffer) -> None:
        self.phase, self.data = RECIPIENT.initial, take.Place(self.me)
        self.tell(take.Arrived(sent.handoff, sent.holder, current=True, able=True))

    def accept(self) -> Output | Refused:
        """The transaction, and what it says."""
        assert isinstance(self.data, take.Place)
        handoff, donor = self.data.handoff, self.data.donor
        assert handoff is not None
        assert donor is not None
        answer = self.journal.tell(Accept(self.me, handoff, donor, self.journal.fresh()))
        if isinstance(answer, Refused):
            assert self.tell(take.AcceptRefused()) == (take.Deny(),)
        else:
            assert isinstance(answer, Accepted | Same)
            self.tell(take.AcceptedInJournal(answer.holder))
        return answer

    def publish(self) -> Holder:
        """Into the queue; what it answers."""
        (said,) = self.tell(take.Published())
        assert isinstance(said, take.Confirm)
        return said.holder


@attrs.define
class World:
    """A row that the donor has taken; what it has offered to the recipient as "h"."""

    journal: Journal = attrs.field(factory=Journal)
    d: Here = attrs.field(init=False)
    r: Here = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        taken = self.journal.tell(Take(D, self.journal.fresh(), "serves"))
        assert isinstance(taken, Taken)
        self.d, self.r = Here(D, self.journal).hold(taken.holder), Here(R, self.journal)

    def moved(self, handoff: str = "h") -> Holder:
        """From donor to recipient, and nothing goes wrong."""
        self.r.stage(self.d.offer(handoff, R))
        self.r.accept()
        holder = self.r.publish()
        assert self.d.answered(holder) == (give.Drop(),)
        return holder

    def executes(self, here: Here) -> bool:
        """Whether this one can begin the item, and ends it."""
        holder = here.holder if isinstance(here.data, give.Item) else self.journal.owner
        assert holder is not None
        if isinstance(self.journal.tell(Start(holder)), Refused):
            return False
        return not isinstance(self.journal.tell(Complete(holder)), Refused)


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


def test_l3_what_was_accepted_in_vain_is_given_back(world: World) -> None:
    """L3: in the journal, not in memory alone; until the journal has answered, it is asked."""
    world.r.stage(world.d.offer("h", R))
    world.r.accept()
    holder = world.journal.owner
    assert holder is not None
    assert world.r.tell(take.CheckFailed()) == (take.ReleaseInJournal(holder),)
    assert world.r.tell(take.JournalFailed()) == (take.ReleaseInJournal(holder),)
    assert world.journal.tell(Release(holder)) == Freed("released", holder)
    assert world.r.tell(take.Released()) == (take.Deny(),)
    world.d.answered(None)
    assert world.d.withdraw() == (give.Drop(),)
    assert world.journal.phase == "pending"


def test_l7_the_next_activation_takes_back_what_was_offered(world: World) -> None:
    """L7: nobody has to die; an acceptance that comes after it is refused."""
    world.r.stage(world.d.offer("h", R))
    assert isinstance(world.journal.tell(Reclaim(D.process, "d:2")), Freed)
    assert isinstance(world.r.accept(), Refused)
    world.d.tell(give.NoAnswer())
    assert world.d.withdraw() == (give.Drop(),)


def test_l11_the_inner_patience_follows_the_outer_one() -> None:
    """L11: less than what is left of it, whatever that is, and never less than nothing."""
    for left, inner in ((30_000, 29_900), (1_000, 900), (50, 0)):
        assert done(step(RELAY, RELAY.initial, Bounds(100), attrs.evolve(FITS, left_ms=left))).outputs == (Pass(inner),)


def test_m31c_who_does_not_know_handoffs_is_asked_nothing() -> None:
    """I31: the leader, the donor, the recipient."""
    answer = step(RELAY, RELAY.initial, Bounds(100), attrs.evolve(FITS, both_know=False))
    assert isinstance(answer, Refused)
    assert answer.guards == ("both_can",)


def test_an_outcome_that_nobody_knows(world: World) -> None:
    """Unknown: an offer, an acceptance, a beginning that the row has and nobody was told of."""
    d, r = world.d, world.r
    d.tell(give.Move("h", R))
    world.journal.tell(OfferTo(d.holder, "h", R))
    assert d.tell(give.JournalFailed()) == (give.OfferInJournal(d.holder, "h", R),)
    assert isinstance(world.journal.tell(OfferTo(d.holder, "h", R)), Same)
    (sent,) = d.tell(give.Offered())
    assert isinstance(sent, give.SendOffer)
    r.stage(sent)
    first = world.journal.tell(Accept(R, "h", sent.holder, "one"))
    assert isinstance(first, Accepted)
    assert r.tell(take.JournalFailed()) == (take.AcceptInJournal("h", sent.holder),)
    again = r.accept()
    assert again == Same(first.holder)
    holder = r.publish()
    d.answered(holder)
    mine = Here(R, world.journal).hold(holder)
    world.journal.tell(Start(holder))
    assert isinstance(world.journal.tell(Start(holder)), Refused)
    mine.tell(give.StartRefused())
    assert mine.tell(world.journal.look()) == (give.Begin(),)


@pytest.mark.parametrize("before", ["holding", "offering", "awaiting", "cancelling", "looking"])
def test_the_end_of_a_session_gives_it_back(world: World, before: str) -> None:
    """V7: whatever was being done with it; nothing that comes later brings it back."""
    d = world.d
    if before != "holding":
        d.tell(give.Move("h", R))
    if before not in ("holding", "offering"):
        world.journal.tell(OfferTo(d.holder, "h", R))
        d.tell(give.Offered())
    if before in ("cancelling", "looking"):
        d.tell(give.NoAnswer())
    if before == "looking":
        d.tell(give.CancelRefused())
    assert d.phase == before
    assert d.tell(give.EndSession()) == (give.ReleaseInJournal(d.holder),)
    assert isinstance(world.journal.tell(Release(d.holder)), Freed)
    assert d.tell(give.Released()) == (give.Drop(),)
    for late in (give.Cancelled(), world.journal.look(), give.NoAnswer(), give.Move("h2", R)):
        assert d.refuses(late) == ()
