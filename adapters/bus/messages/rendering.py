"""The envelopes, written as objects: members in the order of bus.md a, nothing for what is absent."""

from __future__ import annotations

from collections.abc import Mapping

from tenure.adapters.bus.messages.envelopes import (
    Ack,
    AckError,
    CallApi,
    Delivery,
    Disconnect,
    Envelope,
    Forward,
    ForwardCallback,
    ForwardEditedMessage,
    ForwardMessage,
    ForwardReaction,
    Heartbeat,
    Offer,
    Register,
    Registration,
    ReplaceFollowerTarget,
    ResolveAgentTarget,
    RouteAgentMessage,
    TenureStatus,
)
from tenure.adapters.bus.messages.envelopes_handoff import (
    AdmissionReceipt,
    FollowerOfferQueueHandoff,
    HandoffPayload,
    ImageContent,
    LeaderOfferQueueHandoff,
    PromptPayload,
    Staged,
    TextContent,
    TransportStamp,
)
from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.protocol import ProtocolIdentity

Members = Mapping[str, object]
"""An object for `json_values.dump`."""


def render_envelope(envelope: Envelope) -> Members:
    """The object of an envelope."""
    match envelope:
        case Heartbeat() | Disconnect():
            return _beat(envelope)
        case Ack():
            return _ack(envelope)
        case Register():
            return _register(envelope)
        case CallApi():
            return _call_api(envelope)
        case ForwardMessage():
            position = envelope.forward_comment_batch_position
            return _forward(envelope, message=envelope.message, forwardCommentBatchPosition=position)
        case ForwardEditedMessage():
            return _forward(envelope, message=envelope.message)
        case ForwardCallback():
            return _forward(envelope, query=envelope.query)
        case ForwardReaction():
            return _forward(envelope, reactionUpdate=envelope.reaction_update)
        case ResolveAgentTarget():
            return _resolve(envelope)
        case RouteAgentMessage():
            return _route(envelope)
        case ReplaceFollowerTarget():
            return _replace_target(envelope)
        case FollowerOfferQueueHandoff():
            generation = envelope.registration_generation
            return _offer(envelope, instanceId=envelope.instance_id, registrationGeneration=generation)
        case LeaderOfferQueueHandoff():
            return _offer(envelope, donorInstanceId=envelope.donor_instance_id)
        case TenureStatus():
            return _tenure_status(envelope)


def render_protocol(protocol: ProtocolIdentity | None) -> Members | None:
    """A protocol identity."""
    if protocol is None:
        return None
    return {
        "protocolVersion": protocol.protocol_version,
        "runtimeBuild": protocol.runtime_build,
        "capabilities": protocol.capabilities,
    }


def render_target(target: Target | None) -> Members | None:
    """A target."""
    return None if target is None else present(chatId=target.chat_id, threadId=target.thread_id)


def present(**members: object) -> Members:
    """The members that are not None, in their order."""
    return {name: value for name, value in members.items() if value is not None}


def _registration(registration: Registration) -> Members:
    return present(
        instanceId=registration.instance_id,
        connectedAtMs=registration.connected_at_ms,
        previousInstanceId=registration.previous_instance_id,
        profileKey=registration.profile_key,
        threadName=registration.thread_name,
        slot=registration.slot,
        cwd=registration.cwd,
        pid=registration.pid,
        target=render_target(registration.target),
        busSocketPath=registration.bus_socket_path,
        registrationGeneration=registration.registration_generation,
        protocol=render_protocol(registration.protocol),
        sessionGeneration=registration.session_generation,
        processBirthId=registration.process_birth_id,
    )


def _register(envelope: Register) -> Members:
    return present(
        kind=envelope.KIND,
        requestId=envelope.request_id,
        auth=envelope.auth,
        registration=_registration(envelope.registration),
    )


def _beat(envelope: Heartbeat | Disconnect) -> Members:
    return present(
        kind=envelope.KIND,
        requestId=envelope.request_id,
        auth=envelope.auth,
        instanceId=envelope.instance_id,
        registrationGeneration=envelope.registration_generation,
        sentAtMs=envelope.sent_at_ms,
    )


def _call_api(envelope: CallApi) -> Members:
    return present(
        kind=envelope.KIND,
        requestId=envelope.request_id,
        auth=envelope.auth,
        instanceId=envelope.instance_id,
        registrationGeneration=envelope.registration_generation,
        method=envelope.method,
        args=envelope.args,
        sentAtMs=envelope.sent_at_ms,
    )


def _resolve(envelope: ResolveAgentTarget) -> Members:
    selector = envelope.selector
    return present(
        kind=envelope.KIND,
        requestId=envelope.request_id,
        auth=envelope.auth,
        instanceId=envelope.instance_id,
        registrationGeneration=envelope.registration_generation,
        selector=present(chatId=selector.chat_id, threadId=selector.thread_id, threadName=selector.thread_name),
        sentAtMs=envelope.sent_at_ms,
    )


def _route(envelope: RouteAgentMessage) -> Members:
    message = envelope.message
    return present(
        kind=envelope.KIND,
        requestId=envelope.request_id,
        auth=envelope.auth,
        instanceId=envelope.instance_id,
        registrationGeneration=envelope.registration_generation,
        message=present(target=render_target(message.target), messageId=message.message_id, text=message.text),
        sentAtMs=envelope.sent_at_ms,
    )


