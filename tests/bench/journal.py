"""Benchmarks of the journal: a durable append beside a bare SQLite insert with the same settings, batches, recovery,
and whether an operation costs the same in a full journal.

What waits for the disk is measured in turns with what it is compared with, on the directory given.
"""

from __future__ import annotations

import gc
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from files import in_turns

from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.forwards import Kept
from tenure.adapters.journal.identity import identity_of_token
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.sqlite import SqliteDatabases
from tenure.adapters.journal.updates import Incoming
from tenure.adapters.testing.databases import HastyDatabases
from tenure.machines.receipt_messages import Evidence, Holder, Party, Taken

Row = dict[str, Any]
BODY: Final = '{"update_id":%d,"message":{"message_id":%d,"chat":{"id":7},"text":"' + "x" * 500 + '"}}'
ME: Final = Party("i1", "p1", 1)
EPOCH: Final = 1


class Lives:
    """Who is dead."""

    def __init__(self) -> None:
        self.dead: set[str] = set()

    def evidence(self, process: str) -> Evidence:
        """As said."""
        return "dead" if process in self.dead else "alive"


class Bench:
    """A journal, and the next update id."""

    def __init__(self, room: str, *, hasty: bool = False) -> None:
        self.lives = Lives()
        self.next = 0
        self._room = room
        self._hasty = hasty
        self.journal = self._open()
        self.journal.raise_fence(EPOCH, "i1")
        self.journal.end_first_start(EPOCH, "i1")
        self.journal.serve("B", ME)

    def _open(self) -> Journal:
        databases = HastyDatabases(SqliteDatabases()) if self._hasty else None
        bot = identity_of_token("7:bench")
        limits = Limits(entries=1_000_000, entry_bytes=2**40)
        return Journal.open(
            real_ports(),
            agent_directory(self._room),
            bot=bot,
            limits=limits,
            liveness=self.lives,
            databases=databases,
        )

    def reopen(self, *, hasty: bool) -> None:
        """By the next process."""
        self.journal.close()
        self._hasty = hasty
        self.journal = self._open()

    def batch(self, size: int) -> list[Incoming]:
        """The next updates."""
        first, self.next = self.next + 1, self.next + size
        return [Incoming(n, BODY % (n, n), "leader.forwardMessage") for n in range(first, first + size)]

    def append(self, size: int = 1) -> int:
        """As many of them; the first one's id."""
        batch = self.batch(size)
        self.journal.append(batch, EPOCH, "i1")
        return batch[0].update

    def keep(self, update: int) -> str:
        """Delivered to the leader's own binding; the receipt."""
        answer = self.journal.keep(update, EPOCH, "B", "i1")
        assert isinstance(answer, Kept)
        return answer.admitted.receipt

    def take(self, receipt: str) -> Holder:
        """Taken by me."""
        answer = self.journal.take(receipt, ME)
        assert isinstance(answer, Taken)
        return answer.holder

    def life(self) -> None:
        """An update from the poll to the end: five transactions."""
        receipt = self.keep(self.append())
        holder = self.take(receipt)
        self.journal.start(receipt, holder)
        self.journal.complete(receipt, holder)

    def fill(self, entries: int) -> None:
        """So many unsettled receipts."""
        for _ in range(0, entries, 1_000):
            first = self.append(min(1_000, entries))
            for update in range(first, first + min(1_000, entries)):
                self.keep(update)


def bare_insert(room: str) -> Callable[[], None]:
    """What a durable append needs of SQLite at least: one row, the same settings, one transaction."""
    connection = sqlite3.connect(f"{room}/bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE updates (update_id INTEGER PRIMARY KEY, raw TEXT NOT NULL)")
    number = 0

    def insert() -> None:
        nonlocal number
        number += 1
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO updates VALUES (?, ?)", (number, BODY % (number, number)))
        connection.execute("COMMIT")

    return insert


