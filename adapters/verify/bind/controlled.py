"""All ports of one process, as calls that a `Replay` answers."""

from __future__ import annotations

from typing import Final

from tenure.adapters.ports import Fields, NodeKind, Ports, Watch
from tenure.adapters.verify.bind.replay import Replay
from tenure.machines.identity import Birth, Process, Sighting

WALL_MS: Final = 1_700_000_000_000
MONOTONIC_MS: Final = 1_000_000


class ControlledPorts:
    """All ports of one process, answered by a `Replay`. The clocks stand still unless `ticking`."""

    def __init__(self, replay: Replay, me: Process, ticking: bool = False) -> None:
        self._ask = replay.ask
        self._me = me
        self._ticking = ticking

    def ports(self) -> Ports:
        return Ports(self, self, self, self, self)

    # -- files --
    def make_directory(self, path: str) -> None:
        self._ask("make_directory", path)

    def create(self, path: str, data: bytes) -> None:
        self._ask("create", path, data)

    def read(self, path: str, *, follow: bool = False) -> bytes:
        found: bytes = self._ask("read", path)
        return found

    def entries(self, path: str) -> tuple[str, ...]:
        found: tuple[str, ...] = self._ask("entries", path)
        return found

    def kind(self, path: str) -> NodeKind:
        found: NodeKind = self._ask("kind", path)
        return found

    def rename(self, source: str, target: str) -> None:
        self._ask("rename", source, target)

    def unlink(self, path: str) -> None:
        self._ask("unlink", path)

    def remove_directory(self, path: str) -> None:
        self._ask("remove_directory", path)

    def sync(self, path: str) -> None:
        self._ask("sync", path)

    # -- processes --
    def me(self) -> Process:
        return self._me

    def sighting(self, pid: int) -> Sighting:
        found: Sighting = self._ask("sighting", pid)
        return found

    def watch(self, pid: int, birth: Birth | None) -> Watch | None:
        return None

    # -- clocks --
    def wall_ms(self) -> int:
        # Whoever gets a pid again begins later.
        return WALL_MS + self._me.birth.ticks + self._elapsed()

    def monotonic_ms(self) -> int:
        return MONOTONIC_MS + self._elapsed()

    def fence_ms(self) -> int:
        return MONOTONIC_MS + self._elapsed()

    def sleep_ms(self, duration_ms: float) -> None:
        self._ask("sleep_ms")

    def _elapsed(self) -> int:
        elapsed: int = self._ask("clock") if self._ticking else 0
        return elapsed

    # -- identities: each draw is the least number that nothing refers to any more, spelled in its own way --
    def uuid(self) -> str:
        return uuid_of(self._draw())

    def bits(self, count: int) -> int:
        return self._draw()

    def word(self, length: int) -> str:
        return f"{self._draw():0{length}d}"

    def _draw(self) -> int:
        number: int = self._ask("draw")
        return number

    # -- diagnostics --
    def note(self, category: str, phase: str, fields: Fields) -> None:
        return


def uuid_of(number: int) -> str:
    """How number `number` looks as a uuid."""
    return f"00000000-0000-4000-8000-{number:012x}"
