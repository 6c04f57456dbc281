"""What came of what a follower asked its leader for."""

from __future__ import annotations

from typing import Literal

import attrs

from tenure.machines.follower_messages import Binding, Generation

RefusalCode = Literal["held", "incompatible", "refused", "busy", "abandoned", "stopped"]
"""held: another live process has the profile. busy: a registration is under way here already (I12). abandoned: the
session changed, or the registration was given up meanwhile. stopped: this follower has stopped."""
AskCode = Literal["unregistered", "unreachable", "unanswered", "over"]
"""unregistered: refused here, nothing was sent. unreachable: nothing was sent. unanswered: it may have been done, or
not. over: the registration ended before the answer; it may have been done, or not."""


@attrs.frozen
class Accepted:
    """The leader has a route to this follower, and its first heartbeat was heard."""

    generation: Generation
    binding: Binding
    roster: tuple[str, ...] = ()
    """Slots that may stand for election, of this leader."""


@attrs.frozen
class RefusedBy:
    """There is no registration: who said no, the leader or this side, and why."""

    text: str
    code: RefusalCode


@attrs.frozen
class Unreachable:
    """There is no registration: no attempt had an answer. The leader may have taken us all the same; it will find that
    nobody is there."""

    text: str


@attrs.frozen
class AskFailed:
    """No acknowledgement of a request. `code` says whether it may have been done."""

    text: str
    code: AskCode

    @property
    def unknown(self) -> bool:
        """Nobody knows whether it had its effect: what is not idempotent must not be repeated (law Unknown)."""
        return self.code in ("unanswered", "over")


Registered = Accepted | RefusedBy | Unreachable
