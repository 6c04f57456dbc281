"""Who somebody is: a process by its birth, an owner by its five fields, and when a process is proven dead.

Pure functions of values; the adapter observes (locks.md 2.1 and 3.4, DESIGN 10). A pid alone names nobody: it is
used again after its process has died, also by oneself after a restart (holes K1, K2).
"""

from __future__ import annotations

from typing import Final

import attrs

Number = int | float
"""A JSON number. An integral one is always an int, as in JavaScript; a bool is none."""
Epoch = int | float | str
"""A leader epoch: ours are integers, those of the other system are strings; strings are compared, never ordered."""

RUNNING: Final = "running"
ZOMBIE: Final = "zombie"
GONE: Final = "gone"
UNKNOWN: Final = "unknown"
"""The probe could not tell. Proves nothing."""


@attrs.frozen
class Birth:
    """What tells a process from a later one with its pid: start ticks, the boot, and the pid namespace's inode."""

    ticks: int
    boot_id: str
    namespace: int


@attrs.frozen
class Process:
    """A process that has told us its birth."""

    pid: int
    birth: Birth


@attrs.frozen
class Sighting:
    """What the probe of a pid found just now: one of RUNNING, ZOMBIE, GONE, UNKNOWN, and the start ticks if known.

    A pid that cannot be one (not a positive integer) is sighted as UNKNOWN: implausible is not dead.
    """

    state: str
    ticks: int | None = None


@attrs.frozen
class Owner:
    """The identity of an owner (locks.md 2.1): heartbeat, socket and secret are no part of it; absent is absent."""

    pid: int
    cwd: str | None = None
    instance_id: str | None = None
    leader_epoch: Epoch | None = None
    runtime_generation: Number | None = None


def same_owner(left: Owner | None, right: Owner | None) -> bool:
    """Whether both are there and all five fields are equal. Nobody is never the same as anybody, nor as nobody.

    post: not __return__ or (left is not None and right is not None)
    post: not __return__ or left.pid == right.pid
    post: not __return__ or left.cwd == right.cwd
    post: not __return__ or left.instance_id == right.instance_id
    post: not __return__ or left.leader_epoch == right.leader_epoch
    post: not __return__ or left.runtime_generation == right.runtime_generation
    post: __return__ or left is None or left != right
    """
    if left is None or right is None:
        return False
    return (
        left.pid == right.pid
        and left.cwd == right.cwd
        and left.instance_id == right.instance_id
        and left.leader_epoch == right.leader_epoch
        and left.runtime_generation == right.runtime_generation
    )


def proven_dead(birth: Birth | None, seen: Sighting, me: Process) -> bool:
    """Whether the process that recorded `birth` (None: it did not) is dead for certain; `seen` sights its pid.

    Another boot proves it; another pid namespace hides it, so there a missing pid proves nothing (hole K14); a zombie
    is dead; a pid that is alive with other start ticks belongs to somebody else (K1, K2). Silence proves nothing.

    post: __return__ or seen.state not in ("gone", "zombie") or birth is not None
    post: __return__ or seen.state not in ("gone", "zombie") or birth.namespace != me.birth.namespace
    post: not __return__ or birth is not None or seen.state in ("gone", "zombie")
    post: not (__return__ and birth == me.birth and seen.state == "running" and seen.ticks == me.birth.ticks)
    post: not (__return__ and seen.state == "unknown" and birth is not None and birth.boot_id == me.birth.boot_id)
    post: __return__ or birth is None or birth.boot_id == me.birth.boot_id
    post: not __return__ or birth is None or birth.boot_id != me.birth.boot_id or birth.namespace == me.birth.namespace
    """
    if birth is None:
        return seen.state in (GONE, ZOMBIE)
    if birth.boot_id != me.birth.boot_id:
        return True
    if birth.namespace != me.birth.namespace:
        return False
    if seen.state in (GONE, ZOMBIE):
        return True
    return seen.state == RUNNING and seen.ticks is not None and seen.ticks != birth.ticks


def under_my_pid(pid: int, birth: Birth | None, me: Process) -> bool:
    """Whether a recorded process has, or had in this boot, the pid that is mine; a birth that is absent is not mine.

    I record my birth wherever I write, so what names my pid without one was written by somebody else.

    post: not __return__ or (birth is not None and pid == me.pid)
    post: not __return__ or birth.boot_id == me.birth.boot_id
    post: not __return__ or birth.namespace == me.birth.namespace
    """
    if birth is None:
        return False
    return pid == me.pid and birth.boot_id == me.birth.boot_id and birth.namespace == me.birth.namespace


def is_me(pid: int, birth: Birth | None, me: Process) -> bool:
    """Whether a recorded process is this very process.

    post: __return__ == (birth is not None and pid == me.pid and birth == me.birth)
    """
    return under_my_pid(pid, birth, me) and birth is not None and birth.ticks == me.birth.ticks


def next_generation(clock_ms: int, previous: int) -> int:
    """The generation of a runtime that starts: above every earlier one of its process, near the clock (locks.md 2.1).

    post: __return__ > previous
    post: __return__ >= clock_ms
    post: __return__ in (clock_ms, previous + 1)
    """
    return max(clock_ms, previous + 1)
