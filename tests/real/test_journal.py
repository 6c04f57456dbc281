"""The journal with real processes: killed in the middle, stopped at any moment, out of room, and all at once."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.journal.deliveries import Admitted, Arrival
from tenure.adapters.journal.errors import JournalBusy, JournalError
from tenure.adapters.journal.forwards import Kept
from tenure.adapters.journal.identity import identity_of_token
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.liveness import process_name
from tenure.adapters.journal.sqlite import SqliteDatabase
from tenure.adapters.journal.updates import Appended, Incoming
from tenure.machines.admission_identity import delivery_id
from tenure.machines.receipt_messages import Freed, Interrupted, Party, Taken
from tests.real.conftest import state, until

T = TypeVar("T")
BOT = identity_of_token("7:real")
KIND = "leader.forwardMessage"
EPOCH = 1
BODY = '{"update_id":%d,"text":"' + "x" * 300 + '"}'


def opened(place: Path) -> Journal:
    """The journal of a directory."""
    return Journal.open(real_ports(), agent_directory(place), bot=BOT)


def prepared(place: Path) -> None:
    """A journal whose first start is over."""
    place.mkdir(exist_ok=True)
    with opened(place) as journal:
        journal.raise_fence(EPOCH, "i0")
        journal.end_first_start(EPOCH, "i0")


def file_of(place: Path) -> Path:
    """The file."""
    return place / "tmp" / "telegram" / "journal.db"


def sound(place: Path) -> None:
    """SQLite finds nothing wrong, and what is counted is what is there."""
    database = SqliteDatabase(str(file_of(place)))
    try:
        assert [("ok",)] == list(database.execute("PRAGMA integrity_check"))
        said = database.execute("SELECT updates, deliveries, tombstones, decisions FROM meta")[0]
        counted = tuple(
            database.execute(sql)[0][0]
            for sql in (
                "SELECT count(*) FROM updates WHERE settled_at IS NULL",
                "SELECT count(*) FROM deliveries WHERE settled_at IS NULL",
                "SELECT (SELECT count(*) FROM updates WHERE settled_at IS NOT NULL)"
                " + (SELECT count(*) FROM deliveries WHERE settled_at IS NOT NULL)"
                " + (SELECT count(*) FROM receipts WHERE settled_at IS NOT NULL)",
                "SELECT count(*) FROM decisions",
            )
        )
        assert said == counted
    finally:
        database.close()


def _write(descriptor: int, text: str) -> None:
    os.write(descriptor, f"{text}\n".encode())


class Child:
    """A process of its own; what it has acknowledged comes through a pipe."""

    def __init__(self, run: Callable[[Callable[[str], None]], None]) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            code = 1
            try:
                os.close(reading)
                run(lambda text: _write(writing, text))
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        os.set_blocking(reading, False)
        self._reading = reading
        self._text = b""

    def told(self) -> list[str]:
        """All that it has acknowledged so far."""
        with suppress(BlockingIOError):
            while chunk := os.read(self._reading, 65_536):
                self._text += chunk
        return self._text.decode().split("\n")[:-1]

    def kill(self, number: int = signal.SIGKILL) -> int:
        """How it ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
        _, status = os.waitpid(self.pid, 0)
        return status

    def stop(self) -> None:
        """It stands still when this returns."""
        os.kill(self.pid, signal.SIGSTOP)
        until(lambda: state(self.pid) == "T")

    def close(self) -> None:
        """It is gone."""
        if state(self.pid):
            with suppress(ChildProcessError, ProcessLookupError):
                self.kill()
        os.close(self._reading)


