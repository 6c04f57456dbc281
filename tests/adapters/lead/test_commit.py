"""A commit in memory and virtual time: what runs, what does not, and what is left, with every call failing or the last.

The command is an `Act`: it does nothing, but sees to it that the guard stands while it runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard import GuardedFile, GuardLost
from tenure.adapters.files.lease import LeaseRuntime, Won
from tenure.adapters.lead.commit import Bounds, Committer, Event, Verdict
from tenure.adapters.ports import Killed, Recorder
from tenure.adapters.testing.faulty import ERRORS, Fails, Kills, Plan, at
from tenure.machines.identity import Epoch

from ..files.lease_house import QUICK, Dweller, House

BOUNDS = Bounds(1_000, 200)
CHANGES = frozenset({"make_directory", "create", "rename", "unlink", "remove_directory"})


@attrs.define
class Act:
    """A command that ends after `lasts_ms`, leaves something behind when it `leaves`, and may be `deaf` to SIGTERM;
    at `asked_ms` of its waiting somebody asks the committer to end."""

    house: House
    lasts_ms: int | None = 10
    leaves: bool = False
    deaf: bool = False
    asked_ms: int | None = None
    fails: BaseException | None = None
    meanwhile: Callable[[], None] = lambda: None
    log: list[str] = attrs.field(factory=list)
    epochs: list[Epoch] = attrs.field(factory=list)
    waited_ms: float = 0.0
    ends: float | None = None
    ended: bool = False
    rest: bool = False

    def _guarded(self) -> bool:
        return self.house.inner.kind(self.house.directory.guard) == "directory"

    def start(self, epoch: Epoch) -> None:
        assert self._guarded()
        if self.fails is not None:
            raise self.fails
        self.log.append("start")
        self.epochs.append(epoch)
        self.rest = True
        self.ends = None if self.lasts_ms is None else self.house.clock.monotonic + self.lasts_ms

    def wait(self, timeout_ms: float) -> Event:
        clock = self.house.clock
        until = clock.monotonic + timeout_ms
        if self.ends is not None and not self.ended and self.ends <= until:
            clock.advance(self.ends - clock.monotonic)
            self.ended, self.rest = True, self.leaves
            return "ended"
        self.waited_ms += timeout_ms
        clock.advance(timeout_ms)
        self.meanwhile()
        if self.asked_ms is not None and self.waited_ms >= self.asked_ms:
            self.asked_ms = None
            return "interrupted"
        return "nothing"

    def pause(self, timeout_ms: float) -> None:
        self.house.clock.advance(timeout_ms)
        assert self._guarded()

    def terminate(self) -> None:
        assert self._guarded()
        self.log.append("terminate")
        if not self.deaf:
            self.rest = False

    def destroy(self) -> None:
        assert self._guarded()
        if self.log[-1] != "destroy":
            self.log.append("destroy")
        self.rest = False

    def gone(self) -> bool:
        return not self.rest


@attrs.define
class Padlock:
    """A lock in memory. `free_at`: how many attempts fail."""

    free_at: int = 0
    opened: int = 0
    tries: int = 0
    closed: int = 0
    then: Callable[[], None] = lambda: None

    def open(self) -> Padlock:
        self.opened += 1
        return self

    def take(self) -> bool:
        self.tries += 1
        if self.tries <= self.free_at:
            return False
        self.then()
        return True

    def close(self) -> None:
        self.closed += 1

    def holders(self) -> str:
        return "pid 77 (sleep)"


@attrs.define
class Scene:
    """An owner of epoch 1, pid 2, and a committer, pid 3."""

    house: House
    owner: LeaseRuntime
    who: Dweller
    act: Act
    lock: Padlock
    committer: Committer

    def run(self, token: Epoch = 1) -> Verdict:
        """One commit; whatever it does, its guard and its lock are given up, and the command is gone."""
        try:
            return self.committer.run(token)
        finally:
            assert self.lock.opened == self.lock.closed
            assert self.act.gone()

    @property
    def free(self) -> bool:
        """Nothing stands at the guard's path, nor beside it."""
        return [] == self.house.left()


