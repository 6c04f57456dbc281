"""The twin `FileTransaction` instantiated from a trace.

A node is a thread's way through one guarded path; ``PROCESS/NAME@RESOURCE``. What its events say:

* `tenure`: the generation of its own guard; of ``Claim``, ``Move``, ``MoveFails``, ``RollBack``, ``Abort`` its claim;
* `observed.id`: the generation that ``Observe`` read, the generation or claim that ``List`` found in the entry's name;
* `observed.phase`: its machine's phase after the step.

``Publish`` and ``Verify`` are always recorded, and so is whatever else renames (``Claim``, ``Move``, ``RollBack``...),
but for ``MoveAway``, which follows a ``Verify`` by itself. All that only looks, waits or deletes aside may be left out.
Guards that nobody published in the trace belong to processes that do not record, or were killed before they had
recorded it: there are two strangers in the model, since one of them may find what the other left.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

import attrs

from tenure.adapters.trace.instance import (
    BUDGET,
    NOT_SAID,
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
from tenure.adapters.trace.lines import Event
from tenure.models.file_transaction import Config, FileTransaction, State

FOREIGN: Final = ("foreign", "other foreign")
FAULTS: Final = frozenset(["crash", "reuse", "rename", "stage", "tidy", "abort", "litter", "stranger", "tamper"])
LEAVING: Final = frozenset({"MoveAway", "DeleteReleased"})
"""Recorded with the number of the transaction that they end, when others may have entered already."""
ENTERING: Final = frozenset({"Publish"})

OMITTED: Final[Mapping[str, Mapping[str, int]]] = {
    "idle": {"EnsureParent": 1},
    "staging": {"Stage": 1, "StageFails": 6},
    "checking": {"Look": 1},
    "publishing": {"PublishRefused": 1, "PublishFails": 6},
    "observing": {"Observe": 1},
    "listing": {"List": 1},
    "judging_owner": {"JudgeOwner": 1},
    "judging_marker": {"JudgeMarker": 1},
    "claiming": {"ClaimMissed": 1, "ClaimFails": 6},
    "deleting_stale": {"DeleteStale": 1},
    "pausing": {"Wake": 1, "GiveUp": 2},
    "tidying": {"Tidy": 1},
    "inside": {"Leave": 1},
    "releasing": {"MoveAway": 1},
    "deleting_released": {"DeleteReleased": 1},
}
"""By phase, what a living participant may do without recording it."""
LOST: Final[Mapping[str, Mapping[str, int]]] = {
    **OMITTED,
    "publishing": {**OMITTED["publishing"], "Publish": 2},
    "claiming": {**OMITTED["claiming"], "Claim": 2},
    "moving": {"Move": 2, "MoveFails": 6, "Abort": 6},
    "rolling_back": {"RollBack": 2},
    "tidying": {"Tidy": 1, "TidyFails": 6},
    "verifying": {"Verify": 2},
}
"""By phase, what a process may have done last, whose record was lost with it; or one that does not record."""
FOLLOWS: Final[Mapping[str, tuple[str, ...]]] = {
    "releasing": ("MoveAway", "DeleteReleased"),
    "deleting_released": ("DeleteReleased",),
    "deleting_stale": ("DeleteStale",),
}
"""By phase, what a participant does next, if it lives and nothing fails."""
FINDING: Final = frozenset({"List", "JudgeMarker", "Claim", "ClaimMissed"})
"""What is done with a guard that somebody left."""
OCCUPIED: Final[Mapping[str, tuple[str, ...]]] = {
    "Look": ("observing",), "PublishRefused": ("observing",), "Observe": ("pausing",), "List": ("pausing",),
}  # fmt: skip
"""The phases after an action that show that something stood at the path, or something that cannot be read."""
READING: Final = frozenset({"Look", "Observe", "List", "JudgeMarker", "PublishRefused", "ClaimMissed"})
LOCAL: Final = frozenset({"EnsureParent", "StageFails", "Wake", "GiveUp", "DeleteStale", "DeleteReleased", "Leave"})
"""What neither looks at anything that is shared nor changes it."""
OWN_CLAIM: Final = frozenset({"Claim", "Move", "MoveFails", "RollBack", "Abort"})


class FileTransactions(Instance[State]):
    """One guarded path, and everybody who was seen at it."""

    module: ClassVar[str] = "FileTransaction"
    environment: ClassVar[frozenset[str]] = frozenset(
        ["Crash", "Reuse", "Drop", "Intrude", "StrangerLeaves", "Quarantine", "Tamper"]
    )

    def __init__(self, pid: Mapping[str, str], title: str, config: Config | None = None) -> None:
        self.pid = dict(pid)
        if config is None:
            everybody = {**self.pid, **{name: name for name in FOREIGN}}
            config = Config(everybody, FAULTS, BUDGET, ("none", "dead", "live"), frozenset(FOREIGN))
        self.everybody = dict(config.pid)
        self.threads: dict[str, list[str]] = {}
        for thread, process in self.everybody.items():
            self.threads.setdefault(process, []).append(thread)
        super().__init__(FileTransaction(config), title)

    @classmethod
    def of(cls, events: Sequence[Event], title: str, pool: dict[Hashable, object]) -> FileTransactions:
        return cls({e.node: e.process for e in events}, title)

    def process_of(self, event: Event) -> str:
        return event.process

    def label(self, event: Event, binding: Binding) -> Label:
        phase = event.observed.get("phase", "")
        seen = event.observed.get("id")
        return Label(
            event.node,
            event.action,
            (),
            NOT_SAID if event.tenure is None else binding.get(event.tenure, UNBOUND),
            NOT_SAID if seen is None else bound(binding, said(event, "id")),
            phase if type(phase) is str else "?",
        )

    def agrees(self, before: State, after: State, label: Label, args: Args) -> bool:
        node, then = before.node[label.node], after.node[label.node]
        if label.phase and then.phase != label.phase:
            return False
        if label.tenure >= 0:
            mine = node.claim or then.claim if label.action in OWN_CLAIM else node.id or then.id
            if mine != label.tenure:
                return False
        return label.seen < 0 or self._seen(before, label) == label.seen

    def _seen(self, before: State, label: Label) -> int:
        guard = before.guard
        return guard.claim if label.action in ("List", "JudgeMarker") and guard.kind == "marker" else guard.id

    def binds(self, before: State, after: State, label: Label) -> tuple[tuple[str, int], ...]:
        found: tuple[tuple[str, int], ...] = ()
        if label.tenure == UNBOUND:
            node, then = before.node[label.node], after.node[label.node]
            mine = node.claim or then.claim if label.action in OWN_CLAIM else node.id or then.id
            found += (("tenure", mine),)
        if label.seen == UNBOUND:
            found += (("seen", self._seen(before, label)),)
        return found

    def reads(self, label: Label) -> bool:
        return label.action in READING

    def graft(self, state: State, after: State, label: Label) -> State:
        return self.fresh(attrs.evolve(state, node=state.node.set(label.node, after.node[label.node])))

    def local(self, label: Label) -> bool:
        return label.action in LOCAL

    def follows(self, state: State, label: Label) -> tuple[str, ...]:
        return FOLLOWS.get(state.node[label.node].phase, ())

    def drawn(self, before: State, after: State, action: str, args: Args) -> tuple[int, ...]:
        if action == "Stage":
            return (after.node[str(args[0])].id,)
        return (after.guard.claim,) if action == "Claim" else ()

    def pinned(self, event: Event) -> bool:
        return event.number != 0 and event.action not in LEAVING

    def enters(self, event: Event) -> bool:
        return event.action in ENTERING

    def hidden(self, state: State, label: Label, ended: frozenset[str]) -> Iterable[Hidden]:
        guard, me = state.guard, label.node
        yield from self._steps(state, me, ended, 0)
        # Who could change what stands at the path: its holder, its claimant, and those who do not record.
        for pid in {guard.pid, guard.claimant}:
            for thread in self.threads.get(pid, ()):
                if thread != me and pid not in FOREIGN and state.node[thread].phase != "idle":
                    yield from self._steps(state, thread, ended, 1)
        for pid in {guard.pid, guard.claimant}:
            if pid in state.proc and state.proc[pid].up and (pid in ended or pid in FOREIGN):
                yield Hidden(3, "Crash", (pid,))
        if label.seen == UNBOUND or label.action in FINDING or guard.kind == "marker":
            # One stranger at a time, unless what stands there is his: the other one is for what he left.
            stranger = next((p for p in FOREIGN if p not in (guard.pid, guard.claimant)), FOREIGN[0])
            if state.proc[stranger].up:
                begins = state.node[stranger].phase == "idle"
                yield from self._steps(state, stranger, ended, 13 if begins else 1)
            else:
                yield Hidden(2, "Reuse", (stranger,))
        yield from self._befalls(state, label)

    def _befalls(self, state: State, label: Label) -> Iterable[Hidden]:
        """What nobody records: litter, somebody else's unreadable guard, a person who clears it away or tampers."""
        kind = state.guard.kind
        if kind == "empty":
            yield Hidden(8, "Quarantine", ())
        if state.stranger == "inside":
            yield Hidden(8, "StrangerLeaves", ())
        if kind == "absent" and label.phase in OCCUPIED.get(label.action, ()):
            yield Hidden(15, "Drop", ())
            yield Hidden(15, "Intrude", ())
        elif kind == "owner" and label.action == "Verify" and label.phase == "idle":
            yield Hidden(15, "Tamper", ())

    def _steps(self, state: State, thread: str, ended: frozenset[str], extra: int) -> Iterable[Hidden]:
        pid = self.everybody[thread]
        names = LOST if pid in ended or pid in FOREIGN else OMITTED
        return hidden_of(names, state.node[thread].phase, thread, extra)

    def phase(self, state: State, node: str) -> str:
        return state.node[node].phase

    def shown(self, state: State) -> str:
        guard = state.guard
        busy = ", ".join(f"{t} {n.phase}" for t, n in state.node.items() if n.phase != "idle")
        path = guard.kind if guard.kind in ("absent", "empty", "alien") else f"{guard.kind} of {guard.pid}"
        return f"at the path: {path}; {busy or 'everybody is idle'}"
