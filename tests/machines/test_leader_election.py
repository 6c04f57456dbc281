"""The machine driven as an adapter drives it: the scenarios of its kind (scenarios.md A) and the holes K2, K9-K12.

`World` is the smallest honest adapter: a registry of JSON values, a high-water mark, two clocks and a table of
processes. It enters, reads, feeds, performs and answers; everything that decides is `step`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tenure.machines.chart import Refused, Step, step
from tenure.machines.entry import parse_entry, render_entry
from tenure.machines.identity import GONE, RUNNING, Birth, Process, Sighting, next_generation
from tenure.machines.leader_election import LEADER_ELECTION
from tenure.machines.leader_messages import (
    Acquire,
    Commit,
    DeleteEntry,
    Die,
    Elect,
    Force,
    Happening,
    Landed,
    Look,
    Lost,
    Me,
    Mint,
    Outcome,
    Owned,
    Raised,
    RaiseHighWater,
    Refresh,
    Release,
    Resolve,
    Resume,
    RunEffect,
    Runtime,
    Send,
    SendEffect,
    Settle,
    Start,
    Supersede,
    Switch,
    WriteEntry,
)
from tenure.machines.lease import STALE_HEARTBEAT_MS, Sight, next_epoch

LIMIT = STALE_HEARTBEAT_MS


@attrs.define
class World:
    """What runtimes share: the registry as JSON values, the mark, the clocks, and which processes live."""

    registry: dict[str, Any] | None = attrs.field(factory=dict)  # None: it cannot be read
    high_water: int = 0
    wall_ms: int = 1_000_000
    monotonic_ms: int = 500_000
    alive: dict[int, int] = attrs.field(factory=dict)  # start ticks by pid
    births: int = 0
    generations: dict[int, int] = attrs.field(factory=dict)
    effects: list[str] = attrs.field(factory=list)

    def spawn(self, pid: int) -> int:
        """A process begins under `pid`; its start ticks."""
        self.births += 1
        self.alive[pid] = self.births
        return self.births

    def passes(self, ms: int) -> None:
        """Time goes by on both clocks."""
        self.wall_ms += ms
        self.monotonic_ms += ms


@attrs.define
class Session:
    """One runtime of process `pid`, and its adapter."""

    world: World
    pid: int
    name: str
    cwd: str = "/home"
    key: str = "default"
    phase: str = "off"
    data: Runtime = attrs.field(init=False)
    said: list[Any] = attrs.field(factory=list)
    outcomes: list[Outcome] = attrs.field(factory=list)  # of the next writes; then they succeed
    lost_writes_land: bool = False
    mark_fails: bool = False
    refused: tuple[str, ...] = ()
    taken: bool = False

    def __attrs_post_init__(self) -> None:
        world = self.world
        ticks = world.alive.get(self.pid) or world.spawn(self.pid)
        me = Me(Process(self.pid, Birth(ticks, "boot", 1)), self.cwd, self.name, LIMIT)
        self.data = Runtime(me, self.key)
        previous = world.generations.get(self.pid, 0)
        world.generations[self.pid] = next_generation(world.wall_ms, previous)
        self.feed(Start(world.generations[self.pid], previous))

    def feed(self, message: Happening) -> tuple[Any, ...]:
        """Tell the machine; its outputs, none for a refusal."""
        answer = step(LEADER_ELECTION, self.phase, self.data, message)
        self.taken = isinstance(answer, Step)
        if isinstance(answer, Refused):
            self.refused = answer.guards
            return ()
        assert isinstance(answer, Step)
        self.refused = ()
        self.phase, self.data = answer.phase, answer.data
        self.said += [output for output in answer.outputs if isinstance(output, (Owned, Lost))]
        return answer.outputs

    def sight(self, inside: bool) -> Sight:
        world = self.world
        registry = world.registry
        entry = None if registry is None else parse_entry(registry.get(self.data.key))
        seen = Sighting(GONE)
        if entry is not None and entry.pid in world.alive:
            seen = Sighting(RUNNING, world.alive[entry.pid])
        return Sight(inside, registry is not None, self.data.key, entry, seen, world.wall_ms, world.monotonic_ms)

    def run(self, kind: Callable[[Sight], Happening]) -> bool:
        """One operation in one transaction; whether the machine took it."""
        outputs = self.feed(kind(self.sight(True)))
        taken = self.taken
        self.finish(outputs)
        if self.phase == "minting":
            self.finish(self.mint())
        return taken

    def mint(self) -> tuple[Any, ...]:
        """Mint an epoch and raise the mark."""
        world, entry = self.world, self.sight(True).entry
        epoch = None if entry is None else entry.leader_epoch
        outputs = self.feed(Mint(next_epoch(world.high_water, epoch), world.high_water, epoch))
        assert [RaiseHighWater] == [type(output) for output in outputs]
        if not self.mark_fails:
            world.high_water = outputs[0].epoch
        return self.feed(Raised(not self.mark_fails, world.wall_ms, world.monotonic_ms))

    def finish(self, outputs: tuple[Any, ...]) -> None:
        """Perform the outputs and tell the machine how that went."""
        world = self.world
        for output in outputs:
            if isinstance(output, (WriteEntry, DeleteEntry)):
                outcome = self.outcomes.pop(0) if self.outcomes else Outcome.SUCCEEDED
                lands = outcome is Outcome.SUCCEEDED or (outcome is Outcome.UNKNOWN and self.lost_writes_land)
                if lands and world.registry is not None:
                    world.registry = dict(world.registry)
                    world.registry.pop(output.key, None)
                    if isinstance(output, WriteEntry):
                        world.registry[output.key] = render_entry(output.entry)
                self.feed(Settle(outcome))
            elif isinstance(output, RunEffect):
                world.effects.append(f"{self.name}:{output.epoch}")
                self.feed(Landed())

    def look(self) -> None:
        """A plain read."""
        self.feed(Look(self.sight(False)))

    def send(self) -> bool:
        """Send a fenced effect; whether the machine let it."""
        return any(isinstance(output, SendEffect) for output in self.feed(Send(self.world.monotonic_ms)))

    def die(self) -> None:
        """The process is killed."""
        self.world.alive.pop(self.pid, None)
        self.feed(Die())


@pytest.fixture
def world() -> World:
    return World()


def owner_of(world: World, key: str = "default") -> str | None:
    assert world.registry is not None
    value = world.registry.get(key)
    return None if value is None else value["instanceId"]


# -- the scenarios ---------------------------------------------------------------------------------------------------


def test_a01_two_acquire(world: World) -> None:
    """One is told yes, the other no, whichever order; a decision on what was read outside is refused by name."""
    p, q = Session(world, 1, "p"), Session(world, 2, "q")

    p.feed(Acquire(p.sight(False)))
    assert "inside" in p.refused
    assert [True, False] == [p.run(Acquire), q.run(Acquire)]
    assert "p" == owner_of(world)


def test_a02_a_sibling_profile_survives(world: World) -> None:
    """Acquire, refresh and release touch one key; what is foreign there stays byte for byte."""
    assert world.registry is not None
    world.registry["elsewhere"] = {"pid": "not ours to judge", "extra": [1]}
    p, q = Session(world, 1, "p"), Session(world, 2, "q", key="work")

    assert p.run(Acquire)
    assert q.run(Acquire)
    assert p.run(Refresh)
    assert p.run(Release)
    assert ["elsewhere", "work"] == sorted(world.registry)
    assert {"pid": "not ours to judge", "extra": [1]} == world.registry["elsewhere"]


def test_a04_force_is_over_the_owner_that_was_shown(world: World) -> None:
    """P was shown, R owns meanwhile: the force is refused; shown R, it succeeds."""
    p, q, r = Session(world, 1, "p"), Session(world, 2, "q"), Session(world, 3, "r")
    p.run(Acquire)
    q.look()
    p.run(Release)
    r.run(Acquire)

    assert not q.run(Force)
    assert ("owner_was_shown",) == q.refused
    q.look()
    assert q.run(Force)
    assert "q" == owner_of(world)


def test_a05_a_release_deletes_only_its_own(world: World) -> None:
    """Neither a bystander nor a displaced owner frees somebody else's key, stale or not."""
    p, q, r = Session(world, 1, "p"), Session(world, 2, "q"), Session(world, 3, "r")
    q.run(Acquire)
    world.passes(LIMIT + 1)
    assert not p.run(Release)
    r.run(Acquire)

    assert not q.run(Release)
    assert q.refused == ("mine_to_release",)
    assert "r" == owner_of(world)


