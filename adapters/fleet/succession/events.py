"""A member's steps of succession, recorded under the names of `spec/Succession.tla` (DESIGN 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tenure.adapters.fleet.follower.events import node
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.ports import Ports
from tenure.machines import succession_messages as own
from tenure.machines.chart import Step
from tenure.machines.follower_messages import NOTHING_BOUND

MODULE: Final = "Succession"

_ACTIONS: Final[dict[type[own.Happening], str]] = {
    own.Join: "Join",
    own.Lost: "Lose",
    own.Saw: "See",
    own.Heard: "Hear",
    own.Registered: "Answered",
    own.RegisterFailed: "NotAnswered",
    own.TimeUp: "TimeUp",
    own.Won: "Prepare",
    own.Started: "Lead",
    own.Denied: "Denied",
    own.ElectFailed: "ElectFails",
    own.Deposed: "WorkFails",
    own.SessionChanged: "ChangeSession",
    own.Stop: "Stop",
}
"""A refused registration is `NotAnswered` as well: to this machine it is the same. That a start failed is told as
`ElectFails` in phase starting. A look that changes nothing is refused by the machine, and is no step."""


class SuccessionEvents:
    """What one member tells the recorder. Its node is the instance: ``PID-TICKS/INSTANCE``.

    `observed` is the machine after the step (`phase`, `leader`, `endpoint`, `roster`, `session`, `deferred`, and the
    `binding` as thread, slot and name), and for a step that follows a look what the look showed: `lease`, the `owner`
    (null for nobody) and the number of the `published` endpoint. Owners and leaders are exact entries,
    ``INSTANCE#EPOCH``; numbers of endpoints are this member's own.
    """

    def __init__(self, ports: Ports, identity: InstanceIdentity, owner: Callable[[int], str | None]) -> None:
        """`owner` names the entry behind a number."""
        self._recorder = ports.recorder
        self._node = node(identity)
        self._owner = owner

    def taken(self, message: own.Happening, before: own.Memory, answer: Step[own.Memory, own.Output]) -> None:
        """The machine took `message`."""
        recorder = self._recorder
        if recorder is None:
            return
        after = answer.data
        args: dict[str, object] = {}
        match message:
            case own.Heard() if before == after:
                return
            case own.Heard(_, binding):
                args["cleared"] = binding == NOTHING_BOUND
            case own.Registered(leader) | own.RegisterFailed(leader):
                args["leader"] = self._named(leader)
            case own.SessionChanged(session):
                args["session"] = session
        bound = after.binding
        observed: dict[str, object] = {
            "phase": answer.phase,
            "leader": self._named(after.leader),
            "endpoint": after.endpoint,
            "roster": after.roster,
            "session": after.session,
            "deferred": after.deferred,
            "binding": [bound.target, bound.slot, bound.name],
        }
        if isinstance(message, own.Join | own.Lost | own.Saw | own.TimeUp):
            look = message.look
            observed |= {"lease": look.state, "owner": self._named(look.owner), "published": look.endpoint}
        recorder.event(MODULE, _ACTIONS[type(message)], self._node, 0, args, observed)

    def _named(self, number: int) -> str | None:
        return None if number == 0 else self._owner(number)
