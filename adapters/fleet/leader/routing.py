"""The leader's registry of routes, driven: the machine of `tenure.machines.routes` (bus.md b, LEADER HANDLING).

`Routing` tells the machine what happens, makes the calls that it asks for (provisioning, clean-up, ownership
transactions) and tells it what came of them. It knows no envelope and no socket: `requests` beside it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Final, TypeVar

import attrs

from tenure.adapters.bus.messages.envelopes import Registration
from tenure.adapters.bus.peer import Peer
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.agreement import HELD
from tenure.adapters.fleet.leader.book import Deposed
from tenure.adapters.fleet.leader.routing_steps import Boarded, Live, RoutingSteps
from tenure.adapters.fleet.leader.turns import Answer
from tenure.adapters.fleet.leader.witness import Claim
from tenure.adapters.fleet.places import board_target, spelled
from tenure.adapters.fleet.threads.provisioning import ProvisionRequest
from tenure.adapters.ports import tell
from tenure.machines import routes_messages as own
from tenure.machines.chart import Refused, Step
from tenure.machines.follower_messages import Binding
from tenure.machines.identity import Epoch
from tenure.machines.routes_messages import Intent
from tenure.machines.slot_board import holder_of

T = TypeVar("T")

PORT_SHARE: Final = 0.9
"""Of the time that a follower waits for an acknowledgement, what a call of the port may take: so that it is told."""
LOOKS: Final = 5
"""How often the evidence is gathered anew because the routes changed while it was."""


@attrs.frozen
class Registered:
    """The route is written, and published."""

    binding: Binding


@attrs.frozen
class No:
    """Not done. `guards`: of a refusal before anything was begun."""

    text: str
    guards: tuple[str, ...] = ()


class Routing(RoutingSteps):
    """The routes of one leader, with the changes that take their time. `phase` and `data` are the machine's."""

    # -- registering --------------------------------------------------------------------------------------------------

    async def register(
        self,
        registration: Registration,
        peer: Peer,
        *,
        compatible: bool,
        capable: bool,
    ) -> Registered | No:
        """Decide, provision, write, publish. May take as long as provisioning does."""
        key = registration.profile_key or f"manual:{registration.instance_id}"
        if compatible and key == self._own_key:
            return No(f"{key}: {HELD}: the leader")
        claim = await self.witness.claim(registration, peer)
        begun: list[tuple[own.Provision, str]] = []

        async def offer() -> Answer:
            epoch = await self._owned()
            word = self.witness.word(claim)
            carried = Binding(spelled(registration.target), registration.slot, registration.thread_name)
            dead = await self._dead(registration.instance_id, key, carried)
            answer = self.offer(
                own.Register(
                    registration.instance_id, registration.registration_generation, key, word, carried, epoch,
                    authenticated=True, compatible=compatible, capable=capable, dead=dead,
                    same=self.witness.same(claim),
                )
            )  # fmt: skip
            if isinstance(answer, Step):
                begun.extend((o, word) for o in answer.outputs if isinstance(o, own.Provision))
            return answer

        # What is refused whenever it comes need not wait for that.
        hopeless = not compatible or registration.registration_generation is None
        answer = await (offer() if hopeless else self._turns.take(key, offer))
        if isinstance(answer, Refused):
            return _no(answer)
        provision, word = begun[0]
        live = Live(registration, self._ports.clock.wall_ms())
        try:
            return await self._provision(provision, live, claim, word, peer)
        except BaseException:
            # Given up, or a fault: either way this change is over, and others of its profile may begin.
            self.offer(own.ProvisionFailed(provision.instance, provision.generation, "given up"))
            raise

    async def _provision(
        self, asked: own.Provision, live: Live, claim: Claim, word: str, peer: Peer
    ) -> Registered | No:
        instance, generation = asked.instance, asked.generation
        try:
            got = await self.limited(
                self.provisioning.provision(_request(asked, live.registration), _number(asked.epoch))
            )
            place = Binding(spelled(got.target), got.slot, got.name)
            epoch = await self._owned()
        except (TenureError, TimeoutError) as error:
            why = str(error) or "provisioning takes too long: register again"
            return self._ended(self.offer(own.ProvisionFailed(instance, generation, why)))
        dead = await self._dead(instance, asked.key, place)
        same = self.witness.same(claim)
        answer = self.offer(own.Provisioned(instance, generation, place, epoch, self.now(), dead, same))
        entry = self.data.entry(instance)
        if entry is None or entry.generation != generation or not _acknowledged(answer):
            return self._ended(answer)
        self.live[instance] = attrs.evolve(live, connected_ms=self._ports.clock.wall_ms())
        self.witness.wrote(instance, str(generation), claim, word, peer)
        self._changed()
        try:
            await self._published()
        except Deposed as error:
            # Written in memory by who does not lead any more: it is not acknowledged, and ends with this leading.
            return No(str(error))
        except TenureError:
            # What is published is no authority, and the follower carries its place: it is published when that is
            # possible again, and the book has said what stands in the way.
            pass
        return Registered(entry.binding)

    def _ended(self, answer: Answer) -> No:
        if isinstance(answer, Refused):
            return _no(answer)
        for output in answer.outputs:
            if isinstance(output, own.Reject):
                return No(output.error or HELD)
        return No("the leader ends: read the owner registry again")

    # -- goodbyes and clean-ups ---------------------------------------------------------------------------------------

    async def disconnect(self, instance: str, generation: str | None) -> No | None:
        """A goodbye: the thread first, then the route. None when all of it is done."""
        entry = self.data.entry(instance)
        found: list[own.CleanUp] = []

        async def offer() -> Answer:
            epoch = await self._owned()
            return _collect(self.offer(own.Disconnect(instance, generation, epoch)), found)

        answer = await self._turns.take(f"instance:{instance}" if entry is None else entry.key, offer)
        if isinstance(answer, Refused):
            return _no(answer)
        return await self._clean_up(found[0])

    async def reclaim(self, intent: Intent, *, dead: bool) -> None:
        """Delete the thread of a registration that is over, if nobody has it now. What stands in the way is noted; an
        intent on disk is tried again by the next leader."""
        found: list[own.CleanUp] = []

        async def offer() -> Answer:
            epoch = await self._owned()
            holder = self._holder(intent)
            by, under = (None, None) if holder is None else holder
            return _collect(self.offer(own.Reclaim(intent, epoch, dead, by, under)), found)

        answer = await self._turns.take(intent.key, offer)
        if isinstance(answer, Step) and found and (why := await self._clean_up(found[0])) is not None:
            tell(self._ports, "fleet", "clean-up", instance=intent.instance, error=why.text)

    async def _clean_up(self, asked: own.CleanUp) -> No | None:
        intent = asked.intent
        instance, generation = intent.instance, intent.generation
        try:
            await self._published()  # the intent is on disk before anything is deleted
            target = board_target(intent.target)
            if target is not None:
                await self.limited(self.provisioning.clean_up(target, instance, str(generation) or None))
        except (TenureError, TimeoutError) as error:
            why = str(error) or "the clean-up takes too long"
            return self._not_cleaned(self.offer(own.CleanUpFailed(instance, generation, why)), why)
        except BaseException:
            self.offer(own.CleanUpFailed(instance, generation, "given up"))
            raise
        self._events.deleted(instance, generation, self.data.epoch)
        try:
            epoch = await self._owned()
        except TenureError:
            epoch = None  # nobody can tell: the intent stays, and is fulfilled once more
        except BaseException:
            self.offer(own.Cleaned(instance, generation, None))
            raise
        answer = self.offer(own.Cleaned(instance, generation, epoch))
        if isinstance(answer, Refused) or any(isinstance(o, own.Reject) for o in answer.outputs):
            return self._not_cleaned(answer, "superseded while it was cleaned up")
        self._changed()
        try:
            await self._published()
        except Deposed as error:
            return No(str(error))
        except TenureError:
            pass  # the thread has gone, which the next leader finds out if it is not published before
        return None

    def _not_cleaned(self, answer: Answer, why: str) -> No:
        if isinstance(answer, Step):
            why = next((o.error for o in answer.outputs if isinstance(o, own.Reject)), why)
        return No(why)

    def _holder(self, intent: Intent) -> tuple[str, str | None] | None:
        """Instance and generation of the current record of the intent's thread."""
        target = board_target(intent.target)
        if target is None or not isinstance(self.provisioning, Boarded):
            return None
        record = holder_of(self.provisioning.board, target)
        return None if record is None else (record.instance, record.generation)

    # -- evidence and transactions ------------------------------------------------------------------------------------

    async def _owned(self) -> int | None:
        return None if self.book is None else await self.book.owned()

    async def _published(self) -> None:
        if self.book is not None:
            await self.book.published()

    async def _dead(self, instance: str, key: str, place: Binding) -> frozenset[str]:
        """Whose processes are proven dead, of all that stand in the way now; gathered again where the routes changed
        meanwhile."""
        seen: set[tuple[str, str]] = set()
        dead: frozenset[str] = frozenset()
        for _ in range(LOOKS):
            rivals = {
                (e.instance, str(e.generation))
                for e in self.data.entries
                if e.instance == instance or e.key == key or (place.target and e.binding.target == place.target)
            }
            if rivals <= seen:
                break
            seen |= rivals
            dead = await self.witness.dead(rivals)
        return dead

    async def limited(self, call: Coroutine[object, object, T]) -> T:
        """A call of the port, in bounded time: whatever it does with its cancellation, it is not waited for then."""
        task = asyncio.ensure_future(call)
        self._calls.add(task)
        task.add_done_callback(self._returned)
        try:
            await asyncio.wait([task], timeout=self._timings.register_timeout_ms * PORT_SHARE / 1000)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.done():
            task.cancel()
            raise TimeoutError
        if task.cancelled():
            raise TenureError("the leader ends: read the owner registry again")
        error = task.exception()
        if isinstance(error, Exception) and not isinstance(error, TenureError):
            # A fault of the port. Whoever waits is refused in its own way, and told no more than that.
            tell(self._ports, "fleet", "port", error=f"{type(error).__name__}: {error}")
            raise TenureError("the leader's provisioning failed; try again")
        return task.result()

    def _returned(self, task: asyncio.Task[T]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # told by who waited, if anybody did


def _request(asked: own.Provision, registration: Registration) -> ProvisionRequest:
    place = asked.binding
    return ProvisionRequest(
        instance=asked.instance,
        generation=str(asked.generation),
        profile_key=asked.key,
        slot=place.slot,
        name=place.name,
        target=board_target(place.target),
        previous_instance=registration.previous_instance_id,
        pid=registration.pid,
        process_birth=registration.process_birth_id,
    )


def _number(epoch: Epoch) -> int:
    assert isinstance(epoch, int), "epochs of ours are integers"
    return epoch


def _acknowledged(answer: Answer) -> bool:
    return isinstance(answer, Step) and any(isinstance(o, own.Acknowledge) for o in answer.outputs)


def _collect(answer: Answer, found: list[own.CleanUp]) -> Answer:
    if isinstance(answer, Step):
        found.extend(o for o in answer.outputs if isinstance(o, own.CleanUp))
    return answer


def _no(refused: Refused) -> No:
    held = "profile_not_held" in refused.guards
    return No(HELD if held else "refused", refused.guards)