def test_a07_within_a_process_only_forward(world: World) -> None:
    """The newer runtime takes over by itself, the older one never again, also when the lease has passed (S18, V9)."""
    old = Session(world, 1, "old")
    new = Session(world, 1, "new")
    old.run(Acquire)

    assert new.run(Supersede)
    old.look()
    assert "idle" == old.phase
    world.passes(LIMIT + 1)
    for kind in (Acquire, Elect, Force, Supersede, Resume):
        old.look()
        assert not old.run(kind)
    assert "new" == owner_of(world)


def test_a08_an_equal_instance_id_owns_nothing(world: World) -> None:
    """Two runtimes of one process with one id: the second is no owner until it supersedes by generation."""
    first, second = Session(world, 1, "1:5"), Session(world, 1, "1:5")
    first.run(Acquire)

    second.look()
    assert "idle" == second.phase
    assert not second.run(Acquire)
    assert second.run(Supersede)
    assert not first.run(Commit)


def test_a10_epochs_never_repeat(world: World) -> None:
    """However often a key is freed, and with the clock standing still, each tenure has an epoch of its own."""
    epochs = []
    for pid in (1, 2, 1, 2):
        session = Session(world, pid, f"{pid}")
        session.run(Acquire)
        epochs.append(session.said[-1].epoch)
        session.run(Release)

    assert [1, 2, 3, 4] == epochs


