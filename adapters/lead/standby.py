"""What a candidate waits for while another leads: the leader's death, or the end of its lease."""

from __future__ import annotations

from typing import Final

from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Ports, Watch
from tenure.machines.entry import Entry
from tenure.machines.identity import Birth
from tenure.machines.lease import stamped

_LONGEST_LOOK_MS: Final = 250
"""A leader that lets go and lives on says so in the registry alone."""


class Standby:
    """A notice of the leader's death, and a time for the next look at the registry."""

    def __init__(self, ports: Ports, timings: Timings) -> None:
        self._ports = ports
        self._timings = timings
        self._whom: tuple[int, Birth | None] | None = None
        self._watch: Watch | None = None
        self._look_at_ms = 0

    def behind(self, entry: Entry) -> None:
        """`entry` leads: be told of its death, and look again when its lease is over, or after a while."""
        if self._whom != (entry.pid, entry.birth):
            self.close()
            self._whom = entry.pid, entry.birth
            self._watch = self._ports.processes.watch(entry.pid, entry.birth)
        elif self._watch is not None and self._watch.wait(0):
            self._watch.close()  # it was told once, and the lease is not over for it: it was another's pid
            self._watch = None
        now_ms = self._ports.clock.monotonic_ms()
        self._look_at_ms = now_ms + min(_LONGEST_LOOK_MS, max(1, self._timings.check_ms // 4))
        if stamped(entry, self._ports.processes.me().birth.boot_id) and entry.stamp_ms is not None:
            over_ms = entry.stamp_ms + self._timings.stale_ms + 1
            self._look_at_ms = min(self._look_at_ms, max(over_ms, now_ms + 1))

    def due_ms(self) -> int | None:
        """In how many ms to look; None while nobody is waited for."""
        return None if self._whom is None else max(0, self._look_at_ms - self._ports.clock.monotonic_ms())

    def fileno(self) -> int:
        """A descriptor that is readable when the leader is dead; -1 for none."""
        return -1 if self._watch is None else self._watch.fileno()

    def close(self) -> None:
        """Wait for nobody."""
        if self._watch is not None:
            self._watch.close()
        self._watch = self._whom = None
