"""One commit on an agent directory: the machine of `tenure.machines.fenced_commit`, with lock, guard and command.

Everything that decides is the machine's. Here are the read that it is told, the attempts at what is busy, the two
bounds of a command, and the words for what became of it. The command itself is `tenure.adapters.lead.errand`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, Protocol

import attrs

from tenure.adapters.errors import to_read
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardBusy, Guarded, GuardedFile, GuardLost
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.registry import Registry, parse_registry
from tenure.adapters.files.replacing import read_or_absent
from tenure.adapters.files.timings import Timings
from tenure.adapters.lead.commit_events import MODULE, record_step
from tenure.adapters.lead.stale_words import why_stale
from tenure.adapters.ports import Killed, Ports
from tenure.machines.chart import Refused, Step, step
from tenure.machines.fenced_commit import (
    COMMIT_GRACE_MS,
    COMMIT_MS,
    FENCED_COMMIT,
    Answer,
    Ask,
    Commit,
    Destroy,
    Ended,
    EnterGuard,
    Forget,
    GiveUp,
    GraceOver,
    Happening,
    Interrupt,
    Lock,
    Look,
    Output,
    RunCommand,
    Swept,
    Tell,
    Terminate,
    TimeUp,
    TryLock,
)
from tenure.machines.identity import RUNNING, UNKNOWN, Epoch, Sighting, is_me
from tenure.machines.lease import Sight

_LOOK_MS: Final = 3.0
"""How often it is looked for what is left of an ending command."""

Event = Literal["ended", "interrupted", "nothing"]
"""The command has ended; somebody asked this process to end; the time is over."""


class CommitLock(Protocol):
    """The lock that a command and all that it starts inherit."""

    def take(self) -> bool:
        """Take it if nobody has it."""

    def close(self) -> None:
        """Give up this process's part of it."""

    def holders(self) -> str:
        """Who has it, in words."""


class Errand(Protocol):
    """A command to be run once, in a process group of its own."""

    def start(self, epoch: Epoch) -> None:
        """Start it. Raises TenureError where no process can be made."""

    def wait(self, timeout_ms: float) -> Event:
        """Wait for its end, for a request to end (which is heard once), or for the time; also before its start."""

    def pause(self, timeout_ms: float) -> None:
        """Until something has happened to its processes, or the time is over."""

    def terminate(self) -> None:
        """Ask all that is left of it to end."""

    def destroy(self) -> None:
        """Kill all that is left of it."""

    def gone(self) -> bool:
        """Whether nothing of it is left."""


@attrs.frozen
class Verdict:
    """What became of a commit; `said` is one line about it, empty where the command speaks for itself."""

    answer: Answer
    said: str = ""


@attrs.frozen
class Bounds:
    """How long a command may run, and what is left of it may take to obey, in ms."""

    run_ms: int = COMMIT_MS
    grace_ms: int = COMMIT_GRACE_MS


