"""What `looks` and `status` found, in words, and what a person can do about it."""

from __future__ import annotations

import os

from tenure.adapters.errors import printable
from tenure.adapters.looking.fleet_wording import fleet_lines
from tenure.adapters.looking.journal_glance import glance
from tenure.adapters.looking.line import Line, duration
from tenure.adapters.looking.looks import NOT_KNOWN, EntryLook, GuardLook, Seen
from tenure.adapters.looking.status import LockLook, Status
from tenure.machines.identity import UNKNOWN
from tenure.machines.lease import ACTIVE_ELSEWHERE, ACTIVE_HERE, INACTIVE

_LIVES = {
    "running": "running",
    "stopped": "stopped",
    "zombie": "dead, not yet reaped",
    "dead": "dead",
    "reused": "dead; its pid is another process's now",
    "earlier boot": "dead with an earlier boot",
    "other namespace": "in another pid namespace, cannot be seen from here",
    UNKNOWN: "cannot be probed",
}


def process(seen: Seen) -> str:
    """A process: its pid, what has that pid, and what became of it."""
    name = f", {seen.command}" if seen.command and not seen.proven_dead else ""
    return f"pid {seen.pid} ({_LIVES[seen.life]}{name})"


def entry(look: EntryLook, stale_ms: int) -> Line:
    """Who leads under one key."""
    label = f"key {look.key}"
    if look.state == NOT_KNOWN:
        return Line(label, "not known: what stands in the registry cannot be read", "bad")
    if look.entry is None or look.owner is None:
        return Line(label, "nobody leads")
    parts = [process(look.owner)]
    if look.entry.leader_epoch is not None:
        parts.append(f"epoch {look.entry.leader_epoch}")
    if look.age_ms is not None and look.age_ms < 0:
        parts.append(f"heartbeat {duration(look.age_ms)} in the future")
    elif look.age_ms is not None:
        parts.append(f"renewed {duration(look.age_ms)} ago")
    if look.entry.cwd is not None:
        parts.append(f"in {look.entry.cwd}")
    if look.entry.instance_id is not None:
        parts.append(f"instance {look.entry.instance_id}")
    if look.entry.birth is None:
        parts.append("no birth recorded")
    what = ", ".join(parts)
    if look.state in (ACTIVE_HERE, ACTIVE_ELSEWHERE):
        stopped = look.owner.life == "stopped"
        return Line(label, f"led by {what}", "warn" if stopped else "good")
    why = "its process is dead" if look.owner.proven_dead else f"not renewed for {duration(stale_ms)}"
    return Line(label, f"over ({why}): anybody may lead; last {what}", "warn")


def guard(look: GuardLook, label: str, wall_ms: int) -> Line:
    """What stands at a guard's path."""
    if look.kind == "free":
        return Line(label, "free")
    if look.kind == "damaged":
        return Line(label, f"damaged: {look.problem}; nobody enters", "bad")
    if look.payload is None or look.holder is None:
        return Line(label, look.problem)
    since = duration(max(0, wall_ms - look.payload.acquired_at_ms))
    form = "a regular file of version 0.22.0, " if look.form == "file" else ""
    if look.kind == "held":
        slow = look.holder.life == "stopped" or look.form == "file"
        return Line(label, f"{form}held by {process(look.holder)} for {since}", "warn" if slow else "quiet")
    if look.kind == "claimed" and look.claimant is not None:
        text = f"{process(look.claimant)} moves away what {process(look.holder)} left"
        return Line(label, text, "warn" if look.claimant.life == "stopped" else "quiet")
    return Line(label, f"{form}left by {process(look.holder)} {since} ago", "warn")


def lock(look: LockLook, what: str) -> Line | None:
    """Who keeps a lock; None where nobody does."""
    if not look.holders:
        return None
    label = f"{what} {look.key}"
    text = "locked by " + ", ".join(map(str, look.holders))
    if look.record is not None:
        record = look.record
        role = {record.guardian: "guardian", record.pid: "COMMAND"}
        roles = [f"the {role[h.pid]} {h.pid}" for h in look.holders if h.pid in role]
        text += f"; epoch {record.epoch}" + (f", of them {', '.join(roles)}" if roles else "")
        if record.guardian not in {h.pid for h in look.holders}:
            text += f"; its guardian, pid {record.guardian}, has gone"
    return Line(label, text, "warn" if look.orphaned else "quiet")


