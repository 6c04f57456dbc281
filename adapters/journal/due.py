"""Whether the time has come that a row names.

It is a time of the wall clock, which every process reads, and which may be set back. So a time that is further away
than whoever wrote it could have put it has come: nothing waits for longer than it was to wait, whatever the clock does.
"""

from __future__ import annotations

from typing import Final

from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.rows import UpdateRow
from tenure.machines.forwarding import LAST_DELAY_MS

LONGEST_MS: Final = max(LAST_DELAY_MS, Limits().delay_ms)
"""How long anything waits at most, as far as who only looks knows."""


def due(at_ms: int, now_ms: int, longest_ms: int) -> bool:
    """Whether it has, where nobody waits for longer than `longest_ms`.

    post: __return__ or now_ms < at_ms <= now_ms + longest_ms
    """
    return not now_ms < at_ms <= now_ms + longest_ms


def waiting(now_ms: int, longest_ms: int) -> tuple[int, int]:
    """Of the times that have not come: above the first, and up to the second."""
    return now_ms, now_ms + longest_ms


def waiting_updates(now_ms: int) -> tuple[int, int]:
    """The same, of updates that are to be brought to somebody."""
    return waiting(now_ms, LAST_DELAY_MS)


def left_ms(at_ms: int, now_ms: int) -> int:
    """How long it is until then, for a person; 0: the time has come."""
    return 0 if due(at_ms, now_ms, LONGEST_MS) else at_ms - now_ms


def due_update(row: UpdateRow, now_ms: int) -> bool:
    """Whether an attempt may begin for it."""
    return row.next_at is None or due(row.next_at, now_ms, LAST_DELAY_MS)
