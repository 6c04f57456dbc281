"""One connect and its healing, event by event (locks.md 8; A28, A29, A32)."""

from __future__ import annotations

from functools import reduce

import pytest

from tenure.machines.chart import Refused, Step, step
from tenure.machines.runtime_recovery import (
    GUARD,
    REGISTRY,
    RUNTIME_RECOVERY,
    STATE,
    Confirm,
    Connect,
    Enter,
    Failed,
    Finish,
    Happening,
    Inspect,
    Look,
    Memory,
    MoveGuard,
    MoveRegistry,
    MoveState,
    Order,
    ReleaseEnded,
    Secure,
    SecureFailed,
    Started,
    StartFailed,
    SuspendEnded,
)

FRESH = Memory()
EVERYTHING = frozenset({GUARD, REGISTRY, STATE})
UNTIL_CONFIRM: tuple[Happening, ...] = (
    Connect(),
    StartFailed(),
    Look(alive=False, expired=True),
    SuspendEnded(stopped=True),
    ReleaseEnded(released=False),
    Enter("nobody"),
    Inspect(alive=False, expired=True, damage=EVERYTHING),
    MoveGuard(),
    Secure("nobody"),
)
UNOWNED = Confirm(alive=False, expired=True, mine=False, own_guard=True, damage=frozenset({REGISTRY, STATE}))


def told(*messages: Happening, memory: Memory = FRESH) -> Step[Memory, Order]:
    """What a machine that starts idle with `memory` answers to the last of the messages; all must be taken."""

    def one(before: Step[Memory, Order], message: Happening) -> Step[Memory, Order]:
        after = step(RUNTIME_RECOVERY, before.phase, before.data, message)
        assert isinstance(after, Step), after
        return after

    return reduce(one, messages, Step(RUNTIME_RECOVERY.initial, memory, ()))


def test_damage_is_healed_and_the_start_tried_once_more() -> None:
    """Guard first, then under the ownership guard the files, then both guards are left and the start begins again."""
    assert told(*UNTIL_CONFIRM[:-1]).outputs == ("quarantine_guard",)

    moving = (*UNTIL_CONFIRM, UNOWNED, MoveState(), MoveRegistry())
    assert told(*moving).outputs == ("quarantine_registry",)

    again = told(*moving, Finish())
    assert Step("starting", Memory(again=True), ("leave_guards", "start")) == again
    assert Step("connected", Memory(polling=True), ()) == told(*moving, Finish(), Started())


def test_connect_heals_once() -> None:
    """A start that throws after healing is reported; the next connect may heal again."""
    healed = (*UNTIL_CONFIRM, UNOWNED, MoveState(), MoveRegistry(), Finish())

    assert Step("blocked", Memory(again=True), ("say_restart",)) == told(*healed, StartFailed())
    assert told(*healed, StartFailed(), Connect(), StartFailed()).phase == "looking"


def test_guards_are_left_only_when_all_that_was_seen_is_moved() -> None:
    """Finishing early, or moving what was not damaged, is refused by name."""
    moving = told(*UNTIL_CONFIRM, UNOWNED, MoveState())

    assert Refused("finish", "moving", ("all_is_moved",)) == step(RUNTIME_RECOVERY, "moving", moving.data, Finish())
    assert Refused("move_state", "moving", ("state_was_damaged",)) == step(
        RUNTIME_RECOVERY, "moving", moving.data, MoveState()
    )


@pytest.mark.parametrize("expired", [True, False])
def test_an_expired_heartbeat_is_no_live_owner(expired: bool) -> None:
    """A28: a pid that lives under an old heartbeat is somebody else's by now."""
    looked = told(Connect(), StartFailed(), Look(alive=True, expired=expired))

    assert ("suspending" if expired else "blocked") == looked.phase


def test_the_own_pid_is_passed_over_as_guard_holder_only() -> None:
    """A29: an entry of this very process is an owner; the own ownership guard is not."""
    own = Confirm(alive=True, expired=False, mine=True, own_guard=True, damage=frozenset({STATE}))

    assert Step("blocked", Memory(), ("leave_guards", "say_blocked")) == told(*UNTIL_CONFIRM, own)
    assert told(*UNTIL_CONFIRM, UNOWNED).phase == "moving"


@pytest.mark.parametrize("came", [True, False])
def test_an_owner_that_came_between_the_looks_stops_it(came: bool) -> None:
    """S36: the look under the ownership guard decides, not the first one."""
    second = Confirm(alive=came, expired=not came, mine=False, own_guard=True, damage=frozenset({STATE}))

    assert ("blocked" if came else "moving") == told(*UNTIL_CONFIRM, second).phase


@pytest.mark.parametrize("released", [True, False])
def test_a_release_that_fails_does_not_abort(released: bool) -> None:
    """A32, first half: the release throws on the damaged registry; healing goes on."""
    assert told(*UNTIL_CONFIRM[:4], ReleaseEnded(released)).phase == "entering"


def test_a_poller_that_cannot_be_stopped_aborts() -> None:
    """A32, second half: nothing is reset under a running poller, and the memory still knows that it runs."""
    stuck = told(*UNTIL_CONFIRM[:3], SuspendEnded(stopped=False), memory=Memory(polling=True))

    assert Step("blocked", Memory(polling=True), ("say_blocked",)) == stuck


@pytest.mark.parametrize(
    ("standing", "enters"), [("nobody", True), ("abandoned", True), ("held", False), ("damaged", False)]
)
def test_a_guard_is_entered_when_free_or_its_holder_is_dead(standing: str, enters: bool) -> None:
    """Both guards: a live holder is waited for, a dead one is not, an unverifiable one keeps everybody out."""
    for phase, message in (("entering", Enter), ("clearing", Secure)):
        taken = step(RUNTIME_RECOVERY, phase, Memory(), message(standing))  # type: ignore[arg-type]
        assert enters is isinstance(taken, Step)


def test_errors_leave_the_guards_that_are_held() -> None:
    """An error before, inside the first, and inside both guards."""
    assert told(*UNTIL_CONFIRM[:5], Failed()).outputs == ("say_blocked",)
    assert told(*UNTIL_CONFIRM[:7], Failed()).outputs == ("leave_recovery_guard", "say_blocked")
    assert told(*UNTIL_CONFIRM[:8], SecureFailed()).outputs == ("leave_recovery_guard", "say_blocked")
    assert told(*UNTIL_CONFIRM, UNOWNED, Failed()).outputs == ("leave_guards", "say_blocked")
