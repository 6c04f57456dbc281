"""F1 to F5 of the failure matrix of bus.md (e): what is refused, lost, late or false between a donor and a recipient.

With the drivers, the journal on disk, and real sockets. The other lines are in `test_matrix_deaths`,
`test_matrix_again` and `test_matrix_bounds`; `test_matrix_rows` has what the row alone decides, and
`tests/adapters/fleet/test_offers.py` what the registration does.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.handoff.parties import recipient_owner
from tenure.adapters.journal.errors import JournalBusy, OutcomeUnknown
from tenure.machines.handoff_identity import handoff_id
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.handoff.handoff_room import Fault
from tests.adapters.handoff.town import FAST, OFFER, Town, in_town, owner_of, pair, settled_once


@in_town()
async def test_F1_a_refusal_before_the_acceptance_leaves_it_where_it_is(town: Town) -> None:
    """The recipient's host serves no session now: the row is thawed again."""
    lead, other, receipt = await pair(town)
    assert other.hand is not None
    other.hand.follower.set_session(0)
    await lead.handoff.reconcile()
    assert ([receipt], []) == (lead.holds_now, other.holds_now)
    assert not lead.items.is_aside(receipt)
    row = await lead.row(receipt)
    assert ("queued", None) == (row.phase, row.data.offer)
    await settled_once(receipt, lead, other)


FALSE: dict[str, Any] = {
    "another receipt": lambda result: {**result, "receiptId": "x"},
    "other ids": lambda result: {**result, "sourceUpdateIds": [6]},
    "another status": lambda result: {**result, "status": "seen"},
    "another owner": lambda result: {**result, "queueOwner": {**result["queueOwner"], "instanceId": "102:1"}},
    "another process": lambda result: {
        **result, "queueOwner": {**result["queueOwner"], "processBirthId": "101:start:9"},
    },
    "another handoff": lambda result: {**result, "queueOwner": {**result["queueOwner"], "handoffId": "handoff-0"}},
    "no handoff": lambda result: {
        **result, "queueOwner": {name: v for name, v in result["queueOwner"].items() if name != "handoffId"},
    },
    "an owner that is none": lambda result: {**result, "queueOwner": {"instanceId": "101:1"}},
    "nothing": lambda result: None,
}  # fmt: skip


@pytest.mark.parametrize("what", FALSE)
@pytest.mark.parametrize("accepted", [False, True])
@in_town()
async def test_F2_an_answer_to_something_else_is_none(town: Town, what: str, accepted: bool) -> None:
    """Withdrawn where nobody has accepted; else the row tells the donor that it has moved."""
    lead, other, receipt = await pair(town)

    def falsified(answer: dict[str, Any]) -> dict[str, Any]:
        request = other.between.seen[0]
        handoff = handoff_id(
            request["handoffToken"], "prompt", receipt, [5], request["donorAcquisitionId"],
            recipient_owner(other.party),
        )  # fmt: skip
        result = answer.get("result") or {
            "status": "staged", "receiptId": receipt, "sourceUpdateIds": [5],
            "queueOwner": {
                "instanceId": "101:1", "processId": 101, "processBirthId": "101:start:1010",
                "sessionGeneration": 1, "acquisitionId": "x", "acquiredAtMs": 1, "handoffId": handoff,
            },
        }  # fmt: skip
        return {**answer, "ok": True, "result": FALSE[what](result)}

    other.between.falsify = falsified
    if not accepted:
        other.serves = False
    await lead.handoff.reconcile()
    expected = ([], [receipt]) if accepted else ([receipt], [])
    assert expected == (lead.holds_now, other.holds_now)
    assert None is (await lead.row(receipt)).data.offer
    await settled_once(receipt, lead, other)


@in_town()
async def test_F3_a_request_that_is_lost_never_moved_anything(town: Town) -> None:
    """It stays, and moves the next time."""
    lead, other, receipt = await pair(town)
    other.between.fates[OFFER] = ["lose"]
    await lead.handoff.reconcile()
    assert ([receipt], []) == (lead.holds_now, other.holds_now)
    assert None is (await lead.row(receipt)).data.offer
    town.clock.advance(1000)
    await lead.handoff.reconcile()
    assert ([], [receipt]) == (lead.holds_now, other.holds_now)
    await settled_once(receipt, lead, other)


