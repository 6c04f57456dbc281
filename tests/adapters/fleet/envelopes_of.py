"""Requests of each kind, as anybody might send them."""

from __future__ import annotations

from typing import Any

from tenure.adapters.bus.messages.envelopes import (
    AgentMessage,
    CallApi,
    Delivery,
    Disconnect,
    ForwardCallback,
    ForwardEditedMessage,
    ForwardMessage,
    ForwardReaction,
    Heartbeat,
    Register,
    Registration,
    ReplaceFollowerTarget,
    Request,
    ResolveAgentTarget,
    RouteAgentMessage,
    Selector,
)
from tenure.adapters.bus.messages.envelopes_handoff import (
    AdmissionReceipt,
    ControlPayload,
    FollowerOfferQueueHandoff,
    LeaderOfferQueueHandoff,
)
from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.fleet.agreement import our_protocol
from tenure.adapters.fleet.identities import linux_birth_id

DELIVERY = Delivery(
    delivery_id=f"telegram-follower-v1-{'0' * 64}", source_update_id=5, recipient_binding_key="manual:1101:start:70"
)


def registration(pid: int, generation: str | None, **more: Any) -> Registration:
    """What process `pid` of the room would send."""
    fields: dict[str, Any] = {
        "instance_id": f"{pid}:1",
        "connected_at_ms": 1,
        "profile_key": f"manual:{pid + 1000}:start:70",
        "pid": pid,
        "registration_generation": generation,
        "protocol": our_protocol(),
        "process_birth_id": linux_birth_id(pid, pid * 10),
    }
    return Registration(**(fields | more))


def register(request: str, pid: int = 101, generation: str | None = "", **more: Any) -> Register:
    named = request if generation == "" else generation
    return Register(request_id=request, registration=registration(pid, named, **more))


def offer(kind: type[Any], generation: str) -> Any:
    receipt = AdmissionReceipt(queue_kind="control", receipt_id="r", source_update_ids=(1,))
    payload = ControlPayload(
        chat_id=1, reply_to_message_id=1, queue_order=1, queue_lane="control", lane_order=1, status_summary="s",
        admission_receipts=(receipt,), control_type="status",
    )  # fmt: skip
    donor = {"instance_id": "101:1", "registration_generation": generation}
    if kind is LeaderOfferQueueHandoff:
        donor = {"donor_instance_id": "50:1"}
    return kind(
        request_id="q:offer", recipient_instance_id="101:1", recipient_registration_generation=generation,
        donor_process_id=1, donor_process_birth_id="1:start:1", donor_session_generation=1, donor_acquisition_id="a",
        donor_acquired_at_ms=1, handoff_token="t" * 43, payload=payload, sent_at_ms=1, **donor,
    )  # fmt: skip


def asks(generation: str | None) -> list[Request]:
    """Each kind that a follower sends, under `generation`."""
    me: dict[str, Any] = {"instance_id": "101:1", "registration_generation": generation, "sent_at_ms": 1}
    message = AgentMessage(target=Target(1, 2), message_id=1, text="hi")
    found: list[Request] = [
        Heartbeat(request_id="q:beat", **me),
        Disconnect(request_id="q:bye", **me),
        CallApi(request_id="q:call", method="call", args=(), **me),
        ResolveAgentTarget(request_id="q:resolve", selector=Selector(thread_name="Fern"), **me),
        RouteAgentMessage(request_id="q:route", message=message, **me),
    ]
    return found if generation is None else [*found, offer(FollowerOfferQueueHandoff, generation)]


def works(generation: str) -> list[Request]:
    """Each kind that a leader sends to a follower, under `generation`."""
    to: dict[str, Any] = {
        "recipient_instance_id": "101:1", "recipient_registration_generation": generation, "sent_at_ms": 1,
    }  # fmt: skip
    return [
        ForwardMessage(request_id="w:m", delivery=DELIVERY, message=Json({}), **to),
        ForwardEditedMessage(request_id="w:e", delivery=DELIVERY, message=Json({}), **to),
        ForwardCallback(request_id="w:c", delivery=DELIVERY, query=Json({}), **to),
        ForwardReaction(request_id="w:r", delivery=DELIVERY, reaction_update=Json({}), **to),
    ]


def to_follower_only(generation: str | None) -> list[Request]:
    found: list[Request] = [
        ReplaceFollowerTarget(
            request_id="w:t", recipient_instance_id="101:1", recipient_registration_generation=generation,
            target=Target(0, 9), sent_at_ms=1,
        )
    ]  # fmt: skip
    return found if generation is None else [*found, offer(LeaderOfferQueueHandoff, generation)]
