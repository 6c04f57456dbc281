"""What the rows of the failure matrix leave open of a handoff: holes that are closed (L3, L7, L11), who is asked
nothing (M31c), outcomes that nobody knows, and the end of a session. By the machines alone."""

from __future__ import annotations

import attrs
import pytest

from tenure.machines import donor_messages as give
from tenure.machines import recipient_messages as take
from tenure.machines.chart import Refused, step
from tenure.machines.receipt_messages import (
    Accept,
    Accepted,
    Freed,
    OfferTo,
    Reclaim,
    Release,
    Same,
    Start,
)
from tenure.machines.relay import RELAY, Bounds, Pass
from tests.machines.handoff_world import FITS, D, Here, R, World, done


@pytest.fixture
def world() -> World:
    """A row that the donor has taken."""
    return World()


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
