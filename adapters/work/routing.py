"""Whose an update is: which instance's thread it is for, or whose message it is about (bus.md c; B44, L21).

An update is *addressed* by what is in it: a chat and a thread, or a message. Who has that thread now is what the
leader's registry of routes says; who had a thread or wrote a message before is what the journal remembers. Nothing here
writes: an answer is a proposal, and what an update is assigned to is decided, once, by the machine of the forward.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import attrs

from tenure.adapters.bus.messages.envelopes import (
    Delivery,
    Forward,
    ForwardCallback,
    ForwardEditedMessage,
    ForwardMessage,
    ForwardReaction,
)
from tenure.adapters.bus.messages.envelopes_shared import Target as WireTarget
from tenure.adapters.bus.messages.json_values import SAFE, Json, JsonValue
from tenure.adapters.fleet.leader.requests import Route
from tenure.adapters.fleet.places import spelled, wire_target
from tenure.machines.admission_identity import SOURCE_FIELD
from tenure.machines.follower_messages import Target

Member = Literal["message", "edited_message", "callback_query", "message_reaction"]
"""Where in an update its carrier is."""

_FORWARDS: Final[dict[Member, type[Forward]]] = {
    "message": ForwardMessage,
    "edited_message": ForwardEditedMessage,
    "callback_query": ForwardCallback,
    "message_reaction": ForwardReaction,
}
MEMBERS: Final[tuple[Member, ...]] = tuple(_FORWARDS)
KINDS: Final[dict[Member, str]] = {member: envelope.KIND for member, envelope in _FORWARDS.items()}
"""The kind of a delivery: that of the envelope that carries it."""


@attrs.frozen
class Address:
    """What an update says of whom it is for. `target`: the thread it was written in, spelled as the machines compare
    it, None where it names none; `message`: chat and number of the message that it is about."""

    member: Member
    carrier: Json
    target: Target | None = None
    message: tuple[int, int] | None = None

    @property
    def kind(self) -> str:
        """The kind of its delivery."""
        return KINDS[self.member]


def address(update: Json) -> Address | None:
    """What an update says of whom it is for; None for one of a kind that is forwarded to nobody."""
    body = update.value if isinstance(update.value, dict) else {}
    for member in MEMBERS:
        carrier = body.get(member)
        if isinstance(carrier, dict):
            about = carrier.get("message") if member == "callback_query" else carrier
            return Address(member, Json(carrier), *_place(about))
    return None


def _place(about: JsonValue) -> tuple[Target | None, tuple[int, int] | None]:
    """The thread and the message that a message, or what refers to one, names."""
    if not isinstance(about, dict):
        return None, None
    chat = about.get("chat")
    number = _whole(chat.get("id")) if isinstance(chat, dict) else None
    if number is None:
        return None, None
    thread, message = _whole(about.get("message_thread_id")), _whole(about.get("message_id"))
    target = None if thread is None else spelled(WireTarget(number, thread))
    return target, None if message is None else (number, message)


def _whole(value: JsonValue) -> int | None:
    """An id; None for what is none, as a number that is not whole, or that a double does not hold exactly: Telegram
    has none of them, and the journal keeps 64 bits."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -SAFE <= value <= SAFE else None


@attrs.frozen
class Whose:
    """To whom an update belongs: a binding, and the registration under which that is served now. `route` None: by
    nobody that is registered, or by this process (`own`)."""

    binding: str
    route: Route | None = None
    own: bool = False


@attrs.frozen
class Fleet:
    """Who is served by whom at a moment: the routes of this leader, its own thread, and the bindings that are its own
    unless somebody else is registered for them, the leader's first."""

    routes: tuple[Route, ...]
    target: Target | None
    own: tuple[str, ...]

    def serves(self, binding: str) -> Whose:
        """Who serves a binding: who is registered for it, else this process, if it is one of its own."""
        route = _one(r for r in self.routes if r.entry.key == binding)
        return Whose(binding, route, own=route is None and binding in self.own)

    def has(self, target: Target) -> Whose | None:
        """Who has a thread; None: nobody that is here."""
        route = _one(r for r in self.routes if r.entry.binding.target == target)
        if route is not None:
            return Whose(route.entry.key, route)
        return Whose(self.own[0], own=True) if target == self.target else None

    def whose(self, address: Address, remembered: str | None) -> Whose | None:
        """Whose it is: of who has the thread; else of whom the journal remembers to have had it, or to have written the
        message; an update that names no thread, about nobody's message, is the leader's. None: of a thread that nobody
        has, and then it waits (L21)."""
        if address.target is not None and (found := self.has(address.target)) is not None:
            return found
        if remembered is not None:
            return self.serves(remembered)
        return None if address.target is not None else Whose(self.own[0], own=True)


def _one(routes: Iterable[Route]) -> Route | None:
    return next(iter(routes), None)


def thread_of(target: Target | None) -> tuple[int, int] | None:
    """Chat and thread of a target; None for what names no thread."""
    found = wire_target(target)
    return None if found is None or found.thread_id is None else (found.chat_id, found.thread_id)


def forward(
    address: Address, update_id: int, delivery_id: str, whose: Whose, *, request_id: str, sent_at_ms: int
) -> Forward:
    """The envelope that carries an update to the registration of `whose.route`. The carrier says which update it came
    in."""
    route = whose.route
    assert route is not None, "nothing is sent to who is not registered"
    body = address.carrier.value
    assert isinstance(body, dict)
    carrier = Json({**body, SOURCE_FIELD: update_id})
    common: dict[str, Any] = {
        "request_id": request_id,
        "recipient_instance_id": route.entry.instance,
        "recipient_registration_generation": str(route.entry.generation),
        "delivery": Delivery(delivery_id=delivery_id, source_update_id=update_id, recipient_binding_key=whose.binding),
        "sent_at_ms": sent_at_ms,
    }
    match address.member:
        case "message":
            return ForwardMessage(message=carrier, **common)
        case "edited_message":
            return ForwardEditedMessage(message=carrier, **common)
        case "callback_query":
            return ForwardCallback(query=carrier, **common)
        case "message_reaction":
            return ForwardReaction(reaction_update=carrier, **common)


def carried(request: Forward) -> tuple[Member, Json | None]:
    """Where in an update the carrier of a forward belongs, and the carrier."""
    match request:
        case ForwardMessage():
            return "message", request.message
        case ForwardEditedMessage():
            return "edited_message", request.message
        case ForwardCallback():
            return "callback_query", request.query
        case ForwardReaction():
            return "message_reaction", request.reaction_update


def received(request: Forward) -> Json | None:
    """The update that a forward carries, as it was polled; None where its carrier is not that of the delivery
    (bus.md c, FOLLOWER ADMIT)."""
    member, carrier = carried(request)
    body = None if carrier is None else carrier.value
    if not isinstance(body, dict) or body.get(SOURCE_FIELD) != request.delivery.source_update_id:
        return None
    inner: dict[str, JsonValue] = {name: value for name, value in body.items() if name != SOURCE_FIELD}
    return Json({"update_id": request.delivery.source_update_id, member: inner})
