"""The envelopes of the bus, one frozen value per kind (bus.md a); what is absent is None.

Members are named as on the wire, in our spelling: ``registrationGeneration`` is `registration_generation`. Every
envelope has a `request_id`, and may have `auth`, the leader's secret. Times are in milliseconds of the sender's wall
clock, generations and instances are compared for equality only.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from tenure.adapters.bus.messages.envelopes_handoff import FollowerOfferQueueHandoff, LeaderOfferQueueHandoff
from tenure.adapters.bus.messages.envelopes_shared import Envelope as _Envelope
from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.bus.messages.protocol import ProtocolIdentity
from tenure.machines.identity import Number

BatchPosition = Literal["comment", "forward"]
AckCode = Literal["commit-unknown", "request-id-collision", "ledger-overloaded", "incompatible-protocol"]
TrafficClass = Literal["bootstrap", "response", "generation-fenced", "looking"]
"""``looking`` is ``tenure.status``: it changes nothing and needs the secret only."""


@attrs.frozen(kw_only=True)
class Registration:
    """Who registers: an instance, and what it wants to keep.

    `registration_generation` is the request id of the register request; absent, the registration is refused.
    `connected_at_ms` is the sender's; a leader replaces it by its own clock. `slot` is one letter A to Z.
    `session_generation` is positive. `process_birth_id`: `tenure.adapters.fleet.identities.BirthId`.
    `previous_instance_id` claims another instance's place, and is believed only with proof (L16).
    """

    instance_id: str
    connected_at_ms: Number
    previous_instance_id: str | None = None
    profile_key: str | None = None
    thread_name: str | None = None
    slot: str | None = None
    cwd: str | None = None
    pid: int | None = None
    target: Target | None = None
    bus_socket_path: str | None = None
    registration_generation: str | None = None
    protocol: ProtocolIdentity | None = None
    session_generation: int | None = None
    process_birth_id: str | None = None


@attrs.frozen(kw_only=True)
class Register(_Envelope):
    """A follower wants a live route. The acknowledgement has a flat target (`answers.Place`)."""

    KIND: ClassVar[str] = "follower.register"

    registration: Registration


@attrs.frozen(kw_only=True)
class Heartbeat(_Envelope):
    """A follower lives. The acknowledgement has the roster: slots of live, capable followers."""

    KIND: ClassVar[str] = "follower.heartbeat"

    instance_id: str
    sent_at_ms: Number
    registration_generation: str | None = None


@attrs.frozen(kw_only=True)
class Disconnect(_Envelope):
    """A follower leaves, and gives its place up."""

    KIND: ClassVar[str] = "follower.disconnect"

    instance_id: str
    sent_at_ms: Number
    registration_generation: str | None = None


ApiMethod = Literal["call", "callMultipart", "downloadFile"]


@attrs.frozen(kw_only=True)
class CallApi(_Envelope):
    """A follower asks the leader to call the API, in one of three ways."""

    KIND: ClassVar[str] = "follower.callApi"

    instance_id: str
    method: ApiMethod
    args: tuple[Json, ...]
    sent_at_ms: Number
    registration_generation: str | None = None


@attrs.frozen(kw_only=True)
class Selector:
    """Which agent is meant: exactly one of `thread_id` (positive) and `thread_name` (trimmed, not blank)."""

    chat_id: int | None = None
    thread_id: int | None = None
    thread_name: str | None = None


@attrs.frozen(kw_only=True)
class ResolveAgentTarget(_Envelope):
    """A follower asks where another agent's thread is. The acknowledgement has a target."""

    KIND: ClassVar[str] = "follower.resolveAgentTarget"

    instance_id: str
    selector: Selector
    sent_at_ms: Number
    registration_generation: str | None = None


@attrs.frozen(kw_only=True)
class AgentMessage:
    """A message of one agent to another: `message_id` is positive, `text` not blank, the target has a thread."""

    target: Target
    message_id: int
    text: str


@attrs.frozen(kw_only=True)
class RouteAgentMessage(_Envelope):
    """A follower asks the leader to deliver a message to another agent."""

    KIND: ClassVar[str] = "follower.routeAgentMessage"

    instance_id: str
    message: AgentMessage
    sent_at_ms: Number
    registration_generation: str | None = None


@attrs.frozen(kw_only=True)
class Delivery:
    """The durable identity of a forwarded update (bus.md c); the acknowledgement repeats the first two."""

    delivery_id: str
    source_update_id: int
    recipient_binding_key: str


@attrs.frozen(kw_only=True)
class _Forward(_Envelope):
    """An update for exactly the registration `recipient_registration_generation` of `recipient_instance_id`."""

    recipient_instance_id: str
    recipient_registration_generation: str
    delivery: Delivery
    sent_at_ms: Number


