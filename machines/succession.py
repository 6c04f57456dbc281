"""One process's side of succession: follow, re-register, defer, stand for election, lead, come back (locks.md 12).

The machine of `spec/Succession.tla` (S31, S32, V4-V8, V14; K3, K4). It decides; the adapter performs the outputs and
feeds the answers back:

* `Register` and `Elect` are calls: answered once, unless given up by `leave` or `resign`. What a given-up call says
  afterwards is offered all the same, and refused here.
* Until the process leads or ends, the adapter looks at the registry every check, and at once when the leader's process
  dies or its endpoint appears (`Saw`). A hung leader is noticed by that look and not by the call that hangs (K3).
* `wait` arms the one timer of the phase; leaving the phase disarms it. A `TimeUp` that is refused is not offered again.
* A session change that is no end of the process is `SessionChanged`; what is retried later serves the session of then.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Final

import attrs
from statemachine import State, StateMachine
from statemachine.transition_list import TransitionList

from tenure.machines.chart import Table, compile_chart
from tenure.machines.follower_messages import NOTHING_BOUND
from tenure.machines.laws import Law, guard, permit
from tenure.machines.succession_messages import (
    Denied,
    Deposed,
    Elect,
    ElectFailed,
    Happening,
    Heard,
    Join,
    Lost,
    Memory,
    MoveBinding,
    Output,
    Register,
    Registered,
    RegisterFailed,
    RestoreBinding,
    Saw,
    SessionChanged,
    Stop,
    TimeUp,
    Won,
)

Effect = tuple[Memory, tuple[Output, ...]]
Looking = Join | Lost | Saw | TimeUp

AFTER_Z: Final = "["
"""Where a process without a slot ranks: this character follows Z."""


# The guards of asking a leader, of standing for election, and of letting smaller slots go first.
ASK: Final = ["session_is_live", "leader_lives"]
STAND: Final = ["session_is_live", "leader_is_gone", "nobody_before_me"]
DEFER: Final = ["session_is_live", "leader_is_gone"]


def rank(slot: str | None) -> str:
    """The order in which slots may stand for election."""
    return slot or AFTER_Z


def _each(states: Iterable[State], cond: list[str] | None = None, on: str | None = None) -> TransitionList:
    """The same row, without a change of phase, in each of `states`."""
    rows: TransitionList = reduce(or_, (state.to(state, cond=cond, on=on) for state in states))
    return rows


class SuccessionChart(StateMachine):
    """One process: it follows, is on its way to a leader or to lead, leads, or has left."""

    idle = State(initial=True)
    registering = State()
    following = State()
    grace = State()  # a registration failed; the leader may be alive
    deferring = State()  # smaller slots go first
    electing = State()
    starting = State()  # the election is won
    leading = State()
    waiting = State()  # after an election, or for a look or session that says something
    ended = State(final=True)

    join = (
        idle.to(registering, cond=ASK, on="register")
        | idle.to(electing, cond=DEFER, on="elect")
        | idle.to(waiting, on="wait")
    )
    lost = (
        following.to(registering, cond=ASK, on="register_anew")
        | following.to(electing, cond=STAND, on="elect_instead")
        | following.to(deferring, cond=DEFER, on="wait_instead")
        | following.to(waiting, on="wait_instead")
    )
    saw = (
        following.to(registering, cond=[*ASK, "another_leader"], on="register_anew")
        | following.to(electing, cond=STAND, on="elect_instead")
        | following.to(deferring, cond=DEFER, on="wait_instead")
        | registering.to(registering, cond=["look_outranks_call", *ASK, "something_new"], on="register_anew")
        | registering.to(electing, cond=["look_outranks_call", *STAND], on="elect_instead")
        | registering.to(deferring, cond=["look_outranks_call", *DEFER], on="wait_instead")
        | grace.to(registering, cond=[*ASK, "something_new"], on="register")
        | grace.to(electing, cond=STAND, on="elect")
        | grace.to(deferring, cond=DEFER, on="wait")
        | deferring.to(registering, cond=ASK, on="register")
        | waiting.to(registering, cond=[*ASK, "something_new"], on="register")
    )
    time_up = (
        registering.from_(grace, waiting, cond=ASK, on="register")
        | electing.from_(grace, waiting, cond=STAND, on="elect")
        | deferring.from_(grace, waiting, cond=DEFER, on="wait")
        | waiting.from_(grace, waiting, cond=["tries_again"], on="wait")
        | deferring.to(registering, cond=ASK, on="register")
        | deferring.to(electing, cond=[*DEFER, "one_grace_is_enough"], on="elect_at_last")
        | deferring.to(deferring, on="wait")
    )

    heard = (
        following.to(following, cond=["binding_is_known"], on="remember")
        | following.to(following, on="hear_roster")
    )  # fmt: skip
    registered = registering.to(following, cond=["asked_of_this_leader"], on="follow")
    register_failed = registering.to(grace, cond=["asked_of_this_leader", "failure_is_no_end"], on="wait")

    won = electing.to(starting, cond=["won_first"], on="move_binding")
    started = starting.to(leading)
    denied = electing.to(waiting, cond=["loser_comes_back"], on="wait")
    elect_failed = (
        electing.to(waiting, cond=["failure_is_retried"], on="wait")
        | starting.to(waiting, cond=["failure_is_retried"], on="come_back")
    )  # fmt: skip
    deposed = leading.to(waiting, on="come_back")

    session_changed = (
        registering.to(registering, cond=["session_is_live"], on="register_for_session")
        | registering.to(waiting, on="wait_for_session")
        | _each((idle, following, grace, deferring, electing, starting, leading, waiting), on="serve")
    )
    stop = (
        ended.from_(idle, registering, following, grace, deferring, waiting, on="leave")
        | ended.from_(electing, starting, leading, on="resign")
    )  # fmt: skip

    # -- guards -------------------------------------------------------------------------------------------------------

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def session_is_live(data: Memory, message: Looking | SessionChanged) -> bool:
        """Late is nothing: what begins, begins for the session of now. Without it a retry registers or elects for a
        session that has ended (A53)."""
        session = message.session if isinstance(message, SessionChanged) else data.session
        return session != 0

    @staticmethod
    @guard(Law.PROOF)
    def leader_lives(data: Memory, message: Looking) -> bool:
        """Proof: registered with is who owns a live lease now. Without it followers of a dead leader knock at its
        door for ever, and nobody leads (V4)."""
        return message.look.state == "elsewhere"

    @staticmethod
    @guard(Law.PROOF)
    def leader_is_gone(data: Memory, message: Looking) -> bool:
        """Proof: stood for election is where the lease has passed, its process has died, or nobody owns it. Without
        it an endpoint that does not answer is enough, and two poll (S31, I7, B01)."""
        return message.look.state in ("stale", "inactive")

    @staticmethod
    @guard(Law.PROOF)
    def nobody_before_me(data: Memory, message: Looking) -> bool:
        """Proof: the smallest slot of the last roster goes first, and who has none ranks after Z; the others let one
        grace pass. Without it all elect at once (A56)."""
        mine = rank(data.binding.slot)
        return data.deferred or all(rank(slot) >= mine for slot in data.roster)

    @staticmethod
    @permit(Law.UNKNOWN)
    def one_grace_is_enough(data: Memory, message: TimeUp) -> bool:
        """Unknown: whether a smaller slot is still there, one grace has answered. Without it all wait for a favourite
        that is dead (V6, A56)."""
        return True

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def another_leader(data: Memory, message: Saw) -> bool:
        """Late is nothing: a leader that was asked already is no news. Without it every look drops a registration
        that is healthy."""
        return message.look.owner != data.leader

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def something_new(data: Memory, message: Saw) -> bool:
        """Late is nothing: a wait, and a call that does not answer, end early for another leader or for an endpoint
        that was not there: a winner is seen before its endpoint is, and until then one that hangs accepts what is sent
        to it. Without it every look is a retry, and a leader that refuses is asked without a pause."""
        look = message.look
        return look.owner != data.leader or (look.endpoint != 0 and look.endpoint != data.endpoint)

    @staticmethod
    @permit(Law.PROOF)
    def look_outranks_call(data: Memory, message: Saw) -> bool:
        """Proof: what a look shows outranks a call that has not answered. Without it a leader that hangs, and whose
        socket accepts, holds its followers up past its lease (K3, V5)."""
        return True

    @staticmethod
    @permit(Law.UNKNOWN)
    def tries_again(data: Memory, message: TimeUp) -> bool:
        """Unknown: a look that failed, or a session that is missing, ends no recovery. Without it a follower whose
        session comes back is stranded (A53)."""
        return True

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def binding_is_known(data: Memory, message: Heard) -> bool:
        """Late is nothing: a registration that was cleared has no binding, which says nothing of mine. Without it the
        thread is lost before it is carried (A55)."""
        return message.binding != NOTHING_BOUND

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def asked_of_this_leader(data: Memory, message: Registered | RegisterFailed) -> bool:
        """Late is nothing: the answer is that of the leader asked last. Without it the late word of a leader that was
        given up makes a follower of one that is not registered (I5)."""
        return message.leader == data.leader

    @staticmethod
    @permit(Law.UNKNOWN)
    def failure_is_no_end(data: Memory, message: RegisterFailed) -> bool:
        """Unknown: a leader that could not be reached may be back after a grace. Without it the followers of one that
        reloads are stranded (V8, B01)."""
        return True

    @staticmethod
    @guard(Law.FENCE)
    def won_first(data: Memory, message: Won) -> bool:
        """Fence: the binding moves under the lease that was won. Without it the loser of an election has destroyed its
        own record (S32, M8b, B04)."""
        return message.owned

    @staticmethod
    @permit(Law.PROOF)
    def loser_comes_back(data: Memory, message: Denied) -> bool:
        """Proof: a lost election ends the candidature, not the membership. Without it the loser is registered with
        nobody (A52, V7)."""
        return True

    @staticmethod
    @permit(Law.UNKNOWN)
    def failure_is_retried(data: Memory, message: ElectFailed) -> bool:
        """Unknown: a promotion that failed says nothing of the next one. Without it one exception strands the follower
        and, where it is the last, the fleet (K4, V14)."""
        return True

    # -- effects ------------------------------------------------------------------------------------------------------

    @staticmethod
    def register(data: Memory, message: Looking) -> Effect:
        after = attrs.evolve(data, leader=message.look.owner, endpoint=message.look.endpoint)
        return after, (Register(after.leader, after.session, after.binding),)

    @staticmethod
    def register_anew(data: Memory, message: Lost | Saw) -> Effect:
        after, outputs = SuccessionChart.register(data, message)
        return after, ("leave", *outputs)

    @staticmethod
    def register_for_session(data: Memory, message: SessionChanged) -> Effect:
        after = attrs.evolve(data, session=message.session)
        return after, ("leave", Register(after.leader, after.session, after.binding))

    @staticmethod
    def elect(data: Memory, message: Looking) -> Effect:
        return data, (Elect(message.look.owner, data.session),)

    @staticmethod
    def elect_instead(data: Memory, message: Lost | Saw) -> Effect:
        return data, ("leave", Elect(message.look.owner, data.session))

    @staticmethod
    def elect_at_last(data: Memory, message: TimeUp) -> Effect:
        after = attrs.evolve(data, deferred=True)
        return after, (Elect(message.look.owner, data.session),)

    @staticmethod
    def wait(data: Memory, message: Looking | RegisterFailed | Denied | ElectFailed) -> Effect:
        return data, ("wait",)

    @staticmethod
    def wait_instead(data: Memory, message: Lost | Saw) -> Effect:
        return data, ("leave", "wait")

    @staticmethod
    def wait_for_session(data: Memory, message: SessionChanged) -> Effect:
        return attrs.evolve(data, session=message.session), ("leave", "wait")

    @staticmethod
    def serve(data: Memory, message: SessionChanged) -> Effect:
        return attrs.evolve(data, session=message.session), ()

    @staticmethod
    def remember(data: Memory, message: Heard) -> Effect:
        return attrs.evolve(data, binding=message.binding, roster=message.roster), ()

    @staticmethod
    def hear_roster(data: Memory, message: Heard) -> Effect:
        return attrs.evolve(data, roster=message.roster), ()

    @staticmethod
    def follow(data: Memory, message: Registered) -> Effect:
        return attrs.evolve(data, binding=message.binding, deferred=False), ()

    @staticmethod
    def move_binding(data: Memory, message: Won) -> Effect:
        return data, (MoveBinding(data.binding),)

    @staticmethod
    def come_back(data: Memory, message: ElectFailed | Deposed) -> Effect:
        return data, (RestoreBinding(data.binding), "wait")

    @staticmethod
    def leave(data: Memory, message: Stop) -> Effect:
        return data, ("leave",)

    @staticmethod
    def resign(data: Memory, message: Stop) -> Effect:
        return data, ("resign",)


SUCCESSION: Table[Memory, Happening, Output] = compile_chart(SuccessionChart)
