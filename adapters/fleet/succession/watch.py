"""Looks at the registry and at the leader's endpoint, on time and at once when the leader's process dies.

What a member knows of the leader it knows from here: a heartbeat that fails proves nothing (S31), and a registration
call that hangs tells nothing (K3).
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Generic, TypeVar

import attrs

from tenure.adapters.awaiting import heard
from tenure.adapters.bus.endpoints.calls import PosixCalls
from tenure.adapters.bus.endpoints.paths import endpoint_path, leader_path
from tenure.adapters.errors import in_words
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.runtime.standby import Standby
from tenure.machines.entry import Entry
from tenure.machines.identity import Owner
from tenure.machines.lease import ACTIVE_ELSEWHERE, ACTIVE_HERE, STALE
from tenure.machines.succession_messages import LeaseState, Look

K = TypeVar("K", bound=Hashable)

LOOKS_PER_CHECK: Final = 10
"""How often the registry is looked at in the time of one OWNERSHIP_CHECK: a winner's endpoint shows nowhere else."""
REMEMBERED: Final = 32
"""So many owners and endpoints have numbers. One that is seen again after so many others counts as new."""
CLOSE_S: Final = 2.0
"""A look that hangs (a file system that does not answer) is left to itself after that."""

_STATES: Final[dict[str, LeaseState]] = {ACTIVE_ELSEWHERE: "elsewhere", ACTIVE_HERE: "here", STALE: "stale"}


@attrs.frozen
class Seen:
    """One look. `entry` is what stands there; `problem` says why nothing could be seen. `mine`: it is the entry of our
    own lease."""

    look: Look
    entry: Entry | None
    problem: str = ""
    mine: bool = False


class Numbers(Generic[K]):
    """Numbers from 1 for things that can only be compared; none is given twice."""

    def __init__(self) -> None:
        self._given: OrderedDict[K, int] = OrderedDict()
        self._last = 0

    def of(self, thing: K) -> int:
        """The number of `thing`, the same as long as it is remembered."""
        if thing not in self._given:
            self._last += 1
            self._given[thing] = self._last
            if len(self._given) > REMEMBERED:
                self._given.popitem(last=False)
        self._given.move_to_end(thing)
        return self._given[thing]

    def known(self) -> frozenset[int]:
        """The numbers that still stand for something."""
        return frozenset(self._given.values())


