"""Which delivery, and which receipt: ids that are the same whenever, and by whomever, they are computed (bus.md c, d).

A delivery is an update for one binding. Its id names neither an instance nor a generation, so that whoever forwards it
again, to whoever serves the binding by then, forwards the same delivery (I14). A receipt is the right to execute one or
several updates of one queue; to admit them again after a recovery yields the same receipt.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from tenure.machines.compact_json import digest

VERSION: Final = 1
DELIVERY_PREFIX: Final = "telegram-follower-v1-"
POSITION_FIELD: Final = "pi_telegram_forward_comment_batch_position"
"""Where an update came in its batch, as the other system writes it into an admitted update. It is no part of what two
updates are compared by: a leader that starts again computes another one (I16, L8)."""
SOURCE_FIELD: Final = "pi_telegram_source_update_id"
"""The update id that a leader writes into the message, callback query or reaction that it forwards."""

Queue = Literal["prompt", "control"]
"""What a receipt's item is to the host: text for its agent, or a command for itself."""


def delivery_id(kind: str, binding: str, update_id: int) -> str:
    """The id of an update for a binding. `kind` is that of the envelope that carries it, so that a message and its
    edited form are two deliveries; `binding` is the recipient's stable profile key."""
    found = digest({"version": VERSION, "kind": kind, "recipientBindingKey": binding, "sourceUpdateId": update_id})
    return DELIVERY_PREFIX + found


def receipt_id(kind: Queue, scope: str, update_ids: Iterable[int]) -> str:
    """The id of the right to execute these updates; their order and repetitions say nothing. `scope` is whose journal
    it is, as one string.

    Raises ValueError where there is no update: a receipt for nothing is none.
    """
    updates = sorted(set(update_ids))
    if not updates:
        raise ValueError("a receipt needs at least one update")
    return f"telegram-{kind}-v1-" + digest({"scope": scope, "queueKind": kind, "sourceUpdateIds": updates})
