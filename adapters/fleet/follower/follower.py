"""One follower, driven: the machine of `tenure.machines.follower` over the bus (bus.md b; locks.md 12).

Read `steps`, `deliveries` and `follower`, in this order: one object in three files, by inheritance.

    follower = Follower(ports, directory, None, identity, timings, on_lost=look_again)
    match await follower.register(entry, None):
        case Accepted(generation, binding): ...

It asks to be registered, beats, takes deliveries, asks, says goodbye, as the machine says; what follows a loss is not
decided here. Everything runs on one event loop. An await that is cancelled is given up in the machine before the
cancellation goes on: nothing of that call changes anything any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import attrs

from tenure.adapters.bus.client import Client, Retry
from tenure.adapters.bus.endpoints.paths import endpoint_path, follower_path, leader_path
from tenure.adapters.bus.messages import answers
from tenure.adapters.bus.messages.envelopes import (
    Ack,
    Ask,
    Disconnect,
    Register,
    Registration,
    TenureStatus,
)
from tenure.adapters.bus.messages.fields import Malformed
from tenure.adapters.bus.messages.protocol import TENURE_STATUS, Incompatible, ProtocolIdentity, compatible
from tenure.adapters.bus.serving.limits import Limits
from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory, registry_key
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.agreement import HELD, our_protocol
from tenure.adapters.fleet.asking import NoAck, acknowledged, said
from tenure.adapters.fleet.follower.deliveries import Accept, Deliver, Deliveries
from tenure.adapters.fleet.follower.outcomes import Accepted, AskFailed, RefusalCode, RefusedBy, Registered, Unreachable
from tenure.adapters.fleet.follower.receiver import Receiver
from tenure.adapters.fleet.follower.steps import Link
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.fleet.places import bound, wire_target
from tenure.adapters.ports import Ports
from tenure.machines import follower_messages as own
from tenure.machines.chart import Refused, Step
from tenure.machines.entry import Entry
from tenure.machines.follower_messages import Binding, Generation

__all__ = ["Accept", "Accepted", "AskFailed", "Deliver", "Follower", "RefusedBy", "Unreachable"]

GOODBYES: Final = 3
"""How often a goodbye is sent while no answer comes. It is the same request: the leader executes it once."""
_CODES: Final[dict[own.Outcome, RefusalCode]] = {"held": "held", "incompatible": "incompatible"}


class Follower(Deliveries):
    """One instance as a follower. `phase` and `data` are the machine's."""

    def __init__(
        self,
        ports: Ports,
        directory: AgentDirectory,
        profile: str | None,
        identity: InstanceIdentity,
        timings: Timings,
        *,
        on_lost: Callable[[Binding, str], None],
        deliver: Deliver | None = None,
        accept: Accept | None = None,
        on_change: Callable[[], None] = lambda: None,
        client: Client | None = None,
        protocol: ProtocolIdentity | None = None,
        limits: Limits | None = None,
    ) -> None:
        """`on_lost` is told when a registration that `register` had answered is over, with the binding that is carried
        on and why; `on_change` of every change of phase, generation, binding or roster. Neither may raise (it is noted
        if one does). `deliver` and `accept`: without them deliveries, and offers of queued items, are refused. `limits`
        are those of the own endpoint."""
        key = registry_key(profile)
        path = follower_path(directory, key, identity.instance_id)
        receiver = Receiver(
            ports, path, secret=self._active_secret, handle=self._take, stands=self._stands, limits=limits
        )
        super().__init__(
            ports,
            identity,
            timings,
            receiver,
            profile=profile,
            on_lost=on_lost,
            on_change=on_change,
            client=client,
            deliver=deliver,
            accept=accept,
        )
        self.leader_protocol: ProtocolIdentity | None = None
        """Of the leader that acknowledged last; a new thread does not erase it (L22)."""
        self._protocol = our_protocol() if protocol is None else protocol
        self._socket = endpoint_path(leader_path(directory, key))

    # -- verbs --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Publish the own endpoint; `register` does it too. Raises `EndpointError`."""
        await self._receiver.start()

    async def stop(self) -> None:
        """End, whatever is under way and hangs, in bounded time; nothing is said to the leader. For good."""
        self._offer(own.Stop())
        await self._receiver.stop()

    async def register(self, owner: Entry, binding: Binding | None, *, previous: str | None = None) -> Registered:
        """Ask the leader of `owner`, as its entry is now, for a registration that carries `binding` (where it says
        nothing: what is remembered). `previous`: the instance of this process whose place it takes (believed with
        proof only, L16).

        `Accepted` when the leader has acknowledged it and heard the first heartbeat. One at a time: `RefusedBy` with
        code busy while another call is under way. A profile that another live process holds is asked for once more
        under a key of our own. Cancelled, the attempt is given up.
        """
        self._hear_of_evictions(owner)
        answer = await self._attempt(owner, binding, previous)
        if isinstance(answer, RefusedBy) and answer.code == "held":
            answer = await self._attempt(owner, binding, previous)
        return answer

    def leave(self) -> None:
        """Give the registration, or the attempt at one, up without a word: an election begins. The binding stays."""
        self._offer(own.Leave())

    async def disconnect(self) -> bool | str:
        """Say goodbye: the leader deletes the thread and forgets the route. True when it has confirmed that, else why
        not: then the registration stays, and it may be tried again. Cancelled, nobody knows what the leader did; the
        next heartbeat tells."""
        taken = self._offer(own.Disconnect())
        link = self._link
        if isinstance(taken, Refused) or link is None:
            return "there is no registration to end"
        try:
            ack = await self._called(link.generation, self._say_goodbye(link))
        except asyncio.CancelledError:
            self._offer(own.DisconnectFailed(link.generation, "the goodbye was given up"))
            raise
        if ack is None:
            return "the registration ended meanwhile"
        if isinstance(ack, NoAck):
            self._offer(own.DisconnectFailed(link.generation, ack.text))
            return ack.text
        self._offer(own.DisconnectAnswered(link.generation, ack.ok, "" if ack.ok else said(ack)))
        if self.data.generation != link.generation:
            self._end_calls(link.generation)  # a heartbeat, or an ask, of what is over: nobody waits for it any more
        return True if ack.ok else said(ack)

    def set_session(self, session: int) -> None:
        """The host's session was replaced inside this process. An attempt at a registration ends here and now (L25); a
        registration that is held stays."""
        self._offer(own.SessionChanged(session))

    async def ask(
        self, build: Callable[[Generation], Ask | TenureStatus], *, timeout_ms: float | None = None
    ) -> Ack | AskFailed:
        """Ask the leader for something, as the registration of this moment. `build` makes the envelope of a generation;
        its request id and secret are set here. Without a registration nothing is built and nothing sent. `timeout_ms`:
        as for a registration if None."""
        self._number += 1
        taken = self._offer(own.Ask(self._number))
        link = self._link
        if isinstance(taken, Refused) or link is None:
            return AskFailed("there is no registration: nothing was sent", "unregistered")
        request = attrs.evolve(build(link.generation), request_id=self._ids.next(), auth=link.secret)
        limit = self._timings.register_timeout_ms if timeout_ms is None else timeout_ms
        ack = await self._called(link.generation, self._send(link, request, limit))
        if ack is None:
            return AskFailed("the registration ended before the answer", "over")
        if isinstance(ack, NoAck):
            return AskFailed(ack.text, "unanswered" if ack.sent else "unreachable")
        self._counts.asks += 1
        return ack

    # -- registering --------------------------------------------------------------------------------------------------

    def _hear_of_evictions(self, owner: Entry) -> None:
        """A leader of the other system evicts where one of ours refuses: the machine is told the same of both."""
        lead = _lead(owner)
        if self.data.own_key or not self._evictions.held_by_another(lead):
            return
        generation = self._ids.next()
        link = Link(generation, self._socket, owner.bus_secret, self.profile_key, lead)
        if not isinstance(self._offer(own.Register(generation), link), Refused):
            self._offer(own.Answered(generation, compatible=True, ok=False, held=True, error=HELD))

    async def _attempt(self, owner: Entry, binding: Binding | None, previous: str | None) -> Registered:
        generation = self._ids.next()
        lead = _lead(owner)
        path = owner.bus_socket_path or self._socket
        link = Link(generation, path, owner.bus_secret, self.profile_key, lead)
        told = own.NOTHING_BOUND if binding is None else binding
        if isinstance(self._offer(own.Register(generation, told), link), Refused):
            code: RefusalCode = "stopped" if self.phase == "stopped" else "busy"
            return RefusedBy(f"no registration can begin while this follower is {self.phase}", code)
        try:
            ack = await self._called(generation, self._asked(link, self.data.binding, previous))
            if ack is None:
                return self._abandoned()
            if isinstance(ack, NoAck):
                self._offer(own.RegisterFailed(generation, ack.text))
                return Unreachable(ack.text)
            return await self._judge(link, ack)
        except asyncio.CancelledError:
            if self.data.generation == generation:
                self.leave()
            raise

    async def _asked(self, link: Link, carried: Binding, previous: str | None) -> Ack | NoAck:
        try:
            await self._receiver.start()
        except TenureError as error:
            return NoAck(str(error), sent=False)
        generation, times = str(link.generation), self._timings
        request = Register(
            request_id=generation, auth=link.secret, registration=self._registration(link, carried, previous)
        )
        retry = Retry(times.register_retries, times.register_delay_ms)
        return await acknowledged(self._client, link.path, request, timeout_ms=times.register_timeout_ms, retry=retry)

    def _registration(self, link: Link, carried: Binding, previous: str | None) -> Registration:
        me = self.identity
        return Registration(
            instance_id=me.instance_id,
            connected_at_ms=self.ports.clock.wall_ms(),
            previous_instance_id=previous,
            profile_key=link.key,
            thread_name=carried.name or me.display_name,
            slot=carried.slot,
            cwd=me.cwd,
            pid=me.pid,
            target=wire_target(carried.target),
            bus_socket_path=self._receiver.path,
            registration_generation=str(link.generation),
            protocol=self._protocol,
            session_generation=self.data.session,
            process_birth_id=me.birth_id,
        )

    async def _judge(self, link: Link, ack: Ack) -> Registered:
        generation = link.generation
        judged = compatible(self._protocol, ack.protocol)
        error, told = "" if ack.ok else said(ack), own.NOTHING_BOUND
        if isinstance(judged, Incompatible):
            error = f"incompatible leader: {judged.reason}" if ack.ok else error
        elif ack.ok:
            place = answers.place(ack)
            if isinstance(place, Malformed):
                why = f"{link.path}: the leader's answer: {place.reason}"
                self._offer(own.RegisterFailed(generation, why))
                return Unreachable(why)
            told = bound(place)
        taken = self._offer(
            own.Answered(
                generation,
                compatible=not isinstance(judged, Incompatible),
                ok=ack.ok,
                held=not ack.ok and HELD in (ack.message or ""),
                binding=told,
                capabilities=() if ack.protocol is None else ack.protocol.capabilities,
                error=error,
            )
        )
        if self.data.generation != generation:
            outputs = taken.outputs if isinstance(taken, Step) else ()
            for output in outputs:
                if isinstance(output, own.Report):
                    self._counts.refused += 1
                    return RefusedBy(output.error, _CODES.get(output.outcome, "refused"))
            return self._abandoned()
        self.leader_protocol = ack.protocol
        if ack.protocol is not None and not ack.protocol.has(TENURE_STATUS):
            self._evictions.registered(link.lead, self.ports.clock.monotonic_ms())
        return await self._first_beat(generation)

    async def _first_beat(self, generation: Generation) -> Registered:
        """It is part of the registration: until it was heard, nobody knows that there is a route (bus.md 0)."""
        beat = self._beat_call
        if beat is not None:
            await asyncio.wait([beat])
        if self.data.generation != generation:
            return Unreachable(self._why) if self._why else self._abandoned()
        self._counts.registrations += 1
        self._answered_for = generation
        self._ticker = asyncio.ensure_future(self._tick(generation))
        return Accepted(generation, self.data.binding, self.data.roster)

    def _abandoned(self) -> RefusedBy:
        return RefusedBy(
            "the registration was given up meanwhile", "stopped" if self.phase == "stopped" else "abandoned"
        )

    # -- the goodbye --------------------------------------------------------------------------------------------------

    async def _say_goodbye(self, link: Link) -> Ack | NoAck:
        request = Disconnect(
            request_id=self._ids.next(),
            auth=link.secret,
            instance_id=self.identity.instance_id,
            registration_generation=str(link.generation),
            sent_at_ms=self.ports.clock.wall_ms(),
        )
        for again in range(GOODBYES):
            if again:
                await asyncio.sleep(self._timings.register_delay_ms / 1000)
            ack = await self._send(link, request, self._timings.register_timeout_ms)
            if isinstance(ack, Ack):
                break
        return ack


def _lead(owner: Entry) -> str:
    return owner.instance_id or str(owner.pid)
