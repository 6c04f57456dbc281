"""The failure matrix of bus.md (e), with the drivers, the journal on disk, and real sockets that lose and double.

Each test is named by its line of the matrix; `test_matrix_rows` has what the row alone decides, and
`tests/adapters/fleet/test_offers.py` what the registration does.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.messages.protocol import (
    DURABLE_FOLLOWER_ADMISSION,
    QUEUE_HANDOFF,
    QUEUE_HANDOFF_AGAIN,
    TENURE_STATUS,
    ProtocolIdentity,
    protocol_identity,
)
from tenure.adapters.handoff.parties import recipient_owner
from tenure.adapters.handoff.payload import journal_key
from tenure.adapters.journal.errors import JournalBusy, OutcomeUnknown
from tenure.machines.handoff_identity import handoff_id
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.handoff.handoff_room import Fault
from tests.adapters.handoff.town import FAST, Citizen, Town

OFFER = "leader.offerQueueHandoff"
FIRST_ONLY = protocol_identity("first", [DURABLE_FOLLOWER_ADMISSION, QUEUE_HANDOFF, TENURE_STATUS])


async def pair(town: Town, **more: Any) -> tuple[Citizen, Citizen, str]:
    """A leader that holds an item of its follower's thread."""
    lead = await town.leads(**more)
    other = await town.follows(101)
    held = await lead.holds(5, other.thread)
    return lead, other, held.receipt_id


async def owner_of(station: Citizen, receipt: str) -> str | None:
    owner = (await station.row(receipt)).data.owner
    return None if owner is None else owner.instance


async def settled_once(receipt: str, *stations: Citizen) -> None:
    """It is executed by exactly one of them."""
    assert 1 == [await station.executes(receipt) for station in stations].count(True)
    assert "done" == (await stations[0].row(receipt)).phase


def test_an_item_moves_from_the_leader_to_whose_thread_it_is(tmp_path: Path) -> None:
    """Annex G, leader as donor."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            await lead.handoff.reconcile()
            assert ([], [receipt]) == (lead.holds_now, other.holds_now)
            assert "101:1" == await owner_of(lead, receipt)
            assert 1 == lead.handoff.counts.moved
            await settled_once(receipt, lead, other)

    run(story())


def test_an_item_moves_from_a_follower_through_its_leader(tmp_path: Path) -> None:
    """Annex G, follower as donor."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead = await town.leads()
            donor, other = await town.follows(101), await town.follows(102)
            receipt = (await donor.holds(5, other.thread)).receipt_id
            await donor.handoff.reconcile()
            assert ([], [receipt]) == (donor.holds_now, other.holds_now)
            assert "102:1" == await owner_of(donor, receipt)
            await settled_once(receipt, donor, lead, other)

    run(story())


def test_an_item_moves_from_a_follower_to_its_leader(tmp_path: Path) -> None:
    """Which passes it on to itself, without a socket between."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead = await town.leads()
            donor = await town.follows(101)
            receipt = (await donor.holds(5, lead.thread)).receipt_id
            await donor.handoff.reconcile()
            assert ([], [receipt]) == (donor.holds_now, lead.holds_now)
            await settled_once(receipt, donor, lead)

    run(story())


def test_F1_a_refusal_before_the_acceptance_leaves_it_where_it_is(tmp_path: Path) -> None:
    """The recipient's host serves no session now: the row is thawed again."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            assert other.hand is not None
            other.hand.follower.set_session(0)
            await lead.handoff.reconcile()
            assert ([receipt], []) == (lead.holds_now, other.holds_now)
            assert not lead.items.is_aside(receipt)
            row = await lead.row(receipt)
            assert ("queued", None) == (row.phase, row.data.offer)
            await settled_once(receipt, lead, other)

    run(story())


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
def test_F2_an_answer_to_something_else_is_none(tmp_path: Path, what: str, accepted: bool) -> None:
    """Withdrawn where nobody has accepted; else the row tells the donor that it has moved."""

    async def story() -> None:
        async with Town(tmp_path) as town:
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

    run(story())


