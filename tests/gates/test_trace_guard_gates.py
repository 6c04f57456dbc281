"""A journal in which one guard does not guard, and that is used wrongly, leaves a recording that nothing explains.

The machines of the journal are weakened, those of the twins are not. Where all guards stand, the same wrong use is
refused, and nothing is to be explained.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from tenure.adapters.journal import deliveries, forwards, receipts
from tenure.adapters.journal.deliveries import Arrival
from tenure.adapters.trace.api import explained
from tenure.adapters.trace.check import Verdict
from tenure.machines.admission_identity import delivery_id
from tenure.machines.delivery import DELIVERY
from tenure.machines.forwarding import FORWARDING
from tenure.machines.receipt import RECEIPT
from tenure.machines.receipt_messages import Accepted, Holder, Party, Taken
from tests.adapters.journal.journal_room import KIND, body
from tests.adapters.trace.test_journal_walks import BINDINGS, RecordedRoom, Walk

GUARDS = {
    receipts: (
        "RECEIPT",
        RECEIPT,
        "may_take process_owns acquisition_is_current to_another_process one_offer offer_is_that recipient_is_me"
        " donor_owns offer_still_open offered_is_frozen attempts_left owner_is_expected owner_proven_dead"
        " a_person_asks",
    ),
    forwards: (
        "FORWARDING",
        FORWARDING,
        "epoch_current binding_sticks says_yes names_a_receipt same_receipt binding_gone not_admitted",
    ),
    deliveries: ("DELIVERY", DELIVERY, "genuine_id own_binding wanted_here has_room"),
}
"""Not among them: `taker_has_it`, `same_offer`, `accepted_before` and `same_body`, which only answer and change
nothing; `earlier_activation`, `above_offset` and `replays_end`, which no call of the journal can be made to break."""
SEEDS, STEPS = 25, 250


class Misused(Walk):
    """Parties some of which do what they may not."""

    def __init__(self, room: RecordedRoom, chance: random.Random) -> None:
        super().__init__(room, chance)
        self.before: dict[str, Holder] = {}
        """By receipt, who had it."""

    def step(self) -> None:
        for receipt, holder in (*self.queued.items(), *self.running.items()):
            if self.chance.random() < 0.3:
                self.before[receipt] = holder
        if self.chance.random() < 0.6:
            super().step()
            return
        self.chance.choice((self.settles_wrongly, self.moves_wrongly, self.recovers_wrongly, self.leads_wrongly,
                            self.answers_wrongly, self.admits_wrongly, self.takes_wrongly))()  # fmt: skip

    def anything(self) -> str | None:
        return self.chance.choice(sorted(self.updates)) if self.updates else None

    def holder(self, receipt: str) -> Holder | None:
        """Somebody who may or may not own it."""
        real = self.queued.get(receipt) or self.running.get(receipt)
        if real is not None and self.chance.random() < 0.3:
            return attrs.evolve(real, acquisition="of-old")
        if real is None or self.chance.random() < 0.4:
            return self.before.get(receipt, real)
        who = self.chance.choice(self.parties)
        return attrs.evolve(real, instance=who.instance, process=who.process)

    def takes_wrongly(self) -> None:
        if (receipt := self.anything()) is not None:
            done = self.journal.take(receipt, self.chance.choice(self.parties))
            if isinstance(done, Taken):
                self.queued[receipt] = done.holder

    def settles_wrongly(self) -> None:
        receipt = self.anything()
        if receipt is None or (holder := self.holder(receipt)) is None:
            return
        journal = self.journal
        calls: tuple[Callable[[], object], ...] = (
            lambda: journal.start(receipt, holder),
            lambda: journal.fail(receipt, holder, 0),
            lambda: journal.retry(receipt, ""),
            lambda: journal.discard(receipt, ""),
        )
        self.chance.choice(calls)()

    def moves_wrongly(self) -> None:
        receipt = self.anything()
        if receipt is None or (holder := self.holder(receipt)) is None:
            return
        if self.offers and self.chance.random() < 0.7:
            receipt = self.chance.choice(sorted(self.offers))
        real = self.queued.get(receipt, holder)
        handoff, to = self.offers.get(receipt, ("handoff-none", self.parties[0]))
        match self.chance.randrange(6):
            case 0:
                self.journal.offer(
                    receipt, real, f"handoff-{self.room.identities.uuid()}", self.chance.choice(self.parties)
                )
            case 1:
                self.journal.cancel(receipt, real, "handoff-of-old")
            case 2:
                self._accepted(receipt, self.chance.choice(self.parties), handoff, real)
            case 3:
                self._accepted(receipt, to, "handoff-of-old", real)
            case 4:
                self._accepted(receipt, to, handoff, attrs.evolve(real, acquisition="of-old"))
            case 5:
                self.journal.start(receipt, real)

    def _accepted(self, receipt: str, to: Party, handoff: str, donor: Holder) -> None:
        done = self.journal.accept(receipt, to, handoff, donor)
        if isinstance(done, Accepted):
            self.queued[receipt] = done.holder
            self.offers.pop(receipt, None)

    def recovers_wrongly(self) -> None:
        receipt = self.anything()
        row = None if receipt is None else self.journal.receipt(receipt)
        if receipt is None or row is None or row.data.owner is None:
            return
        if self.chance.random() < 0.5:
            self.journal.recover(receipt, str(row.data.owner.acquisition), self.parties[0])
            return
        dead = self.room.lives.dead
        was = set(dead)
        dead.add(row.data.owner.process)
        self.journal.recover(receipt, "of-old", self.parties[0])
        self.room.lives.dead = was

    def leads_wrongly(self) -> None:
        number = self.number()
        if self.journal.item(str(number)).deliveries:
            self.journal.release_update(number, self.leader, gone=True)
            self.journal.discard_update(number, "ann")
        self.epoch, was = max(1, self.epoch - 1), self.epoch
        if self.chance.random() < 0.5:
            self.epoch = was
            self.journal.release_update(self.number(), self.leader, gone=False)
        else:
            self.chance.choice((self.forwards, self.unserved))()
        self.epoch = was

    def answers_wrongly(self) -> None:
        number = self.number()
        row = self.journal.update(number)
        if row is None or row.data.binding is None:
            return
        mine, other = delivery_id(KIND, row.data.binding, number), delivery_id(KIND, row.data.binding, number + 1)
        said = ((True, other, number), (True, None, None), (False, mine, number))
        ok, delivery, update = self.chance.choice(said)
        self.journal.acknowledged(number, self.epoch, ok, delivery, update, self.leader)

    def admits_wrongly(self) -> None:
        number, binding = self.number(), self.chance.choice(BINDINGS)
        wrong = self.chance.choice(("id", "binding", "bound", "room"))
        row = self.journal.update(number)
        if wrong == "room" and row is not None and row.data.binding is not None:
            binding = row.data.binding
        name = delivery_id(KIND, binding, number) + (":1" if wrong == "id" else "")
        mine = "A" if wrong == "binding" else binding
        limits = self.journal._store.limits
        if wrong == "room":
            self.journal._store.limits = attrs.evolve(limits, entries=0)
        one = Arrival(name, KIND, binding, number, body(number))
        self.journal.admit(one, mine, self.parties[BINDINGS.index(binding)].instance)
        self.journal._store.limits = limits


def walked(place: Path, seed: int) -> Verdict:
    """What is said of a journal that is used wrongly."""
    place.mkdir()
    room = RecordedRoom(place)
    room.limits = attrs.evolve(room.limits, attempts=1)
    walk = Misused(room, random.Random(seed))
    with walk.journal:
        for _ in range(STEPS):
            try:
                walk.step()
            except AssertionError:
                break  # nothing holds any more
    return explained(room.recorder)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_where_all_guards_stand_everything_is_explained(seed: int, tmp_path: Path) -> None:
    """What is refused is no event."""
    verdict = walked(tmp_path / "room", seed)
    assert verdict, str(verdict)


@pytest.mark.parametrize(
    ("module", "guard"), [(module, guard) for module, (_, _, names) in GUARDS.items() for guard in names.split()]
)
def test_a_guard_that_does_not_guard_is_found_out(
    module: object, guard: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the module whose machine it is of, or by the one that stands on it."""
    name, table, _ = GUARDS[module]  # type: ignore[index]
    monkeypatch.setattr(module, name, table.without(guard))
    for seed in range(SEEDS):
        if not walked(tmp_path / str(seed), seed):
            return
    pytest.fail(f"nothing is found without {guard}")
