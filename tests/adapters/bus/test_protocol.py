"""Two sides may work together, or may not, and why (bus.md a, PROTOCOL IDENTITY; I9)."""

from __future__ import annotations

import tomllib
from pathlib import Path

import attrs
import pytest

from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.messages.envelopes_handoff import FollowerOfferQueueHandoff, LeaderOfferQueueHandoff
from tenure.adapters.bus.messages.protocol import (
    CAPABILITIES_LIMIT,
    DURABLE_FOLLOWER_ADMISSION,
    QUEUE_HANDOFF,
    QUEUE_HANDOFF_AGAIN,
    TENURE_STATUS,
    Compatible,
    Incompatible,
    ProtocolIdentity,
    compatible,
    protocol_identity,
)
from tenure.adapters.bus.messages.wire import encode, fingerprint, parse
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.agreement import our_protocol

OURS = protocol_identity("tenure 0.1.0", [TENURE_STATUS, QUEUE_HANDOFF, DURABLE_FOLLOWER_ADMISSION])
THEIRS = ProtocolIdentity(1, "0.29.0", (DURABLE_FOLLOWER_ADMISSION,))


def test_they_may_where_version_and_admission_agree() -> None:
    """The build decides nothing, nor does a handoff that only one side can do, nor what is only ours."""
    assert Compatible() == compatible(OURS, THEIRS)
    assert Compatible() == compatible(THEIRS, OURS)


def test_nobody_works_with_who_says_nothing() -> None:
    """Absent, or malformed and so dropped: the same."""
    assert Incompatible("missing-identity") == compatible(OURS, None)


def test_another_version_is_another_protocol() -> None:
    """Whatever else it can."""
    assert Incompatible("version-mismatch") == compatible(OURS, ProtocolIdentity(2, "b", OURS.capabilities))


def test_durable_admission_is_required_by_who_advertises_it() -> None:
    """And by nobody else."""
    without = ProtocolIdentity(1, "b", (QUEUE_HANDOFF,))
    assert Incompatible("missing-capability", (DURABLE_FOLLOWER_ADMISSION,)) == compatible(OURS, without)
    assert Compatible() == compatible(without, OURS)
    assert Compatible() == compatible(without, without)


def test_a_refusal_says_why_in_one_line() -> None:
    """Of each code."""
    assert "the peer lacks durable-follower-admission-v1" == compatible(OURS, ProtocolIdentity(1, "b")).reason  # type: ignore[union-attr]
    assert "the peer speaks another protocol version" == Incompatible("version-mismatch").reason
    assert "the peer names no readable protocol identity" == Incompatible("missing-identity").reason


def test_ones_own_identity_is_canonical() -> None:
    """The build trimmed, each capability once, in order."""
    found = protocol_identity(" b ", ["b", "a", "b"])
    assert ProtocolIdentity(1, "b", ("a", "b")) == found
    assert found.has("a")
    assert not found.has("c")


@pytest.mark.parametrize(
    ("build", "capabilities"),
    [
        (" ", []),
        ("b" * 129, []),
        ("🌲" * 65, []),
        ("b", ["A"]),
        ("b", [""]),
        ("b", ["a" * 129]),
        ("b", ["a\n"]),
        ("b", [f"a{n}" for n in range(CAPABILITIES_LIMIT + 1)]),
    ],
)
def test_what_a_peer_would_drop_is_not_advertised(build: str, capabilities: list[str]) -> None:
    """It is an error here, in one line, instead of a silence there."""
    with pytest.raises(TenureError) as raised:
        protocol_identity(build, capabilities)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("build", "capabilities", "kept"),
    [
        ("b" * 128, (), True),
        ("b" * 129, (), False),
        ("🌲" * 64, (), True),
        ("🌲" * 64 + "b", (), False),
        ("b", tuple(f"a{n:02}" for n in range(32)), True),
        ("b", tuple(f"a{n:02}" for n in range(33)), False),
        ("b", ("a" * 128,), True),
        ("b", ("a" * 129,), False),
        ("b\x1f", (), True),
        ("b\ufeff", (), False),
        ("b\u2003", (), False),
    ],
)
def test_an_identity_beyond_its_bounds_is_dropped(build: str, capabilities: tuple[str, ...], kept: bool) -> None:
    """As if it were absent; what is blank is what JavaScript calls blank."""
    identity = ProtocolIdentity(1, build, capabilities)
    found = parse(encode(Ack(request_id="r", ok=True, protocol=identity)))
    assert isinstance(found, Ack)
    assert (identity if kept else None) == found.protocol
    if kept:
        assert identity == protocol_identity(build, capabilities)


def test_ours_takes_part_in_handoffs_of_both_kinds() -> None:
    """An offer that says by which handoff its item came is for who advertises the second of them (L6)."""
    assert {QUEUE_HANDOFF, QUEUE_HANDOFF_AGAIN} <= set(our_protocol().capabilities)
    assert ("queue-handoff-v1", "queue-handoff-v2") == (QUEUE_HANDOFF, QUEUE_HANDOFF_AGAIN)
    assert Compatible() == compatible(our_protocol(), THEIRS)


@pytest.mark.parametrize("kind", ["follower", "leader"])
def test_an_offer_without_a_donors_handoff_is_what_it_was(kind: str) -> None:
    """Byte for byte, to peers that know nothing of it; and they drop the member where somebody sends it after all."""
    found = parse(offer_line(kind))
    assert isinstance(found, FollowerOfferQueueHandoff | LeaderOfferQueueHandoff)
    assert found.donor_handoff_id is None
    assert offer_line(kind) + b"\n" == encode(found)
    again = encode(attrs.evolve(found, donor_handoff_id="handoff-1"))
    assert again.replace(b'"donorHandoffId":"handoff-1",', b"") == encode(found)
    assert fingerprint(found) != fingerprint(attrs.evolve(found, donor_handoff_id="handoff-1"))


def offer_line(kind: str) -> bytes:
    """The first valid line of its fixtures."""
    path = Path(__file__).parent / "fixtures" / f"{kind}.offerQueueHandoff.toml"
    line: str = tomllib.loads(path.read_text(encoding="utf-8"))["valid"][0]["line"]
    return line.encode()
