"""Whatever befalls a commit at whichever of its calls, the twin `FencedCommit` has a behaviour that is the same.

Before each call of the committer on the file system, and in each of its waits, anything may happen: owners take over,
renew, release, die, are paused; the registry is torn and mended; the committer is killed, and its command leaves
something behind. What happens, and what the committer records, are the labels of a path through the twin: after each
of them there is a state of the twin with the same phase, entry, guard and command.
"""

from __future__ import annotations

import random

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard import Guarded, GuardedFile
from tenure.adapters.files.lease import LeaseRuntime, Won
from tenure.adapters.files.registry import Registry
from tenure.adapters.lead import commit
from tenure.adapters.lead.commit import Bounds, Committer, Event, Verdict
from tenure.adapters.ports import Killed
from tenure.adapters.testing.faulty import Call, Fault, Kills
from tenure.machines.fenced_commit import FENCED_COMMIT, Output, Swept
from tenure.machines.identity import Epoch
from tenure.machines.laws import Kind
from tenure.machines.lease import Sight
from tenure.models.fenced_commit import OPEN, Config, FencedCommit, State

from ..files.lease_house import QUICK, House

COMMITTER = "c"
BUDGET = 99
RUNS = 300
COMMITS = 6
EVENTS: tuple[Event, ...] = ("nothing", "nothing", "ended", "interrupted")
MOVES = ("take", "renew", "release", "pass", "die", "tear", "mend", "come", "go", "stray ends")
BODIES = {
    (action.name, args): action.body
    for action in FencedCommit(Config((COMMITTER,), BUDGET)).actions()
    for args in action.args
}


class Stage:
    """A committer, an owner, what may happen to them, and the states of the twin that agree with it all."""

    def __init__(self, seed: int, kind: type[Committer] = Committer) -> None:
        self.chance = random.Random(seed)
        self.kind = kind
        self.house = House()
        self.states: set[State] = set(FencedCommit(Config((COMMITTER,), BUDGET)).initial())
        self.path: list[str] = []
        self.epoch = 0
        self.pid = 10
        self.inside = 0
        self.stray = self.alive = self.deaf = False
        self.torn: bytes | None = None
        self.dead = self.quiet = False
        self.owner: LeaseRuntime | None = None
        self.committer: Committer | None = None
        self._take()

    # -- the twin -----------------------------------------------------------------

    def label(self, *names: str, mine: bool = False) -> None:
        """These actions were taken, one after the other."""
        for name in names:
            args = (COMMITTER,) if mine else ()
            self.path.append(name)
            self.states = {after for state in self.states for after in BODIES[name, args](state, *args)}
            assert self.states, f"the twin does not take the last of {self.path}"

    def compare(self) -> None:
        """Of the states that the labels allow those that look like this one."""
        self.states = {state for state in self.states if self._looks_like(state)}
        assert self.states, f"after {self.path}: no such state"

    def _looks_like(self, state: State) -> bool:
        phase = self.committer.phase if self.committer is not None else "idle"
        node, command = state.node[COMMITTER], state.command[COMMITTER]
        entry = None if self.torn is not None else self.house.registry().get("default")
        return (
            node.phase == phase
            and (command.state != "none") == self.alive
            and state.stray == self.stray
            and state.readable == (self.torn is None)
            and (self.torn is not None or (state.entry.state == "none") == (entry is None))
            and (entry is None or entry["leaderEpoch"] == state.entry.epoch)
        )

    # -- what may happen ----------------------------------------------------------

    def happen(self) -> None:
        """Something, or nothing."""
        if self.quiet:
            return
        self.quiet = True
        if self.chance.random() < 0.3:
            getattr(self, "_" + self.chance.choice(MOVES).replace(" ", "_"))()
        self.quiet = False

    def plan(self, call: Call) -> Fault | None:
        """Before a call of the committer."""
        self.happen()
        return Kills() if self.chance.random() < 0.01 else None

    def befall(self) -> None:
        """In a wait of the committer."""
        self.happen()
        if self.chance.random() < 0.1:
            raise Killed

    def _take(self) -> None:
        self.pid += 1
        lease = self.house.process(self.pid).lease()
        view = lease.look()
        try:
            answer = lease.acquire("force", None if view.entry is None else view.entry.owner)
        except TenureError:
            return
        assert isinstance(answer, Won)
        if self.owner is not None:
            self.label("Come", "Take")
        self.owner, self.dead = lease, False

    def _renew(self) -> None:
        assert self.owner is not None
        if not self.dead and self.owner.refresh() == "mine":
            passed = {state for state in self.states if state.entry.state == "passed"}
            self.label("Come", "Renew" if passed else "Go")

    def _release(self) -> None:
        assert self.owner is not None
        if self.dead or self.owner.phase != "owner":
            return
        try:
            self.owner.release()
        except TenureError:
            return
        self.label("Come", "Release")

    def _pass(self) -> None:
        assert self.owner is not None
        self.house.pause(QUICK.stale_ms + 1)
        if any(state.entry.state == "fresh" for state in self.states):
            self.label("Pass")

    def _die(self) -> None:
        if not self.dead and any(state.entry.state in ("fresh", "passed") for state in self.states):
            self.house.die(self.pid_of_owner())
            self.dead = True
            self.label("Die")

    def pid_of_owner(self) -> int:
        assert self.owner is not None
        return self.owner.data.me.process.pid

    def _tear(self) -> None:
        if self.torn is None:
            self.torn = self.house.text()
            self.house.write(b'{"default": {')
            self.label("Tear")

    def _mend(self) -> None:
        if self.torn is not None:
            self.house.write(self.torn)
            self.torn = None
            self.label("Mend")

    def _come(self) -> None:
        """Somebody enters the guard, and stays there."""
        self.pid += 1
        ward = self.house.process(self.pid)
        entered: list[int] = []

        def stay(_: object) -> None:
            entered.append(self.pid)
            raise Killed

        try:
            GuardedFile(ward.ports, self.house.directory.registry, QUICK).run(stay, attempts=1)
        except (Killed, TenureError):
            if entered:
                self.inside = self.pid
                self.label("Come")

    def _go(self) -> None:
        """It dies there, which frees the guard as well."""
        if self.inside:
            self.house.die(self.inside)
            self.inside = 0
            self.label("Go")

    def _stray_ends(self) -> None:
        if self.stray:
            self.stray = False
            self.label("StrayEnds")

    # -- recorder -----------------------------------------------------------------

    def order(self) -> int:
        return 1

    def event(self, module: str, action: str, *rest: object) -> None:
        """The committer has taken a step of the twin."""
        if module != "FencedCommit":
            return
        if action == "Run":
            self.alive = True
        if action == "Kill":
            self.alive = False
        self.label(action, mine=True)
        self.compare()

    # -- command and lock ---------------------------------------------------------

    def start(self, epoch: Epoch) -> None:
        self.deaf = self.chance.random() < 0.5
        if self.deaf:
            self.label("Harden", mine=True)
        self.compare()

    def wait(self, timeout_ms: float) -> Event:
        self.befall()
        self.house.pause(int(timeout_ms))
        event: Event = self.chance.choice(EVENTS)
        if event == "ended":
            if not self.alive:
                return "nothing"
            self.alive = self.chance.random() < 0.5
        return event

    def pause(self, timeout_ms: float) -> None:
        self.befall()
        self.house.pause(50)

    def terminate(self) -> None:
        if self.alive and not self.deaf:
            self.alive = False
            self.label("Obey", mine=True)

    def destroy(self) -> None:
        self.alive = False

    def gone(self) -> bool:
        return not self.alive

    def take(self) -> bool:
        return not self.stray

    def close(self) -> None:
        return

    def holders(self) -> str:
        return "somebody"

    # -- one commit ---------------------------------------------------------------

    def commit(self) -> None:
        """By a new process, under some epoch, to its end or its death."""
        self.pid += 1
        pid = self.pid
        who = self.house.process(pid, self.plan, recorder=self)
        self.committer = self.kind(
            who.ports, self.house.directory, "default", QUICK, Bounds(1_000, 200), lambda: self, self, process=who.state
        )
        newest = max(state.entry.epoch for state in self.states)
        token = newest if self.chance.random() < 0.8 else self.chance.randint(1, newest)
        try:
            self.committer.run(token)
        except Killed:
            self._killed(pid)
        self.committer = None
        self.compare()

    def _killed(self, pid: int) -> None:
        """The kernel takes the command with it, but not what that has started."""
        assert self.committer is not None
        phase = self.committer.phase
        self.house.die(pid)
        if phase in OPEN:
            if self.alive:
                self.stray = self.chance.random() < 0.5
            self.alive = False
            self.label("Crash", mine=True)
        elif phase != "idle":
            self.label("Forget", mine=True)