def test_F3_a_request_that_is_lost_never_moved_anything(tmp_path: Path) -> None:
    """It stays, and moves the next time."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            other.between.fates[OFFER] = ["lose"]
            await lead.handoff.reconcile()
            assert ([receipt], []) == (lead.holds_now, other.holds_now)
            assert None is (await lead.row(receipt)).data.offer
            town.clock.advance(1000)
            await lead.handoff.reconcile()
            assert ([], [receipt]) == (lead.holds_now, other.holds_now)
            await settled_once(receipt, lead, other)

    run(story())


def test_F3_a_request_that_comes_late_finds_no_offer(tmp_path: Path) -> None:
    """The donor has lost patience, and has withdrawn it."""

    async def story() -> None:
        async with Town(tmp_path, attrs.evolve(FAST, handoff_timeout_ms=1000)) as town:
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

    run(story())


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
            await settled_once(receipt, lead, other)

    run(story())


def test_F5_a_finished_item_has_gone_as_well(tmp_path: Path) -> None:
    """The recipient was quicker than the donor could ask: a row that is settled is a row that has moved."""

    async def story() -> None:
        async with Town(tmp_path) as town:
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

    run(story())


def test_F5_a_row_that_cannot_be_read_is_looked_up_again(tmp_path: Path) -> None:
    """And nothing is decided before."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            other.between.fates[OFFER] = ["drop"]
            busy = Fault(before=JournalBusy("journal.db", "another process is inside"))
            lead.journal.faults["cancel"] = [busy, busy]
            lead.journal.faults["look"] = [busy, busy, busy]
            await lead.handoff.reconcile()
            assert ([], [receipt]) == (lead.holds_now, other.holds_now)
            assert 3 == lead.journal.calls.count("cancel")
            assert 4 == lead.journal.calls.count("look")

    run(story())


@pytest.mark.parametrize("call", ["offer", "cancel"])
def test_an_outcome_that_nobody_knows_is_found_out(tmp_path: Path, call: str) -> None:
    """The same call again is answered with what was done (law Unknown)."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            lead.journal.faults[call] = [Fault(after=OutcomeUnknown("journal.db", "nobody knows"))]
            if call == "cancel":
                other.serves = False
            await lead.handoff.reconcile()
            expected = ([], [receipt]) if call == "offer" else ([receipt], [])
            assert expected == (lead.holds_now, other.holds_now)
            assert None is (await lead.row(receipt)).data.offer
            await settled_once(receipt, lead, other)

    run(story())


def test_an_acceptance_that_nobody_knows_is_found_out(tmp_path: Path) -> None:
    """The recipient asks again, and is told that it has accepted."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            other.journal.faults["accept"] = [Fault(after=OutcomeUnknown("journal.db", "nobody knows"))]
            await lead.handoff.reconcile()
            assert ([], [receipt]) == (lead.holds_now, other.holds_now)
            await settled_once(receipt, lead, other)

    run(story())


def test_F9_a_recipient_that_dies_before_it_accepts_has_nothing(tmp_path: Path) -> None:
    """Its connection ends, and the offer is withdrawn."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            gate = asyncio.Event()
            other.journal.faults["accept"] = [Fault(gate=gate)]
            other.between.fates[OFFER] = ["cut"]
            await lead.handoff.reconcile()
            town.processes.kill(101)
            assert [receipt] == lead.holds_now
            assert await lead.executes(receipt)
            gate.set()

    run(story())


def test_F10_a_recipient_that_dies_after_it_has_accepted_is_recovered(tmp_path: Path) -> None:
    """The donor drops its copy, and takes the work anew when the recipient is proven dead."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            other.between.fates[OFFER] = ["drop"]
            await lead.handoff.reconcile()
            assert [] == lead.holds_now
            assert () == await lead.do(lambda j: j.recover_all(lead.party))
            town.processes.kill(101)
            assert 1 == len(await lead.do(lambda j: j.recover_all(lead.party)))
            await lead.takes()
            await settled_once(receipt, lead)

    run(story())


