"""The answer to ``tenure.status``, written as an object and read back.

Reading is strict about what there has to be, and knows nothing of what a later version may add.
"""

from __future__ import annotations

from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.fields import Fields
from tenure.adapters.bus.messages.fleet_view import (
    CleanUpView,
    FleetView,
    FollowerView,
    LeaderView,
    PendingView,
    ReservationView,
)
from tenure.adapters.bus.messages.parsing_shared import target_or_none
from tenure.adapters.bus.messages.rendering import Members, present, render_target


def render_fleet(view: FleetView) -> Members:
    """The object of a fleet."""
    leader = view.leader
    return {
        "leader": present(
            pid=leader.pid,
            instanceId=leader.instance_id,
            epoch=leader.epoch,
            slot=leader.slot,
            name=leader.name,
            target=render_target(leader.target),
        ),
        "followers": [
            present(
                instanceId=follower.instance_id,
                pid=follower.pid,
                profile=follower.profile,
                slot=follower.slot,
                name=follower.name,
                generation=follower.generation,
                heartbeatAgeMs=follower.heartbeat_age_ms,
                target=render_target(follower.target),
            )
            for follower in view.followers
        ],
        "reservations": [
            present(
                slot=reservation.slot,
                profile=reservation.profile,
                name=reservation.name,
                ageMs=reservation.age_ms,
                leftMs=reservation.left_ms,
            )
            for reservation in view.reservations
        ],
        "pendings": [
            present(
                id=pending.id,
                instanceId=pending.instance_id,
                status=pending.status,
                ageMs=pending.age_ms,
                profile=pending.profile,
                slot=pending.slot,
                name=pending.name,
                target=render_target(pending.target),
            )
            for pending in view.pendings
        ],
        "cleanUps": [
            present(
                instanceId=clean_up.instance_id,
                generation=clean_up.generation,
                ageMs=clean_up.age_ms,
                target=render_target(clean_up.target),
            )
            for clean_up in view.clean_ups
        ],
    }


def read_fleet(fields: Fields) -> FleetView:
    """The fleet that an object is. Raises Wrong."""
    leader = fields.object("leader")
    return FleetView(
        leader=LeaderView(
            pid=leader.integer("pid"),
            instance_id=leader.text("instanceId"),
            epoch=_epoch(leader),
            slot=leader.text_or_none("slot"),
            name=leader.text_or_none("name"),
            target=_target(leader),
        ),
        followers=tuple(
            FollowerView(
                instance_id=follower.text("instanceId"),
                pid=follower.integer_or_none("pid"),
                profile=follower.text_or_none("profile"),
                slot=follower.text_or_none("slot"),
                name=follower.text_or_none("name"),
                generation=follower.text("generation"),
                heartbeat_age_ms=follower.integer("heartbeatAgeMs"),
                target=_target(follower),
            )
            for follower in fields.objects("followers")
        ),
        reservations=tuple(
            ReservationView(
                slot=reservation.text("slot"),
                profile=reservation.text_or_none("profile"),
                name=reservation.text_or_none("name"),
                age_ms=reservation.integer_or_none("ageMs"),
                left_ms=reservation.integer_or_none("leftMs"),
            )
            for reservation in fields.objects("reservations")
        ),
        pendings=tuple(
            PendingView(
                id=pending.text("id"),
                instance_id=pending.text("instanceId"),
                status=pending.text("status"),
                age_ms=pending.integer("ageMs"),
                profile=pending.text_or_none("profile"),
                slot=pending.text_or_none("slot"),
                name=pending.text_or_none("name"),
                target=_target(pending),
            )
            for pending in fields.objects("pendings")
        ),
        clean_ups=tuple(
            CleanUpView(
                instance_id=clean_up.text("instanceId"),
                generation=clean_up.text("generation"),
                age_ms=clean_up.integer("ageMs"),
                target=_target(clean_up),
            )
            for clean_up in fields.objects("cleanUps")
        ),
    )


def _epoch(leader: Fields) -> int | str:
    epoch = leader.raw("epoch")
    return epoch if isinstance(epoch, str) else leader.integer("epoch")


def _target(fields: Fields) -> Target | None:
    return target_or_none(fields.raw("target"))
