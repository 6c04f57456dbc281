"""The journal as a few dictionaries: what every operation answers and leaves, without a file, said once more.

The machines decide here as well; everything else (who has a row, what is told to a machine, what settles with what) is
written anew, the plain way.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import attrs

from tenure.adapters.journal.bodies import body_digest
from tenure.machines import delivery as dm
from tenure.machines import forwarding_messages as fm
from tenure.machines import receipt_messages as rm
from tenure.machines.admission_identity import delivery_id
from tenure.machines.chart import Refused, Step, step
from tenure.machines.delivery import DELIVERY, Delivery
from tenure.machines.forwarding import FORWARDING
from tenure.machines.receipt import RECEIPT

LIVE = ("journaled", "forwarding", "waiting")
Answer = object


class No(Exception):
    """A machine refuses: the whole operation has not happened."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused)
        self.refused = refused


@attrs.define
class UpdateOf:
    """A row of updates."""

    phase: str
    data: fm.Update
    raw: str
    next_at: int | None = None


@attrs.define
class DeliveryOf:
    """A row of deliveries."""

    phase: str
    binding: str
    digest: str
    receipt: str
    update: int


@attrs.define
class ReceiptOf:
    """A row of receipts."""

    phase: str
    data: rm.Receipt
    binding: str
    update: int
    not_before: int = 0


@attrs.define
class ServerOf:
    """A row of servers."""

    party: rm.Party
    left_at: int | None = None


