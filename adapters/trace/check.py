"""Whether the models explain a trace: merge, instantiate, search, and say what stands in the way (DESIGN 8)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from tenure.adapters.trace.file_transaction import FileTransactions
from tenure.adapters.trace.instance import NOT_SAID, UNBOUND, Instance, Label, Taken
from tenure.adapters.trace.leader_election import LeaderElections
from tenure.adapters.trace.lines import BadTrace, Event, Trace
from tenure.adapters.trace.merge import Merged, gaps, groups, merge
from tenure.adapters.trace.polling_ownership import PollingOwnerships
from tenure.adapters.trace.search import Found, Limits, Place, Search, steps_of

MODULES: Final[Mapping[str, type[Instance[Any]]]] = {
    kind.module: kind for kind in (FileTransactions, LeaderElections, PollingOwnerships)
}
"""The modules whose events can be explained. A new one is a file beside these and its name here."""
SPLIT: Final = frozenset({"PollingOwnership"})
"""Modules that describe one process each."""
NEAREST: Final = 3
"""How many of the furthest states are told."""


@attrs.frozen
class Part:
    """What became of the events of one module and one guarded resource."""

    title: str
    instance: Instance[Any] = attrs.field(repr=False)
    merged: Merged = attrs.field(repr=False)
    found: Found[Any] = attrs.field(repr=False)

    @property
    def steps(self) -> tuple[Taken, ...]:
        """The whole behaviour, recorded and unrecorded steps."""
        return tuple(steps_of(self.found))


@attrs.frozen
class Verdict:
    """The answer. It is true where the trace is explained, so that a test can assert it."""

    explained: bool
    message: str
    """One line: what was explained, or the first event that is not, with its file and line."""
    events: int
    hidden: int = 0
    """Unrecorded steps that the explanation needed."""
    torn: int = 0
    """Files whose last line was not finished."""
    limit: str = ""
    """Which limit was hit, when there is no verdict."""
    first: Event | None = None
    """The first event that no behaviour explains."""
    details: tuple[str, ...] = ()
    """The nearest states, and what refused each candidate."""
    parts: tuple[Part, ...] = attrs.field(default=(), repr=False)

    def __bool__(self) -> bool:
        return self.explained

    def __str__(self) -> str:
        return "\n".join((self.message, *self.details))


def check(trace: Trace, limits: Limits | None = None) -> Verdict:
    """Explain every event, or name the first that cannot be. Raises `BadTrace` for events of no known module."""
    events, torn = trace.events, trace.torn
    for event in events:
        if event.module not in MODULES:
            raise BadTrace(f"{event.place}: no module is called {event.module!r}; known are {', '.join(MODULES)}")
    broken = _broken(events)
    if broken is not None:
        event, said = broken
        return Verdict(False, f"{event.place}: {said}", len(events), torn=torn, first=event)
    pool: dict[Hashable, object] = {}
    parts: list[Part] = []
    hidden = 0
    for (module, resource), group in groups(events, SPLIT).items():
        title = f"{module} of {resource}" if resource else module
        kind = MODULES[module]
        instance = kind.of(group, title, pool)
        for event in group:
            instance.check_event(event)
        merged = merge(group, instance)
        found = Search(instance, merged, limits or Limits()).run()
        part = Part(title, instance, merged, found)
        parts.append(part)
        if found.start is None:
            return _unexplained(part, len(events), torn, tuple(parts))
        hidden += sum(not step.event for step in part.steps)
    said = f"{len(events)} events explained, with {hidden} unrecorded steps"
    if torn:
        said += f"; {torn} torn last line{'s' if torn > 1 else ''}"
    return Verdict(True, said, len(events), hidden, torn, parts=tuple(parts))


def _broken(events: Sequence[Event]) -> tuple[Event, str] | None:
    """What needs no model: missing lines, and transactions that overlap."""
    found = gaps(events)
    if found:
        return found[0].event, found[0].message
    entered: dict[tuple[str, str, int], Event] = {}
    for event in events:
        if not event.number or event.module not in MODULES:
            continue
        if MODULES[event.module].exclusive and event.at > event.number:
            return event, (
                f"{event}: transaction {event.number} went on when transaction {event.at} had been entered: "
                "two were inside at once"
            )
        if event.action == "Publish":
            other = entered.setdefault((event.module, event.resource, event.number), event)
            if other is not event:
                return event, f"{event}: {other.place} entered under the same number: two were inside at once"
    return None


def _unexplained(part: Part, events: int, torn: int, parts: tuple[Part, ...]) -> Verdict:
    found, merged = part.found, part.merged
    search = Search(part.instance, merged, Limits())
    if not found.furthest:
        return Verdict(False, f"{part.title}: no way to begin", events, torn=torn, limit=found.limit, parts=parts)
    place = found.furthest[0]
    event = merged.events[place.next]
    details: list[str] = []
    seen: set[str] = set()
    for near in found.furthest:
        text = part.instance.shown(near.state)
        if text in seen:
            continue
        seen.add(text)
        details.append(f"  nearest state: {text}")
        for index in list(search.candidates(near))[:4]:
            details += _why(part.instance, search, near, index)
        if len(seen) == NEAREST:
            break
    what = f"limit hit ({found.limit}) before" if found.limit else "no behaviour of the model explains"
    message = f"{event.place}: {what} {event}"
    return Verdict(False, message, events, 0, torn, found.limit, event, tuple(details), parts)


def _why(instance: Instance[Any], search: Search[Any], place: Place, index: int) -> Iterable[str]:
    """Why this event cannot be next at that place."""
    event = search.merged.events[index]
    label = search.label(place, index)
    phase = instance.phase(place.state, label.node)
    after = [s for args in instance.candidates(label) for s in instance.successors(place.state, label.action, args)]
    said = []
    if after:
        said.append(_disagrees(instance, place, label, event, after))
    else:
        for refused in instance.refusals(place.state, label):
            rows = f"refused by {', '.join(refused.guards)}" if refused.guards else "no row for it"
            said.append(f"in phase {refused.phase} {refused.event} has {rows}")
        if not said:
            said.append(f"not possible in phase {phase} with what stands there")
    yield f"    {event.place} {event.action} by {event.node}: {'; '.join(said)}"


def _disagrees(instance: Instance[Any], place: Place, label: Label, event: Event, after: Sequence[Any]) -> str:
    phases = {instance.phase(s, label.node) for s in after}
    if label.phase and label.phase not in phases:
        return f"observed phase {label.phase}, the model's is {', '.join(sorted(phases))}"
    known = {model: real for real, model in place.binding.items()}
    for name, value, real in (("tenure", label.tenure, event.tenure), ("id", label.seen, event.observed.get("id"))):
        if value == NOT_SAID:
            continue
        wild = (
            label._replace(tenure=UNBOUND, seen=NOT_SAID)
            if name == "tenure"
            else label._replace(tenure=NOT_SAID, seen=UNBOUND)
        )
        stands = sorted(
            {known.get(m, "a new one") for s in after for _, m in instance.binds(place.state, s, wild)}, key=str
        )
        if real not in stands:
            return f"{name} {real!r} does not agree: the model has {', '.join(map(repr, stands)) or 'none'}"
    return "what it observed does not agree with the model"


def told(part: Part) -> Iterable[str]:
    """The explanation of one part in lines: each recorded event, and the unrecorded steps before it."""
    events = part.merged.events
    for index, outcome in part.found.steps:
        for step in outcome.path:
            if not step.event:
                yield f"  ({step.action}{_with(step.args)})"
        yield f"{events[index].place} {events[index]}"


def _with(args: Sequence[object]) -> str:
    return f" {', '.join(map(str, args))}" if args else ""
