"""The twin `RuntimeRecovery` instantiated from a trace: one agent directory, and every doctor that was seen at it.

A node is one healing, ``PROCESS/doctor-UUID``; its process, in the model, is its own, and is over with it. What its
events say: `observed.phase`, its machine's after the step; `observed.alive` and `observed.owned`, whether some owner is
not proven dead, and whether one of those holds a lease that is not over; `observed.damage`, what was seen damaged, of
guard, registry and state. All steps are recorded, those that move something after the rename, so that a killed doctor
may have done one more; but not what a doctor has nothing to do in, `Suspend` and `Release`.

What a doctor does is done under one guard, so that the order of the recording is the order of its steps; a look may be
of a little earlier. Owners do not record here, nor does what damages files: they are environment, that may do whatever
the model lets it do. The model has one owner that cannot die by itself; here it runs in a process that heals nothing,
`HOST`, and dies with that.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

import attrs

from tenure.adapters.trace.instance import (
    BUDGET,
    NOT_SAID,
    SEVERAL,
    Args,
    Binding,
    Hidden,
    Instance,
    Label,
    hidden_of,
)
from tenure.adapters.trace.lines import BadTrace, Event
from tenure.machines.runtime_recovery import GUARD, REGISTRY
from tenure.machines.runtime_recovery import STATE as THREADS
from tenure.models.runtime_recovery import IDLE, Config, RuntimeRecovery, State

HOST: Final = "the owner's process"
DOES: Final[Mapping[str, int]] = {
    "Begin": 1, "Commit": 1, "Withdraw": 2, "DamageRegistry": 13, "DamageState": 13, "DamageGuard": 13,
}  # fmt: skip
"""What the environment does, and how far-fetched that is. An owner that lives and whose lease is over is, as nothing
depends on it, one that is dead: that a pid is used again and a lease passes is not needed."""
OMITTED: Final[Mapping[str, Mapping[str, int]]] = {
    "suspending": {"Suspend": 1},
    "releasing": {"Release": 1, "ReleaseFails": 1},
}
LAST: Final[Mapping[str, Mapping[str, int]]] = {
    "clearing": {"MoveGuard": 2, "Secure": 3, "SecureFails": 3},
    "inspecting": {"Inspect": 2, "InspectBlocked": 2},
    "confirming": {"Confirm": 2, "ConfirmBlocked": 2},
    "moving": {"MoveRegistry": 2, "MoveState": 2, "Finish": 2},
}
"""By phase, what a killed doctor may have done last, whose record was lost with it."""
LOOKS: Final = frozenset({"Connect", "StartRefused", "StartFails", "GiveUp", "Look", "LookBlocked"})
AT_ONE_MOMENT: Final[Mapping[str, frozenset[str]]] = {
    "Inspect": frozenset({GUARD}), "InspectBlocked": frozenset({GUARD}),
    "Confirm": frozenset({REGISTRY, THREADS}), "ConfirmBlocked": frozenset({REGISTRY, THREADS}),
}  # fmt: skip
"""Looks under a guard, and what cannot have changed while they were taken."""


class RuntimeRecoveries(Instance[State]):
    """One agent directory, and every healing of it."""

    module: ClassVar[str] = "RuntimeRecovery"
    environment: ClassVar[frozenset[str]] = frozenset({*DOES, "ReusePid", "Expire", "Crash", "Start", "SuspendFails"})
    recycles: ClassVar[bool] = False
    reorders = False

    def __init__(self, doctors: Sequence[str], title: str) -> None:
        self.recovery = RuntimeRecovery(Config((*doctors, HOST), frozenset({HOST}), False, BUDGET))
        super().__init__(self.recovery, title)

    @classmethod
    def of(cls, events: Sequence[Event], title: str, pool: dict[Hashable, object]) -> RuntimeRecoveries:
        return cls(list(dict.fromkeys(event.node for event in events)), title)

    def initial(self) -> Iterable[State]:
        """A recording begins with what nobody recorded: all that the environment may have made of it before."""
        return (s for s in super().initial() if (s.registry.kind, s.state, s.guard) == ("missing", "good", "nobody"))

    def process_of(self, event: Event) -> str:
        return event.node

    def label(self, event: Event, binding: Binding) -> Label:
        observed = event.observed
        phase, damage = observed.get("phase", ""), observed.get("damage", [])
        if not isinstance(damage, list) or not all(isinstance(name, str) for name in damage):
            raise BadTrace(f"{event.place}: observed.damage is no list of strings")
        more: list[tuple[str, Hashable]] = [("owned", observed["owned"] is True)] if "owned" in observed else []
        if "damage" in observed:
            more.append(("damage", frozenset(damage)))
        return Label(
            event.node, event.action, (), NOT_SAID, NOT_SAID, phase if type(phase) is str else "?", tuple(more)
        )

    def agrees(self, before: State, after: State, label: Label, args: Args) -> bool:
        if label.phase and after.node[label.node].phase != label.phase:
            return False
        owned = before.registry.owner not in ("none", "ghost") and before.registry.fresh
        for what, value in label.more:
            if what == "owned" and value != owned:
                return False
            if what == "damage" and not self._is_damaged(before, label.action, value):
                return False
        return True

    def _is_damaged(self, state: State, action: str, said: Hashable) -> bool:
        assert isinstance(said, frozenset)
        kinds = {GUARD: state.guard, REGISTRY: state.registry.kind, THREADS: state.state}
        stands = frozenset(name for name, kind in kinds.items() if kind == "damaged")
        among = AT_ONE_MOMENT.get(action)
        return said <= stands if among is None else said & among == stands & among

    def hidden(self, state: State, label: Label, ended: frozenset[str]) -> Iterable[Hidden]:
        yield from hidden_of(OMITTED, state.node[label.node].phase, label.node)
        for action, cost in DOES.items():
            yield Hidden(cost, action, ())
        if state.registry.owner == "o" or state.owner != "out":
            yield Hidden(2, SEVERAL, (("Connect", (HOST,)), ("Crash", (HOST,))))
        for doctor in {state.guard, state.recovery} & ended:
            yield from hidden_of(LAST, state.node[doctor].phase, doctor)
            yield Hidden(2, "Crash", (doctor,))

    def follows(self, state: State, label: Label) -> tuple[str, ...]:
        return ()

    def reads(self, label: Label) -> bool:
        return label.action in LOOKS

    def graft(self, state: State, after: State, label: Label) -> State:
        return self.fresh(attrs.evolve(state, node=state.node.set(label.node, after.node[label.node])))

    def local(self, label: Label) -> bool:
        return label.action in ("Connect", "Suspend")

    def phase(self, state: State, node: str) -> str:
        return state.node[node].phase

    def shown(self, state: State) -> str:
        registry = state.registry
        owner = (
            f", owned by {registry.owner}{'' if registry.fresh else ' (expired)'}" if registry.owner != "none" else ""
        )
        busy = ", ".join(f"{d} {n.phase}" for d, n in state.node.items() if n != IDLE)
        return (
            f"registry {registry.kind}{owner}; thread state {state.state}; in the ownership guard: {state.guard}; "
            f"in the recovery guard: {state.recovery}; {busy or 'nobody heals'}"
        )