@attrs.define
class Model:
    """All of it. `names`: the receipts' ids, which are hashes that are not computed here."""

    attempts: int
    grace_ms: int
    now: int = 0
    fence: int = 0
    passed: int = -1
    opened: bool = False
    updates: dict[int, UpdateOf] = attrs.field(factory=dict)
    deliveries: dict[str, DeliveryOf] = attrs.field(factory=dict)
    receipts: dict[str, ReceiptOf] = attrs.field(factory=dict)
    servers: dict[str, ServerOf] = attrs.field(factory=dict)
    dead: set[str] = attrs.field(factory=set)

    def does(self, operation: Callable[[Model], Answer]) -> tuple[Model, Answer]:
        """The model after an operation, and the answer; a refusal leaves it as it was."""
        after = copy.deepcopy(self)
        try:
            return after, operation(after)
        except No as no:
            return self, no.refused

    # -- updates ------------------------------------------------------------------------------------------------------

    def leads(self, epoch: int) -> None:
        """As every leader's operation asks."""
        if epoch != self.fence:
            raise No(Refused("admit", "absent", ("epoch_current",)))

    def raise_fence(self, epoch: int) -> int:
        self.fence = max(self.fence, epoch)
        self.leads(epoch)
        return self.fence

    def end_first_start(self, epoch: int) -> None:
        self.leads(epoch)
        self.opened = True

    def append(self, batch: list[tuple[int, str]], kind: str, epoch: int, skipped: bool) -> Answer:
        """Answers the new and the known ids, or the id of a conflict."""
        self.leads(epoch)
        if skipped and self.opened:
            raise No(Refused("skip", "absent", ()))
        new: list[int] = []
        known: list[int] = []
        for update, raw in batch:
            row = self.updates.get(update)
            if row is not None and row.phase in LIVE and row.raw != raw:
                return ("conflict", update)
            (known if update <= self.passed else new).append(update)
        for update, raw in batch:
            if update in new:
                phase = "skipped" if skipped else "journaled"
                self.updates[update] = UpdateOf(phase, fm.Update(update, kind), "" if skipped else raw)
                self.passed = update
        return (tuple(new), tuple(known), self.passed)

    def tell_update(self, update: int, message: fm.Happening) -> Step[fm.Update, fm.Output]:
        """One message."""
        row = self.updates.get(update)
        if row is None:
            raise No(Refused(message.event, "absent", ()))
        taken: Step[fm.Update, fm.Output] | Refused = step(FORWARDING, row.phase, row.data, message)
        if isinstance(taken, Refused):
            raise No(taken)
        row.phase, row.data = taken.phase, taken.data
        row.next_at = next((self.now + o.delay_ms for o in taken.outputs if isinstance(o, fm.RetryIn)), None)
        if row.phase not in LIVE:
            row.raw = ""
        return taken

    def attempt(self, update: int, message: fm.Happening) -> Step[fm.Update, fm.Output]:
        """One that ends the waiting."""
        row = self.updates.get(update)
        if row is not None and row.phase == "waiting":
            self.tell_update(update, fm.Retry())
        return self.tell_update(update, message)

    def keep(self, update: int, epoch: int, binding: str, name: Callable[[str], str]) -> Answer:
        known = self.updates.get(update)
        raw = "" if known is None else known.raw
        taken = self.attempt(update, fm.Keep(epoch, self.fence, binding))
        (output,) = taken.outputs
        assert isinstance(output, fm.Deliver)
        delivery, kind = output.delivery, taken.data.kind
        return self.admit(delivery, kind, binding, update, raw, binding, name, row="live", bound=binding)

    def admitted(self, update: int) -> bool:
        """Whether the binding that it is bound to has it."""
        row = self.updates.get(update)
        if row is None or row.data.binding is None:
            return False
        return delivery_id(row.data.kind, row.data.binding, update) in self.deliveries

    # -- deliveries ---------------------------------------------------------------------------------------------------

    def admit(
        self,
        delivery: str,
        kind: str,
        binding: str,
        update: int,
        raw: str,
        mine: str,
        name: Callable[[str], str],
        *,
        row: dm.Row | None = None,
        bound: str | None = None,
    ) -> Answer:
        """Answers the receipt, and whether it was there."""
        source = self.updates.get(update)
        if row is None and source is not None:
            row, bound = ("live" if source.phase in LIVE else "over"), source.data.binding
        known = self.deliveries.get(delivery)
        digest = body_digest(raw, kind)
        message = dm.Admit(delivery, kind, binding, update, digest, row or "none", bound, update <= self.passed, True)
        phase = "absent" if known is None else known.phase
        taken = step(DELIVERY, phase, Delivery(mine, "" if known is None else known.digest), message)
        if isinstance(taken, Refused):
            raise No(taken)
        if known is not None:
            return (known.receipt, True)
        receipt = name(delivery)
        self.deliveries[delivery] = DeliveryOf("journaled", mine, digest, receipt, update)
        self.receipts[receipt] = ReceiptOf("pending", rm.Receipt(self.attempts), mine, update)
        return (receipt, False)

    # -- receipts -----------------------------------------------------------------------------------------------------

    def tell_receipt(self, receipt: str, message: rm.Happening, not_before: int | None = None) -> rm.Output:
        """One message; what is settled settles its deliveries."""
        row = self.receipts.get(receipt)
        if row is None:
            raise No(Refused(message.event, "absent", ()))
        taken: Step[rm.Receipt, rm.Output] | Refused = step(RECEIPT, row.phase, row.data, message)
        if isinstance(taken, Refused):
            raise No(taken)
        row.phase, row.data = taken.phase, taken.data
        row.not_before = row.not_before if not_before is None else not_before
        for delivery in self.deliveries.values():
            if delivery.receipt == receipt and row.phase in ("done", "discarded"):
                delivery.phase = "settled" if row.phase == "done" else "discarded"
        (output,) = taken.outputs
        return output

    def right(self, receipt: str, by: rm.Party, epoch: int | None) -> rm.Right:
        """By which right `by` would take it."""
        row = self.receipts.get(receipt)
        server = None if row is None else self.servers.get(row.binding)
        if server is None:
            return "none"
        if server.left_at is None:
            return "serves" if (server.party.instance, server.party.process) == (by.instance, by.process) else "none"
        over = self.now - server.left_at >= self.grace_ms
        return "left" if over and epoch is not None and epoch == self.fence else "none"

    def recover(self, receipt: str, expected: str) -> rm.Output:
        row = self.receipts.get(receipt)
        owner = None if row is None else row.data.owner
        evidence: rm.Evidence = "unknown" if owner is None else "dead" if owner.process in self.dead else "alive"
        return self.tell_receipt(receipt, rm.Recover(expected, evidence))

    def recover_all(self) -> int:
        """How many."""
        owned = [(name, row.data.owner) for name, row in sorted(self.receipts.items()) if row.data.owner is not None]
        gone = [(name, owner) for name, owner in owned if owner.process in self.dead]
        for name, owner in gone:
            self.tell_receipt(name, rm.Recover(owner.acquisition, "dead"))
        return len(gone)

    def reclaim(self, by: rm.Party) -> int:
        """How many."""
        owned = [(name, row.data.owner) for name, row in sorted(self.receipts.items()) if row.data.owner is not None]
        past = [name for name, owner in owned if owner.process == by.process and owner.instance != by.instance]
        for name in past:
            self.tell_receipt(name, rm.Reclaim(by.process, by.instance))
        return len(past)

    def take_some(self, by: rm.Party, limit: int, minted: Callable[[int], str]) -> tuple[str, ...]:
        """Which are queued for `by` then; `minted`: the acquisitions, in order."""
        who = (by.instance, by.process)
        mine, reach = [], []
        for name, row in self.receipts.items():
            owner, fallen, server = row.data.owner, row.data.fallen, self.servers.get(row.binding)
            if row.phase == "queued" and owner is not None and (owner.instance, owner.process) == who:
                mine.append((row.update, name))
            serves = server is not None and server.left_at is None
            serves = serves and (server.party.instance, server.party.process) == who  # type: ignore[union-attr]
            named = fallen is not None and (fallen.instance, fallen.process) == who
            if row.phase == "pending" and row.not_before <= self.now and (serves or named):
                reach.append((row.update, name))
        for count, (update, name) in enumerate(sorted(reach)[: max(limit - len(mine), 0)]):
            self.tell_receipt(name, rm.Take(by, minted(count), self.right(name, by, None)))
            mine.append((update, name))
        return tuple(name for _, name in sorted(mine)[:limit])

    # -- servers ------------------------------------------------------------------------------------------------------

    def serve(self, binding: str, by: rm.Party, under: int | None, since: bool) -> Answer:
        """Answers who is in the way. `since`: `by` was registered after whoever stands there."""
        if under is not None and under < self.fence:
            self.leads(under)
        row = self.servers.get(binding)
        if row is None or row.left_at is not None or row.party.process in {*self.dead, by.process} or since:
            if row is None or row.left_at is not None or row.party != by:
                self.servers[binding] = ServerOf(by)
            return None
        return row.party

    def serve_leading(self, binding: str, by: rm.Party, epoch: int, adopted: str) -> None:
        self.leads(epoch)
        self.servers[binding] = ServerOf(by)
        self.servers.setdefault(adopted, ServerOf(by, self.now))

    def unserve(self, binding: str, by: rm.Party) -> bool:
        row = self.servers.get(binding)
        if row is None or row.left_at is not None or row.party != by:
            return False
        row.left_at = self.now
        return True

    def vacancies(self) -> tuple[str, ...]:
        found = []
        for binding, row in sorted(self.servers.items()):
            work = any(r.phase == "pending" and r.binding == binding for r in self.receipts.values())
            if row.left_at is None:
                row.left_at = self.now if row.party.process in self.dead else None
            elif work and self.now - row.left_at >= self.grace_ms:
                found.append(binding)
        return tuple(found)
