"""`Poller` against the twin of `PollLoop` (locks.md 10; S35, K18, A64-A68).

One loop on a loop that is stepped by hand, over a queue and a journal that do nothing by themselves: each of its calls
waits until it is answered, in every way in which that may be, with updates that are sent, a stop that comes at any
moment, and a lease that is lost unnoticed. After each answer the loop's machine, the journal and the offset are
compared with the twin. That a request takes effect before it is answered is the twin's alone: with one loop nobody can
tell.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextvars import Context
from typing import Any, ClassVar, Final

import attrs

from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.journal.identity import BotIdentity
from tenure.adapters.verify.bind.binding import Binding, Move, Participant, World
from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.calls import Answer, Call, Got
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.disk import Contents, Disks
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.replay import Replay
from tenure.adapters.verify.bind.stepped_loop import SteppedLoop
from tenure.adapters.work.polling import Poller
from tenure.adapters.work.source import Conflict, SourceFailed, update_id
from tenure.machines import poll_loop as own
from tenure.machines.poll_loop import NONE
from tenure.models.poll_loop import Config, PollLoop, State

NAME: Final = "p"
PID: Final = 100
IDLE: Final = ()
"""What a loop waits for that does not run."""


@attrs.frozen(cache_hash=True)
class Extra:
    """The queue, the journal and the offset, in the twin's words."""

    sent: int
    journal: tuple[str, ...]
    opened: bool = False
    offset: int = NONE


@attrs.frozen(cache_hash=True)
class Seen:
    """What the loop is, and what it waits for. `stopping`: it was told to end; `leads`: it believes that it leads."""

    node: tuple[Hashable, ...]
    waits: tuple[Hashable, ...]
    stopping: bool
    leads: bool

    def __str__(self) -> str:
        waits = " ".join(map(str, self.waits)) or "nothing"
        return f"{' '.join(map(str, self.node))}, waits for {waits}{', stopping' if self.stopping else ''}"


class Timed(SteppedLoop):
    """With a clock that stands still, and timers that never ring."""

    def time(self) -> float:
        return 0.0

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_later(when, callback, *args, context=context)


class Desk:
    """One loop, and what it waits for: its own queue and journal."""

    def __init__(self) -> None:
        self.loop = Timed()  # type: ignore[abstract]
        self.bot = BotIdentity(1, "0" * 64)
        self.waits: tuple[Hashable, ...] = IDLE
        self.answer: asyncio.Future[Any] | None = None
        self.leads = True
        self.stopping = False
        self.poller = Poller(self, self, leads=lambda: self.leads, pause=self._pause)
        self.task: asyncio.Task[None] | None = None

    # -- what it asks -------------------------------------------------------------------------------------------------

    async def get_updates(self, cursor: int, limit: int, timeout_s: int) -> tuple[Json, ...]:
        ids = await self._asked("poll", cursor)
        return tuple(Json({"update_id": number}) for number in ids)

    async def loaded(self) -> own.Loaded:
        offset, opened = await self._asked("load")
        return own.Loaded(offset, opened)

    async def record(self, updates: tuple[Json, ...], *, skipped: bool) -> own.RecordEnded:
        committed, opened = await self._asked("record", tuple(map(update_id, updates)), skipped)
        return own.RecordEnded(committed, opened)

    async def persist(self, offset: int) -> own.PersistEnded:
        return own.PersistEnded(await self._asked("persist", offset))

    async def refuse(self, updates: tuple[Json, ...]) -> None:
        raise AssertionError("every update has an id")

    async def renumber(self, first: int, asked: int) -> None:
        raise AssertionError("nothing is numbered anew: no bound allows for so many answers of the past")

    async def _pause(self, seconds: float) -> None:
        await self._asked("sleep")

    async def _asked(self, *what: Hashable) -> Any:
        assert self.answer is None, "one call at a time"
        self.waits, self.answer = what, self.loop.create_future()
        try:
            return await self.answer
        finally:
            self.waits, self.answer = IDLE, None

    # -- what happens -------------------------------------------------------------------------------------------------

    def do(self, what: str, *args: Any) -> None:
        """One thing happens, and all that follows."""
        getattr(self, f"_{what}")(*args)
        self.loop.settle()
        task = self.task
        if task is not None and task.done():
            assert task.cancelled() or task.exception() is None, task.exception()
            self.task, self.stopping, self.leads = None, False, True
            assert self.waits == IDLE, "nothing is on its way when it has ended"
            assert self.poller.phase == "stopped", "it ends as its machine does"
        assert not self.loop.errors, self.loop.errors

    def _start(self) -> None:
        self.poller = Poller(self, self, leads=lambda: self.leads, pause=self._pause)
        self.task = self.loop.create_task(self.poller.run())

    def _answers(self, value: object) -> None:
        assert self.answer is not None
        self.answer.set_result(value)

    def _fails(self, how: str) -> None:
        assert self.answer is not None
        self.answer.set_exception(Conflict("409") if how == "conflict" else SourceFailed("it failed"))

    def _stop(self) -> None:
        assert self.task is not None
        self.stopping = True
        self.task.cancel()

    def _displace(self) -> None:
        self.leads = False

    def seen(self) -> Seen:
        """What is to be compared, and everything that the next step depends on."""
        data = self.poller.data
        node = (self.poller.phase, data.cursor, data.batch, data.skipping, data.conflicts)
        return Seen(node, self.waits, self.stopping, self.leads)


