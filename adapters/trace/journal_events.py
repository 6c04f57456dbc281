"""What the two modules of the journal have in common as traces (`DurableAdmission`, `QueueHandoff`).

Every event of theirs but `Effect` and `Acked` is a transaction of the journal, and its number is that of the decision
which the same transaction wrote (`tenure.adapters.journal.events`): one total order, of all processes, that no clock is
asked for. An `Effect` stands between its node's events before and after it; an `Acked` as well, and behind the
acceptance that it tells of.

A recording is split by row, an instance of the twin for each update and for each receipt. That loses nothing: a
transaction reads and writes one update with its deliveries and receipts, and besides them only what all of the file
share, the fence and the highest update id that was passed. Both are observed by every event of an update, and neither
may ever go back: whatever any event of the recording has seen of the fence is put among the events of each update.

Which of two sources is the stronger? The lines of the recorder are: they say what was read of the row before the step,
which is held against what the step before it has left, and they tell of executions, which no row does. But a process
that is killed between a commit and its line leaves no line, where the journal has the decision (`journal_rows`): what
stands in the table `decisions` and in no line is added from there, in a file called `LOST`. A recording that is made of
the table alone is complete as well, and shows less.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from tenure.adapters.trace.lines import BadTrace, Event

LOST: Final = "journal.trace"
"""The name of a file of events that were made from the table `decisions`."""
DECISIONS: Final = ":decisions"
"""What is behind the name of a journal, where an event was made from it."""
LEAD: Final = "Lead"


def lost(event: Event) -> bool:
    """Whether it comes from the table: nobody says what was read, and whether somebody executed."""
    return event.file.endswith(DECISIONS) or os.path.basename(event.file) == LOST


def in_order(events: Sequence[Event]) -> list[Event]:
    """The events, those of each node as they happened: as they were recorded, and what was lost where its number has
    its place. What has no number stands behind what it rests on, as its `at`: an execution behind its start, if that
    was lost, and a copy that is dropped behind the acceptance of its offer."""
    started = {(e.node, e.tenure): e.number for e in events if e.action == "Start" and lost(e)}
    accepted = {e.args.get("handoff"): e.number for e in events if e.action == "Accept"}
    reached: defaultdict[str, int] = defaultdict(int)
    keyed: list[tuple[int, int, int, Event]] = []
    for event in sorted(events, key=lambda e: (e.file, e.seq)):
        place = event.number
        if not lost(event):
            place = max(place, reached[event.node])
            if not event.number:
                rests = accepted.get(event.args.get("handoff")) if event.action == "Acked" else None
                place = max(place, rests or started.get((event.node, event.tenure), 0))
                event = _placed(event, place)
            reached[event.node] = place
        keyed.append((place, len(keyed) if event.number else len(events), len(keyed), event))
    return [event for _, _, _, event in sorted(keyed, key=lambda one: one[:3])]


def _placed(event: Event, at: int) -> Event:
    return Event(
        event.file, event.line, event.module, event.action, event.node, event.seq, 0, at, event.args, event.observed,
        event.tenure,
    )  # fmt: skip


class Shared:
    """Of one recording: the events of receipts by the update that they are for, and how the fence moved."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.receipts: defaultdict[str, list[Event]] = defaultdict(list)
        self.fence: list[Event] = []
        """The first event that has seen another fence than the one before it, of all updates."""
        seen: list[tuple[int, int, Event]] = []
        for event in events:
            if event.module == "QueueHandoff":
                self.receipts[str(event.args.get("update"))].append(event)
            elif event.module == "DurableAdmission" and event.number and type(event.observed.get("fence")) is int:
                fence = event.observed["fence"]
                assert isinstance(fence, int)
                seen.append((event.number, fence, event))
        last = -1
        for _, fence, event in sorted(seen, key=lambda one: one[0]):
            if fence != last:
                self.fence.append(event)
            last = fence
        self.moves = [event.number for event in self.fence]
        """Their numbers, ascending."""


_shared: list[Shared] = []


def shared(events: Sequence[Event]) -> Shared:
    """What was found in these events; asked for once for each of their rows."""
    if not _shared or _shared[0].events is not events:
        _shared[:] = [Shared(events)]
    return _shared[0]


# -- what events say --------------------------------------------------------------------------------------------------


def text(event: Event, name: str) -> str:
    """A text in `args`. Raises `BadTrace` for anything else."""
    value = event.args.get(name)
    if type(value) is not str:
        raise BadTrace(f"{event.place}: args.{name} is no text")
    return value


def text_or_none(event: Event, name: str, where: Mapping[str, object] | None = None) -> str | None:
    """A text, or nothing. Raises `BadTrace` for anything else."""
    value = (event.args if where is None else where).get(name)
    if value is not None and type(value) is not str:
        raise BadTrace(f"{event.place}: {name} is neither a text nor null")
    return value


def whole(event: Event, name: str, where: Mapping[str, object] | None = None) -> int | None:
    """An integer, or nothing. Raises `BadTrace` for anything else."""
    value = (event.args if where is None else where).get(name)
    if value is not None and type(value) is not int:
        raise BadTrace(f"{event.place}: {name} is neither an integer nor null")
    return value


def texts(event: Event, name: str, count: int) -> list[str | None]:
    """So many texts, each of which may be null where it is not known. Raises `BadTrace` for anything else."""
    value = event.args.get(name)
    if not isinstance(value, (list, tuple)) or len(value) != count:
        raise BadTrace(f"{event.place}: args.{name} is no list of {count}")
    if not all(part is None or type(part) is str for part in value):
        raise BadTrace(f"{event.place}: args.{name} is no list of texts")
    return list(value)
