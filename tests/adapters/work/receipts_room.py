"""A journal of receipts in memory: each row is moved by its machine, as the real one's are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.work.items import Held, Item
from tenure.machines import receipt_messages as own
from tenure.machines.chart import Step, step
from tenure.machines.receipt import RECEIPT
from tenure.machines.receipt_messages import Holder, Party, Receipt
from tests.adapters.work.work_room import message


@attrs.define
class Row:
    """One receipt."""

    receipt_id: str
    first_update: int
    phase: str = "pending"
    data: Receipt = attrs.field(factory=lambda: Receipt(3))
    not_before: float = 0.0


class Rows:
    """All receipts, whoever looks."""

    def __init__(self, *numbers: int) -> None:
        self.rows: dict[str, Row] = {}
        self.dead: set[str] = set()
        self.add(*numbers)

    def add(self, *numbers: int) -> None:
        """New ones."""
        for number in numbers:
            self.rows[f"r{number}"] = Row(f"r{number}", number)

    def phases(self) -> dict[int, str]:
        """By update."""
        return {row.first_update: row.phase for row in self.rows.values()}

    def tell(self, row: Row, message: own.Happening) -> Step[Receipt, own.Output] | None:
        """One transaction."""
        answer = step(RECEIPT, row.phase, row.data, message)
        if not isinstance(answer, Step):
            return None
        row.phase, row.data = answer.phase, answer.data
        return answer


class MemoryReceipts:
    """What one process does with them. `faults` is asked before each call and after it, with its name and when; it may
    raise."""

    def __init__(self, rows: Rows, process: str = "p1", instance: str = "i1") -> None:
        self.all = rows
        self.me = Party(instance, process)
        self.calls: list[str] = []
        self.faults: Callable[[str, str], None] = lambda name, when: None
        self.slow: asyncio.Event | None = None
        """While it is not set, calls take their time, and are done all the same."""
        self._acquisitions = 0

    async def _call(self, name: str, work: Callable[[], object]) -> None:
        self.calls.append(name)
        self.faults(name, "before")
        work()
        if self.slow is not None:
            await self.slow.wait()
        self.faults(name, "after")

    async def take(self, limit: int) -> tuple[Held, ...]:
        found: list[Held] = []

        def work() -> None:
            now = asyncio.get_running_loop().time()
            for row in sorted(self.all.rows.values(), key=lambda row: row.first_update):
                if row.phase == "pending" and row.not_before <= now and len(found) < limit:
                    self._acquisitions += 1
                    self.all.tell(row, own.Take(self.me, f"{self.me.instance}-a{self._acquisitions}", "serves"))
                owner = row.data.owner
                if row.phase == "queued" and owner is not None and owner.process == self.me.process:
                    found.append(self._held(row, owner))

        await self._call("take", work)
        return tuple(found[:limit])

    def _held(self, row: Row, owner: Holder) -> Held:
        return Held(row.receipt_id, "prompt", "b", row.first_update, owner)

    async def start(self, held: Held) -> Item | None:
        row = self.all.rows[held.receipt_id]
        begun: list[int] = []

        def work() -> None:
            answer = self.all.tell(row, own.Start(held.holder))
            if answer is not None or (row.phase == "started" and row.data.owner == held.holder):
                begun.append(row.data.attempts)

        await self._call("start", work)
        if not begun:
            return None
        tenure = str(held.holder.acquisition)
        return Item(held.receipt_id, "prompt", (message(row.first_update),), "b", tenure, begun[0])

    async def complete(self, held: Held) -> None:
        await self._call("complete", lambda: self.all.tell(self.all.rows[held.receipt_id], own.Complete(held.holder)))

    async def fail(self, held: Held, delay_ms: int, why: str) -> None:
        row = self.all.rows[held.receipt_id]

        def work() -> None:
            if self.all.tell(row, own.Fail(held.holder)) is not None:
                row.not_before = asyncio.get_running_loop().time() + delay_ms / 1000

        await self._call("fail", work)

    async def doubt(self, held: Held, why: str) -> None:
        await self._call("doubt", lambda: self.all.tell(self.all.rows[held.receipt_id], own.Doubt(held.holder)))

    async def release(self, held: Held) -> None:
        await self._call("release", lambda: self.all.tell(self.all.rows[held.receipt_id], own.Release(held.holder)))

    async def recover(self) -> int:
        before = self.all.phases()
        for row in self.all.rows.values():
            owner = row.data.owner
            if owner is not None:
                evidence: own.Evidence = "dead" if owner.process in self.all.dead else "alive"
                self.all.tell(row, own.Recover(owner.acquisition, evidence))
                self.all.tell(row, own.Reclaim(self.me.process, self.me.instance))
        return sum(before[number] != phase for number, phase in self.all.phases().items())

    async def leave(self) -> None:
        await self._call("leave", lambda: None)

    async def due_in(self) -> int | None:
        now = asyncio.get_running_loop().time()
        later = [
            row.not_before - now for row in self.all.rows.values() if row.phase == "pending" and row.not_before > now
        ]
        return None if not later else int(min(later) * 1000) + 1


def failing(name: str, when: str, times: int = 1) -> Callable[[str, str], None]:
    """So many calls of that name fail, before or after they were done."""
    left = [times]

    def fault(called: str, at: str) -> None:
        if (called, at) == (name, when) and left[0]:
            left[0] -= 1
            raise TenureError(f"{name} failed {when}")

    return fault