def scene(plan: Plan | None = None, recorder: Recorder | None = None) -> Scene:
    """Everything is well."""
    house = House()
    owner = house.process(2).lease()
    assert isinstance(owner.acquire("plain"), Won)
    who, act, lock = house.process(3, plan, recorder=recorder), Act(house), Padlock()
    made = Committer(who.ports, house.directory, "default", QUICK, BOUNDS, lock.open, act, process=who.state)
    return Scene(house, owner, who, act, lock, made)


# -- what runs ---------------------------------------------------------------------


def test_the_current_epoch_of_a_live_lease_runs() -> None:
    """Once, with the epoch, inside; then everything is given up, and the machine is ready for the next."""
    it = scene()

    assert Verdict("ended") == it.run()
    assert (["start", "terminate"], [1]) == (it.act.log, it.act.epochs)
    assert it.free
    assert "idle" == it.committer.phase


def test_a_foreign_owner_has_a_string() -> None:
    """A process of the other system, live by its heartbeat; the number is not the string."""
    it = scene()
    it.house.first.start(50, 9)
    entry = {"pid": 50, "instanceId": "50:1", "leaderEpoch": "7", "heartbeatMs": it.house.clock.wall}
    it.house.write({"default": entry})

    assert "stale" == it.run(7).answer
    assert "ended" == it.run("7").answer


def test_the_recording_has_the_actions_of_the_twin() -> None:
    """DESIGN 8: numbered inside the transaction."""

    class Kept:
        def __init__(self) -> None:
            self.said: list[tuple[str, int]] = []

        def order(self) -> int:
            return 7

        def event(self, module: str, action: str, node: str, number: int, *rest: object) -> None:
            if module == "FencedCommit":
                self.said.append((action, number))

    kept = Kept()
    it = scene(recorder=kept)
    it.act.deaf = it.act.leaves = True
    it.run()

    inside = ["Enter", "Run", "End", "Kill", "Leave"]
    assert [("Ask", 0), ("Lock", 0), *((name, 7) for name in inside)] == kept.said[:-1]
    assert ("Forget", 0) == kept.said[-1]


# -- what does not -----------------------------------------------------------------


STALE: dict[str, tuple[Callable[[Scene], None], Epoch, str]] = {
    "an older one": (lambda it: None, 0, "epoch 0 is not current, default is at epoch 1 of pid 2"),
    "a newer one": (lambda it: None, 2, "epoch 2 is not current, default is at epoch 1 of pid 2"),
    "a string": (lambda it: None, "1", "epoch '1' is not current, default is at epoch 1 of pid 2"),
    "two lines": (lambda it: None, "a\nb", r"epoch 'a\nb' is not current"),
    "nobody owns": (lambda it: it.owner.release(), 1, "epoch 1 is over, nobody owns default"),
    "no file": (lambda it: it.house.inner.unlink(it.house.directory.registry), 1, "nobody owns default"),
    "no epoch": (lambda it: it.house.write({"default": {"pid": 2}}), 1, "pid 2 owns default without an epoch"),
    "passed": (lambda it: it.house.pause(8_001), 1, "its lease has passed: not renewed for 8.0 s"),
    "dead": (lambda it: it.house.die(2), 1, "its owner, pid 2, is dead"),
    "reborn": (lambda it: it.house.first.start(2, 9), 1, "its owner, pid 2, is dead"),
    "old heartbeat": (
        lambda it: it.house.write({"default": {"pid": 2, "leaderEpoch": 1, "heartbeatMs": 5}}),
        1,
        "its lease has passed: the heartbeat is old",
    ),
}


@pytest.mark.parametrize(("change", "token", "said"), STALE.values(), ids=list(STALE))
def test_a_stale_commit_opens_nothing(change: Callable[[Scene], None], token: Epoch, said: str) -> None:
    """No lock, no guard, no command: a read, and a line that says which epoch is current."""
    it = scene()
    change(it)

    verdict = it.run(token)
    assert "stale" == verdict.answer
    assert said in verdict.said
    assert "\n" not in verdict.said
    assert ([], 0) == (it.act.log, it.lock.opened)
    assert not [call for call in it.who.files.calls if call.name in CHANGES]


