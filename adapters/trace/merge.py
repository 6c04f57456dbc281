"""One order for the events of many processes, and what of it is certain (DESIGN 8).

Certain are the order of each node's events, and the order of what was taken inside transactions: those events are
pinned, and a pinned one is never explained before an earlier pinned one. Two transactions that overlap show as such:
`at` of the first one's later events is above its number, so that they come after the second one's entry. Everything
else may have happened at any time between its node's events before and after; the order here (by `at`, then `t`) is a
guide, and the search may depart from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Any, Final

import attrs

from tenure.adapters.trace.instance import Instance
from tenure.adapters.trace.lines import Event

FIRST: Final = 0
INSIDE: Final = 1
BESIDE: Final = 2


@attrs.frozen
class Gap:
    """Lines are missing in a file, or stand where they do not belong."""

    event: Event
    message: str


def gaps(events: Sequence[Event]) -> list[Gap]:
    """Where the numbers of a file's lines do not follow each other."""
    found: list[Gap] = []
    last: dict[str, int] = {}
    for event in events:
        before = last.get(event.file, 0)
        if event.seq != before + 1:
            what = (
                f"seq {event.seq} follows {before}: {event.seq - before - 1} event(s) before this line are missing"
                if event.seq > before
                else f"seq {event.seq} follows {before}: lines are doubled or in another order"
            )
            found.append(Gap(event, what))
        last[event.file] = event.seq
    return found


def groups(events: Sequence[Event], split: Collection[str]) -> dict[tuple[str, str], list[Event]]:
    """The events by module and guarded resource; of the modules in `split` also by process."""
    found: defaultdict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        node = event.node
        part = node.partition("@")[2] if "@" in node else ""
        if event.module in split:
            part = f"{event.process} {part}".strip()
        found[event.module, part].append(event)
    return dict(found)


@attrs.frozen
class Merged:
    """The events of one instance in the order that guides the search."""

    events: Sequence[Event]
    pinned: Sequence[bool]
    before: Sequence[int]
    """For each event the index of its node's event before, or -1."""
    ended: Sequence[frozenset[str]]
    """For each index the processes whose events all stand before it."""
    last: dict[int, str]
    """The index of each process's last event."""
    after: Sequence[str]
    """For each event the action of its node's next one, if any."""


def merge(events: Sequence[Event], instance: Instance[Any]) -> Merged:
    """Merge the nodes' events; each node's keep their order."""
    lanes: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        lanes[event.node].append(event)
    keyed: list[list[tuple[int, int, int]]] = []
    queues = list(lanes.values())
    for queue in queues:
        key = (0, 0, 0)
        keys = []
        for event in queue:
            pinned = instance.pinned(event)
            if instance.counts_itself:
                place = event.number or event.at
                rank = FIRST if instance.enters(event) else INSIDE if event.number else BESIDE
            elif event.number:
                place = max(event.number, event.at) if pinned else event.number
                rank = FIRST if instance.enters(event) and event.at <= event.number else INSIDE if pinned else BESIDE
            else:
                place, rank = event.at, BESIDE
            key = max(key, (place, rank, 0 if instance.counts_itself else event.t))
            keys.append(key)
        keyed.append(keys)
    heap = [(keyed[lane][0], lane, 0) for lane in range(len(queues))]
    heapify(heap)
    order: list[Event] = []
    pins: list[bool] = []
    before: list[int] = []
    following: list[str] = []
    previous = [-1] * len(queues)
    while heap:
        _, lane, index = heap[0]
        event = queues[lane][index]
        before.append(previous[lane])
        previous[lane] = len(order)
        pins.append(instance.pinned(event))
        following.append(queues[lane][index + 1].action if index + 1 < len(queues[lane]) else "")
        order.append(event)
        if index + 1 < len(queues[lane]):
            heapreplace(heap, (keyed[lane][index + 1], lane, index + 1))
        else:
            heappop(heap)
    ended, last = _ended(order, instance)
    return Merged(order, pins, before, ended, last, following)


def _ended(order: Sequence[Event], instance: Instance[Any]) -> tuple[list[frozenset[str]], dict[int, str]]:
    processes: dict[str, str] = {}
    ends: dict[str, int] = {}
    for index, event in enumerate(order):
        name = processes.get(event.node)
        if name is None:
            name = processes[event.node] = instance.process_of(event)
        ends[name] = index
    last = {index: name for name, index in ends.items()}
    over: frozenset[str] = frozenset()
    ended = []
    for index in range(len(order)):
        ended.append(over)
        if index in last:
            over |= {last[index]}
    ended.append(over)
    return ended, last
