"""One follower's registration as values: what it sends, what it takes, and what is late (bus.md b)."""

from __future__ import annotations

from functools import reduce

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.machines.chart import Refused, Step, step
from tenure.machines.follower import FOLLOWER
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

ME = "17:1000"
MINE = Binding("7/3", "C", "api")
OK = Answered("g1", compatible=True, ok=True, binding=MINE, capabilities=("queue-handoff-v1",))
REGISTERED = (Register("g1"), OK)


def told(*messages: Happening, memory: Memory | None = None) -> Step[Memory, Output]:
    """What a follower that has just begun answers to the last of the messages; all must be taken."""

    def one(before: Step[Memory, Output], message: Happening) -> Step[Memory, Output]:
        after = step(FOLLOWER, before.phase, before.data, message)
        assert isinstance(after, Step), after
        return after

    return reduce(one, messages, Step(FOLLOWER.initial, memory or Memory(ME), ()))


def refused(message: Happening, *before: Happening) -> tuple[str, ...]:
    """The guards that refuse `message` after the others."""
    here = told(*before)
    answer = step(FOLLOWER, here.phase, here.data, message)
    assert isinstance(answer, Refused), answer
    return answer.guards


def test_a_registration_beats_at_once() -> None:
    """The first heartbeat does not wait for the interval; what the leader says of the binding is kept."""
    assert told(Register("g1")).outputs == (SendRegister("g1", 1, False, Binding()),)
    assert told(*REGISTERED).outputs == (Report("registered"), SendHeartbeat("g1"))
    assert told(*REGISTERED).data.binding == MINE


def test_b08_b10_work_names_the_registration_that_is_mine() -> None:
    """B08, B10, B26: work of an earlier generation, of none, or for another instance is nobody's here."""
    assert told(*REGISTERED, Deliver(ME, "g1", 4)).outputs == (Admit(4),)
    assert refused(Deliver(ME, "g0", 4), *REGISTERED) == ("route_is_mine",)
    assert refused(Deliver(ME, None, 4), *REGISTERED) == ("route_is_mine",)
    assert refused(Deliver("17:2000", "g1", 4), *REGISTERED) == ("addressed_to_me",)


def test_without_a_session_there_is_nobody_to_work() -> None:
    """The registration stays, and takes work again when a session is served."""
    empty = (*REGISTERED, SessionChanged(0))
    assert refused(Deliver(ME, "g1", 4), *empty) == ("host_serves",)
    assert refused(ReplaceTarget(ME, "g1", "7/9"), *empty) == ("host_serves",)
    assert refused(Deliver(ME, "g0", 4), *empty) == ("route_is_mine",)
    assert told(*empty, SessionChanged(3), Deliver(ME, "g1", 4)).outputs == (Admit(4),)


@pytest.mark.parametrize("before", [(), (Register("g1"),), (*REGISTERED, Leave()), (*REGISTERED, Disconnect())])
def test_b11_who_is_not_registered_takes_nothing_and_asks_nothing(before: tuple[Happening, ...]) -> None:
    """B11, B28: before the acknowledgement, after a loss, on the way out: refused here, before anything is sent."""
    assert refused(Deliver(ME, "g1", 4), *before) == ()
    assert refused(Deliver(ME, None, 4), *before) == ()
    assert refused(Ask(4), *before) == ()


def test_what_is_asked_goes_under_the_registration_of_the_moment() -> None:
    """I1: the request carries the generation, so that the leader can compare."""
    again = (*REGISTERED, BeatFailed("g1"), Register("g2"), attrs.evolve(OK, generation="g2"))

    assert told(*again, Ask(9)).outputs == (SendAsk("g2", 9),)


def test_l15_one_registration_at_a_time() -> None:
    """L15, I12: neither beside one under way, nor beside the call of one that was given up."""
    assert refused(Register("g2"), Register("g1")) == ()
    assert refused(Register("g2"), *REGISTERED) == ()
    assert refused(Register("g2"), Register("g1"), Leave()) == ("one_at_a_time",)
    for returned in (RegisterFailed("g1"), OK):
        assert told(Register("g1"), Leave(), returned, Register("g2")).data.generation == "g2"


