"""What both sides of the fleet say to each other in words that count, and who we say we are."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

from tenure.adapters.bus.messages.protocol import (
    DURABLE_FOLLOWER_ADMISSION,
    QUEUE_HANDOFF,
    QUEUE_HANDOFF_AGAIN,
    TENURE_STATUS,
    ProtocolIdentity,
    protocol_identity,
)

HELD: Final = "held by another live process"
"""In the refusal of a registration whose profile or thread another live process has. There is no code for it on the
wire; a leader of the other system evicts instead, and never says so (L24)."""


def our_protocol() -> ProtocolIdentity:
    """Durable admission is advertised by both sides, since the other system works with nobody else: a delivery is
    acknowledged only by what `deliver` answers for it, and refused where nobody takes it. Handoffs likewise: what an
    offer comes to is what `accept` and `serve` answer, and it is refused where nobody does."""
    try:
        build = f"tenure/{version('tenure')}"
    except PackageNotFoundError:
        build = "tenure"
    return protocol_identity(build, (DURABLE_FOLLOWER_ADMISSION, QUEUE_HANDOFF, QUEUE_HANDOFF_AGAIN, TENURE_STATUS))
