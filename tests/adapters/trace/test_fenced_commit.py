"""Commits of the real driver, in memory, are explained whatever befalls them; what was doctored is not."""

from __future__ import annotations

import random
from collections.abc import Callable

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.lease import LeaseRuntime, Won
from tenure.adapters.lead import commit
from tenure.adapters.lead.commit import Bounds, Committer
from tenure.adapters.lead.commit import Event as Happened
from tenure.adapters.ports import Killed
from tenure.adapters.testing.faulty import Call, Fault, Kills
from tenure.adapters.trace.api import MemoryRecorder
from tenure.adapters.trace.check import check
from tenure.adapters.trace.lines import Event, Trace
from tenure.adapters.trace.search import Limits
from tenure.machines.fenced_commit import FENCED_COMMIT
from tenure.machines.identity import Epoch

from ..files.lease_house import QUICK, House

MODULE = "FencedCommit"
LIMITS = Limits(places=30_000, seconds=20)
WAITS: tuple[Happened, ...] = ("nothing", "nothing", "ended", "interrupted")


class Market:
    """Owners and committers of one directory and one recording."""

    def __init__(self, seed: int, *, kills: bool = True) -> None:
        self.chance = random.Random(seed)
        self.kills = kills
        self.house = House()
        self.recorder = MemoryRecorder()
        self.pid = 10
        self.epochs: list[int] = []
        self.owner: LeaseRuntime | None = None
        self.quiet = self.alive = self.stray = self.dead = False

    # -- owners -------------------------------------------------------------------

    def take(self) -> None:
        """A new tenure, by force if it must be."""
        self.pid += 1
        lease = self.house.process(self.pid, recorder=self.recorder).lease()
        shown = lease.look().entry
        try:
            won = lease.acquire("force", None if shown is None else shown.owner)
        except TenureError:
            return
        assert isinstance(won, Won)
        self.owner, self.dead = lease, False
        self.epochs.append(won.epoch)

    def refresh(self) -> None:
        if self.owner is not None and not self.dead:
            self.owner.refresh()

    def release(self) -> None:
        if self.owner is not None and not self.dead and self.owner.phase == "owner":
            try:
                self.owner.release()
            except TenureError:
                return

    def pause(self) -> None:
        self.house.pause(QUICK.stale_ms + 1)

    def die(self) -> None:
        assert self.owner is not None
        self.dead = True
        self.house.die(self.owner.data.me.process.pid)

    def happen(self) -> None:
        """Something, or nothing."""
        if self.quiet or self.chance.random() < 0.8:
            return
        self.quiet = True
        moves = (self.take, self.refresh, self.refresh, self.release, self.pause, self.die)
        self.chance.choice(moves)()
        if self.stray:
            self.stray = self.chance.random() < 0.5
        self.quiet = False

    def plan(self, call: Call) -> Fault | None:
        """Before a call of the committer."""
        self.happen()
        return Kills() if self.kills and self.chance.random() < 0.01 else None

    # -- command and lock ---------------------------------------------------------

    def start(self, epoch: Epoch) -> None:
        if self.chance.random() < 0.1:
            raise TenureError("no process")
        self.alive = True

    def wait(self, timeout_ms: float) -> Happened:
        self.befall()
        self.house.pause(int(timeout_ms))
        event = self.chance.choice(WAITS)
        if event == "ended":
            if not self.alive:
                return "nothing"
            self.alive = self.chance.random() < 0.5
        return event

    def befall(self) -> None:
        self.happen()
        if self.kills and self.chance.random() < 0.1:
            raise Killed

    def pause_(self, timeout_ms: float) -> None:
        self.befall()
        self.house.pause(100)

    def terminate(self) -> None:
        self.alive = self.alive and self.chance.random() < 0.5

    def destroy(self) -> None:
        self.alive = self.alive and self.chance.random() < 0.2

    def gone(self) -> bool:
        return not self.alive

    # -- commits ------------------------------------------------------------------

    def commit(self) -> None:
        """By a new process, under a current epoch or an old one."""
        self.pid += 1
        pid = self.pid
        who = self.house.process(pid, self.plan, recorder=self.recorder)
        act = Act(self)
        committer = Committer(
            who.ports, self.house.directory, "default", QUICK, Bounds(1_000, 200), lambda: act, act, process=who.state
        )
        for _ in range(self.chance.randint(1, 2)):
            token = self.chance.choice(self.epochs) if self.epochs and self.chance.random() < 0.3 else self.newest()
            try:
                committer.run(token)
            except Killed:
                self.stray = self.alive and self.chance.random() < 0.5
                self.alive = False
                self.house.die(pid)
                return
            except TenureError:
                continue

    def newest(self) -> int:
        return self.epochs[-1] if self.epochs else 1

    def run(self, commits: int) -> list[Event]:
        """So many commits, and all that happens meanwhile."""
        for _ in range(commits):
            self.commit()
            self.happen()
            if self.chance.random() < 0.2:
                self.take()
        return self.recorder.events


