"""The journals of a directory at a glance: a line each of ``tenure status``."""

from __future__ import annotations

from tenure.adapters.looking.journal_look import STUCK, Counts, JournalCounts
from tenure.adapters.looking.journal_place import Place
from tenure.adapters.looking.line import Line
from tenure.machines.lease import DEFAULT_KEY


def glance(found: JournalCounts, directory: str) -> Line:
    """What is unsettled, and which command tells more."""
    label = "journal" if found.key == DEFAULT_KEY else f"journal {found.key}"
    if found.unfinished:
        text = "a process died in the middle of a transaction; whoever opens the journal next undoes that"
        return Line(label, text, "warn")
    if found.counts is None:
        return Line(label, found.problem, "bad")
    said = tally(found.counts)
    stuck = any(found.counts.receipts.get(phase) for phase in STUCK)
    more = Place(directory, found.key, found.path, directory).command("journal list")
    return Line(label, f"{said}: {more}" if said else "nothing is unsettled", "warn" if stuck else "quiet")


def tally(counts: Counts) -> str:
    """What is unsettled; "" for nothing."""
    updates = [f"{n} {phase}" for phase, n in counts.updates.items() if n]
    receipts = [f"{n} {phase}" for phase, n in counts.receipts.items() if n]
    parts = [f"updates {', '.join(updates)}"] if updates else []
    parts += [f"receipts {', '.join(receipts)}"] if receipts else []
    return "; ".join(parts)
