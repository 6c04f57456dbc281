"""Healing an agent directory: the RUNTIME_RECOVERY machine over real files (locks.md 8; S36, V13; A28, A29, A31, A32).

Run by a person, with no poller of its own: the machine's start is a look for damage, there is nothing to suspend and
nothing to release. What is damaged is moved to quarantine by rename, under the runtime-recovery guard and the ownership
guard, and only while no live owner can be shown. A kill at any point leaves every file in place or in quarantine, and
abandoned guards, which the next doctor takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeVar

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardBusy, GuardDamaged, Guarded, GuardedFile, GuardLost
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.looking.doctor_events import record
from tenure.adapters.looking.examine import Blocker, Damage, Findings, examine
from tenure.adapters.looking.legacy import OldGuards
from tenure.adapters.looking.looks import look_at_guard
from tenure.adapters.looking.quarantine import Moved, Quarantine
from tenure.adapters.ports import Ports, tell
from tenure.machines.chart import Step, step
from tenure.machines.runtime_recovery import (
    GUARD,
    REGISTRY,
    RUNTIME_RECOVERY,
    STATE,
    Confirm,
    Connect,
    Enter,
    Failed,
    Finish,
    Happening,
    Inspect,
    Look,
    Memory,
    MoveGuard,
    MoveRegistry,
    MoveState,
    Order,
    ReleaseEnded,
    Secure,
    SecureFailed,
    StartFailed,
    StartRefused,
    SuspendEnded,
)

T = TypeVar("T")


class Guard(Protocol):
    """What excludes all others while an operation runs: a `GuardedFile`, or a test's own."""

    def run(self, operation: Callable[[Guarded], T]) -> T:
        """Run it inside; raises GuardBusy without having run it."""


class Old(Protocol):
    """What clears old guards away: `OldGuards`, or a test's own."""

    def clear(self, move: Callable[[str], None]) -> None:
        """Have `move` take them away."""


@attrs.frozen
class Guards:
    """The runtime-recovery guard, the ownership guard, and what old versions left beside them."""

    recovery: Guard
    ownership: Guard
    old: Old


