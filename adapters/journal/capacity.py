"""How much the journal may hold, and how its counts are kept (I23).

What is unsettled is counted in the row `meta`, by entries and by bytes, in the transaction that changes it: no
operation ever counts rows. Updates and deliveries have a bound each, so that updates that wait for room do not keep
those out that make it. What is refused for want of room leaves no trace in the file: a full journal does not grow.
"""

from __future__ import annotations

from typing import Final

import attrs

from tenure.adapters.bus.messages.envelopes_handoff import PAYLOAD_LIMIT

DAY_MS: Final = 86_400_000


@attrs.frozen
class Limits:
    """Bounds of one journal. Every process that opens it should have the same ones."""

    entries: int = 100_000
    """Unsettled updates; and as many deliveries."""
    entry_bytes: int = 256 * 2**20
    """Bytes of the updates' bodies; and as many of the deliveries' bodies and payloads."""
    payload_bytes: int = PAYLOAD_LIMIT
    """Bytes of one receipt's payload. An update's body has no bound but the room there is: what is polled and not
    appended would be polled for ever, and nothing after it."""
    tombstones: int = 150_000
    """Settled updates, deliveries and receipts that are remembered at most, together; the oldest are forgotten first, a
    delivery and a receipt never before the updates that they came of are settled (I15, L9)."""
    tombstone_ms: int = 14 * DAY_MS
    """How long they are remembered, where there are more than `tombstones_least`. Telegram hands an update out for a
    day."""
    tombstones_least: int = 30_000
    """So many are remembered however old they are: age is what the wall clock says, and where that jumps ahead,
    everything is old at once (I15)."""
    decisions: int = 1_000_000
    """Decisions that are remembered at most."""
    decisions_of_one: int = 200
    """Of them, about one subject: the first half and the last half."""
    grace_ms: int = 2_500
    """How long nobody has to serve a binding whose last server is dead, before a leader takes what is left there."""
    delay_ms: int = 60_000
    """How long a receipt that has failed waits at most before it is tried again."""
    attempts: int = 5
    """How often a receipt is tried that certainly fails, before only a person tries it again."""


TRIMMED_AT_ONCE: Final = 4
"""How many old rows an operation forgets on its way besides as many as it adds, so that the bound holds."""


def size_of(text: str) -> int:
    """Bytes that a text takes in the file."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
