"""What ties an adapter to its twin: programs, a world of files and processes, and how the two are compared."""

from __future__ import annotations

import errno
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Final, Generic

import attrs

from tenure.adapters.testing.memory import BOOT
from tenure.adapters.verify.bind.calls import Answer, Call, Got, Raised
from tenure.adapters.verify.bind.disk import Contents, Disks
from tenure.adapters.verify.bind.learner import Program
from tenure.machines.identity import GONE, RUNNING, Birth, Process, Sighting
from tenure.models.world import S
from tenure.models.world import World as Twin

CONTENTION: Final = Raised(errno.EBUSY)
REFUSED: Final = Raised(errno.EPERM)
FULL: Final = Raised(errno.ENOSPC)
BROKEN: Final = Raised(errno.EIO)
VANISHED: Final = Raised(errno.ENOENT)


@attrs.frozen
class Participant:
    """One that runs the adapter: its name in the twin, its process, its program."""

    name: str
    pid: int
    program: Program


@attrs.frozen(cache_hash=True)
class World:
    """What participants share: the disk (by number), the processes (pid, up, birth), and what else a binding has."""

    disk: int
    processes: tuple[tuple[int, bool, int], ...]
    extra: Hashable = None

    def process(self, pid: int) -> tuple[bool, int] | None:
        """Whether `pid` is up, and its birth."""
        return next(((up, birth) for p, up, birth in self.processes if p == pid), None)

    def with_process(self, pid: int, up: bool, birth: int) -> World:
        """The same with this process."""
        others = tuple((pid, up, birth) if p == pid else (p, u, b) for p, u, b in self.processes)
        return attrs.evolve(self, processes=others)


@attrs.frozen
class Move:
    """Something that befalls the world. `ends`: pids whose participants are gone; `starts`: pids whose participants
    begin again. `twin`: the actions of the twin, by name and arguments, one of which it is; none, and `STUTTER` among
    them: it may be nothing to it."""

    label: str
    after: World
    cost: int = 1
    ends: frozenset[int] = frozenset()
    starts: frozenset[int] = frozenset()
    twin: tuple[tuple[str, tuple[Hashable, ...]], ...] = ()
    assumed: bool = False
    """It befalls the world only where the twin lets it: an assumption on the environment, and no behaviour of ours."""


STUTTER: Final = ("", ())


class Binding(ABC, Generic[S]):
    """One configuration of one module's adapter. Subclasses say what is compared, and how."""

    module: ClassVar[str]
    through: ClassVar[frozenset[str]] = frozenset()
    """Phases that the adapter passes without a call of its own: the twin may be ahead there as well."""
    ticking: ClassVar[bool] = False
    """Whether a look at the clock is a call."""
    constants: ClassVar[tuple[type, ...]] = ()
    """Classes whose instances decide nothing: counts, say."""
    late: ClassVar[tuple[tuple[str, tuple[Hashable, ...]], ...]] = ()
    """Actions of the twin's environment that may come later there than here: time that went by before something was
    written has gone by after it, too."""
    commands: ClassVar[frozenset[str]] = frozenset()
    """Actions of a participant that somebody tells it to take: the twin is not ahead by one of them."""
    twin: Twin[S]
    participants: tuple[Participant, ...]
    budget: int
    """Crashes, errors and other faults in one behaviour."""

    # -- the world ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def contents(self) -> Contents:
        """What is on the disk at first."""

    def initial(self, disks: Disks) -> World:
        """The world at first."""
        pids = dict.fromkeys(p.pid for p in self.participants)
        return World(disks.add(self.contents()), tuple((pid, True, 1) for pid in pids))

    def outcomes(
        self, disks: Disks, world: World, participant: Participant, call: Call
    ) -> Iterable[tuple[Answer, World, int]]:
        """What the call may answer when all is well, the world afterwards, and what that costs of the budget (a
        command may cost). Nothing: it has to wait."""
        if call.name in Disks.CALLS:
            answer, disk = disks.do(world.disk, call)
            return ((answer, world if disk == world.disk else attrs.evolve(world, disk=disk), 0),)
        if call.name == "sighting":
            (pid,) = call.args
            found = world.process(pid) if isinstance(pid, int) else None
            seen = Sighting(RUNNING, found[1]) if found is not None and found[0] else Sighting(GONE)
            return ((Got(seen), world, 0),)
        return ((Got(), world, 0),)

    def faults(self, call: Call) -> tuple[Raised, ...]:
        """What the call may fail with."""
        return (CONTENTION, BROKEN) if call.name in Disks.CALLS else ()

    def moves(self, world: World, left: int) -> Iterable[Move]:
        """What may befall the world; a crash of each process, at least."""
        playing = {p.pid for p in self.participants}
        for pid, up, birth in world.processes:
            if up and pid in playing:
                after = world.with_process(pid, False, birth)
                yield Move(f"process {pid} dies", after, ends=frozenset({pid}), twin=self.crash(pid))

    @abstractmethod
    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        """The twin's actions for the death of a process."""

    def private(self, call: Call, observed: Hashable, world: World, left: int) -> bool:
        """Whether no other participant can tell this call or what it does, nor make a difference to it: it need not be
        interleaved with theirs."""
        return call.name == "sleep_ms"

    def settled(self, call: Call) -> bool:
        """Whether a participant that makes this call is in the middle of nothing: it has read nothing yet of what its
        next step rests on, so that the twin is not ahead either."""
        return False

    def me(self, pid: int, birth: int) -> Process:
        """The process as it knows itself."""
        return Process(pid, Birth(birth, BOOT, 1))

    # -- comparing ----------------------------------------------------------------------------------------------------

    at_rest: ClassVar[Hashable] = ("idle",)
    """What is seen of a participant that has not begun."""
    at_end: ClassVar[Hashable] = ("idle",)
    """What is seen of one whose program is over; None: nothing is, and it stays what it was."""

    @abstractmethod
    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        """What is compared of a participant that has stopped in these frames, the innermost first: a tuple that
        begins with its machine's phase."""

    @abstractmethod
    def shared(self, disks: Disks, world: World) -> Hashable:
        """What both have: the world in the twin's values."""

    @abstractmethod
    def shared_in(self, state: S) -> Hashable:
        """The same of a state of the twin."""

    def spent(self, state: S, left: int) -> bool:
        """Whether the twin has had no more faults than the system."""
        return bool(getattr(state, "budget", left) >= left)

    @abstractmethod
    def phase_in(self, state: S, participant: str) -> str:
        """The phase of a participant of the twin."""

    @abstractmethod
    def agrees(self, state: S, participant: str, observed: Hashable) -> bool:
        """Whether the twin's participant is what was observed."""

    def hint(self, shared: Hashable, observed: Hashable) -> Hashable:
        """Told before the twin takes steps that have to end like this: which identities it is to draw, and answers
        them. `observed` is None where nothing is drawn."""
        return None

    def actions(self, participant: str) -> tuple[tuple[str, Callable[..., Iterable[S]], tuple[Any, ...]], ...]:
        """The twin's actions of a participant: name, body, arguments."""
        return tuple(
            (action.name, action.body, args)
            for action in self.twin.actions()
            if not action.mutant
            for args in action.args
            if args and args[0] == participant
        )

    def fault_of(self, result: Hashable) -> str:
        """What is wrong with how a program ended; empty for nothing."""
        match result:
            case ("escaped", str(error)):
                return f"an error left the adapter that is no TenureError: {error}"
        return ""
