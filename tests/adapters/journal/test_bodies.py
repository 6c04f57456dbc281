"""An update is one body, however it came: as it was polled, over the bus, or kept by who leads since (I16)."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.bus.messages.json_values import DEPTH_LIMIT, Json, plain
from tenure.adapters.bus.messages.wire import encode, parse
from tenure.adapters.fleet.leader.requests import Route
from tenure.adapters.journal.bodies import CARRIED, body_digest, normal, same_body
from tenure.adapters.journal.deliveries import Admitted, Arrival
from tenure.adapters.journal.forwards import Kept
from tenure.adapters.journal.updates import Incoming
from tenure.adapters.work.routing import KINDS, Whose, address, forward, received
from tenure.machines.admission_identity import SOURCE_FIELD, delivery_id
from tenure.machines.follower_messages import Binding
from tenure.machines.routes_messages import Entry
from tests.adapters.journal.journal_room import EPOCH, Room, everything

ROUTE = Route(Entry("2:x", "g", "B", "", Binding("-100/7"), 0), None)
MESSAGE: dict[str, Any] = {"message_id": 1, "chat": {"id": 5}, "text": "x"}


def over_the_bus(update: Json, update_id: int) -> tuple[str, str]:
    """The kind of its delivery, and the update as the instance that it is for makes it of the envelope."""
    place = address(update)
    assert place is not None
    sent = forward(
        place, update_id, delivery_id(place.kind, "B", update_id), Whose("B", ROUTE), request_id="r", sent_at_ms=1
    )
    arrived = parse(encode(attrs.evolve(sent, auth="a" * 32)))
    found = received(arrived)  # type: ignore[arg-type]
    assert found is not None
    return place.kind, found.text


@pytest.mark.parametrize(
    "raw",
    [
        {"update_id": 1, "message": MESSAGE},
        {"message": MESSAGE, "update_id": 1},
        {"update_id": 1, "message": MESSAGE, "remark": 1},
        {"update_id": 1, "message": {**MESSAGE, "group": 2**60 + 1}},
        {"update_id": 1, "message": {**MESSAGE, "a": 1.0, "b": 0.1, "c": 1e21, "d": -0.0}},
        {"update_id": 1, "message": {**MESSAGE, "2": 1, "1": 2}},
        {"update_id": 1, "message": {**MESSAGE, "text": "half \ud83d of one"}},
        {"update_id": 1, "message": {**MESSAGE, SOURCE_FIELD: 9}},
        {"update_id": 1, "edited_message": MESSAGE},
        {"update_id": 1, "callback_query": {"id": "1", "message": MESSAGE}},
        {"update_id": 1, "message_reaction": {"chat": {"id": 5}, "message_id": 1}},
    ],
)
def test_who_has_served_a_binding_and_leads_keeps_what_it_has_admitted(room: Room, raw: dict[str, Any]) -> None:
    """It was admitted over the bus, and its leader died before it heard so: the same receipt, and the update is
    delivered, however the two texts are spelled."""
    journal = room.started()
    text = json.dumps(raw)
    kind, carried = over_the_bus(Json(plain(raw)), 1)
    journal.append([Incoming(1, text, kind)], EPOCH, "i1")
    journal.forward(1, EPOCH, "B", "i1", kind=kind)
    admitted = journal.admit(Arrival(delivery_id(kind, "B", 1), kind, "B", 1, carried), "B", "i2")
    assert isinstance(admitted, Admitted)
    assert (1,) == journal.resume(EPOCH, "i2")
    assert Kept(attrs.evolve(admitted, again=True)) == journal.keep(1, EPOCH, "B", "i2", kind=kind)
    update = journal.item("1").update
    assert update is not None
    assert "delivered" == update.phase
    before = everything(room)
    again = journal.admit(Arrival(delivery_id(kind, "B", 1), kind, "B", 1, text), "B", "i2")
    assert attrs.evolve(admitted, again=True) == again
    assert before["deliveries"] == everything(room)["deliveries"]


def test_what_a_kind_carries_is_said_once_more_the_same() -> None:
    """Here, and where envelopes are made."""
    assert {kind: member for member, kind in KINDS.items()} == CARRIED


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(blacklist_categories=()), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    member=st.sampled_from(sorted(KINDS)),
    carrier=st.dictionaries(st.text(max_size=3), VALUES, max_size=4),
    others=st.dictionaries(st.sampled_from(["remark", "poll"]), VALUES, max_size=2),
    data=st.data(),
)
def test_the_bus_changes_no_body(member: Any, carrier: dict[str, Any], others: dict[str, Any], data: Any) -> None:
    """Whatever is in an update, and in whatever order: what arrives is what was polled."""
    update = {"update_id": 1, member: carrier, **others}
    polled = Json({name: update[name] for name in data.draw(st.permutations(sorted(update)))})
    kind, carried = over_the_bus(polled, 1)
    assert normal(carried, kind) == normal(polled.text, kind)
    assert body_digest(carried, kind) == body_digest(polled.text, kind)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ('{"a":1,"b":2}', '{"b": 2, "a": 1}', True),
        ('{"a":1}', '{"a":1.0}', True),
        ('{"a":1}', '{"a":true}', False),
        ('{"a":1}', '{"a":"1"}', False),
        ('{"a":1}', '{"a":1,"b":null}', False),
        ("[1,2]", "[2,1]", False),
        ("no json", "no json", True),
        ("no json", "no  json", False),
        ("[" * 2_000, "[" * 2_000 + "]", False),
    ],
)
def test_whether_two_texts_are_one_value(left: str, right: str, same: bool) -> None:
    """An object knows no order, and a number no spelling."""
    assert same is same_body(left, right)


def test_a_form_does_not_depend_on_how_deep_the_caller_is() -> None:
    """What is nested too deep for the bus stands for itself, everywhere."""
    deepest, deeper = (f"{'[' * depth} {']' * depth}" for depth in (DEPTH_LIMIT, DEPTH_LIMIT + 1))
    assert deepest.replace(" ", "") == normal(deepest)
    assert deeper == normal(deeper)
