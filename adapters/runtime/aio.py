"""Leading under asyncio: the verbs of `Leadership` as coroutines (locks.md 9).

    async with AsyncLeadership(lease, work=TaskWork(poll), on_lost=print) as lead:
        print(await lead.acquire_in_turn())

No file work on the event loop: threads of the leadership look after the lease, one more does what a coroutine waits
for. Callbacks are called on the loop, where the object was entered. A loop that is blocked keeps the lease alive all
the same; then the work (a task on that loop) cannot be stopped either, so it should use `may_send` before it acts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from tenure.adapters.awaiting import to_its_end
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.ports import tell
from tenure.adapters.runtime.asks import Ask
from tenure.adapters.runtime.leadership import Leadership
from tenure.adapters.runtime.outcomes import Elected, Lost, Outcome, Refused, Statistics, Waiting
from tenure.adapters.runtime.standby import Standby
from tenure.adapters.runtime.work import Ended, NoWork, Registration, Work
from tenure.machines.identity import Owner

T = TypeVar("T")


class TaskWork(NoWork):
    """A coroutine as the work: ``run(epoch)`` is a task on the loop while this process leads, and is cancelled when the
    tenure ends. Returning before is "done", raising is a failure."""

    def __init__(self, run: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        super().__init__()
        self._run = run
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: Callable[[], None] = lambda: None
        self._task: asyncio.Task[None] | None = None
        self._ended: Ended | None = Ended()

    def attach(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop that the task runs on: `AsyncLeadership` says it when it is entered."""
        self._loop = loop

    def start(self, epoch: int) -> None:
        assert self._loop is not None, "enter the AsyncLeadership first"
        self._ended = None
        try:
            self._loop.call_soon_threadsafe(self._begin, epoch)
        except RuntimeError:
            self._ended = Ended()
            raise

    def stop(self) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:
            self._ended = Ended()  # the loop is closed, and what ran on it is over

    def ended(self) -> Ended | None:
        return self._ended

    def _begin(self, epoch: int) -> None:
        assert self._loop is not None
        self._task = self._loop.create_task(self._run(epoch), name=f"tenure-work-{epoch}")
        self._task.add_done_callback(self._done)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        self._task = None
        self._ended = Ended("" if error is None else f"{type(error).__name__}: {error}")
        self._wake()


