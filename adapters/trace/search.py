"""The search for a behaviour of the twin that explains every event (DESIGN 8).

Depth first along the merged order, with a memory of what led nowhere: a place in the search is which events are taken,
the twin's state and what identities stand for. At each place the next event is tried first, with as few unrecorded
steps as will do; then other nodes' next events, as far as the order leaves it open; then more far-fetched steps. So a
trace of what is usual is walked once.

Unrecorded steps stand directly before the event that needs them. That loses nothing that matters: a step of a node
that only looks is needed by that node's next event alone, and one that changes what others see is needed first by
whoever sees it; what never is needed never is taken.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

import attrs

from tenure.adapters.trace.instance import FAR, UNBOUND, Binding, Instance, Label, Outcome, Taken
from tenure.adapters.trace.merge import Merged

S = TypeVar("S", bound=Hashable)

NEAR: Final = 12
"""What hidden steps may cost together before another order of the events is tried."""
WINDOW: Final = 48
"""How many events may be waiting for a later one to be explained first."""


@attrs.frozen
class Limits:
    """When the search gives up without an answer."""

    places: int = 400_000
    """Places from which no way on was found."""
    seconds: float = 120.0


class Place(NamedTuple):
    """A place in the search. `next`: the first event that is not taken; `ahead`: those after it that are."""

    next: int
    ahead: frozenset[int]
    state: Any
    binding: Binding


@attrs.frozen
class Found(Generic[S]):
    """What the search came to. Without `steps` and `limit`, no behaviour explains the events."""

    start: S | None
    steps: tuple[tuple[int, Outcome], ...]
    """The events in the order of the explanation, each with the steps that lead to it."""
    furthest: tuple[Place, ...]
    """The places that came furthest, when there is no explanation."""
    limit: str = ""
    places: int = 0


class Search(Generic[S]):
    """One search, over one instance and its merged events."""

    def __init__(self, instance: Instance[S], merged: Merged, limits: Limits) -> None:
        self.instance = instance
        self.merged = merged
        self.limits = limits
        self.count = len(merged.events)

    def run(self) -> Found[S]:
        """Search. The instance keeps what it learnt."""
        started = time.monotonic()
        dead: set[tuple[int, frozenset[int], S, frozenset[tuple[str | int, int]]]] = set()
        best = -1
        furthest: list[Place] = []
        cut = False
        for start in self.instance.initial():
            place = Place(0, frozenset(), start, {})
            stack: list[tuple[Place, Iterator[tuple[int, Outcome, Binding]]]] = []
            trail: list[tuple[int, Outcome]] = []
            if self.count == 0:
                return Found(start, (), ())
            stack.append((place, self._choices(place)))
            while stack:
                here, choices = stack[-1]
                step = next(choices, None)
                if step is None:
                    stack.pop()
                    if trail:
                        trail.pop()
                    taken = here.next + len(here.ahead)
                    if taken > best:
                        best, furthest = taken, []
                    if taken == best and len(furthest) < 16:
                        furthest.append(here)
                    dead.add(_key(here))
                    if len(dead) > self.limits.places:
                        return Found(None, (), tuple(furthest), f"{self.limits.places} places without a way on")
                    if len(dead) % 64 == 0 and time.monotonic() - started > self.limits.seconds:
                        return Found(None, (), tuple(furthest), f"{self.limits.seconds:g} seconds")
                    continue
                index, outcome, binding = step
                there = self._after(here, index, outcome, binding)
                if dead and _key(there) in dead:
                    continue
                trail.append((index, outcome))
                if there.next == self.count:
                    return Found(start, tuple(trail), (), "", len(dead))
                stack.append((there, self._choices(there)))
            cut = cut or self.instance.cut
        limit = "the states looked at before one event" if cut else ""
        return Found(None, (), tuple(furthest), limit, len(dead))

    def label(self, place: Place, index: int) -> Label:
        """The event in the model's terms, at a place."""
        return self.instance.label(self.merged.events[index], place.binding)

    def candidates(self, place: Place) -> Iterator[int]:
        """The events that could be next, in the order that guides."""
        index, ahead = place.next, place.ahead
        yield index
        merged = self.merged
        pinned = merged.pinned[index]
        waiting = {index}
        while len(waiting) < WINDOW and (index := index + 1) < self.count:
            if index in ahead:
                continue
            if merged.before[index] in waiting or (pinned and merged.pinned[index]):
                waiting.add(index)
            else:
                yield index
                waiting.add(index)
            pinned = pinned or merged.pinned[index]

    def ended(self, place: Place) -> frozenset[str]:
        """The processes whose events are all taken."""
        ended = self.merged.ended[place.next]
        for index in place.ahead:
            if index in self.merged.last:
                name = self.merged.last[index]
                rest = range(place.next, index)
                events = self.merged.events
                if all(j in place.ahead or self.instance.process_of(events[j]) != name for j in rest):
                    ended |= {name}
        return ended

    def _choices(self, place: Place) -> Iterator[tuple[int, Outcome, Binding]]:
        instance, binding = self.instance, place.binding
        ended = self.merged.ended[place.next] if not place.ahead else self.ended(place)
        tried: list[tuple[int, Any, Label, int]] = []
        for index in self.candidates(place):
            label = self.label(place, index)
            outcomes = instance.outcomes(place.state, label, ended)
            count = 0
            while (outcome := outcomes.get(count, NEAR)) is not None:
                count += 1
                after = self._bind(binding, index, label, outcome)
                if after is not None:
                    yield index, outcome, after
            tried.append((index, outcomes, label, count))
        for index, outcomes, label, count in tried:
            while (outcome := outcomes.get(count, FAR)) is not None:
                count += 1
                after = self._bind(binding, index, label, outcome)
                if after is not None:
                    yield index, outcome, after
            if outcomes.cut:
                instance.cut = True

    def _bind(self, binding: Binding, index: int, label: Label, outcome: Outcome) -> Binding | None:
        """What identities stand for after the step; None where it contradicts what they stood for."""
        if not outcome.drawn and not outcome.binds:
            return binding
        drawn = outcome.drawn
        if drawn and self.instance.recycles:
            after = {real: model for real, model in binding.items() if model not in drawn}
        else:
            after = dict(binding)
        event = self.merged.events[index]
        for which, model in outcome.binds:
            real = event.tenure if which == "tenure" else event.observed["id"]
            if not isinstance(real, (str, int)) or model <= 0 or after.get(real, model) != model:
                return None
            if real not in after:
                if model in after.values() or not self.instance.may_bind(after, real, model):
                    return None
                after[real] = model
        for which, model in (("tenure", label.tenure), ("id", label.seen)):
            # An identity that was drawn anew on the way is no longer what the label took it for.
            if model > UNBOUND and model in drawn:
                real = event.tenure if which == "tenure" else event.observed.get("id")
                if isinstance(real, (str, int)) and after.get(real) != model:
                    return None
        return after

    def _after(self, here: Place, index: int, outcome: Outcome, binding: Binding) -> Place:
        if index != here.next:
            return Place(here.next, here.ahead | {index}, outcome.state, binding)
        following, ahead = index + 1, here.ahead
        while following in ahead:
            ahead -= {following}
            following += 1
        return Place(following, ahead, outcome.state, binding)


def _key(place: Place) -> tuple[int, frozenset[int], Any, frozenset[tuple[str | int, int]]]:
    return place.next, place.ahead, place.state, frozenset(place.binding.items())


def steps_of(found: Found[Any]) -> Iterator[Taken]:
    """The whole behaviour, step by step."""
    for _, outcome in found.steps:
        yield from outcome.path
