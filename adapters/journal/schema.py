"""The tables, and how an older file becomes one of this version: forward only, in one transaction.

| table | a row is | found by |
|---|---|---|
| `meta` | the file: identity, fence, the highest update id that was passed, what is unsettled; one row | |
| `updates` | what was polled | id; unsettled ones by phase and time; tombstones by age |
| `deliveries` | an update at one instance | id; those of a receipt, of an update; tombstones by age |
| `receipts` | the right to execute deliveries | id; pending ones by binding; owned ones by process |
| `servers` | who serves a binding | binding |
| `moves` | that a person wants a receipt elsewhere | receipt |
| `owners` | whose a thread or a message was last | chat, thread or message, number |
| `evidence` | what must not be forgotten whatever the epoch; only inserted | |
| `decisions` | what was decided or refused, and by which guard | number; subject |
"""

from __future__ import annotations

from typing import Final

from tenure.adapters.journal.database import Database

APPLICATION: Final = 0x74656E75
"""``tenu``: what tells our files from other databases."""
VERSION: Final = 1
"""The schema that this program reads and writes: PRAGMA user_version, and once more in the row that every transaction
reads, since the file may be migrated while an older program has it open."""

_FIRST: Final = (
    """CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        schema INTEGER NOT NULL,
        bot_id INTEGER, token_sha256 TEXT, bot_serial INTEGER NOT NULL DEFAULT 0,
        fence INTEGER NOT NULL DEFAULT 0,
        passed INTEGER NOT NULL DEFAULT -1,
        opened INTEGER NOT NULL DEFAULT 0,
        updates INTEGER NOT NULL DEFAULT 0, update_bytes INTEGER NOT NULL DEFAULT 0,
        deliveries INTEGER NOT NULL DEFAULT 0, delivery_bytes INTEGER NOT NULL DEFAULT 0,
        tombstones INTEGER NOT NULL DEFAULT 0,
        decisions INTEGER NOT NULL DEFAULT 0)""",
    "INSERT INTO meta (id, schema) VALUES (1, 1)",
    """CREATE TABLE updates (
        update_id INTEGER PRIMARY KEY,
        phase TEXT NOT NULL,
        raw TEXT NOT NULL,
        admitted_at INTEGER NOT NULL,
        kind TEXT NOT NULL, binding TEXT, delivery_id TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        failure TEXT, next_at INTEGER,
        settled_at INTEGER)""",
    "CREATE INDEX updates_open ON updates (phase, update_id) WHERE settled_at IS NULL",
    "CREATE INDEX updates_due ON updates (next_at) WHERE phase = 'waiting'",
    "CREATE INDEX updates_settled ON updates (settled_at, update_id) WHERE settled_at IS NOT NULL",
    """CREATE TABLE deliveries (
        delivery_id TEXT PRIMARY KEY,
        phase TEXT NOT NULL,
        kind TEXT NOT NULL, binding TEXT NOT NULL, update_id INTEGER NOT NULL,
        raw TEXT NOT NULL, digest TEXT NOT NULL, position TEXT,
        admitted_at INTEGER NOT NULL,
        receipt_id TEXT NOT NULL,
        settled_at INTEGER)""",
    "CREATE INDEX deliveries_by_receipt ON deliveries (receipt_id, update_id)",
    "CREATE INDEX deliveries_by_update ON deliveries (update_id)",
    "CREATE INDEX deliveries_settled ON deliveries (settled_at) WHERE settled_at IS NOT NULL",
    """CREATE TABLE receipts (
        receipt_id TEXT PRIMARY KEY,
        phase TEXT NOT NULL,
        kind TEXT NOT NULL, binding TEXT NOT NULL,
        first_update INTEGER NOT NULL,
        payload TEXT NOT NULL,
        admitted_at INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0, attempt_limit INTEGER NOT NULL,
        not_before INTEGER NOT NULL DEFAULT 0,
        owner_instance TEXT, owner_process TEXT, owner_session INTEGER,
        owner_acquisition TEXT, owner_handoff TEXT, owned_since INTEGER,
        offer_handoff TEXT, offer_instance TEXT, offer_process TEXT,
        fallen_handoff TEXT, fallen_instance TEXT, fallen_process TEXT,
        settled_at INTEGER)""",
    "CREATE INDEX receipts_open ON receipts (first_update, receipt_id) WHERE settled_at IS NULL",
    "CREATE INDEX receipts_pending ON receipts (binding, first_update) WHERE phase = 'pending'",
    "CREATE INDEX receipts_fallen ON receipts (fallen_process) WHERE fallen_process IS NOT NULL",
    "CREATE INDEX receipts_owned ON receipts (owner_process, first_update) WHERE owner_process IS NOT NULL",
    "CREATE INDEX receipts_stuck ON receipts (first_update) WHERE phase IN ('interrupted', 'failed')",
    """CREATE TABLE servers (
        binding TEXT PRIMARY KEY,
        instance TEXT NOT NULL, process TEXT NOT NULL, session INTEGER NOT NULL,
        since INTEGER NOT NULL, left_at INTEGER)""",
    "CREATE INDEX servers_by_process ON servers (process)",
    """CREATE TABLE moves (
        receipt_id TEXT PRIMARY KEY,
        instance TEXT NOT NULL, asked_at INTEGER NOT NULL, outcome TEXT)""",
    """CREATE TABLE owners (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        chat_id INTEGER NOT NULL, thing TEXT NOT NULL, number INTEGER NOT NULL,
        binding TEXT NOT NULL)""",
    "CREATE UNIQUE INDEX owners_of ON owners (chat_id, thing, number)",
    """CREATE TABLE evidence (
        seq INTEGER PRIMARY KEY,
        at_ms INTEGER NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, detail TEXT NOT NULL)""",
    "CREATE INDEX evidence_by_subject ON evidence (kind, subject)",
    """CREATE TABLE decisions (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        at_ms INTEGER NOT NULL,
        subject TEXT NOT NULL, nth INTEGER NOT NULL,
        action TEXT NOT NULL, party TEXT, tenure TEXT,
        guard TEXT, law TEXT, detail TEXT)""",
    "CREATE UNIQUE INDEX decisions_by_subject ON decisions (subject, nth)",
)

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (_FIRST,)
"""The statements that lead from each version to the next one; the first of them from an empty file."""
assert len(MIGRATIONS) == VERSION


def version_of(database: Database) -> int:
    """PRAGMA user_version: 0 for an empty file."""
    found = database.execute("PRAGMA user_version")[0][0]
    assert isinstance(found, int)
    return found


def migrate(database: Database, found: int) -> None:
    """From version `found` to `VERSION`, inside the transaction that is open."""
    for statements in MIGRATIONS[found:]:
        for statement in statements:
            database.execute(statement)
    database.execute("UPDATE meta SET schema = ?", (VERSION,))
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    database.execute(f"PRAGMA user_version = {VERSION}")
