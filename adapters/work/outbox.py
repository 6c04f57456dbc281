"""What a forwarder needs of the journal: updates that are to be brought to somebody, and what becomes of an attempt."""

from __future__ import annotations

from typing import Final, Protocol

import attrs

from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.work.routing import Address
from tenure.machines.forwarding_messages import Failure, Send

OTHER: Final = "update"
"""The kind of what is forwarded to nobody: it is the leader's."""


@attrs.frozen
class Outgoing:
    """An update that is to be brought to somebody. `binding`: whom it is bound to, from the first attempt on;
    `failure`: why it waits, None where it does not; `due`: it does not, or its time has come; `aside`: those behind it
    go on without it."""

    update_id: int
    body: Json
    binding: str | None = None
    attempts: int = 0
    failure: Failure | None = None
    due: bool = True
    aside: bool = False


@attrs.frozen
class Outcome:
    """What an attempt has come to. `retry_ms`: after so long it is tried again, where it failed; None with `delivered`
    False: it is not ours to settle any more. `aside`: those behind it go on without it. `why`: in words, where it is
    not taken here, and is asked for again."""

    delivered: bool
    retry_ms: int | None = None
    aside: bool = False
    why: str = ""


class Outbox(Protocol):
    """What a forwarder needs of the journal: each call is one transaction under this leader's epoch. All raise
    TenureError where it could not be done, or nobody knows whether it was; each may be repeated."""

    async def resume(self, besides: frozenset[int]) -> None:
        """What was being sent, by whoever led before or in an attempt that was given up here, is to be sent again;
        besides those ids, which are on their way."""

    async def outgoing(self, after: int, limit: int, *, unserved: bool) -> tuple[Outgoing, ...]:
        """Updates with ids above `after` that are to be brought to somebody and are not on their way, in order; also
        those whose time has not come, and with `unserved` those that nobody is registered for."""

    async def due_in(self) -> int | None:
        """In how many ms the time comes of the next one whose time has not come; None: there is none."""

    async def remembered(self, address: Address) -> str | None:
        """Which binding had that thread, or wrote that message, last."""

    async def forward(self, update: Outgoing, kind: str, binding: str) -> Send | None:
        """It is about to be sent; None: it is not to be, now."""

    async def keep(self, update: Outgoing, kind: str, binding: str) -> Outcome:
        """It is delivered to a binding of this process, with what gives the right to execute it."""

    async def unserved(self, update: Outgoing) -> None:
        """Nobody is registered for it."""

    async def acknowledged(self, update: Outgoing, ok: bool, delivery: str | None, source: int | None) -> Outcome:
        """The answer came, with the receipt that it has, if any."""

    async def failed(self, update: Outgoing, why: Failure) -> Outcome:
        """No answer came, or it was not even sent."""
