"""The journal of one profile, open in one thread: every operation is one transaction (bus.md d; DESIGN 10).

    journal = Journal.open(real_ports(), agent_directory(DIR), "default", bot=identity_of_token(TOKEN))
    journal.raise_fence(epoch, me)                       # before anything is read, polled or published
    journal.append([Incoming(7, text)], epoch, me)       # before the offset is confirmed
    ...
    taken = journal.take(receipt_id, me)                 # Taken, Same, or Refused
    journal.start(receipt_id, taken.holder)              # before the effect
    journal.complete(receipt_id, taken.holder)

What comes back is durable. A `Refused` is an ordinary answer: nothing was changed, and why stands in the decisions. A
`JournalError` is none: see its class. Every operation may be repeated, also after `OutcomeUnknown`: what was done is
answered and not done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TypeVar

from tenure.adapters.files.directory import AgentDirectory, require_directory, require_key
from tenure.adapters.journal import deliveries, looking, moves, ownership, receipts, servers, updates
from tenure.adapters.journal.backup import back_up
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.database import Databases
from tenure.adapters.journal.decisions import UNRECORDED, Decision, record_refusal
from tenure.adapters.journal.deliveries import Admitted, Arrival
from tenure.adapters.journal.errors import JournalError
from tenure.adapters.journal.identity import BotIdentity
from tenure.adapters.journal.liveness import Liveness, ProcessLiveness
from tenure.adapters.journal.looking import PAGE, Item, Listing
from tenure.adapters.journal.moves import Evidence, Move
from tenure.adapters.journal.opening import open_store
from tenure.adapters.journal.ownership import About
from tenure.adapters.journal.receipts import Recovered
from tenure.adapters.journal.rows import DeliveryRow, ReceiptRow, ServerRow, UpdateRow
from tenure.adapters.journal.settling import deliveries_of
from tenure.adapters.journal.sqlite import SqliteDatabases
from tenure.adapters.journal.transaction import Declined, Meta, Store, Transaction, Undone
from tenure.adapters.journal.updates import Appended, Conflict, Incoming, Kept, NoRoom
from tenure.adapters.ports import Files, Identities, Ports
from tenure.machines.admission_identity import Queue
from tenure.machines.chart import Refused
from tenure.machines.forwarding_messages import Failure, RetryIn, Send
from tenure.machines.lease import DEFAULT_KEY
from tenure.machines.receipt_messages import Holder, Output, Party

T = TypeVar("T")


class Journal:
    """One file, open. Used by the thread that opened it; `tenure.adapters.journal.threaded` is for asyncio.

    `by` and `person` are who asks: an instance, or a person; both stand in the decisions.
    """

    def __init__(self, store: Store, files: Files, identities: Identities, key: str) -> None:
        self._store = store
        self._files = files
        self._identities = identities
        self._key = key

    @classmethod
    def open(
        cls,
        ports: Ports,
        directory: AgentDirectory,
        key: str = DEFAULT_KEY,
        *,
        bot: BotIdentity | None = None,
        create: bool = True,
        limits: Limits | None = None,
        liveness: Liveness | None = None,
        databases: Databases | None = None,
    ) -> Journal:
        """The journal of profile `key`. `bot`: whose work it is to be; None: whoever's, for looking at it and for what
        a person does. `create`: it is made where there is none.

        Raises `JournalError`; then nothing has been changed.
        """
        require_directory(directory)
        require_key(key)
        store = open_store(
            ports.files,
            SqliteDatabases() if databases is None else databases,
            ports.clock,
            ProcessLiveness(ports.processes) if liveness is None else liveness,
            journal_path(directory, key),
            limits=Limits() if limits is None else limits,
            bot=bot,
            create=create,
        )
        return cls(store, ports.files, ports.identities, key)

    @property
    def path(self) -> str:
        """The file."""
        return self._store.path

    def close(self) -> None:
        """Give the file up."""
        self._store.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # -- the file as a whole ------------------------------------------------------------------------------------------

    def state(self) -> Meta:
        """The fence, the highest update id that was passed, whether the first start is over, what is unsettled."""
        return self._store.read(lambda t: t.meta)

    def backup(self, target: str) -> None:
        """Copy everything, as of this moment, to an absolute path where nothing stands, while others go on. Raises
        `TenureError`; then nothing is there."""
        back_up(self._store, self._files, self._identities, target)

    def raise_fence(self, epoch: int, by: str) -> int | Refused:
        """Who has won `epoch` raises the fence to it, before it reads, polls or publishes anything. The fence."""
        return self._write(lambda t: updates.raise_fence(t, epoch, by))

    def end_first_start(self, epoch: int, by: str) -> Refused | None:
        """All that was there before is journaled as skipped; what comes from now on is work."""
        return self._write(lambda t: updates.end_first_start(t, epoch, by))

    # -- updates, at the leader ---------------------------------------------------------------------------------------

    def append(
        self, batch: Sequence[Incoming], epoch: int, by: str, *, skipped: bool = False
    ) -> Appended | Conflict | NoRoom | Refused:
        """What a poll has answered, all of it or nothing, before its offset is confirmed. `skipped`: as what was there
        before the first start, which is never executed, and is refused when that is over."""
        answer = self._undoable(lambda t: updates.append(t, batch, epoch, by, skipped))
        assert isinstance(answer, Appended | Conflict | NoRoom | Refused)
        return answer

    def forward(
        self, update: int, epoch: int, binding: str, by: str, *, kind: str | None = None, about: About | None = None
    ) -> Send | Refused:
        """An attempt begins to bring it to `binding`, in an envelope of that kind (None: as it was appended). If it
        waits, it does not any longer. `about`: what is the binding's from now on."""

        def work(transaction: Transaction) -> Send:
            answer = updates.forward(transaction, update, epoch, binding, by, kind)
            ownership.remember(transaction, about or About(), binding)
            return answer

        return self._write(work)

    def keep(
        self,
        update: int,
        epoch: int,
        binding: str,
        by: str,
        *,
        kind: str | None = None,
        queue: Queue = "prompt",
        payload: str = "",
        about: About | None = None,
    ) -> Kept | Refused:
        """It is for the leader's own `binding`: delivered and admitted in one transaction. Refused as a whole if the
        delivery is. `about`: what is the binding's from now on."""

        def work(transaction: Transaction) -> Kept:
            answer = updates.keep(transaction, update, epoch, binding, by, self._key, queue, payload, kind)
            ownership.remember(transaction, about or About(), binding)
            return answer

        return self._write(work)

    def unserved(self, update: int, epoch: int, by: str) -> RetryIn | Refused:
        """Nobody is registered for whom it is for: it waits (L21)."""
        return self._write(lambda t: updates.unserved(t, update, epoch, by))

    def acknowledged(
        self, update: int, epoch: int, ok: bool, delivery: str | None, source: int | None, by: str
    ) -> RetryIn | Refused | None:
        """The attempt was answered, with the receipt `delivery` and `source` if it has one. None: it is delivered."""
        return self._write(lambda t: updates.acknowledged(t, update, epoch, ok, delivery, source, by))

    def failed(self, update: int, epoch: int, why: Failure, by: str) -> RetryIn | Refused:
        """The attempt was not answered, or by something that is no answer."""
        return self._write(lambda t: updates.failed(t, update, epoch, why, by))

    def retry_update(self, update: int, by: str) -> Refused | None:
        """It does not wait any longer: its time has come, or a person wants it now."""
        return self._write(lambda t: updates.retry(t, update, by))

    def retry_due(self, by: str) -> tuple[int, ...]:
        """Whatever's time has come does not wait any longer: their ids, at most 1,000 at once."""
        return self._store.write(lambda t: updates.retry_due(t, by))

    def resume(self, epoch: int, by: str, besides: frozenset[int] = frozenset()) -> tuple[int, ...] | Refused:
        """What was being sent, by whoever led before or in an attempt that was given up, is to be sent again; besides
        those that are on their way."""
        return self._write(lambda t: updates.resume(t, epoch, by, besides))

    def release_update(self, update: int, by: str, *, gone: bool) -> Refused | None:
        """It may go elsewhere than where it is bound. `gone`: nobody will serve that binding again, by evidence, or
        since a person says so."""
        return self._write(lambda t: updates.release(t, update, gone, by))

    def discard_update(self, update: int, person: str) -> Refused | None:
        """A person does not want it executed; nobody has admitted it yet."""
        return self._write(lambda t: updates.discard(t, update, person))

    def remember(self, about: About, binding: str) -> None:
        """A thread, or a message that a binding has written, is its own from now on."""
        self._store.write(lambda t: ownership.remember(t, about, binding))

    def remembered(self, about: About) -> str | None:
        """Whose the message is, or else the thread was, as far as anybody remembers; no authority."""
        return self._store.read(lambda t: ownership.remembered(t, about))

    # -- deliveries, at an instance -----------------------------------------------------------------------------------

    def admit(
        self, arrival: Arrival, mine: str, by: str, *, queue: Queue = "prompt", payload: str = ""
    ) -> Admitted | Refused:
        """The instance `by`, which serves the binding `mine`, admits what a leader has sent, with the right to execute
        it. The same again is answered with the same receipt, also when it was executed long ago (I15, I16)."""
        return self._write(lambda t: deliveries.admit(t, arrival, mine, by, self._key, queue, payload))

    def serve(self, binding: str, by: Party) -> None:
        """`by` serves the binding from now on: it is registered, or leads."""
        self._store.write(lambda t: servers.serve(t, binding, by))

    def unserve(self, binding: str, by: Party) -> bool:
        """`by` serves it no longer; whether it did."""
        return self._store.write(lambda t: servers.unserve(t, binding, by))

    def vacancies(self) -> tuple[str, ...]:
        """The bindings whose last server is proven dead, and that nobody has served for the grace. The grace begins
        when a call of this finds the death."""
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
        """What persons want moved of what this process owns, and nobody has answered."""
        return self._store.read(lambda t: moves.moves_for(t, process))

    def move_of(self, receipt_id: str) -> Move | None:
        """Where a person wanted it last, and what has come of it."""
        return self._store.read(lambda t: moves.move_of(t, receipt_id))

    def answer_move(self, receipt_id: str, outcome: str) -> bool:
        """What has come of it; whether anybody still asked."""
        return self._store.write(lambda t: moves.answer_move(t, receipt_id, outcome))

    def add_evidence(self, kind: str, subject: str, detail: str) -> None:
        """Insert what must not be forgotten, whoever leads by now: no fence is asked."""
        self._store.write(lambda t: moves.add_evidence(t, kind, subject, detail))

    def evidence(self, kind: str, subject: str | None = None) -> tuple[Evidence, ...]:
        """All of a kind, in the order in which it was inserted."""
        return self._store.read(lambda t: moves.evidence_of(t, kind, subject))

    # -- looking ------------------------------------------------------------------------------------------------------

    def receipt(self, receipt_id: str) -> ReceiptRow | None:
        """A receipt's row; None where there is none."""
        return self._store.read(lambda t: receipts.find(t, receipt_id))

    def update(self, update: int) -> UpdateRow | None:
        """An update's row; None where there is none."""
        return self._store.read(lambda t: deliveries.find_update(t, update))

    def deliveries_of(self, receipt_id: str) -> tuple[DeliveryRow, ...]:
        """What a receipt gives the right to execute, ascending by update."""
        return self._store.read(lambda t: deliveries_of(t, receipt_id))

    def pending_work(self, binding: str, limit: int = PAGE) -> tuple[ReceiptRow, ...]:
        """What may be taken now of what is for a binding, the oldest updates first."""
        return self._store.read(lambda t: looking.pending_work(t, binding, limit))

    def owned_by(self, process: str) -> tuple[ReceiptRow, ...]:
        """What a process owns, queued and started, whichever of its activations."""
        return self._store.read(lambda t: looking.owned_by(t, process))

    def due_in(self, by: Party) -> int | None:
        """In how many ms `by` may take a receipt that it may not take yet; None: there is none."""
        return self._store.read(lambda t: _until(t, looking.next_due_ms(t, by)))

    def outgoing(self, after: int, limit: int, *, all_of_them: bool = False) -> tuple[UpdateRow, ...]:
        """Updates above `after` that are to be brought to somebody now, the oldest first; with `all_of_them` also those
        whose time has not come."""
        return self._store.read(lambda t: looking.outgoing(t, after, limit, all_of_them))

    def unbrought(self, after: int, limit: int, *, unserved: bool) -> tuple[UpdateRow, ...]:
        """Updates above `after` that are to be brought to somebody and are not on their way, whether their time has
        come or not, the oldest first; those that nobody is registered for only with `unserved`."""
        return self._store.read(lambda t: looking.unbrought(t, after, limit, unserved))

    def retry_in(self) -> int | None:
        """In how many ms the time of the next waiting update comes that has not come; None: there is none."""
        return self._store.read(lambda t: _until(t, looking.next_retry_ms(t)))

    def servers(self) -> tuple[ServerRow, ...]:
        """Who serves which binding, or did last."""
        return self._store.read(servers.servers)

    def listing(self, limit: int = PAGE) -> Listing:
        """What is unsettled, as of one moment."""
        return self._store.read(lambda t: looking.listing(t, limit))

    def stuck(self, limit: int = PAGE) -> tuple[ReceiptRow, ...]:
        """What waits for a person."""
        return self._store.read(lambda t: looking.stuck(t, limit))

    def item(self, name: str) -> Item:
        """All that is known of an update, delivery or receipt id."""
        return self._store.read(lambda t: looking.item(t, name))

    def life(self, name: str) -> tuple[Decision, ...]:
        """All that was decided about such an id and what belongs to it, in order."""
        return self._store.read(lambda t: looking.life(t, name))

    # -- inside -------------------------------------------------------------------------------------------------------

    def _write(self, work: Callable[[Transaction], T]) -> T | Refused:
        """One operation. A refusal is an answer, and is told in a transaction of its own."""
        try:
            return self._store.write(work)
        except Declined as declined:
            self._tell(declined)
            return declined.refused

    def _undoable(self, work: Callable[[Transaction], object]) -> object:
        try:
            return self._write(work)
        except Undone as undone:
            return undone.answer

    def _again(self, work: Callable[[Transaction], tuple[T, ...]]) -> tuple[T, ...]:
        """As long as it finds so much that there may be more."""
        found: list[T] = []
        while True:
            some = self._store.write(work)
            found += some
            if len(some) < receipts.AT_ONCE:
                return tuple(found)

    def _tell(self, declined: Declined) -> None:
        # A refusal stays one, whether it can be written down or not.
        refused = declined.refused
        if not declined.subject or UNRECORDED & set(refused.guards):
            return
        with suppress(JournalError):
            self._store.write(lambda t: record_refusal(t, declined))


def journal_path(directory: AgentDirectory, key: str) -> str:
    """`DIR/tmp/telegram/journal.db`, and `journal.<profile>.db` (DESIGN 10)."""
    return f"{directory.state}/journal.db" if key == DEFAULT_KEY else f"{directory.state}/journal.{key}.db"


def _queued_for(row: ReceiptRow, by: Party) -> bool:
    owner = row.data.owner
    return row.phase == "queued" and owner is not None and owner.instance == by.instance


def _until(transaction: Transaction, at: int | None) -> int | None:
    return None if at is None else max(at - transaction.now_ms, 0)