DAMAGE = [
    b"", b"{", b"[]", b"null", b"\xff", b'{"default": 3}', b'{"default": []}', b'{"default": {"pid": "2"}}',
    b'{"default": {"pid": true, "leaderEpoch": 1}}', b'{"default": {"pid": 2}} x',
]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGE)
def test_a_damaged_registry_says_nothing_and_is_left_alone(text: bytes) -> None:
    """One line that names the file; neither stale nor current."""
    it = scene()
    it.house.write(text)

    verdict = it.run()
    assert "unreadable" == verdict.answer
    assert it.house.directory.registry in verdict.said
    assert ([], 0, text) == (it.act.log, it.lock.opened, it.house.text())
    assert not [call for call in it.who.files.calls if call.name in CHANGES]


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (lambda it: it.owner.release(), "stale"),
        (lambda it: it.house.pause(8_001), "stale"),
        (lambda it: it.house.die(2), "stale"),
        (lambda it: it.house.write(b"{"), "unreadable"),
    ],
)
def test_what_changes_before_the_guard_is_seen_inside(change: Callable[[Scene], None], answer: str) -> None:
    """The first look is a courtesy; the second one decides."""
    it = scene()
    it.lock.then = lambda: change(it)

    assert answer == it.run().answer
    assert [] == it.act.log
    assert it.free


# -- how it ends -------------------------------------------------------------------


def others_wait(it: Scene) -> None:
    """Nobody gets in, and the owner stays."""
    with pytest.raises(TenureError):
        GuardedFile(it.house.process(9).ports, it.house.directory.registry, QUICK).run(lambda _: None, attempts=1)


@pytest.mark.parametrize("deaf", [False, True])
def test_time_is_up(deaf: bool) -> None:
    """SIGTERM at the bound, SIGKILL after the grace, and the guard is left when nothing is left."""
    it = scene()
    it.act.lasts_ms, it.act.deaf = None, deaf
    it.act.meanwhile = lambda: others_wait(it)
    before = it.house.clock.monotonic

    verdict = it.run()
    assert "timed_out" == verdict.answer
    assert "1 s" in verdict.said
    assert ["start", "terminate", *(["destroy"] if deaf else [])] == it.act.log
    took = it.house.clock.monotonic - before
    assert BOUNDS.run_ms <= took <= BOUNDS.run_ms + 2 * BOUNDS.grace_ms
    assert it.free


def test_what_a_command_leaves_behind_is_ended_as_well() -> None:
    """It ended by itself, and that is what the caller hears."""
    it = scene()
    it.act.leaves = it.act.deaf = True

    assert Verdict("ended") == it.run()
    assert ["start", "terminate", "destroy"] == it.act.log
    assert it.free


def test_an_interrupt_ends_the_command_first() -> None:
    """Then the guard is left."""
    it = scene()
    it.act.lasts_ms, it.act.asked_ms = None, 1

    assert Verdict("interrupted") == it.run()
    assert ["start", "terminate"] == it.act.log
    assert it.free


def test_an_interrupt_is_heard_while_the_lock_is_waited_for() -> None:
    """And while the guard is."""
    it = scene()
    it.lock.free_at, it.act.asked_ms = 9, 1
    assert Verdict("interrupted") == it.run()

    it = scene()
    it.act.asked_ms = 1
    inside = GuardedFile(it.house.process(9).ports, it.house.directory.registry, QUICK)
    assert Verdict("interrupted") == inside.run(lambda _: it.run())
    assert [] == it.act.log


def test_a_busy_lock_is_tried_again_and_then_named() -> None:
    """Its holders are said, and nobody waited inside the guard."""
    it = scene()
    it.lock.free_at = QUICK.attempts - 1
    assert "ended" == it.run().answer

    it = scene()
    it.lock.free_at = QUICK.attempts
    verdict = it.run()
    assert "busy" == verdict.answer
    assert "commit.lock: pid 77 (sleep); nothing was run" in verdict.said
    assert [] == it.act.log


