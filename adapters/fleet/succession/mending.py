"""Which failures stay until a person does something, and which pass."""

from __future__ import annotations

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard_errors import GuardBusy, GuardDamaged, GuardLost
from tenure.adapters.files.lease_values import NotOwner
from tenure.adapters.fleet.leader.book import Deposed
from tenure.adapters.fleet.threads.projection import Superseded

_PASSING = (NotOwner, Deposed, Superseded, GuardLost, GuardBusy)


def needs_a_person(cause: Exception | None) -> bool:
    """Whether the cause of a failed start is something like a damaged file, a missing permission, a full disk: not a
    guard that somebody is in, nor a lease that was lost, nor a fault of the work."""
    if isinstance(cause, GuardDamaged):
        return True
    return isinstance(cause, TenureError) and not isinstance(cause, _PASSING)
