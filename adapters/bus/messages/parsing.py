"""The envelopes, read from objects by the rules of bus.md a (LENIENCE).

A mandatory member that is missing or malformed raises `Wrong`. An optional one of a wrong type is dropped; but a
malformed target makes a whole registration invalid. What is not known is not read: it reaches neither a handler nor a
fingerprint.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, get_args

from tenure.adapters.bus.messages.envelopes import (
    Ack,
    AckCode,
    AckError,
    AgentMessage,
    ApiMethod,
    BatchPosition,
    CallApi,
    Delivery,
    Disconnect,
    Envelope,
    ForwardCallback,
    ForwardEditedMessage,
    ForwardMessage,
    ForwardReaction,
    Heartbeat,
    Register,
    Registration,
    ReplaceFollowerTarget,
    ResolveAgentTarget,
    RouteAgentMessage,
    Selector,
    TenureStatus,
)
from tenure.adapters.bus.messages.envelopes_handoff import FollowerOfferQueueHandoff, LeaderOfferQueueHandoff
from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.fields import Fields, Wrong
from tenure.adapters.bus.messages.js_text import trimmed, utf16_length
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.bus.messages.parsing_handoff import offer_of_follower, offer_of_leader
from tenure.adapters.bus.messages.parsing_shared import target_or_none
from tenure.adapters.bus.messages.protocol import BUILD_LIMIT, CAPABILITIES_LIMIT, ProtocolIdentity, is_capability

_DELIVERY_ID: Final = re.compile("telegram-follower-v1-[0-9a-f]{64}")
_CODES: Final[dict[str, AckCode]] = {code: code for code in get_args(AckCode)}
_METHODS: Final[dict[str, ApiMethod]] = {method: method for method in get_args(ApiMethod)}
_POSITIONS: Final[dict[str, BatchPosition]] = {position: position for position in get_args(BatchPosition)}


def read_envelope(fields: Fields) -> Envelope:
    """The envelope of whatever kind. Raises Wrong."""
    kind = fields.text("kind")
    request_id = fields.text("requestId")
    reader = _READERS.get(kind)
    if reader is None:
        raise fields.wrong("kind", "is unknown")
    return reader(fields, request_id, fields.text_or_none("auth"))


def protocol_or_none(fields: Fields) -> ProtocolIdentity | None:
    """The member ``protocol``; None where it is absent or anything in it is malformed."""
    try:
        value = fields.object("protocol")
        version, build = value.integer("protocolVersion", 1), value.some_text("runtimeBuild")
        capabilities = value.array("capabilities")
    except Wrong:
        return None
    if build != trimmed(build) or utf16_length(build) > BUILD_LIMIT or len(capabilities) > CAPABILITIES_LIMIT:
        return None
    read: list[str] = []
    for capability in capabilities:
        if not isinstance(capability, str) or not is_capability(capability) or (read and capability <= read[-1]):
            return None
        read.append(capability)
    return ProtocolIdentity(version, build, tuple(read))


def _registration(fields: Fields) -> Registration:
    return Registration(
        instance_id=fields.text("instanceId"),
        connected_at_ms=fields.number("connectedAtMs"),
        previous_instance_id=fields.text_or_none("previousInstanceId"),
        profile_key=fields.text_or_none("profileKey"),
        thread_name=fields.text_or_none("threadName"),
        slot=fields.letter_or_none("slot"),
        cwd=fields.text_or_none("cwd"),
        pid=fields.integer_or_none("pid", 1),
        target=_target(fields, "target") if fields.has("target") else None,
        bus_socket_path=fields.text_or_none("busSocketPath"),
        registration_generation=fields.text_or_none("registrationGeneration"),
        protocol=protocol_or_none(fields),
        session_generation=fields.integer_or_none("sessionGeneration", 1),
        process_birth_id=fields.text_or_none("processBirthId") or None,
    )


def _target(fields: Fields, name: str) -> Target:
    target = target_or_none(fields.raw(name))
    if target is None:
        raise fields.wrong(name, "is not an object with an integer chatId" if fields.has(name) else "is missing")
    return target


def _thread(fields: Fields, name: str) -> Target:
    target = _target(fields, name)
    if target.thread_id is None:
        raise fields.wrong(name, "has no integer threadId")
    return target


def _register(fields: Fields, request_id: str, auth: str | None) -> Register:
    return Register(request_id=request_id, auth=auth, registration=_registration(fields.object("registration")))


def _heartbeat(fields: Fields, request_id: str, auth: str | None) -> Heartbeat:
    return Heartbeat(
        request_id=request_id,
        auth=auth,
        instance_id=fields.text("instanceId"),
        registration_generation=fields.text_or_none("registrationGeneration"),
        sent_at_ms=fields.number("sentAtMs"),
    )


def _disconnect(fields: Fields, request_id: str, auth: str | None) -> Disconnect:
    return Disconnect(
        request_id=request_id,
        auth=auth,
        instance_id=fields.text("instanceId"),
        registration_generation=fields.text_or_none("registrationGeneration"),
        sent_at_ms=fields.number("sentAtMs"),
    )


def _call_api(fields: Fields, request_id: str, auth: str | None) -> CallApi:
    method = _METHODS.get(fields.text("method"))
    if method is None:
        raise fields.wrong("method", f"is none of {', '.join(_METHODS)}")
    return CallApi(
        request_id=request_id,
        auth=auth,
        instance_id=fields.text("instanceId"),
        registration_generation=fields.text_or_none("registrationGeneration"),
        method=method,
        args=tuple(Json(value) for value in fields.array("args")),
        sent_at_ms=fields.number("sentAtMs"),
    )


def _resolve(fields: Fields, request_id: str, auth: str | None) -> ResolveAgentTarget:
    selector = fields.object("selector")
    thread_id = selector.integer_or_none("threadId", 1)
    thread_name = trimmed(selector.text_or_none("threadName") or "") or None
    if (thread_id is None) == (thread_name is None):
        raise fields.wrong("selector", "needs a positive threadId or a threadName, and not both")
    return ResolveAgentTarget(
        request_id=request_id,
        auth=auth,
        instance_id=fields.text("instanceId"),
        registration_generation=fields.text_or_none("registrationGeneration"),
        selector=Selector(chat_id=selector.integer_or_none("chatId"), thread_id=thread_id, thread_name=thread_name),
        sent_at_ms=fields.number("sentAtMs"),
    )


def _route(fields: Fields, request_id: str, auth: str | None) -> RouteAgentMessage:
    message = fields.object("message")
    text = message.text("text")
    if not trimmed(text):
        raise message.wrong("text", "is blank")
    return RouteAgentMessage(
        request_id=request_id,
        auth=auth,
        instance_id=fields.text("instanceId"),
        registration_generation=fields.text_or_none("registrationGeneration"),
        message=AgentMessage(target=_thread(message, "target"), message_id=message.integer("messageId", 1), text=text),
        sent_at_ms=fields.number("sentAtMs"),
    )


def _delivery(fields: Fields) -> Delivery:
    delivery = fields.object("delivery")
    delivery_id = delivery.text("deliveryId")
    if _DELIVERY_ID.fullmatch(delivery_id) is None:
        raise delivery.wrong("deliveryId", "is not telegram-follower-v1- and 64 hex digits")
    return Delivery(
        delivery_id=delivery_id,
        source_update_id=delivery.integer("sourceUpdateId", 0),
        recipient_binding_key=delivery.some_text("recipientBindingKey"),
    )


def _forward_message(fields: Fields, request_id: str, auth: str | None) -> ForwardMessage:
    return ForwardMessage(
        request_id=request_id,
        auth=auth,
        recipient_instance_id=fields.text("recipientInstanceId"),
        recipient_registration_generation=fields.text("recipientRegistrationGeneration"),
        delivery=_delivery(fields),
        message=fields.json_if_any("message"),
        forward_comment_batch_position=_POSITIONS.get(fields.text_or_none("forwardCommentBatchPosition") or ""),
        sent_at_ms=fields.number("sentAtMs"),
    )


def _forward_edited(fields: Fields, request_id: str, auth: str | None) -> ForwardEditedMessage:
    return ForwardEditedMessage(
        request_id=request_id,
        auth=auth,
        recipient_instance_id=fields.text("recipientInstanceId"),
        recipient_registration_generation=fields.text("recipientRegistrationGeneration"),
        delivery=_delivery(fields),
        message=fields.json_if_any("message"),
        sent_at_ms=fields.number("sentAtMs"),
    )


def _forward_callback(fields: Fields, request_id: str, auth: str | None) -> ForwardCallback:
    return ForwardCallback(
        request_id=request_id,
        auth=auth,
        recipient_instance_id=fields.text("recipientInstanceId"),
        recipient_registration_generation=fields.text("recipientRegistrationGeneration"),
        delivery=_delivery(fields),
        query=fields.json_if_any("query"),
        sent_at_ms=fields.number("sentAtMs"),
    )


def _forward_reaction(fields: Fields, request_id: str, auth: str | None) -> ForwardReaction:
    return ForwardReaction(
        request_id=request_id,
        auth=auth,
        recipient_instance_id=fields.text("recipientInstanceId"),
        recipient_registration_generation=fields.text("recipientRegistrationGeneration"),
        delivery=_delivery(fields),
        reaction_update=fields.json_if_any("reactionUpdate"),
        sent_at_ms=fields.number("sentAtMs"),
    )


def _replace_target(fields: Fields, request_id: str, auth: str | None) -> ReplaceFollowerTarget:
    if fields.text("reason") != "thread-restore":
        raise fields.wrong("reason", "is not thread-restore")
    return ReplaceFollowerTarget(
        request_id=request_id,
        auth=auth,
        recipient_instance_id=fields.text("recipientInstanceId"),
        recipient_registration_generation=fields.text_or_none("recipientRegistrationGeneration"),
        target=_thread(fields, "target"),
        old_target=_thread(fields, "oldTarget") if fields.has("oldTarget") else None,
        sent_at_ms=fields.number("sentAtMs"),
    )


def _tenure_status(fields: Fields, request_id: str, auth: str | None) -> TenureStatus:
    return TenureStatus(request_id=request_id, auth=auth, instance_id=fields.text_or_none("instanceId"))


def _ack(fields: Fields, request_id: str, auth: str | None) -> Ack:
    return Ack(
        request_id=request_id,
        auth=auth,
        ok=fields.boolean("ok"),
        message=fields.text_or_none("message"),
        result=fields.json_if_any("result"),
        protocol=protocol_or_none(fields),
        error=_error_or_none(fields),
    )


def _error_or_none(fields: Fields) -> AckError | None:
    value = fields.raw("error")
    if not isinstance(value, dict):
        return None
    error = Fields(value)
    code = _CODES.get(error.text_or_none("code") or "")
    return None if code is None else AckError(code=code, method=error.text_or_none("method"))


_READERS: Final[dict[str, Callable[[Fields, str, str | None], Envelope]]] = {
    Register.KIND: _register,
    Heartbeat.KIND: _heartbeat,
    Disconnect.KIND: _disconnect,
    CallApi.KIND: _call_api,
    ResolveAgentTarget.KIND: _resolve,
    RouteAgentMessage.KIND: _route,
    FollowerOfferQueueHandoff.KIND: offer_of_follower,
    LeaderOfferQueueHandoff.KIND: offer_of_leader,
    ForwardMessage.KIND: _forward_message,
    ForwardEditedMessage.KIND: _forward_edited,
    ForwardCallback.KIND: _forward_callback,
    ForwardReaction.KIND: _forward_reaction,
    ReplaceFollowerTarget.KIND: _replace_target,
    TenureStatus.KIND: _tenure_status,
    Ack.KIND: _ack,
}
