"""The journal as a leader uses it: the fence, what was polled, and where that goes (bus.md c, annex D)."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.adapters.journal import forwards, ownership, servers, updates
from tenure.adapters.journal.forwards import Kept
from tenure.adapters.journal.operating import Operating
from tenure.adapters.journal.ownership import About
from tenure.adapters.journal.transaction import Transaction
from tenure.adapters.journal.updates import Appended, Conflict, Incoming, NoRoom
from tenure.machines.admission_identity import Queue
from tenure.machines.chart import Refused
from tenure.machines.forwarding_messages import Failure, RetryIn, Send
from tenure.machines.receipt_messages import Party


class AtLeader(Operating):
    """Whatever takes an epoch compares it with the fence, inside its transaction."""

    def raise_fence(self, epoch: int, by: str) -> int | Refused:
        """Who has won `epoch` raises the fence to it, before it reads, polls or publishes anything. The fence."""
        return self._write(lambda t: updates.raise_fence(t, epoch, by))

    def end_first_start(self, epoch: int, by: str) -> Refused | None:
        """All that was there before is journaled as skipped; what comes from now on is work."""
        return self._write(lambda t: updates.end_first_start(t, epoch, by))

    def serve_leading(self, binding: str, by: Party, epoch: int, adopted: Sequence[str] = ()) -> Refused | None:
        """Who leads under `epoch` serves the leader's binding from now on, whoever stands there. `adopted`: bindings
        that it takes what is left of, where nobody has ever served them."""
        return self._write(lambda t: servers.serve_leading(t, binding, by, epoch, adopted))

    # -- updates, at the leader ---------------------------------------------------------------------------------------

    def append(
        self, batch: Sequence[Incoming], epoch: int, by: str, *, skipped: bool = False
    ) -> Appended | Conflict | NoRoom | Refused:
        """What a poll has answered, all of it or nothing, before its offset is confirmed. `skipped`: as what was there
        before the first start, which is never executed, and is refused when that is over."""
        answer = self._undoable(lambda t: updates.append(t, batch, epoch, by, skipped))
        assert isinstance(answer, Appended | Conflict | NoRoom | Refused)
        return answer

    def refuse_update(self, name: str, epoch: int, by: str, why: str) -> Refused:
        """What was polled under `name`, which is no id, is not appended: that is told."""
        answer = self._write(lambda t: updates.refuse(t, name, epoch, by, why))
        assert isinstance(answer, Refused)
        return answer

    def renumber(self, first: int, asked: int, epoch: int, by: str) -> int | Refused:
        """Telegram numbers anew, from `first` on at most: it was answered `asked` times in a row, though it was asked
        above that. What was passed, from now on."""
        return self._write(lambda t: updates.renumber(t, first, asked, epoch, by))

    def forward(
        self, update: int, epoch: int, binding: str, by: str, *, kind: str | None = None, about: About | None = None
    ) -> Send | Refused:
        """An attempt begins to bring it to `binding`, in an envelope of that kind (None: as it was appended). If it
        waits, it does not any longer. `about`: what is the binding's from now on."""

        def work(transaction: Transaction) -> Send:
            answer = forwards.forward(transaction, update, epoch, binding, by, kind)
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
            answer = forwards.keep(transaction, update, epoch, binding, by, self._key, queue, payload, kind)
            ownership.remember(transaction, about or About(), binding)
            return answer

        return self._write(work)

    def unserved(self, update: int, epoch: int, by: str) -> RetryIn | Refused:
        """Nobody is registered for whom it is for: it waits (L21)."""
        return self._write(lambda t: forwards.unserved(t, update, epoch, by))

    def acknowledged(
        self, update: int, epoch: int, ok: bool, delivery: str | None, source: int | None, by: str
    ) -> RetryIn | Refused | None:
        """The attempt was answered, with the receipt `delivery` and `source` if it has one. None: it is delivered."""
        return self._write(lambda t: forwards.acknowledged(t, update, epoch, ok, delivery, source, by))

    def failed(self, update: int, epoch: int, why: Failure, by: str) -> RetryIn | Refused:
        """The attempt was not answered, or by something that is no answer."""
        return self._write(lambda t: forwards.failed(t, update, epoch, why, by))

    def retry_update(self, update: int, by: str) -> Refused | None:
        """It does not wait any longer: its time has come, or a person wants it now."""
        return self._write(lambda t: forwards.retry(t, update, by))

    def retry_due(self, by: str) -> tuple[int, ...]:
        """Whatever's time has come does not wait any longer: their ids, at most 1,000 at once."""
        return self._store.write(lambda t: forwards.retry_due(t, by))

    def resume(self, epoch: int, by: str, besides: frozenset[int] = frozenset()) -> tuple[int, ...] | Refused:
        """What was being sent, by whoever led before or in an attempt that was given up, is to be sent again; besides
        those that are on their way."""
        return self._write(lambda t: forwards.resume(t, epoch, by, besides))

    def release_update(self, update: int, by: str, *, gone: bool) -> Refused | None:
        """It may go elsewhere than where it is bound. `gone`: nobody will serve that binding again, by evidence, or
        since a person says so."""
        return self._write(lambda t: forwards.release(t, update, gone, by))

    def discard_update(self, update: int, person: str) -> Refused | None:
        """A person does not want it executed; nobody has admitted it yet."""
        return self._write(lambda t: forwards.discard(t, update, person))

    def remember(self, about: About, binding: str, expected: Party | None = None) -> None:
        """A thread, or a message that a binding has written, is its own from now on. `expected`: who is about to serve
        the binding, where nobody ever has."""

        def work(transaction: Transaction) -> None:
            ownership.remember(transaction, about, binding)
            if expected is not None:
                servers.expect(transaction, binding, expected)

        self._store.write(work)

    def remembered(self, about: About) -> str | None:
        """Whose the message is, or else the thread was, as far as anybody remembers; no authority."""
        return self._store.read(lambda t: ownership.remembered(t, about))
