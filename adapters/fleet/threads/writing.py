"""A snapshot of the fleet as JSON: `state.json`, version 1 (bus.md f, FILES, THREAD RECORD, PENDING).

The other system's followers take what they know of it and pass over the rest. Ours is the member `tenure`, the mark of
our own files, and in records what proves deaths and tells registrations apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tenure.adapters.fleet.threads.values import FORMAT, STATUS, CleanUp, LiveRoute, Mark, Snapshot
from tenure.machines.identity import Process
from tenure.machines.slot_board import OwnerKind, Pending, Record, Reservation, Target


def render(snapshot: Snapshot, mark: Mark, now_ms: int) -> dict[str, object]:
    """The file's JSON value."""
    board = snapshot.board
    bot = {"threadMode": "enabled", "lastSlot": board.last_slot, "updatedAtMs": now_ms}
    return {
        "version": 1,
        "source": "snapshot",
        "writtenAtMs": now_ms,
        "bot": _present(bot),
        "liveRoster": {"busFollowers": [_live(route) for route in snapshot.live]},
        "identities": [
            _present({"profileKey": i.key, "threadName": i.name, "slot": i.slot, "updatedAtMs": i.updated_ms})
            for i in board.identities
        ],
        "reservations": [_reservation(r) for r in board.reservations],
        "pendingProvisions": [_pending(p) for p in board.pendings],
        "pendingCleanups": [_clean_up(c) for c in snapshot.clean_ups],
        "syncObservations": [],
        "threads": [_record(r) for r in board.records],
        "tenure": {
            "format": FORMAT,
            "epoch": mark.epoch,
            "instanceId": mark.instance,
            "nextThread": board.next_thread,
        },
    }


def encode(value: Mapping[str, object]) -> bytes:
    """The file's bytes, as the other system lays them out."""
    return f"{json.dumps(value, indent=2, allow_nan=False)}\n".encode()


def same(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    """Whether two files say the same: when they were written is not what they say."""
    return _timeless(left) == _timeless(right)


def _timeless(value: Mapping[str, object]) -> dict[str, object]:
    kept = {name: member for name, member in value.items() if name != "writtenAtMs"}
    bot = kept.get("bot")
    if isinstance(bot, Mapping):
        kept["bot"] = {name: member for name, member in bot.items() if name != "updatedAtMs"}
    return kept


def owner_of(key: str, kind: OwnerKind) -> dict[str, object]:
    """The other system's name for whose thread it is, from a profile key (bus.md 0, ids)."""
    scope: dict[str, object] = {}
    rest = key
    if key.startswith("profile:") and len(parts := key.split(":", 2)) == 3:
        scope, rest = {"telegramProfile": parts[1]}, parts[2]
    form, _, value = rest.partition(":")
    match form:
        case "manual" if value:
            return {"kind": "manual-follower", "instanceId": value, **scope}
        case "cwd" if value:
            return {"kind": "leader", "cwd": value, **scope}
        case "leader" if value:
            return {"kind": "leader", "instanceId": value, **scope}
    return {"kind": kind, "instanceId": key} if kind == "manual-follower" else {"kind": "legacy", "key": key}


def _present(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _target(target: Target | None) -> dict[str, int] | None:
    return None if target is None else {"chatId": target.chat_id, "threadId": target.thread_id}


def _process(process: Process | None) -> dict[str, object] | None:
    if process is None:
        return None
    birth = process.birth
    return {"pid": process.pid, "ticks": birth.ticks, "bootId": birth.boot_id, "pidNamespace": birth.namespace}


def _record(record: Record) -> dict[str, object]:
    return _present(
        {
            "owner": owner_of(record.key, record.kind),
            "profileKey": record.key,
            "ownerKind": record.kind,
            "target": _target(record.target),
            "status": STATUS[record.probe],
            "createdAtMs": record.created_ms,
            "updatedAtMs": record.updated_ms,
            "threadName": record.name,
            "instanceId": record.instance,
            "slot": record.slot,
            "syncStatus": "open",
            "registrationGeneration": record.generation,
            "process": _process(record.process),
        }
    )


def _reservation(kept: Reservation) -> dict[str, object]:
    return _present(
        {
            "target": _target(kept.target),
            "slot": kept.slot,
            "reason": kept.reason,
            "createdAtMs": kept.created_ms,
            "updatedAtMs": kept.created_ms,
            "expiresAtMs": kept.expires_ms,
        }
    )


def _pending(pending: Pending) -> dict[str, object]:
    wish = pending.wish
    return _present(
        {
            "id": pending.id,
            "owner": wish.kind,
            "instanceId": wish.instance,
            "profileKey": wish.key,
            "status": "in-flight",
            "threadName": pending.name,
            "slot": pending.slot,
            "target": _target(pending.target),
            "startedAtMs": pending.started_ms,
            "leaderEpoch": pending.epoch,
            "registrationGeneration": wish.generation,
        }
    )


def _clean_up(intent: CleanUp) -> dict[str, object]:
    target = intent.target
    return _present(
        {
            "id": f"cleanup:{intent.instance}:{intent.generation or ''}:{target.chat_id}:{target.thread_id}",
            "owner": intent.kind,
            "instanceId": intent.instance,
            "runtimeGeneration": intent.generation,
            "profileKey": intent.key,
            "target": _target(target),
            "requestedAtMs": intent.requested_ms,
        }
    )


def _live(route: LiveRoute) -> dict[str, object]:
    return _present(
        {
            "instanceId": route.instance,
            "profileKey": route.key,
            "registrationGeneration": route.generation,
            "connectedAtMs": route.connected_ms,
            "pid": route.pid,
            "slot": route.slot,
            "threadName": route.name,
            "target": _target(route.target),
        }
    )
