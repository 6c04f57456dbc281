"""The controller of one poll loop: asked for, running, told to end (locks.md 10, S37, hole K5).

It owns the loop's life and nothing else; `tenure.machines.polling_ownership` says when there should be one. A loop
that was told to end may need a while (it writes its journal first): it *drains*, counted in `Loops.live`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.laws import Law, guard, permit


@attrs.frozen(cache_hash=True)
class Loops:
    """How many loops were begun and have not ended; more than one is what S37 forbids."""

    live: int = 0


@attrs.frozen
class Start:
    """A loop is wanted."""

    event: ClassVar[str] = "start"


@attrs.frozen
class Begin:
    """Everything the loop needs is there. `owned` is read *inside* the ownership transaction that begins the loop
    (`commit_if_owned`): the lease is this runtime's, and has not passed by its own clock."""

    event: ClassVar[str] = "begin"
    owned: bool


@attrs.frozen
class Stop:
    """No loop is wanted; one that runs is to end."""

    event: ClassVar[str] = "stop"


@attrs.frozen
class Ended:
    """A loop has ended: because it was told to, or by itself."""

    event: ClassVar[str] = "ended"


Happening = Start | Begin | Stop | Ended
Order = Literal["run", "abort"]
"""What the adapter does: run a new loop, or tell the running one to end."""


class PollerChart(StateMachine):
    """off (perhaps draining), pending (wanted, not yet begun), running."""

    off = State(initial=True)
    pending = State()
    running = State()

    start = off.to(pending, cond=["previous_loop_ended"]) | off.to(pending, cond=["start_waits_for_drain"])
    begin = pending.to(running, cond=["previous_loop_ended", "owned_at_start"], on="run")
    stop = running.to(off, on="abort") | pending.to(off)
    ended = off.to(off, on="forget") | pending.to(pending, on="forget") | running.to(off, on="forget")

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def previous_loop_ended(data: Loops, message: Start | Begin) -> bool:
        """Late is nothing: a loop begins after its predecessor ended. Without it two ask for the same updates (S37)."""
        return data.live == 0

    @staticmethod
    @permit(Law.LATE_IS_NOTHING)
    def start_waits_for_drain(data: Loops, message: Start) -> bool:
        """Late is nothing: a loop that still drains does not swallow the wish for a new one. Without it the owner
        keeps a lease under which nobody polls (K5)."""
        return data.live > 0

    @staticmethod
    @guard(Law.FENCE)
    def owned_at_start(data: Loops, message: Begin) -> bool:
        """Fence: a loop begins inside the transaction that finds the lease still ours. Without it one that was
        displaced during a slow start polls beside the new owner (S25)."""
        return message.owned

    @staticmethod
    def run(data: Loops, message: Begin) -> tuple[Loops, tuple[Order, ...]]:
        return Loops(data.live + 1), ("run",)

    @staticmethod
    def abort(data: Loops, message: Stop) -> tuple[Loops, tuple[Order, ...]]:
        return data, ("abort",)

    @staticmethod
    def forget(data: Loops, message: Ended) -> tuple[Loops, tuple[Order, ...]]:
        return Loops(data.live - 1), ()


POLLER: Table[Loops, Happening, Order] = compile_chart(PollerChart)
