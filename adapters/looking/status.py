"""Who leads an agent directory, who is inside its guards, what lies about: ``tenure status``. Reads only.

A snapshot, not a proof: every line was true at its own moment. `status_json` puts it into JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.debris import Litter, debris
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.high_water import parse_mark
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.lead.lock import Holder, Record
from tenure.adapters.looking.examine import state_files
from tenure.adapters.looking.fleet_look import Asking, FleetLook, fleets, nobody_asked
from tenure.adapters.looking.journal_look import JournalCounts
from tenure.adapters.looking.looks import (
    NOT_KNOWN,
    PROFILE,
    EntryLook,
    GuardLook,
    RegistryLook,
    look_at_guard,
    look_at_registry,
)
from tenure.adapters.ports import Ports
from tenure.machines.identity import Epoch
from tenure.machines.lease import DEFAULT_KEY, INACTIVE

_STATE: Final = re.compile(r"state(\.[a-z0-9]{1,32})?\.json(?=\.|$)")
"""The name of a projection, also at the beginning of a longer one."""

Locks = Callable[[str], tuple[Record | None, tuple[Holder, ...]]]
"""What the file of a lock says, and which processes keep it locked."""


def no_locks(path: str) -> tuple[Record | None, tuple[Holder, ...]]:
    """Where nobody can tell."""
    return None, ()


Journals = Callable[[str | None], tuple[JournalCounts, ...]]
"""The journals of the directory at a glance, or that of a key."""


def no_journals(key: str | None) -> tuple[JournalCounts, ...]:
    """Where nobody looks at them."""
    return ()


@attrs.frozen
class LockLook:
    """The lock that COMMAND of ``tenure lead`` (or CMD of ``tenure commit``) and its descendants keep.

    `record` is who took it last, `holders` who has it now. `orphaned`: what has it was started under a tenure that is
    over, so nobody's COMMAND starts (the guardian was killed or stopped, or COMMAND has left it)."""

    key: str
    path: str
    exists: bool
    record: Record | None = None
    holders: tuple[Holder, ...] = ()
    orphaned: bool = False


@attrs.frozen
class MarkLook:
    """The high-water mark of epochs, or what is wrong with its file. `readable`: it is what the file says."""

    path: str
    exists: bool
    mark: int = 0
    problem: str = ""
    readable: bool = True


