"""Why an epoch is not that of a live lease, in words: which one is current, or what became of its owner."""

from __future__ import annotations

from tenure.machines.fenced_commit import Commit, same_epoch
from tenure.machines.identity import Epoch, proven_dead
from tenure.machines.lease import Sight, stamped


def why_stale(token: Epoch, sight: Sight, data: Commit) -> str:
    """Half a sentence for a person whose commit under `token` was refused by what `sight` shows."""
    entry, said = sight.entry, f"epoch {shown(token)}"
    if entry is None:
        return f"{said} is over, nobody owns {sight.key}"
    if entry.leader_epoch is None:
        return f"{said} is not current, pid {entry.pid} owns {sight.key} without an epoch"
    if not same_epoch(token, entry.leader_epoch):
        return f"{said} is not current, {sight.key} is at epoch {shown(entry.leader_epoch)} of pid {entry.pid}"
    if proven_dead(entry.birth, sight.seen, data.me):
        return f"{said} is the last one of {sight.key}, and its owner, pid {entry.pid}, is dead"
    passed = f"{said} is the last one of {sight.key}, and its lease has passed"
    if entry.stamp_ms is None or not stamped(entry, data.me.birth.boot_id):
        return f"{passed}: the heartbeat is old"
    return f"{passed}: not renewed for {(sight.monotonic_ms - entry.stamp_ms) / 1000:.1f} s"


def shown(epoch: Epoch) -> str:
    """A string in quotes, for the number 1 is not the string "1"; one line, whatever is in it."""
    return ascii(epoch) if isinstance(epoch, str) else str(epoch)
