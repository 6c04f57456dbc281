"""What a member counts: read off the steps of its succession machine."""

from __future__ import annotations

import attrs

from tenure.adapters.fleet.roles import MemberStatistics
from tenure.machines import succession_messages as own


@attrs.define
class Counts:
    """Counters of one member."""

    registrations: int = 0
    refused_registrations: int = 0
    abandoned_registrations: int = 0
    losses: int = 0
    deferrals: int = 0
    elections: int = 0
    promotions: int = 0
    defeats: int = 0
    failed_promotions: int = 0
    depositions: int = 0
    callback_errors: int = 0

    def note(self, before: str, message: own.Happening, after: str) -> None:
        """A step was taken."""
        match message:
            case own.Registered():
                self.registrations += 1
            case own.RegisterFailed():
                self.refused_registrations += 1
            case own.Saw() if before == "registering":
                self.abandoned_registrations += 1
            case own.Denied():
                self.defeats += 1
            case own.ElectFailed():
                self.failed_promotions += 1
            case own.Started():
                self.promotions += 1
            case own.Deposed():
                self.depositions += 1
        if before == "following" and after not in ("following", "ended"):
            self.losses += 1
        if before != after == "deferring":
            self.deferrals += 1
        if before != after == "electing":
            self.elections += 1

    def statistics(self, phase: str, available: bool, looks: int) -> MemberStatistics:
        """As values."""
        return MemberStatistics(phase=phase, available=available, looks=looks, **attrs.asdict(self))
