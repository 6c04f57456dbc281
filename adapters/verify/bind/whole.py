"""What the bindings share that compare the whole state of the twin after every step."""

from __future__ import annotations

import types
from collections.abc import Hashable, Sequence
from typing import ClassVar

from tenure.adapters.verify.bind.binding import Binding
from tenure.adapters.verify.bind.calls import Call
from tenure.adapters.verify.bind.disk import Contents
from tenure.models.world import S


class WholeBinding(Binding[S]):
    """Its participants tell what has come of each step, and nothing is observed of them besides."""

    at_rest: ClassVar[Hashable] = ("told",)
    at_end: ClassVar[Hashable] = None

    def contents(self) -> Contents:
        return {}

    def faults(self, call: Call) -> tuple[()]:
        return ()

    def settled(self, call: Call) -> bool:
        return True

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        return self.at_rest

    def phase_in(self, state: S, participant: str) -> str:
        return "told"

    def agrees(self, state: S, participant: str, observed: Hashable) -> bool:
        return True

    def spent(self, state: S, left: int) -> bool:
        return True
