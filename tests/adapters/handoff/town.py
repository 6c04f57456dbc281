"""A fleet whose processes hold items: a leader and followers with real sockets between them, one journal on disk.

What goes to a follower goes through a socket between (`between`), which loses, doubles, holds back what it is told to.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import attrs

from tenure.adapters.bus.messages.protocol import ProtocolIdentity
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.follower.outcomes import Accepted
from tenure.adapters.handoff.handoff import Handoff
from tests.adapters.fleet.fleet_room import TIMES, Chief, Hand, House
from tests.adapters.handoff.between import Between
from tests.adapters.handoff.handoff_room import Station

FAST = attrs.evolve(TIMES, handoff_timeout_ms=20_000, relay_margin_ms=100.0, retry_first_ms=5, retry_last_ms=20)


class Town(House):
    """The directory, and the processes of its fleet."""

    def __init__(self, root: Path, times: Timings = FAST) -> None:
        super().__init__(root, times)
        self.chief_: Chief | None = None
        self._stack = AsyncExitStack()

    @property
    def lead(self) -> Chief:
        assert self.chief_ is not None
        return self.chief_

    async def __aexit__(self, *error: object) -> None:
        await super().__aexit__(*error)
        await self._stack.aclose()

    async def leads(self, pid: int = 50, *, epoch: int = 1, **more: Any) -> Citizen:
        """The leader."""
        one = await self._citizen(pid)
        self.chief_ = one.chief = await self.led(pid, epoch=epoch, pass_on=one.handoff.pass_on, **more)
        one.bind(self)
        return one

    async def follows(
        self, pid: int, *, protocol: ProtocolIdentity | None = None, directly: bool = False, **more: Any
    ) -> Citizen:
        """A follower of the leader; what goes to it goes through `between`, unless it goes `directly`."""
        one = await self._citizen(pid, **more)
        one.hand = self.follower(pid, accept=one.handoff.accept, protocol=protocol)
        await one.hand.follower.start()
        if not directly:
            one.between = await self._stack.enter_async_context(Between(one.hand.follower._receiver.path))
            one.hand.follower._receiver.path = one.between.path
        await one.registers(self.lead)
        one.bind(self)
        return one

    async def _citizen(self, pid: int, **more: Any) -> Citizen:
        one = Citizen(self, pid, **more)
        await self._stack.enter_async_context(one)
        return one


class Citizen(Station):
    """One process of the fleet."""

    def __init__(self, town: Town, pid: int, *, activation: int = 1) -> None:
        super().__init__(town, pid, activation=activation)
        self.chief: Chief | None = None
        self.hand: Hand | None = None
        self.between: Between = None  # type: ignore[assignment]
        self.serves = True
        """It has a worker."""
        self.handoff: Handoff = None  # type: ignore[assignment]

    async def __aenter__(self) -> Citizen:
        await super().__aenter__()
        self.handoff = Handoff(
            self.ports, self.house.times, self.journal, self.items, self.identity, party=lambda: self.party,
            serves=lambda: self.serves,
        )  # fmt: skip
        return self

    def bind(self, town: Town) -> None:
        """Both halves of a member, of which one is alive."""
        leader = town.chief(self.pid).leader if self.chief is None else self.chief.leader
        follower = town.follower(self.pid, activation=99).follower if self.hand is None else self.hand.follower
        self.handoff.bind(leader, follower)

    async def registers(self, chief: Chief) -> None:
        """With that leader."""
        assert self.hand is not None
        found = await self.hand.follower.register(chief.entry(), None)
        assert isinstance(found, Accepted), found

    @property
    def thread(self) -> int:
        """The number of its thread."""
        binding = self.chief.leader.binding if self.chief is not None else None
        if self.hand is not None:
            binding = self.hand.follower.binding
        assert binding is not None
        return int(str(binding.target).partition("/")[2])

    @property
    def holds_now(self) -> list[str]:
        """What it has in memory."""
        return [held.receipt_id for held in self.items]
