"""The one form in which two bodies of an update are compared, wherever they have come from (I16).

An update is journaled as it was polled, and arrives over the bus as the carrier of an envelope: between the two stand
another order of its members, other spellings of its numbers, and what no envelope carries. What is compared is what
both have: the update's id and the one member that a delivery of that kind carries, as the bus reads it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from tenure.adapters.bus.messages.envelopes import (
    ForwardCallback,
    ForwardEditedMessage,
    ForwardMessage,
    ForwardReaction,
)
from tenure.adapters.bus.messages.json_values import BadJson, JsonValue, load
from tenure.machines.admission_identity import SOURCE_FIELD

CARRIED: Final = {
    ForwardMessage.KIND: "message",
    ForwardEditedMessage.KIND: "edited_message",
    ForwardCallback.KIND: "callback_query",
    ForwardReaction.KIND: "message_reaction",
}
"""By the kind of a delivery: which member of the update its envelope carries."""


def same_body(left: str, right: str) -> bool:
    """Whether two JSON texts of one update are one value."""
    return left == right or normal(left) == normal(right)


def body_digest(raw: str, kind: str) -> str:
    """SHA-256 of the body of a delivery, in hex: equal where that is, whichever way it came."""
    return hashlib.sha256(normal(raw, kind).encode("utf-8", "surrogatepass")).hexdigest()


def normal(raw: str, kind: str = "") -> str:
    """The normal form of an update's JSON text, as a delivery of that kind carries it; "" and every kind that carries
    nothing: all of it. What the bus would not read, as what is nested too deep, stands for itself."""
    try:
        # A half character is as good as its escape.
        value = load(raw.encode("utf-8", "backslashreplace"))
    except BadJson:
        return raw
    member = CARRIED.get(kind)
    if member is not None and isinstance(value, dict):
        value = _carried(value, member)
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _carried(update: dict[str, JsonValue], member: str) -> dict[str, JsonValue]:
    found = {name: update[name] for name in ("update_id", member) if name in update}
    carrier = found.get(member)
    if isinstance(carrier, dict):
        found[member] = {name: value for name, value in carrier.items() if name != SOURCE_FIELD}
    return found
