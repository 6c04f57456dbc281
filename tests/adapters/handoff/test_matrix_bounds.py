"""F18, F20 and F21 of the failure matrix of bus.md (e), what cannot be taken is not offered, or not accepted; and how
long a donor waits (S24, L11)."""

from __future__ import annotations

import asyncio

from tenure.adapters.handoff.payload import journal_key
from tests.adapters.handoff.handoff_room import Fault
from tests.adapters.handoff.town import Town, accepting, in_town, pair, sending, settled_once


@in_town()
async def test_F18_what_is_in_another_journal_is_refused_before_it_is_accepted(town: Town) -> None:
    """As a donor of the other system would offer it: nothing is staged, and the journal is not asked."""
    lead, other, receipt = await pair(town)
    passing, hold = await sending(lead, other)
    payload = other.between.seen[0]["payload"]
    (entry,) = payload["admissionReceipts"]
    for key in (journal_key(f"{town.directory.root}/inbox.json", "default", None), None):
        changed = {name: value for name, value in entry.items() if name != "journalBindingKey"}
        if key is not None:
            changed["journalBindingKey"] = key
        answer = await other.between.again(requestId=f"50:1:{key}", payload={**payload, "admissionReceipts": [changed]})
        assert not answer["ok"]
        assert "another journal" in answer["message"]
    assert "accept" not in other.journal.calls
    hold.set()
    await passing
    assert [receipt] == other.holds_now


@in_town()
async def test_F20_what_is_too_long_is_not_offered(town: Town) -> None:
    """It stays, and may be executed."""
    lead = await town.leads()
    other = await town.follows(101)
    receipt = (await lead.holds(5, other.thread, text="x" * 5 * 2**20)).receipt_id
    await lead.handoff.reconcile()
    assert [receipt] == lead.holds_now
    assert "offer" not in lead.journal.calls
    (note,) = town.notes.said("handoff", "kept")
    assert "more than the 8388608" in str(note["why"])
    await settled_once(receipt, lead, other)


@in_town()
async def test_F21_who_has_no_worker_accepts_nothing(town: Town) -> None:
    """It says so before it asks the journal (L3)."""
    lead, other, receipt = await pair(town)
    other.serves = False
    await lead.handoff.reconcile()
    assert ([receipt], []) == (lead.holds_now, other.holds_now)
    assert "accept" not in other.journal.calls
    await settled_once(receipt, lead, other)


@in_town()
async def test_L3_what_was_accepted_in_vain_is_given_back_in_the_journal(town: Town) -> None:
    """The worker has gone while it was accepted: the row is pending, and whoever serves it takes it."""
    lead, other, receipt = await pair(town)
    passing, gate = await accepting(lead, other)
    other.serves = False
    gate.set()
    await passing
    assert ([], []) == (lead.holds_now, other.holds_now)
    assert "pending" == (await lead.row(receipt)).phase
    await lead.takes()
    await settled_once(receipt, lead, other)


@in_town(response_ms=1000)
async def test_S24_a_busy_recipient_is_waited_for(town: Town) -> None:
    """As long as the donor waits, and not a second (L11)."""
    await town.leads()
    donor, other = await town.follows(101), await town.follows(102)
    receipt = (await donor.holds(5, other.thread)).receipt_id
    passing, gate = await accepting(donor, other)
    done, _ = await asyncio.wait([passing], timeout=1.2)  # longer than other requests may take
    assert not done
    gate.set()
    await passing
    assert ([], [receipt]) == (donor.holds_now, other.holds_now)


@in_town(handoff_timeout_ms=1500, relay_margin_ms=1300.0)
async def test_L11_the_leader_answers_before_the_donor_loses_patience(town: Town) -> None:
    """A recipient that hangs: the donor is told so, in words, by who had waited for it."""
    await town.leads()
    donor, other = await town.follows(101), await town.follows(102)
    receipt = (await donor.holds(5, other.thread)).receipt_id
    gate = asyncio.Event()
    other.journal.faults["accept"] = [Fault(gate=gate)]
    await donor.handoff.reconcile()
    (note,) = town.notes.said("handoff", "kept")
    assert "the follower did not answer" in str(note["why"])
    assert [receipt] == donor.holds_now
    gate.set()
    await settled_once(receipt, donor, other)
