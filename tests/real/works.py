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
from tenure.adapters.journal.looking import Listing
from tests.real.conftest import until
from tests.real.update_server import UpdateClient

ROOT = Path(__file__).parents[2]
SCALE = 0.25
PATIENCE = 60.0


class Working:
    """One `work_process`."""

    def __init__(self, works: Works, *options: str) -> None:
        number = len(works.all) + 1
        self._output = works.root / f"out{number}"
        self._errors = works.root / f"err{number}"
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [
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
            )
        self.pid = self._process.pid

    @property
    def role(self) -> str:
        """What it is now."""
        lines = self._output.read_text().splitlines()
        return lines[-1] if lines else ""

    def becomes(self, text: str) -> str:
        """Wait until its role begins with `text`."""

        def there() -> bool:
            assert self._process.poll() is None or text == "left", self.said
            return self.role.startswith(text)

        until(there, PATIENCE)
        return self.role

    @property
    def thread(self) -> int:
        """The number of its thread."""
        found = re.search(r"thread 0/(\d+)$", self.role)
        assert found is not None, self.role
        return int(found[1])

    @property
    def said(self) -> str:
        """What it wrote on standard error."""
        return self._errors.read_text()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal it."""
        self._process.send_signal(number)

    def ends(self) -> int:
        """Wait for its exit status."""
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        """End it, if that was not done."""
        if self._process.poll() is None:
            os.kill(self.pid, signal.SIGCONT)
            self._process.kill()
            self._process.wait()


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
            [sys.executable, "-m", "tests.real.update_server", self.socket], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"ready\n"
        self._client = UpdateClient(self.socket)

    def start(self, *options: str) -> Working:
        """A process more."""
        working = Working(self, *options)
        self.all.append(working)
        return working

    def fleet(self, count: int, *options: str) -> list[Working]:
        """A leader that has ended the first start, and its followers."""
        leader = self.start(*options)
        leader.becomes("leading")
        until(lambda: self.journal(lambda j: j.state().opened))
        others = []
        for _ in range(count - 1):
            others.append(self.start(*options))
            others[-1].becomes(f"following pid {leader.pid}")
        return [leader, *others]

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

    def executions(self) -> Counter[int]:
        """How often each update was executed."""
        return Counter(int(line.split()[1]) for line in self.log.read_text().splitlines())

    def by(self, working: Working) -> list[int]:
        """What one process has executed, in order."""
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return [int(update) for pid, update, _ in lines if int(pid) == working.pid]

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
