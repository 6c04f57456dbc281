"""Real processes on a real directory, every one of which is gone when its test is over, whatever the test did."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from tenure.adapters.files.guard import GuardedFile
from tenure.adapters.files.host import real_ports

if TYPE_CHECKING:
    from tests.real.others import Mixed

T = TypeVar("T")
PATIENCE = 20.0
"""Seconds after which something that should happen has not: long, for a machine that is busy with other things."""

# A COMMAND: it says that it runs, and whether another one does. Further lines of a test follow. Who is being killed
# closes its files a moment before it is seen to be dead, so the second look counts.
PRELUDE = """
runs() { case "$(cat /proc/$1/stat 2>/dev/null)" in ""|*") Z "*|*") X "*) false ;; esac; }
for p in $(cat "$TENURE_DIR/pids$TENURE_PROFILE" 2>/dev/null); do
  runs $p && sleep 0.05 && runs $p && echo "two $p $$" >> "$TENURE_DIR/log"
done
echo $$ >> "$TENURE_DIR/pids$TENURE_PROFILE"
echo "run $TENURE_EPOCH $$ $PPID" >> "$TENURE_DIR/log"
"""


def until(what: Callable[[], T], patience: float = PATIENCE) -> T:
    """Wait until `what` is true, and answer it."""
    deadline = time.monotonic() + patience
    while not (found := what()):
        assert time.monotonic() < deadline, f"not within {patience} s: {what}"
        time.sleep(0.002)
    return found


def state(pid: int, thread: int | None = None) -> str:
    """The letter of a process's state, or of one of its threads; "" for one that is gone."""
    with suppress(OSError):
        line = Path(f"/proc/{pid}/stat" if thread is None else f"/proc/{pid}/task/{thread}/stat").read_text()
        return line[line.rindex(")") + 2]
    return ""


def alive(pid: int) -> bool:
    """Whether it runs, or would if it were not stopped. One that was killed and has not had its turn to die executes
    nothing any more."""
    return state(pid) not in ("", "Z", "X") and not doomed(pid)


def doomed(pid: int) -> bool:
    """A SIGKILL is on its way to it, or it is exiting: the kernel says so before it says that it is dead."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        flags = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[6])
    except (FileNotFoundError, ProcessLookupError):
        return True
    pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd:", "ShdPnd:"))]
    return bool(flags & 0x4) or any(mask >> (signal.SIGKILL - 1) & 1 for mask in pending)


def stop(pid: int, guarded: Path) -> None:
    """Stop a process, and not inside the guard of that file: there it would hold everybody up until it goes on."""
    guard = guarded.with_name(f"{guarded.name}.transaction")

    def inside() -> bool:
        for path in guard.iterdir() if guard.exists() else ():
            if f".{pid}." in path.name or json.loads(path.read_text())["pid"] == pid:
                return True
        return False

    def outside() -> bool:
        os.kill(pid, signal.SIGSTOP)
        until(lambda: all(state(pid, int(task.name)) == "T" for task in Path(f"/proc/{pid}/task").iterdir()))
        with suppress(OSError, ValueError):  # somebody else comes or goes
            if not inside():
                return True
        os.kill(pid, signal.SIGCONT)
        return False

    until(outside)


class Zygote:
    """See `zygote.py`."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("zygote.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._rest = b""
        self.ended: dict[int, int] = {}
        self._answer({"ready"}, 3 * PATIENCE)  # it loads everything

    def start(self, **request: Any) -> int:
        """The pid of a new process."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        return int(self._answer({"pid"})["pid"])

    def look(self, timeout: float = 0.0) -> None:
        """Hear who has ended."""
        with suppress(TimeoutError):
            self._answer(set(), timeout)

    def _answer(self, wanted: set[str], timeout: float = PATIENCE) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        while True:
            while b"\n" in self._rest:
                line, self._rest = self._rest.split(b"\n", 1)
                found = json.loads(line)
                if "ended" in found:
                    self.ended[found["ended"]] = found["status"]
                if wanted & found.keys():
                    return dict(found)
            if not select.select([stream], [], [], timeout)[0]:
                raise TimeoutError
            self._rest += os.read(stream.fileno(), 65536)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._process.stdout.close()


class Lead:
    """One `tenure lead`."""

    def __init__(self, zygote: Zygote, pid: int, errors: Path) -> None:
        self._zygote = zygote
        self.pid = pid
        self._errors = errors

    @property
    def said(self) -> str:
        """What it wrote for a person."""
        return self._errors.read_text() if self._errors.exists() else ""

    def says(self, text: str, patience: float = PATIENCE) -> None:
        """Wait until it has said this."""
        until(lambda: text in self.said, patience)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal the supervisor alone."""
        os.kill(self.pid, number)

    @property
    def status(self) -> int | None:
        """Its exit status; None as long as it runs."""
        self._zygote.look()
        return self._zygote.ended.get(self.pid)

    def ends(self, patience: float = PATIENCE) -> int:
        """Wait for its exit status."""
        until(lambda: self.status is not None, patience)
        return self._zygote.ended[self.pid]

    @property
    def guardians(self) -> list[int]:
        """Its guardian's pid, if it has one now: its child that runs and has the same command line. One that was killed
        keeps its command line until it has had its turn to die."""
        with suppress(OSError):
            mine = Path(f"/proc/{self.pid}/cmdline").read_bytes()
            same = [pid for pid in children(self.pid) if Path(f"/proc/{pid}/cmdline").read_bytes() == mine]
            return [pid for pid in same if alive(pid)]
        return []

    @property
    def guardian(self) -> int:
        """Its guardian's pid."""
        return until(lambda: self.guardians)[0]


