"""One runtime's side of polling: polling runs exactly while the lease is owned (locks.md 9, 14.4; S25-S34, V10-V12).

The machine of `spec/PollingOwnership.tla`. It acquires, watches, starts the poll loop, notices a loss, rolls back,
suspends, resumes, retires. It decides; the adapter performs the outputs and feeds the answers back:

* An output that is a *call* (`Acquire`, `register`, `on_acquired`, `start_polling`, `clean_up`) is answered once, by
  the event of its answer. An answer that the machine refuses, because the run it belonged to was abandoned, is offered
  again as `Returned`: a runtime is not at rest before every call of its run has returned.
* Between `start_watchers` and `stop_watchers` the adapter looks every OWNERSHIP_CHECK ms (`Checked`) and rewrites the
  heartbeat every OWNERSHIP_REFRESH ms (`Refreshed`), and at once when asked by `look` or `refresh`.
* `passed` in a message: by this process's own monotonic clock (one that counts suspends) the lease is older than
  STALE_HEARTBEAT since the last refresh was *asked for*. A watcher that finds it passed rewrites nothing.
* `start_polling` and `stop_polling` address `tenure.machines.poller`; `stopped` is told when no loop is live there.
* An event that is refused for the phase (a start while the last one unwinds, a start before the predecessor retired)
  is offered again by the adapter when the phase has changed, if the wish still stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Final

from statemachine import State, StateMachine
from statemachine.transition_list import TransitionList

from tenure.machines.chart import Table, compile_chart
from tenure.machines.laws import Law, guard, permit
from tenure.machines.polling_messages import (
    Acquire,
    Acquired,
    AcquireFailed,
    AutoRun,
    Checked,
    Cleaned,
    CleanUpFailed,
    Denied,
    Elect,
    Failed,
    Force,
    Happening,
    Launched,
    Memory,
    Output,
    Prepared,
    Refreshed,
    Registered,
    Released,
    ReleaseFailed,
    Report,
    Request,
    Returned,
    SessionStart,
    Start,
    Stop,
    Stopped,
    Superseded,
    Suspend,
    Unregistered,
)

Effect = tuple[Memory, tuple[Output, ...]]

HALT: Final[tuple[Output, ...]] = ("stop_watchers", "stop_polling")
OFFER: Final = Report("offer")
LEADING: Final = Report("leading")


def _each(states: Iterable[State], cond: list[str] | None = None, on: str | None = None) -> TransitionList:
    """The same row, without a change of phase, in each of `states`."""
    rows: TransitionList = reduce(or_, (state.to(state, cond=cond, on=on) for state in states))
    return rows


class PollingOwnershipChart(StateMachine):
    """One runtime: idle, on its way to lead, leading, on its way out; suspended, a follower, retired."""

    idle = State(initial=True)
    deferred = State()  # a session start waits for its turn
    acquiring = State()  # for a person
    resuming = State()  # for a session
    electing = State()
    registering = State()
    follower = State()
    refreshing = State()  # watched from here to cleaning
    preparing = State()
    launching = State()
    confirming = State()
    active = State()
    cleaning = State()
    losing = State()  # stop polling, then idle
    unwinding = State()  # stop polling, then release, then idle
    releasing = State()
    suspending = State()  # stop polling, keep the entry
    suspended = State()
    retiring = State()  # stop polling for a newer runtime of this process
    retired = State(final=True)

    start = (
        acquiring.from_(idle, suspended, cond=["interactive", "predecessor_stopped"], on="acquire")
        | losing.to(acquiring, cond=["interactive", "predecessor_stopped", "run_has_ended"], on="acquire")
    )  # fmt: skip
    force = idle.to(acquiring, cond=["was_shown"], on="acquire_by_force")
    elect = (
        follower.to(electing, on="acquire_by_election")
        | idle.to(electing, cond=["interactive", "predecessor_stopped"], on="acquire_for_succession")
    )  # fmt: skip
    session_start = (
        deferred.from_(idle, suspended, cond=["interactive", "left_here", "session_resumes"], on="defer")
        | idle.from_(idle, suspended, on="serve")
        | _each(
            (deferred, acquiring, resuming, electing, registering, follower, refreshing, preparing, launching,
             confirming, active, cleaning),
            on="serve",
        )
    )  # fmt: skip
    auto_run = deferred.to(resuming, cond=["predecessor_stopped"], on="resume")

    acquired = refreshing.from_(acquiring, resuming, electing, on="watch")
    denied = acquiring.to(registering, on="register") | idle.from_(resuming, electing, on="refuse")
    acquire_failed = resuming.to(resuming, on="resume") | unwinding.from_(acquiring, electing, on="roll_back")
    registered = registering.to(follower, on="follow")
    unregistered = registering.to(idle, cond=["no_thread_mode"], on="offer") | registering.to(idle, on="refuse")

    refreshed = (
        refreshing.to(preparing, cond=["still_mine"], on="tell_acquired")
        | refreshing.to(refreshing, cond=["lease_healthy", "unknown_is_no_loss"], on="refresh")
        | refreshing.to(losing, on="lose")
        | _each((preparing, launching, confirming, active, cleaning), cond=["lease_healthy", "still_mine"])
        | _each((preparing, launching, confirming, active, cleaning), cond=["lease_healthy", "unknown_is_no_loss"])
        | losing.from_(preparing, launching, confirming, active, on="lose")
        | cleaning.to(unwinding, on="leave")
    )
    checked = (
        confirming.to(active, cond=["lease_healthy", "owned_at_the_end"], on="lead")
        | _each((preparing, launching, active, cleaning), cond=["lease_healthy", "still_mine"])
        | confirming.to(confirming, cond=["lease_healthy", "unknown_is_no_loss"], on="look")
        | _each((preparing, launching, active, cleaning), cond=["lease_healthy", "unknown_is_no_loss"])
        | losing.from_(preparing, launching, confirming, active, on="lose")
        | cleaning.to(unwinding, on="leave")
    )
    prepared = preparing.to(launching, on="launch")
    launched = launching.to(confirming, on="confirm")
    failed = unwinding.from_(preparing, launching, confirming, active, on="roll_back")
    request = _each((preparing, launching, confirming, active, cleaning), cond=["own_clock_allows"], on="transmit")

    stop = (
        active.to(cleaning, on="clean_up")
        | unwinding.from_(
            deferred, acquiring, resuming, electing, registering, refreshing, preparing, launching, confirming,
            losing, suspending, on="leave",
        )
        | releasing.from_(idle, suspended, on="release")
        | follower.to(idle, on="unfollow")
    )  # fmt: skip
    cleaned = cleaning.to(unwinding, on="leave_clean")
    clean_up_failed = cleaning.to(unwinding, cond=["leave_anyway"], on="leave_clean")
    suspend = (
        suspending.from_(
            deferred, acquiring, resuming, electing, registering, refreshing, preparing, launching, confirming, active,
            cond=["current_session"], on="halt",
        )
        | follower.to(idle, cond=["current_session"], on="unfollow")
        | _each(
            (idle, cleaning, losing, unwinding, releasing, suspended), cond=["current_session"], on="end_session",
        )
    )  # fmt: skip
    superseded = (
        retired.from_(idle, suspended)
        | follower.to(retired, on="unfollow")
        | retiring.from_(
            deferred, acquiring, resuming, electing, registering, refreshing, preparing, launching, confirming, active,
            losing, suspending, on="halt",
        )
    )  # fmt: skip
    stopped = (
        losing.to(idle, cond=["run_has_ended"])
        | unwinding.to(releasing, cond=["run_has_ended"], on="release")
        | suspending.to(suspended, cond=["run_has_ended"])
        | retiring.to(retired, cond=["run_has_ended"])
    )
    returned = _each((losing, unwinding, suspending, retiring), on="settle")
    released = releasing.to(idle, on="be_over")
    release_failed = releasing.to(releasing, cond=["release_waits"], on="release") | releasing.to(idle, on="give_up")

    # -- guards -------------------------------------------------------------------------------------------------------

    @staticmethod
    @guard(Law.PROOF)
    def interactive(data: Memory, message: Start | Elect | SessionStart) -> bool:
        """Proof: a background child has no say in who leads. Without it a print or json run of the same directory
        takes the bot over (A41)."""
        return message.interactive

    @staticmethod
    @guard(Law.FENCE)
    def predecessor_stopped(data: Memory, message: Start | Elect | AutoRun) -> bool:
        """Fence: a runtime acquires after the older ones of its process retired, for they would find a lease of their
        own process and poll on. Without it two loops run in one process after a reload (S37)."""
        return message.alone

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def run_has_ended(data: Memory, message: Stopped | Start) -> bool:
        """Late is nothing: at rest only when every call of the run has returned. Without it an acquire that was on
        its way lands after the suspend or stop, and a lease appears that nobody looks after (S34, A43)."""
        return not data.waiting

    @staticmethod
    @guard(Law.FENCE)
    def was_shown(data: Memory, message: Force) -> bool:
        """Fence: force replaces the owner that a person was shown. Without it one nobody confirmed is evicted (A04)."""
        return data.shown != 0

    @staticmethod
    @guard(Law.PROOF)
    def left_here(data: Memory, message: SessionStart) -> bool:
        """Proof: a session resumes what this directory left. Without it it steals what another one left (S33)."""
        return message.mine or message.here

    @staticmethod
    @permit(Law.PROOF)
    def session_resumes(data: Memory, message: SessionStart) -> bool:
        """Proof: an entry of ours, of our process or of a dead owner is an intent to go on. Without it a restart in
        the same directory stays silent (V10)."""
        return message.mine or message.stale or message.same_process

    @staticmethod
    @guard(Law.PROOF)
    def no_thread_mode(data: Memory, message: Unregistered) -> bool:
        """Proof: where followers are possible, a failed registration says nothing about the owner. Without it the
        takeover of a live leader is offered (S30)."""
        return not message.thread_mode

    @staticmethod
    @guard(Law.FENCE)
    def still_mine(data: Memory, message: Refreshed | Checked) -> bool:
        """Fence: a watcher that finds another owner ends the tenure. Without it the displaced one polls on (V11)."""
        return message.saw == "mine"

    @staticmethod
    @guard(Law.FENCE)
    def owned_at_the_end(data: Memory, message: Checked) -> bool:
        """Fence: a start says ok on a look made after its last step. Without it one that was displaced while it
        started announces itself (S26)."""
        return message.saw == "mine"

    @staticmethod
    @guard(Law.FENCE)
    def lease_healthy(data: Memory, message: Refreshed | Checked) -> bool:
        """Fence: a lease that has passed by the own clock may be anybody's. Without it the poller of a process that
        was stopped, or kept from the guard, goes on (S29, K11)."""
        return not message.passed

    @staticmethod
    @permit(Law.UNKNOWN)
    def unknown_is_no_loss(data: Memory, message: Refreshed | Checked) -> bool:
        """Unknown: a look that failed is no news while the lease is healthy. Without it one guard time-out stops a
        healthy leader for good (K6)."""
        return message.saw == "unknown"

    @staticmethod
    @guard(Law.FENCE)
    def own_clock_allows(data: Memory, message: Request) -> bool:
        """Fence: read the own clock before each request. Without it a process that wakes up sends one beside its
        successor, before its overdue check has had its turn (K11)."""
        return not message.passed

    @staticmethod
    @permit(Law.PROOF)
    def leave_anyway(data: Memory, message: CleanUpFailed) -> bool:
        """Proof: a release ends the tenure, whatever the clean-up says. Without it the lease stays
        when it fails (A44)."""
        return data.waiting

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def current_session(data: Memory, message: Suspend) -> bool:
        """Late is nothing: only the session served ends it. Without it a late shutdown stops its successor (A46)."""
        return message.session == data.session

    @staticmethod
    @permit(Law.UNKNOWN)
    def release_waits(data: Memory, message: ReleaseFailed) -> bool:
        """Unknown: a release that failed is tried again while the lease is healthy. Without it a failed start leaves
        a lease that looks alive (S27)."""
        return not message.passed

    # -- effects ------------------------------------------------------------------------------------------------------

    @staticmethod
    def acquire(data: Memory, message: Start) -> Effect:
        return Memory(True, 0, data.session), (Acquire("plain", 0),)

    @staticmethod
    def acquire_by_force(data: Memory, message: Force) -> Effect:
        return Memory(True, data.shown, data.session), (Acquire("force", data.shown),)

    @staticmethod
    def acquire_by_election(data: Memory, message: Elect) -> Effect:
        return Memory(True, message.observed, data.session), ("unregister", Acquire("elect", message.observed))

    @staticmethod
    def acquire_for_succession(data: Memory, message: Elect) -> Effect:
        # Its registration, if it has one, is succession's and not this machine's.
        return Memory(True, message.observed, data.session), (Acquire("elect", message.observed),)

    @staticmethod
    def defer(data: Memory, message: SessionStart) -> Effect:
        return Memory(False, message.observed, message.session), ("defer",)

    @staticmethod
    def serve(data: Memory, message: SessionStart) -> Effect:
        return Memory(data.waiting, data.shown, message.session), ()

    @staticmethod
    def resume(data: Memory, message: AutoRun | AcquireFailed) -> Effect:
        return Memory(True, data.shown, data.session), (Acquire("resume", data.shown),)

    @staticmethod
    def watch(data: Memory, message: Acquired) -> Effect:
        return Memory(False, 0, data.session), ("start_watchers", "refresh")

    @staticmethod
    def register(data: Memory, message: Denied) -> Effect:
        return Memory(True, message.observed, data.session), ("register",)

    @staticmethod
    def follow(data: Memory, message: Registered) -> Effect:
        return Memory(False, 0, data.session), (Report("following"),)

    @staticmethod
    def refuse(data: Memory, message: Denied | Unregistered) -> Effect:
        return Memory(False, 0, data.session), (Report("refused", data.shown),)

    @staticmethod
    def offer(data: Memory, message: Unregistered) -> Effect:
        return Memory(False, data.shown, data.session), (Report("offer", data.shown),)

    @staticmethod
    def refresh(data: Memory, message: Refreshed) -> Effect:
        return data, ("refresh",)

    @staticmethod
    def tell_acquired(data: Memory, message: Refreshed) -> Effect:
        return Memory(True, 0, data.session), ("on_acquired",)

    @staticmethod
    def launch(data: Memory, message: Prepared) -> Effect:
        return data, ("start_polling",)

    @staticmethod
    def confirm(data: Memory, message: Launched) -> Effect:
        return Memory(False, 0, data.session), ("look",)

    @staticmethod
    def look(data: Memory, message: Checked) -> Effect:
        return data, ("look",)

    @staticmethod
    def lead(data: Memory, message: Checked) -> Effect:
        return data, (LEADING,)

    @staticmethod
    def transmit(data: Memory, message: Request) -> Effect:
        return data, ("transmit",)

    @staticmethod
    def lose(data: Memory, message: Refreshed | Checked) -> Effect:
        return data, (*HALT, Report("lost"))

    @staticmethod
    def roll_back(data: Memory, message: Failed | AcquireFailed) -> Effect:
        # The error is reported before the release is tried, so that a failing release cannot mask it (K17).
        return Memory(False, 0, data.session), (*HALT, Report("failed", 0, message.error))

    @staticmethod
    def clean_up(data: Memory, message: Stop) -> Effect:
        return Memory(True, 0, data.session), ("clean_up",)

    @staticmethod
    def leave(data: Memory, message: Stop | Refreshed | Checked) -> Effect:
        # What was shown is still needed by the call that has not returned.
        return Memory(data.waiting, data.shown if data.waiting else 0, data.session), HALT

    @staticmethod
    def leave_clean(data: Memory, message: Cleaned | CleanUpFailed) -> Effect:
        return Memory(False, 0, data.session), HALT

    @staticmethod
    def halt(data: Memory, message: Suspend | Superseded) -> Effect:
        return Memory(data.waiting, data.shown if data.waiting else 0, 0), HALT

    @staticmethod
    def end_session(data: Memory, message: Suspend) -> Effect:
        return Memory(data.waiting, data.shown, 0), ()

    @staticmethod
    def unfollow(data: Memory, message: Stop | Suspend | Superseded) -> Effect:
        return Memory(False, 0, 0 if isinstance(message, Suspend) else data.session), ("unregister",)

    @staticmethod
    def settle(data: Memory, message: Returned) -> Effect:
        return Memory(False, 0, data.session), ("unregister",) if message.registering else ()

    @staticmethod
    def release(data: Memory, message: Stop | Stopped | ReleaseFailed) -> Effect:
        return Memory(False, 0, data.session), ("release",)

    @staticmethod
    def be_over(data: Memory, message: Released) -> Effect:
        return data, (Report("over"),)

    @staticmethod
    def give_up(data: Memory, message: ReleaseFailed) -> Effect:
        return data, (Report("left", 0, message.error),)


POLLING_OWNERSHIP: Table[Memory, Happening, Output] = compile_chart(PollingOwnershipChart)
