"""One update at the leader, event by event: bound once, delivered for the exact receipt, kept for everything else."""

from __future__ import annotations

import typing
from functools import reduce

import attrs
import pytest

from tenure.machines.admission_identity import delivery_id
from tenure.machines.chart import Refused, Step, step
from tenure.machines.forwarding import FORWARDING, PATIENCE, aside, retry_delay_ms
from tenure.machines.forwarding_messages import (
    RETRYABLE,
    TERMINAL,
    Acknowledged,
    Admit,
    Deliver,
    Discard,
    Failed,
    Failure,
    Forget,
    Forward,
    Happening,
    Keep,
    Output,
    Release,
    Resume,
    Retry,
    RetryIn,
    Send,
    Skip,
    Unserved,
    Update,
)

KIND, HERE, THERE = "leader.forwardMessage", "manual:1:start:2", "manual:3:start:4"
ID = delivery_id(KIND, HERE, 7)
ADMIT = Admit(epoch=3, fence=3, offset=6)
FORWARD = Forward(3, 3, HERE)
RECEIPT = Acknowledged(3, 3, ok=True, delivery=ID, update=7)
UNANSWERED = Failed(3, 3, "acknowledgement-missing")


def told(*messages: Happening) -> Step[Update, Output]:
    """Where the last of the messages leads; all must be taken."""

    def one(before: Step[Update, Output], message: Happening) -> Step[Update, Output]:
        after = step(FORWARDING, before.phase, before.data, message)
        assert isinstance(after, Step), after
        return after

    return reduce(one, messages, Step(FORWARDING.initial, Update(7, KIND), ()))


def refused(*messages: Happening) -> tuple[str, ...]:
    """The guards that refuse the last of the messages; the others must be taken."""
    before = told(*messages[:-1])
    after = step(FORWARDING, before.phase, before.data, messages[-1])
    assert isinstance(after, Refused), after
    return after.guards


@pytest.mark.parametrize("message", [ADMIT, Skip(3, 3, 6)])
def test_what_the_offset_has_passed_is_not_admitted_again(message: Admit | Skip) -> None:
    """Its row may be gone long since."""
    assert ("above_offset",) == refused(attrs.evolve(message, offset=7))
    assert ("journaled" if isinstance(message, Admit) else "skipped") == told(message).phase


def test_an_answer_twice_is_admitted_once() -> None:
    """The row is there: no guard has to say so."""
    assert () == refused(ADMIT, ADMIT)
    assert () == refused(Skip(3, 3, 6), ADMIT)


def test_a_leader_under_the_fence_changes_nothing() -> None:
    """Whatever a leader does; a person, the clock and the trimming are no leader."""
    stories: dict[Happening, tuple[Happening, ...]] = {
        ADMIT: (),
        Skip(3, 3, 6): (),
        FORWARD: (ADMIT,),
        Keep(3, 3, HERE): (ADMIT,),
        Unserved(3, 3): (ADMIT,),
        RECEIPT: (ADMIT, FORWARD),
        UNANSWERED: (ADMIT, FORWARD),
        Resume(3, 3): (ADMIT, FORWARD),
    }
    for message, before in stories.items():
        told(*before, message)
        assert refused(*before, attrs.evolve(message, fence=4)) == ("epoch_current",)

    leaders = {type(message) for message in stories}
    others = {Retry, Release, Discard, Forget}
    assert leaders | others == set(typing.get_args(Happening))


def test_it_is_bound_before_the_first_attempt_and_stays_so() -> None:
    """Annex D: the thread may belong to somebody else by now."""
    tried = told(ADMIT, FORWARD)

    assert tried.outputs == (Send(HERE, ID),)
    assert (HERE, 1) == (tried.data.binding, tried.data.attempts)
    assert ("binding_sticks",) == refused(ADMIT, FORWARD, UNANSWERED, Retry(), Forward(3, 3, THERE))
    assert ("binding_sticks",) == refused(ADMIT, FORWARD, UNANSWERED, Retry(), Keep(3, 3, THERE))
    assert told(ADMIT, FORWARD, UNANSWERED, Retry(), FORWARD).outputs == (Send(HERE, ID),)


def test_an_update_of_its_own_needs_no_bus() -> None:
    """The delivery is admitted in the same transaction."""
    kept = told(ADMIT, Keep(3, 3, HERE))

    assert ("delivered", HERE, (Deliver(HERE, ID),)) == (kept.phase, kept.data.binding, kept.outputs)


def test_only_the_exact_receipt_delivers_it() -> None:
    """I13; what else is answered is tried again, with its class."""
    assert told(ADMIT, FORWARD, RECEIPT).phase == "delivered"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Acknowledged(3, 3, ok=False), "acknowledgement-rejected"),
        (Acknowledged(3, 3, ok=False, delivery=ID, update=7), "acknowledgement-rejected"),
        (Acknowledged(3, 3, ok=True), "durable-receipt-missing"),
        (Acknowledged(3, 3, ok=True, delivery=ID), "durable-receipt-mismatched"),
        (attrs.evolve(RECEIPT, update=8), "durable-receipt-mismatched"),
        (attrs.evolve(RECEIPT, delivery=delivery_id(KIND, THERE, 7)), "durable-receipt-mismatched"),
        (attrs.evolve(RECEIPT, delivery=delivery_id("leader.forwardCallback", HERE, 7)), "durable-receipt-mismatched"),
    ],
)
def test_no_other_answer_does(answer: Acknowledged, why: Failure) -> None:
    """M13b, M13c, M13d."""
    after = told(ADMIT, FORWARD, answer)

    assert ("waiting", why, (RetryIn(1_000),)) == (after.phase, after.data.failure, after.outputs)


