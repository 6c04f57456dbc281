"""The request ledger of a bus server: at most one execution of a request (bus.md a, LEDGER; holes L13, L14, L20).

    ledger = Ledger(refusal, still_stands)
    ack = await ledger.run(RequestKey(auth, identity, request_id), fingerprint, "other", execute)

`Entries` is the ledger itself, without waiting: machines of `REQUEST_LEDGER` by key, and what they answer. `Ledger`
performs that under asyncio.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from hashlib import blake2b
from typing import Final, Generic, Literal, TypeVar

import attrs

from tenure.adapters.awaiting import heard
from tenure.adapters.bus.messages.envelopes import Ground
from tenure.adapters.bus.serving.ledger_answers import KEPT_BYTES, SMALL_BYTES, Answers, Dropped
from tenure.machines.chart import Refused, step
from tenure.machines.request_ledger import (
    LEDGER_ENTRIES,
    REQUEST_LEDGER,
    Ask,
    Entry,
    Evict,
    Execute,
    ExecuteAlone,
    Happening,
    Join,
    Kind,
    MakeRoom,
    Outcome,
    Output,
    Reason,
    Refuse,
    Replay,
    Settle,
    Stop,
)

A = TypeVar("A")
K = TypeVar("K", bound=Hashable)

REMEMBERED: Final = ("executing", "kept")
"""Phases of entries; of the others there is nothing to remember."""
BODY_BYTES: Final = 16
"""Enough to tell any two bodies apart, where a fingerprint may be as long as a line."""

Unexecuted = Reason | Literal["broken", "dropped"]
"""Why the ledger answers by itself. broken: the execution ended with an error that nobody expected. dropped: it was
executed, and what it was answered is not kept any more."""


@attrs.frozen
class RequestKey:
    """An idempotence key: the secret that came with the request, who asks, and the request id. What the request rests
    on goes along and is no part of it: `ground`, its registration, None where it names none; `kind`, as `Kind` says."""

    auth: str | None
    identity: str
    request_id: str
    ground: Ground | None = attrs.field(default=None, eq=False)
    kind: Kind = attrs.field(default="other", eq=False)


@attrs.frozen
class Done(Generic[A]):
    """What an execution has come to: the acknowledgement, and what that is to the ledger (see `Outcome`)."""

    ack: A
    outcome: Outcome


@attrs.frozen
class LedgerStatistics:
    """A moment of a ledger: entries, those of them that are over, and what was done with requests so far."""

    held: int
    settled: int
    executed: int
    executed_alone: int
    joined: int
    replayed: int
    refused: int
    evicted: int
    dropped: int
    """Answers that were too long to be kept beside others."""
    kept_bytes: int
    """Of long answers."""


@attrs.frozen
class Slot:
    """One entry: where its machine is."""

    phase: str
    data: Entry


class Entries(Generic[K, A]):
    """The entries of one server. Every method answers at once, and what it answers is to be done."""

    def __init__(self, limit: int = LEDGER_ENTRIES, answers: Answers[K, A] | None = None) -> None:
        self._absent = Slot(REQUEST_LEDGER.initial, Entry(limit))
        self.slots: dict[K, Slot] = {}
        self.settled: Answers[K, A] = Answers() if answers is None else answers
        """The acknowledgements of those that are over, in the order in which they were settled."""

    def ask(self, key: K, body: str, kind: Kind, *, stands: bool) -> tuple[Output, ...]:
        """A request came in: last of all `Execute`, `ExecuteAlone`, `Join`, `Replay` or `Refuse`; before it what has
        been done here, `MakeRoom`."""
        outputs = self._told(key, Ask(body, kind, len(self.slots), len(self.settled), stands))
        for output in outputs:
            if isinstance(output, MakeRoom):
                self._told(next(iter(self.settled)), Evict())
        return outputs

    def settle(self, key: K, outcome: Outcome, ack: A) -> tuple[Output, ...]:
        """The execution is over: `Tell`, or nothing where that is late."""
        outputs = self._told(key, Settle(outcome))
        if outputs and key in self.slots:
            self.settled.keep(key, ack)
        return outputs

    def stop(self) -> dict[K, tuple[Output, ...]]:
        """Forget everything, for good: what is to be done about whom, `Refuse`."""
        found = {key: self._told(key, Stop()) for key in list(self.slots)}
        self._absent = self._after(self._absent, Stop())[0]
        return found

    def _told(self, key: K, message: Happening) -> tuple[Output, ...]:
        after, outputs = self._after(self.slots.get(key, self._absent), message)
        if after.phase in REMEMBERED:
            self.slots[key] = after
        else:
            self.slots.pop(key, None)
            self.settled.forget(key)
        return outputs

    @staticmethod
    def _after(slot: Slot, message: Happening) -> tuple[Slot, tuple[Output, ...]]:
        done = step(REQUEST_LEDGER, slot.phase, slot.data, message)
        return (slot, ()) if isinstance(done, Refused) else (Slot(done.phase, done.data), done.outputs)


class Ledger(Generic[K, A]):
    """The ledger of one server under asyncio; all of it on one event loop.

    `refusal(key, why)` makes the acknowledgement of a request that was not executed, or whose execution has broken, or
    whose answer was dropped. `size`: the bytes of an acknowledgement; of those that are longer than `small_bytes` the
    oldest are dropped as soon as all of them together have more than `kept_bytes`. `still_stands(key)` says whether
    what the request of `key` rests on is current, the registration that came of it or that it names; it is asked for
    every request, so it should be quick. `on_error` hears of an execution that raised. None of the three may raise.
    """

    def __init__(
        self,
        refusal: Callable[[K, Unexecuted], A],
        still_stands: Callable[[K], bool],
        *,
        limit: int = LEDGER_ENTRIES,
        on_error: Callable[[K, Exception], None] = lambda key, error: None,
        size: Callable[[A], int] = lambda ack: 0,
        small_bytes: int = SMALL_BYTES,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self._on_error = on_error
        self._refusal = refusal
        self._still_stands = still_stands
        self._entries: Entries[K, A] = Entries(limit, Answers(size, small_bytes, kept_bytes))
        self._waiting: dict[K, asyncio.Future[A]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._counts: Counter[type[Output]] = Counter()

    async def run(self, key: K, fingerprint: str, kind_class: Kind, execute: Callable[[], Awaitable[Done[A]]]) -> A:
        """The acknowledgement of a request: of its one execution, now or before, or a refusal.

        `fingerprint` tells bodies apart: the same for the same parsed envelope. Cancelled, it leaves the execution
        alone: it has begun, and others may wait for it. Only what is not recorded (a heartbeat beside a full ledger) is
        cancelled with the one who waits.
        """
        outputs = self._entries.ask(key, body_of(fingerprint), kind_class, stands=self._still_stands(key))
        self._counts.update(map(type, outputs))
        match outputs[-1]:
            case Execute():
                self._start(key, execute)
                return await asyncio.shield(self._waiting[key])
            case Join():
                return await asyncio.shield(self._waiting[key])
            case Replay():
                kept = self._entries.settled.of(key)
                return self._refusal(key, "dropped") if isinstance(kept, Dropped) else kept
            case ExecuteAlone():
                return (await self._done(key, execute)).ack
            case Refuse(reason):
                return self._refusal(key, reason)
        raise AssertionError(f"a request is answered, not {outputs}")

    def stop(self) -> tuple[asyncio.Task[None], ...]:
        """Forget everything and refuse whatever waits or comes. Answers what is still executing: to be awaited, or
        cancelled; what it comes to is nothing any more."""
        for key, outputs in self._entries.stop().items():
            for output in outputs:
                if isinstance(output, Refuse):
                    self._counts[Refuse] += 1
                    self._waiting.pop(key).set_result(self._refusal(key, output.reason))
        return tuple(self._tasks)

    def statistics(self) -> LedgerStatistics:
        """Counts as they are now."""
        count = self._counts
        return LedgerStatistics(
            len(self._entries.slots),
            len(self._entries.settled),
            count[Execute],
            count[ExecuteAlone],
            count[Join],
            count[Replay],
            count[Refuse],
            count[MakeRoom],
            self._entries.settled.dropped,
            self._entries.settled.kept_bytes,
        )

    # -- executions ---------------------------------------------------------------------------------------------------

    def _start(self, key: K, execute: Callable[[], Awaitable[Done[A]]]) -> None:
        loop = asyncio.get_running_loop()
        self._waiting[key] = loop.create_future()
        task = loop.create_task(self._recorded(key, execute), name=f"tenure-request-{key}")
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._over(key, task))

    async def _recorded(self, key: K, execute: Callable[[], Awaitable[Done[A]]]) -> None:
        self._settle(key, await self._done(key, execute))

    async def _done(self, key: K, execute: Callable[[], Awaitable[Done[A]]]) -> Done[A]:
        try:
            return await execute()
        except Exception as error:
            # What it had done by then nobody knows; the peer is told no more than that.
            self._on_error(key, error)
            return self._broken(key)

    def _broken(self, key: K) -> Done[A]:
        return Done(self._refusal(key, "broken"), "unknown")

    def _settle(self, key: K, done: Done[A]) -> None:
        if self._entries.settle(key, done.outcome, done.ack):
            self._waiting.pop(key).set_result(done.ack)

    def _over(self, key: K, task: asyncio.Task[None]) -> None:
        """However it ended, those who wait are told."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            self._settle(key, self._broken(key))
        elif error is not None and key in self._waiting:
            waiting = self._waiting.pop(key)
            heard(waiting)  # everybody who waited may have gone
            waiting.set_exception(error)


def body_of(fingerprint: str) -> str:
    """What an entry keeps of a fingerprint."""
    return blake2b(fingerprint.encode("utf-8", "surrogatepass"), digest_size=BODY_BYTES).hexdigest()
