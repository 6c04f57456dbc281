"""A program as an automaton: local states, and what each answer leads to."""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Sequence
from typing import Final

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.verify.bind.calls import Answer, Call
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.fingerprint import Fingerprints
from tenure.adapters.verify.bind.replay import NotDeterministic, Replay, Suspended
from tenure.machines.identity import Process

AUDITED: Final = 2
"""Histories of one local state that are tried with every answer, to see that they go on alike."""

Program = Callable[[ControlledPorts, Replay], object]
"""A participant's whole life: runs the adapter on its ports and returns what came of it."""


@attrs.frozen
class Local:
    """A local state: the call that waits for its answer (None: the program is over, with `result`)."""

    call: Call | None
    observed: Hashable
    """What the binding sees of the machines in it: phase and data."""
    texts: frozenset[str]
    result: Hashable = None


@attrs.define
class _Known:
    local: Local
    seen: Hashable
    histories: list[tuple[tuple[Call, Answer], ...]]


class Learner:
    """The automaton of one program. `observe` is given the frames of the stopped code, the innermost first."""

    def __init__(
        self,
        program: Program,
        me: Process,
        observe: Callable[[Sequence[types.FrameType]], Hashable],
        at_end: Hashable,
        fingerprints: Fingerprints,
        ticking: bool = False,
    ) -> None:
        self.program = program
        self.me = me
        self.observe = observe
        self.at_end = at_end
        self.fingerprints = fingerprints
        self.ticking = ticking
        self.known: list[_Known] = []
        self.locals: list[Local] = []
        self.index: dict[Hashable, int] = {}
        self.next: dict[tuple[int, Answer], int] = {}
        self.tried: dict[int, list[Answer]] = {}
        self.runs = 0

    def start(self) -> int:
        """The local state in which it makes its first call."""
        return self._learn(())

    def after(self, local: int, answer: Answer) -> int:
        """The local state after the pending call of `local` was given `answer`."""
        key = (local, answer)
        found = self.next.get(key)
        if found is None:
            known = self.known[local]
            call = known.local.call
            assert call is not None
            found = self._learn((*known.histories[0], (call, answer)))
            for other in known.histories[1:]:
                self._compare(found, (*other, (call, answer)))
            self.next[key] = found
            self.tried.setdefault(local, []).append(answer)
        return found

    def _learn(self, history: tuple[tuple[Call, Answer], ...]) -> int:
        key, local = self._run(history)
        number = self.index.get(key)
        if number is None:
            number = self.index[key] = len(self.known)
            self.known.append(_Known(local, key[0], [history]))
            self.locals.append(local)
            return number
        histories = self.known[number].histories
        if len(histories) < AUDITED and history not in histories:
            self._audit(number, history)
            histories.append(history)
        return number

    def _audit(self, number: int, history: tuple[tuple[Call, Answer], ...]) -> None:
        """A second history of a known local state must lead where the first one has led."""
        call = self.known[number].local.call
        for answer in self.tried.get(number, ()) if call is not None else ():
            assert call is not None
            self._compare(self.next[number, answer], (*history, (call, answer)))

    def _compare(self, number: int, history: tuple[tuple[Call, Answer], ...]) -> None:
        """This history must lead there as well. What is hidden is compared by the answers that it was made of: these
        may differ where the values do not."""
        (seen, _), _ = self._run(history)
        if seen != self.known[number].seen:
            call, answer = history[-1]
            raise NotDeterministic(f"after {call} = {answer} what went before still matters")

    def _run(self, history: tuple[tuple[Call, Answer], ...]) -> tuple[tuple[Hashable, Hashable], Local]:
        self.runs += 1
        replay = Replay(history, self.fingerprints)
        replay.boundary = self._live.__code__
        replay.observe = self.observe
        result = self._live(replay)
        if replay.broken:
            raise NotDeterministic(replay.broken)
        if replay.at < len(history):
            raise NotDeterministic(f"the program ended {len(history) - replay.at} calls too early")
        if replay.pending is None:
            return (("over", result), ()), Local(None, self.at_end, frozenset(), result)
        return ((replay.pending, replay.fingerprint), replay.hidden), Local(
            replay.pending, replay.observed, replay.texts
        )

    def _live(self, replay: Replay) -> Hashable:
        """Run the program as far as the answers go. Errors of the edge are results; others are nobody's."""
        controlled = ControlledPorts(replay, self.me, self.ticking)
        try:
            return ("returned", repr(self.program(controlled, replay)))
        except Suspended:
            return None
        except TenureError as error:
            return ("raised", type(error).__name__)
        except Exception as error:
            return ("escaped", f"{type(error).__name__}: {error}")
