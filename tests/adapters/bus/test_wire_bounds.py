"""Where a line's members end (bus.md 0, a): lengths, counts, whose they are."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tenure.adapters.bus.messages.envelopes import (
    Ack,
    Disconnect,
    Envelope,
    Ground,
    Heartbeat,
    Register,
    Registration,
    ReplaceFollowerTarget,
    Request,
    TenureStatus,
    ground,
    identity,
)
from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.json_values import dump
from tenure.adapters.bus.messages.wire import Malformed, parse


def valid(kind: str, place: int) -> dict[str, Any]:
    """A valid line of the fixtures, as an object."""
    path = Path(__file__).parent / "fixtures" / f"{kind}.toml"
    found = json.loads(tomllib.loads(path.read_text(encoding="utf-8"))["valid"][place]["line"])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("envelope", "expected"),
    [
        (Register(request_id="r", registration=Registration(instance_id="i", connected_at_ms=1)), "i"),
        (Heartbeat(request_id="r", instance_id="i", sent_at_ms=1), "i"),
        (TenureStatus(request_id="r", instance_id="i"), "i"),
        (TenureStatus(request_id="r"), ""),
        (
            ReplaceFollowerTarget(request_id="r", recipient_instance_id="i", target=Target(7, 42), sent_at_ms=1),
            "i",
        ),
        (Ack(request_id="r", ok=True), "ack"),
    ],
)
def test_whose_request_it_is(envelope: Envelope, expected: str) -> None:
    """The sender's where it is named, else the recipient's; an offer names both."""
    assert expected == identity(envelope)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (
            Register(
                request_id="r",
                registration=Registration(instance_id="i", registration_generation="g", connected_at_ms=1),
            ),
            Ground("i", "g"),
        ),
        (Heartbeat(request_id="r", instance_id="i", registration_generation="g", sent_at_ms=1), Ground("i", "g")),
        (
            Disconnect(request_id="r", instance_id="i", registration_generation="g", sent_at_ms=1),
            Ground("i", "g", ended=True),
        ),
        (Heartbeat(request_id="r", instance_id="i", sent_at_ms=1), Ground("i", None)),
        (TenureStatus(request_id="r", instance_id="i"), None),
        (
            ReplaceFollowerTarget(
                request_id="r",
                recipient_instance_id="i",
                recipient_registration_generation="g",
                target=Target(7, 42),
                sent_at_ms=1,
            ),
            Ground("i", "g"),
        ),
    ],
)
def test_what_a_request_rests_on(request_: Request, expected: Ground | None) -> None:
    """The registration that came of it or that it names, sender's or recipient's; a goodbye, on its end."""
    assert expected == ground(request_)


@pytest.mark.parametrize("kind", ["follower", "leader"])
@pytest.mark.parametrize(
    ("member", "least", "most"),
    [
        ("handoffToken", 32, 256),
        ("donorProcessBirthId", 1, 256),
        ("donorAcquisitionId", 1, 256),
        ("donorHandoffId", 1, 256),
    ],
)
def test_lengths_in_an_offer(kind: str, member: str, least: int, most: int) -> None:
    """In UTF-16 units, both ends included."""
    offer = valid(f"{kind}.offerQueueHandoff", 0)

    def taken(text: str) -> bool:
        found = parse(dump({**offer, member: text}).encode())
        assert not isinstance(found, Malformed) or member == found.field
        return not isinstance(found, Malformed)

    assert [False, True, True, False] == [taken("x" * n) for n in (least - 1, least, most, most + 1)]
    assert [True, False] == [taken("🌲" * (most // 2)), taken("🌲" * (most // 2) + "x")]


def test_a_payload_of_exactly_the_limit() -> None:
    """8 MiB as the sender writes it; its own white space is not counted, what is unknown in it is."""
    offer = valid("leader.offerQueueHandoff", 0)
    offer["payload"]["historyText"] = ""
    offer["payload"]["historyText"] = "x" * (8 * 2**20 - len(dump(offer["payload"]).encode()))
    assert not isinstance(parse(json.dumps(offer, ensure_ascii=False, indent=1).encode()), Malformed)
    offer["payload"]["x"] = 0
    assert Malformed("payload", "is longer than 8388608 bytes") == parse(dump(offer).encode())


def test_the_number_of_receipts() -> None:
    """1 to 256."""
    offer = valid("leader.offerQueueHandoff", 1)
    offer["payload"]["admissionReceipts"] *= 256
    assert not isinstance(parse(dump(offer).encode()), Malformed)
    offer["payload"]["admissionReceipts"] += offer["payload"]["admissionReceipts"][:1]
    assert Malformed("payload.admissionReceipts", "are not 1 to 256") == parse(dump(offer).encode())
