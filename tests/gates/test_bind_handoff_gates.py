"""Drivers, or a journal, that do otherwise turn the stage `bind` of `QueueHandoff` red, with a story that ends where
its twin cannot go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure.adapters.errors import TenureError, in_words
from tenure.adapters.handoff import destinations, donor, recipient
from tenure.adapters.handoff.journal import JournalHandoffs
from tenure.adapters.journal import receipts
from tenure.adapters.journal.transaction import Transaction
from tenure.adapters.verify.bind.explore import explore
from tenure.adapters.verify.bind.handoff import BOUND
from tenure.adapters.verify.bind.situations import Limits
from tenure.adapters.work.items import Held, Items
from tenure.machines import donor_messages, recipient_messages
from tenure.machines.donor import DONOR
from tenure.machines.receipt import RECEIPT
from tenure.machines.receipt_messages import Holder
from tenure.machines.recipient import RECIPIENT
from tenure.machines.relay import RELAY

Patch = pytest.MonkeyPatch
LIMITS = Limits(100_000, 60)
Copy = Any
"""The donor's copy of an item, which is nobody else's."""


def _without(module: object, name: str, guard: str) -> Callable[[Patch], None]:
    """The driver's, or the journal's, machine has not this guard or permit; the twin's has."""
    machines = {"DONOR": DONOR, "RECIPIENT": RECIPIENT, "RELAY": RELAY, "RECEIPT": RECEIPT}
    return lambda patch: patch.setattr(module, name, machines[name].without(guard))


def _instead(kind: type, answer: Callable[[], donor_messages.Happening]) -> Callable[[Patch], None]:
    """A donor does not ask the journal for that, and goes on as if it had."""

    def mutate(patch: Patch) -> None:
        original = donor._Copy._perform

        async def perform(self: Copy, output: donor_messages.Output) -> donor_messages.Happening:
            return answer() if isinstance(output, kind) else await original(self, output)

        patch.setattr(donor._Copy, "_perform", perform)

    return mutate


def _forgets_what_it_accepted(patch: Patch) -> None:
    """A recipient whose own check fails gives nothing back."""

    async def release(self: JournalHandoffs, receipt_id: str, by: Holder, why: str) -> None:
        return

    patch.setattr(JournalHandoffs, "release", release)


def _gives_back_what_it_executes(patch: Patch) -> None:
    """A recipient that cannot read the row gives it back, whether its worker has found it meanwhile or not."""

    async def published(
        self: recipient.Recipient, receipt: Any, holder: Holder
    ) -> tuple[recipient_messages.Happening, str]:
        try:
            await self._journal.look(receipt.receipt_id)
        except TenureError as error:
            return recipient_messages.CheckFailed(), in_words(error)
        return await original(self, receipt, holder)

    original = recipient.Recipient._published
    patch.setattr(recipient.Recipient, "_published", published)


def _confirms_before_it_accepts(patch: Patch) -> None:
    """A recipient says that it owns what its journal has refused."""

    async def accept(self: JournalHandoffs, receipt_id: str, me: Any, handoff: Any, of: Holder) -> Any:
        await original(self, receipt_id, me, handoff, of)
        holder = Holder(me.instance, me.process, me.session, str(of.acquisition), str(handoff))
        return receipts.Same(holder, None)

    original = JournalHandoffs.accept
    patch.setattr(JournalHandoffs, "accept", accept)


def _begins_what_is_offered(patch: Patch) -> None:
    """What is about to be offered is not set aside, and the journal does not mind."""

    def set_aside(self: Items, receipt_id: str) -> Held | None:
        return self._held.get(receipt_id)

    patch.setattr(Items, "set_aside", set_aside)
    _without(receipts, "RECEIPT", "offered_is_frozen")(patch)


def _decides_and_writes_later(patch: Patch) -> None:
    """The row is written in another transaction than that which has read it."""
    original = receipts._put

    def put(transaction: Transaction, *rest: Any) -> None:
        transaction._database.commit()
        transaction._database.begin()
        original(transaction, *rest)

    patch.setattr(receipts, "_put", put)


def _recovers_the_living(patch: Patch) -> None:
    """Who is not heard of is dead."""

    class Dead:
        def __getattr__(self, name: str) -> Callable[[str], str]:
            return lambda process: "dead"

    original = receipts.recover_all

    def recover_all(transaction: Transaction, by: Any) -> Any:
        transaction.liveness = Dead()  # type: ignore[assignment]
        return original(transaction, by)

    patch.setattr(receipts, "recover_all", recover_all)


MUTATIONS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "takes any answer": (_without(donor, "DONOR", "ack_is_exact"), "calls"),
    "does not look after a refused withdrawal": (_without(donor, "DONOR", "refused_cancel_looks"), "wire"),
    "keeps what is another's": (_without(donor, "DONOR", "row_is_mine"), "wire"),
    "sends before it has offered": (_instead(donor_messages.OfferInJournal, donor_messages.Offered), "moves"),
    "keeps without withdrawing": (_instead(donor_messages.CancelInJournal, donor_messages.Cancelled), "wire"),
    "forgets what it accepted": (_forgets_what_it_accepted, "calls"),
    "gives back what it executes": (_gives_back_what_it_executes, "looks"),
    "confirms before it accepts": (_confirms_before_it_accepts, "wire"),
    "takes what is offered to another registration": (_without(recipient, "RECIPIENT", "generation_is_mine"), "wire"),
    "does not answer again": (_without(recipient, "RECIPIENT", "live_answers_again"), "wire"),
    "relays for who is gone": (_without(destinations, "RELAY", "donor_is_live"), "wire"),
    "accepts any offer": (_without(receipts, "RECEIPT", "offer_is_that"), "wire, and back"),
    "begins what is offered": (_begins_what_is_offered, "moves"),
    "decides and writes later": (_decides_and_writes_later, "wire"),
    "recovers the living": (_recovers_the_living, "calls"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_process_that_does_otherwise_is_found(name: str, monkeypatch: Patch) -> None:
    """Each is a behaviour that `QueueHandoff` does not have."""
    mutate, config = MUTATIONS[name]
    mutate(monkeypatch)

    found = explore(BOUND[config].binding(), LIMITS)

    assert found.story, f"nothing was found in {found.situations} situations ({found.limit})"


@pytest.mark.parametrize("config", [name for name, bound in BOUND.items() if not bound.thorough])
def test_the_processes_as_they_are_are_green(config: str) -> None:
    """The same without a mutation, with as many situations as the stage asks for."""
    found = explore(BOUND[config].binding(), LIMITS)

    assert ((), "") == (found.story, found.limit)
    assert BOUND[config].least <= found.situations
