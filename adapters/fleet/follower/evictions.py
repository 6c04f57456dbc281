"""What a leader of the other system does not say: that another process of the same shell took our registration.

It keeps one registration for a profile key and drops the older one without a word; two living processes of one shell
would drop each other's for as long as both live (L24). A registration that a leader refuses to know before it could
have been silent for too long was dropped like that. Once may be chance (a registry that was begun anew); twice in a row
it is read as what a leader of ours says at once: the profile is held by another live process.
"""

from __future__ import annotations

from typing import Final

IN_A_ROW: Final = 2


class Evictions:
    """The registrations that one follower lost in this way. Times are those of one monotonic clock, in ms."""

    def __init__(self, silent_ms: int) -> None:
        """`silent_ms`: a registration that is younger than that was not dropped for silence."""
        self._silent_ms = silent_ms
        self._lead: str | None = None
        self._since_ms = 0
        self._count = 0

    def registered(self, lead: str, now_ms: int) -> None:
        """The leader `lead`, one of the other system, has acknowledged a registration."""
        if lead != self._lead:
            self._lead, self._count = lead, 0
        self._since_ms = now_ms

    def refused(self, lead: str, now_ms: int) -> None:
        """It says that it does not know that registration."""
        if lead == self._lead:
            young = now_ms - self._since_ms < self._silent_ms
            self._count = self._count + 1 if young else 0

    def held_by_another(self, lead: str) -> bool:
        """Whether the profile is another live process's there."""
        return lead == self._lead and self._count >= IN_A_ROW
