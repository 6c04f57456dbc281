"""Healing after an unclean shutdown: who may move damaged files away (locks.md 8; S36, V13; A28, A29, A31, A32).

The machine of `spec/RuntimeRecovery.tla`: one connect. A start that throws looks for damage once, stops its own
poller, and heals under two guards: the runtime-recovery guard (one recoverer at a time) and the ownership guard
(nobody writes the registry meanwhile), with a look under each. Candidates are the owner registry, the thread state
and the ownership guard; never config, logs, journals, other profiles or the runtime-recovery guard itself.

The adapter offers an event at the moment at which it would act, with what it observes then; an event that is taken has
to be performed, as its outputs say. In `blocked` the operator has a message, and nothing goes on.

A process that dies takes its machine with it; what it held is abandoned, and no damage.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.laws import Law, guard, permit

GUARD: Final = "guard"
REGISTRY: Final = "registry"
STATE: Final = "state"
"""What may be damaged, and moved."""

Standing = Literal["nobody", "abandoned", "damaged", "held"]
"""What stands at a guard's path: nothing; a holder that is proven dead; something unverifiable; somebody else."""

Order = Literal[
    "start", "suspend_polling", "release", "quarantine_guard", "quarantine_registry", "quarantine_state",
    "leave_recovery_guard", "leave_guards", "say_blocked", "say_restart",
]  # fmt: skip
"""What the adapter does. `leave_guards`: the ownership guard, then the runtime-recovery guard, those that are held."""

NOTHING: Final[frozenset[str]] = frozenset()


@attrs.frozen(cache_hash=True)
class Memory:
    """What a connecting runtime remembers besides its phase."""

    polling: bool = False
    """A poller of this runtime runs."""
    again: bool = False
    """This connect has healed already."""
    seen: frozenset[str] = NOTHING
    """The damage that the last look found and that is to be moved: of `GUARD`, `REGISTRY`, `STATE`."""


@attrs.frozen
class Connect:
    """The operator asks for a connection."""

    event: ClassVar[str] = "connect"


@attrs.frozen
class Started:
    """The start succeeded: this runtime owns the lease and polls."""

    event: ClassVar[str] = "started"


@attrs.frozen
class StartRefused:
    """Another owner lives: no failure, and nothing to heal."""

    event: ClassVar[str] = "start_refused"


@attrs.frozen
class StartFailed:
    """The start threw."""

    event: ClassVar[str] = "start_failed"


@attrs.frozen
class Look:
    """A look at the registry entry. `alive`: there is an entry and its process is not proven dead.
    `expired`: its heartbeat is older than STALE_HEARTBEAT."""

    event: ClassVar[str] = "look"
    alive: bool
    expired: bool


@attrs.frozen
class Inspect:
    """A look under the runtime-recovery guard; `damage` is what it found."""

    event: ClassVar[str] = "inspect"
    alive: bool
    expired: bool
    damage: frozenset[str]


@attrs.frozen
class Confirm:
    """A look under both guards. `mine`: the entry's process is this process, whichever runtime of it.
    `own_guard`: the live holder of the ownership guard is this recovery."""

    event: ClassVar[str] = "confirm"
    alive: bool
    expired: bool
    mine: bool
    own_guard: bool
    damage: frozenset[str]


@attrs.frozen
class SuspendEnded:
    """The attempt to stop the own poller ended; `stopped` says whether no poller runs."""

    event: ClassVar[str] = "suspend_ended"
    stopped: bool


@attrs.frozen
class ReleaseEnded:
    """The attempt to release the own lease ended: `released`, or with an error, as always on a damaged registry."""

    event: ClassVar[str] = "release_ended"
    released: bool


@attrs.frozen
class Enter:
    """An attempt at the runtime-recovery guard, at whose path `standing` stands."""

    event: ClassVar[str] = "enter"
    standing: Standing


@attrs.frozen
class MoveGuard:
    """The moment to rename what stands at the ownership guard's path into quarantine."""

    event: ClassVar[str] = "move_guard"


