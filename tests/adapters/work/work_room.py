"""A queue of updates and a journal in memory, on a loop whose time jumps to whatever is waited for."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.journal.identity import identity_of_token
from tenure.adapters.work.source import Conflict
from tenure.machines import poll_loop as own
from tenure.machines.poll_loop import NONE

T = TypeVar("T")


class JumpLoop(asyncio.SelectorEventLoop):
    """Time stands still while anything runs, threads included, and jumps to the next timer when all wait."""

    def __init__(self) -> None:
        self.hand = 1_000.0
        self.threads = 0
        super().__init__(_Jumps(self))

    def time(self) -> float:
        return self.hand

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        done = super().run_in_executor(executor, func, *args)
        self.threads += 1
        done.add_done_callback(self._returned)
        return done

    def _returned(self, done: object) -> None:
        self.threads -= 1


class _Jumps(selectors.DefaultSelector):
    def __init__(self, loop: JumpLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0 or self._loop.threads:
            found = super().select(60 if timeout != 0 else 0)
            assert found or timeout == 0, "everybody waits, and for nothing"
            return found
        found = super().select(0)
        if not found:
            self._loop.hand += timeout
        return found


def run(story: Coroutine[Any, Any, T], limit_s: float = 100_000.0) -> T:
    """Run a test, in so many seconds of its own time."""

    async def limited() -> T:
        async with asyncio.timeout(limit_s):
            return await story

    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        return runner.run(limited())


def message(number: int, text: str = "", thread: int | None = None, chat: int = -100) -> Json:
    """An update with a message."""
    inner: dict[str, Any] = {"message_id": number, "chat": {"id": chat}, "text": text or f"text {number}"}
    if thread is not None:
        inner["message_thread_id"] = thread
    return Json({"update_id": number, "message": inner})


class MemorySource:
    """A queue as the real one: asking above a cursor forgets what lies below, a newer request ends the older one."""

    def __init__(self, *numbers: int) -> None:
        self.waiting: dict[int, Json] = {number: message(number) for number in numbers}
        self.asked: list[tuple[int, int]] = []
        """Cursor and time-out of every request."""
        self.forgotten: set[int] = set()
        self.in_flight = 0
        self.most_in_flight = 0
        self.answers: list[tuple[Json, ...] | Exception] = []
        """What the next requests are answered instead."""
        self.newest: int | None = None
        """Where Telegram has begun to number anew: the newest id that it has given out since; asked for more than ten
        above that, it answers what it has and forgets nothing."""
        self.bot = identity_of_token("7:memory")
        self._news = asyncio.Event()
        self._newest = 0

    def push(self, *numbers: int) -> None:
        """New ones."""
        self.put(*map(message, numbers))

    def put(self, *updates: Json) -> None:
        """New ones, as they are."""
        for update in updates:
            assert isinstance(update.value, dict)
            number = update.value["update_id"]
            assert isinstance(number, int)
            self.waiting[number] = update
        self._wake()

    async def get_updates(self, cursor: int, limit: int, timeout_s: int) -> tuple[Json, ...]:
        assert cursor >= NONE
        self.asked.append((cursor, timeout_s))
        self._newest += 1
        number = self._newest
        self.in_flight += 1
        self.most_in_flight = max(self.in_flight, self.most_in_flight)
        self._wake()
        try:
            if self.answers:
                answer = self.answers.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                return answer
            if cursor != NONE and (self.newest is None or cursor <= self.newest + 10):
                self.forgotten |= {n for n in self.waiting if n <= cursor}
                self.waiting = {n: u for n, u in self.waiting.items() if n > cursor}
            try:
                async with asyncio.timeout(timeout_s):
                    while not self.waiting:
                        await self._news.wait()
                        if number != self._newest:
                            raise Conflict("somebody else polls this token")
            except TimeoutError:
                return ()
            return tuple(self.waiting[n] for n in sorted(self.waiting)[:limit])
        finally:
            self.in_flight -= 1

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class MemoryInbox:
    """What a poll loop needs of the journal. `stalls`: while it is not set, writes take their time."""

    def __init__(self, offset: int = NONE, *, opened: bool = False) -> None:
        self.offset = offset
        self.opened = opened
        self.journal: dict[int, str] = {}
        self.stalls: asyncio.Event | None = None
        self.writing = 0
        self.refused = 0
        self.fails: list[Exception | None] = []
        """What the next writes raise; None for one that succeeds."""

    async def loaded(self) -> own.Loaded:
        return own.Loaded(self.offset, self.opened)

    async def record(self, updates: tuple[Json, ...], *, skipped: bool) -> own.RecordEnded:
        await self._turn()
        if updates and skipped and self.opened:
            return own.RecordEnded(committed=False, opened=True)
        for update in updates:
            assert isinstance(update.value, dict)
            number = update.value["update_id"]
            assert isinstance(number, int)
            self.journal.setdefault(number, "skipped" if skipped else "work")
        before = self.opened
        self.opened = self.opened or (skipped and not updates)
        return own.RecordEnded(committed=True, opened=before)

    async def persist(self, offset: int) -> own.PersistEnded:
        await self._turn()
        self.offset = max(offset, self.offset)
        return own.PersistEnded(written=True)

    async def refuse(self, updates: tuple[Json, ...]) -> None:
        self.refused += len(updates)

    async def renumber(self, first: int, asked: int) -> None:
        await self._turn()
        assert own.numbered_anew(asked)
        self.offset = min(self.offset, first - 1)

    async def _turn(self) -> None:
        self.writing += 1
        try:
            if self.stalls is not None:
                await self.stalls.wait()
        finally:
            self.writing -= 1
        if self.fails and (error := self.fails.pop(0)) is not None:
            raise error
