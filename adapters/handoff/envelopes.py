"""The two envelopes of an offer, made of each other: that of a follower to its leader, and that of a leader to who is
offered something (bus.md a, e). All but who speaks, and under which registration, is the same in both.
"""

from __future__ import annotations

from typing import Final

import attrs

from tenure.adapters.bus.messages.envelopes_handoff import FollowerOfferQueueHandoff, LeaderOfferQueueHandoff

_OWN: Final = frozenset({"instance_id", "registration_generation"})
"""What only a follower says."""
_SHARED: Final = tuple(field.name for field in attrs.fields(FollowerOfferQueueHandoff) if field.name not in _OWN)


def from_follower(offer: LeaderOfferQueueHandoff, generation: str) -> FollowerOfferQueueHandoff:
    """What a donor that follows says to its leader, under its registration `generation`."""
    shared = {name: getattr(offer, name) for name in _SHARED}
    return FollowerOfferQueueHandoff(instance_id=offer.donor_instance_id, registration_generation=generation, **shared)


def from_leader(offer: FollowerOfferQueueHandoff) -> LeaderOfferQueueHandoff:
    """What the leader between says to the recipient."""
    shared = {name: getattr(offer, name) for name in _SHARED}
    return LeaderOfferQueueHandoff(donor_instance_id=offer.instance_id, **shared)