def test_F11_a_leader_that_changes_breaks_the_request_only(tmp_path: Path) -> None:
    """The donor is told so, or nothing; the row says whose it is."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead = await town.leads()
            donor, other = await town.follows(101), await town.follows(102)
            receipt = (await donor.holds(5, other.thread)).receipt_id
            gate = asyncio.Event()
            other.journal.faults["accept"] = [Fault(gate=gate)]
            passing = asyncio.ensure_future(donor.handoff.reconcile())
            await until(lambda: other.journal.waiting)
            await town.lead.leader.close()
            await passing
            assert [receipt] == donor.holds_now
            gate.set()
            await until(lambda: other.between.answers)
            assert [] == other.holds_now
            await settled_once(receipt, donor, other, lead)

    run(story())


def test_F12_a_recipient_that_registers_again_is_asked_again(tmp_path: Path) -> None:
    """Of the old generation it takes nothing; what it had accepted before is its own."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            assert other.hand is not None
            hold = other.between.hold = asyncio.Event()
            passing = asyncio.ensure_future(lead.handoff.reconcile())
            await until(lambda: other.between.held)
            other.hand.follower.leave()
            await other.registers(town.lead)
            hold.set()
            await passing
            assert ([receipt], []) == (lead.holds_now, other.holds_now)
            await lead.handoff.reconcile()  # another registration: at once
            assert ([], [receipt]) == (lead.holds_now, other.holds_now)
            await settled_once(receipt, lead, other)

    run(story())


def test_F13_F14_the_same_offer_again_is_the_same_acceptance(tmp_path: Path) -> None:
    """By the same request, by another request with the same token; also once it has begun (L5)."""

    async def story() -> None:
        async with Town(tmp_path) as town:
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

    run(story())


def test_F14_two_requests_at_once_accept_once(tmp_path: Path) -> None:
    """The second one waits for what comes of the first."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            gate = asyncio.Event()
            other.journal.faults["accept"] = [Fault(gate=gate)]
            passing = asyncio.ensure_future(lead.handoff.reconcile())
            await until(lambda: other.journal.waiting)
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

    run(story())


def test_F15_another_token_for_the_same_item_is_refused(tmp_path: Path) -> None:
    """While the first offer is open, and after it was accepted."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            hold = other.between.hold = asyncio.Event()
            passing = asyncio.ensure_future(lead.handoff.reconcile())
            await until(lambda: other.between.held)
            early = await other.between.again(requestId="50:1:x", handoffToken="y" * 43)
            hold.set()
            await passing
            late = await other.between.again(requestId="50:1:y", handoffToken="y" * 43)
            assert (False, False) == (early["ok"], late["ok"])
            assert ([], [receipt]) == (lead.holds_now, other.holds_now)
            await settled_once(receipt, lead, other)

    run(story())


