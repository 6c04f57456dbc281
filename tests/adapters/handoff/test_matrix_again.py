"""F13 to F15 and F19 of the failure matrix of bus.md (e): the same offer again, another one for the same item, and an
item that moves more than once; with who must be able to do what for that."""

from __future__ import annotations

import asyncio

import pytest

from tenure.adapters.bus.messages.protocol import (
    QUEUE_HANDOFF,
    QUEUE_HANDOFF_AGAIN,
    ProtocolIdentity,
)
from tenure.adapters.errors import TenureError
from tenure.adapters.handoff.envelopes import from_follower
from tests.adapters.handoff.town import (
    BARE,
    FIRST_ONLY,
    OFFER,
    Town,
    accepting,
    in_town,
    offer_of,
    pair,
    sending,
    settled_once,
)


@in_town()
async def test_F13_F14_the_same_offer_again_is_the_same_acceptance(town: Town) -> None:
    """By the same request, by another request with the same token; also once it has begun (L5)."""
    lead, other, receipt = await pair(town)
    other.between.fates[OFFER] = ["twice"]
    await lead.handoff.reconcile()
    first = other.between.answers[0]
    assert first["ok"]
    again = await other.between.again(requestId="50:1:another")
    assert first["result"] == again["result"]
    assert [receipt] == other.holds_now
    held = other.items.begin()
    assert held is not None
    await other.do(lambda j: j.start(receipt, held.holder))
    again = await other.between.again(requestId="50:1:third")
    assert first["result"] == again["result"]
    assert [] == other.holds_now
    await other.do(lambda j: j.complete(receipt, held.holder))
    other.items.ended()
    assert not (await other.between.again(requestId="50:1:fourth"))["ok"]  # who looks sees that it is done


@in_town()
async def test_F14_two_requests_at_once_accept_once(town: Town) -> None:
    """The second one waits for what comes of the first."""
    lead, other, receipt = await pair(town)
    passing, gate = await accepting(lead, other)
    second = asyncio.ensure_future(other.between.again(requestId="50:1:another"))
    await asyncio.sleep(0)
    gate.set()
    await passing
    answer = await second
    assert answer["ok"]
    assert other.between.answers[0]["result"] == answer["result"]
    assert 1 == other.journal.calls.count("accept")
    assert ([], [receipt]) == (lead.holds_now, other.holds_now)
    await settled_once(receipt, lead, other)


@in_town()
async def test_F15_another_token_for_the_same_item_is_refused(town: Town) -> None:
    """While the first offer is open, and after it was accepted."""
    lead, other, receipt = await pair(town)
    passing, hold = await sending(lead, other)
    early = await other.between.again(requestId="50:1:x", handoffToken="y" * 43)
    hold.set()
    await passing
    late = await other.between.again(requestId="50:1:y", handoffToken="y" * 43)
    assert (False, False) == (early["ok"], late["ok"])
    assert ([], [receipt]) == (lead.holds_now, other.holds_now)
    await settled_once(receipt, lead, other)


@in_town()
async def test_F19_an_item_moves_again_and_again(town: Town) -> None:
    """Five times, between three processes; each time with the handoff by which it came (L6)."""
    lead = await town.leads()
    one, two = await town.follows(101), await town.follows(102)
    receipt = (await lead.holds(5, lead.thread)).receipt_id
    seen = set()
    here = lead
    for there in (one, two, lead, two, one):
        await lead.do(lambda j, there=there: j.ask_move(receipt, there.party.instance))
        await here.handoff.reconcile()
        assert ([], [receipt]) == (here.holds_now, there.holds_now)
        held = there.items.get(receipt)
        assert held is not None
        seen.add(held.holder.handoff)
        here = there
    assert 5 == len(seen)
    await here.handoff.reconcile()  # where a person has put it, it stays
    assert [receipt] == here.holds_now
    await settled_once(receipt, lead, one, two)


