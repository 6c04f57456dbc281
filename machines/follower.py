"""A follower's registration: work reaches exactly the instance that holds it now (bus.md b; I1, I5, I6, I9, I12).

The follower's half of `spec/FollowerRegistration.tla`; `tenure.machines.routes` is the leader's. It registers, beats,
takes deliveries, asks, says goodbye. What comes after a loss (another leader, grace, an election) is not decided here:
`Recover` tells `tenure.machines.succession`.

* An output that sends is a *call*, answered once by the event of its answer. The answer carries the generation that
  was sent, so an answer of a registration that is over is refused, whoever brings it.
* A heartbeat is asked for by `Registered`'s own outputs first, then by `Tick` every HEARTBEAT ms.
* A call that was abandoned returns as well, as an answer or as a failure: nothing else is registered before.
* A `Refused` is an answer: to a delivery it is a negative acknowledgement, to an ask an error before anything is sent,
  to a `Register` that one is under way.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TypeVar

import attrs
from statemachine import State, StateMachine
from statemachine.transition_list import TransitionList

from tenure.machines.chart import Table, compile_chart
from tenure.machines.follower_messages import (
    Abandon,
    Admit,
    Answered,
    Ask,
    BeatAnswered,
    BeatFailed,
    Binding,
    Deliver,
    Disconnect,
    DisconnectAnswered,
    DisconnectFailed,
    Happening,
    Leave,
    Memory,
    Outcome,
    Output,
    Recover,
    Register,
    RegisterFailed,
    ReplaceTarget,
    Report,
    Retarget,
    SendAsk,
    SendDisconnect,
    SendHeartbeat,
    SendRegister,
    SessionChanged,
    Stop,
    Tick,
)
from tenure.machines.laws import Law, guard, permit

Effect = tuple[Memory, tuple[Output, ...]]
T = TypeVar("T")


def _each(states: Iterable[State], cond: list[str] | None = None, on: str | None = None) -> TransitionList:
    """The same row, without a change of phase, in each of `states`."""
    rows: TransitionList = reduce(or_, (state.to(state, cond=cond, on=on) for state in states))
    return rows


class FollowerChart(StateMachine):
    """One follower: idle, asking to be registered, registered, saying goodbye; stopped. Only who is registered takes
    work or asks."""

    idle = State(initial=True)
    registering = State()
    registered = State()
    disconnecting = State()
    stopped = State(final=True)

    register = idle.to(registering, cond=["one_at_a_time"], on="send_register")
    answered = (
        registering.to(registered, cond=["answer_is_mine", "leader_compatible", "accepted"], on="hold")
        | registering.to(idle, cond=["answer_is_mine", "leader_compatible", "own_key_when_held"], on="take_own_key")
        | registering.to(idle, cond=["answer_is_mine"], on="be_refused")
        | idle.to(idle, on="settle")
    )
    register_failed = registering.to(idle, cond=["answer_is_mine"], on="fail") | idle.to(idle, on="settle")

    tick = registered.to(registered, cond=["one_beat_at_a_time"], on="beat")
    beat_answered = (
        registered.to(registered, cond=["beat_is_mine", "beat_accepted"], on="hear")
        | registered.to(idle, cond=["beat_is_mine"], on="recover")
        | disconnecting.to(disconnecting, cond=["beat_is_mine"], on="rest")
    )
    beat_failed = (
        registered.to(idle, cond=["beat_is_mine"], on="recover")
        | disconnecting.to(disconnecting, cond=["beat_is_mine"], on="rest")
    )  # fmt: skip

    disconnect = registered.to(disconnecting, on="say_goodbye")
    disconnect_answered = disconnecting.to(
        idle, cond=["goodbye_is_mine", "goodbye_confirmed"], on="be_gone"
    ) | disconnecting.to(registered, cond=["goodbye_is_mine"], on="stay")
    disconnect_failed = disconnecting.to(registered, cond=["goodbye_is_mine"], on="stay")
    leave = idle.from_(registering, registered, disconnecting, on="give_up")
    session_changed = (
        registering.to(idle, cond=["session_ends_registration"], on="abandon")
        | _each((idle, registered, disconnecting), on="serve")
    )  # fmt: skip

    ask = registered.to(registered, on="send_ask")
    deliver = registered.to(registered, cond=["addressed_to_me", "route_is_mine", "host_serves"], on="admit")
    replace_target = registered.to(registered, cond=["addressed_to_me", "route_is_mine", "host_serves"], on="retarget")
    stop = stopped.from_(idle, registering, registered, disconnecting, on="end")

    # -- guards -------------------------------------------------------------------------------------------------------

    @staticmethod
    @guard(Law.FENCE)
    def one_at_a_time(data: Memory, message: Register) -> bool:
        """Fence: one registration at a time, also when the last one was given up. Without it two are under way, and
        the leader's last word is not the follower's (I12, L15)."""
        return data.abandoned is None

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def answer_is_mine(data: Memory, message: Answered | RegisterFailed) -> bool:
        """Late is nothing: only the registration under way is answered. Without it the answer to one that was given
        up decides over its successor (I5)."""
        return message.generation == data.generation

    @staticmethod
    @guard(Law.PROOF)
    def leader_compatible(data: Memory, message: Answered) -> bool:
        """Proof: compatible is who says so, whatever else is in the answer. Without it work is taken from a leader
        that does not wait until it is durable (I9)."""
        return message.compatible

    @staticmethod
    @guard(Law.PROOF)
    def accepted(data: Memory, message: Answered) -> bool:
        """Proof: registered is who was acknowledged. Without it a follower believes itself reachable and nobody has
        a route to it (I1)."""
        return message.ok

    @staticmethod
    @permit(Law.PROOF)
    def own_key_when_held(data: Memory, message: Answered) -> bool:
        """Proof: two processes of one shell share a profile key, and both live. Without it the second one is refused
        for ever (V1, L24)."""
        return not message.ok and message.held

    @staticmethod
    @guard(Law.FENCE)
    def one_beat_at_a_time(data: Memory, message: Tick) -> bool:
        """Fence: one heartbeat in flight for a registration. Without it probes of a slow leader pile up, and their
        failures come in any order (I6)."""
        return not data.beating

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def beat_is_mine(data: Memory, message: BeatAnswered | BeatFailed) -> bool:
        """Late is nothing: a heartbeat speaks of its own registration. Without it the failure of an old one ends a
        healthy one (I5, B20)."""
        return message.generation == data.generation

    @staticmethod
    @guard(Law.PROOF)
    def beat_accepted(data: Memory, message: BeatAnswered) -> bool:
        """Proof: a heartbeat that is refused says that there is no route. Without it a follower that was pruned waits
        for work that cannot come (V1)."""
        return message.ok

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def goodbye_is_mine(data: Memory, message: DisconnectAnswered | DisconnectFailed) -> bool:
        """Late is nothing: a goodbye speaks of its own registration. Without it the answer to an old one ends, in the
        follower's eyes alone, the one that stands (I5)."""
        return message.generation == data.generation

    @staticmethod
    @guard(Law.UNKNOWN)
    def goodbye_confirmed(data: Memory, message: DisconnectAnswered) -> bool:
        """Unknown: gone is what the leader confirmed. Without it somebody is told that the thread is gone, and it is
        there and routed (B19)."""
        return message.ok

    @staticmethod
    @permit(Law.LATE_IS_NOTHING)
    def session_ends_registration(data: Memory, message: SessionChanged) -> bool:
        """Late is nothing: a session that is gone cannot be registered. Without it its answer makes a registration
        whose context is dead (L25)."""
        return True

    @staticmethod
    @guard(Law.FENCE)
    def addressed_to_me(data: Memory, message: Deliver | ReplaceTarget) -> bool:
        """Fence: work is for the instance that it names. Without it one activation takes what was sent to another
        (I1)."""
        return message.instance == data.instance

    @staticmethod
    @guard(Law.FENCE)
    def route_is_mine(data: Memory, message: Deliver | ReplaceTarget) -> bool:
        """Fence: work names the registration under which it was decided, and it is mine. Without it what was decided
        for an earlier one is done under this one (I1, B08, B10)."""
        return message.generation is not None and message.generation == data.generation

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def host_serves(data: Memory, message: Deliver | ReplaceTarget) -> bool:
        """Late is nothing: work is for a host that is there. Without it work is acknowledged after the session that
        would have done it has ended (bus.md a, FOLLOWER SERVER ORDER)."""
        return data.session != 0

    # -- effects ------------------------------------------------------------------------------------------------------

    @staticmethod
    def send_register(data: Memory, message: Register) -> Effect:
        carried = _bound(data.binding, message.binding)
        now = attrs.evolve(data, generation=message.generation, binding=carried)
        return now, (SendRegister(message.generation, data.session, data.own_key, carried),)

    @staticmethod
    def hold(data: Memory, message: Answered) -> Effect:
        assert data.generation is not None, "something is under way"
        now = attrs.evolve(
            data,
            acknowledged=True,
            beating=True,
            binding=_bound(data.binding, message.binding),
            capabilities=message.capabilities,
        )
        return now, (Report("registered"), SendHeartbeat(data.generation))

    @staticmethod
    def take_own_key(data: Memory, message: Answered) -> Effect:
        return attrs.evolve(_released(data), own_key=True), (Report("held", message.error),)

    @staticmethod
    def be_refused(data: Memory, message: Answered) -> Effect:
        outcome: Outcome = "refused" if message.compatible else "incompatible"
        return _released(data), (Report(outcome, message.error),)

    @staticmethod
    def fail(data: Memory, message: RegisterFailed) -> Effect:
        return _released(data), (Report("failed", message.error),)

    @staticmethod
    def beat(data: Memory, message: Tick) -> Effect:
        assert data.generation is not None, "something is held"
        return attrs.evolve(data, beating=True), (SendHeartbeat(data.generation),)

    @staticmethod
    def hear(data: Memory, message: BeatAnswered) -> Effect:
        roster = message.roster if message.ok else data.roster
        return attrs.evolve(data, beating=False, roster=roster), ()

    @staticmethod
    def rest(data: Memory, message: BeatAnswered | BeatFailed) -> Effect:
        return attrs.evolve(data, beating=False), ()

    @staticmethod
    def recover(data: Memory, message: BeatAnswered | BeatFailed) -> Effect:
        assert data.generation is not None, "something is held"
        return _released(data), (Recover(data.generation, data.binding, message.error),)

    @staticmethod
    def say_goodbye(data: Memory, message: Disconnect) -> Effect:
        assert data.generation is not None, "something is held"
        return data, (SendDisconnect(data.generation),)

    @staticmethod
    def be_gone(data: Memory, message: DisconnectAnswered) -> Effect:
        # The thread is deleted: only the name is worth keeping.
        return attrs.evolve(_released(data), binding=Binding(name=data.binding.name)), (Report("disconnected"),)

    @staticmethod
    def stay(data: Memory, message: DisconnectAnswered | DisconnectFailed) -> Effect:
        return data, (Report("not_disconnected", message.error),)

    @staticmethod
    def give_up(data: Memory, message: Leave) -> Effect:
        return _given_up(data), _abandoned(data)

    @staticmethod
    def abandon(data: Memory, message: SessionChanged) -> Effect:
        return attrs.evolve(_given_up(data), session=message.session), (*_abandoned(data), Report("abandoned"))

    @staticmethod
    def settle(data: Memory, message: Answered | RegisterFailed) -> Effect:
        returned = message.generation == data.abandoned
        return attrs.evolve(data, abandoned=None) if returned else data, ()

    @staticmethod
    def serve(data: Memory, message: SessionChanged) -> Effect:
        return attrs.evolve(data, session=message.session), ()

    @staticmethod
    def send_ask(data: Memory, message: Ask) -> Effect:
        assert data.generation is not None, "something is held"
        return data, (SendAsk(data.generation, message.number),)

    @staticmethod
    def admit(data: Memory, message: Deliver) -> Effect:
        return data, (Admit(message.number),)

    @staticmethod
    def retarget(data: Memory, message: ReplaceTarget) -> Effect:
        # The generation, the roster and what the leader can do stay as they are (L22).
        now = attrs.evolve(data, binding=attrs.evolve(data.binding, target=message.target))
        return now, (Retarget(now.binding),)

    @staticmethod
    def end(data: Memory, message: Stop) -> Effect:
        return attrs.evolve(_released(data), abandoned=None), _abandoned(data)


def _released(data: Memory) -> Memory:
    """Without a registration; the binding, the roster and the key stay."""
    return attrs.evolve(data, generation=None, acknowledged=False, beating=False, capabilities=())


def _given_up(data: Memory) -> Memory:
    """Without a registration; the call that asks for one, if it has not returned, is remembered."""
    waits = data.generation if not data.acknowledged else None
    return attrs.evolve(_released(data), abandoned=waits)


def _abandoned(data: Memory) -> tuple[Output, ...]:
    return () if data.generation is None else (Abandon(data.generation),)


def _bound(mine: Binding, told: Binding) -> Binding:
    """What is told; where that says nothing, what was carried (bus.md b, row 7). Nothing blank is ever carried."""
    return Binding(_said(told.target, mine.target), _said(told.slot, mine.slot), _said(told.name, mine.name))


def _said(told: T, mine: T) -> T | None:
    return next((it for it in (told, mine) if it is not None and not (isinstance(it, str) and not it.strip())), None)


FOLLOWER: Table[Memory, Happening, Output] = compile_chart(FollowerChart)
