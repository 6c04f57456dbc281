"""What several kinds read in the same way."""

from __future__ import annotations

from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.fields import integer_of
from tenure.adapters.bus.messages.json_values import JsonValue


def target_or_none(value: JsonValue) -> Target | None:
    """A target: an integer ``chatId``, and a ``threadId`` that is dropped where it is no integer. None for what is
    none."""
    if not isinstance(value, dict):
        return None
    chat_id = integer_of(value.get("chatId"))
    return None if chat_id is None else Target(chat_id, integer_of(value.get("threadId")))