@attrs.frozen
class Status:
    """One look at everything. `stale_ms`: the age beyond which a lease is over. `neighbour`: the guard under which the
    other system clears a regular-file guard of 0.22.0 away (locks.md 3.3)."""

    directory: str
    stale_ms: int
    registry: RegistryLook
    keys: tuple[EntryLook, ...]
    guard: GuardLook
    neighbour: GuardLook
    recovery_guard: GuardLook
    work: tuple[LockLook, ...]
    commit: tuple[LockLook, ...]
    marks: MarkLook
    debris: tuple[Litter, ...]
    quarantined: tuple[str, ...]
    fleets: tuple[FleetLook, ...] = ()
    journals: tuple[JournalCounts, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """What keeps anybody from leading, one line each, the file first."""
        found = []
        if self.registry.problem:
            found.append(f"{self.registry.path}: {self.registry.problem}")
        found += [f"{g.path}: {g.problem}" for g in (self.guard, self.recovery_guard) if g.kind == "damaged"]
        if self.marks.problem:
            found.append(f"{self.marks.path}: {self.marks.problem}")
        found += [f"{self.registry.path}: {text}" for text in self.registry.odd]
        found += [fleet.problem for fleet in self.fleets if fleet.problem]
        found += [journal.problem for journal in self.journals if journal.problem]
        return tuple(found)


def status(
    ports: Ports,
    directory: AgentDirectory,
    key: str | None = None,
    timings: Timings = DEFAULT,
    locks: Locks = no_locks,
    asking: Asking = nobody_asked,
    journals: Journals = no_journals,
) -> Status:
    """Look at everything; of one key alone where `key` is given. `asking`: how leaders are asked for their fleets; of
    those that do not answer, what they published is shown. Raises `TenureError` where the directory itself cannot be
    looked at (EACCES, EIO)."""
    try:
        return attrs.evolve(_status(ports, directory, key, timings, locks, asking), journals=journals(key))
    except OSError as error:
        raise TenureError(
            f"{error.filename or directory.root}: {error.strerror}; give this user the right to read it"
        ) from error


def _status(
    ports: Ports, directory: AgentDirectory, key: str | None, timings: Timings, locks: Locks, asking: Asking
) -> Status:
    registry = look_at_registry(ports, directory.registry, timings)
    entries = {e.key: e for e in registry.entries}
    wanted = [key] if key is not None else sorted({DEFAULT_KEY, *entries}, key=lambda k: (k != DEFAULT_KEY, k))
    nobody = NOT_KNOWN if registry.problem else INACTIVE
    keys = tuple(entries.get(k, EntryLook(k, None, nobody)) for k in wanted)
    names = names_in(ports, directory.state)
    locked = wanted if key is not None else sorted({*wanted, *_locked_keys(names)}, key=lambda k: (k != DEFAULT_KEY, k))
    epochs = {e.key: e.entry.leader_epoch for e in keys if e.live and e.entry is not None}
    unknown = {e.key for e in keys if e.state == NOT_KNOWN}
    return Status(
        directory=directory.root,
        stale_ms=timings.stale_ms,
        registry=registry,
        keys=keys,
        guard=look_at_guard(ports, directory.guard),
        neighbour=look_at_guard(ports, f"{directory.guard}.recovery"),
        recovery_guard=look_at_guard(ports, f"{directory.recovery_guard}.transaction"),
        work=tuple(
            _work(_lock(ports, k, directory.work_lock(k), locks), epochs, k not in unknown and not registry.problem)
            for k in locked
        ),
        commit=tuple(_lock(ports, k, directory.commit_lock(k), locks) for k in locked),
        marks=look_at_marks(ports, directory.high_water),
        debris=lying(ports, directory),
        quarantined=tuple(names_in(ports, directory.quarantine)),
        fleets=fleets(ports, directory, (*keys, *_published(ports, directory, wanted, key, nobody)), asking),
    )


def _published(
    ports: Ports, directory: AgentDirectory, wanted: list[str], key: str | None, nobody: str
) -> list[EntryLook]:
    """Keys that nobody leads now, and whose fleet has left a projection."""
    if key is not None:
        return []
    names = [path.rpartition("/")[2].split(".") for path in state_files(ports, directory)]
    found = [name[1] if len(name) == 3 else DEFAULT_KEY for name in names]
    return [EntryLook(k, None, nobody) for k in sorted(found) if k not in wanted]


def names_in(ports: Ports, path: str) -> tuple[str, ...]:
    """The names in a directory; none where there is no directory."""
    try:
        return ports.files.entries(path)
    except (FileNotFoundError, NotADirectoryError):
        return ()


def look_at_marks(ports: Ports, path: str) -> MarkLook:
    """The high-water mark."""
    try:
        data = ports.files.read(path)
    except FileNotFoundError:
        return MarkLook(path, False)
    except OSError as error:
        return MarkLook(path, True, problem=f"cannot be read: {error.strerror}", readable=False)
    mark, problem = parse_mark(data)
    return MarkLook(path, True, mark, problem)


def lying(ports: Ports, directory: AgentDirectory) -> tuple[Litter, ...]:
    """The debris beside everything that we guard or write."""
    resources = guarded(ports, directory)
    found = {litter.path: litter for resource in resources for litter in debris(ports, resource)}
    return tuple(found[path] for path in sorted(found))


def guarded(ports: Ports, directory: AgentDirectory) -> tuple[str, ...]:
    """Everything that we guard or replace, beside which debris may lie: also a projection that was never finished."""
    found = {match[0] for name in names_in(ports, directory.state) if (match := _STATE.match(name))}
    projections = (f"{directory.state}/{name}" for name in sorted(found))
    return (directory.registry, directory.recovery_guard, directory.high_water, *projections)


def _locked_keys(names: tuple[str, ...]) -> set[str]:
    """Keys of which lock files are there."""
    found = set()
    for name in names:
        match name.split("."):
            case ["lead" | "commit", "lock"]:
                found.add(DEFAULT_KEY)
            case ["lead" | "commit", key, "lock"] if PROFILE.fullmatch(key):
                found.add(key)
    return found


def _lock(ports: Ports, key: str, path: str, locks: Locks) -> LockLook:
    if ports.files.kind(path) == "absent":
        return LockLook(key, path, False)
    record, holders = locks(path)
    return LockLook(key, path, True, record, holders)


def _work(look: LockLook, epochs: Mapping[str, Epoch | None], known: bool) -> LockLook:
    """With what is `known` of the tenures that last: `epochs` of live owners by key."""
    if not known:
        return look
    if not look.holders or look.record is None:
        return attrs.evolve(look, orphaned=bool(look.holders) and look.key not in epochs)
    return attrs.evolve(look, orphaned=epochs.get(look.key) != look.record.epoch)