@in_town(handoff_timeout_ms=1000)
async def test_F3_a_request_that_comes_late_finds_no_offer(town: Town) -> None:
    """The donor has lost patience, and has withdrawn it."""
    lead, other, receipt = await pair(town)
    hold = other.between.hold = asyncio.Event()
    await lead.handoff.reconcile()
    assert ([receipt], 1) == (lead.holds_now, other.between.held)
    hold.set()
    await until(lambda: other.between.answers)
    assert not other.between.answers[0]["ok"]
    assert "it is not offered to this process, or no longer (" in other.between.answers[0]["message"]
    assert [] == other.holds_now
    assert "50:1" == await owner_of(lead, receipt)
    await settled_once(receipt, lead, other)


@pytest.mark.parametrize("first", ["cancel", "accept"])
def test_F4_F5_an_answer_that_is_lost_is_told_by_the_row(tmp_path: Path, first: str) -> None:
    """Whichever transaction is first decides; the donor either has it again, or knows that it has gone (L4)."""

    async def story() -> None:
        patience = 1000 if first == "cancel" else 30_000
        async with Town(tmp_path, attrs.evolve(FAST, handoff_timeout_ms=patience)) as town:
            lead, other, receipt = await pair(town)
            gate = asyncio.Event()
            other.between.fates[OFFER] = ["drop"]
            if first == "cancel":
                other.journal.faults["accept"] = [Fault(gate=gate)]
            await lead.handoff.reconcile()
            gate.set()
            await until(lambda: other.between.answers)
            assert (first == "accept") == other.between.answers[0]["ok"]
            expected = ([], [receipt]) if first == "accept" else ([receipt], [])
            assert expected == (lead.holds_now, other.holds_now)
            counts = lead.handoff.counts
            assert (first == "accept", first == "cancel", 0) == (counts.moved, counts.kept, counts.gone)
            await settled_once(receipt, lead, other)

    run(story())


@in_town()
async def test_F5_a_finished_item_has_gone_as_well(town: Town) -> None:
    """The recipient was quicker than the donor could ask: what is settled is nobody's, whoever has done it."""
    lead, other, receipt = await pair(town)
    other.between.fates[OFFER] = ["drop"]
    gate = asyncio.Event()
    lead.journal.faults["cancel"] = [Fault(gate=gate)]
    passing = asyncio.ensure_future(lead.handoff.reconcile())
    await until(lambda: lead.journal.waiting)
    assert await other.executes(receipt)
    gate.set()
    await passing
    assert ([], []) == (lead.holds_now, other.holds_now)
    assert (0, 1) == (lead.handoff.counts.moved, lead.handoff.counts.gone)


@in_town()
async def test_F5_a_row_that_cannot_be_read_is_looked_up_again(town: Town) -> None:
    """And nothing is decided before."""
    lead, other, receipt = await pair(town)
    other.between.fates[OFFER] = ["drop"]
    busy = Fault(before=JournalBusy("journal.db", "another process is inside"))
    lead.journal.faults["cancel"] = [busy, busy]
    lead.journal.faults["look"] = [busy, busy, busy]
    await lead.handoff.reconcile()
    assert ([], [receipt]) == (lead.holds_now, other.holds_now)
    assert 3 == lead.journal.calls.count("cancel")
    assert 4 == lead.journal.calls.count("look")


@pytest.mark.parametrize("call", ["offer", "cancel"])
@in_town()
async def test_an_outcome_that_nobody_knows_is_found_out(town: Town, call: str) -> None:
    """The same call again is answered with what was done (law Unknown)."""
    lead, other, receipt = await pair(town)
    lead.journal.faults[call] = [Fault(after=OutcomeUnknown("journal.db", "nobody knows"))]
    if call == "cancel":
        other.serves = False
    await lead.handoff.reconcile()
    expected = ([], [receipt]) if call == "offer" else ([receipt], [])
    assert expected == (lead.holds_now, other.holds_now)
    assert None is (await lead.row(receipt)).data.offer
    await settled_once(receipt, lead, other)


@in_town()
async def test_an_acceptance_that_nobody_knows_is_found_out(town: Town) -> None:
    """The recipient asks again, and is told that it has accepted."""
    lead, other, receipt = await pair(town)
    other.journal.faults["accept"] = [Fault(after=OutcomeUnknown("journal.db", "nobody knows"))]
    await lead.handoff.reconcile()
    assert ([], [receipt]) == (lead.holds_now, other.holds_now)
    await settled_once(receipt, lead, other)