@attrs.frozen
class Outcome:
    """How it ended. `blocked`: something is damaged and stays, for the reason in `why` and the live `blockers`."""

    kind: Literal["not-needed", "recovered", "blocked"]
    found: tuple[Damage, ...] = ()
    moved: tuple[Moved, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    why: str = ""


class Doctor:
    """One healing. `phase` and `data` are the machine's."""

    def __init__(
        self,
        ports: Ports,
        directory: AgentDirectory,
        timings: Timings = DEFAULT,
        *,
        process: ProcessState | None = None,
        guards: Guards | None = None,
    ) -> None:
        self.phase = RUNTIME_RECOVERY.initial
        self.data = Memory()
        self._ports = ports
        self._directory = directory
        self._timings = timings
        # Transactions are counted by whoever is inside the ownership guard, and by nobody else.
        uncounted = attrs.evolve(ports, recorder=None)
        self._guards = guards or Guards(
            GuardedFile(uncounted, directory.recovery_guard, timings, process=process),
            GuardedFile(ports, directory.registry, timings, process=process),
            OldGuards(uncounted, directory.registry, timings, process),
        )
        self._quarantine = Quarantine(ports, directory, timings)
        self._first: tuple[Damage, ...] = ()
        self._blockers: tuple[Blocker, ...] = ()
        self._why = ""
        self._kept_out = False
        self._node = ""
        if ports.recorder is not None:
            me = ports.processes.me()
            self._node = f"{me.pid}-{me.birth.ticks}/doctor-{ports.identities.uuid()}"

    def heal(self) -> Outcome:
        """Heal, if there is anything to heal and nobody lives who owns it. Raises `TenureError` where the directory
        cannot be read or written; what has been moved by then is in quarantine."""
        try:
            return self._heal()
        except GuardLost as error:
            raise GuardLost(f"{error}{self._so_far()}") from error
        except OSError as error:
            raise TenureError(f"{error.filename or self._directory.root}: {error.strerror}{self._so_far()}") from error

    def _heal(self) -> Outcome:
        self._take(Connect())
        while self.phase == "starting" and self._start():
            pass
        moved = self._quarantine.moved
        if self.phase != "starting" or self._kept_out:
            return Outcome("blocked", self._first, moved, self._blockers, self._why)
        return Outcome("recovered" if moved else "not-needed", self._first, moved)

    def _start(self) -> bool:
        """One start, in place of a runtime's: a look for what would make one throw. False when nothing would; then a
        runtime would own and poll by now, and here the process ends."""
        found = self._settled()
        if not found.damage:
            legacy = look_at_guard(self._ports, self._directory.guard)
            if "file" in (legacy.form, look_at_guard(self._ports, f"{legacy.path}.recovery").form):
                self._guards.recovery.run(lambda _: self._guards.old.clear(self._quarantine.move_file))
            return False
        self._first = self._first or found.damage
        if self._is_kept_out(found):
            return False
        if found.led_elsewhere and not found.names & {GUARD, REGISTRY}:
            self._blocked_by(found)
            self._take(StartRefused())
            return True
        self._why = "damage is there again after healing; something writes it: " + _listed(found.damage)
        self._take(StartFailed(), found.names)
        if self.phase == "looking":
            self._recover()
        return not self._kept_out

    def _recover(self) -> None:
        """From the first look on."""
        found = self._settled()
        if self._is_kept_out(found):
            return
        self._blocked_by(found)
        self._take(Look(found.alive, not found.owned))
        if self.phase == "blocked":
            return
        self._take(SuspendEnded(stopped=True))
        # Nothing is held here, and a release on such damage could only fail: the looks decide, not this answer (A32).
        self._take(ReleaseEnded(released=not found.names & {GUARD, REGISTRY}))
        try:
            self._guards.recovery.run(self._under_recovery_guard)
        except GuardBusy as error:
            if self.phase != "entering":
                raise
            self._fail(_recovery_is_busy(error))

    def _under_recovery_guard(self, guarded: Guarded) -> None:
        self._take(Enter("nobody"))
        found = self._examine()
        self._blocked_by(found)
        self._take(Inspect(found.alive, not found.owned, found.names))
        if self.phase == "blocked":
            return
        try:
            if GUARD in self.data.seen:
                self._take(MoveGuard(), do=self._quarantine_guard)
            self._guards.old.clear(self._quarantine.move_file)
        except (OSError, TenureError) as error:
            self._fail(f"{self._directory.guard} could not be moved: {error}")
            return
        try:
            self._guards.ownership.run(self._under_both_guards)
        except GuardDamaged as error:
            self._clearing_ended(SecureFailed(), error)
        except GuardBusy as error:
            self._clearing_ended(Failed(), error)

    def _under_both_guards(self, guarded: Guarded) -> None:
        self._take(Secure("nobody"))
        found = self._examine(guarded.generation)
        self._blocked_by(found)
        self._take(Confirm(found.alive, not found.owned, found.mine, found.own_guard, found.names))
        if self.phase == "blocked":
            return
        try:
            if REGISTRY in self.data.seen:
                self._take(MoveRegistry(), do=lambda: self._quarantine.move(self._directory.registry))
            if STATE in self.data.seen:
                self._take(MoveState(), do=lambda: self._quarantine_states(found.damage))
        except OSError as error:
            self._fail(f"{error.filename or self._directory.state} could not be moved: {error.strerror}")
            return
        self._take(Finish())

    # -- what the machine is told, and what it says ---------------------------

    def _take(
        self, message: Happening, seen: frozenset[str] = frozenset(), *, do: Callable[[], None] | None = None
    ) -> None:
        """Offer it, `do` what it orders, and only then have done it: an error in that leaves the machine as it was."""
        match step(RUNTIME_RECOVERY, self.phase, self.data, message):
            case Step(phase, data, outputs):
                if do is not None:
                    do()
                self._reached(phase, data, outputs)
                tell(self._ports, "recovery", phase, event=message.event)
                if self._ports.recorder is not None:
                    record(self._ports.recorder, self._node, message, seen, phase)
            case refused:
                raise AssertionError(f"{refused}: the doctor offered what the machine does not know")

    def _reached(self, phase: str, data: Memory, outputs: tuple[Order, ...]) -> None:
        self.phase, self.data = phase, data

    def _fail(self, why: str) -> None:
        self._why = why
        self._take(Failed())

    def _clearing_ended(self, message: SecureFailed | Failed, error: GuardBusy) -> None:
        """The ownership guard could not be had; an error from inside goes on."""
        if self.phase != "clearing":
            raise error
        self._why = str(error)
        self._take(message)
        self._blockers = self._examine().blockers

    def _is_kept_out(self, found: Findings) -> bool:
        """Whether somebody who stays inside the ownership guard keeps a start out. Where the guard or the registry is
        damaged, it does not come to that."""
        if not found.inside or found.names & {GUARD, REGISTRY}:
            return False
        self._kept_out = True
        self._blocked_by(found)
        return True

    def _blocked_by(self, found: Findings) -> None:
        self._blockers = found.blockers
        self._why = "a live process owns what would be moved" if found.blockers else ""

    # -- looks ----------------------------------------------------------------

    def _examine(self, own: str | None = None) -> Findings:
        return examine(self._ports, self._directory, self._timings, own)

    def _settled(self) -> Findings:
        """A look as a start makes it, waiting for those who are inside the ownership guard for a moment only."""
        for _ in range(self._timings.attempts - 1):
            found = self._examine()
            if not found.inside or found.names & {GUARD, REGISTRY}:
                return found
            self._ports.clock.sleep_ms(self._timings.delay_ms)
        return self._examine()

    # -- files ----------------------------------------------------------------

    def _quarantine_states(self, found: tuple[Damage, ...]) -> None:
        for damage in found:
            if damage.what == STATE:
                self._quarantine.move(damage.path)

    def _quarantine_guard(self) -> None:
        """Move the damaged guard, if it still is. Nobody enters a damaged guard, so only a person's hand changes it."""
        look = look_at_guard(self._ports, self._directory.guard)
        if look.kind != "damaged":
            raise TenureError("it is not damaged any more; run tenure doctor again")
        if look.live:
            raise TenureError(
                f"pid {look.live[0]} is inside it and not dead; end it, or remove what it did not put there"
            )
        if look.form == "directory" and not look.names:
            self._quarantine.move_empty(look.path)
        elif look.form == "directory":
            self._quarantine.move(look.path)
        else:
            self._quarantine.move_file(look.path)

    def _so_far(self) -> str:
        moved = self._quarantine.moved
        return f"; moved before that: {', '.join(m.source for m in moved)}" if moved else "; nothing was changed"


def _listed(damage: tuple[Damage, ...]) -> str:
    return "; ".join(f"{d.path}: {d.problem}" for d in damage)


def _recovery_is_busy(error: GuardBusy) -> str:
    if not isinstance(error, GuardDamaged):
        return str(error)
    return (
        f"{error.standing.problem} in place of the guard of healing itself, which nobody heals: "
        "see that no tenure doctor runs, then move it away by hand"
    )
