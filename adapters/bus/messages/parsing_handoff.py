"""The two handoff offers, read as a whole: nothing in a payload is dropped for being of a wrong type (bus.md a)."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, Literal

from tenure.adapters.bus.messages.envelopes_handoff import (
    DONOR_ID_LIMIT,
    PAYLOAD_LIMIT,
    RECEIPTS_LIMIT,
    TOKEN_LENGTHS,
    AdmissionReceipt,
    Attachment,
    ControlPayload,
    FollowerOfferQueueHandoff,
    HandoffPayload,
    ImageContent,
    LeaderOfferQueueHandoff,
    PromptPayload,
    QueueKind,
    QueueLane,
    TextContent,
    TransportStamp,
)
from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.fields import Fields
from tenure.adapters.bus.messages.js_text import trimmed, utf16_length
from tenure.adapters.bus.messages.json_values import dump_bytes
from tenure.adapters.bus.messages.parsing_shared import target_or_none

_LANES: Final[dict[str, QueueLane]] = {"control": "control", "priority": "priority", "default": "default"}
_CONTROLS: Final[dict[str, Literal["status", "model"]]] = {"status": "status", "model": "model"}


def offer_of_follower(fields: Fields, request_id: str, auth: str | None) -> FollowerOfferQueueHandoff:
    """``follower.offerQueueHandoff``."""
    return FollowerOfferQueueHandoff(
        request_id=request_id,
        auth=auth,
        instance_id=fields.text("instanceId"),
        registration_generation=fields.text("registrationGeneration"),
        recipient_instance_id=fields.text("recipientInstanceId"),
        recipient_registration_generation=fields.text("recipientRegistrationGeneration"),
        donor_process_id=fields.integer("donorProcessId", 1),
        donor_process_birth_id=_short(fields, "donorProcessBirthId"),
        donor_session_generation=fields.integer("donorSessionGeneration", 1),
        donor_acquisition_id=_short(fields, "donorAcquisitionId"),
        donor_acquired_at_ms=fields.integer("donorAcquiredAtMs", 0),
        donor_handoff_id=_short(fields, "donorHandoffId") if fields.has("donorHandoffId") else None,
        handoff_token=_token(fields),
        payload=_payload(fields),
        sent_at_ms=fields.number("sentAtMs"),
    )


def offer_of_leader(fields: Fields, request_id: str, auth: str | None) -> LeaderOfferQueueHandoff:
    """``leader.offerQueueHandoff``."""
    return LeaderOfferQueueHandoff(
        request_id=request_id,
        auth=auth,
        donor_instance_id=fields.text("donorInstanceId"),
        recipient_instance_id=fields.text("recipientInstanceId"),
        recipient_registration_generation=fields.text("recipientRegistrationGeneration"),
        donor_process_id=fields.integer("donorProcessId", 1),
        donor_process_birth_id=_short(fields, "donorProcessBirthId"),
        donor_session_generation=fields.integer("donorSessionGeneration", 1),
        donor_acquisition_id=_short(fields, "donorAcquisitionId"),
        donor_acquired_at_ms=fields.integer("donorAcquiredAtMs", 0),
        donor_handoff_id=_short(fields, "donorHandoffId") if fields.has("donorHandoffId") else None,
        handoff_token=_token(fields),
        payload=_payload(fields),
        sent_at_ms=fields.number("sentAtMs"),
    )


def _short(fields: Fields, name: str) -> str:
    value = fields.some_text(name)
    if utf16_length(value) > DONOR_ID_LIMIT:
        raise fields.wrong(name, f"is longer than {DONOR_ID_LIMIT}")
    return value


def _token(fields: Fields) -> str:
    token = fields.text("handoffToken")
    shortest, longest = TOKEN_LENGTHS
    if not shortest <= utf16_length(token) <= longest:
        raise fields.wrong("handoffToken", f"is not {shortest} to {longest} long")
    return token


def _payload(fields: Fields) -> HandoffPayload:
    payload = fields.object("payload")
    # What the sender would write, unknown members and all, is what is measured.
    if len(dump_bytes(fields.raw("payload"))) > PAYLOAD_LIMIT:
        raise fields.wrong("payload", f"is longer than {PAYLOAD_LIMIT} bytes")
    match payload.text("kind"):
        case "control":
            return _control(payload)
        case "prompt":
            return _prompt(payload)
    raise payload.wrong("kind", "is neither prompt nor control")


def _control(payload: Fields) -> ControlPayload:
    if payload.text("queueLane") != "control":
        raise payload.wrong("queueLane", "is not control, as a control's has to be")
    control_type = _CONTROLS.get(payload.text("controlType"))
    if control_type is None:
        raise payload.wrong("controlType", "is neither status nor model")
    return ControlPayload(
        chat_id=payload.integer("chatId"),
        target=_target(payload),
        transport_stamp=_stamp(payload),
        reply_to_message_id=payload.integer("replyToMessageId"),
        guest_query_id=payload.text_if_any("guestQueryId"),
        queue_order=payload.integer("queueOrder"),
        queue_lane="control",
        lane_order=payload.integer("laneOrder"),
        status_summary=payload.text("statusSummary"),
        admission_receipts=_receipts(payload, "control"),
        control_type=control_type,
    )


def _prompt(payload: Fields) -> PromptPayload:
    lane = _LANES.get(payload.text("queueLane"))
    if lane is None or lane == "control":
        raise payload.wrong("queueLane", "is neither priority nor default, as a prompt's has to be")
    return PromptPayload(
        chat_id=payload.integer("chatId"),
        target=_target(payload),
        transport_stamp=_stamp(payload),
        reply_to_message_id=payload.integer("replyToMessageId"),
        guest_query_id=payload.text_if_any("guestQueryId"),
        queue_order=payload.integer("queueOrder"),
        queue_lane=lane,
        lane_order=payload.integer("laneOrder"),
        status_summary=payload.text("statusSummary"),
        admission_receipts=_receipts(payload, "prompt"),
        source_message_ids=payload.integers("sourceMessageIds"),
        queued_attachments=tuple(
            Attachment(path=file.text("path"), file_name=file.text("fileName"))
            for file in payload.objects("queuedAttachments")
        ),
        content=tuple(_content(part) for part in payload.objects("content")),
        history_text=payload.text("historyText"),
        priority_emoji=payload.text_if_any("priorityEmoji"),
        reaction_suppression_emoji=payload.text_if_any("reactionSuppressionEmoji"),
        voice_reply_preferred=payload.boolean_if_any("voiceReplyPreferred"),
        voice_reply_required=payload.boolean_if_any("voiceReplyRequired"),
    )


def _target(payload: Fields) -> Target | None:
    if not payload.has("target"):
        return None
    target = target_or_none(payload.raw("target"))
    if target is None:
        raise payload.wrong("target", "is not an object with an integer chatId")
    return target


def _stamp(payload: Fields) -> TransportStamp | None:
    if not payload.has("transportStamp"):
        return None
    stamp = payload.object("transportStamp")
    return TransportStamp(profile=stamp.text("profile"), generation=stamp.text("generation"))


def _content(part: Fields) -> TextContent | ImageContent:
    match part.text("type"):
        case "text":
            return TextContent(text=part.text("text"))
        case "image":
            return ImageContent(data=part.text("data"), mime_type=part.text("mimeType"))
    raise part.wrong("type", "is neither text nor image")


def _receipts(payload: Fields, kind: QueueKind) -> tuple[AdmissionReceipt, ...]:
    receipts = payload.objects("admissionReceipts")
    if not 1 <= len(receipts) <= RECEIPTS_LIMIT:
        raise payload.wrong("admissionReceipts", f"are not 1 to {RECEIPTS_LIMIT}")
    return tuple(_receipt(receipt, kind) for receipt in receipts)


def _receipt(receipt: Fields, kind: QueueKind) -> AdmissionReceipt:
    if receipt.text("queueKind") != kind:
        raise receipt.wrong("queueKind", f"is not the payload's, {kind}")
    ids = receipt.integers("sourceUpdateIds")
    if not ids or ids[0] < 0 or any(later <= earlier for earlier, later in pairwise(ids)):
        raise receipt.wrong("sourceUpdateIds", "are not strictly ascending from 0 on, at least one")
    binding = receipt.text_if_any("journalBindingKey")
    if binding is not None and not trimmed(binding):
        raise receipt.wrong("journalBindingKey", "is blank")
    return AdmissionReceipt(
        queue_kind=kind,
        receipt_id=receipt.some_text("receiptId"),
        source_update_ids=ids,
        journal_binding_key=binding,
    )
