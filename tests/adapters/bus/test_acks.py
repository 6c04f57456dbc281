"""What each acknowledgement of annex A says, and what its asker reads in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tenure.adapters.bus.messages import acks, answers
from tenure.adapters.bus.messages.envelopes import Ack, Delivery, Heartbeat
from tenure.adapters.bus.messages.envelopes_handoff import QueueOwner, Staged
from tenure.adapters.bus.messages.envelopes_shared import Place, Target
from tenure.adapters.bus.messages.json_values import Json, JsonValue
from tenure.adapters.bus.messages.protocol import Incompatible, ProtocolIdentity
from tenure.adapters.bus.messages.wire import LINE_LIMIT, Malformed, encode, parse
from tests.adapters.bus import wires

REQUEST = Heartbeat(request_id="1:2:9", auth="secret", instance_id="1:2", sent_at_ms=1)
OURS = ProtocolIdentity(1, "b", ("a",))
PROTOCOL = {"protocolVersion": 1, "runtimeBuild": "b", "capabilities": ["a"]}
DELIVERY = Delivery(delivery_id="d", source_update_id=7, recipient_binding_key="k")
OWNER = QueueOwner(
    instance_id="1:2",
    process_id=1,
    process_birth_id="1:start:5",
    session_generation=1,
    acquisition_id="6f0c",
    acquired_at_ms=0,
    handoff_id="handoff-1",
)
STAGED = Staged(receipt_id="r", source_update_ids=(7, 9), queue_owner=OWNER)


def said(ack: Ack) -> dict[str, object]:
    """The members beyond kind and request id; without words where it has them."""
    members = json.loads(encode(ack))
    assert ack == parse(encode(ack))
    assert "bus.ack" == members.pop("kind")
    assert "1:2:9" == members.pop("requestId")
    if not members["ok"]:
        assert members.pop("message")
    assert "secret" not in str(members)
    return members


@pytest.mark.parametrize(
    ("ack", "members"),
    [
        (acks.response_as_request(Ack(request_id="1:2:9", ok=True)), {"ok": False}),
        (acks.unauthorized(REQUEST), {"ok": False}),
        (acks.refused(REQUEST, "why"), {"ok": False}),
        (acks.not_handled(REQUEST), {"ok": False}),
        (acks.not_for_me(REQUEST), {"ok": False}),
        (acks.unknown_instance(REQUEST), {"ok": False}),
        (acks.stale_generation(REQUEST), {"ok": False}),
        (acks.failed(REQUEST), {"ok": False}),
        (
            acks.incompatible(REQUEST, OURS, Incompatible("version-mismatch")),
            {"ok": False, "protocol": PROTOCOL, "error": {"code": "incompatible-protocol"}},
        ),
        (acks.register_refused(REQUEST, OURS, "held"), {"ok": False, "protocol": PROTOCOL}),
        (
            acks.registered(REQUEST, OURS, Place(target=Target(0, 3), slot="B", thread_name="Birch")),
            {
                "ok": True,
                "result": {"chatId": 0, "threadId": 3, "slot": "B", "threadName": "Birch"},
                "protocol": PROTOCOL,
            },
        ),
        (
            acks.registered(REQUEST, OURS, Place(target=Target(7))),
            {"ok": True, "result": {"chatId": 7}, "protocol": PROTOCOL},
        ),
        (acks.roster(REQUEST, "CAC"), {"ok": True, "result": {"eligibleElectionSlots": ["A", "C"]}}),
        (acks.done(REQUEST), {"ok": True}),
        (acks.called(REQUEST, Json(None)), {"ok": True, "result": None}),
        (acks.called(REQUEST, None), {"ok": True}),
        (acks.answer_dropped(REQUEST), {"ok": False, "error": {"code": "commit-unknown"}}),
        (
            acks.commit_unknown(REQUEST, "sendMessage", "?"),
            {"ok": False, "error": {"code": "commit-unknown", "method": "sendMessage"}},
        ),
        (acks.resolved(REQUEST, Target(7, 42)), {"ok": True, "result": {"chatId": 7, "threadId": 42}}),
        (acks.received(REQUEST, DELIVERY), {"ok": True, "result": {"deliveryId": "d", "sourceUpdateId": 7}}),
        (
            acks.staged(REQUEST, STAGED),
            {
                "ok": True,
                "result": {
                    "status": "staged",
                    "receiptId": "r",
                    "sourceUpdateIds": [7, 9],
                    "queueOwner": {
                        "instanceId": "1:2",
                        "processId": 1,
                        "processBirthId": "1:start:5",
                        "sessionGeneration": 1,
                        "acquisitionId": "6f0c",
                        "acquiredAtMs": 0,
                        "handoffId": "handoff-1",
                    },
                },
            },
        ),
        (acks.collision(REQUEST), {"ok": False, "error": {"code": "request-id-collision"}}),
        (acks.overloaded(REQUEST), {"ok": False, "error": {"code": "ledger-overloaded"}}),
    ],
)
def test_what_is_said(ack: Ack, members: dict[str, object]) -> None:
    """The request's id, the secret never, and a word of explanation with every no."""
    assert members == said(ack)


