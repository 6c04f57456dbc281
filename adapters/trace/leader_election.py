"""The twin `LeaderElection` instantiated from a trace.

A node is a runtime, ``PROCESS/INSTANCE``. What its events say:

* `args.key` of ``Start``: its key (``default`` where no start was recorded); of ``Switch``: the new one;
* `tenure`: its epoch, from ``Mint`` on;
* `observed.owner`, `observed.id`: the instance and the epoch in the entry that it decided on, null for none;
* `observed.phase`: its machine's phase after the step.

What writes, and every decision to acquire, release or commit, is always recorded. What follows from it may be left
out: entering and leaving, a refresh before its ``Write``, raising the mark, looks. An owner that is no runtime of the
trace is a stranger, who does not record: for each key the model has two, since one may replace the other. Time is not
in a trace: that a lease has passed, or an owner paused, is believed where it is needed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

import attrs

from tenure.adapters.trace.instance import (
    BUDGET,
    NOT_SAID,
    SEVERAL,
    UNBOUND,
    Args,
    Binding,
    Hidden,
    Instance,
    Label,
    bound,
    hidden_of,
    said,
)
from tenure.adapters.trace.lines import BadTrace, Event
from tenure.models.leader_election import FREE, NO_TENURE, NOBODY, SETTLED, Config, LeaderElection, State
from tenure.models.world import Action, FrozenMap

DEFAULT: Final = "default"
CAUSES: Final = frozenset(["crash", "pause", "force", "resume", "switch", "tear", "release", "write", "clock"])

OMITTED: Final[Mapping[str, Mapping[str, int]]] = {
    "off": {"Start": 1},
    "idle": {"Look": 2},
    "owner": {"Refresh": 1, "Look": 3},
    "doubtful": {"Resolve": 1},
    "minting": {"Mint": 1, "Abandon": 6},
    "raising": {"Raise": 1, "FailRaise": 6},
}
LOST: Final[Mapping[str, Mapping[str, int]]] = {
    **OMITTED,
    "idle": {"Look": 2, "Acquire": 3, "Elect": 3, "Force": 4, "Supersede": 3},
    "owner": {"Refresh": 1, "Look": 3, "Release": 3, "Commit": 3, "Displaced": 3},
    "placing": {"Write": 2, "FailWrite": 6},
    "renewing": {"Write": 2, "FailWrite": 6},
    "deleting": {"Write": 2, "FailWrite": 6},
    "committing": {"Land": 2},
}
"""By phase, what a process may have done last, whose record was lost with it. What a ``Resume`` may take, ``Acquire``
or ``Supersede`` may take as well."""
TAKING: Final = frozenset({"Acquire", "Elect", "Resume"})
"""What may rest on a lease that has passed: whether it had, by the clock that all processes of a boot share, is said
in `observed.age`."""
ALONE: Final = frozenset({"Look", "Start"})
"""What a runtime may do outside of transactions that is nothing to anybody else."""
LEAVE: Final = ("Leave",)
MOVED: Final = "MoveRegistry"
"""What a doctor records in `RuntimeRecovery` when it has taken the registry away, and all entries with it. The model
does not have that (`Mend` puts back what stood there): here it is one more step of the environment, taken where it was
recorded, or where the doctor that took it may have been killed before it could record it."""


class LeaderElections(Instance[State]):
    """One registry, and every runtime that was seen at it."""

    module: ClassVar[str] = "LeaderElection"
    parameters: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "FailRaise": ("landed",),
        "LoseWrite": ("landed",),
        "Switch": ("key",),
    }
    environment: ClassVar[frozenset[str]] = frozenset(
        ["Crash", "Pass", "Age", "SetClock", "ForeignTakes", "ForeignDies", "Tear", "Mend", "Arrive"]
    )
    recycles: ClassVar[bool] = False
    exclusive: ClassVar[bool] = True

    def __init__(self, runtimes: Mapping[str, tuple[str, str]], keys: Sequence[str], title: str) -> None:
        self.strangers_of = {key: (f"stranger {key}", f"other stranger {key}") for key in keys}
        self.strangers = {s: (s, key) for key, names in self.strangers_of.items() for s in names}
        self.config = Config({**runtimes, **self.strangers}, tuple(keys), CAUSES, BUDGET, 2**53 - 1)
        self.election = LeaderElection(self.config)
        super().__init__(self.election, title)
        self.actions[MOVED] = Action(MOVED, self._moved)
        self.named: dict[str, str] = {}
        self.healed = False
        """Doctors took the registry away."""
        for runtime in runtimes:
            self.named[runtime.partition("@")[0].partition("/")[2] or runtime] = runtime

    @classmethod
    def of(cls, events: Sequence[Event], title: str, pool: dict[Hashable, object]) -> LeaderElections:
        key_of: dict[str, str] = {}
        processes: dict[str, str] = {}
        keys: set[str] = set()
        for event in events:
            if event.action == MOVED:
                continue
            processes[event.node] = event.process
            if event.action in ("Start", "Switch"):
                key = event.args.get("key", DEFAULT)
                if type(key) is not str:
                    raise BadTrace(f"{event.place}: args.key is not a string")
                keys.add(key)
                if event.action == "Start":
                    key_of.setdefault(event.node, key)
        runtimes = {node: (process, key_of.get(node, DEFAULT)) for node, process in processes.items()}
        found = cls(runtimes, sorted(keys | {key for _, key in runtimes.values()}), title)
        found.healed = any(e.action == MOVED for e in events)
        found.reorders = found.healed or any(not e.number and e.action not in ALONE for e in events)
        return found

    @classmethod
    def beside(cls, group: Sequence[Event], events: Sequence[Event]) -> list[Event]:
        return [event for event in events if event.action == MOVED]

    def process_of(self, event: Event) -> str:
        return event.process

    def label(self, event: Event, binding: Binding) -> Label:
        if event.action == MOVED:
            return Label(event.node, MOVED, (), NOT_SAID, NOT_SAID, "")
        observed = event.observed
        phase = observed.get("phase", "")
        tenure = NOT_SAID if event.tenure is None else binding.get(event.tenure, UNBOUND)
        args: tuple[tuple[str, Hashable], ...] = ()
        if event.args and event.action in self.parameters:
            args = tuple((n, v) for n, v in event.args.items() if isinstance(v, (str, bool)))
        if "owner" not in observed:
            return Label(event.node, event.action, args, tenure, NOT_SAID, phase if type(phase) is str else "?")
        instance, epoch = said(event, "owner"), said(event, "id")
        owner = "none" if instance is None else self.named.get(str(instance), "foreign")
        seen = bound(binding, epoch) if owner != "none" else NOT_SAID
        more: tuple[tuple[str, Hashable], ...] = (("owner", owner),)
        if "age" in observed and event.action in TAKING:
            more += (("age", str(observed["age"])),)
        return Label(event.node, event.action, args, tenure, seen, phase if type(phase) is str else "?", more)

    def agrees(self, before: State, after: State, label: Label, args: Args) -> bool:
        if label.action == MOVED:
            return True
        node, then = before.node[label.node], after.node[label.node]
        if label.phase and then.phase != label.phase:
            return False
        if label.tenure != NOT_SAID:
            held = then.tenure if then.tenure != NO_TENURE else node.tenure
            if held == NO_TENURE or (label.tenure >= 0 and held.epoch != label.tenure):
                return False
        if label.more:
            lease = before.entry[node.key]
            wanted = label.more[0][1]
            if not before.readable or (
                lease.owner not in self.strangers if wanted == "foreign" else lease.owner != wanted
            ):
                return False
            if label.seen >= 0 and lease.epoch != label.seen:
                return False
            if len(label.more) > 1 and lease.age != label.more[1][1]:
                return False
        return True

    def binds(self, before: State, after: State, label: Label) -> tuple[tuple[str, int], ...]:
        found: tuple[tuple[str, int], ...] = ()
        if label.action == MOVED:
            return found
        node, then = before.node[label.node], after.node[label.node]
        if label.tenure == UNBOUND:
            found += (("tenure", (then.tenure if then.tenure != NO_TENURE else node.tenure).epoch),)
        if label.seen == UNBOUND:
            found += (("seen", before.entry[node.key].epoch),)
        return found

    def may_bind(self, binding: Binding, real: str | int, model: int) -> bool:
        """Epochs are ordered as the model's are."""
        if not isinstance(real, int):
            return True
        return all((other < real) == (value < model) for other, value in binding.items() if isinstance(other, int))

    def hidden(self, state: State, label: Label, ended: frozenset[str]) -> Iterable[Hidden]:
        if label.action == MOVED:
            return
        me, holder = label.node, state.guard
        process = self.election.process
        node = state.node[me]
        yield from hidden_of(LOST if process[me] in ended else OMITTED, node.phase, me)
        if holder == me:
            if node.phase in SETTLED:
                yield Hidden(1, "Leave", (me,))
        elif holder in FREE:
            if node.phase != "off":
                yield Hidden(1, "Begin", (me,))
        else:
            other = state.node[holder]
            over = self._over(holder, ended)
            if other.phase in SETTLED:
                yield Hidden(1, "Leave", (holder,))
            yield from hidden_of(LOST if over else OMITTED, other.phase, holder, 1)
            if over:
                yield Hidden(3, "Crash", (process[holder],))
        key = node.key
        lease = state.entry[key]
        owner = lease.owner
        if owner in process and lease.life == "alive" and self._over(owner, ended) and state.node[owner].phase != "off":
            yield Hidden(3, "Crash", (process[owner],))
        yield from self._others(state, label, key, ended)
        if owner != "none" and lease.age == "fresh":
            yield Hidden(4, "Age", (key,))
            yield Hidden(5, "Pass", (key,))
        if not state.readable:
            yield Hidden(4, "Mend", ())
        if state.flight[me] != NO_TENURE:
            yield Hidden(1, "Arrive", (me,))

    def _over(self, runtime: str, ended: frozenset[str]) -> bool:
        return runtime in self.strangers or self.election.process[runtime] in ended

    def _others(self, state: State, label: Label, key: str, ended: frozenset[str]) -> Iterable[Hidden]:
        """What those do whose records are lost or never were, so that what was seen in the registry comes to stand
        there."""
        owner = state.entry[key].owner
        wanted = str(label.more[0][1]) if label.more else "none"
        if wanted == "foreign":
            for stranger in self.strangers_of[key]:
                if stranger != owner:
                    yield from self._takes(state, stranger, key)
        elif wanted != owner and wanted in self.election.process and self._over(wanted, ended):
            yield from self._all_of(state, wanted, 2)
        if owner in self.strangers and owner != wanted:
            way = self._way_in(state)
            if way is not None:
                steps = [*way, ("Begin", (owner,)), ("Release", (owner,)), ("Write", (owner,)), ("Leave", (owner,))]
                yield Hidden(6, SEVERAL, tuple(steps))
        elif label.more and wanted == "none" != owner and self.healed and not self._over(owner, ended):
            yield Hidden(20, MOVED, ())  # by a doctor whose record is lost
        elif label.more and owner != wanted and owner in self.election.process and self._over(owner, ended):
            yield from self._all_of(state, owner, 2)

    def _way_in(self, state: State) -> list[tuple[str, Args]] | None:
        """How the transaction becomes free, if it does without more ado."""
        holder = state.guard
        if holder in FREE:
            return []
        return [("Leave", (holder,))] if state.node[holder].phase in SETTLED else None

    def _takes(self, state: State, stranger: str, key: str) -> Iterable[Hidden]:
        """A stranger acquires: nobody's key, or one whose owner died or let the lease pass, or by force."""
        way = self._way_in(state)
        if way is None:
            return
        phase, lease = state.node[stranger].phase, state.entry[key]
        if phase not in ("off", "idle"):
            way.append(("Crash", (stranger,)))
        if phase != "idle":
            way.append(("Start", (stranger,)))
        way.append(("Begin", (stranger,)))
        then: list[tuple[str, Args]] = [(name, (stranger,)) for name in ("Mint", "Raise", "Write", "Leave")]
        yield Hidden(7, SEVERAL, (*way, ("Acquire", (stranger,)), *then))
        if lease.owner != "none":
            for passes in ("Age", "Pass"):
                yield Hidden(8, SEVERAL, (*way, (passes, (key,)), ("Acquire", (stranger,)), *then))
            yield Hidden(11, SEVERAL, (*way, ("Look", (stranger,)), ("Force", (stranger,)), *then))

    def candidates(self, label: Label) -> tuple[Args, ...]:
        return ((),) if label.action == MOVED else super().candidates(label)

    def _moved(self, state: State) -> Iterable[State]:
        """The registry is gone."""
        if state.readable:
            yield attrs.evolve(state, entry=FrozenMap(dict.fromkeys(state.entry, NOBODY)))

    def _all_of(self, state: State, runtime: str, extra: int) -> Iterable[Hidden]:
        yield from hidden_of(LOST, state.node[runtime].phase, runtime, extra)
        if state.guard in FREE and state.node[runtime].phase != "off":
            yield Hidden(1 + extra, "Begin", (runtime,))

    def reads(self, label: Label) -> bool:
        return label.action == "Look"

    def local(self, label: Label) -> bool:
        return label.action == "Start"

    def company(self, state: State, node: str) -> object:
        """The other runtimes of its process, among whose generations it has its own."""
        return [state.node[mate] for mate in self.election.mates[self.election.process[node]] if mate != node]

    def graft(self, state: State, after: State, label: Label) -> State:
        node = state.node.set(label.node, after.node[label.node])
        return self.fresh(attrs.evolve(state, node=node, evicted=state.evicted - {label.node}))

    def follows(self, state: State, label: Label) -> tuple[str, ...]:
        if label.action == MOVED:
            return ()
        return LEAVE if state.guard == label.node and state.node[label.node].phase in SETTLED else ()

    def stutters(self, state: State, label: Label) -> bool:
        """A look that shows what is known already."""
        if label.action == MOVED:
            return False
        node = state.node[label.node]
        if (
            label.action != "Look"
            or node.phase != (label.phase or node.phase)
            or not label.more
            or label.seen == UNBOUND
        ):
            return False
        lease = state.entry[node.key]
        wanted = label.more[0][1]
        owns = lease.owner in self.strangers if wanted == "foreign" else lease.owner == wanted
        same = owns and (label.seen < 0 or lease.epoch == label.seen)
        return same and node.phase == "idle"

    def forget(self) -> None:
        self.election.situations.clear()
        self.election.now = None

    def phase(self, state: State, node: str) -> str:
        return state.node[node].phase if node in state.node else "healing"

    def shown(self, state: State) -> str:
        entries = ", ".join(
            f"{key} is owned by {e.owner} under epoch {e.epoch} ({e.life}, {e.age})"
            if e.owner != "none"
            else f"{key} is free"
            for key, e in state.entry.items()
        )
        guard = f"in the transaction: {state.guard}"
        busy = ", ".join(f"{r} {n.phase}" for r, n in state.node.items() if n.phase not in ("off", "idle"))
        return f"{entries}; {guard}; {busy or 'nobody owns or acquires'}"
