"""Real processes at work on one directory, over one queue of updates."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.journal.errors import JournalBusy
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.looking import Item, Listing
from tenure.adapters.testing.history import Execution, State, Verdict, judge, read_executions
from tenure.adapters.testing.updates import Updates
from tests.real.conftest import stop, until

ROOT = Path(__file__).parents[2]
SCALE = 0.25
PATIENCE = 60.0


_LOOP = 'while :; do "$@"; done'
"""A shell whose child is started again whenever it has ended: the key of what it starts is always the same."""


class Working:
    """One `work_process`, or a shell that starts it again and again (`lasting`)."""

    def __init__(self, works: Works, *options: str, lasting: bool = False) -> None:
        number = len(works.all) + 1
        self._output = works.root / f"out{number}"
        self._errors = works.root / f"err{number}"
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [
                    *(["sh", "-c", _LOOP, "sh"] if lasting else []),
                    sys.executable,
                    "-m",
                    "tests.real.work_process",
                    str(works.directory),
                    works.socket,
                    str(works.log),
                    str(SCALE),
                    *options,
                ],
                cwd=ROOT,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )

    def _last(self) -> tuple[str, str]:
        lines = self._output.read_text().splitlines()
        pid, _, role = lines[-1].partition(" ") if lines else ("", "", "")
        return pid, role

    @property
    def pid(self) -> int:
        """That of the last process that said what it is."""
        return int(self._last()[0] or 0)

    @property
    def role(self) -> str:
        """What it is now."""
        return self._last()[1]

    def becomes(self, text: str) -> str:
        """Wait until its role begins with `text`."""

        def there() -> bool:
            assert self._process.poll() is None or text == "left", self.said
            return self.role.startswith(text)

        until(there, PATIENCE)
        return self.role

    @property
    def place(self) -> int | None:
        """The number of its thread, if it has one now."""
        found = re.search(r"thread 0/(\d+)$", self.role)
        return None if found is None else int(found[1])

    @property
    def thread(self) -> int:
        """The number of its thread."""
        assert self.place is not None, self.role
        return self.place

    @property
    def said(self) -> str:
        """What it wrote on standard error."""
        return self._errors.read_text()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal the process that said what it is."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def ends(self) -> int:
        """Wait for its exit status."""
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        """End it, if that was not done."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _state(item: Item) -> State:
    phases = {receipt.phase for receipt in item.receipts}
    for state in ("interrupted", "failed", "discarded", "done"):
        if phases == {state}:
            return state
    return "waiting"


class Works:
    """A directory, its queue of updates, and who works there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory = root / "agent"
        self.directory.mkdir()
        self.socket = str(root / "updates")
        self.log = root / "log"
        self.log.touch()
        self.all: list[Working] = []
        self.pushed = 0
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tenure.adapters.testing.updates", self.socket], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"ready\n"
        self._client = Updates(self.socket)

    def start(self, *options: str, lasting: bool = False) -> Working:
        """A process more."""
        working = Working(self, *options, lasting=lasting)
        self.all.append(working)
        return working

    def fleet(self, count: int, *options: str, lasting: bool = False) -> list[Working]:
        """A leader that has ended the first start, and its followers."""
        leader = self.start(*options, lasting=lasting)
        leader.becomes("leading")
        until(lambda: self.journal(lambda j: j.state().opened))
        others = []
        for _ in range(count - 1):
            others.append(self.start(*options, lasting=lasting))
            others[-1].becomes(f"following pid {leader.pid}")
        return [leader, *others]

    def stop(self, working: Working) -> None:
        """Stop a process, inside neither the guard nor a transaction: there it would hold everybody up."""
        registry = self.directory / "tmp" / "telegram" / "owners.json"
        while True:
            stop(working.pid, registry)
            with (
                suppress(JournalBusy),
                Journal.open(real_ports(), agent_directory(self.directory), create=False) as journal,
            ):
                journal.vacancies()  # a transaction that writes
                return
            working.kill(signal.SIGCONT)

    def push(self, *threads: int) -> None:
        """An update in each of these threads."""
        updates = []
        for thread in threads:
            self.pushed += 1
            inner: dict[str, Any] = {"message_id": self.pushed, "chat": {"id": 0}, "text": "hello"}
            updates.append({"update_id": self.pushed, "message": {**inner, "message_thread_id": thread}})
        asyncio.run(self._client.push(*updates))

    def queue(self) -> dict[str, Any]:
        """What the queue says."""
        return asyncio.run(self._client.look())

    def executions(self) -> tuple[Execution, ...]:
        """What everybody has written."""
        return read_executions(self.log).executions

    def began(self) -> Counter[int]:
        """How often each update was begun."""
        return Counter(line.update for line in self.executions() if line.what == "began")

    def by(self, pid: int) -> list[int]:
        """What one process has begun, in order."""
        return [line.update for line in self.executions() if line.what == "began" and line.process == str(pid)]

    def states(self) -> dict[int, State]:
        """What the journal says of each that was pushed."""

        def look(journal: Journal) -> dict[int, State]:
            return {number: _state(journal.item(str(number))) for number in range(1, self.pushed + 1)}

        found: dict[int, State] = self.journal(look)
        return found

    def verdict(self) -> Verdict:
        """What has become of everything that was pushed."""
        return judge(range(1, self.pushed + 1), self.executions(), self.states())

    def journal(self, look: Any) -> Any:
        """What somebody sees who looks at the journal, when he has his turn."""
        while True:
            with (
                suppress(JournalBusy),
                Journal.open(real_ports(), agent_directory(self.directory), create=False) as journal,
            ):
                return look(journal)

    def listing(self) -> Listing:
        """What is unsettled."""
        found: Listing = self.journal(lambda j: j.listing())
        return found

    def interrupted(self) -> list[int]:
        """The updates of which nobody knows what has come."""
        return [row.first_update for row in self.listing().receipts if row.phase == "interrupted"]

    def settles(self) -> None:
        """Wait until everything that was pushed is executed, or interrupted."""

        def over() -> bool:
            listing = self.listing()
            passed = listing.meta.passed >= self.pushed
            return passed and not listing.updates and all(row.phase == "interrupted" for row in listing.receipts)

        try:
            until(over, PATIENCE)
        except AssertionError:
            raise AssertionError(f"{self.listing()}\n{[(w.pid, w.role, w.said) for w in self.all]}") from None

    def close(self) -> None:
        """End whatever is left."""
        for working in self.all:
            working.close()
        self._server.kill()
        self._server.wait()
        assert self._server.stdout is not None
        self._server.stdout.close()


@contextmanager
def works_in(root: Path) -> Iterator[Works]:
    """A directory in which nobody works any more afterwards."""
    works = Works(root)
    try:
        yield works
    finally:
        works.close()