def test_a_foreign_integer_epoch_is_passed_over(world: World) -> None:
    """An owner of the other system with a number above our mark: the next tenure is above both."""
    assert world.registry is not None
    world.registry["default"] = {"pid": 9, "leaderEpoch": 41, "instanceId": "9:1"}
    p = Session(world, 1, "p")

    assert p.run(Acquire)
    assert 42 == p.said[-1].epoch == world.high_water


def test_a11_a_tenure_is_of_one_key(world: World) -> None:
    """After a switch of profile, nothing is done to either key in the name of the other, and nothing is forgotten."""
    p, q = Session(world, 1, "p"), Session(world, 2, "q", key="work")
    p.run(Acquire)
    q.run(Acquire)
    p.feed(Switch("work"))

    p.look()
    for kind in (Refresh, Release, Commit):
        assert not p.run(kind)
        assert ("same_key",) == p.refused
    assert "owner" == p.phase
    p.feed(Switch("default"))
    assert p.run(Refresh)


def test_a13_a_living_pid_with_a_dead_lease_blocks_nobody(world: World) -> None:
    """The lease decides, not the pid."""
    p, q = Session(world, 1, "p"), Session(world, 2, "q")
    p.run(Acquire)
    world.passes(LIMIT)
    assert not q.run(Acquire)
    world.passes(1)
    assert q.run(Acquire)


def test_a14_an_effect_of_a_displaced_owner_does_not_run(world: World) -> None:
    """The effect runs inside the transaction of the exact owner, or not at all."""
    p, q = Session(world, 1, "p"), Session(world, 2, "q")
    p.run(Acquire)
    world.passes(LIMIT + 1)
    q.run(Acquire)
    q.run(Commit)

    assert not p.run(Commit)
    p.feed(Commit(p.sight(False)))
    assert ("commit_inside",) == p.refused
    assert ["q:2"] == world.effects


def test_a49_an_election_sees_a_refresh(world: World) -> None:
    """L looked stale, refreshed, and stays."""
    leader, follower = Session(world, 1, "l"), Session(world, 2, "f")
    leader.run(Acquire)
    world.passes(LIMIT + 1)
    follower.look()
    leader.run(Refresh)

    assert not follower.run(Elect)
    assert "still_over" in follower.refused
    assert "l" == owner_of(world)