@attrs.frozen
class Secure:
    """An attempt at the ownership guard, at whose path `standing` stands."""

    event: ClassVar[str] = "secure"
    standing: Standing


@attrs.frozen
class SecureFailed:
    """The attempts at the ownership guard are over: something unverifiable stands there."""

    event: ClassVar[str] = "secure_failed"


@attrs.frozen
class MoveRegistry:
    """The moment to rename the registry into quarantine."""

    event: ClassVar[str] = "move_registry"


@attrs.frozen
class MoveState:
    """The moment to rename the thread state into quarantine."""

    event: ClassVar[str] = "move_state"


@attrs.frozen
class Finish:
    """The moment to leave both guards."""

    event: ClassVar[str] = "finish"


@attrs.frozen
class Failed:
    """An error on the way: a rename failed for good, a guard was not left by its live holder."""

    event: ClassVar[str] = "failed"


Happening = (
    Connect | Started | StartRefused | StartFailed | Look | Inspect | Confirm | SuspendEnded | ReleaseEnded
    | Enter | MoveGuard | Secure | SecureFailed | MoveRegistry | MoveState | Finish | Failed
)  # fmt: skip
Taken = tuple[Memory, tuple[Order, ...]]


class RuntimeRecoveryChart(StateMachine):
    """One runtime's connect, with the healing that its first failure begins."""

    idle = State(initial=True)
    starting = State()
    looking = State()
    suspending = State()
    releasing = State()
    entering = State()
    inspecting = State()
    clearing = State()
    confirming = State()
    moving = State()
    connected = State()
    blocked = State()

    connect = idle.to(starting, on="ask") | connected.to(starting, on="ask") | blocked.to(starting, on="ask")
    started = starting.to(connected, on="poll")
    start_refused = starting.to(idle)
    start_failed = starting.to(looking, cond=["first_failure"]) | starting.to(blocked, on="say_restart")
    look = (
        looking.to(suspending, cond=["owner_is_gone"], on="suspend")
        | looking.to(suspending, cond=["lease_is_over"], on="suspend")
        | looking.to(blocked, on="say_blocked")
    )
    suspend_ended = suspending.to(releasing, cond=["polling_stopped"], on="let_go") | suspending.to(
        blocked, on="say_blocked"
    )
    release_ended = releasing.to(entering, cond=["lease_let_go"]) | releasing.to(
        entering, cond=["release_failure_is_logged"]
    )
    enter = entering.to(inspecting, cond=["recovery_is_free"]) | entering.to(inspecting, cond=["recoverer_is_dead"])
    inspect = (
        inspecting.to(clearing, cond=["owner_is_gone"], on="note_guard")
        | inspecting.to(clearing, cond=["lease_is_over"], on="note_guard")
        | inspecting.to(blocked, on="withdraw")
    )
    move_guard = clearing.to(clearing, cond=["guard_was_damaged"], on="quarantine_guard")
    secure = clearing.to(confirming, cond=["guard_is_free"], on="forget") | clearing.to(
        confirming, cond=["holder_is_dead"], on="forget"
    )
    secure_failed = clearing.to(blocked, cond=["nothing_to_clear"], on="withdraw")
    confirm = (
        confirming.to(moving, cond=["own_guard_is_no_owner", "no_foreign_owner", "no_own_owner"], on="note_files")
        | confirming.to(moving, cond=["own_guard_is_no_owner", "lease_is_over"], on="note_files")
        | confirming.to(blocked, on="leave_blocked")
    )
    move_registry = moving.to(moving, cond=["registry_was_damaged"], on="quarantine_registry")
    move_state = moving.to(moving, cond=["state_was_damaged"], on="quarantine_state")
    finish = moving.to(starting, cond=["all_is_moved"], on="start_again")
    failed = (
        entering.to(blocked, on="say_blocked")
        | clearing.to(blocked, on="withdraw")
        | moving.to(blocked, on="leave_blocked")
    )

    # -- guards ---------------------------------------------------------------

    @staticmethod
    @guard(Law.UNKNOWN)
    def first_failure(data: Memory, message: StartFailed) -> bool:
        """Unknown: what healing did not cure it does not know, and says so. Without it a connect whose failure has
        another cause heals and starts for ever, and the operator never gets an answer."""
        return not data.again

    @staticmethod
    @guard(Law.PROOF)
    def owner_is_gone(data: Memory, message: Look | Inspect) -> bool:
        """Proof: there is no owner, or its process is dead. Without it the guard of a live owner is moved away while
        the owner may be inside it."""
        return not message.alive

    @staticmethod
    @permit(Law.PROOF)
    def lease_is_over(data: Memory, message: Look | Inspect | Confirm) -> bool:
        """Proof: an expired heartbeat is no owner, whoever has its pid now. Without it a reused pid blocks healing
        for ever (A28)."""
        return message.expired

    @staticmethod
    @guard(Law.FENCE)
    def polling_stopped(data: Memory, message: SuspendEnded) -> bool:
        """Fence: a runtime resets files only after its poller ended. Without it the poller runs on beside the next
        owner, cut loose from the lease under which it began (A32)."""
        return message.stopped

    @staticmethod
    @permit(Law.PROOF)
    def lease_let_go(data: Memory, message: ReleaseEnded) -> bool:
        """Proof: what this runtime held itself it has released. Without it a connect that held nothing never heals."""
        return message.released

    @staticmethod
    @permit(Law.PROOF)
    def release_failure_is_logged(data: Memory, message: ReleaseEnded) -> bool:
        """Proof: the looks decide who owns, not the own release. Without it a damaged registry, whose release always
        throws, is never healed (A32)."""
        return not message.released

    @staticmethod
    @guard(Law.PROOF)
    def recovery_is_free(data: Memory, message: Enter) -> bool:
        """Proof: one recoverer at a time. Without it the second renames away, as damaged, the guard that the first
        has published and is inside (A31)."""
        return message.standing == "nobody"

    @staticmethod
    @permit(Law.PROOF)
    def recoverer_is_dead(data: Memory, message: Enter) -> bool:
        """Proof: a recoverer's death frees its guard. Without it one crash while healing blocks healing for ever."""
        return message.standing == "abandoned"

    @staticmethod
    @guard(Law.PROOF)
    def guard_was_damaged(data: Memory, message: MoveGuard) -> bool:
        """Proof: only a guard that the look found unverifiable is moved. Without it a live holder is robbed of its
        guard, and a second writer comes in beside it."""
        return GUARD in data.seen

    @staticmethod
    @guard(Law.PROOF)
    def guard_is_free(data: Memory, message: Secure) -> bool:
        """Proof: nobody is inside the ownership guard. Without it an acquirer that was inside writes its entry after
        the look, and its files are moved away from under it (S36)."""
        return message.standing == "nobody"

    @staticmethod
    @permit(Law.PROOF)
    def holder_is_dead(data: Memory, message: Secure) -> bool:
        """Proof: a holder's death frees the ownership guard. Without it an abandoned guard, which is no damage,
        blocks healing for ever."""
        return message.standing == "abandoned"

    @staticmethod
    @guard(Law.REFUSAL_IS_INERT)
    def nothing_to_clear(data: Memory, message: SecureFailed) -> bool:
        """Refusal is inert: damage that was seen is moved, not reported as an obstacle. Without it a connect may end
        at the damaged guard, each time, and nothing is ever healed."""
        return GUARD not in data.seen

    @staticmethod
    @permit(Law.PROOF)
    def own_guard_is_no_owner(data: Memory, message: Confirm) -> bool:
        """Proof: the guard this recovery holds itself is no sign of an owner. Without it recovery blocks itself."""
        return message.own_guard

    @staticmethod
    @guard(Law.PROOF)
    def no_foreign_owner(data: Memory, message: Confirm) -> bool:
        """Proof: nobody acquired between the looks. Without it the files of an owner that came meanwhile are moved
        away from under it (S36)."""
        return message.mine or not message.alive

    @staticmethod
    @guard(Law.PROOF)
    def no_own_owner(data: Memory, message: Confirm) -> bool:
        """Proof: another runtime of this process is an owner like any other. Without it the own pid, passed over
        everywhere, hides an owner that lives in this process (A29)."""
        return not message.mine

    @staticmethod
    @guard(Law.PROOF)
    def registry_was_damaged(data: Memory, message: MoveRegistry) -> bool:
        """Proof: only a damaged registry is moved. Without it a healthy one goes into quarantine, and with it every
        other profile's entry and the intent to restart."""
        return REGISTRY in data.seen

    @staticmethod
    @guard(Law.PROOF)
    def state_was_damaged(data: Memory, message: MoveState) -> bool:
        """Proof: only a damaged thread state is moved. Without it healthy bindings go into quarantine."""
        return STATE in data.seen

    @staticmethod
    @guard(Law.DURABLE_FIRST)
    def all_is_moved(data: Memory, message: Finish) -> bool:
        """Durable first: everything seen is in quarantine before the guards are left. Without it the start fails on
        the same damage again, each time."""
        return not data.seen

    # -- effects --------------------------------------------------------------

    @staticmethod
    def ask(data: Memory, message: Connect) -> Taken:
        return attrs.evolve(data, again=False), ("start",)

    @staticmethod
    def poll(data: Memory, message: Started) -> Taken:
        return Memory(polling=True), ()

    @staticmethod
    def say_restart(data: Memory, message: StartFailed) -> Taken:
        return data, ("say_restart",)

    @staticmethod
    def suspend(data: Memory, message: Look) -> Taken:
        return data, ("suspend_polling",)

    @staticmethod
    def say_blocked(data: Memory, message: Look | SuspendEnded | Failed) -> Taken:
        return data, ("say_blocked",)

    @staticmethod
    def let_go(data: Memory, message: SuspendEnded) -> Taken:
        return attrs.evolve(data, polling=data.polling and not message.stopped), ("release",)

    @staticmethod
    def note_guard(data: Memory, message: Inspect) -> Taken:
        return attrs.evolve(data, seen=message.damage & {GUARD}), ()

    @staticmethod
    def withdraw(data: Memory, message: Inspect | SecureFailed | Failed) -> Taken:
        return attrs.evolve(data, seen=NOTHING), ("leave_recovery_guard", "say_blocked")

    @staticmethod
    def quarantine_guard(data: Memory, message: MoveGuard) -> Taken:
        return attrs.evolve(data, seen=NOTHING), ("quarantine_guard",)

    @staticmethod
    def forget(data: Memory, message: Secure) -> Taken:
        return attrs.evolve(data, seen=NOTHING), ()

    @staticmethod
    def note_files(data: Memory, message: Confirm) -> Taken:
        return attrs.evolve(data, seen=message.damage & {REGISTRY, STATE}), ()

    @staticmethod
    def leave_blocked(data: Memory, message: Confirm | Failed) -> Taken:
        return attrs.evolve(data, seen=NOTHING), ("leave_guards", "say_blocked")

    @staticmethod
    def quarantine_registry(data: Memory, message: MoveRegistry) -> Taken:
        return attrs.evolve(data, seen=data.seen - {REGISTRY}), ("quarantine_registry",)

    @staticmethod
    def quarantine_state(data: Memory, message: MoveState) -> Taken:
        return attrs.evolve(data, seen=data.seen - {STATE}), ("quarantine_state",)

    @staticmethod
    def start_again(data: Memory, message: Finish) -> Taken:
        return attrs.evolve(data, again=True, seen=NOTHING), ("leave_guards", "start")


RUNTIME_RECOVERY: Table[Memory, Happening, Order] = compile_chart(RuntimeRecoveryChart)
