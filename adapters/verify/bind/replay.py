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

import attrs

from tenure.adapters.ports import Fields, NodeKind, Ports, Watch
from tenure.adapters.verify.bind.calls import Answer, Call, Raised
from tenure.adapters.verify.bind.fingerprint import Fingerprints
from tenure.adapters.verify.bind.temporaries import Temporaries
from tenure.machines.identity import Birth, Process, Sighting

WALL_MS: Final = 1_700_000_000_000
MONOTONIC_MS: Final = 1_000_000
AUDITED: Final = 2
"""Histories of one local state that are tried with every answer, to see that they go on alike."""


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
            if frame.f_globals.get("__name__") != __name__:
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


class ControlledPorts:
    """All ports of one process, answered by a `Replay`. The clocks stand still unless `ticking`."""

    def __init__(self, replay: Replay, me: Process, ticking: bool = False) -> None:
        self._ask = replay.ask
        self._me = me
        self._ticking = ticking

    def ports(self) -> Ports:
        return Ports(self, self, self, self, self)

    # -- files --
    def make_directory(self, path: str) -> None:
        self._ask("make_directory", path)

    def create(self, path: str, data: bytes) -> None:
        self._ask("create", path, data)

    def read(self, path: str, *, follow: bool = False) -> bytes:
        found: bytes = self._ask("read", path)
        return found

    def entries(self, path: str) -> tuple[str, ...]:
        found: tuple[str, ...] = self._ask("entries", path)
        return found

    def kind(self, path: str) -> NodeKind:
        found: NodeKind = self._ask("kind", path)
        return found

    def rename(self, source: str, target: str) -> None:
        self._ask("rename", source, target)

    def unlink(self, path: str) -> None:
        self._ask("unlink", path)

    def remove_directory(self, path: str) -> None:
        self._ask("remove_directory", path)

    def sync(self, path: str) -> None:
        self._ask("sync", path)

    # -- processes --
    def me(self) -> Process:
        return self._me

    def sighting(self, pid: int) -> Sighting:
        found: Sighting = self._ask("sighting", pid)
        return found

    def watch(self, pid: int, birth: Birth | None) -> Watch | None:
        return None

    # -- clocks --
    def wall_ms(self) -> int:
        # Whoever gets a pid again begins later.
        return WALL_MS + self._me.birth.ticks + self._elapsed()

    def monotonic_ms(self) -> int:
        return MONOTONIC_MS + self._elapsed()

    def fence_ms(self) -> int:
        return MONOTONIC_MS + self._elapsed()

    def sleep_ms(self, duration_ms: float) -> None:
        self._ask("sleep_ms")

    def _elapsed(self) -> int:
        elapsed: int = self._ask("clock") if self._ticking else 0
        return elapsed

    # -- identities: each draw is the least number that nothing refers to any more, spelled in its own way --
    def uuid(self) -> str:
        return uuid_of(self._draw())

    def bits(self, count: int) -> int:
        return self._draw()

    def word(self, length: int) -> str:
        return f"{self._draw():0{length}d}"

    def _draw(self) -> int:
        number: int = self._ask("draw")
        return number

    # -- diagnostics --
    def note(self, category: str, phase: str, fields: Fields) -> None:
        return


def uuid_of(number: int) -> str:
    """How number `number` looks as a uuid."""
    return f"00000000-0000-4000-8000-{number:012x}"


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
        from tenure.adapters.errors import TenureError

        controlled = ControlledPorts(replay, self.me, self.ticking)
        try:
            return ("returned", repr(self.program(controlled, replay)))
        except Suspended:
            return None
        except TenureError as error:
            return ("raised", type(error).__name__)
        except Exception as error:
            return ("escaped", f"{type(error).__name__}: {error}")
