"""What a lease tells a recorder: one event for each step of its machine, with what the step rested on (DESIGN 8)."""

from __future__ import annotations

from typing import Final

from tenure.adapters.ports import Recorder
from tenure.machines.leader_messages import Happening, Landed, Outcome, Raised, Refresh, Runtime, Settle, Start
from tenure.machines.lease import Sight, passed, stamped

MODULE: Final = "LeaderElection"
_WRITES: Final = {Outcome.SUCCEEDED: "Write", Outcome.FAILED: "FailWrite", Outcome.UNKNOWN: "LoseWrite"}
_DECISIONS: Final = frozenset(
    {"Acquire", "Elect", "Force", "Supersede", "Resume", "Resolve", "Refresh", "Displaced", "Release", "Commit", "Look"}
)


def record(
    recorder: Recorder,
    node: str,
    number: int,
    message: Happening,
    sight: Sight | None,
    before: tuple[str, Runtime],
    after: tuple[str, Runtime],
) -> None:
    """The twin's action of the step that was just taken from `before` to `after`, by `node` in transaction `number`.

    A refresh that goes well is one event, its ``Write``: the rest follows from it, and this is done every two seconds
    (`tenure.adapters.trace.leader_election` says what may be left out).
    """
    (was, memory), (phase, data) = before, after
    if was == "renewing" and phase == "owner" and isinstance(message, Settle) and data.tenure is not None:
        recorder.event(MODULE, _WRITES[message.outcome], node, number, None, None, data.tenure.epoch)
        return
    observed: dict[str, object] = {"phase": phase}
    args: dict[str, object] | None = None
    match message:
        case Start(generation):
            action, args = "Start", {"key": data.key, "generation": generation}
        case Refresh():
            if phase == "renewing":
                return
            action = "Displaced"
        case Raised(durable):
            action = "Raise" if durable else "FailRaise"
        case Settle(outcome):
            action = _WRITES[outcome]
        case Landed():
            action = "Land"
        case _:
            action = type(message).__name__
    if sight is not None and action in _DECISIONS:
        entry = sight.entry
        observed["owner"] = None if entry is None else entry.instance_id or str(entry.pid)
        observed["id"] = None if entry is None else entry.leader_epoch
        me = data.me
        if entry is not None and entry.stamp_ms is not None and stamped(entry, me.process.birth.boot_id):
            observed["age"] = "passed" if passed(entry.stamp_ms, sight.monotonic_ms, me.stale_ms) else "fresh"
    tenure = data.tenure or memory.tenure
    recorder.event(MODULE, action, node, number, args, observed, None if tenure is None else tenure.epoch)
