"""The leader between a donor and a recipient: which offers it passes on (bus.md e, LEADER RELAY).

The leader's part of `spec/QueueHandoff.tla`. It remembers nothing of a handoff: what it passes on may be lost, and a
leader that is new knows none of the registrations that an offer names. A `Refused` is a negative acknowledgement. A
leader that is the donor itself asks the same, and its own registration is current as long as it leads.

That a donor and its recipient are two is no question here: the row has refused anything else before (F16).
"""

from __future__ import annotations

from typing import ClassVar

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.laws import Law, guard


@attrs.frozen(cache_hash=True)
class Bounds:
    """`margin_ms`: how long before the donor's own patience ends the recipient must have answered."""

    margin_ms: int


@attrs.frozen(cache_hash=True)
class PassOn:
    """Somebody asks for an offer to be passed on. `donor_current`, `recipient_current`: each is registered, under the
    generation that the request names. `both_know`: all three of us have the capability queue-handoff-v1.
    `came_by_handoff`: the request says by which handoff the donor has the item. `recipient_carries`: the recipient has
    the capability queue-handoff-v2. `left_ms`: what is left of the donor's time."""

    event: ClassVar[str] = "pass_on"
    donor_current: bool
    recipient_current: bool
    both_know: bool
    came_by_handoff: bool
    recipient_carries: bool
    left_ms: int


@attrs.frozen
class Pass:
    """Send it to the recipient, and wait so long for its answer; what it answers is the answer."""

    budget_ms: int


Output = Pass
Effect = tuple[Bounds, tuple[Output, ...]]


class RelayChart(StateMachine):
    """A leader that passes offers on."""

    passing = State(initial=True)

    pass_on = passing.to(
        passing, cond=["donor_is_live", "recipient_is_live", "both_can", "second_move_known"], on="send_on"
    )

    @staticmethod
    @guard(Law.FENCE)
    def donor_is_live(data: Bounds, message: PassOn) -> bool:
        """Fence: an offer is made under a registration that is current. Without it one that has been replaced gives
        away what is its successor's by now (I31, M31a)."""
        return message.donor_current

    @staticmethod
    @guard(Law.FENCE)
    def recipient_is_live(data: Bounds, message: PassOn) -> bool:
        """Fence: an offer goes to the registration for which it was decided. Without it an item goes to who has another
        thread by now (I31, M31b, F11)."""
        return message.recipient_current

    @staticmethod
    @guard(Law.PROOF)
    def both_can(data: Bounds, message: PassOn) -> bool:
        """Proof: who knows handoffs says so. Without it an item is offered to who answers without having accepted
        (I31, M31c)."""
        return message.both_know

    @staticmethod
    @guard(Law.FENCE)
    def second_move_known(data: Bounds, message: PassOn) -> bool:
        """Fence: by which handoff its donor has an item is part of what the recipient compares. Without it an item that
        has come by a handoff is offered to who drops this, and is declined every time (L6, F19)."""
        return message.recipient_carries or not message.came_by_handoff

    @staticmethod
    def send_on(data: Bounds, message: PassOn) -> Effect:
        # L11: what waits inside waits less long than what waits outside, whatever that was.
        return data, (Pass(max(0, message.left_ms - data.margin_ms)),)


Happening = PassOn

RELAY: Table[Bounds, Happening, Output] = compile_chart(RelayChart)
