"""All that ``tenure doctor`` does: healing, the mark of epochs, debris of the dead, and what only a person can do."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

import attrs

from tenure.adapters.errors import TenureError, printable
from tenure.adapters.files.debris import UNCHANGED_MS, sweep
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardBusy, Guarded, GuardedFile
from tenure.adapters.files.high_water import FIELD
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.replacing import replace_file
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.looking.doctor import Doctor, Outcome
from tenure.adapters.looking.legacy import OldGuards
from tenure.adapters.looking.line import duration
from tenure.adapters.looking.looks import look_at_guard, look_at_registry
from tenure.adapters.looking.quarantine import Moved, Quarantine
from tenure.adapters.looking.status import Status, guarded, look_at_marks, status
from tenure.adapters.looking.status_json import Json, guard_json, process_json
from tenure.adapters.looking.wording import advice, process
from tenure.adapters.ports import Ports
from tenure.machines.lease import MAX_EPOCH, ordered

_NUMBER: Final = re.compile(r"[0-9]{1,16}")


@attrs.frozen
class Report:
    """What was done, and what stays. `mark`: the mark of epochs that was written in place of a damaged one."""

    outcome: Outcome
    after: Status
    advice: tuple[str, ...]
    mark: int | None = None
    moved: tuple[Moved, ...] = ()
    swept: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether nothing that is damaged stays."""
        return self.outcome.kind != "blocked" and not self.after.problems


def care(
    ports: Ports,
    directory: AgentDirectory,
    timings: Timings = DEFAULT,
    *,
    process: ProcessState | None = None,
) -> Report:
    """Heal what may be healed. Where healing is blocked nothing at all is changed. Raises `TenureError` where the
    directory cannot be read or written."""
    try:
        return _care(ports, directory, timings, process)
    except OSError as error:
        raise TenureError(f"{error.filename or directory.root}: {error.strerror}; run tenure doctor again") from error


def _care(ports: Ports, directory: AgentDirectory, timings: Timings, process: ProcessState | None) -> Report:
    status(ports, directory, None, timings)  # raises before anything is touched, if this user may not even look
    outcome = Doctor(ports, directory, timings, process=process).heal()
    mark: int | None = None
    copied: tuple[Moved, ...] = ()
    swept: tuple[str, ...] = ()
    if outcome.kind != "blocked":
        mark, copied = _renew_mark(ports, directory, timings, process)
        swept = (*_reclaimed(ports, directory, timings, process), *_swept(ports, directory))
    after = status(ports, directory, None, timings)
    said = advice(after, ports.clock.wall_ms())
    return Report(outcome, after, said, mark, (*outcome.moved, *copied), swept)


def _reclaimed(
    ports: Ports, directory: AgentDirectory, timings: Timings, process: ProcessState | None
) -> tuple[str, ...]:
    """Take over the guards that dead processes left, as the next one to enter would, and leave them free."""
    found = []
    for resource in (directory.recovery_guard, directory.registry):
        file = GuardedFile(ports, resource, timings, process=process)
        if look_at_guard(ports, file.path).kind == "abandoned":
            with suppress(GuardBusy):  # somebody else did
                file.run(lambda _: None)
                found.append(file.path)
    with suppress(GuardBusy):
        found += OldGuards(ports, directory.registry, timings, process).reclaim()
    return tuple(found)


def _swept(ports: Ports, directory: AgentDirectory) -> tuple[str, ...]:
    """Remove the debris of the dead. Some of it names its owner by a pid only, which may be one of another pid
    namespace: that has to lie there unchanged for a while, which is waited for."""
    resources = guarded(ports, directory)
    suspects: dict[str, int] = {}
    removed = [path for resource in resources for path in sweep(ports, resource, suspects)]
    if suspects:
        ports.clock.sleep_ms(UNCHANGED_MS + 1)
        removed += [path for resource in resources for path in sweep(ports, resource, suspects)]
    return tuple(removed)


