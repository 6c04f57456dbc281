"""Looking at the journal: each look sees one state, and changes nothing."""

from __future__ import annotations

from tenure.adapters.journal import deliveries, looking, receipts, servers
from tenure.adapters.journal.decisions import Decision
from tenure.adapters.journal.looking import PAGE, Item, Listing
from tenure.adapters.journal.operating import Operating
from tenure.adapters.journal.rows import DeliveryRow, ReceiptRow, ServerRow, UpdateRow
from tenure.adapters.journal.settling import deliveries_of
from tenure.adapters.journal.transaction import Transaction
from tenure.machines.receipt_messages import Party


class LookedAt(Operating):
    """What workers ask for before they act, and what people want to see."""

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

    def abandoned(self) -> tuple[str, ...]:
        """The bindings that nobody will ever serve again, by proof of death."""
        return self._store.read(servers.abandoned)

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


def _until(transaction: Transaction, at: int | None) -> int | None:
    return None if at is None else max(at - transaction.now_ms, 0)
