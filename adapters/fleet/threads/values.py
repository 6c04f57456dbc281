"""What a leader publishes of its fleet, as values: `state.json`, version 1 (bus.md f, FILES; annex I)."""

from __future__ import annotations

from typing import Final

import attrs

from tenure.machines.slot_board import Board, OwnerKind, Target

FORMAT: Final = 1
"""Of the member `tenure`. A higher one was written by a later version, which is not overwritten."""
STATUS: Final = {False: "active", True: "probe-required"}
"""Of a thread: whether it must be probed before it is used."""


@attrs.frozen
class CleanUp:
    """The intent to delete the thread of one registration (bus.md, annex I). Persisted before anything is deleted."""

    instance: str
    generation: str | None
    target: Target
    requested_ms: int
    kind: OwnerKind = "manual-follower"
    key: str | None = None


@attrs.frozen
class LiveRoute:
    """A live registration. Only for eyes: what is read here routes nothing."""

    instance: str
    key: str
    generation: str
    connected_ms: int
    pid: int | None = None
    slot: str | None = None
    name: str | None = None
    target: Target | None = None


@attrs.frozen
class Snapshot:
    """All that is published. `board` and `clean_ups` are what the next leader goes on from."""

    board: Board = attrs.field(factory=Board)
    clean_ups: tuple[CleanUp, ...] = ()
    live: tuple[LiveRoute, ...] = ()


@attrs.frozen
class Mark:
    """Who wrote it, under which epoch. `next_thread` is the board's."""

    epoch: int
    instance: str
    next_thread: int = 1


@attrs.frozen
class Written:
    """A file of ours, read again. Times are in ms of the wall clock."""

    snapshot: Snapshot
    mark: Mark
    written_ms: int
