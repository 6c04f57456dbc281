"""Any envelope that parses, with the right secret, at a leader and at a follower: it is answered as that request, by no
fault, and the registration that stands is not disturbed by one that does not name it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.adapters.bus.endpoints.paths import endpoint_path, follower_path
from tenure.adapters.bus.messages.envelopes import Ack, Register, Request
from tenure.adapters.bus.messages.protocol import compatible
from tenure.adapters.bus.messages.wire import encode, parse
from tenure.adapters.fleet.agreement import our_protocol
from tests.adapters.bus.wires import by_kind, envelopes
from tests.adapters.fleet.fleet_room import House, joined, run

FAULTS = ("handler", "fault", "callback", "end", "port")


def told(house: House) -> list[tuple[str, str, object]]:
    return [note for note in house.notes.kept if note[1] in FAULTS]


def is_request(envelope: object) -> bool:
    return not isinstance(envelope, Ack)


def fitting(request: Request) -> Request:
    """A registration is one of our protocol, so that it gets as far as it can."""
    if not isinstance(request, Register):
        return request
    return attrs.evolve(request, registration=attrs.evolve(request.registration, protocol=our_protocol()))


@settings(max_examples=30)
@given(st.lists(envelopes.filter(is_request), min_size=5, max_size=15))
def test_any_request_is_answered(sent: list[Request]) -> None:
    """In whatever order; what is no envelope any more when it has our secret is none of these."""

    async def story() -> None:
        with tempfile.TemporaryDirectory(prefix="tenure-") as room:
            async with House(Path(room)) as house:
                chief = await house.led()
                hand = await joined(house, chief)
                path = endpoint_path(follower_path(house.directory, "default", "101:1"))
                for request in sent:
                    named = attrs.evolve(fitting(request), auth=chief.secret)
                    assert parse(encode(named)) == named
                    for where in (house.path, path):
                        ack = await house.raw(named, where)
                        assert ack.request_id == named.request_id
                assert told(house) == []
                assert chief.routes()["101:1"] == str(hand.follower.generation)
                assert hand.lost == []
                assert hand.taken == []

    run(story())


@settings(max_examples=20)
@given(st.lists(by_kind[Register], min_size=3, max_size=8))
def test_any_registration_is_decided(sent: list[Register]) -> None:
    """Accepted with a thread and a slot that nobody else has, or refused with our identity."""

    async def story() -> None:
        with tempfile.TemporaryDirectory(prefix="tenure-") as room:
            async with House(Path(room)) as house:
                chief = await house.led()
                for n, request in enumerate(sent):
                    named = attrs.evolve(fitting(request), auth=chief.secret, request_id=f"r:{n}")
                    ack = await house.raw(named)
                    assert compatible(our_protocol(), ack.protocol)
                    assert ack.protocol == our_protocol()
                followers = chief.leader.fleet_view().followers
                for what in ("instance_id", "profile", "target"):
                    seen = [getattr(follower, what) for follower in followers]
                    assert len(seen) == len(set(seen)), what
                slots = ["A", *(follower.slot for follower in followers if follower.slot is not None)]
                assert len(slots) == len(set(slots))
                assert told(house) == []

    run(story())
