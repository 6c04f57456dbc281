"""Where updates come from: the port of a poll loop (locks.md 10; DESIGN 10).

One token has one queue of updates, in the order of their ids. Who asks for what lies above a cursor makes the queue
forget what lies at or below it, so a poll loop asks only above what its journal has. There is no way to ask for the
last ones.
"""

from __future__ import annotations

from typing import Protocol

from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.errors import TenureError
from tenure.adapters.journal.identity import BotIdentity
from tenure.machines.poll_loop import GREATEST


class SourceFailed(TenureError):
    """The request came to nothing, or nobody knows what it came to: it is made again."""


class Conflict(SourceFailed):
    """Somebody else polls this queue now (409), and this request was ended for it."""


class Source(Protocol):
    """A queue of updates."""

    @property
    def bot(self) -> BotIdentity:
        """Whose updates these are."""

    async def get_updates(self, cursor: int, limit: int, timeout_s: int) -> tuple[Json, ...]:
        """At most `limit` updates with ids above `cursor`, the oldest first, as they were sent; none when none came
        within `timeout_s` seconds. With `tenure.machines.poll_loop.NONE` as the cursor: the oldest there are, and
        nothing is forgotten for it; so also for a cursor that lies more than ten above what was ever numbered (since
        the numbering began anew, at a lower id).

        Raises `Conflict` and `SourceFailed`. Cancelled, the request is ended before the cancellation goes on: nobody
        polls any more when it has.
        """


def update_id(update: Json) -> int | None:
    """The id of an update; None for what has none: Telegram's are positive (of 32 bits), and one above 2^53 - 1 is none
    that a JSON number holds exactly."""
    found = update.value.get("update_id") if isinstance(update.value, dict) else None
    whole = isinstance(found, int) and not isinstance(found, bool)
    return found if whole and isinstance(found, int) and 0 < found <= GREATEST else None
