"""Drivers, or a journal, that do otherwise turn the stage `bind` of `DurableAdmission` red, with a story that ends
where its twin cannot go on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from tenure.adapters.bus.messages.envelopes import Ack, Forward
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.asking import NoAck
from tenure.adapters.journal import deliveries, forwards, receipts, servers, updates
from tenure.adapters.journal.at_leader import AtLeader
from tenure.adapters.journal.transaction import Transaction
from tenure.adapters.verify.bind import admission_desk
from tenure.adapters.verify.bind.admission import BOUND
from tenure.adapters.verify.bind.explore import explore
from tenure.adapters.verify.bind.situations import Limits
from tenure.adapters.work.forwarding import Forwarder
from tenure.adapters.work.intake import Intake
from tenure.adapters.work.items import Held, Item
from tenure.adapters.work.journaling import JournalOutbox, JournalReceipts, _json
from tenure.adapters.work.lanes import Lanes
from tenure.adapters.work.outbox import Outcome, Outgoing
from tenure.adapters.work.polling import Poller
from tenure.adapters.work.routing import Address, Whose
from tenure.machines import poll_loop
from tenure.machines.admission_identity import delivery_id
from tenure.machines.delivery import DELIVERY
from tenure.machines.forwarding import FORWARDING
from tenure.machines.forwarding_messages import Send
from tenure.machines.receipt_messages import Party, Recover

Patch = pytest.MonkeyPatch
LIMITS = Limits(100_000, 60)


def _forwarding_without(name: str) -> Callable[[Patch], None]:
    """The journal's machine of an update has not this guard; the twin's has."""

    def mutate(patch: Patch) -> None:
        for module in (updates, forwards, servers):
            patch.setattr(module, "FORWARDING", FORWARDING.without(name))

    return mutate


def _binds_to_another(patch: Patch) -> None:
    """An update goes to whoever has its thread now."""
    _forwarding_without("binding_sticks")(patch)

    async def whose(self: Forwarder, update: Outgoing, place: Address | None) -> Whose | None:
        assert place is not None
        assert place.target is not None
        return self._fleet().has(place.target)

    patch.setattr(Forwarder, "_whose", whose)


def _delivery_without(name: str) -> Callable[[Patch], None]:
    """The same of a delivery."""
    return lambda patch: patch.setattr(deliveries, "DELIVERY", DELIVERY.without(name))


def _torn(transaction: Transaction) -> None:
    transaction._database.commit()
    transaction._database.begin()


def _delivers_before_it_admits(patch: Patch) -> None:
    """The leader's own update is delivered in one transaction, and admitted in the next."""
    original = forwards.admit

    def admit(transaction: Transaction, *rest: Any, **more: Any) -> forwards.Admitted:
        _torn(transaction)
        return original(transaction, *rest, **more)

    patch.setattr(forwards, "admit", admit)


def _completes_in_two(patch: Patch) -> None:
    """A receipt is done, and its deliveries are settled later."""
    original = receipts._settle

    def settle(transaction: Transaction, *rest: Any) -> None:
        _torn(transaction)
        original(transaction, *rest)

    patch.setattr(receipts, "_settle", settle)


def _starts_after_the_handler(patch: Patch) -> None:
    """The handler is called, and then it is written down that it begins."""
    original = JournalReceipts.complete

    async def start(self: JournalReceipts, held: Held) -> Item | None:
        found = await self._journal.call(lambda j: j.deliveries_of(held.receipt_id))
        return Item(held.receipt_id, held.kind, tuple(_json(d.raw) for d in found), held.binding, "", 1)

    async def complete(self: JournalReceipts, held: Held) -> None:
        await self._journal.call(lambda j: j.start(held.receipt_id, held.holder))
        await original(self, held)

    patch.setattr(JournalReceipts, "start", start)
    patch.setattr(JournalReceipts, "complete", complete)


def _takes_any_answer(patch: Patch) -> None:
    """Whatever an instance says, the update is delivered."""

    async def settle(self: Lanes, update: Outgoing, ack: Ack | NoAck) -> Outcome:
        delivery = delivery_id("leader.forwardMessage", "B", update.update_id)
        return await self._outbox.acknowledged(update, True, delivery, update.update_id)

    patch.setattr(Lanes, "_settle", settle)


