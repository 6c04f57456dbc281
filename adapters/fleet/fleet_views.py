"""What a leader says of its fleet, from its routes and its board."""

from __future__ import annotations

from tenure.adapters.bus.envelopes_shared import Target as WireTarget
from tenure.adapters.bus.fleet_view import (
    CleanUpView,
    FleetView,
    FollowerView,
    LeaderView,
    PendingView,
    ReservationView,
)
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.fleet.places import wire_target
from tenure.adapters.fleet.routing import Boarded, Routing
from tenure.adapters.ports import Clock
from tenure.machines.follower_messages import Binding
from tenure.machines.slot_board import Board, Target


def fleet_view(identity: InstanceIdentity, epoch: int, own: Binding, routing: Routing, clock: Clock) -> FleetView:
    """Everything, as it is now. Ages of routes are by the monotonic clock, those of the board by the wall clock that
    it is kept by, and never negative."""
    board = routing.provisioning.board if isinstance(routing.provisioning, Boarded) else Board()
    wall, now = clock.wall_ms(), routing.now()
    leader = LeaderView(
        pid=identity.pid,
        instance_id=identity.instance_id,
        epoch=epoch,
        slot=own.slot,
        name=own.name,
        target=wire_target(own.target),
    )
    return FleetView(
        leader=leader,
        followers=_followers(routing, now),
        reservations=tuple(
            ReservationView(
                slot=kept.slot,
                age_ms=max(0, wall - kept.created_ms),
                left_ms=None if kept.expires_ms is None else max(0, kept.expires_ms - wall),
            )
            for kept in board.reservations
            if kept.lasts(wall)
        ),
        pendings=tuple(
            PendingView(
                id=pending.id,
                instance_id=pending.wish.instance,
                status="in-flight",
                age_ms=max(0, wall - pending.started_ms),
                profile=pending.wish.key,
                slot=pending.slot,
                name=pending.name,
                target=_wire(pending.target),
            )
            for pending in board.pendings
        ),
        clean_ups=tuple(
            CleanUpView(
                instance_id=intent.instance,
                generation=str(intent.generation),
                age_ms=max(0, wall - routing.requested_ms(intent)),
                target=wire_target(intent.target),
            )
            for intent in routing.data.intents
        ),
    )


def _followers(routing: Routing, now: int) -> tuple[FollowerView, ...]:
    found = []
    for entry in routing.data.entries:
        live = routing.live.get(entry.instance)
        found.append(
            FollowerView(
                instance_id=entry.instance,
                generation=str(entry.generation),
                heartbeat_age_ms=max(0, now - entry.heard),
                pid=None if live is None else live.registration.pid,
                profile=entry.key,
                slot=entry.binding.slot,
                name=entry.binding.name,
                target=wire_target(entry.binding.target),
            )
        )
    return tuple(sorted(found, key=lambda f: (f.slot is None, f.slot or "", f.instance_id)))


def _wire(target: Target | None) -> WireTarget | None:
    return None if target is None else WireTarget(target.chat_id, target.thread_id)
