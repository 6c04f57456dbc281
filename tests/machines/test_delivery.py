"""One delivery at its instance, event by event: journaled once, answered again, executed never twice."""

from __future__ import annotations

from functools import reduce

import attrs
import pytest

from tenure.machines.admission_identity import delivery_id
from tenure.machines.chart import Refused, Step, step
from tenure.machines.delivery import (
    DELIVERY,
    Admit,
    Delivery,
    Discard,
    Forget,
    Happening,
    Insert,
    Output,
    Receive,
    Row,
    Settle,
)

KIND, HERE, THERE = "leader.forwardMessage", "manual:1:start:2", "manual:3:start:4"
ID = delivery_id(KIND, HERE, 7)
ADMIT = Admit(ID, KIND, HERE, 7, "body", row="live", bound=HERE, passed=True, room=True)
AGAIN = attrs.evolve(ADMIT, row="over", bound=None, room=False)


def told(*messages: Happening) -> Step[Delivery, Output]:
    """Where the last of the messages leads; all must be taken."""

    def one(before: Step[Delivery, Output], message: Happening) -> Step[Delivery, Output]:
        after = step(DELIVERY, before.phase, before.data, message)
        assert isinstance(after, Step), after
        return after

    return reduce(one, messages, Step(DELIVERY.initial, Delivery(HERE), ()))


def refused(*messages: Happening) -> tuple[str, ...]:
    """The guards that refuse the last of the messages; the others must be taken."""
    before = told(*messages[:-1])
    after = step(DELIVERY, before.phase, before.data, messages[-1])
    assert isinstance(after, Refused), after
    return after.guards


def test_it_is_journaled_and_then_answered() -> None:
    """The answer is an output of the transaction, to be performed after it."""
    journaled = told(ADMIT)

    assert ("journaled", Delivery(HERE, "body")) == (journaled.phase, journaled.data)
    assert journaled.outputs == (Insert(ID, 7), Receive(ID, 7))


@pytest.mark.parametrize(
    "before", [(ADMIT,), (ADMIT, Settle()), (ADMIT, Discard())], ids=["journaled", "settled", "discarded"]
)
def test_a_replay_gets_the_same_receipt_and_nothing_else(before: tuple[Happening, ...]) -> None:
    """I15, I16: also after the end, also where the update is over, also where nothing else finds room."""
    was, again = told(*before), told(*before, AGAIN)

    assert again.outputs == (Receive(ID, 7),)
    assert (was.phase, was.data) == (again.phase, again.data)
    assert ("same_body",) == refused(*before, attrs.evolve(AGAIN, body="another"))
    assert ("own_binding",) == refused(*before, attrs.evolve(AGAIN, binding=THERE))


@pytest.mark.parametrize(
    "changed",
    [
        {"delivery": delivery_id(KIND, THERE, 7)},
        {"delivery": delivery_id(KIND, HERE, 8)},
        {"kind": "leader.forwardEditedMessage"},
        {"update": 8},
    ],
)
def test_the_id_is_that_of_what_it_names(changed: dict[str, str | int]) -> None:
    """I14."""
    assert ("genuine_id",) == refused(attrs.evolve(ADMIT, **changed))


def test_it_is_for_the_binding_of_the_instance() -> None:
    """I17; the id is right, the place is not."""
    astray = attrs.evolve(ADMIT, binding=THERE, delivery=delivery_id(KIND, THERE, 7), bound=THERE)

    assert ("own_binding",) == refused(astray)


@pytest.mark.parametrize(
    ("row", "bound", "passed", "taken"),
    [
        ("live", HERE, True, True),
        ("live", THERE, True, False),
        ("live", None, True, False),
        ("over", HERE, True, False),
        ("none", None, False, True),
        ("none", None, True, False),
    ],
)
def test_what_is_not_wanted_here_any_more_is_refused(row: Row, bound: str | None, passed: bool, taken: bool) -> None:
    """An update without a row is another system's leader's, or was forgotten."""
    message = attrs.evolve(ADMIT, row=row, bound=bound, passed=passed)

    if taken:
        assert told(message).phase == "journaled"
    else:
        assert ("wanted_here",) == refused(message)


def test_what_finds_no_room_is_refused_before_anything_is_done() -> None:
    """I23."""
    assert ("has_room",) == refused(attrs.evolve(ADMIT, room=False))


@pytest.mark.parametrize("end", [Settle(), Discard()])
def test_its_tombstone_stands_while_it_may_come_again(end: Happening) -> None:
    """L9; then nothing of it is left."""
    assert ("replays_end",) == refused(ADMIT, end, Forget(wanted=True))
    gone = told(ADMIT, end, Forget(wanted=False))
    assert ("absent", Delivery(HERE)) == (gone.phase, gone.data)
    assert ("wanted_here",) == refused(ADMIT, end, Forget(wanted=False), AGAIN)


def test_what_is_under_way_is_not_trimmed_and_what_is_over_ends_once() -> None:
    """A journaled delivery is work."""
    assert () == refused(ADMIT, Forget(wanted=False))
    assert () == refused(ADMIT, Settle(), Discard())
    assert () == refused(ADMIT, Discard(), Settle())
