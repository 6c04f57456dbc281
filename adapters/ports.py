"""What an adapter needs of the world: files, processes, clocks, fresh identities, somebody to tell (DESIGN 3, 4, 10).

The adapters of `tenure.adapters.files` and above touch the world through these ports alone, one method per atomic call,
so that every call can be made to fail, or be the last thing a process does (`tenure.adapters.testing`), and so that
every interleaving of such calls can be explored (`tenure.adapters.verify`). The real ones are in
`tenure.adapters.files`: `real_ports()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, Protocol

import attrs

from tenure.machines.identity import Birth, Process, Sighting

NodeKind = Literal["absent", "directory", "file", "other"]
"""What stands at a path, links not followed: a symbolic link, a socket or a pipe is "other"."""

READ_LIMIT: Final = 16 * 2**20
"""Bytes beyond which no file of ours is read: a registry is a few kilobytes."""


class Files(Protocol):
    """The file system. Every method is one call on it (`create` and `read`: on one file that nobody else writes) and
    raises OSError as the operating system does; paths are absolute."""

    def make_directory(self, path: str) -> None:
        """mkdir with mode 0700. FileExistsError where anything stands."""

    def create(self, path: str, data: bytes) -> None:
        """Create a file of mode 0600 exclusively, write `data`, close. A kill may leave it empty or torn."""

    def read(self, path: str, *, follow: bool = False) -> bytes:
        """A regular file's bytes. ELOOP for a symbolic link unless `follow`; EINVAL for what is no regular file;
        EFBIG beyond `READ_LIMIT`."""

    def entries(self, path: str) -> tuple[str, ...]:
        """The names in a directory, sorted. NotADirectoryError for a file, and for a symbolic link."""

    def kind(self, path: str) -> NodeKind:
        """lstat. Never raises for what is not there."""

    def rename(self, source: str, target: str) -> None:
        """rename(2): a directory replaces nothing but nothing or an empty directory; a file replaces a file."""

    def unlink(self, path: str) -> None:
        """Remove a file or a symbolic link."""

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    def sync(self, path: str) -> None:
        """fsync a file, or a directory and with it the names in it."""


class Watch(Protocol):
    """A notice of one process's death."""

    def wait(self, timeout_ms: int) -> bool:
        """Wait until the process has ended; False when the time is over before."""

    def fileno(self) -> int:
        """A descriptor that becomes readable at the death, for a selector; -1 where the platform has none."""

    def close(self) -> None:
        """Give the notice up."""


class Processes(Protocol):
    """Who lives (locks.md 3.4, DESIGN 10)."""

    def me(self) -> Process:
        """This very process, also after a fork."""

    def sighting(self, pid: int) -> Sighting:
        """Probe `pid`: RUNNING, ZOMBIE, GONE or UNKNOWN, with the start ticks where they can be read."""

    def watch(self, pid: int, birth: Birth | None) -> Watch | None:
        """Be told of the death of the process that has `pid` and `birth` (None: whichever has the pid now), whose
        birth is read again after the notice was opened. None where that process is not there, or where the platform
        cannot tell: then ask `sighting` again and again."""


class Clock(Protocol):
    """The clocks, in whole milliseconds."""

    def wall_ms(self) -> int:
        """Wall clock: heartbeats, for the eyes of other systems. It may step."""

    def monotonic_ms(self) -> int:
        """Monotonic clock of this boot, the same for all processes of it: stamps. It may stand still in a suspend."""

    def fence_ms(self) -> int:
        """Monotonic clock that counts suspends where the platform has one: a process's judgement of its own lease."""

    def sleep_ms(self, duration_ms: float) -> None:
        """Wait."""


class Identities(Protocol):
    """Fresh names: never given out twice (law Fresh)."""

    def uuid(self) -> str:
        """A random uuid, lowercase."""

    def bits(self, count: int) -> int:
        """So many random bits."""

    def word(self, length: int) -> str:
        """So many random letters and digits."""


Fields = Mapping[str, str | int | float | bool | None]


class Diagnostics(Protocol):
    """Where adapters say what they noticed. Whatever it does, also raising, changes no outcome (A34)."""

    def note(self, category: str, phase: str, fields: Fields) -> None:
        """`category/phase` names the place (locks.md 9), `fields` the facts."""


class Recorder(Protocol):
    """Where protocol events are recorded (DESIGN 8); None in place of one records nothing."""

    def order(self) -> int:
        """The number of a transaction that has just been entered: one more than that of the last one in this
        recording. Called inside only."""

    def event(
        self,
        module: str,
        action: str,
        node: str,
        number: int,
        args: Mapping[str, object] | None = None,
        observed: Mapping[str, object] | None = None,
        tenure: object = None,
    ) -> None:
        """One event of `module`: the twin's `action`, taken by participant `node` inside transaction `number` (0:
        outside of any). `observed` is what the participant saw of the model's variables, `tenure` the identity under
        which it acted. It has no outcome, and no error of it reaches the protocol."""


@attrs.frozen
class Ports:
    """All of them together: what a runtime is given."""

    files: Files
    processes: Processes
    clock: Clock
    identities: Identities
    diagnostics: Diagnostics
    recorder: Recorder | None = None


class Killed(BaseException):
    """Raised by a port of a test in place of a call that the process did not live to make. No Exception: nothing that
    handles errors may go on after it."""


def tell(ports: Ports, category: str, phase: str, **fields: str | int | float | bool | None) -> None:
    """Note something; a sink that throws changes no outcome."""
    try:
        ports.diagnostics.note(category, phase, fields)
    except Exception:
        return
