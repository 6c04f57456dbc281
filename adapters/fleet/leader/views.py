"""What a leader says of its fleet, from its routes and its board."""

from __future__ import annotations

from tenure.adapters.bus.messages.fleet_view import FleetView, FollowerView, LeaderView
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.fleet.leader.routing import Routing
from tenure.adapters.fleet.places import wire_target
from tenure.adapters.fleet.threads.views import whole_view
from tenure.adapters.ports import Clock
from tenure.machines.follower_messages import Binding


def fleet_view(identity: InstanceIdentity, epoch: int, own: Binding, routing: Routing, clock: Clock) -> FleetView:
    """Everything, as it is now. Ages of routes are by the monotonic clock, those of the board by the wall clock that
    it is kept by, and never negative."""
    leader = LeaderView(
        pid=identity.pid,
        instance_id=identity.instance_id,
        epoch=epoch,
        slot=own.slot,
        name=own.name,
        target=wire_target(own.target),
    )
    return whole_view(leader, _followers(routing, routing.now()), routing.snapshot(), clock.wall_ms())


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
    return tuple(found)
