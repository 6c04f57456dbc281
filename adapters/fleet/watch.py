"""Looks at the registry and at the leader's endpoint, on time and at once when the leader's process dies.

What a member knows of the leader it knows from here: a heartbeat that fails proves nothing (S31), and a registration
call that hangs tells nothing (K3).
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import attrs

from tenure.adapters.bus.endpoint_paths import endpoint_path, leader_path
from tenure.adapters.files.lease import LeaseRuntime, View
from tenure.adapters.runtime.aio import readable
from tenure.adapters.runtime.standby import Standby
from tenure.machines.entry import Entry
from tenure.machines.identity import Owner
from tenure.machines.lease import ACTIVE_ELSEWHERE, ACTIVE_HERE, STALE
from tenure.machines.succession_messages import LeaseState, Look

LOOKS_PER_CHECK: Final = 10
"""How often the registry is looked at in the time of one OWNERSHIP_CHECK: a winner's endpoint shows nowhere else."""

_STATES: Final[dict[str, LeaseState]] = {ACTIVE_ELSEWHERE: "elsewhere", ACTIVE_HERE: "here", STALE: "stale"}


@attrs.frozen
class Seen:
    """One look. `entry` is what stands there; `problem` says why nothing could be seen."""

    look: Look
    entry: Entry | None
    problem: str = ""


class RegistryWatch:
    """Who leads, seen by one member. File work is done in a thread of its own.

    Entries and endpoints are numbered, so that the machine can compare them: the same exact owner has the same number
    for ever, and an endpoint that was published anew has another one (a reload, a self-heal).
    """

    def __init__(self, lease: LeaseRuntime) -> None:
        self._lease = lease
        self._files = ThreadPoolExecutor(1, thread_name_prefix="tenure-watch")
        self._standby: Standby | None = None
        self._owners: dict[Owner, int] = {}
        self._endpoints: dict[tuple[str, str], int] = {}
        self.entries: dict[int, Entry] = {}
        """The entries by their numbers, as they were seen last."""
        self.looks = 0

    async def look(self) -> Seen:
        """Look now."""
        return await asyncio.get_running_loop().run_in_executor(self._files, self._look)

    async def news(self) -> Seen:
        """Wait until the leader's process has died or it is time to look again, and look."""
        every = max(1, self._lease.timings.check_ms // LOOKS_PER_CHECK)
        standby = self._standby
        descriptor = -1 if standby is None else standby.fileno()
        await readable(descriptor, every)
        return await self.look()

    def close(self) -> None:
        """Give the notice of the leader's death up. Nothing may look any more."""
        self._files.submit(self._close)
        self._files.shutdown(wait=False)

    # -- in the thread ------------------------------------------------------------------------------------------------

    def _look(self) -> Seen:
        if self._standby is None:
            self._standby = Standby(self._lease)
        else:
            self._standby.look()
        self.looks += 1
        view = self._standby.view
        if not view.readable:
            return Seen(Look("unknown"), None, view.problem)
        state = _STATES.get(view.state, "inactive")
        if view.entry is None:
            return Seen(Look(state), None)
        number = self._number(view)
        return Seen(Look(state, number, self._endpoint(view.entry)), view.entry)

    def _number(self, view: View) -> int:
        assert view.entry is not None
        number = self._owners.setdefault(view.entry.owner, len(self._owners) + 1)
        self.entries[number] = view.entry
        return number

    def _endpoint(self, entry: Entry) -> int:
        """The number of what is published there now; 0 for nothing, also for a link to nothing."""
        path = socket_path(self._lease, entry)
        try:
            target = os.readlink(path)
        except OSError:
            target = ""  # no link: a legacy socket, or nothing
        if not os.path.exists(path):
            return 0
        return self._endpoints.setdefault((path, target), len(self._endpoints) + 1)

    def _close(self) -> None:
        standby, self._standby = self._standby, None
        if standby is not None:
            standby.close()


def socket_path(lease: LeaseRuntime, entry: Entry) -> str:
    """Where the leader of `entry` listens (locks.md 12): as the entry says, else where its profile's leaders do."""
    return endpoint_path(entry.bus_socket_path or leader_path(lease.directory, lease.key))
