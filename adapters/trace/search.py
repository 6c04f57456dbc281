"""The search for a behaviour of the twin that explains every event (DESIGN 8).

Depth first along the merged order, with a memory of what led nowhere: a place in the search is which events are taken,
the twin's state and what identities stand for. At each place the next event is tried first, with as few unrecorded
steps as will do; then other nodes' next events, as far as the order leaves it open; then more far-fetched steps. So a
trace of what is usual is walked once.

When all ways to explain the last `BACK` events before one that cannot be explained have been tried, that is the
answer: an explanation of what came long before, unlike the one found, would have to be needed by this event and by
none between.

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

_FURTHER: Final = frozenset({"MoveAway", "DeleteReleased", "DeleteStale", "Leave"})
NEAR: Final = 12
"""What hidden steps may cost together before another order of the events is tried."""
CLOSE: Final = 2
"""What hidden steps may cost together before it is tried whether a look was recorded late."""
PASSES: Final = ((1_000, 300), (0, 3_000), (1, 3_000), (4, 6_000), (16, 12_000))
"""How many far-fetched outcomes a behaviour may have, and after how many dead ends the next pass is made."""
BACK: Final = 12
"""How many events before one that nothing explains are explained anew, in every way, before it is given up."""
LATE: Final = 500
"""How many events back a look may have seen what it says."""
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
    far: int
    """How often far-fetched steps may still be resorted to."""


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
        self._until = 0.0
        self._skipped = False
        """Something far-fetched was left out."""
        self._stack: list[tuple[Place, Iterator[tuple[int, Outcome, Binding]]]] = []
        self._trail: list[tuple[int, Outcome]] = []

    def run(self) -> Found[S]:
        """Search: first without far-fetched steps, then with a few in the whole behaviour, in the end with any number
        of them. The instance keeps what it learnt."""
        if self.count == 0:
            return Found(next(iter(self.instance.initial())), (), ())
        self._until = time.monotonic() + self.limits.seconds
        found: Found[S] | None = None
        for far, places in (*PASSES, (self.count, self.limits.places)):
            self._skipped = False
            found = self._pass(far, min(places, self.limits.places))
            if found.start is not None or time.monotonic() > self._until:
                break
            if not found.limit and not self._skipped:
                break  # there was nothing that more passes could add
        assert found is not None
        return found

    def _pass(self, far: int, places: int) -> Found[S]:
        dead: set[tuple[int, frozenset[int], S, frozenset[tuple[str | int, int]], int]] = set()
        best = deepest = floor = -1
        furthest: list[Place] = []
        for start in self.instance.initial():
            place = Place(0, frozenset(), start, {}, far)
            stack: list[tuple[Place, Iterator[tuple[int, Outcome, Binding]]]] = []
            trail: list[tuple[int, Outcome]] = []
            self._stack, self._trail = stack, trail
            stack.append((place, self._choices(place)))
            while stack:
                here, choices = stack[-1]
                step = next(choices, None)
                if step is None:
                    if len(stack) > deepest:
                        deepest, floor = len(stack), min(len(stack) - BACK, self._since(here.next))
                    if len(stack) < floor:
                        self._skipped = True
                        return Found(None, (), tuple(furthest), "", len(dead))
                    stack.pop()
                    if trail:
                        trail.pop()
                    taken = here.next + len(here.ahead)
                    if taken > best:
                        best, furthest = taken, []
                    if taken == best and len(furthest) < 16:
                        furthest.append(here)
                    dead.add(_key(here))
                    if len(dead) >= places:
                        return Found(None, (), tuple(furthest), f"{places} places without a way on", len(dead))
                    if time.monotonic() > self._until:
                        limit = f"{self.limits.seconds:g} seconds"
                        return Found(None, (), tuple(furthest), limit, len(dead))
                    continue
                index, outcome, binding = step
                there = self._after(here, index, outcome, binding)
                if dead and _key(there) in dead:
                    continue
                trail.append((index, outcome))
                if there.next == self.count:
                    return Found(start, tuple(trail), (), "", len(dead))
                stack.append((there, self._choices(there)))
        limit = "the states looked at before one event" if self.instance.cut else ""
        return Found(None, (), tuple(furthest), limit, len(dead))

    def _since(self, index: int) -> int:
        """How deep the search was when the event could have been first, if its place in the order is open."""
        if self.merged.pinned[index] or not self.instance.reorders:
            return self.count
        before = self.merged.before[index]
        return next((d for d in range(len(self._trail), 0, -1) if self._trail[d - 1][0] == before), 0)

    def label(self, place: Place, index: int) -> Label:
        """The event in the model's terms, at a place."""
        return self.instance.label(self.merged.events[index], place.binding)

    def candidates(self, place: Place) -> Iterator[int]:
        """The events that could be next, in the order that guides."""
        index, ahead = place.next, place.ahead
        yield index
        if not self.instance.reorders:
            return
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
            late = instance.reads(label)
            while (outcome := outcomes.get(count, NEAR)) is not None:
                if late and outcome.cost > CLOSE:
                    late = False
                    yield from self._late(place, index, label)
                count += 1
                after = self._bind(binding, index, label, outcome)
                if after is not None:
                    yield index, outcome, after
                    if len(outcome.path) == 1 and instance.local(label):
                        return
            tried.append((index, outcomes, label, count))
            if late:
                yield from self._late(place, index, label)
        for index, outcomes, label, count in tried:
            if not place.far:
                self._skipped = self._skipped or outcomes.more
                continue
            if time.monotonic() > self._until:
                return
            while (outcome := outcomes.get(count, FAR)) is not None:
                count += 1
                after = self._bind(binding, index, label, outcome)
                if after is not None:
                    yield index, outcome, after
            if outcomes.cut:
                instance.cut = True

    def _late(self, place: Place, index: int, label: Label) -> Iterator[tuple[int, Outcome, Binding]]:
        for outcome in self._earlier(place, index, label):
            after = self._bind(place.binding, index, label, outcome)
            if after is not None:
                yield index, outcome, after

    def _earlier(self, place: Place, index: int, label: Label) -> Iterator[Outcome]:
        """What the event may have seen earlier, the latest first: back to its node's event before, and further back if
        that one may have been earlier as well, being the node's alone or a look that was late itself."""
        instance, trail, before, me = self.instance, self._trail, self.merged.before[index], label.node
        part, company = instance.part(place.state, me), instance.company(place.state, me)
        seen, crossed, first = {place.state}, False, max(len(trail) - LATE, 0)
        for at in range(len(trail) - 1, -1, -1):
            taken, outcome = trail[at]
            then = self._stack[at][0].state
            if taken == before:
                if outcome.late:
                    first = max(first, at - outcome.late)
                elif self._alone(at):
                    crossed = True
                else:
                    return
                before, part = self.merged.before[before], instance.part(then, me)
            if at < first or instance.part(then, me) != part:
                return
            if crossed and instance.company(then, me) != company:
                return
            then = instance.graft(then, place.state, label)
            if then in seen:
                continue
            seen.add(then)
            late = len(trail) - at
            for args in instance.candidates(label):
                for after in instance.successors(then, label.action, args):
                    if instance.agrees(then, after, label, args):
                        state = instance.graft(place.state, after, label)
                        path = (Taken(label.action, args, True),)
                        yield Outcome(NEAR, path, state, (), instance.binds(then, after, label), 0, late)
            if instance.stutters(then, label):
                yield Outcome(NEAR, (), place.state, (), (), 0, late)

    def _alone(self, at: int) -> bool:
        """Whether what was taken there is nothing to anybody but its node, so that it may have been taken earlier."""
        index, outcome = self._trail[at]
        if len(outcome.path) > 1 or outcome.drawn or self.merged.pinned[index]:
            return False
        return self.instance.local(self.label(self._stack[at][0], index))

    def _bind(self, binding: Binding, index: int, label: Label, outcome: Outcome) -> Binding | None:
        """What identities stand for after the step; None where it contradicts what they stood for."""
        if outcome.further and self.merged.after[index] in _FURTHER:
            return None  # it was recorded: it is an event of its own
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
        far = here.far - 1 if outcome.cost > NEAR else here.far
        if index != here.next:
            return Place(here.next, here.ahead | {index}, outcome.state, binding, far)
        following, ahead = index + 1, here.ahead
        while following in ahead:
            ahead -= {following}
            following += 1
        return Place(following, ahead, outcome.state, binding, far)


def _key(place: Place) -> tuple[int, frozenset[int], Any, frozenset[tuple[str | int, int]], int]:
    return place.next, place.ahead, place.state, frozenset(place.binding.items()), place.far


def steps_of(found: Found[Any]) -> Iterator[Taken]:
    """The whole behaviour, step by step."""
    for _, outcome in found.steps:
        yield from outcome.path
