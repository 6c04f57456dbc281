"""The projection of the fleet: `DIR/tmp/telegram/state.json`, or `state.<profile>.json` (bus.md f; DESIGN 10).

A leader publishes here what the other system's followers read, and what the next leader goes on from: threads with
their slots and names, what is remembered of profiles without one, open intents to clean up. SQLite takes that second
part over in the next issue; then this file is a projection and nothing more. It is replaced as a whole, inside the
ownership transaction: whoever is not the owner writes nothing (I40). What says the same is not written again, so that
membership costs a write and a heartbeat none.

What the other system left here with work in it is never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.replacing import read_or_absent, replace_file
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.fleet.threads.reading import Odd, decode, held, ours, read, remembered
from tenure.adapters.fleet.threads.values import CleanUp, LiveRoute, Mark, Snapshot, Written
from tenure.adapters.fleet.threads.writing import encode, render, same
from tenure.adapters.ports import Files, Ports
from tenure.machines.lease import DEFAULT_KEY
from tenure.machines.slot_board import Board

__all__ = ["CleanUp", "Commit", "LiveRoute", "Mark", "Projection", "ProjectionDamaged", "Snapshot", "StateForeign"]
__all__ += ["Superseded", "Written", "look", "projection_path"]

T = TypeVar("T")


class ProjectionDamaged(TenureError):
    """The file cannot be read, or is none of ours and no plain file of the other system."""


class StateForeign(TenureError):
    """The other system left work in the file: nobody of ours leads over it."""


class Superseded(TenureError):
    """The file was written under a higher epoch than ours; nothing was changed (law Fence)."""


class Commit(Protocol):
    """Runs an effect with the epoch inside the ownership transaction, if we own the key: `Leadership.commit_if_owned`,
    `LeaseRuntime.commit`; for who is inside already, the call itself. Raises NotOwner without having run it."""

    def __call__(self, effect: Callable[[int], T], /) -> T: ...


def projection_path(directory: AgentDirectory, key: str) -> str:
    """Where the projection of the registry's `key` is."""
    return f"{directory.state}/state.json" if key == DEFAULT_KEY else f"{directory.state}/state.{key}.json"


class Projection:
    """The projection of one key, as its leader uses it. All methods block: on the guard for up to two seconds, on the
    disk. They may be called from any thread, one at a time; what they raise changed nothing, unless it is a
    `WriteFailed` that says otherwise."""

    def __init__(
        self,
        ports: Ports,
        directory: AgentDirectory,
        key: str,
        commit: Commit,
        *,
        instance: str,
        timings: Timings = DEFAULT,
    ) -> None:
        self.path = projection_path(directory, key)
        self._root = directory.root
        self._ports = ports
        self._commit = commit
        self._instance = instance
        self._timings = timings

    def load(self) -> Snapshot:
        """What the leader before published; an empty snapshot where nothing is there, with the names that the other
        system remembered where it left nothing else. A new leader begins with it, before its endpoint is there.

        Raises `ProjectionDamaged`, `StateForeign`, `Superseded`, and as `commit`: NotOwner, GuardBusy and the like.
        """
        return self._commit(lambda epoch: self._load(epoch)[1])

    def publish(self, snapshot: Snapshot) -> bool:
        """Publish; False where the file says that already. Open intents are on the disk when this returns (law Durable
        first). Raises as `load`, and `WriteFailed`."""
        return self._commit(lambda epoch: self._publish(snapshot, epoch))

    def _publish(self, snapshot: Snapshot, epoch: int) -> bool:
        value, before = self._load(epoch)
        mark = Mark(epoch, self._instance, snapshot.board.next_thread)
        wanted = render(snapshot, mark, self._ports.clock.wall_ms())
        if value is not None and same(value, wanted):
            return False
        durable = not set(snapshot.clean_ups) <= set(before.clean_ups)
        replace_file(self._ports, self.path, encode(wanted), self._timings, durable=durable)
        return True

    def _load(self, epoch: int) -> tuple[Mapping[str, object] | None, Snapshot]:
        value = _value(self._ports.files, self.path)
        if value is None:
            return None, Snapshot()
        if not ours(value):
            _refuse_foreign(self.path, self._root, value)
            return value, Snapshot(Board(identities=remembered(value)))
        written = _written(self.path, value)
        if written.mark.epoch > epoch:
            raise Superseded(
                f"{self.path}: written under epoch {written.mark.epoch}, ours is {epoch}; nothing was changed; "
                "if epochs were begun anew there, move it away by hand"
            )
        return value, written.snapshot


@attrs.frozen
class Look:
    """What anybody sees of a projection: a plain read. `value` is the file's JSON, None where there is none or it is
    damaged; `written` what it says, where it is ours; `problem`: why it cannot be read, beginning with the file."""

    path: str
    value: Mapping[str, object] | None = None
    written: Written | None = None
    problem: str = ""

    @property
    def foreign(self) -> bool:
        """The other system wrote it."""
        return self.value is not None and self.written is None


def look(files: Files, directory: AgentDirectory, key: str) -> Look:
    """A plain read: no guard is taken, nothing is written, nothing raised."""
    path = projection_path(directory, key)
    try:
        value = _value(files, path)
        if value is None:
            return Look(path)
        return Look(path, value, _written(path, value) if ours(value) else None)
    except ProjectionDamaged as error:
        return Look(path, problem=str(error))


def refuse_unfit(files: Files, directory: AgentDirectory, key: str) -> None:
    """A plain look, before anybody stands for election: raises what `Projection.load` would, `ProjectionDamaged` or
    `StateForeign`, so that nobody takes an epoch that it could only give back."""
    found = look(files, directory, key)
    if found.problem:
        raise ProjectionDamaged(found.problem)
    if found.foreign and found.value is not None:
        _refuse_foreign(found.path, directory.root, found.value)


def _refuse_foreign(path: str, root: str, value: Mapping[str, object]) -> None:
    if work := held(value):
        raise StateForeign(
            f"{path}: the other system left {', '.join(work)} there, and nobody of ours leads over that; let it finish "
            f"(tenure import {root} takes over its updates, and cannot take over that yet)"
        )


def _value(files: Files, path: str) -> dict[str, object] | None:
    try:
        data = read_or_absent(files, path)
    except OSError as error:
        raise ProjectionDamaged(f"{path}: cannot be read: {error.strerror or error}; move it away by hand") from error
    try:
        return None if data is None else decode(data)
    except Odd as odd:
        raise ProjectionDamaged(f"{path}: {odd}; nothing was changed: see tenure doctor") from odd


def _written(path: str, value: Mapping[str, object]) -> Written:
    try:
        return read(value)
    except Odd as odd:
        raise ProjectionDamaged(
            f"{path}: {odd}; nothing was changed: correct it, or move it away by hand (slots and names are then new)"
        ) from odd
