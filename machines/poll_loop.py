"""One poll loop: a batch is in the journal before the offset passes it (locks.md 10; S35, K18; A64, A65, A67, A68).

The machine of `spec/PollLoop.tla`. `tenure.machines.poller` says when there is a loop, this says what it does: poll,
journal, move the offset on disk, then its own cursor, and poll again. A request for what lies above the cursor makes
Telegram forget what lies below, so the cursor in a request is one that the disk has, and the disk's is one that the
journal has.

What was there before the first start is journaled as skipped, batch by batch, until an answer is empty; then the
journal is marked as opened, durably, and from there on every update is work. No negative offset is ever sent.

The adapter performs each output and answers it with one event; a `Stop` that is refused (something is being written)
is offered again after that answer. Offsets merge on disk by the greater one.
"""

from __future__ import annotations

from typing import ClassVar, Final

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.laws import Law, guard, permit

NONE: Final = -1
"""A cursor or an offset that is not known."""
LIMIT: Final = 10
"""Updates in one answer at most."""
LONG_POLL_S: Final = 30
"""How long Telegram may wait for an update, in seconds; during the first start it does not wait."""
GRACE_MS: Final = 10_000
"""What a request may take beyond the time that Telegram may wait, in ms."""
RETRY_MS: Final = 3_000
"""The wait after an error, and after the third and every later conflict in a row."""
CONFLICT_MS: Final = 1_000
"""The wait after the first and the second conflict in a row."""
PATIENCE: Final = 3
"""From this conflict in a row on the wait is the longer one."""
GREATEST: Final = 2**53 - 1
"""The greatest id that a JSON number holds exactly."""
ASKED: Final = 3
"""So often in a row Telegram answers the same update below the cursor before it is believed to number anew."""


def numbered_anew(times: int) -> bool:
    """Whether updates below the cursor are new, since Telegram numbers from a lower id on (`Renumber` and `asked_again`
    of DurableAdmission). `times`: how often in a row it has answered the same one, though it was asked above that.

    Telegram says that after a week without updates it chooses the next id at random, and so does another Bot API
    server. Who asks for more than it has numbered is answered the oldest that it has, and nothing is forgotten for it:
    so each time the same. An answer that is late, or was kept by somebody in between, comes once.
    """
    return times >= ASKED


@attrs.frozen(cache_hash=True)
class Memory:
    """What a loop remembers besides its phase."""

    cursor: int = NONE
    """The last update that this loop has journaled and persisted."""
    batch: tuple[int, ...] = ()
    """The updates of the last answer that are not persisted yet, by id."""
    skipping: bool = False
    """This is the first start: what comes is history."""
    conflicts: int = 0
    """Conflicts in a row, counted up to `PATIENCE`."""


# -- what a loop is told ------------------------------------------------------


@attrs.frozen
class Start:
    """The controller begins a loop."""

    event: ClassVar[str] = "start"


@attrs.frozen
class Loaded:
    """What the disk says: the offset, or `NONE`, and whether the journal is marked as opened."""

    event: ClassVar[str] = "loaded"
    offset: int
    opened: bool


@attrs.frozen
class Answered:
    """Updates came, by id in the order of the answer."""

    event: ClassVar[str] = "answered"
    ids: tuple[int, ...]


@attrs.frozen
class AnsweredEmpty:
    """No update came."""

    event: ClassVar[str] = "answered_empty"


@attrs.frozen
class TimedOut:
    """The request's budget of time is over, or the connection is."""

    event: ClassVar[str] = "timed_out"


@attrs.frozen
class Conflicted:
    """Telegram says that somebody else polls this token (409)."""

    event: ClassVar[str] = "conflicted"


@attrs.frozen
class Woke:
    """The wait is over."""

    event: ClassVar[str] = "woke"


@attrs.frozen
class RecordEnded:
    """The journal's transaction ended: `committed` or not; `opened` is the mark as that transaction found it."""

    event: ClassVar[str] = "record_ended"
    committed: bool
    opened: bool


@attrs.frozen
class PersistEnded:
    """The write of the offset ended; `written` says whether it is on disk."""

    event: ClassVar[str] = "persist_ended"
    written: bool


@attrs.frozen
class Stop:
    """The controller aborts the loop."""

    event: ClassVar[str] = "stop"


Happening = Start | Loaded | Answered | AnsweredEmpty | TimedOut | Conflicted | Woke | RecordEnded | PersistEnded | Stop