@attrs.frozen(kw_only=True)
class ForwardMessage(_Forward):
    """A new message. `message` is None where the member is absent."""

    KIND: ClassVar[str] = "leader.forwardMessage"

    message: Json | None = None
    forward_comment_batch_position: BatchPosition | None = None


@attrs.frozen(kw_only=True)
class ForwardEditedMessage(_Forward):
    """An edited message."""

    KIND: ClassVar[str] = "leader.forwardEditedMessage"

    message: Json | None = None


@attrs.frozen(kw_only=True)
class ForwardCallback(_Forward):
    """A pressed button."""

    KIND: ClassVar[str] = "leader.forwardCallback"

    query: Json | None = None


@attrs.frozen(kw_only=True)
class ForwardReaction(_Forward):
    """A reaction."""

    KIND: ClassVar[str] = "leader.forwardReaction"

    reaction_update: Json | None = None


@attrs.frozen(kw_only=True)
class ReplaceFollowerTarget(_Envelope):
    """The leader moved a follower to another thread; both targets have one. `reason` is ``thread-restore``."""

    KIND: ClassVar[str] = "leader.replaceFollowerTarget"

    recipient_instance_id: str
    target: Target
    sent_at_ms: Number
    recipient_registration_generation: str | None = None
    old_target: Target | None = None
    reason: Literal["thread-restore"] = "thread-restore"


@attrs.frozen(kw_only=True)
class TenureStatus(_Envelope):
    """Ours: somebody looks at the fleet. The acknowledgement has a `tenure.adapters.bus.messages.fleet_view.FleetView`.
    `instance_id` is absent where the asker is no member. A leader of the other system answers that it knows no such
    kind."""

    KIND: ClassVar[str] = "tenure.status"

    instance_id: str | None = None


@attrs.frozen(kw_only=True)
class AckError:
    """What kind of refusal it is, where an asker has to tell. `method`: of a call whose outcome is not known."""

    code: AckCode
    method: str | None = None


@attrs.frozen(kw_only=True)
class Ack(_Envelope):
    """The one answer there is. `result` None is an absent member, ``Json(None)`` is null."""

    KIND: ClassVar[str] = "bus.ack"

    ok: bool
    message: str | None = None
    result: Json | None = None
    protocol: ProtocolIdentity | None = None
    error: AckError | None = None


Forward = ForwardMessage | ForwardEditedMessage | ForwardCallback | ForwardReaction
Offer = FollowerOfferQueueHandoff | LeaderOfferQueueHandoff
Ask = Heartbeat | Disconnect | CallApi | ResolveAgentTarget | RouteAgentMessage | FollowerOfferQueueHandoff
"""What a registered follower sends: all name `instance_id` and `registration_generation`."""
Addressed = Forward | ReplaceFollowerTarget | LeaderOfferQueueHandoff
"""What a leader sends to one registration: all name `recipient_instance_id` and `recipient_registration_generation`."""
Request = Register | Ask | Addressed | TenureStatus
Envelope = Request | Ack


def identity(envelope: Envelope) -> str:
    """Whose requests this one is numbered among in a request ledger: the sender's instance where it is named, else the
    recipient's; of a ``tenure.status`` without one, nobody's."""
    match envelope:
        case Register():
            return envelope.registration.instance_id
        case Ack():
            return "ack"
        case TenureStatus():
            return envelope.instance_id or ""
    return envelope.recipient_instance_id if isinstance(envelope, Addressed) else envelope.instance_id


@attrs.frozen
class Ground:
    """The registration that a request rests on: the one that came of it, or that it names. `ended`: what was answered
    is that it has ended."""

    instance: str
    generation: str | None
    ended: bool = False


def ground(request: Request) -> Ground | None:
    """What a request rests on; None for a look."""
    match request:
        case Register():
            return Ground(request.registration.instance_id, request.registration.registration_generation)
        case TenureStatus():
            return None
    if isinstance(request, Addressed):
        return Ground(request.recipient_instance_id, request.recipient_registration_generation)
    return Ground(request.instance_id, request.registration_generation, isinstance(request, Disconnect))


def traffic_class(envelope: Envelope) -> TrafficClass:
    """What must be known before it is handled: ``bootstrap`` needs no registration, ``generation-fenced`` the exact
    one, ``looking`` none; a ``response`` is never a request (bus.md a)."""
    match envelope:
        case Register():
            return "bootstrap"
        case Ack():
            return "response"
        case TenureStatus():
            return "looking"
    return "generation-fenced"
