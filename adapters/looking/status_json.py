"""The shape of ``tenure status --json``, which stays: fields may be added."""

from __future__ import annotations

from tenure.adapters.looking.fleet_wording import fleet_json
from tenure.adapters.looking.journal_json import glance_json
from tenure.adapters.looking.looks import EntryLook, GuardLook, Seen
from tenure.adapters.looking.status import LockLook, Status

Json = dict[str, object]


def as_json(found: Status) -> Json:
    """The shape of ``tenure status --json``. Durations and wall-clock times in ms, paths absolute, null for nothing.

    * `problem`, `problems`: what keeps anybody from leading, each one line that begins with the file;
    * `registry`: {path, exists, problem, otherKeys};
    * `keys`: [{key, state, owner, epoch, cwd, instanceId, runtimeGeneration, foreign, ageMs, ageBy, expired}], where
      `state` is inactive, active-here, active-elsewhere, stale (locks.md 5) or unknown, `owner` a process, `foreign`
      says that no birth is recorded, `ageBy` is stamp or heartbeat;
    * `guard`, `neighbour`, `recoveryGuard`: see `guard_json`;
    * `work`, `commit`: locks by key, [{key, path, exists, holders: [{pid, process, command}], last, orphaned}];
    * `highWater`: {path, exists, mark, problem};
    * `debris`: [{path, what, pid, ownerDead, needed}]; `quarantined`: names in `tmp/telegram/recovery`;
    * `fleets`: see `tenure.adapters.looking.fleet_wording.fleet_json`; none of a key without leader and projection;
    * `journals`: see `tenure.adapters.looking.journal_json.glance_json`; what is unsettled in each.

    A process is {pid, process, provenDead, birthKnown}, where `process` is one of running, stopped, zombie, dead,
    reused, earlier boot, other namespace, unknown.
    """
    problems = found.problems
    return {
        "directory": found.directory,
        "problem": problems[0] if problems else None,
        "problems": list(problems),
        "staleAfterMs": found.stale_ms,
        "registry": {
            "path": found.registry.path,
            "exists": found.registry.exists,
            "problem": found.registry.problem or None,
            "otherKeys": [e.key for e in found.registry.strangers],
        },
        "keys": [_key(e) for e in found.keys],
        "guard": guard_json(found.guard),
        "neighbour": guard_json(found.neighbour),
        "recoveryGuard": guard_json(found.recovery_guard),
        "work": [_lock_json(lock) for lock in found.work],
        "commit": [_lock_json(lock) for lock in found.commit],
        "highWater": {
            "path": found.marks.path,
            "exists": found.marks.exists,
            "mark": found.marks.mark,
            "problem": found.marks.problem or None,
        },
        "debris": [
            {"path": d.path, "what": d.what, "pid": d.pid or None, "ownerDead": d.dead, "needed": d.needed}
            for d in found.debris
        ],
        "quarantined": list(found.quarantined),
        "fleets": [fleet_json(fleet) for fleet in found.fleets],
        "journals": [glance_json(journal) for journal in found.journals],
    }


def process_json(seen: Seen) -> Json:
    """A process in JSON."""
    return {"pid": seen.pid, "process": seen.life, "provenDead": seen.proven_dead, "birthKnown": seen.birth_known}


def guard_json(look: GuardLook) -> Json:
    """A guard in JSON. `state`: free, held, claimed, abandoned or damaged."""
    return {
        "path": look.path,
        "state": look.kind,
        "form": look.form,
        "holder": None if look.holder is None else process_json(look.holder),
        "claimant": None if look.claimant is None else process_json(look.claimant),
        "sinceMs": None if look.payload is None else look.payload.acquired_at_ms,
        "generation": None if look.payload is None else look.payload.generation,
        "problem": look.problem or None,
        "files": list(look.names),
    }


def _key(look: EntryLook) -> Json:
    entry = look.entry
    return {
        "key": look.key,
        "state": look.state,
        "owner": None if look.owner is None else process_json(look.owner),
        "epoch": None if entry is None else entry.leader_epoch,
        "cwd": None if entry is None else entry.cwd,
        "instanceId": None if entry is None else entry.instance_id,
        "runtimeGeneration": None if entry is None else entry.runtime_generation,
        "foreign": entry is not None and entry.birth is None,
        "ageMs": look.age_ms,
        "ageBy": look.age_by,
        "expired": look.expired,
    }


def _lock_json(lock: LockLook) -> Json:
    """`last` is who took it last, and says nothing about now; `holders` have it now."""
    record = lock.record
    return {
        "key": lock.key,
        "path": lock.path,
        "exists": lock.exists,
        "holders": [{"pid": h.pid, "process": h.state, "command": list(h.command)} for h in lock.holders],
        "last": None
        if record is None
        else {
            "guardian": record.guardian,
            "supervisor": record.supervisor,
            "pid": record.pid,
            "epoch": record.epoch,
            "command": list(record.command),
        },
        "orphaned": lock.orphaned,
    }
