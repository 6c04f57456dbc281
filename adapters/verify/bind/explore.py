"""Every interleaving of the participants' calls, with a crash or an error at each, held against the twin."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable, Iterator
from typing import Generic

import attrs

from tenure.adapters.ports import Ports
from tenure.adapters.verify.bind.binding import Binding, Move, World
from tenure.adapters.verify.bind.calls import Answer, Call, Got
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.disk import Disks, identities
from tenure.adapters.verify.bind.fingerprint import Fingerprints
from tenure.adapters.verify.bind.learner import Learner, Local
from tenure.adapters.verify.bind.replay import NotDeterministic, Replay
from tenure.adapters.verify.bind.situations import DEAD, Found, Limits, Situation
from tenure.adapters.verify.bind.track import Exact, Tracker
from tenure.models.world import S


class Explorer(Generic[S]):
    """One breadth-first search, so that the first story is a shortest one."""

    def __init__(self, binding: Binding[S], limits: Limits | None = None) -> None:
        self.binding = binding
        self.limits = limits or Limits()
        self.disks = Disks()
        self.tracker = Tracker(binding)
        self.fingerprints = Fingerprints((Ports, ControlledPorts, Replay, Binding, *binding.constants))
        self.learners: dict[tuple[int, int], Learner] = {}
        self.shared: dict[World, Hashable] = {}
        self.named: dict[tuple[int, int, int], frozenset[int]] = {}
        self.nodes: list[tuple[Situation, int]] = []
        self.parents: list[tuple[int, str]] = []
        self.met: dict[Situation, list[int]] = {}
        self.steps = 0

    def run(self) -> Found:
        """Explore. Raises `NotDeterministic`."""
        started = time.process_time()
        story: tuple[str, ...] = ()
        limit = ""
        queue: deque[int] = deque()
        first = self._first()
        if isinstance(first, str):
            story = (first,)
        else:
            queue.append(first)
        while queue:
            source = queue.popleft()
            found = self._from(source, queue)
            if found is not None:
                story = found
                break
            if len(self.nodes) > self.limits.situations:
                limit = f"more than {self.limits.situations} situations"
                break
            if time.process_time() - started > self.limits.seconds:
                limit = f"more than {self.limits.seconds:g} s"
                break
        return Found(
            len(self.nodes),
            self.steps,
            sum(len(learner.known) for learner in self.learners.values()),
            len(self.tracker.sets),
            time.process_time() - started,
            story,
            limit,
        )

    # -- beginnings ---------------------------------------------------------------------------------------------------

    def _first(self) -> int | str:
        world = self.binding.initial(self.disks)
        count = len(self.binding.participants)
        situation = Situation(world, (DEAD,) * count, (1,) * count, self.binding.budget)
        for i in range(count):
            situation = self._place(situation, i, self._learner(i, 1).start())
        number = self.tracker.start(self._shared(world))
        if number is None:
            return "the twin has no initial state like this world"
        for i in range(count):
            begun = self._begun(situation, number, i)
            if begun is None:
                return f"the twin's {self.binding.participants[i].name} cannot begin as the adapter does"
            number = begun
        found = self._reach(situation, number, -1, "")
        assert found is not None
        return found

    def _begun(self, situation: Situation, number: int, i: int) -> int | None:
        """The twin's states after what participant `i` does before its first call."""
        observed = self._local(situation, i).observed
        shared = self._shared(situation.world)
        return self.tracker.told(
            number,
            self.binding.participants[i].name,
            shared,
            shared,
            None if observed == self.binding.at_rest else observed,
            self._phases(situation),
            situation.left,
            self._exact(situation),
        )

    def _learner(self, i: int, birth: int) -> Learner:
        found = self.learners.get((i, birth))
        if found is None:
            binding, participant = self.binding, self.binding.participants[i]
            found = self.learners[i, birth] = Learner(
                participant.program,
                binding.me(participant.pid, birth),
                binding.observe,
                binding.at_end,
                self.fingerprints,
                binding.ticking,
            )
        return found

    # -- one situation ------------------------------------------------------------------------------------------------

    def _from(self, source: int, queue: deque[int]) -> tuple[str, ...] | None:
        """Everything that may happen next; a story if the twin cannot follow."""
        situation, number = self.nodes[source]
        binding = self.binding
        alone = next((i for i in self._waiting(situation) if self._private(situation, i)), None)
        for i in self._waiting(situation) if alone is None else (alone,):
            for after, answer, torn in self._answers(situation, i):
                story = self._told(source, situation, number, i, after, answer, torn, queue)
                if story is not None:
                    return story
        for move in binding.moves(situation.world, situation.left):
            if move.cost > situation.left:
                continue
            if alone is not None and binding.participants[alone].pid not in move.ends:
                continue
            story = self._befallen(source, situation, number, move, queue)
            if story is not None:
                return story
        return None

    def _waiting(self, situation: Situation) -> Iterator[int]:
        for i, local in enumerate(situation.locals):
            if local != DEAD and self._local(situation, i).call is not None:
                yield i

    def _private(self, situation: Situation, i: int) -> bool:
        call, observed = self._call(situation, i), self._local(situation, i).observed
        return self.binding.private(call, observed, situation.world, situation.left)

    def _local(self, situation: Situation, i: int) -> Local:
        return self.learners[i, situation.births[i]].locals[situation.locals[i]]

    def _call(self, situation: Situation, i: int) -> Call:
        call = self._local(situation, i).call
        assert call is not None
        return call

    def _answers(self, situation: Situation, i: int) -> Iterator[tuple[Situation, Answer, str]]:
        """The situations after each answer to the pending call of `i`."""
        binding, world = self.binding, situation.world
        participant, call = binding.participants[i], self._call(situation, i)
        for answer, after, cost in binding.outcomes(self.disks, world, participant, call):
            if cost > situation.left:
                continue
            yield situation.moved(after, situation.left - cost), answer, ""
            if cost == 0 and situation.left > 0:
                for fault in binding.faults(call):
                    if fault == answer or (fault.done and not isinstance(answer, Got)):
                        continue
                    where = after if fault.done else world
                    yield situation.moved(where, situation.left - 1), fault, " (fault)"

    def _told(
        self,
        source: int,
        before: Situation,
        number: int,
        i: int,
        after: Situation,
        answer: Answer,
        mark: str,
        queue: deque[int],
    ) -> tuple[str, ...] | None:
        self.steps += 1
        name = self.binding.participants[i].name
        call = self._call(before, i)
        after = self._place(after, i, self.learners[i, before.births[i]].after(before.locals[i], answer))
        was, now = self._local(before, i), self._local(after, i)
        changed = now.observed if now.observed != was.observed else None
        shown = f"{name}: {call} -> {answer}{mark}" + (f"   [{_spell(changed)}]" if changed is not None else "")
        fault = self.binding.fault_of(now.result) if now.call is None else ""
        if fault:
            return (*self._story(source), shown, fault)
        found = self.tracker.told(
            number,
            name,
            self._shared(before.world),
            self._shared(after.world),
            changed,
            self._phases(after),
            after.left,
            self._exact(after),
        )
        if found is None:
            return (*self._story(source), shown, *self._why(number, name, before.world, after.world, changed))
        self._reach(after, found, source, shown, queue)
        return None

    def _befallen(
        self, source: int, before: Situation, number: int, move: Move, queue: deque[int]
    ) -> tuple[str, ...] | None:
        self.steps += 1
        after = before.moved(move.after, before.left - move.cost)
        for i, participant in enumerate(self.binding.participants):
            if participant.pid in move.ends:
                after = self._at(after, i, DEAD)
            elif participant.pid in move.starts:
                process = move.after.process(participant.pid)
                assert process is not None
                births = tuple(process[1] if j == i else b for j, b in enumerate(after.births))
                after = attrs.evolve(after, births=births)
                after = self._place(after, i, self._learner(i, process[1]).start())
        shared = self._shared(after.world)
        seen = tuple(
            (self.binding.participants[i].name, self._local(before, i).observed)
            for i in (self._waiting(before) if move.assumed else ())
        )
        found = self.tracker.befallen(
            number, move.twin, shared, self._phases(after), after.left, self._exact(after), seen
        )
        for i, participant in enumerate(self.binding.participants):
            if found is not None and participant.pid in move.starts:
                found = self._begun(after, found, i)
        if found is None and move.assumed:
            return None
        if found is None:
            why = f"the twin has no {' or '.join(n for n, _ in move.twin) or 'stuttering'} that leads there"
            return (*self._story(source), move.label, why)
        self._reach(after, found, source, move.label, queue)
        return None

    def _place(self, situation: Situation, i: int, local: int) -> Situation:
        """`i` is in this local state now; what it draws there it is given at once, since nobody else can tell."""
        learner = self.learners[i, situation.births[i]]
        situation = self._at(situation, i, local)
        while (call := learner.locals[situation.locals[i]].call) is not None and call.name == "draw":
            number = self._fresh(situation, i)
            situation = self._at(situation, i, learner.after(situation.locals[i], Got(number)))
        return situation

    @staticmethod
    def _at(situation: Situation, i: int, local: int) -> Situation:
        before = situation.locals
        return Situation(situation.world, (*before[:i], local, *before[i + 1 :]), situation.births, situation.left)

    def _fresh(self, situation: Situation, i: int) -> int:
        """The least number that nothing refers to any more, of those that `i` draws from: what it draws does not
        depend on where the others are, so that fewer situations are told apart."""
        used = set(self.disks.identities(situation.world.disk))
        for i, local in enumerate(situation.locals):
            if local != DEAD:
                key = (i, situation.births[i], local)
                names = self.named.get(key)
                if names is None:
                    names = self.named[key] = identities(self._local(situation, i).texts)
                used |= names
        number = i + 1
        while number in used:
            number += len(self.binding.participants)
        return number

    def _shared(self, world: World) -> Hashable:
        if world not in self.shared:
            self.shared[world] = self.binding.shared(self.disks, world)
        return self.shared[world]

    def _phases(self, situation: Situation) -> tuple[str | None, ...]:
        found: list[str | None] = []
        for i, local in enumerate(situation.locals):
            here = None if local == DEAD else self._local(situation, i)
            going = here is not None and here.call is not None and not self.binding.settled(here.call)
            found.append(str(here.observed[0]) if going and isinstance(here.observed, tuple) else None)  # type: ignore[union-attr]
        return tuple(found)

    def _exact(self, situation: Situation) -> Exact:
        """What the twin's participants have to be that are in the middle of nothing."""
        return tuple(
            (self.binding.participants[i].name, self._local(situation, i).observed)
            for i in self._waiting(situation)
            if self.binding.settled(self._call(situation, i))
        )

    def _reach(
        self, situation: Situation, number: int, source: int, label: str, queue: deque[int] | None = None
    ) -> int | None:
        """Note the situation, unless it was met with fewer states of the twin: then all was shown already."""
        before = self.met.setdefault(situation, [])
        sets = self.tracker.sets
        here = sets[number]
        if any(known == number or sets[known] <= here for known in before):
            return None
        before.append(number)
        self.nodes.append((situation, number))
        self.parents.append((source, label))
        if queue is not None:
            queue.append(len(self.nodes) - 1)
        return len(self.nodes) - 1

    # -- stories ------------------------------------------------------------------------------------------------------

    def _story(self, number: int) -> tuple[str, ...]:
        lines: list[str] = []
        while number >= 0:
            number, label = self.parents[number][0], self.parents[number][1]
            if label:
                lines.append(label)
        return tuple(reversed(lines))

    def _why(self, number: int, name: str, before: World, after: World, changed: Hashable) -> tuple[str, ...]:
        was, now = self._shared(before), self._shared(after)
        lines = ["which no behaviour of the twin does:"]
        if was != now:
            lines.append(f"    shared was {was}, is {now}")
        if changed is not None:
            lines.append(f"    {name} has become {_spell(changed)}")
        return (*lines, *self.tracker.explain(number, name))


def _spell(observed: Hashable) -> str:
    return " ".join(str(part) for part in observed) if isinstance(observed, tuple) else str(observed)


def explore(binding: Binding[S], limits: Limits | None = None) -> Found:
    """Hold the adapter against its twin. A run that cannot be relied on is a story as well."""
    explorer = Explorer(binding, limits)
    try:
        return explorer.run()
    except NotDeterministic as error:
        return Found(len(explorer.nodes), explorer.steps, 0, 0, 0.0, (f"the adapter cannot be replayed: {error}",))
