"""What a registration may say: all of it is published, and read again by the next leader."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.adapters.bus.messages.envelopes import Registration
from tenure.adapters.fleet.leader.bounds import implausible

DOOR = "/run/bus.sock"


def said(**members: Any) -> str:
    fields = {"instance_id": "7:1", "connected_at_ms": 1, "registration_generation": "7:1:1"} | members
    return implausible(Registration(**fields), DOOR, "6:1")


@pytest.mark.parametrize(
    ("members", "wrong"),
    [
        ({"instance_id": ""}, "names no instance"),
        ({"registration_generation": ""}, "names no generation"),
        ({"instance_id": "6:1"}, "the leader's own instance"),
        ({"instance_id": "i" * 257}, "registration.instanceId is longer"),
        ({"registration_generation": "g" * 257}, "registration.registrationGeneration is longer"),
        ({"profile_key": "k" * 4353}, "registration.profileKey is longer"),
        ({"bus_socket_path": "bus.sock"}, "no absolute path"),
        ({"bus_socket_path": "/a\0"}, "no absolute path"),
        ({"bus_socket_path": "/\ud800"}, "is no path"),
        ({"bus_socket_path": "/run/x/../bus.sock"}, "is the leader's own"),
    ],
)
def test_what_is_refused(members: dict[str, Any], wrong: str) -> None:
    """Before anything is provisioned for it."""
    assert wrong in said(**members)


@pytest.mark.parametrize("members", [{}, {"registration_generation": None}, {"profile_key": ""}, {"thread_name": ""}])
def test_what_is_left_to_others(members: dict[str, Any]) -> None:
    """A generation that is absent is the machine's affair; an empty key is none."""
    assert said(**members) == ""