def test_a50_to_have_seen_nobody_is_no_wildcard(world: World) -> None:
    """P acquired after F saw nobody, and even P's death is no leave for F's election until F has seen P."""
    p, follower = Session(world, 1, "p"), Session(world, 2, "f")
    follower.look()
    p.run(Acquire)
    p.die()

    assert not follower.run(Elect)
    assert "saw_somebody" in follower.refused
    follower.look()
    assert follower.run(Elect)


def test_a38_a_session_resumes_exactly_what_was_left(world: World) -> None:
    """S33: over what it saw, if that is over; it creates nothing, and takes nothing from whoever came meanwhile."""
    p, q = Session(world, 1, "p"), Session(world, 2, "q")
    q.look()
    assert not q.run(Resume)
    assert q.refused == ("still_the_one_left",)
    p.run(Acquire)
    p.die()
    assert not q.run(Resume), "it has not seen p"

    q.look()
    r = Session(world, 3, "r")
    r.run(Acquire)
    r.die()
    assert not q.run(Resume), "r is over as well, but it is not who was seen"
    assert "r" == owner_of(world)
    q.look()
    r = Session(world, 3, "r")
    assert q.run(Resume)
    assert Owned("default", 3, "resume") == q.said[-1]


def test_a_resume_waits_for_a_living_owner(world: World) -> None:
    """To have seen an owner is no leave to replace it: not before its lease is over."""
    p, q = Session(world, 1, "p"), Session(world, 2, "q")
    p.run(Acquire)
    q.look()
    world.passes(LIMIT)

    assert not q.run(Resume)
    assert {"still_over", "newer_generation"} == set(q.refused)
    world.passes(1)
    assert q.run(Resume)


def test_a_reload_resumes_the_lease_of_the_older_runtime(world: World) -> None:
    """9.4: the same process, and exactly the entry that was seen; never back."""
    old = Session(world, 1, "old")
    new = Session(world, 1, "new")
    old.run(Acquire)

    assert not new.run(Resume)
    new.look()
    assert new.run(Resume)
    assert "new" == owner_of(world)
    old.look()  # learns that it is displaced
    old.look()
    assert not old.run(Resume)


# -- the holes -------------------------------------------------------------------------------------------------------


def test_k2_an_entry_of_a_dead_process_that_had_my_pid(world: World) -> None:
    """A restart in another directory under the same pid takes over at once."""
    first = Session(world, 7, "7:1")
    first.run(Acquire)
    first.die()
    again = Session(world, 7, "7:2", cwd="/elsewhere")

    assert again.run(Acquire)
    assert "7:2" == owner_of(world)


@pytest.mark.parametrize("lands", [True, False])
def test_k9_an_acquisition_whose_write_is_unknown(world: World, lands: bool) -> None:
    """The runtime is in doubt, acts under nothing, and knows after reading again."""
    p = Session(world, 1, "p", outcomes=[Outcome.UNKNOWN], lost_writes_land=lands)
    p.run(Acquire)

    assert "doubtful" == p.phase
    assert not p.send()
    assert not p.run(Commit)
    p.run(Resolve)
    assert ("owner" if lands else "idle") == p.phase
    assert lands == p.send()


def test_k9_a_failed_write_changes_no_memory(world: World) -> None:
    """Neither does a failed acquisition own, nor a failed release free, nor a failed refresh renew."""
    p = Session(world, 1, "p", outcomes=[Outcome.FAILED])
    p.run(Acquire)
    assert "idle" == p.phase
    assert not p.said

    p.run(Acquire)
    p.outcomes = [Outcome.FAILED, Outcome.FAILED]
    world.passes(LIMIT)
    p.run(Refresh)
    world.passes(1)
    assert not p.send()
    p.run(Release)
    assert "owner" == p.phase
    assert "p" == owner_of(world)


