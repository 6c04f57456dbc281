"""The threads that keep a leadership: one looks after the lease, others run the user's code beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from tenure.adapters.runtime.polling_steps import Lane

Job = Callable[[], None]


class Keeper:
    """Daemon threads, from the making to `stop`. A fork has none of them: there `alive` is False."""

    def __init__(self, turn: Callable[[], int | None], inside: set[int]) -> None:
        """`turn` is called again and again: it answers in how many ms the next time is at the latest, None for never.
        The threads that run the user's code enter themselves into `inside`."""
        self._turn = turn
        self._inside = inside
        self._news = threading.Event()
        self._stopping = False
        self._lanes: dict[Lane, SimpleQueue[Job | None]] = {}
        self._thread = threading.Thread(target=self._keep, name="tenure-keeper", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether somebody looks after the lease."""
        return self._thread.is_alive()

    def wake(self) -> None:
        """The next turn is now. From any thread."""
        self._news.set()

    def stop(self) -> None:
        """End the threads. What they are doing is finished first; a lane that waits for the user's code is not waited
        for."""
        self._stopping = True
        self.wake()
        if self._thread is not threading.current_thread():
            self._thread.join()
        for lane in self._lanes.values():
            lane.put(None)

    def run_beside(self, lane: Lane, job: Job) -> None:
        """Run `job` after the others of its lane."""
        queue = self._lanes.get(lane)
        if queue is None:
            queue = self._lanes[lane] = SimpleQueue()
            threading.Thread(target=self._run, args=(queue,), name=f"tenure-{lane}", daemon=True).start()
        queue.put(job)

    def _keep(self) -> None:
        while not self._stopping:
            self._news.clear()
            due = self._turn()
            if due is None:
                return
            self._news.wait(max(due, 1) / 1000)

    def _run(self, queue: SimpleQueue[Job | None]) -> None:
        me = threading.get_ident()
        self._inside.add(me)
        try:
            while (job := queue.get()) is not None:
                with suppress(Exception):  # it was noted where it happened
                    job()
                self.wake()
        finally:
            self._inside.discard(me)
