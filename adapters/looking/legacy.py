"""What versions of the other system before 0.22.1 left: guards that are regular files, and the guards under which they
are cleared away (locks.md 3.3).

Such a file is removed by whoever holds the neighbour guard `G.recovery`, and by nobody else: a process that holds it
has seen a dead holder's file at G, and moves away what it finds there a moment later. If the file were gone by then,
that would be the guard of somebody who has entered meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard import GuardDamaged, GuardedFile
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import Timings
from tenure.adapters.looking.looks import look_at_guard
from tenure.adapters.ports import Ports


class OldGuards:
    """The guards beside the one of `resource`, of which only healing knows."""

    def __init__(self, ports: Ports, resource: str, timings: Timings, process: ProcessState | None = None) -> None:
        self._ports = ports
        self._guard = f"{resource}.transaction"
        neighbour = f"{self._guard}.recovery"
        self._neighbour = GuardedFile(ports, resource, timings, process=process, path=neighbour)
        self._migration = GuardedFile(ports, resource, timings, process=process, path=f"{neighbour}.migration")

    def clear(self, move: Callable[[str], None]) -> None:
        """Have `move` take away the guard, and the neighbour, where they are regular files and their holders are proven
        dead. Raises GuardBusy where somebody who lives is doing that, TenureError where only a person can."""
        self._clear(self._neighbour.path, self._migration, move)
        self._clear(self._guard, self._neighbour, move)

    def reclaim(self) -> tuple[str, ...]:
        """Take over those of these guards that dead processes left, and leave them free; which they were."""
        found = []
        for guard in (self._migration, self._neighbour):
            look = look_at_guard(self._ports, guard.path)
            if look.form == "directory" and look.kind == "abandoned":
                guard.run(lambda _: None)
                found.append(guard.path)
        return tuple(found)

    def _clear(self, path: str, under: GuardedFile, move: Callable[[str], None]) -> None:
        if not self._is_left(path):
            return
        try:
            under.run(lambda _: move(path) if self._is_left(path) else None)
        except GuardDamaged as error:
            raise TenureError(
                f"{under.path}: {error.standing.problem}: see that nothing runs on this directory, then move it away "
                "by hand"
            ) from error

    def _is_left(self, path: str) -> bool:
        look = look_at_guard(self._ports, path)
        return look.form == "file" and look.kind == "abandoned"
