"""The life of an update, delivery or receipt over all processes: what was decided, by whom, and by which guard."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

import attrs

from tenure.adapters.journal import looking
from tenure.adapters.journal.decisions import Decision
from tenure.adapters.journal.looking import Item
from tenure.adapters.journal.rows import ReceiptRow, ServerRow
from tenure.adapters.journal.servers import servers
from tenure.adapters.journal.transaction import Transaction
from tenure.machines.admission_identity import DELIVERY_PREFIX
from tenure.machines.chart import Table
from tenure.machines.delivery import DELIVERY
from tenure.machines.forwarding import FORWARDING
from tenure.machines.receipt import RECEIPT
from tenure.machines.receipt_messages import Receipt

_REFUSED: Final = "refused in "
_PERSON: Final = re.compile(r".*\(uid [0-9]+\)")
_INSTANCE: Final = re.compile(r"([1-9][0-9]{0,9}):[0-9]+")
_SENTENCE: Final = re.compile(r"(.+?[.?!])(?=\s+[A-Z(]|$)")


@attrs.frozen
class Reason:
    """A guard of a decision: its law, and what it says. Of a refusal, one that did not let it pass."""

    guard: str
    law: str
    says: str


@attrs.frozen
class Told:
    """One decision as it is told. `missing`: so many decisions about the same subject came before it, and are not kept.
    `pid`: of the instance that decided, where its name says it."""

    decision: Decision
    refused: bool
    person: bool
    pid: int | None
    reasons: tuple[Reason, ...]
    missing: int = 0


@attrs.frozen
class Story:
    """Everything about one id. `untold`: subjects of which no decision is kept at all, though something was decided
    about them. `untaken`: receipts about which nothing has been since they were admitted. `now_ms`: the moment of this
    look, wall clock."""

    name: str
    now_ms: int
    item: Item
    servers: Mapping[str, ServerRow]
    told: tuple[Told, ...]
    untold: tuple[str, ...]
    untaken: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """How many decisions are known to be missing."""
        return sum(told.missing for told in self.told)

    @property
    def processes(self) -> frozenset[str]:
        """Every process that a row names."""
        found = [row.data.owner.process for row in self.item.receipts if row.data.owner is not None]
        return frozenset([*found, *(row.party.process for row in self.servers.values())])


def story(name: str) -> Callable[[Transaction], Story]:
    """The story of a whole id (`journal_names.resolve`), as of one moment."""

    def work(transaction: Transaction) -> Story:
        item = looking.item(transaction, name)
        decisions = looking.life(transaction, name)
        silent = _subjects(item) - {decision.subject for decision in decisions}
        untaken = {row.receipt_id for row in item.receipts if row.receipt_id in silent and _untaken(row, decisions)}
        return Story(
            name,
            transaction.now_ms,
            item,
            {row.binding: row for row in servers(transaction)},
            tuple(_told(decisions)),
            tuple(sorted(silent - untaken)),
            tuple(sorted(untaken)),
        )

    return work


def _subjects(item: Item) -> set[str]:
    found = {row.delivery_id for row in item.deliveries} | {row.receipt_id for row in item.receipts}
    return found | (set() if item.update is None else {str(item.update.data.update)})


def _untaken(row: ReceiptRow, decisions: Iterable[Decision]) -> bool:
    """Whether it is as it was admitted. It was by the first decision about its delivery; if that is kept, nothing that
    was decided since is missing."""
    if (row.phase, row.data) != (RECEIPT.initial, Receipt(row.data.limit)):
        return False
    return any(told.subject.startswith(DELIVERY_PREFIX) and told.nth == 1 for told in decisions)


def _told(decisions: Iterable[Decision]) -> Iterable[Told]:
    last: dict[str, int] = {}
    for decision in decisions:
        # A receipt and a delivery begin with the row that admits them; the first decision of each is kept longest.
        missing = decision.nth - last.get(decision.subject, 0) - 1
        last[decision.subject] = decision.nth
        yield Told(
            decision,
            decision.detail.startswith(_REFUSED),
            decision.party is not None and _PERSON.fullmatch(decision.party) is not None,
            pid_of(decision.party),
            reasons(decision),
            max(missing, 0),
        )


def pid_of(instance: str | None) -> int | None:
    """The process that an instance's name says: it is `<pid>:<ms>`."""
    found = None if instance is None else _INSTANCE.fullmatch(instance)
    return None if found is None else int(found[1])


# -- guards -----------------------------------------------------------------------------------------------------------


def reasons(decision: Decision) -> tuple[Reason, ...]:
    """The guards of a decision, each with its law and the first sentence of what it says of itself. A guard that this
    version does not know says nothing."""
    known = meanings(decision.subject)
    names = [name for name in decision.guard.split(", ") if name]
    laws = decision.law.split(", ")
    found = []
    for name in names:
        law, says = known.get(name, (laws[0] if len(laws) == 1 else "", ""))
        found.append(Reason(name, law, says))
    return tuple(found)


def meanings(subject: str) -> Mapping[str, tuple[str, str]]:
    """By guard of the machine that a subject's row belongs to: law and meaning."""
    if subject.isdecimal():
        return _meanings("forwarding")
    return _meanings("delivery" if subject.startswith(DELIVERY_PREFIX) else "receipt")


@cache
def _meanings(machine: str) -> Mapping[str, tuple[str, str]]:
    tables: Mapping[str, Table[Any, Any, Any]] = {"forwarding": FORWARDING, "delivery": DELIVERY, "receipt": RECEIPT}
    guards = {guard.name: guard for row in tables[machine] for guard in row.guards}
    return {name: (guard.mark.law.value, _says(guard.holds.__doc__ or "")) for name, guard in guards.items()}


def _says(doc: str) -> str:
    """The first sentence, without the law, which is told beside it."""
    words = " ".join(doc.split()).partition(": ")[2]
    found = _SENTENCE.match(words)
    return found[1] if found is not None else words
