"""What runs only while this process leads, and how it is taken as a follower: the ports that `Leadership` drives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, Protocol

import attrs

from tenure.machines.identity import Owner


@attrs.frozen
class Ended:
    """Nothing of the work runs any more. `error`: it failed; "" for a work that is done, and wants the release."""

    error: str = ""


class Work(Protocol):
    """One work, begun once in each tenure and perhaps in many tenures. No method waits for anything slow, except
    `prepare` and `clean_up` where `Leadership.start_keeping` runs them beside the watchers.

    In this order: `prepare`, then `ready` until it says so, `start` inside the ownership transaction, `stop` when the
    tenure ends, `ended` until it says so. `stop` follows each `prepare`, also when there was no `start`, and may come
    while `prepare` runs in a thread.
    """

    def attach(self, wake: Callable[[], None]) -> None:
        """Called once. `wake()`, from any thread, has `ready` and `ended` asked at once."""

    def prepare(self, epoch: int) -> None:
        """The lease is ours and healthy, nothing runs yet (`on_acquired`): what has to be there before the start.
        Raising fails the start."""

    def ready(self) -> bool:
        """Whether everything that `start` needs is there; asked again and again while it is not. Raising fails the
        start."""

    def start(self, epoch: int) -> None:
        """Begin. Called inside the ownership transaction, everybody else waits: be short. Raising fails the start,
        and nothing may run then."""

    def stop(self) -> None:
        """The tenure ends: begin to end what runs and return at once. Called once for each `prepare`, also when nothing
        runs."""

    def ended(self) -> Ended | None:
        """None while anything runs that `start` began."""

    def clean_up(self) -> None:
        """A person disconnects and the lease is still ours: say goodbye. Raising changes nothing (A44)."""

    def fileno(self) -> int:
        """A descriptor that is readable when `ready` or `ended` should be asked again; -1 for none: they are asked
        every few milliseconds then, while an answer is awaited."""


class NoWork:
    """Nothing to do, and a base class for works that need only some of it."""

    def __init__(self) -> None:
        self.running = False

    def attach(self, wake: Callable[[], None]) -> None:
        return

    def prepare(self, epoch: int) -> None:
        return

    def ready(self) -> bool:
        return True

    def start(self, epoch: int) -> None:
        self.running = True

    def stop(self) -> None:
        self.running = False

    def ended(self) -> Ended | None:
        return None if self.running else Ended()

    def clean_up(self) -> None:
        return

    def fileno(self) -> int:
        return -1


class ThreadWork(NoWork):
    """A function in a thread of its own: ``run(epoch, stopping)``, which returns soon after the event `stopping` is
    set. Returning before is "done", raising is a failure."""

    def __init__(self, run: Callable[[int, threading.Event], None]) -> None:
        super().__init__()
        self._run = run
        self._wake: Callable[[], None] = _nothing
        self._stopping = threading.Event()
        self._ended: Ended | None = Ended()

    def attach(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def start(self, epoch: int) -> None:
        self._stopping = threading.Event()
        self._ended = None
        threading.Thread(target=self._runs, args=(epoch, self._stopping), name="tenure-work", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def ended(self) -> Ended | None:
        return self._ended

    def _runs(self, epoch: int, stopping: threading.Event) -> None:
        ended = Ended()
        try:
            self._run(epoch, stopping)
        except Exception as error:
            ended = Ended(f"{type(error).__name__}: {error}")
        self._ended = ended
        self._wake()


Registered = Literal["registered", "failed", "no-thread-mode"]
"""`failed`: the owner publishes thread mode, and registering failed: nothing is known about the owner (S30)."""


class Registration(Protocol):
    """How to become a follower of the owner that stands in the way (locks.md 9.1, 11)."""

    def register(self, owner: Owner | None) -> Registered:
        """Ask the owner. An exception counts as `failed`."""

    def unregister(self) -> None:
        """Be no follower any more, whatever it was."""


class NoThreadMode:
    """There are no followers."""

    def register(self, owner: Owner | None) -> Registered:
        return "no-thread-mode"

    def unregister(self) -> None:
        return


def _nothing() -> None:
    return