def test_l25_a_session_change_ends_the_registration_under_way() -> None:
    """L25: there and then; its acknowledgement comes too late and leaves no flag behind."""
    changed = (Register("g1"), SessionChanged(2))

    assert told(*changed).outputs == (Abandon("g1"), Report("abandoned"))
    assert told(*changed, OK) == Step("idle", Memory(ME, session=2), ())
    assert told(*changed, OK, Register("g2")).outputs == (SendRegister("g2", 2, False, Binding()),)


def test_a_session_change_keeps_a_registration_that_stands() -> None:
    """bus.md b, row 13: another context, the same registration and heartbeat."""
    after = told(*REGISTERED, SessionChanged(2))

    assert (after.phase, after.data.generation, after.data.session, after.data.beating) == ("registered", "g1", 2, True)


def test_l24_a_profile_that_is_held_is_left_to_its_holder() -> None:
    """L24: two processes of one shell have one profile key; the second takes a key of its own, and keeps to it."""
    held = (Register("g1"), Answered("g1", compatible=True, ok=False, held=True))

    assert told(*held) == Step("idle", Memory(ME, own_key=True), (Report("held"),))
    assert told(*held, Register("g2")).outputs == (SendRegister("g2", 1, True, Binding()),)


def test_b29_compatibility_is_judged_before_ok() -> None:
    """B29, I9: an ok without a protocol that fits is no registration."""
    odd = attrs.evolve(OK, compatible=False)

    assert told(Register("g1"), odd) == Step("idle", Memory(ME), (Report("incompatible"),))
    assert told(Register("g1"), attrs.evolve(odd, ok=False, held=True)).data.own_key is False


def test_one_heartbeat_in_flight() -> None:
    """I6: a slow leader is not asked twice."""
    assert refused(Tick(), *REGISTERED) == ("one_beat_at_a_time",)
    answered = (*REGISTERED, BeatAnswered("g1", ok=True, roster=("A", "C")))
    assert told(*answered).data.roster == ("A", "C")
    assert told(*answered, Tick()).outputs == (SendHeartbeat("g1"),)


@pytest.mark.parametrize("news", [BeatFailed("g1", "refused"), BeatAnswered("g1", ok=False, error="refused")])
def test_a55_recovery_carries_the_binding(news: Happening) -> None:
    """A55: the slot, the target and the name survive the loss of the registration, and so does the roster."""
    lost = told(*REGISTERED, BeatAnswered("g1", ok=True, roster=("B",)), Tick(), news)

    assert lost.outputs == (Recover("g1", MINE, "refused"),)
    assert (lost.phase, lost.data.roster) == ("idle", ("B",))
    again = step(FOLLOWER, lost.phase, lost.data, Register("g2"))
    assert isinstance(again, Step)
    assert again.outputs == (SendRegister("g2", 1, False, MINE),)


@pytest.mark.parametrize("late", [BeatFailed("g1"), BeatAnswered("g1", ok=False), BeatAnswered("g1", ok=True)])
def test_b20_a_late_heartbeat_says_nothing_of_the_next_registration(late: Happening) -> None:
    """B20, I5: g1's heartbeat hangs, g2 is registered, then g1 fails."""
    second = (*REGISTERED, Leave(), Register("g2"), attrs.evolve(OK, generation="g2"))

    assert refused(late, *second) == ("beat_is_mine",)


def test_b19_gone_is_what_the_leader_confirmed() -> None:
    """B19: a goodbye that is refused or unanswered leaves everything as it is, for another try."""
    leaving = (*REGISTERED, Disconnect())

    assert told(*leaving).outputs == (SendDisconnect("g1"),)
    for news in (DisconnectAnswered("g1", ok=False, error="busy"), DisconnectFailed("g1", "busy")):
        stays = told(*leaving, news)
        assert (stays.phase, stays.outputs) == ("registered", (Report("not_disconnected", "busy"),))
        assert stays.data == told(*REGISTERED).data
    gone = told(*leaving, DisconnectAnswered("g1", ok=True))
    assert (gone.phase, gone.data.binding) == ("idle", Binding(name="api"))


