"""A guarded file: at most one thread of all processes is inside the guard of a resource (locks.md 3; DESIGN 10).

GuardedFile(real_ports(), "/path/of/owners.json").run(lambda inside: ...)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenure.adapters.errors import TenureError
from tenure.adapters.files.debris import sweep
from tenure.adapters.files.guard_errors import GuardBusy, GuardDamaged, GuardFailed, GuardLost
from tenure.adapters.files.passage import Guarded, Passage, busy
from tenure.adapters.files.process_state import Nested, ProcessState, process_state
from tenure.adapters.files.standing import Standing, look
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.ports import Ports, tell

__all__ = ["GuardBusy", "GuardDamaged", "GuardFailed", "GuardLost", "Guarded", "GuardedFile", "Passage"]

T = TypeVar("T")


class GuardedFile:
    """One resource, and the guard around it: `<resource>.transaction`, or another beside that at `path`. Thread-safe;
    not re-entrant (K13)."""

    def __init__(
        self,
        ports: Ports,
        resource: str,
        timings: Timings = DEFAULT,
        *,
        process: ProcessState | None = None,
        path: str | None = None,
    ) -> None:
        self.ports = ports
        self.resource = resource
        self.path = f"{resource}.transaction" if path is None else path
        self.timings = timings
        self._process = process

    @property
    def process(self) -> ProcessState:
        """What the threads of this process share."""
        return self._process if self._process is not None else process_state()

    def run(self, operation: Callable[[Guarded], T], *, attempts: int | None = None) -> T:
        """Run `operation` inside and answer its result; its exception is raised here, after the guard is released.

        Raises GuardBusy (GuardDamaged) when the attempts are used up, GuardFailed when no guard can be made, both
        without having run it; GuardLost when the guard was not there any more afterwards; TenureError when this thread
        is inside already.
        """
        tries = self.timings.attempts if attempts is None else attempts
        try:
            with self.process.alone(self.path, tries * self.timings.delay_ms) as alone:
                if not alone:
                    raise busy(self.path, self.standing(), None)
                return Passage(self.ports, self.path, self.timings, self.process, operation, tries).go()
        except Nested:
            raise TenureError(f"{self.path}: this thread is inside it already; finish that operation first") from None
        finally:
            self._sweep()

    def standing(self) -> Standing:
        """What stands at the path now: for people, and for messages. It proves nothing a moment later."""
        return look(self.ports, self.path)

    def _sweep(self) -> None:
        """Now and then, outside of the guard: what dead processes left beside it (K10)."""
        now, process = self.ports.clock.monotonic_ms(), self.process
        if now - process.swept.get(self.path, -self.timings.stale_ms) >= self.timings.stale_ms:
            process.swept[self.path] = now
            try:
                sweep(self.ports, self.resource, process.suspects)
            except OSError as error:
                tell(self.ports, "guard", "sweep", path=self.path, error=str(error))
