"""Waiting for one's turn: until the entry that stands in the way may be replaced (locks.md 5; DESIGN 10).

A proven death is enough: there are no slots and no grace. Where the platform has pidfds the holder's death is told,
elsewhere its pid is looked at; a release and the end of a lease are seen by looking at the registry.

    standby = Standby(lease)
    while not standby.look():
        select.select([standby], [], [], standby.due_ms() / 1000)
    standby.close()
"""

from __future__ import annotations

from types import TracebackType
from typing import Final

from tenure.adapters.files.lease import LeaseRuntime, View
from tenure.adapters.ports import Watch
from tenure.machines.entry import Entry
from tenure.machines.identity import Owner, same_owner
from tenure.machines.lease import ACTIVE_ELSEWHERE, stamped

LOOKS_PER_CHECK: Final = 4
"""How often the registry is looked at in the time of one OWNERSHIP_CHECK: a release shows nowhere else."""


class Standby:
    """The wait for one owner's end. It looks, and writes nothing; `view` is what the last look showed."""

    def __init__(self, lease: LeaseRuntime) -> None:
        """Look for the first time, and ask to be told of the holder's death. Not thread-safe."""
        self._lease = lease
        self._ports = lease.ports
        self._watch: Watch | None = None
        self._watched: Owner | None = None
        self._blind: Owner | None = None
        """Whose watch has fired without a proof of death: a pid of another namespace."""
        self.view: View = lease.look()
        self._looked_at = self._ports.clock.monotonic_ms()
        self._follow()

    @property
    def free(self) -> bool:
        """Whether the last look showed that an acquisition has a chance: nobody owns, the owner has died, or its lease
        is over. (It may be somebody else's a moment later: only the acquisition decides.)"""
        return self.view.readable and self.view.state != ACTIVE_ELSEWHERE

    def look(self) -> bool:
        """Look now, and answer `free`. An owner that was replaced by another is waited for instead."""
        if self._watch is not None and self._watch.wait(0):
            self._blind = self._watched
            self._drop()
        self.view = self._lease.look()
        self._looked_at = self._ports.clock.monotonic_ms()
        self._follow()
        return self.free

    def fileno(self) -> int:
        """A descriptor that is readable when the holder has died; -1 where there is none, then only `due_ms` counts. It
        may be another one after each `look`."""
        return -1 if self._watch is None else self._watch.fileno()

    def due_ms(self) -> int:
        """In how many ms `look` should be called, at the latest; 0 when the last look was a success."""
        if self.free:
            return 0
        now = self._ports.clock.monotonic_ms()
        every = max(1, self._lease.timings.check_ms // LOOKS_PER_CHECK)
        return max(0, min(self._looked_at + every - now, self._expires_ms()))

    def wait(self, timeout_ms: float | None = None) -> bool:
        """Wait until `free`, by looking; False when `timeout_ms` have gone by before."""
        clock = self._ports.clock
        until = None if timeout_ms is None else clock.monotonic_ms() + timeout_ms
        while not self.free:
            pause = self.due_ms()
            if until is not None:
                left = until - clock.monotonic_ms()
                if left <= 0:
                    return False
                pause = min(pause, max(1, round(left)))
            if self._watch is not None:
                self._watch.wait(pause)
            elif pause:
                clock.sleep_ms(pause)
            self.look()
        return True

    def close(self) -> None:
        """Give the notice of the holder's death up."""
        self._drop()

    def __enter__(self) -> Standby:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _follow(self) -> None:
        """Watch whoever owns now."""
        entry = self.view.entry
        owner = None if entry is None else entry.owner
        if entry is None or self.free:
            self._drop()
        elif self._watch is None or not same_owner(owner, self._watched):
            self._drop()
            if not same_owner(owner, self._blind):
                self._watch = self._ports.processes.watch(entry.pid, entry.birth)
            self._watched = owner

    def _drop(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def _expires_ms(self) -> int:
        """In how many ms the lease that was seen is over, if it is not renewed."""
        entry: Entry | None = self.view.entry
        never = self._lease.timings.stale_ms
        if entry is None:
            return never
        clock = self._ports.clock
        if stamped(entry, self._lease.data.me.process.birth.boot_id) and entry.stamp_ms is not None:
            age = clock.monotonic_ms() - entry.stamp_ms
        elif entry.heartbeat_ms is not None:
            age = round(clock.wall_ms() - entry.heartbeat_ms)
        else:
            return never
        return self._lease.timings.stale_ms - age + 1 if age <= self._lease.timings.stale_ms else never
