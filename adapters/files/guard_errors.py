"""How a passage through a guard fails."""

from __future__ import annotations

from tenure.adapters.errors import TenureError
from tenure.adapters.files.standing import Standing


class GuardBusy(TenureError):
    """The attempts are used up. `standing` is what stood there at the end."""

    def __init__(self, message: str, standing: Standing) -> None:
        super().__init__(message)
        self.standing = standing


class GuardDamaged(GuardBusy):
    """... and nobody can tell who is inside: fail closed (S9)."""


class GuardLost(TenureError):
    """What stands at the path is not what was published here (X1), or cannot be moved away: the operation has run,
    and whether alone, nobody knows."""


class GuardFailed(TenureError):
    """The guard could not be made: no space, no permission, no directory. Nothing has run."""
