"""The explorer: breadth-first over a world, with its properties checked on the way (DESIGN 6, 7).

`explore` answers the whole graph; `check` answers, for the properties asked for, the shortest story of a violation.
Liveness is decided on the finished graph as the absence of a reachable fair cycle, stuttering included, which is what
``Spec => (P ~> Q)`` means for a finite state machine under weak and strong fairness.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Generic

import attrs

from tenure.machines.chart import step
from tenure.models.world import LeadsTo, S, Strength, World

Label = tuple[str, tuple[Hashable, ...]]
_Instance = tuple[int, Callable[..., Iterable[S]], tuple[Hashable, ...]]


class LimitReached(Exception):
    """The graph is larger than the limit given: no verdict, never a silent truncation."""


@attrs.define
class Graph(Generic[S]):
    """The reachable graph. States are numbered in breadth-first order; `edges` are (source, label, target) numbers."""

    states: list[S]
    index: dict[S, int]
    initial: list[int]
    labels: list[Label]
    edges: list[tuple[int, int, int]]
    parents: list[tuple[int, int]]
    """(parent, label) by which each state was first reached; (-1, -1) for an initial state."""

    def path(self, number: int) -> list[tuple[Label | None, S]]:
        """The shortest story from an initial state to this one: (label taken, state reached)."""
        story: list[tuple[Label | None, S]] = []
        while number >= 0:
            parent, label = self.parents[number]
            story.append((self.labels[label] if label >= 0 else None, self.states[number]))
            number = parent
        return story[::-1]

    def transitions(self) -> set[tuple[int, str, int]]:
        """The distinct (state, action, state') that TLC would label; parameters are not part of a label."""
        names = [name for name, _ in self.labels]
        return {(source, names[label], target) for source, label, target in self.edges}


@attrs.frozen
class Violation(Generic[S]):
    """A property that does not hold, and the story that shows it. `loop` is the index the story returns to for ever."""

    name: str
    story: list[tuple[Label | None, S]]
    loop: int | None = None

    @property
    def length(self) -> int:
        """States in the story, as TLC counts them."""
        return len(self.story)


@attrs.frozen
class Outcome(Generic[S]):
    """What `check` found. `complete` is False when a violation ended the exploration early."""

    graph: Graph[S]
    violations: dict[str, Violation[S]]
    complete: bool


def explore(world: World[S], limit: int | None = None) -> Graph[S]:
    """Every reachable state and transition. Raises `LimitReached` beyond `limit` states."""
    return check(world, (), limit).graph


def check(
    world: World[S], names: Collection[str] | None = None, limit: int | None = None, *, go_on: bool = False
) -> Outcome[S]:
    """Explore and check the named properties (all for None), stopping at the first safety violation.

    With `go_on` the graph is finished all the same; nothing else is checked on the way.
    Raises KeyError for an unknown property name and `LimitReached` beyond `limit` states.
    """
    known = {**world.invariants(), **world.steps(), **world.refines(), **world.eventually()}
    wanted = list(known) if names is None else list(names)
    for name in wanted:
        if name not in known:
            raise KeyError(f"{world.module}: no property is called {name}")
    walk = _Walk(world, wanted, limit, go_on)
    found = walk.run()
    if found is not None:
        return Outcome(walk.graph, {found.name: found}, go_on)
    violations: dict[str, Violation[S]] = {}
    leads = {name: p for name, p in world.eventually().items() if name in wanted}
    if leads:
        fair = FairGraph(world, walk.graph)
        for name, promises in leads.items():
            for promise in promises if isinstance(promises, tuple) else (promises,):
                broken = fair.refute(name, promise)
                if broken is not None:
                    violations[name] = broken
                    break
    return Outcome(walk.graph, violations, True)


class _Walk(Generic[S]):
    """One breadth-first search."""

    def __init__(self, world: World[S], wanted: Collection[str], limit: int | None, go_on: bool) -> None:
        self.world = world
        self.limit = limit
        self.go_on = go_on
        self.invariants = [(n, p) for n, p in world.invariants().items() if n in wanted]
        self.steps: list[tuple[str, Callable[[S, S], bool]]] = [(n, p) for n, p in world.steps().items() if n in wanted]
        self.inits: list[tuple[str, Callable[[S], bool]]] = []
        for name, refinement in world.refines().items():
            if name in wanted:
                self.inits.append((name, refinement.starts))
                self.steps.append((name, refinement.follows))
        self.graph: Graph[S] = Graph([], {}, [], [], [], [])

    def run(self) -> Violation[S] | None:
        graph, index, states, edges = self.graph, self.graph.index, self.graph.states, self.graph.edges
        parents, steps, invariants = graph.parents, self.steps, self.invariants
        known = index.get
        first: Violation[S] | None = None
        instances: list[_Instance[S]] = []
        for action in self.world.actions():
            there = not action.mutant or action.mutant in self.world.off
            for args in action.args:
                if there:
                    instances.append((len(graph.labels), action.body, args))
                graph.labels.append((action.name, args))
        enabled = self._enabled(instances)
        for state in self.world.initial():
            if state in index:
                continue
            number = self._add(state, -1, -1)
            graph.initial.append(number)
            if first is None and (broken := self._broken_at_start(state)) is not None:
                first = Violation(broken, graph.path(number))
                if not self.go_on:
                    return first
        if first is not None:
            steps, invariants = [], []
        limit = self.limit
        source = 0
        while source < len(states):
            state = states[source]
            for label, body, args in enabled(state):
                for after in body(state, *args):
                    target = known(after)
                    fresh = target is None
                    if target is None:
                        if limit is not None and len(states) >= limit:
                            raise LimitReached(f"{self.world.module}: more than {limit} states")
                        target = len(states)
                        index[after] = target
                        states.append(after)
                        parents.append((source, label))
                    edges.append((source, label, target))
                    if steps and target != source:
                        for name, holds in steps:
                            if not holds(state, after):
                                first = Violation(name, [*graph.path(source), (graph.labels[label], after)])
                                break
                    if fresh and first is None and invariants and (broken := self._broken(after)) is not None:
                        first = Violation(broken, graph.path(target))
                    if first is not None and (steps or invariants):
                        if not self.go_on:
                            return first
                        steps, invariants = [], []
            source += 1
        return first

    def _enabled(self, instances: list[_Instance[S]]) -> Callable[[S], list[_Instance[S]]]:
        """Which instances to try in a state: all but those that `World.offers` rules out by the phases alone."""
        offers = self.world.offers() if self.world.step is step else None
        if offers is None:
            return lambda state: instances
        # By participant and phase, as bits: the instances that this phase of this participant does not rule out.
        table, phase, events = offers.table, offers.phase, offers.events
        every = (1 << len(instances)) - 1
        masks: dict[Hashable, dict[str, int]] = {}
        for bit, instance in enumerate(instances):
            name, args = self.graph.labels[instance[0]]
            for participant in _told(args) if name in events else ():
                of = masks.setdefault(participant, dict.fromkeys(table.phases, every))
                for p in table.phases:
                    if not any(table.rows[p][event] for event in events[name]):
                        of[p] &= ~(1 << bit)
        plans: dict[int, list[_Instance[S]]] = {}

        def enabled(state: S) -> list[_Instance[S]]:
            left = every
            for participant, of in masks.items():
                left &= of[phase(state, participant)]
            plan = plans.get(left)
            if plan is None:
                plan = plans[left] = []
                bits = left
                while bits:
                    bit = bits & -bits
                    plan.append(instances[bit.bit_length() - 1])
                    bits ^= bit
            return plan

        return enabled

    def _add(self, state: S, parent: int, label: int) -> int:
        number = len(self.graph.states)
        self.graph.index[state] = number
        self.graph.states.append(state)
        self.graph.parents.append((parent, label))
        return number

    def _broken_at_start(self, state: S) -> str | None:
        return next((name for name, starts in self.inits if not starts(state)), None) or self._broken(state)

    def _broken(self, state: S) -> str | None:
        for name, holds in self.invariants:
            if not holds(state):
                return name
        return None


def _told(args: tuple[Hashable, ...]) -> Iterable[Hashable]:
    """Those whose machines an action tells: its first parameter, or every member of it."""
    return args[0] if isinstance(args[0], frozenset) else args[:1]


class FairGraph(Generic[S]):
    """A finished graph with the world's fairness, ready to refute leads-to properties."""

    def __init__(self, world: World[S], graph: Graph[S]) -> None:
        self.graph = graph
        self.conditions = world.fairness()
        label_of = {label: i for i, label in enumerate(graph.labels)}
        member: list[list[int]] = [[] for _ in graph.labels]
        for c, condition in enumerate(self.conditions):
            for instance in condition.instances:
                if instance not in label_of:
                    raise KeyError(f"{world.module}: fairness names {instance}, which is no action")
                member[label_of[instance]].append(c)
        self.member = member
        self.enabled: list[set[int]] = [set() for _ in self.conditions]
        self.out: list[list[tuple[int, int]]] = [[] for _ in graph.states]
        for source, label, target in graph.edges:
            if source != target:
                self.out[source].append((label, target))
                for c in member[label]:
                    self.enabled[c].add(source)

    def refute(self, name: str, promise: LeadsTo[S]) -> Violation[S] | None:
        """The shortest story, of those looked at, of a fair behaviour that breaks the promise; None if there is none.

        A behaviour that stops where no fair action is enabled is looked at first, then, for each component in which a
        fair behaviour can stay, the way to its nearest state and a round from there.
        """
        states = self.graph.states
        lacking = {i for i, s in enumerate(states) if not promise.goal(s)}
        parents, lengths = self._reached(lacking, [i for i in lacking if promise.premise(states[i])])
        best: Violation[S] | None = None
        quiet = next((i for i in lengths if not any(i in enabled for enabled in self.enabled)), None)
        if quiet is not None:
            best = self._story(name, quiet, parents, [])
        entries = [(min(c, key=lengths.__getitem__), c) for c in self._fair_components(set(lengths)) if len(c) > 1]
        for entry, component in sorted(entries, key=lambda found: (lengths[found[0]], found[0])):
            if best is not None and best.length <= lengths[entry]:
                break
            story = self._story(name, entry, parents, self._round(component, entry))
            if best is None or story.length < best.length:
                best = story
        return best

    def _reached(self, lacking: set[int], starts: list[int]) -> tuple[dict[int, tuple[int, int]], dict[int, int]]:
        """What is reached from `starts` without leaving `lacking`: (parent, label), and states on the way from Init.

        The second is in the order of its values. A start has the parent (-1, -1): the way to it is the graph's own.
        """
        depth: list[int] = []
        for parent, _ in self.graph.parents:
            depth.append(1 if parent < 0 else depth[parent] + 1)
        waiting = [(depth[i], i, -1, -1) for i in starts]
        heapq.heapify(waiting)
        parents: dict[int, tuple[int, int]] = {}
        lengths: dict[int, int] = {}
        while waiting:
            length, node, source, label = heapq.heappop(waiting)
            if node in lengths:
                continue
            lengths[node], parents[node] = length, (source, label)
            for label, target in self.out[node]:
                if target in lacking and target not in lengths:
                    heapq.heappush(waiting, (length + 1, target, node, label))
        return parents, lengths

    def _story(
        self, name: str, entry: int, parents: dict[int, tuple[int, int]], around: list[tuple[int, int, int]]
    ) -> Violation[S]:
        tail: list[tuple[Label | None, S]] = []
        number = entry
        while parents[number][0] >= 0:
            source, label = parents[number]
            tail.append((self.graph.labels[label], self.graph.states[number]))
            number = source
        story = [*self.graph.path(number), *tail[::-1]]
        loop = len(story) - 1
        story += [(self.graph.labels[label], self.graph.states[target]) for _, label, target in around]
        return Violation(name, story, loop)

    def _round(self, component: set[int], entry: int) -> list[tuple[int, int, int]]:
        """A fair walk from `entry` and back: it takes, or passes a state that disables, whatever must be taken."""
        walk: list[tuple[int, int, int]] = []
        here = entry
        while True:
            home = self._within(component, here, lambda node: node == entry)
            unmet = self._unmet(entry, walk + home)
            if unmet is None:
                return walk + home
            takes = {s for s in component for label, t in self.out[s] if t in component and unmet in self.member[label]}
            weak = self.conditions[unmet].strength is Strength.WEAK
            rests = component - self.enabled[unmet] if weak else set()
            wanted = takes | rests
            walk += self._within(component, here, wanted.__contains__)
            here = walk[-1][2] if walk else entry
            if here not in rests:
                label, target = next(
                    (label, t) for label, t in self.out[here] if t in component and unmet in self.member[label]
                )
                walk.append((here, label, target))
                here = target

    def _unmet(self, entry: int, walk: list[tuple[int, int, int]]) -> int | None:
        """The first condition under which it is not fair to repeat this walk for ever."""
        passed = {entry, *(target for _, _, target in walk)}
        taken = {c for _, label, _ in walk for c in self.member[label]}
        for c, condition in enumerate(self.conditions):
            enabled = passed & self.enabled[c]
            if c not in taken and (enabled == passed if condition.strength is Strength.WEAK else enabled):
                return c
        return None

    def _within(self, component: set[int], start: int, wanted: Callable[[int], bool]) -> list[tuple[int, int, int]]:
        """The shortest walk in the component to a state that is wanted, as (source, label, target)."""
        parents: dict[int, tuple[int, int]] = {start: (-1, -1)}
        queue = [start]
        goal = start
        for goal in queue:
            if wanted(goal):
                break
            for label, target in self.out[goal]:
                if target in component and target not in parents:
                    parents[target] = (goal, label)
                    queue.append(target)
        walk: list[tuple[int, int, int]] = []
        while goal != start:
            source, label = parents[goal]
            walk.append((source, label, goal))
            goal = source
        return walk[::-1]

    def _fair_components(self, nodes: set[int]) -> Iterator[set[int]]:
        """Components (single stuttering states included) in which a fair behaviour can stay for ever."""
        for component in _components(nodes, self.out):
            taken = {c for s in component for label, t in self.out[s] if t in component for c in self.member[label]}
            shrink: set[int] = set()
            fair = True
            for c, condition in enumerate(self.conditions):
                if c in taken:
                    continue
                enabled = component & self.enabled[c]
                if condition.strength is Strength.WEAK:
                    fair = fair and enabled != component
                else:
                    shrink |= enabled
            if not fair:
                continue
            if shrink:
                yield from self._fair_components(component - shrink)
            else:
                yield component


def _components(nodes: set[int], out: list[list[tuple[int, int]]]) -> Iterator[set[int]]:
    """Tarjan's strongly connected components of the subgraph on `nodes`, without recursion."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in nodes:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(out[root]))]
        while work:
            node, edges = work[-1]
            for _, target in edges:
                if target not in nodes:
                    continue
                if target not in number:
                    number[target] = low[target] = len(number)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(out[target])))
                    break
                if target in on_stack:
                    low[node] = min(low[node], number[target])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == number[node]:
                    component: set[int] = set()
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.add(member)
                        if member == node:
                            break
                    yield component
