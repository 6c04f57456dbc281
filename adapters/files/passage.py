"""One thread's way through a guard: the machine of `tenure.machines.file_transaction`, and the calls it asks for.

A `Passage` (locks.md 3.1) makes the call that the machine's output names, and tells the machine the answer. What it
adds is how an answer is found so that it holds at one moment (read, probe, and see that it still stands there), which
error of the operating system is which answer, and the names of things.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from typing import Final, Generic, TypeVar

import attrs

from tenure.adapters.errors import TenureError, to_write
from tenure.adapters.files.debris import remove_aside, staged_word
from tenure.adapters.files.guard_errors import GuardBusy, GuardDamaged, GuardFailed, GuardLost
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.standing import Standing, look, neighbour_alive, observe, probe_claimant
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Killed, Ports, tell
from tenure.machines.chart import Step, step
from tenure.machines.file_calls import (
    Aborted,
    Answer,
    Begin,
    Call,
    Claimed,
    ClaimEntry,
    ClaimMissed,
    DeleteAside,
    GaveUp,
    JudgeName,
    Left,
    ListedOther,
    ListGuard,
    LookAtPath,
    Looked,
    MarkerGone,
    MarkerJudged,
    MarkerListed,
    MoveAway,
    Moved,
    MovedAway,
    MoveFailed,
    MoveStale,
    Observed,
    OwnerJudged,
    OwnerListed,
    Published,
    PublishGuard,
    PublishRefused,
    ReadGuard,
    ReleasedDeleted,
    ReleaseFailed,
    RemoveNeighbour,
    Report,
    Reread,
    RollBackClaim,
    RollbackFailed,
    RolledBack,
    RunInside,
    Sleep,
    Staged,
    StageFailed,
    StageGuard,
    StaleDeleted,
    Tidied,
    TidyFailed,
    TidyNeighbour,
    Woke,
)
from tenure.machines.file_transaction import FILE_TRANSACTION, FRESH_ATTEMPT, Attempt
from tenure.machines.guard_name import (
    STAGED_LENGTH,
    Debris,
    MarkerName,
    OwnerName,
    Released,
    Stale,
    marker,
    parse_name,
    render_debris,
    render_name,
)
from tenure.machines.guard_name import Staged as Shelf
from tenure.machines.identity import Process

T = TypeVar("T")

MODULE: Final = "FileTransaction"
OCCUPIED: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR})
"""The rename of S3 was refused because something stands there."""
TRANSIENT: Final = frozenset({errno.EPERM, errno.EBUSY, errno.EACCES})
"""May pass (locks.md 3.2): something else is being done to the same names at this moment."""
INSIDE: Final = frozenset({"tidying", "inside", "verifying", "releasing"})
PATIENCE: Final = 40
"""How often a release or a roll-back that fails is tried, with growing sleeps, before the caller is told."""


@attrs.frozen
class Guarded:
    """What the operation inside is told: the generation of its guard, and the number of the transaction in the
    recording (0 when nothing is recorded)."""

    generation: str
    number: int


class Passage(Generic[T]):
    """One thread's way through one guard: `phase` and `data` are the machine's."""

    def __init__(
        self,
        ports: Ports,
        path: str,
        timings: Timings,
        process: ProcessState,
        operation: Callable[[Guarded], T],
        attempts: int,
    ) -> None:
        self.ports = ports
        self.path = path
        self.timings = timings
        self.process = process
        self.operation = operation
        self.attempts = attempts
        self.phase = FILE_TRANSACTION.initial
        self.data: Attempt = FRESH_ATTEMPT
        self.me: Process = ports.processes.me()
        self.node = f"{self.me.pid}-{self.me.birth.ticks}/guard@" + path.rpartition("/")[2]
        """Its name in the recording: a process has one passage at a time through a path."""
        self.names: dict[int, str] = {}
        """Generations and claims by the numbers that the machine knows them by."""
        self.staged = ""
        """The staged directory that is there, if one is."""
        self.text = b""
        """What the own owner file says."""
        self.blind = False
        """The look at the path failed."""
        self.name = ""
        """The name of the entry that is to be claimed, then that of the claim."""
        self.reclaim = ""
        """The uuid of the claim whose reclaim runs."""
        self.aside = ""
        """Where the guard was moved to."""
        self.neighbour = ""
        """The entry of the recovery guard beside it that was judged (R8)."""
        self.number = 0
        self.tried = 0
        self.failures = 0
        self.cause: OSError | None = None
        """The error that kept this passage out, if it was one."""
        self.entered = False
        """The operation has been started."""
        self.result: list[T] = []
        self.error: BaseException | None = None
        self.report: Report | None = None

    def go(self) -> T:
        """All the way in, through the operation, and out."""
        if self.path in self.process.unreleased:
            self._release_late()
        try:
            self._drive(self._tell(Begin(), "EnsureParent"))
        except Killed:
            raise
        except OSError as error:
            self._unwind()
            failure = GuardLost if self.entered else GuardFailed
            raise failure(f"{self.path}: {_said(error)}; {to_write(error)}") from error
        except BaseException:
            self._unwind()
            raise
        return self._outcome()

    # -- the machine --------------------------------------------------------------------------------------------------

    def _tell(self, answer: Answer, action: str) -> tuple[Call, ...]:
        """Tell the machine, which takes every answer to what it asked for; `action` is the twin's name of it."""
        before = self.data
        done = step(FILE_TRANSACTION, self.phase, before, answer)
        assert isinstance(done, Step), f"{self.phase} refuses {answer}"
        self.phase, self.data = done.phase, done.data
        if self.ports.recorder is not None and action in _RECORDED:
            self._record(action, before)
        return done.outputs

    def _drive(self, outputs: tuple[Call, ...]) -> None:
        while self.report is None:
            call = outputs[0]
            if isinstance(call, RemoveNeighbour):
                if not self._remove_neighbour():
                    outputs = self._tell(Left(), "TidyFails")
                    continue
                call = outputs[1]
            outputs = _CALLS[type(call)](self, call)

    def _outcome(self) -> T:
        report = self.report
        assert report is not None
        if report.entered:
            if report.fault == "replaced":
                raise GuardLost(f"{self.path}: another guard stands where mine was; what stands there is left alone")
            if self.error is not None:
                raise self.error
            return self.result[0]
        if report.fault == "timeout":
            raise busy(self.path, look(self.ports, self.path), self.cause)
        raise GuardFailed(f"{self.path}: {_said(self.cause)}; {to_write(self.cause)}") from self.cause

    # -- entering -----------------------------------------------------------------------------------------------------

    def _stage(self, call: Call) -> tuple[Call, ...]:
        """S1. A parent that is missing is made (S0); a name that is taken is drawn again; what may pass is tried again.
        The rest is said at once: no waiting gives a right to write (K15)."""
        generation = self.ports.identities.uuid()
        self.text = owner_text(self.me, self.ports.clock.wall_ms(), generation)
        for failures in range(1, self.timings.rename_attempts + 1):
            try:
                self._make_staged(generation)
            except OSError as error:
                self.cause = error
                self._drop_staged()
                if failures == 1 and error.errno == errno.ENOENT:
                    self._make_parents()
                elif error.errno == errno.EBUSY:
                    self._pause(failures)
                elif error.errno not in (errno.EEXIST, errno.ENOENT):
                    break
            else:
                self.cause = None
                return self._tell(Staged(self._number(generation)), "Stage")
        return self._tell(StageFailed(), "StageFails")

    def _make_staged(self, generation: str) -> None:
        word = staged_word(self.me, self.ports.identities.bits(13))
        assert len(word) == STAGED_LENGTH
        path = self._beside(Shelf(word))
        self.ports.files.make_directory(path)
        self.staged = path
        self.ports.files.create(f"{path}/{render_name(OwnerName(generation))}", self.text)

    def _make_parents(self) -> None:
        """S0: the directories above, as far as they are missing."""
        missing, path = [], self.path.rpartition("/")[0]
        while path and self.ports.files.kind(path) == "absent":
            missing.append(path)
            path = path.rpartition("/")[0]
        for path in reversed(missing):
            try:
                self.ports.files.make_directory(path)
            except OSError as error:
                if error.errno != errno.EEXIST:
                    self.cause = error
                    return

    def _drop_staged(self) -> None:
        if self.staged:
            remove_aside(self.ports, self.staged)
            self.staged = ""

    def _look(self, call: Call) -> tuple[Call, ...]:
        """S2. A look that fails saw nothing, and what was not seen is not renamed over: as if the rename had failed."""
        try:
            present = self.ports.files.kind(self.path) != "absent"
        except OSError as error:
            self.cause, self.blind, present = error, True, False
        return self._tell(Looked(present), "Look")

    def _publish(self, call: Call) -> tuple[Call, ...]:
        """S3. After an error the path says whether the rename was done."""
        if self.blind:
            self.blind = False
            return self._tell(PublishRefused(), "PublishFails")
        action = "PublishRefused"
        try:
            self.ports.files.rename(self.staged, self.path)
        except OSError as error:
            if not self._is_there(self._mine()):
                if error.errno not in OCCUPIED:
                    self.cause, action = error, "PublishFails"
                return self._tell(PublishRefused(), action)
        self.staged, self.cause = "", None
        if self.ports.recorder is not None:
            self.number = self.ports.recorder.order()
        return self._tell(Published(), "Publish")

    def _run(self, call: Call) -> tuple[Call, ...]:
        self.entered = True
        try:
            self.result.append(self.operation(Guarded(self.names[self.data.id], self.number)))
        except Killed:
            raise
        except BaseException as error:
            self.error = error
        return self._tell(Left(), "Leave")

    # -- recovering ---------------------------------------------------------------------------------------------------

    def _read(self, call: Call) -> tuple[Call, ...]:
        return self._verify() if self.phase == "verifying" else self._observe()

    def _observe(self) -> tuple[Call, ...]:
        """R1."""
        self._drop_staged()
        seen = observe(self.ports, self.path, self.me)
        number = self._number(seen.generation) if seen.verifiable else 0
        return self._tell(Observed(seen.verifiable, number, seen.alive, seen.birth, seen.birth_now), "Observe")

    def _list(self, call: Call) -> tuple[Call, ...]:
        """R2."""
        try:
            names = self.ports.files.entries(self.path)
        except OSError:
            names = ()
        name = parse_name(names[0]) if len(names) == 1 else None
        self.name = names[0] if names else ""
        if isinstance(name, OwnerName):
            return self._tell(OwnerListed(self._number(name.generation)), "List")
        if isinstance(name, MarkerName):
            return self._tell(MarkerListed(self._number(name.uuid)), "List")
        return self._tell(ListedOther(), "List")

    def _judge(self, call: Call) -> tuple[Call, ...]:
        """R3. A marker is probed first and then seen to be there still, so that the probe was made while it was."""
        name = parse_name(self.name)
        if not isinstance(name, MarkerName):
            return self._tell(OwnerJudged(), "JudgeOwner")
        claimant = probe_claimant(self.ports, name, self.me)
        if not self._is_there(self.name):
            return self._tell(MarkerGone(), "JudgeMarker")
        running = name.uuid in self.process.running
        judged = MarkerJudged(claimant.alive, claimant.birth, claimant.birth_now, claimant.mine, running)
        return self._tell(judged, "JudgeMarker")

    def _claim(self, call: Call) -> tuple[Call, ...]:
        """R4: whatever goes wrong is contention, never an error (K7)."""
        mine = marker(self.me.pid, self.me.birth, self.ports.identities.bits(60))
        target, action = render_name(mine), "ClaimMissed"
        self.reclaim = mine.uuid
        self.process.begin_reclaim(mine.uuid)
        try:
            self.ports.files.rename(f"{self.path}/{self.name}", f"{self.path}/{target}")
        except OSError as error:
            if not self._is_there(target):
                self._end_reclaim()
                if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    action = "ClaimFails"
                return self._tell(ClaimMissed(), action)
        self.name = target
        return self._tell(Claimed(self._number(mine.uuid)), "Claim")

    def _move(self, call: Call) -> tuple[Call, ...]:
        """R5."""
        self.aside = self._beside(Stale(self.me.pid, self.ports.identities.uuid()))
        for failures in range(1, self.timings.rename_attempts + 1):
            if self._moved_to(self.aside):
                self._end_reclaim()
                return self._tell(Moved(), "Move")
            if failures < self.timings.rename_attempts:
                self._pause(failures)
        return self._tell(MoveFailed(), "MoveFails")

    def _roll_back(self, call: Call) -> tuple[Call, ...]:
        assert isinstance(call, RollBackClaim)
        target = render_name(OwnerName(self.names[call.payload]))
        try:
            self.ports.files.rename(f"{self.path}/{self.name}", f"{self.path}/{target}")
        except OSError as error:
            if self._is_there(self.name):
                self._lose_patience("the claim on a dead guard cannot be taken back", error)
                return self._tell(RollbackFailed(), "RollBackFails")
        self._end_reclaim()
        return self._tell(RolledBack(), "RollBack")

    def _delete_aside(self, call: Call) -> tuple[Call, ...]:
        """R6, X3: best effort; what stays is debris, and swept when this process is dead."""
        remove_aside(self.ports, self.aside, self.name)
        if self.phase == "deleting_stale":
            return self._tell(StaleDeleted(), "DeleteStale")
        return self._tell(ReleasedDeleted(), "DeleteReleased")

    def _tidy(self, call: Call) -> tuple[Call, ...]:
        """R8: look at the recovery guard of older versions."""
        try:
            alive, self.neighbour = neighbour_alive(self.ports, f"{self.path}.recovery", self.me)
        except OSError as error:
            self.cause = error
            self.error = TenureError(f"{self.path}.recovery: {_said(error)}; nothing was done")
            return self._tell(TidyFailed(), "TidyFails")
        return self._tell(Tidied(alive), "Tidy")

    def _remove_neighbour(self) -> bool:
        """R8: it is abandoned, or not there. Claimed by the name that was judged, and moved, like any dead guard. Where
        that fails the operation does not run: the guard won here is let go, and the error is the caller's (S10)."""
        if not self.neighbour:
            return True
        path = f"{self.path}.recovery"
        try:
            mine = marker(self.me.pid, self.me.birth, self.ports.identities.bits(60))
            self.ports.files.rename(f"{path}/{self.neighbour}", f"{path}/{render_name(mine)}")
            aside = f"{path}.stale.{self.me.pid}.{self.ports.identities.uuid()}"
            self.ports.files.rename(path, aside)
        except FileNotFoundError:
            return True  # somebody else has taken it
        except OSError as error:
            self.error = TenureError(f"{path}: {_said(error)}; nothing was done")
            return False
        remove_aside(self.ports, aside, render_name(mine))
        return True

    def _sleep(self, call: Call) -> tuple[Call, ...]:
        self.tried += 1
        if self.tried >= self.attempts or self._hopeless():
            return self._tell(GaveUp(), "GiveUp")
        self.ports.clock.sleep_ms(self.timings.delay_ms)
        return self._tell(Woke(), "Wake")

    def _hopeless(self) -> bool:
        """The publishing failed with what no waiting cures (3.2)."""
        return self.cause is not None and self.cause.errno not in TRANSIENT | {errno.ENOENT}

    # -- leaving ------------------------------------------------------------------------------------------------------

    def _verify(self) -> tuple[Call, ...]:
        """X1: the file with my generation in its name still says what I wrote: pid, generation, time, birth."""
        mine = f"{self.path}/{self._mine()}"
        while True:
            try:
                text = self.ports.files.read(mine)
            except OSError as error:
                if self._is_there(self._mine()):
                    self._lose_patience("my own guard cannot be read", error)
                    continue
                text = b""
            return self._tell(Reread(self.data.id if text == self.text else 0), "Verify")

    def _move_away(self, call: Call) -> tuple[Call, ...]:
        """X2."""
        if not self.aside or self.failures == 0:
            self.aside = self._beside(Released(self.ports.identities.uuid()))
        try:
            self.ports.files.rename(self.path, self.aside)
        except OSError as error:
            if self._is_there(self._mine()):
                self._lose_patience("my own guard cannot be moved away", error)
                return self._tell(ReleaseFailed(), "ReleaseFails")
        self.name = self._mine()
        return self._tell(MovedAway(), "MoveAway")

    def _report(self, call: Call) -> tuple[Call, ...]:
        assert isinstance(call, Report)
        self._drop_staged()
        self.report = call
        return ()

    # -- when things go wrong -----------------------------------------------------------------------------------------

    def _lose_patience(self, what: str, error: OSError) -> None:
        """A release or a roll-back has to succeed, for nobody else may do it while this process lives; so it is tried
        again, with longer and longer sleeps. In the end the caller is told, and the next passage goes on with it."""
        self.failures += 1
        if self.failures >= PATIENCE:
            raise GuardLost(f"{self.path}: {what} ({_said(error)}); others wait until this process ends") from error
        self._pause(self.failures)

    def _unwind(self) -> None:
        """Something that is no answer (an interrupt, patience lost) came in between: leave nothing behind, if that can
        be had at once. The machine ends here; what could not be had is found by the next passage, or at our death."""
        try:
            if self.phase in INSIDE or self.phase == "publishing":
                self.process.unreleased[self.path] = self.names[self.data.id]
                self._release_late()
            elif self.phase == "moving":
                self._tell(Aborted(), "Abort")
            self._end_reclaim()
            self._drop_staged()
        except OSError as error:
            tell(self.ports, "guard", "unwind", path=self.path, error=str(error))

    def _release_late(self) -> None:
        """Move a guard away that this process could not move away before, if it still stands there."""
        generation = self.process.unreleased[self.path]
        self.aside = ""
        if self._is_there(render_name(OwnerName(generation))):
            aside = self._beside(Released(self.ports.identities.uuid()))
            try:
                self.ports.files.rename(self.path, aside)
            except OSError as error:
                tell(self.ports, "guard", "release", path=self.path, error=str(error))
                return
            remove_aside(self.ports, aside)
        del self.process.unreleased[self.path]

    # -- names --------------------------------------------------------------------------------------------------------

    def _number(self, name: str) -> int:
        """The number by which the machine knows a generation or a claim: equal names have equal numbers."""
        for number, known in self.names.items():
            if known == name:
                return number
        number = len(self.names) + 1
        self.names[number] = name
        return number

    def _mine(self) -> str:
        return render_name(OwnerName(self.names[self.data.id]))

    def _beside(self, debris: Debris) -> str:
        directory, _, guard = self.path.rpartition("/")
        return f"{directory}/{render_debris(guard, debris)}"

    def _is_there(self, name: str) -> bool:
        """Whether that file is in the guard: what tells, after an error, if the call was made all the same."""
        for failures in range(1, PATIENCE):
            try:
                return self.ports.files.kind(f"{self.path}/{name}") == "file"
            except OSError:
                self._pause(failures)
        return self.ports.files.kind(f"{self.path}/{name}") == "file"

    def _moved_to(self, aside: str) -> bool:
        try:
            self.ports.files.rename(self.path, aside)
        except OSError as error:
            if self._is_there(self.name):
                self.cause = error
                return False
        return True

    def _end_reclaim(self) -> None:
        if self.reclaim:
            self.process.end_reclaim(self.reclaim)
            self.reclaim = ""

    def _pause(self, failures: int) -> None:
        """25, 50, 75, 100 ms (locks.md 1), and no longer than 100."""
        self.ports.clock.sleep_ms(self.timings.rename_delay_ms * min(failures, 4))

    def _record(self, action: str, before: Attempt) -> None:
        """Under the own generation, or the own claim; inside that is all, for it is done at every transaction."""
        recorder = self.ports.recorder
        assert recorder is not None
        own = self.names.get(before.id or self.data.claim or before.claim)
        if action == "Publish" or self.phase == "releasing":
            recorder.event(MODULE, action, self.node, self.number, None, None, own)
        else:
            number = self.number if action in _INSIDE else 0
            recorder.event(MODULE, action, self.node, number, None, {"phase": self.phase}, own)


