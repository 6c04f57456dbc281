"""What a commit tells a recorder: the twin's action of each step, and what a look showed (DESIGN 8)."""

from __future__ import annotations

from typing import Final

from tenure.adapters.ports import Recorder
from tenure.machines.fenced_commit import Ask, Commit, Happening, Look
from tenure.machines.identity import Epoch, proven_dead
from tenure.machines.lease import Sight, over

MODULE: Final = "FencedCommit"
_ACTIONS: Final = {
    ("idle", "ask", "stale"): "AskStale",
    ("idle", "ask", "failed"): "AskInVain",
    ("entering", "look", "running"): "Run",
    ("entering", "look", "stale"): "FindStale",
    ("entering", "look", "failed"): "FindNothing",
    ("running", "ended", "ending"): "End",
    ("waiting", "interrupt", "failed"): "Cancel",
    ("entering", "interrupt", "failed"): "Cancel",
    ("ending", "grace_over", "ending"): "Kill",
    ("ending", "swept", "done"): "Leave",
}
"""The twin's actions where they are not called like the message."""


def record_step(
    recorder: Recorder, node: str, number: int, token: Epoch, taken: tuple[str, Happening, str], data: Commit
) -> None:
    """The step that was `taken` (phase before, message, phase after) in transaction `number`."""
    before, message, phase = taken
    action = _ACTIONS.get((before, message.event, phase), type(message).__name__)
    observed = {"phase": phase, **_seen(message.sight, data)} if isinstance(message, (Ask, Look)) else None
    recorder.event(MODULE, action, node, number, None, observed, token)


def _seen(sight: Sight, data: Commit) -> dict[str, object]:
    """What a read showed; no `id` where it showed no epoch."""
    if not sight.readable:
        return {"lease": "unreadable"}
    entry = sight.entry
    if entry is None or entry.leader_epoch is None:
        return {"lease": "none"}
    if proven_dead(entry.birth, sight.seen, data.me):
        return {"lease": "dead", "id": entry.leader_epoch}
    return {"lease": "passed" if over(entry, sight, data.me, data.stale_ms) else "fresh", "id": entry.leader_epoch}
