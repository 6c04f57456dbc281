"""What is offered, made of a receipt's row, and in whose journal the row is (bus.md a, HANDOFF PAYLOAD; d, RECEIPT).

An instance of ours takes nothing of a payload but the receipt: the row, with the updates as they were polled, is in the
journal that both share. The rest is written for the eyes of the other system, whose processes refuse an offer that
lacks it.
"""

from __future__ import annotations

import os
from typing import Final

import attrs

from tenure.adapters.bus.messages.envelopes_handoff import (
    PAYLOAD_LIMIT,
    AdmissionReceipt,
    Attachment,
    ControlPayload,
    ControlType,
    HandoffPayload,
    ImageContent,
    PromptPayload,
    TextContent,
)
from tenure.adapters.bus.messages.json_values import Json, JsonValue, dump, dump_bytes
from tenure.adapters.bus.messages.rendering import render_payload
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.places import wire_target
from tenure.adapters.journal.identity import BotIdentity
from tenure.adapters.work.routing import address

SUMMARY: Final = 80
"""Characters of an item's summary."""
_CONTROLS: Final[dict[str, ControlType]] = {"/status": "status", "/model": "model"}


@attrs.frozen
class Parcel:
    """A receipt and the updates that it stands for, as they were polled, ascending."""

    receipt_id: str
    kind: str
    updates: tuple[Json, ...] = attrs.field(repr=False)

    @property
    def update_ids(self) -> tuple[int, ...]:
        """Their ids. Raises TenureError for an update without one."""
        return tuple(_id(update, self.receipt_id) for update in self.updates)


def journal_key(path: str, profile: str, bot: BotIdentity | None) -> str:
    """journalBindingKey: which journal, of which bot, a receipt is in. The same text for every process that has the
    same file open."""
    whose: dict[str, JsonValue] = {}
    if bot is not None:
        whose = {"botId": bot.bot_id} if bot.bot_id is not None else {"tokenSha256": bot.token_sha256}
    scope = dump({"version": 1, "profile": profile, "bot": whose})
    return dump({"version": 1, "path": os.path.realpath(path), "receiptScope": scope})


def payload_of(parcel: Parcel, journal: str) -> HandoffPayload:
    """What is offered of `parcel`, whose row is in the journal `journal`. Raises TenureError for what cannot be
    offered, as when it is longer than `PAYLOAD_LIMIT` bytes: then the item stays where it is (F20)."""
    found = _made(parcel, journal)
    size = len(dump_bytes(render_payload(found)))
    if size > PAYLOAD_LIMIT:
        raise TenureError(
            f"{parcel.receipt_id}: {size} bytes are more than the {PAYLOAD_LIMIT} of an offer; it stays where it is"
        )
    return found


def receipt_in(payload: HandoffPayload) -> AdmissionReceipt:
    """The one receipt that is offered. Raises TenureError for another number of them: an item that was folded from
    several receipts never moves (annex G)."""
    if len(payload.admission_receipts) != 1:
        raise TenureError(f"{len(payload.admission_receipts)} receipts in one item; only an item of one receipt moves")
    return payload.admission_receipts[0]


def _made(parcel: Parcel, journal: str) -> HandoffPayload:
    ids = parcel.update_ids
    if not ids:
        raise TenureError(f"{parcel.receipt_id}: it stands for no update; there is nothing to offer")
    texts = [_text(update) for update in parcel.updates]
    places = [address(update) for update in parcel.updates]
    named = [place.message for place in places if place is not None and place.message is not None]
    target = next((place.target for place in places if place is not None and place.target is not None), None)
    chat = named[0][0] if named else 0
    text = "\n\n".join(text for text in texts if text)
    receipt = AdmissionReceipt(
        queue_kind="control" if parcel.kind == "control" else "prompt",
        receipt_id=parcel.receipt_id,
        source_update_ids=ids,
        journal_binding_key=journal,
    )
    if parcel.kind == "control":
        control = _CONTROLS.get(text.partition(" ")[0].partition("@")[0])
        if control is None:
            raise TenureError(f"{parcel.receipt_id}: a control that is neither /status nor /model cannot be offered")
        return ControlPayload(
            chat_id=chat,
            target=wire_target(target),
            reply_to_message_id=named[-1][1] if named else 0,
            queue_order=ids[0],
            queue_lane="control",
            lane_order=ids[0],
            status_summary=text[:SUMMARY],
            admission_receipts=(receipt,),
            control_type=control,
        )
    content: tuple[TextContent | ImageContent, ...] = (TextContent(text=text),) if text else ()
    attachments: tuple[Attachment, ...] = ()
    return PromptPayload(
        chat_id=chat,
        target=wire_target(target),
        reply_to_message_id=named[-1][1] if named else 0,
        queue_order=ids[0],
        queue_lane="default",
        lane_order=ids[0],
        status_summary=text[:SUMMARY],
        admission_receipts=(receipt,),
        source_message_ids=tuple(message for _, message in named),
        queued_attachments=attachments,
        content=content,
        history_text=text,
    )


def _id(update: Json, receipt: str) -> int:
    value = update.value
    found = value.get("update_id") if isinstance(value, dict) else None
    if not isinstance(found, int) or isinstance(found, bool):
        raise TenureError(f"{receipt}: one of its updates has no update_id; the journal was changed by hand")
    return found


def _text(update: Json) -> str:
    """What a person wrote, if anything."""
    found = address(update)
    carrier = None if found is None else found.carrier.value
    if not isinstance(carrier, dict):
        return ""
    return next((text for name in ("text", "caption", "data") if isinstance(text := carrier.get(name), str)), "")
