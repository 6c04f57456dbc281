"""One fenced commit: a command runs inside the ownership transaction, or not at all (law Fence; locks.md 7.2, S24).

The machine of `spec/FencedCommit.tla`, for effects of any shell or language: the caller says under which epoch it
decided, the committer looks inside the guard of the registry whether that is the epoch of a live lease, and only then
starts the command. The guard is left when nothing of the command is left, so no owner is replaced while it runs. A
plain look comes before everything else: for a tenure that is over nothing is opened, and nobody waits.

A lock comes first, outside the guard. The command and all that it starts inherit it; so what outlives a killed
committer keeps later commands out, and nobody waits for it inside the guard.

The adapter performs each output and answers with an event. A process that dies takes its machine with it.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.identity import Epoch, Process, proven_dead
from tenure.machines.laws import Law, guard, permit
from tenure.machines.lease import MAX_EPOCH, Sight, over

COMMIT_MS: Final = 1_000
"""How long a command may run: others wait meanwhile."""
COMMIT_GRACE_MS: Final = 200
"""How long what is left of a command has between SIGTERM and SIGKILL."""

Ending = Literal["none", "ended", "timed_out", "interrupted"]
"""Why a command is over: by itself; its time was up; somebody asked the committer to end."""
Answer = Literal["ended", "timed_out", "interrupted", "stale", "unreadable", "busy"]
"""What the caller is told. stale: the epoch is not that of a live lease. unreadable: the registry says nothing. busy:
the lock or the guard stayed taken."""


@attrs.frozen
class Commit:
    """Memory of the machine: who commits, how long a lease lasts (ms), the epoch of the caller, why it is over."""

    me: Process
    stale_ms: int
    token: Epoch = 0
    outcome: Ending = "none"


@attrs.frozen(cache_hash=True)
class Ask:
    """A commit is wanted under the epoch `token`; `sight` is what a plain read of the registry showed."""

    event: ClassVar[str] = "ask"
    token: Epoch
    sight: Sight


@attrs.frozen
class Lock:
    """The lock was tried; `free`: nobody had it, so it is ours."""

    event: ClassVar[str] = "lock"
    free: bool


@attrs.frozen
class GiveUp:
    """All attempts at the lock, or at the guard, are used up."""

    event: ClassVar[str] = "give_up"


@attrs.frozen(cache_hash=True)
class Look:
    """The registry was read, inside the guard."""

    event: ClassVar[str] = "look"
    sight: Sight


@attrs.frozen
class Ended:
    """The command has ended; what it has started may go on."""

    event: ClassVar[str] = "ended"


@attrs.frozen
class TimeUp:
    """The command's time is up."""

    event: ClassVar[str] = "time_up"


@attrs.frozen
class Interrupt:
    """Somebody asks the committer to end."""

    event: ClassVar[str] = "interrupt"


@attrs.frozen
class GraceOver:
    """What was asked to end had its grace."""

    event: ClassVar[str] = "grace_over"


@attrs.frozen
class Swept:
    """It was looked for what is left of the command; `gone`: nothing."""

    event: ClassVar[str] = "swept"
    gone: bool


@attrs.frozen
class Forget:
    """The caller has its answer; the next commit may come."""

    event: ClassVar[str] = "forget"


Happening = Ask | Lock | GiveUp | Look | Ended | TimeUp | Interrupt | GraceOver | Swept | Forget


@attrs.frozen
class TryLock:
    """Try the lock, without waiting in it; answer `Lock`, again and again, or `GiveUp`."""


@attrs.frozen
class EnterGuard:
    """Enter the guard of the registry, read inside, answer `Look`; or `GiveUp`."""


@attrs.frozen
class RunCommand:
    """Start the command now, inside, with the lock and `epoch`; answer `Ended`, `TimeUp` or `Interrupt`."""

    epoch: Epoch


@attrs.frozen
class Terminate:
    """Ask all that is left of the command to end (SIGTERM); answer `Swept`, again and again, and `GraceOver`."""


@attrs.frozen
class Destroy:
    """End all that is left of the command (SIGKILL); answer `Swept`, again and again."""


@attrs.frozen
class Tell:
    """Leave the guard if it is held, give the lock up, and tell the caller."""

    answer: Answer


Output = TryLock | EnterGuard | RunCommand | Terminate | Destroy | Tell
Taken = tuple[Commit, tuple[Output, ...]]


