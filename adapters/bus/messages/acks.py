"""Every acknowledgement of annex A, one builder each. What they say in words is for people; askers go by `ok`, the
protocol identity, the code and the result.

A refusal names no secret, and nobody's generation but the asker's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tenure.adapters.bus.messages.envelopes import Ack, AckCode, AckError, Delivery, Request
from tenure.adapters.bus.messages.envelopes_handoff import Staged
from tenure.adapters.bus.messages.envelopes_shared import Place, Target
from tenure.adapters.bus.messages.fields import Malformed
from tenure.adapters.bus.messages.fleet_view import FleetView
from tenure.adapters.bus.messages.fleet_view_json import render_fleet
from tenure.adapters.bus.messages.json_values import Json, plain
from tenure.adapters.bus.messages.protocol import Incompatible, ProtocolIdentity
from tenure.adapters.bus.messages.rendering import Members, present, render_staged, render_target
from tenure.adapters.errors import printable

INVALID: Final = "invalid"
"""The request id of the answer to what is no envelope: nobody can say which request it was."""


def invalid(malformed: Malformed) -> Ack:
    """The line is no envelope. The connection stays open."""
    return Ack(request_id=INVALID, ok=False, message=printable(f"not a request of this bus: {malformed.reason}"))


def line_too_long(limit: int) -> Ack:
    """The line goes on beyond `limit` bytes."""
    return Ack(request_id=INVALID, ok=False, message=f"not a request of this bus: it is longer than {limit} bytes")


def response_as_request(ack: Ack) -> Ack:
    """An acknowledgement was sent as a request: refused before anything else is looked at."""
    return Ack(request_id=ack.request_id, ok=False, message="an acknowledgement is no request")


def unauthorized(request: Request) -> Ack:
    """Its secret is absent or not ours: there may be a new leader, with a new one."""
    return refused(request, "unauthorized: the secret is not this endpoint's; read the owner registry again")


def refused(request: Request, why: str) -> Ack:
    """A refusal that needs no code."""
    return Ack(request_id=request.request_id, ok=False, message=why)


def not_handled(request: Request) -> Ack:
    """A kind that this side does not handle."""
    return refused(request, f"{request.KIND} is not handled here")


def not_for_me(request: Request) -> Ack:
    """Another instance is meant."""
    return refused(request, "addressed to another instance")


def unknown_instance(request: Request) -> Ack:
    """No live route of that instance: it has to register again."""
    return refused(request, "unknown instance: register again")


def stale_generation(request: Request) -> Ack:
    """A generation that is not the live one, or none at all: refused whatever the kind (I1)."""
    return refused(request, "stale registration generation: register again")


def incompatible(request: Request, ours: ProtocolIdentity, why: Incompatible) -> Ack:
    """Registration is refused before anything is provisioned (I9)."""
    message = f"incompatible protocol: {why.reason}"
    return _coded(request, "incompatible-protocol", message, protocol=ours)


def register_refused(request: Request, ours: ProtocolIdentity, why: str) -> Ack:
    """Registration is refused for another reason. The identity goes along: it is judged before `ok`."""
    return Ack(request_id=request.request_id, ok=False, message=why, protocol=ours)


def registered(request: Request, ours: ProtocolIdentity, place: Place) -> Ack:
    """The route lives. The result is the place, with a flat target."""
    result = {
        **(render_target(place.target) or {}),
        **present(slot=place.slot, threadName=place.thread_name),
    }
    return Ack(request_id=request.request_id, ok=True, result=Json(plain(result)), protocol=ours)


def roster(request: Request, slots: Iterable[str]) -> Ack:
    """A heartbeat was heard. `slots`: of live, capable followers."""
    return _done(request, {"eligibleElectionSlots": sorted(set(slots))})


def done(request: Request) -> Ack:
    """Done, and there is nothing to say: a disconnect, a routed message, a moved target."""
    return Ack(request_id=request.request_id, ok=True)


def called(request: Request, result: Json | None) -> Ack:
    """What the API answered, as it is."""
    return Ack(request_id=request.request_id, ok=True, result=result)


def commit_unknown(request: Request, method: str, why: str) -> Ack:
    """Nobody knows whether the call had its effect: it must not be repeated (law Unknown)."""
    return _coded(request, "commit-unknown", why, method=method)


def answer_dropped(request: Request) -> Ack:
    """The request was executed before, and its answer was too long to be kept. The code is that of an unknown outcome:
    what it asks of the asker is the same, not to do it again."""
    return _coded(request, "commit-unknown", "executed before; its answer was too long to be kept: do not repeat it")


def ground_gone(request: Request) -> Ack:
    """The request was executed before, under a registration that is over now, or by a leader that leads no more: what
    came of it is not said under another one, and it is not done again."""
    return _coded(request, "commit-unknown", "executed before, under a registration that is over: do not repeat it")


def resolved(request: Request, target: Target) -> Ack:
    """Where the other agent's thread is."""
    return _done(request, render_target(target) or {})


def received(request: Request, delivery: Delivery) -> Ack:
    """The update is in the journal: the receipt, which must equal what was sent."""
    return _done(request, {"deliveryId": delivery.delivery_id, "sourceUpdateId": delivery.source_update_id})


def staged(request: Request, what: Staged) -> Ack:
    """The offered item is accepted: the recipient owns it."""
    return _done(request, render_staged(what))


def fleet(request: Request, view: FleetView) -> Ack:
    """What the leader knows of its fleet."""
    return _done(request, render_fleet(view))


def collision(request: Request) -> Ack:
    """The request id belongs to another body: never to be tried again with this id."""
    return _coded(request, "request-id-collision", "the request id was used for another request")


def overloaded(request: Request) -> Ack:
    """The request ledger has no room: later, and under a new id."""
    return _coded(request, "ledger-overloaded", "too many requests are under way: try again later, with a new id")


def failed(request: Request) -> Ack:
    """The handler raised. What it raised is for the diagnostics of this side."""
    return refused(request, "the request failed; nothing more is known here")


def _done(request: Request, result: Members) -> Ack:
    return Ack(request_id=request.request_id, ok=True, result=Json(plain(result)))


def _coded(
    request: Request, code: AckCode, why: str, *, method: str | None = None, protocol: ProtocolIdentity | None = None
) -> Ack:
    return Ack(
        request_id=request.request_id,
        ok=False,
        message=why,
        protocol=protocol,
        error=AckError(code=code, method=method),
    )