def test_a_busy_guard_is_tried_again_and_then_named() -> None:
    """Whoever is inside is said by pid; a dead one holds nobody up."""
    it = scene()
    ward = it.house.process(9)
    inside = GuardedFile(ward.ports, it.house.directory.registry, QUICK)
    verdict = inside.run(lambda _: it.run())
    assert ("busy", []) == (verdict.answer, it.act.log)
    assert "pid 9" in verdict.said

    it = scene(None)
    ward = it.house.process(9, at(10**6, Kills()))

    def die(_: object) -> None:
        ward.files.plan = lambda call: Kills()
        it.house.die(9)

    with pytest.raises(Killed):
        GuardedFile(ward.ports, it.house.directory.registry, QUICK).run(die)
    assert "ended" == it.run().answer


def test_a_damaged_guard_is_left_alone() -> None:
    """Nobody can tell who is inside: one line, and a person decides."""
    it = scene()
    it.house.inner.create(it.house.directory.guard, b"")

    verdict = it.run()
    assert ("busy", []) == (verdict.answer, it.act.log)
    assert f"{it.house.directory.guard}: " in verdict.said
    assert "tenure doctor" in verdict.said
    assert b"" == it.house.inner.read(it.house.directory.guard)


def test_a_guard_that_was_taken_away_is_said_with_what_has_run() -> None:
    """X1: somebody tampered. The command has run, and whether alone nobody knows."""
    it = scene()
    it.act.lasts_ms, it.act.asked_ms = None, 1
    guard = it.house.directory.guard

    def tamper() -> None:
        it.house.inner.rename(guard, f"{guard}.mine")
        it.house.inner.make_directory(guard)

    it.act.meanwhile = tamper

    with pytest.raises(GuardLost, match="the command has run"):
        it.run()
    assert ["start", "terminate"] == it.act.log
    assert "idle" == it.committer.phase


@pytest.mark.parametrize("fault", [TenureError("no process"), KeyboardInterrupt(), RuntimeError()])
def test_a_fault_leaves_neither_guard_nor_command(fault: BaseException) -> None:
    """Whatever is raised inside."""
    it = scene()
    it.act.fails = fault

    with pytest.raises(type(fault)):
        it.run()
    assert it.free
    assert "idle" == it.committer.phase


# -- every call fails, or is the last ----------------------------------------------


def calls() -> int:
    it = scene()
    it.run()
    return len(it.who.files.calls)


@pytest.mark.parametrize("number", range(calls()))
@pytest.mark.parametrize("when", ["before", "after"])
def test_with_any_call_failing_nothing_runs_outside_the_guard(number: int, when: str) -> None:
    """`Act` sees to the guard. Whoever hears that it ended has had it run once; whoever does not, at most once."""
    for error in ERRORS:
        it = scene(at(number, Fails(error, when)))  # type: ignore[arg-type]
        try:
            verdict = it.run()
        except GuardLost:
            assert 1 == it.act.log.count("start")
            continue
        except TenureError:
            assert [] == it.act.log
        else:
            assert (verdict.answer == "ended") == (it.act.log == ["start", "terminate"]), verdict
        it.house.pause(60_000)
        others = GuardedFile(it.house.process(9).ports, it.house.directory.registry, QUICK)
        assert others.run(lambda _: True)


@pytest.mark.parametrize("number", range(calls()))
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_any_call_it_holds_nobody_up(number: int, when: str) -> None:
    """A guard that it died in is taken from it, and the registry is as it was."""
    it = scene(at(number, Kills(when)))  # type: ignore[arg-type]
    text = it.house.text()
    with pytest.raises(Killed):
        it.committer.run(1)
    it.house.die(3)

    others = GuardedFile(it.house.process(9).ports, it.house.directory.registry, QUICK)
    assert others.run(lambda _: it.house.text()) == text


def test_other_keys_are_none_of_our_business() -> None:
    """The registry is read only; two profiles have two epochs."""
    it = scene()
    other = it.house.process(5).lease("work")
    answer = other.acquire("plain")
    assert isinstance(answer, Won)
    text = it.house.text()

    assert "stale" == it.run(answer.epoch).answer
    assert "ended" == it.run(1).answer
    assert text == it.house.text()
    assert text is not None
    assert {"default", "work"} == json.loads(text).keys()