def test_F18_what_is_in_another_journal_is_refused_before_it_is_accepted(tmp_path: Path) -> None:
    """As a donor of the other system would offer it: nothing is staged, and the journal is not asked."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            hold = other.between.hold = asyncio.Event()
            passing = asyncio.ensure_future(lead.handoff.reconcile())
            await until(lambda: other.between.held)
            payload = other.between.seen[0]["payload"]
            (entry,) = payload["admissionReceipts"]
            for key in (journal_key(str(tmp_path / "inbox.json"), "default", None), None):
                changed = {name: value for name, value in entry.items() if name != "journalBindingKey"}
                if key is not None:
                    changed["journalBindingKey"] = key
                answer = await other.between.again(
                    requestId=f"50:1:{key}", payload={**payload, "admissionReceipts": [changed]}
                )
                assert not answer["ok"]
                assert "another journal" in answer["message"]
            assert "accept" not in other.journal.calls
            hold.set()
            await passing
            assert [receipt] == other.holds_now

    run(story())


def test_F19_an_item_moves_again_and_again(tmp_path: Path) -> None:
    """Five times, between three processes; each time with the handoff by which it came (L6)."""

    async def story() -> None:
        async with Town(tmp_path) as town:
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

    run(story())


@pytest.mark.parametrize("who", ["recipient", "leader"])
def test_F19_a_second_move_is_not_offered_to_who_does_not_know_it(tmp_path: Path, who: str) -> None:
    """Neither to a recipient nor through a leader that would drop the donor's handoff: the item stays, and the donor
    says why."""

    async def story() -> None:
        async with Town(tmp_path) as town:
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

    run(story())


@pytest.mark.parametrize("able", [FIRST_ONLY, protocol_identity("none", [DURABLE_FOLLOWER_ADMISSION, TENURE_STATUS])])
def test_F19_a_leader_that_is_the_donor_asks_the_same(tmp_path: Path, able: ProtocolIdentity) -> None:
    """Nothing is offered in the journal, and nothing sent, to who does not know what is sent."""

    async def story() -> None:
        async with Town(tmp_path) as town:
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

    run(story())


@pytest.mark.parametrize("who", [101, 102])
def test_a_leader_passes_nothing_on_where_one_does_not_know_handoffs(tmp_path: Path, who: int) -> None:
    """Donor or recipient: it is refused in words, and the donor keeps it (I31)."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            await town.leads()
            bare = protocol_identity("none", [DURABLE_FOLLOWER_ADMISSION, TENURE_STATUS])
            donor = await town.follows(101, protocol=bare if who == 101 else None)
            other = await town.follows(102, protocol=bare if who == 102 else None)
            receipt = (await donor.holds(5, other.thread)).receipt_id
            await donor.handoff.reconcile()
            assert ([receipt], []) == (donor.holds_now, other.between.seen)
            (note,) = town.notes.said("handoff", "kept")
            assert f"donor, leader and recipient have {QUEUE_HANDOFF}" in str(note["why"])
            await settled_once(receipt, donor, other)

    run(story())


def test_F20_what_is_too_long_is_not_offered(tmp_path: Path) -> None:
    """It stays, and may be executed."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead = await town.leads()
            other = await town.follows(101)
            receipt = (await lead.holds(5, other.thread, text="x" * 5 * 2**20)).receipt_id
            await lead.handoff.reconcile()
            assert [receipt] == lead.holds_now
            assert "offer" not in lead.journal.calls
            (note,) = town.notes.said("handoff", "kept")
            assert "more than the 8388608" in str(note["why"])
            await settled_once(receipt, lead, other)

    run(story())


def test_F21_who_has_no_worker_accepts_nothing(tmp_path: Path) -> None:
    """It says so before it asks the journal (L3)."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            other.serves = False
            await lead.handoff.reconcile()
            assert ([receipt], []) == (lead.holds_now, other.holds_now)
            assert "accept" not in other.journal.calls
            await settled_once(receipt, lead, other)

    run(story())


