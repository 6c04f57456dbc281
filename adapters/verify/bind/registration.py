"""What both bindings of `FollowerRegistration` share: its world is the twin's own state.

One half of the twin is the adapter under test, the other half is the world: a move of the world is an action of the
twin, with the state that it leads to. What the adapter does is told step by step, and each step has to be one of the
actions of its half. So all of the state is compared after each of them.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, ClassVar

import attrs

from tenure.adapters.verify.bind.binding import Binding, Move, Participant, World
from tenure.adapters.verify.bind.calls import Answer, Call, Got
from tenure.adapters.verify.bind.disk import Contents, Disks
from tenure.models.follower_registration import FollowerRegistration
from tenure.models.follower_registration_state import Config, Msg, State


class Open(FollowerRegistration):
    """The twin, asked for what is true in its world."""

    def key(self, who: str, own_key: bool) -> str:
        """The profile key of `who`."""
        return self._key(who, own_key)

    def process(self, who: str) -> str:
        """The process of `who`."""
        return self._process(who)

    def dead(self, state: State) -> frozenset[str]:
        """Whose process is dead."""
        return self._dead(state)

    def given(self, state: State, lead: str, who: str, target: int, key: str) -> int:
        """The thread that provisioning gives."""
        return self._given(state, lead, who, target, key)

    def silence(self, state: State, lead: str, who: str) -> Iterable[State]:
        """The state in which `who` was not heard for too long."""
        return self._silence(state, lead, who)


class Unpriced(Open):
    """The twin, whose faults cost nothing: how many there are is bounded where they happen. A call may return late
    always: an adapter that gives one up closes the connection there and then, and no answer is waited for."""

    def _spend(self, state: State, cause: str) -> int | None:
        return state.budget if cause in self.config.causes else None


@attrs.frozen(cache_hash=True)
class Around:
    """The state as the twin may know it, and as it is where a step is not told yet."""

    state: State
    pending: State | None = None
    queued: frozenset[Msg] = frozenset()
    """Requests that a leader has and that are on their way to the twin."""

    @property
    def now(self) -> State:
        """As it is."""
        return self.state if self.pending is None else self.pending


class RegistrationBinding(Binding[State]):
    """One configuration of one half."""

    module: ClassVar[str] = "FollowerRegistration"
    at_rest: ClassVar[Hashable] = ("told",)
    at_end: ClassVar[Hashable] = None
    ours: ClassVar[frozenset[str]]
    """The actions of this half, and those that end or begin one of it."""

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        self.config = config
        self.budget = config.budget
        self.twin = Unpriced(attrs.evolve(config, causes=config.causes | {"late"}), off)
        self.priced = Open(config)
        self.participants: tuple[Participant, ...] = ()

    # -- the world ----------------------------------------------------------------------------------------------------

    def contents(self) -> Contents:
        return {}

    def initial(self, disks: Disks) -> World:
        (state,) = self.twin.initial()
        return attrs.evolve(super().initial(disks), extra=Around(state))

    def outcomes(
        self, disks: Disks, world: World, participant: Participant, call: Call
    ) -> Iterable[tuple[Answer, World, int]]:
        around = world.extra
        assert isinstance(around, Around)
        if call.name == "told":
            step: Any = call.args[0]
            after = self.told(participant.name, step, around.now)
            queued = getattr(step, "queued", None)
            changed = Around(after, queued=around.queued if queued is None else queued)
            yield Got(), attrs.evolve(world, extra=changed), 0
            return
        for answer, pending, cost in self.choices(participant.name, call.args[0], around.state):
            yield Got(answer), attrs.evolve(world, extra=attrs.evolve(around, pending=pending)), cost

    def choices(self, name: str, seen: Any, state: State) -> Iterable[tuple[tuple[Any, ...], State, int]]:
        """What may happen to the participant next, the state without what it does then, and what it costs."""
        raise AssertionError("each half has its own")

    def told(self, name: str, step: Any, state: State) -> State:
        """The state after a step that the participant has told."""
        raise AssertionError("each half has its own")

    def faults(self, call: Call) -> tuple[()]:
        return ()

    def moves(self, world: World, left: int) -> Iterable[Move]:
        around = world.extra
        assert isinstance(around, Around)
        before = attrs.evolve(around.state, budget=left)
        for action in self.priced.actions():
            for args in action.args:
                if (action.name in self.ours and not (action.name == "Ask" and args[1])) or action.mutant:
                    continue
                for t in action.body(before, *args):
                    after = attrs.evolve(t, budget=around.state.budget)
                    if after != around.state:
                        label = f"{action.name} {' '.join(map(str, args))}".strip()
                        changed = attrs.evolve(world, extra=Around(after))
                        yield Move(label, changed, left - t.budget, twin=((action.name, args),))

    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        return ()

    def private(self, call: Call, observed: Hashable, world: World, left: int) -> bool:
        return call.name == "told"

    def settled(self, call: Call) -> bool:
        return True

    # -- comparing ----------------------------------------------------------------------------------------------------

    def actions(self, participant: str) -> tuple[tuple[str, Callable[..., Iterable[State]], tuple[Any, ...]], ...]:
        return tuple(
            (a.name, a.body, args)
            for a in self.twin.actions()
            if a.name in self.ours and not a.mutant
            for args in a.args
            if not args or participant in args
        )

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        return self.at_rest

    def phase_in(self, state: State, participant: str) -> str:
        return "told"

    def agrees(self, state: State, participant: str, observed: Hashable) -> bool:
        return True

    def spent(self, state: State, left: int) -> bool:
        return True

    def shared(self, disks: Disks, world: World) -> Hashable:
        assert isinstance(world.extra, Around)
        return world.extra.state

    def shared_in(self, state: State) -> Hashable:
        return state