class Committer:
    """Runs one errand after the other under epochs of `key`. `phase` and `data` are the machine's."""

    def __init__(
        self,
        ports: Ports,
        directory: AgentDirectory,
        key: str,
        timings: Timings,
        bounds: Bounds,
        open_lock: Callable[[], CommitLock],
        errand: Errand,
        *,
        process: ProcessState | None = None,
    ) -> None:
        self.ports = ports
        self.directory = directory
        self.key = key
        self.timings = timings
        self.bounds = bounds
        self.guard = GuardedFile(ports, directory.registry, timings, process=process)
        self.phase = FENCED_COMMIT.initial
        self.data = Commit(ports.processes.me(), timings.stale_ms)
        self._open_lock = open_lock
        self._lock: CommitLock | None = None
        self._errand = errand
        self._number = 0
        self._token: Epoch = ""

    def run(self, token: Epoch) -> Verdict:
        """Run the errand inside the ownership transaction if `token` is the epoch of a live lease, and say how it went.

        Raises TenureError where lock, guard or process cannot be made: nothing has run; GuardLost when the command has
        run, but perhaps not alone.
        """
        self._token = token
        registry, sight = self._read(inside=False)
        try:
            verdict = self._drive(self._told(Ask(token, sight)), registry, sight)
        except Killed:
            raise
        except BaseException:
            self._close_lock()
            self._break_off()
            self._tell(Forget())
            raise
        self._close_lock()
        self._tell(Forget())
        return verdict

    def _break_off(self) -> None:
        """An error ends a commit as a request to end does; nothing of the command is left."""
        self._tell(Interrupt())
        self._tell(Swept(True))

    def _close_lock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # -- the machine --------------------------------------------------------------------------------------------------

    def _tell(self, message: Happening) -> Step[Commit, Output] | Refused:
        taken = step(FENCED_COMMIT, self.phase, self.data, message)
        if isinstance(taken, Step):
            before, self.phase, self.data = self.phase, taken.phase, taken.data
            if self.ports.recorder is not None:
                step_taken = (before, message, self.phase)
                record_step(self.ports.recorder, self._node(), self._number, self._token, step_taken, self.data)
        return taken

    def _told(self, message: Happening) -> Output:
        """What the machine asks for after a message that it takes."""
        taken = self._tell(message)
        assert isinstance(taken, Step), taken
        (output,) = taken.outputs
        return output

    def _drive(self, output: Output, registry: Registry, sight: Sight) -> Verdict:
        """Before the command: the lock, then the guard; what is told without either is told by this first read."""
        if isinstance(output, TryLock):
            output = self._try_lock()
        if isinstance(output, EnterGuard):
            return self._enter()
        assert isinstance(output, Tell)
        return Verdict(output.answer, self._words(output.answer, registry, sight))

    def _try_lock(self) -> Output:
        self._lock = self._open_lock()
        for attempt in range(self.timings.attempts):
            if attempt and self._errand.wait(self.timings.delay_ms) == "interrupted":
                return self._told(Interrupt())
            taken = self._tell(Lock(self._lock.take()))
            if isinstance(taken, Step):
                return taken.outputs[0]
        return self._told(GiveUp())

    def _enter(self) -> Verdict:
        """The attempts are made here and not by the guard, so that a request to end is heard between them."""
        for attempt in range(self.timings.attempts):
            if attempt and self._errand.wait(self.timings.delay_ms) == "interrupted":
                return self._verdict(self._told(Interrupt()), "")
            try:
                return self._inside()
            except GuardBusy as error:
                busy = str(error)
        return self._verdict(self._told(GiveUp()), busy)

    def _inside(self) -> Verdict:
        verdicts: list[Verdict] = []
        try:
            self.guard.run(lambda guarded: verdicts.append(self._look(guarded)), attempts=1)
        except GuardLost as error:
            if not verdicts or self.phase != "done":
                raise
            raise GuardLost(f"{error}; the command has run") from error
        return verdicts[0]

    # -- inside the guard ---------------------------------------------------------------------------------------------

    def _look(self, guarded: Guarded) -> Verdict:
        self._number = guarded.number
        if self.ports.recorder is not None:
            self.ports.recorder.event(MODULE, "Enter", self._node(), self._number, None, None, self._token)
        registry, sight = self._read(inside=True)
        try:
            output = self._told(Look(sight))
            if isinstance(output, RunCommand):
                output = self._sweep(self._run(output))
            assert isinstance(output, Tell)
            self._number = 0
            return Verdict(output.answer, self._words(output.answer, registry, sight))
        except Killed:
            raise
        except BaseException:
            # Whatever it is, an interrupt or a fault of ours: the guard is left when nothing of the command is left.
            while not self._errand.gone():
                self._errand.destroy()
                self.ports.clock.sleep_ms(_LOOK_MS)
            self._break_off()
            self._number = 0
            raise

    def _run(self, order: RunCommand) -> Output:
        ends_ms = self.ports.clock.fence_ms() + self.bounds.run_ms
        self._errand.start(order.epoch)
        while True:
            left_ms = ends_ms - self.ports.clock.fence_ms()
            event = self._errand.wait(max(0, left_ms))  # also when the time is over: this process may have been stopped
            if event != "nothing":
                return self._told(Ended() if event == "ended" else Interrupt())
            if left_ms <= 0:
                return self._told(TimeUp())

    def _sweep(self, output: Output) -> Output:
        """Until the machine says that nothing is left."""
        kill_ms = self.ports.clock.fence_ms() + self.bounds.grace_ms
        while True:
            if isinstance(output, Terminate):
                self._errand.terminate()
            elif isinstance(output, Destroy):
                self._errand.destroy()
            else:
                return output
            taken = self._tell(Swept(self._errand.gone()))
            while isinstance(taken, Refused):
                self._errand.pause(_LOOK_MS)
                taken = self._tell(Swept(self._errand.gone()))
                if isinstance(taken, Refused) and self.ports.clock.fence_ms() >= kill_ms:
                    taken = self._tell(GraceOver())
            output = taken.outputs[0]

    def _node(self) -> str:
        """Its name in a recording."""
        me = self.data.me
        return f"{me.pid}-{me.birth.ticks}/commit@{self.key}"

    # -- reading ------------------------------------------------------------------------------------------------------

    def _read(self, *, inside: bool) -> tuple[Registry, Sight]:
        """The registry, and what it shows of the key."""
        ports = self.ports
        try:
            registry = parse_registry(read_or_absent(ports.files, self.directory.registry))
        except OSError as error:
            registry = Registry(problem=f"cannot be read: {error.strerror or error}", remedy=to_read(error))
        if not registry.problem and (problem := registry.implausible(self.key)):
            registry = attrs.evolve(registry, problem=problem)
        entry = None if registry.problem else registry.entry(self.key)
        seen, me = Sighting(UNKNOWN), self.data.me
        if entry is not None:
            mine = is_me(entry.pid, entry.birth, me)
            seen = Sighting(RUNNING, me.birth.ticks) if mine else ports.processes.sighting(entry.pid)
        readable = not registry.problem
        now_ms = ports.clock.monotonic_ms()
        return registry, Sight(inside, readable, self.key, entry, seen, ports.clock.wall_ms(), now_ms)

    # -- words --------------------------------------------------------------------------------------------------------

    def _verdict(self, output: Output, said: str) -> Verdict:
        assert isinstance(output, Tell)
        return Verdict(output.answer, said)

    def _words(self, answer: Answer, registry: Registry, sight: Sight) -> str:
        match answer:
            case "unreadable":
                return f"{self.directory.registry}: {registry.problem}; nothing was run: {registry.remedy}"
            case "timed_out":
                return (
                    f"the command was ended: its {self.bounds.run_ms / 1000:g} s were over, and others wait meanwhile"
                )
            case "busy":
                assert self._lock is not None
                return f"{self.directory.commit_lock(self.key)}: {self._lock.holders()}; nothing was run"
            case "stale":
                return f"{self.directory.registry}: {why_stale(self._token, sight, self.data)}; nothing was run"
        return ""
