"""Items that move between the processes of a fleet: from whom to whom, by hand, and what a donor does that finds an
offer of its own. With the drivers, the journal on disk, and real sockets; `test_moving` has which items those are."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from tenure.adapters.journal.errors import JournalBusy
from tenure.adapters.journal.moves import Move
from tests.adapters.fleet.fleet_room import until
from tests.adapters.handoff.handoff_room import Fault, Station
from tests.adapters.handoff.town import Town, accepting, in_town, owner_of, pair, settled_once


@in_town()
async def test_an_item_moves_from_the_leader_to_whose_thread_it_is(town: Town) -> None:
    """Annex G, leader as donor."""
    lead, other, receipt = await pair(town)
    await lead.handoff.reconcile()
    assert ([], [receipt]) == (lead.holds_now, other.holds_now)
    assert "101:1" == await owner_of(lead, receipt)
    assert 1 == lead.handoff.counts.moved
    await settled_once(receipt, lead, other)


@in_town()
async def test_an_item_moves_from_a_follower_through_its_leader(town: Town) -> None:
    """Annex G, follower as donor."""
    lead = await town.leads()
    donor, other = await town.follows(101), await town.follows(102)
    receipt = (await donor.holds(5, other.thread)).receipt_id
    await donor.handoff.reconcile()
    assert ([], [receipt]) == (donor.holds_now, other.holds_now)
    assert "102:1" == await owner_of(donor, receipt)
    await settled_once(receipt, donor, lead, other)


@in_town()
async def test_an_item_moves_from_a_follower_to_its_leader(town: Town) -> None:
    """Which passes it on to itself, without a socket between."""
    lead = await town.leads()
    donor = await town.follows(101)
    receipt = (await donor.holds(5, lead.thread)).receipt_id
    await donor.handoff.reconcile()
    assert ([], [receipt]) == (donor.holds_now, lead.holds_now)
    await settled_once(receipt, donor, lead)


@pytest.mark.parametrize("waits", [False, True])
@in_town()
async def test_what_nobody_has_taken_yet_is_taken_to_be_moved(town: Town, waits: bool) -> None:
    """A person wants it elsewhere, and it is pending, perhaps for its time after a failure: it moves, and is not begun
    here first."""
    lead = await town.leads()
    one, two = await town.follows(101), await town.follows(102)
    receipt = await one.admits(5, one.thread)
    if waits:
        (held,) = await one.takes()
        one.items.drop(receipt)
        await one.do(lambda j: j.start(receipt, held.holder))
        await one.do(lambda j: j.fail(receipt, held.holder, 60_000, "no"))
    await lead.do(lambda j: j.ask_move(receipt, "102:1"))
    await lead.handoff.reconcile()  # not the leader's to take
    await two.handoff.reconcile()
    assert "pending" == (await one.row(receipt)).phase
    passing, gate = await accepting(one, two)
    assert None is one.items.begin()
    gate.set()
    await passing
    assert ([], [receipt]) == (one.holds_now, two.holds_now)
    assert "moved to 102:1" == (await lead.do(lambda j: j.move_of(receipt))).outcome
    await settled_once(receipt, one, two, lead)


@in_town()
async def test_what_was_taken_to_be_moved_and_stays_may_be_begun(town: Town) -> None:
    """Nobody of that name is here, or works out of this journal: it is not even taken. A recipient that refuses: it is
    here, and may begin."""
    lead = await town.leads()
    one, two = await town.follows(101), await town.follows(102)
    receipt = await one.admits(5, one.thread)
    await lead.do(lambda j: j.ask_move(receipt, "103:1"))
    await one.handoff.reconcile()
    assert "pending" == (await one.row(receipt)).phase
    await lead.do(lambda j: j.ask_move(receipt, "102:1"))
    await two.do(lambda j: j.unserve(two.binding, two.party))
    await one.handoff.reconcile()
    assert "pending" == (await one.row(receipt)).phase
    await two.do(lambda j: j.serve(two.binding, two.party))
    two.serves = False
    await one.handoff.reconcile()
    assert [receipt] == one.holds_now
    assert not one.items.is_aside(receipt)
    held = one.items.get(receipt)
    assert held is not None
    await one.do(lambda j: j.release(receipt, held.holder))
    one.items.drop(receipt)
    await one.handoff.reconcile()  # it is not taken again and again, to be refused
    assert "pending" == (await one.row(receipt)).phase
    await one.takes()
    one.journal.faults["parcel"] = [Fault(before=JournalBusy("j", "busy"))]
    other = await one.admits(6, one.thread)
    await lead.do(lambda j: j.ask_move(other, "102:1"))
    await one.handoff.reconcile()
    assert [receipt, other] == one.holds_now
    assert not one.items.is_aside(other)
    await settled_once(receipt, one, two, lead)
    await settled_once(other, one, two, lead)


@in_town()
async def test_a_copy_whose_row_is_somebody_elses_is_dropped_and_not_offered(town: Town) -> None:
    """The journal refuses the offer, and says whose it is: nobody hears of it. A person who wants it moved is told
    nothing by who does not know where it is."""
    lead, other, receipt = await pair(town)
    await lead.do(lambda j: j.ask_move(receipt, "101:1"))
    read = lead.journal.inner.moves

    async def moves() -> tuple[Move, ...]:
        found = await read()
        held = lead.items.get(receipt)
        assert held is not None
        await lead.do(lambda j: j.release(receipt, held.holder, "elsewhere"))
        return found

    lead.journal.inner.moves = moves  # type: ignore[method-assign]
    await lead.handoff.reconcile()
    assert ([], []) == (lead.holds_now, other.between.seen)
    assert "pending" == (await lead.row(receipt)).phase
    assert (0, 0, 1) == (lead.handoff.counts.moved, lead.handoff.counts.kept, lead.handoff.counts.gone)
    assert None is (await lead.do(lambda j: j.move_of(receipt))).outcome


@pytest.mark.parametrize("held_still", [False, True])
@in_town()
async def test_an_offer_that_nobody_waits_for_any_more_is_withdrawn(town: Town, held_still: bool) -> None:
    """As after a call of the journal whose end nobody has seen: the row is the donor's again, the item is in its queue,
    and moves in the same pass. It is not begun meanwhile."""
    lead, other, receipt = await pair(town)
    held = lead.items.get(receipt)
    assert held is not None
    await lead.journal.offer(receipt, held.holder, "handoff-lost", other.party)
    if not held_still:
        lead.items.drop(receipt)
    gate = asyncio.Event()
    lead.journal.faults["cancel"] = [Fault(gate=gate)]
    passing = asyncio.ensure_future(lead.handoff.reconcile())
    await until(lambda: lead.journal.waiting)
    assert None is lead.items.begin()
    gate.set()
    await passing
    assert ([], [receipt]) == (lead.holds_now, other.holds_now)
    await settled_once(receipt, lead, other)


@in_town()
async def test_an_offer_of_another_activation_is_not_withdrawn(town: Town) -> None:
    """It falls when its activation is over, and that is not for a donor to say (L7)."""
    lead, other, receipt = await pair(town)
    held = lead.items.get(receipt)
    assert held is not None
    await lead.journal.offer(receipt, held.holder, "handoff-lost", other.party)
    async with Station(town, 50, activation=2) as again:
        assert () == await again.journal.offers()
        (row,) = await lead.journal.offers()
        assert receipt == row.receipt_id


@in_town()
async def test_of_what_is_settled_nothing_is_offered(town: Town) -> None:
    """Its updates are forgotten: there is nothing to make an offer of."""
    lead, _, receipt = await pair(town)
    assert await lead.journal.parcel(receipt) is not None
    assert await lead.executes(receipt)
    assert await lead.journal.parcel(receipt) is None
    assert await lead.journal.parcel("no such receipt") is None


@in_town()
async def test_who_is_no_process_offers_nothing(town: Town) -> None:
    """An owner whose process the bus cannot name: the item stays, and nobody hears of it."""
    lead, other, receipt = await pair(town)
    held = lead.items.get(receipt)
    assert held is not None
    lead.items.put(attrs.evolve(held, holder=attrs.evolve(held.holder, process="somebody")))
    await lead.handoff.reconcile()
    assert ([receipt], []) == (lead.holds_now, other.between.seen)
    assert "offer" not in lead.journal.calls
    assert not lead.items.is_aside(receipt)
    (note,) = town.notes.said("handoff", "kept")
    assert "names a process 'somebody'" in str(note["why"])