def test_the_answer_to_an_old_goodbye_ends_nothing() -> None:
    """I5: it was about the registration before."""
    second = (*REGISTERED, Disconnect(), Leave(), Register("g2"), attrs.evolve(OK, generation="g2"), Disconnect())

    for late in (DisconnectAnswered("g1", ok=True), DisconnectFailed("g1")):
        assert refused(late, *second) == ("goodbye_is_mine",)


def test_l22_a_restored_thread_changes_the_target_only() -> None:
    """L22: the generation, the roster and what the leader can do are still there after it."""
    before = told(*REGISTERED, BeatAnswered("g1", ok=True, roster=("A",))).data
    answer = step(FOLLOWER, "registered", before, ReplaceTarget(ME, "g1", "7/9"))

    assert isinstance(answer, Step)
    assert answer.data == attrs.evolve(before, binding=Binding("7/9", "C", "api"))
    assert answer.data.capabilities == ("queue-handoff-v1",)
    assert answer.outputs == (Retarget(Binding("7/9", "C", "api")),)
    assert refused(ReplaceTarget(ME, None, "7/9"), *REGISTERED) == ("route_is_mine",)


def test_a_binding_that_the_leader_does_not_mention_stays() -> None:
    """bus.md b, row 7: target, slot and name fall back separately."""
    carried = Memory(ME, binding=MINE)
    answer = Answered("g1", compatible=True, ok=True, binding=Binding(slot="D"))

    assert told(Register("g1"), answer, memory=carried).data.binding == Binding("7/3", "D", "api")


@pytest.mark.parametrize("nothing", ["", " ", "\t\n"])
@pytest.mark.parametrize("field", ["target", "slot", "name"])
def test_an_empty_text_says_nothing(field: str, nothing: str) -> None:
    """Neither what the leader says nor what is carried makes an empty thread, slot or name of one that is there."""
    empty = attrs.evolve(MINE, **{field: nothing})
    told_so = attrs.evolve(OK, binding=empty)
    carried = Memory(ME, binding=MINE)

    assert told(Register("g1"), told_so, memory=carried).data.binding == MINE
    assert getattr(told(Register("g1"), told_so).data.binding, field) is None
    assert told(Register("g1", empty), memory=carried).outputs == (SendRegister("g1", 1, False, MINE),)
    assert getattr(told(Register("g1", empty)).data.binding, field) is None


def test_what_is_carried_into_a_registration_is_remembered() -> None:
    """A55: whoever registers with what another leader gave keeps that, whatever becomes of the attempt."""
    carried = Binding("7/4", "D", "other")
    before = Memory(ME, binding=MINE)

    asked = told(Register("g1", carried), memory=before)
    assert asked.outputs == (SendRegister("g1", 1, False, carried),)
    assert told(Register("g1", carried), RegisterFailed("g1"), memory=before).data.binding == carried
    quiet = attrs.evolve(OK, binding=Binding(slot="E"))
    assert told(Register("g1", carried), quiet, memory=before).data.binding == Binding("7/4", "E", "other")
    assert told(Register("g1", Binding(slot="D")), memory=before).data.binding == Binding("7/3", "D", "api")


@given(st.lists(st.sampled_from([
    Register("g2"), OK, RegisterFailed("g1"), Tick(), BeatAnswered("g1", ok=True), BeatFailed("g0"), Disconnect(),
    DisconnectAnswered("g1", ok=False), Leave(), SessionChanged(2), Deliver(ME, "g1", 1), Ask(1),
])))  # fmt: skip
def test_generation_and_phase_belong_together(messages: list[Happening]) -> None:
    """Whatever happens: a generation while something is under way or held, acknowledged exactly when it is held."""
    phase, data = FOLLOWER.initial, Memory(ME)
    for message in (Register("g1"), *messages):
        answer = step(FOLLOWER, phase, data, message)
        if isinstance(answer, Step):
            phase, data = answer.phase, answer.data
        assert (data.generation is None) == (phase == "idle")
        assert data.acknowledged == (phase in ("registered", "disconnecting"))
        assert not data.beating or data.acknowledged


def test_whoever_stopped_is_over() -> None:
    """Final: nothing is taken any more, and the call under way is given up."""
    stopped = told(Register("g1"), Stop())

    assert stopped == Step("stopped", Memory(ME), (Abandon("g1"),))
    assert refused(OK, Register("g1"), Stop()) == ()
