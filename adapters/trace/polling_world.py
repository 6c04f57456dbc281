"""The world of `PollingOwnership` with any number of runtimes in one process, one after the other.

The model has an old one and a new one, and its reload makes the new one. Here each reload makes the next one: it is new
to all that were there before, which are old to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs

from tenure.models.polling_ownership import ALONE, IDLE, OFF, Config, PollingOwnership, State
from tenure.models.world import Action, FrozenMap

_NEXT: Final = "Reload"


class Several(PollingOwnership):
    """The twin; its maps have the runtimes that are there."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.places = {runtime: place for place, runtime in enumerate(config.runtimes)}

    def initial(self) -> Iterable[State]:
        for state in super().initial():
            yield self._with(state, self.runtimes[:1])

    def actions(self) -> tuple[Action[State], ...]:
        found = [attrs.evolve(action, body=self._of_who_is_there(action.body)) for action in super().actions()]
        return tuple(attrs.evolve(a, body=self._comes) if a.name == _NEXT else a for a in found)

    def _of_who_is_there(self, body: Callable[..., Iterable[State]]) -> Callable[..., Iterable[State]]:
        def taken(state: State, *args: Any) -> Iterable[State]:
            absent = args and args[0] in self.places and args[0] not in state.node
            return () if absent else body(state, *args)

        return taken

    def _comes(self, state: State) -> Iterable[State]:
        """The next one."""
        number = len(state.node)
        if not state.paused and number < len(self.runtimes):
            yield self._with(state, self.runtimes[: number + 1])

    def _with(self, state: State, runtimes: tuple[str, ...]) -> State:
        return attrs.evolve(
            state,
            node=FrozenMap({r: state.node.get(r, IDLE) for r in runtimes}),
            poller=FrozenMap({r: state.poller.get(r, OFF) for r in runtimes}),
            outside=FrozenMap({r: state.outside.get(r, ALONE) for r in runtimes}),
        )

    def _there(self, state: State, r: str) -> bool:
        return r in state.node

    def _succeeds(self, r: str, other: str) -> bool:
        return self.places.get(other, len(self.places)) < self.places[r]
