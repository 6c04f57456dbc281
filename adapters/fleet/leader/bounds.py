"""What a registration may say at most, beyond its syntax: it is kept, published, and connected to."""

from __future__ import annotations

import os
from typing import Final

from tenure.adapters.bus.endpoints.paths import endpoint_path
from tenure.adapters.bus.messages.envelopes import Registration

ID_CHARACTERS: Final = 256
"""Of an instance, a generation, a birth."""
KEY_CHARACTERS: Final = 4_352
"""Of a profile key: a leader's has a whole path in it."""
NAME_CHARACTERS: Final = 256
PATH_BYTES: Final = 4_096


def implausible(registration: Registration, own_endpoint: str, own_instance: str) -> str:
    """What is wrong with it, in words; "" for nothing. `own_endpoint` and `own_instance` are the leader's: work that is
    sent there would come back as a request, and nobody else is this instance."""
    if not registration.instance_id:
        return "the registration names no instance"
    if registration.instance_id == own_instance:
        return "the registration names the leader's own instance"
    if registration.registration_generation == "":
        return "the registration names no generation"  # to the other system, an empty text is none
    bounded: tuple[tuple[str, str | None, int], ...] = (
        ("instanceId", registration.instance_id, ID_CHARACTERS),
        ("registrationGeneration", registration.registration_generation, ID_CHARACTERS),
        ("processBirthId", registration.process_birth_id, ID_CHARACTERS),
        ("previousInstanceId", registration.previous_instance_id, ID_CHARACTERS),
        ("profileKey", registration.profile_key, KEY_CHARACTERS),
        ("threadName", registration.thread_name, NAME_CHARACTERS),
    )
    for member, value, most in bounded:
        if value is not None and len(value) > most:
            return f"registration.{member} is longer than {most} characters"
    path = registration.bus_socket_path
    if path is None:
        return ""
    try:
        spelled = os.fsencode(path)
    except UnicodeEncodeError:
        return "registration.busSocketPath is no path"
    if not path.startswith("/") or b"\0" in spelled or len(spelled) > PATH_BYTES:
        return "registration.busSocketPath is no absolute path"
    if os.path.normpath(endpoint_path(path)) == os.path.normpath(own_endpoint):
        return "registration.busSocketPath is the leader's own"
    return ""
