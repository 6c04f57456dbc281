"""One journal file that is open, and how every operation on it goes: one transaction, a refusal as an answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

from tenure.adapters.journal import receipts
from tenure.adapters.journal.decisions import UNRECORDED, record_refusal
from tenure.adapters.journal.errors import JournalError
from tenure.adapters.journal.transaction import Declined, Store, Transaction, Undone
from tenure.adapters.ports import Files, Identities
from tenure.machines.chart import Refused

T = TypeVar("T")


class Operating:
    """The file, for the operations in the classes below."""

    def __init__(self, store: Store, files: Files, identities: Identities, key: str) -> None:
        self._store = store
        self._files = files
        self._identities = identities
        self._key = key

    @property
    def path(self) -> str:
        """The file."""
        return self._store.path

    def close(self) -> None:
        """Give the file up."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

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
