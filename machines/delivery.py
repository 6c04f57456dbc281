"""One delivery at the instance that owns it: journaled once, executed once, and known as long as it may come again.

With `tenure.machines.forwarding` the machine of `spec/DurableAdmission.tla` (bus.md c, FOLLOWER ADMIT). Its row is in
the same journal as the leader's, so that one transaction sees both: an instance that is told a delivery of long ago
looks whether its update is still bound here. The receipt is said after that transaction was committed, never before.

What has been settled stays as a *tombstone*: a replay is told the same receipt, and nothing is executed (I15, L9). It
may be trimmed when nobody forwards it any more. Execution itself goes through a receipt, which is another machine; its
end is told here in the transaction that ends it.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs
from statemachine import State, StateMachine

from tenure.machines.admission_identity import delivery_id
from tenure.machines.chart import Table, compile_chart
from tenure.machines.laws import Law, guard

Row = Literal["live", "over", "none"]
"""What the journal knows of an update. live: a leader still has to deliver it. over: it needs no instance any more.
none: it has no row."""


@attrs.frozen(cache_hash=True)
class Delivery:
    """The row of a delivery besides its phase. `binding`: whom the instance serves that admits it. `body`: the update
    as it was admitted, its position in a batch left out (I16), as one string that is equal where that is; "" where
    there is none yet."""

    binding: str
    body: str = ""


@attrs.frozen
class Admit:
    """A leader has sent it: `delivery` is the id that it says, `kind`, `binding` and `update` what that is said to be
    made of. The rest is read in the transaction. `row`: what the journal knows of the update, `bound`: whom it is bound
    to there. Without a row it came from a leader without this journal, or, where the offset has `passed` it, its row
    was forgotten. `room`: another delivery finds a place."""

    event: ClassVar[str] = "admit"
    delivery: str
    kind: str
    binding: str
    update: int
    body: str
    row: Row
    bound: str | None
    passed: bool
    room: bool


@attrs.frozen
class Settle:
    """Its receipt is settled: it was executed."""

    event: ClassVar[str] = "settle"


@attrs.frozen
class Discard:
    """Its receipt is discarded by a person."""

    event: ClassVar[str] = "discard"


@attrs.frozen
class Forget:
    """The tombstone is to be trimmed, by number or age. `wanted`: a leader still has to deliver the update."""

    event: ClassVar[str] = "forget"
    wanted: bool


Happening = Admit | Settle | Discard | Forget


@attrs.frozen
class Insert:
    """Insert the delivery, and what gives the right to execute it, in this transaction."""

    delivery: str
    update: int


@attrs.frozen
class Receive:
    """After the transaction was committed: answer with this receipt."""

    delivery: str
    update: int


Output = Insert | Receive
Taken = tuple[Delivery, tuple[Output, ...]]


class DeliveryChart(StateMachine):
    """One delivery in the journal; absent is what the journal does not know."""

    absent = State(initial=True)
    journaled = State()
    settled = State()
    discarded = State()

    admit = (
        absent.to(journaled, cond=["genuine_id", "own_binding", "wanted_here", "has_room"], on="journal")
        | journaled.to(journaled, cond=["own_binding", "same_body"], on="say_again")
        | settled.to(settled, cond=["own_binding", "same_body"], on="say_again")
        | discarded.to(discarded, cond=["own_binding", "same_body"], on="say_again")
    )
    settle = journaled.to(settled)
    discard = journaled.to(discarded)
    forget = settled.to(absent, cond=["replays_end"], on="trim") | discarded.to(absent, cond=["replays_end"], on="trim")

    # -- guards ---------------------------------------------------------------

    @staticmethod
    @guard(Law.FENCE)
    def genuine_id(data: Delivery, message: Admit) -> bool:
        """Fence: a delivery is what its id is made of, and nothing else is in it (I14). Without it a leader that puts
        the generation into the id has the update executed again after every registration."""
        return message.delivery == delivery_id(message.kind, message.binding, message.update)

    @staticmethod
    @guard(Law.FENCE)
    def own_binding(data: Delivery, message: Admit) -> bool:
        """Fence: an instance journals what is for its own binding (I17). Without it what went astray is executed by the
        wrong instance."""
        return message.binding == data.binding

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def wanted_here(data: Delivery, message: Admit) -> bool:
        """Late is nothing: an update that is bound elsewhere by now, was discarded, or is over with its tombstone
        trimmed is not executed because an old forward arrives. Without it two bindings execute it, or one twice."""
        if message.row == "none":
            return not message.passed
        return message.row == "live" and message.bound == message.binding

    @staticmethod
    @guard(Law.REFUSAL_IS_INERT)
    def has_room(data: Delivery, message: Admit) -> bool:
        """Refusal is inert: what finds no place is refused before anything is changed (I23). Without it the journal
        grows without bound."""
        return message.room

    @staticmethod
    @guard(Law.FENCE)
    def same_body(data: Delivery, message: Admit) -> bool:
        """Fence: a receipt is for what was journaled. Without it a leader is told that an update is safe which nobody
        has."""
        return message.body == data.body

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def replays_end(data: Delivery, message: Forget) -> bool:
        """Late is nothing: a tombstone stands as long as its update may be forwarded. Without it a replay after the end
        is executed again (L9)."""
        return not message.wanted

    # -- effects --------------------------------------------------------------

    @staticmethod
    def journal(data: Delivery, message: Admit) -> Taken:
        done = Insert(message.delivery, message.update), Receive(message.delivery, message.update)
        return attrs.evolve(data, body=message.body), done

    @staticmethod
    def say_again(data: Delivery, message: Admit) -> Taken:
        return data, (Receive(message.delivery, message.update),)

    @staticmethod
    def trim(data: Delivery, message: Forget) -> Taken:
        return Delivery(data.binding), ()


DELIVERY: Table[Delivery, Happening, Output] = compile_chart(DeliveryChart)
