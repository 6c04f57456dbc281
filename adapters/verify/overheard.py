"""What worlds tell their machines: overheard on random walks, for runs of a machine alone that shall make sense.

A machine compares what it is told with what it remembers: whole entries, tokens, epochs. Random values are rarely equal
to what is remembered; what a world tells a machine *with this memory* often is. So `reach` mixes both.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, Final

import attrs

from tenure.adapters.verify.manifest import ModuleEntry
from tenure.machines.chart import Refused, Step, Table, step
from tenure.models.world import World

STEPS: Final = 4_000
"""Steps of the walks in each configuration."""
STEPS_A_WALK: Final = 100


@attrs.define
class Overheard:
    """By the table's name: the messages told in each (phase, data), of events that the phase has rows for, and the data
    that machines start with."""

    told: dict[str, dict[tuple[str, Any], dict[Any, None]]] = attrs.field(factory=dict)
    starts: dict[str, dict[Any, None]] = attrs.field(factory=dict)

    def listen(self, world: World[Any], steps: int = STEPS) -> None:
        """Walk the world blindly with a fixed seed, and keep what its machines are told."""
        starting = False

        def overheard(table: Table[Any, Any, Any], phase: str, data: Any, message: Any) -> Step[Any, Any] | Refused:
            if table.rows[phase][message.event]:
                self.told.setdefault(table.name, {}).setdefault((phase, data), {})[message] = None
            if starting and phase == table.initial:
                self.starts.setdefault(table.name, {})[data] = None
            return step(table, phase, data, message)

        world.step = overheard
        bodies = [(action.body, args) for action in world.actions() for args in action.args]
        chance = random.Random(0)
        known: dict[Any, list[Any]] = {}

        def following(state: Any) -> list[Any]:
            if state not in known:
                known[state] = [after for body, args in bodies for after in body(state, *args)]
            return known[state]

        starting = True
        initial = list(world.initial())
        for state in initial:
            following(state)
        starting = False
        state = chance.choice(initial)
        for number in range(steps):
            after = following(state)
            state = chance.choice(after) if after and number % STEPS_A_WALK else chance.choice(initial)

    def pairs(self, table: str) -> Iterable[tuple[Any, Any]]:
        """Every (data, message) that a machine was told."""
        for (_, data), messages in self.told.get(table, {}).items():
            for message in messages:
                yield data, message


def overhear(entry: ModuleEntry) -> Overheard:
    """Listen to every configuration of a module."""
    overheard = Overheard()
    for config in entry.configs:
        if config in entry.python_configs:
            overheard.listen(entry.world(config))
    return overheard
