"""A recipient that has begun to accept goes on, whatever becomes of who asked, and of the journal meanwhile (L3)."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import attrs
import pytest

from tenure.adapters.bus.messages.envelopes_handoff import Staged
from tenure.adapters.errors import TenureError
from tenure.adapters.journal.errors import JournalBusy, OutcomeUnknown
from tenure.adapters.journal.rows import ReceiptRow
from tenure.adapters.ports import Killed
from tests.adapters.fleet.fleet_room import until
from tests.adapters.handoff.handoff_room import Fault
from tests.adapters.handoff.town import OFFER, Town, in_town, offer_of, owner_of, pair, sending, settled_once

SPIN_S = 15.0


@contextmanager
def turning(seconds: float = SPIN_S) -> Iterator[None]:
    """A loop that does not turn for so long is interrupted: nothing that runs on it could do that."""

    def stuck(number: int, frame: FrameType | None) -> None:
        where = "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
        raise AssertionError(f"the event loop stands still at {where}")

    before = signal.signal(signal.SIGALRM, stuck)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@in_town()
async def test_an_acceptance_goes_on_without_its_request(town: Town) -> None:
    """The registration ends in the middle: the item is accepted all the same, and is in the queue here."""
    lead, other, receipt = await pair(town)
    assert other.hand is not None
    gate = asyncio.Event()
    other.journal.faults["accept"] = [Fault(gate=gate)]
    cut = asyncio.Event()
    lead.journal.faults["cancel"] = [Fault(gate=cut)]
    passing = asyncio.ensure_future(lead.handoff.reconcile())
    await until(lambda: other.journal.waiting)
    await other.hand.follower.stop()
    await until(lambda: lead.journal.waiting)
    gate.set()
    await until(lambda: other.holds_now)
    cut.set()
    await passing
    assert ([], [receipt]) == (lead.holds_now, other.holds_now)
    await settled_once(receipt, lead, other)


@pytest.mark.parametrize("call", ["accept", "release"])
@in_town()
async def test_a_journal_that_fails_is_asked_again(town: Town, call: str) -> None:
    """Busy, or done and not told: until the row has answered. Nothing is owned that nobody holds."""
    lead, other, receipt = await pair(town)
    busy, unknown = JournalBusy("j", "busy"), OutcomeUnknown("j", "nobody knows")
    other.journal.faults[call] = [Fault(before=busy), Fault(before=busy), Fault(after=unknown)]
    if call == "release":
        gate = asyncio.Event()
        other.journal.faults["look"] = [Fault(before=busy, gate=gate)]
    passing = asyncio.ensure_future(lead.handoff.reconcile())
    if call == "release":
        await until(lambda: other.journal.waiting)
        other.serves = False
        gate.set()
    await passing
    assert 4 == other.journal.calls.count(call)
    assert [] == lead.holds_now
    if call == "accept":
        assert [receipt] == other.holds_now
    else:
        assert "pending" == (await lead.row(receipt)).phase
        await lead.takes()
    await settled_once(receipt, lead, other)


@in_town()
async def test_what_a_worker_has_begun_is_not_given_back(town: Town) -> None:
    """The worker finds the item by itself, and begins it, while its recipient cannot read the row: it is accepted."""
    lead, other, receipt = await pair(town)
    gate = asyncio.Event()
    other.journal.faults["look"] = [Fault(before=JournalBusy("j", "busy"), gate=gate)]
    passing = asyncio.ensure_future(lead.handoff.reconcile())
    await until(lambda: other.journal.waiting)
    await other.takes()
    held = other.items.begin()
    assert held is not None
    await other.do(lambda journal: journal.start(receipt, held.holder))
    gate.set()
    await passing
    assert "started" == (await other.row(receipt)).phase
    assert "release" not in other.journal.calls
    assert [] == lead.holds_now
    await other.do(lambda journal: journal.complete(receipt, held.holder))
    assert "done" == (await lead.row(receipt)).phase


@in_town()
async def test_what_its_worker_has_done_is_not_put_into_the_queue(town: Town) -> None:
    """The worker finds the item by itself, and has done it before its recipient has read the row."""
    lead, other, receipt = await pair(town)
    gate = asyncio.Event()
    other.journal.faults["look"] = [Fault(gate=gate)]
    passing = asyncio.ensure_future(lead.handoff.reconcile())
    await until(lambda: other.journal.waiting)
    await other.takes()
    assert await other.executes(receipt)
    gate.set()
    await passing
    assert ([], []) == (lead.holds_now, other.holds_now)


@in_town()
async def test_F12_a_registration_that_ends_before_the_acceptance_is_none(town: Town) -> None:
    """The offer was admitted under it; by the time that the journal would be asked another one is held."""
    lead, other, receipt = await pair(town)
    assert other.hand is not None
    gate = asyncio.Event()
    other.journal.faults["key"] = [Fault(gate=gate)]
    passing = asyncio.ensure_future(lead.handoff.reconcile())
    await until(lambda: other.journal.waiting)
    other.hand.follower.leave()
    await other.registers(town.lead)
    gate.set()
    await passing
    assert ([receipt], []) == (lead.holds_now, other.holds_now)
    assert "accept" not in other.journal.calls


@in_town()
async def test_who_ends_asks_the_journal_once(town: Town) -> None:
    """What it could not find out is found by whoever comes next: the row says whose it is."""
    lead, other, receipt = await pair(town)
    busy = Fault(before=JournalBusy("j", "busy"))
    other.journal.faults["accept"] = [busy] * 1000
    passing = asyncio.ensure_future(lead.handoff.reconcile())
    await until(lambda: 2 < other.journal.calls.count("accept"))
    await other.handoff.close()
    await passing
    assert ([receipt], []) == (lead.holds_now, other.holds_now)
    assert other.journal.calls.count("accept") < 999
    await settled_once(receipt, lead, other)


@pytest.mark.parametrize("call", ["accept", "look"])
@pytest.mark.parametrize("done", [False, True])
@in_town(handoff_timeout_ms=100)
async def test_a_process_that_dies_in_a_call_does_nothing_after_it(town: Town, call: str, done: bool) -> None:
    """Nothing that handles errors goes on: neither a release nor an answer. The row tells whose it is, and of whom the
    dead had it."""
    lead, other, receipt = await pair(town)
    other.between.fates[OFFER] = ["lose"]
    held = lead.items.get(receipt)
    assert held is not None
    gate = asyncio.Event()
    lead.journal.faults["cancel"] = [Fault(gate=gate)]
    passing = asyncio.ensure_future(lead.handoff.reconcile())
    await until(lambda: lead.journal.waiting)
    offer = offer_of(other)
    dies = Killed("here")
    other.journal.faults[call] = [Fault(after=dies) if done else Fault(before=dies)]
    with pytest.raises(Killed):
        await other.handoff.accept(offer)
    assert ("release" not in other.journal.calls, []) == (True, other.holds_now)
    accepted = done or call == "look"
    assert ("101:1" if accepted else "50:1") == await owner_of(lead, receipt)
    town.processes.kill(101)
    gate.set()
    await passing
    assert ([] if accepted else [receipt]) == lead.holds_now
    await lead.do(lambda j: j.recover_all(lead.party))
    await lead.takes()
    await settled_once(receipt, lead)


@in_town()
async def test_an_item_that_came_here_by_another_handoff_is_not_taken_again(town: Town) -> None:
    """What it has is its own; an offer of somebody else for it is refused, and changes nothing (I29)."""
    lead, other, receipt = await pair(town)
    await lead.handoff.reconcile()
    answer = await other.between.again(requestId="50:1:x", donorAcquisitionId="another")
    assert not answer["ok"]
    assert "here already, by another handoff" in answer["message"]
    assert [receipt] == other.holds_now
    await settled_once(receipt, lead, other)


@in_town()
async def test_what_is_offered_to_another_instance_is_not_taken(town: Town) -> None:
    """Whoever brings it."""
    lead, other, receipt = await pair(town)
    other.between.fates[OFFER] = ["lose"]
    await lead.handoff.reconcile()
    offer = offer_of(other)
    with pytest.raises(TenureError, match="stale registration"):
        await other.handoff.accept(attrs.evolve(offer, recipient_instance_id="102:1"))
    assert "accept" not in other.journal.calls
    assert [receipt] == lead.holds_now


@in_town()
async def test_an_offer_under_way_is_answered_by_what_comes_of_it(town: Town) -> None:
    """The first is refused, by its row; the second one is judged anew, and is refused as well."""
    lead, other, receipt = await pair(town)
    held = lead.items.get(receipt)
    assert held is not None
    passing, hold = await sending(lead, other)
    await lead.do(lambda j: j.release(receipt, held.holder, "gone"))
    gate = asyncio.Event()
    other.journal.faults["accept"] = [Fault(gate=gate)]
    hold.set()
    await until(lambda: other.journal.waiting)
    second = asyncio.ensure_future(other.between.again(requestId="50:1:x"))
    gate.set()
    await passing
    assert not (await second)["ok"]
    assert ([], []) == (lead.holds_now, other.holds_now)
    assert "pending" == (await lead.row(receipt)).phase


@pytest.mark.parametrize("waiting", [1, 2])
@in_town(handoff_timeout_ms=100)
async def test_who_asks_in_the_turn_in_which_the_first_is_answered_is_told_the_same(town: Town, waiting: int) -> None:
    """Its work has ended, and nobody has been told yet: whoever comes then, or has waited, waits for nothing that is
    over."""
    lead, other, receipt = await pair(town)
    other.between.fates[OFFER] = ["lose"]
    gate = asyncio.Event()
    lead.journal.faults["cancel"] = [Fault(gate=gate)]
    passing = asyncio.ensure_future(lead.handoff.reconcile())
    await until(lambda: lead.journal.waiting)
    offer = offer_of(other)
    inner, looks, more = other.journal.look, [], list[asyncio.Future[Staged]]()

    async def look(receipt_id: str) -> ReceiptRow | None:
        row = await inner(receipt_id)
        looks.append(receipt_id)
        if len(looks) == 2:  # of the answer: the last thing that the first one waits for
            more.extend(asyncio.ensure_future(other.handoff.accept(offer)) for _ in range(waiting))
        return row

    other.journal.look = look  # type: ignore[method-assign]
    with turning():
        first = await other.handoff.accept(offer)
        assert [first] * waiting == await asyncio.gather(*more)
    gate.set()
    await passing
    assert ([], [receipt]) == (lead.holds_now, other.holds_now)
    await settled_once(receipt, lead, other)


@in_town()
async def test_what_is_refused_says_why(town: Town) -> None:
    """In one line, for the donor's person."""
    lead, other, _ = await pair(town)
    other.serves = False
    await lead.handoff.reconcile()
    (note,) = town.notes.said("handoff", "kept")
    assert "nobody here executes queued items now: try again later" == note["why"]
    assert (0, 1) == (other.handoff.recipient.accepted, other.handoff.recipient.refused)
    with pytest.raises(TenureError, match="bind the handoff"):
        await type(other.handoff).run(
            type(other.handoff)(
                other.ports, town.times, other.journal, other.items, other.identity,
                party=lambda: other.party, serves=lambda: True,
            )
        )  # fmt: skip


@in_town()
async def test_an_acceptance_names_who_owns_it(town: Town) -> None:
    """As the row does: instance, process, acquisition, when, and by which handoff."""
    lead, other, receipt = await pair(town)
    await lead.handoff.reconcile()
    row = await lead.row(receipt)
    owner = row.data.owner
    assert owner is not None
    assert {
        "instanceId": "101:1",
        "processId": 101,
        "processBirthId": "101:start:1010",
        "sessionGeneration": 1,
        "acquisitionId": owner.acquisition,
        "acquiredAtMs": row.owned_since,
        "handoffId": owner.handoff,
    } == other.between.answers[0]["result"]["queueOwner"]
