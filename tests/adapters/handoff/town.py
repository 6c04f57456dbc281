"""A fleet whose processes hold items: a leader and followers with real sockets between them, one journal on disk.

What goes to a follower goes through a socket between (`between`), which loses, doubles, holds back what it is told to.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import attrs

from tenure.adapters.bus.messages.envelopes_handoff import LeaderOfferQueueHandoff
from tenure.adapters.bus.messages.protocol import (
    DURABLE_FOLLOWER_ADMISSION,
    QUEUE_HANDOFF,
    TENURE_STATUS,
    ProtocolIdentity,
    protocol_identity,
)
from tenure.adapters.bus.messages.wire import parse
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.follower.outcomes import Accepted
from tenure.adapters.handoff.handoff import Handoff
from tests.adapters.fleet.fleet_room import TIMES, Chief, Hand, House, run, until
from tests.adapters.handoff.between import Between
from tests.adapters.handoff.handoff_room import Fault, Station

OFFER: Final = "leader.offerQueueHandoff"
BARE: Final = protocol_identity("none", [DURABLE_FOLLOWER_ADMISSION, TENURE_STATUS])
"""Of who knows nothing of handoffs."""
FIRST_ONLY: Final = protocol_identity("first", [DURABLE_FOLLOWER_ADMISSION, QUEUE_HANDOFF, TENURE_STATUS])
"""Of who knows nothing of an item's second one."""

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


# -- tests ------------------------------------------------------------------------------------------------------------


def in_town(**times: float) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], Callable[..., None]]:
    """A test that is told in a town of its own, with these timings: ``async def test_...(town, ...)``."""

    def told(story: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
        @functools.wraps(story)
        def test(tmp_path: Path, **given: Any) -> None:
            async def there() -> None:
                async with Town(tmp_path, attrs.evolve(FAST, **times)) as town:
                    await story(town, **given)

            run(there())

        _, *others = inspect.signature(story).parameters.values()
        place = inspect.Parameter("tmp_path", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        test.__signature__ = inspect.Signature([place, *others])  # type: ignore[attr-defined]
        return test

    return told


async def pair(town: Town, **more: Any) -> tuple[Citizen, Citizen, str]:
    """A leader that holds an item of its follower's thread."""
    lead = await town.leads(**more)
    other = await town.follows(101)
    held = await lead.holds(5, other.thread)
    return lead, other, held.receipt_id


async def sending(donor: Citizen, to: Citizen) -> tuple[asyncio.Future[None], asyncio.Event]:
    """An offer that is on its way until the event is set; and the pass in which it is made."""
    hold = to.between.hold = asyncio.Event()
    passing = asyncio.ensure_future(donor.handoff.reconcile())
    await until(lambda: to.between.held)
    return passing, hold


async def accepting(donor: Citizen, to: Citizen) -> tuple[asyncio.Future[None], asyncio.Event]:
    """An offer whose recipient asks the journal once the event is set; and the pass in which it is made."""
    gate = asyncio.Event()
    to.journal.faults["accept"] = [Fault(gate=gate)]
    passing = asyncio.ensure_future(donor.handoff.reconcile())
    await until(lambda: to.journal.waiting)
    return passing, gate


def offer_of(citizen: Citizen) -> LeaderOfferQueueHandoff:
    """The first that was sent to it."""
    offer = parse(json.dumps(citizen.between.seen[0]).encode())
    assert isinstance(offer, LeaderOfferQueueHandoff)
    return offer


async def owner_of(station: Citizen, receipt: str) -> str | None:
    """The instance, as the journal says."""
    owner = (await station.row(receipt)).data.owner
    return None if owner is None else owner.instance


async def settled_once(receipt: str, *stations: Citizen) -> None:
    """It is executed by exactly one of them."""
    assert 1 == [await station.executes(receipt) for station in stations].count(True)
    assert "done" == (await stations[0].row(receipt)).phase
