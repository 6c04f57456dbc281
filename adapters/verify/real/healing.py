"""What a run with damage does beside its leaders: somebody tears files, and doctors heal them, some of whom are killed.

Damage is done as a program would do it that knows nothing of the protocol: garbage written over the registry in place,
by some inside its guard; garbage in place of the thread state; a file, or nothing, in a directory at the guard's path.
Each garbage is a text of its own, and is noted once it stands there: it must be in quarantine in the end.
"""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardedFile
from tenure.adapters.files.host import HostClock, RandomIdentities, Silent
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.files.processes import processes
from tenure.adapters.files.registry import parse_registry
from tenure.adapters.files.timings import Timings
from tenure.adapters.looking.doctor import Doctor
from tenure.adapters.looking.examine import examine
from tenure.adapters.ports import Ports
from tenure.adapters.trace.recorder import TraceRecorder
from tenure.adapters.verify.real.worker import Room

DAMAGE: Final = "damage"
"""The file in the room where garbage is noted, a text a line."""
KINDS: Final = ("registry", "registry", "registry inside", "thread state", "guard", "empty guard")
FOREIGN: Final = "lock"
"""The name of the file in a damaged guard."""


def _ports(room: Room) -> Ports:
    return Ports(PosixFiles(), processes(), HostClock(), RandomIdentities(), Silent(), TraceRecorder(room.trace))


def damage(room: Room, kind: str, text: str, timings: Timings) -> None:
    """Do damage of that kind, unless there is such damage already."""
    directory = AgentDirectory(str(room.agent))
    if not os.path.isdir(directory.state):
        return
    match kind:
        case "registry":
            _tear(room, directory, text)
        case "registry inside":
            with suppress(TenureError):
                GuardedFile(_ports(room), directory.registry, timings).run(lambda _: _tear(room, directory, text, True))
        case "thread state":
            state = Path(directory.state, "state.json")
            if not state.exists():
                state.write_text(text, encoding="ascii")
                _note(room, text)
        case _:
            _litter(room, directory, "" if kind == "empty guard" else text)


def _tear(room: Room, directory: AgentDirectory, text: str, inside: bool = False) -> None:
    """Write over what stands there, in place; not while somebody else is inside the guard, who may have read before,
    and would replace the garbage by its entry. The leaders stand still meanwhile."""
    if not inside and os.path.exists(directory.guard):
        return
    try:
        descriptor = os.open(directory.registry, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        if parse_registry(os.read(descriptor, 1 << 20)).problem:
            return
        data = text.encode("ascii")
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))
        _note(room, text)
    finally:
        os.close(descriptor)


def _litter(room: Room, directory: AgentDirectory, text: str) -> None:
    """A directory at the guard's path that is no guard, in one step, if nothing stands there."""
    made = Path(f"{directory.guard}.litter")
    made.mkdir()
    if text:
        (made / FOREIGN).write_text(text, encoding="ascii")
    try:
        if not os.path.exists(directory.guard):
            os.rename(made, directory.guard)
            if text:
                _note(room, text)
            return
    except OSError:
        pass
    for left in made.iterdir():
        left.unlink()
    made.rmdir()


def _note(room: Room, text: str) -> None:
    with (room.root / DAMAGE).open("a", encoding="ascii") as file:
        file.write(f"{text}\n")


def heal(room: Room, timings: Timings) -> None:
    """One doctor. What it cannot do is no error of the run: another one comes."""
    with suppress(TenureError):
        Doctor(_ports(room), AgentDirectory(str(room.agent)), timings).heal()


class Ward:
    """The vandals and doctors of one run, each a process of its own, forked from this one."""

    def __init__(self, room: Room, timings: Timings, chance: random.Random, number: int) -> None:
        self.room, self.timings, self.chance, self.number = room, timings, chance, number
        self.done = 0
        self.kills = 0
        self.doctors: list[int] = []

    def disturb(self, leaders: Collection[int]) -> None:
        """Damage something now and then, and send one doctor or two; one of them may not live to the end of it."""
        self._reap()
        if self.chance.random() < 0.7:
            self.done += 1
            kind = self.chance.choice(KINDS)
            text = f"{{garbage {self.number} {self.done}"
            still = leaders if kind == "registry" else ()
            for pid in still:
                os.kill(pid, signal.SIGSTOP)
                os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            _expect(os.waitpid(fork(lambda: damage(self.room, kind, text, self.timings)), 0)[1])
            for pid in still:
                os.kill(pid, signal.SIGCONT)
        for _ in range(self.chance.choice((0, 1, 1, 2))):
            self.doctors.append(fork(lambda: heal(self.room, self.timings)))
        if self.doctors and self.chance.random() < 0.4:
            time.sleep(self.chance.uniform(0.002, 0.02))
            self._kill(self.chance.choice(self.doctors))

    def end(self) -> None:
        """Kill and reap everybody."""
        for pid in list(self.doctors):
            self._kill(pid)

    def wrong(self) -> str:
        """Heal once more, now that nobody lives but this process; what is not as it should be then."""
        heal(self.room, self.timings)
        directory = AgentDirectory(str(self.room.agent))
        left = examine(_ports(self.room), directory, self.timings).damage
        if left:
            return f"after the last healing {left[0].path} is damaged: {left[0].problem}"
        for path in Path(directory.quarantine).rglob(os.path.basename(directory.registry)):
            if not parse_registry(path.read_bytes()).problem:
                return f"{path} is a good registry, and is in quarantine"
        noted = self.room.root / DAMAGE
        kept = [p.read_text("ascii", "replace") for p in Path(directory.quarantine).rglob("*") if p.is_file()]
        for text in noted.read_text(encoding="ascii").splitlines() if noted.exists() else ():
            if kept.count(text) != 1:
                return f"{text!r} was written, and is in quarantine {kept.count(text)} times"
        return ""

    def _reap(self) -> None:
        for pid in list(self.doctors):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self.doctors.remove(pid)
                _expect(status)

    def _kill(self, pid: int) -> None:
        self.doctors.remove(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            self.kills += 1
        else:
            _expect(status)


def _expect(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"a vandal or a doctor of the run broke down (status {status})")


def fork(body: Callable[[], None]) -> int:
    """A process that does that and ends, with status 0 unless something else than the run went wrong."""
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            body()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid
