"""One fenced commit, event by event: when a command runs, what the caller is told, and which epochs are equal."""

from __future__ import annotations

from functools import reduce

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.machines.chart import Refused, Step, step
from tenure.machines.entry import Entry
from tenure.machines.fenced_commit import (
    FENCED_COMMIT,
    Ask,
    Commit,
    Destroy,
    Ended,
    EnterGuard,
    Forget,
    GiveUp,
    GraceOver,
    Happening,
    Interrupt,
    Lock,
    Look,
    Output,
    RunCommand,
    Swept,
    Tell,
    Terminate,
    TimeUp,
    TryLock,
    epoch_named,
    same_epoch,
)
from tenure.machines.identity import GONE, RUNNING, UNKNOWN, Birth, Epoch, Process, Sighting
from tenure.machines.lease import MAX_EPOCH, STALE_HEARTBEAT_MS, Sight

ME = Process(1, Birth(1, "boot", 4))
OWNER = Process(2, Birth(7, "boot", 4))
ENTRY = Entry(OWNER.pid, "/", "i", 1_000, 5, 9, birth=OWNER.birth, stamp_ms=100)
SIGHT = Sight(True, True, "default", ENTRY, Sighting(RUNNING, 7), wall_ms=1_000, monotonic_ms=100)
ASKED = Ask(5, SIGHT)
INSIDE = (ASKED, Lock(free=True))
RUNS = (*INSIDE, Look(SIGHT))


def told(*messages: Happening) -> Step[Commit, Output]:
    """What an idle committer answers to the last of the messages; all must be taken."""

    def one(before: Step[Commit, Output], message: Happening) -> Step[Commit, Output]:
        after = step(FENCED_COMMIT, before.phase, before.data, message)
        assert isinstance(after, Step), after
        return after

    return reduce(one, messages, Step(FENCED_COMMIT.initial, Commit(ME, STALE_HEARTBEAT_MS), ()))


def looks(sight: Sight, token: Epoch = 5) -> str:
    """Where a look leads, the first one outside the guard and the one inside it."""
    asked = told(Ask(token, attrs.evolve(sight, inside=False))).phase
    inside: Step[Commit, Output] = Step("entering", Commit(ME, STALE_HEARTBEAT_MS, token), ())
    looked = step(FENCED_COMMIT, inside.phase, inside.data, Look(sight))
    assert isinstance(looked, Step)
    assert asked == {"running": "waiting"}.get(looked.phase, looked.phase)
    return looked.phase


def test_the_lock_comes_before_the_guard_and_both_before_the_command() -> None:
    """Each step is asked for only after the one before it has succeeded."""
    assert told(ASKED).outputs == (TryLock(),)
    assert told(*INSIDE).outputs == (EnterGuard(),)
    assert told(*RUNS).outputs == (RunCommand(5),)
    assert told(*RUNS, Ended()).outputs == (Terminate(),)
    assert told(*RUNS, Ended(), Swept(gone=True)) == Step(
        "done", Commit(ME, STALE_HEARTBEAT_MS, 5, "ended"), (Tell("ended"),)
    )


def test_while_an_earlier_command_lives_nothing_begins() -> None:
    """The lock is tried again and again, then the caller hears that it is taken."""
    taken = told(ASKED)

    assert step(FENCED_COMMIT, taken.phase, taken.data, Lock(free=False)) == Refused(
        "lock", "waiting", ("previous_command_is_over",)
    )
    assert told(ASKED, GiveUp()).outputs == told(*INSIDE, GiveUp()).outputs == (Tell("busy"),)


@pytest.mark.parametrize(
    ("sight", "phase"),
    [
        (SIGHT, "running"),
        (attrs.evolve(SIGHT, monotonic_ms=100 + STALE_HEARTBEAT_MS), "running"),
        (attrs.evolve(SIGHT, seen=Sighting(UNKNOWN)), "running"),
        (attrs.evolve(SIGHT, monotonic_ms=101 + STALE_HEARTBEAT_MS), "stale"),
        (attrs.evolve(SIGHT, seen=Sighting(GONE)), "stale"),
        (attrs.evolve(SIGHT, seen=Sighting(RUNNING, 8)), "stale"),
        (attrs.evolve(SIGHT, entry=None), "stale"),
        (attrs.evolve(SIGHT, entry=attrs.evolve(ENTRY, leader_epoch=6)), "stale"),
        (attrs.evolve(SIGHT, entry=attrs.evolve(ENTRY, leader_epoch=4)), "stale"),
        (attrs.evolve(SIGHT, entry=attrs.evolve(ENTRY, leader_epoch="5")), "stale"),
        (attrs.evolve(SIGHT, entry=attrs.evolve(ENTRY, leader_epoch=None)), "stale"),
        (attrs.evolve(SIGHT, readable=False, entry=None), "failed"),
    ],
)
def test_only_the_epoch_of_a_live_lease_runs(sight: Sight, phase: str) -> None:
    """A lease that has passed is not live, though nobody has replaced it yet; what is unreadable says nothing."""
    assert phase == looks(sight)


@pytest.mark.parametrize(
    ("wall_ms", "phase"), [(1_000 + STALE_HEARTBEAT_MS, "running"), (1_001 + STALE_HEARTBEAT_MS, "stale")]
)
def test_a_foreign_owner_is_judged_by_its_heartbeat(wall_ms: int, phase: str) -> None:
    """It has neither stamp nor birth, and its epoch is a string."""
    entry = attrs.evolve(ENTRY, leader_epoch="e-1", birth=None, stamp_ms=None)
    sight = attrs.evolve(SIGHT, entry=entry, seen=Sighting(RUNNING), wall_ms=wall_ms)

    assert phase == looks(sight, "e-1")


def test_the_lease_of_my_own_process_passes_as_well() -> None:
    """What runs in the owner's process is no nearer to it than anything else."""
    entry = attrs.evolve(ENTRY, pid=ME.pid, birth=ME.birth)
    sight = attrs.evolve(SIGHT, entry=entry, seen=Sighting(RUNNING, ME.birth.ticks))

    assert "running" == looks(sight)
    assert "stale" == looks(attrs.evolve(sight, monotonic_ms=101 + STALE_HEARTBEAT_MS))


@pytest.mark.parametrize(
    ("sight", "answer"),
    [(attrs.evolve(SIGHT, entry=None), "stale"), (attrs.evolve(SIGHT, readable=False, entry=None), "unreadable")],
)
def test_a_hopeless_commit_opens_nothing(sight: Sight, answer: str) -> None:
    """No lock is tried and no guard is entered; then the next one may come."""
    refused = told(Ask(5, sight))

    assert [Tell(answer)] == list(refused.outputs)  # type: ignore[arg-type]
    assert ("idle", Commit(ME, STALE_HEARTBEAT_MS)) == (
        told(Ask(5, sight), Forget()).phase,
        told(Ask(5, sight), Forget()).data,
    )


def test_a_look_outside_the_guard_decides_nothing() -> None:
    """Refused, and inert."""
    inside = told(*INSIDE)
    outside = Look(attrs.evolve(SIGHT, inside=False))

    assert step(FENCED_COMMIT, inside.phase, inside.data, outside) == Refused("look", "entering", ("inside",))


@pytest.mark.parametrize(
    ("message", "answer"), [(Ended(), "ended"), (TimeUp(), "timed_out"), (Interrupt(), "interrupted")]
)
def test_the_guard_is_left_when_nothing_of_the_command_is_left(message: Happening, answer: str) -> None:
    """However it ended: asked, then forced, then told; what it ended by is what the caller hears."""
    ending = told(*RUNS, message)

    assert (Terminate(),) == ending.outputs
    assert step(FENCED_COMMIT, ending.phase, ending.data, Swept(gone=False)) == Refused(
        "swept", "ending", ("ended_before_leaving",)
    )
    assert (Destroy(),) == told(*RUNS, message, GraceOver()).outputs
    assert [Tell(answer)] == list(told(*RUNS, message, GraceOver(), Swept(gone=True)).outputs)  # type: ignore[arg-type]


@pytest.mark.parametrize("before", [(ASKED,), INSIDE])
def test_an_interrupt_before_the_command_ends_the_commit(before: tuple[Happening, ...]) -> None:
    """Nothing has run."""
    assert (Tell("interrupted"),) == told(*before, Interrupt()).outputs


@pytest.mark.parametrize(
    ("text", "epoch"),
    [
        ("0", 0), ("7", 7), (str(MAX_EPOCH), MAX_EPOCH), ("-1", "-1"), ("+1", "+1"), ("07", "07"), (" 7", " 7"),
        ("7.0", "7.0"), ("1e3", "1e3"), ("²", "²"), ("٣", "٣"), ("9" * 5_000, "9" * 5_000), ("a-b", "a-b"),
    ],
)  # fmt: skip
def test_an_epoch_is_a_plain_integer_or_a_name(text: str, epoch: Epoch) -> None:
    """What is not spelled as ours are names a foreign epoch."""
    named = epoch_named(text)

    assert (type(epoch), epoch) == (type(named), named)


@given(st.text(min_size=1))
def test_an_epoch_says_what_was_written(text: str) -> None:
    """No two texts name one epoch."""
    assert text == str(epoch_named(text))


@given(st.one_of(st.integers(), st.floats(allow_nan=False), st.text()))
def test_an_epoch_equals_itself_and_never_its_spelling(epoch: Epoch) -> None:
    """locks.md 2.1: the number 1 is not the string "1"."""
    assert same_epoch(epoch, epoch)
    assert not same_epoch(epoch, str(epoch) if not isinstance(epoch, str) else 1)