def _sends_before_it_is_journaled(patch: Patch) -> None:
    """A forward is sent although nobody knows whether the attempt was written down."""
    original = JournalOutbox.forward

    async def forward(self: JournalOutbox, update: Outgoing, kind: str, binding: str) -> Send | None:
        try:
            return await original(self, update, kind, binding)
        except TenureError:
            return Send(binding, delivery_id(kind, binding, update.update_id))

    patch.setattr(JournalOutbox, "forward", forward)
    patch.setattr(admission_desk._Outbox, "forward", forward)


def _acknowledges_what_failed(patch: Patch) -> None:
    """An instance says that it has what its journal could not take."""
    original = Intake.deliver

    async def deliver(self: Intake, request: Forward) -> None:
        try:
            await original(self, request)
        except TenureError:
            return

    patch.setattr(Intake, "deliver", deliver)


def _resumes_what_is_on_its_way(patch: Patch) -> None:
    """What is being sent is sent once more."""
    original = AtLeader.resume
    patch.setattr(AtLeader, "resume", lambda self, epoch, by, besides=frozenset(): original(self, epoch, by))
    forwarder = Forwarder._pass

    async def passes(self: Forwarder, unserved: bool) -> None:
        self._given_up = True
        await forwarder(self, unserved)

    patch.setattr(Forwarder, "_pass", passes)


def _recovers_from_the_living(patch: Patch) -> None:
    """Whoever begins takes what others own."""

    def recover_all(transaction: Transaction, by: Party) -> tuple[receipts.Recovered, ...]:
        for cells in transaction.read("SELECT receipt_id FROM receipts WHERE owner_process <> ?", (by.process,)):
            row = receipts.find(transaction, str(cells[0]))
            assert row is not None
            assert row.data.owner is not None
            message = Recover(row.data.owner.acquisition, "dead")
            receipts._apply(transaction, row, message, by.instance, None)
        return ()

    patch.setattr(receipts, "recover_all", recover_all)


def _confirms_what_is_not_journaled(patch: Patch) -> None:
    """The next poll goes beyond what the journal could not take."""

    async def record(self: Poller, order: poll_loop.Record) -> poll_loop.Happening:
        with contextlib.suppress(TenureError):
            await self._inbox.record(self._updates, skipped=order.skipped)
        return poll_loop.RecordEnded(committed=True, opened=True)

    async def persist(self: Poller, order: poll_loop.Persist) -> poll_loop.Happening:
        return poll_loop.PersistEnded(written=True)

    patch.setattr(Poller, "_record", record)
    patch.setattr(Poller, "_persist", persist)


def _leads_without_a_fence(patch: Patch) -> None:
    """Who wins does not raise the fence."""
    patch.setattr(updates, "raise_fence", lambda transaction, epoch, by: transaction.meta.fence)


MUTATIONS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "decides under an old epoch": (_forwarding_without("epoch_current"), "leaders"),
    "binds to another": (_binds_to_another, "channels"),
    "takes any receipt": (_forwarding_without("same_receipt"), "channel"),
    "takes a yes without a receipt": (_forwarding_without("names_a_receipt"), "channel"),
    "discards what is admitted": (_forwarding_without("not_admitted"), "channel"),
    "admits any id": (_delivery_without("genuine_id"), "channel"),
    "admits for others": (_delivery_without("own_binding"), "channel"),
    "delivers before it admits": (_delivers_before_it_admits, "own"),
    "completes in two": (_completes_in_two, "work"),
    "starts after the handler": (_starts_after_the_handler, "work"),
    "takes any answer": (_takes_any_answer, "forward"),
    "sends before it is journaled": (_sends_before_it_is_journaled, "forward"),
    "acknowledges what failed": (_acknowledges_what_failed, "forward"),
    "resumes what is on its way": (_resumes_what_is_on_its_way, "forward"),
    "recovers from the living": (_recovers_from_the_living, "work"),
    "confirms what is not journaled": (_confirms_what_is_not_journaled, "poll"),
    "leads without a fence": (_leads_without_a_fence, "leaders"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_process_that_does_otherwise_is_found(name: str, monkeypatch: Patch) -> None:
    """Each is a behaviour that `DurableAdmission` does not have."""
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
