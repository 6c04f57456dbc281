"""The succession machine of one member, driven: its outputs become calls, and what came of them is told to it
(locks.md 12; DESIGN 4).

What a call is, registering or standing for election, is `Moves`; `Course` begins it when the machine asks for it, ends
it when the machine gives it up, and keeps the one timer. It reads no file and knows no socket. Everything runs on one
event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Literal, Protocol

import attrs

from tenure.adapters.errors import TenureError, in_words
from tenure.adapters.fleet.succession.counts import Counts
from tenure.adapters.fleet.succession.events import SuccessionEvents
from tenure.machines import succession_messages as own
from tenure.machines.chart import Step, step
from tenure.machines.follower_messages import Binding
from tenure.machines.succession import SUCCESSION
from tenure.machines.succession_messages import Look

Outcome = Literal["elected", "denied", "failed"]


@attrs.frozen
class Taken:
    """A leader has acknowledged the registration."""

    binding: Binding
    roster: tuple[str, ...] = ()


@attrs.frozen
class NotTaken:
    """There is no registration, and why."""

    text: str


class Moves(Protocol):
    """What a member can do. Each coroutine may be cancelled: then nothing of it changes anything any more."""

    async def look(self) -> Look:
        """Look at the registry."""

    async def register(self, leader: int, binding: Binding) -> Taken | NotTaken:
        """Ask the leader of that number, as it was seen last, for a registration. Raises TenureError."""

    def leave(self) -> None:
        """Give up the registration that is held, without a word."""

    async def elect(self, observed: int) -> tuple[Outcome, str]:
        """Stand for election against exactly the owner of that number (0: against nobody). Before the start is done,
        `Course.won` is called. With "failed", the text says why; all is rolled back."""

    async def resign(self) -> None:
        """Give up the lease, or the election for it."""


class Timer(Protocol):
    """A wait that has begun."""

    def cancel(self) -> None:
        """It is not waited for any more."""


class Course:
    """One member's way. `phase` and `data` are those of the succession machine."""

    def __init__(
        self,
        moves: Moves,
        session: int,
        *,
        after_grace: Callable[[Callable[[], None]], Timer],
        on_step: Callable[[], None],
        on_fault: Callable[[BaseException], None],
        events: SuccessionEvents | None = None,
    ) -> None:
        """`after_grace` calls what it is given when one grace is over. `on_step` is told when anything has changed,
        `on_fault` of what no call should have raised, `events` of each step of the machine."""
        self.phase = SUCCESSION.initial
        self.data = own.Memory(session=session)
        self.counts = Counts()
        self.error = ""
        """What failed last; "" when nothing has since it leads or follows."""
        self.moving: Binding | None = None
        """What a promotion takes to the leader's profile."""
        self._moves = moves
        self._after_grace = after_grace
        self._on_step = on_step
        self._on_fault = on_fault
        self._events = events
        self._jobs: set[asyncio.Task[None]] = set()
        self._call: asyncio.Task[None] | None = None
        """The registration or election that is under way, or the last one."""
        self._elections = 0
        """How many were stood for; the number of the last one."""
        self._begun: list[asyncio.Task[None]] = []
        """The calls that may not have ended."""
        self._timer: Timer | None = None
        self._loss: asyncio.Task[None] | None = None
        """The look after the loss of the registration that was held last."""

    # -- news ---------------------------------------------------------------------------------------------------------

    async def join(self) -> None:
        """Begin, if that was not done."""
        if self.phase == "idle":
            self.tell(own.Join(await self._moves.look()))

    def saw(self, look: Look) -> None:
        """A look was made."""
        self.tell(own.Saw(look))

    def lost(self, why: str) -> None:
        """The registration that was held is over."""
        self.error = why
        self._loss = self.job(self._look_after_loss())

    def heard(self, roster: tuple[str, ...], binding: Binding) -> None:
        """What the registration says now."""
        self.tell(own.Heard(roster, binding))

    def won(self, *, owned: bool) -> bool:
        """The election is won, and its start is about to do what only the owner may do. False: it must not."""
        return self.tell(own.Won(owned))

    def deposed(self, why: str = "") -> None:
        """Leading has ended, for whatever reason; perhaps before the call that began it has come to its end here."""
        if self.phase in ("starting", "leading"):
            self.error = why
        self.tell(own.ElectFailed() if self.phase == "starting" else own.Deposed())

    def serve_session(self, session: int) -> None:
        """Another session is served; 0 for none."""
        self.tell(own.SessionChanged(session))

    def stop(self) -> None:
        """Leave the fleet."""
        self.tell(own.Stop())

    # -- the machine --------------------------------------------------------------------------------------------------

    def tell(self, message: own.Happening) -> bool:
        """Tell the machine, and perform what it asks for. Whether it took it."""
        before, data = self.phase, self.data
        answer = step(SUCCESSION, before, data, message)
        if not isinstance(answer, Step):
            return False
        self.phase, self.data = answer.phase, answer.data
        if self._events is not None:
            self._events.taken(message, data, answer)
        if before != self.phase:
            self._disarm()
            self._forget_loss()
        self.counts.note(before, message, self.phase)
        for output in answer.outputs:
            self._perform(output)
        self._on_step()
        return True

    def _perform(self, output: own.Output) -> None:
        match output:
            case own.Register(leader, _, binding):
                self._begin(lambda: self._register(leader, binding))
            case own.Elect(observed):
                self._elections += 1
                number = self._elections
                self._begin(lambda: self._elect(observed, number))
            case own.MoveBinding(binding):
                self.moving = binding
            case own.RestoreBinding():
                self.moving = None
            case "leave":
                self._end_call()
                self._moves.leave()
            case "wait":
                self._disarm()
                self._timer = self._after_grace(lambda: self._ring(timer))
                timer = self._timer
            case "resign":
                self._end_call()
                self.job(self._moves.resign())

    def _ring(self, timer: Timer) -> None:
        if timer is self._timer:
            self.job(self._time_up(timer))

    def _disarm(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _forget_loss(self) -> None:
        """What follows a loss has begun without it: its look would be told of another registration."""
        loss, self._loss = self._loss, None
        if loss is not None and loss is not asyncio.current_task():
            loss.cancel()

    async def _time_up(self, timer: Timer) -> None:
        look = await self._moves.look()
        if timer is self._timer:
            self.tell(own.TimeUp(look))

    # -- calls --------------------------------------------------------------------------------------------------------

    def _begin(self, call: Callable[[], Coroutine[object, object, None]]) -> None:
        """Begin a call when those before it, which may have been given up, have come to their ends."""
        before = [call for call in self._begun if not call.done()]

        async def after() -> None:
            if before:
                await asyncio.wait(before)
            await call()

        self._call = self.job(after())
        self._begun = [*before, self._call]

    def _end_call(self) -> None:
        if self._call is not None:
            self._call.cancel()

    async def _register(self, leader: int, binding: Binding) -> None:
        try:
            answer = await self._moves.register(leader, binding)
        except Exception as error:
            answer = NotTaken(self._failed(error))
        if isinstance(answer, NotTaken):
            self.error = answer.text
            self.tell(own.RegisterFailed(leader))
            return
        self.error = ""
        self.tell(own.Registered(leader, answer.binding))
        self.heard(answer.roster, answer.binding)

    async def _elect(self, observed: int, number: int) -> None:
        try:
            outcome, why = await self._moves.elect(observed)
        except Exception as error:
            outcome, why = "failed", self._failed(error)
        match outcome:
            case "elected" if number == self._elections and self.phase == "starting":
                self.error = ""
                self.tell(own.Started())
            case "elected":
                # It was over before it was known here. Whatever is left of it is given up.
                await self._moves.resign()
                self._tell_of(number, own.ElectFailed(), self.error)
            case "denied":
                self._tell_of(number, own.Denied(), why)
            case "failed":
                self._tell_of(number, own.ElectFailed(), why)

    def _tell_of(self, number: int, message: own.Denied | own.ElectFailed, why: str) -> None:
        """An election has come to this. Where its loss was told before (`deposed`), the next one may be under way by
        now: that is not the one that is meant."""
        if number == self._elections:
            self.error = why
            self.tell(message)

    async def _look_after_loss(self) -> None:
        registrations = self.counts.registrations
        look = await self._moves.look()
        if registrations == self.counts.registrations:  # else another one is held by now
            self.tell(own.Lost(look))

    def _failed(self, error: Exception) -> str:
        """Whatever a call raises, it has failed, and is tried again (K4)."""
        if isinstance(error, TenureError):
            return str(error)
        self._on_fault(error)
        return in_words(error)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def job(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Run something beside, until `close`."""
        task = asyncio.ensure_future(work)
        self._jobs.add(task)
        task.add_done_callback(self._over)
        return task

    async def close(self) -> None:
        """End everything that still runs."""
        self._disarm()
        jobs = [job for job in self._jobs if job is not asyncio.current_task()]
        for job in jobs:
            job.cancel()
        if jobs:
            await asyncio.wait(jobs)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._jobs.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_fault(error)  # a fault of this program: it is said, and the member goes on
