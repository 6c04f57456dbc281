"""One run: start the processes, disturb them for a while, end them, and ask the models to explain what they did."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import Timings
from tenure.adapters.testing.updates import serve
from tenure.adapters.trace.check import check
from tenure.adapters.trace.journal_rows import write_lost
from tenure.adapters.trace.lines import read
from tenure.adapters.trace.search import Limits
from tenure.adapters.verify.real.committing import commits
from tenure.adapters.verify.real.healing import Ward, fork
from tenure.adapters.verify.real.membership import membership
from tenure.adapters.verify.real.mischief import Thieves
from tenure.adapters.verify.real.worker import Faults, Room, interleaved, work
from tenure.adapters.verify.real.working import WORK, journal_of, working, wrong

SCALE: Final = 1 / 20
"""Real runs are that much faster than real (DESIGN 7)."""
KINDS: Final[Mapping[str, Faults]] = {
    "kill": Faults(),
    "stop": Faults(kill=False, stop=True),
    "kill and stop": Faults(stop=True),
    "failing calls": Faults(fail=0.03),
    "reused pids": Faults(reuse=True),
    "clock steps": Faults(clock=True),
    "everything": Faults(stop=True, fail=0.02, reuse=True, clock=True),
}
"""What runs do, in turn."""
FLEETS: Final[Mapping[str, Faults]] = {
    "fleet, kill": Faults(),
    "fleet, stop": Faults(kill=False, stop=True),
    "fleet, endpoint": Faults(kill=False, endpoint=True),
    "fleet, everything": Faults(stop=True, endpoint=True),
}
"""What runs with a fleet do, in turn; in all of them members leave, join again, and serve other sessions."""
WORKS: Final[Mapping[str, Faults]] = {
    "work, kill": Faults(),
    "work, kill and stop": Faults(stop=True),
    "work, stop": Faults(kill=False, stop=True),
}
"""What runs with workplaces do, in turn; in all of them items move, executions fail, and people leave and come."""
UNEXPLAINED: Final = frozenset({"LeaderElection"})
"""What damage runs record and do not explain: its model knows of a torn registry that is mended, and not of one that a
doctor takes away. What must hold of leases then is looked at apart: effects in the order of their epochs."""
MODULES: Final = ("FileTransaction", "LeaderElection", "PollingOwnership")
"""The modules whose events a run records."""
COMMITTING: Final = ("FencedCommit",)
"""Those whose events it records as well, if somebody commits in it."""
HEALING: Final = ("RuntimeRecovery",)
"""Those whose events it records as well, if somebody does damage in it, and doctors heal that."""


CALM: Final = 0.7
"""How often in a lease somebody is disturbed where there is work; elsewhere it is 3 times. Who has just come joins
first."""
EACH: Final = ("HearAck", "Accept", "Complete")
"""What is waited for where there is work: that something was forwarded, moved and executed."""
PATIENCE: Final = 20
"""For how many leases a run waits until there is something of each kind to disturb."""
BEGINNING: Final = 1 << 17
"""How much of a trace is looked at for that, in bytes."""
FLEET: Final = ("Succession", "FollowerRegistration")
"""Those whose events it records instead, if a fleet of members is in it."""


@attrs.frozen
class RunPlan:
    """What a run is: its number gives its kind and its chances."""

    number: int
    leases: float = 3.5
    """How many leases it lasts."""
    processes: int = 3
    scale: float = SCALE
    seconds: float = 60.0
    """What the search for an explanation may take."""
    damage: bool = False
    """Whether files are damaged, and healed."""
    fleet: bool = False
    """Whether a fleet of members is in it, instead of leaders by themselves."""
    work: bool = False
    """Whether workplaces are in it, with updates to execute."""

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules whose events it records."""
        if self.work:
            return WORK
        if self.fleet:
            return (*MODULES, *FLEET)
        return (*MODULES, *(HEALING if self.damage else COMMITTING))

    @property
    def kind(self) -> str:
        """The name of what is done to the processes."""
        if self.damage:
            return "damage"
        if self.work:
            return list(WORKS)[self.number % len(WORKS)]
        if self.fleet:
            return list(FLEETS)[self.number % len(FLEETS)]
        return list(KINDS)[self.number % len(KINDS)]