@pytest.mark.parametrize("lands", [True, False])
def test_k9_a_release_whose_write_is_unknown(world: World, lands: bool) -> None:
    """In doubt the runtime sends nothing; reading again tells whether it still has something to release."""
    p = Session(world, 1, "p", lost_writes_land=lands)
    p.run(Acquire)
    p.outcomes = [Outcome.UNKNOWN]
    p.run(Release)

    assert not p.send()
    p.run(Resolve)
    assert ("idle" if lands else "owner") == p.phase


def test_no_entry_without_its_mark(world: World) -> None:
    """The mark cannot be made durable: nothing is written, and nothing is owned."""
    p = Session(world, 1, "p", mark_fails=True)
    p.run(Acquire)

    assert "idle" == p.phase
    assert world.registry == {}
    assert world.high_water == 0


def test_k11_past_its_own_lease_an_owner_is_silent(world: World) -> None:
    """A paused owner wakes up and sends nothing, whoever owns by now; a refresh in time gives it back its voice."""
    p = Session(world, 1, "p")
    p.run(Acquire)
    assert p.send()
    world.passes(LIMIT + 1)

    assert not p.send()
    assert ("own_lease_holds",) == p.refused
    p.run(Refresh)
    assert p.send()


def test_a_refresh_counts_from_its_start(world: World) -> None:
    """A runtime that is paused inside its refresh has the lease that it wrote, not one from its waking up."""
    p = Session(world, 1, "p")
    p.run(Acquire)
    outputs = p.feed(Refresh(p.sight(True)))
    world.passes(LIMIT + 1)
    p.finish(outputs)

    assert "owner" == p.phase
    assert not p.send()


@pytest.mark.parametrize("clock_step", [-10 * LIMIT, 10 * LIMIT])
def test_k12_a_step_of_the_wall_clock(world: World, clock_step: int) -> None:
    """It neither evicts a living owner nor shields one that hangs."""
    p, q = Session(world, 1, "p"), Session(world, 2, "q")
    p.run(Acquire)
    world.wall_ms += clock_step

    assert not q.run(Acquire)
    world.monotonic_ms += LIMIT + 1
    assert q.run(Acquire)


def test_s12_an_unreadable_registry_is_left_alone(world: World) -> None:
    """Nothing is decided on it, and an owner does not take it for a loss."""
    p, q = Session(world, 1, "p"), Session(world, 2, "q")
    p.run(Acquire)
    world.registry = None

    for session, kinds in ((p, (Refresh, Release, Commit)), (q, (Acquire, Elect, Force, Supersede, Resume))):
        session.look()
        for kind in kinds:
            assert not session.run(kind)
    assert "owner" == p.phase


def test_a_displaced_owner_learns_it_from_its_refresh(world: World) -> None:
    """It says so once, with its epoch, and the new owner's entry is untouched."""
    p, q = Session(world, 1, "p"), Session(world, 2, "q")
    p.run(Acquire)
    world.passes(LIMIT + 1)
    q.run(Acquire)
    before = dict(world.registry or {})
    p.run(Refresh)

    assert [Owned("default", 1, "plain"), Lost("default", 1)] == p.said
    assert before == world.registry


def test_a_refresh_keeps_the_secret_and_drops_a_foreign_socket(world: World) -> None:
    """locks.md 7.2: the stored secret is kept unless I have one; the socket is mine or none."""
    assert world.registry is not None
    p = Session(world, 1, "p")
    p.run(Acquire)
    world.registry["default"] |= {"busSecret": "stored", "busSocketPath": "/not/mine"}
    p.run(Refresh)

    assert "stored" == world.registry["default"]["busSecret"]
    assert "busSocketPath" not in world.registry["default"]


def test_inside_an_operation_nothing_else_begins(world: World) -> None:
    """A refresh or an acquisition inside an effect is refused at once; the other system spins for two seconds (K13)."""
    p = Session(world, 1, "p")
    p.run(Acquire)
    p.feed(Commit(p.sight(True)))

    assert "committing" == p.phase
    for kind in (Acquire, Refresh, Release, Commit):
        before = p.phase, p.data
        p.feed(kind(p.sight(True)))
        assert before == (p.phase, p.data)
