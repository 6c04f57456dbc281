"""What is said of a fleet besides its live routes: slots that are kept, threads that are being made or taken away.

For the leader's answer to ``tenure.status``, from its own board; for a reader of the projection, from the file, also
one of the other system, which is read for what it has: nothing here is decided by it. Ages are in ms, never below 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

import attrs

from tenure.adapters.bus.messages.envelopes_shared import Target as BusTarget
from tenure.adapters.bus.messages.fleet_view import (
    CleanUpView,
    FleetView,
    FollowerView,
    LeaderView,
    PendingView,
    ReservationView,
)
from tenure.adapters.fleet.threads.values import Snapshot
from tenure.machines.entry import integer, text
from tenure.machines.slot_board import Target
from tenure.machines.thread_names import slot_of

V = TypeVar("V")

_AFTER_Z: Final = "["
"""Who has no slot comes last."""


@attrs.frozen
class ListedFollower:
    """A registered follower. `heartbeat_age_ms` None: only its leader knows."""

    instance_id: str
    generation: str | None = None
    heartbeat_age_ms: int | None = None
    pid: int | None = None
    profile: str | None = None
    slot: str | None = None
    name: str | None = None
    target: BusTarget | None = None


@attrs.frozen
class Kept:
    """What a leader keeps besides its live routes."""

    reservations: tuple[ReservationView, ...] = ()
    pendings: tuple[PendingView, ...] = ()
    clean_ups: tuple[CleanUpView, ...] = ()


def bus_target(target: Target | None) -> BusTarget | None:
    """A thread as the bus names it."""
    return None if target is None else BusTarget(target.chat_id, target.thread_id)


def followers(views: tuple[FollowerView, ...]) -> tuple[ListedFollower, ...]:
    """The followers that a leader told of."""
    return tuple(ListedFollower(**attrs.asdict(view, recurse=False)) for view in views)


# -- ours -----------------------------------------------------------------------


def kept(snapshot: Snapshot, now_ms: int) -> Kept:
    """What is kept, at this wall-clock time. A slot of a profile that is not registered now is kept for it."""
    board = snapshot.board
    live = {route.key for route in snapshot.live} | {p.wish.key for p in board.pendings}
    absent = [r for r in board.records if r.kind == "manual-follower" and r.key not in live and r.slot is not None]
    vacant = [r for r in board.reservations if r.lasts(now_ms)]
    reservations = [
        ReservationView(
            slot=r.slot,
            name=r.reason,
            age_ms=_age(r.created_ms, now_ms),
            left_ms=None if r.expires_ms is None else r.expires_ms - now_ms,
        )
        for r in vacant
    ]
    reservations += [
        ReservationView(slot=r.slot, profile=r.key, name=r.name, age_ms=_age(r.updated_ms, now_ms))
        for r in absent
        if r.slot is not None
    ]
    return Kept(
        tuple(sorted(reservations, key=lambda view: view.slot)),
        tuple(
            PendingView(
                id=p.id,
                instance_id=p.wish.instance,
                status="in-flight",
                age_ms=_age(p.started_ms, now_ms),
                profile=p.wish.key,
                slot=p.slot,
                name=p.name,
                target=bus_target(p.target),
            )
            for p in board.pendings
        ),
        tuple(
            CleanUpView(
                instance_id=c.instance,
                generation=c.generation or "",
                age_ms=_age(c.requested_ms, now_ms),
                target=bus_target(c.target),
            )
            for c in snapshot.clean_ups
        ),
    )


def whole_view(leader: LeaderView, live: Iterable[FollowerView], snapshot: Snapshot, now_ms: int) -> FleetView:
    """A leader's answer to ``tenure.status``: itself, its live routes, and what `snapshot` keeps at this time."""
    found = kept(snapshot, now_ms)
    in_order = sorted(live, key=lambda view: (view.slot or _AFTER_Z, view.instance_id))
    return FleetView(
        leader=leader,
        followers=tuple(in_order),
        reservations=found.reservations,
        pendings=found.pendings,
        clean_ups=found.clean_ups,
    )


def published(snapshot: Snapshot) -> tuple[ListedFollower, ...]:
    """The followers that a projection of ours names, by slot, those without one last."""
    found = [
        ListedFollower(
            instance_id=route.instance,
            generation=route.generation,
            pid=route.pid,
            profile=route.key,
            slot=route.slot,
            name=route.name,
            target=bus_target(route.target),
        )
        for route in snapshot.live
    ]
    return _in_order(found)


