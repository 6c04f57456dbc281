"""The twin `QueueHandoff` instantiated from a trace: one receipt, and everybody who has had to do with it.

A node is ``PROCESS/INSTANCE@RECEIPT``; `tenure.adapters.journal.events` says what its events are. All of them but
`Acked` (`tenure.adapters.handoff.events`) are transactions, so that they have one order, and none is missing between
two (`journal_events`). What the trace shows is the row; what its owners have in their memory follows from what they do
(`queue_handoff_world`), and that a donor drops its copy only of what was accepted is seen. By which right pending
work is taken, and that a process is dead, are believed as the transaction says them; but nobody does anything after
somebody had proof of his death.

`observed` is held against the row as the step before has left it: `was`, `owner`, `offer`, `fallen` and `attempts`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from tenure.adapters.trace.instance import NOT_SAID, Args, Binding, Hidden, Instance, Label
from tenure.adapters.trace.journal_events import in_order, lost, text, text_or_none, texts, whole
from tenure.adapters.trace.lines import BadTrace, Event
from tenure.adapters.trace.queue_handoff_world import Dropped, Handoffs, Said
from tenure.machines import receipt_messages as right
from tenure.machines.receipt_messages import Holder, Party
from tenure.models.queue_handoff_state import Row, State

PARTIES: Final[Mapping[str, str]] = {"Take": "by", "Accept": "recipient", "Freeze": "recipient"}
HOLDERS: Final[Mapping[str, str]] = {
    "Freeze": "by", "Accept": "donor", "Cancel": "by", "Start": "by", "Complete": "by", "Fail": "by", "Doubt": "by",
    "EndSession": "by",
}  # fmt: skip
EVIDENCE: Final[Mapping[str, right.Evidence]] = {"alive": "alive", "dead": "dead", "unknown": "unknown"}
RIGHTS: Final[Mapping[str, right.Right]] = {"serves": "serves", "left": "left", "none": "none"}
BY_OWNER: Final[Mapping[str, Callable[[Holder], right.Happening]]] = {
    "Start": right.Start,
    "Complete": right.Complete,
    "Fail": right.Fail,
    "Doubt": right.Doubt,
    "EndSession": right.Release,
}


class QueueHandoffs(Instance[State]):
    """One receipt."""

    module: ClassVar[str] = "QueueHandoff"
    recycles: ClassVar[bool] = False
    reorders = False
    counts_itself: ClassVar[bool] = True

    def __init__(self, events: Sequence[Event], title: str) -> None:
        self.process: dict[str, str] = {}
        for event in events:
            for names, count in ((PARTIES, 2), (HOLDERS, 4)):
                if event.action in names:
                    instance, process, *_ = texts(event, names[event.action], count)
                    if instance is not None and process is not None:
                        self.process.setdefault(instance, process)
        nodes = dict.fromkeys(instance_of(event) for event in events)
        nodes |= dict.fromkeys(self.process)
        limits = {limit for event in events if (limit := whole(event, "limit")) is not None}
        self.here = Handoffs(tuple(nodes), self.process, max(limits, default=1))
        self.said: dict[tuple[str, int], Said] = {}
        super().__init__(self.here, title)
        for event in events:
            self.check_event(event)
            self.said[event.file, event.seq] = Said(self._message(event), lost(event))

    @classmethod
    def of(cls, events: Sequence[Event], title: str, pool: dict[Hashable, object]) -> QueueHandoffs:
        return cls(events, title)

    @classmethod
    def gathered(cls, group: Sequence[Event], events: Sequence[Event]) -> list[Event]:
        return in_order(group)

    def process_of(self, event: Event) -> str:
        return event.process

    # -- events in the model's terms ----------------------------------------------------------------------------------

    def _number(self, said: str | None) -> int:
        return self.here.number(said)

    def _party(self, event: Event, name: str) -> Party:
        instance, process = texts(event, name, 2)
        if instance is None:
            raise BadTrace(f"{event.place}: args.{name} names no instance")
        return Party(instance, self.here.process_of(instance) if process is None else process)

    def _holder(self, event: Event, name: str) -> Holder:
        instance, process, acquisition, handoff = texts(event, name, 4)
        if instance is None:
            raise BadTrace(f"{event.place}: args.{name} names no instance")
        whose = self.here.process_of(instance) if process is None else process
        return Holder(instance, whose, 0, self._number(acquisition), self._number(handoff) or None)

    def _message(self, event: Event) -> right.Happening | Dropped:
        if event.action == "Acked":
            mine = None if event.tenure is None else str(event.tenure)
            return Dropped(self._number(mine), self._number(text(event, "handoff")))
        action = event.action
        if action in BY_OWNER:
            return BY_OWNER[action](self._holder(event, "by"))
        match action:
            case "Take":
                asked = text(event, "right")
                if asked not in RIGHTS:
                    raise BadTrace(f"{event.place}: args.right is none of {', '.join(RIGHTS)}")
                acquisition = self._number(text(event, "acquisition"))
                return right.Take(self._party(event, "by"), acquisition, RIGHTS[asked])
            case "Freeze":
                to = self._party(event, "recipient")
                return right.OfferTo(self._holder(event, "by"), self._number(text(event, "handoff")), to)
            case "Accept":
                recipient, handoff = self._party(event, "recipient"), self._number(text(event, "handoff"))
                acquisition = self._number(text(event, "acquisition"))
                return right.Accept(recipient, handoff, self._holder(event, "donor"), acquisition)
            case "Cancel":
                return right.Cancel(self._holder(event, "by"), self._number(text(event, "handoff")))
            case "Recover":
                evidence = text(event, "evidence")
                if evidence not in EVIDENCE:
                    raise BadTrace(f"{event.place}: args.evidence is none of {', '.join(EVIDENCE)}")
                return right.Recover(self._number(text(event, "expected")), EVIDENCE[evidence])
            case "Reclaim":
                instance = text(event, "instance")
                process = text_or_none(event, "process") or self.here.process_of(instance)
                return right.Reclaim(process, instance)
            case "Retry":
                return right.Retry(text(event, "person"))
        return right.Discard(text(event, "person"))

    def label(self, event: Event, binding: Binding) -> Label:
        seen = event.observed
        more: list[tuple[str, Hashable]] = []
        for name in ("was", "fallen"):
            if name in seen:
                more.append((name, text_or_none(event, name, seen)))
        for name in ("owner", "offer"):
            if name in seen:
                more.append((name, self._number(text_or_none(event, name, seen))))
        if "attempts" in seen:
            more.append(("attempts", whole(event, "attempts", seen)))
        said = (("said", self.said[event.file, event.seq]),)
        phase = text_or_none(event, "phase", seen) or ""
        return Label(instance_of(event), event.action, said, NOT_SAID, NOT_SAID, phase, tuple(more))

    def candidates(self, label: Label) -> tuple[Args, ...]:
        return ((label.node, label.args[0][1]),)

    def agrees(self, before: State, after: State, label: Label, args: Args) -> bool:
        said = label.phase in ("", after.row.state) and after.ran <= 1
        return said and all(self._seen(before.row, *one) for one in label.more)

    def _seen(self, row: Row, name: str, value: Hashable) -> bool:
        stands: Mapping[str, Hashable] = {
            "was": row.state,
            "owner": row.owner.acq,
            "offer": row.offer.h,
            "fallen": None if row.fallen == "none" else row.fallen,
            "attempts": row.attempts,
        }
        if name == "attempts" and isinstance(value, int):
            value = min(value, self.here.config.limit)
        return stands[name] == value

    def hidden(self, state: State, label: Label, ended: frozenset[str]) -> Iterable[Hidden]:
        return ()

    def part(self, state: State, node: str) -> object:
        return state.node.get(node)

    def phase(self, state: State, node: str) -> str:
        return state.row.state

    def shown(self, state: State) -> str:
        names = {number: name for name, number in self.here.numbers.items()}
        row = state.row
        owner = "" if not row.owner.acq else f", owned by {row.owner.node} as {names.get(row.owner.acq)}"
        offer = "" if not row.offer.h else f", offered to {row.offer.to} as {names.get(row.offer.h)}"
        memory = [f"{p} {copy.phase}" for p, copy in state.node.items() if copy.phase != "none"]
        dead = sorted(set(state.node) - state.up)
        more = f"; dead: {', '.join(dead)}" if dead else ""
        return f"the receipt is {row.state}{owner}{offer}; {', '.join(memory) or 'nobody has it'}{more}"


def instance_of(event: Event) -> str:
    """Who asked, as the journal names him."""
    return event.node.partition("@")[0].partition("/")[2]