class FencedCommitChart(StateMachine):
    """One commit; the last three phases are its ends."""

    idle = State(initial=True)
    waiting = State()
    entering = State()
    running = State()
    ending = State()
    done = State()
    stale = State()
    failed = State()

    ask = (
        idle.to(waiting, cond=["strict_read", "epoch_is_current", "lease_is_live"], on="begin")
        | idle.to(stale, cond=["strict_read"], on="say_stale")
        | idle.to(failed, on="say_unreadable")
    )
    lock = waiting.to(entering, cond=["previous_command_is_over"], on="enter")
    give_up = waiting.to(failed, cond=["patience_ends"], on="say_busy") | entering.to(
        failed, cond=["patience_ends"], on="say_busy"
    )
    look = (
        entering.to(running, cond=["inside", "strict_read", "epoch_is_current", "lease_is_live"], on="run")
        | entering.to(stale, cond=["inside", "strict_read"], on="say_stale")
        | entering.to(failed, cond=["inside"], on="say_unreadable")
    )
    ended = running.to(ending, on="end")
    time_up = running.to(ending, cond=["bounded"], on="cut")
    interrupt = (
        running.to(ending, on="break_off") | waiting.to(failed, on="say_broken") | entering.to(failed, on="say_broken")
    )
    grace_over = ending.to(ending, cond=["kill_follows"], on="destroy")
    swept = ending.to(done, cond=["ended_before_leaving"], on="say_done")

    forget = done.to(idle, on="begin_anew") | stale.to(idle, on="begin_anew") | failed.to(idle, on="begin_anew")

    # -- guards ---------------------------------------------------------------

    @staticmethod
    @guard(Law.FENCE)
    def previous_command_is_over(data: Commit, message: Lock) -> bool:
        """Fence: nothing of an earlier command is left. Without it one that outlived its killed committer works on
        beside the next."""
        return message.free

    @staticmethod
    @permit(Law.UNKNOWN)
    def patience_ends(data: Commit, message: GiveUp) -> bool:
        """Unknown: how long the lock or the guard stays taken nobody knows. Without it a caller waits for ever."""
        return True

    @staticmethod
    @guard(Law.FENCE)
    def inside(data: Commit, message: Look) -> bool:
        """Fence: the look and the command are inside the guard. Without it an owner is replaced in between."""
        return message.sight.inside

    @staticmethod
    @guard(Law.PROOF)
    def strict_read(data: Commit, message: Ask | Look) -> bool:
        """Proof: what cannot be read says nothing. Without it a leader is told that it is none."""
        return message.sight.readable

    @staticmethod
    @guard(Law.FENCE)
    def epoch_is_current(data: Commit, message: Ask | Look) -> bool:
        """Fence: the caller's epoch is the one in the registry. Without it a deposed leader's command runs."""
        entry, token = message.sight.entry, message.token if isinstance(message, Ask) else data.token
        return entry is not None and entry.leader_epoch is not None and same_epoch(token, entry.leader_epoch)

    @staticmethod
    @guard(Law.FENCE)
    def lease_is_live(data: Commit, message: Ask | Look) -> bool:
        """Fence: the lease has not passed, though it could still be renewed, and its owner is not proven dead. Without
        it a command begins after somebody was told that nobody leads (K11)."""
        sight, entry = message.sight, message.sight.entry
        if entry is None or proven_dead(entry.birth, sight.seen, data.me):
            return False
        return not over(entry, sight, data.me, data.stale_ms)

    @staticmethod
    @permit(Law.UNKNOWN)
    def bounded(data: Commit, message: TimeUp) -> bool:
        """Unknown: whether a command ends by itself nobody knows. Without it one that hangs holds up all owners."""
        return True

    @staticmethod
    @permit(Law.UNKNOWN)
    def kill_follows(data: Commit, message: GraceOver) -> bool:
        """Unknown: to be asked to end is not to end. Without it a command that ignores SIGTERM holds up all owners."""
        return True

    @staticmethod
    @guard(Law.FENCE)
    def ended_before_leaving(data: Commit, message: Swept) -> bool:
        """Fence: the guard is left when nothing of the command is left. Without it the rest of a command works on
        under the next owner."""
        return message.gone

    # -- effects --------------------------------------------------------------

    @staticmethod
    def begin(data: Commit, message: Ask) -> Taken:
        return _asked(data, message), (TryLock(),)

    @staticmethod
    def enter(data: Commit, message: Lock) -> Taken:
        return data, (EnterGuard(),)

    @staticmethod
    def run(data: Commit, message: Look) -> Taken:
        return data, (RunCommand(data.token),)

    @staticmethod
    def end(data: Commit, message: Ended) -> Taken:
        return attrs.evolve(data, outcome="ended"), (Terminate(),)

    @staticmethod
    def cut(data: Commit, message: TimeUp) -> Taken:
        return attrs.evolve(data, outcome="timed_out"), (Terminate(),)

    @staticmethod
    def break_off(data: Commit, message: Interrupt) -> Taken:
        return attrs.evolve(data, outcome="interrupted"), (Terminate(),)

    @staticmethod
    def destroy(data: Commit, message: GraceOver) -> Taken:
        return data, (Destroy(),)

    @staticmethod
    def say_done(data: Commit, message: Swept) -> Taken:
        assert data.outcome != "none", "a command ends for a reason"
        return data, (Tell(data.outcome),)

    @staticmethod
    def say_stale(data: Commit, message: Ask | Look) -> Taken:
        return _asked(data, message), (Tell("stale"),)

    @staticmethod
    def say_unreadable(data: Commit, message: Ask | Look) -> Taken:
        return _asked(data, message), (Tell("unreadable"),)

    @staticmethod
    def say_busy(data: Commit, message: GiveUp) -> Taken:
        return data, (Tell("busy"),)

    @staticmethod
    def say_broken(data: Commit, message: Interrupt) -> Taken:
        return data, (Tell("interrupted"),)

    @staticmethod
    def begin_anew(data: Commit, message: Forget) -> Taken:
        return Commit(data.me, data.stale_ms), ()


def _asked(data: Commit, message: Ask | Look) -> Commit:
    return attrs.evolve(data, token=message.token) if isinstance(message, Ask) else data


def same_epoch(token: Epoch, epoch: Epoch) -> bool:
    """Strict equality, types included (locks.md 2.1): the number 1 is not the string "1"."""
    return isinstance(token, str) == isinstance(epoch, str) and token == epoch


def epoch_named(text: str) -> Epoch:
    """The epoch that a text names: ours are plain decimal integers; anything else names a foreign owner's, as it is."""
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_EPOCH))
    return int(text) if plain and (text == "0" or text[0] != "0") else text


FENCED_COMMIT: Table[Commit, Happening, Output] = compile_chart(FencedCommitChart)
