"""A journal in a directory of its own, processes that live or die as a test says, and a clock that moves when told."""

from __future__ import annotations

from pathlib import Path

import attrs

from tenure.adapters.files.directory import AgentDirectory, agent_directory
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.database import Databases
from tenure.adapters.journal.deliveries import Arrival
from tenure.adapters.journal.identity import BotIdentity, identity_of_token
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.sqlite import SqliteDatabase, SqliteDatabases
from tenure.adapters.journal.updates import Incoming
from tenure.adapters.ports import Ports
from tenure.adapters.testing import CountedIdentities, FakeClock, FakeProcesses, Notes
from tenure.adapters.testing.databases import FaultyDatabases, HastyDatabases
from tenure.machines.admission_identity import delivery_id
from tenure.machines.receipt_messages import Evidence, Holder, Party, Taken

BOT = identity_of_token("7:first")
OTHER_BOT = identity_of_token("8:other")
KIND = "leader.forwardMessage"
EPOCH = 3


@attrs.define
class Lives:
    """Who is dead, and of whom nobody can tell; the others are alive."""

    dead: set[str] = attrs.field(factory=set)
    unknown: set[str] = attrs.field(factory=set)
    asked: list[str] = attrs.field(factory=list)

    def evidence(self, process: str) -> Evidence:
        """As said."""
        self.asked.append(process)
        return "dead" if process in self.dead else "unknown" if process in self.unknown else "alive"


class Room:
    """One directory, and what all journals in it share."""

    def __init__(self, place: Path) -> None:
        self.directory: AgentDirectory = agent_directory(place)
        self.clock = FakeClock()
        self.lives = Lives()
        self.identities = CountedIdentities()
        self.files = PosixFiles()
        self.limits = Limits(grace_ms=100)
        self.databases: Databases = HastyDatabases(SqliteDatabases())
        self._reader: tuple[int, SqliteDatabase] | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.directory.state) / "journal.db"

    def reader(self) -> SqliteDatabase:
        """A connection past all journals, to the file that is there now."""
        number = self.path.stat().st_ino
        if self._reader is None or self._reader[0] != number:
            self._reader = (number, SqliteDatabase(str(self.path)))
        return self._reader[1]

    def ports(self) -> Ports:
        """Real files, and the rest as a test says."""
        return Ports(self.files, FakeProcesses(), self.clock, self.identities, Notes())

    def open(
        self, bot: BotIdentity | None = BOT, *, create: bool = True, databases: Databases | None = None
    ) -> Journal:
        """One more connection."""
        return Journal.open(
            self.ports(),
            self.directory,
            bot=bot,
            create=create,
            limits=self.limits,
            liveness=self.lives,
            databases=databases or self.databases,
        )

    def faulty(self) -> FaultyDatabases:
        """Databases that fail or die as planned."""
        return FaultyDatabases(self.databases)

    def started(self, *updates: int, bot: BotIdentity | None = BOT) -> Journal:
        """A journal after its first start, under `EPOCH`, with those updates appended, which me serves as B."""
        journal = self.open(bot)
        assert EPOCH == journal.raise_fence(EPOCH, "i1")
        assert journal.end_first_start(EPOCH, "i1") is None
        if updates:
            assert journal.append([incoming(u) for u in updates], EPOCH, "i1") is not None
        journal.serve("B", ME)
        return journal

    def bytes(self) -> bytes:
        """What stands in the file."""
        return self.path.read_bytes()


ME = Party("i1", "p1", 1)
YOU = Party("i2", "p2", 1)
THIRD = Party("i3", "p3", 1)


def body(update: int) -> str:
    """The text of an update."""
    return f'{{"update_id":{update},"message":{{"text":"{"x" * 40}"}}}}'


def incoming(update: int, raw: str | None = None) -> Incoming:
    """As it was polled."""
    return Incoming(update, body(update) if raw is None else raw, KIND)


def arrival(
    update: int,
    binding: str = "B",
    *,
    delivery: str | None = None,
    raw: str | None = None,
    position: str | None = None,
) -> Arrival:
    """As a leader sends it."""
    name = delivery_id(KIND, binding, update) if delivery is None else delivery
    return Arrival(name, KIND, binding, update, body(update) if raw is None else raw, position)


def kept(journal: Journal, update: int) -> str:
    """The receipt of an update that the leader itself is to execute."""
    answer = journal.keep(update, EPOCH, "B", "i1")
    assert hasattr(answer, "admitted"), answer
    found: str = answer.admitted.receipt
    return found


def taken(journal: Journal, receipt: str, by: Party = ME) -> Holder:
    """Who holds it now: `by`."""
    answer = journal.take(receipt, by)
    assert isinstance(answer, Taken), answer
    return answer.holder


def serves(journal: Journal, binding: str, by: Party) -> None:
    """`by` serves it from now on, whoever did: it was registered since."""
    over = next((row for row in journal.servers() if row.binding == binding), None)
    assert journal.serve(binding, by, over=over) is None


def table(room: Room, sql: str) -> list[tuple[object, ...]]:
    """Rows of the file, past the journal."""
    return [tuple(row) for row in room.reader().execute(sql)]


TABLES = ("meta", "updates", "deliveries", "receipts", "servers", "moves", "evidence", "decisions")


def everything(room: Room) -> dict[str, list[tuple[object, ...]]]:
    """All that is in the file."""
    return {name: table(room, f"SELECT * FROM {name} ORDER BY 1") for name in TABLES}


def miscounted(room: Room) -> list[str]:
    """What the row `meta` counts otherwise than the tables have it."""
    said = table(
        room, "SELECT updates, update_bytes, deliveries, delivery_bytes, tombstones, decisions, passed FROM meta"
    )[0]
    (updates, update_bytes), (deliveries, delivery_bytes) = (
        table(
            room, f"SELECT count(*), coalesce(sum(length(CAST(raw AS BLOB))), 0) FROM {name} WHERE settled_at IS NULL"
        )[0]
        for name in ("updates", "deliveries")
    )
    payloads = table(
        room, "SELECT coalesce(sum(length(CAST(payload AS BLOB))), 0) FROM receipts WHERE settled_at IS NULL"
    )[0][0]
    tombstones = sum(
        int(str(table(room, f"SELECT count(*) FROM {name} WHERE settled_at IS NOT NULL")[0][0]))
        for name in ("updates", "deliveries", "receipts")
    )
    decisions = table(room, "SELECT count(*) FROM decisions")[0][0]
    highest = table(room, "SELECT coalesce(max(update_id), -1) FROM updates")[0][0]
    counted = (updates, update_bytes, deliveries, int(str(delivery_bytes)) + int(str(payloads)), tombstones, decisions)
    names = ("updates", "update_bytes", "deliveries", "delivery_bytes", "tombstones", "decisions")
    wrong = [f"{n}: said {s}, are {c}" for n, s, c in zip(names, said, counted, strict=False) if s != c]
    return wrong + ([f"passed {said[6]} below {highest}"] if int(str(said[6])) < int(str(highest)) else [])
