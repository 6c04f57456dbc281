"""A fleet in words, and in JSON."""

from __future__ import annotations

from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.fleet_view import CleanUpView, LeaderView, PendingView, ReservationView
from tenure.adapters.fleet.threads.views import ListedFollower
from tenure.adapters.looking.fleet_look import FleetLook
from tenure.adapters.looking.line import Line, Mood, duration
from tenure.machines.lease import DEFAULT_KEY

_LATE_MS = 2_000
"""A follower beats every second."""


def fleet_lines(fleet: FleetLook) -> list[Line]:
    """A fleet: its leader, its followers by slot, what is kept for whom, what is under way."""
    said = [_source(fleet)]
    if fleet.leader is not None:
        said.append(_leader(fleet.leader))
    said += [_follower(follower, follower.pid in fleet.gone) for follower in fleet.followers]
    said += [_reservation(view) for view in fleet.kept.reservations]
    said += [_pending(view) for view in fleet.kept.pendings]
    said += [_clean_up(view) for view in fleet.kept.clean_ups]
    return said


def _source(fleet: FleetLook) -> Line:
    label = "fleet" if fleet.key == DEFAULT_KEY else f"fleet {fleet.key}"
    if fleet.problem:
        return Line(label, fleet.problem, "bad")
    count = f"{len(fleet.followers)} follower{'' if len(fleet.followers) == 1 else 's'}"
    if fleet.source == "leader":
        return Line(label, f"{count}, as its leader says", "good")
    if fleet.age_ms is None:
        return Line(label, f"{fleet.why}; nothing is published", "warn")
    whose = "the other system" if fleet.foreign else "its leader"
    text = f"{fleet.why}; {count}, as {whose} published {duration(fleet.age_ms)} ago in {fleet.path}"
    return Line(label, text, "quiet" if fleet.foreign else "warn")


def _leader(view: LeaderView) -> Line:
    epoch = f", epoch {view.epoch}" if view.epoch != "" else ""
    place = _place(view.name, view.target)
    return Line(_slot(view.slot), f"leader: pid {view.pid}, instance {view.instance_id}{epoch}{place}", "good")


def _follower(follower: ListedFollower, gone: bool) -> Line:
    age = follower.heartbeat_age_ms
    parts = [f"pid {follower.pid}{' (gone)' if gone else ''}"] if follower.pid is not None else []
    parts.append(f"instance {follower.instance_id}")
    if follower.generation:
        parts.append(f"generation {follower.generation}")
    parts.append("heartbeat not known" if age is None else f"heartbeat {duration(age)} ago")
    if follower.profile:
        parts.append(f"profile {follower.profile}")
    mood: Mood = "warn" if gone else "quiet" if age is None else "good" if age <= _LATE_MS else "warn"
    return Line(_slot(follower.slot), f"{', '.join(parts)}{_place(follower.name, follower.target)}", mood)


def _reservation(view: ReservationView) -> Line:
    whom = "kept for nobody" if view.profile is None else f"kept for {view.profile}"
    parts = [whom] + ([view.name] if view.name else [])
    if view.age_ms is not None:
        parts.append(f"since {duration(view.age_ms)}")
    if view.left_ms is not None:
        parts.append(f"for {duration(view.left_ms)} more")
    return Line(_slot(view.slot), ", ".join(parts))


def _pending(view: PendingView) -> Line:
    slot = "no slot" if view.slot is None else f"slot {view.slot}"
    profile = "" if view.profile is None else f", profile {view.profile}"
    text = f"{slot} for instance {view.instance_id}{profile}, {view.status} for {duration(view.age_ms)}"
    return Line("pending", f"{text}{_place(view.name, view.target)}", "warn" if view.status == "ambiguous" else "quiet")


def _clean_up(view: CleanUpView) -> Line:
    whose = f" of generation {view.generation}" if view.generation else ""
    text = f"instance {view.instance_id}{whose}, wanted for {duration(view.age_ms)}{_place(None, view.target)}"
    return Line("clean-up", text, "warn")


def _slot(slot: str | None) -> str:
    return "no slot" if slot is None else f"slot {slot}"


def _place(name: str | None, target: Target | None) -> str:
    thread = "" if target is None or target.thread_id is None else f", thread {target.thread_id}"
    chat = f" of chat {target.chat_id}" if thread and target is not None and target.chat_id else ""
    return f"{f', {name}' if name else ''}{thread}{chat}"


# -- JSON -----------------------------------------------------------------------

Json = dict[str, object]


def fleet_json(fleet: FleetLook) -> Json:
    """A fleet in JSON; null for what is not known, ages in ms.

    {key, source, why, path, ageMs, foreign, problem, leader, followers, reservations, pendings, cleanUps}, where
    `source` is leader or projection, `why` says why the leader did not tell itself, `ageMs` how old the projection at
    `path` is.

    * `leader`: {pid, instanceId, epoch, slot, name, target}; `target`: {chatId, threadId};
    * `followers`: [{instanceId, generation, pid, profile, slot, name, target, heartbeatAgeMs}];
    * `reservations`: [{slot, profile, name, ageMs, leftMs}]: slots that are kept, for a profile or for nobody;
    * `pendings`: [{id, instanceId, profile, slot, name, target, status, ageMs}]: registrations under way;
    * `cleanUps`: [{instanceId, generation, target, ageMs}]: threads that are to be deleted.
    """
    leader = fleet.leader
    return {
        "key": fleet.key,
        "source": fleet.source,
        "why": fleet.why or None,
        "path": fleet.path,
        "ageMs": fleet.age_ms,
        "foreign": fleet.foreign,
        "problem": fleet.problem or None,
        "leader": None
        if leader is None
        else {
            "pid": leader.pid,
            "instanceId": leader.instance_id,
            "epoch": None if leader.epoch == "" else leader.epoch,
            "slot": leader.slot,
            "name": leader.name,
            "target": _target(leader.target),
        },
        "followers": [
            {
                "instanceId": f.instance_id,
                "generation": f.generation,
                "pid": f.pid,
                "profile": f.profile,
                "slot": f.slot,
                "name": f.name,
                "target": _target(f.target),
                "heartbeatAgeMs": f.heartbeat_age_ms,
            }
            for f in fleet.followers
        ],
        "reservations": [
            {"slot": r.slot, "profile": r.profile, "name": r.name, "ageMs": r.age_ms, "leftMs": r.left_ms}
            for r in fleet.kept.reservations
        ],
        "pendings": [
            {
                "id": p.id,
                "instanceId": p.instance_id,
                "profile": p.profile,
                "slot": p.slot,
                "name": p.name,
                "target": _target(p.target),
                "status": p.status,
                "ageMs": p.age_ms,
            }
            for p in fleet.kept.pendings
        ],
        "cleanUps": [
            {
                "instanceId": c.instance_id,
                "generation": c.generation or None,
                "target": _target(c.target),
                "ageMs": c.age_ms,
            }
            for c in fleet.kept.clean_ups
        ],
    }


def _target(target: Target | None) -> Json | None:
    return None if target is None else {"chatId": target.chat_id, "threadId": target.thread_id}
