"""No operation looks at more rows than it needs, however many there are: each statement goes by an index."""

from __future__ import annotations

import re

from tests.adapters.journal.journal_room import ME, Room
from tests.adapters.journal.test_faults import SCRIPT, SEEN
from tests.adapters.journal.test_looking import look

FEW = frozenset({"meta", "servers", "owners", "evidence", "moves", "sqlite_master", "sqlite_sequence"})
"""Tables of few rows, or that are read as a whole by who asks for all of it."""


def statements(room: Room) -> set[str]:
    """All that the script and the looks say to the database."""
    databases = room.faulty()
    room.started().close()
    journal = room.open(databases=databases)
    for _, operation in SCRIPT:
        for update in (5, 7):
            found = journal.item(str(update)).receipts
            if found and found[0].data.owner is not None:
                SEEN[update] = (found[0].receipt_id, found[0].data.owner)
        operation(journal)
    look(journal)
    journal.recover_all(ME)
    room.clock.advance(room.limits.tombstone_ms * 2)
    journal.retry_due("i")
    journal.vacancies()
    return {call.sql for call in databases.calls if call.name == "execute"}


def scans(plan: str) -> str:
    """The table that a step of a plan looks at from one end to the other without an index; "" for none."""
    found = re.match(r"(SCAN|SEARCH) (?:TABLE )?(\w+)", plan)
    if found is None or found[2] in FEW:
        return ""
    whole = "INDEX" not in plan if found[1] == "SCAN" else "(rowid" in plan and "(rowid=?)" not in plan
    return found[2] if whole and "PRIMARY KEY (rowid=?)" not in plan else ""


def test_every_statement_goes_by_an_index(room: Room) -> None:
    """Nothing is counted, and nothing is sorted that may be long."""
    said = {sql for sql in statements(room) if re.match("SELECT|UPDATE|DELETE|WITH", sql)}
    assert len(said) > 30
    for sql in sorted(said):
        plan = [str(row[-1]) for row in room.reader().execute("EXPLAIN QUERY PLAN " + sql.replace("?", "NULL"))]
        assert [] == [scans(step) for step in plan if scans(step)], (sql, plan)
        assert "count(" not in sql, sql


def test_a_scan_is_found(room: Room) -> None:
    """The test turns red."""
    room.started().close()
    for sql, table in (
        ("SELECT * FROM updates WHERE raw = ''", "updates"),
        ("SELECT count(*) FROM receipts WHERE kind = 'a'", "receipts"),
        ("SELECT * FROM deliveries ORDER BY raw", "deliveries"),
        ("SELECT * FROM updates WHERE phase = 'waiting' AND update_id > 5 ORDER BY update_id", "updates"),
        ("SELECT * FROM updates WHERE update_id = 5", ""),
    ):
        plan = [str(row[-1]) for row in room.reader().execute(f"EXPLAIN QUERY PLAN {sql}")]
        assert table == next((scans(step) for step in plan if scans(step)), "")
