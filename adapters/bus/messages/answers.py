"""What an asker reads in an acknowledgement's result. Whether it is `ok`, and from whom, has been judged before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.messages.envelopes_handoff import QueueOwner, Staged
from tenure.adapters.bus.messages.envelopes_shared import Place, Target
from tenure.adapters.bus.messages.fields import Fields, Malformed, Wrong
from tenure.adapters.bus.messages.fleet_view import FleetView
from tenure.adapters.bus.messages.fleet_view_json import read_fleet
from tenure.adapters.bus.messages.parsing_shared import target_or_none

T = TypeVar("T")


def place(ack: Ack) -> Place | Malformed:
    """What a registration got: the result of ``follower.register``. Slot and name may be absent."""

    def read(result: Fields) -> Place:
        return Place(
            target=_target(result, ack),
            slot=result.letter_or_none("slot"),
            thread_name=result.text_or_none("threadName"),
        )

    return _read(ack, read)


def eligible_slots(ack: Ack) -> tuple[str, ...]:
    """The roster in the result of ``follower.heartbeat``: letters A to Z, each once, in order. Whatever else is in
    it is left out; without one it is empty."""
    value = None if ack.result is None else ack.result.value
    slots = value.get("eligibleElectionSlots") if isinstance(value, dict) else None
    if not isinstance(slots, list):
        return ()
    return tuple(sorted({s for s in slots if isinstance(s, str) and len(s) == 1 and "A" <= s <= "Z"}))


def agent_target(ack: Ack) -> Target | Malformed:
    """A target with a thread: the result of ``follower.resolveAgentTarget``."""

    def read(result: Fields) -> Target:
        target = _target(result, ack)
        if target.thread_id is None:
            raise result.wrong("threadId", "is missing, or no integer")
        return target

    return _read(ack, read)


def receipt(ack: Ack) -> tuple[str, int] | Malformed:
    """Delivery id and source update id: the result of the forwards. It counts only where both are equal to what was
    sent."""
    return _read(ack, lambda result: (result.text("deliveryId"), result.integer("sourceUpdateId")))


def staged(ack: Ack) -> Staged | Malformed:
    """What the recipient of an offer says it has: the result of the two offers."""

    def read(result: Fields) -> Staged:
        if result.text("status") != "staged":
            raise result.wrong("status", "is not staged")
        owner = result.object("queueOwner")
        return Staged(
            receipt_id=result.some_text("receiptId"),
            source_update_ids=result.integers("sourceUpdateIds"),
            queue_owner=QueueOwner(
                instance_id=owner.some_text("instanceId"),
                process_id=owner.integer("processId", 1),
                process_birth_id=owner.some_text("processBirthId"),
                session_generation=owner.integer("sessionGeneration", 1),
                acquisition_id=owner.some_text("acquisitionId"),
                acquired_at_ms=owner.integer("acquiredAtMs", 0),
                handoff_id=owner.text_if_any("handoffId"),
            ),
        )

    return _read(ack, read)


def fleet(ack: Ack) -> FleetView | Malformed:
    """The fleet: the result of ``tenure.status``."""
    return _read(ack, read_fleet)


def _read(ack: Ack, read: Callable[[Fields], T]) -> T | Malformed:
    value = None if ack.result is None else ack.result.value
    if not isinstance(value, dict):
        return Malformed("result", "is not an object" if ack.result is not None else "is missing")
    try:
        return read(Fields(value, "result."))
    except Wrong as wrong:
        return Malformed(wrong.field, wrong.problem)


def _target(result: Fields, ack: Ack) -> Target:
    target = target_or_none(None if ack.result is None else ack.result.value)
    if target is None:
        raise result.wrong("chatId", "is missing, or no integer")
    return target