def test_what_is_no_envelope_belongs_to_no_request() -> None:
    """Its answer is the same line whatever request it may have been; what it quotes cannot end the line."""
    answer = acks.invalid(Malformed("kind", "is \n\x1b[31m"))
    assert ("invalid", False) == (answer.request_id, answer.ok)
    assert answer.message is not None
    assert answer.message.isprintable()
    assert "invalid" == acks.line_too_long(LINE_LIMIT).request_id


def with_result(value: JsonValue) -> Ack:
    """A positive acknowledgement."""
    return Ack(request_id="r", ok=True, result=Json(value))


@given(wires.places)
def test_a_place_is_read_as_it_was_given(place: Place) -> None:
    """Flat."""
    assert place == answers.place(acks.registered(REQUEST, OURS, place))


def test_a_staged_item_is_read_as_it_was_told() -> None:
    """All of it; and nothing of what is malformed."""
    assert STAGED == answers.staged(acks.staged(REQUEST, STAGED))
    assert Malformed("result.status", "is not staged") == answers.staged(with_result({"status": "live"}))
    assert Malformed("result.queueOwner", "is missing") == answers.staged(with_result({"status": "staged"}))


@pytest.mark.parametrize(
    ("value", "slots"),
    [
        ({"eligibleElectionSlots": ["B", "A", "B", "a", "AB", "", 1, None, "É", "А"]}, ("A", "B")),
        ({"eligibleElectionSlots": "AB"}, ()),
        ({}, ()),
        (None, ()),
        ([], ()),
    ],
)
def test_a_roster_is_letters(value: JsonValue, slots: tuple[str, ...]) -> None:
    """Each once, in order; what is none is left out."""
    assert slots == answers.eligible_slots(with_result(value))
    assert () == answers.eligible_slots(Ack(request_id="r", ok=True))


@pytest.mark.parametrize(
    ("value", "malformed"),
    [
        (None, Malformed("result", "is not an object")),
        ({}, Malformed("result.chatId", "is missing, or no integer")),
        ({"chatId": "7"}, Malformed("result.chatId", "is missing, or no integer")),
        ({"chatId": 7}, Malformed("result.threadId", "is missing, or no integer")),
    ],
)
def test_a_target_that_is_none(value: JsonValue, malformed: Malformed) -> None:
    """It is said which member is wrong."""
    assert malformed == answers.agent_target(with_result(value))


def test_a_target_a_receipt_and_a_place_in_part() -> None:
    """Slot and name fall back separately: what is malformed is absent."""
    assert Target(7, 42) == answers.agent_target(acks.resolved(REQUEST, Target(7, 42)))
    assert ("d", 7) == answers.receipt(acks.received(REQUEST, DELIVERY))
    assert Malformed("result", "is missing") == answers.receipt(acks.done(REQUEST))
    assert Malformed("result.sourceUpdateId", "is not a safe integer") == answers.receipt(
        with_result({"deliveryId": "d", "sourceUpdateId": "7"})
    )
    assert Place(target=Target(7)) == answers.place(with_result({"chatId": 7, "slot": "b", "threadName": 1}))


def test_a_fleet_that_is_none() -> None:
    """It is said where."""
    assert Malformed("result.leader", "is missing") == answers.fleet(with_result({}))