class Leads:
    """An agent directory, and the processes of one test in it."""

    STUBBORN = """trap "" TERM INT HUP
(trap "" TERM INT HUP; while :; do sleep 0.05; done) &
while :; do sleep 0.05; done
"""
    """A COMMAND that forks, and of which nothing minds SIGTERM."""

    until = staticmethod(until)

    @staticmethod
    def never(what: Callable[[], object], seconds: float) -> None:
        """See that `what` stays false for so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert not what(), f"within {seconds} s: {what}"
            time.sleep(0.005)

    @staticmethod
    def gone(pid: int) -> bool:
        """Whether a process does not run any more."""
        return not alive(pid)

    @staticmethod
    def stopped(pid: int) -> bool:
        """Whether a process is stopped."""
        return state(pid) == "T"

    def __init__(self, zygote: Zygote, root: Path) -> None:
        self._zygote = zygote
        self._mark = uuid.uuid4().hex
        self.root = root
        self.directory = root / "agent"
        self.directory.mkdir()
        self._count = 0
        self._held: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        *command: str,
        lease: float | None = 0.4,
        kill_after: float | None = None,
        options: Sequence[str] = (),
        directory: Path | None = None,
        ignored: Sequence[int] = (),
        die_at: str = "",
    ) -> Lead:
        """`tenure lead DIR --lease ... -- COMMAND`."""
        self._count += 1
        words = ["lead", str(directory or self.directory), *options]
        words += [] if lease is None else ["--lease", str(lease)]
        words += [] if kill_after is None else ["--kill-after", str(kill_after)]
        errors = self.root / f"stderr{self._count}"
        pid = self._zygote.start(
            arguments=[*words, "--", *command] if command else words,
            environment={**os.environ, "TENURE_TEST": self._mark},
            directory=str(self.root),
            stdout=str(self.root / f"stdout{self._count}"),
            stderr=str(errors),
            ignored=list(ignored),
            die_at=die_at,
            flag=str(self.root / f"died{self._count}"),
        )
        return Lead(self._zygote, pid, errors)

    def shell(self, rest: str = "exec sleep 1000", *, first: str = "", **options: Any) -> Lead:
        """`start` with a COMMAND that logs its runs, and sleeps. `first`: what it has done when it has logged."""
        return self.start("sh", "-c", first + PRELUDE + rest, **options)

    @property
    def log(self) -> list[str]:
        """What COMMANDs have said."""
        path = self.directory / "log"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Epoch and pid of every COMMAND that has run."""
        return [(int(line.split()[1]), int(line.split()[2])) for line in self.log if line.startswith("run ")]

    def ran(self, times: int, patience: float = PATIENCE) -> tuple[int, int]:
        """Wait until so many COMMANDs have run; epoch and pid of the last one."""
        until(lambda: len(self.runs) >= times, patience)
        return self.runs[times - 1]

    @property
    def registry(self) -> Path:
        """The owner registry."""
        return self.directory / "tmp" / "telegram" / "owners.json"

    def entry(self, key: str = "default") -> dict[str, Any] | None:
        """The entry of a key."""
        found = json.loads(self.registry.read_text()).get(key) if self.registry.exists() else None
        return dict(found) if found is not None else None

    def pair(self, rest: str = "exec sleep 1000", **options: Any) -> tuple[Lead, Lead]:
        """A leader whose COMMAND runs, and one who stands by."""
        leader = self.shell(rest, **options)
        self.ran(1)
        second = self.shell(rest, **options)
        second.says(f"standing by behind pid {leader.pid}")
        return leader, second

    @property
    def two(self) -> list[str]:
        """What a COMMAND said that found another one running."""
        return [line for line in self.log if line.startswith("two")]

    def write(self, registry: dict[str, Any]) -> None:
        """Replace the registry as everybody does, inside the guard and by rename."""

        def replace(inside: object) -> None:
            temporary = self.registry.with_name("owners.json.test.tmp")
            temporary.write_text(json.dumps(registry))
            temporary.rename(self.registry)

        GuardedFile(real_ports(), str(self.registry)).run(replace)

    def calm(self) -> None:
        """Wait until nobody is in the guard. A COMMAND starts inside, and who has started it leaves a moment later."""
        until(lambda: not any(".transaction" in path.name for path in self.registry.parent.iterdir()))

    def stop(self, lead: Lead) -> None:
        """Stop a supervisor, and not inside the guard."""
        stop(lead.pid, self.registry)

    def usurp(self, pid: int) -> None:
        """Another system's process takes the lease by force: it has no birth, and no heartbeat that grows old."""
        self.write({"default": {"pid": pid, "instanceId": "foreign"}})

    def sleeper(self) -> int:
        """The pid of a process that does nothing."""
        process = subprocess.Popen(["sleep", "1000"], cwd=self.root)
        self._held.append(process)
        return process.pid

    def holder(self) -> int:
        """The pid of a process that is inside the guard, and stays."""
        name = str(uuid.uuid4())
        staged, guard = self.root / "staged", self.registry.with_name("owners.json.transaction")
        staged.mkdir()
        guard.parent.mkdir(parents=True, exist_ok=True)
        pid = self.sleeper()
        payload = {"pid": pid, "acquiredAtMs": 1, "generation": name}
        (staged / f"owner.{name}.json").write_text(json.dumps(payload))

        def publish() -> bool:
            with suppress(OSError):
                staged.rename(guard)
            return not staged.exists()

        until(publish)
        return pid

    @property
    def lock(self) -> Path:
        """The lock that COMMAND keeps."""
        return self.directory / "tmp" / "telegram" / "lead.lock"

    def beside(self, name: str) -> Leads:
        """Another directory, whose processes end with this one's."""
        place = self.root / name
        place.mkdir()
        return Leads(self._zygote, place)

    def processes(self) -> list[int]:
        """All processes of this test, whatever they did to get away: by their directory, or their environment."""
        mark, found = f"TENURE_TEST={self._mark}".encode(), []
        for path in Path("/proc").iterdir():
            with suppress(OSError):
                if not path.name.isdecimal() or not alive(int(path.name)):
                    continue
                where = (path / "cwd").readlink()
                if where.is_relative_to(self.root) or mark in (path / "environ").read_bytes():
                    found.append(int(path.name))
        return found

    def close(self) -> None:
        """End all of them, and see that they are gone."""

        def left() -> list[int]:
            found = self.processes()
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return found

        until(lambda: not left())
        for process in self._held:
            process.wait(PATIENCE)


def children(pid: int) -> list[int]:
    """The children of a process."""
    found = []
    for path in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if path.name.isdecimal():
                line = (path / "stat").read_text()
                if int(line[line.rindex(")") + 2 :].split()[1]) == pid:
                    found.append(int(path.name))
    return found


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """One for all tests."""
    made = Zygote()
    try:
        yield made
    finally:
        made.close()
    made.close()


@pytest.fixture
def leads(zygote: Zygote, tmp_path: Path) -> Iterator[Leads]:
    """An agent directory, and an end of everything that was started in it."""
    made = Leads(zygote, tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def mixed(zygote: Zygote, tmp_path: Path) -> Iterator[Mixed]:
    """A directory, and processes of both systems in it."""
    from tests.real.others import Mixed

    made = Mixed(zygote, tmp_path)
    try:
        yield made
    finally:
        made.close()