# -- what a loop asks for -----------------------------------------------------


@attrs.frozen
class Load:
    """Read offset and mark."""


@attrs.frozen
class Poll:
    """Ask for at most `LIMIT` updates above `cursor`; end the request after `budget_ms`, whatever it does."""

    cursor: int
    timeout_s: int
    budget_ms: int


@attrs.frozen
class Record:
    """Append the updates of these ids, in one transaction that refuses to skip when the mark is set.

    No ids and `skipped`: set the mark.
    """

    ids: tuple[int, ...]
    skipped: bool


@attrs.frozen
class Persist:
    """Write the offset, unless a greater one is there."""

    offset: int


@attrs.frozen
class Sleep:
    """Wait, and end the wait at an abort."""

    ms: int


@attrs.frozen
class Fail:
    """Tell the operator: the journal is in use but nobody knows how far Telegram was polled; restore the offset."""


@attrs.frozen
class Ended:
    """The loop has ended as it was told to."""


Order = Load | Poll | Record | Persist | Sleep | Fail | Ended
Taken = tuple[Memory, tuple[Order, ...]]


class PollLoopChart(StateMachine):
    """One loop, in the phases that an operator sees (locks.md 10)."""

    stopped = State(initial=True)
    starting = State()
    long_poll = State()
    persisting_journal = State()
    persisting_offset = State()
    retrying = State()

    start = stopped.to(starting, on="load_fresh")
    loaded = (
        starting.to(long_poll, cond=["first_start"], on="skip_history")
        | starting.to(long_poll, cond=["cursor_known"], on="go_on")
        | starting.to(stopped, on="fail")
    )
    answered = long_poll.to(persisting_journal, cond=["in_order"], on="record") | long_poll.to(retrying, on="retry")
    answered_empty = (
        long_poll.to(persisting_offset, cond=["empty_ends_history"], on="persist_end")
        | long_poll.to(long_poll, on="poll_again")
    )  # fmt: skip
    timed_out = long_poll.to(retrying, cond=["deaf_poll_ends"], on="retry")
    conflicted = long_poll.to(retrying, on="stand_back")
    woke = retrying.to(starting, on="load")
    record_ended = (
        persisting_journal.to(long_poll, cond=["appended", "empty_ends_history", "history_is_drained"], on="open")
        | persisting_journal.to(persisting_offset, cond=["appended", "still_first_start"], on="persist")
        | persisting_journal.to(retrying, on="retry")
    )
    persist_ended = (
        persisting_offset.to(
            persisting_journal, cond=["persisted", "empty_ends_history", "history_is_drained"], on="mark"
        )
        | persisting_offset.to(long_poll, cond=["persisted"], on="advance")
        | persisting_offset.to(retrying, on="retry")
    )
    stop = starting.to(stopped, on="end") | long_poll.to(stopped, on="end") | retrying.to(stopped, on="end")

    # -- guards ---------------------------------------------------------------

    @staticmethod
    @guard(Law.DURABLE_FIRST)
    def first_start(data: Memory, message: Loaded) -> bool:
        """Durable first: only while the journal is not marked as opened is what waits history. Without it a restart
        takes waiting work for history (A68), and where the journal refuses that, nothing is ever polled."""
        return not message.opened

    @staticmethod
    @permit(Law.DURABLE_FIRST)
    def cursor_known(data: Memory, message: Loaded) -> bool:
        """Durable first: a loop goes on from what it or the disk knows. Without it no restart polls."""
        return max(message.offset, data.cursor) != NONE

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def in_order(data: Memory, message: Answered) -> bool:
        """Late is nothing: ids are above the cursor and increase, or the answer belongs to the past. Without it a
        replayed answer takes the cursor back (A68)."""
        ids = message.ids
        return bool(ids) and data.cursor < ids[0] and ids[-1] <= GREATEST and all(map(int.__lt__, ids, ids[1:]))

    @staticmethod
    @permit(Law.DURABLE_FIRST)
    def empty_ends_history(data: Memory, message: AnsweredEmpty | RecordEnded | PersistEnded) -> bool:
        """Durable first: an empty answer ends the first start. Without it every update for ever is skipped."""
        return data.skipping

    @staticmethod
    @permit(Law.UNKNOWN)
    def deaf_poll_ends(data: Memory, message: TimedOut) -> bool:
        """Unknown: a request that is never answered is given up and asked again. Without it the loop of a half-open
        connection holds its lease for ever and polls nothing (A64)."""
        return True

    @staticmethod
    @guard(Law.DURABLE_FIRST)
    def appended(data: Memory, message: RecordEnded) -> bool:
        """Durable first: the offset moves only past what the journal has committed. Without it a failed append loses
        the update: Telegram forgets it at the next poll (S35)."""
        return message.committed

    @staticmethod
    @guard(Law.DURABLE_FIRST)
    def history_is_drained(data: Memory, message: RecordEnded | PersistEnded) -> bool:
        """Durable first: the mark is set after the last batch of history. Without it the rest of the history is
        executed as if it had just been sent."""
        return not data.batch

    @staticmethod
    @guard(Law.FENCE)
    def still_first_start(data: Memory, message: RecordEnded) -> bool:
        """Fence: history is skipped only in a transaction that finds the mark not set. Without it a slow second loop
        skips what the first has begun to execute."""
        return not (data.skipping and message.opened)

    @staticmethod
    @guard(Law.DURABLE_FIRST)
    def persisted(data: Memory, message: PersistEnded) -> bool:
        """Durable first: the loop's cursor moves only after the disk's. Without it Telegram is told to forget what
        the disk has not passed, and a restart finds a gap that nobody can explain (K18)."""
        return message.written

    # -- effects --------------------------------------------------------------

    @staticmethod
    def load_fresh(data: Memory, message: Start) -> Taken:
        return Memory(), (Load(),)

    @staticmethod
    def load(data: Memory, message: Woke) -> Taken:
        return data, (Load(),)

    @staticmethod
    def skip_history(data: Memory, message: Loaded) -> Taken:
        return _polled(attrs.evolve(data, cursor=max(message.offset, data.cursor), skipping=True))

    @staticmethod
    def go_on(data: Memory, message: Loaded) -> Taken:
        return _polled(attrs.evolve(data, cursor=max(message.offset, data.cursor), skipping=False))

    @staticmethod
    def fail(data: Memory, message: Loaded) -> Taken:
        return Memory(), (Fail(),)

    @staticmethod
    def record(data: Memory, message: Answered) -> Taken:
        after = attrs.evolve(data, batch=message.ids, conflicts=0)
        return after, (Record(message.ids, data.skipping),)

    @staticmethod
    def persist_end(data: Memory, message: AnsweredEmpty) -> Taken:
        return attrs.evolve(data, conflicts=0), (Persist(_reached(data)),)

    @staticmethod
    def poll_again(data: Memory, message: AnsweredEmpty) -> Taken:
        return _polled(attrs.evolve(data, conflicts=0))

    @staticmethod
    def retry(data: Memory, message: Happening) -> Taken:
        return attrs.evolve(data, batch=()), (Sleep(RETRY_MS),)

    @staticmethod
    def stand_back(data: Memory, message: Conflicted) -> Taken:
        conflicts = min(data.conflicts + 1, PATIENCE)
        return attrs.evolve(data, conflicts=conflicts), (Sleep(CONFLICT_MS if conflicts < PATIENCE else RETRY_MS),)

    @staticmethod
    def open(data: Memory, message: RecordEnded) -> Taken:
        return _polled(attrs.evolve(data, batch=(), skipping=False))

    @staticmethod
    def persist(data: Memory, message: RecordEnded) -> Taken:
        return data, (Persist(_reached(data)),)

    @staticmethod
    def mark(data: Memory, message: PersistEnded) -> Taken:
        return attrs.evolve(data, cursor=_reached(data)), (Record((), skipped=True),)

    @staticmethod
    def advance(data: Memory, message: PersistEnded) -> Taken:
        return _polled(attrs.evolve(data, cursor=_reached(data), batch=()))

    @staticmethod
    def end(data: Memory, message: Stop) -> Taken:
        return Memory(), (Ended(),)


def _reached(data: Memory) -> int:
    """The cursor that the batch, or the empty answer that ends history, leads to."""
    return data.batch[-1] if data.batch else max(data.cursor, 0)


def _polled(data: Memory) -> Taken:
    timeout = 0 if data.skipping else LONG_POLL_S
    return data, (Poll(data.cursor, timeout, timeout * 1_000 + GRACE_MS),)


POLL_LOOP: Table[Memory, Happening, Order] = compile_chart(PollLoopChart)
