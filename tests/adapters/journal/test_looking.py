"""Looking changes nothing, and sees one state."""

from __future__ import annotations

from tenure.adapters.journal.journal import Journal
from tests.adapters.journal.journal_room import EPOCH, ME, YOU, Room, arrival, body, incoming, kept, taken


def look(journal: Journal) -> None:
    """Everything that only looks."""
    journal.state()
    journal.listing()
    journal.stuck()
    journal.item("5")
    journal.item("no")
    journal.life("5")
    journal.life("no")
    journal.receipt("no")
    journal.update(5)
    journal.deliveries_of("no")
    journal.pending_work("B")
    journal.owned_by("p1")
    journal.due_in(ME)
    journal.outgoing(-1, 5)
    journal.retry_in()
    journal.servers()
    journal.moves_for("p1")
    journal.move_of("no")
    journal.evidence("thread")


def test_not_a_byte_is_changed(room: Room) -> None:
    """Nor is anything written and rolled back: whoever may not write looks as well."""
    room.started(5).close()
    databases = room.faulty()
    journal = room.open(None, create=False, databases=databases)
    before, first = room.bytes(), len(databases.calls)
    look(journal)
    assert before == room.bytes()
    calls = databases.calls[first:]
    assert {"snapshot", "execute", "rollback"} == {call.name for call in calls}
    assert {"SELECT"} == {call.sql.split(" ")[0] for call in calls if call.name == "execute"}


def test_an_item_by_any_of_its_ids(room: Room) -> None:
    """The update, its delivery, its receipt, and what a person wants of it."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    journal.ask_move(receipt, "i2")
    found = journal.item("5")
    assert found.found
    assert found == journal.item(receipt) == journal.item(found.deliveries[0].delivery_id)
    assert found.update is not None
    assert (5, receipt, "i2") == (found.update.data.update, found.receipts[0].receipt_id, found.moves[0].instance)
    for nothing in ("9", "no", "", "5x", "-5", "9" * 40, "٥"):
        assert not journal.item(nothing).found, nothing
        assert () == journal.life(nothing)


def test_a_listing_is_bounded_and_says_so(room: Room) -> None:
    """By update id, so many rows at most."""
    journal = room.started(*range(1, 21))
    for update in range(1, 11):
        kept(journal, update)
    journal.unserved(15, EPOCH, "i1")
    journal.forward(12, EPOCH, "C", "i1")
    whole = journal.listing()
    assert list(range(11, 21)) == [row.data.update for row in whole.updates]
    assert list(range(1, 11)) == [row.first_update for row in whole.receipts]
    assert not whole.more
    part = journal.listing(3)
    assert [11, 12, 13] == [row.data.update for row in part.updates]
    assert [1, 2, 3] == [row.first_update for row in part.receipts]
    assert part.more


def test_what_is_to_be_executed(room: Room) -> None:
    """The bodies of a receipt's deliveries, with their position."""
    journal = room.started()
    journal.serve("C", YOU)
    answer = journal.admit(arrival(5, "C", position='{"index":2}'), "C", "i2")
    receipt = str(getattr(answer, "receipt", ""))
    taken(journal, receipt, YOU)
    assert [(5, body(5), '{"index":2}')] == [(d.update_id, d.raw, d.position) for d in journal.deliveries_of(receipt)]


def test_outgoing_comes_in_pages(room: Room) -> None:
    """By id, above the last one that was seen."""
    journal = room.started(*range(1, 8))
    journal.unserved(3, EPOCH, "i1")
    journal.forward(4, EPOCH, "C", "i1")
    seen, after = [], -1
    while page := journal.outgoing(after, 2):
        seen += [row.data.update for row in page]
        after = seen[-1]
    assert [1, 2, 5, 6, 7] == seen
    assert [1, 2, 3, 5, 6, 7] == [row.data.update for row in journal.outgoing(-1, 9, all_of_them=True)]
    assert [3, 5] == [row.data.update for row in journal.outgoing(2, 2, all_of_them=True)]
    journal.append([incoming(8)], EPOCH, "i1")
    assert [8] == [row.data.update for row in journal.outgoing(7, 9)]
