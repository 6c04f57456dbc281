"""The failure matrix of bus.md (e), as far as the row alone decides it: with the journal on disk, and processes of
which a table says who is dead."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from tenure.machines.chart import Refused
from tenure.machines.receipt_messages import Accepted, Cancelled, Freed, Offered, Same
from tests.adapters.fleet.fleet_room import House, run
from tests.adapters.handoff.handoff_room import Station


def test_F6_a_donor_that_dies_before_it_offers_leaves_its_work(tmp_path: Path) -> None:
    """While it lives nobody takes it; once it is proven dead the work is pending, and whoever serves it takes it."""

    async def story() -> None:
        async with House(tmp_path) as house, Station(house, 50) as donor, Station(house, 101) as other:
            held = await donor.holds(5)
            receipt, acquisition = held.receipt_id, str(held.holder.acquisition)
            refused = await other.do(lambda j: j.recover(receipt, acquisition, other.party))
            assert isinstance(refused, Refused)
            house.processes.kill(50)
            freed = await other.do(lambda j: j.recover(receipt, acquisition, other.party))
            assert Freed("dead", held.holder) == freed
            await other.do(lambda j: j.serve(donor.binding, other.party))
            (taken,) = await other.takes()
            assert receipt == taken.receipt_id
            assert await other.executes(receipt)

    run(story())


def test_F7_a_donor_that_dies_with_an_open_offer_is_no_bar(tmp_path: Path) -> None:
    """The offer falls with it (L1): an acceptance that comes then finds none, and the recipient that was named takes
    the work."""

    async def story() -> None:
        async with House(tmp_path) as house, Station(house, 50) as donor, Station(house, 101) as other:
            held = await donor.holds(5)
            receipt = held.receipt_id
            assert isinstance(await donor.journal.offer(receipt, held.holder, "h", other.party), Offered)
            house.processes.kill(50)
            (found,) = await other.do(lambda j: j.recover_all(other.party))
            assert receipt == found.receipt_id
            late = await other.journal.accept(receipt, other.party, "h", held.holder)
            assert isinstance(late, Refused)
            (taken,) = await other.takes()
            assert (receipt, None) == (taken.receipt_id, taken.holder.handoff)
            assert await other.executes(receipt)

    run(story())


def test_F8_a_donor_that_dies_after_the_acceptance_takes_nothing_with_it(tmp_path: Path) -> None:
    """Who recovers then finds another owner, who lives, and executes it."""

    async def story() -> None:
        async with House(tmp_path) as house, Station(house, 50) as donor, Station(house, 101) as other:
            held = await donor.holds(5)
            receipt, acquisition = held.receipt_id, str(held.holder.acquisition)
            await donor.journal.offer(receipt, held.holder, "h", other.party)
            assert isinstance(await other.journal.accept(receipt, other.party, "h", held.holder), Accepted)
            house.processes.kill(50)
            late = await other.do(lambda j: j.recover(receipt, acquisition, other.party))
            assert isinstance(late, Refused)
            assert () == await other.do(lambda j: j.recover_all(other.party))
            assert () == await other.do(lambda j: j.reclaim(other.party))
            (mine,) = await other.takes()
            assert (receipt, "h") == (mine.receipt_id, mine.holder.handoff)
            assert await other.executes(receipt)

    run(story())


def test_F10_whoever_recovers_the_dead_recipient_executes_it_once(tmp_path: Path) -> None:
    """Also the donor that had it before: under a new acquisition. Its old copy is worth nothing."""

    async def story() -> None:
        async with House(tmp_path) as house, Station(house, 50) as donor, Station(house, 101) as other:
            held = await donor.holds(5)
            receipt = held.receipt_id
            await donor.journal.offer(receipt, held.holder, "h", other.party)
            await other.journal.accept(receipt, other.party, "h", held.holder)
            house.processes.kill(101)
            assert isinstance(await donor.journal.cancel(receipt, held.holder, "h"), Refused)
            assert not await donor.executes(receipt)
            donor.items.drop(receipt)
            await donor.do(lambda j: j.recover_all(donor.party))
            (taken,) = await donor.takes()
            assert held.holder.acquisition != taken.holder.acquisition
            assert await donor.executes(receipt)
            assert "done" == (await donor.row(receipt)).phase

    run(story())


def test_F15_one_offer_at_a_time(tmp_path: Path) -> None:
    """Another token, or another recipient: refused while the first is open; the same again is the same."""

    async def story() -> None:
        async with (
            House(tmp_path) as house,
            Station(house, 50) as donor,
            Station(house, 101) as other,
            Station(house, 102) as third,
        ):
            held = await donor.holds(5)
            receipt, holder = held.receipt_id, held.holder
            await donor.journal.offer(receipt, holder, "h", other.party)
            assert isinstance(await donor.journal.offer(receipt, holder, "h2", other.party), Refused)
            assert isinstance(await donor.journal.offer(receipt, holder, "h", third.party), Refused)
            assert isinstance(await donor.journal.offer(receipt, holder, "h", other.party), Same)
            assert isinstance(await other.journal.accept(receipt, other.party, "h2", holder), Refused)
            assert isinstance(await third.journal.accept(receipt, third.party, "h", holder), Refused)
            assert isinstance(await other.journal.accept(receipt, other.party, "h", holder), Accepted)

    run(story())


def test_F16_nobody_offers_to_another_activation_of_his_own_process(tmp_path: Path) -> None:
    """Of which only one lives."""

    async def story() -> None:
        async with House(tmp_path) as house, Station(house, 50) as donor:
            held = await donor.holds(5)
            again = attrs.evolve(donor.party, instance="50:2")
            refused = await donor.journal.offer(held.receipt_id, held.holder, "h", again)
            assert isinstance(refused, Refused)
            assert "to_another_process" in refused.guards

    run(story())


def test_F17_what_is_offered_is_frozen(tmp_path: Path) -> None:
    """Its donor does not begin it, nobody discards it; withdrawn, it is as before."""

    async def story() -> None:
        async with House(tmp_path) as house, Station(house, 50) as donor, Station(house, 101) as other:
            held = await donor.holds(5)
            receipt = held.receipt_id
            await donor.journal.offer(receipt, held.holder, "h", other.party)
            assert not await donor.executes(receipt)
            assert isinstance(await donor.do(lambda j: j.complete(receipt, held.holder)), Refused)
            assert isinstance(await donor.do(lambda j: j.discard(receipt, "me")), Refused)
            assert isinstance(await donor.journal.cancel(receipt, held.holder, "h"), Cancelled)
            assert await donor.executes(receipt)

    run(story())


@pytest.mark.parametrize("said", [None, "handoff-x"])
def test_F19_an_owner_by_handoff_is_named_with_it(tmp_path: Path, said: str | None) -> None:
    """Else the acceptance compares another owner, and refuses (L6)."""

    async def story() -> None:
        async with House(tmp_path) as house, Station(house, 50) as donor, Station(house, 101) as other:
            held = await donor.holds(5)
            receipt = held.receipt_id
            await donor.journal.offer(receipt, held.holder, "h", other.party)
            taken = await other.journal.accept(receipt, other.party, "h", held.holder)
            assert isinstance(taken, Accepted)
            await other.journal.offer(receipt, taken.holder, "back", donor.party)
            wrong = attrs.evolve(taken.holder, handoff=said)
            assert isinstance(await donor.journal.accept(receipt, donor.party, "back", wrong), Refused)
            assert isinstance(await donor.journal.accept(receipt, donor.party, "back", taken.holder), Accepted)

    run(story())
