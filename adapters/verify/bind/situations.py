"""What an exploration goes through, is bounded by, and finds."""

from __future__ import annotations

from typing import Final

import attrs

from tenure.adapters.verify.bind.binding import World

DEAD: Final = -1
"""The local state of a participant whose process is dead."""


@attrs.frozen(cache_hash=True)
class Situation:
    """A state of the system: the world, where each participant is, and the faults left."""

    world: World
    locals: tuple[int, ...]
    births: tuple[int, ...]
    left: int

    def moved(self, world: World, left: int) -> Situation:
        """The world has moved on; made by hand, for there are many, and `attrs.evolve` takes four times as long."""
        return Situation(world, self.locals, self.births, left)


@attrs.frozen
class Limits:
    """Beyond which there is no verdict."""

    situations: int = 400_000
    seconds: float = 120.0
    """Of the processor."""


@attrs.frozen
class Found:
    """What the exploration found. `story` is empty when every behaviour is one of the twin's; `limit` says which limit
    was hit."""

    situations: int
    steps: int
    locals: int
    sets: int
    seconds: float
    story: tuple[str, ...] = ()
    limit: str = ""
