"""An agent directory with a journal that holds something in each state, and the commands that are typed at it."""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from tenure.adapters import cli
from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.forwards import Kept
from tenure.adapters.journal.identity import identity_of_token
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.liveness import process_name
from tenure.adapters.journal.updates import Incoming
from tenure.machines.identity import Process
from tenure.machines.receipt_messages import Holder, Party, Taken
from tests.adapters.journal.journal_room import serves

KIND: Final = "leader.forwardMessage"
EPOCH: Final = 3
MINE: Final = "cwd:/home/me"
THEIRS: Final = "manual:they"


def body(update: int) -> str:
    """An update as it is polled."""
    return json.dumps({"update_id": update, "message": {"text": f"hello {update}"}})


def me() -> Party:
    """This very process, which lives."""
    process = real_ports().processes.me()
    return Party(f"{process.pid}:17", process_name(process), 1)


def dead() -> Party:
    """A process that has been."""
    ports = real_ports()
    child = subprocess.Popen(["true"])
    child.wait()
    birth = attrs.evolve(ports.processes.me().birth, ticks=1)
    return Party(f"{child.pid}:3", process_name(Process(child.pid, birth)), 1)


class Desk:
    """One directory. Whatever is written is written by `me`, which leads under `EPOCH` and serves `MINE`."""

    def __init__(self, root: Path, profile: str = "default") -> None:
        root.mkdir(exist_ok=True)
        self.root = root
        self.profile = profile
        self.me = me()

    @property
    def path(self) -> Path:
        """The file."""
        name = "journal.db" if self.profile == "default" else f"journal.{self.profile}.db"
        return self.root / "tmp" / "telegram" / name

    def open(self, limits: Limits | None = None) -> Journal:
        """The journal, as who leads has it open."""
        bot = identity_of_token("7:secret")
        opened = Journal.open(real_ports(), agent_directory(self.root), self.profile, bot=bot, limits=limits)
        opened.raise_fence(EPOCH, self.me.instance)
        opened.end_first_start(EPOCH, self.me.instance)
        serves(opened, MINE, self.me)
        return opened

    def append(self, journal: Journal, *updates: int) -> None:
        """They were polled."""
        journal.append([Incoming(u, body(u), KIND) for u in updates], EPOCH, self.me.instance)

    def kept(self, journal: Journal, update: int) -> str:
        """It was polled, and is for `MINE`: its receipt."""
        self.append(journal, update)
        answer = journal.keep(update, EPOCH, MINE, self.me.instance)
        assert isinstance(answer, Kept), answer
        return answer.admitted.receipt

    def taken(self, journal: Journal, receipt: str, by: Party | None = None) -> Holder:
        """It was taken, by `me` or by who serves its binding from now on."""
        if by is not None:
            serves(journal, MINE, by)
        answer = journal.take(receipt, by or self.me)
        assert isinstance(answer, Taken), answer
        return answer.holder

    def interrupted(self, journal: Journal, update: int) -> str:
        """It was started by a process that died: the receipt."""
        receipt, by = self.kept(journal, update), dead()
        journal.start(receipt, self.taken(journal, receipt, by))
        assert journal.recover_all(self.me)
        serves(journal, MINE, self.me)
        return receipt

    def failed(self, journal: Journal, update: int) -> str:
        """It has failed as often as it may: the receipt."""
        receipt = self.kept(journal, update)
        for _ in range(Limits().attempts):
            holder = self.taken(journal, receipt)
            journal.start(receipt, holder)
            journal.fail(receipt, holder, 0, "ValueError: no")
        return receipt

    def full(self) -> dict[str, str]:
        """One of each state, by the name of that: the receipts, and updates 20 (waiting), 21 (unserved), 22 (skipped
        by a person). Made once a session, and copied: a transaction is forced to the disk."""
        template = _template()
        shutil.copytree(template.root, self.root, dirs_exist_ok=True)
        return dict(template.receipts)

    def fill(self) -> dict[str, str]:
        """Make what `full` copies."""
        with self.open() as journal:
            found = {"pending": self.kept(journal, 10), "done": self.kept(journal, 11)}
            holder = self.taken(journal, found["done"])
            journal.start(found["done"], holder)
            journal.complete(found["done"], holder)
            found["started"] = self.kept(journal, 12)
            journal.start(found["started"], self.taken(journal, found["started"]))
            found["queued"] = self.kept(journal, 13)
            self.taken(journal, found["queued"])
            found["interrupted"] = self.interrupted(journal, 14)
            found["failed"] = self.failed(journal, 15)
            self.append(journal, 20, 21, 22)
            journal.forward(20, EPOCH, THEIRS, self.me.instance)
            journal.failed(20, EPOCH, "transport-failed", self.me.instance)
            journal.unserved(21, EPOCH, self.me.instance)
            journal.discard_update(22, "somebody (uid 4)")
            return found

    def bytes(self) -> dict[str, bytes]:
        """Every file below the directory, and what is in it."""
        return {str(path): path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}


@attrs.frozen
class _Template:
    root: Path
    receipts: dict[str, str]


@cache
def _template() -> _Template:
    root = Path(tempfile.mkdtemp(prefix="tenure-desk"))
    atexit.register(shutil.rmtree, root)
    return _Template(root, Desk(root).fill())


@attrs.frozen
class Said:
    """What a command has answered."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on standard output."""
        assert self.err == ""
        return json.loads(self.out)


class Tenure:
    """Commands."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Said:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main([str(argument) for argument in arguments])
        said = self._capsys.readouterr()
        assert "Traceback" not in said.err
        status = ended.value.code
        return Said(status if isinstance(status, int) else 0, said.out, said.err)

    def refused(self, *arguments: str | Path) -> str:
        """The one line that says what is wrong with the input, and what to do; status 2."""
        said = self(*arguments)
        assert (2, "") == (said.status, said.out), said
        (line,) = said.err.splitlines()
        assert line.startswith("tenure: ")
        return line.removeprefix("tenure: ")
