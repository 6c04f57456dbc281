"""The lease: its constants, when it is over, and what an entry proves to a reader (locks.md 1 and 5). Times in ms.

Between our own processes of one boot the monotonic stamp decides, so neither a step of the wall clock nor a laptop's
sleep makes a lease stale or immortal (hole K12). A foreign entry has only its heartbeat; one that comes from the
future is judged by how long the reader itself has seen it unchanged.
"""

from __future__ import annotations

from typing import Final

import attrs

from tenure.machines.entry import Entry
from tenure.machines.identity import Epoch, Process, Sighting, is_me, proven_dead, under_my_pid

STALE_HEARTBEAT_MS: Final = 8_000
"""A lease is over when its age exceeds this, strictly."""
OWNERSHIP_CHECK_MS: Final = 1_000
"""How often an owner looks whether it still is one."""
OWNERSHIP_REFRESH_MS: Final = 2_000
"""How often an owner renews."""
PROMOTION_GRACE_MS: Final = 2_500
"""How long a follower defers to a smaller slot."""
MAX_EPOCH: Final = 2**53 - 1
"""The highest integer that every peer reads exactly."""
DEFAULT_KEY: Final = "default"
"""The registry's key when no profile is active."""

INACTIVE: Final = "inactive"
ACTIVE_HERE: Final = "active-here"
ACTIVE_ELSEWHERE: Final = "active-elsewhere"
STALE: Final = "stale"


@attrs.frozen(cache_hash=True)
class Sight:
    """What an adapter saw of one key, all at once.

    `inside`: this runtime holds the file transaction. `readable`: what stands there is a JSON object, or nothing.
    `entry`: the entry of `key`, None for none. `seen`: the probe of the entry's pid. `unchanged_ms`: for how long this
    reader has seen this very entry, heartbeat included, by its own monotonic clock (0 if it never looked before).
    """

    inside: bool
    readable: bool
    key: str
    entry: Entry | None
    seen: Sighting
    wall_ms: int
    monotonic_ms: int
    unchanged_ms: int = 0


def stamped(entry: Entry, boot_id: str) -> bool:
    """Whether the entry carries a stamp of the monotonic clock of this boot.

    post: not __return__ or (entry.stamp_ms is not None and entry.birth is not None)
    post: not __return__ or entry.birth.boot_id == boot_id
    """
    return entry.stamp_ms is not None and entry.birth is not None and entry.birth.boot_id == boot_id


def passed(since_ms: int, now_ms: int, limit_ms: int) -> bool:
    """Whether more than `limit_ms` have gone by; exactly so many have not.

    post: __return__ == (since_ms + limit_ms < now_ms)
    """
    return now_ms - since_ms > limit_ms


def heartbeat_passed(entry: Entry, wall_ms: int, limit_ms: int) -> bool:
    """Whether the wall-clock heartbeat is older than the limit; an entry without one never grows old.

    pre: abs(wall_ms) <= 2**53 and (entry.heartbeat_ms is None or abs(entry.heartbeat_ms) <= 2**53)
    post: not __return__ or entry.heartbeat_ms is not None
    post: not __return__ or wall_ms - entry.heartbeat_ms > limit_ms
    post: __return__ or entry.heartbeat_ms is None or wall_ms - entry.heartbeat_ms <= limit_ms
    """
    return entry.heartbeat_ms is not None and wall_ms - entry.heartbeat_ms > limit_ms


def from_future(entry: Entry, wall_ms: int, limit_ms: int) -> bool:
    """Whether the heartbeat lies further ahead than any lease lasts: the clock was set back, or another's is ahead.

    pre: abs(wall_ms) <= 2**53 and (entry.heartbeat_ms is None or abs(entry.heartbeat_ms) <= 2**53)
    post: not __return__ or entry.heartbeat_ms is not None
    post: not __return__ or not heartbeat_passed(entry, wall_ms, 0 if limit_ms < 0 else limit_ms) or limit_ms < 0
    """
    return entry.heartbeat_ms is not None and entry.heartbeat_ms - wall_ms > limit_ms


