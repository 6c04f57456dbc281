"""One entry of the owner registry, from and to its JSON value, field by field (locks.md 2.1).

An entry without a numeric pid is no entry. A wrong-typed optional field is dropped, not fatal. A bool is not a
number, an integral float is an integer (JavaScript has doubles), null is written for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import attrs

from tenure.machines.identity import Birth, Epoch, Number, Owner

IMPLAUSIBLE_PID: Final = 0
"""What a numeric pid that is no integer is read as: it is there, but no process can be proven dead by it."""


@attrs.frozen
class Entry:
    """An entry: who owns the key, since when, and how to reach it. Times are in ms.

    `heartbeat_ms` is wall clock; `stamp_ms` and `birth` are ours beyond the format (DESIGN 10): the monotonic clock of
    the boot in `birth`. Processes of the other system write neither, and keep them in entries that are not theirs.
    """

    pid: int
    cwd: str | None = None
    instance_id: str | None = None
    heartbeat_ms: Number | None = None
    leader_epoch: Epoch | None = None
    runtime_generation: Number | None = None
    bus_socket_path: str | None = None
    bus_secret: str | None = None
    birth: Birth | None = None
    stamp_ms: int | None = None

    @property
    def owner(self) -> Owner:
        """The identity that every comparison uses."""
        return Owner(self.pid, self.cwd, self.instance_id, self.leader_epoch, self.runtime_generation)


def number(value: object) -> Number | None:
    """`value` as a JSON number, an integral float as an int; None if it is none (bool, NaN and infinity included).

    post: __return__ is None or not isinstance(value, bool)
    post: __return__ is None or __return__ == value
    post: not isinstance(__return__, float) or not __return__.is_integer()
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() else value
    return value


def text(value: object) -> str | None:
    """`value` if it is a string.

    post: __return__ is None or __return__ == value
    post: (__return__ is None) == (not isinstance(value, str))
    """
    return value if isinstance(value, str) else None


def integer(value: object) -> int | None:
    """`value` as an integer; None if it is none.

    post: __return__ is None or (not isinstance(value, bool) and __return__ == value)
    """
    found = number(value)
    return found if isinstance(found, int) else None


def finite(value: Epoch | None) -> bool:
    """Whether JSON can spell it.

    post: __return__ == (not isinstance(value, float) or (value == value and abs(value) != float("inf")))
    """
    return not isinstance(value, float) or math.isfinite(value)


def parse_birth(value: object) -> Birth | None:
    """The birth of a process, or None where any part of it is missing: an incomplete birth proves nothing."""
    if not isinstance(value, Mapping):
        return None
    ticks, namespace = integer(value.get("ticks")), integer(value.get("pidNamespace"))
    boot_id = text(value.get("bootId"))
    if ticks is None or boot_id is None or namespace is None:
        return None
    return Birth(ticks, boot_id, namespace)


def parse_entry(value: object) -> Entry | None:
    """The entry that a registry's value is, or None where it has no numeric pid."""
    if not isinstance(value, Mapping):
        return None
    pid = number(value.get("pid"))
    if pid is None:
        return None
    epoch = value.get("leaderEpoch")
    return Entry(
        pid=pid if isinstance(pid, int) else IMPLAUSIBLE_PID,
        cwd=text(value.get("cwd")),
        instance_id=text(value.get("instanceId")),
        heartbeat_ms=number(value.get("heartbeatMs")),
        leader_epoch=epoch if isinstance(epoch, str) else number(epoch),
        runtime_generation=number(value.get("runtimeGeneration")),
        bus_socket_path=text(value.get("busSocketPath")),
        bus_secret=text(value.get("busSecret")),
        birth=parse_birth(value.get("processBirth")),
        stamp_ms=integer(value.get("monotonicMs")),
    )


def parse_pid(pid: int | float | bool | str | None) -> Entry | None:
    """`parse_entry` of an entry with nothing but a pid.

    post: (__return__ is None) == (number(pid) is None)
    post: not isinstance(pid, (bool, str)) or __return__ is None
    post: __return__ is None or __return__.pid == pid or __return__.pid == 0
    """
    return parse_entry({"pid": pid})


def render_entry(entry: Entry) -> dict[str, object]:
    """The JSON value of an entry: the fields of locks.md 2.1 in their order, then ours; nothing for what is absent."""
    birth = entry.birth
    fields: dict[str, object] = {
        "pid": entry.pid,
        "cwd": entry.cwd,
        "instanceId": entry.instance_id,
        "heartbeatMs": entry.heartbeat_ms,
        "leaderEpoch": entry.leader_epoch,
        "runtimeGeneration": entry.runtime_generation,
        "busSocketPath": entry.bus_socket_path,
        "busSecret": entry.bus_secret,
        "processBirth": None
        if birth is None
        else {"ticks": birth.ticks, "bootId": birth.boot_id, "pidNamespace": birth.namespace},
        "monotonicMs": entry.stamp_ms,
    }
    return {name: value for name, value in fields.items() if value is not None}


def reread(entry: Entry) -> Entry | None:
    """`entry` written and read again.

    pre: finite(entry.heartbeat_ms) and finite(entry.leader_epoch) and finite(entry.runtime_generation)
    post: __return__ == entry
    """
    return parse_entry(render_entry(entry))
