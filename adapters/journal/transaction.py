"""One journal file that is open, and one transaction in it: begin, read the row `meta`, work, commit, or leave the file
as it was.

Whatever goes wrong in the middle is rolled back; what goes wrong while committing is told apart by whether anybody can
know what it did (law Unknown). A refusal is raised inside as `Declined` and rolls back as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import attrs

from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.database import Database, DatabaseFault, Row, Value
from tenure.adapters.journal.errors import ForeignIdentity, JournalError, damaged, gone, newer, told, unknown
from tenure.adapters.journal.events import Decided, JournalEvents
from tenure.adapters.journal.identity import BotIdentity
from tenure.adapters.journal.liveness import Liveness
from tenure.adapters.journal.schema import VERSION
from tenure.adapters.ports import Clock, Killed
from tenure.machines.chart import Refused

T = TypeVar("T")

_COLUMNS: Final = (
    "schema, bot_id, token_sha256, bot_serial, fence, passed, opened, updates, update_bytes, deliveries,"
    " delivery_bytes, tombstones, decisions"
)
_READ: Final = f"SELECT {_COLUMNS}, (SELECT seq FROM sqlite_sequence WHERE name = 'decisions') FROM meta WHERE id = 1"
"""With the highest number that a decision ever had."""
_WRITE: Final = (
    "UPDATE meta SET bot_id = ?, token_sha256 = ?, bot_serial = ?, fence = ?, passed = ?, opened = ?, updates = ?,"
    " update_bytes = ?, deliveries = ?, delivery_bytes = ?, tombstones = ?, decisions = ? WHERE id = 1"
)
_UNDONE: Final = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL"})
"""Codes with which a commit says that it has not happened, as long as it is rolled back."""


@attrs.define
class Meta:
    """The row `meta`. `serial` grows with every change of the bot, `fence` is the highest epoch that has raised it,
    `passed` the highest update id that was ever appended (-1: none), `opened`: the first start is over. `updates` and
    `deliveries` are how many are unsettled (a delivery has a receipt, which is counted with it), and their bytes."""

    bot: BotIdentity | None
    serial: int
    fence: int
    passed: int
    opened: bool
    updates: int
    update_bytes: int
    deliveries: int
    delivery_bytes: int
    tombstones: int
    decisions: int


class Declined(Exception):
    """A machine has refused: unwinds the transaction. `subject`, `party`, `tenure`, `detail` and `laws` are the
    decision's; about no subject ("") none is written."""

    def __init__(
        self,
        refused: Refused,
        subject: str,
        party: str | None,
        tenure: str | None = None,
        detail: str = "",
        laws: str = "",
    ) -> None:
        super().__init__(refused)
        self.refused = refused
        self.laws = laws
        self.subject = subject
        self.party = party
        self.tenure = tenure
        self.detail = detail


class Undone(Exception):
    """The operation was not done, without a machine's refusal: unwinds the transaction. `answer` says why."""

    def __init__(self, answer: object) -> None:
        super().__init__(answer)
        self.answer = answer


class Transaction:
    """What an operation works with. `now_ms`: the wall clock, read once, at the beginning."""

    def __init__(self, database: Database, meta: Meta, limits: Limits, liveness: Liveness, now_ms: int) -> None:
        self.meta = meta
        self.limits = limits
        self.liveness = liveness
        self.now_ms = now_ms
        self.wrote = False
        self.decided: list[Decided] | None = None
        """What was decided in it, where that is recorded."""
        self._database = database

    def read(self, sql: str, values: Sequence[Value] = ()) -> Sequence[Row]:
        """The rows of a query."""
        return self._database.execute(sql, values)

    def one(self, sql: str, values: Sequence[Value] = ()) -> Row | None:
        """The only row of a query, or None."""
        found = self._database.execute(sql, values)
        return found[0] if found else None

    def write(self, sql: str, values: Sequence[Value] = ()) -> None:
        """A statement that changes something."""
        self.wrote = True
        self._database.execute(sql, values)

    def changed(self) -> int:
        """How many rows the last `write` has changed."""
        found = self._database.execute("SELECT changes()")[0][0]
        assert isinstance(found, int)
        return found


