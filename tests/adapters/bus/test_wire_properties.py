"""What holds of every envelope, and of every line (bus.md a)."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure.adapters.bus.messages import acks, answers
from tenure.adapters.bus.messages.envelopes import Envelope, Heartbeat, TenureStatus, identity, traffic_class
from tenure.adapters.bus.messages.fleet_view import FleetView
from tenure.adapters.bus.messages.json_values import JsonValue, dump, load
from tenure.adapters.bus.messages.wire import Malformed, encode, fingerprint, parse
from tests.adapters.bus import wires

KINDS = sorted(wires.by_kind, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_what_is_written_is_read(kind: type, data: st.DataObject) -> None:
    """parse(encode(x)) is x; the line is one line of JSON."""
    envelope = data.draw(wires.by_kind[kind])
    line = encode(envelope)
    assert envelope == parse(line)
    assert line.endswith(b"\n")
    assert b"\n" not in line[:-1]
    assert json.loads(line)["kind"] == envelope.KIND


@given(wires.envelopes, wires.envelopes)
def test_equal_fingerprints_are_equal_envelopes(one: Envelope, other: Envelope) -> None:
    """A fingerprint is the same where the envelopes are, and nowhere else."""
    assert (one == other) == (fingerprint(one) == fingerprint(other))
    assert fingerprint(one) == fingerprint(read(encode(one)))


@given(wires.envelopes, st.dictionaries(wires.texts, wires.json_values, max_size=3), st.randoms(use_true_random=False))
def test_unknown_members_and_order_do_not_count(envelope: Envelope, more: dict[str, JsonValue], random: object) -> None:
    """What the parser does not know reaches neither a handler nor a fingerprint; the order of members is nothing."""
    members = json.loads(encode(envelope))
    line = dump({**{f"x-{name}": value for name, value in more.items()}, **dict(reversed(members.items()))})
    assert envelope == parse(line.encode())
    assert fingerprint(envelope) == fingerprint(read(line.encode()))


@given(st.binary())
@example(b"")
@example(b'{"kind":"bus.ack"')
def test_no_bytes_make_it_raise(line: bytes) -> None:
    """An envelope or a Malformed, for whatever comes."""
    read_again(line)


@given(wires.json_values)
def test_no_json_makes_it_raise(value: JsonValue) -> None:
    """Neither does anything that is JSON."""
    read_again(dump(value).encode())


@given(wires.envelopes, st.data())
def test_no_mutilated_envelope_makes_it_raise(envelope: Envelope, data: st.DataObject) -> None:
    """An envelope with any of its members, at any depth, replaced or gone: and if it is read, it is read again."""
    value = json.loads(encode(envelope))
    place: object = value
    while True:
        if isinstance(place, dict) and place:
            key: object = data.draw(st.sampled_from(sorted(place)))
        elif isinstance(place, list) and place:
            key = data.draw(st.integers(0, len(place) - 1))
        else:
            break
        inner = place[key]  # type: ignore[index]
        if isinstance(inner, dict | list) and data.draw(st.booleans()):
            place = inner
            continue
        if data.draw(st.booleans()):
            place[key] = data.draw(wires.json_values)  # type: ignore[index]
        else:
            del place[key]  # type: ignore[attr-defined]
        break
    read_again(dump(value).encode())


@given(wires.envelopes)
def test_everybody_has_an_identity_and_a_class(envelope: Envelope) -> None:
    """By which a ledger and a server know it."""
    assert isinstance(identity(envelope), str)
    expected = {"follower.register": "bootstrap", "bus.ack": "response", "tenure.status": "looking"}
    assert expected.get(envelope.KIND, "generation-fenced") == traffic_class(envelope)


@given(wires.fleets)
def test_a_fleet_is_read_as_it_was_told(fleet: FleetView) -> None:
    """Also through the wire."""
    answer = parse(encode(acks.fleet(TenureStatus(request_id="r"), fleet)))
    assert not isinstance(answer, Malformed)
    assert fleet == answers.fleet(answer)  # type: ignore[arg-type]


@given(st.text(wires.characters, max_size=40))
def test_strings_are_spelled_so_that_they_come_back(text: str) -> None:
    """Half characters too; two halves that meet are the character that they make."""
    line = dump(text)
    assert line.encode() == dump(load(line.encode())).encode()
    whole = wires.PAIRED.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    assert whole == load(line.encode())


@given(wires.numbers)
def test_numbers_are_doubles(number: float) -> None:
    """What is written is the same double, and an integral one is an int."""
    found = load(dump(number).encode())
    assert float(number) == found
    assert isinstance(found, int) == float(number).is_integer()


def read(line: bytes) -> Envelope:
    """The envelope that it has to be."""
    envelope = parse(line)
    assert not isinstance(envelope, Malformed), envelope.reason
    return envelope


def read_again(line: bytes) -> None:
    """Parse; what is an envelope is the same when it is written and parsed again."""
    found = parse(line)
    if isinstance(found, Malformed):
        assert found.field
        assert found.problem
    else:
        assert found == parse(encode(found))


def test_a_heartbeat_without_generation_has_none() -> None:
    """And not an empty one: absent is absent."""
    heartbeat = Heartbeat(request_id="r", instance_id="i", sent_at_ms=1)
    assert b"registrationGeneration" not in encode(heartbeat)


def test_who_has_no_stack_gets_an_answer() -> None:
    """Not a RecursionError, from however deep it is asked."""
    line = encode(Heartbeat(request_id="r", instance_id="i", sent_at_ms=1))
    found: list[Envelope | Malformed] = []

    def deeper() -> None:
        with suppress(RecursionError):
            deeper()
        with suppress(RecursionError):
            if len(found) < 50:
                asked.append(1)
                found.append(parse(line))

    asked: list[int] = []
    deeper()
    assert len(asked) == len(found) == 50
    assert "line cannot be read: the stack is used up here" in {f.reason for f in found if isinstance(f, Malformed)}
    assert isinstance(found[-1], Heartbeat)