def bench_append(place: Path | None, rounds: int) -> list[Row]:
    """The last row of DESIGN 11, and what a batch saves."""
    with tempfile.TemporaryDirectory(dir=place) as room:
        bench = Bench(room)
        found = in_turns(
            {
                "append": bench.append,
                "bare": bare_insert(room),
                "ten": lambda: bench.append(10),
                "hundred": lambda: bench.append(100),
                "life": bench.life,
            },
            rounds,
        )
    ratio = found["append"] / found["bare"]
    return [
        {
            "what": "durable append of one update, beside a bare durable insert",
            "append_us": found["append"],
            "bare_us": found["bare"],
            "ratio": ratio,
            "bar": "<= 1.5 x",
            "ok": ratio <= 1.5,
        },
        {"what": "batch of 10", "us per update": found["ten"] / 10, "ratio": found["ten"] / 10 / found["bare"]},
        {
            "what": "batch of 100",
            "us per update": found["hundred"] / 100,
            "ratio": found["hundred"] / 100 / found["bare"],
        },
        {
            "what": "from the poll to the end, five transactions",
            "us": found["life"],
            "ratio": found["life"] / found["bare"],
        },
    ]


def bench_recovery(place: Path | None, entries: int) -> list[Row]:
    """A journal full of a dead process's work: open it, look, and make all of it pending."""
    with tempfile.TemporaryDirectory(dir=place) as room:
        bench = Bench(room, hasty=True)
        bench.fill(entries)
        assert entries == len(bench.journal.take_some(ME, entries))
        bench.lives.dead.add(ME.process)
        started = time.perf_counter()
        bench.reopen(hasty=False)
        opened = time.perf_counter()
        assert entries == len(bench.journal.listing(entries).receipts)
        listed = time.perf_counter()
        assert entries == len(bench.journal.recover_all(Party("i2", "p2")))
        recovered = time.perf_counter()
        size = Path(bench.journal.path).stat().st_size
        bench.journal.close()
    return [
        {
            "what": f"recovery of {entries:,} entries of a dead process, durable, 500 a transaction",
            "open_ms": (opened - started) * 1e3,
            "list_ms": (listed - opened) * 1e3,
            "recover_ms": (recovered - listed) * 1e3,
            "us per entry": (recovered - listed) * 1e6 / entries,
            "file_mib": size / 2**20,
        }
    ]


def bench_flat(place: Path | None, most: int, rounds: int) -> list[Row]:
    """What each operation costs beside 10 entries, and beside `most`; first without waiting for the disk, which would
    hide it."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=place) as small_room, tempfile.TemporaryDirectory(dir=place) as large_room:
        benches = {"small": Bench(small_room, hasty=True), "large": Bench(large_room, hasty=True)}
        for bench, entries in zip(benches.values(), (10, most), strict=True):
            bench.fill(entries)
        for hasty in (True, False):
            for bench in benches.values():
                bench.reopen(hasty=hasty)
            found = _operations(benches, rounds)
            for name, few in found["small"].items():
                ratio = found["large"][name] / few
                rows.append(
                    {
                        "what": f"{name}, {'not waiting for the disk' if hasty else 'durable'}",
                        "us beside 10": few,
                        f"us beside {most:,}": found["large"][name],
                        "ratio": ratio,
                        "bar": "< 1.5",
                        "ok": ratio < 1.5,
                    }
                )
        for bench in benches.values():
            bench.journal.close()
    return rows


def _operations(benches: dict[str, Bench], rounds: int) -> dict[str, dict[str, float]]:
    """The median of each operation, in turns."""
    times: dict[str, dict[str, list[float]]] = {which: {} for which in benches}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for which, bench in benches.items():
                last = time.perf_counter()

                def lap(name: str) -> None:
                    nonlocal last
                    now = time.perf_counter()
                    times[which].setdefault(name, []).append((now - last) * 1e6)  # noqa: B023
                    last = time.perf_counter()

                update = bench.append()
                lap("append")
                assert bench.journal.outgoing(-1, 10)
                lap("outgoing")
                receipt = bench.keep(update)
                lap("keep")
                assert bench.journal.pending_work("B", 10)
                lap("pending work")
                holder = bench.take(receipt)
                lap("take")
                bench.journal.offer(receipt, holder, "handoff-1", Party("i2", "p2"))
                lap("offer")
                bench.journal.cancel(receipt, holder, "handoff-1")
                lap("cancel")
                bench.journal.start(receipt, holder)
                lap("start")
                bench.journal.complete(receipt, holder)
                lap("complete")
    finally:
        gc.enable()
    return {which: {name: statistics.median(each) for name, each in laps.items()} for which, laps in times.items()}


def bench_journal(place: Path | None) -> list[Row]:
    """All of them."""
    return [
        *bench_append(place, 200),
        *bench_recovery(place, 10_000),
        *bench_flat(place, 100_000, 100),
    ]
