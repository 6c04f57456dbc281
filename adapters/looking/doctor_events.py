"""What a doctor tells a recorder: one event for each step of its machine, with what the step rested on (DESIGN 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tenure.adapters.ports import Recorder
from tenure.machines.runtime_recovery import Confirm, Happening, Inspect, Look, ReleaseEnded, SuspendEnded

MODULE: Final = "RuntimeRecovery"
ACTIONS: Final[Mapping[tuple[str, str], str]] = {
    ("connect", "starting"): "Connect",
    ("start_refused", "idle"): "StartRefused",
    ("start_failed", "looking"): "StartFails",
    ("start_failed", "blocked"): "GiveUp",
    ("look", "suspending"): "Look",
    ("look", "blocked"): "LookBlocked",
    ("suspend_ended", "releasing"): "Suspend",
    ("enter", "inspecting"): "Enter",
    ("inspect", "clearing"): "Inspect",
    ("inspect", "blocked"): "InspectBlocked",
    ("move_guard", "clearing"): "MoveGuard",
    ("secure", "confirming"): "Secure",
    ("secure_failed", "blocked"): "SecureFails",
    ("confirm", "moving"): "Confirm",
    ("confirm", "blocked"): "ConfirmBlocked",
    ("move_registry", "moving"): "MoveRegistry",
    ("move_state", "moving"): "MoveState",
    ("finish", "starting"): "Finish",
    ("failed", "blocked"): "Fail",
}
"""The twin's action by the machine's event and the phase after it; a release is told apart by its answer."""


def action_of(message: Happening, phase: str) -> str:
    """The twin's action of a step that `message` caused, and that led to `phase`."""
    if isinstance(message, ReleaseEnded):
        return "Release" if message.released else "ReleaseFails"
    return ACTIONS[message.event, phase]


def record(recorder: Recorder, node: str, message: Happening, seen: frozenset[str], phase: str) -> None:
    """The step that was just taken by `node`; `seen` is the damage that a start threw at. No transaction is named, so
    that the recording has the time of each: doctors exclude each other by a guard whose transactions nobody counts."""
    if isinstance(message, (SuspendEnded, ReleaseEnded)):
        return  # there is nothing that a doctor suspends or releases
    observed: dict[str, object] = {"phase": phase}
    if seen:
        observed["damage"] = sorted(seen)
    if isinstance(message, (Look, Inspect, Confirm)):
        observed["alive"] = message.alive
        observed["owned"] = message.alive and not message.expired
    if isinstance(message, (Inspect, Confirm)):
        observed["damage"] = sorted(message.damage)
    recorder.event(MODULE, action_of(message, phase), node, 0, None, observed)
