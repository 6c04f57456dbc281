"""A participant as an automaton, learnt by running the adapter's own code again and again (DESIGN 7, `bind`).

The adapter is plain synchronous code over `Ports`. Here its ports replay the answers of a history and stop it, by
`Suspended`, at the first call that has none: the pending call and the fingerprint of the stack are a *local state*. To
learn what an answer leads to, the code is run once more with one answer more. What comes out is all that the code can
do, as long as it is a function of its answers; runs that show otherwise raise `NotDeterministic`.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from tenure.adapters.verify.bind.calls import Answer, Call, Raised
from tenure.adapters.verify.bind.fingerprint import Fingerprints
from tenure.adapters.verify.bind.temporaries import Temporaries

_PORTS: Final = (__name__, "tenure.adapters.verify.bind.controlled")
"""Frames between the adapter and here: the ports', always the same."""


class Suspended(BaseException):
    """The participant has come to a call that is not answered yet. No Exception, as `Killed`: nothing may handle it."""


class NotDeterministic(Exception):
    """The code did something else with the same answers: what was learnt of it is worth nothing."""


class Replay:
    """One run: answers what is recorded, stops at the first call beyond."""

    def __init__(self, history: Sequence[tuple[Call, Answer]], fingerprints: Fingerprints) -> None:
        self.history = history
        self.fingerprints = fingerprints
        self.at = 0
        self.pending: Call | None = None
        self.broken = ""
        self.temporaries = Temporaries()
        self.fingerprint: Hashable = None
        self.hidden: Hashable = ()
        self.texts: frozenset[str] = frozenset()
        self.boundary: types.CodeType | None = None
        self.observe: Callable[[Sequence[types.FrameType]], Hashable] = lambda frames: None
        self.observed: Hashable = None

    def ask(self, name: str, *args: Hashable) -> Any:
        """The answer to a call, as the port gives it: a value, or OSError."""
        if self.pending is not None or self.broken:
            raise Suspended  # clean-up code of a participant that has stopped
        call = Call(name, args)
        if self.at == len(self.history):
            self._stop(call)
        asked, answer = self.history[self.at]
        if asked != call:
            self.broken = f"call {self.at} was {asked}, and is {call} with the same answers"
            raise Suspended
        self.at += 1
        self.temporaries.told(self._frames(), answer)
        if isinstance(answer, Raised):
            paths = [a for a in args if isinstance(a, str)]
            raise OSError(answer.number, os.strerror(answer.number), *paths[:1])
        return answer.value

    def _stop(self, call: Call) -> None:
        self.pending = call
        frames = self._frames()
        try:
            self.fingerprint, self.texts = self.fingerprints.of(frames, _handled())
            self.hidden = self.temporaries.at(frames)
            self.observed = self.observe(frames)
        except Exception as error:
            # Raised here it would be an error of the port, which the adapter handles.
            self.broken = f"it cannot be observed at {call}: {type(error).__name__}: {error}"
        raise Suspended

    def _frames(self) -> list[types.FrameType]:
        """Those of the adapter and the program, the innermost first."""
        frames: list[types.FrameType] = []
        frame: types.FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code is not self.boundary:
            if frame.f_globals.get("__name__") not in _PORTS:
                frames.append(frame)
            frame = frame.f_back
        return frames


def _handled() -> list[BaseException]:
    """The exceptions that are being handled: a bare `raise` will raise them again."""
    found: list[BaseException] = []
    error = sys.exc_info()[1]
    while error is not None and error not in found:
        found.append(error)
        error = error.__context__
    return found
