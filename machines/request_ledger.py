"""One entry of a server's request ledger: which request is executed, joined, replayed, refused (bus.md a, LEDGER).

The machine of `spec/RequestLedger.tla`. A request may come again, because its first answer was lost or its sender lost
patience. Its key (who asks, and the request id: an *idempotence key*) has an entry here from the execution on, so that
it is executed at most once: whoever repeats it joins the execution, or gets what it has come to.

An answer is kept only where it is worth keeping. A failure that may be retried is forgotten when it is told (L13); an
outcome that nobody knows is kept, as a success is. An acknowledgement is worth nothing when the registration is over
that came of it, or that it was asked for under: it is not said again, and nothing is executed again either (L14). What
finds no room in the ledger is refused, but a heartbeat is executed without a record: twice is as good as once (L20).

A machine stands for one key. How many entries there are, and whether a registration stands, arrive in its messages.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.laws import Law, guard, permit

LEDGER_ENTRIES: Final = 4_096
"""How many requests a server remembers."""

Kind = Literal["register", "heartbeat", "other"]
"""What a request is to the ledger. heartbeat: executed twice it does no harm. register: what stands under it begins
with it."""
Outcome = Literal["done", "refused", "failed", "unknown"]
"""What an execution has come to. done: it has had its effect. refused: for good, without effect. failed: without
effect, and it may be retried. unknown: nobody can tell whether it had an effect, as after an unexpected error."""
Reason = Literal["collision", "overloaded", "over", "stopped"]
"""Why a request is refused here. collision: its key belongs to another body. over: what its execution had acknowledged
stands no more, or was asked for under what does not. stopped: the server has stopped."""


@attrs.frozen(cache_hash=True)
class Entry:
    """Memory of the machine: how many entries the ledger may have; what was asked, and what that has come to."""

    limit: int
    body: str = ""
    outcome: Outcome | None = None


@attrs.frozen(cache_hash=True)
class Ask:
    """A request with this key came in. `body`: what tells it from others with the same key. `held`, `settled`: how many
    entries the ledger has, and how many of them are over, so that they can make room. `stands`: its ground is current,
    the registration that came of it or that it names, and the leader of both leads."""

    event: ClassVar[str] = "ask"
    body: str
    kind: Kind
    held: int
    settled: int
    stands: bool


@attrs.frozen
class Settle:
    """The execution is over."""

    event: ClassVar[str] = "settle"
    outcome: Outcome


@attrs.frozen
class Evict:
    """Another request needs the room."""

    event: ClassVar[str] = "evict"


@attrs.frozen
class Stop:
    """The server stops: its ledger is cleared."""

    event: ClassVar[str] = "stop"


Happening = Ask | Settle | Evict | Stop


@attrs.frozen
class MakeRoom:
    """Tell the entry that has been settled for longest `Evict`."""


@attrs.frozen
class Execute:
    """Execute the request, whatever becomes of those who wait for it, and tell `Settle`; who asked is to wait."""


@attrs.frozen
class ExecuteAlone:
    """Execute the request for the one who asked, without a record."""


@attrs.frozen
class Join:
    """Who asked is to wait for the execution that is under way."""


@attrs.frozen
class Replay:
    """Tell who asked what the execution has come to."""


@attrs.frozen
class Refuse:
    """Tell who asked, or all who wait for the execution, that it is refused."""

    reason: Reason


@attrs.frozen
class Tell:
    """Tell all who wait what the execution has come to."""


Output = MakeRoom | Execute | ExecuteAlone | Join | Replay | Refuse | Tell
Taken = tuple[Entry, tuple[Output, ...]]


class RequestLedgerChart(StateMachine):
    """One key of one server's ledger; absent is what the ledger does not remember."""

    absent = State(initial=True)
    executing = State()
    kept = State()
    stopped = State()

    ask = (
        absent.to(executing, cond=["has_room"], on="execute")
        | absent.to(absent, cond=["is_heartbeat", "heartbeats_pass"], on="execute_alone")
        | absent.to(absent, on="say_overloaded")
        | executing.to(executing, cond=["same_body"], on="join")
        | executing.to(executing, on="say_collision")
        | kept.to(kept, cond=["same_body", "still_stands"], on="replay")
        | kept.to(kept, cond=["same_body"], on="say_over")
        | kept.to(kept, on="say_collision")
        | stopped.to(stopped, on="say_stopped")
    )
    settle = executing.to(absent, cond=["failure_is_forgotten", "without_effect"], on="tell_and_forget") | executing.to(
        kept, on="tell"
    )
    evict = kept.to(absent, on="forget")
    stop = absent.to(stopped) | executing.to(stopped, on="dismiss") | kept.to(stopped, on="forget")

    # -- guards ---------------------------------------------------------------

    @staticmethod
    @guard(Law.REFUSAL_IS_INERT)
    def has_room(data: Entry, message: Ask) -> bool:
        """Refusal is inert: what cannot be remembered is refused before it begins, for an execution under way gives no
        room. Without it the ledger grows without bound."""
        return message.held < data.limit or message.settled > 0

    @staticmethod
    @guard(Law.DURABLE_FIRST)
    def is_heartbeat(data: Entry, message: Ask) -> bool:
        """Durable first: what must not happen twice is recorded before it is executed; a heartbeat may. Without it a
        request that is repeated while the ledger is full is executed twice."""
        return message.kind == "heartbeat"

    @staticmethod
    @permit(Law.PROOF)
    def heartbeats_pass(data: Entry, message: Ask) -> bool:
        """Proof: a leader that has much to do lives. Without it a full ledger looks like a dead leader to all of its
        followers (L20)."""
        return True

    @staticmethod
    @guard(Law.FENCE)
    def same_body(data: Entry, message: Ask) -> bool:
        """Fence: a key is the key of one request. Without it somebody is told what another request has come to."""
        return data.body == message.body

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def still_stands(data: Entry, message: Ask) -> bool:
        """Late is nothing: an acknowledgement is worth as much as what it acknowledged, or was asked for under. Without
        it a follower believes in a registration that is over (L14), a request of an old generation is answered as if it
        were of this one, and a leader that was deposed goes on saying what it said."""
        return data.outcome != "done" or message.stands

    @staticmethod
    @permit(Law.LATE_IS_NOTHING)
    def failure_is_forgotten(data: Entry, message: Settle) -> bool:
        """Late is nothing: a failure that may be retried says nothing about the next attempt. Without it a moment's
        failure is told for ever (L13)."""
        return True

    @staticmethod
    @guard(Law.UNKNOWN)
    def without_effect(data: Entry, message: Settle) -> bool:
        """Unknown: an execution is forgotten only where it certainly had no effect. Without it a request is executed
        twice, because nobody knew what had become of it."""
        return message.outcome == "failed"

    # -- effects --------------------------------------------------------------

    @staticmethod
    def execute(data: Entry, message: Ask) -> Taken:
        # Nothing settled is there to make room only where `has_room` is off.
        full = message.held >= data.limit and message.settled > 0
        room: tuple[Output, ...] = (MakeRoom(),) if full else ()
        return Entry(data.limit, message.body), (*room, Execute())

    @staticmethod
    def execute_alone(data: Entry, message: Ask) -> Taken:
        return data, (ExecuteAlone(),)

    @staticmethod
    def join(data: Entry, message: Ask) -> Taken:
        return data, (Join(),)

    @staticmethod
    def replay(data: Entry, message: Ask) -> Taken:
        return data, (Replay(),)

    @staticmethod
    def say_overloaded(data: Entry, message: Ask) -> Taken:
        return data, (Refuse("overloaded"),)

    @staticmethod
    def say_collision(data: Entry, message: Ask) -> Taken:
        return data, (Refuse("collision"),)

    @staticmethod
    def say_over(data: Entry, message: Ask) -> Taken:
        return data, (Refuse("over"),)

    @staticmethod
    def say_stopped(data: Entry, message: Ask) -> Taken:
        return data, (Refuse("stopped"),)

    @staticmethod
    def tell(data: Entry, message: Settle) -> Taken:
        return attrs.evolve(data, outcome=message.outcome), (Tell(),)

    @staticmethod
    def tell_and_forget(data: Entry, message: Settle) -> Taken:
        return Entry(data.limit), (Tell(),)

    @staticmethod
    def forget(data: Entry, message: Evict | Stop) -> Taken:
        return Entry(data.limit), ()

    @staticmethod
    def dismiss(data: Entry, message: Stop) -> Taken:
        return Entry(data.limit), (Refuse("stopped"),)


REQUEST_LEDGER: Table[Entry, Happening, Output] = compile_chart(RequestLedgerChart)