class AsyncLeadership:
    """A `Leadership` for asyncio; the arguments are the same. Use it as ``async with``: leaving it releases."""

    def __init__(
        self,
        lease: LeaseRuntime,
        *,
        work: Work | None = None,
        registration: Registration | None = None,
        interactive: bool = True,
        on_elected: Callable[[Elected], None] | None = None,
        on_lost: Callable[[Lost], None] | None = None,
        on_outcome: Callable[[Outcome], None] | None = None,
        process: ProcessState | None = None,
    ) -> None:
        self.lead = Leadership(
            lease,
            work=work,
            registration=registration,
            interactive=interactive,
            on_outcome=self._report,
            process=process,
        )
        self._on_elected = on_elected
        self._on_lost = on_lost
        self._on_outcome = on_outcome
        self._loop: asyncio.AbstractEventLoop | None = None
        self._files = ThreadPoolExecutor(1, thread_name_prefix="tenure-files")

    # -- verbs --------------------------------------------------------------------------------------------------------

    async def acquire(self, *, force: Owner | None = None, timeout_ms: float | None = None) -> Outcome:
        """As `Leadership.acquire`. Cancelled, it rolls back: what it took or began is given up before the cancellation
        goes on. After `timeout_ms` the answer is `Waiting`, and the wish stands."""
        return await self._rolled_back(self.lead.ask_acquire(force=force), timeout_ms)

    async def acquire_in_turn(self) -> Outcome:
        """As `acquire`; while another owns, stand by until it has died, released or outlived its lease, and try again.
        The outcome is `Refused` only where nobody stands in the way."""
        while True:
            found = await self.acquire()
            if not isinstance(found, Refused) or found.owner is None:
                return found
            await self._stand_by()

    async def elect(self, observed: Owner | None, *, timeout_ms: float | None = None) -> Outcome:
        """As `Leadership.elect`; cancelled as `acquire`."""
        return await self._rolled_back(self.lead.ask_elect(observed), timeout_ms)

    async def resume(self, *, timeout_ms: float | None = None) -> Outcome:
        """As `Leadership.resume`; cancelled as `acquire`."""
        limit = self.lead.lease.timings.stale_ms if timeout_ms is None else timeout_ms
        return await self._rolled_back(self.lead.ask_resume(), limit)

    async def suspend(self, session: int | None = None, *, timeout_ms: float | None = None) -> Outcome:
        """As `Leadership.suspend`. Cancelled, it goes on without the caller."""
        return await self._outcome(self.lead.ask_suspend(session), timeout_ms)

    async def release(self, *, timeout_ms: float | None = None) -> Outcome:
        """As `Leadership.release`. Cancelled, it goes on without the caller."""
        return await self._outcome(self.lead.ask_release(), timeout_ms)

    async def commit_if_owned(self, effect: Callable[[int], T]) -> T:
        """As `Leadership.commit_if_owned`: `effect` is an ordinary function, runs in a thread, and should take
        milliseconds. Cancelled, it waits until the effect has run or been refused: it is never left running."""
        running = asyncio.get_running_loop().run_in_executor(self._files, self.lead.commit_if_owned, effect)
        return await to_its_end(running)

    async def close(self) -> None:
        """As `Leadership.close`, and end all threads: it releases nothing."""
        await asyncio.get_running_loop().run_in_executor(self._files, self.lead.close)
        self._files.shutdown(wait=False)

    def session_start(self) -> int:
        """As `Leadership.session_start`."""
        return self.lead.session_start()

    def may_send(self) -> int | None:
        """As `Leadership.may_send`: reads no file."""
        return self.lead.may_send()

    def statistics(self) -> Statistics:
        """As `Leadership.statistics`."""
        return self.lead.statistics()

    @property
    def phase(self) -> str:
        """The phase of the polling machine."""
        return self.lead.phase

    async def __aenter__(self) -> AsyncLeadership:
        self._loop = asyncio.get_running_loop()
        if isinstance(self.lead.work, TaskWork):
            self.lead.work.bind(self._loop)
        self.lead.start_keeping()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release, whatever happens to the caller meanwhile, and end the threads."""
        await to_its_end(asyncio.ensure_future(self._leave()))

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _leave(self) -> None:
        await self.release()
        await self.close()

    async def _rolled_back(self, ask: Ask, timeout_ms: float | None) -> Outcome:
        try:
            return await self._outcome(ask, timeout_ms)
        except asyncio.CancelledError:
            release = self.lead.withdraw(ask)
            if release is not None:
                leaving = asyncio.ensure_future(self._outcome(release, None))
                await asyncio.wait([leaving])
            raise

    async def _outcome(self, ask: Ask, timeout_ms: float | None) -> Outcome:
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Outcome] = loop.create_future()

        def settle(outcome: Outcome) -> None:
            if not found.done():
                found.set_result(outcome)

        def listen(outcome: Outcome) -> None:
            loop.call_soon_threadsafe(settle, outcome)

        ask.then(listen)
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                return await found
        except TimeoutError:
            return Waiting(self.lead.polling.trouble)

    async def _stand_by(self) -> None:
        loop = asyncio.get_running_loop()
        # All of it in the one thread, so that a cancellation never closes a descriptor that a look is using.
        standby = await loop.run_in_executor(self._files, Standby, self.lead.lease)
        try:
            while not standby.free:
                await readable(standby.fileno(), standby.due_ms())
                await loop.run_in_executor(self._files, standby.look)
        finally:
            self._files.submit(standby.close)

    def _report(self, outcome: Outcome) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._call_back, outcome)

    def _call_back(self, outcome: Outcome) -> None:
        called: list[tuple[Callable[[Any], None] | None, bool]] = [
            (self._on_elected, isinstance(outcome, Elected)),
            (self._on_lost, isinstance(outcome, Lost)),
            (self._on_outcome, True),
        ]
        for callback, wanted in called:
            try:
                if callback is not None and wanted:
                    callback(outcome)
            except Exception as error:
                self.lead.polling.counters.callback_errors += 1
                tell(self.lead.lease.ports, "lock", "callback", error=f"{type(error).__name__}: {error}")


async def readable(descriptor: int, timeout_ms: int) -> None:
    """Wait until `descriptor` (-1: none) is readable, at most so long."""
    news = asyncio.Event()
    loop = asyncio.get_running_loop()
    if descriptor >= 0:
        loop.add_reader(descriptor, news.set)
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await news.wait()
    except TimeoutError:
        return
    finally:
        if descriptor >= 0:
            loop.remove_reader(descriptor)
