"""F8 to F12 of the failure matrix of bus.md (e): a party that dies, leaves, or changes in the middle of a handoff."""

from __future__ import annotations

import asyncio

import pytest

from tenure.adapters.journal.errors import JournalBusy
from tenure.adapters.ports import Killed
from tests.adapters.fleet.fleet_room import until
from tests.adapters.handoff.handoff_room import Fault
from tests.adapters.handoff.town import OFFER, Town, accepting, in_town, owner_of, pair, sending, settled_once


@in_town()
async def test_F8_a_donor_that_dies_after_the_acceptance_is_not_missed(town: Town) -> None:
    """It has not heard of it, and is dead before it could withdraw: the item is the recipient's, and nobody recovers
    it."""
    lead, other, receipt = await pair(town)
    other.between.fates[OFFER] = ["drop"]
    lead.journal.faults["cancel"] = [Fault(before=Killed("the donor"))]
    with pytest.raises(Killed):
        await lead.handoff.reconcile()
    town.processes.kill(50)
    assert ([receipt], "101:1") == (other.holds_now, await owner_of(other, receipt))
    assert () == await other.do(lambda j: j.recover_all(other.party))
    assert await other.executes(receipt)


@in_town()
async def test_F9_a_recipient_that_dies_before_it_accepts_has_nothing(town: Town) -> None:
    """Its connection ends, and the offer is withdrawn."""
    lead, other, receipt = await pair(town)
    gate = asyncio.Event()
    other.journal.faults["accept"] = [Fault(gate=gate)]
    other.between.fates[OFFER] = ["cut"]
    await lead.handoff.reconcile()
    town.processes.kill(101)
    assert [receipt] == lead.holds_now
    assert await lead.executes(receipt)
    gate.set()


@in_town()
async def test_F10_a_recipient_that_dies_after_it_has_accepted_is_recovered(town: Town) -> None:
    """The donor drops its copy, and takes the work anew when the recipient is proven dead."""
    lead, other, receipt = await pair(town)
    other.between.fates[OFFER] = ["drop"]
    await lead.handoff.reconcile()
    assert [] == lead.holds_now
    assert () == await lead.do(lambda j: j.recover_all(lead.party))
    town.processes.kill(101)
    assert 1 == len(await lead.do(lambda j: j.recover_all(lead.party)))
    await lead.takes()
    await settled_once(receipt, lead)


@in_town()
async def test_F11_a_leader_that_changes_breaks_the_request_only(town: Town) -> None:
    """The donor is told so, or nothing; the row says whose it is."""
    lead = await town.leads()
    donor, other = await town.follows(101), await town.follows(102)
    receipt = (await donor.holds(5, other.thread)).receipt_id
    passing, gate = await accepting(donor, other)
    await town.lead.leader.close()
    await passing
    assert [receipt] == donor.holds_now
    gate.set()
    await until(lambda: other.between.answers)
    assert [] == other.holds_now
    await settled_once(receipt, donor, other, lead)


@in_town()
async def test_F12_a_recipient_that_registers_again_is_asked_again(town: Town) -> None:
    """Of the old generation it takes nothing; what it had accepted before is its own."""
    lead, other, receipt = await pair(town)
    assert other.hand is not None
    passing, hold = await sending(lead, other)
    other.hand.follower.leave()
    await other.registers(town.lead)
    hold.set()
    await passing
    assert ([receipt], []) == (lead.holds_now, other.holds_now)
    await lead.handoff.reconcile()  # another registration: at once
    assert ([], [receipt]) == (lead.holds_now, other.holds_now)
    await settled_once(receipt, lead, other)


@in_town(handoff_timeout_ms=600_000)
async def test_the_end_of_a_process_ends_its_offers_in_order(town: Town) -> None:
    """An offer that nobody has accepted is withdrawn at once, and the item may be given back by the worker."""
    lead, other, receipt = await pair(town)
    hold = other.between.hold = asyncio.Event()
    running = asyncio.ensure_future(lead.handoff.run())
    await until(lambda: other.between.held)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert [receipt] == lead.holds_now
    assert not lead.items.is_aside(receipt)
    assert None is (await lead.row(receipt)).data.offer
    hold.set()
    await settled_once(receipt, lead, other)


@in_town(handoff_timeout_ms=600_000)
async def test_who_ends_asks_the_journal_once_to_withdraw(town: Town) -> None:
    """What could not be withdrawn falls when it has died; it is not begun here any more."""
    lead, other, receipt = await pair(town)
    lead.journal.faults["cancel"] = [Fault(before=JournalBusy("j", "busy"))] * 1000
    hold = other.between.hold = asyncio.Event()
    running = asyncio.ensure_future(lead.handoff.run())
    await until(lambda: other.between.held)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert 1 == lead.journal.calls.count("cancel")
    assert (True, None) == (lead.items.is_aside(receipt), lead.items.begin())
    assert (await lead.row(receipt)).data.offer is not None
    hold.set()
