"""How long things take (locks.md 1). All processes of one directory should agree on the lease."""

from __future__ import annotations

from typing import Final

import attrs

from tenure.machines.lease import OWNERSHIP_CHECK_MS, OWNERSHIP_REFRESH_MS, STALE_HEARTBEAT_MS

TX_ATTEMPTS: Final = 80
"""How often a guard is tried."""
TX_DELAY_MS: Final = 25.0
"""How long a thread sleeps between two attempts."""
RENAME_ATTEMPTS: Final = 5
"""How often a guard is tried to be moved away, and the registry to be replaced; with 25, 50, 75, 100 ms between."""
RENAME_DELAY_MS: Final = 25.0


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
        )


DEFAULT: Final = Timings()
