"""A leader's steps, recorded under the names of `spec/LeaderRoutes.tla` (DESIGN 8)."""

from __future__ import annotations

from typing import Final

from tenure.adapters.fleet.follower.events import MODULE, node
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.ports import Ports
from tenure.machines import routes_messages as own
from tenure.machines.chart import Refused, Step
from tenure.machines.follower_messages import Generation
from tenure.machines.identity import Epoch

_ANSWERED: Final[dict[type[own.Happening], str]] = {
    own.Register: "HearRegister",
    own.Heartbeat: "Refresh",
    own.Ask: "Perform",
    own.Disconnect: "HearGoodbye",
}
"""Requests: a refusal is a step as well, since the asker is told of it."""
_TAKEN: Final[dict[type[own.Happening], str]] = {
    own.Open: "Succeed",
    own.Provisioned: "Provisioned",
    own.ProvisionFailed: "ProvisionFails",
    own.Forward: "Forward",
    own.Cleaned: "Cleaned",
    own.CleanUpFailed: "CleanUpFails",
    own.Prune: "Prune",
    own.Close: "Close",
}


class LeaderEvents:
    """What one leader tells the recorder. Its node is its instance.

    `args.who` is the follower's instance, `tenure` the generation that the step is about; `observed.epoch` is the epoch
    under which the leader serves, `observed.entries` the routes after the step, instance by generation. `args.target`
    and `args.key` are what was carried, given or intended, `args.process` the process's word (`Witness`), `args.same`
    (absent where there are none) the instances that are of that process, whatever their word is, `args.intents` what a
    leader that opens found on the disk.
    """

    def __init__(self, ports: Ports, identity: InstanceIdentity) -> None:
        self._recorder = ports.recorder
        self._node = node(identity)

    def deleted(self, instance: str, generation: Generation, epoch: Epoch | None) -> None:
        """The port has deleted the thread of that registration."""
        if self._recorder is not None:
            self._recorder.event(MODULE, "Delete", self._node, 0, {"who": instance}, {"epoch": epoch}, generation)

    def told(
        self, message: own.Happening, answer: Step[own.Routes, own.Output] | Refused, before: own.Routes, phase: str
    ) -> None:
        """The machine was told `message` in `phase`, and answered."""
        if self._recorder is None:
            return
        taken = isinstance(answer, Step)
        action = _ANSWERED.get(type(message)) or (_TAKEN.get(type(message)) if taken else None)
        args: dict[str, object] = {"ok": taken}
        if isinstance(message, own.Reclaim):
            action = ("Resume" if message.intent in before.intents else "Bury") if taken else None
            args |= {"who": message.intent.instance, "key": message.intent.key, "target": message.intent.target}
            generation: object = message.intent.generation
        else:
            generation = getattr(message, "generation", None)
            if (who := getattr(message, "instance", None)) is not None:
                args["who"] = who
        if action is None:
            return
        if isinstance(message, own.Register):
            args |= {"again": False, "key": message.key, "target": message.binding.target, "process": message.process}
        elif isinstance(message, own.Provisioned):
            args["target"] = message.binding.target
        elif isinstance(message, own.Open):
            args["intents"] = [[i.instance, i.generation, i.key, i.target] for i in message.intents]
        if isinstance(message, own.Register | own.Provisioned) and message.same:
            args["same"] = sorted(message.same)
        if isinstance(answer, Refused):
            args["guards"] = list(answer.guards)
        after = answer.data if isinstance(answer, Step) else before
        observed: dict[str, object] = {
            "phase": answer.phase if isinstance(answer, Step) else phase,
            "epoch": after.epoch,
            "entries": {entry.instance: entry.generation for entry in after.entries},
            "targets": {entry.instance: entry.binding.target for entry in after.entries},
            "intents": [[intent.instance, intent.generation] for intent in after.intents],
        }
        self._recorder.event(MODULE, action, self._node, 0, args, observed, generation)
