"""Benchmarks of traces: what recording an event costs, and how many events a second are explained.

Validation is measured from the files on: reading, parsing JSON, merging, instantiating, searching. "Labelled" is a
trace in which every step is recorded; with hidden steps is what the drivers record (a refresh in three events, a
recovery in two more), by eight processes in turn, some of which are killed.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tenure.adapters.trace.api import explained
from tenure.adapters.trace.recorder import TraceRecorder

Row = dict[str, Any]

GUARD = "FileTransaction"
LEASE = "LeaderElection"
ENTER = ("EnsureParent", "Stage", "Look")
LEAVE = ("Leave", "Verify", "MoveAway", "DeleteReleased")


def us(call: Callable[[], object], loops: int = 20_000, repeats: int = 21) -> float:
    """The median of the mean time of a call, in microseconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(loops):
            call()
        times.append((time.perf_counter() - started) / loops * 1e6)
    return statistics.median(times)


def labelled(room: Path, transactions: int) -> int:
    """Two processes in turn, every step recorded."""
    recorders = [TraceRecorder(room), TraceRecorder(room)]
    events = 0
    for turn in range(transactions):
        recorder, node = recorders[turn % 2], f"{turn % 2}-1/guard"
        for action in ENTER:
            recorder.event(GUARD, action, node, 0)
        number = recorder.order()
        recorder.event(GUARD, "Publish", node, number, None, None, f"generation-{turn}")
        for action in LEAVE:
            recorder.event(GUARD, action, node, number)
        events += len(ENTER) + 1 + len(LEAVE)
    for recorder in recorders:
        recorder.close()
    return events


def with_hidden(room: Path, rounds: int) -> int:
    """Eight processes, each a leader for a while: it acquires, refreshes, is killed inside; the next one recovers."""
    recorder = TraceRecorder(room)
    event = recorder.event
    events, claim = 0, ""
    for turn in range(rounds):
        name, epoch = f"{turn}-1", turn + 1
        guard, lease = f"{name}/guard", f"{name}/{name}"
        event(LEASE, "Start", lease, 0, {"key": "default"}, {"phase": "idle"})
        if turn:
            claim = f"claim-{turn}"
            event(GUARD, "Claim", guard, 0, None, {"phase": "moving"}, claim)
            event(GUARD, "Move", guard, 0, None, {"phase": "deleting_stale"}, claim)
        for refresh in range(60):
            number = recorder.order()
            event(GUARD, "Publish", guard, number, None, None, f"generation-{turn}-{refresh}")
            if not refresh:
                seen = {"owner": f"{turn - 1}-1", "id": turn} if turn else {"owner": None, "id": None}
                event(LEASE, "Acquire", lease, number, None, {"phase": "minting", **seen})
                event(LEASE, "Mint", lease, number, None, {"phase": "raising"}, epoch)
            event(LEASE, "Write", lease, number, None, {"phase": "owner"} if not refresh else None, epoch)
            if refresh < 59:
                event(GUARD, "Verify", guard, number, None, None, f"generation-{turn}-{refresh}")
        events += 60 * 3 - 1 + 3 + (2 if turn else 0)
    recorder.close()
    return events


def bench_traces(rounds: int = 60) -> list[Row]:
    """A row for each bar of DESIGN 11, and what recording costs."""
    rows: list[Row] = []
    makers = (
        ("every step recorded", lambda room: labelled(room, 8_000), 50_000),
        ("with hidden steps", lambda room: with_hidden(room, rounds), 10_000),
    )
    for what, make, bar in makers:
        with tempfile.TemporaryDirectory() as name:
            events = make(Path(name))
            started, processor = time.perf_counter(), time.process_time()
            verdict = explained(name)
            seconds, processor = time.perf_counter() - started, time.process_time() - processor
        assert verdict, str(verdict)
        assert verdict.events == events
        rows.append(
            {
                "what": f"trace validation, {what}",
                "per second": events / seconds,
                "events": events,
                "hidden steps": verdict.hidden,
                "seconds": seconds,
                "per cpu second": events / processor,
                "bar": f">= {bar:,}",
                "ok": events / seconds >= bar,
            }
        )
    with tempfile.TemporaryDirectory() as name:
        recorder = TraceRecorder(name)
        number, event = recorder.order(), recorder.event
        generation = "0f8fad5b-d9cb-469f-a165-70867728950e"
        nothing = us(lambda: None)
        entry = us(lambda: event(GUARD, "Publish", "12345-67890/guard", number, None, None, generation)) - nothing
        lease = us(lambda: event(LEASE, "Write", "12345-67890/12345:1", number, None, None, 7)) - nothing
        recorder.close()
    rows.append({"what": "recording a lease refresh (3 events)", "us": 2 * entry + lease, "us an event": lease})
    return rows