def over(entry: Entry, sight: Sight, me: Process, limit_ms: int) -> bool:
    """Whether the lease of `entry` is over, the life of its owner apart.

    pre: limit_ms > 0
    pre: abs(sight.wall_ms) <= 2**53 and (entry.heartbeat_ms is None or abs(entry.heartbeat_ms) <= 2**53)
    post: not __return__ or entry.heartbeat_ms is not None or entry.stamp_ms is not None
    post: not (__return__ and stamped(entry, me.birth.boot_id) and sight.monotonic_ms - entry.stamp_ms <= limit_ms)
    post: __return__ or not (stamped(entry, me.birth.boot_id) and sight.monotonic_ms - entry.stamp_ms > limit_ms)
    """
    if stamped(entry, me.birth.boot_id):
        assert entry.stamp_ms is not None
        return passed(entry.stamp_ms, sight.monotonic_ms, limit_ms)
    if heartbeat_passed(entry, sight.wall_ms, limit_ms):
        return True
    return from_future(entry, sight.wall_ms, limit_ms) and sight.unchanged_ms > limit_ms


def classify(entry: Entry | None, sight: Sight, me: Process, limit_ms: int) -> str:
    """What `entry` is to me: INACTIVE, ACTIVE_HERE, ACTIVE_ELSEWHERE or STALE (locks.md 5).

    A proven death comes first, also of a process that had my pid (K2). My own process's lease is never stale to me:
    within a process the newer runtime takes over, whatever the time.

    pre: limit_ms > 0
    pre: abs(sight.wall_ms) <= 2**53
    pre: entry is None or entry.heartbeat_ms is None or abs(entry.heartbeat_ms) <= 2**53
    post: (__return__ == "inactive") == (entry is None)
    post: __return__ != "active-here" or under_my_pid(entry.pid, entry.birth, me)
    post: __return__ != "stale" or proven_dead(entry.birth, sight.seen, me) or over(entry, sight, me, limit_ms)
    post: __return__ in ("inactive", "stale") or not proven_dead(entry.birth, sight.seen, me)
    """
    if entry is None:
        return INACTIVE
    if proven_dead(entry.birth, sight.seen, me):
        return STALE
    if under_my_pid(entry.pid, entry.birth, me):
        return ACTIVE_HERE
    if over(entry, sight, me, limit_ms):
        return STALE
    return ACTIVE_ELSEWHERE


def supersedes(entry: Entry, me: Process, cwd: str | None, generation: int) -> bool:
    """Whether a runtime of this process with `cwd` and `generation` is the newer one of two (locks.md 7.1).

    post: not __return__ or is_me(entry.pid, entry.birth, me)
    post: not __return__ or entry.runtime_generation is None or generation > entry.runtime_generation
    post: not __return__ or entry.cwd is None or entry.cwd == cwd
    """
    return (
        is_me(entry.pid, entry.birth, me)
        and (entry.cwd is None or entry.cwd == cwd)
        and (entry.runtime_generation is None or generation > entry.runtime_generation)
    )


def next_epoch(high_water: int, entry_epoch: Epoch | None) -> int:
    """The epoch of a new tenure: above the mark, and above an integer epoch that stands in the entry (DESIGN 10).

    post: __return__ > high_water
    post: not isinstance(entry_epoch, int) or isinstance(entry_epoch, bool) or __return__ > entry_epoch
    """
    return max(high_water, ordered(entry_epoch)) + 1


def ordered(epoch: Epoch | None) -> int:
    """An integer epoch as it is; 0 for what has no order: none, a string, a fraction, a bool.

    post: __return__ == 0 or __return__ == epoch
    """
    return epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else 0


def admits(fence: int, epoch: int) -> bool:
    """Whether a resource that has taken an effect of tenure `fence` takes one of tenure `epoch`.

    post: not __return__ or epoch >= fence
    post: __return__ or epoch < fence
    """
    return epoch >= fence
