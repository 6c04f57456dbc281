"""The twin `DurableAdmission` instantiated from a trace: one update, everybody who led, and everybody who had it.

A node is ``PROCESS/INSTANCE@UPDATE``; `tenure.adapters.journal.events` and `tenure.adapters.work.events` say what its
events are. All but `Effect` are transactions, so that they have one order (`journal_events`).

* An answer that says yes is taken where the instance has admitted the update before, and an admission where a leader
  has forwarded it; a receipt is completed where it was executed, under the acquisition by which it is owned.
* How its receipts move is recorded as `QueueHandoff`, and explained there.
* What other updates' transactions have seen of the fence is put among the events of each, as `Lead` (`Shared`).
* Polls are not in the journal: what Telegram has, and what was confirmed, is not in these events.

`observed` is held against what the steps before have left: `was` and `bound`, of the row; `fence` and `passed`, of the
file, which others move, and nobody moves back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, get_args

import attrs

from tenure.adapters.trace.durable_admission_world import RECEIPTS, Admissions, Said
from tenure.adapters.trace.instance import NOT_SAID, Args, Binding, Hidden, Instance, Label
from tenure.adapters.trace.journal_events import LEAD, in_order, lost, shared, text_or_none, whole
from tenure.adapters.trace.lines import BadTrace, Event
from tenure.adapters.trace.queue_handoff import instance_of
from tenure.machines import forwarding_messages as here
from tenure.models.durable_admission_state import NO, State, of

FAILURES: Final[Mapping[str, here.Failure]] = {why: why for why in get_args(here.Failure)}
LEADS: Final = frozenset({"Journal", "Forward", "Unserved", "Keep", "HearAck", "Unanswered", "Resume"})
"""What is done under an epoch."""
UPDATES: Final = LEADS | {"Retry", "Release", "Discard"}
MOVES: Final = frozenset(RECEIPTS.values())


class DurableAdmissions(Instance[State]):
    """One update."""

    module: ClassVar[str] = "DurableAdmission"
    environment: ClassVar[frozenset[str]] = frozenset({LEAD, *RECEIPTS.values()})
    recycles: ClassVar[bool] = False
    reorders = False
    counts_itself: ClassVar[bool] = True

    def __init__(self, events: Sequence[Event], title: str) -> None:
        name = next((event.resource for event in events if event.action != LEAD), "")
        if not (name.isascii() and name.isdecimal()):
            raise BadTrace(f"{events[0].place}: {name!r} is no update id; a node is PROCESS/INSTANCE@UPDATE")
        kinds = [event.args["kind"] for event in events if type(event.args.get("kind")) is str]
        self.here = Admissions(int(name), str(kinds[-1]) if kinds else "")
        self.said: dict[tuple[str, int, str], Said] = {}
        super().__init__(self.here, title)
        for event in events:
            self.said[event.file, event.seq, event.action] = _said(event)

    @classmethod
    def of(cls, events: Sequence[Event], title: str, pool: dict[Hashable, object]) -> DurableAdmissions:
        return cls(events, title)

    @classmethod
    def gathered(cls, group: Sequence[Event], events: Sequence[Event]) -> list[Event]:
        number = group[0].resource
        found = shared(events)
        mine = (event for event in found.receipts.get(number, ()) if event.action in RECEIPTS)
        moved = [_moved(cls.module, event, number) for event in mine]
        whole_life = in_order([*group, *moved])
        numbers = [event.number for event in whole_life if event.number]
        if not numbers:
            return whole_life
        # How it stood before the first of them, and how it moved until the last.
        first = max(bisect_left(found.moves, min(numbers)) - 1, 0)
        last = bisect_right(found.moves, max(numbers))
        return [*whole_life, *(_fence(event) for event in found.fence[first:last])]

    def process_of(self, event: Event) -> str:
        return event.process

    def enters(self, event: Event) -> bool:
        return event.action == LEAD

    def label(self, event: Event, binding: Binding) -> Label:
        said = self.said[event.file, event.seq, event.action]
        more: tuple[tuple[str, Hashable], ...] = ()
        if event.action in UPDATES:
            more = (("was", said.was),)
            if "bound" in event.observed:
                more = (*more, ("bound", said.bound or NO))
        return Label(instance_of(event), event.action, (("said", said),), NOT_SAID, NOT_SAID, said.phase, more)

    def candidates(self, label: Label) -> tuple[Args, ...]:
        return ((label.node, label.args[0][1]),)

    def agrees(self, before: State, after: State, label: Label, args: Args) -> bool:
        i = self.here.number
        if after.effects[i] > 1:
            return False
        if label.action not in UPDATES:
            return True
        row = before.update[i]
        stands = {"was": row.phase, "bound": row.binding}
        return label.phase in ("", after.update[i].phase) and all(value in ("", stands[n]) for n, value in label.more)

    def hidden(self, state: State, label: Label, ended: frozenset[str]) -> Iterable[Hidden]:
        """An execution of which there is no line: where the table alone tells of its end."""
        said = label.args[0][1]
        assert isinstance(said, Said)
        if label.action == "Complete" and said.partly:
            for d in of(state, self.here.number):
                if not d.did and d.owner == said.acquisition:
                    yield Hidden(3, "Effect", (label.node, Said(acquisition=d.owner)))

    def spelled(self, action: str, args: Args) -> tuple[Args, ...]:
        return (args,)

    def part(self, state: State, node: str) -> object:
        return state

    def phase(self, state: State, node: str) -> str:
        return state.update[self.here.number].phase

    def shown(self, state: State) -> str:
        i = self.here.number
        row = state.update[i]
        bound = "" if row.binding == NO else f", bound to {row.binding}"
        works = [
            f"{d.b} has it {d.phase}, its receipt {d.receipt}"
            + ("" if d.owner == NO else f" as {d.owner}")
            + (", executed" if d.did else "")
            for d in sorted(of(state, i), key=lambda d: d.b)
        ]
        file = f"fence {state.fence}, passed {state.offset}"
        return "; ".join((f"update {i} is {row.phase}{bound}", *works, f"{state.effects[i]} effects", file))


def _said(event: Event) -> Said:
    """Raises `BadTrace` for what is not of its type."""
    observed, args = event.observed, event.args
    fence, passed = whole(event, "fence", observed), whole(event, "passed", observed)
    was, phase = text_or_none(event, "was", observed) or "", text_or_none(event, "phase", observed) or ""
    common = Said(fence=fence, passed=passed, was=was, phase=phase, partly=lost(event))
    action = event.action
    if action == "Effect" or action in MOVES:
        owner = args.get("acquisition", event.tenure) if action in ("Take", "Accept") else event.tenure
        before = text_or_none(event, "owner", observed) or NO
        return attrs.evolve(common, acquisition=NO if owner is None else str(owner), owner=before)
    why = text_or_none(event, "why") or "transport-failed"
    if why not in FAILURES and action == "Unanswered":
        raise BadTrace(f"{event.place}: args.why is none of {', '.join(FAILURES)}")
    epoch = whole(event, "epoch") or 0
    if action in LEADS and epoch == 0:
        raise BadTrace(f"{event.place}: args.epoch is missing")
    return attrs.evolve(
        common,
        epoch=epoch,
        binding=text_or_none(event, "binding") or "",
        delivery=text_or_none(event, "delivery"),
        kind=text_or_none(event, "kind") or "",
        body=text_or_none(event, "body") or "",
        mine=text_or_none(event, "mine") or text_or_none(event, "binding") or "",
        why=FAILURES.get(why, "transport-failed"),
        ok=args.get("ok") is True,
        skips=args.get("skips") is True,
        room=args.get("room") is not False,
        gone=args.get("gone") is not False,
        update=whole(event, "update"),
        row=text_or_none(event, "row", observed),
        bound=text_or_none(event, "bound", observed),
    )


def _moved(module: str, event: Event, update: str) -> Event:
    """What happened to a receipt, at the node that its instance is for the update."""
    node = f"{event.node.partition('@')[0]}@{update}"
    return Event(
        event.file, event.line, module, RECEIPTS.get(event.action, event.action), node, event.seq, event.number,
        event.at, event.args, event.observed, event.tenure, event.t,
    )  # fmt: skip


def _fence(event: Event) -> Event:
    """The fence stood elsewhere than before, in the transaction of that event."""
    return Event(
        event.file, event.line, event.module, LEAD, f"={event.node}", event.seq, event.number, event.at, {},
        {"fence": event.observed["fence"]}, None, event.t,
    )  # fmt: skip