def _delivery(delivery: Delivery) -> Members:
    return present(
        deliveryId=delivery.delivery_id,
        sourceUpdateId=delivery.source_update_id,
        recipientBindingKey=delivery.recipient_binding_key,
    )


def _forward(envelope: Forward, **carried: object) -> Members:
    return present(
        kind=envelope.KIND,
        requestId=envelope.request_id,
        auth=envelope.auth,
        recipientInstanceId=envelope.recipient_instance_id,
        recipientRegistrationGeneration=envelope.recipient_registration_generation,
        delivery=_delivery(envelope.delivery),
        **carried,
        sentAtMs=envelope.sent_at_ms,
    )


def _replace_target(envelope: ReplaceFollowerTarget) -> Members:
    return present(
        kind=envelope.KIND,
        requestId=envelope.request_id,
        auth=envelope.auth,
        recipientInstanceId=envelope.recipient_instance_id,
        recipientRegistrationGeneration=envelope.recipient_registration_generation,
        target=render_target(envelope.target),
        oldTarget=render_target(envelope.old_target),
        reason=envelope.reason,
        sentAtMs=envelope.sent_at_ms,
    )


def _offer(envelope: Offer, **donor: object) -> Members:
    return present(
        kind=envelope.KIND,
        requestId=envelope.request_id,
        auth=envelope.auth,
        **donor,
        recipientInstanceId=envelope.recipient_instance_id,
        recipientRegistrationGeneration=envelope.recipient_registration_generation,
        donorProcessId=envelope.donor_process_id,
        donorProcessBirthId=envelope.donor_process_birth_id,
        donorSessionGeneration=envelope.donor_session_generation,
        donorAcquisitionId=envelope.donor_acquisition_id,
        donorAcquiredAtMs=envelope.donor_acquired_at_ms,
        donorHandoffId=envelope.donor_handoff_id,
        handoffToken=envelope.handoff_token,
        payload=render_payload(envelope.payload),
        sentAtMs=envelope.sent_at_ms,
    )


def render_payload(payload: HandoffPayload) -> Members:
    """What is offered: how long it is as JSON decides whether it may be (`envelopes_handoff.PAYLOAD_LIMIT`)."""
    base = present(
        kind=payload.KIND,
        chatId=payload.chat_id,
        target=render_target(payload.target),
        transportStamp=_stamp(payload.transport_stamp),
        replyToMessageId=payload.reply_to_message_id,
        guestQueryId=payload.guest_query_id,
        queueOrder=payload.queue_order,
        queueLane=payload.queue_lane,
        laneOrder=payload.lane_order,
        statusSummary=payload.status_summary,
        admissionReceipts=[_receipt(receipt) for receipt in payload.admission_receipts],
    )
    if isinstance(payload, PromptPayload):
        return {**base, **_prompt(payload)}
    return {**base, "controlType": payload.control_type}


def _prompt(payload: PromptPayload) -> Members:
    return present(
        sourceMessageIds=payload.source_message_ids,
        queuedAttachments=[{"path": file.path, "fileName": file.file_name} for file in payload.queued_attachments],
        content=[_content(part) for part in payload.content],
        historyText=payload.history_text,
        priorityEmoji=payload.priority_emoji,
        reactionSuppressionEmoji=payload.reaction_suppression_emoji,
        voiceReplyPreferred=payload.voice_reply_preferred,
        voiceReplyRequired=payload.voice_reply_required,
    )


def _content(part: TextContent | ImageContent) -> Members:
    if isinstance(part, TextContent):
        return {"type": "text", "text": part.text}
    return {"type": "image", "data": part.data, "mimeType": part.mime_type}


def render_staged(staged: Staged) -> Members:
    """The result of an accepted offer."""
    owner = staged.queue_owner
    return {
        "status": "staged",
        "receiptId": staged.receipt_id,
        "sourceUpdateIds": staged.source_update_ids,
        "queueOwner": present(
            instanceId=owner.instance_id,
            processId=owner.process_id,
            processBirthId=owner.process_birth_id,
            sessionGeneration=owner.session_generation,
            acquisitionId=owner.acquisition_id,
            acquiredAtMs=owner.acquired_at_ms,
            handoffId=owner.handoff_id,
        ),
    }


def _stamp(stamp: TransportStamp | None) -> Members | None:
    return None if stamp is None else {"profile": stamp.profile, "generation": stamp.generation}


def _receipt(receipt: AdmissionReceipt) -> Members:
    return present(
        queueKind=receipt.queue_kind,
        receiptId=receipt.receipt_id,
        sourceUpdateIds=receipt.source_update_ids,
        journalBindingKey=receipt.journal_binding_key,
    )


def _tenure_status(envelope: TenureStatus) -> Members:
    return present(
        kind=envelope.KIND, requestId=envelope.request_id, auth=envelope.auth, instanceId=envelope.instance_id
    )


def _ack(envelope: Ack) -> Members:
    return present(
        kind=envelope.KIND,
        requestId=envelope.request_id,
        auth=envelope.auth,
        ok=envelope.ok,
        message=envelope.message,
        result=envelope.result,
        protocol=render_protocol(envelope.protocol),
        error=_error(envelope.error),
    )


def _error(error: AckError | None) -> Members | None:
    return None if error is None else present(code=error.code, method=error.method)