@attrs.frozen
class RunResult:
    """What came of a run, by module: `events` recorded, and `problems` (empty where everything is explained)."""

    number: int
    kind: str
    seconds: float
    kills: int
    stops: int
    effects: int
    events: dict[str, int]
    problems: dict[str, str]
    limits: dict[str, str]
    room: str = ""
    """Where the trace was left, if there is a problem."""
    commands: int = 0
    """Commands that committers have run; their effects are among the others."""
    moves: int = 0
    """Accepted handoffs."""


def run(plan: RunPlan, place: Path) -> RunResult:
    """Do one run in `place`, which is removed again if nothing is wrong. Nobody of it lives on afterwards."""
    started = time.monotonic()
    room = Room(place)
    for directory in (room.agent, room.trace, room.pids):
        directory.mkdir(parents=True)
    chance = random.Random(plan.number)
    faults = {**KINDS, **FLEETS, **WORKS}.get(plan.kind, Faults())
    timings = Timings().scaled(plan.scale)
    crowd = _Crowd(room, faults, timings, plan, chance)
    try:
        try:
            crowd.disturb()
        finally:
            crowd.end()
        return _judged(plan, started, crowd, room)
    finally:
        crowd.end_queue()


def _judged(plan: RunPlan, started: float, crowd: _Crowd, room: Room) -> RunResult:
    healed = crowd.ward.wrong() if crowd.ward is not None else ""
    lines = room.effects.read_text(encoding="ascii").splitlines() if room.effects.exists() else []
    problems: dict[str, str] = {}
    limits: dict[str, str] = {}
    events: dict[str, int] = {}
    try:
        trace = read([room.trace])
        if plan.work:
            amiss = wrong(room, trace.events)
            problems |= dict.fromkeys(plan.modules, amiss) if amiss else {}
            if write_lost(trace.events, journal_of(room), room.trace):
                trace = read([room.trace])
    except TenureError as error:
        return _result(plan, started, crowd, lines, {}, dict.fromkeys(plan.modules, str(error)), {}, room)
    for module in plan.modules:
        events[module] = sum(event.module == module for event in trace.events)
        if not events[module]:
            problems[module] = "nothing was recorded"
    verdict = check(trace, Limits(seconds=plan.seconds), UNEXPLAINED if plan.damage else ())
    if not verdict:
        said = limits if verdict.limit else problems
        for module in plan.modules if verdict.first is None else (verdict.first.module,):
            said[module] = str(verdict)
    mixed = interleaved(lines)
    if mixed:
        for module in ("LeaderElection", *COMMITTING):
            problems.setdefault(module, mixed)
    if healed:
        problems["RuntimeRecovery"] = healed
    commands = sum(event.module in COMMITTING and event.action == "Run" for event in trace.events)
    result = attrs.evolve(_result(plan, started, crowd, lines, events, problems, limits, room), commands=commands)
    if not plan.work:
        return result
    executed, moved = (sum(event.action == action for event in trace.events) for action in ("Effect", "Accept"))
    return attrs.evolve(result, effects=executed, moves=moved)


def _result(
    plan: RunPlan,
    started: float,
    crowd: _Crowd,
    lines: list[str],
    events: dict[str, int],
    problems: dict[str, str],
    limits: dict[str, str],
    room: Room,
) -> RunResult:
    if not problems:
        shutil.rmtree(room.root, ignore_errors=True)
    return RunResult(
        plan.number, plan.kind, round(time.monotonic() - started, 2), crowd.kills, crowd.stops, len(lines) // 2,
        events, problems, limits, str(room.root) if problems else "",
    )  # fmt: skip


