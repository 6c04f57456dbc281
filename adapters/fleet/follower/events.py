"""A follower's steps, recorded under the names of `spec/FollowerSteps.tla` (DESIGN 8)."""

from __future__ import annotations

from typing import Final

from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.ports import Ports
from tenure.machines import follower_messages as own
from tenure.machines.chart import Step

MODULE: Final = "FollowerRegistration"

_ACTIONS: Final[dict[type[own.Happening], str]] = {
    own.Register: "Register",
    own.Answered: "HearAnswer",
    own.RegisterFailed: "Return",
    own.Tick: "Beat",
    own.BeatAnswered: "HearBeat",
    own.BeatFailed: "Return",
    own.Disconnect: "Disconnect",
    own.DisconnectAnswered: "HearGone",
    own.DisconnectFailed: "Return",
    own.Leave: "Leave",
    own.SessionChanged: "Session",
    own.Ask: "Ask",
    own.Deliver: "Deliver",
    own.ReplaceTarget: "Deliver",
}
"""A stop is a death, or a reload, of that instance: the environment's."""
_CALLS: Final[dict[type[own.Happening], str]] = {
    own.RegisterFailed: "register",
    own.BeatFailed: "beat",
    own.DisconnectFailed: "goodbye",
}


class FollowerEvents:
    """What one follower tells the recorder. Its node is the instance: ``PID-TICKS/INSTANCE``.

    `tenure` is the registration generation that the step is about; `args` name the leader that was asked (`lead`, its
    instance) and, for a call that returned without an answer, which `call`; `observed` is the follower after the step.
    """

    def __init__(self, ports: Ports, identity: InstanceIdentity) -> None:
        self._recorder = ports.recorder
        self._node = node(identity)

    def taken(
        self, message: own.Happening, lead: str | None, before: own.Memory, answer: Step[own.Memory, own.Output]
    ) -> None:
        """The machine took `message`."""
        if self._recorder is None or (action := _ACTIONS.get(type(message))) is None:
            return
        after = answer.data
        generation = getattr(message, "generation", None) or after.generation or before.generation
        args: dict[str, object] = {}
        if lead is not None:
            args["lead"] = lead
        if (call := _CALLS.get(type(message))) is not None:
            args["call"] = call
        if isinstance(message, own.Answered):
            args |= {"ok": message.ok, "held": message.held, "compatible": message.compatible}
        elif isinstance(message, own.BeatAnswered | own.DisconnectAnswered):
            args["ok"] = message.ok
        elif isinstance(message, own.Ask):
            args["bare"] = False
        observed: dict[str, object] = {
            "phase": answer.phase,
            "session": after.session,
            "generation": after.generation,
            "acknowledged": after.acknowledged,
            "beating": after.beating,
            "abandoned": after.abandoned,
            "own_key": after.own_key,
            "target": after.binding.target,
        }
        self._recorder.event(MODULE, action, self._node, 0, args, observed, generation)


def node(identity: InstanceIdentity) -> str:
    """The name of an instance in a recording."""
    process = identity.process
    return f"{process.pid}-{process.birth.ticks}/{identity.instance_id}"
