"""What a member can do, on real files and sockets: look, register, stand for election, resign (`Moves` of `course`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tenure.adapters.bus.endpoints.endpoint import EndpointError
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.follower.follower import Accepted, Follower, Unreachable
from tenure.adapters.fleet.succession.course import NotTaken, Outcome, Taken
from tenure.adapters.fleet.succession.watch import RegistryWatch
from tenure.adapters.runtime.aio import AsyncLeadership
from tenure.adapters.runtime.outcomes import Elected, Refused
from tenure.machines.follower_messages import NOTHING_BOUND, Binding
from tenure.machines.succession_messages import Look


class MemberMoves:
    """Those of one member."""

    def __init__(
        self, watch: RegistryWatch, follower: Follower, leadership: AsyncLeadership, refuse_unfit: Callable[[], None]
    ) -> None:
        """`refuse_unfit` raises TenureError where what is published cannot be led over; it may block."""
        self._watch = watch
        self._follower = follower
        self._leadership = leadership
        self._refuse_unfit = refuse_unfit
        self.place: Binding | None = None
        """The thread, slot and name that this process had when it led last. Who was no follower before carries these:
        the next leader gives them back if they are free (A55)."""
        self.homeless = False
        """The own endpoint could not be made, the last time."""
        self.unfit = False
        """What is published could not be led over, the last time: a person has to mend that."""

    async def look(self) -> Look:
        return (await self._watch.look()).look

    async def register(self, leader: int, binding: Binding) -> Taken | NotTaken:
        try:
            await self._follower.start()
        except EndpointError as error:
            self.homeless = True
            return NotTaken(str(error))
        self.homeless = False
        carried = self.place if binding == NOTHING_BOUND and self.place is not None else binding
        answer = await self._follower.register(self._watch.entries[leader], carried)
        if isinstance(answer, Accepted):
            return Taken(answer.binding, answer.roster)
        known = await self._watch.why_unreached(leader) if isinstance(answer, Unreachable) else ""
        return NotTaken(known or answer.text)

    def leave(self) -> None:
        self._follower.leave()

    async def elect(self, observed: int) -> tuple[Outcome, str]:
        try:
            await asyncio.to_thread(self._refuse_unfit)
        except TenureError as error:
            self.unfit = True
            return "failed", str(error)
        self.unfit = False
        owner = None if observed == 0 else self._watch.entries[observed].owner
        outcome = await self._leadership.elect(owner)
        if isinstance(outcome, Elected):
            return "elected", ""
        return ("denied", "") if isinstance(outcome, Refused) else ("failed", str(outcome))

    async def resign(self) -> None:
        await self._leadership.release()
