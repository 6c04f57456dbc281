"""A queued item that moves between processes, against the twin of `QueueHandoff` (bus.md d, e; I21-I31).

Each node runs the real drivers over the real journal (`handoff_desk`), which is one for all, in memory. Between them is
the real relay of a leader that dies with nobody, and a wire on which messages are lost, repeated and late. Every
transaction is a step, in every order that the nodes may have; each call of the database in it fails once, and a node
dies between any two of them (`journal_ports`). After each step the whole state is compared: the row, what each node has
in its memory, the messages. It has to be a step of the twin by that very node, or nothing to it.

An offer is on its way, to the twin, as soon as the row is frozen, and an answer as soon as the item is in the queue:
here something is read in between (`Told.owes`). What is sent then has to be that. The twin's fresh identity is the one
that is drawn here (`queue_handoff_state.fresh`). A look of a worker that finds nothing is made at once, but where
`Setting.looks` says otherwise.

Some steps here are several there, each a path of the twin (`paths`): what may not begin is looked up at once; what a
worker has found is published. What the twin has not, and is added here (`Twin`, `found_and_given_back`): a recipient
that cannot read its journal refuses what it is offered (its answer is marked); a worker takes what its own process has
offered, when the recipient has accepted it and given it back, and the donor does not know yet; and it finds what is
given back at this moment, and has a copy then that it may not begin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from tenure.adapters.journal.deliveries import Arrival
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.updates import Incoming
from tenure.adapters.verify.bind.binding import Participant, World
from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.calls import Answer, Call, Got
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.disk import Disks
from tenure.adapters.verify.bind.handoff_desk import Desk
from tenure.adapters.verify.bind.handoff_moves import HandoffMoves
from tenure.adapters.verify.bind.handoff_seen import BINDINGS, EPOCHS, PIDS, Known, Names, Seen, Told, party, update
from tenure.adapters.verify.bind.handoff_twin import Setting, paths
from tenure.adapters.verify.bind.handoff_world import Around
from tenure.adapters.verify.bind.journal_ports import LOOKS, Answered, Facts, Op
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.replay import Replay
from tenure.adapters.work.worker import AHEAD
from tenure.machines.admission_identity import delivery_id
from tenure.models.queue_handoff_state import (
    State,
    call,
    fresh,
)


class HandoffBinding(HandoffMoves):
    """The nodes of one configuration."""

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        super().__init__(setting, off)
        self.participants = tuple(Participant(p, PIDS[p], self._program(p)) for p in setting.nodes)

    def _program(self, name: str) -> Program:
        handoffs: list[Names] = [self.handoffs]

        def program(controlled: ControlledPorts, replay: Replay) -> object:
            desk = Desk(name, handoffs[0])
            try:
                while True:
                    replay.ask("told", desk.told(), desk.seen())
                    generation, what, *args = replay.ask("choose", desk.seen())
                    desk.do(generation, what, *args)
                    del generation, what, args
            finally:
                desk.loop.abandon()

        return program

    @staticmethod
    def _journal(journal: Journal) -> None:
        raw = update().text
        journal.raise_fence(1, "b")
        journal.end_first_start(1, "b")
        journal.append([Incoming(1, raw, KIND)], 1, "b")
        journal.forward(1, 1, "A", "b")
        arrival = Arrival(delivery_id(KIND, "A", 1), KIND, "A", 1, raw)
        journal.admit(arrival, "A", "a")
        journal.acknowledged(1, 1, True, arrival.delivery, 1, "b")
        for p in BINDINGS:
            journal.serve(BINDINGS[p], party(p))

    def initial(self, disks: Disks) -> World:
        nodes = self.setting.nodes
        content = self.journals.first(self._journal)
        around = Around(content, tuple((p, Known()) for p in nodes), tuple((p, 1) for p in nodes))
        return attrs.evolve(super().initial(disks), extra=around)

    def outcomes(
        self, disks: Disks, world: World, participant: Participant, call: Call
    ) -> Iterable[tuple[Answer, World, int]]:
        around, p = world.extra, participant.name
        assert isinstance(around, Around)
        if call.name == "told":
            told = call.args[0]
            assert isinstance(told, Told)
            yield Got(), attrs.evolve(world, extra=self._settle(around, p, told)), 0
            return
        (seen,) = call.args
        assert isinstance(seen, Seen)
        for what, after, cost in self._choices(around, p, seen):
            pending = attrs.evolve(after, was=around)
            yield Got((around.generation(p), *what)), attrs.evolve(world, extra=pending), cost

    def _choices(self, around: Around, p: str, seen: Seen) -> Iterator[tuple[tuple[Any, ...], Around, int]]:
        """What may happen to `p`, what is around it then, and what it costs."""
        s, known = self.setting, seen.known
        if seen.op is not None:
            for outcome in self.journals.outcomes(around.content, seen.op, self._facts(around), True):
                yield ("op", outcome.answer), attrs.evolve(around, content=outcome.content), int(outcome.fault)
        if seen.timers and (self._comes(around, p, known) or (seen.op is None and self._finds(around, p))):
            yield ("time",), around, 0
        if seen.held:
            yield ("free",), around, 0
        if seen.held and seen.op is None and around.moved < s.moves:
            for q in s.nodes:
                if q != p and q not in around.dead:
                    after = attrs.evolve(around, moved=around.moved + 1)
                    yield ("move", q, around.generation(q), fresh(self._image(around))), after, 0
        if known.calls:
            yield from self._ends(around, p, known)
        if known.hears is None and not known.taking:
            for m, letter in around.letters:
                if m.kind == "offer" and m.to == p:
                    yield ("hear", m, letter), around, 0
        if seen.running:
            yield ("end",), around, 0
            if "poison" in s.causes:
                yield ("raise",), around, 1

    def _comes(self, around: Around, p: str, known: Known) -> bool:
        """Whether something is about to be accepted, and its worker may look at any moment of that."""
        if not self.setting.looks:
            return False
        return known.taking or any(m.kind == "offer" and m.to == p for m, _ in around.letters)

    def _finds(self, around: Around, p: str) -> bool:
        """Whether a look of its worker would find something. One that finds nothing ends where it began."""
        me, content = party(p), around.content
        take = Op("take_some", (me, AHEAD), (("epoch", EPOCHS[p]),))
        if any(
            not self.journals.idle(content, Op(name, (me,)), self._facts(around)) for name in ("recover_all", "reclaim")
        ):
            return True
        found = self.journals.outcomes(content, take, self._facts(around), True)[0]
        if found.content != content or not isinstance(found.answer, Answered):
            return True
        return bool(found.answer.value) and self._image(around).node[p].phase in ("rebuilding", "staged", "accepted")

    def _facts(self, around: Around) -> Facts:
        return Facts(frozenset(party(q).process for q in around.dead), fresh(self._image(around)))

    def _ends(self, around: Around, p: str, known: Known) -> Iterator[tuple[tuple[Any, ...], Around, int]]:
        """How its call may end."""
        mine = call(self._image(around), p)
        heard = any(k.hears in mine for _, k in around.known)
        for m, letter in around.letters if not heard else ():
            if m.kind == "ack" and m.to == p and m.h == known.copy.h:
                yield ("acked", letter), attrs.evolve(around, told=m), 0
        if not mine:
            yield ("unanswered",), around, 0
        elif "late" in self.setting.causes:
            if not heard:
                yield ("unanswered",), around, 1
            if any(m.kind == "offer" for m in mine):
                yield ("unanswered",), attrs.evolve(around, keeps=True), 1

    def private(self, call: Call, observed: Hashable, world: World, left: int) -> bool:
        if call.name == "told":
            return True
        (seen,) = call.args
        assert isinstance(seen, Seen)
        around = world.extra
        assert isinstance(around, Around)
        if around.was is not None or seen.op is None:
            return False
        if seen.op.method in LOOKS and self._comes(around, seen.name, seen.known):
            return False
        return self.journals.idle(around.content, seen.op, self._facts(around))

    def actions(self, participant: str) -> tuple[tuple[str, Callable[..., Iterable[State]], tuple[Any, ...]], ...]:
        """Its own, and the paths."""
        return (*super().actions(participant), *((f.__name__, f, (participant,)) for f in paths(self.model)))


KIND: Final = "leader.forwardMessage"


def _causes(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _bound(least: int, setting: Setting, thorough: bool = False) -> Bound:
    return Bound(lambda: HandoffBinding(setting), least, thorough)


_CRASH: Final = Setting(causes=_causes("crash person"))


_WIRE: Final = Setting(causes=_causes("lose repeat late reregister"))


_ABC: Final = ("a", "b", "c")


BOUND: Final[Mapping[str, Bound]] = {
    "moves": _bound(1_100, Setting(moves=2, budget=0)),
    "calls": _bound(1_500, Setting()),
    "crash": _bound(2_200, _CRASH),
    "wire": _bound(2_000, _WIRE),
    "poison": _bound(400, Setting(causes=_causes("poison person"), limit=2, moves=0, budget=2)),
    "calls, and back": _bound(9_000, Setting(moves=2), thorough=True),
    "two calls": _bound(5_000, Setting(budget=2), thorough=True),
    "wire, twice": _bound(10_000, attrs.evolve(_WIRE, budget=2), thorough=True),
    "wire, and back": _bound(14_000, attrs.evolve(_WIRE, moves=2), thorough=True),
    "looks": _bound(10_000, Setting(looks=True), thorough=True),
    "third": _bound(12_000, attrs.evolve(_CRASH, nodes=_ABC), thorough=True),
}
"""What the manifest names for the stage `bind`."""
