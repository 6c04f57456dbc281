"""How long things take (locks.md 1; bus.md 0). All processes of one directory should agree on the lease."""

from __future__ import annotations

from typing import Final

import attrs

from tenure.machines.lease import OWNERSHIP_CHECK_MS, OWNERSHIP_REFRESH_MS, PROMOTION_GRACE_MS, STALE_HEARTBEAT_MS

TX_ATTEMPTS: Final = 80
"""How often a guard is tried."""
TX_DELAY_MS: Final = 25.0
"""How long a thread sleeps between two attempts."""
RENAME_ATTEMPTS: Final = 5
"""How often a guard is tried to be moved away, and the registry to be replaced; with 25, 50, 75, 100 ms between."""
RENAME_DELAY_MS: Final = 25.0
HEARTBEAT_MS: Final = 1_000
PRUNE_MS: Final = 5_000
REGISTER_TIMEOUT_MS: Final = 30_000
REGISTER_RETRIES: Final = 10
REGISTER_DELAY_MS: Final = 150.0
"""How long a follower waits between two attempts of one registration."""
RESPONSE_MS: Final = 1_000
RETRY_FIRST_MS: Final = 1_000
RETRY_LAST_MS: Final = 60_000
HANDOFF_TIMEOUT_MS: Final = 30_000
RELAY_MARGIN_MS: Final = 250.0
RECONCILE_MS: Final = 1_000


@attrs.frozen
class Timings:
    """Durations in ms, and counts. `scaled` makes all of them shorter in proportion, for tests."""

    stale_ms: int = STALE_HEARTBEAT_MS
    """A lease that is not renewed for longer than this is over."""
    check_ms: int = OWNERSHIP_CHECK_MS
    refresh_ms: int = OWNERSHIP_REFRESH_MS
    attempts: int = TX_ATTEMPTS
    delay_ms: float = TX_DELAY_MS
    rename_attempts: int = RENAME_ATTEMPTS
    rename_delay_ms: float = RENAME_DELAY_MS
    heartbeat_ms: int = HEARTBEAT_MS
    """How often a follower tells its leader that it lives, and how often the leader looks who is silent."""
    prune_ms: int = PRUNE_MS
    """A follower that is silent for longer than this is no longer routed to."""
    grace_ms: int = PROMOTION_GRACE_MS
    """How long a follower waits for a living leader to answer again, and for a smaller slot to go first."""
    register_timeout_ms: int = REGISTER_TIMEOUT_MS
    """How long a registration, or a disconnection, waits for its acknowledgement: provisioning is in between."""
    register_retries: int = REGISTER_RETRIES
    """How often one registration is sent before it has failed; always the same envelope."""
    register_delay_ms: float = REGISTER_DELAY_MS
    response_ms: int = RESPONSE_MS
    """How long any other request waits for its acknowledgement."""
    retry_first_ms: int = RETRY_FIRST_MS
    """How long what has failed waits before it is tried again; doubled with each failure, up to `retry_last_ms`."""
    retry_last_ms: int = RETRY_LAST_MS
    handoff_timeout_ms: int = HANDOFF_TIMEOUT_MS
    """How long the donor of a queued item waits for what comes of its offer."""
    relay_margin_ms: float = RELAY_MARGIN_MS
    """So much earlier than its asker a leader that passes something on stops waiting: its answer has to get back
    (L11)."""
    reconcile_ms: int = RECONCILE_MS
    """How often is looked which queued items belong to another instance."""

    def scaled(self, by: float) -> Timings:
        """All durations times `by`; counts stay."""
        return Timings(
            stale_ms=max(1, round(self.stale_ms * by)),
            check_ms=max(1, round(self.check_ms * by)),
            refresh_ms=max(1, round(self.refresh_ms * by)),
            attempts=self.attempts,
            delay_ms=self.delay_ms * by,
            rename_attempts=self.rename_attempts,
            rename_delay_ms=self.rename_delay_ms * by,
            heartbeat_ms=max(1, round(self.heartbeat_ms * by)),
            prune_ms=max(1, round(self.prune_ms * by)),
            grace_ms=max(1, round(self.grace_ms * by)),
            register_timeout_ms=max(1, round(self.register_timeout_ms * by)),
            register_retries=self.register_retries,
            register_delay_ms=self.register_delay_ms * by,
            response_ms=max(1, round(self.response_ms * by)),
            retry_first_ms=max(1, round(self.retry_first_ms * by)),
            retry_last_ms=max(1, round(self.retry_last_ms * by)),
            handoff_timeout_ms=max(1, round(self.handoff_timeout_ms * by)),
            relay_margin_ms=self.relay_margin_ms * by,
            reconcile_ms=max(1, round(self.reconcile_ms * by)),
        )


DEFAULT: Final = Timings()