Start = Callable[[Callable[[Callable[[str], None]], None]], Child]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a child; all of them are gone at the end."""
    children: list[Child] = []

    def one(run: Callable[[Callable[[str], None]], None]) -> Child:
        children.append(Child(run))
        return children[-1]

    try:
        yield one
    finally:
        for child in children:
            child.close()


def insist(call: Callable[[], T]) -> T:
    """What is asked for until nobody else is inside."""
    while True:
        with suppress(JournalBusy):
            return call()


def working(place: Path, number: int, binding: str) -> Callable[[Callable[[str], None]], None]:
    """Deliveries of a binding of its own, one after the other: admitted, taken, started, done; each acknowledged."""

    def run(tell: Callable[[str], None]) -> None:
        ports = real_ports()
        me = Party(f"i{number}", process_name(ports.processes.me()))
        journal = insist(lambda: opened(place))
        insist(lambda: journal.serve(binding, me))
        for update in range(1_000_000 * number, 1_000_000 * (number + 1)):
            arrival = Arrival(delivery_id(KIND, binding, update), KIND, binding, update, BODY % update)
            admitted = insist(lambda given=arrival: journal.admit(given, binding, me.instance))  # type: ignore[misc]
            assert isinstance(admitted, Admitted)
            receipt = admitted.receipt
            tell(f"pending {receipt}")
            taken = insist(lambda receipt=receipt: journal.take(receipt, me))  # type: ignore[misc]
            assert isinstance(taken, Taken)
            holder = taken.holder
            tell(f"queued {receipt}")
            insist(lambda receipt=receipt, holder=holder: journal.start(receipt, holder))  # type: ignore[misc]
            tell(f"started {receipt}")
            insist(lambda receipt=receipt, holder=holder: journal.complete(receipt, holder))  # type: ignore[misc]
            tell(f"done {receipt}")

    return run


ORDER = ("pending", "queued", "started", "done")


def agrees(place: Path, children: list[Child], left: frozenset[str] = frozenset()) -> int:
    """The journal has all that was acknowledged, at least as far, and at most one step more of each process; besides
    what earlier ones have left. How many receipts there are."""
    told: dict[str, str] = {}
    for child in children:
        for line in child.told():
            phase, _, name = line.partition(" ")
            told[name] = phase
    with Journal.open(real_ports(), agent_directory(place), create=False) as journal:
        rows = {}
        for name in told:
            row = journal.receipt(name)
            assert row is not None, name
            rows[name] = row.phase
        listed = {row.receipt_id for row in journal.listing().receipts} - left
    further = {name for name, phase in told.items() if ORDER.index(rows[name]) > ORDER.index(phase)}
    assert all(ORDER.index(rows[name]) - ORDER.index(told[name]) <= 1 for name in told)
    assert len(further) + len(listed - told.keys()) <= len(children)
    assert {name for name, phase in told.items() if phase != "done" and name not in further} <= listed
    return len(rows)


# -- killed -----------------------------------------------------------------------------------------------------------


def test_killed_with_half_a_transaction_on_the_disk(tmp_path: Path, start: Start) -> None:
    """A hot rollback file: whoever opens it next undoes it."""
    prepared(tmp_path)
    before = file_of(tmp_path).read_bytes()

    def run(tell: Callable[[str], None]) -> None:
        journal = opened(tmp_path)
        database = journal._store._database
        database.execute("PRAGMA cache_size = 2")
        batch = [Incoming(n, BODY % n, KIND) for n in range(1, 200)]

        def die() -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        database.commit = die  # type: ignore[method-assign]
        journal.append(batch, EPOCH, "i1")

    child = start(run)
    assert signal.SIGKILL == os.waitpid(child.pid, 0)[1]
    rollback = Path(f"{file_of(tmp_path)}-journal")
    assert rollback.stat().st_size > 0
    assert before != file_of(tmp_path).read_bytes()
    with opened(tmp_path) as journal:
        assert () == journal.listing().updates
        assert -1 == journal.state().passed
        answer = journal.append([Incoming(1, BODY % 1, KIND)], EPOCH, "i1")
        assert isinstance(answer, Appended)
    sound(tmp_path)


def test_killed_at_any_moment(tmp_path: Path, start: Start) -> None:
    """Forty times: nothing that was acknowledged is lost, the work of the dead is pending or interrupted."""
    prepared(tmp_path)
    chance = random.Random(7)
    for number in range(1, 41):
        with opened(tmp_path) as journal:
            left = frozenset(row.receipt_id for row in journal.listing().receipts)
        child = start(working(tmp_path, number, f"b{number}"))
        least = chance.randrange(1, 8)
        until(lambda child=child, least=least: len(child.told()) >= least)  # type: ignore[misc]
        time.sleep(chance.random() * 0.003)
        assert signal.SIGKILL == child.kill()
        agrees(tmp_path, [child], left)
        with opened(tmp_path) as journal:
            found = journal.recover_all(Party("i0", "nobody"))
            assert len(found) <= 1
            for each in found:
                row = journal.receipt(each.receipt_id)
                assert row is not None
                assert isinstance(each.outcome, Freed if row.phase == "pending" else Interrupted)
    sound(tmp_path)


# -- stopped ----------------------------------------------------------------------------------------------------------


def test_a_copy_of_a_stopped_moment_opens(tmp_path: Path, start: Start) -> None:
    """A hundred times: all processes stopped anywhere, the directory copied, and the copy agrees."""
    place = tmp_path / "live"
    prepared(place)
    children = [start(working(place, number, f"b{number}")) for number in (1, 2, 3)]
    until(lambda: all(len(child.told()) > 4 for child in children))
    chance = random.Random(11)
    hot = 0
    for number in range(100):
        time.sleep(chance.random() * 0.004)
        for child in children:
            child.stop()
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(place, copy)
        hot += (copy / "tmp" / "telegram" / "journal.db-journal").stat().st_size > 0
        assert agrees(copy, children) > 0
        sound(copy)
        shutil.rmtree(copy)
        for child in children:
            os.kill(child.pid, signal.SIGCONT)
    assert hot > 0
    for child in children:
        child.kill()
    sound(place)


def test_who_is_stopped_inside_makes_others_say_so(tmp_path: Path, start: Start) -> None:
    """A clear error in bounded time; when it goes on, so do the others."""
    prepared(tmp_path)

    def run(tell: Callable[[str], None]) -> None:
        journal = opened(tmp_path)
        journal._store._database.begin()
        tell("inside")
        os.kill(os.getpid(), signal.SIGSTOP)
        journal._store._database.commit()
        tell("outside")

    child = start(run)
    until(lambda: child.told() == ["inside"] and state(child.pid) == "T")
    with opened(tmp_path) as journal:
        started = time.monotonic()
        with pytest.raises(JournalBusy, match="stopped process") as caught:
            journal.append([Incoming(1, BODY % 1, KIND)], EPOCH, "i1")
        assert time.monotonic() - started < 5
        assert "\n" not in str(caught.value)
        assert () == journal.listing().updates  # looking is not held up
        os.kill(child.pid, signal.SIGCONT)
        until(lambda: "outside" in child.told())
        assert isinstance(journal.append([Incoming(1, BODY % 1, KIND)], EPOCH, "i1"), Appended)


def test_the_dead_are_proven_dead(tmp_path: Path, start: Start) -> None:
    """The real look at processes: alive while it is stopped, dead when it was killed, also as a zombie."""
    prepared(tmp_path)

    def run(tell: Callable[[str], None]) -> None:
        me = Party("i1", process_name(real_ports().processes.me()))
        with opened(tmp_path) as journal:
            journal.serve("B", me)
            journal.append([Incoming(1, BODY % 1, KIND)], EPOCH, "i1")
            journal.keep(1, EPOCH, "B", "i1")
            assert journal.take_some(me, 1)
        tell("taken")
        signal.pause()

    child = start(run)
    until(lambda: child.told() == ["taken"])
    child.stop()
    with opened(tmp_path) as journal:
        assert () == journal.recover_all(Party("i0", "nobody"))
        os.kill(child.pid, signal.SIGKILL)
        until(lambda: state(child.pid) == "Z")
        assert 1 == len(journal.recover_all(Party("i0", "nobody")))


# -- full, and all at once --------------------------------------------------------------------------------------------


def test_a_file_that_may_not_grow(tmp_path: Path, start: Start) -> None:
    """The system refuses: one line, nothing half done, and what was there stays readable."""
    prepared(tmp_path)
    size = file_of(tmp_path).stat().st_size

    def run(tell: Callable[[str], None]) -> None:
        journal = opened(tmp_path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 65_536, size + 65_536))
        try:
            for number in range(1, 10_000):
                journal.append([Incoming(number, BODY % number, KIND)], EPOCH, "i1")
                tell(str(number))
        except JournalError as error:
            tell(f"{type(error).__name__} {error}")

    child = start(run)
    assert 0 == os.waitpid(child.pid, 0)[1]
    *appended, last = child.told()
    assert last.split(" ")[0] in ("JournalUnreachable", "OutcomeUnknown", "JournalFull"), last
    with opened(tmp_path) as journal:
        ids = [str(row.data.update) for row in journal.listing().updates]
        assert appended == ids[: len(appended)]
        assert len(ids) - len(appended) <= (last.startswith("OutcomeUnknown"))
    sound(tmp_path)


def test_a_backup_that_finds_no_room(tmp_path: Path, start: Start) -> None:
    """One line that names the copy, and nothing of it stays."""
    prepared(tmp_path)

    def run(tell: Callable[[str], None]) -> None:
        journal = opened(tmp_path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, 8_192))
        try:
            journal.backup(str(tmp_path / "copy"))
        except JournalError as error:
            tell(f"{type(error).__name__} {error}")

    child = start(run)
    assert 0 == os.waitpid(child.pid, 0)[1]
    (said,) = child.told()
    assert said.split(" ")[0] in ("JournalUnreachable", "JournalFull"), said
    assert f" {tmp_path}/copy: " in said
    assert ["tmp"] == os.listdir(tmp_path)


def test_backups_while_others_write(tmp_path: Path, start: Start) -> None:
    """Each is the whole journal as of one moment, with all that had been acknowledged before."""
    place = tmp_path / "live"
    prepared(place)
    children = [start(working(place, number, f"b{number}")) for number in (1, 2)]
    until(lambda: all(len(child.told()) > 8 for child in children))
    with opened(place) as journal:
        for number in range(10):
            acknowledged = [line.split(" ")[1] for child in children for line in child.told()]
            copy = tmp_path / f"copy-{number}"
            file_of(copy).parent.mkdir(parents=True)
            insist(lambda copy=copy: journal.backup(str(file_of(copy))))  # type: ignore[misc]
            sound(copy)
            with opened(copy) as other:
                assert all(other.receipt(name) is not None for name in acknowledged)
    for child in children:
        child.kill()


def test_many_writers_lose_nothing(tmp_path: Path, start: Start) -> None:
    """Four leaders of one epoch append in turns, as nobody should: each id is there once, and each is kept once."""
    prepared(tmp_path)

    def run(tell: Callable[[str], None]) -> None:
        journal = opened(tmp_path)
        for number in range(1, 60):
            one = [Incoming(number, BODY % number, KIND)]
            answer = insist(lambda one=one: journal.append(one, EPOCH, "i1"))  # type: ignore[misc]
            assert isinstance(answer, Appended)
            kept = insist(lambda number=number: journal.keep(number, EPOCH, "B", "i1"))  # type: ignore[misc]
            tell(f"{len(answer.new)} {int(isinstance(kept, Kept))}")

    children = [start(run) for _ in range(4)]
    for child in children:
        assert 0 == os.waitpid(child.pid, 0)[1]
    lines = [line.split(" ") for child in children for line in child.told()]
    assert 59 == sum(int(new) for new, _ in lines)
    assert 59 == sum(int(kept) for _, kept in lines)
    with opened(tmp_path) as journal:
        assert list(range(1, 60)) == [row.first_update for row in journal.listing().receipts]
    sound(tmp_path)
