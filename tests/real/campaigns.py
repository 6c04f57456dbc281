"""A campaign: many updates into a few instances, items that move, and processes that are killed, stopped and told to
leave all the time. What has come of it is judged by what the handlers wrote and by the journal; see `Campaign`."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.rows import ReceiptRow
from tenure.adapters.testing.history import Fault, State, Verdict, judge
from tests.real.conftest import until
from tests.real.lives import Told, said, whole_lives
from tests.real.terminals import Terminal
from tests.real.works import PATIENCE, SCALE, Works

THREADS_OF_NOBODY = 0.05
"""So many of the updates are in no thread: they are the leader's."""


@attrs.define
class Harm:
    """What was done to processes. `killed`, `told`: pids that a SIGKILL, a SIGTERM was sent to."""

    killed: set[int] = attrs.field(factory=set)
    told: set[int] = attrs.field(factory=set)
    stops: int = 0
    asked: int = 0
    """Moves that were asked for."""
    leaders: int = 0
    """Of those killed: how many led."""

    @property
    def ends(self) -> int:
        """How many processes were made to end."""
        return len(self.killed | self.told)


@attrs.frozen
class Result:
    """What a campaign has come to."""

    pushed: int
    executed: int
    interrupted: int
    faults: tuple[str, ...]
    harm: Harm
    begun: int
    failures: int
    moved: int
    decisions: int
    typed: Counter[str]
    """What came of each `tenure handoff` that somebody typed."""
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.pushed} updates, {len(self.harm.killed)} killed ({self.harm.leaders} leaders), "
            f"{len(self.harm.told)} told to leave, {self.harm.stops} stopped, {self.harm.asked} moves asked for: "
            f"{self.executed} executed, {self.interrupted} interrupted, {self.begun} begun, {self.failures} failed, "
            f"{self.moved} handed over, typed {dict(self.typed)}, {self.decisions} decisions, "
            f"{len(self.faults)} faults, {self.seconds:.1f} s"
        )