@pytest.mark.parametrize("who", ["recipient", "leader"])
@in_town()
async def test_F19_a_second_move_is_not_offered_to_who_does_not_know_it(town: Town, who: str) -> None:
    """Neither to a recipient nor through a leader that would drop the donor's handoff: the item stays, and the donor
    says why."""
    old = {"protocol": FIRST_ONLY} if who == "leader" else {}
    lead = await town.leads(**old)
    one = await town.follows(101)
    two = await town.follows(102, protocol=FIRST_ONLY if who == "recipient" else None)
    receipt = (await lead.holds(5, two.thread if who == "leader" else one.thread)).receipt_id
    if who == "leader":
        await lead.do(lambda j: j.ask_move(receipt, "101:1"))
    await lead.handoff.reconcile()
    assert [receipt] == one.holds_now
    await lead.do(lambda j: j.ask_move(receipt, "102:1"))
    await one.handoff.reconcile()
    assert ([receipt], []) == (one.holds_now, two.holds_now)
    assert None is (await one.row(receipt)).data.offer
    (note,) = town.notes.said("handoff", "kept")
    assert QUEUE_HANDOFF_AGAIN in str(note["why"])
    await settled_once(receipt, one, two, lead)


@pytest.mark.parametrize("able", [FIRST_ONLY, BARE])
@in_town()
async def test_F19_a_leader_that_is_the_donor_asks_the_same(town: Town, able: ProtocolIdentity) -> None:
    """Nothing is offered in the journal, and nothing sent, to who does not know what is sent."""
    lead = await town.leads()
    one, two = await town.follows(101), await town.follows(102, protocol=able)
    receipt = (await one.holds(5, lead.thread)).receipt_id
    await one.handoff.reconcile()
    assert [receipt] == lead.holds_now
    await lead.do(lambda j: j.ask_move(receipt, "102:1"))
    await lead.handoff.reconcile()
    assert ([receipt], []) == (lead.holds_now, two.between.seen)
    assert "offer" not in lead.journal.calls
    move = await lead.do(lambda j: j.move_of(receipt))
    wanted = QUEUE_HANDOFF_AGAIN if able is FIRST_ONLY else QUEUE_HANDOFF
    assert str(move.outcome).startswith("stays at 50:1: ")
    assert wanted in str(move.outcome)
    assert not lead.items.is_aside(receipt)


@in_town()
async def test_a_leader_passes_nothing_on_for_a_registration_that_is_over(town: Town) -> None:
    """Another one stands under the donor's name by the time that it looks (I31)."""
    lead = await town.leads()
    donor, other = await town.follows(101), await town.follows(102)
    await donor.holds(5, other.thread)
    passing, hold = await sending(donor, other)
    offer = offer_of(other)
    hold.set()
    await passing
    (route,) = [route for route in town.lead.leader.routes() if route.entry.instance == "101:1"]
    late = from_follower(offer, "101:1:0")
    seen = len(other.between.seen)
    with pytest.raises(TenureError, match="stale registration generation"):
        await lead.handoff.pass_on(late, route, 1000)
    assert seen == len(other.between.seen)


@pytest.mark.parametrize("who", [101, 102])
@in_town()
async def test_a_leader_passes_nothing_on_where_one_does_not_know_handoffs(town: Town, who: int) -> None:
    """Donor or recipient: it is refused in words, and the donor keeps it (I31)."""
    await town.leads()
    donor = await town.follows(101, protocol=BARE if who == 101 else None)
    other = await town.follows(102, protocol=BARE if who == 102 else None)
    receipt = (await donor.holds(5, other.thread)).receipt_id
    await donor.handoff.reconcile()
    assert ([receipt], []) == (donor.holds_now, other.between.seen)
    (note,) = town.notes.said("handoff", "kept")
    assert f"donor, leader and recipient have {QUEUE_HANDOFF}" in str(note["why"])
    await settled_once(receipt, donor, other)
