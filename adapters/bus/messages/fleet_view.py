"""What a leader says of its fleet: the answer to ``tenure.status``, an extension of ours to the wire protocol.

Ages and spans are in milliseconds by the leader's monotonic clock at the moment of the answer, so that nobody compares
two clocks. None is what the leader does not know.
"""

from __future__ import annotations

import attrs

from tenure.adapters.bus.messages.envelopes_shared import Target


@attrs.frozen(kw_only=True)
class LeaderView:
    """The leader that answers. `epoch`: of its lease; the other system's are texts."""

    pid: int
    instance_id: str
    epoch: int | str
    slot: str | None = None
    name: str | None = None
    target: Target | None = None


@attrs.frozen(kw_only=True)
class FollowerView:
    """A live route. `generation`: of the registration; `profile`: its profile key."""

    instance_id: str
    generation: str
    heartbeat_age_ms: int
    pid: int | None = None
    profile: str | None = None
    slot: str | None = None
    name: str | None = None
    target: Target | None = None


@attrs.frozen(kw_only=True)
class ReservationView:
    """A slot that is kept for a profile whose registration is over, for `left_ms` more (None: without an end)."""

    slot: str
    profile: str | None = None
    name: str | None = None
    age_ms: int | None = None
    left_ms: int | None = None


@attrs.frozen(kw_only=True)
class PendingView:
    """A place that is being provisioned. `status`: ``in-flight``, or ``ambiguous`` where the outcome is not known."""

    id: str
    instance_id: str
    status: str
    age_ms: int
    profile: str | None = None
    slot: str | None = None
    name: str | None = None
    target: Target | None = None


@attrs.frozen(kw_only=True)
class CleanUpView:
    """An intent to take a place away that has not been confirmed."""

    instance_id: str
    generation: str
    age_ms: int
    target: Target | None = None


@attrs.frozen(kw_only=True)
class FleetView:
    """A whole fleet. Followers are in the order of their slots, those without one last."""

    leader: LeaderView
    followers: tuple[FollowerView, ...] = ()
    reservations: tuple[ReservationView, ...] = ()
    pendings: tuple[PendingView, ...] = ()
    clean_ups: tuple[CleanUpView, ...] = ()