def test_L3_what_was_accepted_in_vain_is_given_back_in_the_journal(tmp_path: Path) -> None:
    """The worker has gone while it was accepted: the row is pending, and whoever serves it takes it."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            gate = asyncio.Event()
            other.journal.faults["accept"] = [Fault(gate=gate)]
            passing = asyncio.ensure_future(lead.handoff.reconcile())
            await until(lambda: other.journal.waiting)
            other.serves = False
            gate.set()
            await passing
            assert ([], []) == (lead.holds_now, other.holds_now)
            assert "pending" == (await lead.row(receipt)).phase
            await lead.takes()
            await settled_once(receipt, lead, other)

    run(story())


def test_S24_a_busy_recipient_is_waited_for(tmp_path: Path) -> None:
    """As long as the donor waits, and not a second (L11)."""

    async def story() -> None:
        async with Town(tmp_path, attrs.evolve(FAST, response_ms=1000)) as town:
            await town.leads()
            donor, other = await town.follows(101), await town.follows(102)
            receipt = (await donor.holds(5, other.thread)).receipt_id
            gate = asyncio.Event()
            other.journal.faults["accept"] = [Fault(gate=gate)]
            passing = asyncio.ensure_future(donor.handoff.reconcile())
            await until(lambda: other.journal.waiting)
            done, _ = await asyncio.wait([passing], timeout=1.2)  # longer than other requests may take
            assert not done
            gate.set()
            await passing
            assert ([], [receipt]) == (donor.holds_now, other.holds_now)

    run(story())


def test_L11_the_leader_answers_before_the_donor_loses_patience(tmp_path: Path) -> None:
    """A recipient that hangs: the donor is told so, in words, by who had waited for it."""

    async def story() -> None:
        async with Town(tmp_path, attrs.evolve(FAST, handoff_timeout_ms=1500, relay_margin_ms=1300.0)) as town:
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

    run(story())


@pytest.mark.parametrize("waits", [False, True])
def test_what_nobody_has_taken_yet_is_taken_to_be_moved(tmp_path: Path, waits: bool) -> None:
    """A person wants it elsewhere, and it is pending, perhaps for its time after a failure: it moves, and is not begun
    here first."""

    async def story() -> None:
        async with Town(tmp_path) as town:
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
            gate = asyncio.Event()
            two.journal.faults["accept"] = [Fault(gate=gate)]
            passing = asyncio.ensure_future(one.handoff.reconcile())
            await until(lambda: two.journal.waiting)
            assert None is one.items.begin()
            gate.set()
            await passing
            assert ([], [receipt]) == (one.holds_now, two.holds_now)
            assert "moved to 102:1" == (await lead.do(lambda j: j.move_of(receipt))).outcome
            await settled_once(receipt, one, two, lead)

    run(story())


def test_what_was_taken_to_be_moved_and_stays_may_be_begun(tmp_path: Path) -> None:
    """Nobody of that name is here, or works out of this journal: it is not even taken. A recipient that refuses: it is
    here, and may begin."""

    async def story() -> None:
        async with Town(tmp_path) as town:
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
            one.journal.faults["parcel"] = [Fault(before=JournalBusy("j", "busy"))]
            other = await one.admits(6, one.thread)
            await lead.do(lambda j: j.ask_move(other, "102:1"))
            await one.handoff.reconcile()
            assert [receipt, other] == one.holds_now
            assert not one.items.is_aside(other)
            await settled_once(receipt, one, two, lead)
            await settled_once(other, one, two, lead)

    run(story())


def test_a_copy_whose_row_is_somebody_elses_is_dropped_and_not_offered(tmp_path: Path) -> None:
    """The journal refuses the offer, and says whose it is: nobody hears of it."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            held = lead.items.get(receipt)
            assert held is not None
            await lead.do(lambda j: j.release(receipt, held.holder, "elsewhere"))
            await lead.handoff.reconcile()
            assert ([], []) == (lead.holds_now, other.between.seen)
            assert "pending" == (await lead.row(receipt)).phase

    run(story())


def test_an_offer_that_nobody_waits_for_any_more_is_withdrawn(tmp_path: Path) -> None:
    """As after a call of the journal whose end nobody has seen: the row is the donor's again."""

    async def story() -> None:
        async with Town(tmp_path) as town:
            lead, other, receipt = await pair(town)
            held = lead.items.get(receipt)
            assert held is not None
            await lead.journal.offer(receipt, held.holder, "handoff-lost", other.party)
            lead.items.drop(receipt)
            await lead.handoff.reconcile()
            assert None is (await lead.row(receipt)).data.offer
            await lead.takes()
            await settled_once(receipt, lead, other)

    run(story())


def test_the_end_of_a_process_ends_its_offers_in_order(tmp_path: Path) -> None:
    """An offer that nobody has accepted is withdrawn at once, and the item may be given back by the worker."""

    async def story() -> None:
        async with Town(tmp_path, attrs.evolve(FAST, handoff_timeout_ms=600_000)) as town:
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

    run(story())