def lines(found: Status, wall_ms: int) -> tuple[Line, ...]:
    """A whole status."""
    said = [entry(look, found.stale_ms) for look in found.keys]
    if found.registry.problem:
        said.insert(0, Line("registry", f"{found.registry.problem}", "bad"))
    said.extend(Line("registry", text, "bad") for text in found.registry.odd)
    for fleet in found.fleets:
        said.extend(fleet_lines(fleet))
    said.extend(glance(journal, found.directory) for journal in found.journals)
    if found.registry.strangers:
        said.append(Line("other keys", ", ".join(look.key for look in found.registry.strangers)))
    said.append(guard(found.guard, "guard", wall_ms))
    if found.neighbour.kind != "free":
        said.append(guard(found.neighbour, "neighbour", wall_ms))
    if found.recovery_guard.kind != "free":
        said.append(guard(found.recovery_guard, "doctor", wall_ms))
    for locks, what in ((found.work, "work"), (found.commit, "commit")):
        said.extend(line for look in locks if (line := lock(look, what)) is not None)
    if found.marks.problem:
        said.append(Line("epochs", found.marks.problem, "bad"))
    elif found.marks.exists:
        said.append(Line("epochs", f"up to {found.marks.mark} given out"))
    for litter in found.debris:
        owner = "nobody" if not litter.pid else f"pid {litter.pid} ({'dead' if litter.dead else 'alive'})"
        said.append(Line("debris", f"{os.path.basename(litter.path)}, of {owner}"))
    if found.quarantined:
        said.append(Line("quarantine", ", ".join(found.quarantined)))
    said.extend(Line("note", text, "warn") for text in advice(found, wall_ms))
    return tuple(Line(printable(line.label), printable(line.text), line.mood) for line in said)


# -- what to do -----------------------------------------------------------------


def advice(found: Status, wall_ms: int) -> tuple[str, ...]:
    """What stands in the way, and what a person can do about it."""
    doctor = f"tenure doctor {found.directory}"
    said = []
    if found.registry.damaged or found.guard.kind == "damaged" or found.marks.problem:
        said.append(f"run {doctor}")
    elif found.registry.problem:
        said.append(f"see to it that this user can read {found.registry.path}")
    said += [f"correct or remove that member of {found.registry.path} by hand: {text}" for text in found.registry.odd]
    said += _about_guard(found.guard, found.stale_ms, wall_ms, doctor)
    said += _about_guard(found.recovery_guard, found.stale_ms, wall_ms, doctor)
    if found.recovery_guard.kind == "damaged":
        said.append(
            f"see that no tenure doctor runs, then move {found.recovery_guard.path} away by hand: it is the guard of "
            "healing itself, and never healed"
        )
    for look in found.keys:
        said += _about_entry(look)
    leaders = {look.key: look for look in found.keys}
    for work in found.work:
        said += _about_work(work, leaders.get(work.key))
    return tuple(said)


def _about_guard(look: GuardLook, stale_ms: int, wall_ms: int, doctor: str) -> list[str]:
    inside = look.claimant if look.kind == "claimed" else look.holder
    if inside is None or look.payload is None or look.kind == "damaged":
        return []
    if inside.proven_dead:
        return [f"run {doctor}"] if look.form == "file" else []
    if inside.life == "stopped":
        return [f"pid {inside.pid} is stopped inside the guard: everybody waits until it runs or dies; kill -CONT "
                f"{inside.pid}"]  # fmt: skip
    held = wall_ms - look.payload.acquired_at_ms
    if inside.birth_known or held <= stale_ms:
        return []
    text = f"{look.path} names pid {inside.pid} without its birth (another system wrote it), so it counts as held while"
    text += " a process has that pid"
    if inside.age_ms is not None and inside.age_ms < held:
        text += f"; the process that has it now is {duration(inside.age_ms)} old, the guard {duration(held)}: unless"
        text += " the clock was set, the pid was reused"
    return [f"{text}; if it is not the holder, move the guard away by hand"]


def _about_entry(look: EntryLook) -> list[str]:
    if look.entry is None or look.owner is None or look.state == INACTIVE or look.owner.proven_dead:
        return []
    said = []
    if look.owner.life == "stopped" and not look.expired:
        said.append(f"pid {look.owner.pid}, which leads {look.key}, is stopped: kill -CONT {look.owner.pid}, or its "
                    "lease passes")  # fmt: skip
    if look.owner.life == "other namespace":
        said.append(f"{look.key}: its owner is in another pid namespace; its death is not seen from here, only that it "
                    "does not renew")  # fmt: skip
    elif look.entry.birth is None and not look.expired and not look.endless:
        until = "until it is not renewed" if look.age_ms is not None else "for ever: it has no heartbeat"
        said.append(f"{look.key}: pid {look.owner.pid} recorded no birth (another system wrote it); it counts as alive "
                    f"while any process has that pid, or {until}")  # fmt: skip
    return said


def _about_work(look: LockLook, leader: EntryLook | None) -> list[str]:
    """Why a leader's COMMAND does not start, or who has lost its guardian."""
    if not look.orphaned:
        return []
    over = "an earlier leader" if look.record is None else f"epoch {look.record.epoch}, which is over,"
    waits = "the next leader"
    if leader is not None and leader.live and leader.owner is not None:
        waits = f"pid {leader.owner.pid}, which leads,"
    pids = " ".join(str(h.pid) for h in look.holders)
    said = [
        f"{look.key}: COMMAND of {over} keeps {look.path}: {waits} starts its own when that ends; end it: kill {pids}"
    ]
    stopped = [str(h.pid) for h in look.holders if h.state == "stopped"]
    if stopped:
        said.append(f"of these, stopped: {', '.join(stopped)}; kill -CONT {' '.join(stopped)} lets them go on")
    return said
