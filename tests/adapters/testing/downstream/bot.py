"""A bot that counts, and must count alone: what somebody builds on tenure."""

from __future__ import annotations

from collections.abc import Callable

from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.runtime.leadership import Leadership
from tenure.adapters.runtime.outcomes import Elected


class Bot:
    """Counts under its lease; `save` stores the count with the epoch it was counted under."""

    def __init__(self, lease: LeaseRuntime, save: Callable[[int, int], None]) -> None:
        self.lead = Leadership(lease)
        self.save = save
        self.count = 0

    def start(self) -> bool:
        """Whether it leads now."""
        return isinstance(self.lead.acquire(), Elected)

    def tick(self) -> None:
        """Count one, inside the ownership transaction."""
        self.lead.pump()

        def add(epoch: int) -> None:
            self.count += 1
            self.save(epoch, self.count)

        self.lead.commit_if_owned(add)
