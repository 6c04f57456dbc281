"""A leader's updates in memory: each row is moved by its machine, as the journal's are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import attrs

from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.work.outbox import Outcome, Outgoing
from tenure.adapters.work.routing import Address
from tenure.machines import forwarding_messages as own
from tenure.machines.chart import Step, step
from tenure.machines.follower_messages import Target
from tenure.machines.forwarding import FORWARDING, aside
from tenure.machines.forwarding_messages import RetryIn, Send, Update


@attrs.define
class Row:
    """One update."""

    body: Json
    data: Update
    phase: str = "journaled"
    due: float = 0.0


class MemoryOutbox:
    """The journal as one leader has it. `faults` as for the receipts."""

    def __init__(self, epoch: int = 1) -> None:
        self.rows: dict[int, Row] = {}
        self.epoch = epoch
        self.fence = epoch
        self.owners: dict[tuple[int, int], str] = {}
        self.threads: dict[Target, str] = {}
        self.faults: Callable[[str, str], None] = lambda name, when: None
        self.calls: list[str] = []
        self.full = False
        """There is no room for deliveries."""

    def add(self, *updates: Json) -> None:
        """New ones, journaled."""
        for update in updates:
            assert isinstance(update.value, dict)
            number = update.value["update_id"]
            assert isinstance(number, int)
            self.rows[number] = Row(update, Update(number, ""))

    def phases(self) -> dict[int, str]:
        """By id."""
        return {number: row.phase for number, row in self.rows.items()}

    def _tell(self, name: str, number: int, message: own.Happening, kind: str = "") -> Step[Update, own.Output] | None:
        self.calls.append(name)
        self.faults(name, "before")
        row = self.rows[number]
        data = attrs.evolve(row.data, kind=kind) if kind else row.data
        answer = step(FORWARDING, row.phase, data, message)
        if isinstance(answer, Step):
            row.phase, row.data = answer.phase, answer.data
            for output in answer.outputs:
                if isinstance(output, RetryIn):
                    row.due = self._now() + output.delay_ms / 1000
        self.faults(name, "after")
        return answer if isinstance(answer, Step) else None

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def resume(self, besides: frozenset[int]) -> None:
        for number, row in self.rows.items():
            if row.phase == "forwarding" and number not in besides:
                self._tell("resume", number, own.Resume(self.epoch, self.fence))

    async def outgoing(self, after: int, limit: int, *, unserved: bool) -> tuple[Outgoing, ...]:
        found = []
        for number, row in sorted(self.rows.items()):
            if number > after and (
                row.phase == "journaled" or (row.phase == "waiting" and self._looked_at(row, unserved))
            ):
                data, due = row.data, row.phase == "journaled" or row.due <= self._now()
                found.append(Outgoing(number, row.body, data.binding, data.attempts, data.failure, due, aside(data)))
        return tuple(found[:limit])

    def _looked_at(self, row: Row, unserved: bool) -> bool:
        waits = row.phase == "waiting" and (unserved or row.data.failure != own.UNSERVED)
        return row.phase == "journaled" or waits

    async def due_in(self) -> int | None:
        later = [
            row.due - self._now() for row in self.rows.values() if row.phase == "waiting" and row.due > self._now()
        ]
        return None if not later else int(min(later) * 1000) + 1

    async def remembered(self, address: Address) -> str | None:
        thread = None if address.target is None else self.threads.get(address.target)
        return thread if address.message is None else self.owners.get(address.message, thread)

    def _again(self, update: Outgoing) -> None:
        if self.rows[update.update_id].phase == "waiting":
            self._tell("retry", update.update_id, own.Retry())

    async def forward(self, update: Outgoing, kind: str, binding: str) -> Send | None:
        self._again(update)
        answer = self._tell("forward", update.update_id, own.Forward(self.epoch, self.fence, binding), kind)
        sends = [o for o in ([] if answer is None else answer.outputs) if isinstance(o, Send)]
        return sends[0] if sends else None

    async def keep(self, update: Outgoing, kind: str, binding: str) -> Outcome:
        self._again(update)
        if self.full:
            return Outcome(delivered=False, why="the journal is full")
        kept = self._tell("keep", update.update_id, own.Keep(self.epoch, self.fence, binding), kind) is not None
        return Outcome(delivered=kept)

    async def unserved(self, update: Outgoing) -> None:
        self._tell("unserved", update.update_id, own.Unserved(self.epoch, self.fence))

    async def acknowledged(self, update: Outgoing, ok: bool, delivery: str | None, source: int | None) -> Outcome:
        message = own.Acknowledged(self.epoch, self.fence, ok, delivery, source)
        return self._outcome(self._tell("acknowledged", update.update_id, message))

    async def failed(self, update: Outgoing, why: own.Failure) -> Outcome:
        return self._outcome(self._tell("failed", update.update_id, own.Failed(self.epoch, self.fence, why)))

    def _outcome(self, answer: Step[Update, own.Output] | None) -> Outcome:
        if answer is None:
            return Outcome(delivered=False)
        waits = [output for output in answer.outputs if isinstance(output, RetryIn)]
        if not waits:
            return Outcome(answer.phase == "delivered")
        return Outcome(False, waits[0].delay_ms, waits[0].aside)
