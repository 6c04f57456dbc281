"""One entry of a request ledger, event by event: what is executed, joined, told again, refused, forgotten."""

from __future__ import annotations

from functools import reduce

import attrs
import pytest

from tenure.machines.chart import Refused, Step, step
from tenure.machines.request_ledger import (
    REQUEST_LEDGER,
    Ask,
    Entry,
    Evict,
    Execute,
    ExecuteAlone,
    Happening,
    Join,
    Kind,
    MakeRoom,
    Outcome,
    Output,
    Refuse,
    Replay,
    Settle,
    Stop,
    Tell,
)

LIMIT = 3
ASK = Ask("body", "other", held=0, settled=0, stands=True)
FULL = attrs.evolve(ASK, held=LIMIT)


def told(*messages: Happening) -> Step[Entry, Output]:
    """What an entry answers to the last of the messages; all must be taken."""

    def one(before: Step[Entry, Output], message: Happening) -> Step[Entry, Output]:
        after = step(REQUEST_LEDGER, before.phase, before.data, message)
        assert isinstance(after, Step), after
        return after

    return reduce(one, messages, Step(REQUEST_LEDGER.initial, Entry(LIMIT), ()))


@pytest.mark.parametrize(
    ("held", "settled", "outputs"),
    [
        (0, 0, (Execute(),)),
        (LIMIT - 1, 0, (Execute(),)),
        (LIMIT - 1, 1, (Execute(),)),
        (LIMIT, 1, (MakeRoom(), Execute())),
        (LIMIT, 0, (Refuse("overloaded"),)),
    ],
)
def test_there_is_room_as_long_as_something_is_over(held: int, settled: int, outputs: tuple[Output, ...]) -> None:
    """What is under way does not give way."""
    assert outputs == told(attrs.evolve(ASK, held=held, settled=settled)).outputs


@pytest.mark.parametrize("kind", ["register", "heartbeat", "other"])
def test_a_full_ledger_lets_heartbeats_pass_unrecorded(kind: Kind) -> None:
    """L20: a leader that has much to do is no dead leader. Nothing else passes, and nothing is left behind."""
    answered = told(attrs.evolve(FULL, kind=kind))

    assert (ExecuteAlone() if kind == "heartbeat" else Refuse("overloaded"),) == answered.outputs
    assert ("absent", Entry(LIMIT)) == (answered.phase, answered.data)


def test_a_repeated_request_joins_the_one_under_way() -> None:
    """At most once, also when the ledger is full meanwhile."""
    assert (Join(),) == told(ASK, FULL).outputs


@pytest.mark.parametrize("outcome", ["done", "refused", "unknown"])
def test_what_is_definite_or_unknown_is_told_again(outcome: Outcome) -> None:
    """And never executed again."""
    assert (Tell(),) == told(ASK, Settle(outcome)).outputs
    assert (Replay(),) == told(ASK, Settle(outcome), FULL).outputs


def test_a_failure_that_may_be_retried_is_forgotten_when_it_is_told() -> None:
    """L13: the next attempt is an attempt, whatever its body."""
    failed = told(ASK, Settle("failed"))

    assert ("absent", Entry(LIMIT), (Tell(),)) == (failed.phase, failed.data, failed.outputs)
    assert (Execute(),) == told(ASK, Settle("failed"), attrs.evolve(ASK, body="another")).outputs


@pytest.mark.parametrize("before", [(ASK,), (ASK, Settle("done"))])
def test_another_body_under_the_same_key_collides(before: tuple[Happening, ...]) -> None:
    """And leaves the entry as it was."""
    was, answered = told(*before), told(*before, attrs.evolve(ASK, body="another"))

    assert (Refuse("collision"),) == answered.outputs
    assert (was.phase, was.data) == (answered.phase, answered.data)


@pytest.mark.parametrize(
    ("kind", "outcome", "stands", "output"),
    [
        ("register", "done", True, Replay()),
        ("register", "done", False, Refuse("over")),
        ("register", "refused", False, Replay()),
        ("register", "unknown", False, Replay()),
        ("heartbeat", "done", True, Replay()),
        ("heartbeat", "done", False, Refuse("over")),
        ("other", "done", True, Replay()),
        ("other", "done", False, Refuse("over")),
        ("other", "unknown", False, Replay()),
    ],
)
def test_what_a_success_rests_on_has_to_stand(kind: Kind, outcome: Outcome, stands: bool, output: Output) -> None:
    """L14: it is refused as over, and not executed again."""
    again = attrs.evolve(ASK, kind=kind, stands=stands)

    assert (output,) == told(again, Settle(outcome), again).outputs


def test_what_gave_way_is_forgotten() -> None:
    """Nothing of it is left; only what is over can give way."""
    evicted = told(ASK, Settle("done"), Evict())
    executing = told(ASK)

    assert ("absent", Entry(LIMIT)) == (evicted.phase, evicted.data)
    assert step(REQUEST_LEDGER, executing.phase, executing.data, Evict()) == Refused("evict", "executing", ())


def test_a_server_that_stops_refuses_those_who_wait_and_whoever_comes() -> None:
    """A late outcome is nothing."""
    stopped = told(ASK, Stop())

    assert (Refuse("stopped"),) == stopped.outputs
    assert () == told(ASK, Settle("done"), Stop()).outputs == told(Stop()).outputs
    assert (Refuse("stopped"),) == told(Stop(), ASK).outputs
    assert step(REQUEST_LEDGER, stopped.phase, stopped.data, Settle("done")) == Refused("settle", "stopped", ())
