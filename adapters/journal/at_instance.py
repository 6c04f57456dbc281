"""The journal as an instance uses it, and a person: deliveries, receipts, and who serves what (bus.md c, d, e)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from tenure.adapters.journal import deliveries, looking, moves, receipts, servers
from tenure.adapters.journal.deliveries import Admitted, Arrival
from tenure.adapters.journal.moves import Evidence, Move
from tenure.adapters.journal.operating import Operating
from tenure.adapters.journal.receipts import Recovered
from tenure.adapters.journal.rows import ReceiptRow, ServerRow
from tenure.adapters.journal.transaction import Declined, Transaction
from tenure.machines.admission_identity import Queue
from tenure.machines.chart import Refused
from tenure.machines.receipt_messages import Holder, Output, Party


class AtInstance(Operating):
    """What is owned is settled by exact acquisition, whoever leads by now."""

    # -- deliveries, at an instance -----------------------------------------------------------------------------------

    def admit(
        self, arrival: Arrival, mine: str, by: str, *, queue: Queue = "prompt", payload: str = ""
    ) -> Admitted | Refused:
        """The instance `by`, which serves the binding `mine`, admits what a leader has sent, with the right to execute
        it. The same again is answered with the same receipt, also when it was executed long ago (I15, I16)."""
        return self._write(lambda t: deliveries.admit(t, arrival, mine, by, self._key, queue, payload))

    def serve(
        self, binding: str, by: Party, *, under: int | None = None, over: ServerRow | None = None
    ) -> ServerRow | Refused | None:
        """`by`, which is registered for the binding under the leader of epoch `under`, serves it from now on; else who
        stands in the way. `over`: who stood there, by a row that was read before that registration was confirmed
        last."""
        return self._write(lambda t: servers.serve(t, binding, by, under, over))

    def unserve(self, binding: str, by: Party) -> bool:
        """`by` serves it no longer; whether it did."""
        return bool(self.leave(by, (binding,)))

    def leave(self, by: Party, bindings: Sequence[str] | None = None) -> tuple[str, ...]:
        """`by` serves these no longer, where it did; without `bindings` it serves nothing. What it has left."""
        return self._store.write(lambda t: servers.leave(t, by, bindings))

    def vacancies(self) -> tuple[str, ...]:
        """The bindings with pending work that nobody has served for the grace, since their last server left or is
        proven dead. After a death the grace begins when a call of this finds it."""
        return self._store.write(servers.vacancies)

    # -- receipts -----------------------------------------------------------------------------------------------------

    def take(self, receipt_id: str, by: Party, *, epoch: int | None = None) -> Output | Refused:
        """`by` takes pending work, under a fresh acquisition; `epoch`: under which it leads."""
        minted = self._identities.uuid()
        return self._write(lambda t: receipts.take(t, receipt_id, by, minted, epoch))

    def take_some(self, by: Party, limit: int, *, epoch: int | None = None) -> tuple[ReceiptRow, ...]:
        """All that `by` may take now, so many at most and the oldest updates first, in one transaction; and what is
        queued for it already. A leader (`epoch`) takes also what nobody serves any more."""

        def work(transaction: Transaction) -> tuple[ReceiptRow, ...]:
            mine = [row for row in looking.owned_by(transaction, by.process) if _queued_for(row, by)]
            for row in looking.within_reach(transaction, by, max(limit - len(mine), 0), epoch):
                with suppress(Declined):  # nothing was written for it
                    receipts.take_row(transaction, row, by, self._identities.uuid(), epoch)
                    found = receipts.find(transaction, row.receipt_id)
                    assert found is not None
                    mine.append(found)
            return tuple(sorted(mine, key=lambda row: (row.first_update, row.receipt_id))[:limit])

        return self._store.write(work)

    def offer(self, receipt_id: str, by: Holder, handoff: str, recipient: Party) -> Output | Refused:
        """Its owner offers it; it is frozen until that is accepted or withdrawn, or its owner dies."""
        return self._write(lambda t: receipts.offer(t, receipt_id, by, handoff, recipient))

    def accept(self, receipt_id: str, recipient: Party, handoff: str, donor: Holder) -> Output | Refused:
        """The recipient accepts it, under a fresh acquisition."""
        minted = self._identities.uuid()
        return self._write(lambda t: receipts.accept(t, receipt_id, recipient, handoff, donor, minted))

    def cancel(self, receipt_id: str, by: Holder, handoff: str) -> Output | Refused:
        """Its owner withdraws the offer."""
        return self._write(lambda t: receipts.cancel(t, receipt_id, by, handoff))

    def start(self, receipt_id: str, by: Holder) -> Output | Refused:
        """Its owner is about to execute it: once this is durable, and not before."""
        return self._write(lambda t: receipts.start(t, receipt_id, by))

    def complete(self, receipt_id: str, by: Holder) -> Output | Refused:
        """Its owner has executed it."""
        return self._write(lambda t: receipts.complete(t, receipt_id, by))

    def fail(self, receipt_id: str, by: Holder, delay_ms: int, why: str = "") -> Output | Refused:
        """Its owner has tried, and certainly nothing has come of it. It is not tried again before `delay_ms` are over,
        and at the limit of attempts by a person only."""
        return self._write(lambda t: receipts.fail(t, receipt_id, by, delay_ms, why))

    def doubt(self, receipt_id: str, by: Holder, why: str = "") -> Output | Refused:
        """Its owner has begun it, and does not know what has come of it: interrupted. A person decides."""
        return self._write(lambda t: receipts.doubt(t, receipt_id, by, why))

    def release(self, receipt_id: str, by: Holder, why: str = "") -> Output | Refused:
        """Its owner gives it back unstarted."""
        return self._write(lambda t: receipts.release(t, receipt_id, by, why))

    def recover(self, receipt_id: str, expected: str, by: Party) -> Output | Refused:
        """The owner with the acquisition `expected` may be dead: if that is proven, the work is pending again, or
        interrupted."""
        return self._write(lambda t: receipts.recover(t, receipt_id, expected, by))

    def recover_all(self, by: Party) -> tuple[Recovered, ...]:
        """All work of owners that are proven dead, 500 receipts a transaction."""
        return self._again(lambda t: receipts.recover_all(t, by))

    def reclaim(self, by: Party) -> tuple[Recovered, ...]:
        """All work of earlier activations of this process: `by` is the one that has begun (L7)."""
        return self._again(lambda t: receipts.reclaim(t, by))

    def retry(self, receipt_id: str, person: str) -> Output | Refused:
        """A person wants it done again: what was interrupted, or has failed too often."""
        return self._write(lambda t: receipts.retry(t, receipt_id, person))

    def discard(self, receipt_id: str, person: str) -> Output | Refused:
        """A person does not want it done."""
        return self._write(lambda t: receipts.discard(t, receipt_id, person))

    # -- moves and evidence -------------------------------------------------------------------------------------------

    def ask_move(self, receipt_id: str, to: str) -> bool:
        """A person wants it at the instance `to`; False: there is no such receipt, or it is settled."""

        def work(transaction: Transaction) -> bool:
            row = receipts.find(transaction, receipt_id)
            if row is None or row.settled_at is not None:
                return False
            moves.ask_move(transaction, receipt_id, to)
            return True

        return self._store.write(work)

    def moves_for(self, process: str) -> tuple[Move, ...]:
        """Where persons wanted last what this process owns, and what has come of that."""
        return self._store.read(lambda t: moves.moves_for(t, process))

    def moves_to_take(self, by: Party) -> tuple[Move, ...]:
        """What persons want moved of what `by` may take, and nobody has taken; also of what waits for its time."""
        return self._store.read(lambda t: moves.moves_to_take(t, by))

    def move_of(self, receipt_id: str) -> Move | None:
        """Where a person wanted it last, and what has come of it."""
        return self._store.read(lambda t: moves.move_of(t, receipt_id))

    def answer_move(self, receipt_id: str, outcome: str, asked: Move | None = None) -> bool:
        """What has come of it; whether anybody still asked. `asked`: only that is answered, and nothing that a person
        has asked for since."""
        return self._store.write(lambda t: moves.answer_move(t, receipt_id, outcome, asked))

    def add_evidence(self, kind: str, subject: str, detail: str) -> None:
        """Insert what must not be forgotten, whoever leads by now: no fence is asked."""
        self._store.write(lambda t: moves.add_evidence(t, kind, subject, detail))

    def evidence(self, kind: str, subject: str | None = None) -> tuple[Evidence, ...]:
        """All of a kind, in the order in which it was inserted."""
        return self._store.read(lambda t: moves.evidence_of(t, kind, subject))


def _queued_for(row: ReceiptRow, by: Party) -> bool:
    owner = row.data.owner
    return row.phase == "queued" and owner is not None and owner.instance == by.instance