def paths(kind: type[Committer] = Committer) -> set[str]:
    """The actions that many stages take together."""
    taken: set[str] = set()
    for seed in range(RUNS):
        stage = Stage(seed, kind)
        stage.compare()
        for _ in range(COMMITS):
            stage.commit()
        taken.update(stage.path)
    return taken


def test_every_behaviour_of_the_adapter_is_one_of_the_twin() -> None:
    """And between them they take every action of it but `Tell`, which says what somebody else was told."""
    assert paths() | {"Tell"} == {name for name, _ in BODIES}


@pytest.mark.parametrize("guard", [name for name, mark in FENCED_COMMIT.guards.items() if mark.kind is Kind.GUARD])
def test_a_machine_without_a_guard_is_found(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`inside` apart: this adapter never looks outside of the guard for it."""
    monkeypatch.setattr(commit, "FENCED_COMMIT", FENCED_COMMIT.without(guard))
    if guard == "inside":
        paths()
        return
    with pytest.raises(AssertionError):
        paths()


class Hasty(Committer):
    """Goes by what it read before it was inside."""

    def _read(self, *, inside: bool) -> tuple[Registry, Sight]:
        if not inside:
            self.first = super()._read(inside=False)
        registry, sight = self.first
        return registry, attrs.evolve(sight, inside=inside)


class Careless(Committer):
    """Does not look for what is left of a command."""

    def _sweep(self, output: Output) -> Output:
        return self._told(Swept(True))


class Impatient(Committer):
    """Leaves the guard to whoever is quick."""

    def _inside(self) -> Verdict:
        return self._look(Guarded("", 0))


@pytest.mark.parametrize("kind", [Hasty, Careless, Impatient])
def test_a_mutated_adapter_is_found(kind: type[Committer]) -> None:
    """By the first action that the twin does not take."""
    with pytest.raises(AssertionError):
        paths(kind)