class PollBinding(Binding[State]):
    """One loop."""

    module: ClassVar[str] = "PollLoop"
    at_rest: ClassVar[Hashable] = ("stopped", NONE, (), False, 0)
    at_end: ClassVar[Hashable] = None
    constants: ClassVar[tuple[type, ...]] = (Desk, PollLoop, Config)
    commands: ClassVar[frozenset[str]] = frozenset({"Start", "Stop"})

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        self.config = config
        self.budget = config.budget
        self.twin = PollLoop(config, off)
        self.participants = (Participant(NAME, PID, self._program()),)

    def _program(self) -> Program:
        def program(controlled: ControlledPorts, replay: Replay) -> object:
            desk = Desk()
            while True:
                seen = desk.seen()
                what, *args = replay.ask("choose", seen)
                desk.do(what, *args)
                del what, args

        return program

    def actions(self, participant: str) -> tuple[tuple[str, Callable[..., Iterable[State]], tuple[Any, ...]], ...]:
        """It ends by its own doing: that it dies is no way to explain that."""
        return tuple(found for found in super().actions(participant) if found[0] != "Crash")

    # -- the world ----------------------------------------------------------------------------------------------------

    def contents(self) -> Contents:
        return {}

    def initial(self, disks: Disks) -> World:
        extra = Extra(self.config.early, ("none",) * self.config.last)
        return attrs.evolve(super().initial(disks), extra=extra)

    def outcomes(
        self, disks: Disks, world: World, participant: Participant, call: Call
    ) -> Iterable[tuple[Answer, World, int]]:
        seen, extra = call.args[0], world.extra
        assert isinstance(seen, Seen)
        assert isinstance(extra, Extra)
        if seen.waits == IDLE:
            yield Got(("start",)), world, 0
            return
        for answer, after, cost in self._answered(seen.waits, extra):
            yield Got(answer), attrs.evolve(world, extra=after), cost
        if not seen.stopping:
            yield Got(("stop",)), world, 1
            if seen.leads:
                yield Got(("displace",)), world, 1

    def _answered(self, waits: tuple[Hashable, ...], extra: Extra) -> Iterable[tuple[tuple[Hashable, ...], Extra, int]]:
        """What a call may be answered, what is there afterwards, and what that costs."""
        match waits:
            case ("load",):
                yield ("answers", (extra.offset, extra.opened)), extra, 0
                yield ("fails", "load"), extra, 1
            case ("poll", int(cursor)):
                oldest = max(cursor, 0) + 1
                yield ("answers", (oldest,) if oldest <= extra.sent else ()), extra, 0
                for number in range(1, min(cursor, extra.sent) + 1):
                    yield ("answers", (number,)), extra, 1
                yield ("fails", "conflict"), extra, 1
                yield ("fails", "deaf"), extra, 1
            case ("record", ids, skipped):
                assert isinstance(ids, tuple)
                if ids and skipped and extra.opened:
                    yield ("answers", (False, True)), extra, 0
                else:
                    yield ("answers", (True, extra.opened)), _recorded(extra, ids, bool(skipped)), 0
                yield ("answers", (False, False)), extra, 1
                yield ("fails", "record"), extra, 1
            case ("persist", int(offset)):
                yield ("answers", True), attrs.evolve(extra, offset=max(offset, extra.offset)), 0
                yield ("answers", False), extra, 1
                yield ("fails", "persist"), extra, 1
            case ("sleep",):
                yield ("answers", None), extra, 0

    def moves(self, world: World, left: int) -> Iterable[Move]:
        extra = world.extra
        assert isinstance(extra, Extra)
        if extra.sent < self.config.last:
            after = attrs.evolve(world, extra=attrs.evolve(extra, sent=extra.sent + 1))
            yield Move("an update is sent", after, 0, twin=(("Send", ()),))

    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        return (("Crash", (NAME,)),)

    def settled(self, call: Call) -> bool:
        return True

    # -- comparing ----------------------------------------------------------------------------------------------------

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        seen: Seen = next(f.f_locals["seen"] for f in frames if isinstance(f.f_locals.get("seen"), Seen))
        return seen.node

    def phase_in(self, state: State, participant: str) -> str:
        return state.node[participant].phase

    def agrees(self, state: State, participant: str, observed: Hashable) -> bool:
        node = state.node[participant]
        return observed == (node.phase, node.cursor, node.batch, node.skipping, node.conflicts)

    def shared(self, disks: Disks, world: World) -> Hashable:
        extra = world.extra
        assert isinstance(extra, Extra)
        return extra

    def shared_in(self, state: State) -> Hashable:
        journal = tuple(state.journal[number] for number in range(1, self.config.last + 1))
        return Extra(state.sent, journal, state.opened, state.offset)


def _recorded(extra: Extra, ids: tuple[object, ...], skipped: bool) -> Extra:
    kind = "skipped" if skipped else "work"
    journal = tuple(
        kind if number in ids and known == "none" else known for number, known in enumerate(extra.journal, 1)
    )
    return attrs.evolve(extra, journal=journal, opened=extra.opened or (skipped and not ids))


def _bound(least: int, config: Config, thorough: bool = False) -> Bound:
    return Bound(lambda: PollBinding(config), least, thorough)


BOUND: Final[Mapping[str, Bound]] = {
    "history": _bound(600, Config((NAME,), last=2, early=1, budget=2)),
    "work": _bound(1_200, Config((NAME,), last=2, early=0, budget=2)),
    "all": _bound(1_500, Config((NAME,), last=4, early=2, budget=2), thorough=True),
}
"""What the manifest names for the stage `bind`. Three answers of the past in a row would be a new numbering, which
`DurableAdmission` has."""