class RegistryWatch:
    """Who leads, seen by one member. File work is done in a thread of its own, one look after the other.

    Entries and endpoints are numbered, so that the machine can compare them: the same exact owner has the same number,
    and an endpoint that was published anew has another one (a reload, a self-heal).
    """

    def __init__(self, lease: LeaseRuntime) -> None:
        self._lease = lease
        self._files = ThreadPoolExecutor(1, thread_name_prefix="tenure-watch")
        self._standby: Standby | None = None
        self._owners: Numbers[Owner] = Numbers()
        self._endpoints: Numbers[tuple[object, ...]] = Numbers()
        self._looks: set[asyncio.Future[Seen]] = set()
        """Those that are on their way."""
        self._news = asyncio.Event()
        self._awaited = -1
        """The descriptor that the loop looks at; only while no look is on its way, since a look may close it."""
        self.entries: dict[int, Entry] = {}
        """The entries by their numbers, as they were seen last."""
        self.looks = 0
        self.problem = ""
        """Why the last look saw nothing; "" when it saw something."""
        self.state: LeaseState = "unknown"
        """What the last look saw."""

    def named(self, number: int) -> str | None:
        """The entry of that number as ``INSTANCE#EPOCH`` (or the pid, where it names no instance); None for one that
        was forgotten."""
        entry = self.entries.get(number)
        return None if entry is None else f"{entry.instance_id or entry.pid}#{entry.leader_epoch}"

    async def look(self) -> Seen:
        """Look now. Raises nothing but a cancellation: what cannot be seen is unknown."""
        return await asyncio.shield(self._begin())

    async def news(self) -> Seen:
        """Wait until the leader's process has died or it is time to look again, and look."""
        while self._looks:
            await asyncio.wait(self._looks)
        self._news.clear()
        loop = asyncio.get_running_loop()
        self._awaited = -1 if self._standby is None else self._standby.fileno()
        if self._awaited >= 0:
            loop.add_reader(self._awaited, self._news.set)
        every = max(1, self._lease.timings.check_ms // LOOKS_PER_CHECK)
        try:
            async with asyncio.timeout(every / 1000):
                await self._news.wait()
        except TimeoutError:
            pass
        finally:
            self._await_no_more()
        return await self.look()

    async def close(self) -> None:
        """Give the notice of the leader's death up. Nothing may look any more."""
        self._await_no_more()
        closing = asyncio.wrap_future(self._files.submit(self._close))
        heard(closing)
        self._files.shutdown(wait=False)
        await asyncio.wait([closing], timeout=CLOSE_S)

    def _begin(self) -> asyncio.Future[Seen]:
        self._await_no_more()
        self._news.set()
        look = asyncio.get_running_loop().run_in_executor(self._files, self._look_safely)
        self._looks.add(look)
        look.add_done_callback(self._looks.discard)
        return look

    def _await_no_more(self) -> None:
        descriptor, self._awaited = self._awaited, -1
        if descriptor >= 0:
            asyncio.get_running_loop().remove_reader(descriptor)

    async def why_unreached(self, number: int) -> str:
        """What a person should know of the leader of that number, which has just not answered; "" for nothing."""
        entry = self.entries.get(number)
        return "" if entry is None else await asyncio.to_thread(self._why_unreached, entry)

    # -- in the thread ------------------------------------------------------------------------------------------------

    def _look_safely(self) -> Seen:
        try:
            seen = self._look()
        except Exception as error:
            # Unknown: a look that fails says nothing of who leads, and the next one may do better.
            registry = self._lease.directory.registry
            seen = Seen(Look("unknown"), None, f"{registry}: {in_words(error)}")
        self.problem, self.state = seen.problem, seen.look.state
        return seen

    def _look(self) -> Seen:
        self.looks += 1
        if self._standby is None:
            self._standby = Standby(self._lease)
        else:
            self._standby.look()
        view = self._standby.view
        if not view.readable:
            return Seen(Look("unknown"), None, view.problem)
        state = _STATES.get(view.state, "inactive")
        if view.entry is None:
            return Seen(Look(state), None)
        number = self._owners.of(view.entry.owner)
        known = self._owners.known()
        # A new mapping: the loop may be reading the old one.
        self.entries = {n: entry for n, entry in self.entries.items() if n in known} | {number: view.entry}
        return Seen(Look(state, number, self._endpoint(view.entry)), view.entry, mine=view.mine)

    def _endpoint(self, entry: Entry) -> int:
        """The number of what is published there now; 0 for nothing, also for a link to nothing."""
        try:
            path = socket_path(self._lease, entry)
            link = os.lstat(path)
            socket = os.stat(path)
        except (OSError, ValueError):
            return 0
        return self._endpoints.of((path, *_file(link), *_file(socket)))

    def _why_unreached(self, entry: Entry) -> str:
        try:
            path = socket_path(self._lease, entry)
            obstacle = PosixCalls().node(path).obstacle
        except (OSError, ValueError):  # the path may be any text
            return ""
        if obstacle:
            return f"{path}: {obstacle} stands where pid {entry.pid} listens for its fleet; move it away"
        if entry.bus_secret is None:
            return (
                f"pid {entry.pid} leads, and serves no fleet (it is tenure lead, or another program); it is waited for "
                "until it has ended"
            )
        return ""

    def _close(self) -> None:
        standby, self._standby = self._standby, None
        if standby is not None:
            standby.close()


def socket_path(lease: LeaseRuntime, entry: Entry) -> str:
    """Where the leader of `entry` listens (locks.md 12): as the entry says, else where its profile's leaders do."""
    return endpoint_path(entry.bus_socket_path or leader_path(lease.directory, lease.key))


def _file(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_dev, found.st_ino, found.st_ctime_ns
