"""Any order of operations, faults, deaths, pauses and clock steps: what the specification promises holds of the files.

Three processes share one directory, one of them with two runtimes of one key; a key of another program lies beside.
The invariants are those of `spec/LeaderElection.tla`, asked of the registry on disk and of what the runtimes answer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tenure.adapters.errors import TenureError
from tenure.adapters.files.lease import AcquireMode, Held, LeaseRuntime, NotOwner, Won
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.ports import Killed
from tenure.adapters.testing.faulty import ERRORS, Call, Fails, Fault, Kills
from tenure.machines.entry import Entry, parse_entry
from tenure.machines.identity import RUNNING, Owner, Sighting, same_owner
from tenure.machines.lease import Sight, classify

from .lease_house import Dweller, House

OTHERS = b'{ "@other/tool" :{"x":1.0,"y":"\\u0041"} , "work":{"pid":50,"n":1e3}'
LEASE_MS = 8_000
FOREIGN = 50
HOLDING = ("owner", "doubtful")
NAMES = ("a", "b1", "b2", "c")
PIDS = {"a": 11, "b1": 12, "b2": 12, "c": 13}

names = st.sampled_from(NAMES)
_fails = st.builds(Fails, st.sampled_from(ERRORS), st.sampled_from(["before", "after"]))
_kills = st.builds(Kills, st.sampled_from(["before", "after"]))
Disturbance = tuple[int | str, Fault]
"""At the call with that number (from 0), or at each call of that name on the registry itself."""
_disturbances = (
    st.tuples(st.integers(0, 24), _fails),
    st.tuples(st.integers(0, 24), _kills),
    st.tuples(st.sampled_from(["read", "rename"]), _fails),
)
faults: st.SearchStrategy[Disturbance | None] = st.integers(0, 9).flatmap(
    lambda n: _disturbances[n] if n < len(_disturbances) else st.none()
)


class Leases(RuleBasedStateMachine):
    """Runtimes by name; a process that dies takes its runtimes with it, and comes back as another birth."""

    def __init__(self) -> None:
        super().__init__()
        self.house = self.make_house()
        self.ticks = dict.fromkeys(set(PIDS.values()), 0)
        self.dwellers: dict[int, Dweller] = {}
        self.leases: dict[str, LeaseRuntime] = {}
        self.highest = 0
        self.landed = 0
        """The epoch of the last effect that ran inside a transaction."""
        self.evicted: set[int] = set()
        """Epochs that were replaced in their time, by force or by a newer runtime."""

    def make_house(self) -> House:
        return House()

    @initialize()
    def begin(self) -> None:
        self.house.write(OTHERS + b"}")
        for pid in sorted(self.ticks):
            self.start(pid)

    def start(self, pid: int) -> None:
        self.ticks[pid] += 1
        self.dwellers[pid] = self.house.process(pid, ticks=self.ticks[pid])
        for name in NAMES:
            if PIDS[name] == pid:
                self.leases[name] = self.dwellers[pid].lease()

    # -- what the files say ------------------------------------------------------------------------------------------

    def entry(self) -> Entry | None:
        return parse_entry(self.house.registry().get("default"))

    def owns(self, name: str, entry: Entry | None) -> bool:
        """Whether the entry is the tenure in the memory of that runtime."""
        tenure = self.leases[name].data.tenure if name in self.leases else None
        return tenure is not None and same_owner(tenure.owner, None if entry is None else entry.owner)

    def stale_to(self, name: str, entry: Entry) -> bool:
        """Whether the entry's lease is over, as this test sees it: a proven death, or the stamp."""
        me = self.leases[name].data.me.process
        sight = Sight(
            True,
            True,
            "default",
            entry,
            self.house.first.sighting(entry.pid),
            self.house.clock.wall,
            self.house.clock.monotonic,
        )
        return classify(entry, sight, me, LEASE_MS) == "stale"

    # -- what happens --------------------------------------------------------------------------------------------------

    def ask(self, name: str, fault: Disturbance | None, operation: Callable[[LeaseRuntime], object]) -> object:
        """An operation of one runtime, undisturbed or not; None when it raised or the process died."""
        lease, dweller = self.leases[name], self.dwellers[PIDS[name]]
        if fault is not None:
            first, (where, what) = len(dweller.files.calls), fault
            registry = self.house.directory.registry

            def plan(call: Call) -> Fault | None:
                here = call.name == where and registry in call.paths
                return what if here or call.number - first == where else None

            dweller.files.plan = plan
        try:
            return operation(lease)
        except TenureError:
            return None
        except Killed:
            self.die(PIDS[name])
            return None
        finally:
            dweller.files.plan = None

    def die(self, pid: int) -> None:
        self.house.die(pid)
        self.start(pid)

    @rule(
        name=names,
        fault=faults,
        mode=st.sampled_from(["plain", "plain", "force", "elect", "resume", "supersede"]),
        expects=st.sampled_from(["shown", "standing", "nobody"]),
    )
    def acquire(self, name: str, fault: Disturbance | None, mode: AcquireMode, expects: str) -> None:
        before = self.entry()
        lease = self.leases[name]
        expected: Owner | None = None
        if expects == "shown":
            expected = lease.data.shown
        elif expects == "standing" and before is not None:
            expected = before.owner
        owned = self.owns(name, before)
        answer = self.ask(name, fault, lambda lease: lease.acquire(mode, expected))
        if isinstance(answer, Won):
            after = self.entry()
            assert self.owns(name, after)
            assert ("owner", answer.epoch) == (lease.phase, lease.epoch)
            if owned:
                assert answer.how in ("kept", "resolved")
            else:
                assert answer.epoch > self.highest, "FreshEpoch_S20"
                self.replaced(name, before, mode, expected)
        if isinstance(answer, Held):
            assert "idle" == lease.phase
            assert not owned
            if mode == "plain" and before is not None:
                assert not self.stale_to(name, before), "EventuallyOwned_V4: what is over is taken at once"
        self.note(before)

    def replaced(self, name: str, was: Entry | None, mode: str, expected: Owner | None) -> None:
        """ReplaceOnlyObserved, and S18: over whom one may win, and how."""
        if was is None:
            assert mode not in ("resume", "supersede")
            return
        me = self.leases[name].data
        own_process = (was.pid, was.birth) == (me.me.process.pid, me.me.process.birth)
        if mode in ("elect", "resume"):
            assert same_owner(expected, was.owner), "S16"
        if own_process:
            assert mode != "elect"
            assert isinstance(was.runtime_generation, int)
            assert me.generation > was.runtime_generation, "S18"
        elif not self.stale_to(name, was):
            assert mode == "force", "S15"
            assert same_owner(expected, was.owner), "S15"

    @rule(name=names, fault=faults)
    def refresh(self, name: str, fault: Disturbance | None) -> None:
        before, lease = self.entry(), self.leases[name]
        owned, doubtful = self.owns(name, before), lease.phase == "doubtful"
        saw = self.ask(name, fault, lambda lease: lease.refresh())
        if saw == "mine":
            assert owned
            assert self.owns(name, self.entry())
        if saw == "other":
            assert not owned
            assert "idle" == lease.phase
        if fault is None:
            assert saw == ("mine" if owned else "other") or doubtful
        self.note(before)

    @rule(name=names, fault=faults)
    def release(self, name: str, fault: Disturbance | None) -> None:
        before, lease = self.entry(), self.leases[name]
        owned = self.owns(name, before)
        self.ask(name, fault, lambda lease: lease.release())
        if lease.phase == "idle" and lease is self.leases[name]:
            after = self.entry()
            assert (after is None) if owned else (after == before), "S23"
        self.note(before)

    @rule(name=names, fault=faults)
    def commit(self, name: str, fault: Disturbance | None) -> None:
        before = self.entry()
        owned = self.owns(name, before)
        ran: list[int] = []

        def effect(epoch: int) -> None:
            assert self.owns(name, self.entry()), "NoStaleEffect_S24"
            ran.append(epoch)

        try:
            self.ask(name, fault, lambda lease: lease.commit(effect))
        except NotOwner:
            assert not ran
        if ran:
            assert owned
            assert ran[0] >= self.landed, "NoStaleEffect_A14"
            self.landed = ran[0]
        self.note(before)

    @rule(name=names)
    def look(self, name: str) -> None:
        entry = self.entry()
        view = self.leases[name].look()
        assert entry == view.entry
        assert self.owns(name, entry) == view.mine

    @rule(name=names)
    def send(self, name: str) -> None:
        epoch = self.leases[name].may_send()
        if epoch is not None:
            entry = self.entry()
            mine = entry is not None and entry.leader_epoch == epoch
            assert mine or epoch in self.evicted, "NoStaleEffect_K11"
            assert not self.leases[name].lease_passed()

    @rule(duration_ms=st.sampled_from([1, 2_000, 7_999, 8_000, 8_001, 20_000]))
    def pause(self, duration_ms: int) -> None:
        self.house.pause(duration_ms)

    @rule(
        what=st.one_of(
            st.tuples(st.just("clock"), st.sampled_from([-3_600_000, -9_000, 9_000, 3_600_000])),
            st.tuples(st.just("suspend"), st.sampled_from([5_000, 9_000])),
            st.tuples(st.just("crash"), st.sampled_from([FOREIGN, *sorted(set(PIDS.values()))])),
        )
    )
    def disturb(self, what: tuple[str, int]) -> None:
        """The wall clock is set, the machine sleeps, a process dies."""
        match what:
            case ("clock", by_ms):
                self.house.clock.step(by_ms)
            case ("suspend", duration_ms):
                self.house.clock.suspend(duration_ms)
            case (_, pid):
                self.house.die(pid) if pid == FOREIGN else self.die(pid)

    @rule(epoch=st.sampled_from(["uuid", 1]))
    def foreign_takes(self, epoch: int | str) -> None:
        """A process of the other system takes a free key: no birth, no stamp, an epoch that our mark does not know."""
        if self.entry() is None:
            self.house.first.start(FOREIGN, 1)
            number = f'"{epoch}"' if isinstance(epoch, str) else self.house.mark() + 1
            heartbeat = self.house.clock.wall
            added = f',"default":{{"pid":{FOREIGN},"heartbeatMs":{heartbeat},"leaderEpoch":{number}}}}}'
            self.house.write(OTHERS + added.encode())

    def note(self, before: Entry | None) -> None:
        """What an operation has done to the entry: remembered for the invariants."""
        after = self.entry()
        for entry in (before, after):
            if entry is not None and isinstance(entry.leader_epoch, int):
                self.highest = max(self.highest, entry.leader_epoch)
        if before is not None and after is not None and not same_owner(before.owner, after.owner):
            fresh = before.stamp_ms is not None and self.house.clock.monotonic - before.stamp_ms <= LEASE_MS
            if fresh and isinstance(before.leader_epoch, int):
                self.evicted.add(before.leader_epoch)

    # -- what holds always ---------------------------------------------------------------------------------------------

    @invariant()
    def others_keep_their_bytes(self) -> None:
        """OneOwner_S11, S13."""
        text = self.house.text()
        if self.leases:
            assert text is not None
            assert text.startswith(OTHERS)

    @invariant()
    def one_owner(self) -> None:
        """OneOwner_S14: of all living runtimes at most one has the entry's tenure; none forgets one it has (S22)."""
        entry = self.entry()
        holders = [name for name in self.leases if self.owns(name, entry)]
        assert len(holders) <= 1
        for name, lease in self.leases.items():
            assert lease.phase in ("idle", "owner", "doubtful")
            if entry is not None and entry.runtime_generation == lease.data.generation:
                me = lease.data.me.process
                if (entry.pid, entry.birth) == (me.pid, me.birth):
                    assert lease.phase in HOLDING, f"{name} forgot"

    @invariant()
    def fresh_generations(self) -> None:
        """FreshEpoch_S19."""
        generations = [self.leases[n].data.generation for n in ("b1", "b2") if n in self.leases]
        assert sorted(set(generations)) == generations

    @invariant()
    def durable_first(self) -> None:
        """No epoch in the file that the mark does not cover."""
        entry = self.entry()
        if entry is not None and entry.birth is not None and isinstance(entry.leader_epoch, int):
            assert entry.leader_epoch <= self.house.mark()

    @invariant()
    def living_processes_are_seen(self) -> None:
        """The test's own table."""
        for pid, dweller in self.dwellers.items():
            assert Sighting(RUNNING, self.ticks[pid]) == dweller.processes.sighting(pid)

    def teardown(self) -> None:
        """In the end everybody can have it, one after the other (EventuallyOwned)."""
        self.house.die(FOREIGN)
        self.house.pause(LEASE_MS + 1)
        for name in self.finally_each():
            answer = self.ask(name, None, lambda lease: lease.acquire("plain"))
            assert isinstance(answer, Won), name
            self.ask(name, None, lambda lease: lease.release())
            assert self.entry() is None

    def finally_each(self) -> Iterable[str]:
        holder = [name for name in self.leases if self.owns(name, self.entry())]
        return [*holder, *(name for name in NAMES if name in self.leases and name not in holder)]


class LeasesOnDisk(Leases):
    """The same in a real directory."""

    def make_house(self) -> House:
        self.root = tempfile.TemporaryDirectory()
        return House(PosixFiles(), self.root.name)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.root.cleanup()


TestLeases = Leases.TestCase
TestLeases.settings = settings(stateful_step_count=40)
TestLeasesOnDisk = LeasesOnDisk.TestCase
TestLeasesOnDisk.settings = settings(max_examples=25, stateful_step_count=30)