class Campaign(Works):
    """Terminals on one directory, in which something is started again whenever it has ended."""

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(root)
        self.chance = random.Random(seed)
        self.terminals: list[Terminal] = []
        self.harm = Harm()
        self.people: list[subprocess.Popen[str]] = []
        self._began = time.monotonic()
        self.longest_stop = 1.5
        """Seconds for which somebody is stopped at most; his lease is over after two."""
        self._stopped: dict[int, float] = {}

    def open(self, count: int, *options: str, scale: float = SCALE) -> list[Terminal]:
        """So many, the first of which leads; the first start is over. `options`: of `tests.real.terminal`."""
        for _ in range(count):
            terminal = Terminal(self, *options, scale=scale)
            self.all.append(terminal)  # type: ignore[arg-type]
            self.terminals.append(terminal)
            until(lambda one=terminal: one.place is not None, PATIENCE)  # type: ignore[misc]
            if len(self.terminals) == 1:
                until(lambda: self.journal(lambda j: j.state().opened), PATIENCE)
        self._began = time.monotonic()
        return self.terminals

    def say(self, *messages: tuple[int | None, str]) -> None:
        """An update with each of these texts, in these threads."""
        updates: list[dict[str, Any]] = []
        for thread, text in messages:
            self.pushed += 1
            inner: dict[str, Any] = {"message_id": self.pushed, "chat": {"id": 0}, "text": text}
            if thread is not None:
                inner["message_thread_id"] = thread
            updates.append({"update_id": self.pushed, "message": inner})
        asyncio.run(self._client.push(*updates))

    def leader(self) -> Terminal:
        """Who leads, when everybody has found a place and nobody of the dead is still taken for alive."""

        def placed() -> Terminal | None:
            (leader, *others) = [one for one in self.terminals if one.leads] or [None]
            if leader is None or others:
                return None
            follows = f"following pid {leader.pid}"
            return leader if all(one is leader or one.role.startswith(follows) for one in self.terminals) else None

        found = until(placed, PATIENCE)
        assert found is not None
        return found

    def instance(self, terminal: Terminal) -> str:
        """That of its process, as it has written itself down in the journal."""

        def written() -> list[str]:
            rows = self.journal(lambda j: j.servers())
            return [row.party.instance for row in rows if row.party.process.startswith(f"{terminal.pid}:")]

        return until(written, PATIENCE)[0]

    def ask(self, update: int, to: Terminal) -> None:
        """A person wants the item of an update there."""
        instance, receipt = self.instance(to), self.row(update).receipt_id
        assert self.journal(lambda j: j.ask_move(receipt, instance))

    def row(self, update: int) -> ReceiptRow:
        """The receipt of an update, when it has been admitted."""

        def admitted() -> ReceiptRow | None:
            rows = self.listing().receipts
            return next((row for row in rows if row.first_update == update), None)

        found = until(admitted, PATIENCE)
        assert found is not None
        return found

    def row_state(self, update: int) -> str:
        """The phase of the receipt of an update, also of one that is settled; "" where there is none."""
        item = self.journal(lambda j: j.item(str(update)))
        return item.receipts[0].phase if item.receipts else ""

    def owner(self, update: int) -> str:
        """The instance that has the item of an update, "" for nobody."""
        owner = self.row(update).data.owner
        return "" if owner is None else owner.instance

    def begins(self, update: int) -> str:
        """Wait until it has begun, and answer the process."""
        return until(
            lambda: [line.process for line in self.executions() if line.update == update and line.what == "began"],
            PATIENCE,
        )[0]

    def go(self, name: str) -> None:
        """Handlers that await this go on."""
        Path(f"{self.log}.{name}").touch()

    def dies(self, terminal: Terminal, when: str) -> int:
        """The process that is in a terminal now dies when it comes there. Its pid."""
        pid = terminal.pid
        place = Path(f"{self.log}.dies.{terminal.shell}")
        place.with_suffix(".new").write_text(when)
        place.with_suffix(".new").rename(place)
        self.harm.killed.add(pid)
        return pid

    def some(self, count: int) -> list[tuple[int | None, str]]:
        """Messages for all threads; some of them fail at first, some take long."""
        found: list[tuple[int | None, str]] = []
        for _ in range(count):
            nobody = self.chance.random() < THREADS_OF_NOBODY
            thread = None if nobody else self.chance.choice(self.terminals).thread
            text = self.chance.choices(
                ["hello", "takes 0.02", f"fails {self.chance.randint(1, 3)}", "takes 0.2"], [60, 33, 4, 3]
            )[0]
            found.append((thread, text))
        return found

    # -- harm ---------------------------------------------------------------------------------------------------------

    def hurt(self) -> None:
        """Somebody is killed, told to leave, or stopped for a while, the leader more often than others; or all die."""
        leaders = [one for one in self.terminals if one.leads]
        one = self.chance.choice(leaders if leaders and self.chance.random() < 0.15 else self.terminals)
        pid, leads = one.pid, one.leads
        how = self.chance.choices(["kill", "stop", "tell", "kill all"], [14, 4, 2, 1])[0]
        if how == "stop" and pid not in self._stopped:
            self.harm.stops += 1
            self._signal(pid, signal.SIGSTOP)
            self._stopped[pid] = time.monotonic() + self.chance.uniform(0.1, self.longest_stop)
        elif how == "tell":
            self._signal(pid, signal.SIGTERM)
            self.harm.told.add(pid)
        else:
            for number in {pid} if how == "kill" else {one.pid for one in self.terminals}:
                self._signal(number, signal.SIGKILL)
                self.harm.killed.add(number)
            self.harm.leaders += leads or how == "kill all"

    def wake(self, *, everybody: bool = False) -> None:
        """Who was stopped for long enough goes on."""
        for pid, when in list(self._stopped.items()):
            if everybody or time.monotonic() >= when:
                self._signal(pid, signal.SIGCONT)
                del self._stopped[pid]

    def move(self, count: int) -> None:
        """A person wants some of what is open somewhere else."""

        def ask(journal: Journal) -> int:
            living = {str(one.pid) for one in self.terminals}
            parties = {row.party.instance for row in journal.servers() if row.left_at is None}
            there = sorted(one for one in parties if one.partition(":")[0] in living)
            waiting = [row for row in journal.listing(200).receipts if row.phase in ("pending", "queued")]
            asked, late = 0, waiting[len(waiting) // 2 :]  # the first of them have begun before anybody offers them
            for row in self.chance.sample(late, min(count, len(late))):
                mine = "" if row.data.owner is None else row.data.owner.instance
                if others := [one for one in there if one != mine]:
                    asked += journal.ask_move(row.receipt_id, self.chance.choice(others))
            return asked

        with (
            suppress(TenureError),  # somebody is inside, or was stopped there
            Journal.open(real_ports(), agent_directory(self.directory), create=False) as journal,
        ):
            self.harm.asked += ask(journal)

    def by_hand(self) -> None:
        """Somebody types `tenure handoff`, for the last item that waits, to somebody who lives; nobody waits for it."""
        with (
            suppress(TenureError),
            Journal.open(real_ports(), agent_directory(self.directory), create=False) as journal,
        ):
            waiting = [row for row in journal.listing(200).receipts if row.phase in ("pending", "queued")]
            if waiting:
                to = str(self.chance.choice(self.terminals).pid)
                words = ["handoff", str(self.directory), waiting[-1].receipt_id, "--to", to, "--wait", "3", "--json"]
                self.people.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "tenure.adapters.cli", *words],
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        text=True,
                    )
                )

    def answers(self) -> tuple[Counter[str], list[str]]:
        """What they were told: how often what, and what should not have been."""
        said: Counter[str] = Counter()
        faults = []
        for person in self.people:
            out, errors = person.communicate(timeout=PATIENCE)
            outcome = json.loads(out)["outcome"] if out else errors.partition(": ")[2].strip()
            lines = errors.splitlines()
            said[outcome if out else "refused in one line"] += 1
            if person.returncode not in (0, 1, 2) or "Traceback" in errors or (not out and len(lines) != 1):
                faults.append(f"tenure handoff: {person.returncode} {outcome} {errors[-2000:]}")
        return said, faults

    def rage(self, total: int, *, every: tuple[float, float] = (0.2, 0.5), batch: int = 15, goes_on: int = 0) -> None:
        """Push so many updates, bit by bit, and hurt somebody all the time; so many times more when all are pushed."""
        while self.pushed < total or goes_on > 0:
            if self.pushed < total:
                self.say(*self.some(min(batch, total - self.pushed)))
            else:
                goes_on -= 1
            self.move(8)
            over = time.monotonic() + self.chance.uniform(*every)
            while time.monotonic() < over:
                self.wake()
                time.sleep(0.01)
            if self.chance.random() < 0.2:
                self.by_hand()
            if self.chance.random() < 0.8:  # else they have time to hand something over
                self.hurt()
        self.wake(everybody=True)

    @staticmethod
    def _signal(pid: int, number: int) -> None:
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def settles(self) -> None:
        """Wait until everything that was pushed is executed, or interrupted; without getting in their way."""
        deadline = time.monotonic() + 2 * PATIENCE
        while True:
            listing = self.listing()
            over = (listing.meta.passed >= self.pushed or not self.pushed) and not listing.updates
            if over and all(row.phase == "interrupted" for row in listing.receipts):
                return
            assert time.monotonic() < deadline, f"{listing}\n{[(t.pid, t.role, t.said) for t in self.terminals]}"
            time.sleep(0.1)

    def close(self) -> None:
        """End whatever is left."""
        for person in self.people:
            person.kill()
            person.communicate()
        super().close()

    # -- judgement ----------------------------------------------------------------------------------------------------

    def result(self) -> Result:
        """What has become of everything, when it has settled. Faults are also: a life that is not told completely, and
        a process that ended by itself."""
        self.settles()
        executions = self.executions()
        lives = self.lives(range(1, self.pushed + 1))
        verdict = judge(range(1, self.pushed + 1), executions, {n: life.state for n, life in lives.items()})
        faults = [str(fault) for fault in verdict.faults]
        faults += [f"update {n}: {fault}" for n, life in lives.items() for fault in life.faults(executions)]
        faults += self._ends()
        typed, wrong = self.answers()
        faults += wrong
        what = Counter(line.what for line in executions)
        moved = sum(life.moved for life in lives.values())
        decisions = sum(life.decisions for life in lives.values())
        seconds = time.monotonic() - self._began
        return Result(
            self.pushed, verdict.executed, verdict.interrupted, tuple(faults), self.harm, what["began"],
            what["failed"], moved, decisions, typed, seconds,
        )  # fmt: skip

    def decided(self) -> Verdict:
        """A person has every other one of what was interrupted executed again, and gives the others up. What has become
        of everything then."""
        stuck = self.interrupted()
        for number, update in enumerate(stuck):
            said("journal", "discard" if number % 2 else "retry", str(self.directory), str(update), "--yes")
        deadline = time.monotonic() + PATIENCE
        while self.listing().receipts:
            assert time.monotonic() < deadline, self.listing()
            time.sleep(0.1)
        updates = range(1, self.pushed + 1)
        executions, lives = self.executions(), self.lives(updates)
        verdict = judge(updates, executions, {n: life.state for n, life in lives.items()}, dict.fromkeys(stuck[::2], 1))
        told = [Fault(n, fault) for n, life in lives.items() for fault in life.faults(executions)]
        return attrs.evolve(verdict, faults=(*verdict.faults, *told))

    def lives(self, updates: Sequence[int]) -> dict[int, Told]:
        """What `tenure why --json` tells of each of them."""
        return whole_lives(self.directory, updates)

    def _ends(self) -> list[str]:
        """Processes that ended, and nobody had done anything to them."""
        found = []
        for terminal in self.terminals:
            for pid, status in terminal.ended.items():
                killed, told = pid in self.harm.killed, pid in self.harm.told
                if not ((killed and status == -signal.SIGKILL) or (told and status in (0, -signal.SIGTERM))):
                    found.append(f"process {pid} ended with {status}: {terminal.said[-2000:]}")
            if "Traceback" in terminal.said or "Error" in terminal.said:
                found.append(f"somebody said: {terminal.said[:3000]}")
        return found

    @property
    def states(self) -> dict[int, State]:
        """The journal's word on each update."""
        return {number: life.state for number, life in self.lives(range(1, self.pushed + 1)).items()}


@contextmanager
def campaign_in(root: Path, seed: int) -> Iterator[Campaign]:
    """A directory in which nobody works any more afterwards."""
    campaign = Campaign(root, seed)
    try:
        yield campaign
    finally:
        campaign.close()