# -- the other system's -----------------------------------------------------------


def foreign_kept(value: Mapping[str, object], now_ms: int) -> Kept:
    """What a file of the other system keeps; what is odd there is passed over."""
    return Kept(
        _each(value, "reservations", lambda member: _foreign_reservation(member, now_ms)),
        _each(value, "pendingProvisions", lambda member: _foreign_pending(member, now_ms)),
        _each(value, "pendingCleanups", lambda member: _foreign_clean_up(member, now_ms)),
    )


def foreign_followers(value: Mapping[str, object]) -> tuple[ListedFollower, ...]:
    """The followers that a file of the other system names: its roster where it has one, else its threads."""
    roster = value.get("liveRoster")
    if isinstance(roster, Mapping) and isinstance(roster.get("busFollowers"), list):
        return _in_order(_each(roster, "busFollowers", _foreign_follower))
    return _in_order(_each(value, "threads", _foreign_thread))


def _foreign_follower(member: Mapping[str, object]) -> ListedFollower | None:
    instance = text(member.get("instanceId"))
    if not instance:
        return None
    return ListedFollower(
        instance_id=instance,
        generation=text(member.get("registrationGeneration")),
        pid=integer(member.get("pid")),
        profile=text(member.get("profileKey")),
        slot=slot_of(member.get("slot")),
        name=text(member.get("threadName")),
        target=_foreign_target(member),
    )


def _foreign_thread(member: Mapping[str, object]) -> ListedFollower | None:
    owner = member.get("owner")
    follows = isinstance(owner, Mapping) and owner.get("kind") == "manual-follower"
    return _foreign_follower(member) if follows and member.get("status") in ("active", "starting") else None


def _foreign_reservation(member: Mapping[str, object], now_ms: int) -> ReservationView | None:
    slot, until = slot_of(member.get("slot")), integer(member.get("expiresAtMs"))
    if slot is None or (until is not None and until <= now_ms):
        return None
    return ReservationView(
        slot=slot,
        name=text(member.get("reason")),
        age_ms=_age_or_none(member.get("createdAtMs"), now_ms),
        left_ms=None if until is None else until - now_ms,
    )


def _foreign_pending(member: Mapping[str, object], now_ms: int) -> PendingView | None:
    name, instance = text(member.get("id")), text(member.get("instanceId"))
    if not name or not instance:
        return None
    return PendingView(
        id=name,
        instance_id=instance,
        status="ambiguous" if member.get("status") == "ambiguous" else "in-flight",
        age_ms=_age_or_none(member.get("startedAtMs"), now_ms) or 0,
        profile=text(member.get("profileKey")),
        slot=slot_of(member.get("slot")),
        name=text(member.get("threadName")),
        target=_foreign_target(member),
    )


def _foreign_clean_up(member: Mapping[str, object], now_ms: int) -> CleanUpView | None:
    instance = text(member.get("instanceId"))
    if not instance:
        return None
    generation = member.get("runtimeGeneration")
    return CleanUpView(
        instance_id=instance,
        generation=str(generation) if isinstance(generation, int | str) else "",
        age_ms=_age_or_none(member.get("requestedAtMs"), now_ms) or 0,
        target=_foreign_target(member),
    )


def _foreign_target(member: Mapping[str, object]) -> BusTarget | None:
    target = member.get("target")
    if not isinstance(target, Mapping):
        return None
    chat = integer(target.get("chatId"))
    return None if chat is None else BusTarget(chat, integer(target.get("threadId")))


def _each(value: Mapping[str, object], name: str, read: Callable[[Mapping[str, object]], V | None]) -> tuple[V, ...]:
    members = value.get(name)
    found = [read(member) for member in members if isinstance(member, Mapping)] if isinstance(members, list) else []
    return tuple(view for view in found if view is not None)


def _in_order(found: list[ListedFollower] | tuple[ListedFollower, ...]) -> tuple[ListedFollower, ...]:
    return tuple(sorted(found, key=lambda follower: (follower.slot or _AFTER_Z, follower.instance_id)))


def _age(since_ms: int, now_ms: int) -> int:
    return max(0, now_ms - since_ms)


def _age_or_none(value: object, now_ms: int) -> int | None:
    since = integer(value)
    return None if since is None else _age(since, now_ms)