class Store:
    """The file at `path`, open in one thread."""

    def __init__(self, path: str, database: Database, clock: Clock, liveness: Liveness, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        self.serial: int | None = None
        """The bot whose work this is, as counted in `meta`; None: whoever's."""
        self.events: JournalEvents | None = None
        """Whom to tell what is durable."""
        self._database = database
        self._clock = clock
        self._liveness = liveness
        self._seen = (0, 0, 0)
        """Serial, fence and number of decisions as they were read last, and were durable then."""

    def write(self, work: Callable[[Transaction], T]) -> T:
        """What `work` answers, when all that it wrote is durable. Raises `JournalError`, and `Declined`: then nothing
        was written; `OutcomeUnknown`: nobody knows."""
        transaction = self._begin(self._database.begin)
        if self.events is not None:
            transaction.decided = []
        try:
            before = attrs.evolve(transaction.meta)
            answer = work(transaction)
            if transaction.meta != before:
                transaction.write(_WRITE, _values(transaction.meta))
        except DatabaseFault as fault:
            self._undo()
            raise told(self.path, fault) from fault
        except Killed:
            raise
        except BaseException:
            self._undo()
            raise
        if transaction.wrote:
            commit(self._database, self.path)
        else:
            self._undo()
        if self.events is not None and transaction.decided:
            self.events.committed(transaction.decided)
        return answer

    def read(self, work: Callable[[Transaction], T]) -> T:
        """What `work` answers of one state of the file. Raises `JournalError`."""
        transaction = self._begin(self._database.snapshot)
        try:
            answer = work(transaction)
        except DatabaseFault as fault:
            self._undo()
            raise told(self.path, fault) from fault
        except Killed:
            raise
        except BaseException:
            self._undo()
            raise
        self._undo()
        return answer

    def backup(self, path: str, called: str) -> None:
        """Everything, as of one moment, into the empty file at `path`, which will be `called` so. Raises
        `JournalError`."""
        self._begin(self._database.snapshot)
        try:
            self._database.backup(path)
        except DatabaseFault as fault:
            self._undo()
            raise told(called, fault) from fault
        self._undo()

    def close(self) -> None:
        """Give the file up."""
        try:
            self._database.close()
        except DatabaseFault as fault:
            raise told(self.path, fault) from fault

    def _begin(self, begin: Callable[[], None]) -> Transaction:
        try:
            begin()
            found = self._database.execute(_READ)
        except DatabaseFault as fault:
            self._undo()
            raise told(self.path, fault) from fault
        try:
            meta = _meta([row[:-1] for row in found], self.path)
            _require_version(found[0][0], self.path)
            if self.serial is not None and meta.serial != self.serial:
                raise ForeignIdentity(
                    self.path,
                    f"{meta.bot} has taken the journal over, so it is not used any more for the bot before; end one of "
                    "both, or give each a profile of its own",
                )
            self._require_forward(meta.serial, meta.fence, found[0][-1])
        except JournalError:
            self._undo()
            raise
        return Transaction(self._database, meta, self.limits, self._liveness, self._clock.wall_ms())

    def _require_forward(self, serial: int, fence: int, decided: Value) -> None:
        # None of them ever falls: then it was not one of us who wrote.
        now = (serial, fence, decided if isinstance(decided, int) else 0)
        if any(value < before for value, before in zip(now, self._seen, strict=True)):
            raise gone(self.path, "was overwritten with an older copy")
        self._seen = now

    def _undo(self) -> None:
        # What cannot be rolled back now is rolled back by whoever opens the file next.
        with suppress(DatabaseFault):
            self._database.rollback()


def commit(database: Database, path: str) -> None:
    """End the transaction. Raises `OutcomeUnknown`, and another `JournalError` where it has certainly not happened."""
    try:
        database.commit()
    except DatabaseFault as fault:
        try:
            database.rollback()
        except DatabaseFault:
            raise unknown(path, fault) from fault
        raise (told if fault.code in _UNDONE else unknown)(path, fault) from fault


def _require_version(found: Value, path: str) -> None:
    if found != VERSION:
        raise newer(path, found, VERSION)


def _meta(found: Sequence[Row], path: str) -> Meta:
    if len(found) != 1:
        raise damaged(path, "its table meta has no row")
    match found[0]:
        case (
            int(),
            int() | None as bot_id,
            str() | None as token,
            int(serial),
            int(fence),
            int(passed),
            int(opened),
            int(updates),
            int(update_bytes),
            int(deliveries),
            int(delivery_bytes),
            int(tombstones),
            int(decisions),
        ):
            bot = None if token is None else BotIdentity(bot_id, token)
            counts = (updates, update_bytes, deliveries, delivery_bytes, tombstones, decisions)
            return Meta(bot, serial, fence, passed, bool(opened), *counts)
    raise damaged(path, "its table meta holds something else than numbers")


def _values(meta: Meta) -> tuple[Value, ...]:
    bot = meta.bot
    return (
        None if bot is None else bot.bot_id,
        None if bot is None else bot.token_sha256,
        meta.serial,
        meta.fence,
        meta.passed,
        int(meta.opened),
        meta.updates,
        meta.update_bytes,
        meta.deliveries,
        meta.delivery_bytes,
        meta.tombstones,
        meta.decisions,
    )
