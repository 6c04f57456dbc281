"""A journal to the drivers of a participant: each transaction of it waits until it is told what has come of it; and a
loop on which they run, and time passes when it is told so.
"""

from __future__ import annotations

import asyncio
import types
from asyncio import events
from collections.abc import Callable, Coroutine, Hashable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

import attrs

from tenure.adapters.awaiting import heard
from tenure.adapters.journal.errors import JournalError
from tenure.adapters.journal.transaction import Meta
from tenure.adapters.verify.bind.journal_ports import PATH, Answered, Failed, Op
from tenure.adapters.verify.bind.stepped_loop import SteppedLoop, where

T = TypeVar("T")


class _Asks(BaseException):
    """The work on a journal has come to an operation that is not answered yet."""

    def __init__(self, op: Op) -> None:
        super().__init__(op)
        self.op = op


class _Recorder:
    """A journal to `work`: the operations that are answered are, the next one is asked for."""

    def __init__(self, replies: Iterable[Answered | Failed]) -> None:
        self._replies = list(replies)
        self.path = PATH

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(*args: Any, **options: Any) -> Any:
            if not self._replies:
                settled = tuple(tuple(a) if isinstance(a, list) else a for a in args)
                raise _Asks(Op(name, settled, tuple(sorted(options.items()))))
            match self._replies.pop(0):
                case Answered(value) if name == "state":
                    return Meta(*value)  # type: ignore[misc]
                case Answered(value):
                    return value
                case Failed(kind):
                    raise Journaled(kind)

        return ask


class Journaled(JournalError):
    """What a participant hears of an operation that has failed; of which class it was, its driver may not care."""

    def __init__(self, kind: str) -> None:
        super().__init__(PATH, kind)


@attrs.define
class _Waiting:
    caller: str
    op: Op
    future: asyncio.Future[Answered | Failed]


class StillJournal:
    """As `ThreadedJournal`, but that each transaction waits until it is told what has come of it."""

    path: str = PATH

    def __init__(self, loop: SteppedLoop) -> None:
        self._loop = loop
        self._waiting: list[_Waiting] = []

    @property
    def pending(self) -> Op | None:
        """What is to be done next; the others are asked for after it."""
        return self._waiting[0].op if self._waiting else None

    @property
    def asked(self) -> tuple[Op, ...]:
        """All that was asked for and is not answered."""
        return tuple(one.op for one in self._waiting)

    @property
    def queue(self) -> tuple[tuple[str, Op], ...]:
        """The same, with who asks."""
        return tuple((one.caller, one.op) for one in self._waiting)

    async def call(self, work: Callable[[Any], T]) -> T:
        """As there: cancelled, this leaves at once, and `work` is done all the same."""
        asking = asyncio.current_task()
        caller = "" if asking is None else str(getattr(asking.get_coro(), "__qualname__", ""))
        running = asyncio.ensure_future(self._done(work, caller))
        heard(running)
        return await asyncio.shield(running)

    async def _done(self, work: Callable[[Any], T], caller: str) -> T:
        replies: list[Answered | Failed] = []
        place = _Waiting(caller, Op(""), self._loop.create_future())
        self._waiting.append(place)
        try:
            while True:
                try:
                    return work(_Recorder(replies))
                except _Asks as asks:
                    place.op, place.future = asks.op, self._loop.create_future()
                replies.append(await place.future)
        finally:
            self._waiting.remove(place)

    def answered(self, answer: Answered | Failed | Op) -> None:
        """The transaction of `pending` has come to this."""
        place = self._waiting[0]
        if isinstance(answer, Op):
            place.op = answer
        else:
            place.future.set_result(answer)


class TimedLoop(SteppedLoop):
    """A stepped loop on which an hour passes when it is told so: nothing waits for longer. It knows its tasks."""

    now = 0.0

    def __init__(self) -> None:
        super().__init__()
        self._tasks: list[asyncio.Task[Any]] = []

    def time(self) -> float:
        return self.now

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        return self.call_later(when - self.now, callback, *args, context=context)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Any = None
    ) -> asyncio.Task[T]:
        task = super().create_task(coro, name=name, context=context)
        self._tasks.append(task)
        return task

    def pass_time(self) -> None:
        """All that waits for a time has waited for long enough; who began first goes on first."""
        self.now += 3_600.0
        order = {id(task): number for number, task in enumerate(self._tasks)}
        self._later.sort(key=lambda handle: order.get(id(_task_of(handle)), len(order)))
        self.ring()

    def positions(self) -> tuple[Hashable, ...]:
        """Where each task stands that is not over, in the order in which they began."""
        return tuple(where(task) for task in self._tasks if not task.done())

    def local(self, function: str, name: str) -> Any:
        """A variable of the coroutine of that name, where it is the outermost of a task; 0 where there is none."""
        for task in self._tasks:
            coro = task.get_coro()
            if not task.done() and isinstance(coro, types.CoroutineType) and coro.cr_code.co_name == function:
                return 0 if coro.cr_frame is None else coro.cr_frame.f_locals.get(name, 0)
        return 0

    def abandon(self) -> None:
        """Whoever runs here has stopped for good: what its clean-up code would do, it does not."""
        events._set_running_loop(self)
        try:
            for task in self._tasks:  # more come on the way
                coro = task.get_coro()
                while isinstance(coro, types.CoroutineType):
                    with suppress(RuntimeError):  # it waits for something more
                        coro.close()
                        break
        finally:
            events._set_running_loop(None)


def _task_of(handle: asyncio.TimerHandle) -> object:
    """Whose time-out it is."""
    timeout = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    return getattr(timeout, "_task", None)


def timed_loop() -> TimedLoop:
    """A new one."""
    return TimedLoop()  # type: ignore[abstract]