class _Crowd:
    """The processes of a run, forked from this one: it has no threads, and everything is imported."""

    def __init__(self, room: Room, faults: Faults, timings: Timings, plan: RunPlan, chance: random.Random) -> None:
        self.room, self.faults, self.timings, self.plan, self.chance = room, faults, timings, plan, chance
        self.pids: dict[int, int] = {}
        self.stopped: dict[int, float] = {}
        self.born = 0
        self.kills = 0
        self.stops = 0
        self.ward = Ward(room, timings, chance, plan.number) if plan.damage else None
        # One more commits; not where doctors take entries away, which the model of a commit does not have.
        self.slots = plan.processes if plan.damage or plan.fleet or plan.work else plan.processes + 1
        self.thieves = Thieves(room, chance) if faults.endpoint else None
        self.queue = fork(lambda: asyncio.run(serve(str(room.updates)))) if plan.work else 0
        for slot in range(self.slots):
            self._start(slot)

    def _start(self, slot: int) -> None:
        self.born += 1
        seed = self.plan.number * 10_000 + self.born
        pid = os.fork()
        if pid == 0:
            status = 70
            try:
                body = work if slot < self.plan.processes else commits
                if self.plan.fleet:
                    body = membership
                if self.plan.work:
                    body = working
                body(self.room, self.faults, slot, seed, self.timings)
            except BaseException:
                with suppress(OSError):
                    (self.room.root / f"died.{os.getpid()}").write_text(traceback.format_exc(), encoding="utf-8")
            finally:
                os._exit(status)
        self.pids[slot] = pid

    def disturb(self) -> None:
        """Until the time is over: kill, stop, continue; a killed one is replaced."""
        lease = self.timings.stale_ms / 1000
        self._until_all_has_begun(lease)
        end = time.monotonic() + self.plan.leases * lease
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, self.chance.expovariate((CALM if self.plan.work else 3) / lease)))
            if self.ward is not None:
                self.ward.disturb(self.pids.values())
            if self.thieves is not None:
                self.thieves.disturb()
            now = time.monotonic()
            for slot, until in list(self.stopped.items()):
                if now >= until:
                    os.kill(self.pids[slot], signal.SIGCONT)
                    del self.stopped[slot]
            slot = self.chance.randrange(self.slots)
            if slot in self.stopped:
                continue
            if self.faults.stop and (not self.faults.kill or self.chance.random() < 0.5):
                os.kill(self.pids[slot], signal.SIGSTOP)
                self.stopped[slot] = now + self.chance.uniform(0.1, 2) * lease
                self.stops += 1
            elif self.faults.kill:
                self._end(slot)
                self.kills += 1
                self._start(slot)

    def _until_all_has_begun(self, lease: float) -> None:
        """Wait until something of each module was recorded, or far longer than that should take: on a busy machine a
        run can be over before its last process has done anything. A fleet has one lease in any case."""
        end = time.monotonic() + PATIENCE * lease
        if self.plan.fleet:
            time.sleep(lease)
        wanted = [f'"{module}"'.encode() for module in self.plan.modules if module not in HEALING]
        if self.plan.work:
            wanted = [f'"{action}"'.encode() for action in EACH]
        while time.monotonic() < end:
            begun = [_beginning(path) for path in self.room.trace.glob("*.trace")]
            if all(any(name in text for text in begun) for name in wanted):
                return
            time.sleep(lease / 20)

    def end(self) -> None:
        """Kill and reap everybody."""
        for slot in list(self.pids):
            self._end(slot)
        for beside in (self.ward, self.thieves):
            if beside is not None:
                beside.end()

    def end_queue(self) -> None:
        """It has outlived those that polled it, to be asked what it has forgotten."""
        if self.queue:
            os.kill(self.queue, signal.SIGKILL)
            os.waitpid(self.queue, 0)
            self.queue = 0

    def _end(self, slot: int) -> None:
        pid = self.pids.pop(slot)
        self.stopped.pop(slot, None)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status):
            said = self.room.root / f"died.{pid}"
            text = said.read_text(encoding="utf-8") if said.exists() else f"status {status}"
            raise RuntimeError(f"a process of the run ended by itself: {text}")


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(BEGINNING)
