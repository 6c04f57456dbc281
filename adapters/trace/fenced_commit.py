"""The twin `FencedCommit` instantiated from a trace: one instance for each key.

A node is a committer, ``PROCESS/commit@KEY``. What its events say:

* `tenure`: the epoch of its caller;
* `observed.phase`: its machine's phase after a look, `observed.lease`: what the look showed (fresh, passed, dead, none,
  unreadable), `observed.id`: the epoch that it showed.

Everything that a committer does is recorded. Owners are environment; those of the recording wrote what their events of
`LeaderElection` say, at their place among all transactions, so that a command under an epoch that was over by then is
not explained. Owners that do not record, or were killed before they had recorded their write, are believed where a look
needs them. So is time: that a lease has passed, and was renewed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

import attrs

from tenure.adapters.trace.instance import BUDGET, NOT_SAID, SEVERAL, Args, Binding, Hidden, Instance, Label
from tenure.adapters.trace.lines import BadTrace, Event
from tenure.models.fenced_commit import FREE, LOCKED, Config, FencedCommit, Lease, State

DEFAULT: Final = "default"
PLAIN: Final = frozenset({"Ask", "AskStale", "AskInVain"})
"""Looks outside of the guard. They are held against what they say themselves, and show no epoch before its time; what
a commit rests on is seen inside."""
INSIDE: Final = frozenset({"Run", "FindStale", "FindNothing"})
REFUSED: Final = frozenset({"AskStale", "AskInVain", "FindStale", "FindNothing"})
OWNERS: Final = frozenset({"Take", "Release"})
"""What events of owners become."""
UNSEEN: Final = 13
"""What it costs that an owner wrote and nobody recorded it: first it is tried whether a look was recorded late."""
ALONE: Final = frozenset({"TimeUp", "Interrupt", "Forget"})
"""What nobody else sees."""
BEFORE: Final[Mapping[str, tuple[str, ...]]] = {
    "fresh": ("fresh",),
    "passed": ("fresh", "passed"),
    "dead": ("fresh", "passed", "dead"),
    "none": ("none",),
}
"""What a lease was before nobody wrote it, and it came to be what was seen."""
_COME: Final = ("Come", ())


class FencedCommits(Instance[State]):
    """One key, and every committer that was seen at it."""

    module: ClassVar[str] = "FencedCommit"
    environment: ClassVar[frozenset[str]] = frozenset(
        [
            "Obey", "Harden", "Crash", "StrayEnds", "Come", "Go", "Take", "Renew", "Release", "Pass", "Die", "Tell",
            "Tear", "Mend",
        ]
    )  # fmt: skip
    recycles: ClassVar[bool] = False
    reorders = False
    """A committer locks after whoever had the lock has recorded that it leaves, or is dead."""
    exclusive: ClassVar[bool] = True

    def __init__(self, process: Mapping[str, str], epochs: Mapping[str | int, int], title: str) -> None:
        super().__init__(FencedCommit(Config(tuple(process), BUDGET)), title)
        self.process = process
        self.epochs = epochs
        self.rest: dict[tuple[str, int], bool] = {}
        """Of each command that has ended by itself, whether something was left of it: whether it had to be killed."""
        self.looks: dict[tuple[str, int], Event] = {}
        """Of each entry the look that follows: owners do not write in between."""

    @classmethod
    def of(cls, events: Sequence[Event], title: str, pool: dict[Hashable, object]) -> FencedCommits:
        process: dict[str, str] = {}
        epochs: dict[str | int, int] = {}
        for event in events:
            if event.action not in OWNERS:
                process[event.node] = event.process
            seen = event.observed.get("id")
            if not isinstance(seen, (str, int, type(None))):
                raise BadTrace(f"{event.place}: observed.id is neither a string nor an integer")
            for epoch in (event.tenure if event.action not in REFUSED else None, seen):
                if epoch is not None:
                    epochs.setdefault(epoch, 0)
        # Epochs that are numbers are in their order, others in that of their appearance. The model's 1 stands for all
        # that nobody was seen to have.
        named = list(epochs)
        if all(isinstance(epoch, int) for epoch in named):
            named.sort()
        found = cls(process, {epoch: n for n, epoch in enumerate(named, 2)}, title)
        last: dict[str, Event] = {}
        for event in events:
            before = last.get(event.node)
            if before is not None and before.action == "End":
                found.rest[before.file, before.seq] = event.action == "Kill"
            if before is not None and before.action == "Enter" and event.action in INSIDE:
                found.looks[before.file, before.seq] = event
            last[event.node] = event
        return found

    @classmethod
    def beside(cls, group: Sequence[Event], events: Sequence[Event]) -> list[Event]:
        key = group[0].resource or DEFAULT
        keys: dict[str, object] = {}
        found: list[Event] = []
        for event in events:
            if event.module != "LeaderElection":
                continue
            if event.action in ("Start", "Switch"):
                keys[event.node] = event.args.get("key", DEFAULT) if event.action == "Start" else None
            # A refresh says nothing but its epoch, and is no new tenure.
            elif event.action == "Write" and event.observed and keys.get(event.node, DEFAULT) == key:
                action = "Take" if event.observed.get("phase") == "owner" else "Release"
                found.append(
                    Event(
                        event.file, event.line, cls.module, action, event.node, event.seq, event.number, event.at,
                        tenure=event.tenure, t=event.t,
                    )
                )  # fmt: skip
        return found

    def initial(self) -> Iterable[State]:
        for state in super().initial():
            yield self.fresh(attrs.evolve(state, entry=Lease(1, "none")))

    def process_of(self, event: Event) -> str:
        return event.process

    def label(self, event: Event, binding: Binding) -> Label:
        tenure = NOT_SAID if event.tenure is None else self.epochs.get(event.tenure, 1)
        place = (event.file, event.seq)
        observed = self.looks.get(place, event).observed
        phase, lease, seen = event.observed.get("phase"), observed.get("lease"), observed.get("id")
        id = self.epochs.get(seen, 1) if isinstance(seen, (str, int)) else NOT_SAID
        more: tuple[tuple[str, Hashable], ...] = (("lease", str(lease)),) if lease is not None else ()
        if event.action == "End" and place in self.rest:
            more = (("rest", self.rest[place]),)
        return Label(event.node, event.action, (), tenure, id, phase if isinstance(phase, str) else "", more)

    def successors(self, state: State, action: str, args: Args) -> tuple[State, ...]:
        """What outlives a killed committer only hinders others, and is never needed. To look outside of the guard is
        to look at some moment before: at whatever may have stood there then."""
        if action not in PLAIN:
            after = super().successors(state, action, args)
            return tuple(s for s in after if not s.stray) if action == "Crash" else after
        then = [
            attrs.evolve(state, entry=Lease(epoch, life), readable=action != "AskInVain")
            for epoch in range(1, state.entry.epoch + 1)
            for life in ("fresh", "none")
        ]
        more = (after for s in then for after in super(FencedCommits, self).successors(s, action, args))
        return tuple(dict.fromkeys(attrs.evolve(state, node=after.node) for after in more))

    def candidates(self, label: Label) -> tuple[Args, ...]:
        return ((),) if label.action in OWNERS else super().candidates(label)

    def agrees(self, before: State, after: State, label: Label, args: Args) -> bool:
        if label.action in OWNERS:
            epoch = after.entry.epoch if label.action == "Take" else before.entry.epoch
            return label.tenure < 0 or epoch == label.tenure
        node = after.node[label.node]
        if label.phase and node.phase != label.phase:
            return False
        if not self._names(label, before, node.token or before.node[label.node].token):
            return False
        if not label.more:
            return True
        name, lease = label.more[0]
        if name == "rest":
            return (after.command[label.node].state != "none") == lease
        entry = before.entry
        seen = label.seen < 0 or entry.epoch == label.seen
        if label.action == "Enter":  # the rest may happen until it looks
            return lease not in BEFORE or (seen and entry.state in BEFORE[str(lease)])
        if label.action in PLAIN:
            found = "AskInVain" if lease not in BEFORE else "AskStale"
            if lease == "fresh" and label.seen == label.tenure:
                found = "Ask"
            return found == label.action and label.seen <= entry.epoch
        if lease not in BEFORE or not before.readable:
            return lease == "unreadable" and not before.readable
        return entry.state == lease and (lease == "none" or seen)

    def _names(self, label: Label, before: State, token: int) -> bool:
        """Whether the model's `token` is the one of the event. A caller may name what is no epoch yet: that is as stale
        as any, and is forgotten at once."""
        if label.tenure > before.entry.epoch and label.action in ("AskStale", "AskInVain"):
            return token == 1
        return label.tenure < 0 or label.action == "Forget" or token == label.tenure

    def hidden(self, state: State, label: Label, ended: frozenset[str]) -> Iterable[Hidden]:
        me = label.node
        for node, there in state.node.items():
            locks = label.action == "Lock" and there.phase in LOCKED
            if node != me and (locks or state.guard == node) and self.process[node] in ended:
                yield Hidden(3, "Crash", (node,))
        if label.action in OWNERS:
            if state.guard in FREE:
                yield Hidden(1, "Come", ())
            if not state.readable:
                yield Hidden(2, "Mend", ())
            if state.entry.epoch < (label.tenure - 1 if label.action == "Take" else label.tenure):
                yield from self._writes(state, "Take", UNSEEN)
            return
        if state.guard == "other":
            yield Hidden(1, "Go", ())
        if state.node[me].phase == "ending" and state.command[me].state != "none":
            yield Hidden(1, "Obey", (me,))
        if label.action in PLAIN and state.entry.epoch < label.seen:
            yield from self._writes(state, "Take", UNSEEN)
        elif label.action in INSIDE or label.action == "Enter":
            yield from self._seen(state, label)

    def _seen(self, state: State, label: Label) -> Iterable[Hidden]:
        """What may have happened so that the look showed this."""
        wanted, epoch = (str(label.more[0][1]) if label.more else "fresh"), label.seen
        if not label.more and label.action == "Run":
            epoch = label.tenure
        if wanted == "unreadable":
            if state.readable:
                yield Hidden(4, "Tear", ())
            return
        if not state.readable:
            yield Hidden(2, "Mend", ())
        entry = state.entry
        if entry.epoch < epoch:
            yield from self._writes(state, "Take", UNSEEN)
        if wanted == "none":
            yield from self._writes(state, "Release", UNSEEN)
            return
        if wanted == "fresh" and entry.state == "passed":
            yield from self._writes(state, "Renew", 2)
        if wanted == "passed" and entry.state == "fresh":
            yield Hidden(2, "Pass", ())
        if wanted == "dead":
            yield Hidden(3, "Die", ())

    def _writes(self, state: State, action: str, cost: int) -> Iterable[Hidden]:
        """An owner comes, and does this; nobody else is in the guard."""
        if state.guard in FREE:
            yield Hidden(cost, SEVERAL, (_COME, (action, ())))

    def local(self, label: Label) -> bool:
        return label.action in ALONE

    def stutters(self, state: State, label: Label) -> bool:
        """A kill of what is gone; a write that somebody has seen already."""
        entry = state.entry
        if label.action == "Kill":
            return state.node[label.node].phase == "ending" and state.command[label.node].state == "none"
        if label.action in OWNERS and entry.epoch == label.tenure:
            return (entry.state == "none") == (label.action == "Release")
        return False

    def phase(self, state: State, node: str) -> str:
        return state.node[node].phase if node in state.node else "owner"

    def shown(self, state: State) -> str:
        names = {model: real for real, model in self.epochs.items()}
        epoch = names.get(state.entry.epoch, "none that was seen")
        busy = ", ".join(f"{p} {n.phase}" for p, n in state.node.items() if n.phase != "idle") or "nobody commits"
        read = "" if state.readable else ", unreadable"
        left = ", something is left of a command" if state.stray else ""
        return f"epoch {epoch} is {state.entry.state}{read}; in the transaction: {state.guard}; {busy}{left}"