_INSIDE: Final = frozenset({"Verify", "TidyFails"})
_RECORDED: Final = _INSIDE | {"Publish", "Claim", "Move", "MoveFails", "RollBack", "Abort"}
"""The steps that change what others see, and the look before the way out, which that follows by itself; the rest is
found between them (`tenure.adapters.trace.file_transaction`)."""

_CALLS: Final[dict[type[Call], Callable[..., tuple[Call, ...]]]] = {
    StageGuard: Passage._stage,
    LookAtPath: Passage._look,
    PublishGuard: Passage._publish,
    ReadGuard: Passage._read,
    ListGuard: Passage._list,
    JudgeName: Passage._judge,
    ClaimEntry: Passage._claim,
    MoveStale: Passage._move,
    RollBackClaim: Passage._roll_back,
    DeleteAside: Passage._delete_aside,
    TidyNeighbour: Passage._tidy,
    RunInside: Passage._run,
    Sleep: Passage._sleep,
    MoveAway: Passage._move_away,
    Report: Passage._report,
}


def owner_text(me: Process, wall_ms: int, generation: str) -> bytes:
    """What an owner file says: `render_payload` as compact JSON and a newline (locks.md 2), without the detour."""
    birth = me.birth
    return (
        f'{{"pid":{me.pid},"acquiredAtMs":{wall_ms},"generation":"{generation}","processBirth":{{"ticks":{birth.ticks},'
        f'"bootId":{encode_basestring_ascii(birth.boot_id)},"pidNamespace":{birth.namespace}}}}}\n'
    ).encode()


def busy(path: str, standing: Standing, cause: OSError | None) -> GuardBusy:
    """The error of somebody who did not get in: what stands there, what kept it out, what to do."""
    if standing.kind == "damaged":
        return GuardDamaged(f"{path}: {standing.problem}; nobody enters: run tenure doctor", standing)
    why = f"{standing.describe()}; wait for it, or see tenure status"
    if cause is not None:
        why = f"{cause.strerror} at every attempt ({standing.describe()})"
    return GuardBusy(f"{path}: {why}", standing)


def _said(error: OSError | None) -> str:
    return (error.strerror or str(error)) if error is not None else "failed"
