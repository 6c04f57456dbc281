"""Two processes, a guard that others hold, calls that fail or are the last, pauses, clocks that jump: whatever the
order, the works never run beside each other beyond what a forced takeover allows, and nothing is left behind.

The properties are those of `spec/PollingOwnership.tla`, asked of the registry, the works and the machines.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tenure.adapters.ports import Killed
from tenure.adapters.runtime.outcomes import Elected, Outcome
from tenure.adapters.testing.faulty import ERRORS, Call, Fails, Fault, Kills
from tenure.adapters.trace.api import assert_explained
from tenure.machines.identity import same_owner
from tenure.machines.polling_messages import Saw
from tests.adapters.runtime.leading_room import DIRECTORY, Member, Room

NAMES = ("a", "b")
LEASE_MS = 8_000
WORKING = frozenset({"confirming", "active", "cleaning"})
names = st.sampled_from(NAMES)


@attrs.define
class Actor:
    """A member, whether it is stopped, and what its looks at its own entry showed."""

    member: Member
    paused: bool = False
    looks: list[tuple[int, Saw]] = attrs.field(factory=list)
    turned_at: int = -1
    """When it had a turn last."""

    @property
    def sends(self) -> bool:
        return not self.paused and self.member.lead.may_send() is not None


class Leaderships(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.room = Room()
        self.room.clock.on_sleep = self.sleep
        self.pids = iter(range(100, 10_000))
        self.actors: dict[str, Actor] = {}
        self.taken_at = -1
        """When a live owner was evicted last."""
        self.epochs: dict[int, str] = {}
        self.harmless = True
        """No call has failed: then the recording is complete, and has to be explained."""
        for name in NAMES:
            self.born(name)

    def born(self, name: str, pid: int | None = None, ticks: int = 1) -> None:
        member = self.room.member(next(self.pids) if pid is None else pid, ticks=ticks)
        actor = self.actors[name] = Actor(member)
        lease, work, told = member.lead.lease, member.work, member.told
        check, start = lease.check, work.start

        def looked() -> Saw:
            saw = check()
            actor.looks.append((self.room.clock.fence_ms(), saw))
            return saw

        def started(epoch: int) -> None:
            """PollOnlyOwned_S25, and S37: the works of one process and its predecessors."""
            assert self.owns(member), "started without the lease"
            assert not lease.lease_passed(), "started under a lease that has passed"
            assert not work.live, "started beside its own last run"
            start(epoch)

        def reported(outcome: Outcome) -> None:
            """PollOnlyOwned_S26, and Fresh: an epoch is one runtime's."""
            told.append(outcome)
            if isinstance(outcome, Elected):
                assert self.owns(member), "announced without the lease"
                assert str(id(member)) == self.epochs.setdefault(outcome.epoch, str(id(member)))

        lease.check = looked  # type: ignore[method-assign]
        work.start = started  # type: ignore[method-assign]
        member.lead._on_outcome = reported

    def owns(self, member: Member) -> bool:
        """The registry's entry is this runtime's tenure."""
        tenure, entry = member.lead.lease.data.tenure, self.room.entry
        return tenure is not None and entry is not None and same_owner(tenure.owner, entry.owner)

    # -- time and turns -------------------------------------------------------------------------------------------

    def sleep(self, duration_ms: float) -> None:
        """Somebody waits for the guard: the others go on meanwhile."""
        self.room.clock.on_sleep = self.room.clock.advance
        try:
            self.room.clock.advance(duration_ms)
            for name in NAMES:
                self.turn(name)
        finally:
            self.room.clock.on_sleep = self.sleep

    def turn(self, name: str) -> None:
        actor = self.actors[name]
        if not actor.paused:
            self.alive(name, actor.member.lead.pump)
            actor.turned_at = self.room.clock.fence_ms()

    def alive(self, name: str, act: Callable[[], object]) -> None:
        """Do something as `name`, which may die of it."""
        try:
            act()
        except Killed:
            self.dies(name)

    def dies(self, name: str) -> None:
        self.room.kill(self.actors[name].member)
        self.born(name)

    def spend(self, duration_ms: int) -> None:
        until = self.room.clock.monotonic_ms() + duration_ms
        while self.room.clock.monotonic_ms() < until:
            self.room.clock.advance(min(100, until - self.room.clock.monotonic_ms()))
            for name in NAMES:
                self.turn(name)

    @initialize(name=names)
    def one_leads(self, name: str) -> None:
        self.somebody_connects(name)

    @rule(duration_ms=st.sampled_from([1, 100, 1_000, 3_000, 9_000]))
    def time_goes_by(self, duration_ms: int) -> None:
        self.spend(duration_ms)

    @rule(duration_ms=st.sampled_from([500, 3_000, 9_000]))
    def somebody_is_in_the_guard(self, duration_ms: int) -> None:
        self.room.while_busy(50, lambda: self.spend(duration_ms))

    @rule(duration_ms=st.sampled_from([1_000, 9_000]))
    def all_are_stopped_for(self, duration_ms: int) -> None:
        self.room.clock.advance(duration_ms)

    @rule(duration_ms=st.sampled_from([1_000, 9_000]))
    def the_machine_sleeps(self, duration_ms: int) -> None:
        self.room.clock.suspend(duration_ms)

    @rule(by_ms=st.sampled_from([-3_600_000, -500, 500, 3_600_000]))
    def the_wall_clock_steps(self, by_ms: int) -> None:
        self.room.clock.step(by_ms)

    # -- people ---------------------------------------------------------------------------------------------------

    @rule(name=names)
    def somebody_connects(self, name: str) -> None:
        self.as_running(name, lambda lead: lead.ask_acquire())

    @rule(name=names)
    def somebody_takes_over(self, name: str) -> None:
        entry = self.room.entry
        if entry is not None and not self.owns(self.actors[name].member):
            self.taken_at = self.room.clock.fence_ms() + 10 * LEASE_MS  # until it is known when
            self.as_running(name, lambda lead: lead.ask_acquire(force=entry.owner).then(self.took_over))

    def took_over(self, outcome: Outcome) -> None:
        self.taken_at = self.room.clock.fence_ms()

    @rule(name=names)
    def somebody_disconnects(self, name: str) -> None:
        self.as_running(name, lambda lead: lead.ask_release())

    @rule(name=names)
    def a_session_ends(self, name: str) -> None:
        self.as_running(name, lambda lead: lead.ask_suspend())

    @rule(name=names)
    def a_session_begins(self, name: str) -> None:
        self.harmless = False  # the model has no third session beside two that have not ended
        self.as_running(name, lambda lead: lead.ask_resume())

    def as_running(self, name: str, act: Callable[..., object]) -> None:
        if not self.actors[name].paused:
            self.alive(name, lambda: act(self.actors[name].member.lead))
            self.turn(name)

    # -- faults ---------------------------------------------------------------------------------------------------

    @rule(name=names, what=st.sampled_from(["stop", "go on", "go on", "die"]))
    def a_process_is_told(self, name: str, what: str) -> None:
        """SIGSTOP, SIGCONT, SIGKILL. Who goes on sends nothing before its overdue check, if its lease passed (K11)."""
        actor = self.actors[name]
        match what:
            case "stop":
                actor.paused = True
            case "go on" if actor.paused:
                actor.paused = False
                if actor.member.lead.lease.lease_passed():
                    assert actor.member.lead.may_send() is None
                self.turn(name)
            case "die":
                self.dies(name)

    @rule(name=names, calls=st.integers(0, 30), fault=st.sampled_from([*map(Fails, ERRORS), Kills(), Kills("after")]))
    def a_call_fails(self, name: str, calls: int, fault: Fault) -> None:
        """The call that comes after so many; one error is retried, a kill is the end."""
        self.harmless = False
        files = self.actors[name].member.files
        number = len(files.calls) + calls
        files.plan = lambda call: fault if call.number == number else None

    @rule(name=names, number=st.sampled_from([*ERRORS, 0, 0, 0, 0]))
    def the_registry_is_out_of_reach(self, name: str, number: int) -> None:
        """Or all is well again."""
        self.harmless = self.harmless and not number
        files = self.actors[name].member.files

        def plan(call: Call) -> Fault | None:
            return Fails(number) if DIRECTORY.registry in call.paths and call.name != "rename" else None

        files.plan = plan if number else None

    # -- works ----------------------------------------------------------------------------------------------------

    @rule(name=names, what=st.sampled_from(["prepare", "start", "stop", "clean_up", "slow", "drains", "well", "well"]))
    def a_work_misbehaves(self, name: str, what: str) -> None:
        """It raises, is not ready, or takes its time to end; until it is well again."""
        work = self.actors[name].member.work
        work.is_ready, work.drains = what != "slow", what == "drains"
        work.fails = {what} - {"slow", "drains", "well"}
        work.live = work.live and (work.running or work.drains)

    @precondition(lambda self: any(actor.member.work.running for actor in self.actors.values()))
    @rule(why=st.sampled_from(["done", "broken"]))
    def a_work_ends(self, why: str) -> None:
        for name, actor in self.actors.items():
            if actor.member.work.running:
                actor.member.work.ends = why
                self.turn(name)
                actor.member.work.ends = ""

    # -- what holds -----------------------------------------------------------------------------------------------

    @invariant()
    def nobody_sends_beside_another(self) -> None:
        """Never two that both believe in a healthy lease; after a forced takeover, as soon as the displaced one could
        look (V11)."""
        sending = [actor for actor in self.actors.values() if actor.sends and self.has_looked(actor)]
        assert len(sending) <= 1, "two send"

    @invariant()
    def works_run_alone(self) -> None:
        """LossStopsPolling, V11: who could see that another owns, or that its own lease has passed, runs no work."""
        running = [actor for actor in self.actors.values() if actor.member.work.running and not actor.paused]
        assert len([actor for actor in running if self.has_looked(actor)]) <= 1, "two work"
        for actor in running:
            if actor.turned_at == self.room.clock.fence_ms():
                assert not actor.member.lead.lease.lease_passed(), "works under a lease that has passed"

    def has_looked(self, actor: Actor) -> bool:
        """Whether it owns, or has seen the registry since the last takeover."""
        return self.owns(actor.member) or any(at > self.taken_at and saw != "unknown" for at, saw in actor.looks)

    @invariant()
    def works_run_only_while_the_machine_says_so(self) -> None:
        """LossStopsPolling: whoever left the phases of work has told it to stop."""
        for actor in self.actors.values():
            lead = actor.member.lead
            assert actor.member.work.running <= (lead.phase in WORKING), f"runs in {lead.phase}"
            assert actor.member.work.live <= lead.polling.loops.live

    @invariant()
    def idle_leaves_nothing(self) -> None:
        """FailedStartLeavesNothing: no work, and no lease that looks alive."""
        for actor in self.actors.values():
            lead = actor.member.lead
            if lead.phase == "idle":
                assert not actor.member.work.live
                assert lead.lease.lease_passed() or not self.owns(actor.member), "a lease that nobody looks after"

    def teardown(self) -> None:
        """In the end everybody can be released, and the next one leads."""
        for name in NAMES:
            actor = self.actors[name]
            actor.paused = False
            actor.member.files.plan = None
            actor.member.work.fails.clear()
            actor.member.work.is_ready = True
            actor.member.work.drains = False
            actor.member.work.live = actor.member.work.running
            self.as_running(name, lambda lead: lead.release())
        assert self.room.entry is None or any(not self.owns(actor.member) for actor in self.actors.values())
        found = self.actors["a"].member.lead.acquire()
        assert isinstance(found, Elected), found
        if self.harmless:
            assert_explained(self.room.recorder)


TestLeaderships = Leaderships.TestCase
TestLeaderships.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
