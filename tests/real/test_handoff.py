"""Queued items move between real processes, which hang and are killed on the way (bus.md e; L1, L4, F7, F10)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.adapters.journal.rows import ReceiptRow
from tests.real.conftest import until
from tests.real.works import Working, Works, works_in


@pytest.fixture
def works(tmp_path: Path) -> Iterator[Works]:
    with works_in(tmp_path) as works:
        yield works


def instance_of(works: Works, working: Working) -> str:
    """Its instance, as it has written itself down in the journal."""
    rows = works.journal(lambda j: j.servers())
    found = {row.party.instance for row in rows if row.party.process.startswith(f"{working.pid}:") and not row.left_at}
    assert found, (working.pid, rows)
    return sorted(found)[0]


def moves(works: Works, update: int, to: Working) -> None:
    """A person wants an update's item there."""
    instance = instance_of(works, to)

    def ask(journal: object) -> None:
        for row in journal.listing().receipts:  # type: ignore[attr-defined]
            if row.first_update == update:
                journal.ask_move(row.receipt_id, instance)  # type: ignore[attr-defined]

    works.journal(ask)


def row_of(works: Works, update: int) -> ReceiptRow:
    """The receipt of an update."""
    found: ReceiptRow = works.journal(lambda j: next(r for r in j.listing().receipts if r.first_update == update))
    return found


def waits(works: Works, *updates: int) -> None:
    """Each of these has been admitted."""
    until(lambda: set(updates) <= {row.first_update for row in works.listing().receipts})


def test_items_go_where_a_person_wants_them(works: Works) -> None:
    """From a follower to its leader, to another follower, and on: each is executed once, by whom it was moved to."""
    leader, second, third = works.fleet(3, "1")
    works.push(*[second.thread] * 5)
    waits(works, 4, 5)
    until(lambda: works.by(second.pid))
    moves(works, 4, leader)
    moves(works, 5, third)
    works.settles()
    assert (works.by(leader.pid), works.by(third.pid)) == ([4], [5])
    assert set(works.began().values()) == {1}
    assert set(works.began()) == {1, 2, 3, 4, 5}


def test_a_recipient_that_hangs_holds_nothing_up(works: Works) -> None:
    """The donor withdraws the offer when its time is over, and executes the item itself; awake, the other has nothing
    of it."""
    leader, second, third = works.fleet(3, "1")
    works.push(*[second.thread] * 4)
    waits(works, 4)
    until(lambda: works.by(second.pid))
    third.kill(signal.SIGSTOP)
    moves(works, 4, third)
    works.settles()
    assert works.by(second.pid) == [1, 2, 3, 4]
    third.kill(signal.SIGCONT)
    third.becomes(f"following pid {leader.pid}")
    assert works.by(third.pid) == []
    assert works.interrupted() == []


def test_F7_a_donor_that_is_killed_with_an_open_offer_loses_nothing(works: Works) -> None:
    """The recipient hangs, so the offer stays open; then the donor dies. The work runs elsewhere, once (L1)."""
    leader, second, third = works.fleet(3, "2")
    works.push(*[second.thread] * 3)
    waits(works, 3)
    until(lambda: works.by(second.pid))
    third.kill(signal.SIGSTOP)
    moves(works, 3, third)
    until(lambda: row_of(works, 3).data.offer)
    second.kill()
    third.kill(signal.SIGCONT)
    works.settles()
    assert works.interrupted() == [1]
    assert works.began() == {1: 1, 2: 1, 3: 1}
    assert set(works.by(leader.pid)) | set(works.by(third.pid)) == {2, 3}
    assert works.verdict().faults == ()


def test_F10_a_recipient_that_is_killed_after_it_has_accepted_loses_nothing(works: Works) -> None:
    """It is busy with something else, so what it has accepted waits there; then it dies. The work runs elsewhere."""
    leader, second, third = works.fleet(3, "2")
    works.push(third.thread, *[second.thread] * 2)
    waits(works, 3)
    until(lambda: works.by(second.pid) and works.by(third.pid))
    instance = instance_of(works, third)
    moves(works, 3, third)
    until(lambda: (owner := row_of(works, 3).data.owner) is not None and owner.instance == instance)
    third.kill()
    works.settles()
    assert works.interrupted() == [1]
    assert works.began() == {1: 1, 2: 1, 3: 1}
    assert set(works.by(leader.pid)) | set(works.by(second.pid)) == {2, 3}
    assert works.verdict().faults == ()