def _renew_mark(
    ports: Ports, directory: AgentDirectory, timings: Timings, process: ProcessState | None
) -> tuple[int | None, tuple[Moved, ...]]:
    """Write the mark of epochs anew where its file is damaged: above every epoch that is still to be read anywhere, and
    at least the wall clock in ms. More epochs than milliseconds were never given out, so no epoch repeats even where
    nothing can be read, unless the clock stands earlier than when a mark was last renewed like this.

    The damaged file is replaced, never missing for a moment: a missing mark is 0 (law Fresh). A copy is quarantined.
    """
    if not _torn(ports, directory):
        return None, ()
    quarantine = Quarantine(ports, directory, timings)

    def renew(guarded: Guarded) -> int | None:
        if not _torn(ports, directory):
            return None
        data = ports.files.read(directory.high_water)
        entries = look_at_registry(ports, directory.registry, timings).entries
        epochs = [ordered(look.entry.leader_epoch) for look in entries if look.entry is not None]
        numbers = [int(digits) for digits in _NUMBER.findall(data.decode("utf-8", "replace"))]
        mark = max(n for n in (ports.clock.wall_ms(), *epochs, *numbers) if n <= MAX_EPOCH)
        quarantine.keep_copy(directory.high_water, data)
        replace_file(ports, directory.high_water, f'{{"{FIELD}": {mark}}}\n'.encode(), timings, durable=True)
        return mark

    mark = GuardedFile(ports, directory.registry, timings, process=process).run(renew)
    return mark, quarantine.moved


def _torn(ports: Ports, directory: AgentDirectory) -> bool:
    """Whether the mark's file is a regular file that says no mark. What cannot be read stays as it is."""
    look = look_at_marks(ports, directory.high_water)
    return bool(look.problem) and look.readable


# -- in words, and in JSON ------------------------------------------------------


def lines(report: Report) -> tuple[str, ...]:
    """What happened, for a person."""
    outcome = report.outcome
    said = [f"damaged: {damage.path}: {damage.problem}" for damage in outcome.found]
    said += [f"moved: {moved.source} -> {moved.target}" for moved in report.moved]
    if report.mark is not None:
        said.append(
            f"renewed: {report.after.marks.path}: epochs go on above {report.mark}, higher than "
            "any that can be read and than the clock in ms; whether the lost mark was lower can only be assumed"
        )
    if any(moved.source == report.after.registry.path for moved in report.moved):
        said.append(
            "note: what other programs kept in that registry they have to find again, or a person copies it back"
        )
    said += [f"swept: {path}" for path in report.swept]
    for blocker in outcome.blockers:
        age = "" if blocker.age_ms is None else f", renewed {duration(blocker.age_ms)} ago"
        said.append(f"alive: {process(blocker.seen)}, {blocker.role}{age}")
    if outcome.kind == "blocked":
        changed = "what was moved before is in quarantine" if outcome.moved else "nothing was changed"
        said.append(f"blocked: {outcome.why}; {changed}")
    elif outcome.kind == "recovered" or report.mark is not None:
        said.append("recovered")
    elif report.healthy:
        said.append("nothing is damaged")
    if outcome.kind != "blocked":
        said += [f"stays: {problem}" for problem in report.after.problems]
    said += [f"note: {text}" for text in report.advice if outcome.kind == "blocked" or "run tenure doctor" not in text]
    return tuple(map(printable, said))


def as_json(report: Report) -> Json:
    """The shape of ``tenure doctor --json``."""
    outcome = report.outcome
    return {
        "directory": report.after.directory,
        "outcome": outcome.kind,
        "healthy": report.healthy,
        "damage": [{"what": d.what, "path": d.path, "problem": d.problem} for d in outcome.found],
        "moved": [{"from": m.source, "to": m.target} for m in report.moved],
        "blockedBy": [{**process_json(b.seen), "role": b.role, "key": b.key} for b in outcome.blockers],
        "why": outcome.why or None,
        "mark": report.mark,
        "swept": list(report.swept),
        "guard": guard_json(report.after.guard),
        "problems": list(report.after.problems),
        "advice": list(report.advice),
    }
