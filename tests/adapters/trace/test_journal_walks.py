"""Whatever is done with a journal in order: what is recorded of it is explained, and so is the journal alone.

Owners, leaders and persons do at random what they may, on one real journal; some die, and a process begins anew.
"""

from __future__ import annotations

import random
from pathlib import Path

import attrs
import pytest

from tenure.adapters.journal.journal import Journal
from tenure.adapters.ports import Ports
from tenure.adapters.trace.api import MemoryRecorder, explained
from tenure.adapters.trace.journal_rows import read
from tenure.machines.admission_identity import delivery_id
from tenure.machines.chart import Refused
from tenure.machines.receipt_messages import Accepted, Holder, Party, Taken
from tests.adapters.journal.journal_room import KIND, Room, arrival, incoming

STEPS = 160
BINDINGS = ("A", "B")


class RecordedRoom(Room):
    """A room in which the journal is recorded."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.recorder = MemoryRecorder()

    def ports(self) -> Ports:
        return attrs.evolve(super().ports(), recorder=self.recorder)


class Walk:
    """Parties that use one journal."""

    def __init__(self, room: RecordedRoom, chance: random.Random) -> None:
        self.room, self.chance = room, chance
        self.journal: Journal = room.open()
        self.epoch, self.update, self.activation = 1, 0, 1
        self.parties = [Party(f"i{n}", f"p{n}", 1) for n in range(3)]
        self.queued: dict[str, Holder] = {}
        self.offers: dict[str, tuple[str, Party]] = {}
        self.running: dict[str, Holder] = {}
        self.updates: dict[str, int] = {}
        assert self.journal.raise_fence(1, "i0") == 1
        self.journal.append([incoming(1)], 1, "i0", skipped=True)
        self.update = 1
        self.journal.end_first_start(1, "i0")
        for party, binding in zip(self.parties, BINDINGS, strict=False):
            self.journal.serve(binding, party)

    def step(self) -> None:
        """Something that may be done."""
        does = (
            self.appends, self.appends, self.forwards, self.keeps, self.admits, self.answers, self.answers,
            self.unserved, self.ends, self.takes, self.takes, self.begins, self.settles, self.offers_one,
            self.accepts, self.withdraws, self.gives_back, self.dies, self.comes_again, self.person, self.leads,
        )  # fmt: skip
        self.room.clock.advance(self.chance.choice((0, 10, 2_000)))
        self.chance.choice(does)()

    @property
    def leader(self) -> str:
        return self.parties[self.epoch % 2].instance

    def number(self) -> int:
        return self.chance.randint(1, self.update)

    def appends(self) -> None:
        self.update += 1
        self.journal.append([incoming(self.update)], self.epoch, self.leader)

    def forwards(self) -> None:
        self.journal.forward(self.number(), self.epoch, self.chance.choice(BINDINGS), self.leader)

    def keeps(self) -> None:
        done = self.journal.keep(self.number(), self.epoch, self.chance.choice(BINDINGS), self.leader)
        if not isinstance(done, Refused):
            self.updates[done.admitted.receipt] = done.admitted.update

    def admits(self) -> None:
        binding, number = self.chance.choice(BINDINGS), self.number()
        row = self.journal.update(number)
        if row is None or row.data.binding != binding:
            return
        done = self.journal.admit(arrival(number, binding), binding, self.parties[BINDINGS.index(binding)].instance)
        if not isinstance(done, Refused):
            self.updates[done.receipt] = number

    def answers(self) -> None:
        number = self.number()
        row = self.journal.update(number)
        if row is None or row.data.binding is None:
            return
        name = delivery_id(KIND, row.data.binding, number)
        there = bool(self.journal.item(name).deliveries)
        ok = there and self.chance.random() < 0.7
        self.journal.acknowledged(number, self.epoch, ok, name if ok else None, number if ok else None, self.leader)

    def unserved(self) -> None:
        self.journal.unserved(self.number(), self.epoch, self.leader)

    def ends(self) -> None:
        match self.chance.randrange(5):
            case 0:
                self.journal.failed(self.number(), self.epoch, "transport-failed", self.leader)
            case 1:
                self.journal.retry_due(self.leader)
            case 2:
                self.journal.resume(self.epoch, self.leader)
            case 3:
                self.journal.release_update(self.number(), self.leader, gone=True)
            case 4 if self.chance.random() < 0.3:
                self.journal.discard_update(self.number(), "ann")

    def takes(self) -> None:
        who = self.chance.choice(self.parties)
        for receipt in list(self.updates):
            done = self.journal.take(receipt, who)
            if isinstance(done, Taken):
                self.queued[receipt] = done.holder
                return

    def begins(self) -> None:
        for receipt, holder in list(self.queued.items()):
            if receipt not in self.offers and not isinstance(self.journal.start(receipt, holder), Refused):
                self.running[receipt] = self.queued.pop(receipt)
                node = f"{self.room.recorder.events[0].process}/{holder.instance}@{self.updates[receipt]}"
                if self.chance.random() < 0.9:
                    acquisition = holder.acquisition
                    self.room.recorder.event("DurableAdmission", "Effect", node, 0, {}, None, acquisition)
                else:
                    self.journal.release(receipt, self.running.pop(receipt), "not begun")
                return

    def settles(self) -> None:
        if not self.running:
            return
        receipt = self.chance.choice(sorted(self.running))
        holder = self.running.pop(receipt)
        match self.chance.randrange(4):
            case 0:
                self.journal.fail(receipt, holder, 0, "in vain")
            case 1:
                self.journal.doubt(receipt, holder, "who knows")
            case _:
                assert not isinstance(self.journal.complete(receipt, holder), Refused)

    def offers_one(self) -> None:
        for receipt, holder in self.queued.items():
            to = self.chance.choice([p for p in self.parties if p.process != holder.process])
            handoff = f"handoff-{self.room.identities.uuid()}"
            if not isinstance(self.journal.offer(receipt, holder, handoff, to), Refused):
                self.offers[receipt] = handoff, to
                return

    def accepts(self) -> None:
        for receipt, (handoff, to) in list(self.offers.items()):
            done = self.journal.accept(receipt, to, handoff, self.queued[receipt])
            if isinstance(done, Accepted):
                self.queued[receipt] = done.holder
            del self.offers[receipt]
            return

    def withdraws(self) -> None:
        for receipt, (handoff, _) in list(self.offers.items()):
            self.journal.cancel(receipt, self.queued[receipt], handoff)
            del self.offers[receipt]
            return

    def gives_back(self) -> None:
        if self.chance.random() < 0.3 and self.queued:
            receipt = self.chance.choice(sorted(self.queued))
            self.journal.release(receipt, self.queued.pop(receipt), "it leaves")
            self.offers.pop(receipt, None)

    def dies(self) -> None:
        """Somebody is dead, and another comes in his place."""
        if self.chance.random() < 0.3:
            n = self.chance.randrange(3)
            gone = self.parties[n]
            self.room.lives.dead.add(gone.process)
            self._forgets(gone)
            self.activation += 1
            self.parties[n] = Party(f"i{n}.{self.activation}", f"p{n}.{self.activation}", 1)
            if n < len(BINDINGS):
                self.journal.serve(BINDINGS[n], self.parties[n])
            self.journal.recover_all(self.parties[(n + 1) % 3])

    def comes_again(self) -> None:
        """A process goes on as another activation."""
        if self.chance.random() < 0.3:
            n = self.chance.randrange(3)
            gone = self.parties[n]
            self._forgets(gone)
            self.activation += 1
            self.parties[n] = Party(f"i{n}.{self.activation}", gone.process, 1)
            if n < len(BINDINGS):
                self.journal.serve(BINDINGS[n], self.parties[n])
            self.journal.reclaim(self.parties[n])

    def _forgets(self, gone: Party) -> None:
        for held in (self.queued, self.running):
            for receipt in [r for r, holder in held.items() if holder.instance == gone.instance]:
                del held[receipt]
                self.offers.pop(receipt, None)
        for receipt in [r for r, (_, to) in self.offers.items() if to.instance == gone.instance]:
            del self.offers[receipt]

    def person(self) -> None:
        for row in self.journal.stuck():
            asks = self.journal.retry if self.chance.random() < 0.7 else self.journal.discard
            asks(row.receipt_id, "ann")
            return

    def leads(self) -> None:
        if self.chance.random() < 0.5:
            self.epoch += 1
            self.journal.raise_fence(self.epoch, self.leader)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_done_in_order_is_explained(seed: int, tmp_path: Path) -> None:
    room = RecordedRoom(tmp_path)
    walk = Walk(room, random.Random(seed))
    with walk.journal:
        for _ in range(STEPS):
            walk.step()
    verdict = explained(room.recorder)
    assert verdict, str(verdict)
    assert verdict.hidden == 0
    alone = explained(read([room.path]))
    assert alone, str(alone)


def test_the_walks_do_everything(tmp_path: Path) -> None:
    """All actions that a journal takes are among them."""
    seen: set[tuple[str, str]] = set()
    for seed in range(12):
        place = tmp_path / str(seed)
        place.mkdir()
        room = RecordedRoom(place)
        walk = Walk(room, random.Random(seed))
        with walk.journal:
            for _ in range(STEPS):
                walk.step()
        seen |= {(event.module, event.action) for event in room.recorder.events}
    admission = "Journal Forward Unserved Keep HearForward HearAck Unanswered Retry Resume Release Discard Effect"
    handoff = "Take Freeze Accept Cancel Start Complete Fail Doubt EndSession Recover Reclaim Retry Discard"
    assert {action for module, action in seen if module == "DurableAdmission"} == set(admission.split())
    assert {action for module, action in seen if module == "QueueHandoff"} == set(handoff.split())


def test_kept_by_the_binding_that_has_it(tmp_path: Path) -> None:
    """A follower's answer was lost, twice, and it leads by now: what it keeps it had, and nothing is inserted."""
    room = RecordedRoom(tmp_path)
    with room.open() as journal:
        journal.raise_fence(1, "i0")
        journal.end_first_start(1, "i0")
        journal.append([incoming(1)], 1, "i0")
        journal.forward(1, 1, "B", "i0")
        for _ in range(2):
            journal.admit(arrival(1), "B", "i1")
        journal.failed(1, 1, "transport-failed", "i0")
        journal.raise_fence(2, "i1")
        journal.keep(1, 2, "B", "i1")
    assert [event.action for event in room.recorder.events][-3:] == ["Unanswered", "Retry", "Keep"]
    for verdict in (explained(room.recorder), explained(read([room.path]))):
        assert verdict, str(verdict)
