"""The offers of a queued item to another instance, and what is offered (bus.md a, e).

The payload is checked as a whole when it is read: `tenure.adapters.bus.messages.parsing_handoff`.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import attrs

from tenure.adapters.bus.messages.envelopes_shared import Envelope, Target
from tenure.machines.identity import Number

PAYLOAD_LIMIT: Final = 8 * 2**20
"""Bytes of a payload, as compact JSON."""
RECEIPTS_LIMIT: Final = 256
TOKEN_LENGTHS: Final = (32, 256)
"""The shortest and the longest handoff token, in UTF-16 units."""
DONOR_ID_LIMIT: Final = 256
"""The longest birth, acquisition id and handoff id of a donor, in UTF-16 units."""

QueueKind = Literal["prompt", "control"]
QueueLane = Literal["control", "priority", "default"]
ControlType = Literal["status", "model"]


@attrs.frozen(kw_only=True)
class TransportStamp:
    """Under which transport the item was queued."""

    profile: str
    generation: str


@attrs.frozen(kw_only=True)
class AdmissionReceipt:
    """Which updates the item stands for: ids strictly ascending, none negative. `queue_kind` is the payload's."""

    queue_kind: QueueKind
    receipt_id: str
    source_update_ids: tuple[int, ...]
    journal_binding_key: str | None = None


@attrs.frozen(kw_only=True)
class _Payload:
    """What both kinds of items have; 1 to `RECEIPTS_LIMIT` receipts."""

    chat_id: int
    reply_to_message_id: int
    queue_order: int
    queue_lane: QueueLane
    lane_order: int
    status_summary: str
    admission_receipts: tuple[AdmissionReceipt, ...]
    target: Target | None = None
    transport_stamp: TransportStamp | None = None
    guest_query_id: str | None = None


@attrs.frozen(kw_only=True)
class ControlPayload(_Payload):
    """A command of the operator. Its lane is ``control``; what it does is rebuilt from `control_type`."""

    KIND: ClassVar[QueueKind] = "control"

    control_type: ControlType


@attrs.frozen(kw_only=True)
class Attachment:
    """A file beside a prompt."""

    path: str
    file_name: str


@attrs.frozen(kw_only=True)
class TextContent:
    """Text of a prompt."""

    text: str


@attrs.frozen(kw_only=True)
class ImageContent:
    """An image of a prompt, in base64."""

    data: str = attrs.field(repr=False)
    mime_type: str


@attrs.frozen(kw_only=True)
class PromptPayload(_Payload):
    """A turn that waits. Its lane is not ``control``."""

    KIND: ClassVar[QueueKind] = "prompt"

    source_message_ids: tuple[int, ...]
    queued_attachments: tuple[Attachment, ...]
    content: tuple[TextContent | ImageContent, ...]
    history_text: str
    priority_emoji: str | None = None
    reaction_suppression_emoji: str | None = None
    voice_reply_preferred: bool | None = None
    voice_reply_required: bool | None = None


HandoffPayload = ControlPayload | PromptPayload


@attrs.frozen(kw_only=True)
class QueueOwner:
    """Who has the right to execute an item (bus.md d, e). `handoff_id`: by which handoff it came."""

    instance_id: str
    process_id: int
    process_birth_id: str
    session_generation: int
    acquisition_id: str
    acquired_at_ms: int
    handoff_id: str | None = None


@attrs.frozen(kw_only=True)
class Staged:
    """The recipient's answer to an offer: it has accepted, and owns the receipt now."""

    receipt_id: str
    source_update_ids: tuple[int, ...]
    queue_owner: QueueOwner


@attrs.frozen(kw_only=True)
class _Offer(Envelope):
    """What both offers have. The token is no part of the repr.

    `donor_handoff_id`: by which handoff the donor got the item, absent where it took it itself. It is written only for
    who advertises `tenure.adapters.bus.messages.protocol.QUEUE_HANDOFF_AGAIN`."""

    recipient_instance_id: str
    recipient_registration_generation: str
    donor_process_id: int
    donor_process_birth_id: str
    donor_session_generation: int
    donor_acquisition_id: str
    donor_acquired_at_ms: int
    donor_handoff_id: str | None = None
    handoff_token: str = attrs.field(repr=False)
    payload: HandoffPayload
    sent_at_ms: Number


@attrs.frozen(kw_only=True)
class FollowerOfferQueueHandoff(_Offer):
    """A follower offers an item through the leader. The donor is `instance_id`."""

    KIND: ClassVar[str] = "follower.offerQueueHandoff"

    instance_id: str
    registration_generation: str


@attrs.frozen(kw_only=True)
class LeaderOfferQueueHandoff(_Offer):
    """A leader offers an item, its own or a follower's, to the recipient."""

    KIND: ClassVar[str] = "leader.offerQueueHandoff"

    donor_instance_id: str
