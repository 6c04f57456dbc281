"""What a leader answers to each kind of request (bus.md a, LEADER SERVER ORDER; annex A).

`Requests.handle` is asked for requests that are authenticated and not repeated. Which of them are done for whom is
decided by the routes' machine; here its answers become acknowledgements, and its calls become requests to followers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import attrs

from tenure.adapters.bus.client import Client
from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import (
    Ack,
    CallApi,
    Disconnect,
    Forward,
    Heartbeat,
    Register,
    ReplaceFollowerTarget,
    Request,
    ResolveAgentTarget,
    RouteAgentMessage,
    TenureStatus,
)
from tenure.adapters.bus.messages.envelopes_handoff import FollowerOfferQueueHandoff, LeaderOfferQueueHandoff
from tenure.adapters.bus.messages.envelopes_shared import Place
from tenure.adapters.bus.messages.fleet_view import FleetView
from tenure.adapters.bus.messages.protocol import (
    DURABLE_FOLLOWER_ADMISSION,
    Compatible,
    Incompatible,
    ProtocolIdentity,
    compatible,
)
from tenure.adapters.bus.peer import Peer
from tenure.adapters.bus.serving.ledger import Done
from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import HANDOFF_TIMEOUT_MS
from tenure.adapters.fleet.asking import NoAck, acknowledged
from tenure.adapters.fleet.leader.bounds import implausible
from tenure.adapters.fleet.leader.routing import No, Routing
from tenure.adapters.fleet.leader.routing_steps import Live
from tenure.adapters.fleet.places import wire_target
from tenure.adapters.ports import Ports
from tenure.machines.chart import Refused
from tenure.machines.request_ledger import Outcome
from tenure.machines.routes_messages import Entry

Asked = CallApi | ResolveAgentTarget | RouteAgentMessage | FollowerOfferQueueHandoff
"""What followers ask the leader to do for them."""
Work = Forward | ReplaceFollowerTarget | LeaderOfferQueueHandoff
"""What a leader sends to one registration."""


@attrs.frozen
class Route:
    """Who asks: a registration that stands."""

    entry: Entry
    live: Live | None


Serve = Callable[[Asked, Route], Awaitable[Ack]]
"""Does what was asked, and answers it; raises TenureError to refuse it with that text."""
PassOn = Callable[[FollowerOfferQueueHandoff, Route, float], Awaitable[Ack]]
"""Passes an offer of one follower on to another, and answers what that answers; raises TenureError to refuse it. The
last is what is left of the time that the donor waits, in ms (L11)."""
Authorise = Callable[[Asked, Route], str | None]
"""Why the follower may not ask for that (annex B); None when it may."""

_NO_SERVICE: Final[dict[type[Asked], str]] = {
    CallApi: "this leader has no API",
    ResolveAgentTarget: "this leader knows no agents' threads",
    RouteAgentMessage: "this leader delivers no messages between agents",
    FollowerOfferQueueHandoff: "this leader passes on no queued items",
}


def nobody_is_barred(request: Asked, route: Route) -> str | None:
    """Without an API there is nothing to keep anybody from."""
    return None


class Requests:
    """The requests of one leading."""

    def __init__(
        self,
        ports: Ports,
        routing: Routing,
        protocol: ProtocolIdentity,
        *,
        view: Callable[[], FleetView],
        endpoint: str,
        socket_of: Callable[[str], str],
        leg_ms: float,
        serve: Serve | None = None,
        authorise: Authorise = nobody_is_barred,
        pass_on: PassOn | None = None,
        handoff_ms: float = HANDOFF_TIMEOUT_MS,
        client: Client | None = None,
        instance: str = "",
    ) -> None:
        """`endpoint` and `instance` are the leader's own. `socket_of`: where an instance listens that has not said
        where. `leg_ms`: how long a follower may take to answer what is sent to it: as long as its asker waits, and not
        one second (L11). `handoff_ms`: how long the donor of an offer waits, counted from its arrival here."""
        self._ports = ports
        self._routing = routing
        self._protocol = protocol
        self._view = view
        self._endpoint = endpoint
        self._instance = instance
        self._socket_of = socket_of
        self._leg_ms = leg_ms
        self._serve = serve
        self._authorise = authorise
        self._pass_on = pass_on
        self._handoff_ms = handoff_ms
        self._client = Client() if client is None else client

    async def handle(self, request: Request, peer: Peer) -> Done[Ack]:
        """The acknowledgement of an authenticated request, and what it is to the ledger."""
        match request:
            case Register():
                return await self._register(request, peer)
            case Heartbeat():
                return self._heartbeat(request, peer)
            case Disconnect():
                return await self._disconnect(request, peer)
            case CallApi() | ResolveAgentTarget() | RouteAgentMessage() | FollowerOfferQueueHandoff():
                return await self._ask(request, peer)
            case ReplaceFollowerTarget() | LeaderOfferQueueHandoff():
                return _no(acks.not_handled(request))  # addressed to followers only
            case TenureStatus():
                return self._status(request)
        return await self._relay(request)

    # -- the kinds ----------------------------------------------------------------------------------------------------

    async def _register(self, request: Register, peer: Peer) -> Done[Ack]:
        registration = request.registration
        judged = compatible(self._protocol, registration.protocol)
        fits = isinstance(judged, Compatible)  # first of all: who does not fit is told nothing but that
        if fits and (wrong := implausible(registration, self._endpoint, self._instance)):
            return _no(acks.register_refused(request, self._protocol, wrong))
        try:
            answer = await self._routing.register(
                registration,
                peer,
                compatible=fits,
                capable=self._capable(registration.protocol),
            )
        except TenureError as error:
            return _no(acks.register_refused(request, self._protocol, str(error)))
        if isinstance(answer, No):
            if isinstance(judged, Incompatible) and "compatible" in answer.guards:
                return _no(acks.incompatible(request, self._protocol, judged))
            return _no(acks.register_refused(request, self._protocol, _words(answer)))
        target = wire_target(answer.binding.target)
        assert target is not None, "provisioning gives a thread"
        place = Place(target=target, slot=answer.binding.slot, thread_name=answer.binding.name)
        return Done(acks.registered(request, self._protocol, place), "done")

    def _heartbeat(self, request: Heartbeat, peer: Peer) -> Done[Ack]:
        answer = self._routing.heartbeat(request.instance_id, request.registration_generation)
        if isinstance(answer, Refused):
            return _no(self._stale(request, request.instance_id, answer.guards))
        self._heard(request.instance_id, request.registration_generation, peer)
        return Done(acks.roster(request, answer), "done")

    async def _disconnect(self, request: Disconnect, peer: Peer) -> Done[Ack]:
        try:
            answer = await self._routing.disconnect(request.instance_id, request.registration_generation)
        except TenureError as error:
            return _no(acks.refused(request, str(error)))
        if answer is None:
            return Done(acks.done(request), "done")
        if answer.guards:
            return _no(self._stale(request, request.instance_id, answer.guards))
        return _no(acks.refused(request, answer.text))

    async def _ask(self, request: Asked, peer: Peer) -> Done[Ack]:
        began = self._ports.clock.monotonic_ms()
        entry = self._routing.ask(request.instance_id, request.registration_generation)
        if isinstance(entry, Refused):
            return _no(self._stale(request, request.instance_id, entry.guards))
        self._heard(request.instance_id, request.registration_generation, peer)
        route = Route(entry, self._routing.live.get(entry.instance))
        barred = self._authorise(request, route)
        if barred is not None:
            return _no(acks.refused(request, barred))
        try:
            ack = await self._served(request, route, began)
        except TenureError as error:
            return _no(acks.refused(request, str(error)))
        if not self._routing.leads():
            # Under an epoch that is over nothing is acknowledged; that it was not done is not known either.
            why = "this process does not lead any more"
            method = request.method if isinstance(request, CallApi) else request.KIND
            return Done(acks.commit_unknown(request, method, why), "unknown")
        return Done(ack, _outcome(ack))

    async def _served(self, request: Asked, route: Route, began: int) -> Ack:
        if isinstance(request, FollowerOfferQueueHandoff) and self._pass_on is not None:
            left = self._handoff_ms - (self._ports.clock.monotonic_ms() - began)
            return await self._pass_on(request, route, left)
        if self._serve is None:
            raise TenureError(_NO_SERVICE[type(request)])
        return await self._serve(request, route)

    def _status(self, request: TenureStatus) -> Done[Ack]:
        if not self._routing.leads():
            return _no(acks.refused(request, "this process does not lead any more"))
        return Done(acks.fleet(request, self._view()), "done")

    async def _relay(self, request: Forward) -> Done[Ack]:
        ack = await self.send(request)
        return Done(ack, _outcome(ack))

    async def send(self, work: Work, *, timeout_ms: float | None = None) -> Ack:
        """Send work to the registration that it names, if that stands; the follower's answer is passed on as it is, if
        the registration still stands then. `timeout_ms`: how long it may take, `leg_ms` if None."""
        ack = await self.attempt(work, timeout_ms=timeout_ms)
        return acks.refused(work, f"the follower did not answer: {ack.text}") if isinstance(ack, NoAck) else ack

    async def attempt(self, work: Work, *, timeout_ms: float | None = None) -> Ack | NoAck:
        """The same, where no answer and a refusal are told apart."""
        instance, generation = work.recipient_instance_id, work.recipient_registration_generation
        entry = self._routing.forward(instance, generation)
        if isinstance(entry, Refused):
            return self._stale(work, instance, entry.guards)
        live = self._routing.live.get(instance)
        path = None if live is None else live.registration.bus_socket_path
        limit = self._leg_ms if timeout_ms is None else timeout_ms
        socket = self._socket_of(instance) if path is None else path
        ack = await acknowledged(self._client, socket, work, timeout_ms=limit)
        if isinstance(ack, NoAck) or not ack.ok:
            return ack
        late = self._routing.heard(instance, generation)
        return ack if late is None else self._stale(work, instance, late.guards)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _capable(self, protocol: ProtocolIdentity | None) -> bool:
        """What a successor needs: durable admission, if this leader has it (bus.md b)."""
        needed = self._protocol.has(DURABLE_FOLLOWER_ADMISSION)
        return not needed or (protocol is not None and protocol.has(DURABLE_FOLLOWER_ADMISSION))

    def _heard(self, instance: str, generation: str | None, peer: Peer) -> None:
        if generation is not None:
            self._routing.witness.heard(instance, generation, peer)

    def _stale(self, request: Request, instance: str, guards: tuple[str, ...]) -> Ack:
        if "leads_here" in guards or self._routing.phase != "serving":
            return acks.refused(request, "this process does not lead any more: read the owner registry again")
        if "generation_named" not in guards and self._routing.data.entry(instance) is None:
            return acks.unknown_instance(request)
        return acks.stale_generation(request)


_WHY: Final = {
    "authenticated": "unauthorized",
    "generation_named": "the registration names no generation",
    "leads_here": "this process does not lead any more: read the owner registry again",
}


def _words(answer: No) -> str:
    return next((_WHY[guard] for guard in answer.guards if guard in _WHY), answer.text)


def _outcome(ack: Ack) -> Outcome:
    if ack.ok:
        return "done"
    return "unknown" if ack.error is not None and ack.error.code == "commit-unknown" else "failed"


def _no(ack: Ack) -> Done[Ack]:
    """It had no effect, and may be tried again."""
    return Done(ack, "failed")