@attrs.frozen
class Act:
    """Command and lock of the market, as the committer sees them."""

    market: Market

    def start(self, epoch: Epoch) -> None:
        self.market.start(epoch)

    def wait(self, timeout_ms: float) -> Happened:
        return self.market.wait(timeout_ms)

    def pause(self, timeout_ms: float) -> None:
        self.market.pause_(timeout_ms)

    def terminate(self) -> None:
        self.market.terminate()

    def destroy(self) -> None:
        self.market.destroy()

    def gone(self) -> bool:
        return self.market.gone()

    def take(self) -> bool:
        return not self.market.stray

    def close(self) -> None:
        return

    def holders(self) -> str:
        return "somebody"


def market(seed: int, commits: int = 25, **more: bool) -> list[Event]:
    """A recording. It has an owner first."""
    it = Market(seed, **more)
    it.take()
    return it.run(commits)


@pytest.mark.parametrize("seed", range(12))
def test_what_committers_record_is_explained(seed: int) -> None:
    """With owners that come, go, pass and die meanwhile, and committers that are killed anywhere."""
    events = market(seed)
    assert {"Run", "AskStale"} <= {e.action for e in events if e.module == MODULE}

    verdict = check(Trace(events), LIMITS)

    assert verdict, str(verdict)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_explained_without_the_owners(seed: int) -> None:
    """Owners of another system record nothing; what committers saw of them is believed."""
    events = renumbered([e for e in market(seed) if e.module == MODULE])

    verdict = check(events, LIMITS)

    assert verdict, str(verdict)


def renumbered(events: list[Event]) -> Trace:
    """With the numbers of the lines repaired."""
    for seq, event in enumerate(events, 1):
        event.seq = seq
    return Trace(events)


Doctor = Callable[[list[Event]], None]


def first(events: list[Event], action: str, after: int = 0) -> int:
    """The index of the first such event of a committer from `after` on."""
    return next(i for i, e in enumerate(events) if i >= after and e.module == MODULE and e.action == action)


def _an_older_epoch(events: list[Event]) -> None:
    """A command ran under the epoch before: every event of its commit says so, and what it saw does not."""
    new = max(e.tenure for e in events if e.module == MODULE and e.action == "Run" and isinstance(e.tenure, int))
    at = next(i for i, e in enumerate(events) if e.action == "Run" and e.tenure == new)
    for event in events:
        if event.node == events[at].node and event.tenure == new:
            event.tenure = new - 1


def _an_older_look(events: list[Event]) -> None:
    """... and what it saw as well: the owners say otherwise."""
    new = max(e.tenure for e in events if e.module == MODULE and e.action == "Run" and isinstance(e.tenure, int))
    at = next(i for i, e in enumerate(events) if e.action == "Run" and e.tenure == new)
    for event in events:
        if event.node == events[at].node and event.module == MODULE and event.tenure == new:
            event.tenure = new - 1
            if "id" in event.observed:
                event.observed = {**event.observed, "id": new - 1}


def _drops(action: str) -> Doctor:
    def drop(events: list[Event]) -> None:
        del events[first(events, action)]

    drop.__name__ = f"without_{action}"
    return drop


def _says_stale(events: list[Event]) -> None:
    """It was told that its tenure is over, by a look that showed that it is not."""
    event = events[first(events, "Run")]
    event.action, event.observed = "FindStale", {**event.observed, "phase": "stale"}


def _leaves_early(events: list[Event]) -> None:
    """The guard was left before the command had ended."""
    one = first(events, "End")
    two = first(events, "Leave", one)
    events[one], events[two] = events[two], events[one]


def _two_inside(events: list[Event]) -> None:
    """Somebody entered before the other had left."""
    one = first(events, "Leave")
    events[one].at += 1


def _has_all(events: list[Event]) -> bool:
    """Somebody entered, and a command ended by itself, so that there is something to be doctored."""
    return {"Run", "End", "Leave"} <= {e.action for e in events if e.module == MODULE}


@pytest.mark.parametrize(
    "doctor",
    [
        _an_older_epoch,
        _an_older_look,
        *(_drops(a) for a in ("Lock", "Enter", "Run", "End", "Leave")),
        _says_stale,
        _leaves_early,
        _two_inside,
    ],
)
def test_what_was_doctored_is_refused(doctor: Doctor) -> None:
    """Each is no behaviour of the model."""
    whole = [events for seed in range(9) if _has_all(events := market(seed, 50, kills=False))]
    assert len(whole) > 2
    for events in whole[:3]:
        doctor(events)
        verdict = check(renumbered(events), LIMITS)
        assert not verdict
        assert not verdict.limit


@pytest.mark.parametrize("guard", ["epoch_is_current", "lease_is_live"])
def test_a_driver_without_a_guard_is_refused(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its recording shows it, in one of a few runs at least."""
    monkeypatch.setattr(commit, "FENCED_COMMIT", FENCED_COMMIT.without(guard))

    verdicts = [check(Trace(market(seed)), LIMITS) for seed in range(6)]

    assert all(not v.limit for v in verdicts)
    assert not all(verdicts)