def test_an_answer_of_an_attempt_that_is_over_is_nothing() -> None:
    """What it says will be said again."""
    assert () == refused(ADMIT, FORWARD, UNANSWERED, RECEIPT)
    assert () == refused(ADMIT, FORWARD, Resume(3, 3), RECEIPT)
    assert () == refused(ADMIT, FORWARD, RECEIPT, UNANSWERED)


def test_what_was_sent_in_vain_again_and_again_loses_its_place() -> None:
    """V5: nobody can tell an instance that is away from an update that no instance can take."""
    once: tuple[Happening, ...] = (FORWARD, UNANSWERED, Retry())

    assert not aside(told(ADMIT, *once * (PATIENCE - 1)).data)
    assert aside(told(ADMIT, *once * (PATIENCE - 1), FORWARD, Acknowledged(3, 3, ok=False)).data)
    assert aside(told(ADMIT, *once * PATIENCE).data)
    gone = Release(gone=True, admitted=False)
    assert not aside(told(ADMIT, *once * PATIENCE, gone).data), "that was another binding"


def test_what_has_reached_nobody_says_nothing_of_the_update() -> None:
    """An instance that is starting again finds its updates in their order."""
    once: tuple[Happening, ...] = (FORWARD, Failed(3, 3, "transport-failed"), Retry())
    after = told(ADMIT, *once * 10)

    assert (after.data.attempts, after.data.binding, aside(after.data)) == (0, HERE, False)


def test_what_no_line_can_hold_has_lost_its_place_at_once() -> None:
    """It is not sent; it waits for a person, or for the leader to serve that binding itself."""
    after = told(ADMIT, FORWARD, Failed(3, 3, "not-carriable"))

    assert (after.phase, after.data.attempts, aside(after.data)) == ("waiting", 0, True)
    assert told(ADMIT, FORWARD, Failed(3, 3, "not-carriable"), Retry(), Keep(3, 3, HERE)).phase == "delivered"


def test_nobody_there_is_waited_for() -> None:
    """L21: it is not dropped, not bound, and counts as no attempt."""
    waits = told(ADMIT, Unserved(3, 3))

    assert ("waiting", None, 0) == (waits.phase, waits.data.binding, waits.data.attempts)
    assert waits.data.failure == "recipient-generation-missing"
    assert told(ADMIT, FORWARD, UNANSWERED, Retry(), Unserved(3, 3)).outputs == (RetryIn(1_000),)
    assert told(ADMIT, Unserved(3, 3), Retry()).phase == "journaled"


def test_failures_wait_longer_each_time() -> None:
    """1, 2, 4... 60 s, for ever."""
    assert [retry_delay_ms(n) for n in (0, 1, 2, 3, 6, 7, 8, 10**9)] == [
        1_000,
        1_000,
        2_000,
        4_000,
        32_000,
        60_000,
        60_000,
        60_000,
    ]
    again = (FORWARD, UNANSWERED, Retry())
    assert told(ADMIT, *again, *again, FORWARD, UNANSWERED).outputs == (RetryIn(4_000, aside=True),)


def test_every_failure_has_one_class() -> None:
    """Retryable and terminal differ for whoever looks; both are tried again."""
    assert RETRYABLE | TERMINAL == set(typing.get_args(Failure))
    assert not RETRYABLE & TERMINAL
    assert {told(ADMIT, FORWARD, Failed(3, 3, why)).phase for why in RETRYABLE | TERMINAL} == {"waiting"}


def test_a_binding_that_is_gone_gives_it_back() -> None:
    """Unless it has it, as the transaction sees."""
    bound = (ADMIT, FORWARD, UNANSWERED)

    assert ("journaled", None) == (
        told(*bound, Release(True, False)).phase,
        told(*bound, Release(True, False)).data.binding,
    )
    assert told(*bound, Release(True, False), Forward(3, 3, THERE)).data.binding == THERE
    assert told(*bound, Retry(), Release(True, False)).data.binding is None
    assert ("binding_gone",) == refused(*bound, Release(False, False))
    assert ("not_admitted",) == refused(*bound, Release(True, True))
    assert () == refused(ADMIT, FORWARD, Release(True, False))


@pytest.mark.parametrize("before", [(ADMIT,), (ADMIT, FORWARD), (ADMIT, FORWARD, UNANSWERED)])
def test_a_person_discards_what_no_instance_has(before: tuple[Happening, ...]) -> None:
    """What an instance has is discarded there."""
    assert told(*before, Discard(admitted=False)).phase == "discarded"
    assert ("not_admitted",) == refused(*before, Discard(admitted=True))


@pytest.mark.parametrize(
    "over",
    [(ADMIT, Keep(3, 3, HERE)), (Skip(3, 3, 6),), (ADMIT, Discard(False))],
    ids=["delivered", "skipped", "discarded"],
)
def test_only_what_is_over_is_forgotten(over: tuple[Happening, ...]) -> None:
    """And then the offset stands between it and another admission."""
    assert told(*over, Forget()).phase == "absent"
    assert ("above_offset",) == refused(*over, Forget(), attrs.evolve(ADMIT, offset=7))
    for under_way in ((ADMIT,), (ADMIT, FORWARD), (ADMIT, FORWARD, UNANSWERED)):
        assert () == refused(*under_way, Forget())
