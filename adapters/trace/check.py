"""Whether the models explain a trace: merge, instantiate, search, and say what stands in the way (DESIGN 8)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from tenure.adapters.trace.durable_admission import DurableAdmissions
from tenure.adapters.trace.fenced_commit import FencedCommits
from tenure.adapters.trace.file_transaction import FileTransactions
from tenure.adapters.trace.follower_registration import FollowerRegistrations
from tenure.adapters.trace.instance import FAR, NOT_SAID, UNBOUND, Instance, Label, Taken
from tenure.adapters.trace.leader_election import LeaderElections
from tenure.adapters.trace.lines import BadTrace, Event, Trace, collector_paused
from tenure.adapters.trace.merge import Merged, gaps, groups, merge
from tenure.adapters.trace.polling_ownership import PollingOwnerships
from tenure.adapters.trace.queue_handoff import QueueHandoffs
from tenure.adapters.trace.runtime_recovery import RuntimeRecoveries
from tenure.adapters.trace.search import Found, Limits, Place, Search, steps_of
from tenure.adapters.trace.succession import Successions

MODULES: Final[Mapping[str, type[Instance[Any]]]] = {
    kind.module: kind
    for kind in (
        FileTransactions,
        LeaderElections,
        PollingOwnerships,
        FencedCommits,
        RuntimeRecoveries,
        Successions,
        FollowerRegistrations,
        DurableAdmissions,
        QueueHandoffs,
    )
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


def check(trace: Trace, limits: Limits | None = None, passed_over: Collection[str] = ()) -> Verdict:
    """Explain every event, or name the first that cannot be. Raises `BadTrace` for events of no known module, and where
    there is no event: what was not recorded was not checked.

    The events of modules that are `passed_over` are counted and read, and not explained."""
    with collector_paused():
        return _check(trace, limits or Limits(), frozenset(passed_over))


def _check(trace: Trace, limits: Limits, passed_over: frozenset[str]) -> Verdict:
    events, torn = trace.events, trace.torn
    if not events:
        names = f"{', '.join(trace.files)}: " if trace.files else ""
        raise BadTrace(f"{names}no event was recorded; name what a recorder wrote, or see why it wrote nothing")
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
        if module in passed_over:
            continue
        title = f"{module} of {resource}" if resource else module
        kind = MODULES[module]
        whole = kind.gathered(group, events)
        instance = kind.of(whole, title, pool)
        for event in group:
            instance.check_event(event)
        merged = merge(whole, instance)
        found = Search(instance, merged, limits).run()
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
    """Why this event cannot be next at that place: what it says that does not agree, or what refuses it."""
    event = search.merged.events[index]
    label = search.label(place, index)
    said = list(_disagrees(instance, search, place, label, event))
    if not said:
        phase = instance.phase(place.state, label.node)
        for refused in instance.refusals(place.state, label):
            rows = f"refused by {', '.join(refused.guards)}" if refused.guards else "no row for it"
            said.append(f"in phase {refused.phase} {refused.event} has {rows}")
        said = said or [f"not possible in phase {phase} with what stands there"]
    yield f"    {event.place} {event.action} by {event.node}: {'; '.join(said)}"


def _disagrees(instance: Instance[Any], search: Search[Any], place: Place, label: Label, event: Event) -> Iterable[str]:
    """What the model has instead, if the event could be next but for one thing that it says."""
    known = {model: real for real, model in place.binding.items()}
    tries = [
        (f"tenure {event.tenure!r}", label._replace(tenure=UNBOUND), label.tenure != NOT_SAID),
        (f"id {event.observed.get('id')!r}", label._replace(seen=UNBOUND), label.seen != NOT_SAID),
        ("what it observed", label._replace(seen=NOT_SAID, more=()), bool(label.more)),
        (f"phase {label.phase}", label._replace(phase=""), bool(label.phase)),
    ]
    for what, wild, applies in tries:
        outcome = instance.outcomes(place.state, wild, search.ended(place)).get(0, FAR) if applies else None
        if outcome is None:
            continue
        stands = [str(known.get(model, "a new one")) for _, model in outcome.binds]
        if what.startswith("phase"):
            stands = [instance.phase(outcome.state, label.node)]
        elif (
            what.startswith(("tenure", "id"))
            and str(event.tenure if what[0] == "t" else event.observed.get("id")) in stands
        ):
            continue
        yield f"{what} does not agree" + (f": the model has {stands[0]}" if stands else "")
        return


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
