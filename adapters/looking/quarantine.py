"""Moving what is damaged out of the way, by rename, names kept: nothing is ever deleted (locks.md 2 and 8)."""

from __future__ import annotations

import errno
import os
from typing import Final

import attrs

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Ports

_AGAIN: Final = frozenset({errno.EPERM, errno.EBUSY, errno.EACCES})


@attrs.frozen
class Moved:
    """What went where, as absolute paths."""

    source: str
    target: str


class Quarantine:
    """`DIR/tmp/telegram/recovery/<nowMs>-<pid>-<uuid>/`, made when it is needed first. `moved` is what is in it."""

    def __init__(self, ports: Ports, directory: AgentDirectory, timings: Timings) -> None:
        self.moved: tuple[Moved, ...] = ()
        self._ports = ports
        self._root = directory.quarantine
        self._timings = timings
        self._place: str | None = None

    def move(self, path: str) -> None:
        """Rename what stands at `path`. Raises OSError where that fails for good; then it still stands there."""
        target = self._target(path)
        self._rename(path, target)
        self._note(path, target)

    def move_file(self, path: str) -> None:
        """Rename what is no directory. A directory that stands there by now, somebody's fresh guard, is refused by the
        file system: the target is a file already."""
        target = self._target(path)
        self._ports.files.create(target, b"")
        try:
            self._rename(path, target)
        except Exception:
            if self._ports.files.read(target) == b"":
                self._ports.files.unlink(target)
            raise
        self._note(path, target)

    def move_empty(self, path: str) -> None:
        """Remove an empty directory and put one like it into quarantine. One that is not empty any more is refused by
        the file system, where a rename would rob whoever is inside it."""
        target = self._target(path)
        self._ports.files.remove_directory(path)
        self._ports.files.make_directory(target)
        self._note(path, target)

    def keep_copy(self, path: str, data: bytes) -> None:
        """Put a copy of a file that must not be missing for a moment into quarantine."""
        target = self._target(path)
        self._ports.files.create(target, data)
        self._note(path, target)

    def _note(self, source: str, target: str) -> None:
        self.moved = (*self.moved, Moved(source, target))

    def _target(self, path: str) -> str:
        if self._place is None:
            if self._ports.files.kind(self._root) == "absent":
                self._ports.files.make_directory(self._root)
            me = self._ports.processes.me()
            name = f"{self._ports.clock.wall_ms()}-{me.pid}-{self._ports.identities.uuid()}"
            place = os.path.join(self._root, name)
            self._ports.files.make_directory(place)
            self._place = place
        return os.path.join(self._place, os.path.basename(path))

    def _rename(self, source: str, target: str) -> None:
        """With the patience that every rename of a guard has (locks.md 1, RENAME_ATTEMPTS)."""
        for attempt in range(1, self._timings.rename_attempts + 1):
            try:
                self._ports.files.rename(source, target)
            except OSError as error:
                if self._ports.files.kind(source) == "absent" and self._ports.files.kind(target) != "absent":
                    return  # it was done all the same
                if error.errno not in _AGAIN or attempt == self._timings.rename_attempts:
                    raise
                self._ports.clock.sleep_ms(self._timings.rename_delay_ms * attempt)
            else:
                return
