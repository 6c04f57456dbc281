"""What a guarded file promises to one participant: out, waiting, inside (locks.md 14.1, the level above the files).

The machine of `spec/Transaction.tla`. `tenure.machines.file_transaction` is how it is done with renames.
"""

from __future__ import annotations

from typing import ClassVar, Final

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.laws import Law, guard

NOBODY: Final = "nobody"
"""`holder` when the file is free."""
ABANDONED: Final = "abandoned"
"""`holder` when the one inside died there."""
DAMAGED: Final = "damaged"
"""`holder` when what stands at the guard's path cannot be verified."""


@attrs.frozen
class Member:
    """Who this participant is."""

    me: str


@attrs.frozen
class Want:
    """The participant asks to enter."""

    event: ClassVar[str] = "want"


@attrs.frozen
class Enter:
    """The participant tries to enter while `holder` is what stands there."""

    event: ClassVar[str] = "enter"
    holder: str


@attrs.frozen
class Withdraw:
    """The participant gives up before it was inside."""

    event: ClassVar[str] = "withdraw"


@attrs.frozen
class Leave:
    """The participant leaves."""

    event: ClassVar[str] = "leave"


@attrs.frozen
class Die:
    """The participant's process ends, wherever it was."""

    event: ClassVar[str] = "die"


Happening = Want | Enter | Withdraw | Leave | Die


class TransactionChart(StateMachine):
    """One participant of a guarded file."""

    out = State(initial=True)
    waiting = State()
    inside = State()

    want = out.to(waiting)
    enter = waiting.to(inside, cond=["nobody_inside"])
    withdraw = waiting.to(out)
    leave = inside.to(out)
    die = waiting.to(out) | inside.to(out)

    @staticmethod
    @guard(Law.FENCE)
    def nobody_inside(data: Member, message: Enter) -> bool:
        """Fence: enter only when nobody holds the file. Without it two are inside at once."""
        return message.holder == NOBODY


TRANSACTION: Table[Member, Happening, str] = compile_chart(TransactionChart)
